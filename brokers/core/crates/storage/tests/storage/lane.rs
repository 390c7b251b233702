//! A lane on a real folder: writing, rolling, reading back, fencing, and the indexes for the meter.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use freshet_storage::lane::block::{ALIGNMENT, Block, BlockKind};
use freshet_storage::lane::index::{InstallEntry, decode_checkpoint, decode_data};
use freshet_storage::lane::leftover::Leftover;
use freshet_storage::lane::queue::LaneProgress;
use freshet_storage::lane::reader::{LaneReader, replay};
use freshet_storage::lane::token::{OwnerToken, fence};
use freshet_storage::lane::writer::{FILE_BATCHES_MAX, LaneSettings};
use freshet_storage::lane::{LaneEnd, LaneError, LaneFile, LanePaths, file_numbers};
use freshet_storage::names::ManifestRef;
use freshet_storage::rules::Rules;
use freshet_wire::ids::Incarnation;
use freshet_world::env::Disk;
use freshet_world::sim::disk::SimServer;
use freshet_world::sim::faults::DiskFaults;
use freshet_world::sim::random::Seeded;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::fixture::{
    CLUSTER, Folder, OpenLane, block_cache, eventually, fence_and_seal, partition, randomness,
    small_files, stored, wal,
};

/// Kinds of all blocks up to the end, and the offsets that data blocks name.
async fn walk(
    disk: &Arc<dyn Disk>,
    paths: &LanePaths,
    incarnation: u64,
    end: LaneEnd,
) -> Result<(Vec<BlockKind>, Vec<i64>), LaneError> {
    let (mut kinds, mut offsets) = (Vec::new(), Vec::new());
    let incarnation = Incarnation(incarnation);
    replay(disk.as_ref(), paths, incarnation, end, Rules::full(), &mut |replayed| {
        let head = &replayed.head;
        kinds.push(head.header.kind);
        if head.header.kind == BlockKind::Data {
            let entries = decode_data(head.index(), &head.header).unwrap();
            offsets.extend(entries.iter().map(|entry| entry.base_offset));
        }
        Ok(())
    })
    .await?;
    Ok((kinds, offsets))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_read_back_across_files_and_after_a_clean_end() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 4, small_files(16 << 10)).await;
    lane.write_one_by_one(0..20, 3000).await;
    let reader = LaneReader::new(Arc::clone(&folder.disk), CLUSTER, block_cache());
    for (offset, spot) in lane.recorder.seen() {
        assert_eq!(reader.read(spot, 0, 0).await.unwrap().bytes, stored(offset, 3000).to_bytes());
    }
    assert!(lane.rolled.lock().len() >= 3, "a file is ended when it is full");
    let end = lane.lane.close().await.unwrap();
    assert!(matches!(lane.try_stage(0, stored(20, 1)), Err(LaneError::Closed(_))));
    let (kinds, offsets) = walk(&folder.disk, &lane.paths, 4, end).await.unwrap();
    assert_eq!(offsets, (0..20).collect::<Vec<_>>());
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), (BlockKind::Checkpoint, BlockKind::Close));
    assert_eq!(end.sequence, kinds.len() as u64);
}

#[tokio::test]
async fn what_arrives_together_is_written_together_in_order_and_cut() {
    let folder = Folder::new();
    let settings = LaneSettings { write_bytes_max: 4 << 10, ..LaneSettings::default() };
    let lane = OpenLane::start(&folder.disk, 1, settings).await;
    for offset in 0..100 {
        lane.stage(stored(offset, 500));
    }
    lane.recorder.wait_for(100).await;
    let durable: Vec<i64> = lane.recorder.seen().iter().map(|(offset, _)| *offset).collect();
    assert_eq!(durable, (0..100).collect::<Vec<_>>());
    let end = lane.lane.close().await.unwrap();
    let (kinds, _) = walk(&folder.disk, &lane.paths, 1, end).await.unwrap();
    let writes = kinds.iter().filter(|kind| **kind == BlockKind::Data).count();
    let in_a_write = (4 << 10) / stored(0, 500).size_bytes();
    assert_eq!(writes, 100_usize.div_ceil(in_a_write), "{in_a_write} batches fit a write");
}

