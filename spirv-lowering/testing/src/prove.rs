//! Proves passes: compares what a generated kernel does before and after each of them.
//!
//! First the passes that work on kernel IR are run by themselves on every function of the module.
//! Then the kernel is lowered through the real pipeline for some target, and the function after
//! each of its passes is run, in the environment that the interface describes. The buffers, the
//! program-scope variables and the output of printf must agree with the original, as far as the
//! original defines them.

use super::generate::Case;
use spirv_lowering::analysis::control_flow::Analyses;
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::interp::{
    self, run_lowered, Lowered, Memory, NdRange, Options as RunOptions, Record,
};
use spirv_lowering::ir::entity::{Entity, FuncId};
use spirv_lowering::ir::function::Function;
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::print::raw;
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering::options::{Options, ZeroedMemory};
use spirv_lowering::passes::{self, share_calls::WithCallees};
use spirv_lowering::program::Program;
use spirv_lowering::quirks::{CodeQuirk, CodeQuirks};
use spirv_lowering::target::{subgroup, FloatCaps, Target};
use std::hash::{Hash, Hasher};

/// The most steps of a run of the original.
const STEPS: u64 = 3_000_000;
/// The factor by which a run after a pass may take more steps: a copy of memory becomes a step for
/// each element.
const MORE: u64 = 8;

/// The number of functions that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The function after every pass.
    Every,
    /// The emitted function; after every pass if that is wrong.
    Last,
}

/// A pass that changes the result of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The target.
    pub target: String,
    /// The pass.
    pub pass: String,
    /// The difference.
    pub what: String,
    /// The function before and after the pass, if the pass is one of the pipeline.
    pub functions: Vec<String>,
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The result is the same after every pass. Holds how many functions were run.
    Proved(u32),
    /// The kernel has no defined result.
    Discarded(String),
    /// A pass is wrong.
    Wrong(Difference),
}

/// Returns targets that take different paths through the pipeline.
pub fn targets() -> Vec<(&'static str, Target)> {
    let full = Target::full();
    let lavapipe = Target::lavapipe();
    let plain = FloatCaps {
        fused_fma: false,
        denorm_preserve: false,
        rte: false,
        ..full.fp32
    };
    vec![
        ("full", full.clone()),
        ("lavapipe", lavapipe.clone()),
        (
            "limited",
            Target {
                quirks: lavapipe
                    .quirks
                    .with(CodeQuirk::ExtendedCompares)
                    .without(CodeQuirk::LongWords),
                max_push_constants: 256,
                ..lavapipe.clone()
            },
        ),
        (
            "nvidia",
            Target {
                float32_atomic_add_local: false,
                dot_4x8: [true, true, false],
                subgroup_size: 32,
                quirks: CodeQuirks::from([
                    CodeQuirk::MisroundedDoubles,
                    CodeQuirk::NarrowBitCounts,
                    CodeQuirk::MixedQuotients,
                    CodeQuirk::NarrowExtremes,
                    CodeQuirk::FoldedBits,
                    CodeQuirk::WrappingInduction,
                    CodeQuirk::ChosenSigns,
                    CodeQuirk::HalfOverflow,
                    CodeQuirk::ForgottenHalves,
                    CodeQuirk::ForgottenRounding,
                    CodeQuirk::FlushedFloats,
                ]),
                fp64: plain,
                ..full.clone()
            },
        ),
        (
            "small",
            Target {
                max_push_constants: 32,
                int64_atomics_global: true,
                int64_atomics_local: false,
                workgroup_explicit_layout: false,
                quirks: CodeQuirks::from([CodeQuirk::NegatedBounds]),
                subgroup_extended_types: false,
                subgroup_ops: full.subgroup_ops & !(subgroup::ARITHMETIC | subgroup::CLUSTERED),
                subgroup_size: 4,
                dot_4x8: [false; 3],
                ..full.clone()
            },
        ),
        (
            "weak",
            Target {
                quirks: lavapipe
                    .quirks
                    .with(CodeQuirk::OverwrittenValues)
                    .without(CodeQuirk::LongWords),
                ..Target::weak()
            },
        ),
        (
            "words",
            Target {
                small_ints: false,
                subgroup_extended_types: false,
                fp16: FloatCaps::NONE,
                ..full.clone()
            },
        ),
        (
            "wide",
            Target {
                wide_range: true,
                ..full
            },
        ),
    ]
}

