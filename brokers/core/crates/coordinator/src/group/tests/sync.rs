//! SyncGroup and Heartbeat, rule by rule.

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::machine::{Machine, known_member, leaving, new_member};
use crate::group::{
    Group, GroupState, HeartbeatRequest, JoinRequest, Purpose, SyncRequest, Waiter,
};

/// A group of two that awaits the assignment: machine, leader, follower.
fn completing() -> (Machine, String, String) {
    let mut machine = Machine::new();
    let waiters = [machine.join_fully(new_member("a")), machine.join_fully(new_member("b"))];
    machine.pass_ms(6_000);
    let ids = waiters.map(|waiter| machine.joined(waiter).member_id);
    let leader = machine.group.leader().unwrap().to_owned();
    let follower = ids.into_iter().find(|id| *id != leader).unwrap();
    (machine, leader, follower)
}

fn sync(machine: &mut Machine, id: &str) -> Waiter {
    machine.sync(machine.sync_request(id))
}

#[test]
fn nobody_learns_of_an_assignment_before_it_is_durable() {
    let (mut machine, leader, follower) = completing();
    let waiters = [sync(&mut machine, &follower), sync(&mut machine, &leader)];
    assert_eq!(machine.group.state(), GroupState::CompletingRebalance);
    for waiter in waiters {
        assert_eq!(machine.try_synced(waiter), None);
    }
    assert!(machine.group.assignments().all(|(_, assignment)| assignment.is_empty()));
    let stored: Vec<_> =
        machine.appends[0].value.members.iter().map(|one| one.assignment.clone()).collect();
    assert_eq!(stored.len(), 2);
    assert!(stored.iter().all(|assignment| !assignment.is_empty()));

    machine.settle(Ok(()));
    assert_eq!(machine.group.state(), GroupState::Stable);
    for waiter in waiters {
        let response = machine.synced(waiter);
        assert_eq!(response.error, None);
        assert_eq!(response.protocol_type.as_deref(), Some("consumer"));
        assert_eq!(response.protocol_name.as_deref(), Some("range"));
    }
}

#[test]
fn a_late_follower_gets_its_assignment_at_once() {
    let (mut machine, leader, follower) = completing();
    sync(&mut machine, &leader);
    machine.settle(Ok(()));
    let waiter = sync(&mut machine, &follower);
    assert_eq!(machine.synced(waiter).assignment, format!("work of {follower}"));
}

#[test]
fn an_assignment_that_cannot_be_stored_starts_a_rebalance() {
    let (mut machine, leader, follower) = completing();
    let waiters = [sync(&mut machine, &follower), sync(&mut machine, &leader)];
    machine.settle(Err(ResponseError::NotCoordinator));
    for waiter in waiters {
        let response = machine.synced(waiter);
        assert_eq!(response.error, Some(ResponseError::NotCoordinator));
        assert_eq!(response.assignment, Bytes::new());
    }
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    assert_eq!(machine.group.generation(), 1);
}

#[test]
fn an_assignment_of_a_generation_that_is_over_is_ignored() {
    let (mut machine, leader, follower) = completing();
    let waiter = sync(&mut machine, &leader);
    machine.leave(&[leaving(&follower, None)]);
    assert_eq!(machine.synced(waiter).error, Some(ResponseError::RebalanceInProgress));
    for outcome in [Ok(()), Err(ResponseError::NotCoordinator)] {
        let assigned = machine.appends[0].clone();
        assert!(matches!(assigned.purpose, Purpose::Assignment { generation: 1, .. }));
        machine.step(|group, cx| group.settle(assigned.purpose, outcome, cx));
        assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    }
}

#[test]
fn whom_the_leader_forgets_gets_nothing() {
    let (mut machine, leader, follower) = completing();
    let forgetful = SyncRequest {
        assignments: vec![
            (leader.clone(), Bytes::from_static(b"all")),
            ("non-member".to_owned(), Bytes::from_static(b"x")),
        ],
        ..machine.sync_request(&leader)
    };
    machine.sync(forgetful);
    machine.settle(Ok(()));
    let waiter = sync(&mut machine, &follower);
    assert_eq!(machine.synced(waiter).assignment, Bytes::new());
    assert_eq!(machine.group.assignments().count(), 2);
}

