//! CreateTopics: creates each topic by itself. The response is sent once the topics are open on
//! this broker.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::errors::ApiError;
use super::topics::{check_assignment, time_limit};
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_configs::topic::{describe_topic, replace_topic};
use freshet_metadata::cluster::NewTopic;
use freshet_metadata::names::METADATA_TOPIC;
use freshet_wire::ids::TopicId;

/// From this version on the response describes the topic.
const DESCRIBED_FROM: i16 = 5;

/// Handles the request.
pub async fn handle(
    context: &RequestContext,
    request: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let time_limit = time_limit(request.timeout_ms);
    let mut counts: BTreeMap<TopicName, usize> = BTreeMap::new();
    for topic in &request.topics {
        *counts.entry(topic.name.clone()).or_default() += 1;
    }
    let may_create_all = context.may_cluster(Operation::Create);
    let mut answered = BTreeSet::new();
    let mut topics = Vec::with_capacity(counts.len());
    for topic in request.topics {
        if !answered.insert(topic.name.clone()) {
            continue;
        }
        let repeated = counts.get(&topic.name).is_some_and(|count| *count > 1);
        let may_create = may_create_all || context.may_topic(Operation::Create, &topic.name);
        let made = if repeated {
            Err(ApiError::new(ResponseError::InvalidRequest, "Duplicate topic name."))
        } else if may_create {
            create_topic(context, &topic, request.validate_only, time_limit).await
        } else {
            Err(ApiError::new(ResponseError::TopicAuthorizationFailed, "Authorization failed."))
        };
        topics.push(response_of(context, &topic.name, made));
    }
    CreateTopicsResponse::default().with_topics(topics)
}

async fn create_topic(
    context: &RequestContext,
    topic: &CreatableTopic,
    validate_only: bool,
    time_limit: Duration,
) -> Result<(TopicId, NewTopic), ApiError> {
    let broker = context.broker();
    let new = new_topic(context, topic)?;
    if validate_only {
        let checked = context.metadata().check_new_topic(&new).await;
        checked.map_err(|error| broker.metadata_error(&error))?;
        return Ok((TopicId::nil(), new));
    }
    let metadata = context.admit(1).await?;
    let made = metadata.create_topic(broker.engine.fence(), &new).await;
    let stored = made.map_err(|error| broker.metadata_error(&error))?;
    broker.await_topic(&stored, time_limit).await?;
    Ok((stored.record.id, new))
}

fn new_topic(context: &RequestContext, topic: &CreatableTopic) -> Result<NewTopic, ApiError> {
    if topic.name.as_str() == METADATA_TOPIC {
        let message = format!("Creation of internal topic {METADATA_TOPIC} is prohibited.");
        return Err(ApiError::new(ResponseError::InvalidRequest, message));
    }
    let broker = context.broker();
    let config = broker.config();
    let (partitions, replication_factor) = topic_size(context, topic)?;
    let requested = topic
        .configs
        .iter()
        .map(|config| (config.name.to_string(), config.value.as_ref().map(ToString::to_string)));
    let configs = replace_topic(requested.collect(), &config)?;
    let assigned = topic.assignments.iter().filter_map(|assignment| {
        Some((assignment.partition_index, *assignment.broker_ids.first()?))
    });
    let assigned = assigned.collect();
    Ok(NewTopic {
        name: topic.name.to_string(),
        partitions,
        replication_factor,
        internal: false,
        configs,
        leaders: broker.assigned_leaders(&topic.name, partitions, &assigned),
    })
}

/// The number of partitions and the replication factor that the request gives, or the defaults.
fn topic_size(context: &RequestContext, topic: &CreatableTopic) -> Result<(i32, i16), ApiError> {
    if !topic.assignments.is_empty() {
        return assigned_size(context, topic);
    }
    let config = context.broker().config();
    let partitions = match topic.num_partitions {
        -1 => config.num_partitions,
        ..=0 => {
            let message = "Number of partitions was set to an invalid non-positive value.";
            return Err(ApiError::new(ResponseError::InvalidPartitions, message));
        }
        given => given,
    };
    match topic.replication_factor {
        -1 => Ok((partitions, config.default_replication_factor)),
        ..=0 => {
            let message =
                "Replication factor must be larger than 0, or -1 to use the default value.";
            Err(ApiError::new(ResponseError::InvalidReplicationFactor, message))
        }
        given => Ok((partitions, given)),
    }
}

/// The number of partitions and the replication factor of a manual assignment.
fn assigned_size(context: &RequestContext, topic: &CreatableTopic) -> Result<(i32, i16), ApiError> {
    let refused =
        |message: String| Err(ApiError::new(ResponseError::InvalidReplicaAssignment, message));
    if topic.num_partitions != -1 || topic.replication_factor != -1 {
        let message = "A manual partition assignment was specified, but numPartitions or \
                       replicationFactor was not set to -1.";
        return Err(ApiError::new(ResponseError::InvalidRequest, message));
    }
    let mut replicas = BTreeMap::new();
    for assignment in &topic.assignments {
        let brokers = &assignment.broker_ids;
        check_assignment(context, brokers)?;
        if replicas.insert(assignment.partition_index, brokers.len()).is_some() {
            return refused("Found multiple manual partition assignments for a partition.".into());
        }
    }
    let consecutive = replicas.keys().copied().eq((0..).take(replicas.len()));
    let factors: BTreeSet<usize> = replicas.values().copied().collect();
    match (consecutive, factors.first(), factors.len()) {
        (true, Some(factor), 1) => {
            let partitions = i32::try_from(replicas.len()).unwrap_or(i32::MAX);
            Ok((partitions, i16::try_from(*factor).unwrap_or(i16::MAX)))
        }
        (false, ..) => {
            refused("partitions should be a consecutive 0-based integer sequence".into())
        }
        _ => refused("All partitions must have the same number of replicas.".into()),
    }
}

fn response_of(
    context: &RequestContext,
    name: &TopicName,
    made: Result<(TopicId, NewTopic), ApiError>,
) -> CreatableTopicResult {
    let result = CreatableTopicResult::default().with_name(name.clone());
    let (id, new) = match made {
        Ok(made) => made,
        Err(error) => {
            let result =
                result.with_error_code(error.code()).with_error_message(Some(error.text()));
            return result.with_configs(Some(Vec::new()));
        }
    };
    let result = result.with_topic_id(id).with_error_message(None);
    if context.api_version < DESCRIBED_FROM {
        return result;
    }
    if !context.may_topic(Operation::DescribeConfigs, name) {
        let hidden = ResponseError::TopicAuthorizationFailed.code();
        return result.with_topic_config_error_code(hidden).with_configs(Some(Vec::new()));
    }
    let configs = describe_topic(&new.configs, &context.broker().config(), None);
    let configs = configs.into_iter().map(|entry| {
        CreatableTopicConfigs::default()
            .with_name(StrBytes::from_static_str(entry.name))
            .with_value(entry.value.clone().map(StrBytes::from_string))
            .with_read_only(entry.read_only)
            .with_config_source(entry.source as i8)
            .with_is_sensitive(entry.is_sensitive())
    });
    result
        .with_num_partitions(new.partitions)
        .with_replication_factor(new.replication_factor)
        .with_configs(Some(configs.collect()))
}
