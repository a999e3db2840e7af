//! KIR to vector code for processors, as LLVM IR in text.
//!
//! ```text
//! KIR of a kernel -> regions between barriers -> structured, as a tree -> classes (uniform, affine, varying) -> code with masks
//! ```
//! A *pack* of `lanes` work-items runs together, one in each lane: a varying value is a vector, a uniform one a scalar, an
//! affine one both. Branches on uniform values stay branches; where lanes part, both ways are run with masks. Memory at
//! affine addresses is read and written by whole vectors. The work-items of a group run pack after pack; at a barrier all
//! packs come as far as it, what they need afterwards lies in a *frame*, one a pack.
//!
//! Functions that are called (`calls`) are structured and classified like regions. Each is written once, for the lanes of a
//! mask that it is given; its results come back by way of memory.
//!
//! # The function that is made
//! ```text
//! void pumice_rows|tails|linear|groups(Launch *launch, char *local, char *frame, uint64_t first, uint64_t count)
//! ```
//! runs the work-groups `first .. first + count` of a launch (x fastest) one after the other. [`layout`] says what stands in
//! `Launch`; `pumice_info` is eight 32-bit words: version, lanes, bytes of a frame, bytes of static local memory, whether one
//! frame serves all packs, and zeros.

mod calls;
mod claims;
mod classes;
mod emit;
mod entry;
mod groups;
mod llvm;
mod regions;
mod strides;
mod tree;

pub use claims::claims;

use classes::Classes;
use tree::Tree;

use crate::claims::Order;
use crate::error::{LowerError, Result};
use crate::interface::Implicit;
use crate::ir::entity::{GlobalId, PrimaryMap, SecondaryMap, Value, Var};
use crate::ir::function::Function;
use crate::ir::module::{Global, Module};
use crate::ir::op::Op;
use crate::ir::types::Space;
use crate::passes::quirks::{absolute_differences, half_overflow};
use crate::quirks::{CodeQuirk, CodeQuirks};

/// Version of the interface between generated code and the runtime.
pub const VERSION: u32 = 1;

/// Byte offsets in the structure that describes a launch.
#[allow(missing_docs)]
pub mod layout {
    pub const GROUPS: u32 = 0;
    pub const LOCAL_SIZE: u32 = 12;
    pub const PUSH: u32 = 24;
    pub const BINDINGS: u32 = 32;
    pub const LOCAL_ARGS: u32 = 40;
    pub const LOCAL_IDS: u32 = 48;
    pub const LOCAL_IDS_STRIDE: u32 = 56;
    pub const PACKS: u32 = 60;
    pub const FRAME_BYTES: u32 = 64;
    /// Bytes of a descriptor of an image.
    pub const DESCRIPTOR: u32 = 64;
    /// Fields of a descriptor: the address of the first texel.
    pub const TEXELS: u32 = 0;
    /// Texels in x, y and z.
    pub const IMAGE_SIZE: u32 = 8;
    pub const TEXEL_BYTES: u32 = 20;
    pub const ROW_BYTES: u32 = 24;
    pub const SLICE_BYTES: u32 = 32;
    /// For each component the channel that it is read from.
    pub const COMPONENTS: u32 = 42;
    pub const OPAQUE_BORDER: u32 = 50;
    /// A [`TexelStorage`](super::TexelStorage).
    pub const TEXEL_STORAGE: u32 = 51;
}

/// How the code of kernels accesses the texels of an image. Bytes are fractions of 255 for kernels that access floats, else
/// integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TexelStorage {
    /// By the functions of the runtime.
    Called,
    /// A byte is the first component; the others are 0, 0, 1.
    Byte,
    /// Four bytes, in any order.
    Bytes4,
    /// 32 bits are the first component; the others are 0, 0, 1.
    Word,
    /// Four components of 32 bits.
    Words4,
}

/// How work-items stand in packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// A pack is a piece of a row, and rows are whole packs.
    Rows,
    /// The same, with the last pack of each row filled in part.
    Tails,
    /// A pack is a piece of the work-items in the order of their linear ids; the last is filled in part.
    Linear,
    /// Work-groups of one work-item: a pack is a piece of a row of groups, filled in part at its end. For kernels that
    /// [`packs_groups`].
    Groups,
    /// Work-groups of one work-item, one after the other: packs of one lane, which are code without vectors.
    Alone,
}

