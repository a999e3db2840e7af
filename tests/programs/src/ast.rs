//! The syntax tree of a program in OpenCL C, with what it is run on.

use crate::types::{Scalar, Space, Struct, Type};
use std::rc::Rc;

/// An operator of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    Neg,
    Not,
    /// `!`
    Zero,
}

/// An operator of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `&&`
    Both,
    /// `||`
    Either,
}

impl Binary {
    /// Returns true for comparisons, `&&` and `||`, whose result is a truth value.
    pub fn is_test(self) -> bool {
        self as u8 >= Self::Eq as u8
    }

    /// The operator in OpenCL C.
    pub fn text(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Both => "&&",
            Self::Either => "||",
        }
    }
}

/// A function whose result depends on its operands alone: a built-in one, or `quotient` of [`QUOTIENT`](crate::print::QUOTIENT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pure {
    Abs,
    AbsDiff,
    AddSat,
    SubSat,
    Hadd,
    Rhadd,
    Clz,
    Ctz,
    Popcount,
    Rotate,
    MulHi,
    Max,
    Min,
    Bitselect,
    Select,
    Any,
    All,
    Fabs,
    Floor,
    Ceil,
    Trunc,
    Rint,
    Fmax,
    Fmin,
    Fma,
    Mad,
    Shuffle,
    Quotient,
}

impl Pure {
    /// The name in OpenCL C.
    pub fn name(self) -> &'static str {
        match self {
            Self::Abs => "abs",
            Self::AbsDiff => "abs_diff",
            Self::AddSat => "add_sat",
            Self::SubSat => "sub_sat",
            Self::Hadd => "hadd",
            Self::Rhadd => "rhadd",
            Self::Clz => "clz",
            Self::Ctz => "ctz",
            Self::Popcount => "popcount",
            Self::Rotate => "rotate",
            Self::MulHi => "mul_hi",
            Self::Max => "max",
            Self::Min => "min",
            Self::Bitselect => "bitselect",
            Self::Select => "select",
            Self::Any => "any",
            Self::All => "all",
            Self::Fabs => "fabs",
            Self::Floor => "floor",
            Self::Ceil => "ceil",
            Self::Trunc => "trunc",
            Self::Rint => "rint",
            Self::Fmax => "fmax",
            Self::Fmin => "fmin",
            Self::Fma => "fma",
            Self::Mad => "mad",
            Self::Shuffle => "shuffle",
            Self::Quotient => "quotient",
        }
    }
}

/// A built-in function that says where in the ND-range a work-item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    GlobalId,
    GlobalSize,
    GlobalOffset,
    LocalId,
    LocalSize,
    GroupId,
    NumGroups,
    WorkDim,
    GlobalLinearId,
    LocalLinearId,
    EnqueuedLocalSize,
    SubGroupId,
    SubGroupLocalId,
    SubGroupSize,
    NumSubGroups,
    MaxSubGroupSize,
}

impl Query {
    /// The name in OpenCL C.
    pub fn name(self) -> &'static str {
        match self {
            Self::GlobalId => "get_global_id",
            Self::GlobalSize => "get_global_size",
            Self::GlobalOffset => "get_global_offset",
            Self::LocalId => "get_local_id",
            Self::LocalSize => "get_local_size",
            Self::GroupId => "get_group_id",
            Self::NumGroups => "get_num_groups",
            Self::WorkDim => "get_work_dim",
            Self::GlobalLinearId => "get_global_linear_id",
            Self::LocalLinearId => "get_local_linear_id",
            Self::EnqueuedLocalSize => "get_enqueued_local_size",
            Self::SubGroupId => "get_sub_group_id",
            Self::SubGroupLocalId => "get_sub_group_local_id",
            Self::SubGroupSize => "get_sub_group_size",
            Self::NumSubGroups => "get_num_sub_groups",
            Self::MaxSubGroupSize => "get_max_sub_group_size",
        }
    }

    /// The type of the result, and whether the function takes a dimension.
    pub fn signature(self) -> (Scalar, bool) {
        let scalar = match self {
            Self::WorkDim
            | Self::SubGroupId
            | Self::SubGroupLocalId
            | Self::SubGroupSize
            | Self::NumSubGroups
            | Self::MaxSubGroupSize => Scalar::Uint,
            _ => Scalar::Ulong,
        };
        let flat = matches!(self, Self::GlobalLinearId | Self::LocalLinearId);
        (scalar, scalar == Scalar::Ulong && !flat)
    }
}

