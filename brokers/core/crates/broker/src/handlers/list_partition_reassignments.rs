//! ListPartitionReassignments: partitions that are to have another leader, and do not have it yet.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use kafka_protocol::messages::{
    BrokerId, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::types::Operation;

/// Handles the request. Without topics it asks for all. Those that do not exist are left out.
pub fn handle(
    context: &RequestContext,
    request: &ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    let response = ListPartitionReassignmentsResponse::default().with_error_message(None);
    if !context.may_cluster(Operation::Describe) {
        let refusal = ApiError::from(ResponseError::ClusterAuthorizationFailed);
        return response.with_error_code(refusal.code()).with_error_message(Some(refusal.text()));
    }
    let asked = request.topics.as_ref().map(|topics| {
        let indexes = topics.iter().flat_map(|topic| {
            topic.partition_indexes.iter().map(|index| (topic.name.as_str(), *index))
        });
        indexes.collect::<BTreeSet<_>>()
    });
    let (broker, replicas) = (context.broker(), context.replicas());
    let snapshot = broker.engine.view.snapshot();
    let mut ongoing: BTreeMap<&str, Vec<OngoingPartitionReassignment>> = BTreeMap::new();
    for (id, wish) in snapshot.wanted_leaders.iter() {
        let Some(topic) = snapshot.topics.by_id(id.topic) else { continue };
        let Some(stored) = topic.partition(id.index) else { continue };
        let name = topic.record.name.as_str();
        let Ok(node) = i32::try_from(wish.record.slot) else { continue };
        let leader = broker.leader_node(stored);
        let is_asked = asked.as_ref().is_none_or(|asked| asked.contains(&(name, id.index)));
        if !is_asked || leader == Some(node) {
            continue;
        }
        let named = |leader| replicas.of(&topic.record, leader);
        let now = leader.map(named).unwrap_or_default();
        let described = describe(id.index, &now, named(node));
        ongoing.entry(name).or_default().push(described);
    }
    let topics = ongoing.into_iter().map(|(name, partitions)| {
        OngoingTopicReassignment::default()
            .with_name(TopicName(StrBytes::from_string(name.to_owned())))
            .with_partitions(partitions)
    });
    response.with_topics(topics.collect())
}

/// A change of replicas as Kafka shows it: those that are to be, and then those that are to go.
fn describe(index: i32, now: &[BrokerId], mut then: Vec<BrokerId>) -> OngoingPartitionReassignment {
    // Where the cluster has fewer nodes than the topic has replicas, one is named again.
    then.dedup();
    let is_new = |node: &BrokerId| !now.contains(node);
    let adding = then.iter().copied().filter(is_new).collect();
    let mut removing: Vec<_> = now.iter().copied().filter(|node| !then.contains(node)).collect();
    removing.dedup();
    then.extend(&removing);
    OngoingPartitionReassignment::default()
        .with_partition_index(index)
        .with_replicas(then)
        .with_adding_replicas(adding)
        .with_removing_replicas(removing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replicas_that_stay_are_neither_added_nor_removed() {
        let nodes = |ids: &[i32]| ids.iter().map(|id| BrokerId(*id)).collect::<Vec<_>>();
        let shown = describe(7, &nodes(&[0, 1]), nodes(&[2, 0]));
        assert_eq!((shown.partition_index, shown.replicas), (7, nodes(&[2, 0, 1])));
        assert_eq!((shown.adding_replicas, shown.removing_replicas), (nodes(&[2]), nodes(&[1])));
        let led = describe(7, &nodes(&[0, 1, 2]), nodes(&[1, 2, 0]));
        assert_eq!(led.replicas, nodes(&[1, 2, 0]));
        assert!(led.adding_replicas.is_empty() && led.removing_replicas.is_empty());
    }
}
