//! What stays of a lane file for the meter once its records are split: the headers and indexes of
//! its data and usage blocks, without the records.
//!
//! `<n>.idx` (format version 1, little-endian): magic `FRLI`, version `u16`, zero `u16`,
//! incarnation `u64`, file number `u64`, first sequence `u64`, last sequence `u64`, count `u32`,
//! CRC-32C `u32` over header (with this field zero) and body; then per block its 64-byte header and
//! its index.

use bytes::{BufMut, Bytes, BytesMut};

use super::block::{BlockError, BlockHeader, BlockKind, HEADER_BYTES as BLOCK_HEADER_BYTES};
use super::{LaneError, LanePaths};
use freshet_wire::codec::{Reader, WireError, crc32c};
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Disk, DiskError};

const MAGIC: &[u8; 4] = b"FRLI";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 48;
const CRC_AT: usize = 44;

/// A block without its payload.
#[derive(Debug, Clone)]
pub struct BlockSummary {
    /// The 64 bytes of its header as they were written.
    pub header: Bytes,
    /// Its index as it was written.
    pub index: Bytes,
}

impl BlockSummary {
    /// Header and index of a block from its first bytes.
    ///
    /// # Errors
    /// Where no block begins there.
    pub fn of(raw: &Bytes) -> Result<Self, BlockError> {
        let header = BlockHeader::parse(raw)?;
        let end = BLOCK_HEADER_BYTES + header.index_bytes as usize;
        if raw.len() < end {
            return Err(BlockError::Torn);
        }
        let (header, index) = (&raw[..BLOCK_HEADER_BYTES], &raw[BLOCK_HEADER_BYTES..end]);
        Ok(Self { header: Bytes::copy_from_slice(header), index: Bytes::copy_from_slice(index) })
    }

    /// The header's fields.
    ///
    /// # Errors
    /// Where the header is none.
    pub fn parse_header(&self) -> Result<BlockHeader, BlockError> {
        BlockHeader::parse(&self.header)
    }
}

/// What is kept of one file for the meter.
#[derive(Debug, Clone)]
pub struct Leftover {
    /// The incarnation whose lane it is.
    pub incarnation: Incarnation,
    /// The file's number.
    pub file: u64,
    /// First and last sequence number that the file held, of whatever kind.
    pub sequences: (u64, u64),
    /// Its data and usage blocks.
    pub blocks: Vec<BlockSummary>,
}

impl Leftover {
    /// Writes the file. One that an earlier try wrote is the same and counts as success.
    ///
    /// # Errors
    /// [`LaneError::Disk`].
    pub async fn publish(&self, disk: &dyn Disk, paths: &LanePaths) -> Result<(), LaneError> {
        match disk.publish(&paths.leftover(self.file), vec![self.encode()]).await {
            Ok(()) | Err(DiskError::Exists(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The file's bytes.
    pub fn encode(&self) -> Bytes {
        let kept: Vec<_> = self.blocks.iter().filter(|block| is_metered(block)).collect();
        let mut out = BytesMut::new();
        out.put_slice(MAGIC);
        out.put_u16_le(VERSION);
        out.put_u16_le(0);
        out.put_u64_le(self.incarnation.0);
        out.put_u64_le(self.file);
        out.put_u64_le(self.sequences.0);
        out.put_u64_le(self.sequences.1);
        out.put_u32_le(u32::try_from(kept.len()).expect("a file holds few blocks"));
        out.put_u32_le(0);
        for block in kept {
            out.put_slice(&block.header);
            out.put_slice(&block.index);
        }
        let checksum = crc32c(&out);
        out[CRC_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        out.freeze()
    }

    /// Reads such a file.
    ///
    /// # Errors
    /// [`LaneError::Damaged`] where it does not check.
    pub fn decode(bytes: &Bytes) -> Result<Self, LaneError> {
        let damaged = |what: String| LaneError::damaged(Incarnation(0), 0, 0, what);
        let leftover = parse_leftover(bytes).map_err(|error| damaged(error.to_string()))?;
        leftover.ok_or_else(|| damaged("not an index file, or its checksum is wrong".into()))
    }
}

fn is_metered(block: &BlockSummary) -> bool {
    let kind = block.parse_header().map(|header| header.kind);
    matches!(kind, Ok(BlockKind::Data | BlockKind::Usage))
}

fn parse_leftover(bytes: &Bytes) -> Result<Option<Leftover>, WireError> {
    let mut reader = Reader::new(bytes.clone());
    let magic = reader.take(4)?;
    let version = reader.u16_le()?;
    reader.u16_le()?;
    let incarnation = Incarnation(reader.u64_le()?);
    let file = reader.u64_le()?;
    let sequences = (reader.u64_le()?, reader.u64_le()?);
    let count = reader.u32_le()?;
    let count = reader.count(i64::from(count), BLOCK_HEADER_BYTES)?;
    let checksum = reader.u32_le()?;
    let mut summed = BytesMut::from(&bytes[..]);
    summed[CRC_AT..HEADER_BYTES].fill(0);
    if magic != MAGIC[..] || version != VERSION || checksum != crc32c(&summed) {
        return Ok(None);
    }
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let header = reader.take(BLOCK_HEADER_BYTES)?;
        let Ok(parsed) = BlockHeader::parse(&header) else { return Ok(None) };
        blocks.push(BlockSummary { header, index: reader.take(parsed.index_bytes as usize)? });
    }
    Ok(Some(Leftover { incarnation, file, sequences, blocks }))
}
