//! Decides whether a partition is to be compacted, and how far, as Kafka's `LogCleanerManager`
//! does.

use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::Segment;

/// The configs of a topic that concern compaction.
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
    /// The first offset that compaction has not seen.
    pub from: i64,
    /// The offset before which it must stop.
    pub until: i64,
}

/// The part of a partition that compaction has not seen yet and may see.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cleanable {
    /// Its offsets.
    pub range: DirtyRange,
    /// The bytes in this part.
    pub dirty_bytes: u64,
    /// The bytes before it, which compaction has seen.
    pub clean_bytes: u64,
    /// Whether a record has waited for longer than `max.compaction.lag.ms`.
    pub overdue: bool,
}

impl Cleanable {
    /// The dirty bytes as a share (0 to 1) of all bytes that would be read. Kafka reports it as
    /// `max-dirty-percent`.
    pub fn dirty_ratio(&self) -> f64 {
        self.dirty_bytes as f64 / (self.clean_bytes + self.dirty_bytes).max(1) as f64
    }

    /// Whether the partition is to be compacted.
    pub fn is_due(&self, rules: CompactionRules) -> bool {
        self.overdue || self.dirty_ratio() > rules.dirty_ratio_min
    }
}

/// The offsets that are to be compacted; `None` where the partition is not due.
pub fn due(manifest: &Manifest, rules: CompactionRules, now_ms: i64) -> Option<DirtyRange> {
    let cleanable = cleanable(manifest, rules, now_ms)?;
    cleanable.is_due(rules).then_some(cleanable.range)
}

/// The part of a partition that compaction may see and has not seen; `None` where there is none.
///
/// All segments count as Kafka's closed segments do. Nothing past the last stable offset may be
/// seen and, with a minimal lag, no segment with a record that is younger than the lag.
pub fn cleanable(manifest: &Manifest, rules: CompactionRules, now_ms: i64) -> Option<Cleanable> {
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
    let count = dirty.iter().take_while(closed).count();
    let dirty = &dirty[..count];
    let until = dirty.last()?.end_offset;
    let sum = |segments: &[Segment]| segments.iter().map(|segment| segment.bytes).sum::<u64>();
    let first = dirty.first()?.first_timestamp;
    let overdue = first >= 0 && first < now_ms.saturating_sub(rules.lag_ms_max);
    let range = DirtyRange { from, until };
    Some(Cleanable { range, dirty_bytes: sum(dirty), clean_bytes: sum(clean), overdue })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::log;

    const RULES: CompactionRules = CompactionRules {
        lag_ms_min: 0,
        lag_ms_max: i64::MAX,
        dirty_ratio_min: 0.5,
        delete_retention_ms: 0,
    };

    fn due_range(manifest: &Manifest, rules: CompactionRules, now_ms: i64) -> Option<(i64, i64)> {
        due(manifest, rules, now_ms).map(|range| (range.from, range.until))
    }

    #[test]
    fn a_log_is_due_once_more_than_the_asked_share_of_it_is_dirty() {
        let mut manifest = log(&[100, 60, 40]);
        assert_eq!(due_range(&manifest, RULES, 0), Some((0, 30)));
        manifest.first_dirty_offset = 10;
        assert_eq!(due_range(&manifest, RULES, 0), None, "half of it is not more than half");
        let less = CompactionRules { dirty_ratio_min: 0.49, ..RULES };
        assert_eq!(due_range(&manifest, less, 0), Some((10, 30)));
        manifest.first_dirty_offset = 30;
        let always = CompactionRules { dirty_ratio_min: 0.0, ..RULES };
        assert_eq!(due_range(&manifest, always, 0), None, "nothing is new");
        assert_eq!(due_range(&log(&[]), always, 0), None);
    }

    #[test]
    fn a_segment_of_which_a_part_was_seen_counts_as_dirty() {
        let mut manifest = log(&[100, 60, 40]);
        manifest.first_dirty_offset = 15;
        let cleanable = cleanable(&manifest, RULES, 0).unwrap();
        assert_eq!((cleanable.clean_bytes, cleanable.dirty_bytes), (100, 100));
        assert_eq!((cleanable.range.from, cleanable.range.until), (15, 30));
    }

    #[test]
    fn records_that_were_deleted_are_not_looked_at() {
        let mut manifest = log(&[100, 60, 40]);
        manifest.log_start = 12;
        assert_eq!(due_range(&manifest, RULES, 0), None);
        manifest.log_start = 5;
        assert_eq!(due_range(&manifest, RULES, 0), Some((5, 30)));
    }

    #[test]
    fn nothing_past_the_last_stable_offset_is_touched() {
        let mut manifest = log(&[100, 60, 40]);
        manifest.last_stable_offset = 29;
        assert_eq!(due_range(&manifest, RULES, 0), Some((0, 20)));
        manifest.last_stable_offset = 9;
        assert_eq!(due_range(&manifest, RULES, 0), None);
    }

    #[test]
    fn with_a_minimal_lag_young_records_and_what_follows_them_wait() {
        let mut manifest = log(&[100, 60, 40]);
        for (segment, timestamp) in manifest.segments.iter_mut().zip([100, 300, 200]) {
            segment.max_timestamp = timestamp;
        }
        let rules = CompactionRules { lag_ms_min: 50, ..RULES };
        assert_eq!(due_range(&manifest, rules, 149), None);
        assert_eq!(due_range(&manifest, rules, 150), Some((0, 10)));
        assert_eq!(due_range(&manifest, rules, 349), Some((0, 10)));
        assert_eq!(due_range(&manifest, rules, 350), Some((0, 30)));
    }

    #[test]
    fn a_record_that_waited_too_long_makes_its_log_due_whatever_its_share() {
        let mut manifest = log(&[100, 6, 4]);
        manifest.first_dirty_offset = 10;
        manifest.segments[1].first_timestamp = 1_000;
        let rules = CompactionRules { lag_ms_max: 500, ..RULES };
        assert_eq!(due_range(&manifest, rules, 1_500), None);
        assert_eq!(due_range(&manifest, rules, 1_501), Some((10, 30)));
        manifest.segments[1].first_timestamp = -1;
        assert_eq!(
            due_range(&manifest, rules, i64::MAX),
            None,
            "without a timestamp none has an age"
        );
    }
}
