//! Values with unknown bits.

use crate::ir::types::Type;

/// A value: its bits, zero-extended, and which of them are unknown. Unknown bits have an arbitrary value in `bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Scalar {
    /// The bits.
    pub bits: u64,
    /// Set where a bit could have either value.
    pub unknown: u64,
}

impl Scalar {
    /// Creates a value whose bits are all known.
    pub fn known(bits: u64) -> Self {
        Self { bits, unknown: 0 }
    }
    /// Creates a value whose bits are all unknown.
    pub fn unknown(ty: Type, noise: u64) -> Self {
        Self {
            bits: noise & ty.mask(),
            unknown: ty.mask(),
        }
    }
    /// Returns true if all bits are known.
    pub fn is_known(self) -> bool {
        self.unknown == 0
    }
    /// Returns true if `other` may replace this value: it is equal wherever this one is known.
    pub fn allows(self, other: Self) -> bool {
        (self.bits ^ other.bits) & !self.unknown == 0
    }
}
