//! Finding offsets by time (ListOffsets).

use super::read::ReadError;
use super::{Partition, State};
use crate::records::find_by_timestamp;

/// A record's place in the log and in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOffset {
    /// Offset of the record.
    pub offset: i64,
    /// Its timestamp, ms.
    pub timestamp: i64,
}

impl Partition {
    /// The first record whose timestamp is at least `timestamp`; `None` where there is none.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn offset_for_time(&self, timestamp: i64) -> Result<Option<TimedOffset>, ReadError> {
        const STEP_BYTES: usize = 1 << 20;
        let Some(mut offset) = self.first_run_reaching(timestamp) else { return Ok(None) };
        let end = self.bounds().end;
        while offset < end {
            let before = offset;
            for batch in &self.read(offset, STEP_BYTES, true).await?.batches {
                let from = self.bounds().log_start;
                if let Some((offset, timestamp)) = find_by_timestamp(batch, timestamp, from) {
                    return Ok(Some(TimedOffset { offset, timestamp }));
                }
                offset = batch.last_offset() + 1;
            }
            if offset == before {
                break;
            }
        }
        Ok(None)
    }

    /// The record with the largest timestamp; of several the first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn max_timestamp(&self) -> Result<Option<TimedOffset>, ReadError> {
        let largest = {
            let state = self.state.lock();
            runs(&state).map(|(_, max)| max).max()
        };
        match largest {
            Some(largest) => self.offset_for_time(largest).await,
            None => Ok(None),
        }
    }

    /// Where the first segment or unsplit batch starts that reaches `timestamp`.
    fn first_run_reaching(&self, timestamp: i64) -> Option<i64> {
        let state = self.state.lock();
        runs(&state).find(|(_, max)| *max >= timestamp).map(|(base_offset, _)| base_offset)
    }
}

/// Where the segments and unsplit batches that may be read start, and their largest timestamps. A
/// run that begins before the log start may have its largest timestamp there.
fn runs(state: &State) -> impl Iterator<Item = (i64, i64)> {
    let log_start = state.manifest.log_start;
    let segments = state.manifest.segments.iter();
    let segments = segments.map(|run| (run.base_offset, run.end_offset, run.max_timestamp));
    let unsplit = state.unsplit.iter();
    let unsplit = unsplit.map(|run| (run.base_offset, run.end_offset, run.max_timestamp));
    let runs = segments.chain(unsplit).filter(move |(_, end_offset, _)| *end_offset > log_start);
    runs.map(move |(base_offset, _, max)| (base_offset.max(log_start), max))
}
