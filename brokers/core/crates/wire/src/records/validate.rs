//! What a producer may append: Kafka's rules (`ProduceRequest.validateRecords`,
//! `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`). No batch is acknowledged that was not
//! read from its first record to its last.

use bytes::{Buf, Bytes};
use kafka_protocol::ResponseError;

use super::forms::with_small_window;
use super::header::{
    ATTRIBUTES_AT, BatchHeader, DELETE_HORIZON_BIT, HEADER_BYTES, LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD, MAGIC_AT, RESERVED_BITS, TimestampType,
};
use super::iterate::RECORD_BYTES_MIN;
use super::pack::{Codec, Packer};
use super::stored::check;
use super::unpack::UnpackLimits;
use super::walk::{RecordOutline, walk_and_copy, walk_produced};
use super::{Compression, NO_TIMESTAMP, RecordsError, memory_to_unpack};
use crate::codec::crc32c;

/// How much one batch may decompress to, in bytes. Kafka has no such bound.
pub const UNPACKED_BYTES_MAX: usize = 1 << 30;
/// How many faulty records of a batch are named in an answer.
const RECORD_ERRORS_MAX: usize = 1000;
/// What only brokers say of a batch. As in Kafka, the records' own times count where a producer
/// claims that they are the broker's; unlike there, its base timestamp is no delete horizon, by
/// which compaction would remove tombstones at once.
const BROKERS_BITS: i16 = LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT;

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
    /// The codec in which batches are stored (`compression.type` and the level that goes with it);
    /// `None`: as the producer sent them.
    pub stored_codec: Option<Codec>,
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
    header: BatchHeader,
    payload: Bytes,
}

impl ValidatedBatch {
    /// Takes a batch that the broker made itself, which need not meet a producer's rules.
    ///
    /// # Errors
    /// Any error of [`BatchHeader::parse`]; [`RecordsError::Inconsistent`] where the bytes are not
    /// exactly one batch.
    pub fn trusted(mut bytes: Bytes) -> Result<Self, RecordsError> {
        let header = BatchHeader::parse(&bytes)?;
        if header.size_bytes() != bytes.len() {
            return Err(RecordsError::Inconsistent("not exactly one batch"));
        }
        bytes.advance(HEADER_BYTES);
        Ok(Self { header, payload: bytes })
    }

    /// The header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Header and records.
    pub fn into_parts(self) -> (BatchHeader, Bytes) {
        (self.header, self.payload)
    }

    /// What follows the header: the allocation that was received, unless the records were
    /// compressed anew.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.payload.len()
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

/// Why a batch was not read to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadFailure {
    /// The batch is refused.
    #[error(transparent)]
    Rejected(#[from] RecordRejection),
    /// A limit of the caller ended it ([`RecordsError::is_limit`]).
    #[error(transparent)]
    Unfinished(RecordsError),
}

/// What a producer sent for one partition: one batch of an acceptable size, of which only the
/// header was read yet.
#[derive(Debug, Clone)]
pub struct ProducedBatch {
    bytes: Bytes,
    header: BatchHeader,
}

impl ProducedBatch {
    /// Takes the records that a request has for one partition.
    ///
    /// # Errors
    /// The answer that the partition gets.
    pub fn parse(records: Bytes, limits: &ProduceLimits) -> Result<Self, RecordRejection> {
        let (bytes, header) = parse_only_batch(records)?;
        check_size(bytes.len(), limits)?;
        Ok(Self { bytes, header })
    }

    /// The header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How much memory it takes to read it, in bytes.
    pub fn memory_to_read(&self) -> usize {
        let compression = self.header.compression().unwrap_or_default();
        memory_to_unpack(compression, &self.bytes[HEADER_BYTES..])
    }

    /// Verifies the checksum, and what the header says of counts and of the producer. Nothing is
    /// decompressed.
    ///
    /// # Errors
    /// The answer that the partition gets.
    pub fn verify(&self) -> Result<Compression, RecordRejection> {
        let (bytes, header) = (&self.bytes, &self.header);
        check(header.crc, crc32c(&bytes[ATTRIBUTES_AT..]))
            .map_err(|error| reject(ResponseError::CorruptMessage, error.to_string()))?;
        let compression = check_counts(header, bytes.len())?;
        check_producer(header)?;
        Ok(compression)
    }

