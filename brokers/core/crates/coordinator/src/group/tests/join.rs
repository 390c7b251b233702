//! JoinGroup, rule by rule.

use kafka_protocol::ResponseError;

use super::machine::{Machine, known_member, new_member, protocols};
use crate::group::{GroupSettings, GroupState, JoinRequest};

fn small_group(max_size: usize) -> Machine {
    Machine::with(GroupSettings { max_size, ..GroupSettings::default() })
}

#[test]
fn a_new_member_must_come_back_with_its_id_from_version_4() {
    let mut machine = Machine::new();
    let waiter = machine.join(new_member("app"));
    let response = machine.joined(waiter);
    assert_eq!(response.error, Some(ResponseError::MemberIdRequired));
    assert!(response.member_id.starts_with("app-"), "{}", response.member_id);
    assert_eq!(machine.group.state(), GroupState::Empty);
    assert!(machine.group.has_anyone());

    let again = machine.join(known_member(&response.member_id));
    machine.pass_ms(3_000);
    assert_eq!(machine.joined(again).member_id, response.member_id);
}

#[test]
fn before_version_4_a_new_member_is_let_in_at_once() {
    let mut machine = Machine::new();
    let waiter = machine.join(JoinRequest { api_version: 3, ..new_member("app") });
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    machine.pass_ms(3_000);
    let response = machine.joined(waiter);
    assert_eq!((response.error, response.generation), (None, 1));
}

#[test]
fn an_id_that_was_given_out_ends_with_the_session() {
    let mut machine = Machine::new();
    let waiter = machine.join(new_member("app"));
    let id = machine.joined(waiter).member_id;
    machine.pass_ms(10_000);
    assert!(!machine.group.has_anyone());
    let again = machine.join(known_member(&id));
    assert_eq!(machine.joined(again).error, Some(ResponseError::UnknownMemberId));
}

#[test]
fn a_rebalance_waits_for_members_that_were_given_an_id() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a")]);
    let pending = machine.join(new_member("b"));
    let pending = machine.joined(pending).member_id;
    let rejoined = machine.join(known_member(&ids[0]));
    assert_eq!(machine.try_joined(rejoined), None);
    let joined = machine.join(known_member(&pending));
    assert_eq!(machine.joined(joined).generation, 2);
    assert_eq!(machine.joined(rejoined).members.len(), 2);
}

#[test]
fn a_pending_member_that_goes_ends_the_wait() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a")]);
    machine.join(new_member("b"));
    let rejoined = machine.join(known_member(&ids[0]));
    machine.pass_ms(9_999);
    assert_eq!(machine.try_joined(rejoined), None);
    machine.pass_ms(1);
    assert_eq!(machine.joined(rejoined).generation, 2);
}

#[test]
fn an_unknown_member_is_refused() {
    let (mut machine, _) = Machine::stable(vec![new_member("a")]);
    let waiter = machine.join(known_member("nobody"));
    let response = machine.joined(waiter);
    assert_eq!(response.error, Some(ResponseError::UnknownMemberId));
    assert_eq!((response.generation, response.member_id.as_str()), (-1, "nobody"));
}

#[test]
fn an_empty_group_takes_only_a_member_with_a_protocol() {
    let mut machine = Machine::new();
    let without_type = JoinRequest { protocol_type: String::new(), ..new_member("a") };
    let without_protocols = JoinRequest { protocols: Vec::new(), ..new_member("a") };
    for request in [without_type, without_protocols] {
        let waiter = machine.join(request);
        let error = machine.joined(waiter).error;
        assert_eq!(error, Some(ResponseError::InconsistentGroupProtocol));
    }
    assert!(!machine.group.has_anyone());
}

#[test]
fn a_member_must_fit_the_others() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a")]);
    let other_type = JoinRequest { protocol_type: "connect".to_owned(), ..new_member("b") };
    let other_protocols = JoinRequest { protocols: protocols(&["sticky"]), ..new_member("b") };
    let changed = JoinRequest { protocol_type: "connect".to_owned(), ..known_member(&ids[0]) };
    for request in [other_type, other_protocols, changed] {
        let waiter = machine.join(request);
        let error = machine.joined(waiter).error;
        assert_eq!(error, Some(ResponseError::InconsistentGroupProtocol));
    }
    assert_eq!(machine.group.state(), GroupState::Stable);
}

