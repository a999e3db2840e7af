//! Workarounds for faults of drivers' compilers. A driver without defects needs none of these
//! passes: each runs only for a target that has its quirk.
//!
//! A pass has the name of its quirk, except two that each serve two: [`unsigned_compares`]
//! ([`NegatedBounds`], [`ExtendedCompares`]) and [`opaque_zeros`] ([`ConstantZeros`], [`ChosenSigns`]).
//!
//! [`NegatedBounds`]: crate::quirks::CodeQuirk::NegatedBounds
//! [`ExtendedCompares`]: crate::quirks::CodeQuirk::ExtendedCompares
//! [`ConstantZeros`]: crate::quirks::CodeQuirk::ConstantZeros
//! [`ChosenSigns`]: crate::quirks::CodeQuirk::ChosenSigns

pub mod absolute_differences;
pub mod divided_trip_counts;
pub mod folded_bits;
pub mod half_overflow;
pub mod misrounded_doubles;
pub mod narrow_bit_counts;
pub mod narrow_extremes;
pub mod nested_branches;
pub mod opaque_zeros;
pub mod overwritten_values;
pub mod second_exits;
pub mod unsigned_compares;
pub mod wrapping_induction;
