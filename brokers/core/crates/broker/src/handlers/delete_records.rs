//! DeleteRecords: moves the log starts of partitions forward.

use std::collections::BTreeSet;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse, TopicName};
use tokio::time::timeout;

use super::topics::time_limit;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_jobs::deletion::DeleteBefore;
use freshet_metadata::cluster::Note;
use freshet_metadata::view::Topic;
use freshet_partition::Partition;

/// The offset by which a request asks for the deletion of everything up to the end.
const HIGH_WATERMARK: i64 = -1;

/// A partition of the request: the partition with its new log start, or the error that it gets.
struct Deletion {
    topic: TopicName,
    index: i32,
    outcome: Result<(Arc<Partition>, i64), ResponseError>,
}

/// Handles the request. The response is sent once the new log starts are durable.
pub async fn handle(
    context: &RequestContext,
    request: DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let time_limit = time_limit(request.timeout_ms);
    let mut deletions = find_partitions(context, &request);
    let edits = deletions.iter().filter_map(|deletion| {
        let (partition, offset) = deletion.outcome.as_ref().ok()?;
        Some(DeleteBefore { partition: partition.id(), offset: *offset })
    });
    let edits: Vec<DeleteBefore> = edits.collect();
    if !edits.is_empty() {
        let deleted = context.broker().engine.delete_records(edits);
        let deleted =
            timeout(time_limit, deleted).await.unwrap_or(Err(ResponseError::RequestTimedOut));
        match deleted {
            Ok(()) => note_deletions(context, &deletions).await,
            Err(error) => {
                for deletion in &mut deletions {
                    deletion.outcome = deletion.outcome.clone().and(Err(error));
                }
            }
        }
    }
    response_of(deletions)
}

fn find_partitions(context: &RequestContext, request: &DeleteRecordsRequest) -> Vec<Deletion> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for topic in &request.topics {
        let known = find_topic(context, &topic.name);
        for partition in &topic.partitions {
            let index = partition.partition_index;
            if !seen.insert((topic.name.clone(), index)) {
                continue;
            }
            let outcome = known
                .clone()
                .and_then(|known| find_partition(context, &known, index, partition.offset));
            all.push(Deletion { topic: topic.name.clone(), index, outcome });
        }
    }
    all
}

fn find_topic(context: &RequestContext, name: &str) -> Result<Arc<Topic>, ResponseError> {
    if !context.may_topic(Operation::Delete, name) {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    let topics = context.broker().engine.view.topics();
    let topic = topics.by_name(name).ok_or(ResponseError::UnknownTopicOrPartition)?;
    if topic.record.internal {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    if !context.broker().topic_config(topic).cleanup.delete {
        // A compacted topic keeps the newest record of each key, as Kafka does.
        return Err(ResponseError::PolicyViolation);
    }
    Ok(Arc::clone(topic))
}

fn find_partition(
    context: &RequestContext,
    topic: &Topic,
    index: i32,
    offset: i64,
) -> Result<(Arc<Partition>, i64), ResponseError> {
    let partition =
        context.broker().partition(topic, index).map_err(|not_served| not_served.error)?;
    let end = partition.bounds().end;
    match offset {
        HIGH_WATERMARK => Ok((partition, end)),
        offset if (0..=end).contains(&offset) => Ok((partition, offset)),
        _ => Err(ResponseError::OffsetOutOfRange),
    }
}

async fn note_deletions(context: &RequestContext, deletions: &[Deletion]) {
    let topics: BTreeSet<&TopicName> = deletions.iter().map(|deletion| &deletion.topic).collect();
    for topic in topics {
        let of_topic = deletions.iter().filter(|deletion| deletion.topic == *topic);
        let offsets =
            of_topic.filter_map(|deletion| Some((deletion.index, deletion.outcome.as_ref().ok()?)));
        let note = offsets.fold(
            Note::new("topic.delete_records", topic.to_string()),
            |note, (index, (_, offset))| note.with(index.to_string(), offset.to_string()),
        );
        if note.detail.is_empty() {
            continue;
        }
        if let Err(error) = context.metadata().note(context.broker().engine.fence(), note).await {
            let topic = topic.as_str();
            tracing::warn!(topic, %error, "the deletion of records was not recorded");
        }
    }
}

fn response_of(deletions: Vec<Deletion>) -> DeleteRecordsResponse {
    let mut topics: Vec<DeleteRecordsTopicResult> = Vec::new();
    for Deletion { topic, index, outcome } in deletions {
        let result = DeleteRecordsPartitionResult::default().with_partition_index(index);
        let result = match outcome {
            Ok((partition, _)) => result.with_low_watermark(partition.bounds().log_start),
            Err(error) => result.with_low_watermark(-1).with_error_code(error.code()),
        };
        match topics.last_mut() {
            Some(last) if last.name == topic => last.partitions.push(result),
            _ => topics.push(
                DeleteRecordsTopicResult::default().with_name(topic).with_partitions(vec![result]),
            ),
        }
    }
    DeleteRecordsResponse::default().with_topics(topics)
}
