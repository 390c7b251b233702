//! Records that are removed are not read any more, however lately they were written: memory gives
//! them up as soon as the manifest counts that removed them.

use std::sync::Arc;

use freshet_engine::Engine;
use freshet_jobs::deletion::DeleteBefore;
use freshet_partition::Partition;
use freshet_partition::read::ReadError;
use freshet_partition::timestamps::TimedOffset;
use freshet_wire::ids::TopicId;
use freshet_wire::records::BatchBuilder;

use crate::compaction::{COMPACT, row, split, table, write};
use crate::fixture::{Cluster, append, create_topic, open, read_all};
use crate::lane_fixture::eventually;

const FOR_EVER: [(&str, &str); 1] = [("retention.ms", "-1")];

/// Bytes that the hot batches of all partitions pin.
fn hot_bytes(engine: &Engine) -> usize {
    engine.sources.cache.pinned_bytes()
}

/// Appends one record of `bytes` bytes; each such batch pins as much as the others.
async fn append_one(engine: &Engine, partition: &Arc<Partition>, timestamp: i64) {
    let batch = BatchBuilder::new(0).record(timestamp, None, Some(b"0123456789"));
    append(engine, partition, batch).await;
}

async fn delete_before(engine: &Engine, partition: &Partition, offset: i64) {
    let deletion = DeleteBefore { partition: partition.id(), offset };
    engine.delete_records(vec![deletion]).await.unwrap();
}

#[tokio::test]
async fn what_compaction_removed_is_not_read_from_memory() {
    let mut cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &COMPACT).await;
    let partition = open(&engine, topic, 0);
    write(&engine, &partition, &[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))]).await;
    write(&engine, &partition, &[("a", Some("2")), ("b", None)]).await;
    eventually("it is compacted", async || partition.manifest().first_dirty_offset == 5).await;
    let expected = [row(2, "c", Some("1")), row(3, "a", Some("2")), row(4, "b", None)];
    assert_eq!(table(&partition).await, expected, "as soon as the manifest counts");
    assert_eq!(hot_bytes(&engine), 0);
    assert!(!partition.reads_hot(0));
    // What is written afterwards is hot again, and follows what is in the segments.
    let batch = BatchBuilder::new(0).record(5, Some(b"d"), Some(b"1"));
    append(&engine, &partition, batch).await;
    assert!(partition.reads_hot(5) && hot_bytes(&engine) > 0);
    assert_eq!(table(&partition).await[3..], [row(5, "d", Some("1"))]);
    // A restart reads the same.
    drop(engine);
    cluster.settings.hot_bytes = 0;
    let engine = cluster.start().await;
    assert_eq!(table(&open(&engine, topic, 0)).await[..3], expected);
}

#[tokio::test]
async fn a_join_of_segments_leaves_their_records_in_memory() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    for timestamp in 0..9 {
        append_one(&engine, &partition, timestamp).await;
        split(&engine, &partition).await;
    }
    eventually("segments are joined", async || partition.manifest().segments.len() < 8).await;
    assert!(partition.reads_hot(0));
    assert_eq!(read_all(&partition, 0).await.len(), 9);
}

#[tokio::test]
async fn deleted_records_leave_memory_before_they_are_split() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    for timestamp in 0..10 {
        append_one(&engine, &partition, timestamp).await;
    }
    let of_one = hot_bytes(&engine) / 10;
    delete_before(&engine, &partition, 7).await;
    assert_eq!(hot_bytes(&engine), 3 * of_one);
    let gone = partition.read(6, 1 << 20, true).await;
    assert!(matches!(gone, Err(ReadError::OutOfRange(bounds)) if bounds.log_start == 7));
    assert_eq!(read_all(&partition, 7).await.len(), 3);
    assert!(partition.reads_hot(7));
    split(&engine, &partition).await;
    assert_eq!(partition.manifest().segments.len(), 1);
    assert_eq!(read_all(&partition, 7).await.len(), 3, "the splitter reads the rest of the lane");
    delete_before(&engine, &partition, 10).await;
    assert_eq!(hot_bytes(&engine), 0);
}

#[tokio::test]
async fn a_batch_that_straddles_the_log_start_stays() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    let three = (0..3).fold(BatchBuilder::new(0), |batch, at| batch.record(at, None, Some(b"x")));
    append(&engine, &partition, three).await;
    let before = hot_bytes(&engine);
    delete_before(&engine, &partition, 2).await;
    assert_eq!(hot_bytes(&engine), before);
    let read = partition.read(2, 1 << 20, true).await.unwrap();
    assert_eq!(read.batches().next().unwrap().base_offset(), 0, "as in Kafka");
}

