//! Reading from storage: in blocks and ahead, from files that are removed meanwhile, and around
//! damage.

use std::sync::Arc;

use bytes::Bytes;
use freshet_engine::Engine;
use freshet_partition::Partition;
use freshet_partition::read::ReadError;
use freshet_storage::lane::LaneFile;
use freshet_storage::lane::reader::LaneReader;
use freshet_storage::lane::writer::LaneSettings;
use freshet_wire::ids::Incarnation;
use freshet_wire::records::BatchBuilder;

use crate::fixture::{Cluster, append, create_topic, open};
use crate::lane_fixture::{
    CLUSTER, Folder, OpenLane, block_cache, eventually, small_files, stored,
};

/// Bytes of a record; each batch has one.
const VALUE_BYTES: usize = 60_000;

fn batch(number: i64) -> BatchBuilder {
    batch_of(number, VALUE_BYTES)
}

fn batch_of(number: i64, value_bytes: usize) -> BatchBuilder {
    let value = vec![u8::try_from(number % 251).unwrap(); value_bytes];
    BatchBuilder::new(0).record(1_700_000_000_000, None, Some(&value))
}

/// An engine that keeps nothing hot, and a partition with so many batches in its lane.
async fn written(batches: i64) -> (Cluster, Arc<Engine>, Arc<Partition>) {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    cluster.settings.lane = LaneSettings { file_bytes_first: 64 << 20, ..small_files(64 << 20) };
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
    let partition = open(&engine, topic, 0);
    for number in 0..batches {
        append(&engine, &partition, batch(number)).await;
    }
    (cluster, engine, partition)
}

async fn split(engine: &Engine, partition: &Partition) {
    engine.lane.roll().await.unwrap();
    eventually("the file is split", async || partition.unsplit_count() == 0).await;
}

/// Reads as a consumer does that takes about one batch at a time.
async fn follow(partition: &Partition) -> i64 {
    let mut offset = 0;
    loop {
        let read = partition.read(offset, VALUE_BYTES + 1_000, true).await.unwrap();
        let before = offset;
        for batch in read.batches() {
            assert_eq!(batch.base_offset(), offset);
            let value = batch.payload();
            let expected = u8::try_from(offset % 251).unwrap();
            assert_eq!(value[value.len() / 2], expected, "offset {offset}");
            offset = batch.last_offset() + 1;
        }
        if offset == before {
            return offset;
        }
    }
}

