//! Compaction and joining on a whole engine: what readers get afterwards and after a restart, and
//! that rewriting loses nothing that is written meanwhile.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use freshet_engine::Engine;
use freshet_inspect::inspect::{InspectOptions, PartitionReport, inspect};
use freshet_jobs::deletion::DeleteBefore;
use freshet_metadata::SqliteStore;
use freshet_partition::Partition;
use freshet_wire::records::{BatchBuilder, Compression, RecordsError};

use crate::fixture::{Cluster, append, create_topic, open};
use crate::lane_fixture::{CLUSTER, eventually};

pub const COMPACT: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("delete.retention.ms", "100000000"),
];

/// Appends records of (key, value) in one batch and has them split.
pub async fn write(engine: &Engine, partition: &Arc<Partition>, records: &[(&str, Option<&str>)]) {
    let batch = records.iter().fold(BatchBuilder::new(0), |batch, (key, value)| {
        batch.record(5, Some(key.as_bytes()), value.map(str::as_bytes))
    });
    append(engine, partition, batch.compression(Compression::Zstd)).await;
    split(engine, partition).await;
}

pub async fn split(engine: &Engine, partition: &Partition) {
    engine.lane.roll().await.unwrap();
    eventually("the file is split", async || partition.unsplit_count() == 0).await;
}

/// Offset, key and value of every record from the log start on.
pub async fn table(partition: &Partition) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut latest = Vec::new();
    let mut visit = |batch: &freshet_wire::records::StoredBatch| {
        for record in batch.records(1 << 20).unwrap() {
            let record = record.unwrap();
            let value = record.value.as_deref().map(text);
            latest.push((record.offset, text(&record.key.unwrap()), value));
        }
    };
    partition.visit(partition.bounds().log_start, &mut visit).await.unwrap();
    latest
}

/// What the inspector reports of the partitions of a topic.
async fn inspected(cluster: &Cluster, topic: &str) -> Vec<PartitionReport> {
    let store = SqliteStore::open(&cluster.folder.path().join(cluster.metadata)).await.unwrap();
    let options =
        InspectOptions { verify: true, topic: Some(topic.to_owned()), ..InspectOptions::default() };
    let report = inspect(&cluster.environment(), Arc::new(store), CLUSTER, &options).await;
    report.unwrap().partitions
}

/// The value of a metric.
fn metric(engine: &Engine, name: &str) -> u64 {
    let page = engine.settings.metrics.render();
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name} is not in\n{page}")).parse().unwrap()
}

pub fn row(offset: i64, key: &str, value: Option<&str>) -> (i64, String, Option<String>) {
    (offset, key.to_owned(), value.map(str::to_owned))
}

#[tokio::test]
async fn the_newest_record_of_each_key_stays_at_its_offset() {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &COMPACT).await;
    let partition = open(&engine, topic, 0);
    write(&engine, &partition, &[("a", Some("1")), ("b", Some("1"))]).await;
    write(&engine, &partition, &[("a", Some("2")), ("c", Some("1"))]).await;
    write(&engine, &partition, &[("a", Some("3"))]).await;
    write(&engine, &partition, &[("c", None)]).await;
    let expected = [row(1, "b", Some("1")), row(4, "a", Some("3")), row(5, "c", None)];
    eventually("superseded records go", async || table(&partition).await == expected).await;
    assert_eq!(partition.bounds().log_start, 0);
    // A reader of an offset that was removed gets the records that follow it.
    let behind = partition.read(2, 1 << 20, true).await.unwrap();
    assert_eq!(behind.batches().next().unwrap().last_offset(), 4);
    drop(engine);
    let engine = cluster.start().await;
    let partition = open(&engine, topic, 0);
    assert_eq!(table(&partition).await, expected);
    write(&engine, &partition, &[("b", Some("2"))]).await;
    eventually("the next round goes on", async || {
        table(&partition).await.first() == Some(&row(4, "a", Some("3")))
    })
    .await;
}

#[tokio::test]
async fn what_compaction_did_is_counted_and_inspected() {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &COMPACT).await;
    let partition = open(&engine, topic, 0);
    for value in ["1", "2", "3"] {
        write(&engine, &partition, &[("a", Some(value)), ("b", Some(value))]).await;
    }
    let expected = [row(4, "a", Some("3")), row(5, "b", Some("3"))];
    eventually("superseded records go", async || table(&partition).await == expected).await;
    eventually("the round ends", async || {
        metric(&engine, "freshet_compaction_dropped_records_total") == 4
            && metric(&engine, "freshet_compaction_backlog_bytes") == 0
    })
    .await;
    assert!(metric(&engine, "freshet_rewrites_total{job=\"compact\"}") >= 1);
    assert!(metric(&engine, "freshet_rewrite_read_bytes_total{job=\"compact\"}") > 0);
    assert_eq!(metric(&engine, "kafka_log_logcleanermanager_uncleanable_partitions_count"), 0);
    let report = &inspected(&cluster, "t").await[0];
    assert_eq!((report.compacted_until, report.dirty_bytes, report.damaged), (6, 0, 0));
    assert!(report.compacted_segments > 0);
}

#[tokio::test]
async fn keys_that_find_no_room_take_more_rounds() {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    // Room for one key.
    cluster.settings.jobs.compaction_keys_bytes = 1;
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &COMPACT).await;
    let partition = open(&engine, topic, 0);
    let keys = ["a", "b", "c", "d", "e"];
    for value in ["1", "2", "3"] {
        let records = keys.map(|key| (key, Some(value)));
        write(&engine, &partition, &records).await;
    }
    let expected: Vec<_> =
        (10..).zip(keys).map(|(offset, key)| row(offset, key, Some("3"))).collect();
    eventually("superseded records go", async || table(&partition).await == expected).await;
}

