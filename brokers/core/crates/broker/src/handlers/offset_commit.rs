//! OffsetCommit: commits the offsets of a group.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_coordinator::group::{self, OffsetToCommit};

/// Handles the request. Partitions whose offsets may not or cannot be committed get an error; the
/// offsets of the others are committed.
pub async fn handle(
    context: &RequestContext,
    request: OffsetCommitRequest,
) -> OffsetCommitResponse {
    let refused = (!context.may_group(Operation::Read, &request.group_id))
        .then_some(ResponseError::GroupAuthorizationFailed);
    let mut offsets = Vec::new();
    let mut verdicts = Vec::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            let verdict = match refused {
                Some(error) => Err(error),
                None => check_offset(context, &topic.name, partition.partition_index),
            };
            if verdict.is_ok() {
                offsets.push(to_commit(&topic.name, partition));
            }
            verdicts.push(verdict);
        }
    }
    let count = offsets.len();
    let mut committed = commit_offsets(context, &request, offsets).await.into_iter();
    debug_assert_eq!(committed.len(), count);
    let mut verdicts = verdicts.into_iter();
    let mut outcome = || match verdicts.next() {
        Some(Err(error)) => Some(error),
        _ => committed.next().flatten(),
    };
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            OffsetCommitResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(code_of(outcome()))
        });
        let partitions = partitions.collect();
        OffsetCommitResponseTopic::default().with_name(topic.name).with_partitions(partitions)
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}

fn check_offset(
    context: &RequestContext,
    topic: &str,
    partition: i32,
) -> Result<(), ResponseError> {
    if !context.may_topic(Operation::Read, topic) {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    let topics = context.broker().engine.view.topics();
    let known = topics.by_name(topic).and_then(|topic| topic.partition(partition));
    known.map(|_| ()).ok_or(ResponseError::UnknownTopicOrPartition)
}

fn to_commit(topic: &str, partition: &OffsetCommitRequestPartition) -> OffsetToCommit {
    OffsetToCommit {
        topic: topic.to_owned(),
        partition: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: partition.committed_metadata.as_ref().map(ToString::to_string),
    }
}

/// Commits offsets. Returns the error of each, in the order of the offsets.
async fn commit_offsets(
    context: &RequestContext,
    request: &OffsetCommitRequest,
    offsets: Vec<OffsetToCommit>,
) -> Vec<Option<ResponseError>> {
    let count = offsets.len();
    if count == 0 {
        return Vec::new();
    }
    let request = group::OffsetCommitRequest {
        payer: Arc::clone(&context.payer),
        api_version: context.api_version,
        group_id: request.group_id.to_string(),
        member_id: request.member_id.to_string(),
        instance_id: request.group_instance_id.as_ref().map(ToString::to_string),
        generation: request.generation_id_or_member_epoch,
        retention_time_ms: request.retention_time_ms,
        offsets,
    };
    let committed = context.broker().engine.groups.commit_offsets(request).await;
    committed.unwrap_or_else(|error| vec![Some(error); count])
}
