//! Reads of a disk of this machine: a piece at a time, few pieces at once.
//!
//! A disk serves requests in order. A write that a client waits for is queued behind every byte
//! that was requested before: behind a handful of long reads for as long as a hundred milliseconds,
//! behind a few pieces for less than one. A few pieces are enough to keep a disk busy. Each piece
//! costs a request to the disk, so pieces are larger where nobody writes.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use rustix::fs::{Advice, fadvise};

use super::memory::ALIGNMENT;

/// The largest read that is sent to a disk while a lane is written. A multiple of any alignment.
const PIECE_BYTES: usize = 256 << 10;
/// The same while no lane is written: the next write may wait for two of these.
const QUIET_PIECE_BYTES: usize = 1 << 20;
/// For this time after a write another one is expected.
const QUIET_AFTER_MS: u64 = 100;
/// Reads of at most this many bytes wait for no turn: headers and indexes.
const SHORT_BYTES: usize = 64 << 10;

/// Reads for clients.
pub(super) static CLIENTS: Turns = Turns::new(2);
/// Turns of background threads, whose priority is lower than that of clients' threads also while
/// they have their turn.
pub(super) static BACKGROUND: Turns = Turns::new(1);

/// Writes that a client waits for.
pub(super) static WRITES: Writes = Writes::new();

/// When the disk was last written to.
pub(super) struct Writes {
    began: OnceLock<Instant>,
    /// Milliseconds from then to the last write; [`Self::NEVER`] before the first.
    last_ms: AtomicU64,
}

impl Writes {
    const NEVER: u64 = u64::MAX;

    const fn new() -> Self {
        Self { began: OnceLock::new(), last_ms: AtomicU64::new(Self::NEVER) }
    }

    /// Notes that a write begins now.
    pub(super) fn note(&self) {
        self.last_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    fn piece_bytes(&self) -> usize {
        self.piece_bytes_at(self.now_ms())
    }

    fn piece_bytes_at(&self, now_ms: u64) -> usize {
        let last_ms = self.last_ms.load(Ordering::Relaxed);
        let is_quiet = last_ms == Self::NEVER || now_ms.saturating_sub(last_ms) > QUIET_AFTER_MS;
        if is_quiet { QUIET_PIECE_BYTES } else { PIECE_BYTES }
    }

    fn now_ms(&self) -> u64 {
        let began = self.began.get_or_init(Instant::now);
        u64::try_from(began.elapsed().as_millis()).expect("no process is that old")
    }
}

/// Turns to read: a fixed number of readers at a time. The others wait and follow in the order in
/// which they asked.
pub(super) struct Turns {
    at_once: u64,
    queue: Mutex<Queue>,
    ended: Condvar,
}

/// How many turns were requested, and how many have ended.
struct Queue {
    asked: u64,
    ended: u64,
}

/// A turn, until it is dropped.
struct Turn<'a>(&'a Turns);

impl Turns {
    const fn new(at_once: u64) -> Self {
        let queue = Mutex::new(Queue { asked: 0, ended: 0 });
        Self { at_once, queue, ended: Condvar::new() }
    }

    fn wait(&self) -> Turn<'_> {
        let mut queue = self.queue.lock();
        let number = queue.asked;
        queue.asked += 1;
        while number >= queue.ended + self.at_once {
            self.ended.wait(&mut queue);
        }
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.ended += 1;
        // Under the lock, so that nobody joins the queue in between: the waiter that is woken is
        // the one that has waited longest, and must also be the next by number. Otherwise a waiter
        // might be woken whose turn it is not yet, and the one whose turn it is would sleep for
        // ever.
        self.0.ended.notify_one();
    }
}

/// Turns the kernel's reading ahead off: it would request megabytes from the disk at once, and the
/// engine reads ahead itself.
pub(super) fn read_only_what_is_asked(file: &fs::File) {
    // It is advice: a file system that does not take it works all the same.
    let _ = fadvise(file, 0, None, Advice::Random);
}

/// Reads up to `length` bytes, in turns where there are any; fewer only at the end of the file.
///
/// # Errors
/// The errors of the file's reads.
pub(super) fn read_at(
    file: &fs::File,
    position: u64,
    length: usize,
    turns: Option<&Turns>,
) -> io::Result<Bytes> {
    let mut buffer = vec![0; length];
    let filled = fill(file, position, &mut buffer, turns)?;
    buffer.truncate(filled);
    Ok(Bytes::from(buffer))
}

