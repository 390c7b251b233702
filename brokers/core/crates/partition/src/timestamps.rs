//! Finds offsets by timestamp, for ListOffsets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::read::ReadError;
use super::{Partition, State};
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::Segment;
use freshet_wire::records::{StoredBatch, TimestampType, find_by_timestamp};

/// The offset and the timestamp of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOffset {
    /// The offset of the record.
    pub offset: i64,
    /// Its timestamp in ms since 1970.
    pub timestamp: i64,
}

impl TimedOffset {
    /// Whether its timestamp is larger than that of `other`, or as large and its offset smaller.
    fn precedes(self, other: Option<Self>) -> bool {
        let rank = |record: Self| (record.timestamp, Reverse(record.offset));
        other.is_none_or(|other| rank(self) > rank(other))
    }
}

/// A part of the log: a segment, a chunk of one, or a batch that is not in a segment yet. The part
/// with the largest timestamp is the greatest, and of several the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// No record of it has a larger timestamp.
    max_timestamp: i64,
    base_offset: Reverse<i64>,
    end_offset: i64,
    /// Where it is a segment, its index in the manifest.
    segment: Option<usize>,
}

impl Part {
    /// Whether it can have a record that [`TimedOffset::precedes`] this one.
    fn may_precede(&self, record: Option<TimedOffset>) -> bool {
        let (offset, timestamp) = (self.base_offset.0, self.max_timestamp);
        TimedOffset { offset, timestamp }.precedes(record)
    }
}

