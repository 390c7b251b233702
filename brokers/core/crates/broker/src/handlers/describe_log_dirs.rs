//! DescribeLogDirs: the sizes of partitions. The response has one log directory, because all
//! partitions are on the cluster's shared storage.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_metadata::view::Topic;
use freshet_wire::ids::PartitionId;

/// From this version on the response has an error for the whole request.
const ERRORS_FROM: i16 = 3;

/// Handles the request. A request without topics asks for all of them. Partitions that are not open
/// on this broker are left out.
pub fn handle(
    context: &RequestContext,
    request: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let response = DescribeLogDirsResponse::default();
    if !context.may_cluster(Operation::Describe) {
        let refused = ResponseError::ClusterAuthorizationFailed.code();
        let shown = if context.api_version >= ERRORS_FROM { refused } else { 0 };
        return response.with_error_code(shown);
    }
    let requested: Option<BTreeMap<String, BTreeSet<i32>>> = request.topics.map(|topics| {
        let mut requested: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
        for topic in topics {
            requested.entry(topic.topic.to_string()).or_default().extend(topic.partitions);
        }
        requested
    });
    let engine = &context.broker().engine;
    let known = engine.view.topics();
    let topics = known.iter().filter_map(|topic| match &requested {
        None => describe_topic(context, topic, |_| true),
        Some(requested) => {
            let indexes = requested.get(&topic.record.name)?;
            describe_topic(context, topic, |index| indexes.contains(&index))
        }
    });
    let result = DescribeLogDirsResult::default()
        .with_log_dir(StrBytes::from_string(format!("/{}", engine.settings.cluster)))
        .with_topics(topics.collect());
    response.with_results(vec![result])
}

fn describe_topic(
    context: &RequestContext,
    topic: &Topic,
    requested: impl Fn(i32) -> bool,
) -> Option<DescribeLogDirsTopic> {
    let registry = &context.broker().engine.partitions;
    let indexes = (0..topic.record.partitions).filter(|index| requested(*index));
    let partitions: Vec<_> = indexes
        .filter_map(|index| {
            let partition = registry.get(PartitionId::new(topic.record.id, index))?;
            let size = i64::try_from(partition.bytes()).unwrap_or(i64::MAX);
            let described = DescribeLogDirsPartition::default().with_partition_index(index);
            Some(described.with_partition_size(size))
        })
        .collect();
    let name = TopicName(StrBytes::from_string(topic.record.name.clone()));
    (!partitions.is_empty())
        .then(|| DescribeLogDirsTopic::default().with_name(name).with_partitions(partitions))
}
