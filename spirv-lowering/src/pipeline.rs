//! The passes in order, from a linked module to Vulkan SPIR-V.
//!
//! ```text
//! extract (copy what the kernel reaches, native built-ins) -> inline -> clean
//!   -> zero_tables -> lower_generic_ptr -> clean -> lower_images, lower_printf, lower_group, guard_range,
//!   lower_builtin_vars, lower_globals, lower_args, lower_dot, lower_convert -> clean
//!   -> expand_memcopy -> clean -> lower_atomic, lower_local, lower_private -> clean -> legalize -> clean
//!   -> unroll_loops, resume_loops (where the driver counts iterations) -> idle_lanes (where they run) -> contract
//!   -> flip_compares, round_doubles (for compilers with a defect) -> split_parts -> structurize -> emit
//! ```
//! Every pass goes through [`Runner::run`], which times, dumps, verifies and can leave it out by name.

use crate::emit::vulkan;
use crate::error::{LowerError, Result};
use crate::interface::{Arg, ArgKind, ProgramGlobals};
use crate::ir::compact::compact;
use crate::ir::entity::{Entity, FuncId, PrimaryMap};
use crate::ir::function::Function;
use crate::ir::module::{Global, Kernel, Module};
use crate::ir::op::Op;
use crate::ir::verify;
use crate::passes::*;
use crate::program::{Lowered, Options};
use crate::target::Target;
use std::time::{Duration, Instant};

/// Words of Vulkan SPIR-V from which on a form with shared functions is tried too. Drivers compile that much in time.
const MANY_WORDS: usize = 150_000;
/// Words that a driver compiles in time that can still be waited for, where the form with shared functions would be wrong.
const MOST_WORDS: usize = 1_000_000;

/// Rounds of the clean-up passes, at most.
const CLEAN_ROUNDS: usize = 8;

/// The layout and initial data of the program-scope variables.
pub fn program_globals(module: &Module) -> Result<ProgramGlobals> {
    lower_globals::contents(module)
}

/// What surrounds every pass.
struct Runner<'o, 'a> {
    options: &'o mut Options<'a>,
    verify: bool,
}

impl Runner<'_, '_> {
    fn time<T>(&mut self, name: &'static str, f: impl FnOnce() -> T) -> T {
        let Some(timings) = self.options.timings.as_deref_mut() else {
            return f();
        };
        let start = Instant::now();
        let result = f();
        let took = start.elapsed();
        match timings.iter_mut().find(|(other, _)| *other == name) {
            Some((_, total)) => *total += took,
            None => timings.push((name, took)),
        }
        result
    }

    fn skipped(&self, name: &str) -> bool {
        self.options.skip.contains(&name)
    }

    fn after(&mut self, name: &'static str, func: &Function) -> Result<()> {
        if let Some(dump) = self.options.dump.as_deref_mut() {
            dump(name, func);
        }
        if self.verify {
            verify::verify_standalone(func)
                .map_err(|e| LowerError::internal(format!("after {name}: {e}")))?;
        }
        Ok(())
    }

    fn run<T>(
        &mut self,
        name: &'static str,
        func: &mut Function,
        pass: impl FnOnce(&mut Function) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.skipped(name) {
            return Ok(None);
        }
        let result = self.time(name, || pass(func))?;
        self.after(name, func)?;
        Ok(Some(result))
    }

    /// A pass without which nothing works.
    fn must<T>(
        &mut self,
        name: &'static str,
        func: &mut Function,
        pass: impl FnOnce(&mut Function) -> Result<T>,
    ) -> Result<T> {
        let result = self.time(name, || pass(func))?;
        self.after(name, func)?;
        Ok(result)
    }

