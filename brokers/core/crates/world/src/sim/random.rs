//! Seeded randomness: SplitMix64 (Steele, Lea and Flood, 2014).

use parking_lot::Mutex;

use crate::env::Randomness;

/// A generator that returns the same numbers for the same seed.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    /// A generator that starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` (0 where the bound is 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `per_mille` of a thousand calls.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// A new generator, for a part of the world, seeded by this one.
    pub fn fork(&mut self) -> Self {
        Self(self.next_u64())
    }
}

/// The randomness of one host.
pub struct SeededRandomness(Mutex<Seeded>);

impl SeededRandomness {
    /// The randomness of a generator.
    pub fn new(seeded: Seeded) -> Self {
        Self(Mutex::new(seeded))
    }
}

impl Randomness for SeededRandomness {
    fn fill(&self, buffer: &mut [u8]) {
        let mut seeded = self.0.lock();
        for piece in buffer.chunks_mut(8) {
            let bytes = seeded.next_u64().to_le_bytes();
            piece.copy_from_slice(&bytes[..piece.len()]);
        }
    }
}
