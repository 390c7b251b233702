//! DescribeGroups: the states and members of groups.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};
use kafka_protocol::protocol::StrBytes;

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::{Operation, ResourceType};
use freshet_coordinator::group;

/// From this version on errors have a message.
const MESSAGES_FROM: i16 = 6;

/// Handles the request.
pub fn handle(context: &RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse {
    let wants_operations = request.include_authorized_operations;
    let groups = request.groups.into_iter().map(|id| {
        if !context.may_group(Operation::Describe, &id) {
            return DescribedGroup::default()
                .with_group_id(id)
                .with_error_message(None)
                .with_error_code(ResponseError::GroupAuthorizationFailed.code());
        }
        let groups = &context.broker().engine.groups;
        let described = groups.describe_groups(context.api_version, &[id.to_string()]);
        let mut described = describe_group(context, described.into_iter().next(), id.clone());
        if wants_operations && described.error_code == 0 {
            let operations = context.authorized_operations(ResourceType::Group, &id);
            described.authorized_operations = operations;
        }
        described
    });
    DescribeGroupsResponse::default().with_groups(groups.collect())
}

fn describe_group(
    context: &RequestContext,
    group: Option<group::DescribedGroup>,
    id: GroupId,
) -> DescribedGroup {
    let Some(group) = group else {
        let unknown = ResponseError::CoordinatorNotAvailable.code();
        return DescribedGroup::default()
            .with_group_id(id)
            .with_error_message(None)
            .with_error_code(unknown);
    };
    let members = group.members.into_iter().map(|member| {
        DescribedGroupMember::default()
            .with_member_id(StrBytes::from_string(member.member_id))
            .with_group_instance_id(member.instance_id.map(StrBytes::from_string))
            .with_client_id(StrBytes::from_string(member.client.client_id))
            .with_client_host(StrBytes::from_string(member.client.client_host))
            .with_member_metadata(member.metadata)
            .with_member_assignment(member.assignment)
    });
    let message = group.error_message.filter(|_| context.api_version >= MESSAGES_FROM);
    DescribedGroup::default()
        .with_group_id(id)
        .with_error_code(code_of(group.error))
        .with_error_message(message.map(StrBytes::from_string))
        .with_group_state(StrBytes::from_static_str(group.state))
        .with_protocol_type(StrBytes::from_string(group.protocol_type))
        .with_protocol_data(StrBytes::from_string(group.protocol_data))
        .with_members(members.collect())
}
