//! Removing records from batches, for compaction, with the same result as Kafka's
//! `MemoryRecords.filterTo`.
//!
//! Offsets and sequence numbers stay: a batch keeps its first and its last offset whatever is
//! removed from it. The bytes of records that stay are copied as they are, unless the batch gets a
//! delete horizon, which takes the place of the base timestamp (KIP-534).

use bytes::{BufMut, Bytes, BytesMut};

use super::build::assemble;
use super::header::{BatchHeader, COMPRESSION_MASK, DELETE_HORIZON_BIT};
use super::iterate::nullable_bytes;
use super::{
    DECOMPRESSED_BYTES_MAX, NO_TIMESTAMP, RecordsError, StoredBatch, TimestampType, compress,
    decompress,
};
use crate::codec::{Reader, WriteExt};

/// What compaction needs of a record to decide whether it stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFacts {
    /// Its offset in the partition.
    pub offset: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Whether it is no tombstone.
    pub has_value: bool,
}

/// The result for one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retained {
    /// The batch stays as it is.
    Same,
    /// This batch replaces it.
    Rewritten(StoredBatch),
    /// No record stays.
    Nothing,
}

/// A record as it lies in the payload.
struct RawRecord {
    facts: RecordFacts,
    /// The record with its length.
    whole: Bytes,
    attributes: i8,
    timestamp_delta: i64,
    /// The record from the delta of its offset on.
    rest: Bytes,
}

impl StoredBatch {
    /// Visits the facts of each record.
    ///
    /// # Errors
    /// As [`StoredBatch::records`]; nothing was visited then.
    pub fn visit_facts(&self, mut visit: impl FnMut(&RecordFacts)) -> Result<(), RecordsError> {
        raw_records(self)?.iter().for_each(|record| visit(&record.facts));
        Ok(())
    }

    /// Removes the records for which `keep` returns `false`. Where a tombstone stays, or
    /// `is_last_of_transaction` says that all records of this marker's transaction are removed, the
    /// batch gets `delete_horizon_ms` as its delete horizon, unless it has one.
    ///
    /// # Errors
    /// As [`StoredBatch::records`].
    pub fn retain(
        &self,
        delete_horizon_ms: i64,
        is_last_of_transaction: bool,
        mut keep: impl FnMut(&RecordFacts) -> bool,
    ) -> Result<Retained, RecordsError> {
        let header = self.header();
        let mut records = raw_records(self)?;
        let before = records.len();
        records.retain(|record| keep(&record.facts));
        if records.is_empty() {
            return Ok(Retained::Nothing);
        }
        let tombstones =
            !header.is_control() && records.iter().any(|record| !record.facts.has_value);
        let wants_horizon = tombstones || is_last_of_transaction;
        let horizon =
            (wants_horizon && header.delete_horizon_ms().is_none()).then_some(delete_horizon_ms);
        if records.len() == before && horizon.is_none() {
            return Ok(Retained::Same);
        }
        Ok(Retained::Rewritten(rebuild_batch(header, &records, horizon)?))
    }

    /// The batch without records, which keeps its offsets and its producer's last sequence number
    /// (Kafka's `DefaultRecordBatch.writeEmptyHeader`).
    #[must_use]
    pub fn emptied(&self) -> Self {
        let header = self.header();
        let kept_bits = !(i16::from(COMPRESSION_MASK) | DELETE_HORIZON_BIT);
        let empty = BatchHeader {
            attributes: header.attributes & kept_bits,
            base_timestamp: NO_TIMESTAMP,
            record_count: 0,
            ..header
        };
        whole_batch(assemble(empty, &[]))
    }
}

fn raw_records(batch: &StoredBatch) -> Result<Vec<RawRecord>, RecordsError> {
    // The walk below leaves out what that one checks: order, range, count and headers.
    for record in batch.records(DECOMPRESSED_BYTES_MAX)?.without_headers() {
        record?;
    }
    let header = batch.header();
    let payload = decompress(header.compression()?, &batch.payload(), DECOMPRESSED_BYTES_MAX)?;
    let mut reader = Reader::new(payload.clone());
    let mut records = Vec::new();
    while reader.remaining() > 0 {
        let start = reader.position();
        let length = reader.varint32()?;
        let length = reader.count(length.into(), 1)?;
        let body = reader.take(length)?;
        let mut fields = Reader::new(body.clone());
        let attributes = fields.i8()?;
        let timestamp_delta = fields.varint()?;
        let rest = body.slice(fields.position()..);
        let offset = header.base_offset.saturating_add(fields.varint32()?.into());
        let key = nullable_bytes(&mut fields)?;
        let has_value = fields.varint32()? >= 0;
        let whole = payload.slice(start..reader.position());
        let facts = RecordFacts { offset, key, has_value };
        records.push(RawRecord { facts, whole, attributes, timestamp_delta, rest });
    }
    Ok(records)
}

fn rebuild_batch(
    header: BatchHeader,
    records: &[RawRecord],
    horizon: Option<i64>,
) -> Result<StoredBatch, RecordsError> {
    let timestamp = |record: &RawRecord| header.base_timestamp.wrapping_add(record.timestamp_delta);
    let mut payload = BytesMut::new();
    for record in records {
        let Some(horizon) = horizon else {
            payload.put_slice(&record.whole);
            continue;
        };
        let mut body = BytesMut::with_capacity(record.whole.len() + 10);
        body.put_i8(record.attributes);
        body.put_varint(timestamp(record).wrapping_sub(horizon));
        body.put_slice(&record.rest);
        payload.put_varint(body.len() as i64);
        payload.put_slice(&body);
    }
    let max_timestamp = match header.timestamp_type() {
        TimestampType::LogAppendTime => header.max_timestamp,
        TimestampType::CreateTime => records.iter().map(timestamp).max().unwrap_or(NO_TIMESTAMP),
    };
    let rebuilt = BatchHeader {
        attributes: header.attributes | horizon.map_or(0, |_| DELETE_HORIZON_BIT),
        base_timestamp: horizon.unwrap_or(header.base_timestamp),
        max_timestamp,
        record_count: i32::try_from(records.len()).expect("no more than there were"),
        ..header
    };
    Ok(whole_batch(assemble(rebuilt, &compress(header.compression()?, &payload))))
}

fn whole_batch(batch: Bytes) -> StoredBatch {
    StoredBatch::from_contiguous(batch).expect("just laid out")
}

#[cfg(test)]
#[path = "retain_tests.rs"]
mod tests;