#[tokio::test]
async fn retention_gives_memory_back() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "3600000")]).await;
    let partition = open(&engine, topic, 0);
    append_one(&engine, &partition, 1).await;
    split(&engine, &partition).await;
    eventually("retention drops it", async || partition.bounds().log_start == 1).await;
    assert_eq!(hot_bytes(&engine), 0);
}

/// Two topics with a record each. Returns what pins memory: the second of them.
async fn two_topics(engine: &Engine) -> (TopicId, usize) {
    let first = create_topic(engine, "first", 1, &FOR_EVER).await;
    append_one(engine, &open(engine, first, 0), 1).await;
    let of_one = hot_bytes(engine);
    let second = create_topic(engine, "second", 1, &FOR_EVER).await;
    append_one(engine, &open(engine, second, 0), 1).await;
    assert_eq!(hot_bytes(engine), 2 * of_one);
    (second, of_one)
}

#[tokio::test]
async fn a_deleted_topic_gives_its_memory_back_at_once() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let (topic, of_one) = two_topics(&engine).await;
    let held = open(&engine, topic, 0);
    engine.metadata.delete_topic(engine.fence(), "second", None, 0).await.unwrap();
    eventually("it is closed", async || !held.serves_clients()).await;
    assert_eq!(hot_bytes(&engine), of_one, "though somebody holds the partition");
    // What was on its way into the lane pins nothing any more.
    append_one(&engine, &held, 2).await;
    assert_eq!(hot_bytes(&engine), of_one);
}

#[tokio::test]
async fn a_hidden_topic_has_nothing_in_memory_until_it_comes_back() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let (topic, of_one) = two_topics(&engine).await;
    let partition = open(&engine, topic, 0);
    let for_a_day = 86_400_000;
    engine.metadata.delete_topic(engine.fence(), "second", None, for_a_day).await.unwrap();
    eventually("it is hidden", async || !partition.serves_clients()).await;
    assert_eq!(hot_bytes(&engine), of_one);
    engine.metadata.restore_topic(engine.fence(), topic, None).await.unwrap();
    eventually("it is back", async || partition.serves_clients()).await;
    assert_eq!(read_all(&partition, 0).await.len(), 1, "from the lane");
    append_one(&engine, &partition, 2).await;
    assert_eq!(hot_bytes(&engine), 2 * of_one);
    assert_eq!(read_all(&partition, 0).await.len(), 2);
}

#[tokio::test]
async fn look_ups_by_time_find_what_remains() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    let timestamps = [10, 90, 20, 80, 30].into_iter();
    let straddling =
        timestamps.fold(BatchBuilder::new(0), |batch, at| batch.record(at, None, Some(b"x")));
    append(&engine, &partition, straddling).await;
    append_one(&engine, &partition, 70).await;
    let at = |offset, timestamp| Some(TimedOffset { offset, timestamp });
    // First of the lane, then of segments.
    for log_start in [2, 4] {
        delete_before(&engine, &partition, log_start).await;
        let newest = if log_start == 2 { at(3, 80) } else { at(5, 70) };
        assert_eq!(partition.max_timestamp().await.unwrap(), newest);
        let earliest = if log_start == 2 { at(2, 20) } else { at(4, 30) };
        assert_eq!(partition.offset_for_time(5).await.unwrap(), earliest);
        assert_eq!(partition.offset_for_time(81).await.unwrap(), None);
        split(&engine, &partition).await;
        assert_eq!(partition.max_timestamp().await.unwrap(), newest);
        assert_eq!(partition.offset_for_time(5).await.unwrap(), earliest);
    }
    delete_before(&engine, &partition, 6).await;
    assert_eq!(partition.max_timestamp().await.unwrap(), None);
}

#[tokio::test]
async fn the_largest_timestamp_is_that_of_a_record_that_compaction_left() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &COMPACT).await;
    let partition = open(&engine, topic, 0);
    for (timestamp, key) in [(90, "a"), (20, "b"), (30, "a")] {
        let batch = BatchBuilder::new(0).record(timestamp, Some(key.as_bytes()), Some(b"x"));
        append(&engine, &partition, batch).await;
    }
    split(&engine, &partition).await;
    eventually("it is compacted", async || partition.manifest().first_dirty_offset == 3).await;
    let newest = Some(TimedOffset { offset: 2, timestamp: 30 });
    assert_eq!(partition.max_timestamp().await.unwrap(), newest);
    assert_eq!(partition.offset_for_time(31).await.unwrap(), None);
}
