//! A lane on a disk without room for another file: what there is is used on, and a clean end takes
//! no more room.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use freshet_core::env::{Disk, DiskError, DiskResult, File};
use freshet_core::ids::Incarnation;
use freshet_core::lane::reader::replay;
use freshet_core::lane::writer::LaneSettings;
use freshet_core::lane::{LaneEnd, LaneFile};
use freshet_core::rules::Rules;

use crate::fixture::{Folder, OpenLane, eventually, small_files};

/// A disk that may have no room for new files; what was made before can be written.
struct Fillable {
    disk: Arc<dyn Disk>,
    full: AtomicBool,
}

impl Fillable {
    fn over(disk: &Arc<dyn Disk>) -> Arc<Self> {
        Arc::new(Self { disk: Arc::clone(disk), full: AtomicBool::new(false) })
    }

    fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    fn room(&self) -> DiskResult<()> {
        let full = self.full.load(Ordering::SeqCst);
        if full { Err(DiskError::NoSpace("the disk".to_owned())) } else { Ok(()) }
    }
}

#[async_trait]
impl Disk for Fillable {
    async fn create_folders(&self, path: &Path) -> DiskResult<()> {
        self.disk.create_folders(path).await
    }

    async fn create_folder_exclusive(&self, path: &Path) -> DiskResult<()> {
        self.disk.create_folder_exclusive(path).await
    }

    async fn create(&self, path: &Path, zeros: u64) -> DiskResult<Arc<dyn File>> {
        self.room()?;
        self.disk.create(path, zeros).await
    }

    async fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        self.disk.open(path).await
    }

    async fn publish(&self, path: &Path, pieces: Vec<Bytes>) -> DiskResult<()> {
        self.room()?;
        self.disk.publish(path, pieces).await
    }

    async fn make_durable(&self, path: &Path) -> DiskResult<()> {
        self.disk.make_durable(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        self.disk.rename(from, to).await
    }

    async fn remove(&self, path: &Path) -> DiskResult<()> {
        self.disk.remove(path).await
    }

    async fn remove_folder(&self, path: &Path) -> DiskResult<()> {
        self.disk.remove_folder(path).await
    }

    async fn list(&self, path: &Path) -> DiskResult<Vec<String>> {
        self.disk.list(path).await
    }
}

const ROLL_AFTER: Duration = Duration::from_millis(500);

/// A lane whose disk is full, and that has written something to each file that it had.
async fn on_a_full_disk(folder: &Folder) -> (OpenLane, Arc<Fillable>) {
    let fillable = Fillable::over(&folder.disk);
    let disk = Arc::clone(&fillable) as Arc<dyn Disk>;
    let settings = LaneSettings { roll_after: ROLL_AFTER, ..small_files(64 << 10) };
    let lane = OpenLane::start(&disk, 1, settings).await;
    let made_ahead = folder.path(&lane.paths.file(LaneFile::Wal(1)));
    eventually("a file is made ahead", async || made_ahead.exists()).await;
    assert!(folder.path(&lane.paths.reserve()).exists());
    fillable.set_full(true);
    lane.write_one_by_one(0..1, 3000).await;
    lane.lane.roll().await.unwrap();
    lane.write_one_by_one(1..2, 3000).await;
    (lane, fillable)
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
    assert!(!lane.standing.is_down());
}

/// The clock moves on when all others wait.
#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_full_is_used_on_while_the_disk_is() {
    let folder = Folder::new();
    let (lane, fillable) = on_a_full_disk(&folder).await;
    tokio::time::sleep(10 * ROLL_AFTER).await;
    lane.write_one_by_one(2..3, 3000).await;
    assert!(!lane.standing.is_down());
    assert_eq!(lane.rolled.lock().len(), 1);
    fillable.set_full(false);
    eventually("it goes on in the next file", async || lane.rolled.lock().len() == 2).await;
    assert!(folder.path(&lane.paths.reserve()).exists(), "the reserve is for the end");
}

#[tokio::test]
async fn what_waits_to_be_used_again_makes_room() {
    let folder = Folder::new();
    let (lane, _) = on_a_full_disk(&folder).await;
    lane.lane.retire(0).await.unwrap();
    assert!(folder.path(&lane.paths.spare(0)).exists());
    assert!(lane.lane.make_room().await.unwrap());
    assert!(!folder.path(&lane.paths.spare(0)).exists());
    assert!(folder.path(&lane.paths.reserve()).exists(), "what is needed for the end goes last");
    assert!(lane.lane.make_room().await.unwrap());
    assert!(!lane.lane.make_room().await.unwrap());
}
