//! `SyncGroup` and Heartbeat, and what a group does once its record is durable.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tracing::{info, warn};

use super::api::{HeartbeatRequest, SyncRequest, SyncResponse};
use super::context::{Context, Purpose, Waiter};
use super::state::{Group, GroupState, Timer};

impl Group {
    /// Handles a `SyncGroup`. The answer is an [`super::Effect::Sync`] of this step or a later one.
    ///
    /// Answers `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`, `ILLEGAL_GENERATION`,
    /// `INCONSISTENT_GROUP_PROTOCOL`, `REBALANCE_IN_PROGRESS`, `COORDINATOR_NOT_AVAILABLE`, and
    /// the error of the append where the assignment could not be stored.
    pub fn sync(&mut self, request: &SyncRequest, waiter: Waiter, cx: &mut Context<'_>) {
        if let Err(error) = self.validate_sync(request) {
            cx.answer_sync(waiter, SyncResponse::refused(error));
            return;
        }
        match self.state {
            GroupState::CompletingRebalance => self.sync_completing(request, waiter, cx),
            GroupState::Stable => {
                self.has_synced(&request.member_id);
                let member = self.members.get(&request.member_id);
                let response = SyncResponse {
                    error: None,
                    protocol_type: self.protocol_type.clone(),
                    protocol_name: self.protocol_name.clone(),
                    assignment: member.map(|one| one.assignment.clone()).unwrap_or_default(),
                };
                cx.answer_sync(waiter, response);
            }
            GroupState::PreparingRebalance | GroupState::Empty | GroupState::Dead => {
                let error = ResponseError::RebalanceInProgress;
                cx.answer_sync(waiter, SyncResponse::refused(error));
            }
        }
    }

    fn validate_sync(&self, request: &SyncRequest) -> Result<(), ResponseError> {
        match self.state {
            GroupState::Dead => return Err(ResponseError::CoordinatorNotAvailable),
            GroupState::Empty => return Err(ResponseError::UnknownMemberId),
            _ => {}
        }
        self.validate_member(&request.member_id, request.instance_id.as_deref())?;
        if request.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        let differs = |asked: &Option<String>, has: &Option<String>| {
            asked.is_some() && has.is_some() && asked != has
        };
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol_name)
        {
            return Err(ResponseError::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn has_synced(&mut self, member_id: &str) {
        self.pending_syncs.remove(member_id);
        if self.pending_syncs.is_empty() {
            self.timers.cancel(&Timer::Sync);
        }
    }

    fn sync_completing(&mut self, request: &SyncRequest, waiter: Waiter, cx: &mut Context<'_>) {
        if let Some(member) = self.members.get_mut(&request.member_id)
            && let Some(earlier) = member.sync.replace(waiter)
        {
            // The client gave up waiting for the earlier answer and has sent the request again.
            let error = ResponseError::RebalanceInProgress;
            cx.answer_sync(earlier, SyncResponse::refused(error));
        }
        self.has_synced(&request.member_id);
        if !self.is_leader(&request.member_id) {
            return;
        }
        let given: BTreeMap<&str, &Bytes> =
            request.assignments.iter().map(|(id, assignment)| (id.as_str(), assignment)).collect();
        let assignments: BTreeMap<String, Bytes> = self
            .members
            .keys()
            .map(|id| {
                // A copy, so that it does not keep the request in memory.
                let assignment = given.get(id.as_str()).map(|given| Bytes::copy_from_slice(given));
                (id.clone(), assignment.unwrap_or_default())
            })
            .collect();
        info!(
            group = self.id,
            generation = self.generation,
            leader = request.member_id,
            unassigned = self.members.keys().filter(|id| !given.contains_key(id.as_str())).count(),
            "the leader has assigned"
        );
        let value = self.metadata(Some(&assignments), cx);
        let generation = self.generation;
        cx.persist(value, Purpose::Assignment { generation, assignments });
    }

    /// Handles a Heartbeat.
    ///
    /// # Errors
    /// `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`, `ILLEGAL_GENERATION`, `REBALANCE_IN_PROGRESS`
    /// (the session goes on nevertheless), `COORDINATOR_NOT_AVAILABLE`.
    pub fn heartbeat(
        &mut self,
        request: &HeartbeatRequest,
        cx: &Context<'_>,
    ) -> Result<(), ResponseError> {
        if self.state == GroupState::Dead {
            return Err(ResponseError::CoordinatorNotAvailable);
        }
        self.validate_member(&request.member_id, request.instance_id.as_deref())?;
        if request.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        self.restart_session(&request.member_id, cx);
        match self.state {
            GroupState::PreparingRebalance => Err(ResponseError::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    /// Continues after the append of a record that an [`super::Effect::Persist`] asked for. The
    /// outcome has the coordinator's error, not the log's.
    pub fn settle(
        &mut self,
        purpose: Purpose,
        outcome: Result<(), ResponseError>,
        cx: &mut Context<'_>,
    ) {
        match purpose {
            Purpose::Assignment { generation, assignments } => {
                self.settle_assignment(generation, assignments, outcome, cx);
            }
            Purpose::StaticRejoin(rejoin) => self.settle_static_rejoin(*rejoin, outcome, cx),
            Purpose::Empty => {
                if let Err(error) = outcome {
                    warn!(group = self.id, %error, "could not store that the group is empty");
                }
            }
        }
    }

    fn settle_assignment(
        &mut self,
        generation: i32,
        mut assignments: BTreeMap<String, Bytes>,
        outcome: Result<(), ResponseError>,
        cx: &mut Context<'_>,
    ) {
        // The group may have changed meanwhile. Then a later record replaces this one in the log,
        // too.
        if self.state != GroupState::CompletingRebalance || self.generation != generation {
            return;
        }
        if let Err(error) = outcome {
            warn!(group = self.id, generation, %error, "could not store the assignment");
            self.reset_assignments(error, cx);
            self.prepare_rebalance("the assignment could not be stored", cx);
            return;
        }
        for (id, member) in &mut self.members {
            member.assignment = assignments.remove(id).unwrap_or_default();
        }
        self.transition_to(GroupState::Stable, cx);
        self.answer_parked_syncs(None, cx);
    }
}
