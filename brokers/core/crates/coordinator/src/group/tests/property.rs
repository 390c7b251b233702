//! Random lives of a group: whatever happens, the rules of the state machine hold.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::ResponseError;
use proptest::prelude::*;

use super::machine::{Machine, known_member, leaving, new_member, protocols, static_member};
use crate::group::{GroupState, JoinRequest, JoinResponse, SyncRequest, Waiter};

#[derive(Debug, Clone)]
enum Step {
    JoinNew { api_version: i16 },
    JoinStatic { instance: usize, api_version: i16, sticky: bool },
    Rejoin { member: usize, sticky: bool },
    Sync { member: usize },
    Heartbeat { member: usize },
    Leave { member: usize },
    RemoveInstance { instance: usize },
    Pass { milliseconds: u64 },
    Settle { fails: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let member = 0_usize..8;
    let instance = 0_usize..3;
    let api_version = prop_oneof![Just(2_i16), Just(8), Just(9)];
    let step = prop_oneof![
        2 => api_version.clone().prop_map(|api_version| Step::JoinNew { api_version }),
        2 => (instance.clone(), api_version, any::<bool>()).prop_map(
            |(instance, api_version, sticky)| Step::JoinStatic { instance, api_version, sticky }
        ),
        4 => (member.clone(), prop::bool::weighted(0.2))
            .prop_map(|(member, sticky)| Step::Rejoin { member, sticky }),
        6 => member.clone().prop_map(|member| Step::Sync { member }),
        3 => member.clone().prop_map(|member| Step::Heartbeat { member }),
        1 => member.prop_map(|member| Step::Leave { member }),
        1 => instance.prop_map(|instance| Step::RemoveInstance { instance }),
        3 => (0_u64..9_000).prop_map(|milliseconds| Step::Pass { milliseconds }),
        4 => prop::bool::weighted(0.2).prop_map(|fails| Step::Settle { fails }),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A group, the answers that its clients have got, and what must not be forgotten.
struct Life {
    machine: Machine,
    /// Ids that have been given out, the newest first.
    ids: Vec<String>,
    joins: BTreeSet<Waiter>,
    /// With the generation of the request.
    syncs: BTreeMap<Waiter, i32>,
    generation: i32,
    leaders: BTreeMap<i32, BTreeSet<String>>,
}

impl Life {
    fn new() -> Self {
        Self {
            machine: Machine::new(),
            ids: Vec::new(),
            joins: BTreeSet::new(),
            syncs: BTreeMap::new(),
            generation: 0,
            leaders: BTreeMap::new(),
        }
    }

    fn take(&mut self, step: Step) {
        let names = |sticky| protocols(if sticky { &["range", "sticky"] } else { &["range"] });
        match step {
            Step::JoinNew { api_version } => {
                self.join(JoinRequest { api_version, ..new_member("client") });
            }
            Step::JoinStatic { instance, api_version, sticky } => {
                let request = static_member(&format!("i{instance}"));
                self.join(JoinRequest { api_version, protocols: names(sticky), ..request });
            }
            Step::Rejoin { member, sticky } => {
                let Some(id) = self.ids.get(member) else { return };
                let request = known_member(id);
                self.join(JoinRequest { protocols: names(sticky), ..request });
            }
            Step::Sync { member } => self.sync(member),
            Step::Heartbeat { member } => {
                let Some(id) = self.ids.get(member).cloned() else { return };
                let _ = self.machine.heartbeat(&id);
            }
            Step::Leave { member } => {
                let Some(id) = self.ids.get(member).cloned() else { return };
                self.machine.leave(&[leaving(&id, None)]);
            }
            Step::RemoveInstance { instance } => {
                self.machine.leave(&[leaving("", Some(&format!("i{instance}")))]);
            }
            Step::Pass { milliseconds } => self.machine.pass_ms(milliseconds),
            Step::Settle { fails } => {
                let error = ResponseError::CoordinatorNotAvailable;
                if !self.machine.appends.is_empty() {
                    self.machine.settle(if fails { Err(error) } else { Ok(()) });
                }
            }
        }
    }

    fn join(&mut self, request: JoinRequest) {
        let waiter = self.machine.join(request);
        self.joins.insert(waiter);
    }

    fn sync(&mut self, member: usize) {
        let Some(id) = self.ids.get(member).cloned() else { return };
        let generation = self.machine.group.generation();
        let request = self.machine.sync_request(&id);
        let work = bytes::Bytes::from(format!("generation {generation}"));
        let assignments = request.assignments.into_iter().map(|(id, _)| (id, work.clone()));
        let assignments = assignments.collect();
        let waiter = self.machine.sync(SyncRequest { assignments, ..request });
        self.syncs.insert(waiter, generation);
    }

    /// Reads the answers that clients have got.
    fn listen(&mut self) {
        for waiter in std::mem::take(&mut self.joins) {
            match self.machine.try_joined(waiter) {
                Some(response) => self.hear_join(response),
                None => {
                    self.joins.insert(waiter);
                }
            }
        }
        for (waiter, generation) in std::mem::take(&mut self.syncs) {
            match self.machine.try_synced(waiter) {
                Some(response) if response.error.is_none() => {
                    assert_eq!(response.assignment, format!("generation {generation}"));
                }
                Some(_) => {}
                None => {
                    self.syncs.insert(waiter, generation);
                }
            }
        }
    }

    fn hear_join(&mut self, response: JoinResponse) {
        if !response.member_id.is_empty() && !self.ids.contains(&response.member_id) {
            self.ids.insert(0, response.member_id.clone());
        }
        if response.error.is_some() {
            return;
        }
        assert!(response.generation <= self.machine.group.generation());
        if response.leader == response.member_id && !response.skip_assignment {
            assert!(response.members.iter().any(|one| one.member_id == response.member_id));
            let leaders = self.leaders.entry(response.generation).or_default();
            leaders.insert(response.member_id);
            assert_eq!(leaders.len(), 1, "one leader a generation: {leaders:?}");
        }
    }

    fn check(&mut self) {
        let group = &self.machine.group;
        assert!(group.generation() >= self.generation, "generations only grow");
        self.generation = group.generation();
        let members: BTreeMap<_, _> = group.assignments().collect();
        match group.leader() {
            Some(leader) => assert!(members.contains_key(leader), "the leader is a member"),
            None => assert!(members.is_empty(), "a group with members has a leader"),
        }
        match group.state() {
            GroupState::Stable => {
                let expected = format!("generation {}", group.generation());
                assert!(!members.is_empty());
                assert!(members.values().all(|assignment| *assignment == &expected));
            }
            GroupState::Empty => assert!(members.is_empty()),
            GroupState::CompletingRebalance => assert!(!members.is_empty()),
            GroupState::PreparingRebalance | GroupState::Dead => {}
        }
    }

    /// Everybody falls silent: nobody may be left, and no request without an answer.
    fn end(&mut self) {
        for _ in 0..50 {
            while !self.machine.appends.is_empty() {
                self.machine.settle(Ok(()));
                self.check();
            }
            self.machine.pass_ms(60_000);
            self.listen();
        }
        assert_eq!(self.machine.group.state(), GroupState::Empty);
        assert!(!self.machine.group.has_anyone());
        assert_eq!(self.machine.group.next_deadline(), None);
        assert_eq!((self.joins.len(), self.syncs.len()), (0, 0), "unanswered");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_rules_hold_whatever_happens(steps in steps()) {
        let mut life = Life::new();
        for step in steps {
            life.take(step);
            life.check();
            life.listen();
        }
        life.end();
    }
}
