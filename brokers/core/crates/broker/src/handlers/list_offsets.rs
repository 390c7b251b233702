//! ListOffsets: offsets by time, and the ends of the log.

use std::collections::BTreeSet;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};

use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_partition::Partition;

/// Kafka's special timestamps (`ListOffsetsRequest.java`), with the version that brought each.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const READ_COMMITTED: i8 = 1;

/// What was found: all -1 for nothing.
#[derive(Clone, Copy)]
struct Found {
    timestamp: i64,
    offset: i64,
    leader_epoch: i32,
}

const NOTHING: Found = Found { timestamp: -1, offset: -1, leader_epoch: -1 };

/// Handles the request. Where an end of the log is asked for, it is one that was current after the
/// request arrived.
pub async fn handle(context: &RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let mut partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    let needs_end = partitions.any(|wanted| matches!(wanted.timestamp, LATEST | MAX_TIMESTAMP));
    let fresh = if needs_end { context.broker().engine.fresh().await } else { Ok(()) };
    let repeated = repeated_partitions(&request.topics);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for wanted in &topic.partitions {
            let found = if repeated.contains(&(topic.name.as_str(), wanted.partition_index)) {
                Err(ResponseError::InvalidRequest)
            } else {
                find(context, &topic.name, wanted, request.isolation_level, fresh).await
            };
            partitions.push(respond(context, wanted.partition_index, found));
        }
        topics.push(
            ListOffsetsTopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions),
        );
    }
    ListOffsetsResponse::default().with_topics(topics)
}

fn repeated_partitions(topics: &[ListOffsetsTopic]) -> BTreeSet<(&str, i32)> {
    let mut seen = BTreeSet::new();
    let all = topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|wanted| (topic.name.as_str(), wanted.partition_index))
    });
    all.filter(|partition| !seen.insert(*partition)).collect()
}

fn respond(
    context: &RequestContext,
    index: i32,
    found: Result<Found, ResponseError>,
) -> ListOffsetsPartitionResponse {
    let (found, error_code) = match found {
        Ok(found) => (found, 0),
        Err(error) => (NOTHING, error.code()),
    };
    let response = ListOffsetsPartitionResponse::default()
        .with_partition_index(index)
        .with_error_code(error_code)
        .with_timestamp(found.timestamp)
        .with_offset(found.offset);
    if context.api_version >= 4 { response.with_leader_epoch(found.leader_epoch) } else { response }
}

async fn find(
    context: &RequestContext,
    topic: &str,
    wanted: &ListOffsetsPartition,
    isolation_level: i8,
    fresh: Result<(), ResponseError>,
) -> Result<Found, ResponseError> {
    if !context.may_topic(Operation::Describe, topic) {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    check_timestamp(wanted.timestamp, context.api_version)?;
    let broker = context.broker();
    let known = broker.engine.view.topics().by_name(topic).cloned();
    let known = known.ok_or(ResponseError::UnknownTopicOrPartition)?;
    let partition = broker.partition(&known, wanted.partition_index);
    let partition = partition.map_err(|refused| refused.error)?;
    partition.check_epoch(wanted.current_leader_epoch)?;
    match wanted.timestamp {
        LATEST => {
            fresh?;
            let bounds = partition.bounds();
            let committed = isolation_level == READ_COMMITTED;
            let offset = if committed { bounds.last_stable_offset } else { bounds.end };
            Ok(Found { timestamp: -1, offset, leader_epoch: partition.epoch() })
        }
        EARLIEST | EARLIEST_LOCAL => {
            let offset = partition.bounds().log_start;
            Ok(Found { timestamp: -1, offset, leader_epoch: partition.epoch_of(offset) })
        }
        MAX_TIMESTAMP => {
            fresh?;
            by_time(&partition, None).await
        }
        // Nothing is kept elsewhere, as Kafka would see it.
        LATEST_TIERED => Ok(NOTHING),
        timestamp => by_time(&partition, Some(timestamp)).await,
    }
}

fn check_timestamp(timestamp: i64, api_version: i16) -> Result<(), ResponseError> {
    let since = match timestamp {
        EARLIEST.. => 1,
        MAX_TIMESTAMP => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        _ => return Err(ResponseError::UnsupportedVersion),
    };
    if api_version < since { Err(ResponseError::UnsupportedVersion) } else { Ok(()) }
}

/// The first record at or after a time, or the one with the largest timestamp.
async fn by_time(partition: &Partition, time: Option<i64>) -> Result<Found, ResponseError> {
    let found = match time {
        Some(time) => partition.offset_for_time(time).await,
        None => partition.max_timestamp().await,
    };
    let found = found.map_err(|error| error.code())?;
    Ok(found.map_or(NOTHING, |found| Found {
        timestamp: found.timestamp,
        offset: found.offset,
        leader_epoch: partition.epoch_of(found.offset),
    }))
}
