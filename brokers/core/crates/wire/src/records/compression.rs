//! Kafka's five compression types. Decompression is bounded by what the caller allows, whatever
//! the compressed bytes claim.

use std::fmt::Display;
use std::io::{BufRead, Read, Write};

use bytes::{Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, FrameDecoder, FrameEncoder, FrameInfo};

use super::RecordsError;

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

/// Size of the steps in which output grows, in bytes.
const STEP_BYTES: usize = 64 * 1024;
/// What xerial's snappy-java puts before its blocks.
const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Magic, version and compatible version.
const XERIAL_HEADER_BYTES: usize = 16;
/// The block size of snappy-java.
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;
/// More than any snappy block can grow: an element of three bytes gives at most 64.
const SNAPPY_GROWTH_MAX: usize = 32;
/// The level that Kafka's zstd has by default.
const ZSTD_LEVEL: i32 = 3;

impl Compression {
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

    fn refused(self, reason: &dyn Display) -> RecordsError {
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
    match compression {
        Compression::None if bytes.len() > limit_bytes => {
            Err(RecordsError::TooLarge { limit: limit_bytes })
        }
        Compression::None => Ok(bytes.clone()),
        Compression::Gzip => {
            read_bounded(compression, MultiGzDecoder::new(bytes.as_ref()), limit_bytes)
        }
        Compression::Snappy => decompress_snappy(bytes, limit_bytes),
        Compression::Lz4 => decompress_lz4(bytes, limit_bytes),
        Compression::Zstd => decompress_zstd(bytes, limit_bytes),
    }
}

/// Reads to the end in steps, so that what is allocated follows what really comes out.
fn read_bounded(
    compression: Compression,
    mut reader: impl Read,
    limit: usize,
) -> Result<Bytes, RecordsError> {
    let mut out = BytesMut::new();
    loop {
        let length = out.len();
        let step = STEP_BYTES.max(length).min(limit - length);
        if step == 0 {
            return match reader.read(&mut [0]).map_err(|error| compression.refused(&error))? {
                0 => Ok(out.freeze()),
                _ => Err(RecordsError::TooLarge { limit }),
            };
        }
        out.reserve(step);
        out.resize(length + step, 0);
        let read = reader.read(&mut out[length..]).map_err(|error| compression.refused(&error))?;
        out.truncate(length + read);
        if read == 0 {
            return Ok(out.freeze());
        }
    }
}

fn decompress_snappy(bytes: &[u8], limit: usize) -> Result<Bytes, RecordsError> {
    let mut out = Vec::new();
    if !bytes.starts_with(&XERIAL_MAGIC) {
        append_snappy_block(bytes, limit, &mut out)?;
        return Ok(out.into());
    }
    let mut rest = bytes
        .get(XERIAL_HEADER_BYTES..)
        .ok_or_else(|| Compression::Snappy.refused(&"truncated header"))?;
    while !rest.is_empty() {
        let truncated = || Compression::Snappy.refused(&"truncated block");
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| truncated())?;
        let (block, after) = after.split_at_checked(length).ok_or_else(truncated)?;
        append_snappy_block(block, limit, &mut out)?;
        rest = after;
    }
    Ok(out.into())
}

/// Adds one block's content. Its length stands in the block and is believed only as far as the
/// limit and the block's own size allow.
fn append_snappy_block(block: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), RecordsError> {
    let refused = |error: snap::Error| Compression::Snappy.refused(&error);
    let length = snap::raw::decompress_len(block).map_err(refused)?;
    if length > limit - out.len() {
        return Err(RecordsError::TooLarge { limit });
    }
    if length / SNAPPY_GROWTH_MAX > block.len() {
        return Err(Compression::Snappy.refused(&"a length that the block cannot hold"));
    }
    let start = out.len();
    out.resize(start + length, 0);
    snap::raw::Decoder::new().decompress(block, &mut out[start..]).map_err(refused)?;
    Ok(())
}

/// Decompresses one LZ4 frame. As in Kafka, only version 1 with independent blocks.
fn decompress_lz4(bytes: &[u8], limit: usize) -> Result<Bytes, RecordsError> {
    const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
    const INDEPENDENT_BIT: u8 = 0x20;
    let flags = bytes.strip_prefix(&MAGIC).and_then(|rest| rest.first());
    match flags {
        None => return Err(Compression::Lz4.refused(&"not an LZ4 frame")),
        Some(flags) if flags & INDEPENDENT_BIT == 0 => {
            return Err(Compression::Lz4.refused(&"dependent blocks are not supported"));
        }
        Some(_) => {}
    }
    let mut decoder = FrameDecoder::new(bytes);
    let mut out = Vec::new();
    loop {
        let block = decoder.fill_buf().map_err(|error| Compression::Lz4.refused(&error))?;
        let length = block.len();
        if length == 0 {
            return Ok(out.into());
        }
        if length > limit - out.len() {
            return Err(RecordsError::TooLarge { limit });
        }
        out.extend_from_slice(block);
        decoder.consume(length);
    }
}

