//! The phases of a rebalance, and what happens in a group as time passes.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tracing::info;

use super::api::{JoinResponse, SyncResponse};
use super::context::{Context, Purpose};
use super::state::{Group, GroupState, InitialDelay, Timer};

impl Group {
    /// Acts on every deadline that has come.
    pub fn expire(&mut self, cx: &mut Context<'_>) {
        while let Some(timer) = self.timers.pop_due(cx.now.monotonic) {
            match timer {
                Timer::Join => self.expire_join_phase(cx),
                Timer::Sync => self.expire_sync_phase(cx),
                Timer::Member(id) => self.expire_member(&id, cx),
            }
        }
    }

    /// Gives up the group, because this broker no longer coordinates it. Requests that wait are
    /// answered with `NOT_COORDINATOR`.
    pub fn unload(&mut self, cx: &mut Context<'_>) {
        self.transition_to(GroupState::Dead, cx);
        self.timers.retain(|_| false);
        self.joined_count = 0;
        for (id, member) in &mut self.members {
            if let Some(waiter) = member.join.take() {
                cx.answer_join(waiter, JoinResponse::refused(id, ResponseError::NotCoordinator));
            }
            if let Some(waiter) = member.sync.take() {
                cx.answer_sync(waiter, SyncResponse::refused(ResponseError::NotCoordinator));
            }
        }
    }

