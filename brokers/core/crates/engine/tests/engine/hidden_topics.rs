//! Hidden topics keep their records through sweeps and restarts; deleted records stay
//! deleted; and metadata from a backup loses no topic.

use std::sync::Arc;

use freshet_engine::Engine;
use freshet_jobs::deletion::DeleteBefore;
use freshet_metadata::schema::HiddenTopicRecord;
use freshet_partition::read::ReadError;
use freshet_storage::cold::manifest::Manifest;
use freshet_wire::ids::{Epoch, PartitionId, TopicId};
use freshet_wire::records::BatchBuilder;

use crate::fixture::{Cluster, append, create_topic, open, read_all};
use crate::jobs::segment;
use crate::lane_fixture::eventually;

const HOUR_MS: i64 = 3_600_000;
const KEEP: [(&str, &str); 1] = [("retention.ms", "-1")];

fn record(value: &str) -> BatchBuilder {
    BatchBuilder::new(0).record(1, None, Some(value.as_bytes()))
}

/// One record in a segment, one in the lane.
async fn fill(engine: &Engine, topic: TopicId, index: i32) {
    let partition = open(engine, topic, index);
    segment(engine, &partition, 1, 10).await;
    append(engine, &partition, record("in the lane")).await;
}

async fn values(engine: &Engine, topic: TopicId, index: i32) -> Vec<String> {
    let records = read_all(&open(engine, topic, index), 0).await;
    records.into_iter().map(|(_, _, value)| value).collect()
}

fn filled() -> Vec<String> {
    vec!["x".repeat(10), "in the lane".to_owned()]
}

async fn hidden(engine: &Engine) -> Vec<HiddenTopicRecord> {
    engine.metadata.hidden_topics().await.unwrap()
}

/// Waits until two rounds of sweeping are over, so that everything is deleted that nothing names.
async fn swept(cluster: &Cluster, engine: &Engine) {
    let topic = create_topic(engine, "sweeping", 1, &KEEP).await;
    fill(engine, topic, 0).await;
    engine.metadata.delete_topic(engine.fence(), "sweeping", None, 0).await.unwrap();
    let id = PartitionId::new(topic, 0);
    eventually("two rounds of sweeping", async || cluster.manifests(id).is_empty()).await;
}

async fn restore(engine: &Engine, topic: TopicId, name: &str) {
    let restored = engine.metadata.restore_topic(engine.fence(), topic, Some(name)).await.unwrap();
    engine.view.wait_for(restored.revision).await.unwrap();
}

#[tokio::test]
async fn a_deleted_topic_keeps_its_records_through_sweeps_and_restarts() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    // Retention does not touch it meanwhile: the topic's owner decides about its records.
    let topic = create_topic(&engine, "t", 2, &[("retention.ms", "3600000000000")]).await;
    fill(&engine, topic, 1).await;
    engine.metadata.delete_topic(engine.fence(), "t", None, HOUR_MS).await.unwrap();
    swept(&cluster, &engine).await;
    // As a crash, then a clean stop.
    drop(engine);
    let engine = cluster.start().await;
    assert_eq!(engine.partitions.count_of(topic), 2);
    swept(&cluster, &engine).await;
    engine.stop().await;
    drop(engine);
    let engine = cluster.start().await;
    assert!(engine.view.topics().by_id(topic).is_none());
    restore(&engine, topic, "back").await;
    let epoch = open(&engine, topic, 1).epoch();
    assert_eq!(values(&engine, topic, 1).await, filled());
    assert_eq!(append(&engine, &open(&engine, topic, 1), record("more")).await, 2);
    assert!(epoch >= 2, "each start leads under an epoch of its own: {epoch}");
    eventually("it is known by its name", async || &*open(&engine, topic, 1).topic() == "back")
        .await;
}

#[tokio::test]
async fn a_topic_that_is_given_up_goes_from_storage() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &KEEP).await;
    fill(&engine, topic, 0).await;
    engine.metadata.delete_topic(engine.fence(), "t", None, HOUR_MS).await.unwrap();
    engine.metadata.purge_topic(engine.fence(), topic).await.unwrap();
    let id = PartitionId::new(topic, 0);
    eventually("its manifests go", async || cluster.manifests(id).is_empty()).await;
    eventually("its objects go", async || cluster.objects().is_empty()).await;
    assert_eq!(engine.metadata.partitions_of(topic).await.unwrap(), []);
}

#[tokio::test]
async fn a_topic_whose_time_is_over_cannot_be_restored() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &KEEP).await;
    engine.metadata.delete_topic(engine.fence(), "t", None, 1).await.unwrap();
    eventually("its time is over", async || {
        engine.metadata.restore_topic(engine.fence(), topic, Some("u")).await.is_err()
            || engine.metadata.delete_topic(engine.fence(), "u", None, 1).await.is_err()
    })
    .await;
}

async fn delete_before(engine: &Engine, topic: TopicId, offset: i64) {
    let partition = PartitionId::new(topic, 0);
    engine.delete_records(vec![DeleteBefore { partition, offset }]).await.unwrap();
}

