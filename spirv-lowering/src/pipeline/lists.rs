//! The passes in order: a list for what every target shares, then one for Vulkan and one for
//! processors.
//!
//! The rules that passes leave ([`Rule`]) expose a pass that is listed under another name than its
//! file's, or that runs before a pass it relies on: in tests the verifier checks all rules after
//! each pass.

use super::lowering::Lowering;
use super::pass::{Pass, Step};
use crate::analysis::arg_access;
use crate::analysis::control_flow::Analyses;
use crate::error::{LowerError, Result};
use crate::interface::{Arg, ArgKind, KernelInterface};
use crate::ir::compact::compact;
use crate::ir::function::{Function, Storage};
use crate::ir::verify::rules::Rule;
use crate::native;
use crate::passes::quirks::opaque_zeros::Zeros;
use crate::passes::quirks::unsigned_compares::Compares;
use crate::passes::quirks::*;
use crate::passes::*;
use crate::quirks::CodeQuirk;
use crate::target::Target;
use Step::CleanUp;

/// The passes from the inlined kernel to KIR without generic pointers, program-scope variables and
/// printf.
pub static SHARED: &[Step] = &[
    CleanUp,
    optional("separate_loops", |func, _| Ok(separate_loops::run(func))),
    // What was deleted is left behind in the arenas; the passes to come run faster without.
    optional("compact", |func, _| {
        *func = compact(func);
        Ok(false)
    }),
    optional("fold_constant_loads", |func, l| {
        fold_constant_loads::run(func, &l.program.globals)
    }),
    needed(
        "lower_generic_ptr",
        &[Rule::NoGenericPointers],
        |func, _| {
            lower_generic_ptr::run(func)?;
            Ok(true)
        },
    ),
    CleanUp,
    optional("unroll_loops", |func, l| {
        let unrolled = unroll_loops::run(func);
        if unrolled {
            // The loops may have read tables.
            const_fold::run(func, &mut Analyses::default());
            fold_constant_loads::run(func, &l.program.globals)?;
        }
        Ok(unrolled)
    }),
    CleanUp,
    needed("arg_access", &[], |func, l| {
        l.access = arg_access::analyse(func);
        l.indirect |= l.access.indirect;
        l.access.indirect = l.indirect;
        l.collective |= lower_group::uses(func);
        Ok(false)
    }),
    needed("release_locks", &[], |func, l| {
        Ok(release_locks::run(func, &l.looking))
    }),
];

