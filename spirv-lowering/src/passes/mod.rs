//! Passes: functions from KIR to KIR, one file each.

pub mod byte_arrays;
pub mod claims;
pub mod const_fold;
pub mod contract;
pub mod cse;
pub mod dce;
pub mod expand_memcopy;
pub mod fold_constant_loads;
pub mod guard_range;
pub mod inline;
pub mod legalize;
pub mod lower_args;
pub mod lower_atomic;
pub mod lower_builtin_vars;
pub mod lower_builtins;
pub mod lower_convert;
pub mod lower_division;
pub mod lower_dot;
pub mod lower_generic_ptr;
pub mod lower_globals;
pub mod lower_group;
pub mod lower_half_atomic;
pub mod lower_images;
pub mod lower_int16;
pub mod lower_int64;
pub mod lower_local;
pub mod lower_printf;
pub mod lower_private;
pub mod lower_subgroup_size;
pub mod mem2reg;
pub mod narrow_params;
pub mod narrow_uses;
pub mod quirks;
pub mod release_locks;
pub mod separate_loops;
pub mod share_calls;
pub mod simplify_cfg;
pub mod split_sub_groups;
pub mod sroa;
pub mod structurize;
pub mod unroll_loops;
pub mod wide_range;
pub mod zero_memory;

use crate::analysis::control_flow::Analyses;
use crate::error::Result;
use crate::ir::function::Function;

/// A pass of the clean-up, which makes code smaller and simpler at any stage.
pub struct CleanUp {
    /// The name, which is that of its file.
    pub name: &'static str,
    /// The function that runs it. It returns true if the function changed.
    pub run: fn(&mut Function, &mut Analyses) -> bool,
}

/// The passes that every function gets before it is inlined, and after lowering steps.
pub static CLEAN_UP: &[CleanUp] = &[
    CleanUp {
        name: "simplify_cfg",
        run: simplify_cfg::run,
    },
    CleanUp {
        name: "sroa",
        run: sroa::run,
    },
    CleanUp {
        name: "mem2reg",
        run: mem2reg::run,
    },
    CleanUp {
        name: "narrow_uses",
        run: |func, _| narrow_uses::run(func),
    },
    CleanUp {
        name: "narrow_params",
        run: narrow_params::run,
    },
    CleanUp {
        name: "const_fold",
        run: const_fold::run,
    },
    CleanUp {
        name: "cse",
        run: cse::run,
    },
    CleanUp {
        name: "dce",
        run: |func, _| dce::run(func),
    },
];

/// The most rounds of the clean-up.
const ROUNDS: usize = 8;

/// Runs the clean-up until nothing changes; `run` runs one pass of it. Returns true if the function
/// changed.
pub fn clean_up(
    func: &mut Function,
    run: &mut dyn FnMut(&CleanUp, &mut Function) -> Result<bool>,
) -> Result<bool> {
    // A pass runs again only if another one changed something since.
    let mut changes = 1usize;
    let mut seen = [0; CLEAN_UP.len()];
    let mut ever = false;
    for _ in 0..ROUNDS {
        let before = changes;
        for (pass, seen) in CLEAN_UP.iter().zip(&mut seen) {
            if *seen == changes {
                continue;
            }
            let changed = run(pass, func)?;
            ever |= changed;
            // What is dead hardly ever hides something from the others.
            changes += usize::from(changed && pass.name != "dce");
            *seen = changes;
        }
        if changes == before {
            break;
        }
    }
    Ok(ever)
}

/// Runs the clean-up without other work. Returns true if the function changed.
pub fn clean(func: &mut Function) -> bool {
    let mut analyses = Analyses::default();
    // None of these fails.
    clean_up(func, &mut |pass, func| Ok((pass.run)(func, &mut analyses))).unwrap_or(false)
}
