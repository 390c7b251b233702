//! Who is to lead partitions: AlterPartitionReassignments, ListPartitionReassignments and
//! ElectLeaders, and assignments by hand.

use std::collections::BTreeMap;

use freshet_wire::ids::PartitionId;
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::list_partition_reassignments_request as of_list;
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, BrokerId, CreateTopicsRequest, DescribeLogDirsRequest,
    ElectLeadersRequest, ListPartitionReassignmentsRequest,
};

use super::harness::{Client, OTHER, TestBroker, topic_name};

fn nodes(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().map(|id| BrokerId(*id)).collect()
}

/// A reassignment of one partition; `None` cancels.
fn reassign(
    topic: &str,
    index: i32,
    replicas: Option<&[i32]>,
) -> AlterPartitionReassignmentsRequest {
    let partition = ReassignablePartition::default()
        .with_partition_index(index)
        .with_replicas(replicas.map(nodes));
    let topic =
        ReassignableTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    AlterPartitionReassignmentsRequest::default().with_topics(vec![topic])
}

async fn code_of(client: &mut Client, request: AlterPartitionReassignmentsRequest) -> i16 {
    let response = client.call(1, request).await;
    assert_eq!(response.error_code, 0);
    response.responses[0].partitions[0].error_code
}

/// Index, replicas, and those that are added and removed, of each partition that is listed.
type Listed = Vec<(i32, Vec<BrokerId>, Vec<BrokerId>, Vec<BrokerId>)>;

async fn listed(client: &mut Client, asked: Option<(&str, &[i32])>) -> Listed {
    let topics = asked.map(|(name, indexes)| {
        let topic =
            of_list::ListPartitionReassignmentsTopics::default().with_name(topic_name(name));
        vec![topic.with_partition_indexes(indexes.to_vec())]
    });
    let request = ListPartitionReassignmentsRequest::default().with_topics(topics);
    let response = client.call(0, request).await;
    assert_eq!(response.error_code, 0);
    let partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
    partitions
        .map(|partition| {
            let (adding, removing) = (partition.adding_replicas, partition.removing_replicas);
            (partition.partition_index, partition.replicas, adding, removing)
        })
        .collect()
}

fn assigned(name: &str, first: &[i32]) -> CreateTopicsRequest {
    let assignments = (0..).zip(first).map(|(index, first)| {
        CreatableReplicaAssignment::default()
            .with_partition_index(index)
            .with_broker_ids(nodes(&[*first, 1 - *first]))
    });
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(assignments.collect());
    CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000)
}

#[tokio::test]
async fn a_broker_reports_the_sizes_of_what_it_leads() {
    let broker = TestBroker::with_other().await;
    let mut client = broker.client();
    let created = client.call(7, assigned("t", &[0, OTHER, 0])).await;
    assert_eq!(created.topics[0].error_code, 0, "{:?}", created.topics[0].error_message);
    let named = DescribableLogDirTopic::default().with_topic(topic_name("t"));
    for asked in [None, Some(vec![named.with_partitions(vec![0, 1, 2])])] {
        let request = DescribeLogDirsRequest::default().with_topics(asked);
        let directory = client.call(4, request).await.results.remove(0);
        assert_eq!(directory.error_code, 0);
        let partitions = directory.topics.iter().flat_map(|topic| &topic.partitions);
        let shown: Vec<_> = partitions.map(|partition| partition.partition_index).collect();
        assert_eq!(shown, [0, 2]);
    }
}

