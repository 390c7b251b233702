//! ListOffsets, OffsetForLeaderEpoch, InitProducerId.

use std::collections::BTreeSet;

use freshet_jobs::deletion::DeleteBefore;
use freshet_wire::ids::PartitionId;
use freshet_wire::records::BatchBuilder;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{
    BrokerId, InitProducerIdRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest,
    TransactionalId,
};

use super::harness::{Client, TestBroker, batch, text, topic_name};

async fn list(
    client: &mut Client,
    version: i16,
    partition: i32,
    timestamp: i64,
) -> (i16, i64, i64) {
    list_offset(client, "t", version, partition, timestamp).await
}

/// Error code, offset and timestamp that ListOffsets answers.
pub async fn list_offset(
    client: &mut Client,
    topic: &str,
    version: i16,
    partition: i32,
    timestamp: i64,
) -> (i16, i64, i64) {
    let partition = ListOffsetsPartition::default()
        .with_partition_index(partition)
        .with_current_leader_epoch(-1)
        .with_timestamp(timestamp);
    let topic =
        ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request =
        ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    let response = client.call(version, request).await;
    let listed = &response.topics[0].partitions[0];
    (listed.error_code, listed.offset, listed.timestamp)
}

#[tokio::test]
async fn offsets_are_found_by_time_and_at_the_ends() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    for version in 7..=10 {
        assert_eq!(list(&mut client, version, 0, -3).await, (0, -1, -1), "an empty log");
    }
    let start = 1_700_000_000_000;
    client.produce("t", 0, batch(&["a", "b", "c"])).await;
    client.produce("t", 0, batch(&["d", "e"])).await;
    for version in 1..=10 {
        assert_eq!(list(&mut client, version, 0, -1).await, (0, 5, -1));
        assert_eq!(list(&mut client, version, 0, -2).await, (0, 0, -1));
        assert_eq!(list(&mut client, version, 0, start + 1).await, (0, 1, start + 1));
        assert_eq!(list(&mut client, version, 0, start + 3).await, (0, -1, -1));
    }
    assert_eq!(list(&mut client, 7, 0, -3).await, (0, 2, start + 2));
    assert_eq!(list(&mut client, 8, 0, -4).await, (0, 0, -1));
    assert_eq!(list(&mut client, 9, 0, -5).await, (0, -1, -1));
    let unsupported = (ResponseError::UnsupportedVersion.code(), -1, -1);
    assert_eq!(list(&mut client, 6, 0, -3).await, unsupported);
    assert_eq!(list(&mut client, 10, 0, -6).await, unsupported);
    let unknown = (ResponseError::UnknownTopicOrPartition.code(), -1, -1);
    assert_eq!(list(&mut client, 7, 3, -1).await, unknown);
}

#[tokio::test]
async fn the_largest_timestamp_is_that_of_what_remains() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("t", 1, &[("retention.ms", "-1")]).await;
    let batch = [300, 500, 200, 400, 100].into_iter();
    let batch = batch.fold(BatchBuilder::new(0), |batch, at| batch.record(at, None, Some(b"x")));
    client.produce("t", 0, batch.build()).await;
    let partition = PartitionId::new(id, 0);
    for (log_start, newest, first) in [
        (0, (0, 1, 500), (0, 0, 300)),
        (2, (0, 3, 400), (0, 2, 200)),
        (4, (0, 4, 100), (0, 4, 100)),
        (5, (0, -1, -1), (0, -1, -1)),
    ] {
        let deletion = DeleteBefore { partition, offset: log_start };
        broker.engine.delete_records(vec![deletion]).await.unwrap();
        assert_eq!(list(&mut client, 7, 0, -3).await, newest, "from {log_start} on");
        assert_eq!(list(&mut client, 7, 0, 0).await, first, "from {log_start} on");
    }
}

#[tokio::test]
async fn a_partition_that_is_named_twice_is_refused() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 2, &[]).await;
    let partitions = [0, 1, 0].map(|index| {
        ListOffsetsPartition::default().with_partition_index(index).with_timestamp(-1)
    });
    let topic = ListOffsetsTopic::default()
        .with_name(topic_name("t"))
        .with_partitions(partitions.into_iter().map(|p| p.with_current_leader_epoch(-1)).collect());
    let response = client.call(5, ListOffsetsRequest::default().with_topics(vec![topic])).await;
    let partitions = response.topics[0].partitions.iter();
    let codes: Vec<i16> = partitions.map(|partition| partition.error_code).collect();
    let refused = ResponseError::InvalidRequest.code();
    assert_eq!(codes, [refused, 0], "answered once, as by Kafka");
}

#[tokio::test]
async fn the_current_epoch_ends_at_the_end_of_the_log() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    client.produce("t", 0, batch(&["a", "b"])).await;
    let epoch = client.metadata(&["t"]).await.topics[0].partitions[0].leader_epoch;
    let ask = |topic: &str, leader_epoch: i32| {
        let partition = OffsetForLeaderPartition::default()
            .with_partition(0)
            .with_current_leader_epoch(-1)
            .with_leader_epoch(leader_epoch);
        let topic = OffsetForLeaderTopic::default()
            .with_topic(topic_name(topic))
            .with_partitions(vec![partition]);
        OffsetForLeaderEpochRequest::default().with_topics(vec![topic])
    };
    for version in 2..=4 {
        let response = client.call(version, ask("t", epoch)).await;
        let epoch_end = &response.topics[0].partitions[0];
        assert_eq!(
            (epoch_end.error_code, epoch_end.leader_epoch, epoch_end.end_offset),
            (0, epoch, 2)
        );
        let response = client.call(version, ask("t", epoch + 5)).await;
        let epoch_end = &response.topics[0].partitions[0];
        assert_eq!(
            (epoch_end.error_code, epoch_end.leader_epoch, epoch_end.end_offset),
            (0, -1, -1)
        );
    }
    let response = client.call(3, ask("missing", 0)).await;
    let code = response.topics[0].partitions[0].error_code;
    assert_eq!(code, ResponseError::UnknownTopicOrPartition.code());
}

#[tokio::test]
async fn producer_ids_are_given_once() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let mut ids = BTreeSet::new();
    for version in 0..=5 {
        let request = InitProducerIdRequest::default().with_transactional_id(None);
        let response = client.call(version, request).await;
        assert_eq!((response.error_code, response.producer_epoch), (0, 0));
        assert!(ids.insert(response.producer_id.0));
    }
    let transactional = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(text("tx"))))
        .with_transaction_timeout_ms(1000);
    let response = client.call(4, transactional).await;
    assert_eq!(response.error_code, ResponseError::InvalidRequest.code());
    assert_eq!(response.producer_id.0, -1);
}
