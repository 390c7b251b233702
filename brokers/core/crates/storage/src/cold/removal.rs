//! What a change of a partition's manifest takes away, for whoever holds copies of its records.

use super::manifest::Manifest;
use super::segment::Segment;

impl Manifest {
    /// The offset below which this manifest may lack records that the one before it has: those
    /// that compaction removed, and those before the log start. From that offset on it has all of
    /// them.
    ///
    /// A segment that was joined with others has the same records as before. What may be compaction
    /// counts as compaction.
    pub fn removed_below(&self, before: &Self) -> i64 {
        let kept = |segment: &&Segment| self.names(segment) || self.has_joined(segment, before);
        let changed = before.segments.iter().rfind(|segment| !kept(segment));
        changed.map_or(self.log_start, |segment| segment.end_offset.max(self.log_start))
    }

    /// Whether it names this very segment, wherever that begins by now.
    fn names(&self, segment: &Segment) -> bool {
        let ends =
            self.segments.binary_search_by_key(&segment.end_offset, |other| other.end_offset);
        ends.is_ok_and(|at| self.segments[at].place() == segment.place())
    }

    /// Whether a segment of the manifest before this one is part of a new one that holds all that
    /// the segments had which it replaced. Where a segment was removed altogether, the next one
    /// begins in its place, but that one is not new; and fewer bytes mean that something is
    /// missing.
    fn has_joined(&self, segment: &Segment, before: &Self) -> bool {
        let at = self.segments.partition_point(|other| other.end_offset < segment.end_offset);
        let Some(joined) = self.segments.get(at) else { return false };
        if joined.compacted || before.names(joined) {
            return false;
        }
        let (base, end) = (joined.base_offset, joined.end_offset);
        let replaced = before.segments.iter();
        let replaced = replaced.filter(|part| base <= part.base_offset && part.end_offset <= end);
        replaced.map(|part| part.bytes).sum::<u64>() == joined.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ObjectRef;
    use freshet_wire::ids::{Incarnation, PartitionId};

    fn segment(number: u64, base_offset: i64, end_offset: i64) -> Segment {
        Segment {
            object: ObjectRef { incarnation: Incarnation(1), number },
            section_position: 16,
            section_bytes: 100,
            base_offset,
            end_offset,
            first_timestamp: 0,
            max_timestamp: 0,
            bytes: (end_offset - base_offset).unsigned_abs(),
            written_at_ms: 0,
            compacted: false,
            read: true,
        }
    }

    /// Four segments of ten offsets each.
    fn before() -> Manifest {
        let mut manifest = Manifest::empty(PartitionId::new(uuid::Uuid::nil(), 0));
        for number in 0..4 {
            let base = 10 * i64::try_from(number).unwrap();
            manifest.add_segment(segment(number, base, base + 10), 0);
        }
        manifest
    }

    /// What is removed where the segments with these numbers are replaced.
    fn removed_by(run: std::ops::Range<usize>, by: Option<Segment>) -> i64 {
        let (before, mut after) = (before(), before());
        let run: Vec<_> = before.segments[run].iter().map(Segment::place).collect();
        assert!(after.replace(&run, by, 0));
        after.removed_below(&before)
    }

    #[test]
    fn what_is_added_or_joined_removes_nothing() {
        assert_eq!(before().removed_below(&Manifest::empty(before().partition)), 0);
        let mut after = before();
        after.add_segment(segment(9, 40, 50), 0);
        assert_eq!(after.removed_below(&before()), 0);
        assert_eq!(removed_by(1..3, Some(segment(9, 10, 30))), 0);
        assert_eq!(removed_by(0..4, Some(segment(9, 0, 40))), 0);
    }

    #[test]
    fn what_compaction_wrote_again_is_removed_up_to_its_end() {
        let less = Segment { bytes: 5, compacted: true, ..segment(9, 10, 30) };
        assert_eq!(removed_by(1..3, Some(less)), 30);
        let shorter = Segment { end_offset: 27, ..less };
        assert_eq!(removed_by(1..3, Some(shorter)), 30, "the next segment takes up the rest");
        assert_eq!(removed_by(1..3, Some(Segment { bytes: 20, ..less })), 30, "whatever it weighs");
    }

    #[test]
    fn a_segment_that_went_altogether_is_not_taken_for_joined() {
        assert_eq!(removed_by(0..2, None), 20);
        assert_eq!(removed_by(2..4, None), 40, "at the end of what was split");
        let joined = Segment { bytes: 20, ..segment(9, 10, 30) };
        let (before, mut after) = (before(), before());
        assert!(after.replace(&[before.segments[0].place()], None, 0));
        let run = [before.segments[1].place(), before.segments[2].place()];
        assert!(after.replace(&run, Some(joined), 0));
        assert_eq!(after.removed_below(&before), 30, "it begins where the first one did");
    }

    #[test]
    fn what_lies_before_the_log_start_is_removed() {
        let mut after = before();
        after.start_at(15, 0);
        assert_eq!(after.removed_below(&before()), 15);
        after.start_at(60, 0);
        assert_eq!(after.removed_below(&before()), 60, "also what is not split yet");
    }
}
