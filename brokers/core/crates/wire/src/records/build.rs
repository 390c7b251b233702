//! Batches that the broker makes itself: coordinators' records, markers, and what tests produce.

use bytes::{BufMut, Bytes, BytesMut};

use super::header::{BatchHeader, HEADER_BYTES, TimestampType, attributes};
use super::{Compression, NO_PRODUCER_ID, NO_TIMESTAMP, compress};
use crate::codec::WriteExt;
use crate::ids::Epoch;

/// Builds one batch, record by record.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    header: BatchHeader,
    compression: Compression,
    timestamp_type: TimestampType,
    transactional: bool,
    control: bool,
    payload: BytesMut,
}

/// Lengths inside a record are signed; absent is -1.
fn put_nullable(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => out.put_varint(-1),
        Some(bytes) => {
            out.put_varint(bytes.len() as i64);
            out.put_slice(bytes);
        }
    }
}

impl BatchBuilder {
    /// An empty batch whose first record will have this offset. Producers send 0.
    pub fn new(base_offset: i64) -> Self {
        let header = BatchHeader {
            base_offset,
            batch_length: 0,
            partition_leader_epoch: -1,
            magic: 2,
            crc: 0,
            attributes: 0,
            last_offset_delta: -1,
            base_timestamp: NO_TIMESTAMP,
            max_timestamp: NO_TIMESTAMP,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 0,
        };
        Self {
            header,
            compression: Compression::None,
            timestamp_type: TimestampType::CreateTime,
            transactional: false,
            control: false,
            payload: BytesMut::new(),
        }
    }

    /// Compresses the records.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Who set the timestamps.
    #[must_use]
    pub fn timestamp_type(mut self, timestamp_type: TimestampType) -> Self {
        self.timestamp_type = timestamp_type;
        self
    }

    /// The leader epoch in which the batch is appended.
    #[must_use]
    pub fn leader_epoch(mut self, epoch: Epoch) -> Self {
        self.header.partition_leader_epoch = epoch;
        self
    }

    /// The idempotent producer, its epoch, and the sequence number of the first record.
    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// Marks the batch as part of a transaction.
    #[must_use]
    pub fn transactional(mut self, transactional: bool) -> Self {
        self.transactional = transactional;
        self
    }

    /// Marks the batch as holding a transaction's end marker.
    #[must_use]
    pub fn control(mut self, control: bool) -> Self {
        self.control = control;
        self
    }

    /// Adds a record. The timestamp is in milliseconds.
    #[must_use]
    pub fn record(self, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        self.record_with_headers(timestamp, key, value, &[])
    }

    /// Adds a record with headers.
    #[must_use]
    pub fn record_with_headers(
        mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) -> Self {
        if self.header.record_count == 0 {
            self.header.base_timestamp = timestamp;
        }
        let offset_delta = self.header.record_count;
        self.header.record_count += 1;
        self.header.last_offset_delta = offset_delta;
        self.header.max_timestamp = self.header.max_timestamp.max(timestamp);
        let mut record = BytesMut::new();
        record.put_i8(0);
        record.put_varint(timestamp.wrapping_sub(self.header.base_timestamp));
        record.put_varint(offset_delta.into());
        put_nullable(&mut record, key);
        put_nullable(&mut record, value);
        record.put_varint(headers.len() as i64);
        for (key, value) in headers {
            put_nullable(&mut record, Some(key.as_bytes()));
            put_nullable(&mut record, *value);
        }
        self.payload.put_varint(record.len() as i64);
        self.payload.put_slice(&record);
        self
    }

    /// How many records were added.
    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }

    /// Size of the records so far, in bytes, before compression.
    pub fn payload_bytes(&self) -> usize {
        self.payload.len()
    }

    /// The batch in one piece.
    ///
    /// # Panics
    /// Where there is no record, or more than a batch can hold (2 GiB).
    pub fn build(self) -> Bytes {
        assert!(self.header.record_count > 0, "a batch has at least one record");
        let payload = match self.compression {
            Compression::None => self.payload.freeze(),
            codec => compress(codec, &self.payload),
        };
        let attributes =
            attributes(self.compression, self.timestamp_type, self.transactional, self.control);
        assemble(BatchHeader { attributes, ..self.header }, &payload)
    }
}

/// A batch of this header and payload, with its length and its checksum.
///
/// # Panics
/// Where it is more than a batch can hold (2 GiB).
pub(super) fn assemble(header: BatchHeader, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    out.put_slice(&header.sealed(payload).to_bytes());
    out.put_slice(payload);
    out.freeze()
}

/// Puts the right checksum into a whole batch.
#[cfg(test)]
pub(super) fn reseal(batch: &mut [u8]) {
    use super::header::{ATTRIBUTES_AT, CRC_AT};
    let crc = crate::codec::crc32c(&batch[ATTRIBUTES_AT..]);
    batch[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::records::RecordBatchDecoder;

    #[test]
    fn another_implementation_reads_what_is_built() {
        let batch = BatchBuilder::new(40)
            .leader_epoch(3)
            .producer(12, 1, 30)
            .transactional(true)
            .record(1_000, Some(b"k"), Some(b"v"))
            .record_with_headers(1_500, None, Some(b"w"), &[("h", Some(b"x"))])
            .build();
        let set = RecordBatchDecoder::decode(&mut batch.clone()).unwrap();
        let fields: Vec<_> = set
            .records
            .iter()
            .map(|record| (record.offset, record.timestamp, record.producer_id, record.sequence))
            .collect();
        assert_eq!(fields, [(40, 1_000, 12, 30), (41, 1_500, 12, 31)]);
        assert!(set.records.iter().all(|record| record.transactional && !record.control));
        assert_eq!(set.records[1].headers.len(), 1);
        assert_eq!(set.records[0].key.as_deref(), Some(&b"k"[..]));
    }
}
