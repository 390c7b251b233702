//! A batch's records as a stream: decompressed piece by piece, within bounds of output and memory,
//! whatever the compressed bytes claim.
//!
//! What ends a stream, and what is ignored behind it, follows the decoders that Kafka has, so that
//! what earlier releases stored is read as by Kafka's own client. Producers may send less
//! ([`forms`](super::forms)).

use std::io::{self, Read};

use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use zstd::zstd_safe;

use super::forms::{check_form, refused};
use super::zstd_stream::ZstdStream;
use super::{Compression, RecordsError};

/// The bytes of one piece, except that a snappy block is always one piece.
const PIECE_BYTES: usize = 64 << 10;
/// What xerial's snappy-java puts before its blocks.
pub(super) const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Magic, version and compatible version.
pub(super) const XERIAL_HEADER_BYTES: usize = 16;
/// More than any snappy block can grow: an element of three bytes gives at most 64.
const SNAPPY_GROWTH_MAX: usize = 32;
/// What a decoder holds besides its window and the piece.
const DECODER_BYTES: usize = 256 << 10;
pub(super) const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window that zstd's own decoder takes by default (`ZSTD_MAXWINDOWSIZE_DEFAULT`).
const ZSTD_WINDOW_BYTES_MAX: u64 = (1 << 27) + 1;

/// How far the records of a batch may be decompressed.
#[derive(Clone, Copy)]
pub struct UnpackLimits<'a> {
    /// The most bytes that may come out.
    pub output_bytes: usize,
    /// The most memory that a decoder may hold at a time, in bytes.
    pub memory_bytes: usize,
    /// Called with the size of each piece that came out; ends the work where it returns `false`.
    pub goes_on: Option<&'a dyn Fn(usize) -> bool>,
}

impl UnpackLimits<'static> {
    /// Limits of output alone: for batches that were read before they were stored.
    pub fn of_output(output_bytes: usize) -> Self {
        Self { output_bytes, memory_bytes: usize::MAX, goes_on: None }
    }
}

/// How much memory it takes to decompress a payload, in bytes: an upper bound, by what its frames
/// announce.
pub fn memory_to_unpack(compression: Compression, payload: &[u8]) -> usize {
    let window = match compression {
        Compression::None => return 0,
        Compression::Gzip => 0,
        Compression::Snappy => snappy_block_bytes_max(payload),
        Compression::Lz4 => 2 * lz4_block_bytes(payload),
        Compression::Zstd => zstd_window_bytes(payload),
    };
    // A frame may announce any size.
    window.saturating_add(PIECE_BYTES + DECODER_BYTES)
}

/// The largest content that a block of the payload announces and can have.
fn snappy_block_bytes_max(payload: &[u8]) -> usize {
    let content_bytes = |block: &[u8]| {
        let announced = snap::raw::decompress_len(block).unwrap_or(0);
        announced.min(block.len().saturating_mul(SNAPPY_GROWTH_MAX))
    };
    if !payload.starts_with(&XERIAL_MAGIC) {
        return content_bytes(payload);
    }
    let mut blocks = XerialBlocks { rest: payload };
    let mut largest = 0;
    while let Ok(Some(block)) = blocks.next_block() {
        largest = largest.max(content_bytes(block));
    }
    largest
}

/// The block size that a frame's descriptor names.
fn lz4_block_bytes(payload: &[u8]) -> usize {
    match payload.get(5).map(|descriptor| descriptor >> 4 & 7) {
        Some(4) => 64 << 10,
        Some(5) => 256 << 10,
        Some(6) => 1 << 20,
        _ => 4 << 20,
    }
}

/// The largest window of the payload's frames, of which no more is held than a frame's content.
fn zstd_window_bytes(payload: &[u8]) -> usize {
    let held = |frame: ZstdFrame| frame.content.unwrap_or(u64::MAX).min(frame.window);
    usize::try_from(zstd_frames_max(payload, held)).unwrap_or(usize::MAX)
}

/// The largest value that a function has for any of the payload's frames; 0 where there is none.
fn zstd_frames_max(mut payload: &[u8], value_of: impl Fn(ZstdFrame) -> u64) -> u64 {
    let mut largest = 0;
    while let Some(frame) = zstd_frame(payload) {
        largest = largest.max(value_of(frame));
        match zstd_safe::find_frame_compressed_size(payload) {
            Ok(length) if length > 0 && length < payload.len() => payload = &payload[length..],
            _ => break,
        }
    }
    largest
}

