//! Joining: the splitter makes one segment per lane file and partition, so small partitions would
//! have many tiny segments. Runs of adjacent small segments are joined into one, tier by tier, so
//! that each byte is written again only a few times.

use std::ops::Range;
use std::sync::Arc;

use super::JobError;
use super::rewrite::{OBJECT_BYTES, Rewriter, Source};
use freshet_partition::Partition;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::Segment;

/// This many adjacent segments of a tier are joined into one of the next tier.
const JOINED_MIN: usize = 8;
/// Segments of the lowest tier are smaller than this, in bytes. The bound of each next tier is
/// [`JOINED_MIN`] times larger.
const TIER_BYTES_MIN: u64 = 64 << 10;
/// Segments of this size or more, in bytes, are not joined any more.
const TIER_BYTES_MAX: u64 = OBJECT_BYTES / 4;

/// Joins a run of segments of a partition, where one is due.
///
/// # Errors
/// Any [`JobError`]; then the partition keeps its segments.
pub(super) async fn join_segments(
    source: &Source<'_>,
    rewriter: &mut Rewriter<'_>,
    partition: &Arc<Partition>,
) -> Result<(), JobError> {
    let manifest = partition.manifest();
    let Some(run) = due_run(&manifest) else { return Ok(()) };
    let run = &manifest.segments[run];
    let batches = source.read(partition.id(), run).await?;
    tracing::debug!(partition = %partition.id(), segments = run.len(), "joins segments");
    source.metrics().runs.inc();
    source.metrics().written_bytes.inc_by(run.iter().map(|segment| segment.bytes).sum());
    rewriter.replace(partition, &manifest, run, &batches, false).await
}

/// The indexes of adjacent segments that are to be joined; `None` where none are. Segments that
/// compaction has seen are not joined with those that it has not, because a joined segment is
/// either clean or dirty.
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

/// The first run within `range` of at least [`JOINED_MIN`] segments smaller than `tier_bytes` that
/// together fit into an object.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::log;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    #[test]
    fn eight_small_segments_in_a_row_are_joined_and_fewer_are_not() {
        assert_eq!(due_run(&log(&[KIB; 7])), None);
        assert_eq!(due_run(&log(&[KIB; 8])), Some(0..8));
        assert_eq!(due_run(&log(&[KIB; 30])), Some(0..30));
        assert_eq!(due_run(&log(&[])), None);
    }

    #[test]
    fn a_large_segment_ends_a_run() {
        let mut sizes = vec![KIB; 7];
        sizes.push(40 * MIB);
        sizes.extend([KIB; 7]);
        assert_eq!(due_run(&log(&sizes)), None);
        sizes.push(KIB);
        assert_eq!(due_run(&log(&sizes)), Some(8..16));
        sizes.insert(0, KIB);
        assert_eq!(due_run(&log(&sizes)), Some(0..8), "the oldest first");
    }

    #[test]
    fn larger_segments_are_joined_with_their_like_up_to_a_size() {
        assert_eq!(due_run(&log(&[64 * KIB; 8])), Some(0..8), "of the next tier");
        let mut sizes = vec![600 * KIB; 3];
        sizes.extend([KIB; 8]);
        assert_eq!(due_run(&log(&sizes)), Some(3..11), "the lowest tier comes first");
        assert_eq!(due_run(&log(&[4 * MIB - 1; 8])), Some(0..8));
        assert_eq!(due_run(&log(&[4 * MIB; 8])), None);
    }

    #[test]
    fn a_run_is_no_larger_than_an_object() {
        assert_eq!(due_run(&log(&[3 * MIB; 20])), Some(0..10));
    }

    #[test]
    fn what_compaction_has_seen_is_not_joined_with_what_it_has_not() {
        let mut manifest = log(&[KIB; 14]);
        manifest.first_dirty_offset = 70;
        assert_eq!(due_run(&manifest), None);
        manifest.first_dirty_offset = 80;
        assert_eq!(due_run(&manifest), Some(0..8));
        manifest.first_dirty_offset = 60;
        assert_eq!(due_run(&manifest), Some(6..14));
        manifest.first_dirty_offset = 65;
        assert_eq!(due_run(&manifest), Some(6..14), "a part that it has seen does not count");
    }
}
