//! The public interface of the compiler: read a module, link modules into a program, lower a kernel
//! of it.
//!
//! ```text
//! words --read--> Program (object) --link--> Program (executable) --lower(kernel, target)--> Lowered
//! ```
//!
//! A [`Program`] is immutable and may be shared by threads; lowering a kernel copies what the
//! kernel reaches.

use crate::error::{LowerError, Result};
use crate::interface::{
    AddressQualifier, Arg, ArgKind, ImageArg, KernelAttributes, ProgramGlobals,
};
use crate::ir::function::{Function, Linkage};
use crate::ir::module::{Module, ParamKind};
use crate::ir::op::Op;
use crate::library::BuiltinLibrary;
use crate::link;
use crate::options::Options;
use crate::pipeline::{self, Lowered};
use crate::read::read_module;
pub use crate::read::ReadOptions;
use crate::target::Target;

/// The options for linking modules.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkOptions<'a> {
    /// Set if undefined names are not an error (`-create-library`, objects).
    pub allow_undefined: bool,
    /// The library that defines built-in functions, for an executable. None for libraries and
    /// objects.
    pub library: Option<&'a BuiltinLibrary>,
}

/// The properties of a kernel that need no lowering.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelInfo {
    /// Name.
    pub name: String,
    /// The arguments. Their places in the argument block are not known yet: offsets and ids are
    /// zero.
    pub args: Vec<Arg>,
    /// Attributes.
    pub attributes: KernelAttributes,
}

/// A specialisation constant of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecConstant {
    /// SpecId.
    pub id: u32,
    /// Size of the value in bytes.
    pub size: u32,
}

/// A module that was read, or several that were linked.
#[derive(Debug, Clone)]
pub struct Program {
    module: Module,
}

impl Program {
    /// Reads an OpenCL SPIR-V module.
    pub fn read(words: &[u32], options: &ReadOptions) -> Result<Self> {
        Ok(Self {
            module: read_module(words, options)?,
        })
    }

    /// Returns the specialisation constants of a module, without reading the rest of it.
    pub fn spec_constants(words: &[u32]) -> Result<Vec<SpecConstant>> {
        spec_constants(words)
    }

    /// Wraps a module that was read already (textual KIR).
    pub fn from_module(module: Module) -> Self {
        Self { module }
    }

    /// Links modules. With a library in the options the result can be lowered.
    pub fn link(programs: &[&Program], options: &LinkOptions) -> Result<Self> {
        let mut module = match programs {
            [one] if options.allow_undefined => one.module.clone(),
            // Built-in functions are imports too at this point: what is left undefined is judged below.
            _ => link::link(programs.iter().map(|p| p.module.clone()).collect(), true)?,
        };
        if let Some(library) = options.library {
            library.resolve(&mut module)?;
        }
        let program = Self { module };
        if !options.allow_undefined && options.library.is_some() {
            program.check_undefined()?;
        }
        Ok(program)
    }