/// The function that a collective computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collect {
    ReduceAdd,
    ReduceMin,
    ReduceMax,
    ScanInclusiveAdd,
    ScanExclusiveAdd,
    ScanInclusiveMax,
    ScanExclusiveMin,
    Broadcast,
    Shuffle,
    /// The mask of the first 32 work-items.
    Ballot,
    All,
    Any,
}

impl Collect {
    /// The name in OpenCL C, after `work_group_` or `sub_group_`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReduceAdd => "reduce_add",
            Self::ReduceMin => "reduce_min",
            Self::ReduceMax => "reduce_max",
            Self::ScanInclusiveAdd => "scan_inclusive_add",
            Self::ScanExclusiveAdd => "scan_exclusive_add",
            Self::ScanInclusiveMax => "scan_inclusive_max",
            Self::ScanExclusiveMin => "scan_exclusive_min",
            Self::Broadcast => "broadcast",
            Self::Ballot => "ballot",
            Self::Shuffle => "shuffle",
            Self::All => "all",
            Self::Any => "any",
        }
    }
}

/// The work-items that take part in a collective function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    WorkGroup,
    SubGroup,
}

/// A read-modify-write operation on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomic {
    Add,
    Sub,
    Min,
    Max,
    And,
    Or,
    Xor,
    Xchg,
    Cmpxchg,
}

impl Atomic {
    /// The name in OpenCL C, after `atomic_`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::Xchg => "xchg",
            Self::Cmpxchg => "cmpxchg",
        }
    }
}

/// An expression and its type.
#[derive(Debug, Clone)]
pub struct Expr {
    pub ty: Type,
    pub kind: Kind,
}

/// The form of an expression.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A scalar by its bits.
    Const(u64),
    Load(Box<Place>),
    /// The low bits of an address, which its alignment makes zero.
    Misaligned(Box<Place>, usize),
    Address(Box<Place>),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `?:` of scalars.
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `(type)(e)`; of a scalar to a vector, in all lanes.
    Cast(Box<Expr>),
    /// `convert_type`, of vectors or scalars; saturated or not.
    Convert(Box<Expr>, bool),
    /// `as_type`
    As(Box<Expr>),
    /// `(type4)(a, b, ...)`, of scalars and vectors.
    Build(Vec<Expr>),
    Lanes(Box<Expr>, Vec<u8>),
    Pure(Pure, Vec<Expr>),
    Call(usize, Vec<Expr>),
    Query(Query, u8),
    /// A pointer and a number of elements.
    Move(Box<Expr>, Box<Expr>),
    Collective(Scope, Collect, Vec<Expr>),
    /// A pointer and operands; the result is what was there before.
    /// By a function of OpenCL C 1.x, or an explicit one of C11.
    Atomic(Atomic, bool, Vec<Expr>),
    /// A texel of an image: the parameter, x, y, and whether there is a sampler, which clamps them.
    ReadImage(usize, Box<Expr>, Box<Expr>, bool),
    /// `vloadN(0, pointer)`
    Vload(Box<Expr>),
}

/// Something that has an address, or lanes of it.
#[derive(Debug, Clone)]
pub struct Place {
    pub ty: Type,
    pub kind: PlaceKind,
}

/// The form of a place.
#[derive(Debug, Clone)]
pub enum PlaceKind {
    /// A variable of the function.
    Var(usize),
    /// A variable of the program.
    Global(usize),
    Field(Box<Place>, usize),
    Index(Box<Place>, Box<Expr>),
    Deref(Box<Expr>),
    Lanes(Box<Place>, Vec<u8>),
}

