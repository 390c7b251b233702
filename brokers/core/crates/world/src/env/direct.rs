//! Writes and reads past the page cache. What is written here is read again from the engine's own
//! memory, or much later: a copy in the kernel's cache would cost more than all other work on a
//! byte, fresh pages most of all. What is read here may have been written by another machine, and
//! this machine's cache may be stale.
//!
//! The device takes only aligned memory, so pieces that are written are copied into a buffer that
//! its thread keeps and that stays in the processor's cache.
#![allow(clippy::disallowed_methods)]

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use bytes::Bytes;

use super::memory::{ALIGNMENT, Aligned, Lent};
use super::turns::{self, Turns};

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Aligned> = RefCell::new(Aligned::new(BUFFER_BYTES));
}

/// Opens a file that is open already a second time, past the cache.
pub(super) fn open(file: &fs::File) -> io::Result<fs::File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path)
}

/// Whether a write of so many bytes can go past the cache as it is.
pub(super) fn is_aligned(position: u64, bytes: usize) -> bool {
    bytes > 0 && bytes.is_multiple_of(ALIGNMENT) && position.is_multiple_of(ALIGNMENT as u64)
}

/// Writes the pieces one after another from `position`, which is aligned, on. Behind the last one
/// follow zeros up to the next multiple of the alignment.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] where the file takes no such writes; nothing was written then.
/// After any other error what is written is unknown.
pub(super) fn write_all_at(file: &fs::File, position: u64, pieces: &[Bytes]) -> io::Result<()> {
    BUFFER.with_borrow_mut(|buffer| {
        let buffer = buffer.bytes();
        let (mut filled, mut at) = (0, position);
        for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let now = rest.len().min(BUFFER_BYTES - filled);
                buffer[filled..filled + now].copy_from_slice(&rest[..now]);
                (filled, rest) = (filled + now, &rest[now..]);
                if filled == BUFFER_BYTES {
                    write_buffer(file, buffer, at, at == position)?;
                    (filled, at) = (0, at + BUFFER_BYTES as u64);
                }
            }
        }
        if filled == 0 {
            return Ok(());
        }
        let end = filled.next_multiple_of(ALIGNMENT);
        buffer[filled..end].fill(0);
        write_buffer(file, &buffer[..end], at, at == position)
    })
}

/// Writes zeros from the start on; `bytes` is a multiple of the alignment.
///
/// # Errors
/// As [`write_all_at`].
pub(super) fn fill_with_zeros(file: &fs::File, bytes: u64) -> io::Result<()> {
    BUFFER.with_borrow_mut(|buffer| {
        let buffer = buffer.bytes();
        buffer.fill(0);
        let mut at = 0;
        while at < bytes {
            let now = usize::try_from(bytes - at).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES);
            write_buffer(file, &buffer[..now], at, at == 0)?;
            at += now as u64;
        }
        Ok(())
    })
}

/// Writes one buffer. A refusal of writes past the cache is reported as one only where nothing was
/// written before it.
fn write_buffer(file: &fs::File, bytes: &[u8], position: u64, is_first: bool) -> io::Result<()> {
    let written = file.write_all_at(bytes, position);
    match written {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput && !is_first => {
            Err(io::Error::other(error))
        }
        written => written,
    }
}

/// Reads past the cache: position, length and memory rounded out to the alignment of the device.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] where the file takes no such reads.
pub(super) fn read_at(
    file: &fs::File,
    position: u64,
    length: usize,
    turns: Option<&Turns>,
) -> io::Result<Bytes> {
    let alignment = ALIGNMENT as u64;
    let start = position / alignment * alignment;
    let skip = usize::try_from(position - start).expect("less than the alignment");
    let span = (skip + length).next_multiple_of(ALIGNMENT);
    let mut memory = Lent::new(span);
    let filled = turns::fill(file, start, &mut memory.bytes()[..span], turns)?;
    let end = filled.min(skip + length);
    Ok(memory.into_part(skip.min(end)..end))
}

/// Reserves room for a new file, which gets this length, so that writes past the cache need not
/// look for it one by one. Returns false where the file system cannot do that: it finds the room
/// as it is written.
///
/// # Errors
/// [`io::ErrorKind::StorageFull`] where there is none.
#[allow(unsafe_code)]
pub(super) fn reserve(file: &fs::File, bytes: u64) -> io::Result<bool> {
    let Ok(length) = libc::off_t::try_from(bytes) else { return Ok(false) };
    // SAFETY: the descriptor is open as long as `file` is; the call touches no memory.
    if length == 0 || unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
    if full { Err(error) } else { Ok(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_are_written_one_after_another_with_zeros_behind() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("file");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let _ = reserve(&file, 4 << 20).unwrap();
        let Ok(direct) = open(&file) else { return };
        let pieces: Vec<Bytes> =
            [0, 1, 5000, BUFFER_BYTES - 1, BUFFER_BYTES + 3, 70_000, 0].map(sample).to_vec();
        let written = pieces.concat();
        write_all_at(&direct, ALIGNMENT as u64, &pieces).unwrap();
        let content = fs::read(&path).unwrap();
        let end = ALIGNMENT + written.len();
        assert_eq!(content[ALIGNMENT..end], written);
        assert!(content[..ALIGNMENT].iter().chain(&content[end..]).all(|byte| *byte == 0));
        fill_with_zeros(&direct, 3 << 20).unwrap();
        assert!(fs::read(&path).unwrap()[..3 << 20].iter().all(|byte| *byte == 0));
    }

    fn sample(bytes: usize) -> Bytes {
        (0..bytes).map(|at| u8::try_from(at % 251 + 1).unwrap()).collect()
    }
}