/// What a frame's header says.
#[derive(Clone, Copy)]
struct ZstdFrame {
    window: u64,
    content: Option<u64>,
}

/// The first frame by its header (RFC 8878, section 3.1.1.1), of no window where it is one to be
/// skipped; `None` where there is no frame.
fn zstd_frame(payload: &[u8]) -> Option<ZstdFrame> {
    let (magic, header) = payload.split_first_chunk::<4>()?;
    if *magic != ZSTD_MAGIC {
        const SKIPPABLE: u32 = 0x184d_2a50;
        let skipped = ZstdFrame { window: 0, content: None };
        return (u32::from_le_bytes(*magic) & !0xf == SKIPPABLE).then_some(skipped);
    }
    let descriptor = *header.first()?;
    let content = zstd_safe::get_frame_content_size(payload).ok().flatten();
    let is_single_segment = descriptor & 0x20 != 0;
    if is_single_segment {
        return content.map(|window| ZstdFrame { window, content });
    }
    let window = *header.get(1)?;
    let base = 1_u64 << (10 + (window >> 3));
    let window = base + base / 8 * u64::from(window & 7);
    Some(ZstdFrame { window, content })
}

/// The window that a payload's first frame announces; `None` where there is no frame.
pub(super) fn zstd_window(payload: &[u8]) -> Option<u64> {
    zstd_frame(payload).map(|frame| frame.window)
}

/// Refuses frames with a window that clients' decoders do not take.
fn check_zstd_windows(payload: &[u8]) -> Result<(), RecordsError> {
    let window = zstd_frames_max(payload, |frame| frame.window);
    if window <= ZSTD_WINDOW_BYTES_MAX {
        return Ok(());
    }
    let what = format!("a window of {window} bytes, more than {ZSTD_WINDOW_BYTES_MAX}");
    Err(Compression::Zstd.refused(&what))
}

/// A payload that is being decompressed, a piece at a time.
pub(super) struct Unpacker<'a> {
    compression: Compression,
    stream: Stream<'a>,
    limits: UnpackLimits<'a>,
    /// The present piece, where it was decompressed.
    piece: Vec<u8>,
    /// The present piece, where it lies in the payload as it is.
    slice: &'a [u8],
    produced: usize,
    /// Whether a payload of several gzip members is refused.
    has_one_member: bool,
}

