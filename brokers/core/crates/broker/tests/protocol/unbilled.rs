//! What nobody is billed for: for whom it is metered, and how it is bounded.

use std::time::Duration;

use freshet_inspect::usage_reader::{EGRESS, INGRESS};
use freshet_metadata::names::OFFSETS_TOPIC;
use freshet_metadata::schema::LimitsRecord;
use freshet_wire::records::BatchBuilder;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, DescribeGroupsRequest, FetchRequest, GroupId, JoinGroupRequest,
    ListGroupsRequest, OffsetCommitRequest, OffsetFetchRequest, OffsetFetchResponse,
};
use tokio::time::Instant;

use super::groups::coordinator;
use super::harness::{Client, TestBroker, batch, produce_request, text, topic_name};
use super::limits::set;
use super::payers::{managed, metered, service, sums, tenant, wait_counted};

const PARTITIONS: i32 = 100;
const KIB: u64 = 1 << 10;

fn commit_request(metadata: &str) -> OffsetCommitRequest {
    let partitions = (0..PARTITIONS).map(|index| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(index)
            .with_committed_offset(1)
            .with_committed_metadata(Some(text(metadata)))
    });
    let topic = OffsetCommitRequestTopic::default().with_name(topic_name("t"));
    let topics = vec![topic.with_partitions(partitions.collect())];
    OffsetCommitRequest::default().with_group_id(GroupId(text("g"))).with_topics(topics)
}

pub(super) async fn commit(client: &mut Client, metadata: &str) {
    let committed = client.call(8, commit_request(metadata)).await;
    assert!(committed.topics[0].partitions.iter().all(|partition| partition.error_code == 0));
}

pub(super) async fn fetch_offsets(client: &mut Client) -> OffsetFetchResponse {
    let topic = OffsetFetchRequestTopic::default().with_name(topic_name("t"));
    let topics = vec![topic.with_partition_indexes((0..PARTITIONS).collect())];
    let request = OffsetFetchRequest::default().with_group_id(GroupId(text("g")));
    client.call(7, request.with_topics(Some(topics))).await
}

/// A broker with a topic and a coordinator.
pub(super) async fn with_topic() -> TestBroker {
    let broker = managed().await;
    let mut root = service(&broker, None).await;
    root.create_topic("t", PARTITIONS, &[]).await;
    coordinator(&mut root).await;
    broker
}

async fn limit(broker: &TestBroker, bytes_per_second: u64) {
    let limit = Some(bytes_per_second);
    let limits = LimitsRecord { unbilled_bytes_per_second: limit, ..LimitsRecord::default() };
    set(broker, limits).await;
}

#[tokio::test]
async fn offsets_are_metered_for_whom_asked() {
    let broker = with_topic().await;
    let mut alice = tenant(&broker, "alice", "").await;
    let mut key = service(&broker, Some("ApiKey:key_a")).await;
    let metadata = "x".repeat(1_000);
    commit(&mut alice, &metadata).await;
    commit(&mut key, "").await;
    let ingress = metered(&broker, INGRESS).await;
    let names: Vec<&str> = ingress.keys().map(String::as_str).collect();
    assert_eq!(names, ["ApiKey:key_a", "User:alice"], "{ingress:?}");
    assert!(ingress["User:alice"] > 100_000 && ingress["ApiKey:key_a"] < 100_000, "{ingress:?}");

    commit(&mut alice, &metadata).await;
    let mut handed = Vec::new();
    let mut root = service(&broker, None).await;
    for client in [&mut alice, &mut key, &mut root] {
        let topic = OffsetFetchRequestTopic::default().with_name(topic_name("t"));
        let topics = vec![topic.with_partition_indexes((0..PARTITIONS).collect())];
        let request = OffsetFetchRequest::default().with_group_id(GroupId(text("g")));
        client.send(7, &request.with_topics(Some(topics))).await;
        // With the four bytes of its length.
        handed.push(4 + client.receive_frame().await.len() as u64);
    }
    assert!(handed[0] > 100_000, "{handed:?}");
    let view = broker.engine.view.topics();
    let topic = view.by_name(OFFSETS_TOPIC).unwrap().record.id.as_u128();
    wait_counted(&broker, uuid::Uuid::from_u128(topic), handed[0] + handed[1]).await;
    let egress = sums([("User:alice", handed[0]), ("ApiKey:key_a", handed[1])]);
    assert_eq!(metered(&broker, EGRESS).await, egress, "the service's own is not counted");
}

