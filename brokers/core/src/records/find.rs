//! Looking records up by time (ListOffsets).

use super::{DECOMPRESSED_BYTES_MAX, StoredBatch, TimestampType};

/// Offset and timestamp of the batch's first record whose timestamp is at least `timestamp`, in
/// milliseconds; `None` where the header says that there is none.
///
/// A producer's payload is not looked into when it is accepted. If this one cannot be read, the
/// batch's first offset and largest timestamp stand in: who starts there misses nothing.
pub fn find_by_timestamp(batch: &StoredBatch, timestamp: i64) -> Option<(i64, i64)> {
    let header = batch.header();
    if header.max_timestamp < timestamp {
        return None;
    }
    let whole = Some((header.base_offset, header.max_timestamp));
    if header.timestamp_type() == TimestampType::LogAppendTime {
        return whole;
    }
    let Ok(records) = batch.records(DECOMPRESSED_BYTES_MAX) else { return whole };
    for record in records.without_headers() {
        match record {
            Ok(record) if record.timestamp >= timestamp => {
                return Some((record.offset, record.timestamp));
            }
            Ok(_) => {}
            Err(_) => return whole,
        }
    }
    whole
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
            assert_eq!(find_by_timestamp(&batch, i64::MIN), Some((100, 10)));
            assert_eq!(find_by_timestamp(&batch, 11), Some((101, 30)));
            assert_eq!(find_by_timestamp(&batch, 31), Some((103, 40)));
            assert_eq!(find_by_timestamp(&batch, 41), None);
        }
    }

    #[test]
    fn log_append_time_means_the_whole_batch() {
        let batch = batch(sample().timestamp_type(TimestampType::LogAppendTime));
        assert_eq!(find_by_timestamp(&batch, 35), Some((100, 40)));
    }

    #[test]
    fn an_unreadable_payload_gives_the_batchs_start() {
        let mut bytes = sample().build().to_vec();
        bytes[HEADER_BYTES] = 0x01;
        let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert_eq!(find_by_timestamp(&batch, 35), Some((100, 40)));
    }
}
