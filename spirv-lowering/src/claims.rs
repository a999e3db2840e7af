//! Claims of the vectoriser about the lanes of a pack, and of other analyses about each work-item,
//! as data: [`native`](crate::native) makes them, and [`interp`](crate::interp) checks them for
//! every execution of every value.

use crate::ir::entity::{Block, FuncId, Inst, SecondaryMap, Value};
use crate::ir::function::Function;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// The order of a group's work-items in packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A pack is a part of a row.
    Rows,
    /// A pack is a part of the work-items in the order of their linear ids.
    Linear,
}

/// A relation between the values of active lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Claim {
    /// All have the same value.
    Same,
    /// Lane n has the value of lane 0 plus n times the stride.
    Stride(i64),
    /// Each value is within a bound, whatever the others are.
    Each(Bound),
    /// The bytes accessed belong to one of these alias sets, a bit each. A byte has one set at most
    /// that accesses may write to.
    Aliases(u64),
    /// The memory is that of one of these pointer arguments, a bit each, or of program-scope
    /// variables.
    Arguments(u64),
}

/// A bound of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The value is a multiple of a power of two.
    Multiple(u32),
    /// The value has these bits.
    Is(u64),
    /// The value, without a sign, is not larger.
    AtMost(u64),
    /// The back edges of a loop are taken so many times at most each time that it is entered.
    Repeats(u64),
    /// The value is not zero.
    NotNull,
    /// The upper half of 64 bits is the sign of the lower.
    SignExtended,
    /// The generic pointer is null, or its two top bits, which name the space that it points into,
    /// are a number whose bit is set here.
    Spaces(u8),
}

/// An access to memory through an operand of an instruction, with the claims about the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessClaims {
    /// The number of the operand that is the address.
    pub operand: usize,
    /// Bytes accessed.
    pub size: u64,
    /// Set if the access writes.
    pub writes: bool,
    /// The alias sets of the bytes, a bit each, and the analyses that claim them.
    pub sets: Vec<(u64, &'static str)>,
    /// The parameters whose arguments the memory may belong to, a bit each, if that is claimed.
    pub args: Option<u64>,
}

/// Returns an alias set by its number. Some numbers share one, as there are 64.
pub fn alias_set(number: u32) -> u64 {
    // The first are those of most accesses.
    match number {
        0..4 => 1 << number,
        more => 1 << (4 + more % 60),
    }
}

impl Claim {
    /// Returns the difference of a lane's value to the one before, or `None` if none is claimed.
    pub fn stride(self) -> Option<i64> {
        match self {
            Self::Same => Some(0),
            Self::Stride(stride) => Some(stride),
            Self::Each(_) | Self::Aliases(_) | Self::Arguments(_) => None,
        }
    }

    /// Returns true if a value contradicts the claim, for any values of the other lanes.
    pub fn excludes(self, value: u64) -> bool {
        match self {
            Self::Each(Bound::Multiple(of)) => value % u64::from(of.max(1)) != 0,
            Self::Each(Bound::Is(bits)) => value != bits,
            Self::Each(Bound::AtMost(most) | Bound::Repeats(most)) => value > most,
            Self::Each(Bound::NotNull) => value == 0,
            Self::Each(Bound::SignExtended) => value as i32 as i64 as u64 != value,
            Self::Each(Bound::Spaces(spaces)) => value != 0 && spaces >> (value >> 62) & 1 == 0,
            Self::Same | Self::Stride(_) | Self::Aliases(_) | Self::Arguments(_) => false,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Same => f.write_str("the same in all lanes"),
            Self::Stride(stride) => write!(f, "a stride of {stride} from lane to lane"),
            Self::Each(Bound::Multiple(of)) => write!(f, "a multiple of {of}"),
            Self::Each(Bound::Is(bits)) => write!(f, "{bits:#x}"),
            Self::Each(Bound::AtMost(most)) => write!(f, "at most {most:#x}"),
            Self::Each(Bound::Repeats(most)) => write!(f, "at most {most} repetitions"),
            Self::Each(Bound::NotNull) => f.write_str("not null"),
            Self::Each(Bound::SignExtended) => f.write_str("sign-extended from 32 bits"),
            Self::Each(Bound::Spaces(spaces)) => write!(f, "null or into the spaces {spaces:#b}"),
            Self::Arguments(args) => write!(f, "memory of the arguments {args:#b}"),
            Self::Aliases(sets) => {
                write!(f, "only accesses of the alias sets {sets:#x} to the bytes")
            }
        }
    }
}

/// A piece of a kernel between barriers, or a function that it calls, with the claims about it. A
/// piece returns the number of the next one, if there are several; 0 is the end.
#[derive(Debug)]
pub struct Claims {
    /// The function of the piece.
    pub func: Function,
    /// The number by which it is called; `None`: it is a piece of the kernel.
    pub callee: Option<FuncId>,
    /// The claims about values as data.
    pub data: SecondaryMap<Value, Option<Claim>>,
    /// The claims about addresses, by the instructions that access memory.
    pub reach: FxHashMap<Inst, Claim>,
    /// The claims about what is stored to variables with one element for all lanes.
    pub slots: FxHashMap<Inst, Claim>,
    /// The uses of values for which no claim holds there: each lane has the value of its last
    /// iteration.
    pub escapes: FxHashSet<(Block, Value)>,
    /// The headers of the loops around each block, outer ones first.
    pub loops: SecondaryMap<Block, Vec<Block>>,
    /// The bounds of values, and the analyses that claim them.
    pub bounds: FxHashMap<Value, Vec<(Bound, &'static str)>>,
    /// How often the loops with these headers are repeated at most.
    pub repeats: FxHashMap<Block, u64>,
    /// The accesses to memory of which aliases are claimed.
    pub accesses: FxHashMap<Inst, Vec<AccessClaims>>,
}

impl Claims {
    /// Creates a piece of a kernel, or a function that it calls, of which nothing is claimed.
    pub fn new(func: Function) -> Self {
        Self {
            func,
            callee: None,
            data: SecondaryMap::new(),
            reach: FxHashMap::default(),
            slots: FxHashMap::default(),
            escapes: FxHashSet::default(),
            loops: SecondaryMap::new(),
            bounds: FxHashMap::default(),
            repeats: FxHashMap::default(),
            accesses: FxHashMap::default(),
        }
    }
}

/// A claim that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FalseClaim {
    /// The kernel's function.
    pub function: String,
    /// The number of the piece.
    pub piece: usize,
    /// The analysis that makes the claim.
    pub analysis: &'static str,
    /// The value or place, in the notation of the IR.
    pub value: String,
    /// The claim.
    pub claim: Claim,
    /// Two lanes, each with its value.
    pub lanes: [(u32, u64); 2],
    /// The source line, 0 if it is not known.
    pub line: u32,
}

impl fmt::Display for FalseClaim {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            function,
            piece,
            analysis,
            value,
            claim,
            lanes: [(a, x), (b, y)],
            line,
        } = self;
        write!(
            f,
            "{function}, line {line}, piece {piece}: {analysis} claims {claim} of {value}; lane {a} has {x:#x}, lane {b} {y:#x}"
        )
    }
}
