//! DeleteGroups: removes groups without members, with their committed offsets.

use std::collections::BTreeSet;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse, GroupId};
use kafka_protocol::protocol::StrBytes;

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_metadata::cluster::Note;

/// Handles the request.
pub async fn handle(
    context: &RequestContext,
    request: DeleteGroupsRequest,
) -> DeleteGroupsResponse {
    // A group that is named twice is answered once.
    let groups: BTreeSet<GroupId> = request.groups_names.into_iter().collect();
    let (allowed, refused): (Vec<GroupId>, Vec<GroupId>) =
        groups.into_iter().partition(|group| context.may_group(Operation::Delete, group));
    let allowed = allowed.iter().map(|group| group.to_string()).collect();
    let deleted = context.broker().engine.groups.delete_groups(&context.payer, allowed).await;
    for (group, _) in deleted.iter().filter(|(_, error)| error.is_none()) {
        let (metadata, fence) = (context.metadata(), context.broker().engine.fence());
        if let Err(error) = metadata.note(fence, Note::new("group.delete", group)).await {
            tracing::warn!(group, %error, "the deletion of a group was not recorded");
        }
    }
    let deleted = deleted.into_iter().map(|(group, error)| {
        DeletableGroupResult::default()
            .with_group_id(GroupId(StrBytes::from_string(group)))
            .with_error_code(code_of(error))
    });
    let refused = refused.into_iter().map(|group| {
        DeletableGroupResult::default()
            .with_group_id(group)
            .with_error_code(ResponseError::GroupAuthorizationFailed.code())
    });
    DeleteGroupsResponse::default().with_results(deleted.chain(refused).collect())
}
