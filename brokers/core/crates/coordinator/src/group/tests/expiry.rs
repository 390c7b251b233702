//! When committed offsets expire, and when they do not.

use super::machine::{Machine, WALL_MS, known_member, leaving, new_member};
use crate::group::{CommittedOffset, Group, GroupState, JoinRequest, Offsets};

const RETENTION_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

fn committed_at(commit_timestamp_ms: i64) -> CommittedOffset {
    CommittedOffset {
        offset: 1,
        leader_epoch: -1,
        metadata: String::new(),
        commit_timestamp_ms,
        expire_timestamp_ms: None,
    }
}

fn offsets(committed: &[(&str, i64)]) -> Offsets {
    let mut offsets = Offsets::default();
    for (topic, commit_timestamp_ms) in committed {
        offsets.put(topic, 0, committed_at(*commit_timestamp_ms));
    }
    offsets
}

fn expired(offsets: &Offsets, group: &Group, wall_ms: i64) -> Vec<String> {
    let expired = offsets.expired(group, wall_ms, RETENTION_MS);
    expired.into_iter().map(|(topic, _)| topic).collect()
}

#[test]
fn a_group_that_only_commits_loses_offsets_after_their_commit() {
    let group = Group::new("g");
    let offsets = offsets(&[("a", 1_000), ("b", 2_000)]);
    assert_eq!(expired(&offsets, &group, 999 + RETENTION_MS), [""; 0]);
    assert_eq!(expired(&offsets, &group, 1_000 + RETENTION_MS), ["a"]);
    assert_eq!(expired(&offsets, &group, 2_000 + RETENTION_MS), ["a", "b"]);
}

#[test]
fn an_empty_group_loses_offsets_after_its_last_member_left() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a")]);
    machine.pass_alive(100, &[&ids[0]]);
    machine.leave(&[leaving(&ids[0], None)]);
    let empty_since_ms = machine.now.wall_ms;
    assert_eq!(machine.group.state_timestamp_ms(), Some(empty_since_ms));
    let offsets = offsets(&[("t", WALL_MS), ("u", 5)]);
    assert_eq!(expired(&offsets, &machine.group, empty_since_ms - 1 + RETENTION_MS), [""; 0]);
    assert_eq!(expired(&offsets, &machine.group, empty_since_ms + RETENTION_MS), ["t", "u"]);
}

#[test]
fn a_stable_group_loses_only_offsets_of_topics_it_has_left() {
    let (machine, _) = Machine::stable(vec![new_member("a")]);
    let offsets = offsets(&[("t", 5), ("left", 5), ("just", WALL_MS)]);
    assert_eq!(machine.group.state(), GroupState::Stable);
    assert_eq!(expired(&offsets, &machine.group, WALL_MS), ["left"]);
}

#[test]
fn a_rebalancing_group_loses_nothing() {
    let (mut machine, ids) = Machine::stable(vec![new_member("a"), new_member("b")]);
    machine.join(JoinRequest { protocols: Vec::new(), ..known_member(&ids[0]) });
    machine.leave(&[leaving(&ids[0], None)]);
    assert_eq!(machine.group.state(), GroupState::PreparingRebalance);
    assert_eq!(expired(&offsets(&[("left", 5)]), &machine.group, i64::MAX), [""; 0]);
}

#[test]
fn a_group_of_another_kind_loses_nothing_while_it_has_members() {
    let connect = JoinRequest { protocol_type: "connect".to_owned(), ..new_member("a") };
    let (machine, _) = Machine::stable(vec![connect]);
    assert_eq!(expired(&offsets(&[("left", 5)]), &machine.group, i64::MAX), [""; 0]);
}

#[test]
fn an_expiry_of_its_own_comes_first() {
    let mut offsets = offsets(&[("a", 1_000)]);
    let own = CommittedOffset { expire_timestamp_ms: Some(3_000), ..committed_at(1_000) };
    offsets.put("own", 0, own);
    let group = Group::new("g");
    assert_eq!(expired(&offsets, &group, 2_999), [""; 0]);
    assert_eq!(expired(&offsets, &group, 3_000), ["own"]);
}

#[test]
fn offsets_are_a_map() {
    let mut offsets = offsets(&[("a", 1), ("b", 2)]);
    offsets.put("a", 3, committed_at(4));
    assert_eq!(offsets.len(), 3);
    assert_eq!(offsets.get("a", 3), Some(&committed_at(4)));
    offsets.remove("a", 0);
    offsets.remove("a", 9);
    offsets.remove("b", 0);
    let left: Vec<_> = offsets.iter().map(|(topic, partition, _)| (topic, partition)).collect();
    assert_eq!(left, [("a", 3)]);
    offsets.remove("a", 3);
    assert!(offsets.is_empty());
}
