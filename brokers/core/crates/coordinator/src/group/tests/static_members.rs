//! Static members (KIP-345), rule by rule.

use kafka_protocol::ResponseError;

use super::machine::{
    Machine, known_member, leaving, new_member, protocols, static_member, subscription,
};
use crate::group::records::{GroupMetadata, MemberMetadata};
use crate::group::{
    Context, Group, GroupSettings, GroupState, HeartbeatRequest, JoinRequest, Protocol, SyncRequest,
};

/// A stable group of the instances `one` and `two`; `one` leads.
fn two_instances() -> (Machine, Vec<String>) {
    let (mut machine, mut ids) = Machine::stable(vec![static_member("one"), static_member("two")]);
    if machine.group.leader() != Some(ids[0].as_str()) {
        ids.swap(0, 1);
    }
    assert!(ids[0].starts_with("one-"), "ids begin with the instance id, which orders them");
    machine.pass_alive(1, &[&ids[0], &ids[1]]);
    (machine, ids)
}

#[test]
fn a_static_member_needs_no_second_request() {
    let mut machine = Machine::new();
    let waiter = machine.join(static_member("one"));
    machine.pass_ms(3_000);
    let response = machine.joined(waiter);
    assert_eq!(response.error, None);
    assert!(response.member_id.starts_with("one-"));
}

#[test]
fn a_static_member_comes_back_unnoticed() {
    let (mut machine, ids) = two_instances();
    let waiter = machine.join(static_member("two"));
    assert_eq!(machine.try_joined(waiter), None, "not before it is durable");
    assert_eq!(machine.heartbeat(&ids[1]), Ok(()), "until then the old id is good");
    machine.settle(Ok(()));
    let response = machine.joined(waiter);
    assert_eq!((response.error, response.generation), (None, 1));
    assert_ne!(response.member_id, ids[1]);
    assert!(!response.skip_assignment);
    assert_eq!(machine.group.state(), GroupState::Stable);
    assert_eq!(machine.heartbeat(&ids[1]), Err(ResponseError::UnknownMemberId));

    let waiter = machine.sync(machine.sync_request(&response.member_id));
    let assignment = machine.synced(waiter).assignment;
    assert_eq!(assignment, format!("work of {}", ids[1]), "it has what it had");
}

#[test]
fn a_leader_that_comes_back_is_asked_to_skip_the_assignment() {
    let (mut machine, ids) = two_instances();
    let waiter = machine.join(static_member("one"));
    let stored = machine.appends[0].value.clone();
    machine.settle(Ok(()));
    let response = machine.joined(waiter);
    assert!(response.skip_assignment);
    assert_eq!(response.leader, response.member_id);
    assert_eq!(response.members.len(), 2);
    assert_eq!(stored.leader.as_ref(), Some(&response.member_id));
    assert!(stored.members.iter().any(|member| member.member_id == response.member_id));
    assert!(stored.members.iter().all(|member| member.member_id != ids[0]));
}

#[test]
fn a_leader_that_cannot_skip_the_assignment_comes_back_as_a_follower() {
    let (mut machine, ids) = two_instances();
    let waiter = machine.join(JoinRequest { api_version: 8, ..static_member("one") });
    machine.settle(Ok(()));
    let response = machine.joined(waiter);
    assert!(!response.skip_assignment);
    assert_eq!(response.leader, ids[0], "the former id");
    assert_eq!(response.members.len(), 0);
    assert_eq!(machine.group.leader(), Some(response.member_id.as_str()));
}

#[test]
fn a_return_that_cannot_be_stored_has_not_happened() {
    let (mut machine, ids) = two_instances();
    let before = machine.group.describe();
    let waiter = machine.join(static_member("one"));
    machine.settle(Err(ResponseError::CoordinatorNotAvailable));
    let response = machine.joined(waiter);
    assert_eq!(response.error, Some(ResponseError::CoordinatorNotAvailable));
    assert_eq!((response.member_id.as_str(), response.leader), ("", ids[0].clone()));
    assert_eq!(machine.group.describe(), before);
    assert_eq!(machine.heartbeat(&ids[0]), Ok(()));
}

#[test]
fn the_former_id_of_an_instance_is_fenced() {
    let (mut machine, ids) = two_instances();
    let waiter = machine.join(static_member("one"));
    machine.settle(Ok(()));
    machine.joined(waiter);
    let old = || Some("one".to_owned());
    let fenced = ResponseError::FencedInstanceId;

    let request = JoinRequest { instance_id: old(), ..known_member(&ids[0]) };
    let waiter = machine.join(request);
    assert_eq!(machine.joined(waiter).error, Some(fenced));
    let request = SyncRequest { instance_id: old(), ..machine.sync_request(&ids[0]) };
    let waiter = machine.sync(request);
    assert_eq!(machine.synced(waiter).error, Some(fenced));
    let request = HeartbeatRequest {
        group_id: "g".to_owned(),
        generation: 1,
        member_id: ids[0].clone(),
        instance_id: old(),
    };
    assert_eq!(machine.step(|group, cx| group.heartbeat(&request, cx)), Err(fenced));
    assert_eq!(machine.group.validate_commit(&ids[0], Some("one"), 1), Err(fenced));
    let left = machine.leave(&[leaving(&ids[0], Some("one"))]);
    assert_eq!(left[0].error, Some(fenced));
}

