//! Drives one group without a service: a clock that is moved by hand, and outcomes of appends that
//! the test decides.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use uuid::Uuid;

use crate::group::{
    ClientInfo, Context, Effect, Group, GroupSettings, GroupState, HeartbeatRequest, JoinRequest,
    JoinResponse, LeavingMember, LeftMember, Now, Persist, Protocol, SyncRequest, SyncResponse,
    Waiter,
};

pub(super) const SESSION_MS: i32 = 10_000;
pub(super) const REBALANCE_MS: i32 = 60_000;
pub(super) const WALL_MS: i64 = 1_700_000_000_000;

pub(super) struct Machine {
    pub(super) group: Group,
    pub(super) settings: GroupSettings,
    pub(super) now: Now,
    joins: BTreeMap<Waiter, JoinResponse>,
    syncs: BTreeMap<Waiter, SyncResponse>,
    /// Appends whose outcome the test has not decided.
    pub(super) appends: VecDeque<Persist>,
    next: u64,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self::with(GroupSettings::default())
    }

    pub(super) fn with(settings: GroupSettings) -> Self {
        Self {
            group: Group::new("g"),
            settings,
            now: Now { monotonic: Duration::ZERO, wall_ms: WALL_MS },
            joins: BTreeMap::new(),
            syncs: BTreeMap::new(),
            appends: VecDeque::new(),
            next: 0,
        }
    }

    /// A stable group of members that have just joined at once, each with its share `work of <id>`.
    pub(super) fn stable(members: Vec<JoinRequest>) -> (Self, Vec<String>) {
        let mut machine = Self::new();
        let waiters: Vec<Waiter> =
            members.into_iter().map(|member| machine.join_fully(member)).collect();
        machine.pass_ms(6_000);
        let ids = waiters.into_iter().map(|waiter| machine.joined(waiter).member_id).collect();
        machine.sync_all();
        assert_eq!(machine.group.state(), GroupState::Stable);
        (machine, ids)
    }

    pub(super) fn step<T>(&mut self, step: impl FnOnce(&mut Group, &mut Context<'_>) -> T) -> T {
        let mut cx = Context::new(self.now, &self.settings);
        let result = step(&mut self.group, &mut cx);
        for effect in cx.effects {
            match effect {
                Effect::Join(waiter, response) => {
                    assert!(self.joins.insert(waiter, response).is_none(), "answered twice");
                }
                Effect::Sync(waiter, response) => {
                    assert!(self.syncs.insert(waiter, response).is_none(), "answered twice");
                }
                Effect::Persist(persist) => self.appends.push_back(persist),
            }
        }
        result
    }

    pub(super) fn waiter(&mut self) -> Waiter {
        self.next += 1;
        Waiter(self.next)
    }

    pub(super) fn join(&mut self, request: JoinRequest) -> Waiter {
        let waiter = self.waiter();
        let fresh_id = Uuid::from_u128(u128::from(self.next));
        self.step(|group, cx| group.join(&request, fresh_id, waiter, cx));
        waiter
    }

    /// Joins, and comes back with the member id where that is required.
    pub(super) fn join_fully(&mut self, request: JoinRequest) -> Waiter {
        let waiter = self.join(request.clone());
        match self.joins.get(&waiter) {
            Some(response) if response.error == Some(ResponseError::MemberIdRequired) => {
                let member_id = response.member_id.clone();
                self.join(JoinRequest { member_id, ..request })
            }
            _ => waiter,
        }
    }

    /// The answer to a JoinGroup, once.
    pub(super) fn try_joined(&mut self, waiter: Waiter) -> Option<JoinResponse> {
        self.joins.remove(&waiter)
    }

    pub(super) fn joined(&mut self, waiter: Waiter) -> JoinResponse {
        self.try_joined(waiter).expect("the JoinGroup has been answered")
    }

    pub(super) fn sync(&mut self, request: SyncRequest) -> Waiter {
        let waiter = self.waiter();
        self.step(|group, cx| group.sync(&request, waiter, cx));
        waiter
    }

    pub(super) fn try_synced(&mut self, waiter: Waiter) -> Option<SyncResponse> {
        self.syncs.remove(&waiter)
    }

    pub(super) fn synced(&mut self, waiter: Waiter) -> SyncResponse {
        self.try_synced(waiter).expect("the SyncGroup has been answered")
    }

    /// A SyncGroup of a member in the current generation; the leader's has all assignments.
    pub(super) fn sync_request(&self, member_id: &str) -> SyncRequest {
        let work = |id: &str| (id.to_owned(), Bytes::from(format!("work of {id}")));
        let assignments = if self.group.leader() == Some(member_id) {
            self.group.assignments().map(|(id, _)| work(id)).collect()
        } else {
            Vec::new()
        };
        SyncRequest {
            payer: payer(),
            group_id: "g".to_owned(),
            generation: self.group.generation(),
            member_id: member_id.to_owned(),
            instance_id: None,
            protocol_type: None,
            protocol_name: None,
            assignments,
        }
    }

    pub(super) fn sync_all(&mut self) {
        let ids: Vec<String> = self.group.assignments().map(|(id, _)| id.to_owned()).collect();
        let waiters: Vec<Waiter> = ids.iter().map(|id| self.sync(self.sync_request(id))).collect();
        self.settle(Ok(()));
        for (id, waiter) in ids.iter().zip(waiters) {
            let response = self.synced(waiter);
            assert_eq!(response.error, None);
            assert_eq!(response.assignment, format!("work of {id}"));
        }
    }

    /// Decides the outcome of the oldest append.
    pub(super) fn settle(&mut self, outcome: Result<(), ResponseError>) {
        let persist = self.appends.pop_front().expect("something is being appended");
        self.step(|group, cx| group.settle(persist.purpose, outcome, cx));
    }

    pub(super) fn heartbeat(&mut self, member_id: &str) -> Result<(), ResponseError> {
        let request = HeartbeatRequest {
            group_id: "g".to_owned(),
            generation: self.group.generation(),
            member_id: member_id.to_owned(),
            instance_id: None,
        };
        self.step(|group, cx| group.heartbeat(&request, cx))
    }

    pub(super) fn leave(&mut self, members: &[LeavingMember]) -> Vec<LeftMember> {
        self.step(|group, cx| group.leave(members, cx)).unwrap()
    }

    /// Lets the time pass, deadline by deadline.
    pub(super) fn pass_ms(&mut self, milliseconds: u64) {
        let end = self.now.monotonic + Duration::from_millis(milliseconds);
        loop {
            let next = self.group.next_deadline().filter(|next| *next <= end);
            let at = next.unwrap_or(end).max(self.now.monotonic);
            let passed = i64::try_from(at.saturating_sub(self.now.monotonic).as_millis()).unwrap();
            self.now = Now { monotonic: at, wall_ms: self.now.wall_ms + passed };
            if next.is_none() {
                return;
            }
            self.step(Group::expire);
        }
    }

    /// Lets the time pass second by second, with heartbeats of these members.
    pub(super) fn pass_alive(&mut self, seconds: u64, alive: &[&str]) {
        for _ in 0..seconds {
            self.pass_ms(1_000);
            for id in alive {
                let _ = self.heartbeat(id);
            }
        }
    }
}

