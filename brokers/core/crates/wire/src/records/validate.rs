//! What a producer may append: Kafka's rules (`ProduceRequest.validateRecords`,
//! `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`), read from the header alone wherever
//! the header decides.

use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;

use super::build::write_checksum;
use super::header::{
    ATTRIBUTES_AT, BatchHeader, HEADER_BYTES, LOG_APPEND_TIME_BIT, MAX_TIMESTAMP_AT, TimestampType,
};
use super::iterate::{DECOMPRESSED_BYTES_MAX, RECORD_BYTES_MIN};
use super::stored::check;
use super::{Compression, NO_PRODUCER_ID, NO_TIMESTAMP, Record, Records, RecordsError};
use crate::codec::crc32c;

/// How many faulty records of a batch are named in an answer.
const RECORD_ERRORS_MAX: usize = 1000;

/// What the topic's configuration allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProduceLimits {
    /// `max.message.bytes`: size of a whole batch, compressed.
    pub max_message_bytes: usize,
    /// The broker's clock, in milliseconds.
    pub now_ms: i64,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// `message.timestamp.type`.
    pub message_timestamp_type: TimestampType,
    /// Whether `cleanup.policy` contains `compact`: each record needs a key.
    pub compacted: bool,
}

/// Why a batch is refused, as Produce answers it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecordRejection {
    /// The partition's error code.
    pub error: ResponseError,
    /// The partition's error message.
    pub message: String,
    /// Faulty records by their place in the batch, where single records are at fault.
    pub record_errors: Vec<(i32, String)>,
}

/// A batch that passed. Its base offset is the producer's (0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatedBatch {
    bytes: Bytes,
    header: BatchHeader,
}

impl ValidatedBatch {
    /// Takes a batch that the broker made itself, which need not meet a producer's rules.
    ///
    /// # Errors
    /// Any error of [`BatchHeader::parse`]; [`RecordsError::Inconsistent`] where the bytes are not
    /// exactly one batch.
    pub fn trusted(bytes: Bytes) -> Result<Self, RecordsError> {
        let header = BatchHeader::parse(&bytes)?;
        if header.size_bytes() != bytes.len() {
            return Err(RecordsError::Inconsistent("not exactly one batch"));
        }
        Ok(Self { bytes, header })
    }

