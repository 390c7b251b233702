//! Writing the protocol's primitive types. A message's version decides between two encodings: the
//! flexible one (compact lengths, tagged fields) and the older one.

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use crate::codec::WriteExt;

/// Pieces up to this size, in bytes, are copied together rather than written one by one: a copy
/// costs less than an entry of a vectored write.
const COPIED_BYTES_MAX: usize = 512;

/// A message being written. Large payloads become pieces of their own, which are not copied.
#[derive(Debug)]
pub struct Encoder {
    done: Vec<Bytes>,
    out: BytesMut,
    flexible: bool,
}

impl Encoder {
    /// An empty message.
    pub fn new(flexible: bool) -> Self {
        Self { done: Vec::new(), out: BytesMut::new(), flexible }
    }

    /// Writes an `i8`.
    pub fn i8(&mut self, value: i8) {
        self.out.put_i8(value);
    }

    /// Writes an `i16`.
    pub fn i16(&mut self, value: i16) {
        self.out.put_i16(value);
    }

    /// Writes an `i32`.
    pub fn i32(&mut self, value: i32) {
        self.out.put_i32(value);
    }

    /// Writes an `i64`.
    pub fn i64(&mut self, value: i64) {
        self.out.put_i64(value);
    }

    /// Writes a UUID.
    pub fn uuid(&mut self, value: Uuid) {
        self.out.put_uuid(value);
    }

    /// Writes a length of bytes or a count of elements; `None` is null.
    fn length(&mut self, length: Option<usize>) {
        const LIMIT: &str = "a response is smaller than 2 GiB";
        if self.flexible {
            self.out.put_uvarint(length.map_or(0, |length| length as u64 + 1));
        } else {
            self.out.put_i32(length.map_or(-1, |length| i32::try_from(length).expect(LIMIT)));
        }
    }

    /// Writes a string that may be null. What an older version cannot hold (32 KiB) is cut off:
    /// only texts for people are ever that long.
    pub fn nullable_string(&mut self, text: Option<&str>) {
        if self.flexible {
            self.length(text.map(str::len));
            self.out.put_slice(text.unwrap_or_default().as_bytes());
            return;
        }
        let Some(text) = text else { return self.out.put_i16(-1) };
        let mut length = text.len().min(i16::MAX as usize);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        self.out.put_i16(i16::try_from(length).expect("cut to what fits"));
        self.out.put_slice(&text.as_bytes()[..length]);
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) {
        self.nullable_string(Some(text));
    }

    /// Writes bytes that come in pieces, never null. Large pieces are shared, not copied.
    pub fn byte_pieces(&mut self, pieces: impl IntoIterator<Item = Bytes> + Clone) {
        self.length(Some(pieces.clone().into_iter().map(|piece| piece.len()).sum()));
        for piece in pieces {
            if piece.len() <= COPIED_BYTES_MAX {
                self.out.put_slice(&piece);
            } else {
                self.done.push(self.out.split().freeze());
                self.done.push(piece);
            }
        }
    }

    /// Writes an array, element by element.
    pub fn array<T>(
        &mut self,
        elements: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        element: impl FnMut(&mut Self, T),
    ) {
        self.nullable_array(Some(elements), element);
    }

    /// Writes an array that may be null.
    pub fn nullable_array<T>(
        &mut self,
        elements: Option<impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>>,
        mut element: impl FnMut(&mut Self, T),
    ) {
        let elements = elements.map(IntoIterator::into_iter);
        self.length(elements.as_ref().map(ExactSizeIterator::len));
        for item in elements.into_iter().flatten() {
            element(self, item);
        }
    }

    /// Writes the tagged fields that end a flexible structure, in the order of their tags; nothing
    /// in an older version.
    pub fn tagged(&mut self, fields: &[(u32, Bytes)]) {
        if !self.flexible {
            return;
        }
        self.out.put_uvarint(fields.len() as u64);
        for (tag, bytes) in fields {
            self.out.put_uvarint((*tag).into());
            self.out.put_uvarint(bytes.len() as u64);
            self.out.put_slice(bytes);
        }
    }

    /// The content of a tagged field.
    pub fn field(write: impl FnOnce(&mut Self)) -> Bytes {
        let mut encoder = Self::new(true);
        write(&mut encoder);
        encoder.out.freeze()
    }

    /// The message in pieces, to be written one after another.
    pub fn into_pieces(mut self) -> Vec<Bytes> {
        if !self.out.is_empty() {
            self.done.push(self.out.freeze());
        }
        self.done
    }

    /// The message in one piece.
    pub fn into_bytes(self) -> Bytes {
        if self.done.is_empty() { self.out.freeze() } else { self.into_pieces().concat().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pieces_are_shared_and_small_ones_gathered() {
        let small = Bytes::from_static(b"small");
        let large = Bytes::from(vec![7; COPIED_BYTES_MAX + 1]);
        let mut encoder = Encoder::new(false);
        encoder.byte_pieces([small.clone(), large.clone(), small]);
        encoder.i8(1);
        let pieces = encoder.into_pieces();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[0], b"\0\0\x02\x0bsmall"[..]);
        assert_eq!(pieces[1].as_ptr(), large.as_ptr());
        assert_eq!(pieces[2], b"small\x01"[..]);
    }

    #[test]
    fn texts_too_long_for_an_older_version_are_cut_between_characters() {
        let text = "é".repeat(20_000);
        let mut encoder = Encoder::new(false);
        encoder.string(&text);
        let out = encoder.into_bytes();
        assert_eq!(out.len(), 2 + 32_766);
        assert!(std::str::from_utf8(&out[2..]).is_ok());
        let mut encoder = Encoder::new(true);
        encoder.string(&text);
        assert_eq!(encoder.into_bytes().len(), 3 + 40_000);
    }
}