/// The observable results of a run.
struct Seen {
    memory: Memory,
    buffers: Vec<u64>,
    printf: Vec<Record>,
}

/// Returns the target with sub-groups of at least the size that a kernel requires.
fn for_kernel(target: &Target, case: &Case) -> Target {
    let attributes = case.module.kernels.first().map(|k| &k.attributes);
    let required = attributes.and_then(|a| a.required_sub_group_size);
    Target {
        subgroup_size: target.subgroup_size.max(required.unwrap_or(0)),
        ..target.clone()
    }
}

pub(super) fn run_options(target: &Target, strict: bool) -> RunOptions {
    RunOptions {
        steps: if strict { STEPS } else { STEPS * MORE },
        strict,
        noise: if strict { 1 } else { 0x7777_1234 },
        subgroup_size: target.subgroup_size.max(1),
        words: !(strict || target.has_storage(1) && target.has_storage(2)),
        ..Default::default()
    }
}

fn run_module(case: &Case, module: &Module, options: &RunOptions) -> Result<Seen, interp::Error> {
    let (mut memory, args, mut buffers) = case.memory()?;
    buffers.extend(memory.globals());
    let outcome = interp::run(module, "k", &case.range, &args, &mut memory, options)?;
    Ok(Seen {
        memory,
        buffers,
        printf: outcome.printf,
    })
}

/// A way of dispatching a lowered kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Manner {
    guard: bool,
    /// Set for work-groups of another size.
    regroup: bool,
}

const AS_IS: Manner = Manner {
    guard: false,
    regroup: false,
};

fn run_function(
    case: &Case,
    func: &Function,
    interface: &KernelInterface,
    manner: Manner,
    options: &RunOptions,
) -> Result<Seen, interp::Error> {
    let (mut memory, args, mut buffers) = case.memory()?;
    buffers.extend(memory.globals());
    let missing = || interp::Error::Invalid("no kernel".into());
    let lowered = Lowered {
        module: &case.module,
        kernel: case.module.kernels.first().ok_or_else(missing)?,
        func,
        interface,
        guard: manner.guard,
    };
    let mut range = case.range;
    if manner.regroup {
        range = regrouped(&range);
    }
    let outcome = run_lowered(&lowered, &range, &args, &mut memory, options)?;
    Ok(Seen {
        memory,
        buffers,
        printf: outcome.printf,
    })
}

/// Returns the same work-items in rows of four.
fn regrouped(range: &NdRange) -> NdRange {
    NdRange {
        local: [4, 1, 1],
        ..*range
    }
}

/// Returns how the results of a run differ from the original's.
fn difference(original: &Seen, other: &Seen) -> Option<String> {
    for (i, (&a, &b)) in original.buffers.iter().zip(&other.buffers).enumerate() {
        let (Some(a), Some(b)) = (original.memory.region(a), other.memory.region(b)) else {
            return Some(format!("buffer {i} is not there"));
        };
        for at in 0..a.bytes.len() {
            let (want, got) = (a.bytes.get(at), b.bytes.get(at));
            let unknown = a.unknown.get(at).copied().unwrap_or(0);
            if want.zip(got).is_none_or(|(w, g)| (w ^ g) & !unknown != 0) {
                return Some(format!(
                    "buffer {i} at {at}: {want:02x?} became {got:02x?} (unknown {unknown:02x})"
                ));
            }
        }
    }
    if original.printf.len() != other.printf.len() {
        return Some(format!(
            "{} printf records became {}",
            original.printf.len(),
            other.printf.len()
        ));
    }
    let mut left: Vec<&Record> = other.printf.iter().collect();
    // Those of which most is known have the least choice.
    let mut wanted: Vec<&Record> = original.printf.iter().collect();
    wanted.sort_by_key(|r| r.unknown.iter().map(|b| b.count_ones()).sum::<u32>());
    for want in wanted {
        let same = |got: &&Record| {
            want.site == got.site
                && want.bytes.len() == got.bytes.len()
                && want
                    .bytes
                    .iter()
                    .zip(&got.bytes)
                    .zip(&want.unknown)
                    .all(|((a, b), unknown)| (a ^ b) & !unknown == 0)
        };
        match left.iter().position(same) {
            Some(found) => left.swap_remove(found),
            None => return Some(format!("printf record {want:x?} is gone")),
        };
    }
    None
}

