//! A module: functions, module-level variables, kernels, printf sites.

use super::entity::{FuncId, GlobalId, PrimaryMap};
use super::function::{Function, Linkage};
use super::types::{Space, Type};
use crate::interface::{AccessQualifier, AddressQualifier, ImageDim, KernelAttributes};
use borsh::{BorshDeserialize, BorshSerialize};
use rustc_hash::FxHashMap;

/// A pointer within the initial data of a global.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalReloc {
    /// Byte offset of the 8-byte pointer in the data.
    pub offset: u64,
    /// The variable pointed to.
    pub target: GlobalId,
    /// Byte offset added to the target's address.
    pub addend: u64,
}

/// A module-level variable.
#[derive(Debug, Clone, Default)]
pub struct Global {
    /// Name, may be empty.
    pub name: String,
    /// Linkage.
    pub linkage: Linkage,
    /// Global, Constant or Local.
    pub space: Option<Space>,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u32,
    /// The initial bytes (`size` of them); None: uninitialised (Local) or zero.
    pub init: Option<Vec<u8>>,
    /// Pointers within `init`.
    pub relocs: Vec<GlobalReloc>,
}

impl Global {
    /// Returns the alignment at which the variable is placed, in bytes. It exceeds `align` where
    /// the compiler lays the variable out.
    pub fn placement(&self) -> u32 {
        match self.space {
            Some(Space::Local) => self.align,
            _ => self.align.max(least_alignment(self.size)),
        }
    }

    /// Returns true if the variable is constant and its bytes are known.
    pub fn is_constant(&self) -> bool {
        self.space == Some(Space::Constant)
            && self.linkage != Linkage::Import
            && self.relocs.is_empty()
    }

    /// Returns true if the variable is constant and all its bytes are zero.
    pub fn is_zero(&self) -> bool {
        self.is_constant() && self.init.iter().flatten().all(|&byte| byte == 0)
    }
}

/// Returns the least alignment that compilers give variables of that size. libclc reads a table of
/// bytes as uint4, but its SPIR-V does not declare the alignment, and NVIDIA's driver reads from a
/// wrong address otherwise. Byte copies also use whole words by it.
pub fn least_alignment(size: u64) -> u32 {
    match size {
        0..4 => 1,
        4..8 => 4,
        8..16 => 8,
        _ => 16,
    }
}

/// The way a source-level kernel argument is passed in the parameters of the kernel's function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// Scalars in memory order: `count` consecutive parameters of type `ty`, `stride` bytes apart, `size` bytes in all
    /// (a 3-vector has 3 parameters and the size of 4).
    #[allow(missing_docs)]
    Value { ty: Type, count: u32, size: u32 },
    /// A structure by value: one ptr.private parameter to a copy of `size` bytes.
    #[allow(missing_docs)]
    ByVal { size: u32, align: u32 },
    /// A pointer into global, constant or local memory: one parameter.
    Pointer(Space),
    /// Image: one Handle parameter.
    #[allow(missing_docs)]
    Image { dim: ImageDim, depth: bool },
    /// Sampler: one Handle parameter.
    Sampler,
    /// Pipe: one ptr.global parameter, the address of its bytes (see [`crate::pipe`]).
    Pipe,
    /// Device queue: one ptr.global parameter, the address of its memory (see [`crate::device_queue`]).
    Queue,
}

impl ParamKind {
    /// Returns the number of the function's parameters that it takes.
    pub fn values(self) -> usize {
        match self {
            Self::Value { count, .. } => count as usize,
            _ => 1,
        }
    }
}

/// A source-level kernel argument.
#[derive(Debug, Clone)]
pub struct KernelParam {
    /// The way it is passed.
    pub kind: ParamKind,
    /// Name, empty if unknown.
    pub name: String,
    /// Type as OpenCL C spells it, empty if unknown.
    pub type_name: String,
    /// The address qualifier for clGetKernelArgInfo.
    pub address: AddressQualifier,
    /// The access qualifier for clGetKernelArgInfo.
    pub access: AccessQualifier,
    /// Set for `const`.
    pub is_const: bool,
    /// Set for `restrict`.
    pub is_restrict: bool,
    /// Set for `volatile`.
    pub is_volatile: bool,
    /// Bytes that the memory of a pointer may have at most (SPIR-V decoration MaxByteOffset).
    pub max_size: Option<u32>,
}

/// A kernel: entry point of a module.
#[derive(Debug, Clone)]
pub struct EntryPoint {
    /// Name.
    pub name: String,
    /// Its function. Other functions may call it too.
    pub func: FuncId,
    /// Source-level arguments.
    pub params: Vec<KernelParam>,
    /// Attributes.
    pub attributes: KernelAttributes,
    /// Set for ContractionOff: no instruction may be fused.
    pub contraction_off: bool,
}

/// One argument of a printf call after the format.
#[derive(Debug, Clone, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PrintfArg {
    /// `lanes` values of a type.
    #[allow(missing_docs)]
    Value { ty: Type, lanes: u32 },
    /// A string known at compile time, which has no operand.
    Text(Vec<u8>),
    /// A string behind a pointer operand.
    String,
}

/// A printf call site.
#[derive(Debug, Clone, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrintfSite {
    /// The format string, without its terminating zero.
    pub format: Vec<u8>,
    /// The arguments after the format.
    pub args: Vec<PrintfArg>,
}

/// A module.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// Functions.
    pub functions: PrimaryMap<FuncId, Function>,
    /// Module-level variables.
    pub globals: PrimaryMap<GlobalId, Global>,
    /// Kernels.
    pub kernels: Vec<EntryPoint>,
    /// printf call sites, by the index in `Op::Printf`.
    pub printfs: Vec<PrintfSite>,
    /// Functions by linkage name (exports, link-once and imports).
    pub by_name: FxHashMap<String, FuncId>,
}
