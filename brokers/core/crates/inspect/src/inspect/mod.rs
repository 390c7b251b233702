//! A report of a cluster's storage, made without a broker: lanes, objects and manifests, and with
//! `verify` whether every checksum is right.
//!
//! This only reads, and only through the modules of the formats. A broker may run meanwhile: what
//! it writes at that moment may look unfinished, never damaged.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use freshet_metadata::cluster::{ClusterError, ClusterMetadata};
use freshet_metadata::schema::{IncarnationRecord, PartitionRecord, Stored};
use freshet_metadata::store::{MetadataError, MetadataStore, ScopedStore};
use freshet_metadata::view::{MetadataView, ViewError};
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::names::ManifestRef;
use freshet_wire::ids::{Incarnation, PartitionId};
use freshet_wire::records::StoredBatch;
use freshet_world::env::store::{ObjectStore, StoreError};
use freshet_world::env::{DiskError, Environment};

mod batches;
mod lanes;
mod objects;

use batches::check_batch;

/// What to inspect.
#[derive(Debug, Clone, Default)]
pub struct InspectOptions {
    /// Whether every checksum is verified, for which all records are read.
    pub verify: bool,
    /// Only this lane, and no partitions.
    pub lane: Option<Incarnation>,
    /// Only the partitions of the topic of this name or id, and no lanes.
    pub topic: Option<String>,
}

/// Why no report can be made. Damage is not an error but a part of the report.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The shared file system failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The object store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The metadata store.
    #[error("metadata: {0}")]
    Metadata(#[from] ClusterError),
    /// The metadata store.
    #[error("metadata: {0}")]
    View(#[from] ViewError),
    /// The metadata store.
    #[error("metadata: {0}")]
    Open(#[from] MetadataError),
    /// The requested lane or topic does not exist.
    #[error("there is no {0}")]
    Unknown(String),
}

/// A place whose checksum or content is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file, from the root of the shared file system or of the bucket.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
}

/// A batch that is stored as it was sent, and whose records cannot be read: an earlier release
/// acknowledged such.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedBatch {
    /// The topic's name, or its id where the metadata store does not know it any more.
    pub topic: String,
    /// The partition's index.
    pub partition: i32,
    /// The offset of the batch's first record.
    pub first_offset: i64,
    /// The offset behind its last.
    pub next_offset: i64,
    /// What is wrong with it.
    pub what: String,
}

/// The report.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The cluster's prefix.
    pub cluster: String,
    /// Whether checksums of records were verified.
    pub verified: bool,
    /// Lanes by incarnation.
    pub lanes: Vec<LaneReport>,
    /// Partitions by topic id and number.
    pub partitions: Vec<PartitionReport>,
    /// Objects by the incarnation that wrote them, and number.
    pub objects: Vec<ObjectReport>,
    /// All damage of what Freshet wrote.
    pub damage: Vec<Damage>,
    /// Batches that are damaged since they were sent.
    pub damaged_batches: Vec<DamagedBatch>,
}

/// A lane.
#[derive(Debug, Serialize)]
pub struct LaneReport {
    /// The incarnation that owns it.
    pub incarnation: Incarnation,
    /// Its incarnation's state in the metadata store: `live`, `fenced`, `sealed` or `closed`;
    /// `None` where the store does not know it.
    pub state: Option<String>,
    /// The owner that its token names; `None` where there is no readable token.
    pub owner: Option<Incarnation>,
    /// The sequence number of the highest block that a later one says was durable.
    pub durable_sequence: u64,
    /// Its end, if it has one.
    pub end: Option<EndReport>,
    /// Its SEAL.
    pub seal: Option<SealReport>,
    /// Files of blocks.
    pub files: Vec<FileReport>,
    /// Files of which only the index is left.
    pub leftovers: Vec<LeftoverReport>,
    /// The number of recycled files.
    #[serde(rename = "spares")]
    pub recycled: usize,
    /// Names of other files: drafts of a process that died, or files that are not the lane's.
    pub others: Vec<String>,
}

