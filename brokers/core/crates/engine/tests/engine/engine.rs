//! The engine on a real folder: what a start takes over after a clean stop and after a crash.

use std::sync::Arc;
use std::time::Duration;

use freshet_engine::{Engine, StartError};
use freshet_metadata::cluster::ClusterError;
use freshet_metadata::schema::IncarnationState;
use freshet_partition::Partition;
use freshet_storage::lane::LaneError;
use freshet_wire::ids::{PartitionId, TopicId};
use freshet_wire::records::{BatchBuilder, ValidatedBatch};
use kafka_protocol::ResponseError;
use tokio::time::timeout;

use crate::fixture::{Cluster, append, create_topic, open, read_all};
use crate::lane_fixture::{eventually, produced};

const PRODUCER: (i64, i16) = (7, 0);
/// A time in 2023: long ago, and not so long that any default would expire it.
const SOME_TIME_MS: i64 = 1_700_000_000_000;

/// The `number`th batch of the producer: three records.
fn batch(number: i32) -> BatchBuilder {
    produced(PRODUCER, number * 3, SOME_TIME_MS + i64::from(number) * 10, 3)
}

async fn append_batches(
    engine: &Engine,
    partition: &Arc<Partition>,
    numbers: std::ops::Range<i32>,
) {
    for number in numbers {
        append(engine, partition, batch(number)).await;
    }
}

/// Waits until everything is split that was written so far.
async fn split(engine: &Engine, partition: &Partition) {
    engine.lane.roll().await.unwrap();
    eventually("the file is split", async || partition.unsplit_count() == 0).await;
}

fn values(batches: i32) -> Vec<String> {
    (0..batches * 3).map(|number| format!("7/{number}")).collect()
}

async fn assert_holds(partition: &Partition, batches: i32) {
    let records = read_all(partition, 0).await;
    let offsets: Vec<i64> = records.iter().map(|(offset, ..)| *offset).collect();
    assert_eq!(offsets, (0..i64::from(batches) * 3).collect::<Vec<_>>());
    assert_eq!(records.into_iter().map(|(.., value)| value).collect::<Vec<_>>(), values(batches));
}

/// Retries of the last five batches are recognised, a hole is refused, and the next is appended.
async fn assert_idempotent(engine: &Engine, partition: &Arc<Partition>, batches: i32) {
    for number in batches - 5..batches {
        let offset = append(engine, partition, batch(number)).await;
        assert_eq!(offset, i64::from(number) * 3, "a retry of batch {number}");
    }
    let hole = ValidatedBatch::trusted(batch(batches + 1).build()).unwrap();
    let judged = partition.stage(&engine.lane, hole, &"User:alice".into(), 0);
    assert_eq!(judged.unwrap_err(), ResponseError::OutOfOrderSequenceNumber);
    assert_eq!(partition.bounds().end, i64::from(batches) * 3, "nothing was appended");
}

/// Checks that extents name only the present lane, and that only indexes are left of earlier lanes.
async fn assert_settled(cluster: &Cluster, engine: &Engine, id: PartitionId, earlier: &[u64]) {
    let mine = engine.incarnation;
    eventually("extents are trimmed", async || {
        let topics = engine.view.topics();
        let record = &topics.partition(id).unwrap().record;
        record.extents.iter().all(|extent| extent.incarnation == mine)
    })
    .await;
    for incarnation in earlier {
        eventually("the dead lane is retired", async || {
            cluster.lane_files(*incarnation, ".wal").is_empty()
        })
        .await;
        assert!(!cluster.lane_files(*incarnation, ".idx").is_empty(), "the meter needs them");
    }
}

async fn state_of(engine: &Engine, incarnation: u64) -> IncarnationState {
    let all = engine.metadata.incarnations().await.unwrap();
    all[&freshet_wire::ids::Incarnation(incarnation)].record.state
}

