//! DescribeTopicPartitions: metadata of topics, page by page (KIP-966).

use std::collections::BTreeSet;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::context::{Replicas, RequestContext};
use freshet_access::types::{Operation, ResourceType};
use freshet_metadata::names::check_topic_name;
use freshet_metadata::view::Topic;

/// The most partitions in one response (Kafka's `max.request.partition.size.limit`).
const PARTITIONS_MAX: usize = 2000;

/// Handles the request. Topics come sorted by name, so that a cursor names where the next page
/// begins. A request without topics asks for all that the client may describe.
pub fn handle(
    context: &RequestContext,
    request: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let (start_topic, start_partition) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.to_string(), cursor.partition_index.max(0)),
        None => (String::new(), 0),
    };
    let limit = usize::try_from(request.response_partition_limit).unwrap_or(0);
    let mut room = limit.clamp(1, PARTITIONS_MAX);
    let known = context.broker().engine.view.topics();
    let names_all = request.topics.is_empty();
    let requested: BTreeSet<String> = if names_all {
        known.iter().map(|topic| topic.record.name.clone()).collect()
    } else {
        request.topics.iter().map(|topic| topic.name.to_string()).collect()
    };
    let replicas = context.replicas();
    let mut topics = Vec::new();
    let mut next_cursor = None;
    for name in requested.into_iter().filter(|name| *name >= start_topic) {
        let first = if name == start_topic { start_partition } else { 0 };
        if !context.may_topic(Operation::Describe, &name) {
            if !names_all {
                topics.push(failed(&name, ResponseError::TopicAuthorizationFailed));
            }
            continue;
        }
        let Some(topic) = known.by_name(&name) else {
            let error = match check_topic_name(&name) {
                Ok(()) => ResponseError::UnknownTopicOrPartition,
                Err(_) => ResponseError::InvalidTopicException,
            };
            topics.push(failed(&name, error));
            continue;
        };
        if room == 0 {
            next_cursor = Some(cursor(&name, first));
            break;
        }
        let end = first.saturating_add(i32::try_from(room).unwrap_or(i32::MAX));
        let end = end.min(topic.record.partitions);
        topics.push(describe_topic(context, topic, &replicas, first..end));
        room -= usize::try_from(end - first).unwrap_or(0).min(room);
        if end < topic.record.partitions && first < end {
            next_cursor = Some(cursor(&name, end));
            break;
        }
    }
    DescribeTopicPartitionsResponse::default().with_topics(topics).with_next_cursor(next_cursor)
}

fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

fn cursor(topic: &str, partition: i32) -> Cursor {
    Cursor::default().with_topic_name(topic_name(topic)).with_partition_index(partition)
}

fn failed(name: &str, error: ResponseError) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(topic_name(name)))
        .with_error_code(error.code())
}

fn describe_topic(
    context: &RequestContext,
    topic: &Arc<Topic>,
    replicas: &Replicas,
    indexes: std::ops::Range<i32>,
) -> DescribeTopicPartitionsResponseTopic {
    let record = &topic.record;
    let partitions = indexes.filter_map(|index| {
        let stored = topic.partition(index)?;
        let partition = DescribeTopicPartitionsResponsePartition::default()
            .with_partition_index(index)
            // An empty list, because Java's client fails on null, although the protocol allows it.
            .with_eligible_leader_replicas(Some(Vec::new()))
            .with_last_known_elr(Some(Vec::new()));
        let Some(leader) = context.broker().leader_node(stored) else {
            let unknown = ResponseError::LeaderNotAvailable.code();
            return Some(partition.with_error_code(unknown).with_leader_id(BrokerId(-1)));
        };
        let replicas = replicas.of(record, leader);
        Some(
            partition
                .with_leader_id(BrokerId(leader))
                .with_leader_epoch(stored.record.epoch)
                .with_replica_nodes(replicas.clone())
                .with_isr_nodes(replicas),
        )
    });
    let operations = context.authorized_operations(ResourceType::Topic, &record.name);
    DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(topic_name(&record.name)))
        .with_topic_id(record.id)
        .with_is_internal(record.internal)
        .with_partitions(partitions.collect())
        .with_topic_authorized_operations(operations)
}