/// Time advances only when the broker waits, so seconds are counted here and not measured.
#[tokio::test(start_paused = true)]
async fn what_is_not_billed_is_held_to_a_rate_and_whoever_takes_little_goes_on() {
    let broker = with_topic().await;
    let mut eve = tenant(&broker, "eve", "").await;
    let mut bob = tenant(&broker, "bob", "").await;
    let mut root = service(&broker, None).await;
    commit(&mut eve, &"x".repeat(4_000)).await;
    limit(&broker, 256 * KIB).await;
    let (started, mut taken, mut pause_ms) = (Instant::now(), 0, 0);
    for _ in 0..100 {
        // Metadata of 100 partitions.
        taken += 400_000;
        pause_ms += i64::from(fetch_offsets(&mut eve).await.throttle_time_ms);
        assert_eq!(bob.metadata(&["t"]).await.throttle_time_ms, 0);
        assert_eq!(fetch_offsets(&mut root).await.throttle_time_ms, 0);
    }
    let seconds = started.elapsed().as_secs_f64();
    let allowed = (256 * KIB) as f64 * (64.0 + seconds + 1.0) + 400_000.0;
    assert!(f64::from(taken) <= allowed, "{taken} bytes in {seconds} s");
    assert!(seconds < 150.0, "it pays for what it takes, and not for more: {seconds} s");
    // Its answers said how long it had to wait.
    let mut last = 0;
    while last == 0 {
        last = i64::from(fetch_offsets(&mut eve).await.throttle_time_ms);
    }
    assert!(pause_ms as f64 / 1_000.0 >= seconds - 1.0, "{pause_ms} {seconds}");
    let metrics = broker.engine.settings.metrics.render();
    let counted =
        format!("freshet_throttle_milliseconds_total{{kind=\"unbilled\"}} {}", pause_ms + last);
    assert!(metrics.contains(&counted), "{counted} in {metrics}");
    // Whoever comes back on another connection is not read until the pause is over.
    drop(eve);
    let before = Instant::now();
    let mut again = tenant(&broker, "eve", "").await;
    fetch_offsets(&mut again).await;
    let waited = i64::try_from(before.elapsed().as_millis()).unwrap();
    assert!((last - 50..=last + 50).contains(&waited), "{waited} of {last}");
}

/// For how many ms each kind of request makes its client pause where nothing is free.
#[tokio::test(start_paused = true)]
async fn whatever_carries_no_batch_is_counted_and_a_batch_is_not() {
    let broker = with_topic().await;
    limit(&broker, 1).await;
    // The savings of 64 bytes are gone with the first answer.
    tenant(&broker, "first", "").await.metadata(&["t"]).await;
    let mut users = 0;
    let mut another = async || {
        users += 1;
        tenant(&broker, &format!("user-{users}"), "").await
    };
    let mut client = another().await;
    assert!(client.metadata(&["t"]).await.throttle_time_ms > 0);
    let committed = another().await.call(8, commit_request("")).await;
    assert!(committed.throttle_time_ms > 0);
    let listed = another().await.call(4, ListGroupsRequest::default()).await;
    assert!(listed.throttle_time_ms > 0);
    let described = DescribeGroupsRequest::default().with_groups(vec![GroupId(text("g"))]);
    assert!(another().await.call(5, described).await.throttle_time_ms > 0);
    let joined = another().await.call(3, JoinGroupRequest::default()).await;
    assert!(joined.throttle_time_ms > 0);
    let failed = produce_request("unknown", 0, batch(&["one"]));
    assert!(another().await.call(9, failed).await.throttle_time_ms > 0);
    let partition = FetchPartition::default().with_partition(0).with_partition_max_bytes(1 << 20);
    let fetch = |name: &str| {
        let topic = FetchTopic::default().with_topic(topic_name(name));
        FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_min_bytes(1)
            .with_max_bytes(1 << 20)
            .with_session_epoch(-1)
            .with_topics(vec![topic.with_partitions(vec![partition.clone()])])
    };
    for version in [4, 11, 12] {
        assert!(another().await.call(version, fetch("unknown")).await.throttle_time_ms > 0);
    }

    let produced = produce_request("t", 0, batch(&["one"]));
    assert_eq!(another().await.call(9, produced).await.throttle_time_ms, 0);
    // What was stored once is paid for once.
    let idempotent = BatchBuilder::new(0).producer(7, 0, 0).record(0, None, Some(b"one")).build();
    let produced = produce_request("t", 1, idempotent);
    assert_eq!(another().await.call(9, produced.clone()).await.throttle_time_ms, 0);
    let again = another().await.call(9, produced).await;
    assert_eq!(again.responses[0].partition_responses[0].error_code, 0);
    assert!(again.throttle_time_ms > 0);
    let fetched = another().await.call(11, fetch("t")).await;
    assert!(
        fetched.responses[0].partitions[0].records.as_ref().is_some_and(|some| !some.is_empty())
    );
    assert_eq!(fetched.throttle_time_ms, 0);
}

/// Answers that have no field for a pause, and requests that end their connection.
#[tokio::test(start_paused = true)]
async fn what_cannot_ask_for_a_pause_is_counted_too() {
    let broker = with_topic().await;
    limit(&broker, 1).await;
    tenant(&broker, "first", "").await.metadata(&["t"]).await;
    let mut client = tenant(&broker, "eve", "").await;
    client.call(0, ApiVersionsRequest::default()).await;
    let before = Instant::now();
    client.call(0, ApiVersionsRequest::default()).await;
    assert!(before.elapsed() > Duration::from_secs(1), "{:?}", before.elapsed());

    let mut client = tenant(&broker, "mallory", "").await;
    // A Metadata request whose header cannot be read.
    let mut frame = vec![0, 3, 0, 9, 0, 0, 0, 1, 0, 0];
    frame.resize(100, 0xff);
    client.send_frame(&frame).await;
    client.is_closed().await;
    let before = Instant::now();
    tenant(&broker, "mallory", "").await.metadata(&["t"]).await;
    assert!(before.elapsed() > Duration::from_secs(1), "{:?}", before.elapsed());
}
