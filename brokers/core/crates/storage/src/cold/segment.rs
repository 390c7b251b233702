//! An object with segments of one or many partitions. Format version 1, little-endian.
//!
//! The object starts with 16 bytes: magic `FRSG`, version `u16`, zeros. Then, partition by
//! partition, chunks of whole record batches, each up to 1 MiB (one larger batch is a chunk of its
//! own). Then a section per segment: topic id (16), partition `i32`, number of chunks `u32`, and
//! per chunk 48 bytes: position `u64`, length `u64`, base offset `i64`, end offset `i64`, largest
//! timestamp `i64`, CRC-32C of the chunk `u32`, zero `u32`; then CRC-32C `u32` of the section. A
//! partition's manifest says where its sections lie.
//!
//! A chunk takes up the offsets from the end of the one before it to the end of its last batch.
//! Where compaction took batches out, its first batch starts later than the chunk does.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use super::ColdError;
use crate::names::ObjectRef;
use freshet_wire::codec::{Crc32c, Reader, WireError, WriteExt, crc32c};
use freshet_wire::ids::PartitionId;
use freshet_wire::records::{NO_TIMESTAMP, StoredBatch};

const MAGIC: &[u8; 4] = b"FRSG";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 16;
const CHUNK_ROW_BYTES: usize = 48;
const SECTION_HEADER_BYTES: usize = 24;
/// A chunk takes no further batch once it would be longer than this. So a chunk that is longer is
/// one batch.
const CHUNK_BYTES_MAX: u64 = 128 << 10;

/// Where a segment lies. No two segments lie in one place, so this names a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentPlace {
    /// The object.
    pub object: ObjectRef,
    /// Where its section starts.
    pub section_position: u64,
}

/// A partition's run of records in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The object.
    pub object: ObjectRef,
    /// Where the partition's section starts.
    pub section_position: u64,
    /// Bytes of the section.
    pub section_bytes: u32,
    /// Where the segment before it ends: the offset of its first record, or less once it was
    /// compacted.
    pub base_offset: i64,
    /// Offset after the last.
    pub end_offset: i64,
    /// Largest timestamp of its first batch, ms.
    pub first_timestamp: i64,
    /// Largest timestamp in it, ms; -1 where no record has one.
    pub max_timestamp: i64,
    /// Bytes of record batches.
    pub bytes: u64,
    /// When the last block whose records it holds was laid out in a lane, ms since 1970 UTC.
    pub written_at_ms: i64,
    /// Whether compaction may have taken records out: offsets may be missing.
    pub compacted: bool,
    /// Whether each record in it was read once, before its acknowledgement or when the segment was
    /// written, so that its damaged batches are known. Earlier releases did not read records.
    pub read: bool,
}

impl Segment {
    /// Where it lies.
    pub fn place(&self) -> SegmentPlace {
        SegmentPlace { object: self.object, section_position: self.section_position }
    }

    /// When its newest record was made, ms since 1970 UTC; of records without timestamps, when they
    /// were written (Kafka's `LogSegment.largestTimestamp`).
    pub fn newest_ms(&self) -> i64 {
        if self.max_timestamp >= 0 { self.max_timestamp } else { self.written_at_ms }
    }
}

/// One chunk of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// First byte in the object.
    pub position: u64,
    /// Length in bytes.
    pub length: u64,
    /// Where the chunk before it ends.
    pub base_offset: i64,
    /// Offset after the last.
    pub end_offset: i64,
    /// Largest timestamp of its records, ms; -1 where none has one.
    pub max_timestamp: i64,
    checksum: u32,
}

impl Chunk {
    /// Whether the chunk is one batch, of which a client cannot use a part.
    pub fn is_one_batch(&self) -> bool {
        self.length > CHUNK_BYTES_MAX
    }

    /// Its end in the object; the largest number where a damaged section puts it beyond that.
    pub fn end(&self) -> u64 {
        self.position.saturating_add(self.length)
    }

