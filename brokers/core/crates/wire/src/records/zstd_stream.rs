//! Decompresses zstd frames piece by piece, with decoders that are used again.
//!
//! To allocate a decoder and its window takes 8 µs, as long as it takes to decompress 10 KiB, and
//! most batches have few KiB.

use std::io;
use std::sync::{Mutex, PoisonError};

use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer, ResetDirective, get_error_name};

/// How many decoders are kept for later payloads.
const KEPT_DECODERS_MAX: usize = 4;
/// A decoder that took more memory is not kept. The default level of most producers takes less.
const KEPT_MEMORY_BYTES_MAX: usize = 3 << 20;

static KEPT_DECODERS: Mutex<Vec<DCtx<'static>>> = Mutex::new(Vec::new());

/// The frames of a payload, as one stream.
pub(super) struct ZstdStream<'a> {
    decoder: ZstdDecoder,
    rest: &'a [u8],
    within_frame: bool,
}

impl<'a> ZstdStream<'a> {
    /// Begins a payload whose frames need at most `memory_bytes` of memory.
    pub(super) fn new(payload: &'a [u8], memory_bytes: usize) -> Self {
        Self { decoder: ZstdDecoder::take(memory_bytes), rest: payload, within_frame: false }
    }

    /// Decompresses the next bytes into `buffer`, which is not empty; 0 at the end.
    ///
    /// # Errors
    /// Where the payload is no zstd, or ends within a frame.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(context) = &mut self.decoder.context else { return Ok(0) };
        while self.within_frame || !self.rest.is_empty() {
            let mut input = InBuffer::around(self.rest);
            let mut output = OutBuffer::around(&mut *buffer);
            let left = context
                .decompress_stream(&mut output, &mut input)
                .map_err(|code| io::Error::other(get_error_name(code)))?;
            let written = output.pos();
            self.rest = &self.rest[input.pos()..];
            self.within_frame = left > 0;
            if written > 0 {
                return Ok(written);
            }
            if self.within_frame && self.rest.is_empty() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame"));
            }
        }
        Ok(0)
    }
}

/// A decoder, which may be kept when it is dropped.
struct ZstdDecoder {
    /// `None` only while it is dropped.
    context: Option<DCtx<'static>>,
    is_kept: bool,
}

impl ZstdDecoder {
    fn take(memory_bytes: usize) -> Self {
        let is_kept = memory_bytes <= KEPT_MEMORY_BYTES_MAX;
        let kept = is_kept.then(|| kept_decoders().pop()).flatten();
        Self { context: Some(kept.unwrap_or_else(DCtx::create)), is_kept }
    }
}

impl Drop for ZstdDecoder {
    fn drop(&mut self) {
        let Some(mut context) = self.context.take().filter(|_| self.is_kept) else { return };
        // One that ended within a frame would go on with it.
        if context.reset(ResetDirective::SessionOnly).is_ok() {
            let mut kept = kept_decoders();
            if kept.len() < KEPT_DECODERS_MAX {
                kept.push(context);
            }
        }
    }
}

fn kept_decoders() -> std::sync::MutexGuard<'static, Vec<DCtx<'static>>> {
    KEPT_DECODERS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(payload: &[u8], memory_bytes: usize) -> io::Result<Vec<u8>> {
        let (mut stream, mut all) = (ZstdStream::new(payload, memory_bytes), Vec::new());
        let mut piece = [0; 1000];
        loop {
            match stream.read(&mut piece)? {
                0 => return Ok(all),
                length => all.extend_from_slice(&piece[..length]),
            }
        }
    }

    #[test]
    fn a_decoder_that_ended_within_a_frame_begins_the_next_payload_anew() {
        let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let packed = zstd::bulk::compress(&content, 3).unwrap();
        let twice = [&packed[..], &packed[..]].concat();
        for memory_bytes in [1 << 20, KEPT_MEMORY_BYTES_MAX + 1] {
            for _ in 0..2 * KEPT_DECODERS_MAX {
                let cut = unpack(&packed[..packed.len() / 2], memory_bytes);
                assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
                assert!(unpack(b"not zstd", memory_bytes).is_err());
                assert_eq!(unpack(&packed, memory_bytes).unwrap(), content);
                assert_eq!(unpack(&twice, memory_bytes).unwrap(), content.repeat(2));
                assert_eq!(unpack(&[], memory_bytes).unwrap(), b"");
            }
        }
        assert!(kept_decoders().len() <= KEPT_DECODERS_MAX);
    }
}
