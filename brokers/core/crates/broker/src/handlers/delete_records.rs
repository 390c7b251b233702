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
    if edits.is_empty() {
        return response_of(deletions);
    }
    // Before it is done: a broker that dies in between loses no change.
    let noted = note_deletions(context, &deletions, None).await;
    let outcome = match noted {
        Ok(()) => {
            let deleted = timeout(time_limit, context.broker().engine.delete_records(edits)).await;
            let deleted = deleted.unwrap_or(Err(ResponseError::RequestTimedOut));
            if let Err(error) = deleted
                && let Err(failure) = note_deletions(context, &deletions, Some(error)).await
            {
                tracing::warn!(%failure, "it was not recorded that records were not deleted");
            }
            deleted
        }
        refused => refused,
    };
    if let Err(error) = outcome {
        for deletion in &mut deletions {
            deletion.outcome = deletion.outcome.clone().and(Err(error));
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

/// Notes which records are about to be deleted. With `failure`, why they were not.
async fn note_deletions(
    context: &RequestContext,
    deletions: &[Deletion],
    failure: Option<ResponseError>,
) -> Result<(), ResponseError> {
    let due = deletions.iter().filter(|deletion| deletion.outcome.is_ok());
    let topics: BTreeSet<&TopicName> = due.map(|deletion| &deletion.topic).collect();
    let metadata = match failure {
        None => context.admit(topics.len()).await.map_err(|refusal| refusal.error)?,
        Some(_) => context.metadata(),
    };
    let broker = context.broker();
    for topic in topics {
        let of_topic = deletions.iter().filter(|deletion| deletion.topic == *topic);
        let offsets =
            of_topic.filter_map(|deletion| Some((deletion.index, deletion.outcome.as_ref().ok()?)));
        let note = Note::new("topic.delete_records", topic.to_string());
        let note = match failure {
            None => note,
            Some(error) => note.with("error", error.to_string()),
        };
        let note = offsets.fold(note, |note, (index, (_, offset))| {
            note.with(index.to_string(), offset.to_string())
        });
        let noted = metadata.note(broker.engine.fence(), note).await;
        noted.map_err(|error| broker.metadata_error(&error).error)?;
    }
    Ok(())
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