#[tokio::test]
async fn a_clean_stop_leaves_everything_split_and_the_next_start_goes_on() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 2, &[("retention.ms", "-1")]).await;
    let partition = open(&engine, topic, 0);
    append_batches(&engine, &partition, 0..12).await;
    let first_epoch = partition.epoch();
    engine.stop().await;
    assert_eq!(engine.liveness.reason().as_deref(), Some("stopped"));
    let after = partition.durable(1000).await;
    assert_eq!(after, Err(ResponseError::NotLeaderOrFollower));
    assert_eq!(engine.fresh().await, Err(ResponseError::NotLeaderOrFollower));
    assert_eq!(partition.unsplit_count(), 0, "a clean stop splits all");
    assert!(!cluster.objects().is_empty() && !cluster.manifests(partition.id()).is_empty());
    drop(engine);

    let engine = cluster.start().await;
    assert_eq!(state_of(&engine, 1).await, IncarnationState::Closed);
    let partition = open(&engine, topic, 0);
    assert_eq!(partition.unsplit_count(), 0);
    assert_holds(&partition, 12).await;
    assert_idempotent(&engine, &partition, 12).await;
    assert!(partition.epoch() > first_epoch);
    assert_eq!(partition.end_of_epoch(first_epoch), Some((first_epoch, 36)));
    append_batches(&engine, &partition, 12..14).await;
    assert_holds(&partition, 14).await;
    assert_eq!(partition.epoch_of(35), first_epoch);
    assert_eq!(partition.epoch_of(36), partition.epoch());
    assert_settled(&cluster, &engine, partition.id(), &[1]).await;
    engine.stop().await;
}

#[tokio::test]
async fn after_each_crash_all_that_was_acked_is_there() {
    let cluster = Cluster::new();
    let mut epochs = Vec::new();
    let mut topic = TopicId::nil();
    for generation in 0..4 {
        let engine = cluster.start().await;
        if generation == 0 {
            topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
        } else {
            assert_eq!(state_of(&engine, generation).await, IncarnationState::Sealed);
        }
        let partition = open(&engine, topic, 0);
        let written = i32::try_from(generation).unwrap() * 12;
        assert_holds(&partition, written).await;
        if generation > 0 {
            assert_idempotent(&engine, &partition, written).await;
            let earlier: Vec<u64> = (1..=generation).collect();
            assert_settled(&cluster, &engine, partition.id(), &earlier).await;
        }
        for (number, epoch) in epochs.iter().enumerate() {
            let end = (number as i64 + 1) * 36;
            assert_eq!(partition.end_of_epoch(*epoch), Some((*epoch, end)));
        }
        epochs.push(partition.epoch());
        append_batches(&engine, &partition, written..written + 7).await;
        split(&engine, &partition).await;
        // Some of what the next incarnation must know is in the manifest, some in the lane.
        append_batches(&engine, &partition, written + 7..written + 12).await;
        assert!(partition.unsplit_count() > 0);
        drop(engine);
    }
    assert!(epochs.is_sorted());
    assert_eq!(cluster.start().await.incarnation.0, 5);
}

#[tokio::test]
async fn a_second_start_ends_the_first_broker() {
    let cluster = Cluster::new();
    let first = cluster.start().await;
    let topic = create_topic(&first, "t", 1, &[("retention.ms", "-1")]).await;
    let theirs = open(&first, topic, 0);
    append(&first, &theirs, batch(0)).await;
    let second = cluster.start().await;
    let late = ValidatedBatch::trusted(batch(1).build()).unwrap();
    if let Ok(staged) = theirs.stage(&first.lane, late, &"User:alice".into(), 0) {
        let acked = theirs.durable(staged.end_offset).await;
        assert_eq!(acked, Err(ResponseError::NotLeaderOrFollower));
    }
    first.liveness.ended().await;
    assert_eq!(first.fresh().await, Err(ResponseError::NotLeaderOrFollower));
    second.fresh().await.unwrap();
    assert_holds(&open(&second, topic, 0), 1).await;
}