fn compare(original: &Seen, result: Result<Seen, interp::Error>) -> Option<String> {
    match result {
        Ok(seen) => difference(original, &seen),
        // The runtime ends there, too.
        Err(error) => Some(format!("error: {error}")),
    }
}

/// Returns a hash of all that a run depends on.
fn fingerprint(func: &Function) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    func.params.hash(&mut hasher);
    for var in func.vars.values() {
        (
            var.storage,
            var.elem,
            var.lanes,
            var.len.fixed,
            &var.len.spec,
            var.alias,
        )
            .hash(&mut hasher);
    }
    for &block in &func.layout {
        let data = &func.blocks[block];
        (block, &data.params).hash(&mut hasher);
        for &inst in &data.insts {
            let inst = &func.insts[inst];
            (inst.op, &inst.args, &inst.results, inst.fp).hash(&mut hasher);
            for &v in &inst.results {
                func.ty(v).hash(&mut hasher);
            }
        }
        std::mem::discriminant(&data.term).hash(&mut hasher);
        data.term.for_each_use(|v| v.hash(&mut hasher));
        if let spirv_lowering::ir::function::Terminator::Switch(_, cases, _) = &data.term {
            cases.iter().for_each(|(bits, _)| bits.hash(&mut hasher));
        }
        for target in data.term.targets() {
            target.block.hash(&mut hasher);
        }
    }
    hasher.finish()
}

type OnFunction = fn(&mut Function, &mut Analyses) -> bool;

/// The passes on functions of kernel IR, besides those of the clean-up.
const ALONE: [(&str, OnFunction); 5] = [
    ("clean", |f, _| passes::clean(f)),
    ("separate_loops", |f, _| {
        passes::clean(f);
        passes::separate_loops::run(f)
    }),
    ("unroll_loops", |f, _| {
        passes::clean(f);
        passes::unroll_loops::run(f)
    }),
    ("expand_memcopy", |f, _| {
        passes::expand_memcopy::run(f).is_ok()
    }),
    ("structurize", |f, _| {
        passes::clean(f);
        passes::structurize::run(f).is_ok()
    }),
];

fn on_module(case: &Case, pass: OnFunction) -> Module {
    let mut module = case.module.clone();
    for (_, func) in module.functions.iter_mut() {
        if !func.layout.is_empty() {
            pass(func, &mut Analyses::default());
        }
    }
    module
}

/// Returns the kernel as one function, with calls inlined and with them shared.
fn one_function(case: &Case) -> Result<Vec<(&'static str, Module)>, String> {
    let mut list = Vec::new();
    let kernel = kernel_of(case);
    let mut inlined = case.module.clone();
    passes::inline::run(&mut inlined, kernel).map_err(|e| e.to_string())?;
    list.push(("inline", inlined));
    let share = |calls_squared: usize| {
        let limits = passes::share_calls::Limits {
            budget: 0,
            most: 0,
            min_size: 1,
            calls_squared,
            ..Default::default()
        };
        passes::share_calls::run(&case.module, kernel, &limits, false).map_err(|e| e.to_string())
    };
    let shared = |divided: Option<WithCallees>| divided.map(|divided| divided.kernel);
    let forms = share(usize::MAX)?;
    for (name, func) in [
        ("share_calls (inlined)", forms.inlined),
        ("share_calls", shared(forms.divided)),
        ("share_calls (carried)", shared(share(0)?.divided)),
    ] {
        if let Some(func) = func {
            let mut module = case.module.clone();
            let name_of = std::mem::take(&mut module.functions[kernel].name);
            module.functions[kernel] = func;
            module.functions[kernel].name = name_of;
            list.push((name, module));
        }
    }
    Ok(list)
}

pub(super) fn kernel_of(case: &Case) -> FuncId {
    let first = case.module.kernels.first().map(|k| k.func);
    first.unwrap_or(FuncId::new(0))
}

