//! The operations of KIR.
//!
//! Unless said otherwise an operation has one result, and its operands have the type of the result. Integer
//! arithmetic wraps. A shift by at least the width gives an unspecified value (the folder masks the amount).
//! Division by zero and overflow of signed division give an unspecified value, never a trap.

use super::entity::{FuncId, GlobalId, Var};
use super::types::Space;

/// Integer comparison. Pointers compare with these too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntCond {
    Eq,
    Ne,
    Slt,
    Sle,
    Sgt,
    Sge,
    Ult,
    Ule,
    Ugt,
    Uge,
}

/// Floating-point comparison. `O..`: false if an operand is NaN; `U..`: true if an operand is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum FloatCond {
    Oeq,
    One,
    Olt,
    Ole,
    Ogt,
    Oge,
    Ord,
    Ueq,
    Une,
    Ult,
    Ule,
    Ugt,
    Uge,
    Uno,
}

/// Rounding mode of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Rounding {
    Rte,
    Rtz,
    Rtp,
    Rtn,
}

/// Read-modify-write operation of an atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum RmwOp {
    Xchg,
    Add,
    Sub,
    And,
    Or,
    Xor,
    SMin,
    SMax,
    UMin,
    UMax,
    FAdd,
    FMin,
    FMax,
}

/// Memory order (C11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

/// An execution or memory scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scope {
    AllDevices,
    Device,
    WorkGroup,
    SubGroup,
    WorkItem,
}

/// The memories that a barrier or fence orders: a set of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fences {
    /// global memory
    pub global: bool,
    /// local memory
    pub local: bool,
    /// images
    pub image: bool,
}

/// OpenCL built-in variables. `u8` is the dimension, 0 to 2. Results are I64 for those that are `size_t` in OpenCL C
/// (all but `WorkDim` and the sub-group ones, which are I32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Builtin {
    GlobalId(u8),
    GlobalSize(u8),
    GlobalOffset(u8),
    LocalId(u8),
    LocalSize(u8),
    EnqueuedLocalSize(u8),
    GroupId(u8),
    NumGroups(u8),
    WorkDim,
    GlobalLinearId,
    LocalLinearId,
    SubGroupSize,
    SubGroupMaxSize,
    NumSubGroups,
    NumEnqueuedSubGroups,
    SubGroupId,
    SubGroupLocalId,
}

impl Builtin {
    /// Returns true for a size, a number or an id of sub-groups.
    pub fn is_of_sub_groups(self) -> bool {
        matches!(
            self,
            Self::SubGroupSize
                | Self::SubGroupMaxSize
                | Self::NumSubGroups
                | Self::NumEnqueuedSubGroups
                | Self::SubGroupId
                | Self::SubGroupLocalId
        )
    }
}

/// Variables of the Vulkan execution model. All I32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum HwVar {
    LocalInvocationId(u8),
    WorkgroupId(u8),
    NumWorkgroups(u8),
    /// Specialisation constant with the work-group size.
    WorkgroupSize(u8),
    LocalInvocationIndex,
    SubgroupSize,
    SubgroupInvocationId,
    SubgroupId,
    NumSubgroups,
}

/// A collective operation. Its scope (work-group or sub-group) is beside it in [`Op::Group`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupOp {
    /// Bool -> Bool
    All,
    /// Bool -> Bool
    Any,
    /// T -> Bool: all active work-items have the same value.
    AllEqual,
    /// -> Bool: true in one active work-item.
    Elect,
    /// value, local id (I32 x 1 for a sub-group, I64 x 3 for a work-group)
    Broadcast,
    /// value
    Reduce(GroupArith),
    /// value
    InclusiveScan(GroupArith),
    /// value
    ExclusiveScan(GroupArith),
    /// value; cluster size as constant
    ClusteredReduce(GroupArith),
    /// Bool -> I32 x 4
    Ballot,
    /// value, I32 id
    Shuffle,
    /// value, I32 mask
    ShuffleXor,
    /// value, I32 delta
    ShuffleUp,
    /// value, I32 delta
    ShuffleDown,
    /// value, I32 delta, and where it is within clusters their size as a constant
    Rotate,
}

/// The arithmetic of a reduction or scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum GroupArith {
    IAdd,
    FAdd,
    IMul,
    FMul,
    SMin,
    UMin,
    FMin,
    SMax,
    UMax,
    FMax,
    And,
    Or,
    Xor,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
}

