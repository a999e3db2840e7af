//! From a linked module to Vulkan SPIR-V.
//!
//! ```text
//! extract: a copy of what the kernel reaches, with native built-ins   -> share_calls: one function, inlined
//!   -> lists::SHARED   -> lists::VULKAN   -> emit
//! ```
//! The passes are data ([`lists`]); how one is run stands in [`pass`], what they hand on to one another in [`lowering`].
//! To add a pass: a file in `passes`, a row in a list.

pub mod lists;
pub mod lowering;
pub mod pass;

use crate::emit::vulkan;
use crate::error::{LowerError, Result};
use crate::interface::{KernelInterface, ProgramGlobals};
use crate::ir::entity::{Entity, FuncId, PrimaryMap};
use crate::ir::function::Function;
use crate::ir::module::{Global, Kernel, Module, PrintfSite};
use crate::ir::op::Op;
use crate::options::Options;
use crate::passes::{lower_builtins, lower_globals, share_calls};
use crate::target::Target;
use lowering::Lowering;
use pass::Runner;

/// Words of SPIR-V from which on a form with shared functions is tried too. Compilers take that much in good time.
const MANY_WORDS: usize = 150_000;
/// Words that a driver compiles in time that can still be waited for, where the form with shared functions would be wrong.
const MOST_WORDS: usize = 1_000_000;
/// Words of SPIR-V that an instruction of KIR becomes. For processors nothing is emitted that could be counted.
const WORDS_OF_AN_INSTRUCTION: usize = 5;

/// A lowered kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// Vulkan SPIR-V with one entry point, `main`. Empty for processors.
    pub words: Vec<u32>,
    /// A module in the text of KIR with this kernel, for [`native::emit`](crate::native::emit). Empty for Vulkan.
    pub kir: String,
    /// What the runtime supplies at dispatch.
    pub interface: KernelInterface,
    /// The printf sites by the index in printf records; empty when the kernel does not call printf.
    pub printfs: Vec<PrintfSite>,
}

/// The layout and initial data of the program-scope variables.
pub fn program_globals(module: &Module) -> Result<ProgramGlobals> {
    lower_globals::contents(module)
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
    let mut runner = Runner::new(options);
    let reached = runner.time("extract", |runner| {
        extract(module, kernel.func, target, runner.options)
    })?;
    let layout = lower_globals::layout(module)?;
    let forms = runner.time("inline", |_| share_calls::run(&reached, kernel.func))?;
    let mut source = Source {
        module,
        kernel,
        layout,
        reached,
        target,
    };
    let shared = match (forms.inlined, forms.shared) {
        (Some(inlined), None) => return Ok(source.lower(&mut runner, inlined)?.0),
        (Some(inlined), Some(shared)) => {
            let (lowered, words) = source.lower(&mut runner, inlined)?;
            if words <= MANY_WORDS {
                return Ok(lowered);
            }
            let count = shared.iterations;
            let (other, words_of_other) = source.lower(&mut runner, shared.func)?;
            let smaller = words_of_other < words / 2;
            // The loops would end early.
            let too_long = target.loop_limit != 0
                && count > target.loop_limit.into()
                && other.interface.resume_bytes == 0
                && words <= MOST_WORDS;
            return Ok(if smaller && !too_long { other } else { lowered });
        }
        (None, shared) => shared,
    };
    let shared = shared.ok_or_else(|| LowerError::internal("inlining left nothing"))?;
    Ok(source.lower(&mut runner, shared.func)?.0)
}

/// What a kernel is made from.
struct Source<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    layout: lower_globals::Layout,
    /// What it reaches of the module.
    reached: Module,
    target: &'a Target,
}

impl Source<'_> {
    /// Takes one form of the kernel the whole way. Returns how many words it has, too.
    fn lower(&mut self, runner: &mut Runner, mut func: Function) -> Result<(Lowered, usize)> {
        func.name.clone_from(&self.kernel.name);
        // Lowering adds variables.
        let globals = self.reached.globals.clone();
        let reached = &mut self.reached;
        let (target, kernel) = (self.target, self.kernel);
        let mut lowering = Lowering::new(target, self.module, kernel, &self.layout, reached);
        runner.begin(&func)?;
        runner.run(lists::SHARED, &mut func, &mut lowering)?;
        let list = if target.native {
            lists::NATIVE
        } else {
            lists::VULKAN
        };
        runner.run(list, &mut func, &mut lowering)?;
        let Lowering {
            interface, printfs, ..
        } = lowering;
        let variables = self.reached.globals.clone();
        self.reached.globals = globals;
        let interface = interface.ok_or_else(|| LowerError::internal("no interface"))?;
        let (words, kir, size) = if target.native {
            let insts: usize = func
                .layout
                .iter()
                .map(|&b| func.blocks[b].insts.len())
                .sum();
            let size = insts * WORDS_OF_AN_INSTRUCTION;
            (Vec::new(), native_module(kernel, func, variables), size)
        } else {
            let words = runner.time("emit", |_| vulkan::emit(&func, &interface, target))?;
            let size = words.len();
            (words, String::new(), size)
        };
        let lowered = Lowered {
            words,
            kir,
            printfs: if interface.uses_printf {
                printfs
            } else {
                Vec::new()
            },
            interface,
        };
        Ok((lowered, size))
    }
}

/// A lowered kernel as a module of its own, in text.
fn native_module(
    kernel: &Kernel,
    func: Function,
    variables: PrimaryMap<crate::ir::entity::GlobalId, Global>,
) -> String {
    let mut functions = PrimaryMap::new();
    let id = functions.push(func);
    let module = Module {
        functions,
        globals: variables,
        kernels: vec![Kernel {
            func: id,
            ..kernel.clone()
        }],
        ..Default::default()
    };
    module.to_string()
}
