//! The members of a group: adds, removes and replaces them, elects a leader, and selects a
//! protocol.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::api::{JoinRequest, JoinResponse, Protocol, SyncResponse};
use super::context::{Context, Waiter};
use super::state::{Group, GroupState, Member, Timer};

/// Copies a member's protocols into allocations of their own, so that they do not keep the request
/// in memory. A name that comes twice is kept once.
pub(super) fn own_protocols(protocols: &[Protocol]) -> Vec<Protocol> {
    let mut seen = BTreeSet::new();
    let distinct = protocols.iter().filter(|protocol| seen.insert(protocol.name.as_str()));
    distinct
        .map(|protocol| Protocol {
            name: protocol.name.clone(),
            metadata: Bytes::copy_from_slice(&protocol.metadata),
        })
        .collect()
}

/// The rebalance timeout of a request; version 0 has none and means the session timeout.
pub(super) fn rebalance_timeout_ms(request: &JoinRequest) -> i32 {
    match request.rebalance_timeout_ms {
        negative if negative < 0 => request.session_timeout_ms,
        timeout => timeout,
    }
}

impl Group {
    /// Whether the group has room for this member. During the join phase the
    /// members that wait are counted, and not those of the last generation: where the limit was
    /// lowered, the last ones to rejoin are refused.
    pub(super) fn has_room_for(&self, member_id: &str, cx: &Context<'_>) -> bool {
        match self.state {
            GroupState::Empty | GroupState::Dead => true,
            GroupState::PreparingRebalance => {
                let waits = self.members.get(member_id).is_some_and(|member| member.join.is_some());
                waits || self.joined_count < cx.members_max
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                self.members.contains_key(member_id) || self.members.len() < cx.members_max
            }
        }
    }

