//! DeleteRecords: partitions begin later.

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

/// Everything up to the end.
const HIGH_WATERMARK: i64 = -1;

/// A partition of the request: what is to be done, or why nothing is.
struct Wanted {
    topic: TopicName,
    index: i32,
    outcome: Result<(Arc<Partition>, i64), ResponseError>,
}

/// Handles the request. Answered when the new log starts are durable.
pub async fn handle(
    context: &RequestContext,
    request: DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let time_limit = time_limit(request.timeout_ms);
    let mut wanted = find_all(context, &request);
    let deletions = wanted.iter().filter_map(|wanted| {
        let (partition, offset) = wanted.outcome.as_ref().ok()?;
        Some(DeleteBefore { partition: partition.id(), offset: *offset })
    });
    let deletions: Vec<DeleteBefore> = deletions.collect();
    if !deletions.is_empty() {
        let deleted = context.broker().engine.delete_records(deletions);
        let deleted =
            timeout(time_limit, deleted).await.unwrap_or(Err(ResponseError::RequestTimedOut));
        match deleted {
            Ok(()) => note(context, &wanted).await,
            Err(error) => {
                for wanted in &mut wanted {
                    wanted.outcome = wanted.outcome.clone().and(Err(error));
                }
            }
        }
    }
    respond(wanted)
}

fn find_all(context: &RequestContext, request: &DeleteRecordsRequest) -> Vec<Wanted> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for topic in &request.topics {
        let known = find_topic(context, &topic.name);
        for partition in &topic.partitions {
            let index = partition.partition_index;
            if !seen.insert((topic.name.clone(), index)) {
                continue;
            }
            let outcome =
                known.clone().and_then(|known| find(context, &known, index, partition.offset));
            all.push(Wanted { topic: topic.name.clone(), index, outcome });
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
        return Err(ResponseError::InvalidTopicException);
    }
    if !context.broker().topic_config(topic).cleanup.delete {
        // Of a compacted topic the newest record of each key stays.
        return Err(ResponseError::PolicyViolation);
    }
    Ok(Arc::clone(topic))
}

fn find(
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

async fn note(context: &RequestContext, wanted: &[Wanted]) {
    let topics: BTreeSet<&TopicName> = wanted.iter().map(|wanted| &wanted.topic).collect();
    for topic in topics {
        let of_topic = wanted.iter().filter(|wanted| wanted.topic == *topic);
        let note =
            of_topic.filter_map(|wanted| Some((wanted.index, wanted.outcome.as_ref().ok()?)));
        let note = note.fold(
            Note::new("topic.delete_records", topic.to_string()),
            |note, (index, (_, offset))| note.with(index.to_string(), offset.to_string()),
        );
        if note.detail.is_empty() {
            continue;
        }
        if let Err(error) = context.metadata().note(context.broker().engine.fence(), note).await {
            tracing::warn!(topic = topic.as_str(), %error, "a deletion of records is not noted");
        }
    }
}

fn respond(wanted: Vec<Wanted>) -> DeleteRecordsResponse {
    let mut topics: Vec<DeleteRecordsTopicResult> = Vec::new();
    for Wanted { topic, index, outcome } in wanted {
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
