//! LeaveGroup: members leave a group.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};
use kafka_protocol::protocol::StrBytes;

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_coordinator::group::{LeaveRequest, LeaveResponse, LeavingMember};

/// From this version on several members may leave at once.
const BATCHED_FROM: i16 = 3;

/// Handles the request.
pub async fn handle(context: &RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse {
    if !context.may_group(Operation::Read, &request.group_id) {
        let refused = ResponseError::GroupAuthorizationFailed.code();
        return LeaveGroupResponse::default().with_error_code(refused);
    }
    let members = if context.api_version >= BATCHED_FROM {
        let members = request.members.into_iter().map(|member| LeavingMember {
            member_id: member.member_id.to_string(),
            instance_id: member.group_instance_id.map(|id| id.to_string()),
            reason: member.reason.map(|reason| reason.to_string()),
        });
        members.collect()
    } else {
        let member_id = request.member_id.to_string();
        vec![LeavingMember { member_id, instance_id: None, reason: None }]
    };
    let (payer, group_id) = (Arc::clone(&context.payer), request.group_id.to_string());
    let request = LeaveRequest { payer, group_id, members };
    response_of(context, context.broker().engine.groups.leave_group(request).await)
}

fn response_of(context: &RequestContext, answer: LeaveResponse) -> LeaveGroupResponse {
    let response = LeaveGroupResponse::default();
    if context.api_version < BATCHED_FROM {
        let of_member = answer.members.first().and_then(|member| member.error);
        return response.with_error_code(code_of(answer.error.or(of_member)));
    }
    let members = answer.members.into_iter().map(|member| {
        MemberResponse::default()
            .with_member_id(StrBytes::from_string(member.member_id))
            .with_group_instance_id(member.instance_id.map(StrBytes::from_string))
            .with_error_code(code_of(member.error))
    });
    response.with_error_code(code_of(answer.error)).with_members(members.collect())
}