#[tokio::test]
async fn a_broker_that_is_fenced_stands_down_though_nobody_takes_over() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    // As the controller does. Nobody touches the token of the lane.
    engine.metadata.mark_fenced(None, engine.incarnation).await.unwrap();
    let ended = timeout(Duration::from_secs(20), engine.liveness.ended()).await;
    assert!(ended.is_ok(), "it goes on");
    assert_eq!(engine.fresh().await, Err(ResponseError::NotLeaderOrFollower));
}

/// Reads come from memory, lane and segments alike.
#[tokio::test]
async fn offsets_are_found_by_time_wherever_records_lie() {
    for hot_bytes in [0, 1 << 20] {
        let mut cluster = Cluster::new();
        cluster.settings.hot_bytes = hot_bytes;
        let engine = cluster.start().await;
        let topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
        let partition = open(&engine, topic, 0);
        assert_eq!(partition.offset_for_time(0).await.unwrap(), None);
        assert_eq!(partition.max_timestamp().await.unwrap(), None);
        append_batches(&engine, &partition, 0..4).await;
        split(&engine, &partition).await;
        append_batches(&engine, &partition, 4..8).await;
        // Out of order: older than what is before.
        append(&engine, &partition, produced((8, 0), 0, SOME_TIME_MS + 5, 1)).await;
        let expected = |timestamp: i64| {
            let of_record = |offset: i64| SOME_TIME_MS + offset / 3 * 10 + offset % 3;
            (0..24).map(|offset| (offset, of_record(offset))).find(|(_, at)| *at >= timestamp)
        };
        for timestamp in SOME_TIME_MS - 1..SOME_TIME_MS + 75 {
            let record = partition.offset_for_time(timestamp).await.unwrap();
            let record = record.map(|record| (record.offset, record.timestamp));
            assert_eq!(record, expected(timestamp), "{}", timestamp - SOME_TIME_MS);
        }
        let newest = partition.max_timestamp().await.unwrap().unwrap();
        assert_eq!((newest.offset, newest.timestamp), (23, SOME_TIME_MS + 72));
    }
}

/// Writes, stops cleanly, and returns the last file of the lane that is left.
async fn stopped(cluster: &Cluster) -> std::path::PathBuf {
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
    append_batches(&engine, &open(&engine, topic, 0), 0..5).await;
    engine.stop().await;
    let lane = freshet_storage::lane::LanePaths::new("c", engine.incarnation).folder();
    let files = cluster.lane_files(1, ".wal");
    // The very last file was created ahead of use.
    cluster.dfs().join(lane).join(&files[files.len() - 2])
}

#[tokio::test]
async fn a_damaged_checkpoint_stops_the_start_instead_of_emptying_all_topics() {
    let cluster = Cluster::new();
    let last = stopped(&cluster).await;
    let mut bytes = std::fs::read(&last).unwrap();
    bytes[70] ^= 1;
    std::fs::write(&last, &bytes).unwrap();
    let started = cluster.try_start().await.map(|_| ());
    assert!(matches!(started, Err(StartError::Lane(LaneError::Damaged { .. }))), "{started:?}");
    bytes[70] ^= 1;
    std::fs::write(&last, &bytes).unwrap();
    let engine = cluster.start().await;
    let topic = engine.view.topics().by_name("t").unwrap().record.id;
    assert_holds(&open(&engine, topic, 0), 5).await;
}

#[tokio::test]
async fn a_lost_last_file_stops_the_start_instead_of_emptying_all_topics() {
    let cluster = Cluster::new();
    let last = stopped(&cluster).await;
    let aside = cluster.dfs().join("aside");
    std::fs::rename(&last, &aside).unwrap();
    let started = cluster.try_start().await.map(|_| ());
    assert!(matches!(started, Err(StartError::Lane(LaneError::Damaged { .. }))), "{started:?}");
    std::fs::rename(&aside, &last).unwrap();
    let engine = cluster.start().await;
    let topic = engine.view.topics().by_name("t").unwrap().record.id;
    assert_holds(&open(&engine, topic, 0), 5).await;
}

