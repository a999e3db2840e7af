//! Types, operands and labels, and how they are printed.

use crate::ir::types::Type;
use std::fmt;
use std::rc::Rc;

/// An element of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Int(u32),
    Half,
    Float,
    Double,
    Ptr,
}

/// The type of an operand: a number, an address, or a vector of either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LlvmType {
    element: Element,
    /// Elements of a vector; 0: no vector.
    lanes: u32,
}

impl LlvmType {
    pub const BIT: Self = Self::int(1);
    pub const I16: Self = Self::int(16);
    pub const I32: Self = Self::int(32);
    pub const I64: Self = Self::int(64);
    pub const HALF: Self = Self::scalar(Element::Half);
    pub const FLOAT: Self = Self::scalar(Element::Float);
    pub const DOUBLE: Self = Self::scalar(Element::Double);
    pub const PTR: Self = Self::scalar(Element::Ptr);

    const fn scalar(element: Element) -> Self {
        Self { element, lanes: 0 }
    }
    /// Returns the integer type of a width.
    pub const fn int(bits: u32) -> Self {
        Self::scalar(Element::Int(bits))
    }
    /// Returns the type of vectors with this element type and a number of lanes.
    pub fn vector(self, lanes: u32) -> Self {
        Self { lanes, ..self }
    }
    /// Returns this type, as a vector if the other is one.
    pub fn like(self, other: Self) -> Self {
        self.vector(other.lanes)
    }
    /// Returns the type of an element of a vector; of another type the type itself.
    pub fn element(self) -> Self {
        self.vector(0)
    }
    /// Returns the elements of a vector; 0: no vector.
    pub fn lanes(self) -> u32 {
        self.lanes
    }
    /// Returns true for vectors.
    pub fn is_vector(self) -> bool {
        self.lanes > 0
    }
    /// Returns true for integers and their vectors.
    pub fn is_int(self) -> bool {
        matches!(self.element, Element::Int(_))
    }
    /// Returns true for floats and their vectors.
    pub fn is_float(self) -> bool {
        matches!(
            self.element,
            Element::Half | Element::Float | Element::Double
        )
    }
    /// Returns the bits of an element.
    pub fn bits(self) -> u32 {
        match self.element {
            Element::Int(bits) => bits,
            Element::Half => 16,
            Element::Float => 32,
            Element::Double | Element::Ptr => 64,
        }
    }
    /// Returns the bits of all elements.
    pub fn size(self) -> u32 {
        self.bits() * self.lanes.max(1)
    }
    /// Returns the bytes of all elements.
    pub fn bytes(self) -> u32 {
        self.size().div_ceil(8)
    }
    /// Returns the end of an intrinsic's name.
    pub fn suffix(self) -> Suffix {
        Suffix(self)
    }
}

impl From<Type> for LlvmType {
    fn from(ty: Type) -> Self {
        Self::scalar(match ty {
            Type::Bool => Element::Int(1),
            Type::I8 => Element::Int(8),
            Type::I16 => Element::Int(16),
            Type::I32 => Element::Int(32),
            Type::I64 | Type::Handle => Element::Int(64),
            Type::F16 => Element::Half,
            Type::F32 => Element::Float,
            Type::F64 => Element::Double,
            Type::Ptr(_) => Element::Ptr,
        })
    }
}

impl fmt::Display for LlvmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_vector() {
            return write!(f, "<{} x {}>", self.lanes, self.element());
        }
        match self.element {
            Element::Int(bits) => write!(f, "i{bits}"),
            Element::Half => f.write_str("half"),
            Element::Float => f.write_str("float"),
            Element::Double => f.write_str("double"),
            Element::Ptr => f.write_str("ptr"),
        }
    }
}

/// A type as the names of intrinsics have it.
#[derive(Debug, Clone, Copy)]
pub struct Suffix(LlvmType);

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_vector() {
            write!(f, "v{}", self.0.lanes)?;
        }
        match self.0.element {
            Element::Int(bits) => write!(f, "i{bits}"),
            Element::Half => f.write_str("f16"),
            Element::Float => f.write_str("f32"),
            Element::Double => f.write_str("f64"),
            Element::Ptr => f.write_str("p0"),
        }
    }
}

/// The name or the constant of an operand.
#[derive(Debug, Clone)]
enum Name {
    Number(u32),
    Word(&'static str),
    /// The bits of a constant, of all lanes.
    Bits(u64),
    /// The bits of a constant, lane by lane.
    Lanes(Rc<[u64]>),
    Poison,
    Undef,
}

/// A name or constant with its type.
#[derive(Debug, Clone)]
pub struct Operand {
    ty: LlvmType,
    name: Name,
}

impl Operand {
    /// Returns the type.
    pub fn ty(&self) -> LlvmType {
        self.ty
    }

