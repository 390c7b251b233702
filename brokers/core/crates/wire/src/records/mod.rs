//! Record batches, format version 2 (Kafka's `DefaultRecordBatch`): the unit that is produced,
//! stored and fetched.
//!
//! Every record of a batch is walked before the batch is acknowledged ([`walk`]). The batch is not
//! rebuilt: the broker keeps the records as the very allocation that was received, and only puts a
//! header of its own before them, with the place in the log and the largest timestamp. The
//! exception is a topic whose `compression.type` is another than the batch's.

use crate::codec::WireError;

mod build;
mod compression;
mod find;
mod forms;
mod header;
mod iterate;
mod pack;
mod retain;
mod split;
mod stored;
mod unpack;
mod validate;
mod walk;
mod zstd_stream;

pub use build::BatchBuilder;
pub use compression::{Compression, compress, decompress, decompress_within};
pub use find::{LookUp, find_by_timestamp};
pub use header::{BatchHeader, HEADER_BYTES, TimestampType};
pub use iterate::{DECOMPRESSED_BYTES_MAX, Record, Records};
pub use pack::Codec;
pub use retain::{RecordFacts, Retained};
pub use split::{Batches, Tail};
pub use stored::StoredBatch;
pub use unpack::{UnpackLimits, memory_to_unpack};
pub use validate::{
    ProduceLimits, ProducedBatch, ReadFailure, RecordRejection, UNPACKED_BYTES_MAX, ValidatedBatch,
    validate_produced,
};
pub use walk::{RecordOutline, walk_records};

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
    /// A payload that is not of the one form that producers may send: not every client reads it.
    #[error("{codec} that not every client reads: {fault}; send {form}, and nothing else")]
    Form {
        /// Kafka's name of the compression type.
        codec: &'static str,
        /// What is wrong.
        fault: &'static str,
        /// What every client reads.
        form: &'static str,
    },
    /// More than the caller allows.
    #[error("the records decompress to more than {limit} bytes")]
    TooLarge {
        /// What the caller allows, in bytes.
        limit: usize,
    },
    /// More memory than the caller allows.
    #[error("decompressing the records takes {needed} bytes of memory, more than {limit}")]
    Memory {
        /// What the compressed frames announce, in bytes.
        needed: usize,
        /// What the caller allows, in bytes.
        limit: usize,
    },
    /// The caller ended the work.
    #[error("the reading of the records was stopped")]
    Stopped,
    /// Fields that contradict each other or the payload.
    #[error("{0}")]
    Inconsistent(&'static str),
}

impl RecordsError {
    /// Whether a limit of the caller ended the work: that says nothing about the bytes.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::Memory { .. } | Self::Stopped)
    }
}
