//! Passes: functions from KIR to KIR, one file each.

pub mod arg_access;
pub mod byte_arrays;
pub mod const_fold;
pub mod contract;
mod counted;
pub mod cse;
pub mod dce;
pub mod early_exit;
pub mod expand_memcopy;
pub mod flip_compares;
pub mod flow;
pub mod guard_range;
pub mod idle_lanes;
pub mod inline;
pub mod legalize;
pub mod lower_args;
pub mod lower_atomic;
pub mod lower_builtin_vars;
pub mod lower_builtins;
pub mod lower_convert;
pub mod lower_dot;
pub mod lower_generic_ptr;
pub mod lower_globals;
pub mod lower_group;
pub mod lower_images;
pub mod lower_local;
pub mod lower_printf;
pub mod lower_private;
pub mod make_reducible;
pub mod mem2reg;
pub mod narrow_params;
pub mod repair_ssa;
pub mod resume_loops;
pub mod rewrite;
pub mod round_doubles;
pub mod share_calls;
pub mod simplify_cfg;
pub mod split_parts;
pub mod sroa;
pub mod structurize;
pub mod unroll_loops;
pub mod zero_tables;

use crate::ir::function::Function;

/// The clean-up that a function gets before it is inlined, and that follows lowering steps. True if it changed.
pub fn clean(func: &mut Function) -> bool {
    let mut changed = simplify_cfg::run(func);
    changed |= const_fold::run(func);
    changed |= sroa::run(func);
    changed |= mem2reg::run(func);
    changed |= narrow_params::run(func);
    changed |= const_fold::run(func);
    changed |= cse::run(func);
    changed |= simplify_cfg::run(func);
    changed |= dce::run(func);
    changed
}

/// [`clean`] until nothing changes, a few times at most.
pub fn optimize(func: &mut Function) {
    for _ in 0..4 {
        if !clean(func) {
            break;
        }
    }
}