#[tokio::test]
async fn a_file_is_ended_when_it_holds_many_batches_however_small() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, LaneSettings::default()).await;
    let batches = 2 * FILE_BATCHES_MAX;
    for offset in 0..i64::try_from(batches).unwrap() {
        lane.stage(stored(offset, 1));
    }
    lane.recorder.wait_for(batches).await;
    let rolled = lane.rolled.lock();
    let held: Vec<_> = rolled.iter().map(|file| file.batches.len()).collect();
    let in_a_write = LaneSettings::default().write_bytes_max / stored(0, 1).size_bytes();
    assert!(!held.is_empty() && held[0] <= FILE_BATCHES_MAX + in_a_write, "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_write_ages_while_storage_hangs_and_not_while_the_queue_moves() {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap();
    let (server, begun) = (SimServer::new(Seeded::new(1), DiskFaults::none()), Instant::now());
    let served = server.clone();
    let _serving = AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(1)).await;
            served.advance(ms(begun.elapsed()));
        }
    }));
    let (host, second) = (1, Duration::from_secs(1));
    let settings = LaneSettings { write_bytes_max: 1, ..small_files(1 << 20) };
    let lane = OpenLane::start(&server.mount(host), 1, settings).await;
    let idle = LaneProgress { pending: Duration::ZERO, quick_write: None };
    assert_eq!(lane.lane.progress(), idle);
    // Each batch has a write of its own, and the last one waits for seconds.
    (0..1000).for_each(|offset| lane.stage(stored(offset, 10)));
    let staged = Instant::now();
    while lane.recorder.seen().len() < 1000 {
        sleep(Duration::from_millis(5)).await;
        assert!(lane.lane.progress().pending < second / 10, "{:?}", lane.lane.progress());
    }
    assert!(staged.elapsed() > 3 * second, "{:?}", staged.elapsed());
    sleep(second / 10).await;
    let LaneProgress { pending, quick_write } = lane.lane.progress();
    assert!(pending.is_zero() && quick_write.is_some_and(|ago| ago < second / 5));
    server.hang(host, ms(begun.elapsed() + 5 * second));
    lane.stage(stored(1000, 10));
    sleep(4 * second).await;
    let hanging = lane.lane.progress();
    assert!(hanging.pending > 3 * second && hanging.quick_write > Some(3 * second));
    // A write that took so long is no proof that storage works; the next one is.
    lane.recorder.wait_for(1001).await;
    sleep(second / 10).await;
    let moved = lane.lane.progress();
    assert!(moved.pending.is_zero() && moved.quick_write > Some(4 * second), "{moved:?}");
    lane.write_one_by_one(1001..1002, 10).await;
    sleep(second / 10).await;
    assert!(lane.lane.progress().quick_write.is_some_and(|ago| ago < second / 5));
}

/// Retires all files as the splitter does, without splitting them.
async fn retire_all(lane: &OpenLane) {
    let rolled: Vec<_> = lane.rolled.lock().drain(..).collect();
    for file in rolled {
        lane.lane.retire(file.leftover.file).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_used_again_and_blocks_of_their_former_life_do_not_count() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 3, small_files(64 << 10)).await;
    for life in 0..6 {
        lane.write_one_by_one(life * 4..life * 4 + 4, 3000).await;
        lane.lane.roll().await.unwrap();
        retire_all(&lane).await;
        let names = folder.disk.list(&lane.paths.folder()).await.unwrap();
        let recycled = file_numbers(&names, "spare").len();
        assert!((1..=2).contains(&recycled), "{recycled} recycled");
    }
    lane.write_one_by_one(24..25, 3000).await;
    let (paths, _) = lane.crash().await;
    let last = Bytes::from(std::fs::read(folder.path(&wal(&paths, 6))).unwrap());
    let blocks = (0..last.len()).step_by(ALIGNMENT).map(|at| Block::parse(&last.slice(at..)));
    let sequences: Vec<u64> = blocks.flatten().map(|block| block.header.sequence).collect();
    assert!(sequences[2..].iter().any(|old| *old < sequences[0]), "no former life: {sequences:?}");
    let seal = fence_and_seal(&folder.disk, &paths, 3).await.unwrap();
    let (kinds, offsets) = walk(&folder.disk, &paths, 3, seal.end).await.unwrap();
    assert_eq!(offsets, [24], "only what the last life wrote");
    assert_eq!(kinds, [BlockKind::Checkpoint, BlockKind::Data]);
}

