//! Passes that make up for what a driver's compiler gets wrong. None of them is needed for a driver without defects: each
//! runs only for a target that says so.

pub mod bound_halves;
pub mod flip_compares;
pub mod hide_counts;
pub mod hide_floats;
pub mod hide_steps;
pub mod hide_zeros;
pub mod idle_lanes;
pub mod loop_results;
pub mod narrow_counts;
pub mod resume_loops;
pub mod round_doubles;
pub mod split_parts;
pub mod unroll_loops;
