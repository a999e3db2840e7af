//! How passes change functions: the tools that several of them use. They know `ir` and `analysis`, no pass.

pub mod early_exit;
pub mod flow;
pub mod repair_ssa;
pub mod rewrite;
pub mod unknown_zero;
