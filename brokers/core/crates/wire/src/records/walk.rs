//! A walk over a batch's records that reads their fields and skips keys, values and headers: what a
//! broker needs of a record that it stores as it came.
//!
//! What it accepts of producers, all clients read alike. Java's leaves out bits of a number that it
//! has no room for, takes any negative length for "none", and does not compare offsets; librdkafka
//! does neither of the first two, and both return offsets as they stand. A header's key that is no
//! UTF-8 Java repairs, and clients in Python cannot read.

use super::unpack::{UnpackLimits, Unpacker};
use super::{BatchHeader, Compression, RecordsError, TimestampType};
use crate::codec::{WireError, decode_varint, decode_varint32};

/// What is said of a batch whose offsets are not those that its header promises.
pub(super) const OFFSETS_OUT_OF_ORDER: &str =
    "the offsets of the records do not rise within those of the batch";

/// What is said of a header's key that clients cannot take for text.
const KEY_NOT_UTF8: &str = "a header's key is not UTF-8, in which clients read the keys of headers";

/// A record without its key, value and headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOutline {
    /// Its offset, less the batch's base offset.
    pub offset_delta: i32,
    /// Milliseconds since 1970; for [`TimestampType::LogAppendTime`] the batch's.
    pub timestamp: i64,
    /// Whether it has a key.
    pub has_key: bool,
}

/// Visits every record of a batch in order, and checks that the payload decompresses and holds
/// exactly as many records as the header says, each as long as it says, with offsets that rise
/// within the batch's range. Compaction leaves gaps; where there are as many records as offsets,
/// there is none. Memory is bounded by `limits`, however much comes out.
///
/// # Errors
/// Any [`RecordsError`]. Those records were visited that lie before the fault.
pub fn walk_records(
    header: &BatchHeader,
    payload: &[u8],
    limits: UnpackLimits<'_>,
    visit: impl FnMut(RecordOutline),
) -> Result<(), RecordsError> {
    let compression = header.compression()?;
    if compression == Compression::None {
        return walk(header, Slice(payload), Rules::Stored, visit).map(drop);
    }
    let unpacker = Unpacker::new(compression, payload, limits)?;
    walk(header, Pieces::new(unpacker, |_| Ok(())), Rules::Stored, visit).map(drop)
}

/// Does what [`walk_records`] does with a producer's batch, which every client must be able to
/// read, and returns how many bytes the records have without compression.
///
/// # Errors
/// Any [`RecordsError`].
pub(super) fn walk_produced(
    header: &BatchHeader,
    payload: &[u8],
    limits: UnpackLimits<'_>,
    visit: impl FnMut(RecordOutline),
) -> Result<usize, RecordsError> {
    let compression = header.compression()?;
    if compression == Compression::None {
        return walk(header, Slice(payload), Rules::Produced, visit);
    }
    walk_and_copy(header, payload, limits, visit, |_| Ok(()))
}

/// Does what [`walk_produced`] does, and hands the decompressed records to `sink` on the way.
///
/// # Errors
/// Any [`RecordsError`], those of the sink among them.
pub(super) fn walk_and_copy(
    header: &BatchHeader,
    payload: &[u8],
    limits: UnpackLimits<'_>,
    visit: impl FnMut(RecordOutline),
    sink: impl FnMut(&[u8]) -> Result<(), RecordsError>,
) -> Result<usize, RecordsError> {
    let unpacker = Unpacker::of_producer(header.compression()?, payload, limits)?;
    walk(header, Pieces::new(unpacker, sink), Rules::Produced, visit)
}

/// What is asked of records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// That they can be read: an earlier release may have stored them.
    Stored,
    /// That every client reads them.
    Produced,
}

