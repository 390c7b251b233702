//! The sealer, which fixes the end of a fenced lane. The end never changes after that.
//!
//! `SEAL` (format version 1, little-endian): magic `FRLS`, version `u16`, zero `u16`, incarnation
//! `u64`, end file `u64`, end sequence `u64`, count `u32`, CRC-32C `u32` over header (with this
//! field zero) and table; the table, per block: file `u64`, position in that file `u64`, sequence
//! `u64`, position in SEAL `u64`, length `u64`; then, from the next multiple of 4 KiB on, the
//! blocks as they were found. The file appears whole or not at all, and the first one that appears
//! is the lane's only SEAL.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};

use super::block::{ALIGNMENT, Block};
use super::invariants::copies_reach_from_the_sure_blocks_to_the_end;
use super::scan::{PlacedBlock, scan_tail};
use super::{LaneEnd, LaneError, LanePaths};
use crate::rules::{Rule, Rules};
use freshet_wire::codec::{Reader, WireError, crc32c};
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Disk, DiskError};
use freshet_world::invariants::expect_held;

const MAGIC: &[u8; 4] = b"FRLS";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 40;
const CRC_AT: usize = 36;
const ROW_BYTES: usize = 40;

/// A block that a SEAL holds, and where the lane had it.
#[derive(Debug, Clone)]
pub struct SealedBlock {
    /// The block as found in the lane.
    pub placed: PlacedBlock,
    /// Where it starts in SEAL.
    pub seal_position: u64,
}

/// A lane's end, and the blocks before it that may not be on disk anywhere else.
#[derive(Debug, Clone)]
pub struct Seal {
    /// The last block that counts.
    pub end: LaneEnd,
    /// By sequence number.
    pub blocks: BTreeMap<u64, SealedBlock>,
}

