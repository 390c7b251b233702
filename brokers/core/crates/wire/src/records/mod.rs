//! Record batches, format version 2 (Kafka's `DefaultRecordBatch`): the unit that is produced,
//! stored and fetched.
//!
//! A user's batch is never rebuilt. The broker replaces its first sixteen bytes, which lie outside
//! the checksum, and keeps the rest as the very allocation that was received.

use crate::codec::WireError;

mod build;
mod compression;
mod find;
mod header;
mod iterate;
mod retain;
mod split;
mod stored;
mod validate;

pub use build::BatchBuilder;
pub use compression::{Compression, compress, decompress};
pub use find::find_by_timestamp;
pub use header::{BatchHeader, HEADER_BYTES, TimestampType};
pub use iterate::{DECOMPRESSED_BYTES_MAX, Record, Records};
pub use retain::{RecordFacts, Retained};
pub use split::{Batches, Tail};
pub use stored::StoredBatch;
pub use validate::{ProduceLimits, RecordRejection, ValidatedBatch, validate_produced};

/// A producer id that says "none".
pub const NO_PRODUCER_ID: i64 = -1;
/// A timestamp that says "none".
pub const NO_TIMESTAMP: i64 = -1;

/// Why bytes are not a batch, or a batch's records cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordsError {
    /// Bytes that are missing, or a length that cannot be.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A batch that is longer than the bytes at hand.
    #[error("a batch of {size} bytes, of which {available} are there")]
    Incomplete {
        /// What the header says, in bytes.
        size: usize,
        /// What is there, in bytes.
        available: usize,
    },
    /// A batch length that no batch has.
    #[error("impossible batch length {0}")]
    BatchLength(i32),
    /// A format other than version 2.
    #[error("record batch magic {0}, only 2 is supported")]
    Magic(i8),
    /// The checksum does not match.
    #[error("record is corrupt (stored crc = {stored}, computed crc = {computed})")]
    Checksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A compression type that does not exist.
    #[error("unknown compression type id {0}")]
    Compression(u8),
    /// Compressed bytes that do not decompress.
    #[error("{codec} payload cannot be decompressed: {reason}")]
    Payload {
        /// Kafka's name of the compression type.
        codec: &'static str,
        /// The decompressor's error.
        reason: String,
    },
    /// More than the caller allows.
    #[error("decompressed records exceed {limit} bytes")]
    TooLarge {
        /// What the caller allows, in bytes.
        limit: usize,
    },
    /// Fields that contradict each other or the payload.
    #[error("{0}")]
    Inconsistent(&'static str),
}