    /// Whether a member with these protocols can join: one of them must be supported by all
    /// members.
    pub(super) fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == GroupState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let by_all = |protocol: &Protocol| {
            self.protocol_counts.get(&protocol.name).copied().unwrap_or(0) == self.members.len()
        };
        self.protocol_type.as_deref() == Some(protocol_type) && protocols.iter().any(by_all)
    }

    /// Checks that a member exists and, where the request has an instance id, that it is the
    /// present member of that instance.
    pub(super) fn validate_member(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), ResponseError> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(ResponseError::UnknownMemberId),
                Some(current) if current != member_id => {
                    return Err(ResponseError::FencedInstanceId);
                }
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) {
            Ok(())
        } else {
            Err(ResponseError::UnknownMemberId)
        }
    }

    /// Adds a member. Its instance id must not be another member's.
    pub(super) fn insert_member(&mut self, id: String, member: Member) {
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), id.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(id.clone());
        }
        self.pending_joins.remove(&id);
        self.count_protocols(&member.protocols);
        self.joined_count += usize::from(member.join.is_some());
        if let Some(before) = self.members.insert(id, member) {
            self.discount(&before);
        }
    }

    /// Removes a member or a pending id. Its parked requests are answered, so that a client that is
    /// still alive joins again.
    pub(super) fn remove_member(&mut self, id: &str, cx: &mut Context<'_>) {
        self.timers.cancel(&Timer::Member(id.to_owned()));
        self.pending_joins.remove(id);
        self.pending_syncs.remove(id);
        let Some(member) = self.members.remove(id) else {
            return;
        };
        self.discount(&member);
        if let Some(instance_id) = &member.instance_id {
            self.static_members.remove(instance_id);
        }
        if self.leader.as_deref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
        if let Some(waiter) = member.join {
            cx.refuse_join(waiter, "", ResponseError::UnknownMemberId);
        }
        if let Some(waiter) = member.sync {
            cx.answer_sync(waiter, SyncResponse::refused(ResponseError::UnknownMemberId));
        }
    }

    fn discount(&mut self, member: &Member) {
        self.joined_count -= usize::from(member.join.is_some());
        for protocol in &member.protocols {
            if let Some(count) = self.protocol_counts.get_mut(&protocol.name) {
                *count -= 1;
                if *count == 0 {
                    self.protocol_counts.remove(&protocol.name);
                }
            }
        }
    }

    fn count_protocols(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            *self.protocol_counts.entry(protocol.name.clone()).or_default() += 1;
        }
    }

    /// Updates a member from its `JoinGroup`, and parks the request until the others have joined.
    pub(super) fn update_member(
        &mut self,
        id: &str,
        request: &JoinRequest,
        join: Option<Waiter>,
        cx: &mut Context<'_>,
    ) {
        let Some(mut member) = self.members.remove(id) else {
            return;
        };
        self.discount(&member);
        if let Some(earlier) = member.join.take() {
            // The client gave up waiting for the earlier answer and has sent the request again.
            cx.refuse_join(earlier, id, ResponseError::RebalanceInProgress);
        }
        member.protocols = own_protocols(&request.protocols);
        member.rebalance_timeout_ms = rebalance_timeout_ms(request);
        member.session_timeout_ms = request.session_timeout_ms;
        member.join = join;
        self.count_protocols(&member.protocols);
        self.joined_count += usize::from(member.join.is_some());
        self.members.insert(id.to_owned(), member);
    }

    /// Gives a static member a new id. Requests parked under the old one are fenced.
    pub(super) fn replace_static_member(
        &mut self,
        instance_id: &str,
        old_id: &str,
        new_id: &str,
        cx: &mut Context<'_>,
    ) {
        let Some(mut member) = self.members.remove(old_id) else {
            return;
        };
        if let Some(waiter) = member.join.take() {
            self.joined_count -= 1;
            cx.refuse_join(waiter, old_id, ResponseError::FencedInstanceId);
        }
        if let Some(waiter) = member.sync.take() {
            cx.answer_sync(waiter, SyncResponse::refused(ResponseError::FencedInstanceId));
        }
        member.is_new = false;
        self.timers.cancel(&Timer::Member(old_id.to_owned()));
        if self.pending_syncs.remove(old_id) {
            self.pending_syncs.insert(new_id.to_owned());
        }
        if self.leader.as_deref() == Some(old_id) {
            self.leader = Some(new_id.to_owned());
        }
        self.static_members.insert(instance_id.to_owned(), new_id.to_owned());
        self.members.insert(new_id.to_owned(), member);
    }

    /// Restarts a member's session timeout.
    pub(super) fn restart_session(&mut self, member_id: &str, cx: &Context<'_>) {
        if let Some(member) = self.members.get(member_id) {
            let at = cx.after_ms(member.session_timeout_ms);
            self.timers.schedule(Timer::Member(member_id.to_owned()), at);
        }
    }

    /// Makes sure that the leader is one of the members that joined. Returns whether there is one.
    pub(super) fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |id: &String| self.members.get(id).is_some_and(|one| one.join.is_some());
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        let joined = self.members.keys().find(|id| has_joined(id)).cloned();
        let was_joining = joined.is_some();
        if was_joining {
            self.leader = joined;
        }
        was_joining
    }

    /// Whether every member has joined, and no new member is expected to come back with its id.
    pub(super) fn all_have_joined(&self) -> bool {
        self.members.len() == self.joined_count && self.pending_joins.is_empty()
    }

    /// The longest rebalance timeout of all members, in milliseconds.
    pub(super) fn rebalance_timeout_ms(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0).max(0)
    }

    /// The protocol that all members support and most prefer; of equals, the first by name.
    /// `changed` replaces the protocols of one member.
    pub(super) fn select_protocol(&self, changed: Option<(&str, &[Protocol])>) -> Option<String> {
        let lists: Vec<&[Protocol]> = self
            .members
            .iter()
            .map(|(id, member)| match changed {
                Some((changed_id, protocols)) if changed_id == id => protocols,
                _ => member.protocols.as_slice(),
            })
            .collect();
        let mut supporters: BTreeMap<&str, usize> = BTreeMap::new();
        for protocol in lists.iter().copied().flatten() {
            *supporters.entry(protocol.name.as_str()).or_default() += 1;
        }
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for protocols in &lists {
            let by_all = |one: &&Protocol| supporters.get(one.name.as_str()) == Some(&lists.len());
            if let Some(choice) = protocols.iter().find(by_all) {
                *votes.entry(choice.name.as_str()).or_default() += 1;
            }
        }
        let best = votes.iter().rev().max_by_key(|(_, count)| **count);
        best.map(|(name, _)| (*name).to_owned())
    }

    /// The answer to a member's `JoinGroup` in the current generation.
    pub(super) fn join_response(&self, member_id: &str, with_members: bool) -> JoinResponse {
        JoinResponse {
            error: None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: if with_members { self.joined_members() } else { Vec::new() },
        }
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }
}
