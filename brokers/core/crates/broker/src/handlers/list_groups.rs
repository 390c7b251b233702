//! ListGroups: the groups that the client may describe.

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::context::RequestContext;
use freshet_access::types::Operation;

/// The type of every group: those of KIP-848 are not supported.
const CLASSIC: &str = "classic";

/// Handles the request.
pub fn handle(context: &RequestContext, request: &ListGroupsRequest) -> ListGroupsResponse {
    let texts =
        |names: &[StrBytes]| -> Vec<String> { names.iter().map(ToString::to_string).collect() };
    let (states, types) = (texts(&request.states_filter), texts(&request.types_filter));
    let groups = match context.broker().engine.groups.list_groups(&states, &types) {
        Ok(groups) => groups,
        Err(error) => return ListGroupsResponse::default().with_error_code(error.code()),
    };
    let sees_all = context.may_cluster(Operation::Describe);
    let groups = groups
        .into_iter()
        .filter(|group| sees_all || context.may_group(Operation::Describe, &group.group_id))
        .map(|group| {
            ListedGroup::default()
                .with_group_id(GroupId(StrBytes::from_string(group.group_id)))
                .with_protocol_type(StrBytes::from_string(group.protocol_type))
                .with_group_state(StrBytes::from_static_str(group.state))
                .with_group_type(StrBytes::from_static_str(CLASSIC))
        });
    ListGroupsResponse::default().with_groups(groups.collect())
}
