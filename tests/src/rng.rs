//! Random numbers that a seed determines (xorshift64*).

use std::ops::Range;

/// A generator.
pub struct Rng(u64);

impl Rng {
    /// Number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        // splitmix64, so that neighbouring seeds have nothing in common.
        let mut z = seed
            .wrapping_add(stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((z ^ (z >> 31)) | 1)
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        ((self.bits() >> 32) as usize) % limit
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of some things.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A range that is not empty within `size`, on multiples of `step`; short ones are likelier.
    pub fn range(&mut self, size: usize, step: usize) -> Range<usize> {
        let units = size / step;
        let most = if self.percent(70) {
            units.min(1024)
        } else {
            units
        };
        let length = 1 + self.below(most);
        let start = self.below(units - length + 1);
        start * step..(start + length) * step
    }

    /// So many random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(&self.bits().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}
