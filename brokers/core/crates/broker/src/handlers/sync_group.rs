//! SyncGroup: a member gets its share of the group's work.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use kafka_protocol::protocol::StrBytes;

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_coordinator::group::{SyncRequest, SyncResponse};

/// Handles the request. Waits until the group's leader has sent the assignment.
pub async fn handle(context: &RequestContext, request: SyncGroupRequest) -> SyncGroupResponse {
    // From this version on a member must name them.
    let must_name_protocol = context.api_version >= 5;
    let names_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    let answer = if must_name_protocol && !names_protocol {
        SyncResponse::refused(ResponseError::InconsistentGroupProtocol)
    } else if context.may_group(Operation::Read, &request.group_id) {
        let assignments = request.assignments.into_iter();
        let request = SyncRequest {
            payer: Arc::clone(&context.payer),
            group_id: request.group_id.to_string(),
            generation: request.generation_id,
            member_id: request.member_id.to_string(),
            instance_id: request.group_instance_id.map(|id| id.to_string()),
            protocol_type: request.protocol_type.map(|name| name.to_string()),
            protocol_name: request.protocol_name.map(|name| name.to_string()),
            assignments: assignments
                .map(|assignment| (assignment.member_id.to_string(), assignment.assignment))
                .collect(),
        };
        context.broker().engine.groups.sync_group(request).await
    } else {
        SyncResponse::refused(ResponseError::GroupAuthorizationFailed)
    };
    SyncGroupResponse::default()
        .with_error_code(code_of(answer.error))
        .with_protocol_type(answer.protocol_type.map(StrBytes::from_string))
        .with_protocol_name(answer.protocol_name.map(StrBytes::from_string))
        .with_assignment(answer.assignment)
}
