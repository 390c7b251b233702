//! Looking records up by time (ListOffsets).

use super::validate::UNPACKED_BYTES_MAX;
use super::{
    BatchHeader, NO_TIMESTAMP, RecordOutline, RecordsError, StoredBatch, TimestampType,
    UnpackLimits, walk_records,
};

impl BatchHeader {
    /// Whether the largest timestamp may be that of the records. One that lies before the base is
    /// not: an earlier release stored what producers sent, and some leave it at -1. Of a batch with
    /// a delete horizon, which stands in the base's place, the broker has computed it.
    pub fn names_largest_timestamp(&self) -> bool {
        self.max_timestamp >= self.base_timestamp || self.delete_horizon_ms().is_some()
    }

    /// Whether the batch may have a record whose timestamp is at least `timestamp`.
    pub fn may_reach(&self, timestamp: i64) -> bool {
        self.max_timestamp >= timestamp || !self.names_largest_timestamp()
    }
}

impl StoredBatch {
    /// The largest timestamp of its records, in milliseconds, of which every one is read; that of
    /// the header where there is no record.
    ///
    /// # Errors
    /// Any [`RecordsError`] where the records cannot be read.
    pub fn read_largest_timestamp(&self) -> Result<i64, RecordsError> {
        let header = self.header();
        if header.record_count == 0 {
            return Ok(header.max_timestamp);
        }
        let mut largest = NO_TIMESTAMP;
        self.walk(|record| largest = largest.max(record.timestamp))?;
        Ok(largest)
    }

    /// Visits every record, and checks that there are as many as the header says.
    ///
    /// # Errors
    /// Any [`RecordsError`]; those records were visited that lie before the fault.
    pub fn walk(&self, visit: impl FnMut(RecordOutline)) -> Result<(), RecordsError> {
        let unpack = UnpackLimits::of_output(UNPACKED_BYTES_MAX);
        walk_records(&self.header(), &self.payload(), unpack, visit)
    }
}

/// What a look-up by time finds in a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LookUp {
    /// Offset and timestamp of the record; `None` where there is none.
    pub record: Option<(i64, i64)>,
    /// Why the records cannot be read to their end.
    pub damage: Option<RecordsError>,
}

/// Looks for the batch's first record from offset `from` on whose timestamp is at least
/// `timestamp`, in milliseconds.
///
/// A batch that an earlier release stored may be damaged. If this one cannot be read up to such a
/// record, its first offset and largest timestamp are returned instead, if that reaches: a reader
/// that starts there misses nothing.
pub fn find_by_timestamp(batch: &StoredBatch, timestamp: i64, from: i64) -> LookUp {
    let header = batch.header();
    // Compaction leaves batches without records.
    let empty = header.record_count == 0;
    if empty || !header.may_reach(timestamp) || header.next_offset() <= from {
        return LookUp::default();
    }
    let whole = Some((header.base_offset.max(from), header.max_timestamp))
        .filter(|_| header.max_timestamp >= timestamp);
    if header.timestamp_type() == TimestampType::LogAppendTime {
        return LookUp { record: whole, damage: None };
    }
    let mut first = None;
    let walked = batch.walk(|record| {
        let offset = header.base_offset.saturating_add(record.offset_delta.into());
        if first.is_none() && record.timestamp >= timestamp && offset >= from {
            first = Some((offset, record.timestamp));
        }
    });
    match walked {
        Ok(()) => LookUp { record: first, damage: None },
        Err(error) => LookUp { record: first.or(whole), damage: Some(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{BatchBuilder, Compression, HEADER_BYTES};

    fn batch(builder: BatchBuilder) -> StoredBatch {
        StoredBatch::from_contiguous(builder.build()).unwrap()
    }

    fn find(batch: &StoredBatch, timestamp: i64, from: i64) -> Option<(i64, i64)> {
        find_by_timestamp(batch, timestamp, from).record
    }

    fn sample() -> BatchBuilder {
        [10, 30, 20, 40]
            .into_iter()
            .fold(BatchBuilder::new(100), |builder, ts| builder.record(ts, None, Some(b"v")))
    }

    #[test]
    fn the_first_record_at_or_after_the_time_is_found() {
        for codec in [Compression::None, Compression::Gzip, Compression::Lz4] {
            let batch = batch(sample().compression(codec));
            assert_eq!(find(&batch, i64::MIN, 0), Some((100, 10)));
            assert_eq!(find(&batch, 11, 0), Some((101, 30)));
            assert_eq!(find(&batch, 31, 0), Some((103, 40)));
            assert_eq!(find(&batch, 41, 0), None);
            // Records that were deleted are not found.
            assert_eq!(find(&batch, 11, 102), Some((102, 20)));
            assert_eq!(find(&batch, 30, 102), Some((103, 40)));
            assert_eq!(find(&batch, 11, 104), None);
        }
    }

    #[test]
    fn log_append_time_means_the_whole_batch() {
        let batch = batch(sample().timestamp_type(TimestampType::LogAppendTime));
        assert_eq!(find(&batch, 35, 0), Some((100, 40)));
    }

    /// As Sarama sends it: the largest timestamp is -1.
    fn without_largest(codec: Compression) -> StoredBatch {
        let mut bytes = sample().compression(codec).build().to_vec();
        bytes[35..43].copy_from_slice(&i64::to_be_bytes(-1));
        StoredBatch::from_contiguous(bytes.into()).unwrap()
    }

    #[test]
    fn a_header_below_its_base_is_not_believed() {
        for codec in [Compression::None, Compression::Zstd] {
            let batch = without_largest(codec);
            assert_eq!(batch.read_largest_timestamp(), Ok(40));
            assert_eq!(find(&batch, 31, 0), Some((103, 40)));
            assert_eq!(find(&batch, 41, 0), None);
        }
        let mut bytes = without_largest(Compression::None).to_bytes().to_vec();
        bytes[HEADER_BYTES] = 0x01;
        let damaged = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert!(damaged.read_largest_timestamp().is_err());
        assert_eq!(find(&damaged, 5, 0), None);
    }

    #[test]
    fn a_batch_whose_offsets_are_not_in_order_gives_its_start() {
        let mut bytes = sample().build().to_vec();
        // The first record's offset delta: 50 as a zigzag number, instead of 0.
        bytes[HEADER_BYTES + 3] = 100;
        let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert_eq!(find(&batch, 5, 0), Some((100, 40)));
        assert!(find_by_timestamp(&batch, 5, 0).damage.is_some());
        assert!(batch.read_largest_timestamp().is_err());
    }

    #[test]
    fn an_unreadable_payload_gives_the_batchs_start() {
        let mut bytes = sample().build().to_vec();
        bytes[HEADER_BYTES] = 0x01;
        let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert_eq!(find(&batch, 35, 0), Some((100, 40)));
        assert!(find_by_timestamp(&batch, 35, 0).damage.is_some());
    }
}
