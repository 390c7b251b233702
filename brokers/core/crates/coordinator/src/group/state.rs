//! The state of one classic group: its data, what can be asked of it, and how it is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tracing::debug;

use super::api::{ClientInfo, DescribedGroup, DescribedMember, JoinedMember, Protocol};
use super::context::{Context, Waiter};
use super::deadlines::Deadlines;
use super::records::{GroupMetadata, MemberMetadata};
use super::subscription::{CONSUMER, Subscriptions};

/// The states of a classic group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupState {
    /// No members. The group lingers until its offsets have expired.
    Empty,
    /// Waits for members to join the next generation.
    PreparingRebalance,
    /// Waits for the leader's assignment.
    CompletingRebalance,
    /// Members have their assignments.
    Stable,
    /// Unloaded or deleted.
    Dead,
}

impl GroupState {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }

    fn may_follow(self, previous: Self) -> bool {
        match self {
            Self::Empty | Self::CompletingRebalance => previous == Self::PreparingRebalance,
            Self::PreparingRebalance => {
                matches!(previous, Self::Stable | Self::CompletingRebalance | Self::Empty)
            }
            Self::Stable => previous == Self::CompletingRebalance,
            Self::Dead => true,
        }
    }
}

/// A member of a group.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) instance_id: Option<String>,
    pub(super) client: ClientInfo,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    /// Its `JoinGroup`, while it waits for the others.
    pub(super) join: Option<Waiter>,
    /// Its `SyncGroup`, while it waits for the leader's assignment.
    pub(super) sync: Option<Waiter>,
    /// Whether it has never been in a generation, so that it cannot send heartbeats yet.
    pub(super) is_new: bool,
}

impl Member {
    /// Its metadata for a protocol; empty where it does not support it.
    pub(super) fn metadata(&self, protocol: Option<&str>) -> Bytes {
        let metadata = self.protocols.iter().find(|known| Some(known.name.as_str()) == protocol);
        metadata.map(|known| known.metadata.clone()).unwrap_or_default()
    }
}

/// What a group's timers are for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The end of the join phase.
    Join,
    /// The end of the time in which members must send `SyncGroup`.
    Sync,
    /// A member's session, also of one that has not joined yet.
    Member(String),
}

/// The rest of the delay of a group's first rebalance. Other rebalances have none.
#[derive(Debug, Clone, Copy)]
pub(super) struct InitialDelay {
    /// The delay that is running, in ms.
    pub(super) delay_ms: i32,
    /// How much may still be added to it, in ms.
    pub(super) remaining_ms: i32,
}

/// One classic group: a state machine without clock, randomness or I/O.
///
/// Each step takes a [`Context`] and leaves in it what is to be done: answers to parked requests,
/// and records to append, whose outcome comes back through [`Group::settle`]. Time passes by
/// calling [`Group::expire`] when [`Group::next_deadline`] has come.
#[derive(Debug, Clone)]
pub struct Group {
    pub(super) id: String,
    pub(super) state: GroupState,
    pub(super) previous_state: GroupState,
    pub(super) state_timestamp_ms: Option<i64>,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol_name: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) members: BTreeMap<String, Member>,
    /// Member ids by instance id.
    pub(super) static_members: BTreeMap<String, String>,
    /// Ids that were given out with `MEMBER_ID_REQUIRED` and have not come back.
    pub(super) pending_joins: BTreeSet<String>,
    /// Members of this generation that have not sent `SyncGroup`.
    pub(super) pending_syncs: BTreeSet<String>,
    /// How many members support each protocol.
    pub(super) protocol_counts: BTreeMap<String, usize>,
    /// How many members have a `JoinGroup` parked.
    pub(super) joined_count: usize,
    /// Whether a member joined during the delay of the first rebalance.
    pub(super) new_member_added: bool,
    pub(super) initial_delay: Option<InitialDelay>,
    /// The topics to which a consumer group subscribes; `None` where they could not be decoded.
    pub(super) subscribed_topics: Option<Subscriptions>,
    pub(super) timers: Deadlines<Timer>,
}

