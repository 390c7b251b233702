//! What a successor reads of a dead lane: headers and indexes, the unsure blocks in full, and
//! nothing of what files held in an earlier life.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use freshet_storage::lane::block::{ALIGNMENT, BlockHeader, HEADER_BYTES};
use freshet_storage::lane::reader::replay;
use freshet_storage::lane::seal::seal;
use freshet_storage::lane::token::fence;
use freshet_storage::lane::writer::LaneSettings;
use freshet_storage::lane::{LaneEnd, LaneError, LanePaths};
use freshet_storage::rules::Rules;
use freshet_wire::ids::Incarnation;
use freshet_world::env::Disk;

use crate::fixture::{Folder, OpenLane, fence_and_seal, randomness, small_files, wal};
use crate::watched::{Watched, Watcher};

/// Counts the bytes that are read of a disk.
#[derive(Default)]
struct Counting(AtomicU64);

impl Watcher for Counting {
    fn has_read(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The numbers of all blocks up to the end.
async fn sequences(
    disk: &dyn Disk,
    paths: &LanePaths,
    end: LaneEnd,
) -> Result<Vec<u64>, LaneError> {
    let mut sequences = Vec::new();
    replay(disk, paths, Incarnation(1), end, Rules::full(), &mut |block| {
        sequences.push(block.head.header.sequence);
        Ok(())
    })
    .await?;
    Ok(sequences)
}

#[tokio::test]
async fn records_that_are_surely_durable_are_not_read() {
    const RECORD_BYTES: usize = 900 << 10;
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, small_files(12 << 20)).await;
    lane.write_one_by_one(0..30, RECORD_BYTES).await;
    let (paths, _) = lane.crash().await;
    fence(folder.disk.as_ref(), &paths, Incarnation(99), randomness().as_ref()).await.unwrap();
    let read = Arc::new(Counting::default());
    let disk = Watched::new(&folder.disk, &read);
    let sealed = seal(&disk, &paths, Incarnation(1), Rules::full()).await.unwrap();
    // The rest of the last file and the one made ahead are looked through for proofs of damage,
    // and the last block is read for its copy, and again with that.
    let rests = 2 * (12 << 20) + 4 * RECORD_BYTES as u64;
    let sealing = read.0.swap(0, Ordering::Relaxed);
    assert!(sealing < rests + (1 << 20), "{sealing} bytes");
    assert_eq!(
        sequences(&disk, &paths, sealed.end).await.unwrap().len() as u64,
        sealed.end.sequence
    );
    let replaying = read.0.load(Ordering::Relaxed);
    assert!(replaying < 2 * RECORD_BYTES as u64 + 30 * (16 << 10), "{replaying} bytes");
}

#[tokio::test]
async fn a_sure_block_whose_records_rot_ends_no_lane() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, LaneSettings::default()).await;
    lane.write_one_by_one(0..4, 5000).await;
    let (paths, recorder) = lane.crash().await;
    let second = usize::try_from(recorder.seen()[1].1.position).unwrap();
    folder.edit(&wal(&paths, 0), |bytes| bytes[second + 100] ^= 1);
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!(sealed.end, LaneEnd { file: 0, sequence: 5 });
}

/// A lane of two files, of which the second goes on over the first blocks of an earlier one, and
/// that file's bytes from its second block on.
async fn recycled(folder: &Folder, blocks_kept: i64) -> (LanePaths, usize) {
    let lane = OpenLane::start(&folder.disk, 1, small_files(64 << 10)).await;
    // Shorter records in as many pages: what is torn differs.
    lane.write_one_by_one(0..6, 4500).await;
    let earlier = std::fs::read(folder.path(&wal(&lane.paths, 0))).unwrap();
    lane.lane.roll().await.unwrap();
    lane.write_one_by_one(6..6 + blocks_kept, 5000).await;
    let (paths, recorder) = lane.crash().await;
    let last = recorder.seen().last().unwrap().1;
    let end = (usize::try_from(last.position).unwrap() + last.length as usize)
        .next_multiple_of(ALIGNMENT);
    folder.edit(&wal(&paths, 1), |bytes| bytes[end..].copy_from_slice(&earlier[end..]));
    (paths, end)
}

