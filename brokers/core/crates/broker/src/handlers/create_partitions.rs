//! CreatePartitions: adds partitions to topics.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse, TopicName};

use super::errors::ApiError;
use super::topics::{check_assignment, time_limit};
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_metadata::cluster::PARTITIONS_PER_TOPIC_MAX;

/// Handles the request. The response is sent once the new partitions are open on this broker.
pub async fn handle(
    context: &RequestContext,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let time_limit = time_limit(request.timeout_ms);
    let mut topics: BTreeMap<TopicName, Vec<CreatePartitionsTopic>> = BTreeMap::new();
    for topic in request.topics {
        topics.entry(topic.name.clone()).or_default().push(topic);
    }
    let mut results = Vec::with_capacity(topics.len());
    for (name, requested) in topics {
        let outcome = match requested.as_slice() {
            [requested] => {
                extend_topic(context, requested, request.validate_only, time_limit).await
            }
            _ => Err(ApiError::new(ResponseError::InvalidRequest, "Duplicate topic name.")),
        };
        let result = CreatePartitionsTopicResult::default().with_name(name);
        results.push(match outcome {
            Ok(()) => result.with_error_message(None),
            Err(error) => {
                result.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        });
    }
    CreatePartitionsResponse::default().with_results(results)
}

async fn extend_topic(
    context: &RequestContext,
    requested: &CreatePartitionsTopic,
    validate_only: bool,
    time_limit: Duration,
) -> Result<(), ApiError> {
    let name = requested.name.as_str();
    if !context.may_topic(Operation::Alter, name) {
        return Err(ResponseError::TopicAuthorizationFailed.into());
    }
    let broker = context.broker();
    let known = broker.engine.view.topics().by_name(name).cloned();
    let topic = known.ok_or(ResponseError::UnknownTopicOrPartition)?;
    if topic.record.internal {
        let message = format!("The partitions of the internal topic {name} are fixed.");
        return Err(ApiError::new(ResponseError::TopicAuthorizationFailed, message));
    }
    check_count(context, requested, topic.record.partitions)?;
    if validate_only {
        let adding = requested.count.abs_diff(topic.record.partitions);
        let checked = context.metadata().check_topic_room(0, adding.into()).await;
        return checked.map_err(|error| broker.metadata_error(&error));
    }
    let metadata = context.admit(1).await?;
    let assignments = requested.assignments.iter().flatten();
    let first = assignments.map(|assignment| assignment.broker_ids.first().copied());
    let assigned = (topic.record.partitions..).zip(first);
    let assigned = assigned.filter_map(|(index, node)| Some((index, node?))).collect();
    let leaders = broker.assigned_leaders(name, requested.count, &assigned);
    let extended =
        metadata.create_partitions(broker.engine.fence(), name, requested.count, &leaders).await;
    let stored = extended.map_err(|error| broker.metadata_error(&error))?;
    broker.await_topic(&stored, time_limit).await
}

fn check_count(
    context: &RequestContext,
    requested: &CreatePartitionsTopic,
    current: i32,
) -> Result<(), ApiError> {
    let invalid = |message| Err(ApiError::new(ResponseError::InvalidPartitions, message));
    let count = requested.count;
    if count == current {
        return invalid(format!("Topic already has {current} partition(s)."));
    }
    if count < current {
        return invalid(format!(
            "The topic {} currently has {current} partition(s); {count} would not be an increase.",
            requested.name.as_str()
        ));
    }
    if count > PARTITIONS_PER_TOPIC_MAX {
        let max = PARTITIONS_PER_TOPIC_MAX;
        return invalid(format!("A topic has at most {max} partitions, not {count}."));
    }
    let Some(assignments) = &requested.assignments else { return Ok(()) };
    let refused = |message| Err(ApiError::new(ResponseError::InvalidReplicaAssignment, message));
    if i32::try_from(assignments.len()) != Ok(count - current) {
        return refused(format!(
            "Attempted to add {} additional partition(s), but only {} assignment(s) were \
             specified.",
            count - current,
            assignments.len()
        ));
    }
    assignments.iter().try_for_each(|assignment| check_assignment(context, &assignment.broker_ids))
}
