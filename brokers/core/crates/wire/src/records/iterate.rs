//! The records inside a batch. The broker looks at them only where a rule needs it.

use bytes::Bytes;

use super::walk::{OFFSETS_OUT_OF_ORDER, nullable_length};
use super::{BatchHeader, RecordsError, StoredBatch, TimestampType, ValidatedBatch, decompress};
use crate::codec::Reader;

/// How much of one batch is held in memory at most, decompressed, where its records are needed with
/// their keys. A batch that is accepted may decompress to more.
pub const DECOMPRESSED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The smallest record: length, attributes, timestamp, offset, key, value, header count.
pub(super) const RECORD_BYTES_MIN: usize = 7;
/// The smallest header: key length and value length.
const HEADER_BYTES_MIN: usize = 2;
/// How many headers of a record are gathered. In memory one is many times its size in the batch.
const HEADERS_MAX: usize = 1 << 16;

/// A record. Key, value and header values share the batch's (decompressed) allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its offset in the partition.
    pub offset: i64,
    /// Milliseconds since 1970; for [`TimestampType::LogAppendTime`] the batch's.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers in order; keys may repeat. Keys that are not UTF-8 are repaired, as in Kafka.
    pub headers: Vec<(String, Option<Bytes>)>,
}

/// The records of one batch, in order. Ends after the first error. Checked is what
/// [`walk_records`](super::walk_records) checks.
#[derive(Debug)]
pub struct Records {
    header: BatchHeader,
    reader: Reader,
    left: usize,
    last_delta: i32,
    with_headers: bool,
    done: bool,
}

impl Records {
    /// The records behind `header`. `payload` is what follows the header in the batch; it is
    /// decompressed to at most `limit_bytes` bytes.
    ///
    /// # Errors
    /// Any error of [`decompress`]; [`RecordsError::Wire`] for a count that cannot be.
    pub fn new(
        header: BatchHeader,
        payload: &Bytes,
        limit_bytes: usize,
    ) -> Result<Self, RecordsError> {
        let reader = Reader::new(decompress(header.compression()?, payload, limit_bytes)?);
        let left = reader.count(header.record_count.into(), RECORD_BYTES_MIN)?;
        Ok(Self { header, reader, left, last_delta: -1, with_headers: true, done: false })
    }

    /// Checks the records' headers but does not return them.
    pub fn without_headers(self) -> Self {
        Self { with_headers: false, ..self }
    }

    fn read(&mut self) -> Result<Record, RecordsError> {
        let length = self.reader.varint32()?;
        let length = self.reader.count(length.into(), 1)?;
        let mut record = Reader::new(self.reader.take(length)?);
        record.i8()?;
        let timestamp_delta = record.varint()?;
        let delta = record.varint32()?;
        if delta <= self.last_delta || delta > self.header.last_offset_delta {
            return Err(RecordsError::Inconsistent(OFFSETS_OUT_OF_ORDER));
        }
        self.last_delta = delta;
        let key = nullable_bytes(&mut record)?;
        let value = nullable_bytes(&mut record)?;
        let headers = read_headers(&mut record, self.with_headers)?;
        if record.remaining() > 0 {
            return Err(RecordsError::Inconsistent("a record is shorter than its length"));
        }
        let timestamp = match self.header.timestamp_type() {
            TimestampType::LogAppendTime => self.header.max_timestamp,
            TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(timestamp_delta),
        };
        let offset = self.header.base_offset.saturating_add(delta.into());
        Ok(Record { offset, timestamp, key, value, headers })
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.left == 0 {
            self.done = true;
            let leftover = self.reader.remaining() > 0;
            let error = RecordsError::Inconsistent("bytes follow the last record");
            return leftover.then_some(Err(error));
        }
        self.left -= 1;
        let record = self.read();
        self.done = record.is_err();
        Some(record)
    }
}

impl std::iter::FusedIterator for Records {}

impl StoredBatch {
    /// The records of this batch.
    ///
    /// # Errors
    /// As [`Records::new`].
    pub fn records(&self, limit_bytes: usize) -> Result<Records, RecordsError> {
        Records::new(self.header(), &self.payload(), limit_bytes)
    }
}

impl ValidatedBatch {
    /// The records of this batch; offsets count from 0.
    ///
    /// # Errors
    /// As [`Records::new`].
    pub fn records(&self, limit_bytes: usize) -> Result<Records, RecordsError> {
        Records::new(*self.header(), self.payload(), limit_bytes)
    }
}

/// Bytes behind their length, where there are any.
pub(super) fn nullable_bytes(reader: &mut Reader) -> Result<Option<Bytes>, RecordsError> {
    let Some(length) = nullable_length(reader.varint32()?)? else { return Ok(None) };
    Ok(Some(reader.take(length)?))
}

