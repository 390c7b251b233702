//! Metadata: brokers, topics and the leaders of partitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::errors::ApiError;
use super::topics::OFFSETS_TOPIC;
use crate::context::{Replicas, RequestContext};
use freshet_access::acl::CLUSTER_NAME;
use freshet_access::types::{Operation, ResourceType};
use freshet_metadata::cluster::NewTopic;
use freshet_metadata::names::check_topic_name;
use freshet_metadata::schema::Configs;
use freshet_metadata::view::{Snapshot, Topic};
use freshet_wire::protocol::leader::NodeEndpoint;

/// Handles the request. Requested topics that do not exist are created, where the broker's config
/// `auto.create.topics.enable`, the request and the ACLs allow it.
pub async fn handle(context: &RequestContext, request: MetadataRequest) -> MetadataResponse {
    let broker = context.broker();
    await_leaders(context, request.topics.as_deref()).await;
    let wants_operations = request.include_topic_authorized_operations;
    let wants_all = match &request.topics {
        None => true,
        Some(topics) => context.api_version == 0 && topics.is_empty(),
    };
    let answers = if wants_all {
        all_topics(context)
    } else {
        let mut requested = request.topics.unwrap_or_default();
        // A topic that is named twice is answered once.
        let mut seen = BTreeSet::new();
        requested.retain(|topic| seen.insert((topic.name.clone(), topic.topic_id)));
        let may_make = request.allow_auto_topic_creation && broker.config().auto_create_topics;
        let mut answers = Vec::with_capacity(requested.len());
        for requested in requested {
            answers.push(named_topic(context, requested, may_make).await);
        }
        answers
    };
    // Behind the topics, so that it has the leaders of those that were just created.
    let nodes = context.nodes();
    let replicas = Replicas::new(&nodes);
    let topics = answers.into_iter().map(|answer| match answer {
        Ok(topic) => describe_topic(context, &topic, &replicas, wants_operations),
        Err(missing) => missing.response(),
    });
    let topics = topics.collect();
    let node = |node: NodeEndpoint| {
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(node.node_id))
            .with_host(StrBytes::from_string(node.host))
            .with_port(node.port)
            .with_rack(node.rack.map(StrBytes::from_string))
    };
    let mut response = MetadataResponse::default()
        .with_brokers(nodes.into_iter().map(node).collect())
        .with_cluster_id(Some(StrBytes::from_string(broker.engine.cluster_id.clone())))
        .with_controller_id(BrokerId(context.controller_id()))
        .with_topics(topics);
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = cluster_operations(context);
    }
    response
}

/// Waits, for a moment at most, while partitions of these topics (`None`: of any) change leaders.
async fn await_leaders(context: &RequestContext, topics: Option<&[MetadataRequestTopic]>) {
    let broker = context.broker();
    let is_asked = |topic: &Topic| {
        topics.is_none_or(|topics| {
            topics.iter().any(|asked| match &asked.name {
                Some(name) => name.as_str() == topic.record.name,
                None => asked.topic_id == topic.record.id,
            })
        })
    };
    let all_led = |snapshot: &Snapshot| {
        let mut asked = snapshot.topics.iter().filter(|topic| is_asked(topic));
        asked.all(|topic| {
            (0..topic.record.partitions).all(|index| broker.is_led(snapshot, topic, index))
        })
    };
    broker.await_leaders(all_led).await;
}

/// The operations that the client may do on the cluster, as a bit field; 0 where it may not even
/// describe it.
pub(super) fn cluster_operations(context: &RequestContext) -> i32 {
    if context.may_cluster(Operation::Describe) {
        context.authorized_operations(ResourceType::Cluster, CLUSTER_NAME)
    } else {
        0
    }
}

/// A topic that is not described: why, and what the request or the answer may call it.
struct Missing {
    error: ResponseError,
    name: Option<TopicName>,
    id: Uuid,
}

impl Missing {
    fn response(self) -> MetadataResponseTopic {
        MetadataResponseTopic::default()
            .with_error_code(self.error.code())
            .with_name(self.name)
            .with_topic_id(self.id)
    }
}

