//! Facts about a function, valid until its control flow (or, for `uses`, any operand) changes. They
//! depend on `ir` alone; all take time near linear in the size of the function. Those of the control
//! flow alone are kept for the passes to come ([`control_flow::Analyses`]).

pub mod alignment;
pub mod alloca;
pub mod arg_access;
pub mod cfg;
pub mod constant_trip_counts;
pub mod control_flow;
pub mod dom;
pub mod iterations;
pub mod joins;
pub mod live;
pub mod loops;
pub mod narrow_induction;
pub mod uses;
pub mod waits;
