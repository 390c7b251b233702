//! What was fetched of a partition: batch by batch, and record by record, each within bounds.
//!
//! A batch is walked before any of its records is returned: its checksum, its compression, the
//! number, lengths and offsets of its records. One that fails is damaged as a whole, as for Kafka's
//! own clients, and the next one follows.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use crate::apis::records::FetchedRecords;
use crate::connection::{AnswerMemory, AnswerShare, MEMORY_TIME};
use crate::error::ClientError;
use freshet_wire::codec::{Reader, WireError};
use freshet_wire::records::{
    BatchHeader, Compression, HEADER_BYTES, RecordsError, StoredBatch, TimestampType, UnpackLimits,
    decompress_within, memory_to_unpack, walk_records,
};

/// The most bytes to which the records of a batch are decompressed.
const UNPACKED_BYTES_MAX: usize = 64 << 20;
/// The most memory that a decoder may hold besides.
const DECODER_BYTES_MAX: usize = 32 << 20;
/// More than any snappy block can grow: an element of three bytes gives at most 64.
const SNAPPY_GROWTH_MAX: usize = 32;
/// The most headers of a record that are returned; the first ones.
const HEADERS_MAX: usize = 1_000;
/// What a record and each of its headers costs besides its bytes, in the count of what is returned.
const OVERHEAD_BYTES: usize = 64;

/// Why the records of a batch are not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// They cannot be decoded.
    Undecodable,
    /// They were not decoded in time.
    TooSlow,
    /// They are larger than is read here. Nothing is known of them.
    TooLarge,
}

impl Damage {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::TooSlow => "too_slow",
            Self::TooLarge => "too_large",
        }
    }

    fn of(error: &RecordsError, compression: Compression, payload_bytes: usize) -> Self {
        // A few bytes of snappy that announce gigabytes cannot hold them: that is damage.
        let is_lie = compression == Compression::Snappy
            && payload_bytes.saturating_mul(SNAPPY_GROWTH_MAX) <= UNPACKED_BYTES_MAX;
        match error {
            RecordsError::TooLarge { .. } | RecordsError::Memory { .. } if !is_lie => {
                Self::TooLarge
            }
            RecordsError::Stopped => Self::TooSlow,
            _ => Self::Undecodable,
        }
    }
}

/// What the header of a batch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHead {
    /// The offset of its first record.
    pub first_offset: i64,
    /// The offset behind its last record.
    pub next_offset: i64,
    /// How many records it holds.
    pub records: i32,
    /// The checksum of what follows it in the batch.
    pub crc: u32,
    /// The moment of its first record, or of its append, in Unix milliseconds.
    pub timestamp_ms: i64,
    /// Whether the moments are those of the append.
    pub is_append_time: bool,
    /// Whether it holds a transaction's end instead of records.
    pub is_control: bool,
}

/// What was fetched of a partition.
#[derive(Debug)]
pub struct FetchedPartition {
    /// The topic.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// The offset of the next new record.
    pub end: i64,
    /// The first offset that is kept.
    pub start: i64,
    /// Whether the offset that was asked for lies outside of the log.
    pub is_out_of_range: bool,
    /// Batches before this offset are left out.
    position: i64,
    rest: Bytes,
    is_cut: bool,
    held: Option<Arc<AnswerShare>>,
    memory: AnswerMemory,
}

impl FetchedPartition {
    pub(crate) fn new(
        records: FetchedRecords,
        position: i64,
        is_out_of_range: bool,
        held: Option<Arc<AnswerShare>>,
        memory: AnswerMemory,
    ) -> Self {
        Self {
            topic: records.topic,
            partition: records.partition,
            end: records.end,
            start: records.start,
            is_out_of_range,
            position,
            rest: records.batches,
            is_cut: records.is_cut,
            held,
            memory,
        }
    }