/// Fills the buffer from `position` on, and returns how many bytes were read; fewer than fit only
/// at the end of the file.
///
/// # Errors
/// As [`read_at`].
pub(super) fn fill(
    file: &fs::File,
    position: u64,
    room: &mut [u8],
    turns: Option<&Turns>,
) -> io::Result<usize> {
    let turns = turns.filter(|_| room.len() > SHORT_BYTES);
    let mut filled = 0;
    loop {
        let piece = if turns.is_some() { WRITES.piece_bytes() } else { room.len() };
        let end = room.len().min(filled + piece);
        let at = position + filled as u64;
        let turn = turns.map(Turns::wait);
        let read = read_piece(file, at, &mut room[filled..end])?;
        drop(turn);
        filled += read;
        // A read that ends within a page is at the end of the file. One that ends at the end of a
        // page may have met a fault, which the next read returns; and past the cache no read may
        // begin within a page.
        let within_a_page = !(at + read as u64).is_multiple_of(ALIGNMENT as u64);
        if read == 0 || filled == room.len() || filled < end && within_a_page {
            return Ok(filled);
        }
    }
}

fn read_piece(file: &fs::File, position: u64, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read_at(room, position) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn all_have_their_turns_and_no_more_at_once_than_there_are() {
        const READERS: u64 = 8;
        const TURNS_OF_EACH: u64 = 500;
        for at_once in [1, 2] {
            let turns = Turns::new(at_once);
            let (reading, most, began) = (AtomicU64::new(0), AtomicU64::new(0), Barrier::new(8));
            thread::scope(|scope| {
                for _ in 0..READERS {
                    scope.spawn(|| {
                        began.wait();
                        for _ in 0..TURNS_OF_EACH {
                            let turn = turns.wait();
                            let now = reading.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            thread::yield_now();
                            reading.fetch_sub(1, Ordering::SeqCst);
                            drop(turn);
                        }
                    });
                }
            });
            assert!((1..=at_once).contains(&most.load(Ordering::SeqCst)), "{most:?}");
            assert_eq!(turns.queue.lock().ended, READERS * TURNS_OF_EACH);
        }
    }

    #[test]
    fn who_asks_again_comes_after_those_who_wait() {
        let turns = Turns::new(1);
        let held = turns.wait();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for reader in 1..=3_u64 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.wait();
                    order.lock().push(reader);
                });
                while turns.queue.lock().asked < 1 + reader {
                    thread::yield_now();
                }
            }
            drop(held);
            let _again = turns.wait();
            order.lock().push(4);
        });
        assert_eq!(*order.lock(), [1, 2, 3, 4]);
    }

    #[test]
    fn pieces_are_small_while_somebody_writes_and_for_a_while_after() {
        let writes = Writes::new();
        assert_eq!(writes.piece_bytes_at(5), QUIET_PIECE_BYTES, "nothing was written yet");
        writes.note();
        let last_ms = writes.last_ms.load(Ordering::Relaxed);
        assert_eq!(writes.piece_bytes_at(last_ms + QUIET_AFTER_MS), PIECE_BYTES);
        assert_eq!(writes.piece_bytes_at(last_ms + QUIET_AFTER_MS + 1), QUIET_PIECE_BYTES);
    }

    #[test]
    fn long_reads_give_what_the_file_has() {
        let content: Vec<u8> =
            (0..QUIET_PIECE_BYTES * 3 + 77).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, &content).unwrap();
        let file = fs::File::open(&path).unwrap();
        read_only_what_is_asked(&file);
        for turns in [None, Some(&CLIENTS)] {
            for (position, length) in [
                (0, 0),
                (5, SHORT_BYTES),
                (5, SHORT_BYTES + 1),
                (1, PIECE_BYTES),
                (1, PIECE_BYTES + 1),
                (1, QUIET_PIECE_BYTES + 1),
                (3, content.len() - 3),
                (3, content.len()),
                (content.len() - 1, PIECE_BYTES * 2),
                (content.len(), PIECE_BYTES),
            ] {
                let bytes = read_at(&file, position as u64, length, turns).unwrap();
                assert_eq!(bytes, content[position..content.len().min(position + length)]);
            }
        }
    }
}
