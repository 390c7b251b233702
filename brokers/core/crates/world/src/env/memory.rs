//! Memory for reads and writes past the page cache: aligned as the device requires, and used again.
//! Fresh pages cost as much as the rest of a read, and the kernel maps them for one thread at a
//! time.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;

use bytes::Bytes;
use parking_lot::Mutex;

/// Positions, lengths and memory are multiples of this.
pub(super) const ALIGNMENT: usize = 4096;
/// The most bytes that are kept for the next reads: as much as four of the longest take.
const FREE_BYTES_MAX: usize = 32 << 20;

static FREE: Mutex<FreeMemory> = Mutex::new(FreeMemory::new());

/// Memory whose used part is aligned.
#[derive(Default)]
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    /// Memory of zeros, whose pages are taken only when they are written.
    pub(super) fn new(length: usize) -> Self {
        let memory = vec![0; length + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start, length }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

/// Memory that is kept for others when it is dropped.
pub(super) struct Lent(Aligned);

impl Lent {
    /// At least `length` bytes, with any content.
    pub(super) fn new(length: usize) -> Self {
        let memory = FREE.lock().take(length);
        Self(memory.unwrap_or_else(|| Aligned::new(length)))
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.0.bytes()
    }

    /// A part of it, which keeps the whole.
    pub(super) fn into_part(self, part: Range<usize>) -> Bytes {
        Bytes::from_owner(self).slice(part)
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0.memory[self.0.start..self.0.start + self.0.length]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let freed = FREE.lock().keep(mem::take(&mut self.0));
        drop(freed);
    }
}

/// Memory that nobody uses, oldest first.
struct FreeMemory {
    kept: VecDeque<Aligned>,
    bytes: usize,
}

impl FreeMemory {
    const fn new() -> Self {
        Self { kept: VecDeque::new(), bytes: 0 }
    }

    /// Takes the smallest piece that is large enough, unless it is larger by more than a quarter.
    fn take(&mut self, length: usize) -> Option<Aligned> {
        let fits = length..=length + length / 4;
        let fitting =
            self.kept.iter().enumerate().filter(|(_, memory)| fits.contains(&memory.length));
        let (place, _) = fitting.min_by_key(|(_, memory)| memory.length)?;
        let memory = self.kept.remove(place)?;
        self.bytes -= memory.length;
        Some(memory)
    }

    /// Keeps a piece, and returns those for which there is no room any more.
    fn keep(&mut self, memory: Aligned) -> Vec<Aligned> {
        self.bytes += memory.length;
        self.kept.push_back(memory);
        let mut freed = Vec::new();
        while self.bytes > FREE_BYTES_MAX {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.length;
            freed.push(oldest);
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn the_smallest_that_fits_is_used_again() {
        let mut free = FreeMemory::new();
        for mib in [8, 4, 5, 2] {
            assert!(free.keep(Aligned::new(mib * MIB)).is_empty());
        }
        let mut taken = |length| free.take(length).map(|memory| memory.length);
        assert_eq!(taken(MIB), None, "twice as much would be wasted");
        assert_eq!(taken(4 * MIB), Some(4 * MIB));
        assert_eq!(taken(4 * MIB), Some(5 * MIB));
        assert_eq!(taken(8 * MIB + 1), None);
        assert_eq!(taken(8 * MIB), Some(8 * MIB));
        assert_eq!(free.bytes, 2 * MIB);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for_and_the_newest_stay() {
        let mut free = FreeMemory::new();
        let freed: Vec<usize> = (1..=9)
            .flat_map(|mib| free.keep(Aligned::new(mib * MIB)))
            .map(|freed| freed.length / MIB)
            .collect();
        assert_eq!(freed, [1, 2, 3, 4, 5]);
        assert_eq!(free.bytes, (6 + 7 + 8 + 9) * MIB);
        assert_eq!(free.keep(Aligned::new(FREE_BYTES_MAX + 1)).len(), 5, "too large for any");
        assert_eq!(free.bytes, 0);
    }

    #[test]
    fn parts_are_aligned_memory_that_goes_back_with_the_last_of_them() {
        let length = 3 * MIB + 5 * ALIGNMENT;
        let mut lent = Lent::new(length);
        lent.bytes()[ALIGNMENT] = 7;
        let place = lent.bytes().as_ptr();
        assert_eq!(place.align_offset(ALIGNMENT), 0);
        let part = lent.into_part(ALIGNMENT..ALIGNMENT + 2);
        let other = part.slice(1..);
        assert_eq!(&part[..], [7, 0]);
        drop(part);
        assert_ne!(Lent::new(length).bytes().as_ptr(), place, "somebody has a part of it");
        drop(other);
        let again = [Lent::new(length), Lent::new(length)];
        assert!(again.into_iter().any(|mut lent| lent.bytes().as_ptr() == place));
    }
}
