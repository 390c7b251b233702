//! The block: what one group commit writes. Format version 2.
//!
//! A block starts at a multiple of 4 KiB. All integers are little-endian.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `FRLB` |
//! | 4 | 2 | version, 1 or 2: they differ in the index of data blocks only (see [`super::index`]) |
//! | 6 | 1 | kind |
//! | 7 | 1 | zero |
//! | 8 | 8 | incarnation |
//! | 16 | 8 | sequence number, from 1, without holes within an incarnation |
//! | 24 | 8 | `durable_sequence`: the highest sure block (synced, token checked) |
//! | 32 | 4 | bytes of the index |
//! | 36 | 4 | bytes of the payload |
//! | 40 | 4 | CRC-32C over the header (with this field zero), the index and the payload |
//! | 44 | 8 | the lane's nonce: random, drawn when the lane starts, shown to no client |
//! | 52 | 8 | when the block was laid out, ms since 1970 UTC, by its broker's clock |
//! | 60 | 4 | CRC-32C over the header (with both checksums zero) and the index |
//! | 64 | – | index, then payload, then zeros up to the next multiple of 4 KiB |
//!
//! The time never goes back within a lane. It says in which minute usage falls; nothing that keeps
//! records safe reads it. The second checksum lets the meter trust header and index of a block that
//! is known to be durable without reading its payload.
//!
//! The nonce keeps a client from writing bytes into a payload that pass for a block of the lane:
//! where a block is torn, its payload may lie where a reader looks for the next block.

use bytes::{BufMut, Bytes, BytesMut};

use freshet_wire::codec::{Crc32c, Reader};
use freshet_wire::ids::Incarnation;

/// Blocks start at multiples of this many bytes.
pub const ALIGNMENT: usize = 4096;
/// Bytes of a block's header.
pub const HEADER_BYTES: usize = 64;
/// No block is longer than this: one request of the largest accepted size, with its index.
pub const BLOCK_BYTES_MAX: usize = 160 << 20;

const MAGIC: &[u8; 4] = b"FRLB";
/// The format version that this release writes.
const VERSION: u16 = 2;
const INCARNATION_AT: usize = 8;
const NONCE_AT: usize = 44;
const CRC_AT: usize = 40;
const HEAD_CRC_AT: usize = 60;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// Record batches of any partitions.
    Data = 1,
    /// Cumulative egress counters.
    Usage = 2,
    /// Manifests that count from here on.
    Install = 3,
    /// The manifest of every partition: the first block of each file.
    Checkpoint = 4,
    /// The clean end of a lane.
    Close = 5,
}

impl BlockKind {
    /// Its name in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Usage => "usage",
            Self::Install => "install",
            Self::Checkpoint => "checkpoint",
            Self::Close => "close",
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::Data, Self::Usage, Self::Install, Self::Checkpoint, Self::Close]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }
}

/// A block's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// The version of its format.
    pub version: u16,
    /// What it holds.
    pub kind: BlockKind,
    /// The incarnation that wrote it.
    pub incarnation: Incarnation,
    /// Its number within the lane.
    pub sequence: u64,
    /// The highest block that was synced, with the token still ours, when this one was written.
    pub durable_sequence: u64,
    /// Bytes of the index.
    pub index_bytes: u32,
    /// Bytes of the payload.
    pub payload_bytes: u32,
    /// The lane's nonce.
    pub nonce: u64,
    /// When it was laid out, ms since 1970 UTC; never before the block before it.
    pub written_at_ms: i64,
    checksum: u32,
    head_checksum: u32,
}

/// Why there is no block at a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Zeros, or bytes that are no header of this lane: no block was written here.
    #[error("no block")]
    Absent,
    /// A block begins here, and its checksum or a field is wrong.
    #[error("a torn or damaged block")]
    Torn,
    /// A block of a later release.
    #[error("block format version {0} is newer than this release reads (2)")]
    Version(u16),
}

impl BlockHeader {
    /// Reads a header; says nothing yet of index and payload.
    ///
    /// # Errors
    /// [`BlockError::Absent`] or [`BlockError::Torn`] where no whole header is here;
    /// [`BlockError::Version`] where a whole one of a newer release is.
    pub fn parse(bytes: &Bytes) -> Result<Self, BlockError> {
        if bytes.len() < HEADER_BYTES || &bytes[..4] != MAGIC {
            return Err(BlockError::Absent);
        }
        let mut reader = Reader::new(bytes.slice(4..HEADER_BYTES));
        let fields = "the length was checked";
        let version = reader.u16_le().expect(fields);
        match version {
            1..=VERSION => {}
            // No release writes version 0: the write was torn behind the magic.
            0 => return Err(BlockError::Torn),
            later => return Err(BlockError::Version(later)),
        }
        let kind = BlockKind::from_code(reader.u8().expect(fields)).ok_or(BlockError::Torn)?;
        reader.u8().expect(fields);
        let header = Self {
            version,
            kind,
            incarnation: Incarnation(reader.u64_le().expect(fields)),
            sequence: reader.u64_le().expect(fields),
            durable_sequence: reader.u64_le().expect(fields),
            index_bytes: reader.u32_le().expect(fields),
            payload_bytes: reader.u32_le().expect(fields),
            checksum: reader.u32_le().expect(fields),
            nonce: reader.u64_le().expect(fields),
            written_at_ms: reader.i64_le().expect(fields),
            head_checksum: reader.u32_le().expect(fields),
        };
        if header.body_bytes() > BLOCK_BYTES_MAX { Err(BlockError::Torn) } else { Ok(header) }
    }

