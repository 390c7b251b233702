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
    let (allowed, unauthorized): (Vec<GroupId>, Vec<GroupId>) =
        groups.into_iter().partition(|group| context.may_group(Operation::Delete, group));
    let mut refused: Vec<(GroupId, ResponseError)> = Vec::new();
    refused.extend(
        unauthorized.into_iter().map(|group| (group, ResponseError::GroupAuthorizationFailed)),
    );
    let mut noted = Vec::new();
    for group in allowed {
        let outcome = match check_deletable(context, &group) {
            Ok(()) => note(context, &group, None).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => noted.push(group.to_string()),
            Err(error) => refused.push((group, error)),
        }
    }
    let deleted = context.broker().engine.groups.delete_groups(&context.payer, noted).await;
    for (group, error) in &deleted {
        // Somebody joined it meanwhile, say: the log then shows that it is still there.
        if let Some(error) = error
            && let Err(failure) = note(context, group, Some(*error)).await
        {
            tracing::warn!(group, %failure, "it was not recorded that a group was not deleted");
        }
    }
    let deleted = deleted.into_iter().map(|(group, error)| {
        DeletableGroupResult::default()
            .with_group_id(GroupId(StrBytes::from_string(group)))
            .with_error_code(code_of(error))
    });
    let refused = refused.into_iter().map(|(group, error)| {
        DeletableGroupResult::default().with_group_id(group).with_error_code(error.code())
    });
    DeleteGroupsResponse::default().with_results(deleted.chain(refused).collect())
}

/// Whether a group can be deleted now.
fn check_deletable(context: &RequestContext, group: &str) -> Result<(), ResponseError> {
    let groups = &context.broker().engine.groups;
    let described = groups.describe_groups(i16::MAX, &[group.to_owned()]);
    let Some(described) = described.into_iter().next() else {
        return Err(ResponseError::CoordinatorNotAvailable);
    };
    match (described.error, described.state) {
        (Some(error), _) => Err(error),
        (None, "Empty") => Ok(()),
        (None, "Dead") => Err(ResponseError::GroupIdNotFound),
        (None, _) => Err(ResponseError::NonEmptyGroup),
    }
}

/// Notes that a group is about to be deleted, before it is: a broker that dies in between loses no
/// change. With `failure`, that it was not deleted after all.
async fn note(
    context: &RequestContext,
    group: &str,
    failure: Option<ResponseError>,
) -> Result<(), ResponseError> {
    let metadata = match failure {
        None => context.admit(1).await.map_err(|refusal| refusal.error)?,
        Some(_) => context.metadata(),
    };
    let note = Note::new("group.delete", group);
    let note = match failure {
        None => note,
        Some(error) => note.with("error", error.to_string()),
    };
    let broker = context.broker();
    let noted = metadata.note(broker.engine.fence(), note).await;
    noted.map_err(|error| broker.metadata_error(&error).error)
}
