//! `JoinGroup`, as Kafka's `GroupMetadataManager.classicGroupJoinToClassicGroup`.

use kafka_protocol::ResponseError;
use tracing::{info, warn};
use uuid::Uuid;

use super::api::{JoinRequest, JoinResponse};
use super::context::{Context, Purpose, StaticRejoin, Waiter};
use super::membership::{own_protocols, rebalance_timeout_ms};
use super::records::{GroupMetadata, MemberMetadata};
use super::state::{Group, GroupState, Member, Timer};

/// From this version a new dynamic member must send its request again with the id that it got
/// (KIP-394).
const REQUIRES_KNOWN_MEMBER_ID: i16 = 4;
/// From this version the answer can ask a leader to skip the assignment (KIP-814).
const SUPPORTS_SKIPPING_ASSIGNMENT: i16 = 9;

impl Group {
    /// Handles a `JoinGroup`. `fresh_id` becomes part of the id of a new member. The answer is an
    /// [`super::Effect::Join`] of this step or a later one.
    ///
    /// Answers `GROUP_MAX_SIZE_REACHED`, `INCONSISTENT_GROUP_PROTOCOL`, `MEMBER_ID_REQUIRED`,
    /// `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`, `COORDINATOR_NOT_AVAILABLE`, and the error of
    /// the append where a static member's return could not be stored.
    pub fn join(
        &mut self,
        request: &JoinRequest,
        fresh_id: Uuid,
        waiter: Waiter,
        cx: &mut Context<'_>,
    ) {
        let member_id = request.member_id.as_str();
        if !self.has_room_for(member_id, cx) {
            self.remove_member(member_id, cx);
            cx.refuse_join(waiter, "", ResponseError::GroupMaxSizeReached);
            self.maybe_complete_join(cx);
        } else if self.state == GroupState::Dead {
            cx.refuse_join(waiter, member_id, ResponseError::CoordinatorNotAvailable);
        } else if !self.supports(&request.protocol_type, &request.protocols) {
            cx.refuse_join(waiter, member_id, ResponseError::InconsistentGroupProtocol);
        } else if member_id.is_empty() {
            self.join_new(request, fresh_id, waiter, cx);
        } else {
            self.join_known(request, waiter, cx);
        }
    }

    fn join_new(
        &mut self,
        request: &JoinRequest,
        fresh_id: Uuid,
        waiter: Waiter,
        cx: &mut Context<'_>,
    ) {
        let prefix = request.instance_id.as_ref().unwrap_or(&request.client.client_id);
        let new_id = format!("{prefix}-{fresh_id}");
        let instance = request.instance_id.as_ref();
        if let Some(old_id) = instance.and_then(|id| self.static_members.get(id)).cloned() {
            info!(group = self.id, old_id, new_id, "a static member came back");
            let rejoin = StaticRejoin {
                // It waits for an append, and is not to keep the request in memory meanwhile.
                request: JoinRequest {
                    protocols: own_protocols(&request.protocols),
                    ..request.clone()
                },
                instance_id: instance.cloned().unwrap_or_default(),
                old_member_id: old_id,
                new_member_id: new_id,
                generation: self.generation,
                waiter,
            };
            self.rejoin_static(rejoin, cx);
        } else if instance.is_none() && request.api_version >= REQUIRES_KNOWN_MEMBER_ID {
            if self.pending_joins.len() >= cx.members_max {
                // Each id that was given out is kept until its session ends.
                cx.refuse_join(waiter, "", ResponseError::GroupMaxSizeReached);
                return;
            }
            let at = cx.after_ms(request.session_timeout_ms);
            self.timers.schedule(Timer::Member(new_id.clone()), at);
            cx.refuse_join(waiter, &new_id, ResponseError::MemberIdRequired);
            self.pending_joins.insert(new_id);
        } else {
            self.add_member(request, new_id, waiter, cx);
        }
    }