#[test]
fn a_sync_is_checked() {
    let (mut machine, leader, _) = completing();
    let good = machine.sync_request(&leader);
    let named = |protocol_type: &str, protocol_name: &str| SyncRequest {
        protocol_type: Some(protocol_type.to_owned()),
        protocol_name: Some(protocol_name.to_owned()),
        ..good.clone()
    };
    let cases = [
        (
            SyncRequest { member_id: "nobody".to_owned(), ..good.clone() },
            ResponseError::UnknownMemberId,
        ),
        (SyncRequest { generation: 0, ..good.clone() }, ResponseError::IllegalGeneration),
        (SyncRequest { generation: 2, ..good.clone() }, ResponseError::IllegalGeneration),
        (named("connect", "range"), ResponseError::InconsistentGroupProtocol),
        (named("consumer", "sticky"), ResponseError::InconsistentGroupProtocol),
        (
            SyncRequest { instance_id: Some("i".to_owned()), ..good.clone() },
            ResponseError::UnknownMemberId,
        ),
    ];
    for (request, error) in cases {
        let waiter = machine.sync(request);
        assert_eq!(machine.synced(waiter).error, Some(error));
    }
    let waiter = machine.sync(named("consumer", "range"));
    assert_eq!(machine.try_synced(waiter), None);
}

#[test]
fn a_sync_during_the_join_phase_sends_the_member_back() {
    let (mut machine, _) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    machine.join(known_member(&leader));
    let waiter = sync(&mut machine, &leader);
    assert_eq!(machine.synced(waiter).error, Some(ResponseError::RebalanceInProgress));
}

#[test]
fn who_does_not_sync_in_time_is_dropped() {
    let (mut machine, leader, follower) = completing();
    sync(&mut machine, &leader);
    machine.settle(Ok(()));
    machine.pass_alive(59, &[&leader, &follower]);
    assert_eq!(machine.group.state(), GroupState::Stable);
    machine.pass_alive(1, &[&leader, &follower]);
    assert_eq!(machine.heartbeat(&follower), Err(ResponseError::UnknownMemberId));
    assert_eq!(machine.heartbeat(&leader), Err(ResponseError::RebalanceInProgress));
}

#[test]
fn a_leader_that_does_not_sync_loses_its_place() {
    let (mut machine, leader, follower) = completing();
    let waiter = sync(&mut machine, &follower);
    machine.pass_alive(60, &[&leader, &follower]);
    assert_eq!(machine.synced(waiter).error, Some(ResponseError::RebalanceInProgress));
    assert_eq!(machine.group.leader(), Some(follower.as_str()));
    let joined = machine.join(known_member(&follower));
    assert_eq!(machine.joined(joined).members.len(), 1);
}

#[test]
fn a_sync_that_is_sent_again_answers_the_earlier_one() {
    let (mut machine, leader, follower) = completing();
    let earlier = sync(&mut machine, &follower);
    let later = sync(&mut machine, &follower);
    assert_eq!(machine.synced(earlier).error, Some(ResponseError::RebalanceInProgress));
    sync(&mut machine, &leader);
    machine.settle(Ok(()));
    assert_eq!(machine.synced(later).error, None);
}

#[test]
fn who_waits_for_an_assignment_has_a_whole_session_afterwards() {
    let (mut machine, leader, follower) = completing();
    let waiter = sync(&mut machine, &follower);
    machine.pass_alive(30, &[&leader]);
    sync(&mut machine, &leader);
    machine.settle(Ok(()));
    assert_eq!(machine.synced(waiter).error, None);
    machine.pass_ms(9_999);
    assert_eq!(machine.heartbeat(&follower), Ok(()));
}

