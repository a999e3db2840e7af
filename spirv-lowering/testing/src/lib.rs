//! Generated kernels, and the proof of the compiler's passes with them.
//!
//! [`generate`] makes a kernel with its ND-range and arguments from a seed; [`prove`] lowers it for
//! some [`Target`](spirv_lowering::target::Target) and compares, by the interpreter
//! ([`spirv_lowering::interp`]), its results before and after each pass; [`shrink`] reduces a
//! kernel that shows a fault. `prove-tool` does so for many seeds. [`claims`] checks what analyses
//! claim of a generated kernel in each stage of its lowering ([`collect_claims`]). [`operations`]
//! makes kernels of every operation on chosen operands.
#![forbid(unsafe_code)]

pub mod claims;
pub mod collect_claims;
pub mod generate;
pub mod operations;
pub mod prove;
pub mod rng;
pub mod shrink;