impl GroupArith {
    /// Returns the operation that combines two values.
    pub fn operation(self) -> Op {
        match self {
            Self::IAdd => Op::IAdd,
            Self::FAdd => Op::FAdd,
            Self::IMul => Op::IMul,
            Self::FMul => Op::FMul,
            Self::SMin => Op::SMin,
            Self::UMin => Op::UMin,
            Self::FMin => Op::FMin,
            Self::SMax => Op::SMax,
            Self::UMax => Op::UMax,
            Self::FMax => Op::FMax,
            Self::And | Self::LogicalAnd => Op::And,
            Self::Or | Self::LogicalOr => Op::Or,
            Self::Xor | Self::LogicalXor => Op::Xor,
        }
    }
}

/// The type of a texel's components in a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Texel {
    /// F32, for normalised and float formats.
    Float,
    /// I32, for signed integer formats.
    Signed,
    /// I32, for unsigned integer formats.
    Unsigned,
    /// I32, for all formats with texels of 1, 2 or 4 bytes: the first component is the texel's bits.
    /// Only by handle; a descriptor of such texels is [`Texel::Unsigned`].
    Raw,
}

impl Texel {
    /// Returns the type of a component.
    pub fn component(self) -> crate::ir::types::Type {
        match self {
            Self::Float => crate::ir::types::Type::F32,
            Self::Signed | Self::Unsigned | Self::Raw => crate::ir::types::Type::I32,
        }
    }
}

/// A word of [`crate::interface::ImageInfo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ImageProperty {
    Width,
    Height,
    Depth,
    ArraySize,
    DataType,
    Order,
    MipLevels,
    Flags,
}

impl ImageProperty {
    /// All properties, in the order of the structure.
    pub const ALL: [Self; 8] = [
        Self::Width,
        Self::Height,
        Self::Depth,
        Self::ArraySize,
        Self::DataType,
        Self::Order,
        Self::MipLevels,
        Self::Flags,
    ];

    /// Returns the byte offset in the structure.
    pub fn offset(self) -> u32 {
        4 * self as u32
    }
}

/// An image by descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageSlot {
    /// Binding in set 0.
    pub binding: u32,
    /// Geometry.
    pub dim: crate::interface::ImageDim,
    /// Components.
    pub texel: Texel,
}

/// The type of an image that comes from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageType {
    /// Geometry.
    pub dim: crate::interface::ImageDim,
    /// Set for `image*_depth_t`.
    pub depth: bool,
    /// Access qualifier.
    pub access: crate::interface::AccessQualifier,
}