#[test]
fn the_first_rebalance_waits_for_more_members() {
    let mut machine = Machine::new();
    let first = machine.join_fully(new_member("a"));
    machine.pass_ms(2_999);
    assert_eq!(machine.try_joined(first), None);
    machine.pass_ms(1);
    assert_eq!(machine.joined(first).generation, 1);
}

#[test]
fn each_newcomer_extends_the_first_rebalance_within_the_rebalance_timeout() {
    let mut machine = Machine::new();
    let request = |name| JoinRequest { rebalance_timeout_ms: 8_000, ..new_member(name) };
    let first = machine.join_fully(request("a"));
    machine.pass_ms(2_000);
    machine.join_fully(request("b"));
    machine.pass_ms(1_000);
    assert_eq!(machine.try_joined(first), None, "extended by b");
    machine.pass_ms(2_000);
    machine.join_fully(request("c"));
    machine.pass_ms(1_000);
    assert_eq!(machine.try_joined(first), None, "extended by c");
    machine.join_fully(request("d"));
    machine.pass_ms(1_999);
    assert_eq!(machine.try_joined(first), None, "two of the eight seconds are left");
    machine.pass_ms(1);
    assert_eq!(machine.joined(first).generation, 1);
}

#[test]
fn a_rebalance_drops_who_does_not_rejoin_in_time() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let joined = machine.join(known_member(&leader));
    let other = ids.iter().find(|id| **id != leader).unwrap();
    machine.pass_alive(59, &[other]);
    assert_eq!(machine.heartbeat(other), Err(ResponseError::RebalanceInProgress));
    assert_eq!(machine.try_joined(joined), None);
    machine.pass_ms(1_000);
    let response = machine.joined(joined);
    assert_eq!((response.generation, response.members.len()), (2, 1));
    assert_eq!(machine.heartbeat(other), Err(ResponseError::UnknownMemberId));
}

#[test]
fn a_leader_that_does_not_rejoin_is_replaced() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let other = ids.iter().find(|id| **id != leader).unwrap().clone();
    let changed = JoinRequest { protocols: protocols(&["range", "x"]), ..known_member(&other) };
    let joined = machine.join(changed);
    machine.pass_alive(60, &[leader.as_str()]);
    let response = machine.joined(joined);
    assert_eq!(response.leader, other);
    assert_eq!(response.members.len(), 1);
}

#[test]
fn only_the_leader_learns_of_the_members() {
    let mut machine = Machine::new();
    let waiters = [machine.join_fully(new_member("a")), machine.join_fully(new_member("b"))];
    machine.pass_ms(6_000);
    let responses = waiters.map(|waiter| machine.joined(waiter));
    for response in &responses {
        let expected = if response.leader == response.member_id { 2 } else { 0 };
        assert_eq!(response.members.len(), expected);
        assert_eq!(response.protocol_name.as_deref(), Some("range"));
        assert_eq!(response.protocol_type.as_deref(), Some("consumer"));
    }
    assert_eq!(responses[0].leader, responses[1].leader);
}

#[test]
fn a_lost_answer_to_a_join_is_given_again() {
    let mut machine = Machine::new();
    let waiter = machine.join_fully(new_member("a"));
    machine.pass_ms(3_000);
    let first = machine.joined(waiter);
    let again = machine.join(known_member(&first.member_id));
    assert_eq!(machine.joined(again), first);
    assert_eq!(machine.group.state(), GroupState::CompletingRebalance);
}

#[test]
fn changed_protocols_start_a_rebalance() {
    let mut machine = Machine::new();
    let waiter = machine.join_fully(new_member("a"));
    machine.pass_ms(3_000);
    let id = machine.joined(waiter).member_id;
    let changed = || JoinRequest { protocols: protocols(&["range", "x"]), ..known_member(&id) };
    let waiter = machine.join(changed());
    assert_eq!(machine.joined(waiter).generation, 2, "while the assignment is awaited");
    machine.sync_all();
    let back = machine.join(known_member(&id));
    assert_eq!(machine.joined(back).generation, 3, "in a stable group");
}

#[test]
fn a_follower_that_rejoins_unchanged_disturbs_nobody() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let follower = ids.iter().find(|id| **id != leader).unwrap();
    let waiter = machine.join(known_member(follower));
    let response = machine.joined(waiter);
    assert_eq!((response.generation, response.members.len()), (1, 0));
    assert_eq!(machine.group.state(), GroupState::Stable);
}

