//! Generated kernels, and the proof of passes with them.
//!
//! [`generate`] makes a kernel with its ND-range and arguments from a seed; [`prove`] lowers it for
//! some [`Target`](crate::target::Target) and compares, by the interpreter ([`crate::interp`]), its
//! results before and after each pass; [`shrink`] reduces a kernel that shows a fault. `prove-tool`
//! does so for many seeds. [`operations`] makes kernels of every operation on chosen operands.

pub mod claims;
pub mod generate;
pub mod operations;
pub mod prove;
pub mod rng;
pub mod shrink;
