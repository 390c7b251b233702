//! The input of a step of the state machine, and the effects that it asks for.

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
    /// The time since some fixed moment, which never goes back. Timers use this one.
    pub monotonic: Duration,
    /// Milliseconds since 1970-01-01 UTC. It is stored in records and used for expiry only, because
    /// it may be set back.
    pub wall_ms: i64,
}

/// The number of a request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiter(pub u64);

/// An effect that the state machine asks its caller to perform after a step.
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
    /// Why it is appended, which decides what happens once it is durable.
    pub purpose: Purpose,
}

/// Why a group record is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// The leader has assigned the work of a generation. Members get their shares once the record
    /// is durable.
    Assignment {
        /// The generation.
        generation: i32,
        /// By member id.
        assignments: BTreeMap<String, Bytes>,
    },
    /// A static member has come back to a stable group. It takes its place once the record is
    /// durable.
    StaticRejoin(Box<StaticRejoin>),
    /// The last member has left. Nothing waits for this record: where it is lost, a load brings
    /// back members that time out again.
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
    /// The time at which it happens.
    pub now: Now,
    /// Limits and delays.
    pub settings: &'a GroupSettings,
    /// The most members of a group; at most `group.max.size`.
    pub members_max: usize,
    /// The effects to be performed after the step, in order.
    pub effects: Vec<Effect>,
}

impl<'a> Context<'a> {
    /// A step without any effect yet.
    pub fn new(now: Now, settings: &'a GroupSettings) -> Self {
        Self { now, settings, members_max: settings.max_size, effects: Vec::new() }
    }

    /// The same step under a limit on the members of a group.
    #[must_use]
    pub fn with_members_max(self, members_max: Option<usize>) -> Self {
        let given = members_max.unwrap_or(usize::MAX);
        Self { members_max: given.min(self.members_max), ..self }
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

/// Converts a duration of the protocol; a negative one becomes zero.
pub(super) fn duration_ms(milliseconds: i32) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}
