//! A whole engine on a temporary folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use freshet_engine::{Engine, EngineSettings, StartError};
use freshet_jobs::JobSettings;
use freshet_metadata::SqliteStore;
use freshet_metadata::cluster::NewTopic;
use freshet_metadata::store::{MetadataStore, Transaction};
use freshet_partition::Partition;
use freshet_s3::open_world;
use freshet_storage::lane::LanePaths;
use freshet_wire::ids::{Epoch, Incarnation, PartitionId, TopicId};
use freshet_wire::records::{BatchBuilder, StoredBatch, ValidatedBatch};
use freshet_world::env::Environment;
use tempfile::TempDir;

use crate::lane_fixture::{CLUSTER, Mounted, small_files};

/// Storage and metadata of a cluster on a folder.
pub struct Cluster {
    pub folder: TempDir,
    mounted: Mounted,
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
        let folder = tempfile::tempdir().unwrap();
        let mounted = Mounted::new(&folder.path().join("dfs"));
        Self { folder, mounted, settings, metadata: "metadata.sqlite" }
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
        self.mounted.paths[0].clone()
    }

    pub fn bucket(&self) -> PathBuf {
        self.folder.path().join("bucket")
    }

    /// That of the next machine: no two engines after each other use the same mount.
    pub fn environment(&self) -> Environment {
        open_world(self.mounted.next(), self.bucket().to_str().unwrap()).unwrap()
    }

    pub async fn try_start(&self) -> Result<Arc<Engine>, StartError> {
        let store = SqliteStore::open(&self.folder.path().join(self.metadata)).await.unwrap();
        Engine::start(self.environment(), Arc::new(store), self.settings.clone()).await
    }

    pub async fn start(&self) -> Arc<Engine> {
        self.try_start().await.unwrap()
    }

    /// The names of files with this ending in the lane of an incarnation, sorted.
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
        let folder = freshet_storage::cold::manifest::Manifest::folder(CLUSTER, id);
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

/// A topic that this engine is to lead.
pub fn new_topic(
    engine: &Engine,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) -> NewTopic {
    NewTopic {
        name: name.to_owned(),
        partitions,
        replication_factor: 1,
        internal: false,
        configs: configs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        leaders: vec![engine.incarnation],
    }
}

/// Creates a topic and waits until it is open.
pub async fn create_topic(
    engine: &Engine,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) -> TopicId {
    let topic = new_topic(engine, name, partitions, configs);
    let topic = engine.metadata.create_topic(engine.fence(), &topic).await.unwrap();
    engine.wait_open(topic.record.id, partitions).await;
    topic.record.id
}

pub fn open(engine: &Engine, topic: TopicId, index: i32) -> Arc<Partition> {
    engine.partitions.get(PartitionId::new(topic, index)).expect("the partition is open")
}

/// Appends a batch, waits until it is acknowledged, and returns its first offset.
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
    let mut records = Vec::new();
    let mut visit = |batch: &StoredBatch| {
        let header = batch.header();
        for (offset, record) in (header.base_offset..).zip(batch.records(1 << 20).unwrap()) {
            let value = record.unwrap().value.unwrap();
            let value = String::from_utf8(value.to_vec()).unwrap();
            records.push((offset, header.partition_leader_epoch, value));
        }
    };
    partition.visit(from, &mut visit).await.unwrap();
    records
}