    fn join_known(&mut self, request: &JoinRequest, waiter: Waiter, cx: &mut Context<'_>) {
        let id = request.member_id.as_str();
        let instance_id = request.instance_id.as_deref();
        if self.pending_joins.contains(id) && instance_id.is_none() {
            self.add_member(request, id.to_owned(), waiter, cx);
            return;
        }
        if let Err(error) = self.validate_member(id, instance_id) {
            cx.refuse_join(waiter, id, error);
            return;
        }
        let protocols = own_protocols(&request.protocols);
        let is_changed = self.members.get(id).is_none_or(|member| member.protocols != protocols);
        let is_leader = self.is_leader(id);
        let must_rebalance = match self.state {
            GroupState::PreparingRebalance => true,
            GroupState::CompletingRebalance => is_changed,
            // A leader that joins again wants a rebalance, even if only topics have changed.
            GroupState::Stable => is_changed || is_leader,
            GroupState::Empty | GroupState::Dead => false,
        };
        if must_rebalance {
            self.update_member(id, request, Some(waiter), cx);
            self.rebalance_or_complete(&reason("a member rejoins", request), cx);
        } else if matches!(self.state, GroupState::Empty | GroupState::Dead) {
            cx.refuse_join(waiter, id, ResponseError::UnknownMemberId);
        } else {
            // The answer to its JoinGroup was lost, or it is a follower and nothing has changed: it
            // gets the current generation and can send SyncGroup.
            let with_members = is_leader && self.state == GroupState::CompletingRebalance;
            cx.answer_join(waiter, self.join_response(id, with_members));
        }
    }

    fn add_member(
        &mut self,
        request: &JoinRequest,
        id: String,
        waiter: Waiter,
        cx: &mut Context<'_>,
    ) {
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        let member = Member {
            instance_id: request.instance_id.clone(),
            client: request.client.clone(),
            rebalance_timeout_ms: rebalance_timeout_ms(request),
            session_timeout_ms: request.session_timeout_ms,
            protocols: own_protocols(&request.protocols),
            assignment: bytes::Bytes::new(),
            join: Some(waiter),
            sync: None,
            is_new: true,
        };
        if self.initial_delay.is_some() {
            self.new_member_added = true;
        }
        // The member does not know its id yet and so sends no heartbeats. A client that gave up
        // tries again with an empty id and becomes another member; the limit keeps such abandoned
        // members from accumulating.
        let at = cx.after_ms(cx.settings.new_member_join_timeout_ms);
        self.timers.schedule(Timer::Member(id.clone()), at);
        self.insert_member(id, member);
        self.rebalance_or_complete(&reason("a new member joins", request), cx);
    }

    /// Handles a static member that comes back with an empty member id. Where nothing changes for
    /// the others there is no rebalance: only the group's record changes.
    pub(super) fn rejoin_static(&mut self, rejoin: StaticRejoin, cx: &mut Context<'_>) {
        let old_id = rejoin.old_member_id.as_str();
        let protocols = own_protocols(&rejoin.request.protocols);
        let selected = self.select_protocol(Some((old_id, &protocols)));
        if self.state == GroupState::Stable && selected == self.protocol_name {
            let value = self.metadata_after(&rejoin, cx);
            cx.persist(value, Purpose::StaticRejoin(Box::new(rejoin)));
            return;
        }
        let new_id = rejoin.new_member_id.as_str();
        self.replace_static_member(&rejoin.instance_id, old_id, new_id, cx);
        self.update_member(new_id, &rejoin.request, Some(rejoin.waiter), cx);
        self.restart_session(new_id, cx);
        match self.state {
            GroupState::Stable => {
                let why = "a static member's return changes the protocol";
                self.prepare_rebalance(&reason(why, &rejoin.request), cx);
            }
            // The leader may already assign to the old id.
            GroupState::CompletingRebalance => {
                let why = "a static member came back before the assignment";
                self.prepare_rebalance(&reason(why, &rejoin.request), cx);
            }
            GroupState::PreparingRebalance => self.maybe_complete_join(cx),
            GroupState::Empty | GroupState::Dead => {}
        }
    }

