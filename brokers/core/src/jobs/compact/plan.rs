//! Whether a partition is to be compacted, and how far: Kafka's `LogCleanerManager`.

use crate::cold::manifest::Manifest;
use crate::cold::segment::Segment;

/// What a topic's configuration asks of compaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionRules {
    /// `min.compaction.lag.ms`.
    pub lag_ms_min: i64,
    /// `max.compaction.lag.ms`.
    pub lag_ms_max: i64,
    /// `min.cleanable.dirty.ratio`.
    pub dirty_ratio_min: f64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
}

/// The dirty part that is to be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyRange {
    /// First offset that compaction has not seen.
    pub from: i64,
    /// Where it must stop.
    pub until: i64,
}

/// What is to be compacted of a partition; none where it is not due.
///
/// What is split counts as Kafka's closed segments do. Nothing past the last stable offset is
/// touched, nor, with a minimal lag, a segment that holds a younger record.
pub fn due(manifest: &Manifest, rules: CompactionRules, now_ms: i64) -> Option<DirtyRange> {
    let from = manifest.first_dirty_offset.max(manifest.log_start);
    let segments = &manifest.segments;
    let dirty_at = segments.partition_point(|segment| segment.end_offset <= from);
    let (clean, dirty) = segments.split_at(dirty_at);
    let too_young = |segment: &Segment| {
        rules.lag_ms_min > 0 && segment.newest_ms() > now_ms.saturating_sub(rules.lag_ms_min)
    };
    let closed = |segment: &&Segment| {
        segment.end_offset <= manifest.last_stable_offset && !too_young(segment)
    };
    let cleanable = dirty.iter().take_while(closed).count();
    let cleanable = &dirty[..cleanable];
    let until = cleanable.last()?.end_offset;
    let sum = |segments: &[Segment]| segments.iter().map(|segment| segment.bytes).sum::<u64>();
    let (clean_bytes, dirty_bytes) = (sum(clean), sum(cleanable));
    let ratio = dirty_bytes as f64 / (clean_bytes + dirty_bytes).max(1) as f64;
    let overdue_before = now_ms.saturating_sub(rules.lag_ms_max);
    let first = cleanable.first()?.first_timestamp;
    let overdue = first >= 0 && first < overdue_before;
    (overdue || ratio > rules.dirty_ratio_min).then_some(DirtyRange { from, until })
}