    /// The optimisations, until nothing changes.
    fn clean(&mut self, func: &mut Function) -> Result<()> {
        type Pass = fn(&mut Function) -> bool;
        let passes: &[(&'static str, Pass)] = &[
            ("simplify_cfg", simplify_cfg::run),
            ("sroa", sroa::run),
            ("mem2reg", mem2reg::run),
            ("narrow_params", narrow_params::run),
            ("const_fold", const_fold::run),
            ("cse", cse::run),
            ("dce", dce::run),
        ];
        // A pass runs again only if another one changed something since.
        let mut changes = 1usize;
        let mut seen = vec![0; passes.len()];
        for _ in 0..CLEAN_ROUNDS {
            let before = changes;
            for (i, &(name, pass)) in passes.iter().enumerate() {
                if seen[i] == changes {
                    continue;
                }
                let changed = self.run(name, func, |f| Ok(pass(f)))?.unwrap_or(false);
                // What is dead hardly ever hides something from the others.
                changes += usize::from(changed && name != "dce");
                seen[i] = changes;
            }
            if changes == before {
                break;
            }
        }
        Ok(())
    }
}

/// A module with the functions that a kernel reaches, under their old numbers, and with native operations in place of
/// calls where the target is good enough. The initial contents of variables are left out.
fn extract(module: &Module, kernel: FuncId, target: &Target, options: &Options) -> Result<Module> {
    let first_helper = module.functions.len();
    let config = lower_builtins::Config::new(options, first_helper);
    let name = |id: FuncId| module.functions.get(id).map(|f| f.name.clone());
    let mut wanted: Vec<Option<Function>> = vec![None; first_helper];
    let mut work = vec![kernel];
    let mut helpers = false;
    while let Some(id) = work.pop() {
        if id.index() >= first_helper {
            helpers = true;
            continue;
        }
        let Some(slot) = wanted.get_mut(id.index()) else {
            return Err(LowerError::invalid(format!(
                "call of an unknown function {id}"
            )));
        };
        if slot.is_some() {
            continue;
        }
        let mut func = module.functions[id].clone();
        let config = config.of(&func, options);
        lower_builtins::run(&mut func, &name, target, config)?;
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                if let Op::Call(callee) = func.insts[inst].op {
                    work.push(callee);
                }
            }
        }
        *slot = Some(func);
    }
    let mut functions = PrimaryMap::new();
    for (i, func) in wanted.into_iter().enumerate() {
        let absent = || Function {
            name: module.functions[FuncId::new(i)].name.clone(),
            ..Default::default()
        };
        functions.push(func.unwrap_or_else(absent));
    }
    let mut globals = PrimaryMap::new();
    for global in module.globals.values() {
        globals.push(Global {
            init: None,
            relocs: Vec::new(),
            name: global.name.clone(),
            ..*global
        });
    }
    let mut small = Module {
        functions,
        globals,
        printfs: module.printfs.clone(),
        ..Default::default()
    };
    if let Some(library) = options.library.filter(|_| helpers) {
        for helper in lower_builtins::Helper::ALL {
            small.functions.push(helper.import());
        }
        library.resolve(&mut small)?;
    }
    Ok(small)
}

/// The target as the options of the build have it.
fn adjusted(target: &Target, options: &Options) -> Target {
    let mut target = target.clone();
    if options.denorms_are_zero {
        // Only where the device can be told to; it is leave to flush, not an obligation.
        target.fp32.denorm_preserve = false;
    }
    target
}

fn local_spec_id(arg: &Arg) -> Option<u32> {
    match arg.kind {
        ArgKind::Local { spec_id } => Some(spec_id),
        _ => None,
    }
}

/// Lowers one kernel.
pub fn lower(
    module: &Module,
    kernel: &str,
    target: &Target,
    options: &mut Options,
) -> Result<Lowered> {
    lower_kernel(module, kernel, target, options).map_err(|e| e.in_function(kernel))
}

fn lower_kernel(
    module: &Module,
    kernel: &str,
    target: &Target,
    options: &mut Options,
) -> Result<Lowered> {
    let target = &adjusted(target, options);
    let verify = options.verify || cfg!(debug_assertions);
    let Some(kernel) = module.kernels.iter().find(|k| k.name == kernel) else {
        return Err(LowerError::invalid(format!("no kernel `{kernel}`")));
    };
    let mut p = Runner { options, verify };
    let start = Instant::now();
    let mut small = extract(module, kernel.func, target, p.options)?;
    let took = start.elapsed();
    p.add_time("extract", took);
    let layout = lower_globals::layout(module)?;

    let forms = p.time("inline", || share_calls::run(&small, kernel.func))?;
    let source = Source {
        module,
        kernel,
        layout: &layout,
    };
    // Lowering adds variables.
    let globals = small.globals.clone();
    let shared = match (forms.inlined, forms.shared) {
        (Some(inlined), shared) => {
            let lowered = lower_function(&mut p, &source, &mut small, inlined, target)?;
            match shared {
                Some(shared) if lowered.words.len() > MANY_WORDS => {
                    small.globals = globals;
                    let count = shared.iterations;
                    let other = lower_function(&mut p, &source, &mut small, shared.func, target)?;
                    let smaller = other.words.len() < lowered.words.len() / 2;
                    // The loops would end early.
                    let too_long = target.loop_limit != 0
                        && count > target.loop_limit.into()
                        && other.interface.resume_bytes == 0
                        && lowered.words.len() <= MOST_WORDS;
                    return Ok(if smaller && !too_long { other } else { lowered });
                }
                _ => return Ok(lowered),
            }
        }
        (None, shared) => shared,
    };
    let shared = shared.ok_or_else(|| LowerError::internal("inlining left nothing"))?;
    lower_function(&mut p, &source, &mut small, shared.func, target)
}