    /// The batch in one piece: the allocation that was received.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The batch in one piece.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// What follows the header. Shared, not copied.
    pub fn payload(&self) -> Bytes {
        self.bytes.slice(HEADER_BYTES..)
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What Produce answers as `log_append_time_ms`; `None` where the producer set the time.
    pub fn log_append_time_ms(&self) -> Option<i64> {
        match self.header.timestamp_type() {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(self.header.max_timestamp),
        }
    }
}

fn reject(error: ResponseError, message: impl Into<String>) -> RecordRejection {
    RecordRejection { error, message: message.into(), record_errors: Vec::new() }
}

fn invalid(message: impl Into<String>) -> RecordRejection {
    reject(ResponseError::InvalidRecord, message)
}

/// Checks what a producer sent for one partition. Records are read (and decompressed) only for
/// compacted topics, and to name the records of a batch that is refused for its timestamps. The
/// batch is copied only for [`TimestampType::LogAppendTime`].
///
/// # Errors
/// The answer that the partition gets.
pub fn validate_produced(
    records: Bytes,
    limits: &ProduceLimits,
) -> Result<ValidatedBatch, RecordRejection> {
    let header = parse_only_batch(&records)?;
    check_size(&header, limits)?;
    check(header.crc, crc32c(&records[ATTRIBUTES_AT..]))
        .map_err(|error| reject(ResponseError::CorruptMessage, error.to_string()))?;
    check_counts(&header, records.len())?;
    check_producer(&header)?;
    let batch = ValidatedBatch { bytes: records, header };
    check_timestamps(&batch, limits)?;
    if limits.compacted {
        check_keys(&batch)?;
    }
    match limits.message_timestamp_type {
        TimestampType::CreateTime => Ok(batch),
        TimestampType::LogAppendTime => Ok(with_log_append_time(&batch, limits.now_ms)),
    }
}

fn parse_only_batch(records: &[u8]) -> Result<BatchHeader, RecordRejection> {
    let header = match BatchHeader::parse(records) {
        Ok(header) => header,
        Err(RecordsError::Wire(_)) if !matches!(records.get(16), Some(0 | 1)) => {
            return Err(invalid("a partition's records must be exactly one record batch"));
        }
        Err(RecordsError::Wire(_) | RecordsError::Magic(0 | 1)) => {
            return Err(invalid("only record batches with magic version 2 are allowed"));
        }
        Err(error) => return Err(reject(ResponseError::CorruptMessage, error.to_string())),
    };
    if header.size_bytes() != records.len() {
        return Err(invalid(format!(
            "a partition's records must be exactly one record batch: {} bytes hold a batch of {}",
            records.len(),
            header.size_bytes()
        )));
    }
    if header.base_offset != 0 {
        return Err(invalid(format!(
            "the base offset of a produced batch must be 0, but it is {}",
            header.base_offset
        )));
    }
    Ok(header)
}

fn check_size(header: &BatchHeader, limits: &ProduceLimits) -> Result<(), RecordRejection> {
    let (size, max) = (header.size_bytes(), limits.max_message_bytes);
    if size <= max {
        return Ok(());
    }
    let message = format!("a batch of {size} bytes exceeds max.message.bytes = {max}");
    Err(reject(ResponseError::MessageTooLarge, message))
}

fn check_counts(header: &BatchHeader, size_bytes: usize) -> Result<(), RecordRejection> {
    let count = i64::from(header.record_count);
    let span = i64::from(header.last_offset_delta) + 1;
    if span <= 0 || count <= 0 || count != span {
        return Err(invalid(format!(
            "{count} records do not fit a last offset delta of {}",
            header.last_offset_delta
        )));
    }
    let compression = header.compression().map_err(|error| invalid(error.to_string()))?;
    let bytes_min = count * RECORD_BYTES_MIN as i64;
    if compression == Compression::None && bytes_min > (size_bytes - HEADER_BYTES) as i64 {
        return Err(invalid(format!("{count} records do not fit {size_bytes} bytes")));
    }
    Ok(())
}

fn check_producer(header: &BatchHeader) -> Result<(), RecordRejection> {
    if header.is_control() {
        return Err(invalid("clients are not allowed to write control records"));
    }
    if header.producer_id < NO_PRODUCER_ID {
        return Err(invalid(format!("invalid producer id {}", header.producer_id)));
    }
    if header.has_producer_id() && (header.base_sequence < 0 || header.producer_epoch < 0) {
        return Err(invalid(format!(
            "invalid sequence number {} or epoch {} with producer id {}",
            header.base_sequence, header.producer_epoch, header.producer_id
        )));
    }
    if header.is_transactional() && !header.has_producer_id() {
        return Err(invalid("a transactional batch needs a producer id"));
    }
    Ok(())
}

fn check_timestamps(batch: &ValidatedBatch, limits: &ProduceLimits) -> Result<(), RecordRejection> {
    let header = &batch.header;
    if header.timestamp_type() == TimestampType::LogAppendTime {
        let message = "producers must not set the timestamp type to LogAppendTime";
        return Err(reject(ResponseError::InvalidTimestamp, message));
    }
    if limits.message_timestamp_type == TimestampType::LogAppendTime {
        return Ok(());
    }
    let earliest = limits.now_ms.saturating_sub(limits.timestamp_before_max_ms);
    let latest = limits.now_ms.saturating_add(limits.timestamp_after_max_ms);
    let allowed = |ts: i64| ts == NO_TIMESTAMP || (earliest..=latest).contains(&ts);
    if allowed(header.base_timestamp) && allowed(header.max_timestamp) {
        return Ok(());
    }
    let message = "one or more records have been rejected due to invalid timestamp";
    let record_errors = faulty_records(batch, |record| {
        (!allowed(record.timestamp)).then(|| {
            let ts = record.timestamp;
            format!("timestamp {ts} is out of range, it should be within [{earliest}, {latest}]")
        })
    });
    let error = ResponseError::InvalidTimestamp;
    Err(RecordRejection {
        error,
        message: message.to_owned(),
        record_errors: record_errors.unwrap_or_default(),
    })
}

fn check_keys(batch: &ValidatedBatch) -> Result<(), RecordRejection> {
    let record_errors = faulty_records(batch, |record| {
        let message = "compacted topic cannot accept message without key";
        record.key.is_none().then(|| message.to_owned())
    })
    .map_err(|error| invalid(error.to_string()))?;
    if record_errors.is_empty() {
        return Ok(());
    }
    let message = "one or more records have been rejected: a compacted topic needs keys";
    Err(RecordRejection { record_errors, ..invalid(message) })
}

/// The faulty records by their place in the batch, up to [`RECORD_ERRORS_MAX`]. Reads every record.
fn faulty_records(
    batch: &ValidatedBatch,
    fault: impl Fn(&Record) -> Option<String>,
) -> Result<Vec<(i32, String)>, RecordsError> {
    let mut faulty = Vec::new();
    let records = Records::new(batch.header, &batch.payload(), DECOMPRESSED_BYTES_MAX)?;
    for (index, record) in (0..).zip(records.without_headers()) {
        if let Some(message) = fault(&record?)
            && faulty.len() < RECORD_ERRORS_MAX
        {
            faulty.push((index, message));
        }
    }
    Ok(faulty)
}

fn with_log_append_time(batch: &ValidatedBatch, now_ms: i64) -> ValidatedBatch {
    let mut header = batch.header;
    header.attributes |= LOG_APPEND_TIME_BIT;
    header.max_timestamp = now_ms;
    let mut bytes = BytesMut::from(batch.bytes.as_ref());
    bytes[ATTRIBUTES_AT..ATTRIBUTES_AT + 2].copy_from_slice(&header.attributes.to_be_bytes());
    bytes[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&now_ms.to_be_bytes());
    write_checksum(&mut bytes);
    let bytes = bytes.freeze();
    header.crc = BatchHeader::parse(&bytes).expect("only valid fields were changed").crc;
    ValidatedBatch { bytes, header }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{BatchBuilder, StoredBatch};

    const NOW: i64 = 1_700_000_000_000;
    const HOUR: i64 = 3_600_000;

    fn limits() -> ProduceLimits {
        ProduceLimits {
            max_message_bytes: 1_048_588,
            now_ms: NOW,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: HOUR,
            message_timestamp_type: TimestampType::CreateTime,
            compacted: false,
        }
    }

    fn sample() -> BatchBuilder {
        BatchBuilder::new(0).record(NOW, Some(b"k"), Some(b"v")).record(NOW + 1, None, None)
    }

    /// Overwrites a field and, below the checksum, repairs the checksum.
    fn changed(at: usize, value: &[u8]) -> Bytes {
        let mut bytes = sample().build().to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        write_checksum(&mut bytes);
        bytes.into()
    }

    fn error_of(records: Bytes, limits: &ProduceLimits) -> ResponseError {
        validate_produced(records, limits).unwrap_err().error
    }

    #[test]
    fn a_good_batch_is_kept_without_a_copy() {
        let bytes = sample().producer(5, 0, 0).build();
        let batch = validate_produced(bytes.clone(), &limits()).unwrap();
        assert_eq!(batch.bytes().as_ptr(), bytes.as_ptr());
        assert_eq!(batch.log_append_time_ms(), None);
        assert_eq!(batch.header().producer_id, 5);
    }

    #[test]
    fn damage_is_a_corrupt_message() {
        let mut bytes = sample().build().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(error_of(bytes.into(), &limits()), ResponseError::CorruptMessage);
        assert_eq!(error_of(changed(16, &[3]), &limits()), ResponseError::CorruptMessage);
        let length = 20_i32.to_be_bytes();
        assert_eq!(error_of(changed(8, &length), &limits()), ResponseError::CorruptMessage);
    }

    #[test]
    fn whatever_is_not_one_current_batch_is_an_invalid_record() {
        let good = sample().build();
        let mut old = vec![0; 30];
        old[16] = 1;
        let two = Bytes::from([&good[..], &good[..]].concat());
        let cases: [(&str, Bytes); 15] = [
            ("nothing", Bytes::new()),
            ("a part", good.slice(..good.len() - 1)),
            ("less than a header", good.slice(..40)),
            ("two batches", two),
            ("magic 1", changed(16, &[1])),
            ("a short message of magic 1", old.into()),
            ("a base offset", changed(0, &1_i64.to_be_bytes())),
            ("more records than offsets", changed(57, &3_i32.to_be_bytes())),
            ("no records", changed(57, &0_i32.to_be_bytes())),
            ("a negative range", changed(23, &(-1_i32).to_be_bytes())),
            ("an unknown compression", changed(21, &5_i16.to_be_bytes())),
            ("a control batch", sample().control(true).build()),
            ("a producer without sequence", sample().producer(4, 0, -1).build()),
            ("a producer without epoch", sample().producer(4, -1, 0).build()),
            ("a transaction without producer", sample().transactional(true).build()),
        ];
        for (name, records) in cases {
            assert_eq!(error_of(records, &limits()), ResponseError::InvalidRecord, "{name}");
        }
    }

    #[test]
    fn a_count_that_the_bytes_cannot_hold_is_refused() {
        let mut bytes = sample().build().to_vec();
        bytes[23..27].copy_from_slice(&(i32::MAX - 1).to_be_bytes());
        bytes[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
        write_checksum(&mut bytes);
        assert_eq!(error_of(bytes.into(), &limits()), ResponseError::InvalidRecord);
    }

    #[test]
    fn a_sequence_without_a_producer_is_tolerated() {
        let batch = sample().producer(NO_PRODUCER_ID, -1, 0).build();
        validate_produced(batch, &limits()).unwrap();
    }

    #[test]
    fn size_is_bounded_inclusively() {
        let bytes = sample().build();
        let exact = ProduceLimits { max_message_bytes: bytes.len(), ..limits() };
        validate_produced(bytes.clone(), &exact).unwrap();
        let less = ProduceLimits { max_message_bytes: bytes.len() - 1, ..limits() };
        assert_eq!(error_of(bytes, &less), ResponseError::MessageTooLarge);
    }

    #[test]
    fn timestamps_out_of_range_are_named_by_record() {
        let late = BatchBuilder::new(0).record(NOW, None, None).record(NOW + HOUR + 1, None, None);
        let rejection = validate_produced(late.build(), &limits()).unwrap_err();
        assert_eq!(rejection.error, ResponseError::InvalidTimestamp);
        assert_eq!(rejection.record_errors.len(), 1);
        assert_eq!(rejection.record_errors[0].0, 1);
        let edge = BatchBuilder::new(0).record(NOW + HOUR, None, None).build();
        validate_produced(edge, &limits()).unwrap();

        let strict = ProduceLimits { timestamp_before_max_ms: 10, ..limits() };
        let early = BatchBuilder::new(0).record(NOW - 11, None, None).build();
        assert_eq!(error_of(early, &strict), ResponseError::InvalidTimestamp);
        let none = BatchBuilder::new(0).record(NO_TIMESTAMP, None, None).build();
        validate_produced(none, &strict).unwrap();
    }

    #[test]
    fn producers_do_not_set_log_append_time() {
        let batch = sample().timestamp_type(TimestampType::LogAppendTime).build();
        assert_eq!(error_of(batch, &limits()), ResponseError::InvalidTimestamp);
    }

    #[test]
    fn log_append_time_is_the_brokers_and_the_checksum_follows() {
        let limits =
            ProduceLimits { message_timestamp_type: TimestampType::LogAppendTime, ..limits() };
        let old = BatchBuilder::new(0).record(5, None, None).build();
        let batch = validate_produced(old, &limits).unwrap();
        assert_eq!(batch.log_append_time_ms(), Some(NOW));
        assert_eq!(BatchHeader::parse(batch.bytes()).unwrap(), *batch.header());
        let stored = StoredBatch::new(batch.clone(), 9, 1);
        stored.verify_checksum().unwrap();
        let record = stored.records(1000).unwrap().next().unwrap().unwrap();
        assert_eq!((record.offset, record.timestamp), (9, NOW));
    }

    #[test]
    fn compacted_topics_need_keys() {
        let compacted = ProduceLimits { compacted: true, ..limits() };
        for codec in [Compression::None, Compression::Snappy] {
            let batch = sample().compression(codec).build();
            validate_produced(batch.clone(), &limits()).unwrap();
            let rejection = validate_produced(batch, &compacted).unwrap_err();
            assert_eq!(rejection.error, ResponseError::InvalidRecord);
            assert_eq!(rejection.record_errors.len(), 1);
            assert_eq!(rejection.record_errors[0].0, 1);
        }
        let keyed = BatchBuilder::new(0).record(NOW, Some(b"k"), None).build();
        validate_produced(keyed, &compacted).unwrap();
    }

    #[test]
    fn an_unreadable_payload_is_refused_where_keys_are_needed() {
        let compacted = ProduceLimits { compacted: true, ..limits() };
        let broken = changed(HEADER_BYTES, &[0x01]);
        assert_eq!(error_of(broken.clone(), &compacted), ResponseError::InvalidRecord);
        validate_produced(broken, &limits()).unwrap();
    }
}
