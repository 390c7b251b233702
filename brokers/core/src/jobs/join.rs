//! Joining: the splitter makes a segment per lane file and partition, so small partitions would
//! have many tiny ones. Runs of adjacent small segments become one, tier by tier, so that each byte
//! is written again a few times at most.

use std::ops::Range;
use std::sync::Arc;

use super::JobError;
use super::rewrite::{OBJECT_BYTES, Rewriter, Source};
use crate::cold::manifest::Manifest;
use crate::cold::segment::Segment;
use crate::partition::Partition;

/// So many segments of a tier become one of the next.
const JOINED_MIN: usize = 8;
/// Segments of the lowest tier are below this, in bytes; each next bound is as many times larger as
/// segments are joined.
const TIER_BYTES_MIN: u64 = 64 << 10;
/// Segments above it are not joined any more.
const TIER_BYTES_MAX: u64 = OBJECT_BYTES / 4;

/// Joins what is due of a partition.
///
/// # Errors
/// [`JobError`]; the partition keeps what it had.
pub(super) async fn join(
    source: &Source<'_>,
    rewriter: &mut Rewriter<'_>,
    partition: &Arc<Partition>,
) -> Result<(), JobError> {
    let manifest = partition.manifest();
    let Some(run) = due_run(&manifest) else { return Ok(()) };
    let run = &manifest.segments[run];
    let batches = source.read(partition.id(), run).await?;
    tracing::debug!(partition = %partition.id(), segments = run.len(), "joins segments");
    rewriter.replace(partition, &manifest, run, &batches, false).await
}

/// The adjacent segments that are to become one. Those that compaction has seen are not joined with
/// those that it has not.
pub fn due_run(manifest: &Manifest) -> Option<Range<usize>> {
    let segments = &manifest.segments;
    let clean =
        segments.partition_point(|segment| segment.end_offset <= manifest.first_dirty_offset);
    let mut tier_bytes = TIER_BYTES_MIN;
    while tier_bytes <= TIER_BYTES_MAX {
        for range in [0..clean, clean..segments.len()] {
            if let Some(run) = run_below(segments, range, tier_bytes) {
                return Some(run);
            }
        }
        tier_bytes = tier_bytes.saturating_mul(JOINED_MIN as u64);
    }
    None
}

/// The first run within `range` of enough segments below `tier_bytes`, not larger than an object.
fn run_below(segments: &[Segment], range: Range<usize>, tier_bytes: u64) -> Option<Range<usize>> {
    let mut run = range.start..range.start;
    let mut bytes = 0;
    for at in range {
        let segment = &segments[at];
        if segment.bytes >= tier_bytes || bytes + segment.bytes > OBJECT_BYTES {
            if run.len() >= JOINED_MIN {
                break;
            }
            run = at + 1..at + 1;
            bytes = 0;
        } else {
            run.end = at + 1;
            bytes += segment.bytes;
        }
    }
    (run.len() >= JOINED_MIN).then_some(run)
}
