//! A kernel as one function between passes, where the pipeline can stop to look at its size.

use super::lowering::Lowering;
use super::pass::{Progress, Runner};
use super::{lists, Lowered};
use crate::emit::vulkan;
use crate::error::{LowerError, Result};
use crate::ir::entity::PrimaryMap;
use crate::ir::function::Function;
use crate::ir::module::{EntryPoint, Module};

/// The words of SPIR-V that an instruction of KIR becomes on average.
const WORDS_OF_AN_INSTRUCTION: usize = 5;

/// A kernel after the passes that all targets share.
pub struct Form<'a> {
    func: Function,
    lowering: Lowering<'a>,
    progress: Progress,
}

impl<'a> Form<'a> {
    /// Runs the shared passes on an inlined function.
    pub fn begin(
        runner: &mut Runner,
        mut func: Function,
        mut lowering: Lowering<'a>,
    ) -> Result<Self> {
        func.name.clone_from(&lowering.kernel.name);
        runner.begin(&func)?;
        runner.run(lists::SHARED, &mut func, &mut lowering)?;
        Ok(Self {
            func,
            lowering,
            progress: runner.leave(),
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
        runner.resume(progress);
        runner.run(list, &mut func, &mut lowering)?;
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
            let emit = |_: &mut Runner| vulkan::emit(&func, &lowered.interface, target);
            lowered.words = runner.time("emit", emit)?;
            lowered.words.len()
        };
        Ok((lowered, size))
    }
}

fn words(func: &Function) -> usize {
    let insts = func.layout.iter().map(|&b| func.blocks[b].insts.len());
    insts.sum::<usize>() * WORDS_OF_AN_INSTRUCTION
}

/// Prints a lowered kernel as a module of its own.
fn native_module(kernel: &EntryPoint, func: Function, reached: Module) -> String {
    let mut functions = PrimaryMap::new();
    let id = functions.push(func);
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
