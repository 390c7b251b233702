//! What stands in the index of each kind of block. Format version 2 (the block's version).
//!
//! Data: `u16` number of principals, each `u16` length + UTF-8; `u32` number of entries, each of
//! 72 bytes: topic id (16), partition `i32`, leader epoch `i32`, principal `u16` (its place in the
//! table), the batch's attributes `i16`, base offset `i64`, record count `u32`, position in the
//! payload `u32`, length `u32`; then, so that a partition can be opened without a look at its
//! records, the batch's largest timestamp `i64`, producer id `i64`, base sequence `i32`, producer
//! epoch `i16`, zero `u16`. In version 1 an entry has 48 bytes: it ends before the largest
//! timestamp, and its attributes are zero. Usage: the same table of principals, then window start
//! and end in ms (`i64` each), `u32` number of entries, each topic id (16), principal `u16`,
//! cumulative bytes handed to sockets `u64`, and how many of them since the entry before it in the
//! lane `u64`. Install: `u32` number of entries, each topic id (16), partition `i32`, epoch `i32`,
//! manifest number `u64`. Checkpoint: file number `u64`, then as Install. Close: nothing.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::block::BlockHeader;
use crate::names::ManifestRef;
use freshet_wire::codec::{Reader, WireError, WriteExt};
use freshet_wire::ids::{Epoch, PartitionId, TopicId};
use freshet_wire::records::BatchHeader;

/// Bytes of one data entry.
pub const DATA_ENTRY_BYTES: usize = 72;
/// Bytes of one data entry in version 1.
const DATA_ENTRY_BYTES_V1: usize = 48;
/// Bytes of one usage entry.
const USAGE_ENTRY_BYTES: usize = 34;
/// Bytes of one install entry.
const INSTALL_ENTRY_BYTES: usize = 32;

/// One record batch in a data block: who wrote how many bytes to which partition, and where they
/// lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataEntry {
    /// Partition that it belongs to.
    pub partition: PartitionId,
    /// Leader epoch under which it was written.
    pub epoch: Epoch,
    /// The principal that produced it.
    pub principal: Arc<str>,
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offsets that it takes.
    pub record_count: u32,
    /// Where it starts, from the start of the payload.
    pub position: u32,
    /// Its length in bytes.
    pub length: u32,
    /// What its partition needs of it to be opened; `None` in an index of version 1.
    pub facts: Option<BatchFacts>,
}

impl DataEntry {
    /// The entry of a batch that starts at `position` of the payload.
    pub fn new(
        partition: PartitionId,
        epoch: Epoch,
        principal: Arc<str>,
        batch: &BatchHeader,
        position: u32,
    ) -> Self {
        Self {
            partition,
            epoch,
            principal,
            base_offset: batch.base_offset,
            record_count: batch.last_offset_delta.unsigned_abs() + 1,
            position,
            length: u32::try_from(batch.size_bytes()).expect("a request is limited to 100 MiB"),
            facts: Some(BatchFacts::from(batch)),
        }
    }
}

/// What a partition needs of a batch to be opened without reading its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchFacts {
    /// The batch's flags, as in its header.
    pub attributes: i16,
    /// Largest timestamp, ms.
    pub max_timestamp: i64,
    /// Idempotent producer's id, or -1.
    pub producer_id: i64,
    /// Idempotent producer's epoch, or -1.
    pub producer_epoch: i16,
    /// Sequence number of the first record, or -1.
    pub base_sequence: i32,
}

impl From<&BatchHeader> for BatchFacts {
    fn from(header: &BatchHeader) -> Self {
        Self {
            attributes: header.attributes,
            max_timestamp: header.max_timestamp,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
        }
    }
}

/// What a principal has read of a topic since its broker started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageEntry {
    /// The topic.
    pub topic: TopicId,
    /// The principal that read it.
    pub principal: Arc<str>,
    /// Bytes of record batches handed to sockets since the incarnation started.
    pub egress_bytes: u64,
    /// How many of them were added since the last entry of the topic and principal in the lane. So
    /// a block's usage can be read without the blocks before it.
    pub egress_delta: u64,
}

/// The egress counters that changed in a window of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Start of the window, ms since 1970 UTC.
    pub window_start_ms: i64,
    /// End of the window.
    pub window_end_ms: i64,
    /// Counters that changed in it.
    pub entries: Vec<UsageEntry>,
}

/// Which manifest of a partition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstallEntry {
    /// The partition.
    pub partition: PartitionId,
    /// Its manifest.
    pub manifest: ManifestRef,
}

/// The principals of one block; a principal's number is its place.
#[derive(Default)]
struct Principals(Vec<Arc<str>>);

