//! For how long partitions remember idempotent producers (`producer.id.expiration.ms`).

use std::sync::Arc;

use freshet_configs::BrokerConfig;
use freshet_engine::Engine;
use freshet_metadata::schema::ConfigScope;
use freshet_partition::{Partition, Staged};
use freshet_wire::records::{BatchBuilder, ValidatedBatch};
use kafka_protocol::ResponseError;

use crate::fixture::{Cluster, create_topic, open};
use crate::lane_fixture::eventually;

const PRODUCER: i64 = 7;
const DAY_MS: &str = "86400000";
/// Long enough for a batch to be retried, and short enough to be waited for.
const SHORT_MS: &str = "1";

/// Configs of a topic whose records, which are from 1970, stay.
const FOR_EVER: [(&str, &str); 1] = [("retention.ms", "-1")];

fn expiring_after(ms: &str) -> BrokerConfig {
    BrokerConfig::new([("producer.id.expiration.ms".to_owned(), ms.to_owned())].into()).unwrap()
}

/// Appends a batch of one record with this sequence number, and waits until it is durable.
async fn produce(
    engine: &Engine,
    partition: &Arc<Partition>,
    sequence: i32,
) -> Result<Staged, ResponseError> {
    let batch = BatchBuilder::new(0).record(1, None, Some(b"x")).producer(PRODUCER, 0, sequence);
    let batch = ValidatedBatch::trusted(batch.build()).unwrap();
    let staged = partition.stage(&engine.lane, batch, &"User:alice".into(), 100)?;
    Partition::durable(partition, staged.end_offset).await?;
    Ok(staged)
}

/// What a retry of a batch that is in the log gets: its place, and nothing was stored.
fn again(first: Staged) -> Staged {
    Staged { stored_bytes: 0, ..first }
}

const HOLE: Result<Staged, ResponseError> = Err(ResponseError::OutOfOrderSequenceNumber);

#[tokio::test]
async fn a_silent_producer_is_forgotten_and_may_begin_anywhere() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    let first = produce(&engine, &partition, 0).await.unwrap();
    assert_eq!(produce(&engine, &partition, 0).await.unwrap(), again(first), "a retry");
    assert_eq!(produce(&engine, &partition, 5).await, HOLE);
    // It holds from then on, without a restart, and though nothing is split.
    let (scope, fence) = (ConfigScope::Default, engine.fence());
    let changes = [("producer.id.expiration.ms".to_owned(), Some(SHORT_MS.to_owned()))].into();
    engine.metadata.set_broker_configs(fence, scope, &changes).await.unwrap();
    eventually("it is forgotten", async || !partition.knows_producer(PRODUCER)).await;
    assert_eq!(produce(&engine, &partition, 5).await.unwrap().base_offset, 1);
}

#[tokio::test]
async fn a_successor_remembers_for_as_long() {
    let mut cluster = Cluster::new();
    cluster.settings.configs = expiring_after(DAY_MS);
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    let in_manifest = produce(&engine, &partition, 0).await.unwrap();
    engine.lane.roll().await.unwrap();
    eventually("it is split", async || partition.unsplit_count() == 0).await;
    let in_lane = produce(&engine, &partition, 1).await.unwrap();
    drop(engine);
    // Its timestamps are from 1970; what counts is when the broker wrote them.
    let engine = cluster.start().await;
    let partition = open(&engine, topic, 0);
    assert_eq!(produce(&engine, &partition, 0).await.unwrap(), again(in_manifest));
    assert_eq!(produce(&engine, &partition, 1).await.unwrap(), again(in_lane));
    assert_eq!(produce(&engine, &partition, 5).await, HOLE);
    drop(engine);
    cluster.settings.configs = expiring_after(SHORT_MS);
    // Only the opening looks.
    cluster.settings.jobs.retention_interval = std::time::Duration::from_secs(3600);
    let engine = cluster.start().await;
    let partition = open(&engine, topic, 0);
    assert!(!partition.knows_producer(PRODUCER), "however the manifest and the lane know it");
    assert_eq!(produce(&engine, &partition, 5).await.unwrap().base_offset, 2);
}

#[tokio::test]
async fn a_manifest_forgets_whom_it_finds_silent() {
    let mut cluster = Cluster::new();
    cluster.settings.configs = expiring_after(SHORT_MS);
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    produce(&engine, &partition, 0).await.unwrap();
    eventually("it is forgotten", async || !partition.knows_producer(PRODUCER)).await;
    engine.lane.roll().await.unwrap();
    eventually("it is split", async || partition.unsplit_count() == 0).await;
    assert!(partition.manifest().producers.is_empty());
}