#[tokio::test]
async fn a_partition_without_its_manifest_is_offline_alone_and_nothing_is_deleted() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 2, &[("retention.ms", "-1")]).await;
    for index in 0..2 {
        let partition = open(&engine, topic, index);
        append_batches(&engine, &partition, 0..5).await;
    }
    engine.stop().await;
    let (lost, kept) = (PartitionId::new(topic, 0), PartitionId::new(topic, 1));
    let folder = freshet_storage::cold::manifest::Manifest::folder("c", lost);
    let folder = cluster.bucket().join(folder);
    let aside = cluster.folder.path().join("aside");
    std::fs::rename(&folder, &aside).unwrap();
    drop(engine);
    let objects = cluster.objects();

    let engine = cluster.start().await;
    assert!(engine.partitions.get(lost).is_none());
    assert_eq!(engine.partitions.offline().len(), 1);
    assert_holds(&engine.partitions.get(kept).unwrap(), 5).await;
    engine.stop().await;
    assert_eq!(cluster.objects(), objects);
    assert!(!cluster.lane_files(1, ".wal").is_empty(), "its records may lie there");
    drop(engine);

    std::fs::rename(&aside, &folder).unwrap();
    let engine = cluster.start().await;
    assert_holds(&engine.partitions.get(lost).unwrap(), 5).await;
}

#[tokio::test]
async fn a_start_shows_the_leaders_and_epochs_under_which_it_serves() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 3, &[]).await;
    drop(engine);
    for _ in 0..2 {
        let engine = cluster.start().await;
        let snapshot = engine.view.snapshot();
        for index in 0..3 {
            let partition = open(&engine, topic, index);
            let shown = &snapshot.topics.partition(partition.id()).unwrap().record;
            assert_eq!(shown.leader, Some(engine.incarnation));
            assert_eq!(shown.epoch, partition.epoch());
        }
        engine.stop().await;
    }
}

#[tokio::test]
async fn the_slot_names_the_newest_start_and_each_earlier_one_has_its_end() {
    let cluster = Cluster::new();
    let mut numbers = Vec::new();
    for stops in [true, false, false] {
        let engine = cluster.start().await;
        numbers.push(engine.incarnation);
        let slot = engine.metadata.slot(engine.settings.slot).await.unwrap().unwrap();
        assert_eq!(slot.record.incarnation, engine.incarnation);
        for (number, stored) in engine.metadata.incarnations().await.unwrap() {
            let has_ended = stored.record.ended_at_ms.is_some();
            assert_eq!(has_ended, number < engine.incarnation, "{stored:?}");
        }
        if stops {
            engine.stop().await;
        }
    }
    assert!(numbers.is_sorted());
}

#[tokio::test]
async fn the_term_of_an_only_broker_ends_with_it_or_with_an_election() {
    let cluster = Cluster::new();
    let first = cluster.start().await;
    let term = first.term().unwrap();
    assert_eq!(term.incarnation(), first.incarnation);
    first.metadata.allocate_producer_ids(Some(term.fence()), 1).await.unwrap();
    let second = cluster.start().await;
    assert_ne!(second.term(), first.term());
    let later = second.term().unwrap().fence();
    second.metadata.allocate_producer_ids(Some(later), 1).await.unwrap();
    let late = first.metadata.allocate_producer_ids(Some(term.fence()), 1).await;
    assert_eq!(late, Err(ClusterError::Fenced(first.incarnation)));
    // The cluster got more brokers, and one was elected.
    let elected = second.metadata.claim_controller(second.registration(), None).await.unwrap();
    let late = second.metadata.allocate_producer_ids(Some(later), 1).await;
    assert_eq!(late, Err(ClusterError::Deposed));
    let third = cluster.start().await;
    let only = third.term().unwrap().fence();
    third.metadata.allocate_producer_ids(Some(only), 1).await.unwrap();
    assert_ne!(only.term_revision, Some(0), "it is behind {elected:?}");
}
