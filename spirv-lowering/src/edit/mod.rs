//! Tools that several passes use to change functions. They depend on `ir` and `analysis`, not on
//! passes.

pub mod early_exit;
pub mod flow;
pub mod opaque;
pub mod repair_ssa;
pub mod rewrite;
pub mod slots;
