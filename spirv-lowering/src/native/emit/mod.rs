//! Writes a region of a kernel as a function of LLVM's IR: instructions for all lanes of a pack, one lane, or both.

mod access;
mod arrays;
mod calls;
mod collective;
mod flow;
mod lane_loops;
mod lanes;
mod launch;
mod ops;
mod optimization_barrier;
mod packs;
mod serial;
mod slots;
mod texel_functions;
mod texels;
mod values;

use super::calls::{Callee, Callees};
use super::classes::Classes;
use super::llvm::{Builder, Cast, Declarations, Label, LlvmType, Operand};
use super::tree::Tree;
use super::{Piece, Shape};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, SecondaryMap, Value, Var};
use crate::ir::function::Function;
use crate::ir::op::IntCond;
use crate::ir::types::Type;
use arrays::Variables;
use calls::Results;
use flow::Flow;
pub use launch::Launch;
use rustc_hash::FxHashSet;
use slots::Places;

/// The lanes that run. None: all.
type Mask = Option<Operand>;

/// Where a chain is.
#[derive(Clone)]
struct Context {
    /// The lanes that run.
    mask: Mask,
    /// Some lane surely does.
    some: bool,
    /// The chain's number.
    chain: usize,
    /// The label to go to when no lane is left.
    end: Label,
    /// The block.
    block: Block,
}

/// Writes one region.
struct Emitter<'a> {
    /// The function that is built.
    llvm: Builder<'a>,
    func: &'a Function,
    tree: &'a Tree,
    /// The classes of all lanes, or of one that runs alone.
    classes: &'a Classes,
    of_one_lane: &'a Classes,
    shape: Shape,
    /// Where values are.
    places: Places<'a>,
    /// Where control goes.
    flow: Flow,
    variables: Variables<'a>,
    launch: &'a Launch<'a>,
    callees: &'a Callees,
    /// Where functions that are called store their results, and its bytes so far.
    area: Option<Operand>,
    area_bytes: u32,
    /// The results of the function, if it is called.
    results: Results,
}

/// The purpose of a function.
pub enum Role<'a> {
    /// A region of the kernel with its name, for all packs of a work-group. `several`: it returns the number of the region
    /// that follows.
    #[allow(missing_docs)]
    Region { head: String, several: bool },
    /// A function that is called for the lanes of a mask.
    Callee(&'a Callee),
}

/// Where memory lies in the frame of a pack.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The offsets of variables; they are on the stack if there are none.
    pub offsets: Option<&'a SecondaryMap<Var, u32>>,
    /// The offset of memory that work-items have of their own.
    pub own: u32,
}

/// Writes a piece as a function.
pub fn function(
    piece: &Piece,
    role: &Role,
    callees: &Callees,
    frame: Frame,
    launch: &Launch<'_>,
    shape: Shape,
    declarations: &mut Declarations,
) -> Result<String> {
    let Piece {
        region,
        tree,
        classes,
    } = piece;
    let of_one_lane = Classes::of_one_lane(tree.constructs.len());
    let mut wanted = FxHashSet::default();
    // What must lie in slots is known once it was tried without.
    for _ in 0..2 {
        let mut emitter = Emitter {
            llvm: Builder::new(declarations),
            func: &region.func,
            tree,
            classes,
            of_one_lane: &of_one_lane,
            shape,
            places: Places::new(wanted.clone()),
            flow: Flow::new(tree.constructs.len()),
            variables: Variables::new(&region.uniform, frame.offsets, frame.own),
            launch,
            callees,
            area: None,
            area_bytes: 0,
            results: Results::default(),
        };
        let head = match role {
            Role::Region { head, several } => {
                emitter.packs(*several)?;
                head.clone()
            }
            Role::Callee(callee) => emitter.body(callee)?,
        };
        if let Some(area) = emitter.area.take() {
            emitter.llvm.set_area(&area, emitter.area_bytes);
        }
        let missing = emitter.places.missing();
        if missing.is_empty() {
            return emitter.llvm.finish(&head);
        }
        wanted.extend(missing);
    }
    Err(LowerError::internal(
        "values are read where they are not written",
    ))
}

impl Emitter<'_> {
    /// Returns the area for the results of calls.
    fn area(&mut self) -> Operand {
        let llvm = &mut self.llvm;
        self.area.get_or_insert_with(|| llvm.area()).clone()
    }

    /// Returns the vector type for a type.
    fn vec(&self, ty: impl Into<LlvmType>) -> LlvmType {
        ty.into().vector(self.shape.lanes)
    }

    /// Returns the type of masks.
    fn mask_type(&self) -> LlvmType {
        self.vec(LlvmType::BIT)
    }

    /// Returns the type of masks as integers.
    fn bits_type(&self) -> LlvmType {
        LlvmType::int(self.shape.lanes)
    }

    /// Returns a vector with one constant in all lanes.
    fn splat_const(&self, ty: impl Into<LlvmType>, bits: u64) -> Operand {
        Operand::constant(self.vec(ty), bits)
    }

    /// Returns a constant with a number for each lane.
    fn lanes_const(&self, ty: impl Into<LlvmType>, f: impl Fn(u64) -> u64) -> Operand {
        Operand::of_lanes(self.vec(ty), f)
    }

    /// Returns the numbers of the lanes.
    fn lane_numbers(&self) -> Operand {
        self.lanes_const(Type::I32, |lane| lane)
    }

    /// Returns a scalar in all lanes.
    fn splat(&mut self, value: &Operand) -> Operand {
        self.llvm.splat(value, self.shape.lanes)
    }

    /// Returns the mask as a vector.
    fn mask_vector(&self, mask: &Mask) -> Operand {
        match mask {
            Some(mask) => mask.clone(),
            None => self.splat_const(LlvmType::BIT, 1),
        }
    }

    /// Returns the mask as an integer with a bit for each lane.
    fn mask_bits(&mut self, mask: &Mask) -> Operand {
        let ty = self.bits_type();
        match mask {
            Some(mask) => self.llvm.cast(Cast::Bitcast, mask, ty),
            None => Operand::constant(ty, u64::MAX),
        }
    }

    /// Compares the bits of a mask with zero.
    fn compare_bits(&mut self, cond: IntCond, mask: &Operand) -> Operand {
        let bits = self.mask_bits(&Some(mask.clone()));
        let none = Operand::constant(bits.ty(), 0);
        self.llvm.icmp(cond, &bits, &none)
    }

    /// Tests whether a mask has an active lane.
    fn any(&mut self, mask: &Operand) -> Operand {
        self.compare_bits(IntCond::Ne, mask)
    }

    /// Tests whether a mask has no active lane.
    fn none(&mut self, mask: &Operand) -> Operand {
        self.compare_bits(IntCond::Eq, mask)
    }

    fn and(&mut self, mask: &Mask, other: &Operand) -> Operand {
        match mask {
            None => other.clone(),
            Some(mask) => self.llvm.and(mask, other),
        }
    }

    /// Returns the type of a value in one lane.
    fn ty(&self, value: Value) -> LlvmType {
        self.func.ty(value).into()
    }
}
