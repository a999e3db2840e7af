//! Claims of the vectoriser about the lanes of a pack, as data: [`native`](crate::native) says it, and
//! [`interp`](crate::interp) holds it against every execution of every value.

use crate::ir::entity::{Block, Inst, SecondaryMap, Value};
use crate::ir::function::Function;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// How the work-items of a group stand in packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A pack is a piece of a row.
    Rows,
    /// A pack is a piece of the work-items in the order of their linear ids.
    Linear,
}

/// A relation between the values of active lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Claim {
    /// All have the same.
    Same,
    /// Lane n has n times so much more than lane 0.
    Stride(i64),
}

impl Claim {
    /// How much more a lane has than the one before.
    pub fn stride(self) -> i64 {
        match self {
            Self::Same => 0,
            Self::Stride(stride) => stride,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Same => f.write_str("the same in all lanes"),
            Self::Stride(stride) => write!(f, "a stride of {stride} from lane to lane"),
        }
    }
}

/// A piece of a kernel between barriers, and what is claimed of it. It gives the number of the piece to go on with, if there
/// are several; 0 is the end.
#[derive(Debug)]
pub struct Claims {
    /// The piece.
    pub func: Function,
    /// Claims of values as data.
    pub data: SecondaryMap<Value, Option<Claim>>,
    /// Claims of addresses, by the instructions that reach memory.
    pub reach: FxHashMap<Inst, Claim>,
    /// Claims of what is stored to variables with one element for all lanes.
    pub slots: FxHashMap<Inst, Claim>,
    /// Uses of values of which nothing is claimed there: each lane has that of its last iteration.
    pub escapes: FxHashSet<(Block, Value)>,
    /// The headers of the loops around each block, outer ones first.
    pub loops: SecondaryMap<Block, Vec<Block>>,
}

/// A claim that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FalseClaim {
    /// The kernel's function.
    pub function: String,
    /// The piece of it.
    pub piece: usize,
    /// The analysis that claims it.
    pub analysis: &'static str,
    /// The value or place, as the IR has it.
    pub value: String,
    /// The claim.
    pub claim: Claim,
    /// Two lanes, and what they have.
    pub lanes: [(u32, u64); 2],
    /// The source line, 0 where it is not known.
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