impl Principals {
    fn number(&mut self, principal: &Arc<str>) -> u16 {
        let known = self.0.iter().position(|other| other == principal);
        let number = known.unwrap_or_else(|| {
            self.0.push(Arc::clone(principal));
            self.0.len() - 1
        });
        u16::try_from(number).expect("a block is cut long before 65,536 principals")
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u16_le(u16::try_from(self.0.len()).expect("numbered as u16"));
        for principal in &self.0 {
            out.put_text_le(principal);
        }
    }

    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let count = reader.u16_le()?;
        let count = reader.count(i64::from(count), 2)?;
        let mut principals = Vec::with_capacity(count);
        for _ in 0..count {
            principals.push(Arc::from(reader.text_le()?));
        }
        Ok(Self(principals))
    }

    fn get(&self, number: u16, position: usize) -> Result<Arc<str>, WireError> {
        let unknown = WireError::Length { position, length: i64::from(number) };
        self.0.get(usize::from(number)).cloned().ok_or(unknown)
    }
}

/// The index of a data block. Every entry has its facts.
pub fn encode_data(entries: &[DataEntry]) -> Bytes {
    let mut principals = Principals::default();
    let mut body = BytesMut::with_capacity(4 + entries.len() * DATA_ENTRY_BYTES);
    body.put_u32_le(u32::try_from(entries.len()).expect("a block is cut at 1 MiB"));
    for entry in entries {
        put_partition(&mut body, entry.partition);
        body.put_i32_le(entry.epoch);
        let facts = entry.facts.expect("no index of version 1 is written");
        body.put_u16_le(principals.number(&entry.principal));
        body.put_i16_le(facts.attributes);
        body.put_i64_le(entry.base_offset);
        body.put_u32_le(entry.record_count);
        body.put_u32_le(entry.position);
        body.put_u32_le(entry.length);
        body.put_i64_le(facts.max_timestamp);
        body.put_i64_le(facts.producer_id);
        body.put_i32_le(facts.base_sequence);
        body.put_i16_le(facts.producer_epoch);
        body.put_u16_le(0);
    }
    with_principals(&principals, &body)
}

fn with_principals(principals: &Principals, body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(64 + body.len());
    principals.write(&mut out);
    out.put_slice(body);
    out.freeze()
}

/// Reads the index of a data block, which follows `header`.
///
/// # Errors
/// [`WireError`] where it is not such an index, or an entry lies outside the payload.
pub fn decode_data(index: Bytes, header: &BlockHeader) -> Result<Vec<DataEntry>, WireError> {
    decode_entries(index, header.version, header.payload_bytes)
}

fn decode_entries(
    index: Bytes,
    version: u16,
    payload_bytes: u32,
) -> Result<Vec<DataEntry>, WireError> {
    let mut reader = Reader::new(index);
    let principals = Principals::read(&mut reader)?;
    let count = reader.u32_le()?;
    let entry_bytes = if version == 1 { DATA_ENTRY_BYTES_V1 } else { DATA_ENTRY_BYTES };
    let count = reader.count(i64::from(count), entry_bytes)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let entry = decode_entry(&mut reader, &principals, version)?;
        let end = u64::from(entry.position) + u64::from(entry.length);
        if end > u64::from(payload_bytes) {
            return Err(WireError::Length {
                position: reader.position(),
                length: i64::from(entry.length),
            });
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn decode_entry(
    reader: &mut Reader,
    principals: &Principals,
    version: u16,
) -> Result<DataEntry, WireError> {
    let partition = get_partition(reader)?;
    let epoch = reader.i32_le()?;
    let principal = principals.get(reader.u16_le()?, reader.position())?;
    let attributes = reader.i16_le()?;
    let mut entry = DataEntry {
        partition,
        epoch,
        principal,
        base_offset: reader.i64_le()?,
        record_count: reader.u32_le()?,
        position: reader.u32_le()?,
        length: reader.u32_le()?,
        facts: None,
    };
    if version > 1 {
        entry.facts = Some(BatchFacts {
            attributes,
            max_timestamp: reader.i64_le()?,
            producer_id: reader.i64_le()?,
            base_sequence: reader.i32_le()?,
            producer_epoch: reader.i16_le()?,
        });
        reader.u16_le()?;
    }
    Ok(entry)
}

/// The index of a usage block.
pub fn encode_usage(usage: &Usage) -> Bytes {
    let mut principals = Principals::default();
    let mut body = BytesMut::with_capacity(20 + usage.entries.len() * USAGE_ENTRY_BYTES);
    body.put_i64_le(usage.window_start_ms);
    body.put_i64_le(usage.window_end_ms);
    body.put_u32_le(u32::try_from(usage.entries.len()).expect("cut by the meter"));
    for entry in &usage.entries {
        body.put_uuid(entry.topic);
        body.put_u16_le(principals.number(&entry.principal));
        body.put_u64_le(entry.egress_bytes);
        body.put_u64_le(entry.egress_delta);
    }
    with_principals(&principals, &body)
}

/// Reads the index of a usage block.
///
/// # Errors
/// [`WireError`] where it is not such an index.
pub fn decode_usage(index: Bytes) -> Result<Usage, WireError> {
    let mut reader = Reader::new(index);
    let principals = Principals::read(&mut reader)?;
    let window_start_ms = reader.i64_le()?;
    let window_end_ms = reader.i64_le()?;
    let count = reader.u32_le()?;
    let count = reader.count(i64::from(count), USAGE_ENTRY_BYTES)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let topic = reader.uuid()?;
        let principal = principals.get(reader.u16_le()?, reader.position())?;
        let (egress_bytes, egress_delta) = (reader.u64_le()?, reader.u64_le()?);
        entries.push(UsageEntry { topic, principal, egress_bytes, egress_delta });
    }
    Ok(Usage { window_start_ms, window_end_ms, entries })
}

/// The index of an install block.
pub fn encode_installs(entries: &[InstallEntry]) -> Bytes {
    let mut out = BytesMut::with_capacity(4 + entries.len() * INSTALL_ENTRY_BYTES);
    put_installs(&mut out, entries);
    out.freeze()
}

/// Reads the index of an install block.
///
/// # Errors
/// [`WireError`] where it is not such an index.
pub fn decode_installs(index: Bytes) -> Result<Vec<InstallEntry>, WireError> {
    get_installs(&mut Reader::new(index))
}

/// The index of a checkpoint block at the start of file `file`.
pub fn encode_checkpoint(file: u64, entries: &[InstallEntry]) -> Bytes {
    let mut out = BytesMut::with_capacity(12 + entries.len() * INSTALL_ENTRY_BYTES);
    out.put_u64_le(file);
    put_installs(&mut out, entries);
    out.freeze()
}

/// Reads the index of a checkpoint block: the file's number, and every partition's manifest.
///
/// # Errors
/// [`WireError`] where it is not such an index.
pub fn decode_checkpoint(index: Bytes) -> Result<(u64, Vec<InstallEntry>), WireError> {
    let mut reader = Reader::new(index);
    let file = reader.u64_le()?;
    Ok((file, get_installs(&mut reader)?))
}

fn put_installs(out: &mut BytesMut, entries: &[InstallEntry]) {
    out.put_u32_le(u32::try_from(entries.len()).expect("partitions are counted as i32"));
    for entry in entries {
        put_partition(out, entry.partition);
        out.put_i32_le(entry.manifest.epoch);
        out.put_u64_le(entry.manifest.number);
    }
}

fn get_installs(reader: &mut Reader) -> Result<Vec<InstallEntry>, WireError> {
    let count = reader.u32_le()?;
    let count = reader.count(i64::from(count), INSTALL_ENTRY_BYTES)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let partition = get_partition(reader)?;
        let manifest = ManifestRef { epoch: reader.i32_le()?, number: reader.u64_le()? };
        entries.push(InstallEntry { partition, manifest });
    }
    Ok(entries)
}

