//! Reading the protocol's primitive types. A message's version decides between two encodings: the
//! flexible one (compact lengths, tagged fields) and the older one.

use bytes::Bytes;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::codec::{Reader, WireError};

/// How many array elements and tagged fields one request may have. Decoded, an element is several
/// times its size on the wire, so a bound on the frame alone would not bound memory.
pub const ELEMENTS_MAX: usize = 1 << 18;

/// A cursor over one message.
#[derive(Debug, Clone)]
pub struct Decoder {
    reader: Reader,
    flexible: bool,
    elements_left: usize,
}

macro_rules! integers {
    ($($name:ident $type:ty, $read:ident;)*) => {$(
        #[doc = concat!("Reads one `", stringify!($type), "`.")]
        ///
        /// # Errors
        /// [`WireError::Truncated`].
        pub fn $name(&mut self) -> Result<$type, WireError> {
            self.reader.$read()
        }
    )*};
}

impl Decoder {
    /// Starts at the first byte of `bytes`.
    pub fn new(bytes: Bytes, flexible: bool) -> Self {
        Self { reader: Reader::new(bytes), flexible, elements_left: ELEMENTS_MAX }
    }

    integers! {
        i8 i8, i8;
        i16 i16, i16_be;
        i32 i32, i32_be;
        i64 i64, i64_be;
        uuid Uuid, uuid;
    }

    /// Whether the message is of a flexible version.
    pub fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Bytes that have not been read.
    pub fn remaining(&self) -> usize {
        self.reader.remaining()
    }

    /// The rest of the bytes, without copying them.
    pub fn rest(self) -> Bytes {
        self.reader.rest()
    }