    /// Verifies the checksum, and reads every record. Sets the largest timestamp from the records,
    /// or from the clock for [`TimestampType::LogAppendTime`].
    ///
    /// # Errors
    /// [`ReadFailure::Rejected`] with the answer that the partition gets;
    /// [`ReadFailure::Unfinished`] where `unpack` does not suffice.
    pub fn read(
        &self,
        limits: &ProduceLimits,
        unpack: UnpackLimits<'_>,
    ) -> Result<ValidatedBatch, ReadFailure> {
        let compression = self.verify()?;
        let (bytes, header) = (&self.bytes, &self.header);
        check_base_timestamp(header, limits)?;
        let claims_append_time = header.timestamp_type() == TimestampType::LogAppendTime;
        if claims_append_time && limits.message_timestamp_type == TimestampType::LogAppendTime {
            let message = "producers must not set the timestamp type to LogAppendTime";
            return Err(reject(ResponseError::InvalidTimestamp, message).into());
        }
        let attributes = header.attributes & !BROKERS_BITS;
        let header = &BatchHeader { attributes, ..*header };
        let mut judge = RecordJudge::new(limits);
        let payload = bytes.slice(HEADER_BYTES..);
        let payload = match limits.stored_codec {
            Some(codec) if codec.compression != compression => {
                compress_anew(header, &payload, codec, limits, unpack, &mut judge)?
            }
            _ => {
                let visit = |record| judge.look_at(record);
                let content_bytes =
                    walk_produced(header, &payload, unpack, visit).map_err(failure)?;
                let smaller = match compression {
                    Compression::Zstd => with_small_window(&payload, content_bytes),
                    _ => Ok(None),
                };
                smaller.map_err(failure)?.map_or(payload, Bytes::from)
            }
        };
        let max_timestamp = judge.largest_timestamp()?;
        Ok(self.stored_as(payload, max_timestamp, limits))
    }