#[tokio::test]
async fn as_many_files_are_kept_as_are_retired_at_once_and_a_few_of_a_slow_lane() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 3, small_files(64 << 10)).await;
    for offset in 0..12 {
        lane.write_one_by_one(offset..offset + 1, 100).await;
        lane.lane.roll().await.unwrap();
    }
    retire_all(&lane).await;
    let recycled = async || {
        let names = folder.disk.list(&lane.paths.folder()).await.unwrap();
        file_numbers(&names, "spare").len()
    };
    assert_eq!(recycled().await, 8);
    lane.lane.keep_few_recycled().await.unwrap();
    assert_eq!(recycled().await, 2);
    // The recycled files that are left are written again.
    let made = folder.path(&wal(&lane.paths, 14));
    for offset in 12..14 {
        lane.write_one_by_one(offset..offset + 1, 100).await;
        lane.lane.roll().await.unwrap();
    }
    eventually("the next file is made of a recycled one", async || made.exists()).await;
    assert!(recycled().await < 2);
}

#[tokio::test]
async fn a_clean_end_leaves_no_recycled_files() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 3, small_files(64 << 10)).await;
    for offset in 0..3 {
        lane.write_one_by_one(offset..offset + 1, 100).await;
        lane.lane.roll().await.unwrap();
    }
    retire_all(&lane).await;
    lane.lane.close().await.unwrap();
    let names = folder.disk.list(&lane.paths.folder()).await.unwrap();
    assert_eq!(file_numbers(&names, "spare"), [0_u64; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn producers_wait_while_the_queue_is_full_and_no_longer_than_the_lane_lives() {
    let folder = Folder::new();
    let settings = LaneSettings { queue_bytes_max: 1, ..small_files(64 << 10) };
    let lane = OpenLane::start(&folder.disk, 3, settings).await;
    lane.lane.room().await;
    for offset in 0..20 {
        lane.stage(stored(offset, 1000));
    }
    lane.lane.room().await;
    assert_eq!(lane.lane.pinned_bytes(), 0, "there is room once everything was taken");
    lane.recorder.wait_for(20).await;
    let successor = Incarnation(9);
    fence(folder.disk.as_ref(), &lane.paths, successor, randomness().as_ref()).await.unwrap();
    lane.stage(stored(20, 1000));
    lane.lane.room().await;
    eventually("the lane ends", async || lane.liveness.is_down()).await;
    lane.lane.room().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_finds_all_that_was_acked_before_a_crash() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 2, small_files(16 << 10)).await;
    lane.write_one_by_one(0..12, 2000).await;
    let (paths, _) = lane.crash().await;
    let seal = fence_and_seal(&folder.disk, &paths, 2).await.unwrap();
    let (_, offsets) = walk(&folder.disk, &paths, 2, seal.end).await.unwrap();
    assert_eq!(offsets, (0..12).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_checkpoint_names_what_earlier_files_installed() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, small_files(64 << 10)).await;
    lane.write_one_by_one(0..1, 10).await;
    let entry =
        InstallEntry { partition: partition(5), manifest: ManifestRef { epoch: 3, number: 8 } };
    let installed = Arc::clone(&lane.installed);
    let effect = Box::new(move || installed.0.lock().push(entry));
    lane.lane.install(vec![entry], effect).await.unwrap();
    lane.lane.roll().await.unwrap();
    let bytes = std::fs::read(folder.path(&lane.paths.file(LaneFile::Wal(1)))).unwrap();
    let first = Block::parse(&bytes.into()).unwrap();
    assert_eq!(first.header.kind, BlockKind::Checkpoint);
    assert_eq!(decode_checkpoint(first.index).unwrap(), (1, vec![entry]));
    lane.lane.roll().await.unwrap();
    assert_eq!(lane.rolled.lock().len(), 1, "a file that holds nothing is not ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_ends_the_broker_before_it_acks_again() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, LaneSettings::default()).await;
    lane.write_one_by_one(0..3, 10).await;
    lane.token.check().await.unwrap();
    let successor = Incarnation(2);
    fence(folder.disk.as_ref(), &lane.paths, successor, randomness().as_ref()).await.unwrap();
    assert!(matches!(lane.token.check().await, Err(LaneError::TokenLost(Incarnation(1)))));
    lane.stage(stored(3, 10));
    eventually("the broker stands down", async || lane.liveness.is_down()).await;
    assert_eq!(lane.recorder.seen().len(), 3, "what was written after the fence is not acked");
    assert!(matches!(lane.try_stage(0, stored(4, 10)), Err(LaneError::Closed(_))));
    assert!(matches!(lane.lane.roll().await, Err(LaneError::Closed(_))));
}

#[tokio::test]
async fn a_fence_bars_a_broker_that_has_no_token_yet() {
    let folder = Folder::new();
    let (disk, mine) = (folder.disk.as_ref(), Incarnation(1));
    let paths = LanePaths::new(CLUSTER, mine);
    fence(disk, &paths, Incarnation(2), randomness().as_ref()).await.unwrap();
    let claimed = OwnerToken::claim(disk, &paths, mine, randomness().as_ref()).await;
    assert!(matches!(claimed, Err(LaneError::TokenLost(_))));
}

#[tokio::test]
async fn a_token_that_cannot_be_read_is_lost() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, LaneSettings::default()).await;
    for at in [0, 8, 17, 33] {
        folder.edit(&lane.paths.owner(), |bytes| bytes[at] ^= 1);
        assert!(lane.token.check().await.is_err(), "byte {at}");
        folder.edit(&lane.paths.owner(), |bytes| bytes[at] ^= 1);
        lane.token.check().await.unwrap();
    }
    folder.edit(&lane.paths.owner(), |bytes| bytes.truncate(100));
    assert!(lane.token.check().await.is_err());
}