/// The operation of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    // --- values
    /// A constant of any type: the bits, zero-extended. Bool: 0 or 1.
    Const(u64),
    /// Any value of the result type.
    Undef,
    /// Address of a module-level variable. Result: pointer in the variable's space.
    GlobalAddr(GlobalId),

    // --- integers (I8 to I64); And, Or, Xor and Not take Bool too
    #[allow(missing_docs)]
    IAdd,
    #[allow(missing_docs)]
    ISub,
    #[allow(missing_docs)]
    IMul,
    #[allow(missing_docs)]
    SDiv,
    #[allow(missing_docs)]
    UDiv,
    /// Remainder with the sign of the dividend.
    SRem,
    #[allow(missing_docs)]
    URem,
    /// High half of the signed product.
    SMulHi,
    /// High half of the unsigned product.
    UMulHi,
    #[allow(missing_docs)]
    And,
    #[allow(missing_docs)]
    Or,
    #[allow(missing_docs)]
    Xor,
    /// Shift left; the amount has the type of the value.
    Shl,
    /// Logical shift right.
    LShr,
    /// Arithmetic shift right.
    AShr,
    #[allow(missing_docs)]
    SMin,
    #[allow(missing_docs)]
    SMax,
    #[allow(missing_docs)]
    UMin,
    #[allow(missing_docs)]
    UMax,
    #[allow(missing_docs)]
    INeg,
    /// Bitwise (integers) or logical (Bool) complement.
    Not,
    /// Leading zeros; the width for zero.
    Clz,
    /// Trailing zeros; the width for zero.
    Ctz,
    #[allow(missing_docs)]
    Popcount,
    #[allow(missing_docs)]
    BitReverse,
    /// Dot product of four bytes in each I32, of signed ones; wraps.
    SDot4,
    /// The same of unsigned ones.
    UDot4,
    /// The same of signed with unsigned ones.
    SUDot4,

    // --- floating point
    #[allow(missing_docs)]
    FAdd,
    #[allow(missing_docs)]
    FSub,
    #[allow(missing_docs)]
    FMul,
    #[allow(missing_docs)]
    FDiv,
    /// fmod: result has the sign of the dividend.
    FRem,
    #[allow(missing_docs)]
    FNeg,
    #[allow(missing_docs)]
    FAbs,
    /// Sign of the second operand on the magnitude of the first.
    FCopySign,
    /// minNum: the other operand if one is NaN.
    FMin,
    /// maxNum.
    FMax,
    /// Fused multiply-add a * b + c, rounded once. Only where the target has it.
    Fma,
    /// Correctly rounded square root. Only where the target has it.
    FSqrt,
    #[allow(missing_docs)]
    FFloor,
    #[allow(missing_docs)]
    FCeil,
    #[allow(missing_docs)]
    FTrunc,
    /// Round to nearest even (rint).
    FRoundEven,
    /// Native, imprecise function of the target.
    FNative(NativeFn),

    // --- comparison and selection
    /// Two operands of one integer, Bool (Eq, Ne) or pointer type. Result Bool.
    ICmp(IntCond),
    /// Two operands of one float type. Result Bool.
    FCmp(FloatCond),
    /// Bool, value if true, value if false.
    Select,

    // --- conversions: one operand
    /// To a wider integer; from Bool too (0 or 1).
    ZExt,
    /// To a wider integer; from Bool too (0 or -1).
    SExt,
    /// To a narrower integer.
    Trunc,
    /// Between float widths.
    FConv(Rounding),
    /// Signed integer to float.
    SToF(Rounding),
    /// Unsigned integer to float.
    UToF(Rounding),
    /// Float to signed integer. `sat`: clamps, NaN gives 0; otherwise out-of-range is unspecified.
    #[allow(missing_docs)]
    FToS { rounding: Rounding, sat: bool },
    /// Float to unsigned integer.
    #[allow(missing_docs)]
    FToU { rounding: Rounding, sat: bool },
    /// Same bits, other type of the same width (integer, float).
    Bitcast,
    /// Pointer to I64.
    PtrToInt,
    /// I64 to pointer.
    IntToPtr,
    /// Low half, high half (I32) -> pointer to global or constant memory, or F64.
    Join,
    /// F64 -> low half of its bits, I32.
    Low,
    /// F64 -> high half of its bits, I32.
    High,
    /// The half in the lower 16 bits of an I32 -> F32, exactly.
    UnpackHalf,
    /// F32 -> I32: the half nearest to it, ties to even, in the lower 16 bits, zeros above.
    PackHalf,
    /// Pointer to pointer of another space (to or from Generic). A cast that does not hold gives null
    /// (`to_global` and relatives).
    SpaceCast,
    /// Generic pointer -> Bool: does it point into that space?
    PtrIsIn(Space),

    // --- memory by address
    /// Pointer, I64 byte offset -> pointer.
    PtrAdd,
    /// Private memory of `size` bytes that lives as long as the function. Entry block only. Result ptr.private.
    #[allow(missing_docs)]
    Alloca { size: u32, align: u32 },
    /// Pointer -> one or more results of one type, consecutive in memory. `align`: of the first, in bytes.
    #[allow(missing_docs)]
    Load { align: u32, volatile: bool },
    /// Pointer, one or more values of one type. No result.
    #[allow(missing_docs)]
    Store { align: u32, volatile: bool },
    /// Destination pointer, source pointer: copies `size` bytes that do not overlap. No result.
    #[allow(missing_docs)]
    MemCopy { size: u64, align: u32 },
    /// Pointer -> value.
    #[allow(missing_docs)]
    AtomicLoad { scope: Scope, order: Order },
    /// Pointer, value. No result.
    #[allow(missing_docs)]
    AtomicStore { scope: Scope, order: Order },
    /// Pointer, operand -> old value.
    #[allow(missing_docs)]
    AtomicRmw {
        op: RmwOp,
        scope: Scope,
        order: Order,
    },
    /// Pointer, expected, desired -> old value.
    #[allow(missing_docs)]
    AtomicCmpXchg { scope: Scope, order: Order },

    // --- memory in arrays of the lowered kernel; the first operand is an I32 element index
    /// Index -> element: as many results as it has lanes.
    VarLoad(Var),
    /// Index, as many values as an element has lanes. No result.
    VarStore(Var),
    /// Index, operand -> old value.
    #[allow(missing_docs)]
    VarRmw {
        var: Var,
        op: RmwOp,
        scope: Scope,
        order: Order,
    },
    /// Index, expected, desired -> old value.
    #[allow(missing_docs)]
    VarCmpXchg {
        var: Var,
        scope: Scope,
        order: Order,
    },
    /// Index -> element, atomically.
    #[allow(missing_docs)]
    VarAtomicLoad {
        var: Var,
        scope: Scope,
        order: Order,
    },
    /// Index, value, atomically. No result.
    #[allow(missing_docs)]
    VarAtomicStore {
        var: Var,
        scope: Scope,
        order: Order,
    },

    // --- images by handle. Coordinates are always three I32: x, y, z; the layer of an array stands after the last
    // coordinate that the geometry has, and what follows is ignored. Texels have four components.
    /// Image, coordinates -> components.
    ImageRead(Texel),
    /// Image, coordinates, components. No result. Outside of the image nothing is written.
    ImageWrite(Texel),
    /// Image, sampler, three F32 coordinates -> F32 components, filtered by the device: coordinates are normalised but for
    /// the layer.
    ImageFilter,
    /// Image -> I32.
    ImageQuery(ImageProperty),
    /// Sampler -> its property word (see [`crate::interface::sampler`]), I32. The constant handles are samplers of the
    /// program; their bits are the word.
    SamplerWord,
    /// Image -> its number, I64, which represents it in memory, where blocks find their captures.
    /// An argument of a kernel that the application launches has the number of the argument,
    /// counted from 1; blocks get those numbers.
    ImageNumber,
    /// Number, I64 -> image. In a block the number must be one that it captured. From
    /// [`crate::passes::lower_images`] on it is a constant, the number of the image among the
    /// captures, counted from 0.
    ImageAt(ImageType),
    /// Number, I64 -> sampler. The number that represents a sampler in memory is its property word.
    SamplerAt,

    // --- images by descriptor; the operands are those above without the image
    /// From a SAMPLED_IMAGE or UNIFORM_TEXEL_BUFFER.
    TexelFetch(ImageSlot),
    /// The same with the SAMPLER at a binding; as [`Op::ImageFilter`].
    #[allow(missing_docs)]
    TexelFilter { image: ImageSlot, sampler: u32 },
    /// From a STORAGE_IMAGE or STORAGE_TEXEL_BUFFER.
    TexelLoad(ImageSlot),
    /// To a STORAGE_IMAGE or STORAGE_TEXEL_BUFFER.
    TexelStore(ImageSlot),

    // --- execution
    /// All work-items of `exec` meet here; memory `fences` are ordered at `mem` scope. No operand, no result.
    #[allow(missing_docs)]
    Barrier {
        exec: Scope,
        mem: Scope,
        order: Order,
        fences: Fences,
    },
    /// Memory fence. No operand, no result.
    #[allow(missing_docs)]
    Fence {
        mem: Scope,
        order: Order,
        fences: Fences,
    },
    /// Collective operation of a work-group or sub-group.
    Group(GroupOp, Scope),
    /// Ticks of a clock, of the device or of a sub-group. Result I64.
    Clock(Scope),
    /// OpenCL built-in variable.
    Builtin(Builtin),
    /// Vulkan built-in variable.
    Hw(HwVar),
    /// Component `u8` of an implicit argument (see [`crate::interface::Implicit`]). Result I32, or I64 for
    /// addresses, which have two components of I32, too.
    Implicit(crate::interface::Implicit, u8),
    /// Explicit arguments: one or more results of one type at a byte offset of the argument block.
    ArgLoad(u32),
    /// Address of memory of the work-item's own, which calls pass on. Result ptr.global.
    Own {
        /// Bytes from its start.
        offset: u32,
        /// Bytes of all of it, a multiple of 64. The work-items of a pack have theirs one after the other.
        size: u32,
    },
    /// Size in bytes of a local argument, by specialisation constant id. Result I32.
    SpecSize(u32),
    /// Calls a function: its parameters, its results.
    Call(FuncId),
    /// printf: index into [`super::module::Module::printfs`]; operands are the flattened arguments after the format.
    /// Result I32 (0, or -1 on failure).
    Printf(u32),
}