#[test]
fn a_heartbeat_is_checked() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a")]);
    let good = HeartbeatRequest {
        group_id: "g".to_owned(),
        generation: 1,
        member_id: ids[0].clone(),
        instance_id: None,
    };
    let cases = [
        (good.clone(), Ok(())),
        (HeartbeatRequest { generation: 0, ..good.clone() }, Err(ResponseError::IllegalGeneration)),
        (
            HeartbeatRequest { member_id: "x".to_owned(), ..good.clone() },
            Err(ResponseError::UnknownMemberId),
        ),
        (
            HeartbeatRequest { instance_id: Some("x".to_owned()), ..good },
            Err(ResponseError::UnknownMemberId),
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(machine.step(|group, cx| group.heartbeat(&request, cx)), expected);
    }
}

#[test]
fn silence_ends_a_membership() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    machine.pass_alive(10, &[&ids[0]]);
    assert_eq!(machine.heartbeat(&ids[1]), Err(ResponseError::UnknownMemberId));
    assert_eq!(machine.heartbeat(&ids[0]), Err(ResponseError::RebalanceInProgress));
    let waiter = machine.join(known_member(&ids[0]));
    assert_eq!(machine.joined(waiter).generation, 2);
}

#[test]
fn a_commit_is_as_good_as_a_heartbeat() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a")]);
    machine.pass_ms(9_000);
    assert_eq!(machine.group.validate_commit(&ids[0], None, 1), Ok(()));
    machine.step(|group, cx| group.committed_by(&ids[0], cx));
    machine.pass_ms(9_999);
    assert_eq!(machine.heartbeat(&ids[0]), Ok(()));
}

#[test]
fn a_commit_is_checked() {
    let (mut machine, leader, follower) = completing();
    let group = &machine.group;
    let in_progress = Err(ResponseError::RebalanceInProgress);
    assert_eq!(group.validate_commit(&leader, None, 1), in_progress);
    assert_eq!(group.validate_commit(&leader, None, 0), Err(ResponseError::IllegalGeneration));
    sync(&mut machine, &leader);
    machine.settle(Ok(()));
    let group = &machine.group;
    let unknown = Err(ResponseError::UnknownMemberId);
    assert_eq!(group.validate_commit(&follower, None, 1), Ok(()));
    assert_eq!(group.validate_commit("", None, -1), unknown, "a non-member among members");
    assert_eq!(group.validate_commit("nobody", None, 1), unknown);
    assert_eq!(group.validate_commit(&leader, Some("i"), 1), unknown);
    let illegal = Err(ResponseError::IllegalGeneration);
    assert_eq!(group.validate_commit(&leader, None, -1), illegal);

    machine.leave(&[leaving(&leader, None), leaving(&follower, None)]);
    let group = &machine.group;
    assert_eq!(group.state(), GroupState::Empty);
    assert_eq!(group.validate_commit("", None, -1), Ok(()), "an administrator");
    assert_eq!(group.validate_commit(&leader, None, 1), unknown, "one that has left");
}

#[test]
fn commits_of_the_last_generation_are_taken_during_the_join_phase() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    machine.join(JoinRequest { reason: Some("test".to_owned()), ..known_member(&leader) });
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    for id in &ids {
        assert_eq!(machine.group.validate_commit(id, None, 1), Ok(()));
    }
}

#[test]
fn an_unloaded_group_sends_everybody_away() {
    let (mut machine, leader, follower) = completing();
    let waiter = sync(&mut machine, &follower);
    machine.step(Group::unload);
    assert_eq!(machine.synced(waiter).error, Some(ResponseError::NotCoordinator));
    assert_eq!(machine.group.next_deadline(), None);
    let unavailable = Some(ResponseError::CoordinatorNotAvailable);
    assert_eq!(machine.heartbeat(&leader).err(), unavailable);
    assert_eq!(machine.group.validate_commit(&leader, None, 1).err(), unavailable);
    let waiter = machine.join(known_member(&leader));
    assert_eq!(machine.joined(waiter).error, unavailable);
    let waiter = sync(&mut machine, &leader);
    assert_eq!(machine.synced(waiter).error, unavailable);
}