impl Partition {
    /// Finds the first record whose timestamp is at least `timestamp`; `None` where there is none.
    /// Only segments and chunks are read whose largest timestamp, which the indexes have, reaches
    /// it.
    ///
    /// # Errors
    /// Those of [`Partition::read`].
    pub async fn offset_for_time(&self, timestamp: i64) -> Result<Option<TimedOffset>, ReadError> {
        let mut from = i64::MIN;
        while let Some((part, segment)) = self.part_reaching(timestamp, from) {
            let chunks = match &segment {
                Some(segment) => self.chunks(part, segment).await,
                None => vec![part],
            };
            for chunk in chunks.iter().filter(|chunk| chunk.max_timestamp >= timestamp) {
                let mut record = None;
                let mut visit = |batch: &StoredBatch, log_start| {
                    let look_up = find_by_timestamp(batch, timestamp, log_start);
                    if let Some(error) = look_up.damage {
                        self.note_damaged(&batch.header(), &error);
                    }
                    record = look_up.record;
                    if record.is_some() {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                };
                self.visit_within(chunk.base_offset.0.max(from), chunk.end_offset, &mut visit)
                    .await?;
                if let Some((offset, timestamp)) = record {
                    return Ok(Some(TimedOffset { offset, timestamp }));
                }
            }
            from = part.end_offset;
        }
        Ok(None)
    }

    /// Finds the record with the largest timestamp of those that the log has now, and of several
    /// the first; `None` where it has none.
    ///
    /// The largest timestamp that an index names may be that of a record which was removed since:
    /// one before the log start in a batch that straddles it, or one of a batch without records. So
    /// parts are read, from the largest timestamp down, until none is left that can have a larger
    /// one than what was found.
    ///
    /// # Errors
    /// Those of [`Partition::read`].
    pub async fn max_timestamp(&self) -> Result<Option<TimedOffset>, ReadError> {
        let (mut parts, manifest) = {
            let state = self.state.lock();
            let parts: BinaryHeap<Part> = parts(&state).collect();
            (parts, Arc::clone(&state.manifest))
        };
        let mut newest: Option<TimedOffset> = None;
        while let Some(part) = parts.pop().filter(|part| part.may_precede(newest)) {
            if let Some(at) = part.segment {
                parts.extend(self.chunks(part, &manifest.segments[at]).await);
                continue;
            }
            let mut visit = |batch: &StoredBatch, log_start| {
                if let Some(record) = newest_of(batch, log_start)
                    && record.precedes(newest)
                {
                    newest = Some(record);
                }
                ControlFlow::Continue(())
            };
            self.visit_within(part.base_offset.0, part.end_offset, &mut visit).await?;
        }
        Ok(newest)
    }

    /// The first segment or unsplit batch from the offset `from` on whose largest timestamp is at
    /// least `timestamp`.
    fn part_reaching(&self, timestamp: i64, from: i64) -> Option<(Part, Option<Segment>)> {
        let state = self.state.lock();
        let reaches = |part: &Part| part.end_offset > from && part.max_timestamp >= timestamp;
        let part = parts(&state).find(reaches)?;
        Some((part, part.segment.map(|at| state.manifest.segments[at])))
    }

    /// The chunks of a segment.
    async fn chunks(&self, part: Part, segment: &Segment) -> Vec<Part> {
        let Ok(chunks) = self.sources.cold.chunks(self.id(), segment).await else {
            // The segment was replaced, or storage failed. The whole of it is read then, which
            // returns the error if there still is one.
            return vec![Part { segment: None, ..part }];
        };
        let of_chunks = chunks.iter().map(|chunk| Part {
            max_timestamp: bound(chunk.max_timestamp),
            base_offset: Reverse(chunk.base_offset),
            end_offset: chunk.end_offset,
            segment: None,
        });
        of_chunks.collect()
    }

    /// Calls `visit` with every batch between two offsets, and the log start, until it breaks.
    async fn visit_within(
        &self,
        mut offset: i64,
        end_offset: i64,
        visit: &mut (dyn FnMut(&StoredBatch, i64) -> ControlFlow<()> + Send),
    ) -> Result<(), ReadError> {
        const STEP_BYTES: usize = 1 << 20;
        loop {
            let log_start = self.bounds().log_start;
            offset = offset.max(log_start);
            if offset >= end_offset {
                return Ok(());
            }
            let read = match self.read(offset, STEP_BYTES, true).await {
                // The log start has moved since.
                Err(ReadError::OutOfRange(bounds)) if bounds.log_start > offset => continue,
                read => read?,
            };
            let before = offset;
            for batch in read.batches() {
                let header = batch.header();
                if header.base_offset >= end_offset || visit(&batch, log_start).is_break() {
                    return Ok(());
                }
                offset = header.next_offset();
            }
            if offset == before {
                return Ok(());
            }
        }
    }
}

/// The segments and unsplit batches that may be read, in order.
fn parts(state: &State) -> impl Iterator<Item = Part> {
    let Manifest { segments, .. } = state.manifest.as_ref();
    let log_start = state.log_start();
    let segments = segments.iter().enumerate().map(|(at, segment)| Part {
        max_timestamp: bound(segment.max_timestamp),
        base_offset: Reverse(segment.base_offset),
        end_offset: segment.end_offset,
        segment: Some(at),
    });
    let unsplit = state.unsplit.iter().map(|batch| Part {
        max_timestamp: bound(batch.max_timestamp),
        base_offset: Reverse(batch.base_offset),
        end_offset: batch.end_offset,
        segment: None,
    });
    segments.chain(unsplit).filter(move |part| part.end_offset > log_start)
}

/// The record of a batch with the largest timestamp, and of several the first, from offset `from`
/// on. Of a batch that cannot be read it is the first one with the timestamp that the header names.
/// A record without a time is not the newest, as in Kafka.
fn newest_of(batch: &StoredBatch, from: i64) -> Option<TimedOffset> {
    let header = batch.header();
    // Compaction leaves batches without records.
    if header.record_count == 0 || header.next_offset() <= from {
        return None;
    }
    let named = header.max_timestamp;
    let first = TimedOffset { offset: header.base_offset.max(from), timestamp: named };
    if header.timestamp_type() == TimestampType::LogAppendTime {
        return Some(first);
    }
    if header.base_offset >= from
        && named >= 0
        && header.names_largest_timestamp()
        && let Some((offset, timestamp)) = find_by_timestamp(batch, named, from).record
    {
        return Some(TimedOffset { offset, timestamp });
    }
    let mut newest: Option<TimedOffset> = None;
    let own = first.offset..header.next_offset();
    let walked = batch.walk(|record| {
        let offset = header.base_offset.saturating_add(record.offset_delta.into());
        let timed = TimedOffset { offset, timestamp: record.timestamp };
        if own.contains(&offset) && timed.timestamp >= 0 && timed.precedes(newest) {
            newest = Some(timed);
        }
    });
    let first = Some(first).filter(|_| walked.is_err() && named >= 0);
    newest.or(first)
}

/// The bound of a part's timestamps by what its index names. An earlier release stored what
/// producers sent, of which some name none: such a part is read.
fn bound(indexed: i64) -> i64 {
    if indexed >= 0 { indexed } else { i64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_wire::records::{BatchBuilder, Compression, HEADER_BYTES};

    fn batch(builder: BatchBuilder) -> StoredBatch {
        StoredBatch::from_contiguous(builder.build()).unwrap()
    }

    fn sample() -> BatchBuilder {
        let timestamps = [10, 40, 20, 30, 30].into_iter();
        timestamps.fold(BatchBuilder::new(100), |builder, at| builder.record(at, None, Some(b"v")))
    }

    fn at(offset: i64, timestamp: i64) -> TimedOffset {
        TimedOffset { offset, timestamp }
    }

    #[test]
    fn the_newest_of_a_batch_is_that_of_the_records_from_an_offset_on() {
        for codec in [Compression::None, Compression::Zstd] {
            let batch = batch(sample().compression(codec));
            assert_eq!(newest_of(&batch, 0), Some(at(101, 40)));
            assert_eq!(newest_of(&batch, 101), Some(at(101, 40)));
            assert_eq!(newest_of(&batch, 102), Some(at(103, 30)), "of several the first");
            assert_eq!(newest_of(&batch, 104), Some(at(104, 30)));
            assert_eq!(newest_of(&batch, 105), None);
        }
        assert_eq!(newest_of(&batch(sample()).emptied(), 0), None);
    }

    #[test]
    fn a_record_without_a_time_is_not_the_newest() {
        let untimed = BatchBuilder::new(100).record(-2, None, Some(b"v"));
        assert_eq!(newest_of(&batch(untimed.clone()), 0), None);
        assert_eq!(newest_of(&batch(untimed.record(5, None, Some(b"v"))), 0), Some(at(101, 5)));
    }

    #[test]
    fn log_append_time_is_that_of_every_record() {
        let batch = batch(sample().timestamp_type(TimestampType::LogAppendTime));
        assert_eq!(newest_of(&batch, 0), Some(at(100, 40)));
        assert_eq!(newest_of(&batch, 103), Some(at(103, 40)));
    }

    #[test]
    fn a_batch_that_cannot_be_read_has_what_its_header_names() {
        let mut bytes = sample().build().to_vec();
        bytes[HEADER_BYTES] = 0x01;
        let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert_eq!(newest_of(&batch, 0), Some(at(100, 40)));
        assert_eq!(newest_of(&batch, 102), Some(at(102, 40)));
    }

    #[test]
    fn parts_are_read_from_the_largest_timestamp_down_and_no_further_than_needed() {
        let part = |max_timestamp, base: i64| Part {
            max_timestamp,
            base_offset: Reverse(base),
            end_offset: base + 10,
            segment: None,
        };
        let mut heap: BinaryHeap<Part> = [part(5, 0), part(9, 20), part(9, 10)].into();
        let popped = std::iter::from_fn(|| heap.pop());
        let order: Vec<_> = popped.map(|part| part.base_offset.0).collect();
        assert_eq!(order, [10, 20, 0]);
        assert!(part(9, 10).may_precede(None));
        assert!(part(9, 10).may_precede(Some(at(15, 9))), "it may have an earlier one");
        assert!(!part(9, 10).may_precede(Some(at(10, 9))));
        assert!(!part(5, 0).may_precede(Some(at(15, 9))));
    }
}
