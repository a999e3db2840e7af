//! A function: values, instructions, blocks, and (late) arrays and structure.

use super::entity::{Block, Inst, PrimaryMap, SecondaryMap, Value, Var};
use super::op::Op;
use super::types::Type;
use smallvec::SmallVec;

/// A short list of values.
pub type Values = SmallVec<[Value; 4]>;

/// Floating-point freedoms of one instruction. Empty means strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FpFlags(pub u8);

impl FpFlags {
    /// Operands and result are assumed not to be NaN.
    pub const NNAN: u8 = 1;
    /// Operands and result are assumed not to be infinite.
    pub const NINF: u8 = 2;
    /// The sign of a zero does not matter.
    pub const NSZ: u8 = 4;
    /// Division may become multiplication with the reciprocal.
    pub const ARCP: u8 = 8;
    /// A multiplication and an addition may be fused.
    pub const CONTRACT: u8 = 16;
    /// Operations may be reassociated.
    pub const REASSOC: u8 = 32;
    /// All of them (SPIR-V Fast).
    pub const FAST: u8 = 63;
    /// Returns true if the flag is set.
    pub fn has(self, flag: u8) -> bool {
        self.0 & flag == flag
    }
}

/// The definition of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueDef {
    /// Result number `.1` of an instruction.
    Result(Inst, u32),
    /// Parameter number `.1` of a block.
    Param(Block, u32),
}

/// A value.
#[derive(Debug, Clone, Copy)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// Its definition.
    pub def: ValueDef,
}

/// An instruction.
#[derive(Debug, Clone)]
pub struct InstData {
    /// The operation.
    pub op: Op,
    /// Operands.
    pub args: Values,
    /// Results.
    pub results: SmallVec<[Value; 2]>,
    /// Floating-point freedoms.
    pub fp: FpFlags,
    /// Source line, 0 when unknown.
    pub line: u32,
}

/// An edge of the control flow: a block with the arguments for its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The target block.
    pub block: Block,
    /// One value for each parameter of the block.
    pub args: Values,
}

impl Edge {
    /// Creates an edge with a value for each parameter of the block.
    pub fn with(block: Block, args: impl IntoIterator<Item = Value>) -> Self {
        let args = args.into_iter().collect();
        Self { block, args }
    }

    /// Creates an edge to a block without parameters.
    pub fn new(block: Block) -> Self {
        Self {
            block,
            args: Values::new(),
        }
    }
}

/// The terminator of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Terminator {
    /// An unconditional jump.
    Jump(Edge),
    /// A branch on a Bool, to the first target if it is true.
    Branch(Value, Edge, Edge),
    /// A switch on an integer: cases with distinct values (zero-extended bits), then the default.
    Switch(Value, Vec<(u64, Edge)>, Edge),
    /// Returns the values from the function.
    Return(Values),
    /// Never reached.
    #[default]
    Unreachable,
}

