//! Reading and writing bytes that come from outside: every length is checked against what remains
//! before anything is allocated or sliced.
//!
//! Storage formats are little-endian (`_le`), the Kafka protocol is big-endian (`_be`). Varints are
//! Kafka's (and Protocol Buffers'): seven bits a byte, least significant first, signed ones zigzag.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Why bytes could not be read. The position counts from the start of the reader's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes remain than the field needs.
    #[error("{needed} bytes needed at position {position}, {remaining} remain")]
    Truncated {
        /// Where the field starts.
        position: usize,
        /// How many bytes it needs.
        needed: usize,
        /// How many bytes remain.
        remaining: usize,
    },
    /// A length or count that no valid message has: negative, or more than the bytes that remain.
    #[error("impossible length {length} at position {position}")]
    Length {
        /// Where the length stands.
        position: usize,
        /// The length.
        length: i64,
    },
    /// A varint that is longer than its type.
    #[error("varint too long at position {position}")]
    Varint {
        /// Where it starts.
        position: usize,
    },
    /// Text that is not UTF-8.
    #[error("invalid UTF-8 at position {position}")]
    Utf8 {
        /// Where the text starts.
        position: usize,
    },
}

/// A cursor over one buffer. Slices that it hands out share the buffer's allocation.
#[derive(Debug, Clone)]
pub struct Reader {
    bytes: Bytes,
    position: usize,
}

macro_rules! fixed_width_reads {
    ($($name:ident $type:ty, $get:ident;)*) => {$(
        #[doc = concat!("Reads one `", stringify!($type), "`.")]
        ///
        /// # Errors
        /// [`WireError::Truncated`] where too few bytes remain.
        pub fn $name(&mut self) -> Result<$type, WireError> {
            self.need(size_of::<$type>())?;
            self.position += size_of::<$type>();
            Ok(self.bytes.$get())
        }
    )*};
}

impl Reader {
    /// Starts at the first byte.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, position: 0 }
    }

    /// Bytes that have not been read.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that have been read.
    pub fn position(&self) -> usize {
        self.position
    }

    fn need(&self, needed: usize) -> Result<(), WireError> {
        let remaining = self.remaining();
        if needed <= remaining {
            return Ok(());
        }
        Err(WireError::Truncated { position: self.position, needed, remaining })
    }

    fixed_width_reads! {
        u8 u8, get_u8;
        i8 i8, get_i8;
        u16_le u16, get_u16_le;
        u32_le u32, get_u32_le;
        u64_le u64, get_u64_le;
        i16_le i16, get_i16_le;
        i32_le i32, get_i32_le;
        i64_le i64, get_i64_le;
        i16_be i16, get_i16;
        i32_be i32, get_i32;
        i64_be i64, get_i64;
        u32_be u32, get_u32;
    }

    /// Takes the next `length` bytes without copying them.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where too few bytes remain.
    pub fn take(&mut self, length: usize) -> Result<Bytes, WireError> {
        self.need(length)?;
        self.position += length;
        Ok(self.bytes.split_to(length))
    }

    /// Reads 16 raw bytes (a UUID).
    ///
    /// # Errors
    /// [`WireError::Truncated`] where too few bytes remain.
    pub fn uuid(&mut self) -> Result<uuid::Uuid, WireError> {
        self.need(16)?;
        self.position += 16;
        Ok(uuid::Uuid::from_u128(self.bytes.get_u128()))
    }

    /// Reads an unsigned varint of at most 64 bits in ten bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Varint`].
    pub fn uvarint(&mut self) -> Result<u64, WireError> {
        let position = self.position;
        decode_uvarint(|| self.u8())?.ok_or(WireError::Varint { position })
    }

    /// Reads a zigzag varint of at most 64 bits in ten bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Varint`].
    pub fn varint(&mut self) -> Result<i64, WireError> {
        let position = self.position;
        decode_varint(|| self.u8())?.ok_or(WireError::Varint { position })
    }

    /// Reads a zigzag varint of at most 32 bits in five bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Varint`].
    pub fn varint32(&mut self) -> Result<i32, WireError> {
        let position = self.position;
        decode_varint32(|| self.u8())?.ok_or(WireError::Varint { position })
    }

    /// Checks a count read from outside: at least `bytes_each` bytes an element must remain.
    ///
    /// # Errors
    /// [`WireError::Length`] where the count is negative or cannot fit.
    pub fn count(&self, count: i64, bytes_each: usize) -> Result<usize, WireError> {
        let impossible = WireError::Length { position: self.position, length: count };
        let count = usize::try_from(count).map_err(|_| impossible)?;
        match count.checked_mul(bytes_each.max(1)) {
            Some(bytes) if bytes <= self.remaining() => Ok(count),
            _ => Err(impossible),
        }
    }

    /// Reads text behind a `u16` length (little-endian), the form of the storage formats.
    ///
    /// # Errors
    /// Any [`WireError`].
    pub fn text_le(&mut self) -> Result<String, WireError> {
        let length = usize::from(self.u16_le()?);
        let position = self.position;
        let raw = self.take(length)?;
        String::from_utf8(raw.into()).map_err(|_| WireError::Utf8 { position })
    }

    /// The rest of the bytes, without copying them.
    pub fn rest(self) -> Bytes {
        self.bytes
    }
}