/// Where a lane ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EndReport {
    /// Number of its last file.
    pub file: u64,
    /// Its last block that counts.
    pub sequence: u64,
}

/// A SEAL file.
#[derive(Debug, Serialize)]
pub struct SealReport {
    /// The lane's end.
    pub end: EndReport,
    /// Blocks that it holds.
    pub blocks: usize,
}

/// A file of blocks.
#[derive(Debug, Default, Serialize)]
pub struct FileReport {
    /// Its name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Bytes that blocks take of it.
    pub used_bytes: u64,
    /// How many blocks of each kind.
    pub blocks: BTreeMap<&'static str, u64>,
    /// First sequence number, 0 where it holds nothing.
    pub first_sequence: u64,
    /// Last sequence number, 0 where it holds nothing.
    pub last_sequence: u64,
    /// Record batches.
    pub batches: u64,
    /// Their bytes.
    pub record_bytes: u64,
    /// When its first and its last block were written, ms since 1970 UTC.
    pub written_ms: Option<(i64, i64)>,
}

/// The index that is left of a file that was split.
#[derive(Debug, Serialize)]
pub struct LeftoverReport {
    /// Its name.
    pub file: String,
    /// First sequence number of that file.
    pub first_sequence: u64,
    /// Last sequence number.
    pub last_sequence: u64,
    /// How many blocks of each kind.
    pub blocks: BTreeMap<&'static str, u64>,
    /// Record bytes that the file had.
    pub record_bytes: u64,
    /// When the first and the last of these blocks were written, ms since 1970 UTC.
    pub written_ms: Option<(i64, i64)>,
}

/// A partition with its manifests.
#[derive(Debug, Serialize)]
pub struct PartitionReport {
    /// Its topic's id.
    pub topic_id: String,
    /// Its topic's name; `None` where the metadata has no such topic.
    pub topic: Option<String>,
    /// Its number.
    pub partition: i32,
    /// The incarnation that leads it.
    pub leader: Option<Incarnation>,
    /// Its leader epoch.
    pub epoch: Option<i32>,
    /// Lanes in which it may have unsplit records.
    pub extents: Vec<Incarnation>,
    /// The manifest that counts, by the install records in the lanes; `None` before the first.
    pub manifest: Option<String>,
    /// All its manifests in the object store.
    pub manifests: Vec<String>,
    /// First offset that may be read.
    pub log_start: i64,
    /// Offset after the last record in segments.
    pub covered_end: i64,
    /// Segments of the manifest that counts.
    pub segments: usize,
    /// Segments that retention dropped lately, which the manifest still names for the meter.
    pub dropped: usize,
    /// Bytes of record batches in them.
    pub bytes: u64,
    /// Compaction has seen everything below this offset; 0 where the topic is not compacted.
    pub compacted_until: i64,
    /// Segments that compaction wrote.
    pub compacted_segments: usize,
    /// Bytes of segments that compaction is to see and has not seen yet.
    pub dirty_bytes: u64,
    /// Idempotent producers that it remembers.
    pub producers: usize,
    /// Damaged places of its manifests and objects. Such a partition is not joined or compacted,
    /// and those places are not served.
    pub damaged: usize,
}

/// An object.
#[derive(Debug, Serialize)]
pub struct ObjectReport {
    /// Its key.
    pub key: String,
    /// Segments in it that manifests name; 0 where it waits for the sweeper.
    pub segments: usize,
    /// Chunks of these.
    pub chunks: usize,
    /// Bytes of record batches in these.
    pub bytes: u64,
}

/// The cluster's metadata.
struct Known {
    incarnations: BTreeMap<Incarnation, Stored<IncarnationRecord>>,
    names: BTreeMap<freshet_wire::ids::TopicId, String>,
    partitions: BTreeMap<PartitionId, PartitionRecord>,
}