    /// The next batch that reaches beyond the position; `None` where the next one was not fetched.
    ///
    /// # Errors
    /// [`ClientError::Undecodable`] for bytes that are no batch; nothing more follows then.
    pub fn next_batch(&mut self) -> Option<Result<Batch, ClientError>> {
        while self.rest.len() >= HEADER_BYTES {
            let header = match self.parse_header() {
                Ok(header) => header,
                Err(reason) => {
                    self.rest.clear();
                    return Some(Err(ClientError::Undecodable { api: "Fetch", reason }));
                }
            };
            let size = header.size_bytes();
            let is_whole = size <= self.rest.len();
            if !is_whole && !self.is_cut {
                break; // the broker ended its answer within a batch
            }
            let bytes = self.rest.split_to(size.min(self.rest.len()));
            if header.next_offset() <= self.position {
                continue;
            }
            self.position = header.next_offset();
            let (held, memory) = (self.held.clone(), self.memory.clone());
            return Some(Ok(Batch { header, bytes, is_whole, _held: held, memory }));
        }
        self.rest.clear();
        None
    }

    fn parse_header(&self) -> Result<BatchHeader, String> {
        let header = BatchHeader::parse(&self.rest).map_err(|error| error.to_string())?;
        let (first, delta) = (header.base_offset, header.last_offset_delta);
        if first < 0 || delta < 0 || header.record_count < 0 {
            return Err(format!("the header of the batch at offset {first} cannot be"));
        }
        Ok(header)
    }
}

/// A batch whose records were not decoded yet.
#[derive(Debug)]
pub struct Batch {
    header: BatchHeader,
    bytes: Bytes,
    is_whole: bool,
    _held: Option<Arc<AnswerShare>>,
    memory: AnswerMemory,
}

impl Batch {
    /// What its header says.
    pub fn head(&self) -> BatchHead {
        let header = &self.header;
        let is_append_time = header.timestamp_type() == TimestampType::LogAppendTime;
        BatchHead {
            first_offset: header.base_offset,
            next_offset: header.next_offset(),
            records: header.record_count,
            crc: header.crc,
            timestamp_ms: if is_append_time { header.max_timestamp } else { header.base_timestamp },
            is_append_time,
            is_control: header.is_control(),
        }
    }

    /// Decodes it. That takes processor time, so it is done where the caller awaits this.
    ///
    /// # Errors
    /// [`ClientError::Busy`] where other calls hold the memory for too long.
    pub async fn open(self, time: Duration) -> Result<Result<OpenBatch, Damage>, ClientError> {
        if !self.is_whole {
            return Ok(Err(Damage::TooLarge));
        }
        let Ok(stored) = StoredBatch::from_contiguous(self.bytes.clone()) else {
            return Ok(Err(Damage::Undecodable));
        };
        if stored.verify_checksum().is_err() {
            return Ok(Err(Damage::Undecodable));
        }
        let payload = stored.payload();
        let Ok(compression) = self.header.compression() else {
            return Ok(Err(Damage::Undecodable));
        };
        // A frame may announce more than there is; what needs more than the bound is not decoded.
        let needed = memory_to_unpack(compression, &payload).min(DECODER_BYTES_MAX);
        let decoding = self.acquire(needed).await?;
        let unpacked_bytes = match self.walk(&payload, time) {
            Ok(unpacked_bytes) => unpacked_bytes,
            Err(error) => return Ok(Err(Damage::of(&error, compression, payload.len()))),
        };
        let holding = match compression {
            Compression::None => None,
            _ => Some(self.acquire(unpacked_bytes).await?),
        };
        let limits = UnpackLimits {
            memory_bytes: DECODER_BYTES_MAX,
            ..UnpackLimits::of_output(UNPACKED_BYTES_MAX)
        };
        let records = match decompress_within(compression, &payload, limits) {
            Ok(records) => records,
            Err(error) => return Ok(Err(Damage::of(&error, compression, payload.len()))),
        };
        drop(decoding);
        let left = usize::try_from(self.header.record_count).unwrap_or(0);
        let reader = Reader::new(records);
        Ok(Ok(OpenBatch { header: self.header, reader, left, next: None, _held: (self, holding) }))
    }

    async fn acquire(&self, bytes: usize) -> Result<AnswerShare, ClientError> {
        timeout(MEMORY_TIME, self.memory.acquire(bytes)).await.map_err(|_| ClientError::Busy)
    }