    /// The group's record as it will be after a static member's return.
    fn metadata_after(&self, rejoin: &StaticRejoin, cx: &Context<'_>) -> GroupMetadata {
        let mut value = self.metadata(None, cx);
        let is_it = |member: &&mut MemberMetadata| member.member_id == rejoin.old_member_id;
        if let Some(member) = value.members.iter_mut().find(is_it) {
            let protocols = &rejoin.request.protocols;
            let selected = protocols.iter().find(|one| Some(&one.name) == value.protocol.as_ref());
            member.member_id.clone_from(&rejoin.new_member_id);
            member.rebalance_timeout_ms = Some(rebalance_timeout_ms(&rejoin.request));
            member.session_timeout_ms = rejoin.request.session_timeout_ms;
            member.subscription = selected.map(|one| one.metadata.clone()).unwrap_or_default();
        }
        if value.leader.as_ref() == Some(&rejoin.old_member_id) {
            value.leader = Some(rejoin.new_member_id.clone());
        }
        value
    }

    /// Continues once the append of the record of a static member's return has succeeded or failed.
    pub(super) fn settle_static_rejoin(
        &mut self,
        rejoin: StaticRejoin,
        outcome: Result<(), ResponseError>,
        cx: &mut Context<'_>,
    ) {
        if let Err(error) = outcome {
            warn!(group = self.id, %error, "could not store a static member's return");
            let response = JoinResponse { error: Some(error), ..self.join_response("", false) };
            cx.answer_join(rejoin.waiter, response);
            return;
        }
        let current = self.static_members.get(&rejoin.instance_id).cloned();
        let protocols = own_protocols(&rejoin.request.protocols);
        let is_unchanged = self.state == GroupState::Stable
            && self.generation == rejoin.generation
            && current.as_ref() == Some(&rejoin.old_member_id)
            && self.select_protocol(Some((&rejoin.old_member_id, &protocols)))
                == self.protocol_name;
        if is_unchanged {
            self.finish_static_rejoin(&rejoin, cx);
        } else if let Some(old_member_id) = current {
            // The group has changed meanwhile: the member returns to it as it is now.
            let generation = self.generation;
            self.rejoin_static(StaticRejoin { old_member_id, generation, ..rejoin }, cx);
        } else if self.state == GroupState::Dead {
            cx.refuse_join(rejoin.waiter, "", ResponseError::NotCoordinator);
        } else if self.supports(&rejoin.request.protocol_type, &rejoin.request.protocols) {
            self.add_member(&rejoin.request, rejoin.new_member_id, rejoin.waiter, cx);
        } else {
            cx.refuse_join(rejoin.waiter, "", ResponseError::InconsistentGroupProtocol);
        }
    }

    fn finish_static_rejoin(&mut self, rejoin: &StaticRejoin, cx: &mut Context<'_>) {
        let new_id = rejoin.new_member_id.as_str();
        let leader_before = self.leader.clone().unwrap_or_default();
        self.replace_static_member(&rejoin.instance_id, &rejoin.old_member_id, new_id, cx);
        self.update_member(new_id, &rejoin.request, None, cx);
        self.restart_session(new_id, cx);
        self.subscribed_topics = self.read_subscriptions();
        let response = if rejoin.request.api_version >= SUPPORTS_SKIPPING_ASSIGNMENT {
            let is_leader = self.is_leader(new_id);
            JoinResponse { skip_assignment: is_leader, ..self.join_response(new_id, is_leader) }
        } else {
            // A leader with an older version of the API would assign again if it saw its own id
            // here, and no member would get that assignment. With the former id of the leader it
            // takes itself for a follower.
            JoinResponse { leader: leader_before, ..self.join_response(new_id, false) }
        };
        cx.answer_join(rejoin.waiter, response);
    }
}

fn reason(why: &str, request: &JoinRequest) -> String {
    match request.reason.as_deref() {
        Some(reason) if !reason.is_empty() => format!("{why}; client reason: {reason}"),
        _ => why.to_owned(),
    }
}
