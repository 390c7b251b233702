//! Fetch: records, waiting for them, and memory.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use freshet_broker::handlers::fetch::handle;
use freshet_partition::load::MissingOffsets;
use freshet_wire::ids::PartitionId;
use freshet_wire::records::{Batches, Tail};
use freshet_world::env::store::{ObjectStore, StoreResult};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse};
use kafka_protocol::protocol::Encodable;

use super::harness::{BeforeBucket, Setup, TestBroker, batch, topic_name};

fn fetch(topic: &str, partitions: &[(i32, i64)]) -> FetchRequest {
    let partitions = partitions.iter().map(|(index, offset)| {
        FetchPartition::default()
            .with_partition(*index)
            .with_fetch_offset(*offset)
            .with_partition_max_bytes(1 << 20)
    });
    let topic =
        FetchTopic::default().with_topic(topic_name(topic)).with_partitions(partitions.collect());
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

fn only(response: &FetchResponse) -> &PartitionData {
    assert_eq!(response.error_code, 0);
    &response.responses[0].partitions[0]
}

/// Offsets of the first and last record of each batch.
fn offsets(partition: &PartitionData) -> Vec<(i64, i64)> {
    let records: Bytes = partition.records.clone().expect("records are never null");
    Batches::new(records, Tail::Report)
        .map(|batch| batch.map(|batch| (batch.base_offset(), batch.last_offset())).unwrap())
        .collect()
}

#[tokio::test]
async fn every_version_reads_whole_batches() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("t", 1, &[]).await;
    client.produce("t", 0, batch(&["a", "b", "c"])).await;
    client.produce("t", 0, batch(&["d"])).await;
    for version in 4..=18 {
        let mut request = fetch("t", &[(0, 1)]);
        if version >= 13 {
            request.topics[0].topic = topic_name("");
            request.topics[0].topic_id = id;
        }
        let response = client.call(version, request).await;
        let partition = only(&response);
        assert_eq!(partition.error_code, 0, "version {version}");
        assert_eq!(offsets(partition), [(0, 2), (3, 3)]);
        assert_eq!((partition.high_watermark, partition.last_stable_offset), (4, 4));
        assert_eq!(response.session_id, 0);
        assert_eq!(response.responses[0].topic_id == id, version >= 13);
    }
    // Counted once the bytes were handed to the socket, so before the next request was read.
    let sent_each = u64::try_from(batch(&["a", "b", "c"]).len() + batch(&["d"]).len()).unwrap();
    client.metadata(&[]).await;
    assert_eq!(broker.engine.egress.total_bytes(id), 15 * sent_each);
}

#[tokio::test]
async fn a_fetch_waits_for_what_is_appended_and_no_longer() {
    let broker = TestBroker::start().await;
    let (mut reader, mut writer) = (broker.client(), broker.client());
    writer.create_topic("t", 2, &[]).await;
    let patient = fetch("t", &[(0, 0), (1, 0)]).with_max_wait_ms(60_000);
    let sent = reader.send(11, &patient).await;
    writer.produce("t", 1, batch(&["late"])).await;
    let response = reader.receive::<FetchRequest>(11, sent).await;
    let partitions = &response.responses[0].partitions;
    assert_eq!(offsets(&partitions[0]), []);
    assert_eq!(offsets(&partitions[1]), [(0, 0)]);
    let hasty = fetch("t", &[(0, 0)]).with_max_wait_ms(1);
    assert_eq!(offsets(only(&reader.call(11, hasty).await)), []);
}

