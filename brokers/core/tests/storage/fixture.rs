//! A lane, or a whole engine, on a folder that goes with the test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use freshet_core::buckets::open_world;
use freshet_core::cache::blocks::{BlockCache, ReadSettings};
use freshet_core::engine::{Engine, EngineSettings, StartError};
use freshet_core::env::real::FolderDisk;
use freshet_core::env::{Clock, Disk, Environment, Randomness};
use freshet_core::ids::{Epoch, Incarnation, PartitionId, TopicId};
use freshet_core::jobs::JobSettings;
use freshet_core::lane::index::InstallEntry;
use freshet_core::lane::queue::{BatchOwner, DurableBatch, Lane, LaneBatch};
use freshet_core::lane::seal::{Seal, seal};
use freshet_core::lane::token::{OwnerToken, fence};
use freshet_core::lane::writer::{CheckpointSource, LaneSettings, RolledFile, WriterParts, start};
use freshet_core::lane::{LaneError, LaneFile, LanePaths, LaneSpot};
use freshet_core::metadata::SqliteStore;
use freshet_core::metadata::cluster::NewTopic;
use freshet_core::metadata::store::{MetadataStore, Transaction};
use freshet_core::metrics::{BlockMetrics, Metrics};
use freshet_core::partition::Partition;
use freshet_core::records::{BatchBuilder, StoredBatch, ValidatedBatch};
use freshet_core::rules::Rules;
use freshet_core::sim::random::{Seeded, SeededRandomness};
use freshet_core::standing::Standing;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio_util::task::AbortOnDropHandle;

/// The cluster of every test.
pub const CLUSTER: &str = "c";
/// Waiting for longer is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Memory for what readers read.
pub fn block_cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(ReadSettings::default(), BlockMetrics::default()))
}

/// Waits until a condition holds; what it is waited for goes into the failure.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let reached = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(reached.await.is_ok(), "{what}");
}

/// What the clock of a lane shows at its first look.
pub const START_MS: i64 = 1_700_000_000_000;
/// By how much it goes on with each look, which is with each block.
pub const STEP_MS: i64 = 10;

/// A clock that goes on when it is looked at, and can be set.
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

/// What became durable, in order.
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

/// A folder as the shared file system.
pub struct Folder {
    pub root: TempDir,
    pub disk: Arc<dyn Disk>,
}

impl Folder {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let disk = Arc::new(FolderDisk::new(root.path()).unwrap());
        Self { root, disk }
    }

    pub fn path(&self, path: &Path) -> PathBuf {
        self.root.path().join(path)
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

/// What marks the blocks of these lanes.
pub const NONCE: u64 = 0x5eed_0f4e_1a4e_0001;

/// A lane that is written.
pub struct OpenLane {
    pub paths: LanePaths,
    pub lane: Arc<Lane>,
    pub token: Arc<OwnerToken>,
    pub standing: Standing,
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
        let (standing, installed) = (Standing::default(), Arc::new(Installed::default()));
        let rolled: Arc<Mutex<Vec<RolledFile>>> = Arc::default();
        let told = Arc::clone(&rolled);
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
            rolled: Box::new(move |file| told.lock().push(file)),
            standing: standing.clone(),
            rules: Rules::full(),
            metrics: Metrics::new().lane,
        })
        .await
        .unwrap();
        let recorder = Arc::new(Recorder::default());
        Self { paths, lane, token, standing, recorder, installed, rolled, clock, writer }
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
        // What it is cancelled with says nothing.
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

/// Storage and metadata of a cluster on a folder.
pub struct Cluster {
    pub folder: TempDir,
    pub settings: EngineSettings,
    /// Name of the metadata store's file in the folder.
    pub metadata: &'static str,
}

impl Cluster {
    pub fn new() -> Self {
        let settings = EngineSettings {
            lane: small_files(32 << 10),
            jobs: JobSettings {
                retention_interval: Duration::from_millis(20),
                sweep_interval: Duration::from_millis(20),
                rewrite_interval: Duration::from_millis(20),
                ..JobSettings::default()
            },
            offsets_partitions: 1,
            ..EngineSettings::new(CLUSTER)
        };
        Self { folder: tempfile::tempdir().unwrap(), settings, metadata: "metadata.sqlite" }
    }

    /// Copies all metadata into another file, as a backup does.
    pub async fn back_up(&self, to: &str) {
        let open = async |name: &str| SqliteStore::open(&self.folder.path().join(name)).await;
        let (from, to) = (open(self.metadata).await.unwrap(), open(to).await.unwrap());
        for entry in from.range("", None, usize::MAX).await.unwrap().entries {
            to.commit(Transaction::new().put(entry.key, entry.value)).await.unwrap();
        }
    }

