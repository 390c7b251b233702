//! A lane on a disk without room for another file: the file in use stays in use, and closing the
//! lane takes no more room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use freshet_storage::lane::reader::replay;
use freshet_storage::lane::writer::LaneSettings;
use freshet_storage::lane::{LaneEnd, LaneFile};
use freshet_storage::rules::Rules;
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Disk, DiskError, DiskResult};

use crate::fixture::{Folder, OpenLane, eventually, small_files};
use crate::watched::{Watched, Watcher};

/// Whether a disk has no room for new files. Files that exist can be written.
#[derive(Default)]
struct Fullness(AtomicBool);

impl Fullness {
    fn set(&self, full: bool) {
        self.0.store(full, Ordering::SeqCst);
    }
}

impl Watcher for Fullness {
    fn makes_file(&self) -> DiskResult<()> {
        let full = self.0.load(Ordering::SeqCst);
        if full { Err(DiskError::NoSpace("the disk".to_owned())) } else { Ok(()) }
    }
}

const ROLL_AFTER: Duration = Duration::from_millis(500);

/// A lane whose disk is full, and that has written something to each file that it had.
async fn on_a_full_disk(folder: &Folder) -> (OpenLane, Arc<Fullness>) {
    let fullness = Arc::new(Fullness::default());
    let disk: Arc<dyn Disk> = Arc::new(Watched::new(&folder.disk, &fullness));
    let settings = LaneSettings { roll_after: ROLL_AFTER, ..small_files(64 << 10) };
    let lane = OpenLane::start(&disk, 1, settings).await;
    let made_ahead = folder.path(&lane.paths.file(LaneFile::Wal(1)));
    eventually("a file is made ahead", async || made_ahead.exists()).await;
    assert!(folder.path(&lane.paths.reserve()).exists());
    fullness.set(true);
    lane.write_one_by_one(0..1, 3000).await;
    lane.lane.roll().await.unwrap();
    lane.write_one_by_one(1..2, 3000).await;
    (lane, fullness)
}

async fn blocks_up_to(folder: &Folder, lane: &OpenLane, end: LaneEnd) -> u64 {
    let (disk, mut blocks) = (folder.disk.as_ref(), 0);
    let mut visit = |_| {
        blocks += 1;
        Ok(())
    };
    replay(disk, &lane.paths, Incarnation(1), end, Rules::full(), &mut visit).await.unwrap();
    blocks
}

#[tokio::test]
async fn a_lane_on_a_full_disk_ends_cleanly_in_its_reserve() {
    let folder = Folder::new();
    let (lane, _) = on_a_full_disk(&folder).await;
    lane.lane.roll().await.unwrap();
    assert_eq!(lane.rolled.lock().len(), 2, "all of it can be split");
    assert!(!folder.path(&lane.paths.reserve()).exists());
    lane.write_one_by_one(2..3, 3000).await;
    let end = lane.lane.close().await.unwrap();
    assert_eq!(end.file, 2);
    assert_eq!(blocks_up_to(&folder, &lane, end).await, end.sequence);
    assert!(!lane.liveness.is_down());
}

/// The paused clock advances only when all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_full_is_used_on_while_the_disk_is() {
    let folder = Folder::new();
    let (lane, fullness) = on_a_full_disk(&folder).await;
    tokio::time::sleep(10 * ROLL_AFTER).await;
    lane.write_one_by_one(2..3, 3000).await;
    assert!(!lane.liveness.is_down());
    assert_eq!(lane.rolled.lock().len(), 1);
    fullness.set(false);
    eventually("it goes on in the next file", async || lane.rolled.lock().len() == 2).await;
    assert!(folder.path(&lane.paths.reserve()).exists(), "the reserve is for the end");
}

#[tokio::test]
async fn what_waits_to_be_used_again_makes_room() {
    let folder = Folder::new();
    let (lane, _) = on_a_full_disk(&folder).await;
    lane.lane.retire(0).await.unwrap();
    assert!(folder.path(&lane.paths.recycled(0)).exists());
    assert!(lane.lane.make_room().await.unwrap());
    assert!(!folder.path(&lane.paths.recycled(0)).exists());
    assert!(folder.path(&lane.paths.reserve()).exists(), "what is needed for the end goes last");
    assert!(lane.lane.make_room().await.unwrap());
    assert!(!lane.lane.make_room().await.unwrap());
}
