//! Generated kernels, and the proof of passes with them.
//!
//! [`generate`] makes a kernel with its ND-range and arguments from a seed; [`prove`] lowers it for some
//! [`Target`](crate::target::Target) and compares what it does before and after each pass, by the interpreter
//! ([`crate::interp`]); [`shrink`] makes a kernel that shows a fault smaller. `prove-tool` does so for many seeds.
//! [`operations`] makes kernels of every operation on chosen operands.

pub mod generate;
pub mod operations;
pub mod prove;
pub mod rng;
pub mod shrink;