impl Packing {
    /// Its code runs work-groups of any size.
    pub const ANY_GROUP: Self = Self::Linear;

    /// Returns the packing of work-groups of a size, in packs of `lanes` work-items.
    pub fn of([x, y, z]: [u32; 3], lanes: u32, uses_subgroups: bool) -> Self {
        let (whole, one_row) = (x % lanes.max(1) == 0, y * z == 1);
        // Sub-groups are pieces of the order of linear ids.
        let in_rows = one_row || x >= lanes / 2 && !uses_subgroups;
        match (whole, in_rows) {
            (true, _) => Self::Rows,
            (false, true) => Self::Tails,
            (false, false) => Self::Linear,
        }
    }

    /// Returns the order of work-items in packs of those of a work-group.
    pub fn order(self) -> Order {
        match self {
            Self::Rows | Self::Tails => Order::Rows,
            Self::Linear | Self::Groups | Self::Alone => Order::Linear,
        }
    }

    /// Returns the name of the function.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Rows => "pumice_rows",
            Self::Tails => "pumice_tails",
            Self::Linear => "pumice_linear",
            Self::Groups => "pumice_groups",
            Self::Alone => "pumice_alone",
        }
    }
}

/// The memory that code may use below and above the end of its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stack {
    /// All of it is there, and so is what System V calls the red zone.
    Whole,
    /// Windows: it grows by a page when that is touched, so that none may be passed over, and nothing is safe below it.
    ByPages,
}

impl Stack {
    /// The stack of the system that this runs on.
    pub const HERE: Self = if cfg!(windows) {
        Self::ByPages
    } else {
        Self::Whole
    };

    /// Returns the attributes of functions, each after a blank.
    fn attributes(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::ByPages => " noredzone \"probe-stack\"=\"inline-asm\"",
        }
    }
}

/// For what code is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Work-items of a pack: 2, 4, 8, 16, 32 or 64; of [`Packing::Alone`] one.
    pub lanes: u32,
    /// Elements of 32 bits in a vector of the processor.
    pub width: u32,
    /// How they stand in packs.
    pub packing: Packing,
    /// The defects and peculiarities of LLVM.
    pub quirks: CodeQuirks,
    /// LLVM has an instruction for gathers of elements of 32 bits and more, and uses it.
    pub gathers: bool,
    /// Which stack the code runs on.
    pub stack: Stack,
}

impl Shape {
    /// Returns true if LLVM has an instruction for scatters of elements of 32 bits and more.
    fn scatters(&self) -> bool {
        self.width >= 16
    }
}

/// Where the local variables of a kernel lie.
pub struct Locals {
    /// The offset of each.
    pub offsets: SecondaryMap<GlobalId, u32>,
    /// Bytes of all.
    pub bytes: u32,
}

/// Lays out the local variables that a kernel reaches.
pub fn locals(globals: &PrimaryMap<GlobalId, Global>, func: &Function) -> Result<Locals> {
    let mut offsets = SecondaryMap::new();
    let mut placed: SecondaryMap<GlobalId, bool> = SecondaryMap::new();
    let mut bytes = 0u64;
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let Op::GlobalAddr(id) = func.insts[inst].op else {
                continue;
            };
            let Some(global) = globals.get(id) else {
                return Err(LowerError::internal("an unknown variable"));
            };
            if global.space != Some(Space::Local) || placed[id] {
                continue;
            }
            placed[id] = true;
            bytes = bytes.next_multiple_of(u64::from(global.align.max(1)));
            offsets[id] = bytes as u32;
            bytes += global.size;
        }
    }
    let bytes = u32::try_from(bytes.next_multiple_of(16))
        .map_err(|_| LowerError::unsupported("local memory of 4 GiB"))?;
    Ok(Locals { offsets, bytes })
}

