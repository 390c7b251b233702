//! Deleting records by request (DeleteRecords): a partition's log start moves forward. It is in the
//! manifest, so it outlives restarts; segments that end before it go at once, and what is not split
//! yet goes when it is.

use super::{JobContext, JobError};
use crate::cold::manifest::Manifest;
use crate::ids::PartitionId;

/// A partition, and the first offset that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeleteBefore {
    /// Which partition.
    pub partition: PartitionId,
    /// At most the partition's end. One before the log start changes nothing.
    pub offset: i64,
}

/// Moves log starts forward. Partitions that are not led any more are left out.
///
/// # Errors
/// [`JobError`]; where a manifest was not installed its partition keeps all that it had.
pub async fn delete_records(context: &JobContext, wanted: &[DeleteBefore]) -> Result<(), JobError> {
    let now_ms = context.clock.now_ms();
    let mut manifests = Vec::new();
    for DeleteBefore { partition, offset } in wanted {
        let Some(partition) = context.partitions.get(*partition) else { continue };
        let (current, offset) = (partition.manifest(), (*offset).min(partition.bounds().end));
        if offset <= current.log_start {
            continue;
        }
        let mut manifest = Manifest::clone(&current);
        manifest.start_at(offset, now_ms);
        let published = context.publish_manifest(&partition, manifest).await?;
        manifests.push((partition, published));
    }
    if manifests.is_empty() { Ok(()) } else { context.install(manifests).await }
}