/// Proves the passes on kernel IR.
fn prove_alone(case: &Case, original: &Seen, options: &RunOptions) -> Result<u32, Difference> {
    let wrong = |pass: &str, what: String| Difference {
        target: "none".into(),
        pass: pass.into(),
        what,
        functions: Vec::new(),
    };
    let mut count = 0;
    let mut check = |name: &str, module: &Module| -> Result<(), Difference> {
        verify_module(module).map_err(|e| wrong(name, format!("broken: {e}")))?;
        count += 1;
        match compare(original, run_module(case, module, options)) {
            Some(what) => Err(wrong(name, what)),
            None => Ok(()),
        }
    };
    let clean_up = passes::CLEAN_UP.iter().map(|pass| (pass.name, pass.run));
    for (name, pass) in clean_up.chain(ALONE) {
        check(name, &on_module(case, pass))?;
    }
    let forms = one_function(case).map_err(|e| wrong("inline", e))?;
    for (name, module) in &forms {
        check(name, module)?;
    }
    Ok(count)
}

/// The functions that the pipeline made of a kernel.
pub(super) struct Stages {
    /// The function after each pass, where it changed.
    pub functions: Vec<(String, Function)>,
    /// The number of those in which sub-groups have the size that the kernel requires. In the
    /// others they have the target's.
    as_required: usize,
    pub interface: KernelInterface,
}

/// Lowers the kernel of a module, and keeps the functions that its passes make. `verify`: the rules
/// of the IR are checked after each.
pub(super) fn lower(
    module: &Module,
    target: &Target,
    depth: Depth,
    verify: bool,
) -> Result<Stages, Difference> {
    let mut functions: Vec<(String, Function)> = Vec::new();
    let (mut last, mut structured) = (0, false);
    let mut as_required = 0;
    let mut name_of_last = String::new();
    let mut dump = |name: &str, func: &Function| {
        name_of_last = name.to_owned();
        structured |= name == "structurize";
        if name == "lower_subgroup_size" {
            as_required = functions.len();
        }
        if depth == Depth::Last {
            // What comes of one pass behind it is emitted in place of what it made.
            if !structured {
                return;
            }
            functions.clear();
            last = 0;
        }
        let print = fingerprint(func);
        if print != last {
            last = print;
            functions.push((name.to_owned(), func.clone()));
        }
    };
    // Any choice will do, as long as it is the same each time.
    let choice: usize = module.functions.values().map(|func| func.insts.len()).sum();
    let mut options = Options {
        verify,
        dump: Some(&mut dump),
        zeroed: ZeroedMemory {
            local: choice & 1 != 0,
            private: choice & 2 != 0,
        },
        ..Default::default()
    };
    let program = Program::from_module(module.clone());
    let result = program.lower("k", target, &mut options);
    match result {
        Ok(lowered) => Ok(Stages {
            functions,
            as_required,
            interface: lowered.interface,
        }),
        Err(error) => Err(Difference {
            target: String::new(),
            pass: format!("after {name_of_last}"),
            what: format!("it cannot be lowered: {error}"),
            functions: Vec::new(),
        }),
    }
}

/// Returns the configurations in which the last function has to run.
fn manners(case: &Case, interface: &KernelInterface) -> Vec<Manner> {
    let mut list = vec![AS_IS];
    if interface.guarded {
        let regroup = case.range.dims == 1;
        list.push(Manner {
            guard: true,
            regroup,
        });
    }
    list
}

fn prove_lowered(
    case: &Case,
    module: &Module,
    original: &Seen,
    (name, target): (&str, &Target),
    depth: Depth,
) -> Result<u32, Difference> {
    let wrong = |pass: &str, what: String| Difference {
        target: name.into(),
        pass: pass.into(),
        what,
        functions: Vec::new(),
    };
    let stages = match lower(module, target, depth, depth == Depth::Every) {
        Ok(stages) => stages,
        // It says so, and there are a few such things.
        Err(error) if error.what.contains("unsupported") => return Ok(0),
        Err(error) => return Err(wrong(&error.pass, error.what)),
    };
    let options = run_options(target, false);
    let attributes = module.kernels.first().map(|k| &k.attributes);
    let required = attributes.map_or(1, |a| a.sub_group_size(options.subgroup_size));
    let as_required = RunOptions {
        subgroup_size: required,
        ..options.clone()
    };
    let mut count = 0;
    let total = stages.functions.len();
    for (i, (pass, func)) in stages.functions.iter().enumerate() {
        let options = match i < stages.as_required {
            true => &as_required,
            false => &options,
        };
        let list = match i + 1 == total {
            true => manners(case, &stages.interface),
            false => vec![AS_IS],
        };
        for manner in list {
            count += 1;
            let seen = run_function(case, func, &stages.interface, manner, options);
            if let Some(what) = compare(original, seen) {
                let pass = match manner.guard {
                    true => "guard_range".to_owned(),
                    false => pass.clone(),
                };
                let mut difference = wrong(&pass, what);
                let around = stages.functions.get(i.saturating_sub(1)..=i);
                for (_, func) in around.unwrap_or_default() {
                    difference.functions.push(raw(func).to_string());
                }
                return Err(difference);
            }
        }
    }
    Ok(count)
}