/// Statements in braces.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Debug, Clone)]
pub enum Stmt {
    /// The variable, and one value, or those of all scalars in it.
    Declare(usize, Vec<Expr>),
    /// A plain assignment, or one with an operator.
    Assign(Place, Option<Binary>, Expr),
    Expr(Expr),
    If(Expr, Block, Block),
    /// Initialisation, condition, step, body.
    For(Box<Stmt>, Expr, Box<Stmt>, Block),
    While(Expr, Block),
    DoWhile(Block, Expr),
    Switch(Expr, Vec<Arm>),
    Break,
    Continue,
    Label(usize),
    Goto(usize),
    Return(Option<Expr>),
    Barrier,
    /// The parameter, x, y, and the texel.
    WriteImage(usize, Expr, Expr, Expr),
    /// Copies elements to an array of local memory by all work-items: target, source, how many, how far apart in the source.
    AsyncCopy(Expr, Expr, usize, usize),
    /// Adds the next packet of a pipe to a counter: the parameter, a pointer.
    ReadPipe(usize, Expr),
    /// Adds a value to a cell under a lock: pointers to the two, the value.
    Locked(Expr, Expr, Expr),
    /// Lets a function run as another kernel: its operands but for the last one, the work-item, of which there are so many.
    Enqueue(usize, Vec<Expr>, usize),
    /// `vstoreN(value, 0, pointer)`
    Vstore(Expr, Expr),
    /// Texts between the operands; a line ends after them.
    Printf(Vec<String>, Vec<Expr>),
    Block(Block),
}

/// An arm of a switch: its labels, none for the default, and its body, which may fall through.
#[derive(Debug, Clone)]
pub struct Arm {
    pub labels: Vec<Option<u64>>,
    pub body: Block,
}

/// A variable.
#[derive(Debug, Clone)]
pub struct Var {
    pub ty: Type,
    pub space: Space,
    pub volatile: bool,
    /// The alignment that is asked for; 0: none.
    pub align: usize,
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    pub result: Type,
    /// Its parameters, which are variables of it.
    pub params: Vec<usize>,
    pub vars: Vec<Var>,
    pub body: Block,
    pub noinline: bool,
    /// A block instead, `^`.
    pub block: bool,
}

/// A variable of the program, with the values of its scalars.
#[derive(Debug, Clone)]
pub struct Global {
    pub ty: Type,
    pub space: Space,
    pub init: Vec<u64>,
    /// The alignment that is asked for; 0: none.
    pub align: usize,
}

/// A kernel argument.
#[derive(Debug, Clone)]
pub enum Arg {
    /// A buffer with these bytes.
    Buffer(Vec<u8>),
    Image(ImageData),
    /// A pipe with so many packets, which a kernel of its own has written.
    Pipe(usize),
    /// Local memory of so many bytes.
    Local(usize),
    /// A scalar.
    Value(Scalar, u64),
}

/// The packets that the kernel `fill` writes to a pipe, by the work-item.
pub fn packet(item: usize) -> u64 {
    u64::from((item as u32).wrapping_mul(PACKET_FACTOR))
}

/// The factor of [`packet`].
pub const PACKET_FACTOR: u32 = 2_654_435_761;

/// An image of texels with one or four channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageData {
    /// A channel in memory.
    pub channel: Scalar,
    pub channels: usize,
    pub width: usize,
    pub height: usize,
    pub bytes: Vec<u8>,
}

/// The index space of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub dims: usize,
    pub global: [u64; 3],
    pub local: [u64; 3],
    pub offset: [u64; 3],
}

impl Range {
    /// How many work-items there are.
    pub fn items(&self) -> u64 {
        self.global.iter().product()
    }
}