fn counted(engine: &Engine, name: &str) -> u64 {
    let text = engine.settings.metrics.render();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// Checks that few reads of storage served many reads of a client, and read no byte twice.
fn assert_read_in_blocks(engine: &Engine, batches: i64) {
    let loads = counted(engine, "freshet_block_loads_total");
    assert!(loads <= 16, "{loads} reads of storage for {batches} batches");
    let loaded = counted(engine, "freshet_block_loaded_bytes_total");
    let most = u64::try_from(batches).unwrap() * (VALUE_BYTES as u64 + 10_000);
    assert!(loaded <= most, "{loaded} bytes for {batches} batches");
    assert!(counted(engine, "freshet_read_ahead_bytes_total") > loaded / 2, "read ahead");
}

#[tokio::test]
async fn a_reader_that_goes_on_has_lanes_read_in_blocks() {
    let batches = 200;
    let (_cluster, engine, partition) = written(batches).await;
    assert_eq!(follow(&partition).await, batches);
    assert_read_in_blocks(&engine, batches);
}

#[tokio::test]
async fn a_reader_that_goes_on_has_segments_read_in_blocks() {
    let batches = 200;
    let (_cluster, engine, partition) = written(batches).await;
    split(&engine, &partition).await;
    assert_eq!(follow(&partition).await, batches);
    assert_read_in_blocks(&engine, batches);
}

#[tokio::test]
async fn nothing_is_read_of_a_large_batch_that_does_not_fit() {
    let (_cluster, engine, partition) = written(0).await;
    let (batches, value_bytes) = (20, 200_000);
    for number in 0..batches {
        append(&engine, &partition, batch_of(number, value_bytes)).await;
    }
    split(&engine, &partition).await;
    let fits_none = partition.read(0, value_bytes / 2, false).await.unwrap();
    assert_eq!(fits_none.bytes, 0);
    let mut bytes = 0;
    for offset in 0..batches {
        let read = partition.read(offset, value_bytes * 3 / 2, true).await.unwrap();
        assert_eq!(read.batches().count(), 1);
        bytes += read.bytes as u64;
    }
    let served = ["memory", "storage"].map(|source| {
        counted(&engine, &format!("freshet_block_served_bytes_total{{source=\"{source}\"}}"))
    });
    assert_eq!(served.iter().sum::<u64>(), bytes);
}

#[tokio::test]
async fn readers_of_the_same_records_share_what_is_read() {
    let batches = 100;
    let (_cluster, engine, partition) = written(batches).await;
    split(&engine, &partition).await;
    let readers = (0..8).map(|_| follow(&partition));
    assert_eq!(futures::future::join_all(readers).await, [batches; 8]);
    assert_read_in_blocks(&engine, batches);
}

#[tokio::test]
async fn what_is_split_while_it_is_read_is_read_to_the_end() {
    let batches = 100;
    let (_cluster, engine, partition) = written(batches).await;
    let (followed, ()) = tokio::join!(follow(&partition), split(&engine, &partition));
    assert_eq!(followed, batches);
    assert_eq!(follow(&partition).await, batches);
}

#[tokio::test]
async fn a_read_waits_for_no_memory_that_clients_hold() {
    let batches = 60;
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    cluster.settings.reads.block_bytes = 1 << 20;
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
    let partition = open(&engine, topic, 0);
    for number in 0..batches {
        append(&engine, &partition, batch(number)).await;
    }
    let mut held: Vec<Vec<Bytes>> = Vec::new();
    for offset in 0..batches {
        let read = partition.read(offset, 1, true).await.unwrap();
        held.push(read.into_pieces());
    }
    assert!(engine.sources.blocks.used_bytes() <= 1 << 20);
    assert_eq!(follow(&partition).await, batches);
}

#[tokio::test]
async fn damage_is_named_and_not_served_and_a_mended_object_is() {
    let (cluster, engine, partition) = written(40).await;
    split(&engine, &partition).await;
    let objects = cluster.objects();
    let path = cluster.bucket().join(CLUSTER).join("objects").join(&objects[0]);
    let whole = std::fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[100_000] ^= 1;
    std::fs::write(&path, flipped).unwrap();
    let damaged = partition.read(0, 1 << 20, true).await;
    let Err(ReadError::Storage(what)) = damaged else { panic!("{damaged:?}") };
    assert!(what.contains("object 1/0 is damaged"), "{what}");
    assert_eq!(engine.sources.read_faults.damaged(), [what]);
    assert_eq!(counted(&engine, "freshet_damaged_reads_total"), 1);
    std::fs::write(&path, whole).unwrap();
    assert_eq!(follow(&partition).await, 40);
}

#[tokio::test]
async fn a_damaged_batch_in_a_lane_is_named_and_not_served() {
    let (cluster, _engine, partition) = written(3).await;
    let spot = partition.unsplit()[1].spot;
    let lane = freshet_storage::lane::LanePaths::new(CLUSTER, spot.incarnation);
    let path = cluster.dfs().join(lane.file(spot.file));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = usize::try_from(spot.position).unwrap() + 1_000;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let damaged = partition.read(0, 1 << 20, true).await;
    let Err(ReadError::Storage(what)) = damaged else { panic!("{damaged:?}") };
    assert!(what.contains(&format!("position {}", spot.position)), "{what}");
}

/// The file may have become another meanwhile, with other batches at the same places.
#[tokio::test]
async fn what_is_read_of_a_file_that_was_forgotten_is_gone() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 4, small_files(16 << 10)).await;
    lane.write_one_by_one(0..20, 3000).await;
    let reader = LaneReader::new(Arc::clone(&folder.disk), CLUSTER, block_cache());
    let spots = lane.recorder.seen();
    let (offset, spot) = spots[0];
    let read = reader.read(spot, 0, 0).await.unwrap().bytes;
    assert_eq!(read, stored(offset, 3000).to_bytes());
    reader.forget(Incarnation(4), LaneFile::Wal(0));
    let Err(gone) = reader.read(spot, 0, 0).await else { panic!("it was read") };
    assert!(gone.is_gone(), "{gone}");
    let (offset, spot) = *spots.last().unwrap();
    let read = reader.read(spot, 0, 0).await.unwrap().bytes;
    assert_eq!(read, stored(offset, 3000).to_bytes(), "later files stay");
}
