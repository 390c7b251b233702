//! The 61 bytes at the head of every batch.

use super::{Compression, NO_PRODUCER_ID, RecordsError};
use crate::codec::{Crc32c, WireError};

/// Size of a batch's header in bytes (Kafka's `RECORD_BATCH_OVERHEAD`).
pub const HEADER_BYTES: usize = 61;
/// Size of base offset and batch length, which the batch length does not count.
pub(super) const LOG_OVERHEAD: usize = 12;
/// Where the format version stands.
pub(super) const MAGIC_AT: usize = 16;
/// Where the checksum stands.
pub(super) const CRC_AT: usize = 17;
/// Where the bytes begin that the checksum covers.
pub(super) const ATTRIBUTES_AT: usize = 21;
/// Where the largest timestamp stands.
pub(super) const MAX_TIMESTAMP_AT: usize = 35;

pub(super) const COMPRESSION_MASK: u8 = 0x07;
pub(super) const LOG_APPEND_TIME_BIT: i16 = 0x08;
const TRANSACTIONAL_BIT: i16 = 0x10;
const CONTROL_BIT: i16 = 0x20;
/// The base timestamp is a delete horizon (KIP-534).
pub(super) const DELETE_HORIZON_BIT: i16 = 0x40;
/// Bits that have no meaning. Kafka clears them where it changes a header.
pub(super) const RESERVED_BITS: i16 = !0x7f;

/// Who set a batch's timestamps (`message.timestamp.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer.
    #[default]
    CreateTime,
    /// The broker, at the moment of the append: the batch's largest timestamp holds for all of its
    /// records.
    LogAppendTime,
}

/// A batch's header. All numbers are big-endian on the wire; layout in Kafka's
/// `DefaultRecordBatch.java`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Bytes that follow this field.
    pub batch_length: i32,
    /// Leader epoch in which the batch was appended.
    pub partition_leader_epoch: i32,
    /// Format version.
    pub magic: i8,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    /// Flags; see the methods.
    pub attributes: i16,
    /// Offset of the last record, less the base offset. Survives compaction.
    pub last_offset_delta: i32,
    /// What the records' timestamps are relative to, in milliseconds.
    pub base_timestamp: i64,
    /// Largest timestamp, in milliseconds.
    pub max_timestamp: i64,
    /// Idempotent producer's id, or -1.
    pub producer_id: i64,
    /// Idempotent producer's epoch, or -1.
    pub producer_epoch: i16,
    /// Sequence number of the first record, or -1.
    pub base_sequence: i32,
    /// How many records there are.
    pub record_count: i32,
}

/// The `N` bytes at `at`, which the caller knows to exist.
fn fixed<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