    /// Starts a rebalance. Where one is under way, it ends its join phase if all members have
    /// joined.
    pub(super) fn rebalance_or_complete(&mut self, reason: &str, cx: &mut Context<'_>) {
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance | GroupState::Empty => {
                self.prepare_rebalance(reason, cx);
            }
            GroupState::PreparingRebalance | GroupState::Dead => self.maybe_complete_join(cx),
        }
    }

    pub(super) fn prepare_rebalance(&mut self, reason: &str, cx: &mut Context<'_>) {
        if self.state == GroupState::CompletingRebalance {
            self.reset_assignments(ResponseError::RebalanceInProgress, cx);
        }
        self.pending_syncs.clear();
        self.timers.cancel(&Timer::Sync);
        let is_initial = self.state == GroupState::Empty;
        info!(
            group = self.id,
            generation = self.generation,
            members = self.members.len(),
            reason,
            "preparing to rebalance"
        );
        self.transition_to(GroupState::PreparingRebalance, cx);
        self.initial_delay = None;
        if is_initial {
            let delay_ms = cx.settings.initial_rebalance_delay_ms;
            let remaining_ms = (self.rebalance_timeout_ms() - delay_ms).max(0);
            self.new_member_added = false;
            self.initial_delay = Some(InitialDelay { delay_ms, remaining_ms });
            self.timers.schedule(Timer::Join, cx.after_ms(delay_ms));
        } else if self.all_have_joined() {
            self.complete_join(cx);
        } else {
            self.timers.schedule(Timer::Join, cx.after_ms(self.rebalance_timeout_ms()));
        }
    }

    /// Ends the join phase if all members have joined. In a group's first rebalance it ends only
    /// after its delay.
    pub(super) fn maybe_complete_join(&mut self, cx: &mut Context<'_>) {
        let is_open = self.state == GroupState::PreparingRebalance
            && self.previous_state != GroupState::Empty;
        if is_open && self.all_have_joined() {
            self.complete_join(cx);
        }
    }

    fn expire_join_phase(&mut self, cx: &mut Context<'_>) {
        if self.state != GroupState::PreparingRebalance {
            return;
        }
        match self.initial_delay {
            Some(InitialDelay { delay_ms, remaining_ms })
                if self.new_member_added && remaining_ms > 0 =>
            {
                self.new_member_added = false;
                let next_ms = cx.settings.initial_rebalance_delay_ms.min(remaining_ms);
                let remaining_ms = (remaining_ms - delay_ms).max(0);
                self.initial_delay = Some(InitialDelay { delay_ms: next_ms, remaining_ms });
                self.timers.schedule(Timer::Join, cx.after_ms(next_ms));
            }
            _ => self.complete_join(cx),
        }
    }

    /// Ends the join phase: drops the dynamic members that did not come (static ones stay until
    /// their session ends) and starts the next generation.
    pub(super) fn complete_join(&mut self, cx: &mut Context<'_>) {
        self.timers.cancel(&Timer::Join);
        let absent = |(_, member): &(&String, &super::state::Member)| {
            member.join.is_none() && member.instance_id.is_none()
        };
        let absent: Vec<String> =
            self.members.iter().filter(absent).map(|(id, _)| id.clone()).collect();
        for id in &absent {
            info!(group = self.id, member = id, "dropped a member that did not rejoin");
            self.remove_member(id, cx);
        }
        if self.members.is_empty() {
            self.become_empty(cx);
        } else if self.elect_joined_leader() {
            self.start_generation(cx);
        } else {
            // Only static members are left and none has joined: wait until one joins or their
            // sessions end.
            self.timers.schedule(Timer::Join, cx.after_ms(self.rebalance_timeout_ms()));
        }
    }

    fn next_generation(&mut self) {
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.pending_syncs.clear();
        self.initial_delay = None;
    }

    fn become_empty(&mut self, cx: &mut Context<'_>) {
        self.next_generation();
        self.protocol_name = None;
        self.subscribed_topics = self.read_subscriptions();
        self.transition_to(GroupState::Empty, cx);
        info!(group = self.id, generation = self.generation, "the group is now empty");
        let value = self.metadata(None, cx);
        cx.persist(value, Purpose::Empty);
    }

    fn start_generation(&mut self, cx: &mut Context<'_>) {
        self.next_generation();
        self.protocol_name = self.select_protocol(None);
        self.subscribed_topics = self.read_subscriptions();
        self.transition_to(GroupState::CompletingRebalance, cx);
        info!(
            group = self.id,
            generation = self.generation,
            members = self.members.len(),
            "joined; awaiting the assignment"
        );
        let ids: Vec<String> = self.members.keys().cloned().collect();
        for id in ids {
            self.answer_parked_join(&id, cx);
            self.restart_session(&id, cx);
            self.pending_syncs.insert(id);
        }
        self.timers.schedule(Timer::Sync, cx.after_ms(self.rebalance_timeout_ms()));
    }

    fn answer_parked_join(&mut self, id: &str, cx: &mut Context<'_>) {
        let response = self.join_response(id, self.is_leader(id));
        if let Some(member) = self.members.get_mut(id) {
            member.is_new = false;
            if let Some(waiter) = member.join.take() {
                self.joined_count -= 1;
                cx.answer_join(waiter, response);
            }
        }
    }

    /// Removes the members that did not send `SyncGroup` within the rebalance timeout.
    fn expire_sync_phase(&mut self, cx: &mut Context<'_>) {
        let is_open = matches!(self.state, GroupState::CompletingRebalance | GroupState::Stable);
        if !is_open || self.pending_syncs.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.pending_syncs) {
            info!(group = self.id, member = id, "dropped a member that did not sync");
            self.remove_member(&id, cx);
        }
        self.prepare_rebalance("members did not sync in time", cx);
    }

    fn expire_member(&mut self, id: &str, cx: &mut Context<'_>) {
        if self.pending_joins.contains(id) {
            info!(group = self.id, member = id, "dropped a member that did not come back");
            self.remove_member(id, cx);
            self.complete_if_all_joined(cx);
            return;
        }
        let Some(member) = self.members.get(id) else {
            return;
        };
        // A member that waits for an answer cannot send heartbeats, so it stays. Only a new member
        // is removed nevertheless, since its client may have gone without ever getting its id.
        let waits = member.join.is_some() || member.sync.is_some();
        if waits && !member.is_new {
            return;
        }
        info!(group = self.id, member = id, "dropped a member whose session ended");
        self.remove_member(id, cx);
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => {
                self.prepare_rebalance("a member's session ended", cx);
            }
            _ => self.complete_if_all_joined(cx),
        }
    }

    fn complete_if_all_joined(&mut self, cx: &mut Context<'_>) {
        if self.state == GroupState::PreparingRebalance && self.all_have_joined() {
            self.complete_join(cx);
        }
    }

    /// Removes the assignments, and answers the members that wait for one with this error.
    pub(super) fn reset_assignments(&mut self, error: ResponseError, cx: &mut Context<'_>) {
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
        }
        self.answer_parked_syncs(Some(error), cx);
    }

    /// Answers every parked `SyncGroup`, and restarts the session timeout of its member: that of a
    /// member that waits is ignored.
    pub(super) fn answer_parked_syncs(
        &mut self,
        error: Option<ResponseError>,
        cx: &mut Context<'_>,
    ) {
        let mut sessions: Vec<(String, Duration)> = Vec::new();
        for (id, member) in &mut self.members {
            let Some(waiter) = member.sync.take() else {
                continue;
            };
            let response = match error {
                Some(error) => SyncResponse::refused(error),
                None => SyncResponse {
                    error: None,
                    protocol_type: self.protocol_type.clone(),
                    protocol_name: self.protocol_name.clone(),
                    assignment: member.assignment.clone(),
                },
            };
            cx.answer_sync(waiter, response);
            sessions.push((id.clone(), cx.after_ms(member.session_timeout_ms)));
        }
        for (id, at) in sessions {
            self.timers.schedule(Timer::Member(id), at);
        }
    }
}
