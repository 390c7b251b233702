//! Deletes records on request (DeleteRecords) by moving a partition's log start forward. The log
//! start is in the manifest, so it outlives restarts. Segments that end before it are dropped at
//! once; records that are not split yet are dropped when they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::publish::{Change, Edit};
use super::{JobContext, JobError};
use freshet_wire::ids::PartitionId;

/// A request to delete the records of a partition that precede an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeleteBefore {
    /// The partition.
    pub partition: PartitionId,
    /// The first offset that stays; at most the partition's end. One before the log start changes
    /// nothing.
    pub offset: i64,
}

/// Moves log starts forward, and returns once that is durable.
///
/// # Errors
/// [`JobError::Moved`] where this incarnation leads one of the partitions no more, or hands it
/// over; any other [`JobError`]. Partitions whose manifest was not installed then keep all their
/// records.
pub async fn delete_records(
    context: &JobContext,
    deletions: &[DeleteBefore],
) -> Result<(), JobError> {
    let now_ms = context.clock.now_ms();
    let done = Arc::new(AtomicUsize::new(0));
    let edits = deletions.iter().filter_map(|DeleteBefore { partition, offset }| {
        let partition = context.partitions.get(*partition)?;
        let offset = (*offset).min(partition.bounds().end);
        let done = Arc::clone(&done);
        let change: Change = Box::new(move |current| {
            done.fetch_add(1, Ordering::Relaxed);
            let mut manifest = current.clone();
            manifest.start_at(offset, now_ms);
            Ok((offset > current.log_start).then_some(manifest))
        });
        Some(Edit { partition, change })
    });
    context.edit(edits.collect()).await?;
    if done.load(Ordering::Relaxed) == deletions.len() { Ok(()) } else { Err(JobError::Moved) }
}