impl BatchHeader {
    /// Reads a header from the first [`HEADER_BYTES`] bytes. Checks the magic and that the length
    /// can be one; not the checksum, nor that the whole batch is there.
    ///
    /// # Errors
    /// [`RecordsError::Wire`], [`RecordsError::Magic`] or [`RecordsError::BatchLength`].
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordsError> {
        if bytes.len() < HEADER_BYTES {
            let remaining = bytes.len();
            return Err(
                WireError::Truncated { position: 0, needed: HEADER_BYTES, remaining }.into()
            );
        }
        let header = Self {
            base_offset: i64::from_be_bytes(fixed(bytes, 0)),
            batch_length: i32::from_be_bytes(fixed(bytes, 8)),
            partition_leader_epoch: i32::from_be_bytes(fixed(bytes, 12)),
            magic: i8::from_be_bytes(fixed(bytes, MAGIC_AT)),
            crc: u32::from_be_bytes(fixed(bytes, CRC_AT)),
            attributes: i16::from_be_bytes(fixed(bytes, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(fixed(bytes, 23)),
            base_timestamp: i64::from_be_bytes(fixed(bytes, 27)),
            max_timestamp: i64::from_be_bytes(fixed(bytes, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(fixed(bytes, 43)),
            producer_epoch: i16::from_be_bytes(fixed(bytes, 51)),
            base_sequence: i32::from_be_bytes(fixed(bytes, 53)),
            record_count: i32::from_be_bytes(fixed(bytes, 57)),
        };
        if header.magic != 2 {
            return Err(RecordsError::Magic(header.magic));
        }
        match usize::try_from(header.batch_length) {
            Ok(length) if length >= HEADER_BYTES - LOG_OVERHEAD => Ok(header),
            _ => Err(RecordsError::BatchLength(header.batch_length)),
        }
    }

    /// The header as it is stored.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.base_offset.to_be_bytes());
        put(8, &self.batch_length.to_be_bytes());
        put(12, &self.partition_leader_epoch.to_be_bytes());
        put(MAGIC_AT, &self.magic.to_be_bytes());
        put(CRC_AT, &self.crc.to_be_bytes());
        put(ATTRIBUTES_AT, &self.attributes.to_be_bytes());
        put(23, &self.last_offset_delta.to_be_bytes());
        put(27, &self.base_timestamp.to_be_bytes());
        put(MAX_TIMESTAMP_AT, &self.max_timestamp.to_be_bytes());
        put(43, &self.producer_id.to_be_bytes());
        put(51, &self.producer_epoch.to_be_bytes());
        put(53, &self.base_sequence.to_be_bytes());
        put(57, &self.record_count.to_be_bytes());
        bytes
    }

    /// The same header with the length and the checksum of a batch that has this payload.
    ///
    /// # Panics
    /// Where it is more than a batch can hold (2 GiB).
    pub(super) fn sealed(mut self, payload: &[u8]) -> Self {
        let length = HEADER_BYTES - LOG_OVERHEAD + payload.len();
        self.batch_length = i32::try_from(length).expect("a batch of less than 2 GiB");
        self.crc = checksum(&self.to_bytes(), payload);
        self
    }

    /// How the records are compressed.
    ///
    /// # Errors
    /// [`RecordsError::Compression`] for an id that has no meaning.
    pub fn compression(&self) -> Result<Compression, RecordsError> {
        Compression::of_attributes(self.attributes)
    }

    pub(super) fn set_compression(&mut self, compression: Compression) {
        self.attributes &= !i16::from(COMPRESSION_MASK);
        self.attributes |= i16::from(compression as u8);
    }

    /// Who set the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME_BIT == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    /// Whether the batch holds a transaction's end marker instead of a user's records.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// The time, in milliseconds, from which compaction may remove the tombstones or the marker of
    /// the batch; `None` where it has not seen them yet.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON_BIT != 0).then_some(self.base_timestamp)
    }

    /// Whether an idempotent producer wrote the batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// Offset of the record after the last.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// Sequence number of the last record; numbers wrap from 2³¹-1 to 0. -1 where there is none.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        self.base_sequence.wrapping_add(self.last_offset_delta.max(0)) & i32::MAX
    }

    /// Size of the whole batch in bytes.
    pub fn size_bytes(&self) -> usize {
        LOG_OVERHEAD + usize::try_from(self.batch_length).unwrap_or(0)
    }
}

/// The checksum of a batch in two pieces.
pub(super) fn checksum(header: &[u8; HEADER_BYTES], payload: &[u8]) -> u32 {
    Crc32c::default().with(&header[ATTRIBUTES_AT..]).with(payload).finish()
}

/// Attributes of a batch.
pub(super) fn attributes(
    compression: Compression,
    timestamp_type: TimestampType,
    transactional: bool,
    control: bool,
) -> i16 {
    let bit = |set: bool, bit: i16| if set { bit } else { 0 };
    i16::from(compression as u8)
        | bit(timestamp_type == TimestampType::LogAppendTime, LOG_APPEND_TIME_BIT)
        | bit(transactional, TRANSACTIONAL_BIT)
        | bit(control, CONTROL_BIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::BatchBuilder;

    #[test]
    fn every_field_is_read_from_its_place() {
        let mut bytes = [0_u8; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&7_i64.to_be_bytes());
        bytes[8..12].copy_from_slice(&60_i32.to_be_bytes());
        bytes[12..16].copy_from_slice(&3_i32.to_be_bytes());
        bytes[16] = 2;
        bytes[17..21].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
        bytes[21..23].copy_from_slice(&0x3c_i16.to_be_bytes());
        bytes[23..27].copy_from_slice(&4_i32.to_be_bytes());
        bytes[27..35].copy_from_slice(&1000_i64.to_be_bytes());
        bytes[35..43].copy_from_slice(&2000_i64.to_be_bytes());
        bytes[43..51].copy_from_slice(&99_i64.to_be_bytes());
        bytes[51..53].copy_from_slice(&5_i16.to_be_bytes());
        bytes[53..57].copy_from_slice(&6_i32.to_be_bytes());
        bytes[57..61].copy_from_slice(&5_i32.to_be_bytes());
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!(
            header,
            BatchHeader {
                base_offset: 7,
                batch_length: 60,
                partition_leader_epoch: 3,
                magic: 2,
                crc: 0xdead_beef,
                attributes: 0x3c,
                last_offset_delta: 4,
                base_timestamp: 1000,
                max_timestamp: 2000,
                producer_id: 99,
                producer_epoch: 5,
                base_sequence: 6,
                record_count: 5,
            }
        );
        assert_eq!(header.to_bytes(), bytes);
        assert_eq!(header.compression(), Ok(Compression::Zstd));
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        assert!(header.is_transactional() && header.is_control() && header.has_producer_id());
        assert_eq!((header.last_offset(), header.next_offset()), (11, 12));
        assert_eq!((header.last_sequence(), header.size_bytes()), (10, 72));
    }

    #[test]
    fn sequence_numbers_wrap_to_zero() {
        let batch = BatchBuilder::new(0)
            .producer(1, 0, i32::MAX)
            .record(0, None, Some(b"a"))
            .record(0, None, Some(b"b"))
            .build();
        assert_eq!(BatchHeader::parse(&batch).unwrap().last_sequence(), 0);
    }

    #[test]
    fn headers_that_cannot_be_are_refused() {
        let good = BatchBuilder::new(0).record(0, None, None).build();
        let parse_with = |at: usize, value: &[u8]| {
            let mut bytes = good.to_vec();
            bytes[at..at + value.len()].copy_from_slice(value);
            BatchHeader::parse(&bytes)
        };
        assert!(BatchHeader::parse(&good[..60]).is_err());
        assert_eq!(parse_with(16, &[1]), Err(RecordsError::Magic(1)));
        for length in [-1, 0, 48, i32::MIN] {
            let expected = Err(RecordsError::BatchLength(length));
            assert_eq!(parse_with(8, &length.to_be_bytes()), expected);
        }
        assert_eq!(parse_with(22, &[7]).unwrap().compression(), Err(RecordsError::Compression(7)));
        let far = parse_with(0, &i64::MAX.to_be_bytes()).unwrap();
        assert_eq!(far.next_offset(), i64::MAX);
    }
}