fn put_partition(out: &mut BytesMut, partition: PartitionId) {
    out.put_uuid(partition.topic);
    out.put_i32_le(partition.index);
}

fn get_partition(reader: &mut Reader) -> Result<PartitionId, WireError> {
    Ok(PartitionId::new(reader.uuid()?, reader.i32_le()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(index: i32) -> PartitionId {
        PartitionId::new(TopicId::from_u128(5), index)
    }

    fn data_entry(principal: &str, position: u32) -> DataEntry {
        DataEntry {
            partition: partition(3),
            epoch: 4,
            principal: principal.into(),
            base_offset: 1 << 40,
            record_count: 17,
            position,
            length: 100,
            facts: Some(BatchFacts {
                attributes: 0x11,
                max_timestamp: 1 << 41,
                producer_id: 1 << 42,
                producer_epoch: 6,
                base_sequence: 1 << 20,
            }),
        }
    }

    #[test]
    fn data_entries_read_back() {
        let entries =
            vec![data_entry("User:a", 0), data_entry("User:b", 100), data_entry("User:a", 200)];
        assert_eq!(decode_entries(encode_data(&entries), 2, 300), Ok(entries));
    }

    #[test]
    fn an_entry_outside_the_payload_is_refused() {
        let index = encode_data(&[data_entry("User:a", 1)]);
        assert!(decode_entries(index, 2, 100).is_err());
    }

    #[test]
    fn usage_reads_back() {
        let entry = UsageEntry {
            topic: TopicId::from_u128(9),
            principal: "User:a".into(),
            egress_bytes: u64::MAX,
            egress_delta: 1 << 34,
        };
        let usage = Usage { window_start_ms: 1, window_end_ms: 2, entries: vec![entry] };
        assert_eq!(decode_usage(encode_usage(&usage)), Ok(usage));
    }

    #[test]
    fn checkpoints_and_installs_read_back() {
        let manifest = ManifestRef { epoch: 2, number: 1 << 33 };
        let entries: Vec<_> =
            (0..3).map(|index| InstallEntry { partition: partition(index), manifest }).collect();
        assert_eq!(decode_installs(encode_installs(&entries)), Ok(entries.clone()));
        assert_eq!(decode_checkpoint(encode_checkpoint(7, &entries)), Ok((7, entries)));
    }

    #[test]
    fn every_truncation_is_refused() {
        let whole = encode_data(&[data_entry("User:a", 0)]);
        for end in 0..whole.len() {
            assert!(decode_entries(whole.slice(..end), 2, 100).is_err(), "{end}");
        }
    }
}
