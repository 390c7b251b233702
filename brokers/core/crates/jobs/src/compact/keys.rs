//! The newest offset of each key in the dirty part of a log, as in Kafka's `SkimpyOffsetMap`. A key
//! is represented by 128 bits of its SHA-256, so that the memory does not depend on its length.
//!
//! The table is allocated once, as large as it may get: a table that grows takes its memory twice
//! for a moment.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use sha2::{Digest, Sha256};

use super::DirtyRange;

/// The bytes of one place in the table: 16 for the key's digest, 8 for the offset, and one of the
/// table itself. Tables have 2ⁿ places, of which one eighth stays free.
const PLACE_BYTES: usize = 25;

type KeyDigest = [u8; 16];

/// A hasher that takes the first bytes of a digest as the hash, since a digest is random already.
#[derive(Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    /// XORs the first 8 of `bytes` into the hash, the first byte lowest, and ignores the rest. The
    /// table of [`KeyOffsets`] calls it once for each key, with a [`KeyDigest`] of 16 bytes.
    fn write(&mut self, bytes: &[u8]) {
        for (place, byte) in bytes.iter().take(8).enumerate() {
            self.0 ^= u64::from(*byte) << (8 * place);
        }
    }

    // The length of the array comes first and is always the same, so it is ignored.
    fn write_usize(&mut self, _: usize) {}
}

/// The newest offset of each key that was noted.
pub struct KeyOffsets {
    newest: HashMap<KeyDigest, i64, BuildHasherDefault<DigestHasher>>,
    keys_max: usize,
    /// The offset up to which, from the start of the dirty part, every record was noted.
    pub end: i64,
}

impl KeyOffsets {
    /// Creates a table for a dirty part, in at most `bytes_max` bytes of memory. There is room for
    /// one key in any case.
    pub fn new(range: DirtyRange, bytes_max: usize) -> Self {
        let places = (bytes_max / PLACE_BYTES).max(1);
        let places = 1_usize << places.ilog2();
        let keys_max = (places / 8 * 7).max(1);
        // A log has no more keys than offsets.
        let offsets = range.until.saturating_sub(range.from).max(0);
        let expected = usize::try_from(offsets).unwrap_or(usize::MAX).min(keys_max);
        let newest = HashMap::with_capacity_and_hasher(expected, BuildHasherDefault::default());
        Self { newest, keys_max, end: range.from }
    }

    /// Notes a record's key and offset. Records must be noted in the order of offsets. Returns
    /// false where there is no room for the key.
    pub fn note(&mut self, key: &[u8], offset: i64) -> bool {
        let key = digest(key);
        if let Some(newest) = self.newest.get_mut(&key) {
            *newest = offset;
            return true;
        }
        let has_room = self.newest.len() < self.keys_max;
        if has_room {
            self.newest.insert(key, offset);
        }
        has_room
    }

    /// Whether a record at `offset` below [`KeyOffsets::end`] is the newest of its key.
    pub fn is_newest(&self, key: &[u8], offset: i64) -> bool {
        self.newest.get(&digest(key)).is_none_or(|newest| offset >= *newest)
    }
}

fn digest(key: &[u8]) -> KeyDigest {
    let whole: [u8; 32] = Sha256::digest(key).into();
    let mut digest = [0; 16];
    digest.copy_from_slice(&whole[..16]);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(offsets: i64, bytes_max: usize) -> KeyOffsets {
        KeyOffsets::new(DirtyRange { from: 0, until: offsets }, bytes_max)
    }

    #[test]
    fn of_each_key_the_last_offset_is_the_newest() {
        let mut keys = of(10, 1 << 20);
        for (key, offset) in [("a", 0), ("b", 1), ("a", 2), ("", 3)] {
            assert!(keys.note(key.as_bytes(), offset));
        }
        let newest = |key: &str, offset| keys.is_newest(key.as_bytes(), offset);
        assert!(newest("a", 2) && newest("b", 1) && newest("", 3));
        assert!(!newest("a", 0) && !newest("a", 1) && !newest("", 2));
        assert!(newest("unknown", 0), "nothing supersedes a key that was not noted");
    }

    #[test]
    fn a_full_table_takes_no_further_key_and_later_offsets_of_those_it_has() {
        let mut keys = of(1 << 40, 16 * PLACE_BYTES);
        let taken = (0..100_u8).filter(|key| keys.note(&[*key], i64::from(*key))).count();
        assert_eq!(taken, 14, "of 16 places two are kept free");
        assert!(keys.note(&[0], 100) && !keys.is_newest(&[0], 0));
        assert!(keys.is_newest(&[99], 99), "what had no room is not judged");
    }

    #[test]
    fn the_table_takes_the_memory_that_it_may_and_never_grows() {
        for bytes_max in [1_000, 4_096, 100_000, 1 << 20] {
            let mut keys = of(i64::MAX, bytes_max);
            let capacity = keys.newest.capacity();
            for key in 0_u32.. {
                if !keys.note(&key.to_le_bytes(), 0) {
                    break;
                }
            }
            assert_eq!((keys.newest.len(), keys.newest.capacity()), (capacity, capacity));
            let places = capacity / 7 * 8;
            assert!(places * PLACE_BYTES <= bytes_max, "{capacity} keys in {bytes_max} bytes");
            assert!(places * PLACE_BYTES * 2 > bytes_max, "{capacity} keys in {bytes_max} bytes");
        }
        assert!(of(100, 1 << 30).newest.capacity() < 200, "no more than the dirty part may hold");
    }

    #[test]
    fn one_key_has_room_whatever_the_memory() {
        let mut keys = of(10, 0);
        assert!(keys.note(b"a", 0) && keys.note(b"a", 1));
        assert!(!keys.note(b"b", 2));
    }
}
