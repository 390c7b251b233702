//! A lane in a temporary folder. Tests of the engine use it, too.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use freshet_storage::cache::blocks::{BlockCache, ReadSettings};
use freshet_storage::lane::index::InstallEntry;
use freshet_storage::lane::queue::{BatchOwner, DurableBatch, Lane, LaneBatch};
use freshet_storage::lane::seal::{Seal, seal};
use freshet_storage::lane::token::{OwnerToken, fence};
use freshet_storage::lane::writer::{
    CheckpointSource, LaneSettings, RolledFile, WriterParts, start,
};
use freshet_storage::lane::{LaneError, LaneFile, LanePaths, LaneSpot};
use freshet_storage::liveness::Liveness;
use freshet_storage::payers::PayerRules;
use freshet_storage::rules::Rules;
use freshet_telemetry::{BlockMetrics, Metrics};
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_wire::records::{BatchBuilder, StoredBatch, ValidatedBatch};
use freshet_world::env::real::FolderDisk;
use freshet_world::env::{Clock, Disk, Randomness};
use freshet_world::sim::random::{Seeded, SeededRandomness};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio_util::task::AbortOnDropHandle;

/// The cluster of every test.
pub const CLUSTER: &str = "c";
/// Waiting for longer is a failure.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The block cache of the tests.
pub fn block_cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(ReadSettings::default(), BlockMetrics::default()))
}

/// Waits until a condition holds. `what` names the condition where it does not in time.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let reached = tokio::time::timeout(TIMEOUT, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(reached.await.is_ok(), "{what}");
}

/// The first time that the clock of a lane shows.
pub const START_MS: i64 = 1_700_000_000_000;
/// By how much the clock advances with each reading, of which there is one a block.
pub const STEP_MS: i64 = 10;

/// A clock that advances when it is read, and can be set.
pub struct SteppingClock(AtomicI64);

impl SteppingClock {
    pub fn set(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }
}

impl Default for SteppingClock {
    fn default() -> Self {
        Self(AtomicI64::new(START_MS))
    }
}

impl Clock for SteppingClock {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(STEP_MS, Ordering::SeqCst)
    }
}

pub fn randomness() -> Arc<dyn Randomness> {
    Arc::new(SeededRandomness::new(Seeded::new(7)))
}

pub fn partition(index: i32) -> PartitionId {
    PartitionId::new(TopicId::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef), index)
}

/// A batch of one record of `bytes` bytes, placed in the log.
pub fn stored(base_offset: i64, bytes: usize) -> StoredBatch {
    let built = BatchBuilder::new(0).record(1_000 + base_offset, None, Some(&vec![b'x'; bytes]));
    StoredBatch::new(ValidatedBatch::trusted(built.build()).unwrap(), base_offset, 3)
}

/// Records the batches that became durable, in order.
#[derive(Default)]
pub struct Recorder(Mutex<Vec<(i64, LaneSpot)>>);

impl Recorder {
    pub fn seen(&self) -> Vec<(i64, LaneSpot)> {
        self.0.lock().clone()
    }

    pub async fn wait_for(&self, count: usize) {
        eventually("batches become durable", async || self.0.lock().len() >= count).await;
    }
}

impl BatchOwner for Recorder {
    fn durable(self: Arc<Self>, durable: DurableBatch) {
        self.0.lock().push((durable.batch.base_offset(), durable.spot));
    }
}

#[derive(Default)]
pub struct Installed(pub Mutex<Vec<InstallEntry>>);

impl CheckpointSource for Installed {
    fn installed(&self) -> Vec<InstallEntry> {
        self.0.lock().clone()
    }
}

/// Where it is set, tests run over mounts of a distributed file system, separated by colons.
/// `tests/dfs` sets it.
const MOUNTS_VARIABLE: &str = "FRESHET_TEST_MOUNTS";

/// A folder of the shared file system, as several machines see it.
pub struct Mounted {
    /// The folder in each mount; one path where there are no mounts.
    pub paths: Vec<PathBuf>,
    turn: AtomicUsize,
}

impl Mounted {
    /// The folder itself, or where there are mounts a new one of its name in them.
    pub fn new(folder: &Path) -> Self {
        let paths = match std::env::var_os(MOUNTS_VARIABLE) {
            None => vec![folder.to_owned()],
            Some(mounts) => {
                let name = folder.strip_prefix(std::env::temp_dir()).unwrap();
                std::env::split_paths(&mounts).map(|mount| mount.join(name)).collect()
            }
        };
        std::fs::create_dir_all(&paths[0]).unwrap();
        Self { paths, turn: AtomicUsize::new(0) }
    }

    /// The folder as the next machine sees it.
    pub fn next(&self) -> &Path {
        &self.paths[self.turn.fetch_add(1, Ordering::SeqCst) % self.paths.len()]
    }
}

/// A folder as the shared file system.
pub struct Folder {
    pub root: TempDir,
    pub mounted: Mounted,
    pub disk: Arc<dyn Disk>,
}

