//! AlterPartitionReassignments: the first replica of each list is to lead the partition. The
//! controller has it handed over; replicas beyond the first are only reported.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
};

use super::errors::ApiError;
use super::topics::{check_assignment, open_to_clients};
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_metadata::view::{Snapshot, Topic};
use freshet_wire::ids::PartitionId;

/// Partitions whose leaders are noted as one change.
const PARTITIONS_PER_CHANGE: usize = 100;

/// Which slots are to lead partitions; `None` takes back what was wanted before.
type Wanted = BTreeMap<PartitionId, Option<u32>>;

/// Handles the request. The response is sent once the wish is noted, as in Kafka.
pub async fn handle(
    context: &RequestContext,
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse {
    let response = AlterPartitionReassignmentsResponse::default()
        .with_allow_replication_factor_change(request.allow_replication_factor_change)
        .with_error_message(None);
    if !context.may_cluster(Operation::Alter) {
        let refusal = ApiError::from(ResponseError::ClusterAuthorizationFailed);
        let refused = |topic: &ReassignableTopic| {
            response_of(topic, vec![Err(refusal.clone()); topic.partitions.len()])
        };
        return response
            .with_error_code(refusal.code())
            .with_error_message(Some(refusal.text()))
            .with_responses(request.topics.iter().map(refused).collect());
    }
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let outcomes = reassign_topic(context, topic).await;
        responses.push(response_of(topic, outcomes));
    }
    response.with_responses(responses)
}

/// Reassigns a topic's partitions. Returns the outcome of each.
async fn reassign_topic(
    context: &RequestContext,
    requested: &ReassignableTopic,
) -> Vec<Result<(), ApiError>> {
    let snapshot = context.broker().engine.view.snapshot();
    let mut wishes = Wanted::new();
    let mut outcomes: Vec<_> = requested
        .partitions
        .iter()
        .map(|partition| plan_partition(context, &snapshot, requested, partition, &mut wishes))
        .collect();
    if let Err(error) = note_wanted(context, requested.name.as_str(), &wishes).await {
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_ok()) {
            *outcome = Err(error.clone());
        }
    }
    outcomes
}

/// Checks what is requested of one partition, and adds what is to be noted for it.
fn plan_partition(
    context: &RequestContext,
    snapshot: &Snapshot,
    requested: &ReassignableTopic,
    partition: &ReassignablePartition,
    wishes: &mut Wanted,
) -> Result<(), ApiError> {
    let (name, index) = (requested.name.as_str(), partition.partition_index);
    let unknown = |what| ApiError::new(ResponseError::UnknownTopicOrPartition, what);
    let topic = snapshot.topics.by_name(name);
    let topic = topic.ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
    let topic = open_to_clients(topic)?;
    let stored = topic.partition(index);
    let stored =
        stored.ok_or_else(|| unknown(format!("Unable to find partition {name}:{index}.")))?;
    let id = PartitionId::new(topic.record.id, index);
    let before = wishes
        .get(&id)
        .copied()
        .unwrap_or_else(|| snapshot.wanted_leaders.get(&id).map(|stored| stored.record.slot));
    let after = match &partition.replicas {
        None if before.is_none() => return Err(ResponseError::NoReassignmentInProgress.into()),
        None => None,
        Some(replicas) => {
            check_assignment(context, replicas)?;
            check_factor(&topic, replicas.len())?;
            let node = replicas[0].0;
            let is_led = context.broker().leader_node(stored) == Some(node);
            // A slot that never has a broker is served by another one: nothing is to be changed.
            let slot = u32::try_from(node).ok().filter(|slot| *slot < snapshot.scale());
            slot.filter(|_| !is_led && context.broker().engine.has_peers())
        }
    };
    if before != after {
        wishes.insert(id, after);
    }
    Ok(())
}

fn check_factor(topic: &Topic, replicas: usize) -> Result<(), ApiError> {
    let factor = topic.record.replication_factor;
    if usize::try_from(factor) == Ok(replicas) {
        return Ok(());
    }
    let message = format!("The replication factor is changed from {factor} to {replicas}");
    Err(ApiError::new(ResponseError::InvalidReplicationFactor, message))
}

/// Notes who is to lead partitions, and returns once this broker's image shows it.
async fn note_wanted(
    context: &RequestContext,
    topic: &str,
    wishes: &Wanted,
) -> Result<(), ApiError> {
    if wishes.is_empty() {
        return Ok(());
    }
    let broker = context.broker();
    let metadata = context.admit(wishes.len().div_ceil(PARTITIONS_PER_CHANGE)).await?;
    let noted = metadata.set_wanted_leaders(broker.engine.fence(), topic, wishes).await;
    let revision = noted.map_err(|error| broker.metadata_error(&error))?;
    broker.await_revision(revision).await
}

fn response_of(
    topic: &ReassignableTopic,
    outcomes: Vec<Result<(), ApiError>>,
) -> ReassignableTopicResponse {
    let partitions = topic.partitions.iter().zip(outcomes).map(|(partition, outcome)| {
        let response = ReassignablePartitionResponse::default()
            .with_partition_index(partition.partition_index);
        match outcome {
            Ok(()) => response.with_error_message(None),
            Err(error) => {
                response.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        }
    });
    ReassignableTopicResponse::default()
        .with_name(topic.name.clone())
        .with_partitions(partitions.collect())
}
