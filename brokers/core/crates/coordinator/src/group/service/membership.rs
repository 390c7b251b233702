//! `JoinGroup`, `SyncGroup`, Heartbeat and `LeaveGroup` over all groups.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::writes::{APPEND_BYTES_MAX, Settled};
use super::{Attached, GroupCoordinator, Inner, Reply, Shard};
use crate::group::api::{
    HeartbeatRequest, JoinRequest, JoinResponse, LeaveRequest, LeaveResponse, LeavingMember,
    LeftMember, Protocol, SyncRequest, SyncResponse,
};
use crate::group::context::{Effect, Waiter};
use crate::group::state::Group;

impl GroupCoordinator {
    /// `JoinGroup`. Returns once the rebalance has admitted the member. Answers
    /// `GROUP_MAX_SIZE_REACHED` also for a new group where there are as many as there may be: the
    /// only error of a limit that clients know in this answer. `POLICY_VIOLATION` is for protocols
    /// with too many bytes, for a member with which the group's record could not be written, and
    /// for one that would have the groups take more bytes than all together may.
    pub async fn join_group(&self, request: JoinRequest) -> JoinResponse {
        let started = {
            let _room = self.inner.waiting.room().await;
            self.start_join(&request)
        };
        let member_id = request.member_id.clone();
        // It is not to be kept in memory while its answer is awaited.
        drop(request);
        match started {
            Ok(answer) => answer.await.unwrap_or_else(|_| {
                JoinResponse::refused(member_id, ResponseError::NotCoordinator)
            }),
            Err(error) => JoinResponse::refused(member_id, error),
        }
    }

    fn start_join(
        &self,
        request: &JoinRequest,
    ) -> Result<oneshot::Receiver<JoinResponse>, ResponseError> {
        let inner = &self.inner;
        check_group_id(&request.group_id)?;
        let session = inner.settings.min_session_timeout_ms..=inner.settings.max_session_timeout_ms;
        if !session.contains(&request.session_timeout_ms) {
            return Err(ResponseError::InvalidSessionTimeout);
        }
        let bytes: usize = request.protocols.iter().map(Protocol::size).sum();
        if bytes > inner.settings.member_bytes_max {
            return Err(ResponseError::PolicyViolation);
        }
        let index = inner.index_of(&request.group_id);
        let mut state = inner.lock(index)?;
        let shard = state.active()?;
        if !request.member_id.is_empty() && shard.existing(&request.group_id).is_none() {
            return Err(ResponseError::UnknownMemberId);
        }
        let limits = inner.limits();
        let entry = shard.groups.get(&request.group_id);
        let metadata = entry.map_or(bytes, |entry| entry.group.metadata_with(request));
        if metadata > APPEND_BYTES_MAX {
            return Err(ResponseError::PolicyViolation);
        }
        let growth = match entry {
            Some(entry) => entry.group.growth_by_join(request),
            None => Group::new(request.group_id.as_str()).bytes_with(request),
        };
        let reserved = inner.bytes.add_within(growth, limits.bytes);
        let reserved = reserved.ok_or(ResponseError::PolicyViolation)?;
        if shard.entry_within(&request.group_id, limits).is_none() {
            return Err(ResponseError::GroupMaxSizeReached);
        }
        let (reply, answer) = oneshot::channel();
        let waiter = inner.park(shard, Reply::Join(reply));
        let mut cx = inner.context();
        let group = &mut shard.entry(&request.group_id).group;
        group.join(request, inner.random_uuid(), waiter, &mut cx);
        let payer = Some(Arc::clone(&request.payer));
        let attached = Attached { payer, reserved: Some(reserved), ..Attached::default() };
        inner.carry_out(index, shard, &request.group_id, cx, attached);
        Ok(answer)
    }

    /// `SyncGroup`. Returns once the leader's assignment is durable. Answers `POLICY_VIOLATION` for
    /// an assignment with too many bytes, or with which the group's record could not be written,
    /// or by which the groups would take more bytes than all together may.
    pub async fn sync_group(&self, request: SyncRequest) -> SyncResponse {
        let started = {
            let _room = self.inner.waiting.room().await;
            self.start_sync(&request)
        };
        drop(request);
        match started {
            Ok(answer) => answer
                .await
                .unwrap_or_else(|_| SyncResponse::refused(ResponseError::NotCoordinator)),
            Err(error) => SyncResponse::refused(error),
        }
    }