/// Deletes the topic `t` while a fetch waits for more of it than there is, and returns the fetch's
/// answer.
async fn deleted_while_waiting(
    broker: &TestBroker,
    version: i16,
    restorable: bool,
) -> PartitionData {
    let (mut reader, mut writer) = (broker.client(), broker.client());
    let id = writer.create_topic("t", 1, &[]).await;
    writer.create_topic("other", 1, &[]).await;
    writer.produce("t", 0, batch(&["a"])).await;
    let mut patient = fetch("t", &[(0, 0)]).with_max_wait_ms(600_000).with_min_bytes(1 << 20);
    patient.topics.extend(fetch("other", &[(0, 0)]).topics);
    if version >= 13 {
        let other = writer.metadata(&["other"]).await.topics[0].topic_id;
        for (topic, id) in patient.topics.iter_mut().zip([id, other]) {
            (topic.topic, topic.topic_id) = (topic_name(""), id);
        }
    }
    let sent = reader.send(version, &patient).await;
    let keep_ms = if restorable { 60_000 } else { 0 };
    let partition = broker.engine.partitions.get(PartitionId::new(id, 0)).unwrap();
    while !partition.is_awaited() {
        tokio::task::yield_now().await;
    }
    broker.engine.metadata.delete_topic(None, "t", None, keep_ms).await.unwrap();
    // Another one of that name is not the one that was asked for.
    writer.create_topic("t", 1, &[]).await;
    let response = reader.receive::<FetchRequest>(version, sent).await;
    assert_eq!(response.responses[1].partitions[0].error_code, 0, "the other goes on");
    response.responses[0].partitions[0].clone()
}

#[tokio::test]
async fn a_fetch_that_waits_ends_when_its_topic_is_deleted() {
    for (version, restorable, error) in [
        (12, true, ResponseError::UnknownTopicOrPartition),
        (12, false, ResponseError::UnknownTopicOrPartition),
        (13, true, ResponseError::UnknownTopicId),
        (13, false, ResponseError::UnknownTopicId),
    ] {
        let broker = TestBroker::start().await;
        let answer = deleted_while_waiting(&broker, version, restorable).await;
        assert_eq!(answer.error_code, error.code(), "version {version}, {restorable}");
        assert!(answer.records.is_none_or(|records| records.is_empty()));
    }
}

#[tokio::test]
async fn a_fetch_that_waits_ends_when_its_partition_is_taken_offline() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("t", 1, &[]).await;
    let partition = broker.engine.partitions.get(PartitionId::new(id, 0)).unwrap();
    let sent = client.send(12, &fetch("t", &[(0, 0)]).with_max_wait_ms(600_000)).await;
    while !partition.is_awaited() {
        tokio::task::yield_now().await;
    }
    let missing = MissingOffsets { partition: partition.id(), from_offset: 0, to_offset: -1 };
    broker.engine.partitions.take_offline(missing);
    let response = client.receive::<FetchRequest>(12, sent).await;
    assert_eq!(only(&response).error_code, ResponseError::KafkaStorageError.code());
}

#[tokio::test]
async fn a_fetch_gathers_as_many_bytes_as_the_client_asks_for() {
    let broker = TestBroker::start().await;
    let (mut reader, mut writer) = (broker.client(), broker.client());
    writer.create_topic("t", 1, &[]).await;
    let one = batch(&["0123456789"]);
    let min_bytes = i32::try_from(3 * one.len()).unwrap();
    let patient = fetch("t", &[(0, 0)]).with_max_wait_ms(60_000).with_min_bytes(min_bytes);
    let sent = reader.send(11, &patient).await;
    for _ in 0..3 {
        writer.produce("t", 0, one.clone()).await;
    }
    let response = reader.receive::<FetchRequest>(11, sent).await;
    assert_eq!(offsets(only(&response)), [(0, 0), (1, 1), (2, 2)]);
}

#[tokio::test]
async fn limits_hold_but_the_first_batch_always_comes() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 2, &[]).await;
    let large = batch(&[&"x".repeat(1000)]);
    for partition in [0, 0, 1] {
        client.produce("t", partition, large.clone()).await;
    }
    let small = fetch("t", &[(0, 0), (1, 0)]).with_max_bytes(10);
    let response = client.call(11, small).await;
    let partitions = &response.responses[0].partitions;
    assert_eq!((offsets(&partitions[0]), offsets(&partitions[1])), (vec![(0, 0)], vec![]));
    let mut by_partition = fetch("t", &[(0, 0), (1, 0)]);
    for partition in &mut by_partition.topics[0].partitions {
        partition.partition_max_bytes = 10;
    }
    let response = client.call(11, by_partition).await;
    let partitions = &response.responses[0].partitions;
    assert_eq!((offsets(&partitions[0]), offsets(&partitions[1])), (vec![(0, 0)], vec![]));
}