    /// Returns the name of an instruction's result.
    pub(super) fn numbered(ty: LlvmType, number: u32) -> Self {
        let name = Name::Number(number);
        Self { ty, name }
    }

    /// Creates a parameter of the function, or a value with a name of its own.
    pub const fn named(ty: LlvmType, name: &'static str) -> Self {
        let name = Name::Word(name);
        Self { ty, name }
    }

    /// Creates a constant from its bits, the same in all lanes of a vector.
    pub fn constant(ty: LlvmType, bits: u64) -> Self {
        let name = Name::Bits(bits);
        Self { ty, name }
    }

    /// Returns a constant vector with a number of its own for each lane.
    pub fn of_lanes(ty: LlvmType, bits: impl Fn(u64) -> u64) -> Self {
        let name = Name::Lanes((0..u64::from(ty.lanes)).map(bits).collect());
        Self { ty, name }
    }

    /// Returns a constant of 32 bits.
    pub fn i32(number: u32) -> Self {
        Self::constant(LlvmType::I32, number.into())
    }

    /// Returns a constant of 64 bits.
    pub fn i64(number: u64) -> Self {
        Self::constant(LlvmType::I64, number)
    }

    /// Creates a truth value.
    pub fn bit(value: bool) -> Self {
        Self::constant(LlvmType::BIT, value.into())
    }

    /// Returns the poison value of a type.
    pub fn poison(ty: LlvmType) -> Self {
        let name = Name::Poison;
        Self { ty, name }
    }

    /// Returns the undefined value of a type.
    pub fn undef(ty: LlvmType) -> Self {
        let name = Name::Undef;
        Self { ty, name }
    }

    /// Returns true for a constant by which any integer can be divided: neither 0 nor -1.
    pub(super) fn divides_all(&self) -> bool {
        let mask = u64::MAX.checked_shr(64 - self.ty.bits()).unwrap_or(0);
        matches!(self.name, Name::Bits(bits) if bits & mask != 0 && bits & mask != mask)
    }

    /// Formats the operand after its type.
    pub(super) fn typed(&self) -> Typed<'_> {
        Typed(self)
    }
}

/// A constant of one lane.
struct Constant(LlvmType, u64);

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.1;
        match self.0.element {
            Element::Int(1) => f.write_str(if bits & 1 == 1 { "true" } else { "false" }),
            Element::Int(width @ ..=64) => {
                let unused = 64 - width;
                write!(f, "{}", (bits << unused) as i64 >> unused)
            }
            Element::Int(_) => write!(f, "{bits}"),
            Element::Half => write!(f, "0xH{:04X}", bits & 0xffff),
            // Floats are written as the double of the same value; for NaN the bits are placed by hand.
            Element::Float => write!(f, "0x{:016X}", widened(bits as u32)),
            Element::Double => write!(f, "0x{bits:016X}"),
            Element::Ptr if bits == 0 => f.write_str("null"),
            Element::Ptr => write!(f, "inttoptr (i64 {bits} to ptr)"),
        }
    }
}

/// Returns the bits of a float as a double, payload of NaN included.
fn widened(bits: u32) -> u64 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        let sign = u64::from(bits >> 31) << 63;
        return sign | 0x7ff << 52 | u64::from(bits & 0x7f_ffff) << 29;
    }
    f64::from(value).to_bits()
}

fn vector(
    f: &mut fmt::Formatter<'_>,
    ty: LlvmType,
    lanes: impl Iterator<Item = u64>,
) -> fmt::Result {
    let element = ty.element();
    let mut separator = "<";
    for bits in lanes {
        write!(f, "{separator}{element} {}", Constant(element, bits))?;
        separator = ", ";
    }
    f.write_str(">")
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Name::Number(number) => write!(f, "%t{number}"),
            Name::Word(word) => write!(f, "%{word}"),
            Name::Bits(bits) if !self.ty.is_vector() => Constant(self.ty, *bits).fmt(f),
            Name::Bits(0) => f.write_str("zeroinitializer"),
            Name::Bits(bits) => vector(f, self.ty, (0..self.ty.lanes).map(|_| *bits)),
            Name::Lanes(lanes) => vector(f, self.ty, lanes.iter().copied()),
            Name::Poison => f.write_str("poison"),
            Name::Undef => f.write_str("undef"),
        }
    }
}

/// An operand with its type in front.
pub struct Typed<'a>(&'a Operand);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.ty, self.0)
    }
}

/// A place on the stack for one value.
#[derive(Debug, Clone)]
pub struct StackSlot {
    pub(super) address: Operand,
    pub(super) ty: LlvmType,
    pub(super) align: u32,
}

impl StackSlot {
    /// Returns the type of the value.
    pub fn ty(&self) -> LlvmType {
        self.ty
    }
}

/// The label of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// One of many.
    Number(u32),
    /// One with a name of its own.
    Word(&'static str),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "L{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}