    /// Bytes of index and payload.
    pub fn body_bytes(&self) -> usize {
        self.index_bytes as usize + self.payload_bytes as usize
    }

    /// Bytes from the start of this block to the start of the next.
    pub fn span(&self) -> usize {
        span(self.body_bytes())
    }

    fn encode_unsummed(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        let mut rest = &mut out[..];
        rest.put_slice(MAGIC);
        rest.put_u16_le(self.version);
        rest.put_u8(self.kind as u8);
        rest.put_u8(0);
        rest.put_u64_le(self.incarnation.0);
        rest.put_u64_le(self.sequence);
        rest.put_u64_le(self.durable_sequence);
        rest.put_u32_le(self.index_bytes);
        rest.put_u32_le(self.payload_bytes);
        rest.put_u32_le(0);
        rest.put_u64_le(self.nonce);
        rest.put_i64_le(self.written_at_ms);
        out
    }

    /// Checks header and index; says nothing of the payload. `head` begins with the header and the
    /// index, whatever follows.
    ///
    /// # Errors
    /// [`BlockError::Torn`].
    pub fn verify_head(&self, head: &[u8]) -> Result<(), BlockError> {
        let end = HEADER_BYTES + self.index_bytes as usize;
        if head.len() < end || head_checksum(&head[..end]) != self.head_checksum {
            return Err(BlockError::Torn);
        }
        Ok(())
    }
}

/// Whether what may be a header, of whatever version, names this lane. Every version keeps
/// incarnation and nonce where they are.
pub fn is_of_lane(header: &[u8], incarnation: Incarnation, nonce: Option<u64>) -> bool {
    let says = |at: usize, value: u64| header.get(at..at + 8) == Some(&value.to_le_bytes()[..]);
    says(INCARNATION_AT, incarnation.0) && nonce.is_none_or(|nonce| says(NONCE_AT, nonce))
}

/// The CRC-32C over a header and its index, with both checksum fields taken for zero.
fn head_checksum(head: &[u8]) -> u32 {
    Crc32c::default()
        .with(&head[..CRC_AT])
        .with(&[0; 4])
        .with(&head[CRC_AT + 4..HEAD_CRC_AT])
        .with(&[0; 4])
        .with(&head[HEAD_CRC_AT + 4..])
        .finish()
}

/// Bytes that a block with a body of `body_bytes` takes in a file.
pub fn span(body_bytes: usize) -> usize {
    (HEADER_BYTES + body_bytes).next_multiple_of(ALIGNMENT)
}

/// A whole, checked block.
#[derive(Debug, Clone)]
pub struct Block {
    /// Its header.
    pub header: BlockHeader,
    /// What its kind says that it holds (see [`super::index`]).
    pub index: Bytes,
    /// Record batches, in a data block.
    pub payload: Bytes,
}

impl Block {
    /// Reads and checks the block at the start of `bytes`.
    ///
    /// # Errors
    /// [`BlockError`] where there is none, or not a whole one.
    pub fn parse(bytes: &Bytes) -> Result<Self, BlockError> {
        let header = BlockHeader::parse(bytes)?;
        let end = HEADER_BYTES + header.body_bytes();
        if bytes.len() < end {
            return Err(BlockError::Torn);
        }
        let checksum = Crc32c::default()
            .with(&bytes[..CRC_AT])
            .with(&[0; 4])
            .with(&bytes[CRC_AT + 4..end])
            .finish();
        if checksum != header.checksum {
            return Err(BlockError::Torn);
        }
        let payload_at = HEADER_BYTES + header.index_bytes as usize;
        let index = bytes.slice(HEADER_BYTES..payload_at);
        Ok(Self { header, index, payload: bytes.slice(payload_at..end) })
    }
}

/// What identifies a block that is about to be written.
#[derive(Debug, Clone, Copy)]
pub struct BlockLabel {
    /// What it holds.
    pub kind: BlockKind,
    /// The incarnation that writes it.
    pub incarnation: Incarnation,
    /// Its number.
    pub sequence: u64,
    /// The highest sure block.
    pub durable_sequence: u64,
    /// The lane's nonce.
    pub nonce: u64,
    /// When it was laid out, ms since 1970 UTC; never before the block before it.
    pub written_at_ms: i64,
}