/// The passes from there to what Vulkan's SPIR-V can express.
pub static VULKAN: &[Step] = &[
    // From here on sub-groups are those of the device.
    only_if(
        needed("lower_subgroup_size", &[], |func, l| {
            lower_subgroup_size::run(func, &l.kernel.attributes, l.target)?;
            Ok(true)
        }),
        |_, l| l.collective && lower_subgroup_size::applies(&l.kernel.attributes, l.target),
    ),
    needed("lower_images", &[Rule::NoImageAccess], |func, l| {
        l.images = lower_images::run(func, l.kernel, l.target)?;
        Ok(true)
    }),
    needed("lower_printf", &[Rule::NoPrintf], |func, l| {
        let (sites, variables) = (&l.program.printfs, &l.program.globals);
        l.printfs = lower_printf::run(func, sites, variables)?;
        Ok(true)
    }),
    only_if(
        needed("lower_group", &[Rule::NoWorkGroupOperations], |func, l| {
            lower_group::run(func, &mut l.reached.globals, l.target)?;
            Ok(true)
        }),
        |_, l| l.collective,
    ),
    only_if(
        optional("guard_range", |func, l| {
            l.guarded = guard_range::run(func)?;
            Ok(l.guarded)
        }),
        |func, l| !l.target.wide_range && guard_range::applies(func, l.kernel, &l.reached),
    ),
    only_if(
        needed("wide_range", &[], |func, _| wide_range::run(func)),
        |_, l| l.target.wide_range,
    ),
    needed("lower_builtin_vars", &[Rule::NoBuiltins], |func, l| {
        let arrangement = lower_builtin_vars::Arrangement {
            lanes: l.collective.then_some(l.target.subgroup_size),
            linear: true,
        };
        lower_builtin_vars::run(func, arrangement)?;
        Ok(true)
    }),
    needed("lower_globals", &[Rule::NoProgramVariables], |func, l| {
        lower_globals::run(func, &l.reached, l.layout)?;
        Ok(true)
    }),
    needed("lower_dot", &[], |func, l| {
        lower_dot::run(func, l.target)?;
        Ok(true)
    }),
    needed("lower_convert", &[], |func, l| {
        lower_convert::run(func, l.target)?;
        Ok(true)
    }),
    CleanUp,
    only_if(
        optional("wrapping_induction", |func, _| {
            wrapping_induction::run(func)
        }),
        |_, l| l.target.quirks.has(CodeQuirk::WrappingInduction),
    ),
    needed(
        "lower_args",
        &[Rule::NoArguments, Rule::NoImageQueries],
        |func, l| {
            let interface = lower_args(func, l)?;
            l.interface = Some(KernelInterface {
                uses_subgroups: l.collective,
                guarded: l.guarded,
                ..interface
            });
            Ok(true)
        },
    ),
    CleanUp,
    needed("expand_memcopy", &[Rule::NoMemCopy], |func, _| {
        expand_memcopy::run(func)?;
        Ok(true)
    }),
    CleanUp,
    needed("lower_half_atomic", &[], |func, l| {
        lower_half_atomic::run(func, l.target)
    }),
    needed("lower_atomic", &[], |func, l| {
        lower_atomic::run(func, l.target)?;
        Ok(true)
    }),
    needed("lower_local", &[Rule::NoLocalPointers], lower_local_memory),
    needed("lower_private", &[Rule::NoPrivatePointers], |func, l| {
        interface(l)?.private_size = lower_private::run(func)?;
        Ok(true)
    }),
    zero_memory(),
    CleanUp,
    needed("legalize", &[], |func, _| {
        legalize::run(func)?;
        Ok(true)
    }),
    only_if(
        needed("lower_division", &[], |func, l| {
            lower_division::run(func, !l.target.int64)
        }),
        |_, l| !l.target.int64 || l.target.quirks.has(CodeQuirk::MixedQuotients),
    ),
    CleanUp,
    optional("contract", |func, l| {
        Ok(contract::run(func, l.target) && dce::run(func))
    }),
    only_if(
        optional("narrow_bit_counts", |func, _| {
            narrow_bit_counts::run(func)?;
            Ok(true)
        }),
        |_, l| l.target.quirks.has(CodeQuirk::NarrowBitCounts),
    ),
    only_if(
        optional("narrow_extremes", |func, _| {
            narrow_extremes::run(func)?;
            Ok(true)
        }),
        |_, l| l.target.quirks.has(CodeQuirk::NarrowExtremes),
    ),
    only_if(
        optional("divided_trip_counts", |func, _| {
            divided_trip_counts::run(func)
        }),
        |_, l| l.target.quirks.has(CodeQuirk::DividedTripCounts),
    ),
    only_if(
        optional("half_overflow", |func, _| half_overflow::run(func)),
        |_, l| l.target.quirks.has(CodeQuirk::HalfOverflow),
    ),
    only_if(
        optional("unsigned_compares", |func, l| {
            let which = Compares {
                of_negations: l.target.quirks.has(CodeQuirk::NegatedBounds),
                of_extended: l.target.quirks.has(CodeQuirk::ExtendedCompares),
            };
            unsigned_compares::run(func, which)
        }),
        |_, l| {
            l.target.quirks.has(CodeQuirk::NegatedBounds)
                || l.target.quirks.has(CodeQuirk::ExtendedCompares)
        },
    ),
    only_if(
        optional("misrounded_doubles", |func, _| {
            misrounded_doubles::run(func)?;
            Ok(true)
        }),
        |_, l| l.target.quirks.has(CodeQuirk::MisroundedDoubles),
    ),
    only_if(
        optional("folded_bits", |func, _| folded_bits::run(func)),
        |_, l| l.target.quirks.has(CodeQuirk::FoldedBits),
    ),
    only_if(
        optional("opaque_zeros", |func, l| {
            let all = l.target.quirks.has(CodeQuirk::ConstantZeros);
            opaque_zeros::run(func, if all { Zeros::All } else { Zeros::Chosen })
        }),
        |_, l| {
            l.target.quirks.has(CodeQuirk::ConstantZeros)
                || l.target.quirks.has(CodeQuirk::ChosenSigns)
        },
    ),
    // Quirks are over, which make integers of all widths. Other targets need no clean-up here.
    only_if(
        needed("lower_int16", &[Rule::NoInt16], |func, l| {
            lower_int16::run(func, l.target)?;
            Ok(true)
        }),
        |func, l| lower_int16::applies(func, l.target),
    ),
    only_if(
        needed("lower_int64", &[Rule::NoInt64], |func, _| {
            lower_int64::run(func)?;
            clean(func);
            Ok(true)
        }),
        |_, l| !l.target.int64,
    ),
    needed("structurize", &[Rule::Structured], |func, _| {
        structurize::run(func)?;
        Ok(true)
    }),
    only_if(
        optional("overwritten_values", |func, _| {
            Ok(overwritten_values::run(func))
        }),
        |_, l| l.target.quirks.has(CodeQuirk::OverwrittenValues),
    ),
    only_if(
        needed("nested_branches", &[], |func, _| {
            nested_branches::check(func)?;
            Ok(false)
        }),
        |_, l| l.target.quirks.has(CodeQuirk::NestedBranches),
    ),
    only_if(
        optional("second_exits", |func, _| Ok(second_exits::run(func))),
        |_, l| l.target.quirks.has(CodeQuirk::SkippedValues),
    ),
];