/// Imprecise functions that targets have as instructions (GLSL.std.450).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum NativeFn {
    Sin,
    Cos,
    Exp2,
    Log2,
    Rsqrt,
    Sqrt,
    Fma,
    Pow,
}

/// Effects of an operation, for passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Depends on operands alone: may be removed, moved, merged.
    Pure,
    /// Reads memory: may be removed when unused, not moved across writes.
    Read,
    /// Writes memory, or has another effect: stays where it is.
    Write,
    /// Depends on which work-items are active: must not move to other control flow.
    Convergent,
}

impl Op {
    /// Returns the effect. A volatile load counts as a write.
    pub fn effect(self) -> Effect {
        use Op::*;
        match self {
            Load {
                volatile: false, ..
            }
            | VarLoad(_)
            | ImageRead(_)
            | ImageFilter
            | TexelFilter { .. }
            | TexelFetch(_)
            | TexelLoad(_) => Effect::Read,
            Load { .. }
            | Store { .. }
            | MemCopy { .. }
            | AtomicLoad { .. }
            | AtomicStore { .. }
            | AtomicRmw { .. }
            | AtomicCmpXchg { .. }
            | VarStore(_)
            | VarRmw { .. }
            | VarCmpXchg { .. }
            | VarAtomicLoad { .. }
            | VarAtomicStore { .. }
            | ImageWrite(_)
            | TexelStore(_)
            | Fence { .. }
            | Clock(_)
            | Printf(_) => Effect::Write,
            Barrier { .. } | Group(..) | Call(_) => Effect::Convergent,
            // What is allocated is found by its address alone.
            Alloca { .. } => Effect::Pure,
            Const(_) | Undef | GlobalAddr(_) => Effect::Pure,
            IAdd | ISub | IMul | SDiv | UDiv | SRem | URem | SMulHi | UMulHi => Effect::Pure,
            And | Or | Xor | Shl | LShr | AShr | Not => Effect::Pure,
            SMin | SMax | UMin | UMax | INeg => Effect::Pure,
            Clz | Ctz | Popcount | BitReverse | SDot4 | UDot4 | SUDot4 => Effect::Pure,
            FAdd | FSub | FMul | FDiv | FRem | FNeg | FAbs | FCopySign => Effect::Pure,
            FMin | FMax | Fma | FSqrt | FFloor | FCeil | FTrunc | FRoundEven => Effect::Pure,
            FNative(_) | ICmp(_) | FCmp(_) | Select => Effect::Pure,
            ZExt | SExt | Trunc | FConv(_) | SToF(_) | UToF(_) => Effect::Pure,
            FToS { .. } | FToU { .. } | Bitcast => Effect::Pure,
            PtrToInt | IntToPtr | Join | Low | High | UnpackHalf | PackHalf => Effect::Pure,
            SpaceCast | PtrIsIn(_) | PtrAdd => Effect::Pure,
            ImageQuery(_) | SamplerWord | ImageNumber | ImageAt(_) | SamplerAt => Effect::Pure,
            Builtin(_) | Hw(_) | Implicit(..) | ArgLoad(_) | SpecSize(_) => Effect::Pure,
            Own { .. } => Effect::Pure,
        }
    }
    /// Returns true if the operation accesses memory or a variable atomically.
    pub fn is_atomic(self) -> bool {
        use Op::*;
        matches!(
            self,
            AtomicLoad { .. }
                | AtomicStore { .. }
                | AtomicRmw { .. }
                | AtomicCmpXchg { .. }
                | VarAtomicLoad { .. }
                | VarAtomicStore { .. }
                | VarRmw { .. }
                | VarCmpXchg { .. }
        )
    }
    /// Returns true if the operation may be deleted when its results are unused.
    pub fn is_removable(self) -> bool {
        matches!(self.effect(), Effect::Pure | Effect::Read) || matches!(self, Op::Alloca { .. })
    }
    /// Returns true if the two operands may be swapped.
    pub fn is_commutative(self) -> bool {
        use Op::*;
        matches!(
            self,
            IAdd | IMul
                | SMulHi
                | UMulHi
                | And
                | Or
                | Xor
                | SMin
                | SMax
                | UMin
                | UMax
                | FAdd
                | FMul
                | FMin
                | FMax
                | ICmp(IntCond::Eq | IntCond::Ne)
        )
    }
}