    /// Its byte range in an object whose records end at `limit`.
    ///
    /// # Errors
    /// [`ColdError::Damaged`] where the range is not within them.
    pub fn range(&self, object: ObjectRef, limit: u64) -> Result<Range<u64>, ColdError> {
        let end = self.position.checked_add(self.length).filter(|end| *end <= limit);
        end.map(|end| self.position..end).ok_or_else(|| {
            let what = format!("no chunk can be at {} with {}", self.position, self.length);
            ColdError::damaged(format!("object {}/{}", object.incarnation, object.number), what)
        })
    }

    /// Checks bytes read from the store.
    ///
    /// # Errors
    /// [`ColdError::Damaged`], which names the object: such bytes are never served.
    pub fn verify(&self, object: ObjectRef, bytes: &Bytes) -> Result<(), ColdError> {
        if bytes.len() as u64 == self.length && crc32c(bytes) == self.checksum {
            return Ok(());
        }
        let what = format!("the chunk at {} does not match its checksum", self.position);
        Err(ColdError::damaged(format!("object {}/{}", object.incarnation, object.number), what))
    }
}

struct Section {
    partition: PartitionId,
    chunks: Vec<Chunk>,
    /// Where the next chunk starts.
    due: i64,
    first_timestamp: i64,
    written_at_ms: i64,
    compacted: bool,
}

/// Lays out an object. Its segments are written one after another, each with its batches in the
/// order of offsets.
pub struct SegmentWriter {
    object: ObjectRef,
    pieces: Vec<Bytes>,
    position: u64,
    sections: Vec<Section>,
    open: Option<OpenChunk>,
}

struct OpenChunk {
    chunk: Chunk,
    checksum: Crc32c,
}

impl SegmentWriter {
    /// An empty object.
    pub fn new(object: ObjectRef) -> Self {
        let mut head = BytesMut::with_capacity(HEADER_BYTES);
        head.put_slice(MAGIC);
        head.put_u16_le(VERSION);
        head.put_bytes(0, HEADER_BYTES - 6);
        Self {
            object,
            pieces: vec![head.freeze()],
            position: HEADER_BYTES as u64,
            sections: Vec::new(),
            open: None,
        }
    }

    /// Begins a segment that starts at `base_offset`, even if the one before it is of the same
    /// partition. At least one batch must follow.
    pub fn begin(&mut self, partition: PartitionId, base_offset: i64, compacted: bool) {
        self.end_chunk();
        self.sections.push(Section {
            partition,
            chunks: Vec::new(),
            due: base_offset,
            first_timestamp: NO_TIMESTAMP,
            written_at_ms: i64::MIN,
            compacted,
        });
    }

    /// Bytes so far, without sections.
    pub fn bytes(&self) -> u64 {
        self.position
    }

    /// Adds a batch to a partition's segment; `written_at_ms` is that of its block. Each of its
    /// records was read, and its header names their largest timestamp.
    pub fn add(&mut self, partition: PartitionId, batch: &StoredBatch, written_at_ms: i64) {
        let header = batch.header();
        let largest = header.max_timestamp;
        let bytes = batch.size_bytes() as u64;
        if self.sections.last().is_none_or(|section| section.partition != partition) {
            self.begin(partition, header.base_offset, false);
        }
        if self.open.as_ref().is_some_and(|open| open.chunk.length + bytes > CHUNK_BYTES_MAX) {
            self.end_chunk();
        }
        let section = self.sections.last_mut().expect("there is one of this partition");
        if section.chunks.is_empty() && self.open.is_none() {
            section.first_timestamp = largest;
        }
        section.written_at_ms = section.written_at_ms.max(written_at_ms);
        let (position, due) = (self.position, section.due);
        let open = self.open.get_or_insert_with(|| OpenChunk {
            chunk: Chunk {
                position,
                length: 0,
                base_offset: due,
                end_offset: due,
                max_timestamp: NO_TIMESTAMP,
                checksum: 0,
            },
            checksum: Crc32c::default(),
        });
        open.chunk.length += bytes;
        open.chunk.end_offset = header.next_offset();
        section.due = header.next_offset();
        if header.record_count > 0 {
            open.chunk.max_timestamp = open.chunk.max_timestamp.max(largest);
        }
        for piece in batch.pieces() {
            open.checksum = std::mem::take(&mut open.checksum).with(&piece);
            self.pieces.push(piece);
        }
        self.position += bytes;
    }