#[tokio::test]
async fn what_cannot_be_read_has_kafkas_error() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    client.produce("t", 0, batch(&["a"])).await;
    let epoch = client.metadata(&["t"]).await.topics[0].partitions[0].leader_epoch;
    let with_epoch = |epoch: i32| {
        let mut request = fetch("t", &[(0, 0)]);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        request
    };
    let cases = [
        (fetch("missing", &[(0, 0)]), ResponseError::UnknownTopicOrPartition),
        (fetch("t", &[(1, 0)]), ResponseError::UnknownTopicOrPartition),
        (fetch("t", &[(0, 2)]), ResponseError::OffsetOutOfRange),
        (fetch("t", &[(0, -1)]), ResponseError::OffsetOutOfRange),
        (with_epoch(epoch + 1), ResponseError::UnknownLeaderEpoch),
        (
            fetch("t", &[(0, 0)]).with_replica_id(BrokerId(1)),
            ResponseError::TopicAuthorizationFailed,
        ),
    ];
    for (request, expected) in cases {
        let response = client.call(11, request.with_max_wait_ms(60_000)).await;
        assert_eq!(only(&response).error_code, expected.code());
    }
    assert_eq!(only(&client.call(11, with_epoch(epoch)).await).error_code, 0);
    let mut unknown = fetch("", &[(0, 0)]);
    unknown.topics[0].topic_id = uuid::Uuid::from_u128(7);
    let response = client.call(16, unknown).await;
    assert_eq!(only(&response).error_code, ResponseError::UnknownTopicId.code());
    let incremental = fetch("t", &[]).with_session_id(5).with_session_epoch(3);
    let response = client.call(11, incremental).await;
    assert_eq!(response.error_code, ResponseError::FetchSessionIdNotFound.code());
}

#[tokio::test]
async fn readers_of_committed_records_get_a_list_of_aborted_transactions() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    client.produce("t", 0, batch(&["a"])).await;
    let committed = client.call(11, fetch("t", &[(0, 0)]).with_isolation_level(1)).await;
    assert_eq!(only(&committed).aborted_transactions, Some(Vec::new()));
    let uncommitted = client.call(11, fetch("t", &[(0, 0)])).await;
    assert_eq!(only(&uncommitted).aborted_transactions, None);
}

#[tokio::test]
async fn a_waiting_fetch_ends_with_the_instance() {
    let broker = TestBroker::start().await;
    broker.client().create_topic("t", 1, &[]).await;
    let context = broker.context(11);
    let mut body = BytesMut::new();
    fetch("t", &[(0, 0)]).with_max_wait_ms(60_000).encode(&mut body, 11).unwrap();
    let request = freshet_wire::protocol::fetch::FetchRequest::decode(body.freeze(), 11).unwrap();
    let mut fetching = std::pin::pin!(handle(&context, request));
    assert!(futures::poll!(&mut fetching).is_pending());
    broker.engine.liveness.stand_down("test");
    let response = fetching.await.response;
    let code = response.topics[0].partitions[0].error_code;
    assert_eq!(code, ResponseError::NotLeaderOrFollower.code());
}

/// An object store that does not answer reads of records, and passes on all other calls.
struct Silent(Arc<dyn ObjectStore>);

#[async_trait]
impl ObjectStore for Silent {
    async fn put_new(&self, key: &str, pieces: Vec<Bytes>) -> StoreResult<()> {
        self.0.put_new(key, pieces).await
    }

    async fn get(&self, key: &str) -> StoreResult<Bytes> {
        self.0.get(key).await
    }

    async fn get_range(&self, _: &str, _: u64, _: u64) -> StoreResult<Bytes> {
        std::future::pending().await
    }

    async fn list(&self, folder: &str) -> StoreResult<Vec<String>> {
        self.0.list(folder).await
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        self.0.delete(key).await
    }

    async fn list_half_made(&self, folder: &str) -> StoreResult<Vec<String>> {
        self.0.list_half_made(folder).await
    }
}

