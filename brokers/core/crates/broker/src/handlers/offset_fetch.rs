//! OffsetFetch: the committed offsets of groups, which are no older than the request.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{GroupId, OffsetFetchRequest, OffsetFetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::errors::code_of;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_coordinator::group::{self, FetchedOffset, TopicPartitions};

/// From this version on a request may name several groups.
const BATCHED_FROM: i16 = 8;
/// From this version on the response has an error for the whole group.
const GROUP_ERRORS_FROM: i16 = 2;

/// The committed offsets of a topic's partitions, each with its error.
struct Topic {
    name: String,
    partitions: Vec<(FetchedOffset, Option<ResponseError>)>,
}

/// Handles the request.
pub async fn handle(context: &RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let fresh = context.broker().engine.fresh().await;
    if context.api_version < BATCHED_FROM {
        let topics = request.topics.map(|topics| {
            let topics = topics.into_iter();
            topics.map(|topic| (topic.name.to_string(), topic.partition_indexes)).collect()
        });
        let group = Group { id: &request.group_id, topics, require_stable: request.require_stable };
        let outcome = fetch_group(context, group, fresh).await;
        return single_response(context.api_version, outcome);
    }
    let mut groups = Vec::with_capacity(request.groups.len());
    for requested in request.groups {
        let topics = requested.topics.map(|topics| {
            let topics = topics.into_iter();
            topics.map(|topic| (topic.name.to_string(), topic.partition_indexes)).collect()
        });
        let group =
            Group { id: &requested.group_id, topics, require_stable: request.require_stable };
        let outcome = fetch_group(context, group, fresh).await;
        groups.push(group_response(requested.group_id, outcome));
    }
    OffsetFetchResponse::default().with_groups(groups)
}

struct Group<'a> {
    id: &'a str,
    topics: Option<TopicPartitions>,
    require_stable: bool,
}

/// The committed offsets of a group, or an error of the whole group with the requested partitions.
type GroupOutcome = Result<Vec<Topic>, (ResponseError, TopicPartitions)>;

async fn fetch_group(
    context: &RequestContext,
    group: Group<'_>,
    fresh: Result<(), ResponseError>,
) -> GroupOutcome {
    let asked = group.topics.clone().unwrap_or_default();
    if !context.may_group(Operation::Describe, group.id) {
        return Err((ResponseError::GroupAuthorizationFailed, asked));
    }
    // The engine has lost the right to its partitions, and with them the coordinator's.
    fresh.map_err(|_| (ResponseError::NotCoordinator, asked.clone()))?;
    let wants_all = group.topics.is_none();
    let may_see = |topic: &str| context.may_topic(Operation::Describe, topic);
    let (seen, hidden): (TopicPartitions, TopicPartitions) =
        asked.iter().cloned().partition(|(topic, _)| may_see(topic));
    let request = group::OffsetFetchRequest {
        group_id: group.id.to_owned(),
        topics: (!wants_all).then_some(seen),
        require_stable: group.require_stable,
    };
    let fetched = context.broker().engine.groups.fetch_offsets(request).await;
    let fetched = fetched.map_err(|error| (error, asked))?;
    let snapshot = context.broker().engine.view.snapshot();
    // A deleted topic that can be restored keeps its committed offsets, but clients do not see
    // them.
    let is_gone = |name: &str| {
        snapshot.topics.by_name(name).is_none()
            && snapshot.hidden.values().any(|hidden| hidden.topic.record.name == name)
    };
    let mut outcome: Vec<Topic> = fetched
        .into_iter()
        .filter(|topic| !wants_all || (may_see(&topic.topic) && !is_gone(&topic.topic)))
        .map(|topic| {
            let gone = is_gone(&topic.topic);
            let shown = topic.partitions.into_iter().map(|offset| {
                let none = uncommitted(offset.partition);
                (if gone { none } else { offset }, None)
            });
            let partitions = shown.collect();
            Topic { name: topic.topic, partitions }
        })
        .collect();
    outcome.extend(refused_topics(hidden, ResponseError::TopicAuthorizationFailed));
    Ok(outcome)
}

fn uncommitted(partition: i32) -> FetchedOffset {
    FetchedOffset { partition, offset: -1, leader_epoch: -1, metadata: String::new() }
}

fn refused_topics(topics: TopicPartitions, error: ResponseError) -> impl Iterator<Item = Topic> {
    topics.into_iter().map(move |(name, partitions)| {
        let partitions =
            partitions.into_iter().map(|partition| (uncommitted(partition), Some(error)));
        Topic { name, partitions: partitions.collect() }
    })
}

fn single_response(api_version: i16, outcome: GroupOutcome) -> OffsetFetchResponse {
    let (topics, error) = match outcome {
        Ok(topics) => (topics, None),
        // As in Kafka: with an error of the group the response has no topics.
        Err((error, _)) if api_version >= GROUP_ERRORS_FROM => (Vec::new(), Some(error)),
        Err((error, asked)) => (refused_topics(asked, error).collect(), None),
    };
    let topics = topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|(offset, error)| {
            let partition = OffsetFetchResponsePartition::default()
                .with_partition_index(offset.partition)
                .with_committed_offset(offset.offset)
                .with_metadata(Some(StrBytes::from_string(offset.metadata)))
                .with_error_code(code_of(error));
            match api_version {
                5.. => partition.with_committed_leader_epoch(offset.leader_epoch),
                _ => partition,
            }
        });
        OffsetFetchResponseTopic::default()
            .with_name(TopicName(StrBytes::from_string(topic.name)))
            .with_partitions(partitions.collect())
    });
    OffsetFetchResponse::default().with_topics(topics.collect()).with_error_code(code_of(error))
}

fn group_response(group_id: GroupId, outcome: GroupOutcome) -> OffsetFetchResponseGroup {
    let (topics, error) = match outcome {
        Ok(topics) => (topics, None),
        Err((error, _)) => (Vec::new(), Some(error)),
    };
    let topics = topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|(offset, error)| {
            OffsetFetchResponsePartitions::default()
                .with_partition_index(offset.partition)
                .with_committed_offset(offset.offset)
                .with_committed_leader_epoch(offset.leader_epoch)
                .with_metadata(Some(StrBytes::from_string(offset.metadata)))
                .with_error_code(code_of(error))
        });
        OffsetFetchResponseTopics::default()
            .with_name(TopicName(StrBytes::from_string(topic.name)))
            .with_partitions(partitions.collect())
    });
    OffsetFetchResponseGroup::default()
        .with_group_id(group_id)
        .with_topics(topics.collect())
        .with_error_code(code_of(error))
}
