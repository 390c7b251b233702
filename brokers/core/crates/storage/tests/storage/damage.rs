//! A gap is not an end: every reader fails where something that was durable cannot be read.

use std::time::Duration;

use freshet_storage::lane::block::Block;
use freshet_storage::lane::reader::replay;
use freshet_storage::lane::scan::read_file;
use freshet_storage::lane::{LaneEnd, LaneError, LanePaths};
use freshet_storage::rules::Rules;
use freshet_wire::ids::Incarnation;

use crate::fixture::{Folder, OpenLane, fence_and_seal, small_files, wal};

/// A lane of several files, and where it was closed, if it was.
async fn lane_of_files(folder: &Folder, close: bool) -> (LanePaths, Option<LaneEnd>) {
    let lane = OpenLane::start(&folder.disk, 1, small_files(32 << 10)).await;
    lane.write_one_by_one(0..16, 3000).await;
    let end = if close { Some(lane.lane.close().await.unwrap()) } else { None };
    let (paths, recorder) = lane.crash().await;
    assert!(
        recorder
            .seen()
            .iter()
            .any(|(_, spot)| spot.file >= freshet_storage::lane::LaneFile::Wal(2))
    );
    (paths, end)
}

async fn assert_never_sealed(folder: &Folder, paths: &LanePaths) {
    let sealed = fence_and_seal(&folder.disk, paths, 1).await;
    assert!(matches!(sealed, Err(LaneError::Damaged { .. })), "{sealed:?}");
    assert!(!folder.path(&paths.seal()).exists());
}

async fn read(folder: &Folder, paths: &LanePaths, end: LaneEnd) -> Result<usize, LaneError> {
    let mut blocks = 0;
    let disk = folder.disk.as_ref();
    replay(disk, paths, Incarnation(1), end, Rules::full(), &mut |_| {
        blocks += 1;
        Ok(())
    })
    .await?;
    Ok(blocks)
}

#[tokio::test]
async fn a_flipped_byte_before_a_sure_block_is_damage() {
    for position in [0, 4096 + 100, 2 * 4096 + 70] {
        let folder = Folder::new();
        let (paths, _) = lane_of_files(&folder, false).await;
        folder.edit(&wal(&paths, 0), |bytes| bytes[position] ^= 1);
        assert_never_sealed(&folder, &paths).await;
    }
}

#[tokio::test]
async fn a_first_file_without_its_first_block_is_damage() {
    let folder = Folder::new();
    let (paths, _) = lane_of_files(&folder, false).await;
    // As a splitter does after it has split the first file.
    std::fs::remove_file(folder.path(&wal(&paths, 0))).unwrap();
    folder.edit(&wal(&paths, 1), |bytes| bytes[64] ^= 1);
    assert_never_sealed(&folder, &paths).await;
}

#[tokio::test]
async fn a_missing_file_between_others_is_damage() {
    let folder = Folder::new();
    let (paths, _) = lane_of_files(&folder, false).await;
    std::fs::remove_file(folder.path(&wal(&paths, 1))).unwrap();
    assert_never_sealed(&folder, &paths).await;
}

/// The paused clock advances only when all tasks wait: the first read is over by then.
#[tokio::test(start_paused = true)]
async fn a_file_that_gets_its_name_late_is_no_damage() {
    let folder = Folder::new();
    let (paths, _) = lane_of_files(&folder, false).await;
    let file = folder.path(&wal(&paths, 1));
    let elsewhere = file.with_extension("spare");
    std::fs::rename(&file, &elsewhere).unwrap();
    let arrives = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        std::fs::rename(&elsewhere, &file).unwrap();
    };
    let (sealed, ()) = tokio::join!(fence_and_seal(&folder.disk, &paths, 1), arrives);
    let end = sealed.unwrap().end;
    assert_eq!(read(&folder, &paths, end).await.unwrap() as u64, end.sequence);
}

#[tokio::test]
async fn damage_after_the_end_was_fixed_is_an_error_too() {
    let folder = Folder::new();
    let (paths, end) = lane_of_files(&folder, true).await;
    let end = end.unwrap();
    assert_eq!(read(&folder, &paths, end).await.unwrap() as u64, end.sequence);
    for number in 0..=end.file {
        folder.edit(&wal(&paths, number), |bytes| bytes[64] ^= 1);
        let result = read(&folder, &paths, end).await;
        assert!(matches!(result, Err(LaneError::Damaged { .. })), "file {number}: {result:?}");
        folder.edit(&wal(&paths, number), |bytes| bytes[64] ^= 1);
    }
}

/// SEAL holds a copy of the last block. Where that one begins a file, and the file before it is
/// damaged, the copy must not hide the hole.
#[tokio::test]
async fn damage_before_a_copy_that_begins_a_file_is_an_error() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, small_files(32 << 10)).await;
    lane.write_one_by_one(0..16, 3000).await;
    let (paths, _) = lane.crash().await;
    // The broker died when it had written no more than the checkpoint of the last file with blocks.
    let whole = read_file(folder.disk.as_ref(), &paths, 2).await.unwrap();
    let checkpoint = Block::parse(&whole).unwrap().header;
    folder.edit(&wal(&paths, 2), |bytes| bytes[checkpoint.span()..].fill(0));
    for number in 3.. {
        if std::fs::remove_file(folder.path(&wal(&paths, number))).is_err() {
            break;
        }
    }
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!(sealed.end, LaneEnd { file: 2, sequence: checkpoint.sequence });
    assert_eq!(sealed.blocks.keys().copied().collect::<Vec<_>>(), [checkpoint.sequence]);
    assert_eq!(read(&folder, &paths, sealed.end).await.unwrap() as u64, sealed.end.sequence);
    for (number, block_at) in [(0, 4096), (1, 4096), (1, 2 * 4096)] {
        folder.edit(&wal(&paths, number), |bytes| bytes[block_at + 70] ^= 1);
        let result = read(&folder, &paths, sealed.end).await.unwrap_err();
        let LaneError::Damaged { file, position, .. } = result else { panic!("{result:?}") };
        assert_eq!((file, position), (number, block_at as u64), "where the first hole is");
        folder.edit(&wal(&paths, number), |bytes| bytes[block_at + 70] ^= 1);
    }
    std::fs::remove_file(folder.path(&wal(&paths, 1))).unwrap();
    let result = read(&folder, &paths, sealed.end).await;
    assert!(matches!(result, Err(LaneError::Damaged { .. })), "a whole file: {result:?}");
}

/// The last file holds the only checkpoint once all others were split.
#[tokio::test]
async fn a_damaged_checkpoint_in_the_only_file_left_is_an_error() {
    let folder = Folder::new();
    let (paths, end) = lane_of_files(&folder, true).await;
    let end = end.unwrap();
    for number in 0..end.file {
        let (wal, leftover) = (wal(&paths, number), paths.leftover(number));
        std::fs::rename(folder.path(&wal), folder.path(&leftover)).unwrap();
    }
    assert!(read(&folder, &paths, end).await.is_ok());
    folder.edit(&wal(&paths, end.file), |bytes| bytes[64] ^= 1);
    assert!(matches!(read(&folder, &paths, end).await, Err(LaneError::Damaged { .. })));
}