impl Terminator {
    /// Returns all targets, in order (the default of a switch last).
    pub fn targets(&self) -> SmallVec<[&Edge; 2]> {
        match self {
            Self::Jump(t) => SmallVec::from_slice(&[t]),
            Self::Branch(_, a, b) => SmallVec::from_slice(&[a, b]),
            Self::Switch(_, cases, default) => {
                cases.iter().map(|(_, t)| t).chain([default]).collect()
            }
            Self::Return(_) | Self::Unreachable => SmallVec::new(),
        }
    }
    /// Returns the target of that number, as [`Self::targets`] counts them.
    pub fn target(&self, number: usize) -> Option<&Edge> {
        match (self, number) {
            (Self::Jump(t) | Self::Branch(_, t, _), 0) | (Self::Branch(_, _, t), 1) => Some(t),
            (Self::Switch(_, cases, default), n) if n <= cases.len() => {
                Some(cases.get(n).map_or(default, |(_, t)| t))
            }
            _ => None,
        }
    }
    /// Returns the target of that number, mutable.
    pub fn target_mut(&mut self, number: usize) -> Option<&mut Edge> {
        match (self, number) {
            (Self::Jump(t) | Self::Branch(_, t, _), 0) | (Self::Branch(_, _, t), 1) => Some(t),
            (Self::Switch(_, cases, default), n) if n <= cases.len() => {
                Some(cases.get_mut(n).map_or(default, |(_, t)| t))
            }
            _ => None,
        }
    }
    /// Returns all targets, mutable.
    pub fn targets_mut(&mut self) -> SmallVec<[&mut Edge; 2]> {
        match self {
            Self::Jump(t) => SmallVec::from_iter([t]),
            Self::Branch(_, a, b) => SmallVec::from_iter([a, b]),
            Self::Switch(_, cases, default) => {
                cases.iter_mut().map(|(_, t)| t).chain([default]).collect()
            }
            Self::Return(_) | Self::Unreachable => SmallVec::new(),
        }
    }
    /// Calls `f` on every value used, targets' arguments included.
    pub fn for_each_use(&self, mut f: impl FnMut(Value)) {
        match self {
            Self::Branch(v, ..) | Self::Switch(v, ..) => f(*v),
            Self::Return(values) => values.iter().for_each(|v| f(*v)),
            Self::Jump(_) | Self::Unreachable => {}
        }
        for target in self.targets() {
            target.args.iter().for_each(|v| f(*v));
        }
    }
    /// Rewrites every value used.
    pub fn map_uses(&mut self, mut f: impl FnMut(Value) -> Value) {
        match self {
            Self::Branch(v, ..) | Self::Switch(v, ..) => *v = f(*v),
            Self::Return(values) => values.iter_mut().for_each(|v| *v = f(*v)),
            Self::Jump(_) | Self::Unreachable => {}
        }
        for target in self.targets_mut() {
            target.args.iter_mut().for_each(|v| *v = f(*v));
        }
    }
}

/// A basic block.
#[derive(Debug, Clone, Default)]
pub struct BlockData {
    /// Parameters (phi nodes).
    pub params: Vec<Value>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// The terminator.
    pub term: Terminator,
}

/// The storage of an array variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Shared by the work-group.
    Workgroup,
    /// Private to a work-item.
    Function,
}

/// The length of an array variable, in elements: `fixed` plus, for each specialisation constant named, its value (in
/// bytes) divided by the element size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VarLen {
    /// Constant part, in elements.
    pub fixed: u32,
    /// Specialisation constants with sizes in bytes (multiples of `LOCAL_ARG_ALIGN`).
    pub spec: Vec<u32>,
}

/// An array in Workgroup or Function storage of a lowered kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarData {
    /// The storage class.
    pub storage: Storage,
    /// Element type; not Bool, not a pointer.
    pub elem: Type,
    /// The number of lanes of an element, which is a vector: 1, and in Workgroup storage 2 or 4.
    pub lanes: u32,
    /// Set if some access is through a volatile pointer, so that every load and store is volatile.
    pub volatile: bool,
    /// Number of elements.
    pub len: VarLen,
    /// The group of variables that overlay one another (explicit workgroup layout), or `None`.
    pub alias: Option<u32>,
}

impl VarData {
    /// Returns the bytes of an element.
    pub fn elem_size(&self) -> u32 {
        self.elem.size() * self.lanes
    }
}

/// The structured construct that a block heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// A selection whose branches join in `merge`.
    #[allow(missing_docs)]
    Selection { merge: Block },
    /// A loop header, with the merge block after the loop and the continue block.
    #[allow(missing_docs)]
    Loop { merge: Block, cont: Block },
}

/// The structured form: merge annotations. When present, `layout` is an order in which SPIR-V may list the blocks.
#[derive(Debug, Clone, Default)]
pub struct Structure {
    /// The construct that a block heads.
    pub merges: SecondaryMap<Block, Option<Merge>>,
}

/// Visibility of a function outside its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// Not visible to other modules.
    #[default]
    Internal,
    /// Defined here, visible to other modules.
    Export,
    /// Defined elsewhere: no blocks.
    Import,
    /// Defined here and perhaps identically elsewhere.
    LinkOnce,
}

