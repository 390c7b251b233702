//! DescribeLogDirs: how large partitions are. All of them lie in one place: shared storage.

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

/// From this version on there is an error of the whole request.
const ERRORS_FROM: i16 = 3;

/// Handles the request. No topics means all of them; those that are not here are left out.
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
    let wanted: Option<BTreeMap<String, BTreeSet<i32>>> = request.topics.map(|topics| {
        let mut wanted: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
        for topic in topics {
            wanted.entry(topic.topic.to_string()).or_default().extend(topic.partitions);
        }
        wanted
    });
    let engine = &context.broker().engine;
    let known = engine.view.topics();
    let topics = known.iter().filter_map(|topic| match &wanted {
        None => describe(context, topic, |_| true),
        Some(wanted) => {
            let indexes = wanted.get(&topic.record.name)?;
            describe(context, topic, |index| indexes.contains(&index))
        }
    });
    let result = DescribeLogDirsResult::default()
        .with_log_dir(StrBytes::from_string(format!("/{}", engine.settings.cluster)))
        .with_topics(topics.collect());
    response.with_results(vec![result])
}

fn describe(
    context: &RequestContext,
    topic: &Topic,
    wanted: impl Fn(i32) -> bool,
) -> Option<DescribeLogDirsTopic> {
    let registry = &context.broker().engine.partitions;
    let indexes = (0..topic.record.partitions).filter(|index| wanted(*index));
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
