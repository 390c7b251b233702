//! FindCoordinator: which broker coordinates a group.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::errors::ApiError;
use super::leaders::NamedBy;
use crate::context::RequestContext;
use freshet_access::types::{Operation, ResourceType};
use freshet_wire::protocol::leader::NodeEndpoint;

/// The codes of `key_type`.
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
/// From this version on a request may name several keys.
const BATCHED_FROM: i16 = 4;

/// Handles the request. Creates the coordinator's topic, `__consumer_offsets`, where it does not
/// exist yet.
pub async fn handle(
    context: &RequestContext,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let keys = match context.api_version {
        BATCHED_FROM.. => request.coordinator_keys,
        _ => vec![request.key],
    };
    let mut coordinators = Vec::with_capacity(keys.len());
    for key in keys {
        let coordinator = find_leader(context, request.key_type, &key).await;
        coordinators.push((key, coordinator));
    }
    if context.api_version >= BATCHED_FROM {
        let coordinators =
            coordinators.into_iter().map(|(key, coordinator)| coordinator_of(key, coordinator));
        return FindCoordinatorResponse::default().with_coordinators(coordinators.collect());
    }
    let (_, coordinator) = coordinators.pop().expect("there is exactly one key");
    single_response(context.api_version, coordinator)
}

async fn find_leader(
    context: &RequestContext,
    key_type: i8,
    key: &str,
) -> Result<NodeEndpoint, ApiError> {
    match key_type {
        GROUP => {
            if !context.may_group(Operation::Describe, key) {
                return Err(ResponseError::GroupAuthorizationFailed.into());
            }
        }
        TRANSACTION => {
            let kind = ResourceType::TransactionalId;
            if !context.may(Operation::Describe, kind, key) {
                return Err(ResponseError::TransactionalIdAuthorizationFailed.into());
            }
            let message = "Transactions are not supported by this cluster yet.";
            return Err(ApiError::new(ResponseError::InvalidRequest, message));
        }
        other => {
            let message = format!("Unknown coordinator type {other}.");
            return Err(ApiError::new(ResponseError::InvalidRequest, message));
        }
    }
    let broker = context.broker();
    let unavailable = ResponseError::CoordinatorNotAvailable;
    let topic = broker.offsets_topic().await.map_err(|error| {
        tracing::warn!(%error, "the group coordinator's topic cannot be used");
        ApiError::from(unavailable)
    })?;
    let index = broker.engine.groups.partition_for(key);
    let asked = std::iter::once((NamedBy::Id(topic.record.id), std::iter::once(index)));
    broker.await_leaders_of(asked).await;
    let topics = broker.engine.view.topics();
    let topic = topics.by_id(topic.record.id).ok_or(unavailable)?;
    let partition = topic.partition(index);
    let leader = partition.and_then(|partition| broker.leader_node(partition));
    let coordinator = leader.and_then(|leader| context.node(leader));
    coordinator.ok_or_else(|| unavailable.into())
}

fn nobody() -> NodeEndpoint {
    NodeEndpoint { node_id: -1, host: String::new(), port: -1, rack: None }
}

fn coordinator_of(key: StrBytes, outcome: Result<NodeEndpoint, ApiError>) -> Coordinator {
    let coordinator = Coordinator::default().with_key(key);
    let (node, coordinator) = match outcome {
        Ok(node) => (node, coordinator.with_error_message(None)),
        Err(error) => {
            let code = error.code();
            (nobody(), coordinator.with_error_code(code).with_error_message(Some(error.text())))
        }
    };
    coordinator
        .with_node_id(BrokerId(node.node_id))
        .with_host(StrBytes::from_string(node.host))
        .with_port(node.port)
}

fn single_response(
    api_version: i16,
    outcome: Result<NodeEndpoint, ApiError>,
) -> FindCoordinatorResponse {
    let response = FindCoordinatorResponse::default();
    let (node, response) = match outcome {
        Ok(node) => (node, response.with_error_message(None)),
        Err(error) => {
            let text = (api_version >= 1).then(|| error.text());
            (nobody(), response.with_error_code(error.code()).with_error_message(text))
        }
    };
    response
        .with_node_id(BrokerId(node.node_id))
        .with_host(StrBytes::from_string(node.host))
        .with_port(node.port)
}
