//! The newest offset of each key of the dirty part: Kafka's `SkimpyOffsetMap`. Keys are told apart
//! by 128 bits of their SHA-256, so that memory does not depend on their length.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use sha2::{Digest, Sha256};

/// Memory of one key, in bytes: what stands for it, its offset, and room that the table keeps free.
const KEY_BYTES: usize = 48;

type KeyDigest = [u8; 16];

/// Takes a digest as its own hash.
#[derive(Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for (place, byte) in bytes.iter().take(8).enumerate() {
            self.0 ^= u64::from(*byte) << (8 * place);
        }
    }

    // Of an array the length comes first, and says nothing.
    fn write_usize(&mut self, _: usize) {}
}

/// See the module.
pub struct KeyOffsets {
    newest: HashMap<KeyDigest, i64, BuildHasherDefault<DigestHasher>>,
    keys_max: usize,
    /// Everything from the start of the dirty part up to here was noted.
    pub end: i64,
}

impl KeyOffsets {
    /// For a dirty part that starts at `from`, in about `bytes_max` bytes of memory.
    pub fn new(from: i64, bytes_max: usize) -> Self {
        Self { newest: HashMap::default(), keys_max: (bytes_max / KEY_BYTES).max(1), end: from }
    }

    /// Notes a record; later ones have higher offsets.
    pub fn note(&mut self, key: &[u8], offset: i64) {
        self.newest.insert(digest(key), offset);
    }

    /// Whether no further batch should be noted.
    pub fn is_full(&self) -> bool {
        self.newest.len() >= self.keys_max
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
