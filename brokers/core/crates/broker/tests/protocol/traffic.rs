//! Limits of what clients of a cluster produce and fetch: refusals and the throttle.

use std::time::Duration;

use bytes::Bytes;
use freshet_metadata::schema::TrafficLimit;
use freshet_wire::records::BatchBuilder;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, ListGroupsRequest};
use tokio::time::Instant;

use super::harness::{Client, TestBroker, batch, produce_request, topic_name};

const POLICY_VIOLATION: i16 = 44;
const KIB: usize = 1 << 10;
const RATE: usize = 64 * KIB;

fn refuse() -> TrafficLimit {
    TrafficLimit::Refuse { reason: "no budget is left".to_owned() }
}

fn throttle() -> TrafficLimit {
    let (reason, bytes_per_s) = ("little budget is left".to_owned(), RATE as u64);
    TrafficLimit::Throttle { reason, bytes_per_s }
}

/// A fetch of both partitions of `t` that waits for more than there is.
fn patient() -> FetchRequest {
    let of =
        |index| FetchPartition::default().with_partition(index).with_partition_max_bytes(1 << 20);
    let topic =
        FetchTopic::default().with_topic(topic_name("t")).with_partitions(vec![of(0), of(1)]);
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_min_bytes(1 << 20)
        .with_max_bytes(50 << 20)
        .with_max_wait_ms(600_000)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

fn hasty() -> FetchRequest {
    patient().with_max_wait_ms(0)
}

fn is_refused(response: &FetchResponse) -> bool {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let code = |partition: &PartitionData| {
        assert!(partition.records.as_ref().is_none_or(Bytes::is_empty));
        partition.error_code
    };
    let codes: Vec<_> = partitions.map(code).collect();
    response.error_code == POLICY_VIOLATION && codes == [POLICY_VIOLATION; 2]
}

async fn with_topic(broker: &TestBroker) -> Client {
    let mut client = broker.client();
    // Minutes pass here, and the records have timestamps of long ago.
    let configs = [("retention.ms", "-1"), ("max.message.bytes", "2097152")];
    client.create_topic("t", 2, &configs).await;
    client.produce("t", 0, batch(&["one"])).await;
    client
}

#[tokio::test]
async fn a_refusal_of_produce_alone_lets_everybody_fetch() {
    let broker = TestBroker::start().await;
    let mut client = with_topic(&broker).await;
    let reason = "no budget is left".to_owned();
    broker.limit_traffic(Some(TrafficLimit::RefuseProduce { reason })).await;
    let response = client.call(12, hasty()).await;
    assert_eq!(response.error_code, 0);
    assert!(!response.responses[0].partitions[0].records.as_ref().unwrap().is_empty());
}

#[tokio::test]
async fn a_refused_fetch_has_the_error_as_a_whole_and_by_partition_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = with_topic(&broker).await;
    let id = client.metadata(&["t"]).await.topics[0].topic_id;
    broker.limit_traffic(Some(refuse())).await;
    for version in 4..=18 {
        let mut request = hasty();
        if version >= 13 {
            (request.topics[0].topic, request.topics[0].topic_id) = (topic_name(""), id);
        }
        let mut response = client.call(version, request).await;
        // Older versions have no error for the whole.
        if version < 7 {
            assert_eq!(std::mem::replace(&mut response.error_code, POLICY_VIOLATION), 0);
        }
        assert!(is_refused(&response), "version {version}: {response:?}");
    }
    assert_eq!(broker.engine.egress.total_bytes(id), 0, "nothing was handed out");
    // Groups and everything else go on.
    assert_eq!(client.call(4, ListGroupsRequest::default()).await.error_code, 0);
    broker.limit_traffic(None).await;
    assert_eq!(client.call(12, hasty()).await.error_code, 0);
}

#[tokio::test]
async fn a_fetch_that_waits_is_refused_when_the_refusal_begins() {
    let broker = TestBroker::start().await;
    let mut client = with_topic(&broker).await;
    let mut reader = broker.client();
    let id = client.metadata(&["t"]).await.topics[0].topic_id;
    let sent = reader.send(12, &patient()).await;
    let partition = freshet_wire::ids::PartitionId::new(id, 0);
    let partition = broker.engine.partitions.get(partition).unwrap();
    while !partition.is_awaited() {
        tokio::task::yield_now().await;
    }
    broker.limit_traffic(Some(refuse())).await;
    assert!(is_refused(&reader.receive::<FetchRequest>(12, sent).await));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_held_back_for_a_second_and_ends_with_the_limit() {
    let broker = TestBroker::start().await;
    let mut client = with_topic(&broker).await;
    broker.limit_traffic(Some(refuse())).await;
    let begun = Instant::now();
    assert!(is_refused(&client.call(12, patient()).await));
    let held = begun.elapsed();
    assert!(held >= Duration::from_secs(1) && held < Duration::from_secs(2), "{held:?}");
    // Who does not wait for records does not wait for the refusal.
    let begun = Instant::now();
    assert!(is_refused(&client.call(12, hasty()).await));
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    // The limit ends while a refusal is held back: the records are given.
    let sent = client.send(12, &patient().with_min_bytes(1)).await;
    broker.limit_traffic(None).await;
    let response = client.receive::<FetchRequest>(12, sent).await;
    assert_eq!(response.error_code, 0);
    assert!(!response.responses[0].partitions[0].records.as_ref().unwrap().is_empty());
}

/// Produces a record of so many bytes; returns for how many ms the client is asked to pause.
async fn produce(client: &mut Client, bytes: usize) -> i32 {
    let record = vec![b'x'; bytes];
    let records = BatchBuilder::new(0).record(1_700_000_000_000, None, Some(&record)).build();
    let response = client.call(9, produce_request("t", 0, records)).await;
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    response.throttle_time_ms
}

/// Time advances only where the broker or a client waits.
#[tokio::test(start_paused = true)]
async fn all_clients_of_a_throttled_cluster_share_its_rate() {
    let broker = TestBroker::start().await;
    let mut writer = with_topic(&broker).await;
    broker.limit_traffic(Some(throttle())).await;
    let begun = Instant::now();
    let mut reader = broker.client();
    let mut other = broker.client();
    let (mut moved, mut pauses_ms) = (0, 0);
    while moved < 40 * RATE {
        for client in [&mut writer, &mut other] {
            pauses_ms += i64::from(produce(client, RATE).await);
            moved += RATE;
        }
        let response = reader.call(11, hasty().with_max_bytes(1)).await;
        pauses_ms += i64::from(response.throttle_time_ms);
        let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
        let records = partitions.filter_map(|partition| partition.records.as_ref());
        moved += records.map(Bytes::len).sum::<usize>();
    }
    // What the bucket holds at first is free of pauses; the rest takes its time.
    let seconds = begun.elapsed().as_secs_f64();
    let rate = (moved - 10 * RATE) as f64 / RATE as f64;
    assert!(pauses_ms > 0);
    assert!(seconds >= rate - 4.0, "{moved} bytes took {seconds} s, at {rate} times the rate");
    // A fetch in debt gets nothing, and at once.
    assert!(produce(&mut other, 20 * RATE).await > 10_000);
    let mut late = broker.client();
    let response = late.call(11, hasty()).await;
    assert!(response.throttle_time_ms > 0 && response.responses.is_empty());
    // It ends with the limit.
    broker.limit_traffic(None).await;
    let mut fresh = broker.client();
    assert_eq!(produce(&mut fresh, RATE).await, 0);
    assert!(!fresh.call(11, hasty()).await.responses.is_empty());
}
