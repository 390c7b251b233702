//! OffsetDelete: forgets committed offsets of a group.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_coordinator::group::{self, TopicErrors, TopicPartitions};

/// Handles the request.
pub async fn handle(
    context: &RequestContext,
    request: OffsetDeleteRequest,
) -> OffsetDeleteResponse {
    if !context.may_group(Operation::Delete, &request.group_id) {
        let refused = ResponseError::GroupAuthorizationFailed.code();
        return OffsetDeleteResponse::default().with_error_code(refused);
    }
    let (mut allowed, mut refused): (TopicPartitions, TopicErrors) = (Vec::new(), Vec::new());
    for topic in request.topics {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
        match check_topic(context, &topic.name) {
            Ok(()) => allowed.push((topic.name.to_string(), partitions.collect())),
            Err(error) => {
                let errors = partitions.map(|partition| (partition, Some(error)));
                refused.push((topic.name.to_string(), errors.collect()));
            }
        }
    }
    let (payer, group_id) = (Arc::clone(&context.payer), request.group_id.to_string());
    let request = group::OffsetDeleteRequest { payer, group_id, topics: allowed };
    match context.broker().engine.groups.delete_offsets(request).await {
        Ok(deleted) => OffsetDeleteResponse::default()
            .with_topics(refused.into_iter().chain(deleted).map(topic).collect()),
        Err(error) => OffsetDeleteResponse::default().with_error_code(error.code()),
    }
}

fn check_topic(context: &RequestContext, topic: &str) -> Result<(), ResponseError> {
    if !context.may_topic(Operation::Read, topic) {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    let topics = context.broker().engine.view.topics();
    topics.by_name(topic).map(|_| ()).ok_or(ResponseError::UnknownTopicOrPartition)
}

fn topic(
    (name, partitions): (String, Vec<(i32, Option<ResponseError>)>),
) -> OffsetDeleteResponseTopic {
    let partitions = partitions.into_iter().map(|(index, error)| {
        OffsetDeleteResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(code_of(error))
    });
    OffsetDeleteResponseTopic::default()
        .with_name(TopicName(StrBytes::from_string(name)))
        .with_partitions(partitions.collect())
}
