//! A batch as the broker keeps it.

use bytes::{Buf, Bytes};

use super::header::{BatchHeader, HEADER_BYTES, checksum};
use super::{RecordsError, ValidatedBatch};
use crate::codec::Crc32c;
use crate::ids::Epoch;

/// A batch with its place in the log. The header is the broker's own; the records are a slice of
/// whatever allocation they arrived or were read in. Always whole: header and length were checked
/// when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBatch {
    header: [u8; HEADER_BYTES],
    payload: Bytes,
}

impl StoredBatch {
    /// A producer's batch with its place in the log.
    pub fn new(batch: ValidatedBatch, base_offset: i64, leader_epoch: Epoch) -> Self {
        let (mut header, payload) = batch.into_parts();
        header.base_offset = base_offset;
        header.partition_leader_epoch = leader_epoch;
        Self { header: header.to_bytes(), payload }
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
        let mut header = [0; HEADER_BYTES];
        bytes.copy_to_slice(&mut header);
        Ok(Self { header, payload: bytes })
    }

    /// The header.
    pub fn header(&self) -> BatchHeader {
        BatchHeader::parse(&self.header).expect("checked when the batch was made")
    }

    /// The batch with the largest timestamp of its records in its header.
    pub fn with_largest_timestamp(mut self, max_timestamp: i64) -> Self {
        let header = self.header();
        if header.max_timestamp != max_timestamp {
            let header = BatchHeader { max_timestamp, ..header };
            self.header = header.sealed(&self.payload).to_bytes();
        }
        self
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.payload.len()
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
        [Bytes::copy_from_slice(&self.header), self.payload.clone()]
    }

    /// The batch in one piece. Copies all of it.
    pub fn to_bytes(&self) -> Bytes {
        [self.header.as_slice(), &self.payload].concat().into()
    }

    /// What follows the header: the records, compressed or not. Shared, not copied.
    pub fn payload(&self) -> Bytes {
        self.payload.clone()
    }

    /// Checks the checksum.
    ///
    /// # Errors
    /// [`RecordsError::Checksum`].
    pub fn verify_checksum(&self) -> Result<(), RecordsError> {
        check(self.header().crc, checksum(&self.header, &self.payload))
    }

    /// CRC-32C of the whole batch as it is stored, header included, for formats around it.
    pub fn crc32c(&self) -> u32 {
        Crc32c::default().with(&self.header).with(&self.payload).finish()
    }
}

/// Compares a checksum with what the bytes give.
pub(super) fn check(stored: u32, computed: u32) -> Result<(), RecordsError> {
    if stored == computed { Ok(()) } else { Err(RecordsError::Checksum { stored, computed }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::crc32c;
    use crate::records::BatchBuilder;

    fn sample() -> Bytes {
        BatchBuilder::new(0).record(5, Some(b"k"), Some(b"v")).record(6, None, None).build()
    }

    #[test]
    fn a_producers_batch_gets_its_place_without_a_copy_of_its_records() {
        let bytes = sample();
        let validated = ValidatedBatch::trusted(bytes.clone()).unwrap();
        let stored = StoredBatch::new(validated, 1_000_000, 7);
        assert_eq!((stored.base_offset(), stored.last_offset()), (1_000_000, 1_000_001));
        assert_eq!(stored.header().partition_leader_epoch, 7);
        assert_eq!(stored.size_bytes(), bytes.len());
        stored.verify_checksum().unwrap();
        let [header, records] = stored.pieces();
        assert_eq!(records.as_ptr(), bytes[HEADER_BYTES..].as_ptr());
        assert_eq!([header, records].concat(), stored.to_bytes());
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
    fn a_header_that_names_another_largest_timestamp_is_a_whole_header() {
        let stored = StoredBatch::from_contiguous(sample()).unwrap();
        let named = stored.clone().with_largest_timestamp(40);
        named.verify_checksum().unwrap();
        assert_eq!(named.header().max_timestamp, 40);
        assert_eq!(named.payload(), stored.payload());
        assert_eq!(named.with_largest_timestamp(stored.header().max_timestamp), stored);
    }

    #[test]
    fn a_changed_byte_is_found() {
        let mut bytes = sample().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let stored = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert!(matches!(stored.verify_checksum(), Err(RecordsError::Checksum { .. })));
    }
}
