//! Splitting bytes into batches that follow each other: a chunk of a segment, a fetch response, a
//! lane's block.

use bytes::Bytes;

use super::header::{BatchHeader, HEADER_BYTES};
use super::{RecordsError, StoredBatch};
use crate::codec::WireError;

/// What an incomplete batch at the end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The chunk was cut anywhere: iteration just ends.
    Tolerate,
    /// Damage: an error.
    Report,
}

/// The batches of a chunk, in order. After an error there is nothing more. Checksums are not
/// verified.
#[derive(Debug)]
pub struct Batches {
    rest: Bytes,
    tail: Tail,
    position: usize,
}

impl Batches {
    /// The batches in `chunk`.
    pub fn new(chunk: Bytes, tail: Tail) -> Self {
        Self { rest: chunk, tail, position: 0 }
    }

    /// Where the next batch starts, in bytes from the start of the chunk. After the end: how much
    /// of the chunk was whole batches.
    pub fn position(&self) -> usize {
        self.position
    }

    fn incomplete(&mut self, size: usize) -> Option<Result<StoredBatch, RecordsError>> {
        let available = self.rest.len();
        self.rest.clear();
        match self.tail {
            Tail::Tolerate => None,
            Tail::Report if available < HEADER_BYTES => {
                let (position, needed) = (self.position, HEADER_BYTES);
                let error = WireError::Truncated { position, needed, remaining: available };
                Some(Err(error.into()))
            }
            Tail::Report => Some(Err(RecordsError::Incomplete { size, available })),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<StoredBatch, RecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        if self.rest.len() < HEADER_BYTES {
            return self.incomplete(HEADER_BYTES);
        }
        let size = match BatchHeader::parse(&self.rest) {
            Ok(header) => header.size_bytes(),
            Err(error) => {
                self.rest.clear();
                return Some(Err(error));
            }
        };
        if self.rest.len() < size {
            return self.incomplete(size);
        }
        self.position += size;
        Some(StoredBatch::from_contiguous(self.rest.split_to(size)))
    }
}

impl std::iter::FusedIterator for Batches {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::BatchBuilder;

    fn chunk() -> (Bytes, usize) {
        let one = BatchBuilder::new(10).record(0, None, Some(b"a")).build();
        let two = BatchBuilder::new(11).record(0, None, Some(b"b")).build();
        (Bytes::from([&one[..], &two[..]].concat()), one.len())
    }

    #[test]
    fn batches_come_in_order() {
        let (chunk, _) = chunk();
        let mut batches = Batches::new(chunk.clone(), Tail::Report);
        let offsets: Vec<_> = batches.by_ref().map(|batch| batch.unwrap().base_offset()).collect();
        assert_eq!(offsets, [10, 11]);
        assert_eq!(batches.position(), chunk.len());
    }

    #[test]
    fn a_cut_tail_is_tolerated_or_reported_at_every_length() {
        let (chunk, first) = chunk();
        for length in first + 1..chunk.len() {
            let cut = chunk.slice(..length);
            let mut tolerant = Batches::new(cut.clone(), Tail::Tolerate);
            assert_eq!(tolerant.by_ref().filter_map(Result::ok).count(), 1);
            assert_eq!(tolerant.position(), first);
            let strict: Vec<_> = Batches::new(cut, Tail::Report).collect();
            assert_eq!(strict.len(), 2);
            assert!(strict[1].is_err());
        }
    }

    #[test]
    fn garbage_is_an_error_even_where_a_cut_is_tolerated() {
        let (chunk, first) = chunk();
        let mut bytes = chunk.to_vec();
        bytes[first + 16] = 9;
        let batches: Vec<_> = Batches::new(bytes.into(), Tail::Tolerate).collect();
        assert_eq!(batches[1], Err(RecordsError::Magic(9)));
    }
}
