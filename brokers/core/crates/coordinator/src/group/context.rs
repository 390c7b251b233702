//! What a step of the state machine is given, and what it asks for.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::api::{JoinRequest, JoinResponse, SyncResponse};
use super::records::GroupMetadata;
use super::settings::GroupSettings;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Since some fixed moment; never goes back. Timers use this one.
    pub monotonic: Duration,
    /// Milliseconds since 1970-01-01 UTC. Stored in records, and for expiry only.
    pub wall_ms: i64,
}

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiter(pub u64);

/// What the state machine asks to be done after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer a `JoinGroup`.
    Join(Waiter, JoinResponse),
    /// Answer a `SyncGroup`.
    Sync(Waiter, SyncResponse),
    /// Append the group's record, then call [`super::Group::settle`] with the outcome.
    Persist(Persist),
}

/// A group record to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persist {
    /// The record's value.
    pub value: GroupMetadata,
    /// What is to happen once it is durable.
    pub purpose: Purpose,
}

/// Why a group record is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// The leader assigned the work of a generation: members get it once it is durable.
    Assignment {
        /// The generation.
        generation: i32,
        /// By member id.
        assignments: BTreeMap<String, Bytes>,
    },
    /// A static member came back to a stable group: it takes its place once that is durable.
    StaticRejoin(Box<StaticRejoin>),
    /// The last member left. Nothing waits for it: a group record that is lost brings back members
    /// that time out again.
    Empty,
}

/// A static member that comes back under a new member id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticRejoin {
    /// Its request.
    pub request: JoinRequest,
    /// The instance id in it.
    pub instance_id: String,
    /// The id that it replaces.
    pub old_member_id: String,
    /// The id that it will have.
    pub new_member_id: String,
    /// The generation in which it came back.
    pub generation: i32,
    /// Its `JoinGroup`.
    pub waiter: Waiter,
}

/// One step of the state machine.
#[derive(Debug)]
pub struct Context<'a> {
    /// When it happens.
    pub now: Now,
    /// Limits and delays.
    pub settings: &'a GroupSettings,
    /// What is to be done afterwards, in order.
    pub effects: Vec<Effect>,
}

impl<'a> Context<'a> {
    /// A step that has asked for nothing yet.
    pub fn new(now: Now, settings: &'a GroupSettings) -> Self {
        Self { now, settings, effects: Vec::new() }
    }

    pub(super) fn answer_join(&mut self, waiter: Waiter, response: JoinResponse) {
        self.effects.push(Effect::Join(waiter, response));
    }

    pub(super) fn refuse_join(&mut self, waiter: Waiter, member_id: &str, error: ResponseError) {
        self.answer_join(waiter, JoinResponse::refused(member_id, error));
    }

    pub(super) fn answer_sync(&mut self, waiter: Waiter, response: SyncResponse) {
        self.effects.push(Effect::Sync(waiter, response));
    }

    pub(super) fn persist(&mut self, value: GroupMetadata, purpose: Purpose) {
        self.effects.push(Effect::Persist(Persist { value, purpose }));
    }

    /// The monotonic time in `milliseconds` from now.
    pub(super) fn after_ms(&self, milliseconds: i32) -> Duration {
        self.now.monotonic + duration_ms(milliseconds)
    }
}

/// A duration from the protocol; negative counts as none.
pub(super) fn duration_ms(milliseconds: i32) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}