/// Damage is noted of what cannot be read, and not of what is only more than a reader holds.
#[tokio::test]
async fn a_batch_is_named_as_damaged_until_the_log_begins_behind_it() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &COMPACT).await;
    let partition = open(&engine, topic, 0);
    append(&engine, &partition, BatchBuilder::new(0).record(5, Some(b"k"), None)).await;
    let batch = partition.hot_batch(0).unwrap();
    partition.note_uncompacted(&batch.header(), &RecordsError::TooLarge { limit: 1 });
    assert_eq!(partition.first_damaged(), None);
    partition.note_uncompacted(&batch.header(), &RecordsError::Inconsistent("junk"));
    assert_eq!(partition.first_damaged(), Some(0));
    let deletion = DeleteBefore { partition: partition.id(), offset: 1 };
    engine.delete_records(vec![deletion]).await.unwrap();
    assert_eq!(partition.first_damaged(), None);
}

#[tokio::test]
async fn a_partition_with_a_damaged_segment_is_left_alone_and_named() {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    cluster.settings.jobs.rewrite_interval = Duration::from_secs(3600);
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 2, &COMPACT).await;
    let (bad, good) = (open(&engine, topic, 0), open(&engine, topic, 1));
    for partition in [&bad, &good] {
        write(&engine, partition, &[("a", Some("1")), ("b", Some("1"))]).await;
        write(&engine, partition, &[("a", Some("2"))]).await;
    }
    let damaged = bad.manifest().segments[0].object.key(CLUSTER);
    drop(engine);
    // Behind the head of the object its first chunk begins.
    let file = std::fs::OpenOptions::new().write(true).open(cluster.bucket().join(damaged));
    file.unwrap().write_all_at(b"!", 16 + 30).unwrap();
    cluster.settings.jobs.rewrite_interval = Duration::from_millis(20);
    let engine = cluster.start().await;
    let good = open(&engine, topic, 1);
    let expected = [row(1, "b", Some("1")), row(2, "a", Some("2"))];
    eventually("the other is compacted", async || table(&good).await == expected).await;
    let uncleanable = "kafka_log_logcleanermanager_uncleanable_partitions_count";
    eventually("it is counted", async || metric(&engine, uncleanable) == 1).await;
    assert_eq!(open(&engine, topic, 0).manifest().segments.len(), 2);
    let reports = inspected(&cluster, "t").await;
    let damage: Vec<_> = reports.iter().map(|report| (report.partition, report.damaged)).collect();
    assert_eq!(damage, [(0, 1), (1, 0)]);
}

#[tokio::test]
async fn a_tombstone_goes_when_its_horizon_has_passed() {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    let engine = cluster.start().await;
    let mut configs = COMPACT;
    configs[2].1 = "1";
    let topic = create_topic(&engine, "t", 1, &configs).await;
    let partition = open(&engine, topic, 0);
    write(&engine, &partition, &[("a", Some("1")), ("b", Some("1"))]).await;
    write(&engine, &partition, &[("a", None)]).await;
    let dated = [row(1, "b", Some("1")), row(2, "a", None)];
    eventually("the value goes first", async || table(&partition).await == dated).await;
    write(&engine, &partition, &[("b", Some("2"))]).await;
    let last = [row(3, "b", Some("2"))];
    eventually("then the tombstone", async || table(&partition).await == last).await;
}

#[tokio::test]
async fn small_segments_of_many_partitions_are_joined_into_one_object() {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 3, &[("retention.ms", "-1")]).await;
    let partitions: Vec<_> = (0..3).map(|index| open(&engine, topic, index)).collect();
    for round in 0..9 {
        for partition in &partitions {
            let value = format!("{}/{round}", partition.id().index);
            let batch = BatchBuilder::new(0).record(round, Some(b"k"), Some(value.as_bytes()));
            append(&engine, partition, batch).await;
        }
        split(&engine, &partitions[0]).await;
    }
    for partition in &partitions {
        eventually("segments are joined", async || partition.manifest().segments.len() < 8).await;
        let rows = table(partition).await;
        let index = partition.id().index;
        let expected: Vec<_> =
            (0..9).map(|round| row(round, "k", Some(&format!("{index}/{round}")))).collect();
        assert_eq!(rows, expected);
    }
    eventually("what was joined goes", async || cluster.objects().len() < 9).await;
    drop(engine);
    let engine = cluster.start().await;
    assert_eq!(table(&open(&engine, topic, 1)).await.len(), 9);
}

#[tokio::test]
async fn nothing_that_is_written_while_segments_are_rewritten_is_lost() {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    cluster.settings.jobs.rewrite_interval = Duration::from_millis(1);
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &COMPACT).await;
    let partition = open(&engine, topic, 0);
    for round in 0..40 {
        let (key, value) = (format!("k{}", round % 5), format!("v{round}"));
        let batch = BatchBuilder::new(0).record(5, Some(key.as_bytes()), Some(value.as_bytes()));
        append(&engine, &partition, batch).await;
        engine.lane.roll().await.unwrap();
    }
    let expected: Vec<_> =
        (35..40).map(|at| row(at, &format!("k{}", at % 5), Some(&format!("v{at}")))).collect();
    eventually("the newest stay", async || table(&partition).await == expected).await;
}
