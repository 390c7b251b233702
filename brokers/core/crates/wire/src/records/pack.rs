//! Compression of a batch's records into the formats that Kafka's producers write. The output need
//! not equal theirs byte for byte.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

use super::Compression;
use super::unpack::XERIAL_MAGIC;

/// The block size of snappy-java.
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;

/// A compression type with its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codec {
    /// The compression type.
    pub compression: Compression,
    /// The level, where the type has levels; `None` stands for Kafka's default.
    pub level: Option<i32>,
}

impl From<Compression> for Codec {
    fn from(compression: Compression) -> Self {
        Self { compression, level: None }
    }
}

/// Compresses what is written to it, in memory.
pub(super) enum Packer {
    None(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Snappy { packed: Vec<u8>, block: Vec<u8> },
    Lz4(Box<FrameEncoder<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Packer {
    /// Begins with nothing. `length` is how much will be written, in bytes, where that is known.
    pub(super) fn new(codec: Codec, length: Option<usize>) -> io::Result<Self> {
        Ok(match codec.compression {
            Compression::None => Self::None(Vec::with_capacity(length.unwrap_or(0))),
            Compression::Gzip => {
                let level = codec.level.and_then(|level| u32::try_from(level).ok());
                let level = level.map_or_else(Default::default, flate2::Compression::new);
                Self::Gzip(GzEncoder::new(Vec::new(), level))
            }
            Compression::Snappy => {
                let mut packed = XERIAL_MAGIC.to_vec();
                packed.extend(1_i32.to_be_bytes());
                packed.extend(1_i32.to_be_bytes());
                Self::Snappy { packed, block: Vec::new() }
            }
            Compression::Lz4 => {
                let info = FrameInfo::new()
                    .block_mode(BlockMode::Independent)
                    .block_size(BlockSize::Max64KB);
                Self::Lz4(Box::new(FrameEncoder::with_frame_info(info, Vec::new())))
            }
            Compression::Zstd => {
                let level = codec.level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                // Small records then take small tables.
                encoder.set_pledged_src_size(length.map(|length| length as u64))?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Adds bytes.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::None(packed) => packed.extend_from_slice(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes)?,
            Self::Lz4(encoder) => encoder.write_all(bytes)?,
            Self::Zstd(encoder) => encoder.write_all(bytes)?,
            Self::Snappy { packed, block } => {
                while !bytes.is_empty() {
                    let room = XERIAL_BLOCK_BYTES - block.len();
                    let (now, later) = bytes.split_at(room.min(bytes.len()));
                    block.extend_from_slice(now);
                    bytes = later;
                    if block.len() == XERIAL_BLOCK_BYTES {
                        put_xerial_block(packed, block)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// How many compressed bytes there are by now.
    pub(super) fn packed_bytes(&self) -> usize {
        match self {
            Self::None(packed) | Self::Snappy { packed, .. } => packed.len(),
            Self::Gzip(encoder) => encoder.get_ref().len(),
            Self::Lz4(encoder) => encoder.get_ref().len(),
            Self::Zstd(encoder) => encoder.get_ref().len(),
        }
    }

    /// The compressed bytes.
    pub(super) fn finish(self) -> io::Result<Bytes> {
        let packed = match self {
            Self::None(packed) => packed,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Lz4(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
            Self::Snappy { mut packed, mut block } => {
                if !block.is_empty() {
                    put_xerial_block(&mut packed, &mut block)?;
                }
                packed
            }
        };
        Ok(packed.into())
    }
}

/// Compresses a block, and empties it.
fn put_xerial_block(packed: &mut Vec<u8>, block: &mut Vec<u8>) -> io::Result<()> {
    let compressed = snap::raw::Encoder::new().compress_vec(block)?;
    let length = i32::try_from(compressed.len()).expect("a block is below 64 KiB");
    packed.extend(length.to_be_bytes());
    packed.extend(compressed);
    block.clear();
    Ok(())
}
