//! ListOffsets: finds offsets by timestamp, and the start and end of the log.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};

use super::leaders::NamedBy;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_partition::Partition;

/// Kafka's special timestamps (`ListOffsetsRequest.java`). `check_timestamp` has the version that
/// brought each.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const READ_COMMITTED: i8 = 1;

/// An offset with the timestamp and the leader epoch of its record; all are -1 where there is none.
#[derive(Clone, Copy)]
struct TimedOffset {
    timestamp: i64,
    offset: i64,
    leader_epoch: i32,
}

const NOTHING: TimedOffset = TimedOffset { timestamp: -1, offset: -1, leader_epoch: -1 };

/// Handles the request. An end of the log that it returns is no older than the request.
pub async fn handle(context: &RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let asked = request.topics.iter().map(|topic| {
        let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
        (NamedBy::Name(&topic.name), indexes)
    });
    context.broker().await_leaders_of(asked).await;
    let mut partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    let needs_end =
        partitions.any(|partition| matches!(partition.timestamp, LATEST | MAX_TIMESTAMP));
    let fresh = if needs_end { context.broker().engine.fresh().await } else { Ok(()) };
    let repeated = repeated_partitions(&request.topics);
    let mut answered = BTreeSet::new();
    let mut topics: Vec<ListOffsetsTopicResponse> = Vec::with_capacity(request.topics.len());
    let mut places = BTreeMap::new();
    for topic in &request.topics {
        let place = *places.entry(topic.name.as_str()).or_insert_with(|| {
            topics.push(ListOffsetsTopicResponse::default().with_name(topic.name.clone()));
            topics.len() - 1
        });
        for partition in &topic.partitions {
            let key = (topic.name.as_str(), partition.partition_index);
            if !answered.insert(key) {
                continue;
            }
            let outcome = if repeated.contains(&key) {
                Err(ResponseError::InvalidRequest)
            } else {
                find_offset(context, &topic.name, partition, request.isolation_level, fresh).await
            };
            let response = response_of(context, partition.partition_index, outcome);
            topics[place].partitions.push(response);
        }
    }
    ListOffsetsResponse::default().with_topics(topics)
}

fn repeated_partitions(topics: &[ListOffsetsTopic]) -> BTreeSet<(&str, i32)> {
    let mut seen = BTreeSet::new();
    let all = topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.name.as_str(), partition.partition_index))
    });
    all.filter(|partition| !seen.insert(*partition)).collect()
}

fn response_of(
    context: &RequestContext,
    index: i32,
    outcome: Result<TimedOffset, ResponseError>,
) -> ListOffsetsPartitionResponse {
    let (outcome, error_code) = match outcome {
        Ok(outcome) => (outcome, 0),
        Err(error) => (NOTHING, error.code()),
    };
    let response = ListOffsetsPartitionResponse::default()
        .with_partition_index(index)
        .with_error_code(error_code)
        .with_timestamp(outcome.timestamp)
        .with_offset(outcome.offset);
    if context.api_version >= 4 {
        response.with_leader_epoch(outcome.leader_epoch)
    } else {
        response
    }
}

async fn find_offset(
    context: &RequestContext,
    topic: &str,
    requested: &ListOffsetsPartition,
    isolation_level: i8,
    fresh: Result<(), ResponseError>,
) -> Result<TimedOffset, ResponseError> {
    if !context.may_topic(Operation::Describe, topic) {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    check_timestamp(requested.timestamp, context.api_version)?;
    let broker = context.broker();
    let known = broker.engine.view.topics().by_name(topic).cloned();
    let known = known.ok_or(ResponseError::UnknownTopicOrPartition)?;
    let partition = broker.partition(&known, requested.partition_index);
    let partition = partition.map_err(|refused| refused.error)?;
    partition.check_epoch(requested.current_leader_epoch)?;
    match requested.timestamp {
        LATEST => {
            fresh?;
            let bounds = partition.bounds();
            let committed = isolation_level == READ_COMMITTED;
            let offset = if committed { bounds.last_stable_offset } else { bounds.end };
            Ok(TimedOffset { timestamp: -1, offset, leader_epoch: partition.epoch() })
        }
        EARLIEST | EARLIEST_LOCAL => {
            let offset = partition.bounds().log_start;
            Ok(TimedOffset { timestamp: -1, offset, leader_epoch: partition.epoch_of(offset) })
        }
        MAX_TIMESTAMP => {
            fresh?;
            offset_by_time(&partition, None).await
        }
        // Kafka means the part of a log in its own tiered storage, and there is none.
        LATEST_TIERED => Ok(NOTHING),
        timestamp => offset_by_time(&partition, Some(timestamp)).await,
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

/// Finds the first record whose timestamp is `time` (ms since 1970) or later; with `None`, the
/// record with the largest timestamp.
async fn offset_by_time(
    partition: &Partition,
    time: Option<i64>,
) -> Result<TimedOffset, ResponseError> {
    let outcome = match time {
        Some(time) => partition.offset_for_time(time).await,
        None => partition.max_timestamp().await,
    };
    let outcome = outcome.map_err(|error| error.code())?;
    Ok(outcome.map_or(NOTHING, |outcome| TimedOffset {
        timestamp: outcome.timestamp,
        offset: outcome.offset,
        leader_epoch: partition.epoch_of(outcome.offset),
    }))
}