/// Returns how many bytes the records have.
fn walk(
    header: &BatchHeader,
    mut source: impl Source,
    rules: Rules,
    mut visit: impl FnMut(RecordOutline),
) -> Result<usize, RecordsError> {
    let begin = source.position();
    let append_time =
        (header.timestamp_type() == TimestampType::LogAppendTime).then_some(header.max_timestamp);
    let mut last_delta = -1;
    for _ in 0..header.record_count {
        let length = varint32(&mut source)?;
        let start = source.position();
        source.byte()?; // attributes, of which none is defined
        let timestamp_delta = varint64(&mut source)?;
        let offset_delta = varint32(&mut source)?;
        if offset_delta <= last_delta || offset_delta > header.last_offset_delta {
            return Err(RecordsError::Inconsistent(OFFSETS_OUT_OF_ORDER));
        }
        last_delta = offset_delta;
        let has_key = skip_nullable(&mut source)?;
        skip_nullable(&mut source)?;
        skip_headers(&mut source, rules)?;
        if i64::try_from(source.position() - start) != Ok(i64::from(length)) {
            return Err(RecordsError::Inconsistent("a record's length is not that of its fields"));
        }
        let timestamp = header.base_timestamp.wrapping_add(timestamp_delta);
        let timestamp = append_time.unwrap_or(timestamp);
        visit(RecordOutline { offset_delta, timestamp, has_key });
    }
    if source.has_more()? {
        return Err(RecordsError::Inconsistent("bytes follow the last record"));
    }
    Ok(source.position() - begin)
}

/// Skips a key or a value, and returns whether there is one.
fn skip_nullable(source: &mut impl Source) -> Result<bool, RecordsError> {
    let length = nullable_length(varint32(source)?)?;
    length.map_or(Ok(()), |length| source.skip(length))?;
    Ok(length.is_some())
}

/// The length of a key or a value; `None` for the one that says that there is none.
#[inline]
pub(super) fn nullable_length(length: i32) -> Result<Option<usize>, RecordsError> {
    match usize::try_from(length) {
        Ok(length) => Ok(Some(length)),
        Err(_) if length == -1 => Ok(None),
        Err(_) => Err(RecordsError::Inconsistent("the length of a key or value is below -1")),
    }
}

fn skip_headers(source: &mut impl Source, rules: Rules) -> Result<(), RecordsError> {
    let count = varint32(source)?;
    if count < 0 {
        return Err(RecordsError::Inconsistent("a record's number of headers is negative"));
    }
    for _ in 0..count {
        let key_length = usize::try_from(varint32(source)?)
            .map_err(|_| RecordsError::Inconsistent("the length of a header's key is negative"))?;
        match rules {
            Rules::Stored => source.skip(key_length)?,
            Rules::Produced => skip_text(source, key_length)?,
        }
        skip_nullable(source)?;
    }
    Ok(())
}

/// Skips bytes that must be UTF-8.
#[inline]
fn skip_text(source: &mut impl Source, length: usize) -> Result<(), RecordsError> {
    // Nearly all keys are short and of ASCII.
    if length > 0 && source.ahead()?.get(..length).is_some_and(<[u8]>::is_ascii) {
        return source.skip(length);
    }
    skip_any_text(source, length)
}

fn skip_any_text(source: &mut impl Source, mut length: usize) -> Result<(), RecordsError> {
    let refused = RecordsError::Inconsistent(KEY_NOT_UTF8);
    // The beginning of a character that goes on in the next piece.
    let mut cut = Vec::new();
    while length > 0 {
        let there = source.ahead()?;
        let there = &there[..length.min(there.len())];
        let taken = there.len();
        let joined;
        let text = if cut.is_empty() {
            there
        } else {
            joined = [&cut[..], there].concat();
            &joined[..]
        };
        let valid = match str::from_utf8(text) {
            Ok(_) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err(refused),
        };
        cut = text[valid..].to_vec();
        source.skip(taken)?;
        length -= taken;
    }
    if cut.is_empty() { Ok(()) } else { Err(refused) }
}

fn varint32(source: &mut impl Source) -> Result<i32, RecordsError> {
    decode_varint32(|| source.byte())?.ok_or_else(|| too_long(source))
}

fn varint64(source: &mut impl Source) -> Result<i64, RecordsError> {
    decode_varint(|| source.byte())?.ok_or_else(|| too_long(source))
}