/// Seals a fenced lane, or reads the SEAL that it has.
///
/// # Errors
/// [`LaneError::Damaged`] where something durable is missing or SEAL does not check;
/// [`LaneError::Disk`].
pub async fn seal(
    disk: &dyn Disk,
    paths: &LanePaths,
    incarnation: Incarnation,
    rules: Rules,
) -> Result<Seal, LaneError> {
    let once = rules.hold(Rule::SealOnce);
    if let (true, Some(seal)) = (once, read_durable_seal(disk, paths, incarnation).await?) {
        return Ok(seal);
    }
    let scan = scan_tail(disk, paths, incarnation, rules).await?;
    // Without that rule a scan may go on anywhere: the model shows what comes of it.
    if rules.hold(Rule::CountWhatIsDue) {
        expect_held(copies_reach_from_the_sure_blocks_to_the_end(&scan))?;
    }
    // Blocks that may lie in a cache only are copied, so that a later crash of the storage cannot
    // take away what lies before the end that this fixes.
    let unsure = if rules.hold(Rule::SealUnsureBlocks) { scan.unsure } else { Vec::new() };
    match disk.publish(&paths.seal(), encode_seal(incarnation, scan.end, &unsure)).await {
        Ok(()) | Err(DiskError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    // Ours or another's: two brokers that take the lane over at once must act on the same end.
    let sealed = read_durable_seal(disk, paths, incarnation).await?.ok_or_else(|| {
        LaneError::damaged(incarnation, scan.end.file, 0, "SEAL vanished after it was written")
    })?;
    Ok(if once { sealed } else { Seal { end: scan.end, ..sealed } })
}

/// Makes the SEAL that has its name durable, then reads it. The broker that linked it may have died
/// before its sync, and an end on which others act must survive a crash.
async fn read_durable_seal(
    disk: &dyn Disk,
    paths: &LanePaths,
    incarnation: Incarnation,
) -> Result<Option<Seal>, LaneError> {
    match disk.make_durable(&paths.seal()).await {
        Err(DiskError::NotFound(_)) => return Ok(None),
        made => made?,
    }
    read_seal(disk, paths, incarnation).await
}

/// Reads the SEAL of a lane; `None` where there is none.
///
/// # Errors
/// [`LaneError::Damaged`] where its checksum or a block's is wrong; [`LaneError::Disk`].
pub async fn read_seal(
    disk: &dyn Disk,
    paths: &LanePaths,
    incarnation: Incarnation,
) -> Result<Option<Seal>, LaneError> {
    let file = match disk.open(&paths.seal()).await {
        Err(DiskError::NotFound(_)) => return Ok(None),
        opened => opened?,
    };
    let size = usize::try_from(file.size().await?).expect("files fit the address space");
    let bytes = file.read_uncached_at(0, size).await?;
    decode_seal(incarnation, &bytes).map(Some)
}

fn encode_seal(incarnation: Incarnation, end: LaneEnd, blocks: &[PlacedBlock]) -> Vec<Bytes> {
    let mut head = BytesMut::new();
    head.put_slice(MAGIC);
    head.put_u16_le(VERSION);
    head.put_u16_le(0);
    head.put_u64_le(incarnation.0);
    head.put_u64_le(end.file);
    head.put_u64_le(end.sequence);
    head.put_u32_le(u32::try_from(blocks.len()).expect("the tail is one write"));
    head.put_u32_le(0);
    let mut position = (HEADER_BYTES + blocks.len() * ROW_BYTES).next_multiple_of(ALIGNMENT);
    let body_at = position;
    for placed in blocks {
        head.put_u64_le(placed.file);
        head.put_u64_le(placed.position);
        head.put_u64_le(placed.block.header.sequence);
        head.put_u64_le(position as u64);
        head.put_u64_le(placed.raw.len() as u64);
        position += placed.raw.len().next_multiple_of(ALIGNMENT);
    }
    // The checksum covers header and table with its own field zero; each block has its own.
    let checksum = crc32c(&head);
    head[CRC_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    head.resize(body_at, 0);
    let mut pieces = vec![head.freeze()];
    for placed in blocks {
        let padding = placed.raw.len().next_multiple_of(ALIGNMENT) - placed.raw.len();
        pieces.push(placed.raw.clone());
        pieces.push(Bytes::from_static(&[0; ALIGNMENT]).slice(..padding));
    }
    pieces
}

fn decode_seal(incarnation: Incarnation, bytes: &Bytes) -> Result<Seal, LaneError> {
    let broken = |what: &str| LaneError::damaged(incarnation, 0, 0, format!("SEAL: {what}"));
    let parsed = parse_seal(bytes).map_err(|error| broken(&error.to_string()))?;
    let (owner, end, rows) = parsed.ok_or_else(|| broken("wrong magic, version or checksum"))?;
    if owner != incarnation {
        return Err(broken("belongs to another lane"));
    }
    let mut blocks = BTreeMap::new();
    for row in rows {
        let start = usize::try_from(row.seal_position).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(usize::try_from(row.length).unwrap_or(usize::MAX));
        let raw = bytes.slice(start..end.min(bytes.len()));
        let block = Block::parse(&raw).map_err(|error| broken(&error.to_string()))?;
        let placed = PlacedBlock { file: row.file, position: row.position, raw, block };
        blocks.insert(row.sequence, SealedBlock { placed, seal_position: row.seal_position });
    }
    Ok(Seal { end, blocks })
}

struct Row {
    file: u64,
    position: u64,
    sequence: u64,
    seal_position: u64,
    length: u64,
}

fn parse_seal(bytes: &Bytes) -> Result<Option<(Incarnation, LaneEnd, Vec<Row>)>, WireError> {
    let mut reader = Reader::new(bytes.clone());
    let magic = reader.take(4)?;
    let version = reader.u16_le()?;
    reader.u16_le()?;
    let incarnation = Incarnation(reader.u64_le()?);
    let end = LaneEnd { file: reader.u64_le()?, sequence: reader.u64_le()? };
    let count = reader.u32_le()?;
    let count = reader.count(i64::from(count), ROW_BYTES)?;
    let checksum = reader.u32_le()?;
    let Some(summed) = bytes.get(..HEADER_BYTES + count * ROW_BYTES) else { return Ok(None) };
    let mut summed = BytesMut::from(summed);
    summed[CRC_AT..HEADER_BYTES].fill(0);
    if magic != MAGIC[..] || version != VERSION || checksum != crc32c(&summed) {
        return Ok(None);
    }
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        rows.push(Row {
            file: reader.u64_le()?,
            position: reader.u64_le()?,
            sequence: reader.u64_le()?,
            seal_position: reader.u64_le()?,
            length: reader.u64_le()?,
        });
    }
    Ok(Some((incarnation, end, rows)))
}