    fn end_chunk(&mut self) {
        if let Some(open) = self.open.take() {
            let section = self.sections.last_mut().expect("a chunk belongs to a section");
            section.chunks.push(Chunk { checksum: open.checksum.finish(), ..open.chunk });
        }
    }

    /// The object's bytes, and each partition's segment in it.
    pub fn finish(mut self) -> (Vec<Bytes>, Vec<(PartitionId, Segment)>) {
        self.end_chunk();
        let mut segments = Vec::with_capacity(self.sections.len());
        for section in &self.sections {
            let encoded = encode_section(section);
            let (first, last) = (section.chunks.first(), section.chunks.last());
            let (first, last) = first.zip(last).expect("a section has a chunk");
            let segment = Segment {
                object: self.object,
                section_position: self.position,
                section_bytes: u32::try_from(encoded.len()).expect("a lane file is 64 MiB"),
                base_offset: first.base_offset,
                end_offset: last.end_offset,
                first_timestamp: section.first_timestamp,
                max_timestamp: section
                    .chunks
                    .iter()
                    .fold(NO_TIMESTAMP, |at, c| at.max(c.max_timestamp)),
                bytes: section.chunks.iter().map(|chunk| chunk.length).sum(),
                written_at_ms: section.written_at_ms,
                compacted: section.compacted,
                read: true,
            };
            segments.push((section.partition, segment));
            self.position += encoded.len() as u64;
            self.pieces.push(encoded);
        }
        (self.pieces, segments)
    }
}

fn encode_section(section: &Section) -> Bytes {
    let bytes = SECTION_HEADER_BYTES + section.chunks.len() * CHUNK_ROW_BYTES + 4;
    let mut out = BytesMut::with_capacity(bytes);
    out.put_uuid(section.partition.topic);
    out.put_i32_le(section.partition.index);
    out.put_u32_le(u32::try_from(section.chunks.len()).expect("a lane file is 64 MiB"));
    for chunk in &section.chunks {
        out.put_u64_le(chunk.position);
        out.put_u64_le(chunk.length);
        out.put_i64_le(chunk.base_offset);
        out.put_i64_le(chunk.end_offset);
        out.put_i64_le(chunk.max_timestamp);
        out.put_u32_le(chunk.checksum);
        out.put_u32_le(0);
    }
    let checksum = crc32c(&out);
    out.put_u32_le(checksum);
    out.freeze()
}

/// Reads a partition's section.
///
/// # Errors
/// [`ColdError::Damaged`] where it does not check or belongs to another partition.
pub fn decode_section(
    bytes: &Bytes,
    partition: PartitionId,
    object: ObjectRef,
) -> Result<Vec<Chunk>, ColdError> {
    let damaged = |what: String| {
        ColdError::damaged(format!("object {}/{}", object.incarnation, object.number), what)
    };
    let (owner, chunks) =
        parse_section(bytes).map_err(|error| damaged(error.to_string()))?.ok_or_else(|| {
            damaged(format!("the section of {partition} does not match its checksum"))
        })?;
    if owner == partition {
        Ok(chunks)
    } else {
        Err(damaged(format!("the section of {partition} is one of {owner}")))
    }
}

fn parse_section(bytes: &Bytes) -> Result<Option<(PartitionId, Vec<Chunk>)>, WireError> {
    let mut reader = Reader::new(bytes.clone());
    let partition = PartitionId::new(reader.uuid()?, reader.i32_le()?);
    let count = reader.u32_le()?;
    let count = reader.count(i64::from(count), CHUNK_ROW_BYTES)?;
    let mut chunks = Vec::with_capacity(count);
    for _ in 0..count {
        chunks.push(Chunk {
            position: reader.u64_le()?,
            length: reader.u64_le()?,
            base_offset: reader.i64_le()?,
            end_offset: reader.i64_le()?,
            max_timestamp: reader.i64_le()?,
            checksum: reader.u32_le()?,
        });
        reader.u32_le()?;
    }
    let summed = reader.position();
    let checksum = reader.u32_le()?;
    Ok((checksum == crc32c(&bytes[..summed])).then_some((partition, chunks)))
}