fn all_topics(context: &RequestContext) -> Vec<Result<Arc<Topic>, Missing>> {
    let topics = context.broker().engine.view.topics();
    let visible =
        topics.iter().filter(|topic| context.may_topic(Operation::Describe, &topic.record.name));
    visible.map(|topic| Ok(Arc::clone(topic))).collect()
}

async fn named_topic(
    context: &RequestContext,
    requested: MetadataRequestTopic,
    may_make: bool,
) -> Result<Arc<Topic>, Missing> {
    let Some(name) = requested.name.filter(|_| requested.topic_id.is_nil()) else {
        // The response has the id that the client gave and not the name, which it may not know.
        let id = requested.topic_id;
        return topic_by_id(context, id).map_err(|error| Missing { error, name: None, id });
    };
    let known = context.broker().engine.view.topics().by_name(&name).cloned();
    let outcome = match known {
        _ if !context.may_topic(Operation::Describe, &name) => {
            Err(ResponseError::TopicAuthorizationFailed)
        }
        Some(topic) => Ok(topic),
        None => missing_topic(context, &name, may_make).await,
    };
    outcome.map_err(|error| Missing { error, name: Some(name), id: Uuid::nil() })
}

fn topic_by_id(context: &RequestContext, id: Uuid) -> Result<Arc<Topic>, ResponseError> {
    let known = context.broker().engine.view.topics().by_id(id).cloned();
    let topic = known.ok_or(ResponseError::UnknownTopicId)?;
    if context.may_topic(Operation::Describe, &topic.record.name) {
        Ok(topic)
    } else {
        Err(ResponseError::TopicAuthorizationFailed)
    }
}

async fn missing_topic(
    context: &RequestContext,
    name: &TopicName,
    may_make: bool,
) -> Result<Arc<Topic>, ResponseError> {
    check_topic_name(name).map_err(|_| ResponseError::InvalidTopicException)?;
    if !may_make {
        return Err(ResponseError::UnknownTopicOrPartition);
    }
    let may_create =
        context.may_cluster(Operation::Create) || context.may_topic(Operation::Create, name);
    if !may_create {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    let broker = context.broker();
    if name.as_str() == OFFSETS_TOPIC {
        return broker.offsets_topic().await.map_err(|error| error.error);
    }
    let config = broker.config();
    let new = NewTopic {
        name: name.to_string(),
        partitions: config.num_partitions,
        replication_factor: config.default_replication_factor,
        internal: false,
        configs: Configs::new(),
        leaders: broker.first_leaders(name),
    };
    let made = match context.admit(1).await {
        Ok(metadata) => broker.make_topic(&metadata, &new).await,
        Err(error) => Err(error),
    };
    match made {
        Err(ApiError {
            error: error @ (ResponseError::InvalidTopicException | ResponseError::PolicyViolation),
            ..
        }) => return Err(error),
        // Somebody else may have created it meanwhile: whether it exists now is looked up below.
        Err(error) => tracing::debug!(%error, topic = name.as_str(), "not created automatically"),
        Ok(_) => {}
    }
    let known = broker.engine.view.topics().by_name(name).cloned();
    known.ok_or(ResponseError::UnknownTopicOrPartition)
}

fn describe_topic(
    context: &RequestContext,
    topic: &Topic,
    replicas: &Replicas,
    wants_operations: bool,
) -> MetadataResponseTopic {
    let record = &topic.record;
    let broker = context.broker();
    let partitions = (0..)
        .zip(&topic.partitions)
        .map(|(index, stored)| {
            let partition = MetadataResponsePartition::default().with_partition_index(index);
            let Some(leader) = broker.leader_node(stored) else {
                return partition
                    .with_error_code(ResponseError::LeaderNotAvailable.code())
                    .with_leader_id(BrokerId(-1));
            };
            let replicas = replicas.of(record, leader);
            partition
                .with_leader_id(BrokerId(leader))
                .with_leader_epoch(stored.record.epoch)
                .with_replica_nodes(replicas.clone())
                .with_isr_nodes(replicas)
        })
        .collect();
    let mut described = MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(record.name.clone()))))
        .with_topic_id(record.id)
        .with_is_internal(record.internal)
        .with_partitions(partitions);
    if wants_operations {
        let operations = context.authorized_operations(ResourceType::Topic, &record.name);
        described.topic_authorized_operations = operations;
    }
    described
}