/// An unsigned varint from the bytes that `next` returns; `None` where it has more than ten, or
/// more than 64 bits. Java's clients leave the other bits out, while others do not: they read
/// different numbers.
#[inline]
fn decode_uvarint<E>(mut next: impl FnMut() -> Result<u8, E>) -> Result<Option<u64>, E> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let fits = shift < u64::BITS - 1 || byte <= 1;
            return Ok(fits.then_some(value));
        }
    }
    Ok(None)
}

/// A zigzag varint from the bytes that `next` returns (`ByteUtils.readVarlong`); `None` where it
/// has more than ten, or more than 64 bits.
#[inline]
pub(crate) fn decode_varint<E>(next: impl FnMut() -> Result<u8, E>) -> Result<Option<i64>, E> {
    let zigzag = |raw: u64| (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed());
    Ok(decode_uvarint(next)?.map(zigzag))
}

/// A zigzag varint of 32 bits from the bytes that `next` returns (`ByteUtils.readVarint`); `None`
/// where it has more than five, or more than 32 bits.
#[inline]
pub(crate) fn decode_varint32<E>(
    mut next: impl FnMut() -> Result<u8, E>,
) -> Result<Option<i32>, E> {
    let mut raw = 0_u32;
    for shift in (0..u32::BITS).step_by(7) {
        let byte = next()?;
        raw |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let fits = shift < 28 || byte <= 0x0f;
            return Ok(fits.then_some((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())));
        }
    }
    Ok(None)
}

/// Additions to [`BytesMut`] for the storage formats and for Kafka's varints.
pub trait WriteExt {
    /// Writes an unsigned varint.
    fn put_uvarint(&mut self, value: u64);
    /// Writes a zigzag varint.
    fn put_varint(&mut self, value: i64);
    /// Writes text behind a `u16` length (little-endian). Longer text is a bug of the caller.
    fn put_text_le(&mut self, text: &str);
    /// Writes the 16 bytes of a UUID.
    fn put_uuid(&mut self, id: uuid::Uuid);
}

impl WriteExt for BytesMut {
    fn put_uvarint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.put_u8(value.to_le_bytes()[0]);
    }

    fn put_varint(&mut self, value: i64) {
        self.put_uvarint(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn put_text_le(&mut self, text: &str) {
        let length = u16::try_from(text.len()).expect("names are limited far below 64 KiB");
        self.put_u16_le(length);
        self.put_slice(text.as_bytes());
    }

    fn put_uuid(&mut self, id: uuid::Uuid) {
        self.put_u128(id.as_u128());
    }
}

/// CRC-32C (Castagnoli), the checksum of Kafka's batches and of every stored format.
pub fn crc32c(bytes: &[u8]) -> u32 {
    Crc32c::default().with(bytes).finish()
}

/// CRC-32C over several pieces.
#[derive(Debug, Clone)]
pub struct Crc32c(crc_fast::Digest);

impl Default for Crc32c {
    fn default() -> Self {
        Self(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi))
    }
}

impl Crc32c {
    /// Adds a piece.
    #[must_use]
    pub fn with(mut self, bytes: &[u8]) -> Self {
        self.0.update(bytes);
        self
    }

    /// The checksum of all pieces.
    pub fn finish(self) -> u32 {
        u32::try_from(self.0.finalize()).expect("a 32-bit checksum")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn crc32c_matches_the_check_value_of_the_catalogue() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(Crc32c::default().with(b"1234").with(b"56789").finish(), 0xe306_9283);
    }

    #[test]
    fn a_count_that_cannot_fit_is_refused_before_allocation() {
        let reader = Reader::new(Bytes::from_static(&[0; 10]));
        assert_eq!(reader.count(5, 2), Ok(5));
        assert!(reader.count(6, 2).is_err());
        assert!(reader.count(-1, 2).is_err());
        assert!(reader.count(i64::MAX, 8).is_err());
    }

    #[test]
    fn an_overlong_varint_is_refused() {
        let mut reader = Reader::new(Bytes::from_static(&[0xff; 11]));
        assert_eq!(reader.uvarint(), Err(WireError::Varint { position: 0 }));
    }

    #[test]
    fn a_varint_of_more_bits_than_there_are_is_refused() {
        let reader =
            |first: usize, last: u8| Reader::new([vec![0xff; first], vec![last]].concat().into());
        let refused = WireError::Varint { position: 0 };
        assert_eq!(reader(9, 1).varint(), Ok(i64::MIN));
        assert_eq!(reader(9, 2).varint(), Err(refused));
        assert_eq!(reader(4, 0x0f).varint32(), Ok(i32::MIN));
        assert_eq!(reader(4, 0x10).varint32(), Err(refused));
    }

    proptest! {
        #[test]
        fn varints_round_trip(value: i64) {
            let mut out = BytesMut::new();
            out.put_varint(value);
            let mut reader = Reader::new(out.freeze());
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert_eq!(reader.remaining(), 0);
        }
    }
}