    /// Checks all records, and returns how many bytes they are without compression.
    fn walk(&self, payload: &Bytes, time: Duration) -> Result<usize, RecordsError> {
        let until = Instant::now() + time;
        let unpacked_bytes = std::cell::Cell::new(0_usize);
        let goes_on = |bytes: usize| {
            unpacked_bytes.set(unpacked_bytes.get() + bytes);
            Instant::now() < until
        };
        let limits = UnpackLimits {
            output_bytes: UNPACKED_BYTES_MAX,
            memory_bytes: DECODER_BYTES_MAX,
            goes_on: Some(&goes_on),
        };
        walk_records(&self.header, payload, limits, |_| {})?;
        Ok(unpacked_bytes.get())
    }
}

/// A record. Its parts share the batch's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: i64,
    /// Its moment, in Unix milliseconds, or −1.
    pub timestamp_ms: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Its first thousand headers, in order; names may repeat.
    pub headers: Vec<RecordHeader>,
    /// The bytes of key, value and all headers.
    pub size: usize,
}

/// A header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHeader {
    /// Its name, which may be any bytes.
    pub name: Bytes,
    /// Its value.
    pub value: Option<Bytes>,
}

impl Record {
    fn cost(&self) -> usize {
        self.size + OVERHEAD_BYTES * (1 + self.headers.len())
    }
}

/// A batch whose records can be read, in order.
#[derive(Debug)]
pub struct OpenBatch {
    header: BatchHeader,
    reader: Reader,
    left: usize,
    /// A record that was read and not returned yet.
    next: Option<Record>,
    _held: (Batch, Option<AnswerShare>),
}

impl OpenBatch {
    /// The next records from an offset on: at most so many, and at most so many bytes unless the
    /// first one has more. None at the end.
    ///
    /// # Errors
    /// [`ClientError::Undecodable`], which cannot be after the walk.
    pub fn take(
        &mut self,
        from: i64,
        count: usize,
        bytes_max: usize,
    ) -> Result<Vec<Record>, ClientError> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while records.len() < count {
            let Some(record) = self.next_record()? else { break };
            if record.offset < from {
                continue;
            }
            bytes += record.cost();
            if bytes > bytes_max && !records.is_empty() {
                self.next = Some(record);
                break;
            }
            records.push(record);
        }
        Ok(records)
    }

    fn next_record(&mut self) -> Result<Option<Record>, ClientError> {
        if let Some(record) = self.next.take() {
            return Ok(Some(record));
        }
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let record = self.read_record().map_err(|error| ClientError::Undecodable {
            api: "Fetch",
            reason: error.to_string(),
        })?;
        Ok(Some(record))
    }

    fn read_record(&mut self) -> Result<Record, WireError> {
        let reader = &mut self.reader;
        let length = reader.varint32()?;
        let length = reader.count(length.into(), 1)?;
        let mut input = Reader::new(reader.take(length)?);
        input.i8()?;
        let timestamp_delta = input.varint()?;
        let offset_delta = input.varint32()?;
        let (key, value) = (nullable_bytes(&mut input)?, nullable_bytes(&mut input)?);
        let mut size = key.as_ref().map_or(0, Bytes::len) + value.as_ref().map_or(0, Bytes::len);
        let count = input.varint32()?;
        let count = input.count(count.into(), 2)?;
        let mut headers = Vec::new();
        for _ in 0..count {
            let length = input.varint32()?;
            let length = input.count(length.into(), 1)?;
            let name = input.take(length)?;
            let value = nullable_bytes(&mut input)?;
            size += name.len() + value.as_ref().map_or(0, Bytes::len);
            if headers.len() < HEADERS_MAX {
                headers.push(RecordHeader { name, value });
            }
        }
        let timestamp_ms = match self.header.timestamp_type() {
            TimestampType::LogAppendTime => self.header.max_timestamp,
            TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(timestamp_delta),
        };
        let offset = self.header.base_offset.saturating_add(offset_delta.into());
        Ok(Record { offset, timestamp_ms, key, value, headers, size })
    }
}

/// Bytes behind their length. Any negative length says that there are none; the walk has refused
/// those below -1.
fn nullable_bytes(reader: &mut Reader) -> Result<Option<Bytes>, WireError> {
    let length = reader.varint32()?;
    if length < 0 {
        return Ok(None);
    }
    let length = reader.count(length.into(), 1)?;
    reader.take(length).map(Some)
}

#[cfg(test)]
#[path = "batches_tests.rs"]
mod tests;