enum Stream<'a> {
    /// All of it is the next piece, as it is.
    Slice(&'a [u8]),
    /// All of it is the next piece, and was decompressed already.
    Whole(Vec<u8>),
    Gzip(Box<GzDecoder<&'a [u8]>>),
    Snappy(SnappyBlocks<'a>),
    Lz4(Box<FrameDecoder<&'a [u8]>>),
    Zstd(ZstdStream<'a>),
}

impl<'a> Unpacker<'a> {
    /// Begins to decompress a payload. The present piece is empty until [`Self::advance`].
    ///
    /// # Errors
    /// [`RecordsError::Payload`] where the payload does not begin as the type says,
    /// [`RecordsError::Memory`] where it takes too much of it.
    pub(super) fn new(
        compression: Compression,
        payload: &'a [u8],
        limits: UnpackLimits<'a>,
    ) -> Result<Self, RecordsError> {
        let (needed, limit) = (memory_to_unpack(compression, payload), limits.memory_bytes);
        if compression == Compression::Zstd {
            check_zstd_windows(payload)?;
        }
        let stream = match compression {
            Compression::None => Stream::Slice(payload),
            Compression::Zstd if needed > limit => Stream::Whole(unpack_whole(payload, limits)?),
            _ if needed > limit => return Err(RecordsError::Memory { needed, limit }),
            Compression::Gzip => Stream::Gzip(Box::new(GzDecoder::new(payload))),
            Compression::Snappy => Stream::Snappy(SnappyBlocks::new(payload)),
            Compression::Lz4 => Stream::Lz4(Box::new(lz4_decoder(payload)?)),
            Compression::Zstd => Stream::Zstd(ZstdStream::new(payload, needed)),
        };
        let (piece, slice) = (Vec::new(), &[][..]);
        Ok(Self { compression, stream, limits, piece, slice, produced: 0, has_one_member: false })
    }

    /// Begins to decompress a payload that a producer sent.
    ///
    /// # Errors
    /// [`RecordsError::Form`] where not every client reads it, and those of [`Self::new`].
    pub(super) fn of_producer(
        compression: Compression,
        payload: &'a [u8],
        limits: UnpackLimits<'a>,
    ) -> Result<Self, RecordsError> {
        check_form(compression, payload)?;
        Ok(Self { has_one_member: true, ..Self::new(compression, payload, limits)? })
    }

    /// The present piece.
    #[inline]
    pub(super) fn piece(&self) -> &[u8] {
        if self.slice.is_empty() { &self.piece } else { self.slice }
    }

    /// Goes on to the next piece; `false` at the end, where the piece is empty.
    ///
    /// # Errors
    /// [`RecordsError::Payload`] for bytes that are not what the type says,
    /// [`RecordsError::TooLarge`] beyond the limit of output, [`RecordsError::Stopped`] where the
    /// work was ended.
    pub(super) fn advance(&mut self) -> Result<bool, RecordsError> {
        let limit = self.limits.output_bytes;
        match &mut self.stream {
            Stream::Slice(slice) => self.slice = std::mem::take(slice),
            Stream::Whole(whole) => self.piece = std::mem::take(whole),
            Stream::Snappy(blocks) => {
                blocks.unpack_next(&mut self.piece, limit - self.produced, limit)?;
            }
            stream => {
                self.piece.resize(PIECE_BYTES, 0);
                let length = stream.read(&mut self.piece, self.has_one_member);
                let length = length.map_err(|error| self.compression.refused(&error))?;
                self.piece.truncate(length);
                if length == 0 && self.has_one_member && stream.has_more() {
                    return Err(refused(self.compression, "bytes follow the first member"));
                }
            }
        }
        let length = self.piece().len();
        self.produced += length;
        if self.produced > limit {
            return Err(RecordsError::TooLarge { limit });
        }
        if self.limits.goes_on.is_some_and(|goes_on| !goes_on(length)) {
            return Err(RecordsError::Stopped);
        }
        Ok(length > 0)
    }
}

impl Stream<'_> {
    /// Reads from a decoder that is a stream by itself; 0 at the end.
    fn read(&mut self, buffer: &mut [u8], has_one_member: bool) -> io::Result<usize> {
        match self {
            Self::Gzip(member) if has_one_member => member.read(buffer),
            Self::Gzip(member) => read_gzip(member, buffer),
            Self::Lz4(frame) => frame.read(buffer),
            Self::Zstd(frames) => frames.read(buffer),
            Self::Slice(_) | Self::Whole(_) | Self::Snappy(_) => Ok(0),
        }
    }

    /// Whether bytes follow the gzip member that has ended.
    fn has_more(&self) -> bool {
        matches!(self, Self::Gzip(member) if !member.get_ref().is_empty())
    }
}

/// Reads on in the next member where one ends. What follows a member and does not begin as another
/// one is ignored, as by Java's `GZIPInputStream`.
fn read_gzip(member: &mut GzDecoder<&[u8]>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        let length = member.read(buffer)?;
        if length > 0 {
            return Ok(length);
        }
        let ended = std::mem::replace(member, GzDecoder::new(&[]));
        let next = GzDecoder::new(ended.into_inner());
        if next.header().is_none() {
            return Ok(0);
        }
        *member = next;
    }
}

/// A decoder of one LZ4 frame: what follows it is ignored.
fn lz4_decoder(payload: &[u8]) -> Result<FrameDecoder<&[u8]>, RecordsError> {
    if !payload.starts_with(&LZ4_MAGIC) {
        return Err(Compression::Lz4.refused(&"not an LZ4 frame"));
    }
    // The decoder takes the end of the bytes for the end of the frame, which other clients do not.
    if !has_lz4_end_mark(payload) {
        return Err(Compression::Lz4.refused(&"the frame has no end mark"));
    }
    Ok(FrameDecoder::new(payload))
}

/// Whether the blocks of a frame are followed by its end mark.
fn has_lz4_end_mark(payload: &[u8]) -> bool {
    const BLOCK_CHECKSUM_BIT: u8 = 0x10;
    const CONTENT_SIZE_BIT: u8 = 0x08;
    const DICTIONARY_BIT: u8 = 0x01;
    const LENGTH_MASK: u32 = 0x7fff_ffff;
    let Some(flags) = payload.get(LZ4_MAGIC.len()) else { return false };
    let bytes_if = |bit: u8, bytes: usize| if flags & bit == 0 { 0 } else { bytes };
    // Magic, flags, block size, what the flags name, and the header's checksum.
    let header_bytes = 7 + bytes_if(CONTENT_SIZE_BIT, 8) + bytes_if(DICTIONARY_BIT, 4);
    let mut rest = payload.get(header_bytes..).unwrap_or_default();
    while let Some((length, blocks)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length);
        if length == 0 {
            return true;
        }
        let block_bytes = (length & LENGTH_MASK) as usize + bytes_if(BLOCK_CHECKSUM_BIT, 4);
        rest = blocks.get(block_bytes..).unwrap_or_default();
    }
    false
}

/// Decompresses zstd in one shot into a buffer that doubles until it suffices, and is both output
/// and window: for frames that announce a larger window than the memory allows, which producers at
/// high levels do however small the content is.
fn unpack_whole(payload: &[u8], limits: UnpackLimits<'_>) -> Result<Vec<u8>, RecordsError> {
    let refused = |error: io::Error| Compression::Zstd.refused(&error);
    let mut decompressor = zstd::bulk::Decompressor::new().map_err(refused)?;
    let (needed, limit) = (memory_to_unpack(Compression::Zstd, payload), limits.memory_bytes);
    let mut capacity = payload.len().saturating_mul(4).max(PIECE_BYTES).min(limit);
    loop {
        let mut out = Vec::with_capacity(capacity);
        match decompressor.decompress_to_buffer(payload, &mut out) {
            Ok(_) => return Ok(out),
            Err(error) if !is_too_small(&error) => return Err(refused(error)),
            Err(_) if capacity < limit => capacity = capacity.saturating_mul(2).min(limit),
            Err(_) => return Err(RecordsError::Memory { needed, limit }),
        }
    }
}

/// Whether zstd ran out of space, by its own text (`ZSTD_error_dstSize_tooSmall`), since the crate
/// passes no code on.
fn is_too_small(error: &io::Error) -> bool {
    error.to_string().contains("too small")
}

/// The blocks in xerial's frame.
pub(super) struct XerialBlocks<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> XerialBlocks<'a> {
    /// The next block, past the headers between streams that were put one after another; `None` at
    /// the end, where up to three bytes are ignored.
    pub(super) fn next_block(&mut self) -> Result<Option<&'a [u8]>, RecordsError> {
        let truncated = || Compression::Snappy.refused(&"truncated block");
        while self.rest.starts_with(&XERIAL_MAGIC) {
            let header = || Compression::Snappy.refused(&"truncated header");
            self.rest = self.rest.get(XERIAL_HEADER_BYTES..).ok_or_else(header)?;
        }
        let Some((length, rest)) = self.rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| truncated())?;
        let (block, rest) = rest.split_at_checked(length).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(Some(block))
    }
}

