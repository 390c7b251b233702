//! Finds offsets by timestamp, for ListOffsets.

use super::read::ReadError;
use super::{Partition, State};
use freshet_storage::cold::segment::Segment;
use freshet_wire::records::find_by_timestamp;

/// The offset and the timestamp of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOffset {
    /// The offset of the record.
    pub offset: i64,
    /// Its timestamp in ms since 1970.
    pub timestamp: i64,
}

/// A segment, or a batch that is not in a segment yet.
struct Run {
    base_offset: i64,
    end_offset: i64,
    max_timestamp: i64,
    segment: Option<Segment>,
}

impl Partition {
    /// Finds the first record whose timestamp is at least `timestamp`; `None` where there is none.
    /// Only runs and chunks are read whose largest timestamp, which the indexes have, reaches it.
    ///
    /// # Errors
    /// Those of [`Partition::read`].
    pub async fn offset_for_time(&self, timestamp: i64) -> Result<Option<TimedOffset>, ReadError> {
        let mut from = i64::MIN;
        while let Some(run) = self.run_reaching(timestamp, from) {
            for (base_offset, end_offset) in self.parts_reaching(&run, timestamp).await? {
                let record = self.find_within(base_offset.max(from), end_offset, timestamp).await?;
                if record.is_some() {
                    return Ok(record);
                }
            }
            from = run.end_offset;
        }
        Ok(None)
    }

    /// Finds the record with the largest timestamp, and of several the first; `None` where the log
    /// is empty.
    ///
    /// # Errors
    /// Those of [`Partition::read`].
    pub async fn max_timestamp(&self) -> Result<Option<TimedOffset>, ReadError> {
        let largest = {
            let state = self.state.lock();
            runs(&state).map(|run| run.max_timestamp).max()
        };
        match largest {
            Some(largest) => self.offset_for_time(largest).await,
            None => Ok(None),
        }
    }

    /// The first run from the offset `from` on whose largest timestamp is at least `timestamp`.
    fn run_reaching(&self, timestamp: i64, from: i64) -> Option<Run> {
        let state = self.state.lock();
        runs(&state).find(|run| run.end_offset > from && run.max_timestamp >= timestamp)
    }

    /// The parts of a run whose largest timestamps are at least `timestamp`, as (base offset, end
    /// offset).
    async fn parts_reaching(
        &self,
        run: &Run,
        timestamp: i64,
    ) -> Result<Vec<(i64, i64)>, ReadError> {
        let Some(segment) = &run.segment else {
            return Ok(vec![(run.base_offset, run.end_offset)]);
        };
        match self.sources.cold.chunks(self.id(), segment).await {
            Ok(chunks) => {
                let reaching = chunks.iter().filter(|chunk| chunk.max_timestamp >= timestamp);
                Ok(reaching.map(|chunk| (chunk.base_offset, chunk.end_offset)).collect())
            }
            // The segment was replaced, or storage failed. The whole run is read then, which
            // returns the error if there still is one.
            Err(_) => Ok(vec![(run.base_offset, run.end_offset)]),
        }
    }

    async fn find_within(
        &self,
        mut offset: i64,
        end_offset: i64,
        timestamp: i64,
    ) -> Result<Option<TimedOffset>, ReadError> {
        const STEP_BYTES: usize = 1 << 20;
        loop {
            let log_start = self.bounds().log_start;
            offset = offset.max(log_start);
            if offset >= end_offset {
                return Ok(None);
            }
            let before = offset;
            for batch in self.read(offset, STEP_BYTES, true).await?.batches() {
                if let Some((offset, timestamp)) = find_by_timestamp(&batch, timestamp, log_start) {
                    return Ok(Some(TimedOffset { offset, timestamp }));
                }
                offset = batch.last_offset() + 1;
            }
            if offset == before {
                return Ok(None);
            }
        }
    }
}

/// The segments and unsplit batches that may be read. The largest timestamp of a run that begins
/// before the log start may be that of a record which was deleted.
fn runs(state: &State) -> impl Iterator<Item = Run> {
    let log_start = state.manifest.log_start;
    let segments = state.manifest.segments.iter().map(|segment| Run {
        base_offset: segment.base_offset,
        end_offset: segment.end_offset,
        max_timestamp: segment.max_timestamp,
        segment: Some(*segment),
    });
    let unsplit = state.unsplit.iter().map(|batch| Run {
        base_offset: batch.base_offset,
        end_offset: batch.end_offset,
        max_timestamp: batch.max_timestamp,
        segment: None,
    });
    segments.chain(unsplit).filter(move |run| run.end_offset > log_start)
}
