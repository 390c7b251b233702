//! Kafka's five compression types. Decompression is bounded by what the caller allows, whatever
//! the compressed bytes claim.

use std::fmt::Display;

use bytes::Bytes;

use super::RecordsError;
use super::header::COMPRESSION_MASK;
use super::pack::Packer;
use super::unpack::{UnpackLimits, Unpacker};

/// How a batch's records are compressed (the lowest three bits of its attributes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    #[default]
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// Snappy blocks in xerial's frame (Java, librdkafka), or one bare block.
    Snappy = 2,
    /// The LZ4 frame format, independent blocks.
    Lz4 = 3,
    /// RFC 8878.
    Zstd = 4,
}

impl Compression {
    /// All types, by their ids.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The type of this id.
    ///
    /// # Errors
    /// [`RecordsError::Compression`] for an id that has no meaning.
    pub fn from_id(id: u8) -> Result<Self, RecordsError> {
        match id {
            0 => Ok(Self::None),
            1 => Ok(Self::Gzip),
            2 => Ok(Self::Snappy),
            3 => Ok(Self::Lz4),
            4 => Ok(Self::Zstd),
            _ => Err(RecordsError::Compression(id)),
        }
    }

    /// The type that a batch's attributes name.
    ///
    /// # Errors
    /// As [`Self::from_id`].
    pub fn of_attributes(attributes: i16) -> Result<Self, RecordsError> {
        let [_, low] = attributes.to_be_bytes();
        Self::from_id(low & COMPRESSION_MASK)
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    pub(super) fn refused(self, reason: &dyn Display) -> RecordsError {
        RecordsError::Payload { codec: self.name(), reason: reason.to_string() }
    }
}

/// Decompresses at most `limit_bytes` bytes; never allocates more than that for output.
///
/// # Errors
/// [`RecordsError::TooLarge`] beyond the limit, [`RecordsError::Payload`] where the bytes are not
/// what the type says.
pub fn decompress(
    compression: Compression,
    bytes: &Bytes,
    limit_bytes: usize,
) -> Result<Bytes, RecordsError> {
    decompress_within(compression, bytes, UnpackLimits::of_output(limit_bytes))
}

/// Does what [`decompress`] does, with a bound of memory too.
///
/// # Errors
/// Those of [`decompress`]; [`RecordsError::Memory`] where the decoder needs more.
pub fn decompress_within(
    compression: Compression,
    bytes: &Bytes,
    limits: UnpackLimits<'_>,
) -> Result<Bytes, RecordsError> {
    let limit_bytes = limits.output_bytes;
    if compression == Compression::None {
        let fits = bytes.len() <= limit_bytes;
        return fits.then(|| bytes.clone()).ok_or(RecordsError::TooLarge { limit: limit_bytes });
    }
    let mut unpacker = Unpacker::new(compression, bytes, limits)?;
    let mut out = Vec::new();
    while unpacker.advance()? {
        out.extend_from_slice(unpacker.piece());
    }
    Ok(out.into())
}

/// Compresses `bytes` into the format that Kafka's producers write, at Kafka's default levels.
/// [`Compression::None`] copies. It never fails.
pub fn compress(compression: Compression, bytes: &[u8]) -> Bytes {
    let pack = || {
        let mut packer = Packer::new(compression.into(), Some(bytes.len()))?;
        packer.write(bytes)?;
        packer.finish()
    };
    pack().expect("writing to memory does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0; 32 << 20];
        for codec in Compression::ALL {
            let bomb = compress(codec, &zeros);
            let result = decompress(codec, &bomb, 1 << 20);
            assert_eq!(result, Err(RecordsError::TooLarge { limit: 1 << 20 }), "{codec:?}");
            assert_eq!(decompress(codec, &bomb, 32 << 20).unwrap().len(), 32 << 20);
        }
    }

    #[test]
    fn a_bare_snappy_block_is_read() {
        let bare = snap::raw::Encoder::new().compress_vec(b"hello hello hello").unwrap();
        let result = decompress(Compression::Snappy, &bare.into(), 100);
        assert_eq!(result.unwrap(), "hello hello hello");
    }

    #[test]
    fn a_snappy_length_that_the_block_cannot_hold_is_not_believed() {
        // A varint of 60 MiB, then nothing.
        let lie = Bytes::from_static(&[0x80, 0x80, 0x80, 0x1e]);
        let result = decompress(Compression::Snappy, &lie, 64 << 20);
        assert!(matches!(result, Err(RecordsError::Payload { .. })));
    }

    #[test]
    fn concatenated_gzip_members_are_one_stream() {
        let one = compress(Compression::Gzip, b"one ");
        let two = compress(Compression::Gzip, b"two");
        let both = Bytes::from([one, two].concat());
        assert_eq!(decompress(Compression::Gzip, &both, 100).unwrap(), "one two");
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(
            data in proptest::collection::vec(0_u8..4, 0..100_000),
            codec in 0_usize..5,
        ) {
            let codec = Compression::ALL[codec];
            let packed = compress(codec, &data);
            prop_assert_eq!(decompress(codec, &packed, data.len()).unwrap(), data);
        }

        #[test]
        fn any_bytes_are_decompressed_or_refused(
            data in proptest::collection::vec(any::<u8>(), 0..300),
            codec in 0_usize..5,
        ) {
            if let Ok(out) = decompress(Compression::ALL[codec], &data.into(), 10_000) {
                prop_assert!(out.len() <= 10_000);
            }
        }

        #[test]
        fn damaged_streams_are_decompressed_or_refused(
            at in 0_usize..10_000,
            value: u8,
            codec in 1_usize..5,
        ) {
            let data: Vec<u8> = (0..5_000_u32).map(|n| (n % 97) as u8).collect();
            let mut packed = compress(Compression::ALL[codec], &data).to_vec();
            let at = at % packed.len();
            packed[at] = value;
            if let Ok(out) = decompress(Compression::ALL[codec], &packed.into(), 10_000) {
                prop_assert!(out.len() <= 10_000);
            }
        }
    }
}
