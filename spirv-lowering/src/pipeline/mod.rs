//! From a linked module to Vulkan SPIR-V.
//!
//! ```text
//! extract: a copy of what the kernel reaches, with native built-ins   -> share_calls: calls inlined, large functions once
//!   -> lists::SHARED   -> lists::VULKAN   -> emit
//! ```
//! The passes are data ([`lists`]); how one is run stands in [`pass`], what they hand on to one another in [`lowering`]. A large
//! kernel goes that way in two forms, and the smaller one is kept ([`form`]).
//! To add a pass: a file in `passes`, a row in a list.

mod form;
pub mod lists;
pub mod lowering;
pub mod pass;

use crate::error::{LowerError, Result};
use crate::interface::{KernelInterface, ProgramGlobals};
use crate::ir::entity::{Entity, FuncId, PrimaryMap, Value};
use crate::ir::function::Function;
use crate::ir::module::{Global, Module, PrintfSite};
use crate::ir::op::Op;
use crate::ir::types::Type;
use crate::options::Options;
use crate::passes::share_calls::{self, WithCallees};
use crate::passes::{lower_builtins, lower_globals};
use crate::target::Target;
use borsh::{BorshDeserialize, BorshSerialize};
use form::Form;
use lowering::Lowering;
use pass::Runner;

/// The words of SPIR-V from which on a form with shared functions is tried too. Compilers handle
/// fewer words fast enough.
const MANY_WORDS: usize = 150_000;

/// The same of a form with functions that are called, which costs less.
const MANY_WORDS_FOR_CALLS: usize = 50_000;

/// A lowered kernel.
#[derive(Debug, Clone, PartialEq, BorshSerialize, BorshDeserialize)]
pub struct Lowered {
    /// Vulkan SPIR-V with one entry point, `main`. Empty for processors.
    pub words: Vec<u32>,
    /// A module in the text of KIR with this kernel, for [`native::emit`](crate::native::emit). Empty for Vulkan.
    pub kir: String,
    /// The data that the runtime supplies at dispatch.
    pub interface: KernelInterface,
    /// The printf sites by the index in printf records; empty when the kernel does not call printf.
    pub printfs: Vec<PrintfSite>,
}

/// Returns the layout and initial data of the program-scope variables.
pub fn program_globals(module: &Module) -> Result<ProgramGlobals> {
    lower_globals::contents(module)
}

/// Returns a module with the functions that a kernel reaches, under their old numbers, and with
/// native operations in place of calls where the target is precise enough. It leaves out the
/// initial contents of variables.
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
        if options.zeroed.private {
            func.zeroed = true;
            // Other compilers make them of variables that are not written.
            for (_, data) in func.insts.iter_mut() {
                let handle = |&value: &Value| func.values[value].ty == Type::Handle;
                if data.op == Op::Undef && !data.results.iter().any(handle) {
                    data.op = Op::Const(0);
                }
            }
        }
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

/// Returns the target with the changes that the build options request.
fn adjusted(target: &Target, options: &Options) -> Target {
    let mut target = target.clone();
    if options.denorms_are_zero {
        // Only where a mode for it exists: the option permits flushing and does not require it.
        target.fp32.denorm_preserve = false;
    }
    target
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
    let Some(kernel) = module.kernels.iter().find(|k| k.name == kernel) else {
        return Err(LowerError::invalid(format!("no kernel `{kernel}`")));
    };
    let mut kernel = kernel.clone();
    kernel.attributes.zero_local |= options.zeroed.local;
    let kernel = &kernel;
    let mut runner = Runner::new(options);
    let reached = runner.time("extract", |runner| {
        extract(module, kernel.func, target, runner.options)
    })?;
    let layout = lower_globals::layout(module)?;
    let limits = match runner.options.one_copy_from {
        Some(min_size) => share_calls::Limits {
            budget: 0,
            min_size,
            large: min_size,
            ..Default::default()
        },
        None => share_calls::Limits::default(),
    };
    let forms = runner.time("inline", |_| {
        share_calls::run(&reached, kernel.func, &limits, target.native)
    })?;
    let begin = |runner: &mut Runner, func: WithCallees, reached: Module| {
        let lowering = Lowering::new(target, module, kernel, &layout, reached);
        Form::begin(runner, func, lowering)
    };
    let inlined = forms.inlined.map(WithCallees::none);
    let (inlined, divided) = match (inlined, forms.divided) {
        (Some(inlined), Some(divided)) if runner.options.one_copy_from.is_none() => {
            (inlined, divided)
        }
        (inlined, divided) => {
            let func = divided.or(inlined);
            let func = func.ok_or_else(|| LowerError::internal("inlining left nothing"))?;
            return Ok(begin(&mut runner, func, reached)?.end(&mut runner)?.0);
        }
    };
    let many = match divided.callees.is_empty() {
        true => MANY_WORDS,
        false => MANY_WORDS_FOR_CALLS,
    };
    let inlined = begin(&mut runner, inlined, reached.clone())?;
    let estimate = inlined.words();
    let (lowered, words, (other, words_of_other)) = if estimate <= many {
        let (lowered, words) = inlined.end(&mut runner)?;
        if words <= many {
            return Ok(lowered);
        }
        let other = begin(&mut runner, divided, reached)?.end(&mut runner)?;
        (lowered, words, other)
    } else {
        let other = begin(&mut runner, divided, reached)?.end(&mut runner)?;
        // The rest of the way does not make it half as large.
        if other.1 < estimate / 4 {
            return Ok(other.0);
        }
        let (lowered, words) = inlined.end(&mut runner)?;
        (lowered, words, other)
    };
    Ok(match words_of_other < words / 2 {
        true => other,
        false => lowered,
    })
}