    /// Skips fixed-size fields.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn skip(&mut self, bytes: usize) -> Result<(), WireError> {
        self.reader.take(bytes).map(drop)
    }

    /// Reads an unsigned varint of 32 bits in at most five bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Varint`].
    pub fn uvarint(&mut self) -> Result<u32, WireError> {
        let position = self.reader.position();
        let value = self.reader.uvarint()?;
        if self.reader.position() - position > 5 {
            return Err(WireError::Varint { position });
        }
        u32::try_from(value).map_err(|_| WireError::Varint { position })
    }

    /// Reads a length: compact, or what `fixed` reads. `None` is null.
    fn length(
        &mut self,
        bytes_each: usize,
        fixed: impl Fn(&mut Reader) -> Result<i64, WireError>,
    ) -> Result<Option<usize>, WireError> {
        let length =
            if self.flexible { i64::from(self.uvarint()?) - 1 } else { fixed(&mut self.reader)? };
        if length == -1 {
            return Ok(None);
        }
        self.reader.count(length, bytes_each).map(Some)
    }

    /// Reads the raw bytes of a string.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Length`] or [`WireError::Varint`].
    pub fn nullable_text(&mut self) -> Result<Option<Bytes>, WireError> {
        let length = self.length(1, |reader| reader.i16_be().map(i64::from))?;
        length.map(|length| self.reader.take(length)).transpose()
    }

    /// Reads a string that may be null.
    ///
    /// # Errors
    /// Any [`WireError`].
    pub fn nullable_string(&mut self) -> Result<Option<StrBytes>, WireError> {
        let position = self.reader.position();
        let text = self.nullable_text()?;
        let valid = |text| StrBytes::from_utf8(text).map_err(|_| WireError::Utf8 { position });
        text.map(valid).transpose()
    }

    /// Reads a string.
    ///
    /// # Errors
    /// Any [`WireError`]; [`WireError::Length`] for null.
    pub fn string(&mut self) -> Result<StrBytes, WireError> {
        let position = self.reader.position();
        self.nullable_string()?.ok_or(WireError::Length { position, length: -1 })
    }

    /// Reads bytes that may be null, without copying them.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Length`] or [`WireError::Varint`].
    pub fn nullable_bytes(&mut self) -> Result<Option<Bytes>, WireError> {
        let length = self.length(1, |reader| reader.i32_be().map(i64::from))?;
        length.map(|length| self.reader.take(length)).transpose()
    }

    /// Reads an array's count: at least `bytes_each` bytes an element must remain.
    ///
    /// # Errors
    /// [`WireError::Length`] for an impossible count, or where the request has too many elements
    /// in all ([`ELEMENTS_MAX`]); [`WireError::Truncated`] or [`WireError::Varint`].
    pub fn nullable_count(&mut self, bytes_each: usize) -> Result<Option<usize>, WireError> {
        let count = self.length(bytes_each, |reader| reader.i32_be().map(i64::from))?;
        self.spend(count.unwrap_or(0))?;
        Ok(count)
    }

    /// Reads an array, element by element. Null is read as empty.
    ///
    /// # Errors
    /// As [`Decoder::nullable_count`], and any error of `element`.
    pub fn array<T>(
        &mut self,
        bytes_each: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let count = self.nullable_count(bytes_each)?.unwrap_or(0);
        (0..count).map(|_| element(self)).collect()
    }

    fn spend(&mut self, elements: usize) -> Result<(), WireError> {
        let too_many =
            WireError::Length { position: self.reader.position(), length: elements as i64 };
        self.elements_left = self.elements_left.checked_sub(elements).ok_or(too_many)?;
        Ok(())
    }

    /// Reads the tagged fields that end a flexible structure; there are none in an older version.
    /// `field` gets each tag with a decoder of just its bytes, and returns `false` for a tag that
    /// it does not know, which is then skipped.
    ///
    /// # Errors
    /// Any [`WireError`]; [`WireError::Length`] where a known field is shorter than its size.
    pub fn tagged(
        &mut self,
        mut field: impl FnMut(u32, &mut Self) -> Result<bool, WireError>,
    ) -> Result<(), WireError> {
        if !self.flexible {
            return Ok(());
        }
        let count = i64::from(self.uvarint()?);
        let count = self.reader.count(count, 2)?;
        self.spend(count)?;
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = i64::from(self.uvarint()?);
            let size = self.reader.count(size, 1)?;
            let position = self.reader.position();
            let mut inner = Self { reader: Reader::new(self.reader.take(size)?), ..*self };
            if field(tag, &mut inner)? && inner.remaining() > 0 {
                return Err(WireError::Length { position, length: size as i64 });
            }
        }
        Ok(())
    }

    /// Skips the tagged fields that end a flexible structure.
    ///
    /// # Errors
    /// As [`Decoder::tagged`].
    pub fn skip_tagged(&mut self) -> Result<(), WireError> {
        self.tagged(|_, _| Ok(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flexible(bytes: &'static [u8]) -> Decoder {
        Decoder::new(Bytes::from_static(bytes), true)
    }

    fn older(bytes: &'static [u8]) -> Decoder {
        Decoder::new(Bytes::from_static(bytes), false)
    }

    #[test]
    fn strings_are_read_in_both_encodings() {
        assert_eq!(flexible(b"\x03hi").string().unwrap().as_str(), "hi");
        assert_eq!(older(b"\x00\x02hi").string().unwrap().as_str(), "hi");
        assert_eq!(flexible(b"\x00").nullable_string(), Ok(None));
        assert_eq!(older(b"\xff\xff").nullable_string(), Ok(None));
        assert!(older(b"\xff\xff").string().is_err());
        assert!(older(b"\xff\xfe").nullable_string().is_err());
        assert!(older(b"\x00\x03hi").string().is_err());
        assert!(flexible(b"\x03\xff\xff").string().is_err());
    }

    #[test]
    fn a_varint_has_at_most_five_bytes_and_thirty_two_bits() {
        assert_eq!(flexible(b"\xff\xff\xff\xff\x0f").uvarint(), Ok(u32::MAX));
        assert!(flexible(b"\xff\xff\xff\xff\x1f").uvarint().is_err());
        assert!(flexible(b"\x80\x80\x80\x80\x80\x00").uvarint().is_err());
    }

    #[test]
    fn a_request_has_a_bounded_number_of_elements() {
        let count = i32::try_from(ELEMENTS_MAX).unwrap() + 1;
        let mut bytes = count.to_be_bytes().to_vec();
        bytes.resize(bytes.len() + ELEMENTS_MAX + 1, 0);
        let values = Decoder::new(bytes.into(), false).array(1, Decoder::i8);
        assert_eq!(values, Err(WireError::Length { position: 4, length: count.into() }));
    }

    #[test]
    fn tagged_fields_are_bounded_by_their_size() {
        let mut decoder = flexible(b"\x02\x00\x04\0\0\0\x07\x05\x01x!");
        let mut values = Vec::new();
        decoder
            .tagged(|tag, field| {
                if tag == 0 {
                    values.push(field.i32()?);
                }
                Ok(tag == 0)
            })
            .unwrap();
        assert_eq!((values, decoder.rest()), (vec![7], Bytes::from_static(b"!")));
        let short = flexible(b"\x01\x00\x05\0\0\0\x07\0").tagged(|_, field| {
            field.i32()?;
            Ok(true)
        });
        assert_eq!(short, Err(WireError::Length { position: 3, length: 5 }));
    }
}
