//! Which runs of a file or object are loaded for the ranges that a reader needs.

use std::ops::Range;

/// Short runs begin and end at multiples of this, or at the end of what may be read.
pub(super) const PAGE_BYTES: u64 = 512 << 10;
/// Runs of at least so many bytes are not short.
const LONG_BYTES: u64 = 256 << 10;
/// The longest run.
pub(crate) const RUN_BYTES_MAX: u64 = 8 << 20;

/// The range that is loaded for a range: itself where it is long, or else whole pages.
pub(super) fn widen(range: Range<u64>, limit: u64) -> Range<u64> {
    if range.end - range.start >= LONG_BYTES {
        return range;
    }
    let start = range.start / PAGE_BYTES * PAGE_BYTES;
    start..range.end.next_multiple_of(PAGE_BYTES).min(limit)
}

/// As much of a range as one run may hold.
pub(super) fn cut_run(range: Range<u64>) -> Range<u64> {
    range.start..range.end.min(range.start.saturating_add(RUN_BYTES_MAX))
}

/// The runs that are loaded for ranges, which are in order. A run ends between two ranges where it
/// can, because what lies in two runs has to be copied together for its reader.
pub(super) fn runs(ranges: &[Range<u64>], limit: u64) -> Vec<Range<u64>> {
    let spans = ranges.chunk_by(|one, other| one.end >= other.start);
    let mut runs: Vec<Range<u64>> = Vec::new();
    for range in spans.flat_map(|span| widen_span(span, limit)) {
        let end = runs.last().map_or(0, |last| last.end);
        match runs.last_mut() {
            Some(last) if range.start <= end && range.end <= last.start + RUN_BYTES_MAX => {
                last.end = end.max(range.end);
            }
            _ => {
                let mut rest = range.start.max(end)..range.end;
                while rest.start < rest.end {
                    runs.push(cut_run(rest.clone()));
                    rest.start = runs[runs.len() - 1].end;
                }
            }
        }
    }
    runs
}

/// Ranges that touch: as they are where they are long together, or else the pages around them.
fn widen_span(span: &[Range<u64>], limit: u64) -> Vec<Range<u64>> {
    let [first, .., last] = span else {
        return span.iter().map(|range| widen(range.clone(), limit)).collect();
    };
    let whole = first.start..last.end;
    let wide = widen(whole.clone(), limit);
    if wide == whole { span.to_vec() } else { vec![wide] }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "runs are ranges, and there may be one")]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const END: u64 = 100 * MIB;

    #[test]
    fn short_ranges_become_runs_of_pages_and_long_ones_end_between_two_ranges() {
        let page = PAGE_BYTES;
        assert_eq!(runs(&[], END), Vec::<Range<u64>>::new());
        assert_eq!(runs(&[10..20, 30..40, page..page + 1], END), [0..2 * page]);
        assert_eq!(runs(&[10..20, 20..page], END), [10..page], "no more than what is wanted");
        assert_eq!(runs(&[10..20, 30..page + 1], END), [0..page + 1]);
        assert_eq!(runs(&[0..1, 5 * page..5 * page + 1], END), [0..page, 5 * page..6 * page]);
        assert_eq!(runs(&[0..20 * MIB], END), [0..8 * MIB, 8 * MIB..16 * MIB, 16 * MIB..20 * MIB]);
        assert_eq!(runs(&[0..1], 7), [0..7]);
        let odd: Vec<_> = (0..7).map(|at| at * 3 * MIB + 5..(at + 1) * 3 * MIB + 5).collect();
        let between = |from: u64, to: u64| from * 3 * MIB + 5..to * 3 * MIB + 5;
        let expected = [between(0, 2), between(2, 4), between(4, 6), between(6, 7)];
        assert_eq!(runs(&odd, END), expected);
        let long = [0..MIB, MIB..18 * MIB, 18 * MIB..19 * MIB];
        assert_eq!(runs(&long, END), [0..MIB, MIB..9 * MIB, 9 * MIB..17 * MIB, 17 * MIB..19 * MIB]);
    }
}