#[test]
fn a_leader_that_rejoins_starts_a_rebalance() {
    let (mut machine, _) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let waiter = machine.join(known_member(&leader));
    assert_eq!(machine.try_joined(waiter), None);
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_group_takes_no_more_members_than_it_may_have() {
    let mut machine = small_group(2);
    machine.join_fully(new_member("a"));
    machine.join_fully(new_member("b"));
    let third = machine.join(JoinRequest { api_version: 3, ..new_member("c") });
    let response = machine.joined(third);
    assert_eq!(response.error, Some(ResponseError::GroupMaxSizeReached));
    assert_eq!(response.member_id, "");
    machine.pass_ms(6_000);
    machine.sync_all();
    let fourth = machine.join(new_member("d"));
    assert_eq!(machine.joined(fourth).error, Some(ResponseError::GroupMaxSizeReached));
}

#[test]
fn of_a_group_that_is_too_large_the_last_to_rejoin_must_go() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    machine.settings.max_size = 1;
    let leader = machine.group.leader().unwrap().to_owned();
    let other = ids.iter().find(|id| **id != leader).unwrap();
    let kept = machine.join(known_member(&leader));
    let refused = machine.join(known_member(other));
    assert_eq!(machine.joined(refused).error, Some(ResponseError::GroupMaxSizeReached));
    assert_eq!(machine.joined(kept).members.len(), 1);
}

#[test]
fn a_new_member_that_waits_too_long_is_dropped() {
    let (mut machine, ids) =
        Machine::stable(vec![JoinRequest { rebalance_timeout_ms: 600_000, ..new_member("a") }]);
    let newcomer = machine.join_fully(new_member("b"));
    machine.pass_alive(299, &[&ids[0]]);
    assert_eq!(machine.try_joined(newcomer), None);
    machine.pass_alive(1, &[&ids[0]]);
    let response = machine.joined(newcomer);
    assert_eq!(response.error, Some(ResponseError::UnknownMemberId));
    assert_eq!(response.member_id, "");
}

#[test]
fn who_waits_for_others_needs_no_heartbeats() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let other = ids.iter().find(|id| **id != leader).unwrap();
    let waiter = machine.join(known_member(&leader));
    machine.pass_alive(40, &[other]);
    assert_eq!(machine.try_joined(waiter), None);
    let last = machine.join(known_member(other));
    assert_eq!(machine.joined(waiter).members.len(), 2);
    assert_eq!(machine.joined(last).generation, 2);
}

#[test]
fn the_protocol_is_one_that_all_support_and_most_prefer() {
    let mut machine = Machine::new();
    let with =
        |name, names: &[&str]| JoinRequest { protocols: protocols(names), ..new_member(name) };
    let waiter = machine.join_fully(with("a", &["odd", "sticky", "range"]));
    machine.join_fully(with("b", &["range", "sticky"]));
    machine.join_fully(with("c", &["range", "sticky"]));
    machine.pass_ms(10_000);
    assert_eq!(machine.joined(waiter).protocol_name.as_deref(), Some("range"));
}

#[test]
fn a_join_that_is_sent_again_answers_the_earlier_one() {
    let (mut machine, _) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let earlier = machine.join(known_member(&leader));
    let later = machine.join(known_member(&leader));
    assert_eq!(machine.joined(earlier).error, Some(ResponseError::RebalanceInProgress));
    assert_eq!(machine.try_joined(later), None);
}

#[test]
fn version_0_waits_for_the_session_timeout() {
    let version_0 =
        |name| JoinRequest { api_version: 0, rebalance_timeout_ms: -1, ..new_member(name) };
    let (mut machine, ids) = Machine::stable(vec![version_0("a"), version_0("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let other = ids.iter().find(|id| **id != leader).unwrap();
    let rejoining = JoinRequest { member_id: leader, ..version_0("a") };
    let waiter = machine.join(rejoining);
    machine.pass_alive(9, &[other]);
    assert_eq!(machine.try_joined(waiter), None);
    machine.pass_ms(1_000);
    assert_eq!(machine.joined(waiter).members.len(), 1);
}

#[test]
fn repeated_protocol_names_count_once() {
    let (machine, ids) = Machine::stable(vec![JoinRequest {
        protocols: protocols(&["range"; 3]),
        ..new_member("a")
    }]);
    assert_eq!(ids.len(), 1);
    assert_eq!(machine.group.describe().protocol_data, "range");
}
