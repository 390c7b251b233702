//! Looking records up by time (ListOffsets).

use super::{DECOMPRESSED_BYTES_MAX, StoredBatch, TimestampType};

/// Offset and timestamp of the batch's first record from offset `from` on whose timestamp is at
/// least `timestamp`, in milliseconds; `None` where there is none.
///
/// A producer's payload is not read when it is accepted. If this one cannot be read, the batch's
/// first offset and largest timestamp are returned instead: a reader that starts there misses
/// nothing.
pub fn find_by_timestamp(batch: &StoredBatch, timestamp: i64, from: i64) -> Option<(i64, i64)> {
    let header = batch.header();
    // Compaction leaves batches without records.
    let empty = header.record_count == 0;
    if empty || header.max_timestamp < timestamp || header.next_offset() <= from {
        return None;
    }
    let whole = Some((header.base_offset.max(from), header.max_timestamp));
    if header.timestamp_type() == TimestampType::LogAppendTime {
        return whole;
    }
    let Ok(records) = batch.records(DECOMPRESSED_BYTES_MAX) else { return whole };
    for record in records.without_headers() {
        match record {
            Ok(record) if record.timestamp >= timestamp && record.offset >= from => {
                return Some((record.offset, record.timestamp));
            }
            Ok(_) => {}
            Err(_) => return whole,
        }
    }
    // The header says that there is one: it lies before `from`, or the header is wrong.
    whole.filter(|_| from <= header.base_offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{BatchBuilder, Compression, HEADER_BYTES};

    fn batch(builder: BatchBuilder) -> StoredBatch {
        StoredBatch::from_contiguous(builder.build()).unwrap()
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
            assert_eq!(find_by_timestamp(&batch, i64::MIN, 0), Some((100, 10)));
            assert_eq!(find_by_timestamp(&batch, 11, 0), Some((101, 30)));
            assert_eq!(find_by_timestamp(&batch, 31, 0), Some((103, 40)));
            assert_eq!(find_by_timestamp(&batch, 41, 0), None);
            // Records that were deleted are not found.
            assert_eq!(find_by_timestamp(&batch, 11, 102), Some((102, 20)));
            assert_eq!(find_by_timestamp(&batch, 30, 102), Some((103, 40)));
            assert_eq!(find_by_timestamp(&batch, 11, 104), None);
        }
    }

    #[test]
    fn log_append_time_means_the_whole_batch() {
        let batch = batch(sample().timestamp_type(TimestampType::LogAppendTime));
        assert_eq!(find_by_timestamp(&batch, 35, 0), Some((100, 40)));
    }

    #[test]
    fn an_unreadable_payload_gives_the_batchs_start() {
        let mut bytes = sample().build().to_vec();
        bytes[HEADER_BYTES] = 0x01;
        let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert_eq!(find_by_timestamp(&batch, 35, 0), Some((100, 40)));
    }
}
