//! Types of OpenCL C: scalars, vectors, structs, unions, arrays, pointers; their sizes and where members lie.

use std::rc::Rc;

/// An arithmetic scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scalar {
    Char,
    Uchar,
    Short,
    Ushort,
    Int,
    Uint,
    Long,
    Ulong,
    Half,
    Float,
    Double,
}

use Scalar::*;

/// All integer types.
pub const INTS: [Scalar; 8] = [Char, Uchar, Short, Ushort, Int, Uint, Long, Ulong];

impl Scalar {
    /// The size in bits.
    pub fn bits(self) -> u32 {
        match self {
            Char | Uchar => 8,
            Short | Ushort | Half => 16,
            Int | Uint | Float => 32,
            Long | Ulong | Double => 64,
        }
    }

    /// The size in bytes.
    pub fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    /// Returns true for the types of floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Half | Float | Double)
    }

    /// Returns true for the signed integer types.
    pub fn is_signed(self) -> bool {
        matches!(self, Char | Short | Int | Long)
    }

    /// The unsigned integer type of the same size.
    pub fn unsigned(self) -> Self {
        [Uchar, Ushort, Uint, Ulong][self.bits().ilog2() as usize - 3]
    }

    /// The signed integer type of the same size.
    pub fn signed(self) -> Self {
        [Char, Short, Int, Long][self.bits().ilog2() as usize - 3]
    }

    /// The type after the integer promotions.
    pub fn promoted(self) -> Self {
        match self {
            Char | Uchar | Short | Ushort => Int,
            other => other,
        }
    }

    /// The type of an operation on two scalars, after the usual arithmetic conversions.
    pub fn common(self, other: Self) -> Self {
        if self.is_float() || other.is_float() {
            let rank = |s: Self| if s.is_float() { s as u8 } else { 0 };
            return if rank(self) >= rank(other) {
                self
            } else {
                other
            };
        }
        // The order of the promoted types is that of their ranks.
        self.promoted().max(other.promoted())
    }

    /// All bits of a value.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The name in OpenCL C.
    pub fn name(self) -> &'static str {
        match self {
            Char => "char",
            Uchar => "uchar",
            Short => "short",
            Ushort => "ushort",
            Int => "int",
            Uint => "uint",
            Long => "long",
            Ulong => "ulong",
            Half => "half",
            Float => "float",
            Double => "double",
        }
    }
}

/// An address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    Private,
    Local,
    Global,
    Constant,
    Generic,
}

impl Space {
    /// The qualifier, with a space after it.
    pub fn qualifier(self) -> &'static str {
        match self {
            Self::Private => "private ",
            Self::Local => "local ",
            Self::Global => "global ",
            Self::Constant => "constant ",
            Self::Generic => "",
        }
    }
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    Void,
    /// A scalar, or a vector of so many lanes.
    Num(Scalar, u8),
    /// A struct or union of the program.
    Struct(usize),
    Array(Rc<Type>, usize),
    Pointer(Space, Rc<Type>),
    /// A two-dimensional image of such numbers, to be read or written.
    Image(Scalar, bool),
    /// A pipe to be read, whose packets are of the type uint.
    Pipe,
}

impl Type {
    /// A scalar type.
    pub fn scalar(scalar: Scalar) -> Self {
        Self::Num(scalar, 1)
    }

    /// The scalar type of a number's lanes.
    pub fn element(&self) -> Scalar {
        match self {
            Self::Num(scalar, _) => *scalar,
            _ => Ulong,
        }
    }

    /// How many lanes a number has.
    pub fn lanes(&self) -> usize {
        match self {
            Self::Num(_, lanes) => usize::from(*lanes),
            _ => 1,
        }
    }

    /// Returns true for a scalar.
    pub fn is_scalar(&self) -> bool {
        matches!(self, Self::Num(_, 1))
    }

    /// Returns true for a vector.
    pub fn is_vector(&self) -> bool {
        matches!(self, Self::Num(_, lanes) if *lanes > 1)
    }
}

/// A struct or union.
#[derive(Debug, Clone)]
pub struct Struct {
    pub fields: Vec<Type>,
    pub union: bool,
}

/// The structs and unions of a program.
pub type Structs = [Struct];

/// The size and the alignment of a type.
pub fn layout(ty: &Type, structs: &Structs) -> (usize, usize) {
    match ty {
        Type::Void => (0, 1),
        Type::Num(scalar, lanes) => {
            let size = scalar.bytes() * usize::from(*lanes).next_power_of_two();
            (size, size)
        }
        Type::Pointer(..) | Type::Image(..) | Type::Pipe => (8, 8),
        Type::Array(element, count) => {
            let (size, align) = layout(element, structs);
            (size * count, align)
        }
        Type::Struct(index) => {
            let (mut end, mut align) = (0, 1);
            for field in 0..structs[*index].fields.len() {
                let (size, field_align) = layout(&structs[*index].fields[field], structs);
                end = end.max(offset(*index, field, structs) + size);
                align = align.max(field_align);
            }
            (end.next_multiple_of(align), align)
        }
    }
}

/// Returns true if a type has vectors of three lanes, of which a store may write the fourth.
pub fn has_threes(ty: &Type, structs: &Structs) -> bool {
    match ty {
        Type::Num(_, lanes) => *lanes == 3,
        Type::Array(element, _) => has_threes(element, structs),
        Type::Struct(index) => {
            let mut fields = structs[*index].fields.iter();
            fields.any(|field| has_threes(field, structs))
        }
        _ => false,
    }
}

/// The size of a type.
pub fn size(ty: &Type, structs: &Structs) -> usize {
    layout(ty, structs).0
}

/// Where a member of a struct lies.
pub fn offset(index: usize, field: usize, structs: &Structs) -> usize {
    let Struct { fields, union } = &structs[index];
    if *union {
        return 0;
    }
    let end = match field {
        0 => 0,
        _ => offset(index, field - 1, structs) + size(&fields[field - 1], structs),
    };
    end.next_multiple_of(layout(&fields[field], structs).1)
}

/// The scalars of a type in the order of their addresses; of a union those of its first member.
pub fn scalars(ty: &Type, structs: &Structs, at: usize, list: &mut Vec<(usize, Scalar)>) {
    match ty {
        Type::Void => {}
        Type::Num(scalar, lanes) => {
            let lanes = usize::from(*lanes);
            list.extend((0..lanes).map(|lane| (at + lane * scalar.bytes(), *scalar)));
        }
        Type::Pointer(..) | Type::Image(..) | Type::Pipe => list.push((at, Ulong)),
        Type::Array(element, count) => {
            for i in 0..*count {
                scalars(element, structs, at + i * size(element, structs), list);
            }
        }
        Type::Struct(index) => {
            let all = structs[*index].fields.iter().enumerate();
            let count = if structs[*index].union { 1 } else { usize::MAX };
            for (field, ty) in all.take(count) {
                scalars(ty, structs, at + offset(*index, field, structs), list);
            }
        }
    }
}

/// The value of the bits of a signed integer.
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}
