//! A kernel between passes, where the pipeline can stop to look at its size.

use super::lowering::Lowering;
use super::pass::{Progress, Runner};
use super::{lists, Lowered};
use crate::analysis::waits;
use crate::emit::vulkan;
use crate::error::{LowerError, Result};
use crate::ir::entity::PrimaryMap;
use crate::ir::function::Function;
use crate::ir::module::{EntryPoint, Module};
use crate::ir::op::Op;
use crate::passes::share_calls::WithCallees;
use rustc_hash::FxHashMap;

/// The words of SPIR-V that an instruction of KIR becomes on average.
const WORDS_OF_AN_INSTRUCTION: usize = 5;

/// A kernel after the passes that all targets share.
pub struct Form<'a> {
    func: WithCallees,
    lowering: Lowering<'a>,
    /// The progress of each callee, then that of the kernel.
    progress: Vec<Progress>,
}

impl<'a> Form<'a> {
    /// Runs the shared passes.
    pub fn begin(
        runner: &mut Runner,
        mut func: WithCallees,
        mut lowering: Lowering<'a>,
    ) -> Result<Self> {
        func.kernel.name.clone_from(&lowering.kernel.name);
        lowering.looking = waits::looking(func.callees.iter().map(|(id, func)| (*id, func)));
        let has_calls = !func.callees.is_empty();
        let mut progress = Vec::new();
        each(&mut func, &mut lowering, |func, lowering| {
            runner.begin(func, has_calls)?;
            runner.run(lists::SHARED, func, lowering)?;
            progress.push(runner.leave());
            Ok(())
        })?;
        Ok(Self {
            func,
            lowering,
            progress,
        })
    }

    /// Estimates the words of SPIR-V of the kernel as it is.
    pub fn words(&self) -> usize {
        words(&self.func)
    }

    /// Runs the other passes. Returns the number of words, too.
    pub fn end(self, runner: &mut Runner) -> Result<(Lowered, usize)> {
        let Self {
            mut func,
            mut lowering,
            progress,
        } = self;
        let target = lowering.target;
        let list = if target.native {
            lists::NATIVE
        } else {
            lists::VULKAN
        };
        let mut progress = progress.into_iter();
        each(&mut func, &mut lowering, |func, lowering| {
            runner.resume(progress.next().unwrap_or_default());
            runner.run(list, func, lowering)
        })?;
        let Lowering {
            interface,
            printfs,
            reached,
            kernel,
            ..
        } = lowering;
        let interface = interface.ok_or_else(|| LowerError::internal("no interface"))?;
        let mut lowered = Lowered {
            words: Vec::new(),
            kir: String::new(),
            printfs: if interface.uses_printf {
                printfs
            } else {
                Vec::new()
            },
            interface,
        };
        let size = if target.native {
            let size = words(&func);
            lowered.kir = native_module(kernel, func, reached);
            size
        } else {
            let emit = |_: &mut Runner| vulkan::emit(&func.kernel, &lowered.interface, target);
            lowered.words = runner.time("emit", emit)?;
            lowered.words.len()
        };
        Ok((lowered, size))
    }
}

/// Calls a function for each callee, then for the kernel.
fn each<'a>(
    func: &mut WithCallees,
    lowering: &mut Lowering<'a>,
    mut run: impl FnMut(&mut Function, &mut Lowering<'a>) -> Result<()>,
) -> Result<()> {
    lowering.is_callee = true;
    for (_, func) in &mut func.callees {
        run(func, lowering)?;
    }
    lowering.is_callee = false;
    run(&mut func.kernel, lowering)
}

fn words(func: &WithCallees) -> usize {
    let callees = func.callees.iter().map(|(_, func)| func);
    let insts = callees.chain([&func.kernel]).flat_map(|func| {
        let blocks = func.layout.iter();
        blocks.map(|&b| func.blocks[b].insts.len())
    });
    insts.sum::<usize>() * WORDS_OF_AN_INSTRUCTION
}

/// Prints a lowered kernel as a module of its own.
fn native_module(kernel: &EntryPoint, func: WithCallees, reached: Module) -> String {
    let mut functions = PrimaryMap::new();
    let id = functions.push(func.kernel);
    let mut numbers = FxHashMap::default();
    for (old, func) in func.callees {
        numbers.insert(old, functions.push(func));
    }
    for (_, func) in functions.iter_mut() {
        for (_, data) in func.insts.iter_mut() {
            if let Op::Call(callee) = &mut data.op {
                *callee = numbers.get(callee).copied().unwrap_or(*callee);
            }
        }
    }
    let module = Module {
        functions,
        globals: reached.globals,
        kernels: vec![EntryPoint {
            func: id,
            ..kernel.clone()
        }],
        ..Default::default()
    };
    module.to_string()
}
