//! Heartbeat: a member of a group says that it is alive.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_coordinator::group;

/// Handles the request.
pub fn handle(context: &RequestContext, request: HeartbeatRequest) -> HeartbeatResponse {
    let outcome = if context.may_group(Operation::Read, &request.group_id) {
        context.broker().engine.groups.heartbeat(&group::HeartbeatRequest {
            group_id: request.group_id.to_string(),
            generation: request.generation_id,
            member_id: request.member_id.to_string(),
            instance_id: request.group_instance_id.map(|id| id.to_string()),
        })
    } else {
        Err(ResponseError::GroupAuthorizationFailed)
    };
    HeartbeatResponse::default().with_error_code(code_of(outcome.err()))
}