/// What a kernel is made from, beside the module with what it reaches.
struct Source<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    layout: &'a lower_globals::Layout,
}

fn lower_function(
    p: &mut Runner,
    source: &Source,
    small: &mut Module,
    mut func: Function,
    target: &Target,
) -> Result<Lowered> {
    let &Source {
        module,
        kernel,
        layout,
    } = source;
    let func = &mut func;
    func.name.clone_from(&kernel.name);
    p.after("inline", func)?;
    p.clean(func)?;
    // What was deleted is left behind in the arenas; the passes to come run faster without.
    p.time("compact", || *func = compact(func));

    p.run("zero_tables", func, |f| {
        zero_tables::run(f, &module.globals)
    })?;
    p.must("lower_generic_ptr", func, lower_generic_ptr::run)?;
    p.clean(func)?;
    let access = p.time("arg_access", || arg_access::analyse(func));
    let images = p.must("lower_images", func, |f| {
        lower_images::run(f, kernel, target)
    })?;
    let printfs = p.must("lower_printf", func, |f| {
        lower_printf::run(f, &module.printfs, &module.globals)
    })?;
    let collective = lower_group::uses(func);
    if collective {
        p.must("lower_group", func, |f| {
            lower_group::run(f, &mut small.globals, target)
        })?;
    }
    let guarded = guard_range::applies(func, kernel, small)
        && p.run("guard_range", func, guard_range::run)? == Some(true);
    p.must("lower_builtin_vars", func, |f| {
        lower_builtin_vars::run(f, collective.then_some(target.subgroup_size))
    })?;
    p.must("lower_globals", func, |f| {
        lower_globals::run(f, small, layout)
    })?;
    p.must("lower_dot", func, |f| lower_dot::run(f, target))?;
    p.must("lower_convert", func, |f| lower_convert::run(f, target))?;
    p.clean(func)?;
    let mut interface = p.must("lower_args", func, |f| {
        lower_args::run(f, kernel, &access, &images, target)
    })?;
    interface.uses_subgroups = collective;
    interface.guarded = guarded;
    p.clean(func)?;
    p.must("expand_memcopy", func, expand_memcopy::run)?;
    p.clean(func)?;
    let spec_ids: Vec<u32> = interface.args.iter().filter_map(local_spec_id).collect();
    p.must("lower_atomic", func, |f| lower_atomic::run(f, target))?;
    let local = p.must("lower_local", func, |f| {
        let lower = |f: &mut Function| lower_local::run(f, &small.globals, &spec_ids, target);
        if !target.int64_atomics_local || !lower_atomic::local_widths_differ(f) {
            return lower(f);
        }
        // Only if they are on one array.
        let before = f.clone();
        lower(f).or_else(|_| {
            *f = before;
            lower_atomic::widen_local(f)?;
            lower(f)
        })
    })?;
    interface.local_size = local.static_bytes;
    interface.private_size = p.must("lower_private", func, lower_private::run)?;
    p.clean(func)?;
    p.must("legalize", func, legalize::run)?;
    p.clean(func)?;
    if target.loop_limit != 0 {
        let unroll = |f: &mut Function| {
            Ok(unroll_loops::run(
                f,
                target.loop_limit,
                unroll_loops::MAX_FACTOR,
            ))
        };
        if p.run("unroll_loops", func, unroll)? == Some(true) {
            p.clean(func)?;
        }
        let resume = |f: &mut Function| Ok(resume_loops::run(f, &mut interface, target));
        if p.run("resume_loops", func, resume)? == Some(true) {
            p.clean(func)?;
        }
    }
    if target.idle_lanes_run {
        p.run("idle_lanes", func, |f| idle_lanes::run(f, target))?;
    }
    p.run("contract", func, |f| {
        Ok(contract::run(f, target) && dce::run(f))
    })?;
    if target.miscounts_to_negations {
        p.must("flip_compares", func, flip_compares::run)?;
    }
    if target.misrounds_doubles {
        p.must("round_doubles", func, round_doubles::run)?;
    }
    if target.long_words && !interface.uses_printf {
        let split = |f: &mut Function| Ok(split_parts::run(f, split_parts::WEIGHT));
        if let Some(parts) = p.run("split_parts", func, split)? {
            interface.parts = parts;
        }
    }
    p.must("structurize", func, structurize::run)?;
    let words = p.time("emit", || vulkan::emit(func, &interface, target))?;
    let printfs = if interface.uses_printf {
        printfs
    } else {
        Vec::new()
    };
    Ok(Lowered {
        words,
        interface,
        printfs,
    })
}

impl Runner<'_, '_> {
    fn add_time(&mut self, name: &'static str, took: Duration) {
        if let Some(timings) = self.options.timings.as_deref_mut() {
            timings.push((name, took));
        }
    }
}