/// The passes from there to what code for processors is made of: memory has addresses, except that
/// of work-items.
pub static NATIVE: &[Step] = &[
    // From here on sub-groups are packs.
    needed("split_sub_groups", &[], |func, l| {
        let size = l.kernel.attributes.sub_group_size(l.lanes);
        let split = size != l.lanes && (l.is_callee || !split_sub_groups::must_be_packs(func));
        if !split {
            l.lanes = size;
            return Ok(false);
        }
        let changed = split_sub_groups::run(func, size)?;
        if !l.is_callee {
            l.collective = lower_group::uses(func);
        }
        Ok(changed)
    }),
    of_kernel(needed("lower_images", &[Rule::NoImageAccess], |func, l| {
        l.images = lower_images::run(func, l.kernel, l.target)?;
        Ok(true)
    })),
    of_kernel(needed("lower_printf", &[Rule::NoPrintf], |func, l| {
        let (sites, variables) = (&l.program.printfs, &l.program.globals);
        l.printfs = lower_printf::run(func, sites, variables)?;
        Ok(true)
    })),
    of_kernel(only_if(
        needed("lower_group", &[Rule::NoWorkGroupOperations], |func, l| {
            let target = Target {
                subgroup_size: l.lanes,
                ..l.target.clone()
            };
            lower_group::run(func, &mut l.reached.globals, &target)?;
            Ok(true)
        }),
        |_, l| l.collective,
    )),
    only_if(
        needed("wide_range", &[], |func, _| wide_range::run(func)),
        |_, l| l.target.wide_range,
    ),
    needed("lower_builtin_vars", &[Rule::NoBuiltins], |func, l| {
        let arrangement = lower_builtin_vars::Arrangement {
            lanes: l.collective.then_some(l.lanes),
            linear: false,
        };
        lower_builtin_vars::run(func, arrangement)?;
        Ok(true)
    }),
    needed("lower_globals", &[Rule::NoProgramVariables], |func, l| {
        lower_globals::run(func, &l.reached, l.layout)?;
        Ok(true)
    }),
    needed("lower_dot", &[], |func, l| {
        lower_dot::run(func, l.target)?;
        Ok(true)
    }),
    needed("lower_convert", &[], |func, l| {
        lower_convert::run(func, l.target)?;
        Ok(true)
    }),
    CleanUp,
    needed(
        "lower_args",
        &[Rule::NoArguments, Rule::NoImageQueries],
        |func, l| {
            if l.is_callee {
                l.implicits.extend(lower_args::used_implicits(func));
                return Ok(false);
            }
            let interface = lower_args(func, l)?;
            l.interface = Some(KernelInterface {
                uses_subgroups: l.collective,
                lanes: l.lanes,
                ..interface
            });
            Ok(true)
        },
    ),
    CleanUp,
    needed("expand_memcopy", &[Rule::NoMemCopy], |func, _| {
        expand_memcopy::run(func)?;
        Ok(true)
    }),
    CleanUp,
    needed("lower_atomic", &[], |func, l| {
        lower_atomic::run(func, l.target)?;
        Ok(true)
    }),
    needed("lower_private", &[Rule::NoPrivatePointers], |func, l| {
        l.private_size = l.private_size.saturating_add(lower_private::run(func)?);
        if !l.is_callee {
            interface(l)?.private_size = l.private_size;
        }
        Ok(true)
    }),
    zero_memory(),
    CleanUp,
    optional("contract", |func, l| {
        Ok(contract::run(func, l.target) && dce::run(func))
    }),
    of_kernel(needed("local_size", &[], |func, l| {
        interface(l)?.local_size = native::locals(&l.reached.globals, func)?.bytes;
        Ok(false)
    })),
];