/// A function.
#[derive(Debug, Clone, Default)]
pub struct Function {
    /// The linkage or entry-point name (mangled as the source compiler had it).
    pub name: String,
    /// Linkage.
    pub linkage: Linkage,
    /// Types of the parameters. The entry block has one block parameter for each.
    pub params: Vec<Type>,
    /// Types of the results.
    pub results: Vec<Type>,
    /// All values.
    pub values: PrimaryMap<Value, ValueData>,
    /// All instructions, those removed from their block included.
    pub insts: PrimaryMap<Inst, InstData>,
    /// All blocks, those removed from the layout included.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// The blocks in order; the first is the entry. Empty for an import.
    pub layout: Vec<Block>,
    /// Array variables (after lowering).
    pub vars: PrimaryMap<Var, VarData>,
    /// Structured control flow (after structurizing).
    pub structure: Option<Structure>,
    /// Variables that may be read before they are written stay in memory, where the interpreter sees that.
    pub keeps_unwritten: bool,
    /// Private memory that was not written is zero (cl_khr_initialize_memory).
    pub zeroed: bool,
}

impl Function {
    /// Returns the entry block, if the function has a body.
    pub fn entry(&self) -> Option<Block> {
        self.layout.first().copied()
    }
    /// Returns the instructions of the blocks in the layout, in its order.
    pub fn layout_insts(&self) -> impl Iterator<Item = &Inst> {
        let blocks = self.layout.iter();
        blocks.flat_map(|&block| &self.blocks[block].insts)
    }
    /// Adds an empty block at the end of the layout.
    pub fn add_block(&mut self) -> Block {
        let block = self.blocks.push(BlockData::default());
        self.layout.push(block);
        block
    }
    /// Adds a parameter to a block.
    pub fn add_param(&mut self, block: Block, ty: Type) -> Value {
        let index = self.blocks[block].params.len() as u32;
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Param(block, index),
        });
        self.blocks[block].params.push(value);
        value
    }
    /// Creates an instruction that is in no block yet.
    pub fn make_inst(
        &mut self,
        op: Op,
        args: impl IntoIterator<Item = Value>,
        results: &[Type],
    ) -> Inst {
        let inst = self.insts.push(InstData {
            op,
            args: args.into_iter().collect(),
            results: SmallVec::new(),
            fp: FpFlags::default(),
            line: 0,
        });
        for &ty in results {
            self.add_result(inst, ty);
        }
        inst
    }
    /// Adds a result to an instruction.
    pub fn add_result(&mut self, inst: Inst, ty: Type) -> Value {
        let index = self.insts[inst].results.len() as u32;
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Result(inst, index),
        });
        self.insts[inst].results.push(value);
        value
    }
    /// Appends an instruction to a block.
    pub fn append(
        &mut self,
        block: Block,
        op: Op,
        args: impl IntoIterator<Item = Value>,
        results: &[Type],
    ) -> Inst {
        let inst = self.make_inst(op, args, results);
        self.blocks[block].insts.push(inst);
        inst
    }
    /// Appends an instruction with one result, and returns that.
    pub fn append1(
        &mut self,
        block: Block,
        op: Op,
        args: impl IntoIterator<Item = Value>,
        ty: Type,
    ) -> Value {
        let inst = self.append(block, op, args, &[ty]);
        self.insts[inst].results[0]
    }
    /// Appends a constant.
    pub fn append_const(&mut self, block: Block, ty: Type, bits: u64) -> Value {
        self.append1(block, Op::Const(bits & ty.mask()), [], ty)
    }
    /// Returns the type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty
    }
    /// Returns the bits of a value if it is a constant.
    pub fn as_const(&self, value: Value) -> Option<u64> {
        match self.values[value].def {
            ValueDef::Result(inst, _) => match self.insts[inst].op {
                Op::Const(bits) => Some(bits),
                _ => None,
            },
            ValueDef::Param(..) => None,
        }
    }
    /// Returns the instruction that defines a value, unless it is a block parameter.
    pub fn def_inst(&self, value: Value) -> Option<Inst> {
        match self.values[value].def {
            ValueDef::Result(inst, _) => Some(inst),
            ValueDef::Param(..) => None,
        }
    }
    /// Rewrites every use of every value in the blocks of the layout.
    pub fn map_uses(&mut self, mut f: impl FnMut(Value) -> Value) {
        for &block in &self.layout {
            for &inst in &self.blocks[block].insts {
                self.insts[inst].args.iter_mut().for_each(|v| *v = f(*v));
            }
            self.blocks[block].term.map_uses(&mut f);
        }
    }
}