/// The blocks of a snappy payload: those in xerial's frame, or the one that is the payload.
enum SnappyBlocks<'a> {
    Framed(XerialBlocks<'a>),
    Bare(Option<&'a [u8]>),
}

impl<'a> SnappyBlocks<'a> {
    fn new(payload: &'a [u8]) -> Self {
        if payload.starts_with(&XERIAL_MAGIC) {
            Self::Framed(XerialBlocks { rest: payload })
        } else {
            Self::Bare(Some(payload))
        }
    }

    /// Decompresses the next block that has content into `piece`, which is empty at the end. The
    /// length that stands in a block is believed only as far as `room` and the block's own size
    /// allow.
    fn unpack_next(
        &mut self,
        piece: &mut Vec<u8>,
        room: usize,
        limit: usize,
    ) -> Result<(), RecordsError> {
        let refused = |error: snap::Error| Compression::Snappy.refused(&error);
        piece.clear();
        while piece.is_empty() {
            let block = match self {
                Self::Framed(blocks) => blocks.next_block()?,
                Self::Bare(block) => block.take(),
            };
            let Some(block) = block else { return Ok(()) };
            let length = snap::raw::decompress_len(block).map_err(refused)?;
            if length > room {
                return Err(RecordsError::TooLarge { limit });
            }
            if length / SNAPPY_GROWTH_MAX > block.len() {
                return Err(Compression::Snappy.refused(&"a length that the block cannot hold"));
            }
            piece.resize(length, 0);
            snap::raw::Decoder::new().decompress(block, piece).map_err(refused)?;
        }
        Ok(())
    }
}