    /// Returns an error for the first name that is called or used, and defined nowhere. Functions
    /// that every target has as native operations (`native_sin`) need no definition: they are
    /// checked when a kernel is lowered.
    fn check_undefined(&self) -> Result<()> {
        let module = &self.module;
        let missing = |name: &str| LowerError::Undefined {
            function: None,
            name: name.to_owned(),
        };
        let undefined = |f: &Function| f.linkage == Linkage::Import && !f.name.starts_with("_Z");
        for func in module.functions.values() {
            for &block in &func.layout {
                for &inst in &func.blocks[block].insts {
                    match func.insts[inst].op {
                        Op::Call(id) => {
                            if let Some(callee) = module.functions.get(id).filter(|f| undefined(f))
                            {
                                return Err(missing(&callee.name).in_function(&func.name));
                            }
                        }
                        Op::GlobalAddr(id) => {
                            let global = module
                                .globals
                                .get(id)
                                .filter(|g| g.linkage == Linkage::Import);
                            if let Some(global) = global {
                                return Err(missing(&global.name).in_function(&func.name));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the module in KIR.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the kernels, with the answers of clGetKernelInfo and clGetKernelArgInfo.
    pub fn kernels(&self) -> Vec<KernelInfo> {
        self.module.kernels.iter().map(kernel_info).collect()
    }

    /// Returns the names of functions and variables that other modules may use.
    pub fn exports(&self) -> Vec<&str> {
        self.names(|l| matches!(l, Linkage::Export | Linkage::LinkOnce))
    }

    /// Returns the names of functions and variables that other modules must define (built-in
    /// functions included, unless the program was linked with a library).
    pub fn imports(&self) -> Vec<&str> {
        self.names(|l| l == Linkage::Import)
    }

    fn names(&self, wanted: impl Fn(Linkage) -> bool) -> Vec<&str> {
        let functions = self
            .module
            .functions
            .values()
            .filter(|f| wanted(f.linkage))
            .map(|f| f.name.as_str());
        let globals = self
            .module
            .globals
            .values()
            .filter(|g| wanted(g.linkage))
            .map(|g| g.name.as_str());
        functions.chain(globals).filter(|n| !n.is_empty()).collect()
    }

    /// Returns the program-scope variables and constants: one buffer of a program and device.
    pub fn globals(&self) -> Result<ProgramGlobals> {
        pipeline::program_globals(&self.module)
    }

    /// Lowers a kernel to Vulkan SPIR-V.
    pub fn lower(&self, kernel: &str, target: &Target, options: &mut Options) -> Result<Lowered> {
        pipeline::lower(&self.module, kernel, target, options)
    }
}

fn kernel_info(kernel: &crate::ir::module::EntryPoint) -> KernelInfo {
    KernelInfo {
        name: kernel.name.clone(),
        attributes: kernel.attributes.clone(),
        args: kernel
            .params
            .iter()
            .map(|p| Arg {
                kind: match p.kind {
                    ParamKind::Value { size, .. } | ParamKind::ByVal { size, .. } => {
                        ArgKind::Value { offset: 0, size }
                    }
                    ParamKind::Pointer(crate::ir::types::Space::Local) => {
                        ArgKind::Local { spec_id: 0 }
                    }
                    ParamKind::Pointer(_) => ArgKind::Buffer {
                        offset: 0,
                        constant: p.address == AddressQualifier::Constant,
                    },
                    ParamKind::Image { dim, depth } => ArgKind::Image(ImageArg::unused(dim, depth)),
                    ParamKind::Sampler => ArgKind::Sampler { offset: None },
                    ParamKind::Pipe => ArgKind::Pipe { offset: 0 },
                    ParamKind::Queue => ArgKind::Queue { offset: 0 },
                },
                name: p.name.clone(),
                type_name: p.type_name.clone(),
                address: p.address,
                access: p.access,
                is_const: p.is_const,
                is_restrict: p.is_restrict,
                is_volatile: p.is_volatile,
                max_size: p.max_size,
            })
            .collect(),
    }
}

/// Reads the specialisation constants from the words: SpecId decorations, and the sizes of the
/// constants that they name.
fn spec_constants(words: &[u32]) -> Result<Vec<SpecConstant>> {
    if words.first() != Some(&spirv::MAGIC_NUMBER) {
        return Err(LowerError::invalid("not a SPIR-V module"));
    }
    let mut ids: Vec<(u32, u32)> = Vec::new();
    let mut sizes: rustc_hash::FxHashMap<u32, u32> = Default::default();
    let mut found = Vec::new();
    for inst in crate::insts::insts(words) {
        let inst =
            inst.ok_or_else(|| LowerError::invalid("the module ends within an instruction"))?;
        match (inst.op(), inst.words) {
            (Some(spirv::Op::Decorate), &[_, target, decoration, id])
                if decoration == spirv::Decoration::SpecId as u32 =>
            {
                ids.push((target, id));
            }
            (Some(spirv::Op::TypeInt | spirv::Op::TypeFloat), &[_, id, bits, ..]) => {
                sizes.insert(id, bits / 8);
            }
            (Some(spirv::Op::TypeBool), &[_, id]) => {
                sizes.insert(id, 1);
            }
            (
                Some(
                    spirv::Op::SpecConstant
                    | spirv::Op::SpecConstantTrue
                    | spirv::Op::SpecConstantFalse,
                ),
                &[_, ty, result, ..],
            ) => {
                for &(_, id) in ids.iter().filter(|(target, _)| *target == result) {
                    let size = sizes
                        .get(&ty)
                        .copied()
                        .ok_or_else(|| LowerError::invalid("type of a constant"))?;
                    found.push(SpecConstant { id, size });
                }
            }
            (Some(spirv::Op::Function), _) => break,
            _ => {}
        }
    }
    Ok(found)
}
