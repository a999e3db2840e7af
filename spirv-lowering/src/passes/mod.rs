//! Passes: functions from KIR to KIR, one file each.

pub mod arg_access;
pub mod byte_arrays;
pub mod const_fold;
pub mod dce;
pub mod expand_memcopy;
pub mod flow;
pub mod inline;
pub mod legalize;
pub mod lower_args;
pub mod lower_atomic;
pub mod lower_builtin_vars;
pub mod lower_builtins;
pub mod lower_convert;
pub mod lower_generic_ptr;
pub mod lower_globals;
pub mod lower_local;
pub mod lower_printf;
pub mod lower_private;
pub mod make_reducible;
pub mod mem2reg;
pub mod repair_ssa;
pub mod rewrite;
pub mod simplify_cfg;
pub mod structurize;

use crate::ir::function::Function;

/// The clean-up that a function gets before it is inlined, and that follows lowering steps.
pub fn clean(func: &mut Function) {
    simplify_cfg::run(func);
    mem2reg::run(func);
    const_fold::run(func);
    simplify_cfg::run(func);
    dce::run(func);
}
