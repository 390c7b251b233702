//! OffsetForLeaderEpoch: where epochs ended, so that clients find out whether their log was
//! truncated (KIP-320).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_wire::ids::Epoch;

/// What Kafka answers where the epoch that was asked for is none, or above the current one.
const UNDEFINED: (Epoch, i64) = (-1, -1);

/// Handles the request.
pub fn handle(
    context: &RequestContext,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|wanted| {
            let found = find(context, &topic.topic, wanted);
            let (epoch, end_offset) = found.unwrap_or(UNDEFINED);
            EpochEndOffset::default()
                .with_error_code(found.err().map_or(0, |error| error.code()))
                .with_partition(wanted.partition)
                .with_leader_epoch(epoch)
                .with_end_offset(end_offset)
        });
        let partitions = partitions.collect();
        OffsetForLeaderTopicResult::default().with_topic(topic.topic).with_partitions(partitions)
    });
    OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
}

fn find(
    context: &RequestContext,
    topic: &str,
    wanted: &OffsetForLeaderPartition,
) -> Result<(Epoch, i64), ResponseError> {
    if !context.may_topic(Operation::Describe, topic) {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    let broker = context.broker();
    let topics = broker.engine.view.topics();
    let known = topics.by_name(topic).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let partition = broker.partition(known, wanted.partition).map_err(|refused| refused.error)?;
    partition.check_epoch(wanted.current_leader_epoch)?;
    Ok(partition.end_of_epoch(wanted.leader_epoch).unwrap_or(UNDEFINED))
}