fn read_headers(
    reader: &mut Reader,
    gather: bool,
) -> Result<Vec<(String, Option<Bytes>)>, RecordsError> {
    let count = reader.varint32()?;
    let count = reader.count(count.into(), HEADER_BYTES_MIN)?;
    if gather && count > HEADERS_MAX {
        return Err(RecordsError::Inconsistent("a record has too many headers"));
    }
    let mut headers = Vec::new();
    for _ in 0..count {
        let length = reader.varint32()?;
        let length = reader.count(length.into(), 1)?;
        let key = reader.take(length)?;
        let value = nullable_bytes(reader)?;
        if gather {
            headers.push((String::from_utf8_lossy(&key).into_owned(), value));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{BatchBuilder, Compression, HEADER_BYTES};

    fn read_all(batch: &Bytes) -> Vec<Result<Record, RecordsError>> {
        match StoredBatch::from_contiguous(batch.clone()).unwrap().records(1 << 20) {
            Ok(records) => records.collect(),
            Err(error) => vec![Err(error)],
        }
    }

    fn sample() -> BatchBuilder {
        BatchBuilder::new(100).record(1_000, Some(b"key"), Some(b"value")).record_with_headers(
            999,
            None,
            None,
            &[("a", Some(b"1")), ("a", None), ("b", Some(b""))],
        )
    }

    #[test]
    fn records_come_back_with_repeated_headers_and_negative_deltas() {
        for codec in [Compression::None, Compression::Zstd, Compression::Snappy] {
            let records: Vec<_> = read_all(&sample().compression(codec).build());
            let first = records[0].as_ref().unwrap();
            assert_eq!((first.offset, first.timestamp), (100, 1_000));
            assert_eq!(first.key.as_deref(), Some(&b"key"[..]));
            assert_eq!(first.value.as_deref(), Some(&b"value"[..]));
            let second = records[1].as_ref().unwrap();
            assert_eq!((second.offset, second.timestamp), (101, 999));
            assert_eq!((&second.key, &second.value), (&None, &None));
            let expected = [
                ("a".to_owned(), Some(Bytes::from_static(b"1"))),
                ("a".to_owned(), None),
                ("b".to_owned(), Some(Bytes::new())),
            ];
            assert_eq!(second.headers, expected);
            assert_eq!(records.len(), 2);
        }
    }

    #[test]
    fn log_append_time_holds_for_each_record() {
        let batch = sample().timestamp_type(TimestampType::LogAppendTime).build();
        assert!(read_all(&batch).iter().all(|record| record.as_ref().unwrap().timestamp == 1_000));
    }

    #[test]
    fn lies_about_the_payload_end_in_an_error() {
        let batch = sample().build();
        let with = |at: usize, value: &[u8]| {
            let mut bytes = batch.to_vec();
            bytes[at..at + value.len()].copy_from_slice(value);
            read_all(&bytes.into())
        };
        assert!(with(57, &1_i32.to_be_bytes())[1].is_err(), "fewer records than there are");
        assert!(with(57, &3_i32.to_be_bytes())[2].is_err(), "more records than there are");
        assert!(with(57, &i32::MAX.to_be_bytes())[0].is_err(), "an impossible count");
        assert!(with(57, &(-1_i32).to_be_bytes())[0].is_err(), "a negative count");
        assert!(with(HEADER_BYTES, &[0x7e])[0].is_err(), "a record longer than the batch");
        assert!(with(HEADER_BYTES, &[0x01])[0].is_err(), "a negative length");
        assert!(with(HEADER_BYTES + 4, &[0x7e])[0].is_err(), "a key longer than the record");
        assert!(with(HEADER_BYTES + 4, &[0x03])[0].is_err(), "no key, and bytes left over");
    }

    #[test]
    fn headers_are_checked_even_where_they_are_left_out() {
        let read = |builder: BatchBuilder| {
            let batch = StoredBatch::from_contiguous(builder.build()).unwrap();
            batch.records(1 << 20).unwrap().without_headers().next().unwrap()
        };
        let header = ("key", Some(&b"value"[..]));
        let one = BatchBuilder::new(0).record_with_headers(0, None, None, &[header]);
        assert_eq!(read(one.clone()).unwrap().headers, []);
        let mut bytes = one.build().to_vec();
        let key_length = bytes.len() - b"\x06key\x0avalue".len();
        assert_eq!(bytes[key_length], 6);
        bytes[key_length] = 0x7e;
        let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
        assert!(batch.records(1 << 20).unwrap().without_headers().next().unwrap().is_err());

        let many = vec![("", None); HEADERS_MAX + 1];
        let many = BatchBuilder::new(0).record_with_headers(0, None, None, &many);
        assert!(read_all(&many.clone().build())[0].is_err());
        read(many).unwrap();
    }

    #[test]
    fn any_changed_byte_gives_records_or_an_error() {
        let batch = sample().build();
        for at in HEADER_BYTES..batch.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = batch.to_vec();
                bytes[at] = value;
                assert!(read_all(&bytes.into()).len() <= 3);
            }
        }
    }
}
