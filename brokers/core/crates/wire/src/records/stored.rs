//! A batch as the broker keeps it.

use bytes::{Buf, Bytes};

use super::header::{ATTRIBUTES_AT, BatchHeader, HEADER_BYTES};
use super::{RecordsError, ValidatedBatch};
use crate::codec::{Crc32c, crc32c};
use crate::ids::Epoch;

/// Bytes at the head of a batch that the broker may rewrite: base offset, batch length, leader
/// epoch (and the magic's place follows). They lie outside the checksum.
const PREFIX_BYTES: usize = 16;

/// A batch with its place in the log. The first sixteen bytes are the broker's own; the rest is a
/// slice of whatever allocation it arrived or was read in. Always whole: header and length were
/// checked when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBatch {
    prefix: [u8; PREFIX_BYTES],
    body: Bytes,
}

impl StoredBatch {
    /// A producer's batch with its place in the log. Copies sixteen bytes.
    pub fn new(batch: ValidatedBatch, base_offset: i64, leader_epoch: Epoch) -> Self {
        let mut bytes = batch.into_bytes();
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..8].copy_from_slice(&base_offset.to_be_bytes());
        prefix[8..12].copy_from_slice(&bytes[8..12]);
        prefix[12..].copy_from_slice(&leader_epoch.to_be_bytes());
        bytes.advance(PREFIX_BYTES);
        Self { prefix, body: bytes }
    }

    /// Takes exactly one batch, as it is stored. Does not verify the checksum
    /// ([`StoredBatch::verify_checksum`] does).
    ///
    /// # Errors
    /// Any error of [`BatchHeader::parse`]; [`RecordsError::Incomplete`] for a part of a batch;
    /// [`RecordsError::Inconsistent`] where more follows.
    pub fn from_contiguous(mut bytes: Bytes) -> Result<Self, RecordsError> {
        let size = BatchHeader::parse(&bytes)?.size_bytes();
        if bytes.len() < size {
            return Err(RecordsError::Incomplete { size, available: bytes.len() });
        }
        if bytes.len() > size {
            return Err(RecordsError::Inconsistent("bytes follow the batch"));
        }
        let mut prefix = [0; PREFIX_BYTES];
        prefix.copy_from_slice(&bytes[..PREFIX_BYTES]);
        bytes.advance(PREFIX_BYTES);
        Ok(Self { prefix, body: bytes })
    }

    /// The header.
    pub fn header(&self) -> BatchHeader {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..PREFIX_BYTES].copy_from_slice(&self.prefix);
        bytes[PREFIX_BYTES..].copy_from_slice(&self.body[..HEADER_BYTES - PREFIX_BYTES]);
        BatchHeader::parse(&bytes).expect("checked when the batch was made")
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> usize {
        PREFIX_BYTES + self.body.len()
    }

    /// Offset of the first record.
    pub fn base_offset(&self) -> i64 {
        self.header().base_offset
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.header().last_offset()
    }

    /// The batch in two pieces to be written one after another. The second is shared, not copied.
    pub fn pieces(&self) -> [Bytes; 2] {
        [Bytes::copy_from_slice(&self.prefix), self.body.clone()]
    }

    /// The batch in one piece. Copies all of it.
    pub fn to_bytes(&self) -> Bytes {
        [self.prefix.as_slice(), &self.body].concat().into()
    }

    /// What follows the header: the records, compressed or not. Shared, not copied.
    pub fn payload(&self) -> Bytes {
        self.body.slice(HEADER_BYTES - PREFIX_BYTES..)
    }

    /// Checks the checksum.
    ///
    /// # Errors
    /// [`RecordsError::Checksum`].
    pub fn verify_checksum(&self) -> Result<(), RecordsError> {
        let computed = crc32c(&self.body[ATTRIBUTES_AT - PREFIX_BYTES..]);
        check(self.header().crc, computed)
    }

    /// CRC-32C of the whole batch as it is stored, prefix included, for formats around it.
    pub fn crc32c(&self) -> u32 {
        Crc32c::default().with(&self.prefix).with(&self.body).finish()
    }
}

/// Compares a checksum with what the bytes give.
pub(super) fn check(stored: u32, computed: u32) -> Result<(), RecordsError> {
    if stored == computed { Ok(()) } else { Err(RecordsError::Checksum { stored, computed }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::BatchBuilder;

    fn sample() -> Bytes {
        BatchBuilder::new(0).record(5, Some(b"k"), Some(b"v")).record(6, None, None).build()
    }

    #[test]
    fn a_producers_batch_gets_its_place_without_a_copy_of_its_body() {
        let bytes = sample();
        let validated = ValidatedBatch::trusted(bytes.clone()).unwrap();
        let stored = StoredBatch::new(validated, 1_000_000, 7);
        assert_eq!((stored.base_offset(), stored.last_offset()), (1_000_000, 1_000_001));
        assert_eq!(stored.header().partition_leader_epoch, 7);
        assert_eq!(stored.size_bytes(), bytes.len());
        stored.verify_checksum().unwrap();
        let [prefix, body] = stored.pieces();
        assert_eq!(body.as_ptr(), bytes[PREFIX_BYTES..].as_ptr());
        assert_eq!([prefix, body].concat(), stored.to_bytes());
        assert_eq!(StoredBatch::from_contiguous(stored.to_bytes()), Ok(stored.clone()));
        assert_eq!(stored.crc32c(), crc32c(&stored.to_bytes()));
    }

    #[test]
    fn only_exactly_one_batch_is_taken() {
        let bytes = sample();
        let cut = bytes.slice(..bytes.len() - 1);
        let expected = RecordsError::Incomplete { size: bytes.len(), available: cut.len() };
        assert_eq!(StoredBatch::from_contiguous(cut.clone()), Err(expected));
        let more = Bytes::from([&bytes[..], b"x"].concat());
        assert!(matches!(StoredBatch::from_contiguous(more), Err(RecordsError::Inconsistent(_))));
    }

    #[test]
    fn a_changed_byte_is_found() {
        let mut bytes = sample().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let stored = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert!(matches!(stored.verify_checksum(), Err(RecordsError::Checksum { .. })));
    }
}