#[tokio::test]
async fn deleted_records_stay_deleted_after_a_crash_and_a_clean_stop() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &KEEP).await;
    let partition = open(&engine, topic, 0);
    segment(&engine, &partition, 1, 10).await;
    segment(&engine, &partition, 1, 10).await;
    for value in ["a", "b", "c"] {
        append(&engine, &partition, record(value)).await;
    }
    // The first segment is dropped, and remembered for the metering agent.
    delete_before(&engine, topic, 1).await;
    let manifest = partition.manifest();
    assert_eq!((manifest.segments.len(), manifest.dropped.len(), manifest.log_start), (1, 1, 1));
    // Beyond what is split, so records of the lane are deleted before they have a segment.
    delete_before(&engine, topic, 4).await;
    assert_eq!((partition.bounds().log_start, partition.bounds().end), (4, 5));
    assert!(matches!(partition.read(3, 1, true).await, Err(ReadError::OutOfRange(_))));
    assert_eq!(partition.manifest().segments.len(), 0);
    drop((partition, engine));
    let engine = cluster.start().await;
    let partition = open(&engine, topic, 0);
    assert_eq!((partition.bounds().log_start, partition.bounds().end), (4, 5));
    eventually("all is split", async || partition.unsplit_count() == 0).await;
    let kept: Vec<_> = read_all(&partition, 4).await.into_iter().map(|(_, _, v)| v).collect();
    assert_eq!(kept, ["c"]);
    delete_before(&engine, topic, 5).await;
    engine.stop().await;
    drop((partition, engine));
    let engine = cluster.start().await;
    let partition = open(&engine, topic, 0);
    assert_eq!((partition.bounds().log_start, partition.bounds().end), (5, 5));
    assert_eq!(append(&engine, &partition, record("d")).await, 5);
    assert_eq!(partition.manifest().bytes(), 0);
    eventually("objects go", async || cluster.objects().is_empty()).await;
}

/// The leader epoch and the records of each partition of a topic.
async fn log(engine: &Engine, topic: TopicId, partitions: i32) -> Vec<(Epoch, Vec<String>)> {
    let mut led = Vec::new();
    for index in 0..partitions {
        led.push((open(engine, topic, index).epoch(), values(engine, topic, index).await));
    }
    led
}

fn is_later(before: &[(Epoch, Vec<String>)], after: &[(Epoch, Vec<String>)]) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| before.0 < after.0 && before.1 == after.1)
}

#[tokio::test]
async fn metadata_from_a_backup_loses_no_record_and_finds_younger_topics() {
    let mut cluster = Cluster::new();
    let configs = KEEP.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let engine = cluster.start().await;
    let known = create_topic(&engine, "known", 1, &KEEP).await;
    fill(&engine, known, 0).await;
    engine.stop().await;
    drop(engine);
    cluster.back_up("backup.sqlite").await;

    let engine = cluster.start().await;
    let extended = engine.metadata.create_partitions(engine.fence(), "known", 2, &[]).await;
    engine.wait_open(known, extended.unwrap().record.partitions).await;
    fill(&engine, known, 1).await;
    let younger = create_topic(&engine, "younger", 2, &KEEP).await;
    fill(&engine, younger, 0).await;
    fill(&engine, younger, 1).await;
    eventually("storage has descriptors of the topics", async || cluster.descriptors() == 2).await;
    drop(engine);
    let engine = cluster.start().await;
    append(&engine, &open(&engine, younger, 1), record("led anew")).await;
    let last = engine.incarnation;
    let (of_known, of_younger) = (log(&engine, known, 2).await, log(&engine, younger, 2).await);
    drop(engine);
    cluster.metadata = "backup.sqlite";

    let engine = cluster.start().await;
    assert!(engine.incarnation > last);
    assert!(is_later(&of_known, &log(&engine, known, 2).await));
    let orphans = hidden(&engine).await;
    assert_eq!(orphans.len(), 1);
    assert!(orphans[0].is_orphaned());
    assert_eq!((orphans[0].topic.id, orphans[0].topic.partitions), (younger, 2));
    assert_eq!((orphans[0].topic.name.as_str(), &orphans[0].topic.configs), ("younger", &configs));
    assert!(is_later(&of_younger, &log(&engine, younger, 2).await));
    swept(&cluster, &engine).await;
    // Nobody decides about it: it is there after the next start as well, and only once.
    drop(engine);
    let engine = cluster.start().await;
    assert_eq!(hidden(&engine).await.len(), 1);
    swept(&cluster, &engine).await;
    let restored = engine.metadata.restore_topic(engine.fence(), younger, None).await.unwrap();
    engine.view.wait_for(restored.revision).await.unwrap();
    assert!(is_later(&of_younger, &log(&engine, younger, 2).await));
    let partition = open(&engine, younger, 1);
    assert_eq!(append(&engine, &partition, record("goes on")).await, 3);
    assert_eq!(hidden(&engine).await, []);
    assert!(!cluster.manifests(partition.id()).is_empty());
    let manifest: Arc<Manifest> = partition.manifest();
    assert_eq!(manifest.covered_end, 3);
}