/// Makes the report.
struct Inspector<'a> {
    environment: &'a Environment,
    objects: Arc<dyn ObjectStore>,
    cluster: &'a str,
    options: &'a InspectOptions,
    known: Known,
    /// The newest installed manifest of each partition.
    installed: BTreeMap<PartitionId, ManifestRef>,
    report: Report,
}

/// Inspects a cluster's storage.
///
/// # Errors
/// [`InspectError`]; damage is part of the report instead.
pub async fn inspect(
    environment: &Environment,
    store: Arc<dyn MetadataStore>,
    cluster: &str,
    options: &InspectOptions,
) -> Result<Report, InspectError> {
    let known = Known::read(environment, store, cluster).await?;
    let report =
        Report { cluster: cluster.to_owned(), verified: options.verify, ..Report::default() };
    let mut inspector = Inspector {
        environment,
        objects: Arc::clone(&environment.bucket),
        cluster,
        options,
        known,
        installed: BTreeMap::new(),
        report,
    };
    inspector.read_lanes().await?;
    if options.lane.is_none() {
        inspector.read_partitions().await?;
    }
    if options.topic.is_some() {
        inspector.report.lanes.clear();
    }
    Ok(inspector.report)
}

impl Known {
    async fn read(
        environment: &Environment,
        store: Arc<dyn MetadataStore>,
        cluster: &str,
    ) -> Result<Self, InspectError> {
        let scoped: Arc<dyn MetadataStore> = Arc::new(ScopedStore::new(store, cluster)?);
        let (clock, randomness) = (&environment.clock, &environment.randomness);
        let metadata =
            ClusterMetadata::new(Arc::clone(&scoped), Arc::clone(clock), Arc::clone(randomness));
        let incarnations = metadata.incarnations().await?;
        let (view, _) = MetadataView::open(scoped).await?;
        let mut names = BTreeMap::new();
        let mut partitions = BTreeMap::new();
        for topic in view.topics().iter() {
            names.insert(topic.record.id, topic.record.name.clone());
            for (index, stored) in (0..).zip(&topic.partitions) {
                partitions.insert(PartitionId::new(topic.record.id, index), stored.record.clone());
            }
        }
        Ok(Self { incarnations, names, partitions })
    }

    /// Whether a partition is one of the topic of this name or id.
    fn is_of(&self, partition: PartitionId, topic: &str) -> bool {
        self.names.get(&partition.topic).is_some_and(|name| name == topic)
            || topic.parse() == Ok(partition.topic)
    }
}

impl Inspector<'_> {
    #[expect(clippy::needless_pass_by_value, reason = "errors and text alike, as they come")]
    fn damaged(&mut self, file: impl Into<String>, what: impl ToString) {
        self.report.damage.push(Damage { file: file.into(), what: what.to_string() });
    }

    /// Notes a batch whose records cannot be read, once however many copies of it there are.
    fn check_records(&mut self, partition: PartitionId, batch: &StoredBatch) {
        let Err(error) = batch.walk(|_| {}) else { return };
        let name = self.known.names.get(&partition.topic).cloned();
        let header = batch.header();
        let damaged = DamagedBatch {
            topic: name.unwrap_or_else(|| partition.topic.to_string()),
            partition: partition.index,
            first_offset: header.base_offset,
            next_offset: header.next_offset(),
            what: error.to_string(),
        };
        if !self.report.damaged_batches.contains(&damaged) {
            self.report.damaged_batches.push(damaged);
        }
    }

    fn install(&mut self, partition: PartitionId, manifest: ManifestRef) {
        let newest = self.installed.entry(partition).or_insert(manifest);
        *newest = (*newest).max(manifest);
    }

    fn manifest_key(&self, partition: PartitionId, name: ManifestRef) -> String {
        Manifest::key(self.cluster, partition, name)
    }
}