fn too_long(source: &impl Source) -> RecordsError {
    WireError::Varint { position: source.position() }.into()
}

/// Where a walk reads records from.
trait Source {
    /// The next byte.
    fn byte(&mut self) -> Result<u8, RecordsError>;

    /// Leaves out the next bytes.
    fn skip(&mut self, length: usize) -> Result<(), RecordsError>;

    /// Bytes that follow, one at least.
    fn ahead(&mut self) -> Result<&[u8], RecordsError>;

    /// Whether there is another byte.
    fn has_more(&mut self) -> Result<bool, RecordsError>;

    /// How many bytes were read or left out; only differences count, modulo the width.
    fn position(&self) -> usize;
}

fn truncated(position: usize, needed: usize, remaining: usize) -> RecordsError {
    WireError::Truncated { position, needed, remaining }.into()
}

/// Records that are not compressed. The position is the negated number of bytes that remain.
struct Slice<'a>(&'a [u8]);

impl Source for Slice<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, RecordsError> {
        let (first, rest) = self.0.split_first().ok_or_else(|| truncated(0, 1, 0))?;
        self.0 = rest;
        Ok(*first)
    }

    #[inline]
    fn skip(&mut self, length: usize) -> Result<(), RecordsError> {
        let remaining = self.0.len();
        self.0 = self.0.get(length..).ok_or_else(|| truncated(0, length, remaining))?;
        Ok(())
    }

    fn ahead(&mut self) -> Result<&[u8], RecordsError> {
        if self.0.is_empty() { Err(truncated(0, 1, 0)) } else { Ok(self.0) }
    }

    fn has_more(&mut self) -> Result<bool, RecordsError> {
        Ok(!self.0.is_empty())
    }

    #[inline]
    fn position(&self) -> usize {
        usize::MAX - self.0.len()
    }
}

/// Records that come in pieces.
struct Pieces<'a, F> {
    unpacker: Unpacker<'a>,
    sink: F,
    /// Where the next byte lies in the present piece.
    at: usize,
    /// Bytes of the pieces before.
    before: usize,
}

impl<'a, F: FnMut(&[u8]) -> Result<(), RecordsError>> Pieces<'a, F> {
    fn new(unpacker: Unpacker<'a>, sink: F) -> Self {
        Self { unpacker, sink, at: 0, before: 0 }
    }

    /// Goes on to the next piece; `false` at the end.
    fn advance(&mut self) -> Result<bool, RecordsError> {
        self.before += self.unpacker.piece().len();
        self.at = 0;
        let advanced = self.unpacker.advance()?;
        if advanced {
            (self.sink)(self.unpacker.piece())?;
        }
        Ok(advanced)
    }
}

impl<F: FnMut(&[u8]) -> Result<(), RecordsError>> Source for Pieces<'_, F> {
    #[inline]
    fn byte(&mut self) -> Result<u8, RecordsError> {
        loop {
            if let Some(byte) = self.unpacker.piece().get(self.at) {
                self.at += 1;
                return Ok(*byte);
            }
            if !self.advance()? {
                return Err(truncated(self.position(), 1, 0));
            }
        }
    }

    #[inline]
    fn skip(&mut self, mut length: usize) -> Result<(), RecordsError> {
        loop {
            let there = self.unpacker.piece().len() - self.at;
            if length <= there {
                self.at += length;
                return Ok(());
            }
            length -= there;
            if !self.advance()? {
                return Err(truncated(self.position(), length, 0));
            }
        }
    }

    fn ahead(&mut self) -> Result<&[u8], RecordsError> {
        while self.at == self.unpacker.piece().len() {
            if !self.advance()? {
                return Err(truncated(self.position(), 1, 0));
            }
        }
        Ok(&self.unpacker.piece()[self.at..])
    }

    fn has_more(&mut self) -> Result<bool, RecordsError> {
        Ok(self.at < self.unpacker.piece().len() || self.advance()?)
    }

    #[inline]
    fn position(&self) -> usize {
        self.before + self.at
    }
}
