//! Passes: functions from KIR to KIR, one file each.

pub mod dce;
pub mod inline;
pub mod mem2reg;
pub mod simplify_cfg;

use crate::ir::function::Function;

/// The clean-up that a function gets before it is inlined, and that follows lowering steps.
pub fn clean(func: &mut Function) {
    simplify_cfg::run(func);
    mem2reg::run(func);
    dce::run(func);
}