#[test]
fn a_return_that_changes_the_protocol_starts_a_rebalance() {
    let both =
        |one| JoinRequest { protocols: protocols(&["range", "sticky"]), ..static_member(one) };
    let (mut machine, _) = Machine::stable(vec![both("one"), both("two")]);
    let sticky = JoinRequest { protocols: protocols(&["sticky"]), ..static_member("one") };
    let waiter = machine.join(sticky);
    assert_eq!(machine.try_joined(waiter), None);
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    assert_eq!(machine.appends.len(), 0);
}

#[test]
fn a_return_with_another_subscription_is_stored() {
    let (mut machine, _) = two_instances();
    assert!(!machine.group.is_subscribed_to("other"));
    let protocol = Protocol { name: "range".to_owned(), metadata: subscription("other") };
    let waiter = machine.join(JoinRequest { protocols: vec![protocol], ..static_member("two") });
    let metadata = subscription("other");
    let stored = &machine.appends[0].value;
    assert!(stored.members.iter().any(|member| member.subscription == metadata));
    machine.settle(Ok(()));
    assert_eq!(machine.joined(waiter).error, None);
    assert!(machine.group.is_subscribed_to("other"));
}

#[test]
fn a_return_during_the_join_phase_takes_the_place_of_the_parked_one() {
    let (mut machine, ids) = two_instances();
    let old =
        machine.join(JoinRequest { instance_id: Some("one".to_owned()), ..known_member(&ids[0]) });
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    let new = machine.join(static_member("one"));
    let response = machine.joined(old);
    assert_eq!(response.error, Some(ResponseError::FencedInstanceId));
    assert_eq!(response.member_id, ids[0]);
    assert_eq!(machine.try_joined(new), None);
    let other = machine.join(static_member("two"));
    assert_eq!(machine.joined(new).members.len(), 2);
    assert_eq!(machine.joined(other).generation, 2);
}

#[test]
fn a_return_before_the_assignment_starts_a_rebalance() {
    let mut machine = Machine::new();
    let waiters = [machine.join(static_member("one")), machine.join(static_member("two"))];
    machine.pass_ms(6_000);
    let ids = waiters.map(|waiter| machine.joined(waiter).member_id);
    let parked = machine.sync(machine.sync_request(&ids[1]));
    let waiter = machine.join(static_member("two"));
    assert_eq!(machine.synced(parked).error, Some(ResponseError::FencedInstanceId));
    assert_eq!(machine.try_joined(waiter), None);
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
}

#[test]
fn two_returns_at_once_leave_the_last() {
    let (mut machine, _) = two_instances();
    let first = machine.join(static_member("two"));
    let second = machine.join(static_member("two"));
    machine.settle(Ok(()));
    let fenced = machine.joined(first).member_id;
    machine.settle(Ok(()));
    assert_eq!(machine.try_joined(second), None, "it replaces the first, which is stored again");
    machine.settle(Ok(()));
    let current = machine.joined(second).member_id;
    assert_eq!(machine.heartbeat(&current), Ok(()));
    assert_eq!(machine.heartbeat(&fenced), Err(ResponseError::UnknownMemberId));
    assert_eq!(machine.group.assignments().count(), 2);
}

#[test]
fn a_return_that_meets_a_rebalance_joins_it() {
    let (mut machine, ids) = two_instances();
    let waiter = machine.join(static_member("two"));
    let leader = machine.join(known_member(&ids[0]));
    machine.settle(Ok(()));
    let response = machine.joined(waiter);
    assert_eq!((response.error, response.generation), (None, 2));
    assert_eq!(machine.joined(leader).members.len(), 2);
}

#[test]
fn a_return_of_an_instance_that_was_removed_meanwhile_is_a_new_member() {
    let (mut machine, ids) = two_instances();
    let waiter = machine.join(static_member("two"));
    machine.leave(&[leaving("", Some("two"))]);
    let leader = machine.join(known_member(&ids[0]));
    assert_eq!(machine.joined(leader).generation, 2);
    machine.settle(Ok(()));
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    let leader = machine.join(known_member(&ids[0]));
    assert_eq!(machine.joined(leader).members.len(), 2);
    assert_eq!(machine.joined(waiter).generation, 3);
}

