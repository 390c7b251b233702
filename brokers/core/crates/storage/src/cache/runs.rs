//! Which runs of a file or object are loaded for the ranges that a reader needs.

use std::ops::Range;

/// Short runs begin and end at multiples of this, or at the end of what may be read.
pub(super) const PAGE_BYTES: u64 = 512 << 10;
/// Runs of at least so many bytes are not short.
const LONG_BYTES: u64 = 256 << 10;
/// A run does not go beyond the next multiple of this.
pub(super) const FRAME_BYTES: u64 = 8 << 20;

/// The range that is loaded for a range: itself where it is long, or else whole pages.
pub(super) fn widen(range: Range<u64>, limit: u64) -> Range<u64> {
    if range.end - range.start >= LONG_BYTES {
        return range;
    }
    let start = range.start / PAGE_BYTES * PAGE_BYTES;
    start..range.end.next_multiple_of(PAGE_BYTES).min(limit)
}

/// The part of a range that lies in the frame of `place`.
pub(super) fn frame_of(range: Range<u64>, place: u64) -> Range<u64> {
    let frame = place / FRAME_BYTES * FRAME_BYTES;
    range.start.max(frame)..range.end.min(frame + FRAME_BYTES)
}

/// The runs that are loaded for ranges, which are in order. None crosses a frame.
pub(super) fn runs(ranges: &[Range<u64>], limit: u64) -> Vec<Range<u64>> {
    let wide = joined(ranges.iter().cloned()).into_iter().map(|range| widen(range, limit));
    let mut runs = Vec::new();
    for span in joined(wide) {
        let mut start = span.start;
        while start < span.end {
            let run = frame_of(start..span.end, start);
            start = run.end;
            runs.push(run);
        }
    }
    runs
}

/// Joins those of the ranges, which are in order, that touch or overlap.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "runs are ranges, and there may be one")]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const END: u64 = 100 * MIB;

    #[test]
    fn short_ranges_become_runs_of_pages_and_none_crosses_a_frame() {
        let page = PAGE_BYTES;
        assert_eq!(runs(&[], END), Vec::<Range<u64>>::new());
        assert_eq!(runs(&[10..20, 30..40, page..page + 1], END), [0..2 * page]);
        assert_eq!(runs(&[10..20, 20..page], END), [10..page], "no more than what is wanted");
        assert_eq!(runs(&[10..20, 30..page + 1], END), [0..page + 1]);
        assert_eq!(runs(&[0..1, 5 * page..5 * page + 1], END), [0..page, 5 * page..6 * page]);
        assert_eq!(runs(&[0..20 * MIB], END), [0..8 * MIB, 8 * MIB..16 * MIB, 16 * MIB..20 * MIB]);
        assert_eq!(runs(&[0..1], 7), [0..7]);
    }
}
