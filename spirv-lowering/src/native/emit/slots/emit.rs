//! Writes the loads and stores of slots, and names values.

use super::{Alone, Assignment, Holds, Lanes, Replaced, Slot, Written};
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::native::emit::{Context, Emitter, Mask};
use crate::native::llvm::{Cast, LlvmType, Operand, StackSlot};
use crate::native::strides::Class;

impl Emitter<'_> {
    // --- slots

    /// Returns a new slot with an element for each lane.
    pub fn slot_of_each(&mut self, ty: LlvmType) -> Slot {
        self.new_slot(ty, Holds::Each)
    }

    fn new_slot(&mut self, ty: LlvmType, holds: Holds) -> Slot {
        let ty = match holds {
            Holds::Each => self.vec(ty),
            _ => ty,
        };
        let place = self.llvm.slot(ty);
        Slot { place, holds }
    }

    /// Returns the contents that a slot must have for the uses of a value where it is defined.
    fn holds(&self, value: Value) -> Holds {
        match self.classes.of(value) {
            Class::Uniform => Holds::Same,
            Class::Affine(stride) => Holds::First(stride),
            Class::Varying => Holds::Each,
        }
    }

    fn load_slot(&mut self, slot: &Slot) -> Lanes {
        let loaded = self.llvm.get(&slot.place);
        match slot.holds {
            Holds::Same => Lanes::Same(loaded),
            Holds::First(stride) => {
                let all = self.spread(&loaded, stride);
                Lanes::Affine { first: loaded, all }
            }
            Holds::Each => Lanes::each(loaded),
        }
    }

    /// Stores the contents of a slot; of a vector the active lanes alone.
    fn fill_slot(&mut self, slot: &Slot, stored: &Operand, mask: &Mask) {
        let mask = if slot.is_of_each() { mask } else { &None };
        self.store_slot(&slot.place, stored, mask);
    }

    /// Stores to a stack slot. Under a mask the other lanes keep their contents.
    fn store_slot(&mut self, slot: &StackSlot, value: &Operand, mask: &Mask) {
        match mask {
            None => self.llvm.put(value, slot),
            Some(mask) => {
                let old = self.llvm.get(slot);
                let value = self.llvm.select(mask, value, &old);
                self.llvm.put(&value, slot);
            }
        }
    }

    // --- values

    /// Records the definition of a value.
    pub fn define(&mut self, value: Value, lanes: Lanes, cx: &Context) {
        // Of one lane alone everything is a scalar.
        let lanes = match lanes {
            Lanes::Affine { first, .. } if self.shape.lanes == 1 => Lanes::Same(first),
            Lanes::Each { all, .. } if self.shape.lanes == 1 => {
                Lanes::Same(self.llvm.extract(&all, &Operand::i64(0)))
            }
            lanes => lanes,
        };
        let chain = cx.chain;
        self.places.written[value] = Some(Written {
            lanes: lanes.clone(),
            chain,
        });
        if !self.places.wanted.contains(&value) {
            return;
        }
        // Each lane that leaves a leaking loop has that of its last iteration.
        let escapes = self.classes.escaping.contains(&value);
        let slot = match self.places.slots.get(&value) {
            Some(slot) => slot.clone(),
            None => {
                let holds = match escapes {
                    true => Holds::Each,
                    false => self.holds(value),
                };
                let slot = self.new_slot(self.ty(value), holds);
                self.places.slots.insert(value, slot.clone());
                slot
            }
        };
        match slot.holds {
            Holds::Each => {
                let mut vector = self.to_vector(&lanes);
                let mask = if escapes { cx.mask.clone() } else { None };
                if mask.is_some() {
                    vector = self.fenced(value, vector);
                }
                self.fill_slot(&slot, &vector, &mask);
            }
            Holds::First(_) | Holds::Same => {
                let one = self.lane_0(&lanes, cx);
                self.fill_slot(&slot, &one, &None);
            }
        }
    }

    /// Returns the value as it was emitted, or loads it from its slot where its definition is not
    /// in scope.
    pub fn get(&mut self, value: Value, cx: &Context) -> Result<Lanes> {
        if let Some(bits) = self.func.as_const(value) {
            return Ok(Lanes::Same(Operand::constant(self.ty(value), bits)));
        }
        let Some(written) = self.places.written[value].clone() else {
            return Err(LowerError::internal(format!("{value} is not written yet")));
        };
        let escapes = self.classes.escapes_to(self.tree, value, cx.block);
        if !escapes && self.places.is_ancestor(written.chain, cx.chain) {
            return Ok(written.lanes);
        }
        if !self.places.wanted.contains(&value) {
            self.places.missing.insert(value);
            return Ok(written.lanes);
        }
        let Some(slot) = self.places.slots.get(&value).cloned() else {
            return Err(LowerError::internal(format!("{value} has no slot")));
        };
        Ok(match (self.load_slot(&slot), self.classes.of(value)) {
            // Lane 0 may have left the loop, and what is stored for it is of an earlier iteration.
            (Lanes::Each { all, .. }, Class::Uniform) if !escapes => {
                Lanes::Same(self.first_of(&all, &cx.mask))
            }
            (Lanes::Each { all, .. }, Class::Affine(stride)) if !escapes => Lanes::Affine {
                first: self.anchor(&all, stride, cx),
                all,
            },
            (lanes, _) => lanes,
        })
    }

    /// Returns the names the scalar of a uniform value: the first active lane's.
    pub fn scalar(&mut self, value: Value, cx: &Context) -> Result<Operand> {
        Ok(match self.get(value, cx)? {
            Lanes::Same(scalar) => scalar,
            Lanes::Affine { first, .. }
            | Lanes::Each {
                first: Some(first), ..
            } if cx.mask.is_none() && !self.is_alone() => first,
            Lanes::Affine { all, .. } | Lanes::Each { all, .. } => self.first_of(&all, &cx.mask),
        })
    }

    /// Returns the vector of any value.
    pub fn vector(&mut self, value: Value, cx: &Context) -> Result<Operand> {
        if let Some(bits) = self.func.as_const(value) {
            return Ok(self.splat_const(self.ty(value), bits));
        }
        let lanes = self.get(value, cx)?;
        Ok(self.to_vector(&lanes))
    }

    fn to_vector(&mut self, lanes: &Lanes) -> Operand {
        match lanes {
            Lanes::Same(scalar) => self.splat(scalar),
            Lanes::Affine { all, .. } | Lanes::Each { all, .. } => all.clone(),
        }
    }

    /// Returns the names the value of lane 0, or the one it would have if it ran.
    pub fn of_lane_0(&mut self, value: Value, cx: &Context) -> Result<Operand> {
        let lanes = self.get(value, cx)?;
        Ok(self.lane_0(&lanes, cx))
    }

    fn lane_0(&mut self, lanes: &Lanes, cx: &Context) -> Operand {
        match lanes {
            Lanes::Same(scalar) => scalar.clone(),
            Lanes::Affine { all, .. } | Lanes::Each { all, .. } if self.is_alone() => {
                self.first_of(all, &cx.mask)
            }
            Lanes::Affine { first, .. }
            | Lanes::Each {
                first: Some(first), ..
            } => first.clone(),
            Lanes::Each { all, first: None } => self.first_of(all, &None),
        }
    }

    fn first_of(&mut self, all: &Operand, mask: &Mask) -> Operand {
        let lane = self.first_lane(mask);
        self.llvm.extract(all, &lane)
    }

    /// Returns the names the value that lane 0 would have, counted back from the first active lane
    /// by the stride.
    pub fn anchored(&mut self, value: Value, stride: i64, cx: &Context) -> Result<Operand> {
        let all = match self.get(value, cx)? {
            Lanes::Same(scalar) => return Ok(scalar),
            Lanes::Affine { first, .. } => return Ok(first),
            Lanes::Each {
                first: Some(first), ..
            } if cx.mask.is_none() => return Ok(first),
            Lanes::Each { all, .. } => all,
        };
        Ok(self.anchor(&all, stride, cx))
    }

    /// Returns the element that lane 0 would have of a vector with a stride.
    fn anchor(&mut self, all: &Operand, stride: i64, cx: &Context) -> Operand {
        let lane = self.first_lane(&cx.mask);
        let llvm = &mut self.llvm;
        let first = llvm.extract(all, &lane);
        let back = Operand::i64(stride.wrapping_neg() as u64);
        let mut back = llvm.mul(&lane, &back);
        let ty = first.ty();
        if ty == LlvmType::PTR {
            return llvm.offset(&first, &back);
        }
        if ty != LlvmType::I64 {
            back = llvm.cast(Cast::Trunc, &back, ty);
        }
        llvm.add(&first, &back)
    }

    // --- block parameters

    /// Returns the slot of a block parameter.
    pub fn param_slot(&mut self, param: Value) -> Slot {
        if let Some(slot) = self.places.params.get(&param) {
            return slot.clone();
        }
        let slot = self.new_slot(self.ty(param), self.holds(param));
        self.places.params.insert(param, slot.clone());
        slot
    }

    /// Assigns an argument to a block parameter. `blends`: other lanes may have assigned theirs
    /// already.
    pub fn set_param(
        &mut self,
        param: Value,
        arg: Value,
        blends: bool,
        cx: &Context,
    ) -> Result<Assignment> {
        let slot = self.param_slot(param);
        let stored = match slot.holds {
            Holds::Each => self.vector(arg, cx)?,
            Holds::First(stride) => self.anchored(arg, stride, cx)?,
            Holds::Same => self.scalar(arg, cx)?,
        };
        Ok(Assignment {
            slot,
            arg,
            stored,
            blends,
        })
    }

    /// Stores the argument of a block parameter to its slot.
    pub fn store_param(&mut self, assignment: Assignment, cx: &Context) {
        let Assignment {
            slot,
            arg,
            mut stored,
            blends,
        } = assignment;
        match slot.holds {
            Holds::Each => {
                let mask = if blends { cx.mask.clone() } else { None };
                if mask.is_some() {
                    stored = self.fenced(arg, stored);
                }
                self.fill_slot(&slot, &stored, &mask);
                return;
            }
            // What the first lane that runs says is nothing if none does.
            Holds::First(_) => {
                if let (Some(lanes), false) = (&cx.mask, cx.some) {
                    let any = self.any(lanes);
                    let old = self.llvm.get(&slot.place);
                    stored = self.llvm.select(&any, &stored, &old);
                }
            }
            Holds::Same => {}
        }
        self.fill_slot(&slot, &stored, &None);
    }

    /// Reads a parameter of a block that begins.
    pub fn read_param(&mut self, param: Value, cx: &Context) {
        let slot = self.param_slot(param);
        let lanes = self.load_slot(&slot);
        self.define(param, lanes, cx);
    }

    /// Makes a block parameter undefined.
    pub fn forget_param(&mut self, param: Value) {
        let slot = self.param_slot(param);
        self.llvm.put(&Operand::undef(slot.place.ty()), &slot.place);
    }

    // --- one lane alone, see `serial`

    /// Returns true while code for a single lane is emitted.
    pub fn is_alone(&self) -> bool {
        self.places.alone.is_some()
    }

    /// Returns the lane for which code is written, if it is for one.
    pub fn lane_alone(&self) -> Option<Operand> {
        self.places.alone.as_ref().map(|alone| alone.lane.clone())
    }

    /// Begins to emit code for a single lane.
    pub fn begin_alone(&mut self, lane: &Operand, cx: &Context) -> Context {
        self.places.alone = Some(Alone {
            lane: lane.clone(),
            of_all: self.classes,
        });
        self.classes = self.of_one_lane;
        Context {
            mask: None,
            some: true,
            chain: self.places.new_chain(cx.chain),
            ..cx.clone()
        }
    }

    /// Ends the code for a single lane.
    pub fn end_alone(&mut self) {
        if let Some(alone) = self.places.alone.take() {
            self.classes = alone.of_all;
        }
    }

    /// Replaces values by scalars of one lane. Returns what [`Self::restore`] needs.
    pub fn replace(&mut self, values: Vec<(Value, Operand)>, cx: &Context) -> Replaced {
        let put = values.into_iter().map(|(value, one)| {
            let new = Written {
                lanes: Lanes::Same(one),
                chain: cx.chain,
            };
            (value, self.places.written[value].replace(new))
        });
        Replaced(put.collect())
    }

    /// Restores replaced values.
    pub fn restore(&mut self, Replaced(values): Replaced) {
        for (value, written) in values {
            self.places.written[value] = written;
        }
    }

    /// Takes the slot of a block parameter, which gets another one at its next use.
    pub fn take_param_slot(&mut self, param: Value) -> Slot {
        let slot = self.param_slot(param);
        self.places.params.remove(&param);
        slot
    }

    /// Takes the value of a block parameter from its slot, and the slot.
    pub fn take_param(&mut self, param: Value) -> Lanes {
        let slot = self.take_param_slot(param);
        self.load_slot(&slot)
    }

    /// Initialises a block parameter with a scalar.
    pub fn begin_param(&mut self, param: Value, value: &Operand) {
        let slot = self.param_slot(param);
        self.fill_slot(&slot, value, &None);
    }

    /// Assigns a slot to a block parameter.
    pub fn set_param_slot(&mut self, param: Value, slot: Slot) {
        self.places.params.insert(param, slot);
    }

    /// Assigns a slot to a value.
    pub fn set_slot(&mut self, value: Value, slot: Slot) {
        self.places.slots.insert(value, slot);
        self.places.wanted.insert(value);
    }
}