#[tokio::test]
async fn the_first_of_an_assignment_leads_and_another_one_can_be_chosen() {
    let broker = TestBroker::with_other().await;
    let mut client = broker.client();
    let created = client.call(7, assigned("t", &[0, 0, OTHER])).await;
    assert_eq!(created.topics[0].error_code, 0, "{:?}", created.topics[0].error_message);
    let topic = client.metadata(&["t"]).await.topics.remove(0);
    let leaders: Vec<_> = topic.partitions.iter().map(|one| one.leader_id.0).collect();
    assert_eq!(leaders, [0, 0, OTHER]);

    assert_eq!(listed(&mut client, None).await, []);
    assert_eq!(code_of(&mut client, reassign("t", 1, Some(&[OTHER, 0]))).await, 0);
    let expected = (1, nodes(&[OTHER, 0]), nodes(&[]), nodes(&[]));
    assert_eq!(listed(&mut client, None).await, std::slice::from_ref(&expected));
    assert_eq!(listed(&mut client, Some(("t", &[0, 1, 7]))).await, [expected]);
    assert_eq!(listed(&mut client, Some(("t", &[0]))).await, []);
    assert_eq!(listed(&mut client, Some(("missing", &[1]))).await, []);
    let wishes = broker.engine.view.snapshot().wanted_leaders.clone();
    let wishes: BTreeMap<_, _> = wishes.iter().map(|(id, one)| (*id, one.record.slot)).collect();
    assert_eq!(wishes, BTreeMap::from([(PartitionId::new(topic.topic_id, 1), 1)]));

    // What is wanted can be taken back, by cancelling it or by asking for what is.
    assert_eq!(code_of(&mut client, reassign("t", 1, None)).await, 0);
    assert_eq!(listed(&mut client, None).await, []);
    let none = E::NoReassignmentInProgress.code();
    assert_eq!(code_of(&mut client, reassign("t", 1, None)).await, none);
    assert_eq!(code_of(&mut client, reassign("t", 1, Some(&[OTHER, 0]))).await, 0);
    assert_eq!(code_of(&mut client, reassign("t", 1, Some(&[0, OTHER]))).await, 0);
    assert!(broker.engine.view.snapshot().wanted_leaders.is_empty());
}

#[tokio::test]
async fn what_cannot_be_reassigned_has_kafkas_error() {
    let broker = TestBroker::with_other().await;
    let mut client = broker.client();
    client.call(7, assigned("t", &[0])).await;
    broker.engine.wait_until(|it| it.topics.by_name("t").is_some()).await;
    let cases = [
        (reassign("missing", 0, Some(&[0, OTHER])), E::UnknownTopicOrPartition),
        (reassign("t", 7, Some(&[0, OTHER])), E::UnknownTopicOrPartition),
        (reassign("t", -1, None), E::UnknownTopicOrPartition),
        (reassign("t", 0, Some(&[])), E::InvalidReplicaAssignment),
        (reassign("t", 0, Some(&[0, 0])), E::InvalidReplicaAssignment),
        (reassign("t", 0, Some(&[0, 9])), E::InvalidReplicaAssignment),
        (reassign("t", 0, Some(&[-1, 0])), E::InvalidReplicaAssignment),
        (reassign("t", 0, Some(&[OTHER])), E::InvalidReplicationFactor),
        (reassign("t", 0, None), E::NoReassignmentInProgress),
    ];
    for (request, expected) in cases {
        assert_eq!(code_of(&mut client, request.clone()).await, expected.code(), "{request:?}");
    }
    assert!(broker.engine.view.snapshot().wanted_leaders.is_empty());
}

#[tokio::test]
async fn in_a_cluster_of_one_broker_a_reassignment_changes_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let topic = CreatableTopic::default()
        .with_name(topic_name("t"))
        .with_num_partitions(1)
        .with_replication_factor(1);
    let request = CreateTopicsRequest::default().with_topics(vec![topic]);
    client.call(7, request.with_timeout_ms(10_000)).await;
    for version in 0..=1 {
        let response = client.call(version, reassign("t", 0, Some(&[0]))).await;
        assert_eq!(response.responses[0].partitions[0].error_code, 0);
    }
    assert!(broker.engine.view.snapshot().wanted_leaders.is_empty());
}

#[tokio::test]
async fn no_election_is_ever_needed() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 2, &[]).await;
    let elect = |partitions: Option<&[(&str, i32)]>, election: i8| {
        let topics = partitions.map(|partitions| {
            let topic = |(name, index): &(&str, i32)| {
                TopicPartitions::default()
                    .with_topic(topic_name(name))
                    .with_partitions(vec![*index])
            };
            partitions.iter().map(topic).collect()
        });
        ElectLeadersRequest::default().with_topic_partitions(topics).with_election_type(election)
    };
    for election in 0..=1 {
        let asked = [("t", 1), ("t", 2), ("missing", 0)];
        let response = client.call(2, elect(Some(&asked), election)).await;
        let results = response.replica_election_results.iter();
        let codes: Vec<_> = results.map(|result| result.partition_result[0].error_code).collect();
        let unknown = E::UnknownTopicOrPartition.code();
        assert_eq!(
            (response.error_code, codes),
            (0, vec![E::ElectionNotNeeded.code(), unknown, unknown])
        );
        assert_eq!(client.call(2, elect(None, election)).await.replica_election_results, []);
    }
    let response = client.call(2, elect(None, 2)).await;
    assert_eq!(response.error_code, E::InvalidRequest.code());
}