#[tokio::test]
async fn blocks_of_a_files_earlier_life_do_not_count() {
    for blocks_kept in 1..5 {
        let folder = Folder::new();
        let (paths, end) = recycled(&folder, blocks_kept).await;
        let bytes = Bytes::from(std::fs::read(folder.path(&wal(&paths, 1))).unwrap());
        let stale = BlockHeader::parse(&bytes.slice(end..)).unwrap();
        assert!(stale.sequence < 8, "an old block lies right behind the end: {stale:?}");
        let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
        let expected = 8 + blocks_kept.unsigned_abs();
        assert_eq!(sealed.end, LaneEnd { file: 1, sequence: expected });
        let recovered = sequences(folder.disk.as_ref(), &paths, sealed.end).await.unwrap();
        assert_eq!(recovered, (1..=expected).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_torn_block_over_an_old_one_is_the_end() {
    for torn_at in [0, 100, 4096, 5000] {
        let folder = Folder::new();
        let (paths, end) = recycled(&folder, 2).await;
        let earlier = std::fs::read(folder.path(&wal(&paths, 0))).unwrap();
        let last = end - 2 * ALIGNMENT;
        let torn = last + torn_at;
        folder.edit(&wal(&paths, 1), |bytes| bytes[torn..end].copy_from_slice(&earlier[torn..end]));
        let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
        assert_eq!(sealed.end, LaneEnd { file: 1, sequence: 9 }, "torn at {torn_at}");
    }
}

#[tokio::test]
async fn a_file_that_was_made_ahead_of_an_old_one_holds_nothing() {
    let folder = Folder::new();
    let (paths, _) = recycled(&folder, 2).await;
    let earlier = std::fs::read(folder.path(&wal(&paths, 0))).unwrap();
    folder.edit(&wal(&paths, 2), |bytes| bytes.copy_from_slice(&earlier));
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!(sealed.end, LaneEnd { file: 1, sequence: 10 });
    // Also where it is the only file that is left.
    std::fs::remove_file(folder.path(&paths.seal())).unwrap();
    for number in 0..2 {
        std::fs::remove_file(folder.path(&wal(&paths, number))).unwrap();
    }
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await;
    assert!(matches!(sealed, Err(LaneError::Damaged { .. })), "{sealed:?}");
}

/// A client writes bytes that look like a block of a later release into its records.
#[tokio::test]
async fn a_later_version_counts_only_with_the_lanes_nonce() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, LaneSettings::default()).await;
    lane.write_one_by_one(0..2, 5000).await;
    let (paths, recorder) = lane.crash().await;
    let last = usize::try_from(recorder.seen()[1].1.position).unwrap();
    let end = (last + 5000).next_multiple_of(ALIGNMENT);
    let header = folder_bytes(&folder, &paths, last / ALIGNMENT * ALIGNMENT);
    let mut later = header.clone();
    later[4] = 77;
    let mut forged = later.clone();
    forged[44] ^= 1;
    folder.edit(&wal(&paths, 0), |bytes| bytes[end..end + HEADER_BYTES].copy_from_slice(&forged));
    fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    std::fs::remove_file(folder.path(&paths.seal())).unwrap();
    folder.edit(&wal(&paths, 0), |bytes| bytes[end..end + HEADER_BYTES].copy_from_slice(&later));
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await;
    assert!(matches!(sealed, Err(LaneError::Damaged { .. })), "{sealed:?}");
}

fn folder_bytes(folder: &Folder, paths: &LanePaths, at: usize) -> Vec<u8> {
    let bytes = std::fs::read(folder.path(&wal(paths, 0))).unwrap();
    bytes[at..at + HEADER_BYTES].to_vec()
}

#[tokio::test]
async fn an_unsure_block_is_read_in_full() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, LaneSettings::default()).await;
    lane.write_one_by_one(0..3, 9000).await;
    let (paths, recorder) = lane.crash().await;
    let records = usize::try_from(recorder.seen()[2].1.position).unwrap();
    // Its header and index are there, not all of its records.
    folder.edit(&wal(&paths, 0), |bytes| bytes[records + 8500] ^= 1);
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!(sealed.end, LaneEnd { file: 0, sequence: 3 });
}