#[tokio::test]
async fn the_newest_records_do_not_wait_for_older_ones() {
    let value = "x".repeat(3_000);
    let hot_bytes = Some(4_000);
    let before_bucket: Option<BeforeBucket> = Some(|bucket| Arc::new(Silent(bucket)));
    let setup = Setup { hot_bytes, before_bucket, ..Setup::default() };
    let broker = TestBroker::with(setup).await;
    let mut client = broker.client();
    let topic = client.create_topic("t", 2, &[]).await;
    client.produce("t", 0, batch(&[&value])).await;
    broker.engine.lane.roll().await.unwrap();
    let partition = broker.engine.partitions.get(PartitionId::new(topic, 0)).unwrap();
    while partition.unsplit_count() > 0 {
        tokio::task::yield_now().await;
    }
    client.produce("t", 1, batch(&[&value])).await;
    let both = fetch("t", &[(0, 0), (1, 0)]).with_max_wait_ms(i32::MAX);
    let response = client.call(11, both).await;
    let partitions = &response.responses[0].partitions;
    let outcomes: Vec<_> =
        partitions.iter().map(|partition| (partition.error_code, offsets(partition))).collect();
    assert_eq!(outcomes, [(0, vec![]), (0, vec![(0, 0)])]);
    assert_eq!(partitions[0].high_watermark, 1);
    // A client that reads only older records gets an answer when the time is over.
    let older = fetch("t", &[(0, 0)]).with_max_wait_ms(10);
    let response = client.call(11, older).await;
    assert_eq!(only(&response).error_code, 0);
    assert!(offsets(only(&response)).is_empty());
}

#[tokio::test]
async fn an_older_batch_that_has_no_room_is_left_for_the_next_fetch() {
    let setup = Setup { hot_bytes: Some(0), ..Setup::default() };
    let broker = TestBroker::with(setup).await;
    let mut client = broker.client();
    client.create_topic("t", 3, &[]).await;
    for index in 0..3 {
        client.produce("t", index, batch(&["a", "b"])).await;
    }
    // The client is at the end of one partition; the first batch of another may have any size.
    let mut small = fetch("t", &[(0, 2), (1, 0), (2, 0)]).with_max_wait_ms(i32::MAX);
    for partition in &mut small.topics[0].partitions {
        partition.partition_max_bytes = 10;
    }
    let both = i32::try_from(2 * batch(&["a", "b"]).len()).unwrap();
    let response = client.call(11, small.clone()).await;
    let records: Vec<_> = response.responses[0].partitions.iter().map(offsets).collect();
    assert_eq!(records, [vec![], vec![(0, 1)], vec![]]);
    let response = client.call(11, small.with_min_bytes(both).with_max_wait_ms(50)).await;
    let records: Vec<_> = response.responses[0].partitions.iter().map(offsets).collect();
    assert_eq!(records, [vec![], vec![(0, 1)], vec![]]);
}

#[tokio::test]
async fn older_records_come_from_lanes_and_segments() {
    let setup = Setup { hot_bytes: Some(0), ..Setup::default() };
    let broker = TestBroker::with(setup).await;
    let mut client = broker.client();
    let topic = client.create_topic("t", 3, &[]).await;
    for index in 0..3 {
        client.produce("t", index, batch(&["a", "b"])).await;
    }
    broker.engine.lane.roll().await.unwrap();
    let partition = broker.engine.partitions.get(PartitionId::new(topic, 2)).unwrap();
    while partition.unsplit_count() > 0 {
        tokio::task::yield_now().await;
    }
    client.produce("t", 1, batch(&["c"])).await;
    // One byte is enough, and records that come soon after the first are part of the same answer.
    let all = fetch("t", &[(0, 0), (1, 2), (2, 0), (0, 1)]).with_max_wait_ms(i32::MAX);
    let response = client.call(11, all).await;
    let partitions = &response.responses[0].partitions;
    let records: Vec<_> = partitions.iter().map(offsets).collect();
    assert_eq!(records, [vec![(0, 1)], vec![(2, 2)], vec![(0, 1)], vec![(0, 1)]]);
    client.metadata(&[]).await;
    assert!(broker.engine.egress.total_bytes(topic) > 0);
    // A client that does not wait for new records gets those that exist.
    for min_bytes in [0, 1] {
        let hasty = fetch("t", &[(2, 1)]).with_max_wait_ms(0).with_min_bytes(min_bytes);
        let response = client.call(11, hasty).await;
        assert_eq!(offsets(&response.responses[0].partitions[0]), [(0, 1)]);
    }
}
