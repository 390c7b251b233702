//! JoinGroup: a member joins a group's next generation.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_coordinator::group::{JoinRequest, JoinResponse, Protocol};

/// From this version on the names of the protocol type and of the protocol may be null.
const NULLABLE_FROM: i16 = 7;

/// Handles the request. Waits until the other members have joined, too.
pub async fn handle(context: &RequestContext, request: JoinGroupRequest) -> JoinGroupResponse {
    if !context.may_group(Operation::Read, &request.group_id) {
        let refused = ResponseError::GroupAuthorizationFailed;
        return response_of(context, JoinResponse::refused(request.member_id.as_str(), refused));
    }
    let protocols = request
        .protocols
        .into_iter()
        .map(|protocol| Protocol { name: protocol.name.to_string(), metadata: protocol.metadata });
    let request = JoinRequest {
        payer: Arc::clone(&context.payer),
        api_version: context.api_version,
        client: context.client_info(),
        group_id: request.group_id.to_string(),
        member_id: request.member_id.to_string(),
        instance_id: request.group_instance_id.map(|id| id.to_string()),
        session_timeout_ms: request.session_timeout_ms,
        // Version 0 has no rebalance timeout; the session timeout is used instead.
        rebalance_timeout_ms: match context.api_version {
            0 => -1,
            _ => request.rebalance_timeout_ms,
        },
        protocol_type: request.protocol_type.to_string(),
        protocols: protocols.collect(),
        reason: request.reason.map(|reason| reason.to_string()),
    };
    response_of(context, context.broker().engine.groups.join_group(request).await)
}

fn response_of(context: &RequestContext, answer: JoinResponse) -> JoinGroupResponse {
    let members = answer.members.into_iter().map(|member| {
        let described = JoinGroupResponseMember::default()
            .with_member_id(StrBytes::from_string(member.member_id))
            .with_metadata(member.metadata);
        described.with_group_instance_id(member.instance_id.map(StrBytes::from_string))
    });
    let nullable = |name: Option<String>| match name {
        None if context.api_version < NULLABLE_FROM => Some(StrBytes::new()),
        name => name.map(StrBytes::from_string),
    };
    JoinGroupResponse::default()
        .with_error_code(code_of(answer.error))
        .with_generation_id(answer.generation)
        .with_protocol_type(nullable(answer.protocol_type))
        .with_protocol_name(nullable(answer.protocol_name))
        .with_leader(StrBytes::from_string(answer.leader))
        .with_skip_assignment(answer.skip_assignment)
        .with_member_id(StrBytes::from_string(answer.member_id))
        .with_members(members.collect())
}