/// A consumer's subscription (version 0) to one topic.
pub(super) fn subscription(topic: &str) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(0);
    out.put_i32(1);
    out.put_i16(i16::try_from(topic.len()).unwrap());
    out.put_slice(topic.as_bytes());
    out.put_i32(-1);
    out.freeze()
}

pub(super) fn protocols(names: &[&str]) -> Vec<Protocol> {
    names
        .iter()
        .map(|name| Protocol { name: (*name).to_owned(), metadata: subscription("t") })
        .collect()
}

/// For whom all is metered.
pub(super) fn payer() -> Arc<str> {
    "User:alice".into()
}

/// The JoinGroup (version 9) of a new member with the protocol `range`.
pub(super) fn new_member(client_id: &str) -> JoinRequest {
    JoinRequest {
        payer: payer(),
        api_version: 9,
        client: ClientInfo {
            client_id: client_id.to_owned(),
            client_host: "/127.0.0.1".to_owned(),
        },
        group_id: "g".to_owned(),
        member_id: String::new(),
        instance_id: None,
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        protocol_type: "consumer".to_owned(),
        protocols: protocols(&["range"]),
        reason: None,
    }
}

/// The JoinGroup of a static member that has (re)started.
pub(super) fn static_member(instance_id: &str) -> JoinRequest {
    JoinRequest { instance_id: Some(instance_id.to_owned()), ..new_member("client") }
}

/// The JoinGroup of a member that has an id.
pub(super) fn known_member(member_id: &str) -> JoinRequest {
    JoinRequest { member_id: member_id.to_owned(), ..new_member("client") }
}

pub(super) fn leaving(member_id: &str, instance_id: Option<&str>) -> LeavingMember {
    LeavingMember {
        member_id: member_id.to_owned(),
        instance_id: instance_id.map(str::to_owned),
        reason: None,
    }
}