impl Folder {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let mounted = Mounted::new(root.path());
        let disk = Arc::new(FolderDisk::new(mounted.next()).unwrap());
        Self { root, mounted, disk }
    }

    pub fn path(&self, path: &Path) -> PathBuf {
        self.mounted.paths[0].join(path)
    }

    /// Changes the bytes of a file.
    pub fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path(path);
        let mut bytes = std::fs::read(&path).unwrap();
        edit(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
    }
}

pub fn small_files(bytes: u64) -> LaneSettings {
    LaneSettings { file_bytes_first: bytes, file_bytes_max: bytes, ..LaneSettings::default() }
}

/// The nonce of these lanes.
pub const NONCE: u64 = 0x5eed_0f4e_1a4e_0001;

/// A lane that is written.
pub struct OpenLane {
    pub paths: LanePaths,
    pub lane: Arc<Lane>,
    pub token: Arc<OwnerToken>,
    pub liveness: Liveness,
    pub recorder: Arc<Recorder>,
    pub installed: Arc<Installed>,
    pub rolled: Arc<Mutex<Vec<RolledFile>>>,
    pub clock: Arc<SteppingClock>,
    writer: AbortOnDropHandle<()>,
}

impl OpenLane {
    pub async fn start(disk: &Arc<dyn Disk>, incarnation: u64, settings: LaneSettings) -> Self {
        let incarnation = Incarnation(incarnation);
        let paths = LanePaths::new(CLUSTER, incarnation);
        disk.create_folders(&paths.folder()).await.unwrap();
        let random = randomness();
        let token = OwnerToken::claim(disk.as_ref(), &paths, incarnation, random.as_ref());
        let token = Arc::new(token.await.unwrap());
        let (liveness, installed) = (Liveness::default(), Arc::new(Installed::default()));
        let rolled: Arc<Mutex<Vec<RolledFile>>> = Arc::default();
        let ended_files = Arc::clone(&rolled);
        let clock = Arc::new(SteppingClock::default());
        let (lane, writer) = start(WriterParts {
            disk: Arc::clone(disk),
            clock: Arc::clone(&clock) as Arc<_>,
            paths: paths.clone(),
            token: Arc::clone(&token),
            incarnation,
            nonce: NONCE,
            settings,
            checkpoints: Arc::clone(&installed) as Arc<_>,
            rolled: Box::new(move |file| ended_files.lock().push(file)),
            liveness: liveness.clone(),
            rules: Rules::full(),
            metrics: Metrics::new().lane,
            payers: PayerRules::default(),
        })
        .await
        .unwrap();
        let recorder = Arc::new(Recorder::default());
        Self { paths, lane, token, liveness, recorder, installed, rolled, clock, writer }
    }

    pub fn try_stage(&self, index: i32, batch: StoredBatch) -> Result<(), LaneError> {
        self.lane.stage(LaneBatch {
            partition: partition(index),
            epoch: 3,
            principal: "User:alice".into(),
            pinned_bytes: batch.size_bytes(),
            batch,
            owner: Arc::clone(&self.recorder) as Arc<_>,
            ack: None,
        })
    }

    pub fn stage(&self, batch: StoredBatch) {
        self.try_stage(0, batch).unwrap();
    }

    /// Writes batches, each in a write of its own.
    pub async fn write_one_by_one(&self, offsets: std::ops::Range<i64>, bytes: usize) {
        for offset in offsets {
            let before = self.recorder.seen().len();
            self.stage(stored(offset, bytes));
            self.recorder.wait_for(before + 1).await;
        }
    }

    /// Ends the broker as a crash does.
    pub async fn crash(self) -> (LanePaths, Arc<Recorder>) {
        let Self { paths, recorder, writer, .. } = self;
        writer.abort();
        // The error only says that the task was cancelled.
        let _ = writer.await;
        (paths, recorder)
    }
}

/// Fences and seals a lane, as its successor does.
pub async fn fence_and_seal(
    disk: &Arc<dyn Disk>,
    paths: &LanePaths,
    incarnation: u64,
) -> Result<Seal, LaneError> {
    fence(disk.as_ref(), paths, Incarnation(99), randomness().as_ref()).await.unwrap();
    seal(disk.as_ref(), paths, Incarnation(incarnation), Rules::full()).await
}

pub fn wal(paths: &LanePaths, number: u64) -> PathBuf {
    paths.file(LaneFile::Wal(number))
}

/// A producer's batch: `count` records with timestamps from `timestamp` on.
pub fn produced(producer: (i64, i16), sequence: i32, timestamp: i64, count: usize) -> BatchBuilder {
    let (id, epoch) = producer;
    (0..count).fold(BatchBuilder::new(0).producer(id, epoch, sequence), |batch, number| {
        let value = format!("{id}/{}", i64::from(sequence) + number as i64);
        batch.record(timestamp + number as i64, None, Some(value.as_bytes()))
    })
}
