//! The one form of each codec that producers may send: what every client of Kafka reads.
//!
//! Decoders differ in what they make of everything else. Of several gzip members librdkafka reads
//! the first one only, and it aborts where that is empty; it refuses what follows an LZ4 frame,
//! which Java ignores; Java refuses linked LZ4 blocks and dictionaries. The reference decoder of
//! LZ4, which most clients use, refuses blocks whose end others read.

use super::unpack::{
    LZ4_MAGIC, XERIAL_HEADER_BYTES, XERIAL_MAGIC, XerialBlocks, ZSTD_MAGIC, zstd_window,
};
use super::{Compression, RecordsError};
use zstd::zstd_safe;

/// The largest window of a zstd frame that is stored: half of what zstd's own decoder takes.
const ZSTD_WINDOW_BYTES_MAX: u64 = 64 << 20;
/// The largest window that is stored as it came: what RFC 8878 recommends that each decoder takes.
const ZSTD_WINDOW_BYTES_KEPT: u64 = 8 << 20;
/// Where the window stands in a frame that is not a single segment.
const ZSTD_WINDOW_AT: usize = 5;
/// Magic, method, flags, time, extra flags and system, and behind the content checksum and length.
const GZIP_BYTES_MIN: usize = 18;
/// Some decoders take a shorter payload for the damaged head of xerial's frame.
const SNAPPY_BYTES_MIN: usize = XERIAL_MAGIC.len();

type Fault = &'static str;

/// Looks at the frames of a payload, and does not decompress it. That a gzip member ends where the
/// payload does is seen by its decoder.
///
/// # Errors
/// [`RecordsError::Form`] with what is wrong.
pub(super) fn check_form(compression: Compression, payload: &[u8]) -> Result<(), RecordsError> {
    let checked = match compression {
        Compression::None => Ok(()),
        Compression::Gzip => check_gzip(payload),
        Compression::Snappy => check_snappy(payload),
        Compression::Lz4 => check_lz4(payload),
        Compression::Zstd => check_zstd(payload),
    };
    checked.map_err(|fault| refused(compression, fault))
}

/// What is said of a payload that is not of the form.
pub(super) fn refused(compression: Compression, fault: Fault) -> RecordsError {
    let form = match compression {
        Compression::None => "records without compression",
        Compression::Gzip => "one gzip member without optional fields",
        Compression::Snappy => "one snappy block, or one xerial stream of version 1",
        Compression::Lz4 => "one LZ4 frame of independent blocks without a dictionary",
        Compression::Zstd => "one zstd frame without a dictionary, with a window of up to 64 MiB",
    };
    RecordsError::Form { codec: compression.name(), fault, form }
}

fn check_gzip(payload: &[u8]) -> Result<(), Fault> {
    const FLAGS_AT: usize = 3;
    if payload.len() < GZIP_BYTES_MIN || !payload.starts_with(&[0x1f, 0x8b]) {
        return Err("not a gzip member");
    }
    if payload[FLAGS_AT] != 0 {
        return Err("optional fields in the header");
    }
    Ok(())
}

fn check_snappy(payload: &[u8]) -> Result<(), Fault> {
    const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
    let Some(versions) = payload.strip_prefix(&XERIAL_MAGIC) else {
        if payload.len() < SNAPPY_BYTES_MIN {
            return Err("too few bytes for a batch");
        }
        return check_snappy_block(payload);
    };
    if !versions.starts_with(&VERSIONS) {
        return Err("a version of xerial's format other than 1");
    }
    let mut rest = &payload[XERIAL_HEADER_BYTES..];
    while !rest.is_empty() {
        if rest.starts_with(&XERIAL_MAGIC) {
            return Err("more than one xerial stream");
        }
        let mut blocks = XerialBlocks { rest };
        let block = blocks.next_block().ok().flatten();
        check_snappy_block(block.ok_or("the last block is cut off")?)?;
        rest = blocks.rest;
    }
    Ok(())
}

/// Looks at the length in front of a block, which is a number of up to 32 bits in as few bytes as
/// it takes.
fn check_snappy_block(block: &[u8]) -> Result<(), Fault> {
    const LENGTH_BYTES_MAX: usize = 5;
    let length_bytes = block.iter().take(LENGTH_BYTES_MAX).position(|byte| *byte < 0x80);
    match length_bytes.map(|last| (last, block[last])) {
        Some((0, 0)) => Err("a block without content"),
        None | Some((_, 0) | (4, 0x10..)) => Err("a block's length that is no number of 32 bits"),
        Some(_) => Ok(()),
    }
}

