//! The quirks of drivers, and of LLVM as the compiler of a processor's code, that shape the code for
//! them: the one list of them. The runtime's table of quirks (docs/quirks.md) has a row for each, under
//! the same name, which says which versions have it.

/// Defines [`CodeQuirk`], and all of them as a list.
macro_rules! quirks {
    ($($(#[doc = $what:literal])+ $quirk:ident,)+) => {
        /// A defect or peculiarity of a driver, or of LLVM, that the compiler works around.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum CodeQuirk {
            $($(#[doc = $what])+ $quirk,)+
        }

        impl CodeQuirk {
            /// Every quirk.
            pub const ALL: &[Self] = &[$(Self::$quirk),+];
        }
    };
}

quirks! {
    /// A memory fence makes the work-items of a group wait for one another, and hangs in divergent
    /// control flow. Fences are left out, and atomics are relaxed.
    FencesWait,
    /// Memory is accessed an element at a time, whatever the vector, so that one 64-bit access costs
    /// less than two of 32 bits.
    LongWords,
    /// Loops whose limit is a negation end too soon
    /// ([`unsigned_compares`](crate::passes::quirks::unsigned_compares)).
    NegatedBounds,
    /// A 64-bit comparison of an extended value with a 32-bit constant is wrong
    /// ([`unsigned_compares`](crate::passes::quirks::unsigned_compares)).
    ExtendedCompares,
    /// Induction variables with a constant step are assumed not to wrap around
    /// ([`wrapping_induction`](crate::passes::quirks::wrapping_induction)).
    WrappingInduction,
    /// Trip counts are computed by a division of constants, even where the induction variable wraps
    /// around or is rounded ([`divided_trip_counts`](crate::passes::quirks::divided_trip_counts)).
    DividedTripCounts,
    /// `x * 0` is folded to 0 and `x + 0` to `x`
    /// ([`opaque_zeros`](crate::passes::quirks::opaque_zeros)).
    ConstantZeros,
    /// A selection between 1 and a zero of the other sign returns a zero of the wrong sign
    /// ([`opaque_zeros`](crate::passes::quirks::opaque_zeros)).
    ChosenSigns,
    /// The bit count of an 8- or 16-bit value includes the bits of its sign extension
    /// ([`narrow_bit_counts`](crate::passes::quirks::narrow_bit_counts)).
    NarrowBitCounts,
    /// A 64-bit division has a wrong result, or a product of its result is taken for that of another
    /// ([`lower_division`](crate::passes::lower_division)).
    MixedQuotients,
    /// Bytes that are swapped, complements that are repeated and single bits that are factors are wrong
    /// ([`folded_bits`](crate::passes::quirks::folded_bits)).
    FoldedBits,
    /// A loop whose trip count is a minimum or maximum of 8- or 16-bit integers loses iterations
    /// ([`narrow_extremes`](crate::passes::quirks::narrow_extremes)).
    NarrowExtremes,
    /// An integer that overflows a half is exact after it is widened again
    /// ([`half_overflow`](crate::passes::quirks::half_overflow)).
    HalfOverflow,
    /// A number that is rounded to half is exact after it is widened again
    /// ([`lower_convert`](crate::passes::lower_convert)).
    ForgottenHalves,
    /// A double or an integer that is rounded to float or half is exact after it is widened again
    /// ([`lower_convert`](crate::passes::lower_convert)).
    ForgottenRounding,
    /// A double that is narrowed to a subnormal float is 0 after it is widened again
    /// ([`lower_convert`](crate::passes::lower_convert)).
    FlushedFloats,
    /// Trunc and RoundEven of doubles are wrong
    /// ([`misrounded_doubles`](crate::passes::quirks::misrounded_doubles)).
    MisroundedDoubles,
    /// The values of a loop are computed again for work-items that have left it
    /// ([`overwritten_values`](crate::passes::quirks::overwritten_values)).
    OverwrittenValues,
    /// Branches that no work-item takes are skipped, and with them what they compute for the code
    /// after a loop that is left there alone
    /// ([`second_exits`](crate::passes::quirks::second_exits)).
    SkippedValues,
    /// Branches that are nested too deeply corrupt memory
    /// ([`nested_branches`](crate::passes::quirks::nested_branches)).
    NestedBranches,
    /// A NaN that is written to a normalised channel of an image becomes the channel's maximum.
    NanTexels,
    /// LLVM computes bits and chooses lanes for them in one instruction of AVX-512, with operands in
    /// a wrong order. An optimization barrier stands between the two.
    MergedBits,
    /// LLVM takes absolute differences of unsigned integers for those of signed ones
    /// ([`absolute_differences`](crate::passes::quirks::absolute_differences)).
    AbsoluteDifferences,
    /// LLVM moves a masked load to a selection by its mask, past stores. Such loads are frozen.
    MovedLoads,
    /// LLVM has no code for the bits of masks as halfs. They go through a general register.
    HalvesOfMasks,
}

/// A set of quirks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CodeQuirks(u32);

const _: () = assert!(CodeQuirk::ALL.len() <= u32::BITS as usize);

impl CodeQuirks {
    /// Returns true if the quirk is one of these.
    pub fn has(self, quirk: CodeQuirk) -> bool {
        self.0 & 1 << quirk as u32 != 0
    }

    /// Returns these and the quirk.
    pub fn with(self, quirk: CodeQuirk) -> Self {
        Self(self.0 | 1 << quirk as u32)
    }

    /// Returns these except the quirk.
    pub fn without(self, quirk: CodeQuirk) -> Self {
        Self(self.0 & !(1 << quirk as u32))
    }
}

impl FromIterator<CodeQuirk> for CodeQuirks {
    fn from_iter<T: IntoIterator<Item = CodeQuirk>>(quirks: T) -> Self {
        quirks.into_iter().fold(Self::default(), Self::with)
    }
}

impl<const N: usize> From<[CodeQuirk; N]> for CodeQuirks {
    fn from(quirks: [CodeQuirk; N]) -> Self {
        quirks.into_iter().collect()
    }
}

/// The names: they are part of cache keys.
impl std::fmt::Debug for CodeQuirks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = CodeQuirk::ALL.iter().filter(|&&quirk| self.has(quirk));
        f.debug_set().entries(all).finish()
    }
}
