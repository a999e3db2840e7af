//! Passes that make up for what a driver's compiler gets wrong. None of them is needed for a driver without defects: each
//! runs only for a target that says so.

pub mod atomic_floats;
pub mod divided_counts;
pub mod flip_compares;
pub mod half_overflow;
pub mod hide_zeros;
pub mod idle_lanes;
pub mod loop_results;
pub mod misrounded_doubles;
pub mod narrow_counts;
pub mod resume_loops;
pub mod split_parts;
pub mod unroll_loops;
pub mod wrapping_counters;