type Run = fn(&mut Function, &mut Lowering) -> Result<bool>;

/// Creates a pass that every kernel needs.
const fn needed(name: &'static str, leaves: &'static [Rule], run: Run) -> Step {
    Step::Pass(Pass {
        name,
        needed: true,
        callees: true,
        when: |_, _| true,
        run,
        leaves,
    })
}

/// Creates a pass that a kernel can be lowered without.
const fn optional(name: &'static str, run: Run) -> Step {
    Step::Pass(Pass {
        name,
        needed: false,
        callees: true,
        when: |_, _| true,
        run,
        leaves: &[],
    })
}

/// Returns the pass that writes zeros to what is left of memory, where it is to be zero. Passes
/// have promoted what they could.
const fn zero_memory() -> Step {
    only_if(
        needed("zero_memory", &[], |func, l| {
            let (private, local) = (func.zeroed, l.kernel.attributes.zero_local);
            let changed = zero_memory::run(func, |_, data| match data.storage {
                Storage::Function => private,
                Storage::Workgroup => local,
            });
            if let (true, Some(interface)) = (changed, &mut l.interface) {
                interface.instruction_bound = u32::MAX;
            }
            Ok(changed)
        }),
        |func, l| func.zeroed || l.kernel.attributes.zero_local,
    )
}

/// Limits a pass to some kernels or targets.
const fn only_if(step: Step, when: fn(&Function, &Lowering) -> bool) -> Step {
    match step {
        Step::Pass(pass) => Step::Pass(Pass { when, ..pass }),
        Step::CleanUp => step,
    }
}

/// Leaves a pass out for the functions that a kernel calls.
const fn of_kernel(step: Step) -> Step {
    match step {
        Step::Pass(pass) => Step::Pass(Pass {
            callees: false,
            ..pass
        }),
        Step::CleanUp => step,
    }
}

fn interface<'l>(l: &'l mut Lowering) -> Result<&'l mut KernelInterface> {
    l.interface
        .as_mut()
        .ok_or_else(|| LowerError::internal("lower_args was left out"))
}

fn lower_args(func: &mut Function, l: &Lowering) -> Result<KernelInterface> {
    let found = lower_args::Found {
        access: &l.access,
        images: &l.images,
        implicits: &l.implicits,
        looking: &l.looking,
    };
    lower_args::run(func, l.kernel, found, l.target)
}

fn lower_local_memory(func: &mut Function, l: &mut Lowering) -> Result<bool> {
    let spec_id = |arg: &Arg| match arg.kind {
        ArgKind::Local { spec_id } => Some(spec_id),
        _ => None,
    };
    let spec_ids: Vec<u32> = interface(l)?.args.iter().filter_map(spec_id).collect();
    let lower = |func: &mut Function| {
        let variables = &l.reached.globals;
        lower_local::run(func, variables, &spec_ids, l.target)
    };
    let local = if !l.target.int64_atomics_local || !lower_atomic::local_widths_differ(func) {
        lower(func)?
    } else {
        // Only if they are on one array.
        let before = func.clone();
        lower(func).or_else(|_| {
            *func = before;
            lower_atomic::widen_local(func)?;
            lower(func)
        })?
    };
    interface(l)?.local_size = local.static_bytes;
    Ok(true)
}
