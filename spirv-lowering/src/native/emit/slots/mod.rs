//! Where the values of a region lie: in names of the text, and in slots on the stack where the text of their definition does
//! not reach, which LLVM makes registers of.
//!
//! Block parameters that lanes reach on different ways, values that leave leaking loops, and those whose place in the text
//! does not come before all their uses lie in slots. A slot knows what it holds, so that what is loaded from it needs no
//! other knowledge: a loop that runs for one lane after the other (`serial`) reads the element of its lane
//! from a slot of all lanes.

mod emit;

use crate::ir::entity::{SecondaryMap, Value};
use crate::native::classes::Classes;
use crate::native::llvm::{Operand, StackSlot};
use rustc_hash::{FxHashMap, FxHashSet};

/// A value of all lanes, as operands.
#[derive(Debug, Clone)]
pub enum Lanes {
    /// A scalar that all have.
    Same(Operand),
    /// The scalar of lane 0 and the vector of a value whose lanes are one stride apart.
    Affine { first: Operand, all: Operand },
    /// A vector, and what lane 0 has of it where that is a scalar too.
    Each {
        all: Operand,
        first: Option<Operand>,
    },
}

impl Lanes {
    /// Creates a vector.
    pub fn each(all: Operand) -> Self {
        Self::Each { all, first: None }
    }
}

/// The contents of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A scalar that all lanes have.
    Same,
    /// The scalar that lane 0 has, or would have, of a value with a stride.
    First(i64),
    /// A vector.
    Each,
}

/// A place on the stack.
#[derive(Debug, Clone)]
pub struct Slot {
    place: StackSlot,
    holds: Holds,
}

impl Slot {
    pub fn place(&self) -> &StackSlot {
        &self.place
    }
    /// Returns true if the slot has an element for each lane.
    pub fn is_of_each(&self) -> bool {
        self.holds == Holds::Each
    }
}

#[derive(Debug, Clone)]
struct Written {
    lanes: Lanes,
    /// The chain in which it was written.
    chain: usize,
}

/// The lane for which code is written, of a loop that runs for one after the other.
struct Alone<'a> {
    /// Its number, i64.
    lane: Operand,
    /// The classes of all lanes.
    of_all: &'a Classes,
}

/// Where values lie.
pub struct Places<'a> {
    written: SecondaryMap<Value, Option<Written>>,
    slots: FxHashMap<Value, Slot>,
    /// Slots of block parameters, beside those of values that are read from elsewhere.
    params: FxHashMap<Value, Slot>,
    /// Values that need a slot, as found out the first time.
    wanted: FxHashSet<Value>,
    /// Values that were missing a slot.
    missing: FxHashSet<Value>,
    /// The chain around each.
    chains: Vec<usize>,
    alone: Option<Alone<'a>>,
}

impl Places<'_> {
    /// Creates a map without values. `wanted`: values that need a slot.
    pub fn new(wanted: FxHashSet<Value>) -> Self {
        Self {
            written: SecondaryMap::new(),
            slots: FxHashMap::default(),
            params: FxHashMap::default(),
            wanted,
            missing: FxHashSet::default(),
            chains: vec![0],
            alone: None,
        }
    }

    /// Returns the values that were read where they have no slot, and need one.
    pub fn missing(self) -> FxHashSet<Value> {
        self.missing
    }

    /// Returns a chain of text within another, or after it.
    pub fn new_chain(&mut self, parent: usize) -> usize {
        self.chains.push(parent);
        self.chains.len() - 1
    }

    fn is_ancestor(&self, chain: usize, mut of: usize) -> bool {
        while of > chain {
            of = self.chains[of];
        }
        of == chain
    }
}

/// Values that a serial loop has replaced while it is written.
pub struct Replaced(Vec<(Value, Option<Written>)>);

/// An argument on its way to a block's parameter.
pub struct Assignment {
    slot: Slot,
    arg: Value,
    stored: Operand,
    blends: bool,
}
