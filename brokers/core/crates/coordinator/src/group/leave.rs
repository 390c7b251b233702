//! `LeaveGroup`: members that leave by themselves, and static members that an administrator
//! removes.

use kafka_protocol::ResponseError;
use tracing::info;

use super::api::{LeavingMember, LeftMember};
use super::context::Context;
use super::state::{Group, GroupState};

impl Group {
    /// Handles a `LeaveGroup`. If any member left, it then starts a rebalance, or ends the join
    /// phase of one.
    ///
    /// Each member is answered without an error, or with `UNKNOWN_MEMBER_ID` or
    /// `FENCED_INSTANCE_ID`.
    ///
    /// # Errors
    /// `COORDINATOR_NOT_AVAILABLE` for a dead group.
    pub fn leave(
        &mut self,
        leaving: &[LeavingMember],
        cx: &mut Context<'_>,
    ) -> Result<Vec<LeftMember>, ResponseError> {
        if self.state == GroupState::Dead {
            return Err(ResponseError::CoordinatorNotAvailable);
        }
        let mut left = Vec::with_capacity(leaving.len());
        for member in leaving {
            left.push(LeftMember {
                member_id: member.member_id.clone(),
                instance_id: member.instance_id.clone(),
                error: self.leave_one(member, cx).err(),
            });
        }
        if left.iter().any(|member| member.error.is_none()) {
            match self.state {
                GroupState::Stable | GroupState::CompletingRebalance => {
                    self.prepare_rebalance("members left", cx);
                }
                _ => self.maybe_complete_join(cx),
            }
        }
        Ok(left)
    }

    fn leave_one(
        &mut self,
        member: &LeavingMember,
        cx: &mut Context<'_>,
    ) -> Result<(), ResponseError> {
        let instance_id = member.instance_id.as_deref();
        let id = if member.member_id.is_empty() {
            let current = instance_id.and_then(|instance| self.static_members.get(instance));
            current.cloned().ok_or(ResponseError::UnknownMemberId)?
        } else if self.pending_joins.contains(&member.member_id) {
            member.member_id.clone()
        } else {
            self.validate_member(&member.member_id, instance_id)?;
            member.member_id.clone()
        };
        let reason = member.reason.as_deref().unwrap_or("not provided");
        info!(group = self.id, member = id, reason, "a member left");
        self.remove_member(&id, cx);
        Ok(())
    }
}
