//! Values with unknown bits.

use crate::ir::types::Type;

/// A value: its bits, zero-extended, and which of them are unknown. Unknown bits have an arbitrary value in `bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Scalar {
    /// The bits.
    pub bits: u64,
    /// Set where a bit could as well be the other.
    pub unknown: u64,
}

impl Scalar {
    /// A value that is known.
    pub fn known(bits: u64) -> Self {
        Self { bits, unknown: 0 }
    }
    /// A value of which nothing is known.
    pub fn unknown(ty: Type, noise: u64) -> Self {
        Self {
            bits: noise & ty.mask(),
            unknown: ty.mask(),
        }
    }
    /// All bits are known.
    pub fn is_known(self) -> bool {
        self.unknown == 0
    }
    /// The same value, as good as another: equal wherever this one is known.
    pub fn allows(self, other: Self) -> bool {
        (self.bits ^ other.bits) & !self.unknown == 0
    }
}
