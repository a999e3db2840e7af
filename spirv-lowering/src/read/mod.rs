//! OpenCL SPIR-V to KIR.
//!
//! ```text
//! words (framing) -> parsed (module scope: types, consts, variables, function ranges) -> body (one function at a time)
//! ```
//! Values of vector and aggregate type become lists of scalars in memory order; pointers lose their pointee; phi
//! nodes become block parameters. Mathematical functions of OpenCL.std that are no KIR operation become calls of
//! imported functions named as the mangled *scalar* OpenCL built-in (`_Z3sinf`), one a lane: a library supplies them
//! (see [`crate::link`]).
//!
//! Malformed input gives [`LowerError::InvalidInput`](crate::error::LowerError) that names the instruction, never a
//! panic. What an instruction needs of its operands is checked where it is translated, and every result is compared
//! with its declared type in one place (`Body::set`). Dominance is not checked: that is the IR verifier's work.

mod arith;
mod bfloat16;
mod block;
mod block_io;
mod body;
mod builtin;
mod by_name;
mod composite;
mod consts;
mod decorations;
mod device_queue;
mod enqueue;
mod image;
mod kernel;
mod memory;
mod odd_int;
mod opencl_std;
mod output;
mod parsed;
mod pipe;
mod printf;
mod std_vector;
mod sync;
mod types;
mod values;
mod words;

use crate::error::Result;
use crate::ir::entity::FuncId;
use crate::ir::function::Linkage;
use crate::ir::module::Module;
use output::Output;
use parsed::{Def, Parsed};
use rustc_hash::FxHashMap;

/// The options of the application for reading a module.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Values of specialisation constants: id and little-endian bytes.
    pub spec_constants: Vec<(u32, Vec<u8>)>,
    /// Set for a library of built-in functions, whose floating-point code is not to be contracted
    /// unless it says so.
    pub library: bool,
    /// Read only the functions that kernels reach. Saves time where the module is not going to be linked with others.
    pub kernels_only: bool,
    /// Set for checks: see [`Function::keeps_unwritten`](crate::ir::function::Function::keeps_unwritten).
    pub keep_unwritten: bool,
}

/// Reads a module with all its functions (or those that kernels reach, if the options say so).
pub fn read_module(words: &[u32], options: &ReadOptions) -> Result<Module> {
    let parsed = Parsed::new(words, options)?;
    let mut module = Module::default();
    let mut output = Output::new(&mut module);
    let mut scratch = parsed.scratch();
    for var in &parsed.vars {
        if var.builtin.is_none() {
            output.global(&parsed, var.id)?;
        }
    }
    for id in parsed.pipes()? {
        output.global(&parsed, id)?;
    }
    if !options.kernels_only {
        for func in &parsed.funcs {
            output.function(&parsed, func.id)?;
        }
    }
    output.finish_globals(&parsed)?;
    if options.kernels_only {
        for entry in &parsed.entries {
            output.function(&parsed, entry.func)?;
        }
        read_pending(&parsed, &mut output, &mut scratch)?;
    } else {
        for func in &parsed.funcs {
            body::read_function(&parsed, &mut output, func, &mut scratch)?;
        }
    }
    kernel::read_kernels(&parsed, &mut output)?;
    for func in module.functions.keys() {
        module.functions[func].keeps_unwritten = options.keep_unwritten;
    }
    Ok(module)
}

/// Reads the functions that are pending, and those that they refer to.
fn read_pending(parsed: &Parsed, output: &mut Output, scratch: &mut Vec<u32>) -> Result<()> {
    while let Some(next) = output.pending.pop() {
        if let Some(Def::Func(index)) = parsed.defs.get(next as usize) {
            if let Some(func) = parsed.funcs.get(*index as usize) {
                body::read_function(parsed, output, func, scratch)?;
            }
        }
    }
    Ok(())
}

/// Returns the specialisation constants of a module: id and size in bytes.
pub fn spec_constants(words: &[u32]) -> Result<Vec<(u32, u32)>> {
    Ok(Parsed::new(words, &ReadOptions::default())?.spec_constants())
}

/// A library of functions whose bodies are read when they are needed. Indexing is done once.
#[derive(Debug)]
pub struct Library {
    parsed: Parsed,
    by_name: FxHashMap<String, u32>,
}

impl Library {
    /// Indexes the functions that a SPIR-V module exports.
    pub fn new(words: Vec<u32>) -> Result<Self> {
        let parsed = Parsed::new(
            &words,
            &ReadOptions {
                library: true,
                ..ReadOptions::default()
            },
        )?;
        let mut by_name = FxHashMap::default();
        for func in parsed.funcs.iter().filter(|f| f.has_body) {
            if let Some((name, Linkage::Export | Linkage::LinkOnce)) =
                parsed.decorations.linkage(func.id)
            {
                by_name.entry(name).or_insert(func.id);
            }
        }
        Ok(Self { parsed, by_name })
    }

    /// Returns true if the library defines that function.
    pub fn defines(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the names of all functions that the library defines.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// The import of functions from one library into one module.
pub(crate) struct Import<'l> {
    library: &'l Library,
    funcs: FxHashMap<u32, FuncId>,
    globals: FxHashMap<u32, crate::ir::entity::GlobalId>,
    scratch: Vec<u32>,
}

impl<'l> Import<'l> {
    /// Creates an import that has taken nothing yet.
    pub fn new(library: &'l Library) -> Self {
        let (funcs, globals) = Default::default();
        Self {
            library,
            funcs,
            globals,
            scratch: Vec::new(),
        }
    }

    /// Defines the imported function `id` of the module from the library, with the internal
    /// functions and the variables that it needs. New imports by name stay imports. Returns false
    /// if the library does not define it.
    pub fn define(&mut self, module: &mut Module, id: FuncId, name: &str) -> Result<bool> {
        let Some(&source) = self.library.by_name.get(name) else {
            return Ok(false);
        };
        let parsed = &self.library.parsed;
        if self.scratch.is_empty() {
            self.scratch = parsed.scratch();
        }
        let mut output = Output::lazy(
            module,
            std::mem::take(&mut self.funcs),
            std::mem::take(&mut self.globals),
        );
        output.adopt(parsed, source, id)?;
        read_pending(parsed, &mut output, &mut self.scratch)?;
        output.finish_globals(parsed)?;
        (self.funcs, self.globals) = output.take_maps();
        Ok(true)
    }
}
