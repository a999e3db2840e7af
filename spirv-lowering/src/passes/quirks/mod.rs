//! Workarounds for faults of drivers' compilers. A driver without defects needs none of these passes: each runs only for a target
//! that has the quirk.

pub mod absolute_differences;
pub mod divided_trip_counts;
pub mod half_overflow;
pub mod misrounded_doubles;
pub mod narrow_bit_counts;
pub mod narrow_extremes;
pub mod opaque_operands;
pub mod opaque_zeros;
pub mod overwritten_values;
pub mod unsigned_compares;
pub mod wrapping_induction;