#[test]
fn static_members_outlast_the_join_phase_but_not_their_session() {
    let (mut machine, ids) = two_instances();
    let long = JoinRequest {
        instance_id: Some("one".to_owned()),
        rebalance_timeout_ms: 5_000,
        ..known_member(&ids[0])
    };
    // Both are known with a rebalance timeout of a minute: the other one's session ends first.
    let waiter = machine.join(long);
    machine.pass_ms(9_998);
    assert_eq!(machine.try_joined(waiter), None);
    machine.pass_ms(2);
    assert_eq!(machine.joined(waiter).members.len(), 1);
}

#[test]
fn a_static_member_that_misses_the_join_phase_keeps_its_place() {
    let short = |one| JoinRequest {
        rebalance_timeout_ms: 5_000,
        session_timeout_ms: 60_000,
        ..static_member(one)
    };
    let (mut machine, ids) = Machine::stable(vec![short("one"), short("two")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let waiter = machine.join(JoinRequest { member_id: leader.clone(), ..short(&leader[..3]) });
    machine.pass_ms(5_000);
    let response = machine.joined(waiter);
    assert_eq!((response.generation, response.members.len()), (2, 2));
    assert_eq!(machine.group.assignments().count(), 2);
    assert!(ids.iter().all(|id| machine.heartbeat(id) == Ok(())));
}

#[test]
fn a_rebalance_that_no_static_member_joins_waits_on() {
    let short = |one| JoinRequest {
        rebalance_timeout_ms: 5_000,
        session_timeout_ms: 60_000,
        ..static_member(one)
    };
    let (mut machine, ids) =
        Machine::stable(vec![short("one"), short("two"), new_member("dynamic")]);
    let dynamic = ids.iter().find(|id| id.starts_with("dynamic")).unwrap();
    machine.leave(&[leaving(dynamic, None)]);
    machine.pass_alive(14, &[&ids[0], &ids[1]]);
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    let waiter = machine.join(short("one"));
    machine.pass_alive(5, &[&ids[1]]);
    assert_eq!(machine.joined(waiter).generation, 2);
}

fn stored_group(member_count: usize, leader: Option<&str>) -> GroupMetadata {
    let members = (0..member_count).map(|number| MemberMetadata {
        member_id: format!("m{number}"),
        client_id: "client".to_owned(),
        client_host: "/10.0.0.1".to_owned(),
        rebalance_timeout_ms: Some(60_000),
        session_timeout_ms: 10_000,
        subscription: subscription("t"),
        assignment: bytes::Bytes::from(format!("work of m{number}")),
        ..MemberMetadata::default()
    });
    GroupMetadata {
        protocol_type: "consumer".to_owned(),
        generation: 7,
        protocol: Some("range".to_owned()),
        leader: leader.map(str::to_owned),
        state_timestamp_ms: Some(5),
        members: members.collect(),
    }
}

fn load(machine: &mut Machine, stored: GroupMetadata) {
    let settings = machine.settings.clone();
    let mut cx = Context::new(machine.now, &settings);
    machine.group = Group::load("g", stored, &mut cx);
    assert_eq!(cx.effects, []);
}

#[test]
fn a_loaded_group_is_as_it_was_and_every_session_starts_anew() {
    let mut machine = Machine::new();
    machine.pass_ms(100_000);
    load(&mut machine, stored_group(2, Some("m1")));
    assert_eq!(machine.group.state(), GroupState::Stable);
    assert_eq!((machine.group.generation(), machine.group.leader()), (7, Some("m1")));
    assert!(machine.group.is_subscribed_to("t") && !machine.group.is_subscribed_to("u"));
    machine.pass_ms(9_999);
    assert_eq!(machine.heartbeat("m0"), Ok(()));
    let waiter = machine.sync(machine.sync_request("m0"));
    assert_eq!(machine.synced(waiter).assignment, "work of m0");
    machine.pass_ms(1);
    assert_eq!(machine.heartbeat("m1"), Err(ResponseError::UnknownMemberId));
}

#[test]
fn a_loaded_group_without_members_is_empty() {
    let mut machine = Machine::new();
    load(&mut machine, GroupMetadata { protocol: None, ..stored_group(0, None) });
    assert_eq!(machine.group.state(), GroupState::Empty);
    assert_eq!(machine.group.state_timestamp_ms(), Some(5));
    assert_eq!(machine.group.generation(), 7);
    assert_eq!(machine.group.next_deadline(), None);
}

#[test]
fn a_loaded_group_has_a_leader_even_if_its_record_has_none() {
    for leader in [None, Some("gone")] {
        let mut machine = Machine::new();
        load(&mut machine, stored_group(2, leader));
        assert_eq!(machine.group.leader(), Some("m0"));
    }
}

#[test]
fn a_loaded_group_that_is_too_large_rebalances() {
    let settings = GroupSettings { max_size: 1, ..GroupSettings::default() };
    let mut machine = Machine::with(settings);
    load(&mut machine, stored_group(2, Some("m0")));
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    assert_eq!(machine.heartbeat("m0"), Err(ResponseError::RebalanceInProgress));
}