    fn start_sync(
        &self,
        request: &SyncRequest,
    ) -> Result<oneshot::Receiver<SyncResponse>, ResponseError> {
        let inner = &self.inner;
        check_group_id(&request.group_id)?;
        let bytes_max = inner.settings.member_bytes_max;
        if request.assignments.iter().any(|(_, assignment)| assignment.len() > bytes_max) {
            return Err(ResponseError::PolicyViolation);
        }
        let index = inner.index_of(&request.group_id);
        let mut state = inner.lock(index)?;
        let shard = state.active()?;
        let entry = shard.existing(&request.group_id).ok_or(ResponseError::UnknownMemberId)?;
        let growth = entry.group.growth_by_sync(request);
        let reserved = inner.bytes.add_within(growth, inner.limits().bytes);
        let reserved = reserved.ok_or(ResponseError::PolicyViolation)?;
        let (reply, answer) = oneshot::channel();
        let waiter = inner.park(shard, Reply::Sync(reply));
        let mut cx = inner.context();
        shard.entry(&request.group_id).group.sync(request, waiter, &mut cx);
        let payer = Some(Arc::clone(&request.payer));
        let attached = Attached { payer, reserved: Some(reserved), ..Attached::default() };
        inner.carry_out(index, shard, &request.group_id, cx, attached);
        Ok(answer)
    }

    /// Heartbeat. While the partition is being loaded every heartbeat succeeds, as in Kafka, since
    /// the load restarts every member's session timeout anyway.
    ///
    /// # Errors
    /// `INVALID_GROUP_ID`, `NOT_COORDINATOR`, and those of [`super::super::Group::heartbeat`].
    pub fn heartbeat(&self, request: &HeartbeatRequest) -> Result<(), ResponseError> {
        let inner = &self.inner;
        check_group_id(&request.group_id)?;
        let index = inner.index_of(&request.group_id);
        let mut state = inner.lock(index)?;
        let shard = match state.active() {
            Err(ResponseError::CoordinatorLoadInProgress) => return Ok(()),
            other => other?,
        };
        if shard.existing(&request.group_id).is_none() {
            return Err(ResponseError::UnknownMemberId);
        }
        let cx = inner.context();
        let outcome = shard.entry(&request.group_id).group.heartbeat(request, &cx);
        inner.tidy(index, shard, &request.group_id);
        outcome
    }

    /// `LeaveGroup`. Where the last member leaves, it returns once that is durable.
    pub async fn leave_group(&self, request: LeaveRequest) -> LeaveResponse {
        let refused = |error| LeaveResponse { error: Some(error), members: Vec::new() };
        let started = {
            let _room = self.inner.waiting.room().await;
            self.start_leave(&request)
        };
        let (members, stored) = match started {
            Ok(started) => started,
            Err(error) => return refused(error),
        };
        if let Some(stored) = stored {
            let outcome = stored.await.unwrap_or(Err(ResponseError::NotCoordinator));
            if let Err(error) = outcome {
                return refused(error);
            }
        }
        LeaveResponse { error: None, members }
    }

    /// Returns the outcome for each member, and a receiver of the outcome of the append where there
    /// is one.
    fn start_leave(
        &self,
        request: &LeaveRequest,
    ) -> Result<(Vec<LeftMember>, Option<Settled>), ResponseError> {
        let inner = &self.inner;
        check_group_id(&request.group_id)?;
        let index = inner.index_of(&request.group_id);
        let mut state = inner.lock(index)?;
        let shard = state.active()?;
        if shard.existing(&request.group_id).is_none() {
            let unknown = |member: &LeavingMember| LeftMember {
                member_id: member.member_id.clone(),
                instance_id: member.instance_id.clone(),
                error: Some(ResponseError::UnknownMemberId),
            };
            return Ok((request.members.iter().map(unknown).collect(), None));
        }
        let mut cx = inner.context();
        let members = shard.entry(&request.group_id).group.leave(&request.members, &mut cx)?;
        let is_stored = cx.effects.iter().any(|effect| matches!(effect, Effect::Persist(_)));
        let (outcome, settled) = oneshot::channel();
        let payer = Some(Arc::clone(&request.payer));
        let attached = Attached { payer, outcome: Some(outcome), ..Attached::default() };
        inner.carry_out(index, shard, &request.group_id, cx, attached);
        Ok((members, is_stored.then_some(settled)))
    }
}

/// Refuses the empty group id: a group with that name can have committed offsets, but no members.
fn check_group_id(group_id: &str) -> Result<(), ResponseError> {
    if group_id.is_empty() { Err(ResponseError::InvalidGroupId) } else { Ok(()) }
}

impl Inner {
    fn park(&self, shard: &mut Shard, reply: Reply) -> Waiter {
        let waiter = Waiter(self.next_number());
        shard.waiters.insert(waiter, reply);
        waiter
    }

    /// A random UUID (version 4).
    fn random_uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.randomness.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}