/// A program with one kernel, which is the last function, and one launch of it.
#[derive(Debug, Clone)]
pub struct Program {
    pub structs: Vec<Struct>,
    pub globals: Vec<Global>,
    pub functions: Vec<Function>,
    pub options: String,
    /// Lines before everything else.
    pub pragmas: Vec<String>,
    /// In front of the kernel.
    pub attributes: String,
    pub args: Vec<Arg>,
    pub range: Range,
    /// Results depend on which work-items are one sub-group.
    pub sub_groups: bool,
    /// The size of sub-groups that is asked for; 0: none.
    pub sub_group_size: usize,
}

impl Program {
    /// The kernel.
    pub fn kernel(&self) -> &Function {
        &self.functions[self.functions.len() - 1]
    }
}

impl Expr {
    /// An expression of a type.
    pub fn new(ty: Type, kind: Kind) -> Self {
        Self { ty, kind }
    }

    /// A constant of a scalar type.
    pub fn number(scalar: Scalar, bits: u64) -> Self {
        Self::new(Type::scalar(scalar), Kind::Const(bits & scalar.mask()))
    }

    /// A constant of the type int.
    pub fn int(value: i64) -> Self {
        Self::number(Scalar::Int, value as u64)
    }

    /// `(type)(e)`, where that is not what it is.
    pub fn cast(self, ty: &Type) -> Self {
        if self.ty == *ty {
            return self;
        }
        Self::new(ty.clone(), Kind::Cast(Box::new(self)))
    }

    /// As [`cast`](Self::cast), to a scalar.
    pub fn to(self, scalar: Scalar) -> Self {
        self.cast(&Type::scalar(scalar))
    }

    /// An operation on two scalars, or on two vectors of one type.
    pub fn binary(op: Binary, a: Self, b: Self) -> Self {
        let ty = if a.ty.is_vector() {
            let Type::Num(scalar, lanes) = a.ty else {
                unreachable!("a vector")
            };
            if op.is_test() {
                Type::Num(scalar.signed(), lanes)
            } else {
                a.ty.clone()
            }
        } else if op.is_test() {
            Type::scalar(Scalar::Int)
        } else if matches!(op, Binary::Shl | Binary::Shr) {
            Type::scalar(a.ty.element().promoted())
        } else {
            Type::scalar(a.ty.element().common(b.ty.element()))
        };
        Self::new(ty, Kind::Binary(op, Box::new(a), Box::new(b)))
    }

    /// `p + index`
    pub fn moved(self, index: Self) -> Self {
        Self::new(self.ty.clone(), Kind::Move(Box::new(self), Box::new(index)))
    }

    /// `*p`
    pub fn deref(self) -> Place {
        let Type::Pointer(_, target) = &self.ty else {
            unreachable!("a pointer")
        };
        Place {
            ty: (**target).clone(),
            kind: PlaceKind::Deref(Box::new(self)),
        }
    }

    /// A query, of a dimension where it takes one.
    pub fn query(query: Query, dim: u8) -> Self {
        Self::new(Type::scalar(query.signature().0), Kind::Query(query, dim))
    }
}

impl Place {
    /// A variable of the function.
    pub fn var(index: usize, ty: &Type) -> Self {
        Self {
            ty: ty.clone(),
            kind: PlaceKind::Var(index),
        }
    }

    /// Its value.
    pub fn load(self) -> Expr {
        Expr::new(self.ty.clone(), Kind::Load(Box::new(self)))
    }

    /// Its address, which is in this space.
    pub fn address(self, space: Space) -> Expr {
        let ty = Type::Pointer(space, Rc::new(self.ty.clone()));
        Expr::new(ty, Kind::Address(Box::new(self)))
    }

    /// An element of it.
    pub fn index(self, index: Expr) -> Self {
        let Type::Array(element, _) = &self.ty else {
            unreachable!("an array")
        };
        Self {
            ty: (**element).clone(),
            kind: PlaceKind::Index(Box::new(self), Box::new(index)),
        }
    }

    /// A member of it.
    pub fn field(self, field: usize, structs: &[Struct]) -> Self {
        let Type::Struct(index) = self.ty else {
            unreachable!("a struct")
        };
        Self {
            ty: structs[index].fields[field].clone(),
            kind: PlaceKind::Field(Box::new(self), field),
        }
    }
}
