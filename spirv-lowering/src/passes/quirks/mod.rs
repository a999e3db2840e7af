//! Workarounds for faults of drivers' compilers. A driver without defects needs none of these passes: each runs only for a target
//! that has the quirk.

pub mod atomic_floats;
pub mod divided_trip_counts;
pub mod half_overflow;
pub mod inactive_lanes;
pub mod loop_results;
pub mod misrounded_doubles;
pub mod narrow_bit_counts;
pub mod opaque_zeros;
pub mod resume_loops;
pub mod split_parts;
pub mod unroll_loops;
pub mod unsigned_compares;
pub mod wrapping_induction;