/// Decompresses in one shot into a buffer that doubles until it suffices: the streaming decoder
/// would allocate the window that the frame announces (up to 128 MiB).
fn decompress_zstd(bytes: &[u8], limit: usize) -> Result<Bytes, RecordsError> {
    let mut decompressor =
        zstd::bulk::Decompressor::new().map_err(|error| Compression::Zstd.refused(&error))?;
    let mut capacity = bytes.len().saturating_mul(4).max(STEP_BYTES).min(limit);
    loop {
        let mut out = Vec::with_capacity(capacity);
        match decompressor.decompress_to_buffer(bytes, &mut out) {
            Ok(_) => return Ok(out.into()),
            Err(_) if capacity < limit => capacity = capacity.saturating_mul(2).min(limit),
            Err(error) if is_too_small(&error) => return Err(RecordsError::TooLarge { limit }),
            Err(error) => return Err(Compression::Zstd.refused(&error)),
        }
    }
}

/// Whether zstd ran out of space, by its own text (`ZSTD_error_dstSize_tooSmall`), since the crate
/// passes no code on. Only the choice between two errors hangs on it.
fn is_too_small(error: &std::io::Error) -> bool {
    error.to_string().contains("too small")
}

/// Compresses `bytes` into the format that Kafka's producers write, at Kafka's default levels for
/// gzip (6) and zstd (3). The output need not equal theirs byte for byte: LZ4 blocks hold up to
/// 4 MiB here. [`Compression::None`] copies. It never fails.
pub fn compress(compression: Compression, bytes: &[u8]) -> Bytes {
    const IN_MEMORY: &str = "writing to memory does not fail";
    match compression {
        Compression::None => Bytes::copy_from_slice(bytes),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).expect(IN_MEMORY);
            encoder.finish().expect(IN_MEMORY).into()
        }
        Compression::Snappy => compress_snappy(bytes),
        Compression::Lz4 => {
            let info = FrameInfo::new().block_mode(BlockMode::Independent);
            let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(bytes).expect(IN_MEMORY);
            encoder.finish().expect(IN_MEMORY).into()
        }
        Compression::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL).expect(IN_MEMORY).into(),
    }
}

fn compress_snappy(bytes: &[u8]) -> Bytes {
    let mut out = XERIAL_MAGIC.to_vec();
    out.extend(1_i32.to_be_bytes());
    out.extend(1_i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for chunk in bytes.chunks(XERIAL_BLOCK_BYTES) {
        let block = encoder.compress_vec(chunk).expect("a block is below snappy's limit");
        let length = i32::try_from(block.len()).expect("a block is below 64 KiB");
        out.extend(length.to_be_bytes());
        out.extend(block);
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CODECS: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0; 32 << 20];
        for codec in CODECS {
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

    #[test]
    fn dependent_lz4_blocks_are_refused_as_in_kafka() {
        let info = FrameInfo::new().block_mode(BlockMode::Linked);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(b"abc").unwrap();
        let frame = encoder.finish().unwrap();
        let result = decompress(Compression::Lz4, &frame.into(), 100);
        assert!(matches!(result, Err(RecordsError::Payload { codec: "lz4", .. })));
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(
            data in proptest::collection::vec(0_u8..4, 0..100_000),
            codec in 0_usize..5,
        ) {
            let codec = CODECS[codec];
            let packed = compress(codec, &data);
            prop_assert_eq!(decompress(codec, &packed, data.len()).unwrap(), data);
        }

        #[test]
        fn any_bytes_are_decompressed_or_refused(
            data in proptest::collection::vec(any::<u8>(), 0..300),
            codec in 0_usize..5,
        ) {
            if let Ok(out) = decompress(CODECS[codec], &data.into(), 10_000) {
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
            let mut packed = compress(CODECS[codec], &data).to_vec();
            let at = at % packed.len();
            packed[at] = value;
            if let Ok(out) = decompress(CODECS[codec], &packed.into(), 10_000) {
                prop_assert!(out.len() <= 10_000);
            }
        }
    }
}