    pub fn dfs(&self) -> PathBuf {
        self.folder.path().join("dfs")
    }

    pub fn bucket(&self) -> PathBuf {
        self.folder.path().join("bucket")
    }

    pub fn environment(&self) -> Environment {
        open_world(&self.dfs(), self.bucket().to_str().unwrap()).unwrap()
    }

    pub async fn try_start(&self) -> Result<Arc<Engine>, StartError> {
        let store = SqliteStore::open(&self.folder.path().join(self.metadata)).await.unwrap();
        Engine::start(self.environment(), Arc::new(store), self.settings.clone()).await
    }

    pub async fn start(&self) -> Arc<Engine> {
        self.try_start().await.unwrap()
    }

    /// Names in the lane of an incarnation with an ending, sorted.
    pub fn lane_files(&self, incarnation: u64, ending: &str) -> Vec<String> {
        let lane = LanePaths::new(CLUSTER, Incarnation(incarnation)).folder();
        let mut names = names(&self.dfs().join(lane));
        names.retain(|name| name.ends_with(ending));
        names
    }

    /// Names of all objects.
    pub fn objects(&self) -> Vec<String> {
        let root = self.bucket().join(CLUSTER).join("objects");
        let folders = names(&root).into_iter();
        folders
            .flat_map(|folder| {
                let inside = names(&root.join(&folder)).into_iter();
                inside.map(move |name| format!("{folder}/{name}"))
            })
            .filter(|name| !name.contains("draft-"))
            .collect()
    }

    /// How many descriptors of topics there are.
    pub fn descriptors(&self) -> usize {
        let mut names = names(&self.bucket().join(CLUSTER).join("topics"));
        names.retain(|name| !name.starts_with("draft-"));
        names.len()
    }

    /// Names of all manifests of a partition.
    pub fn manifests(&self, id: PartitionId) -> Vec<String> {
        let folder = freshet_core::cold::manifest::Manifest::folder(CLUSTER, id);
        let mut names = names(&self.bucket().join(folder));
        names.retain(|name| !name.starts_with("draft-"));
        names
    }
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Makes a topic and waits until it is open.
pub async fn create_topic(
    engine: &Engine,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) -> TopicId {
    let topic = NewTopic {
        name: name.to_owned(),
        partitions,
        replication_factor: 1,
        internal: false,
        configs: configs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        leader: Some(engine.incarnation),
    };
    let topic = engine.metadata.create_topic(engine.fence(), &topic).await.unwrap();
    engine.wait_open(topic.record.id, partitions).await;
    topic.record.id
}

/// A producer's batch: `count` records with timestamps from `timestamp` on.
pub fn produced(producer: (i64, i16), sequence: i32, timestamp: i64, count: usize) -> BatchBuilder {
    let (id, epoch) = producer;
    (0..count).fold(BatchBuilder::new(0).producer(id, epoch, sequence), |batch, number| {
        let value = format!("{id}/{}", i64::from(sequence) + number as i64);
        batch.record(timestamp + number as i64, None, Some(value.as_bytes()))
    })
}

pub fn open(engine: &Engine, topic: TopicId, index: i32) -> Arc<Partition> {
    engine.partitions.get(PartitionId::new(topic, index)).expect("the partition is open")
}

/// Appends a batch and waits until it is acked; gives its first offset.
pub async fn append(engine: &Engine, partition: &Arc<Partition>, batch: BatchBuilder) -> i64 {
    let bytes = batch.build();
    let pinned = bytes.len();
    let batch = ValidatedBatch::trusted(bytes).unwrap();
    let staged = partition.stage(&engine.lane, batch, &"User:alice".into(), pinned).unwrap();
    Partition::durable(partition, staged.end_offset).await.unwrap();
    staged.base_offset
}

/// All values from an offset on, each with its offset and leader epoch.
pub async fn read_all(partition: &Partition, from: i64) -> Vec<(i64, Epoch, String)> {
    let mut found = Vec::new();
    let mut visit = |batch: &StoredBatch| {
        let header = batch.header();
        for (offset, record) in (header.base_offset..).zip(batch.records(1 << 20).unwrap()) {
            let value = record.unwrap().value.unwrap();
            let value = String::from_utf8(value.to_vec()).unwrap();
            found.push((offset, header.partition_leader_epoch, value));
        }
    };
    partition.visit(from, &mut visit).await.unwrap();
    found
}