    /// The batch with this payload and largest timestamp. Its checksum is computed anew only where
    /// anything differs.
    fn stored_as(
        &self,
        payload: Bytes,
        max_timestamp: i64,
        limits: &ProduceLimits,
    ) -> ValidatedBatch {
        let attributes = self.header.attributes & !BROKERS_BITS;
        let mut header = BatchHeader { attributes, max_timestamp, ..self.header };
        if limits.message_timestamp_type == TimestampType::LogAppendTime {
            header.attributes |= LOG_APPEND_TIME_BIT;
            header.max_timestamp = limits.now_ms;
        }
        if let Some(codec) = limits.stored_codec
            && Ok(codec.compression) != header.compression()
        {
            header.set_compression(codec.compression);
        }
        let is_as_sent = payload.as_ptr() == self.bytes[HEADER_BYTES..].as_ptr();
        if header != self.header || !is_as_sent {
            header.attributes &= !RESERVED_BITS;
            header = header.sealed(&payload);
        }
        ValidatedBatch { header, payload }
    }
}

fn failure(error: RecordsError) -> ReadFailure {
    if error.is_limit() {
        ReadFailure::Unfinished(error)
    } else {
        invalid(error.to_string()).into()
    }
}

/// Reads the records, and compresses them with another codec on the way, byte for byte the same.
fn compress_anew(
    header: &BatchHeader,
    payload: &[u8],
    codec: Codec,
    limits: &ProduceLimits,
    unpack: UnpackLimits<'_>,
    judge: &mut RecordJudge<'_>,
) -> Result<Bytes, ReadFailure> {
    let refused = |error: &std::io::Error| codec.compression.refused(error);
    let mut packer = Packer::new(codec, None).map_err(|error| failure(refused(&error)))?;
    let mut packed_bytes = 0;
    let walked = walk_and_copy(
        header,
        payload,
        unpack,
        |record| judge.look_at(record),
        |piece| {
            packer.write(piece).map_err(|error| refused(&error))?;
            packed_bytes = packer.packed_bytes();
            // Ends what grows beyond any size that could be stored.
            let may_be_stored = packed_bytes <= limits.max_message_bytes;
            if may_be_stored { Ok(()) } else { Err(RecordsError::Stopped) }
        },
    );
    check_size(HEADER_BYTES + packed_bytes, limits)?;
    walked.map_err(failure)?;
    let payload = packer.finish().map_err(|error| failure(refused(&error)))?;
    check_size(HEADER_BYTES + payload.len(), limits)?;
    Ok(payload)
}

/// Does what [`ProducedBatch::parse`] and [`ProducedBatch::read`] do, within
/// [`UNPACKED_BYTES_MAX`].
///
/// # Errors
/// The answer that the partition gets.
pub fn validate_produced(
    records: Bytes,
    limits: &ProduceLimits,
) -> Result<ValidatedBatch, RecordRejection> {
    let batch = ProducedBatch::parse(records, limits)?;
    let unpack = UnpackLimits::of_output(UNPACKED_BYTES_MAX);
    batch.read(limits, unpack).map_err(RecordRejection::from)
}

impl From<ReadFailure> for RecordRejection {
    /// What remains unread is refused with the limit that was met.
    fn from(failure: ReadFailure) -> Self {
        match failure {
            ReadFailure::Rejected(rejection) => rejection,
            ReadFailure::Unfinished(error) => invalid(error.to_string()),
        }
    }
}

/// The bytes at the head of what may be a batch of any format, up to the magic.
struct BatchHead {
    size: usize,
    magic: u8,
}

impl BatchHead {
    /// `None` where the bytes end before the batch does.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, RecordRejection> {
        /// The least that follows the length in any format (`LegacyRecord.RECORD_OVERHEAD_V0`).
        const LENGTH_MIN: usize = 14;
        let corrupt = |message: String| reject(ResponseError::CorruptMessage, message);
        let Some(length) = bytes.get(8..LOG_OVERHEAD) else { return Ok(None) };
        let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
        let size = match usize::try_from(length) {
            Ok(length) if length >= LENGTH_MIN => length + LOG_OVERHEAD,
            _ => return Err(corrupt(format!("impossible batch length {length}"))),
        };
        let Some(&magic) = bytes.get(MAGIC_AT) else { return Ok(None) };
        if magic > 2 {
            return Err(corrupt(format!("record batch magic {magic} does not exist")));
        }
        Ok((size <= bytes.len()).then_some(Self { size, magic }))
    }
}

/// The batch that a partition's records must be, without what follows it where that is too short
/// for another one. Each error is the one that Kafka answers (`ProduceRequest.validateRecords`,
/// `ByteBufferLogInputStream`).
fn parse_only_batch(mut records: Bytes) -> Result<(Bytes, BatchHeader), RecordRejection> {
    let Some(head) = BatchHead::parse(&records)? else {
        return Err(invalid("a partition's records must be exactly one record batch"));
    };
    if head.magic != 2 {
        return Err(invalid("only record batches with magic version 2 are allowed"));
    }
    if let Some(next) = BatchHead::parse(&records[head.size..])? {
        return Err(invalid(format!(
            "a partition's records must be exactly one record batch: a batch of {} bytes is \
             followed by one of {}",
            head.size, next.size
        )));
    }
    let header = BatchHeader::parse(&records)
        .map_err(|error| reject(ResponseError::CorruptMessage, error.to_string()))?;
    if header.base_offset != 0 {
        return Err(invalid(format!(
            "the base offset of a produced batch must be 0, but it is {}",
            header.base_offset
        )));
    }
    records.truncate(head.size);
    Ok((records, header))
}

fn check_size(size: usize, limits: &ProduceLimits) -> Result<(), RecordRejection> {
    let max = limits.max_message_bytes;
    if size <= max {
        return Ok(());
    }
    let message = format!("a batch of {size} bytes exceeds max.message.bytes = {max}");
    Err(reject(ResponseError::MessageTooLarge, message))
}

fn check_counts(header: &BatchHeader, size_bytes: usize) -> Result<Compression, RecordRejection> {
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
    Ok(compression)
}