impl Group {
    /// Creates a group that nobody has joined.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            state: GroupState::Empty,
            previous_state: GroupState::Dead,
            state_timestamp_ms: None,
            generation: 0,
            protocol_type: None,
            protocol_name: None,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_joins: BTreeSet::new(),
            pending_syncs: BTreeSet::new(),
            protocol_counts: BTreeMap::new(),
            joined_count: 0,
            new_member_added: false,
            initial_delay: None,
            subscribed_topics: None,
            timers: Deadlines::default(),
        }
    }

    /// Creates a group from its last record. The session timeout of every member begins now, so
    /// that members do not notice a takeover within it. A group that is larger than
    /// `group.max.size` starts a rebalance.
    pub fn load(id: impl Into<String>, value: GroupMetadata, cx: &mut Context<'_>) -> Self {
        let mut group = Self::new(id);
        group.generation = value.generation;
        group.protocol_type = Some(value.protocol_type).filter(|name| !name.is_empty());
        group.state_timestamp_ms = value.state_timestamp_ms;
        group.protocol_name = value.protocol;
        for member in value.members {
            group.load_member(member, cx);
        }
        if !group.members.is_empty() {
            group.state = GroupState::Stable;
            let known = value.leader.filter(|leader| group.members.contains_key(leader));
            group.leader = known.or_else(|| group.members.keys().next().cloned());
        }
        group.subscribed_topics = group.read_subscriptions();
        if group.members.len() > cx.settings.max_size {
            group.prepare_rebalance("the loaded group is larger than group.max.size", cx);
        }
        group
    }

    fn load_member(&mut self, stored: MemberMetadata, cx: &Context<'_>) {
        let name = self.protocol_name.clone().unwrap_or_default();
        let session_timeout_ms = stored.session_timeout_ms;
        let member = Member {
            instance_id: stored.instance_id,
            client: ClientInfo { client_id: stored.client_id, client_host: stored.client_host },
            rebalance_timeout_ms: stored.rebalance_timeout_ms.unwrap_or(session_timeout_ms),
            session_timeout_ms,
            protocols: vec![Protocol { name, metadata: stored.subscription }],
            assignment: stored.assignment,
            join: None,
            sync: None,
            is_new: false,
        };
        let timer = Timer::Member(stored.member_id.clone());
        self.timers.schedule(timer, cx.after_ms(session_timeout_ms));
        self.insert_member(stored.member_id, member);
    }

    /// Its state.
    pub fn state(&self) -> GroupState {
        self.state
    }

    /// When it came to that state, in milliseconds since 1970, where that is known.
    pub fn state_timestamp_ms(&self) -> Option<i64> {
        self.state_timestamp_ms
    }

    /// The last generation; 0 before the first.
    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// Such as `consumer`; `None` for a group that only commits offsets.
    pub fn protocol_type(&self) -> Option<&str> {
        self.protocol_type.as_deref()
    }

    /// Member id of the leader.
    pub fn leader(&self) -> Option<&str> {
        self.leader.as_deref()
    }

    /// Member ids and assignments.
    pub fn assignments(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.members.iter().map(|(id, member)| (id.as_str(), &member.assignment))
    }

    /// Whether anybody is a member, or has been given an id to become one.
    pub fn has_anyone(&self) -> bool {
        !self.members.is_empty() || !self.pending_joins.is_empty()
    }

    /// When [`Group::expire`] must be called next.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Whether the topics to which members subscribe could be read.
    pub fn knows_subscriptions(&self) -> bool {
        self.subscribed_topics.is_some()
    }

    /// Whether a member subscribes to the topic. Where the subscriptions could not be decoded,
    /// whether the group is one of consumers, since any of its members may subscribe to it.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.protocol_type.as_deref() == Some(CONSUMER),
        }
    }

    /// Checks whether a member may commit offsets, as Kafka's `ClassicGroup.validateOffsetCommit`
    /// does.
    ///
    /// # Errors
    /// `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`, `ILLEGAL_GENERATION`, `REBALANCE_IN_PROGRESS`
    /// while the leader's assignment is awaited, `COORDINATOR_NOT_AVAILABLE` for a dead group.
    pub fn validate_commit(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ResponseError> {
        if self.state == GroupState::Dead {
            return Err(ResponseError::CoordinatorNotAvailable);
        }
        if generation < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        if generation < 0 && member_id.is_empty() && instance_id.is_none() {
            return Err(ResponseError::UnknownMemberId);
        }
        self.validate_member(member_id, instance_id)?;
        if generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        if self.state == GroupState::CompletingRebalance {
            return Err(ResponseError::RebalanceInProgress);
        }
        Ok(())
    }

    /// Restarts the session timeout of a member that commits offsets, except while an assignment is
    /// awaited, when a heartbeat would be refused, too.
    pub fn committed_by(&mut self, member_id: &str, cx: &Context<'_>) {
        if matches!(self.state, GroupState::Stable | GroupState::PreparingRebalance) {
            self.restart_session(member_id, cx);
        }
    }

    /// The group's record, with `assignments` in place of those it has.
    pub(super) fn metadata(
        &self,
        assignments: Option<&BTreeMap<String, Bytes>>,
        cx: &Context<'_>,
    ) -> GroupMetadata {
        let members = self.members.iter().map(|(id, member)| {
            let assignment = match assignments {
                Some(assignments) => assignments.get(id).cloned().unwrap_or_default(),
                None => member.assignment.clone(),
            };
            self.member_metadata(id, member, assignment)
        });
        GroupMetadata {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol_name.clone(),
            leader: self.leader.clone(),
            state_timestamp_ms: Some(self.state_timestamp_ms.unwrap_or(cx.now.wall_ms)),
            members: members.collect(),
        }
    }

    fn member_metadata(&self, id: &str, member: &Member, assignment: Bytes) -> MemberMetadata {
        MemberMetadata {
            member_id: id.to_owned(),
            instance_id: member.instance_id.clone(),
            client_id: member.client.client_id.clone(),
            client_host: member.client.client_host.clone(),
            rebalance_timeout_ms: Some(member.rebalance_timeout_ms),
            session_timeout_ms: member.session_timeout_ms,
            subscription: member.metadata(self.protocol_name.as_deref()),
            assignment,
        }
    }

    /// The members as the leader sees them.
    pub(super) fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol_name.as_deref();
        let members = self.members.iter().map(|(id, member)| JoinedMember {
            member_id: id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        });
        members.collect()
    }

    /// The group as `DescribeGroups` shows it.
    pub fn describe(&self) -> DescribedGroup {
        let protocol = match self.state {
            GroupState::Stable => self.protocol_name.as_deref(),
            _ => None,
        };
        let members = self.members.iter().map(|(id, member)| DescribedMember {
            member_id: id.clone(),
            instance_id: member.instance_id.clone(),
            client: member.client.clone(),
            metadata: protocol.map(|name| member.metadata(Some(name))).unwrap_or_default(),
            assignment: member.assignment.clone(),
        });
        DescribedGroup {
            group_id: self.id.clone(),
            error: None,
            error_message: None,
            state: self.state.name(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol_data: protocol.unwrap_or_default().to_owned(),
            members: members.collect(),
        }
    }

    pub(super) fn transition_to(&mut self, state: GroupState, cx: &Context<'_>) {
        debug_assert!(state.may_follow(self.state), "{:?} after {:?}", state, self.state);
        debug!(group = self.id, from = self.state.name(), to = state.name(), "group state");
        self.previous_state = self.state;
        self.state = state;
        self.state_timestamp_ms = Some(cx.now.wall_ms);
    }

    pub(super) fn read_subscriptions(&self) -> Option<Subscriptions> {
        if self.protocol_type.as_deref() != Some(CONSUMER) {
            return None;
        }
        if self.members.is_empty() {
            return Some(Subscriptions::default());
        }
        let protocol = Some(self.protocol_name.as_deref()?);
        Subscriptions::read(self.members.values().map(|member| member.metadata(protocol)))
    }
}