#[tokio::test]
async fn leftovers_keep_what_the_meter_needs_and_every_damage_is_refused() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 6, LaneSettings::default()).await;
    lane.write_one_by_one(0..3, 100).await;
    lane.lane.roll().await.unwrap();
    let rolled = lane.rolled.lock().pop().unwrap();
    assert_eq!(rolled.batches.len(), 3);
    for _ in 0..2 {
        rolled.leftover.publish(folder.disk.as_ref(), &lane.paths).await.unwrap();
    }
    let bytes = std::fs::read(folder.path(&lane.paths.leftover(0))).unwrap();
    let read = Leftover::decode(&bytes.clone().into()).unwrap();
    assert_eq!((read.incarnation, read.file, read.sequences), (Incarnation(6), 0, (1, 4)));
    assert_eq!(read.blocks.len(), 3);
    for (offset, block) in (0..).zip(&read.blocks) {
        let header = block.parse_header().unwrap();
        let entries = decode_data(block.index.clone(), &header).unwrap();
        assert_eq!((&*entries[0].principal, entries[0].base_offset), ("User:alice", offset));
    }
    for at in 0..bytes.len() {
        assert!(Leftover::decode(&bytes[..at].to_vec().into()).is_err(), "cut at {at}");
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x40;
        assert!(Leftover::decode(&flipped.into()).is_err(), "byte {at}");
    }
}
