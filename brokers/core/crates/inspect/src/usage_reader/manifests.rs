//! The newest manifest of each partition.

use std::collections::BTreeMap;

use freshet_storage::cold::manifest::{DroppedSegment, Manifest, ReplacedBytes};
use freshet_storage::cold::segment::Segment;
use freshet_wire::ids::{PartitionId, TopicId};
use freshet_world::env::store::{ObjectStore, StoreError};

use super::UsageError;

/// How often a partition is read again because its manifest was swept meanwhile.
const LOOKS_MAX: usize = 8;

/// What a partition keeps, by its newest manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSegments {
    /// The partition.
    pub partition: PartitionId,
    /// The manifest's name. Another name means another content.
    pub name: String,
    /// First offset that may be read.
    pub log_start: i64,
    /// Offset behind the last record that was split.
    pub covered_end: i64,
    /// Its segments by offset.
    pub segments: Vec<Segment>,
    /// Segments that retention dropped lately.
    pub dropped: Vec<DroppedSegment>,
    /// Bytes that were split lately, by the first millisecond of a UTC day.
    pub split_by_day: BTreeMap<i64, u64>,
    /// Bytes that rewriting removed lately.
    pub replaced: Vec<ReplacedBytes>,
}

/// Reads the manifests whose name is not the known one, sorted by topic id and partition.
///
/// The newest is the highest that was published. It may lack its install record, where its broker
/// died before: the records that it names are in the log all the same, and what it dropped would be
/// dropped next.
pub(super) async fn read(
    store: &dyn ObjectStore,
    cluster: &str,
    known: &BTreeMap<(String, i32), String>,
) -> Result<Vec<PartitionSegments>, UsageError> {
    let root = Manifest::root(cluster);
    let mut partitions = Vec::new();
    for topic in list_folder(store, &root).await? {
        let Ok(id) = topic.parse::<TopicId>() else { continue };
        let folders = list_folder(store, &format!("{root}/{topic}")).await?;
        let mut indexes: Vec<i32> = folders.iter().filter_map(|name| name.parse().ok()).collect();
        indexes.sort_unstable();
        for index in indexes {
            let known = known.get(&(topic.clone(), index)).map(String::as_str);
            partitions
                .extend(newest_manifest(store, cluster, PartitionId::new(id, index), known).await?);
        }
    }
    Ok(partitions)
}

/// The names in a folder; none where it was removed meanwhile.
async fn list_folder(store: &dyn ObjectStore, folder: &str) -> Result<Vec<String>, UsageError> {
    match store.list(folder).await {
        Err(StoreError::NotFound(_)) => Ok(Vec::new()),
        listed => Ok(listed?),
    }
}

async fn newest_manifest(
    store: &dyn ObjectStore,
    cluster: &str,
    partition: PartitionId,
    known: Option<&str>,
) -> Result<Option<PartitionSegments>, UsageError> {
    let folder = Manifest::folder(cluster, partition);
    let mut gone = None;
    for _ in 0..LOOKS_MAX {
        let names = list_folder(store, &folder).await?;
        let newest = names.iter().filter_map(|name| Manifest::parse_file_name(name)).max();
        let Some(newest) = newest else { return Ok(None) };
        let name = Manifest::file_name(newest);
        if known == Some(name.as_str()) {
            return Ok(None);
        }
        let key = Manifest::key(cluster, partition, newest);
        let bytes = match store.get(&key).await {
            Err(error @ StoreError::NotFound(_)) => {
                gone = Some(error);
                continue;
            }
            got => got?,
        };
        let manifest = Manifest::decode(&bytes)
            .map_err(|error| UsageError::Damaged { file: key.clone(), what: error.to_string() })?;
        if (manifest.partition, manifest.name) != (partition, newest) {
            let what = "it is of another partition, or has another name".to_owned();
            return Err(UsageError::Damaged { file: key, what });
        }
        let Manifest { log_start, covered_end, segments, dropped, .. } = manifest;
        let Manifest { split_by_day, replaced, .. } = manifest;
        return Ok(Some(PartitionSegments {
            partition,
            name,
            log_start,
            covered_end,
            segments,
            dropped,
            split_by_day,
            replaced,
        }));
    }
    gone.map_or(Ok(None), |error| Err(error.into()))
}