/// Proves all passes on a kernel for some of [`targets`]. `which` has a bit for each.
pub fn prove(case: &Case, which: u32, depth: Depth) -> Verdict {
    let mut count = 0;
    if let Err(errors) = verify_module(&case.module) {
        return Verdict::Discarded(format!("broken: {errors}"));
    }
    let mut alone = true;
    for (i, (name, target)) in targets().iter().enumerate() {
        if which >> i & 1 == 0 {
            continue;
        }
        let target = &for_kernel(target, case);
        let original = match run_module(case, &case.module, &run_options(target, true)) {
            Ok(seen) => seen,
            Err(error) => return Verdict::Discarded(error.to_string()),
        };
        if std::mem::take(&mut alone) {
            match prove_alone(case, &original, &run_options(target, false)) {
                Ok(more) => count += more,
                Err(difference) => return judge(case, target, &original, difference),
            }
        }
        let target = (*name, target);
        let mut result = prove_lowered(case, &case.module, &original, target, depth);
        if result.is_err() && depth == Depth::Last {
            // Which pass it is.
            let again = prove_lowered(case, &case.module, &original, target, Depth::Every);
            result = again.and(result);
        }
        match result {
            Ok(more) => count += more,
            Err(difference) => return judge(case, target.1, &original, difference),
        }
    }
    Verdict::Proved(count)
}

/// The number of choices of unknown bits that a difference is tested with.
const CHOICES: u64 = 64;

/// Discards a difference that the kernel itself shows with other unknown bits, because the
/// interpreter takes some bits for known that are not.
fn judge(case: &Case, target: &Target, original: &Seen, difference: Difference) -> Verdict {
    let open = (0..CHOICES).any(|choice| {
        let mut options = run_options(target, false);
        options.noise = options
            .noise
            .wrapping_add(choice.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        compare(original, run_module(case, &case.module, &options)).is_some()
    });
    match open {
        true => Verdict::Discarded("known bits depend on unknown ones".into()),
        false => Verdict::Wrong(difference),
    }
}

/// The results that a kernel must leave in memory.
pub struct Wanted {
    /// The bytes of each buffer and, last, of the program-scope variables, and which of their bits
    /// are unspecified.
    pub buffers: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Runs a kernel in the interpreter, with sub-groups of some size.
pub fn wanted(case: &Case, subgroup_size: u32) -> Result<Wanted, String> {
    verify_module(&case.module).map_err(|e| format!("broken: {e}"))?;
    let target = Target {
        subgroup_size,
        ..Target::full()
    };
    let seen =
        run_module(case, &case.module, &run_options(&target, true)).map_err(|e| e.to_string())?;
    let buffers = seen
        .buffers
        .iter()
        .filter_map(|&address| seen.memory.region(address))
        .map(|region| (region.bytes.clone(), region.unknown.clone()))
        .collect();
    Ok(Wanted { buffers })
}

/// Returns true if the kernel itself shows another result with other unknown bits.
pub fn is_open(case: &Case, subgroup_size: u32) -> bool {
    let target = Target {
        subgroup_size,
        ..Target::full()
    };
    let Ok(original) = run_module(case, &case.module, &run_options(&target, true)) else {
        return true;
    };
    let difference = Difference {
        target: String::new(),
        pass: String::new(),
        what: String::new(),
        functions: Vec::new(),
    };
    matches!(
        judge(case, &target, &original, difference),
        Verdict::Discarded(_)
    )
}
