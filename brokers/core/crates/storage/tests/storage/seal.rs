//! Sealing a fenced lane: where it ends, what is copied, and that there is one end only.

use freshet_storage::lane::block::{BlockKind, BlockLabel, encode};
use freshet_storage::lane::reader::{LaneReader, replay};
use freshet_storage::lane::seal::{read_seal, seal};
use freshet_storage::lane::writer::LaneSettings;
use freshet_storage::lane::{LaneEnd, LaneError, LaneFile};
use freshet_storage::rules::Rules;
use freshet_wire::ids::Incarnation;

use crate::fixture::{CLUSTER, Folder, NONCE, OpenLane, block_cache, fence_and_seal, stored, wal};

/// A lane with four blocks of data behind its checkpoint, each in a write of its own, and where the
/// last block lies.
async fn crashed(folder: &Folder) -> (freshet_storage::lane::LanePaths, usize) {
    let lane = OpenLane::start(&folder.disk, 1, LaneSettings::default()).await;
    lane.write_one_by_one(0..4, 5000).await;
    let (paths, recorder) = lane.crash().await;
    let last = recorder.seen()[3].1.position;
    (paths, usize::try_from(last).unwrap() / 4096 * 4096)
}

#[tokio::test]
async fn blocks_that_are_not_surely_durable_are_copied_and_read_from_the_copy() {
    let folder = Folder::new();
    let (paths, last) = crashed(&folder).await;
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!(sealed.end, LaneEnd { file: 0, sequence: 5 });
    assert_eq!(sealed.blocks.keys().copied().collect::<Vec<_>>(), [5], "4 is sure through 5");
    // The disk loses a block that was not surely durable.
    folder.edit(&wal(&paths, 0), |bytes| bytes[last..].fill(0));
    let mut blocks = Vec::new();
    let disk = folder.disk.as_ref();
    replay(disk, &paths, Incarnation(1), sealed.end, Rules::full(), &mut |block| {
        blocks.push((block.head.header.sequence, block.file, block.payload_position));
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(blocks.iter().map(|(sequence, ..)| *sequence).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let (_, file, position) = blocks[4];
    assert_eq!(file, LaneFile::Seal);
    let reader = LaneReader::new(folder.disk.clone(), CLUSTER, block_cache());
    let expected = stored(3, 5000).to_bytes();
    let spot = freshet_storage::lane::LaneSpot {
        incarnation: Incarnation(1),
        file,
        position,
        length: u32::try_from(expected.len()).unwrap(),
        written_at_ms: 0,
    };
    assert_eq!(reader.read(spot, 0, 0).await.unwrap().bytes, expected);
}

#[tokio::test]
async fn a_torn_last_block_is_the_end() {
    let folder = Folder::new();
    let (paths, last) = crashed(&folder).await;
    folder.edit(&wal(&paths, 0), |bytes| bytes[last + 4096..].fill(0));
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!(sealed.end, LaneEnd { file: 0, sequence: 4 });
}

#[tokio::test]
async fn a_lane_without_a_block_ends_before_its_first() {
    let folder = Folder::new();
    let (paths, _) = crashed(&folder).await;
    folder.edit(&wal(&paths, 0), |bytes| bytes.fill(0));
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!((sealed.end, sealed.blocks.len()), (LaneEnd { file: 0, sequence: 0 }, 0));
}

#[tokio::test]
async fn two_sealers_agree_and_what_lands_later_changes_nothing() {
    let folder = Folder::new();
    let (paths, last) = crashed(&folder).await;
    let (disk, lane) = (folder.disk.as_ref(), Incarnation(1));
    let (first, second) = tokio::join!(
        fence_and_seal(&folder.disk, &paths, 1),
        seal(disk, &paths, lane, Rules::full()),
    );
    assert_eq!(first.unwrap().end, second.unwrap().end);
    let label = BlockLabel {
        kind: BlockKind::Usage,
        incarnation: lane,
        sequence: 6,
        durable_sequence: 5,
        nonce: NONCE,
        written_at_ms: 0,
    };
    let late = encode(label, b"", Vec::new()).concat();
    let after = last + (64 + 5100_usize).next_multiple_of(4096);
    folder.edit(&wal(&paths, 0), |bytes| bytes[after..after + late.len()].copy_from_slice(&late));
    let third = seal(disk, &paths, lane, Rules::full()).await.unwrap();
    assert_eq!(third.end, LaneEnd { file: 0, sequence: 5 });
}

/// A client can put the bytes of a block into its records. Where the block with these records is
/// torn, they lie where a reader looks for the lane's next block.
#[tokio::test]
async fn a_block_that_a_client_made_up_proves_nothing() {
    let folder = Folder::new();
    let (paths, last) = crashed(&folder).await;
    let made_up = |nonce| {
        let label = BlockLabel {
            kind: BlockKind::Usage,
            incarnation: Incarnation(1),
            sequence: 6,
            durable_sequence: 5,
            nonce,
            written_at_ms: 0,
        };
        encode(label, b"", Vec::new()).concat()
    };
    let torn_with = |bytes: &mut Vec<u8>, inner: &[u8]| {
        bytes[last + 70] ^= 1;
        bytes[last + 4096..last + 4096 + inner.len()].copy_from_slice(inner);
    };
    let whole = std::fs::read(folder.path(&wal(&paths, 0))).unwrap();
    folder.edit(&wal(&paths, 0), |bytes| torn_with(bytes, &made_up(NONCE ^ 1)));
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!(sealed.end, LaneEnd { file: 0, sequence: 4 });

    std::fs::remove_file(folder.path(&paths.seal())).unwrap();
    folder.edit(&wal(&paths, 0), |bytes| {
        *bytes = whole;
        torn_with(bytes, &made_up(NONCE));
    });
    let damaged = fence_and_seal(&folder.disk, &paths, 1).await;
    assert!(matches!(damaged, Err(LaneError::Damaged { .. })), "the lane's own block does");
}

#[tokio::test]
async fn damage_of_a_seal_is_an_error_and_never_a_panic() {
    let folder = Folder::new();
    let (paths, _) = crashed(&folder).await;
    fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    let (disk, lane) = (folder.disk.as_ref(), Incarnation(1));
    let path = folder.path(&paths.seal());
    let whole = std::fs::read(&path).unwrap();
    for cut in (0..200).chain([4096, whole.len() - 4096]) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert!(read_seal(disk, &paths, lane).await.is_err(), "cut at {cut}");
    }
    for at in (0..80).chain([4096, 4200, 4096 + 5000]) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&path, &flipped).unwrap();
        assert!(read_seal(disk, &paths, lane).await.is_err(), "byte {at}");
    }
    std::fs::write(&path, &whole).unwrap();
    assert!(read_seal(disk, &paths, Incarnation(2)).await.is_err(), "another lane's");
    assert_eq!(read_seal(disk, &paths, lane).await.unwrap().unwrap().end.sequence, 5);
}