fn check_producer(header: &BatchHeader) -> Result<(), RecordRejection> {
    if header.is_control() {
        return Err(invalid("clients are not allowed to write control records"));
    }
    // Any negative id says that there is none.
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(invalid(format!(
            "invalid sequence number {} with producer id {}",
            header.base_sequence, header.producer_id
        )));
    }
    if header.has_producer_id() && header.producer_epoch < 0 {
        let message = format!("invalid producer epoch {}", header.producer_epoch);
        return Err(reject(ResponseError::InvalidProducerEpoch, message));
    }
    if header.is_transactional() && !header.has_producer_id() {
        return Err(invalid("a transactional batch needs a producer id"));
    }
    Ok(())
}

/// The base of the records' times is a time itself, or -1, where the topic keeps them.
fn check_base_timestamp(
    header: &BatchHeader,
    limits: &ProduceLimits,
) -> Result<(), RecordRejection> {
    let base = header.base_timestamp;
    let is_kept = limits.message_timestamp_type == TimestampType::CreateTime;
    if is_kept && base < NO_TIMESTAMP {
        let message = format!("the base timestamp of a batch must not be {base}");
        return Err(reject(ResponseError::InvalidTimestamp, message));
    }
    Ok(())
}

/// Judges the records of a batch one after another.
struct RecordJudge<'a> {
    limits: &'a ProduceLimits,
    count: i32,
    max_timestamp: i64,
    has_bad_timestamp: bool,
    faults: Vec<(i32, String)>,
}

impl<'a> RecordJudge<'a> {
    fn new(limits: &'a ProduceLimits) -> Self {
        Self {
            limits,
            count: 0,
            max_timestamp: NO_TIMESTAMP,
            has_bad_timestamp: false,
            faults: Vec::new(),
        }
    }

    fn look_at(&mut self, record: RecordOutline) {
        let index = self.count;
        self.count += 1;
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        if self.limits.compacted && !record.has_key {
            self.note(index, || "compacted topic cannot accept message without key".to_owned());
        } else if !self.limits.allows(record.timestamp) {
            self.has_bad_timestamp = true;
            let (earliest, latest) = self.limits.timestamp_range();
            self.note(index, || {
                let timestamp = record.timestamp;
                format!(
                    "timestamp {timestamp} is out of range, it should be within [{earliest}, \
                     {latest}]"
                )
            });
        }
    }

    fn note(&mut self, index: i32, fault: impl FnOnce() -> String) {
        if self.faults.len() < RECORD_ERRORS_MAX {
            self.faults.push((index, fault()));
        }
    }

    /// The largest timestamp of the records, once all of them were looked at.
    fn largest_timestamp(self) -> Result<i64, RecordRejection> {
        let record_errors = self.faults;
        if self.has_bad_timestamp {
            let message = "one or more records have been rejected due to invalid timestamp";
            let rejection = reject(ResponseError::InvalidTimestamp, message);
            return Err(RecordRejection { record_errors, ..rejection });
        }
        if !record_errors.is_empty() {
            let message = "one or more records have been rejected: a compacted topic needs keys";
            return Err(RecordRejection { record_errors, ..invalid(message) });
        }
        Ok(self.max_timestamp)
    }
}

impl ProduceLimits {
    /// The earliest and the latest CreateTime that a record may have. Times before 1970 are none:
    /// clients take them for "none", or refuse them.
    fn timestamp_range(&self) -> (i64, i64) {
        let earliest = self.now_ms.saturating_sub(self.timestamp_before_max_ms);
        (earliest.max(0), self.now_ms.saturating_add(self.timestamp_after_max_ms))
    }

    /// The time that the broker gives records, ms; `None` where the producer's counts.
    pub fn log_append_time_ms(&self) -> Option<i64> {
        let is_brokers = self.message_timestamp_type == TimestampType::LogAppendTime;
        is_brokers.then_some(self.now_ms)
    }

    fn allows(&self, timestamp: i64) -> bool {
        let (earliest, latest) = self.timestamp_range();
        self.message_timestamp_type == TimestampType::LogAppendTime
            || timestamp == NO_TIMESTAMP
            || (earliest..=latest).contains(&timestamp)
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
