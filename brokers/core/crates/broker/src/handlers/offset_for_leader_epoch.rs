//! OffsetForLeaderEpoch: the end offsets of leader epochs, from which clients see whether the log
//! was truncated (KIP-320).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_wire::ids::Epoch;

/// Kafka's answer where the requested epoch is -1 or above the current one.
const UNDEFINED: (Epoch, i64) = (-1, -1);

/// Handles the request.
pub fn handle(
    context: &RequestContext,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|requested| {
            let outcome = find_epoch_end(context, &topic.topic, requested);
            let (epoch, end_offset) = outcome.unwrap_or(UNDEFINED);
            EpochEndOffset::default()
                .with_error_code(outcome.err().map_or(0, |error| error.code()))
                .with_partition(requested.partition)
                .with_leader_epoch(epoch)
                .with_end_offset(end_offset)
        });
        let partitions = partitions.collect();
        OffsetForLeaderTopicResult::default().with_topic(topic.topic).with_partitions(partitions)
    });
    OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
}

fn find_epoch_end(
    context: &RequestContext,
    topic: &str,
    requested: &OffsetForLeaderPartition,
) -> Result<(Epoch, i64), ResponseError> {
    if !context.may_topic(Operation::Describe, topic) {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    let broker = context.broker();
    let topics = broker.engine.view.topics();
    let known = topics.by_name(topic).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let partition =
        broker.partition(known, requested.partition).map_err(|refused| refused.error)?;
    partition.check_epoch(requested.current_leader_epoch)?;
    Ok(partition.end_of_epoch(requested.leader_epoch).unwrap_or(UNDEFINED))
}
