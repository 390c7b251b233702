//! LeaveGroup, rule by rule.

use kafka_protocol::ResponseError;

use super::machine::{Machine, known_member, leaving, new_member, static_member};
use crate::group::{GroupState, LeftMember, Purpose};

fn errors(left: Vec<LeftMember>) -> Vec<Option<ResponseError>> {
    left.into_iter().map(|member| member.error).collect()
}

#[test]
fn who_leaves_is_forgotten_and_the_others_rebalance() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    assert_eq!(errors(machine.leave(&[leaving(&ids[0], None)])), [None]);
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    assert_eq!(machine.heartbeat(&ids[0]), Err(ResponseError::UnknownMemberId));
    let waiter = machine.join(known_member(&ids[1]));
    let response = machine.joined(waiter);
    assert_eq!((response.generation, response.leader), (2, ids[1].clone()));
}

#[test]
fn the_last_to_leave_empties_the_group() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a")]);
    machine.leave(&[leaving(&ids[0], None)]);
    assert_eq!(machine.group.state(), GroupState::Empty);
    assert_eq!(machine.group.generation(), 2);
    assert_eq!(machine.group.leader(), None);
    assert_eq!(machine.group.protocol_type(), Some("consumer"));
    let stored = &machine.appends[0];
    assert_eq!(stored.purpose, Purpose::Empty);
    assert_eq!((stored.value.generation, stored.value.members.len()), (2, 0));
    assert_eq!((&stored.value.protocol, &stored.value.leader), (&None, &None));
    machine.settle(Err(ResponseError::NotCoordinator));
    assert_eq!(machine.group.state(), GroupState::Empty);
}

#[test]
fn a_batch_is_answered_one_by_one() {
    let (mut machine, ids) =
        Machine::stable(vec![static_member("one"), static_member("two"), new_member("c")]);
    let left = machine.leave(&[
        leaving("", Some("one")),
        leaving("", Some("nobody")),
        leaving("", None),
        leaving(&ids[0], Some("two")),
        leaving("non-member", None),
        leaving(&ids[2], None),
    ]);
    let unknown = Some(ResponseError::UnknownMemberId);
    let fenced = Some(ResponseError::FencedInstanceId);
    assert_eq!(errors(left), [None, unknown, unknown, fenced, unknown, None]);
    assert_eq!(machine.group.assignments().count(), 1);
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_batch_in_which_nobody_leaves_disturbs_nobody() {
    let (mut machine, _) = Machine::stable(vec![new_member("a")]);
    machine.leave(&[leaving("non-member", None)]);
    assert_eq!(machine.group.state(), GroupState::Stable);
}

#[test]
fn who_has_only_been_given_an_id_may_leave() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a")]);
    let pending = machine.join(new_member("b"));
    let pending = machine.joined(pending).member_id;
    let rejoined = machine.join(known_member(&ids[0]));
    assert_eq!(errors(machine.leave(&[leaving(&pending, None)])), [None]);
    assert_eq!(machine.joined(rejoined).generation, 2);
}

#[test]
fn a_member_that_leaves_gets_its_parked_requests_answered() {
    let (mut machine, _) = Machine::stable(vec![new_member("a"), new_member("b")]);
    let leader = machine.group.leader().unwrap().to_owned();
    let waiter = machine.join(known_member(&leader));
    machine.leave(&[leaving(&leader, None)]);
    let response = machine.joined(waiter);
    assert_eq!(response.error, Some(ResponseError::UnknownMemberId));
    assert_eq!(response.member_id, "");
}

#[test]
fn all_may_leave_before_the_first_rebalance_ends() {
    let mut machine = Machine::new();
    let pending = machine.join(new_member("a"));
    let id = machine.joined(pending).member_id;
    machine.join(known_member(&id));
    machine.leave(&[leaving(&id, None)]);
    machine.pass_ms(3_000);
    assert_eq!(machine.group.state(), GroupState::Empty);
    assert_eq!(machine.appends.len(), 1);
}