fn check_lz4(payload: &[u8]) -> Result<(), Fault> {
    const VERSION_MASK: u8 = 0xc0;
    const VERSION: u8 = 0x40;
    const INDEPENDENT_BIT: u8 = 0x20;
    const BLOCK_CHECKSUM_BIT: u8 = 0x10;
    const CONTENT_SIZE_BIT: u8 = 0x08;
    const CONTENT_CHECKSUM_BIT: u8 = 0x04;
    const RESERVED_BIT: u8 = 0x02;
    const DICTIONARY_BIT: u8 = 0x01;
    const UNCOMPRESSED_BIT: u32 = 1 << 31;
    let Some([flags, descriptor, ..]) = payload.strip_prefix(&LZ4_MAGIC) else {
        return Err("not an LZ4 frame");
    };
    if flags & DICTIONARY_BIT != 0 {
        return Err("a dictionary");
    }
    if flags & INDEPENDENT_BIT == 0 {
        return Err("blocks that need the ones before");
    }
    let block_bytes_max = match descriptor {
        0x40 => 64 << 10,
        0x50 => 256 << 10,
        0x60 => 1 << 20,
        0x70 => 4 << 20,
        _ => return Err("a block size that does not exist"),
    };
    if flags & VERSION_MASK != VERSION || flags & RESERVED_BIT != 0 {
        return Err("another version of the format");
    }
    let bytes_if = |bit: u8, bytes: usize| if flags & bit == 0 { 0 } else { bytes };
    // Magic, flags, descriptor, the content's size, and the header's checksum.
    let mut rest = payload.get(7 + bytes_if(CONTENT_SIZE_BIT, 8)..).unwrap_or_default();
    loop {
        let Some((length, blocks)) = rest.split_first_chunk::<4>() else {
            return Err("the frame has no end mark");
        };
        let length = u32::from_le_bytes(*length);
        if length == 0 {
            rest = blocks;
            break;
        }
        let block_bytes = (length & !UNCOMPRESSED_BIT) as usize;
        if block_bytes > block_bytes_max {
            return Err("a block that is longer than the frame's block size");
        }
        let (block, behind) = blocks.split_at_checked(block_bytes).ok_or("a block is cut off")?;
        if length & UNCOMPRESSED_BIT == 0 {
            check_lz4_block(block, block_bytes_max)?;
        } else if block.is_empty() {
            return Err("a block without content");
        }
        rest = behind.get(bytes_if(BLOCK_CHECKSUM_BIT, 4)..).unwrap_or_default();
    }
    if rest.len() == bytes_if(CONTENT_CHECKSUM_BIT, 4) {
        Ok(())
    } else {
        Err("bytes follow the frame, or its checksum is cut off")
    }
}

/// Walks the sequences of a block, which end as LZ4's block format says: behind the last match
/// there are at least five literals, and it does not begin in the last twelve bytes of what a block
/// can hold. Where the block is no block its decoder says so.
fn check_lz4_block(block: &[u8], content_bytes_max: usize) -> Result<(), Fault> {
    const LITERALS_LAST_MIN: usize = 5;
    const MATCH_BEFORE_END: usize = 12;
    const MATCH_BYTES_MIN: usize = 4;
    if block.len() < 2 {
        return Err("a block without content");
    }
    let (mut at, mut content_bytes) = (0, 0_usize);
    while let Some(&token) = block.get(at) {
        let is_first = at == 0;
        at += 1;
        let literals = lz4_length(block, &mut at, token >> 4);
        at += literals;
        content_bytes += literals;
        if at >= block.len() {
            let ends_well = is_first || literals >= LITERALS_LAST_MIN;
            return ends_well.then_some(()).ok_or("a block that does not end as LZ4 blocks must");
        }
        if content_bytes + MATCH_BEFORE_END > content_bytes_max {
            return Err("a block that does not end as LZ4 blocks must");
        }
        at += 2;
        content_bytes += MATCH_BYTES_MIN + lz4_length(block, &mut at, token & 0xf);
    }
    Err("a block is cut off")
}

/// The length of which four bits stand in a token, and the rest at `at`.
#[inline]
fn lz4_length(block: &[u8], at: &mut usize, bits: u8) -> usize {
    let mut length = usize::from(bits);
    if bits == 15 {
        while let Some(&more) = block.get(*at) {
            *at += 1;
            length += usize::from(more);
            if more != u8::MAX {
                break;
            }
        }
    }
    length
}

fn check_zstd(payload: &[u8]) -> Result<(), Fault> {
    const DICTIONARY_BITS: u8 = 0x03;
    let Some([descriptor, ..]) = payload.strip_prefix(&ZSTD_MAGIC) else {
        return Err("not a zstd frame");
    };
    if descriptor & DICTIONARY_BITS != 0 {
        return Err("a dictionary");
    }
    match zstd_safe::find_frame_compressed_size(payload) {
        Ok(length) if length == payload.len() => Ok(()),
        Ok(_) => Err("bytes follow the frame"),
        Err(_) => Err("not a whole zstd frame"),
    }
}

/// The payload as it is stored, where its content has so many bytes. Producers at high levels
/// announce windows of up to 128 MiB however small the content is: the frame then gets the smallest
/// window that its content needs.
///
/// # Errors
/// [`RecordsError::Form`] where the window is larger than is stored and the content needs it.
pub(super) fn with_small_window(
    payload: &[u8],
    content_bytes: usize,
) -> Result<Option<Vec<u8>>, RecordsError> {
    let Some(window) = zstd_window(payload).filter(|window| *window > ZSTD_WINDOW_BYTES_KEPT)
    else {
        return Ok(None);
    };
    let refused = || refused(Compression::Zstd, "a window of more than 64 MiB");
    let needed = (content_bytes as u64).next_power_of_two().max(ZSTD_WINDOW_BYTES_KEPT);
    let is_single_segment = payload[ZSTD_WINDOW_AT - 1] & 0x20 != 0;
    if needed >= window || is_single_segment {
        return if window <= ZSTD_WINDOW_BYTES_MAX { Ok(None) } else { Err(refused()) };
    }
    if needed > ZSTD_WINDOW_BYTES_MAX {
        return Err(refused());
    }
    // A power of two from 2¹⁰ on: its exponent less 10 stands in the upper five bits.
    let exponent = u8::try_from(needed.ilog2() - 10).expect("at most 16");
    let mut payload = payload.to_vec();
    payload[ZSTD_WINDOW_AT] = exponent << 3;
    Ok(Some(payload))
}

#[cfg(test)]
#[path = "forms_tests.rs"]
mod tests;