/// A piece of a kernel between barriers, structured.
pub(crate) struct Region {
    /// Gives the number of the region to go on with, if there are several; 0 is the end.
    pub func: Function,
    /// Variables with one element for all lanes of a pack.
    pub uniform: SecondaryMap<Var, bool>,
    /// The parameters that lanes have different values of.
    pub varying: Vec<Value>,
}

impl Region {
    /// Creates a region of a whole function.
    fn whole(func: Function) -> Self {
        Self {
            func,
            uniform: SecondaryMap::new(),
            varying: Vec::new(),
        }
    }
}

/// Returns true if work-groups of one work-item of a kernel can run in packs. `module` holds it as
/// its only kernel.
pub fn packs_groups(module: &Module) -> bool {
    groups::independent_groups(module).is_some()
}

/// Makes the LLVM IR of a kernel: `module` holds it as its only kernel.
pub fn emit(module: &Module, implicit: &[(Implicit, u32)], shape: Shape) -> Result<String> {
    let kernel = module
        .kernels
        .first()
        .ok_or_else(|| LowerError::internal("no kernel"))?;
    let func = module
        .functions
        .get(kernel.func)
        .ok_or_else(|| LowerError::internal("no function of the kernel"))?;
    let valid = match shape.packing {
        Packing::Alone => shape.lanes == 1,
        _ => matches!(shape.lanes, 2 | 4 | 8 | 16 | 32 | 64),
    };
    if !valid {
        let what = format!("packs of {} lanes", shape.lanes);
        return Err(LowerError::unsupported(what));
    }
    let func = match shape.packing {
        Packing::Groups => groups::independent_groups(module)
            .ok_or_else(|| LowerError::internal("groups that are not independent"))?,
        _ => func.clone(),
    };
    let prepared = |mut func: Function| {
        if matches!(shape.packing, Packing::Groups | Packing::Alone) {
            func = groups::of_one_item(func);
        }
        if shape.quirks.has(CodeQuirk::HalfOverflow) {
            half_overflow::run(&mut func)?;
        }
        if shape.quirks.has(CodeQuirk::AbsoluteDifferences) {
            absolute_differences::run(&mut func)?;
        }
        Ok(func)
    };
    let func = prepared(func)?;
    let locals = locals(&module.globals, &func)?;
    let regions = regions::split(&func, shape.packing)?;
    let pieces = regions
        .into_iter()
        .map(|region| Piece::new(region, shape.packing));
    let pieces = pieces.collect::<Result<Vec<Piece>>>()?;
    let callees = calls::callees(module, &pieces, shape.packing, &prepared)?;
    entry::module(&pieces, &callees, implicit, &locals, shape)
}

/// A region with what is known of its values.
pub(crate) struct Piece {
    region: Region,
    tree: Tree,
    classes: Classes,
}

impl Piece {
    fn new(region: Region, packing: Packing) -> Result<Self> {
        let tree = Tree::new(&region.func)?;
        let classes = match packing {
            Packing::Alone => Classes::of_one_lane(tree.constructs.len()),
            packing => Classes::new(&region, &tree, packing),
        };
        Ok(Self {
            region,
            tree,
            classes,
        })
    }
}

/// Returns the LLVM IR of a function without local variables, for tests.
#[cfg(test)]
fn text_of(func: &str, lanes: u32) -> String {
    text_for(func, lanes, 16, true)
}

/// Returns the same for a processor with vectors of `width` elements, which has, or has not,
/// instructions for gathers.
#[cfg(test)]
fn text_for(func: &str, lanes: u32, width: u32, gathers: bool) -> String {
    let func = crate::ir::parse::parse_function(func).unwrap();
    let shape = Shape {
        lanes,
        width,
        packing: Packing::Rows,
        quirks: CodeQuirks::default(),
        gathers,
        stack: Stack::Whole,
    };
    let locals = Locals {
        offsets: SecondaryMap::new(),
        bytes: 0,
    };
    let regions = regions::split(&func, shape.packing).unwrap();
    let pieces = regions
        .into_iter()
        .map(|region| Piece::new(region, shape.packing).unwrap());
    let pieces: Vec<Piece> = pieces.collect();
    entry::module(&pieces, &calls::Callees::default(), &[], &locals, shape).unwrap()
}
