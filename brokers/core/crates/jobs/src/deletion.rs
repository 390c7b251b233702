//! Deleting records by request (DeleteRecords): a partition's log start moves forward. It is in the
//! manifest, so it outlives restarts; segments that end before it go at once, and what is not split
//! yet goes when it is.

use super::publish::{Change, Edit};
use super::{JobContext, JobError};
use freshet_wire::ids::PartitionId;

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
    let edits = wanted.iter().filter_map(|DeleteBefore { partition, offset }| {
        let partition = context.partitions.get(*partition)?;
        let offset = (*offset).min(partition.bounds().end);
        let change: Change = Box::new(move |current| {
            let mut manifest = current.clone();
            manifest.start_at(offset, now_ms);
            Ok((offset > current.log_start).then_some(manifest))
        });
        Some(Edit { partition, change })
    });
    context.edit(edits.collect()).await
}
