//! When records were made, for the lag of consumer groups in seconds.
//!
//! One batch is read, from memory where it is there. Its header says enough where all of its
//! records have one time, and where the record is the first of a compressed batch, whose base
//! timestamp is that record's with every producer. Otherwise the records of the batch are walked:
//! plain ones as they lie there, compressed ones until the record has come, and no further than
//! [`OUTPUT_BYTES_MAX`]. Beyond that, and where a batch cannot be read, the base timestamp stands
//! for the record: it is the time of a record of the same batch that may be a little older.

use std::cell::Cell;

use super::Partition;
use super::read::ReadError;
use freshet_wire::records::{
    BatchHeader, Compression, StoredBatch, TimestampType, UnpackLimits, walk_records,
};

/// The most bytes that are decompressed for one record.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// The most memory that a decoder may hold for it.
const MEMORY_BYTES_MAX: usize = 16 << 20;
/// How many batches are read at most, of which compaction may have left only headers.
const BATCHES_MAX: usize = 16;

/// What a look shows of the record at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    /// Its time, in ms since 1970; `None` where it has none.
    Record(Option<i64>),
    /// The batch has no record for clients from there on.
    Nothing,
}

impl Partition {
    /// When the first record at `offset` or after it was made, in ms since 1970. `None` where there
    /// is no such record for clients, or it has no time.
    ///
    /// # Errors
    /// Those of [`Partition::read`].
    pub async fn time_at(&self, mut offset: i64) -> Result<Option<i64>, ReadError> {
        for _ in 0..BATCHES_MAX {
            let Some(batch) = self.read_aside(offset).await?.batches().next() else {
                return Ok(None);
            };
            if let Looked::Record(time) = time_in(&batch, offset) {
                return Ok(time);
            }
            offset = batch.header().next_offset().max(offset + 1);
        }
        Ok(None)
    }
}

fn time_in(batch: &StoredBatch, from: i64) -> Looked {
    let header = batch.header();
    if header.is_control() || header.record_count == 0 || header.next_offset() <= from {
        return Looked::Nothing;
    }
    if header.timestamp_type() == TimestampType::LogAppendTime {
        return Looked::Record(named(header.max_timestamp));
    }
    let compressed = header.compression() != Ok(Compression::None);
    let base = base_time(&header);
    if compressed && from <= header.base_offset && base.is_some() {
        return Looked::Record(base);
    }
    match walk_to(batch, &header, from) {
        Some(time) => Looked::Record(named(time)),
        None => Looked::Record(base.or_else(|| named(header.max_timestamp))),
    }
}

/// The time of the batch's first record, where the header has it.
fn base_time(header: &BatchHeader) -> Option<i64> {
    if header.delete_horizon_ms().is_some() { None } else { named(header.base_timestamp) }
}

fn named(time: i64) -> Option<i64> {
    Some(time).filter(|time| *time >= 0)
}

/// The time of the first record from `from` on; `None` where none was read within the limits.
fn walk_to(batch: &StoredBatch, header: &BatchHeader, from: i64) -> Option<i64> {
    let time = Cell::new(None);
    let goes_on = |_: usize| time.get().is_none();
    let limits = UnpackLimits {
        output_bytes: OUTPUT_BYTES_MAX,
        memory_bytes: MEMORY_BYTES_MAX,
        goes_on: Some(&goes_on),
    };
    // An error after the record has come, such as that of the limit, does not matter.
    let _ = walk_records(header, &batch.payload(), limits, |record| {
        let offset = header.base_offset.saturating_add(record.offset_delta.into());
        if time.get().is_none() && offset >= from {
            time.set(Some(record.timestamp));
        }
    });
    time.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_wire::records::{BatchBuilder, HEADER_BYTES};

    fn batch(builder: BatchBuilder) -> StoredBatch {
        StoredBatch::from_contiguous(builder.build()).unwrap()
    }

    fn sample() -> BatchBuilder {
        let times = [10, 40, 20, 30].into_iter();
        times.fold(BatchBuilder::new(100), |builder, at| builder.record(at, None, Some(b"v")))
    }

    fn at(time: i64) -> Looked {
        Looked::Record(Some(time))
    }

    #[test]
    fn the_time_is_that_of_the_record_whatever_the_codec() {
        for codec in Compression::ALL {
            let batch = batch(sample().compression(codec));
            for (from, expected) in
                [(0, at(10)), (100, at(10)), (101, at(40)), (102, at(20)), (103, at(30))]
            {
                assert_eq!(time_in(&batch, from), expected, "{codec:?} {from}");
            }
            assert_eq!(time_in(&batch, 104), Looked::Nothing);
        }
    }

    #[test]
    fn a_time_that_the_broker_set_is_that_of_every_record() {
        let batch = batch(sample().timestamp_type(TimestampType::LogAppendTime));
        assert_eq!(time_in(&batch, 102), at(40));
    }

    #[test]
    fn a_record_without_a_time_has_none() {
        let untimed = BatchBuilder::new(100).record(-1, None, Some(b"v"));
        for codec in Compression::ALL {
            let batch = batch(untimed.clone().compression(codec));
            assert_eq!(time_in(&batch, 100), Looked::Record(None), "{codec:?}");
        }
    }

    #[test]
    fn a_batch_without_records_says_nothing() {
        assert_eq!(time_in(&batch(sample()).emptied(), 0), Looked::Nothing);
    }

    #[test]
    fn what_cannot_be_read_has_the_time_of_its_first_record() {
        let mut bytes = sample().compression(Compression::Zstd).build().to_vec();
        bytes[HEADER_BYTES] ^= 0xff;
        let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert_eq!(time_in(&batch, 102), at(10));
    }

    #[test]
    fn no_more_is_decompressed_than_the_limit() {
        let large = vec![0_u8; OUTPUT_BYTES_MAX];
        let mut builder = BatchBuilder::new(100);
        for time in [10, 20, 30] {
            builder = builder.record(time, None, Some(&large));
        }
        let batch = batch(builder.compression(Compression::Zstd));
        assert_eq!(time_in(&batch, 102), at(10), "the last record lies behind the limit");
    }
}