/// Lays a block out as pieces to be written one after another; the payload is not copied. Their
/// lengths add up to [`span`].
pub fn encode(label: BlockLabel, index: &[u8], payload: Vec<Bytes>) -> Vec<Bytes> {
    let payload_bytes: usize = payload.iter().map(Bytes::len).sum();
    let length = |bytes: usize| u32::try_from(bytes).expect("a write is cut far below 4 GiB");
    let header = BlockHeader {
        version: VERSION,
        kind: label.kind,
        incarnation: label.incarnation,
        sequence: label.sequence,
        durable_sequence: label.durable_sequence,
        index_bytes: length(index.len()),
        payload_bytes: length(payload_bytes),
        nonce: label.nonce,
        written_at_ms: label.written_at_ms,
        checksum: 0,
        head_checksum: 0,
    };
    let mut head = BytesMut::with_capacity(HEADER_BYTES + index.len());
    head.put_slice(&header.encode_unsummed());
    head.put_slice(index);
    let head_checksum = head_checksum(&head);
    head[HEAD_CRC_AT..HEADER_BYTES].copy_from_slice(&head_checksum.to_le_bytes());
    let checksum = payload
        .iter()
        .fold(Crc32c::default().with(&head), |checksum, piece| checksum.with(piece))
        .finish();
    head[CRC_AT..CRC_AT + 4].copy_from_slice(&checksum.to_le_bytes());
    let written = head.len() + payload_bytes;
    let mut pieces = Vec::with_capacity(payload.len() + 2);
    pieces.push(head.freeze());
    pieces.extend(payload);
    pieces.push(Bytes::from_static(&[0; ALIGNMENT]).slice(..header.span() - written));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Bytes {
        let label = BlockLabel {
            kind: BlockKind::Data,
            incarnation: Incarnation(7),
            sequence: 9,
            durable_sequence: 8,
            nonce: 0x1234_5678_9abc_def0,
            written_at_ms: 1_700_000_000_123,
        };
        let payload = vec![Bytes::from_static(b"first"), Bytes::from_static(b"second")];
        encode(label, b"index", payload).concat().into()
    }

    #[test]
    fn a_block_reads_back_as_written() {
        let bytes = sample();
        assert_eq!(bytes.len(), ALIGNMENT);
        let block = Block::parse(&bytes).unwrap();
        assert_eq!(block.header.kind, BlockKind::Data);
        assert_eq!((block.header.sequence, block.header.durable_sequence), (9, 8));
        assert_eq!(block.header.nonce, 0x1234_5678_9abc_def0);
        assert_eq!(block.header.written_at_ms, 1_700_000_000_123);
        assert_eq!(&block.index[..], b"index");
        assert_eq!(&block.payload[..], b"firstsecond");
    }

    #[test]
    fn every_flipped_byte_of_header_and_body_is_noticed() {
        let bytes = sample();
        for at in 0..HEADER_BYTES + b"indexfirstsecond".len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 0x10;
            assert!(Block::parse(&flipped.into()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn header_and_index_are_checked_without_the_payload() {
        let bytes = sample();
        let header = BlockHeader::parse(&bytes).unwrap();
        let end = HEADER_BYTES + b"index".len();
        assert_eq!(header.verify_head(&bytes[..end]), Ok(()));
        assert_eq!(header.verify_head(&bytes[..end - 1]), Err(BlockError::Torn));
        for at in 0..end {
            let mut flipped = bytes[..end].to_vec();
            flipped[at] ^= 0x10;
            let flipped = Bytes::from(flipped);
            let checked =
                BlockHeader::parse(&flipped).and_then(|parsed| parsed.verify_head(&flipped));
            // The other checksum stands in bytes 40 to 43.
            assert_eq!(checked.is_ok(), (CRC_AT..CRC_AT + 4).contains(&at), "byte {at}");
        }
    }

    #[test]
    fn a_later_version_is_named_not_guessed_at() {
        let mut later = sample().to_vec();
        later[4] = 3;
        assert_eq!(Block::parse(&later.into()).unwrap_err(), BlockError::Version(3));
    }

    #[test]
    fn a_header_that_was_torn_anywhere_is_no_later_version() {
        let whole = sample();
        for written in 1..HEADER_BYTES {
            let mut torn = vec![0; ALIGNMENT];
            torn[..written].copy_from_slice(&whole[..written]);
            let error = Block::parse(&torn.into()).unwrap_err();
            assert!(matches!(error, BlockError::Absent | BlockError::Torn), "{written}: {error}");
        }
    }

    #[test]
    fn zeros_are_no_block() {
        let zeros = Bytes::from_static(&[0; ALIGNMENT]);
        assert_eq!(Block::parse(&zeros).unwrap_err(), BlockError::Absent);
    }
}
