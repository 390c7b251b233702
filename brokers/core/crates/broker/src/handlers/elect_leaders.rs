//! ElectLeaders: the leader of a partition is always the first of the replicas that are reported,
//! so no election is ever needed.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse};

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::types::Operation;

/// From this version on the response has an error for the whole request.
const ERRORS_FROM: i16 = 1;
/// Codes of `election_type`.
const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;

/// Handles the request. Without partitions it asks for all, of which those that need no election
/// are left out.
pub fn handle(context: &RequestContext, request: &ElectLeadersRequest) -> ElectLeadersResponse {
    let refusal = check_request(context, request).err();
    let response = ElectLeadersResponse::default();
    let response = match &refusal {
        Some(error) if context.api_version >= ERRORS_FROM => response.with_error_code(error.code()),
        _ => response,
    };
    let topics = request.topic_partitions.iter().flatten();
    let results = topics.map(|topic| result_of(context, topic, refusal.as_ref()));
    response.with_replica_election_results(results.collect())
}

fn check_request(context: &RequestContext, request: &ElectLeadersRequest) -> Result<(), ApiError> {
    if !context.may_cluster(Operation::Alter) {
        return Err(ResponseError::ClusterAuthorizationFailed.into());
    }
    let election = request.election_type;
    if [PREFERRED, UNCLEAN].contains(&election) {
        return Ok(());
    }
    let message = format!("Unknown election type {election}");
    Err(ApiError::new(ResponseError::InvalidRequest, message))
}

fn result_of(
    context: &RequestContext,
    requested: &TopicPartitions,
    refusal: Option<&ApiError>,
) -> ReplicaElectionResult {
    let name = requested.topic.as_str();
    let topics = context.broker().engine.view.topics();
    let topic = topics.by_name(name);
    let unknown = |what| ApiError::new(ResponseError::UnknownTopicOrPartition, what);
    let outcome = |index: i32| match (refusal, topic) {
        (Some(refusal), _) => refusal.clone(),
        (None, None) => unknown(format!("No such topic as {name}")),
        (None, Some(topic)) if topic.partition(index).is_none() => {
            unknown(format!("No such partition as {name}-{index}"))
        }
        (None, Some(_)) => ResponseError::ElectionNotNeeded.into(),
    };
    let partitions = requested.partitions.iter().map(|index| {
        let error = outcome(*index);
        PartitionResult::default()
            .with_partition_id(*index)
            .with_error_code(error.code())
            .with_error_message(Some(error.text()))
    });
    ReplicaElectionResult::default()
        .with_topic(requested.topic.clone())
        .with_partition_result(partitions.collect())
}
