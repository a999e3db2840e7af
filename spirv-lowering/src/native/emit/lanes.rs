//! One lane out of many: its part of a vector, and what is done lane by lane.

use super::{Context, Emitter, Mask};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::op::IntCond;
use crate::native::llvm::{LlvmType, LoopHint, Operand, StackSlot};

/// A vector whose lanes are read one by one.
pub enum Stored {
    /// Masks have no elements in memory.
    Mask(Operand),
    Slot(StackSlot),
}

impl Emitter<'_> {
    /// Returns the number of the first lane of a mask, as integer of 64 bits.
    pub(super) fn first_of_bits(&mut self, bits: &Operand) -> Operand {
        let lane = self.llvm.zeros("cttz", bits, true);
        self.llvm.widened(&lane, LlvmType::I64)
    }

    /// Returns the number of the first lane that runs.
    pub(super) fn first_lane(&mut self, mask: &Mask) -> Operand {
        if let Some(lane) = self.lane_alone() {
            return lane;
        }
        if mask.is_none() {
            return Operand::i64(0);
        }
        let bits = self.mask_bits(mask);
        self.first_of_bits(&bits)
    }

    /// Returns the value of the last lane that runs: lanes write to one place in their order.
    pub(super) fn last(&mut self, value: Value, cx: &Context) -> Result<Operand> {
        if self.is_uniform(value, cx) {
            return self.scalar(value, cx);
        }
        let vector = self.vector(value, cx)?;
        let most = u64::from(self.shape.lanes - 1);
        let lane = if cx.mask.is_none() {
            Operand::i64(most)
        } else {
            let bits = self.mask_bits(&cx.mask);
            let zeros = self.llvm.zeros("ctlz", &bits, true);
            let most = Operand::constant(bits.ty(), most);
            let lane = self.llvm.sub(&most, &zeros);
            self.llvm.widened(&lane, LlvmType::I64)
        };
        Ok(self.llvm.extract(&vector, &lane))
    }

    /// Emits code lane by lane, with the operands of each; once, if they are uniform and there is
    /// no result.
    pub(super) fn each_lane(
        &mut self,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
        body: impl FnOnce(&mut Self, &[Operand]) -> Result<Option<Operand>>,
    ) -> Result<()> {
        let found = self.loop_of_lanes(args, result, cx, None, body)?;
        self.define_if(result, found, cx);
        Ok(())
    }

    /// Emits code lane by lane, as [`Self::each_lane`], for an operation that locks memory which
    /// other threads use. Only some of the lanes are unrolled: 16 unrolled ones took 1.4 times as
    /// long on a Xeon where two threads met in 256 counters, as the processor learns by an
    /// instruction's address how an operation fares.
    pub(super) fn each_lane_locked(
        &mut self,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
        body: impl FnOnce(&mut Self, &[Operand]) -> Result<Option<Operand>>,
    ) -> Result<Option<Operand>> {
        let hint = self.loop_hint();
        self.loop_of_lanes(args, result, cx, Some(hint), body)
    }

    fn loop_of_lanes(
        &mut self,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
        hint: Option<LoopHint>,
        body: impl FnOnce(&mut Self, &[Operand]) -> Result<Option<Operand>>,
    ) -> Result<Option<Operand>> {
        let mut operands = Vec::new();
        for &arg in args {
            operands.push(if self.is_uniform(arg, cx) {
                Ok(self.scalar(arg, cx)?)
            } else {
                let vector = self.vector(arg, cx)?;
                Err(self.in_memory(vector))
            });
        }
        let bits = self.mask_bits(&cx.mask);
        let slot = result.map(|r| {
            let ty = self.vec(self.ty(r));
            self.llvm.slot(ty)
        });
        let [before, again, after] = [(); 3].map(|()| self.llvm.label());
        self.llvm.jump(before);
        self.llvm.begin(before);
        self.llvm.jump(again);
        self.llvm.begin(again);
        let ty = bits.ty();
        let left = self.llvm.forward(ty);
        let rest = self.llvm.forward(ty);
        // The loop's body is one block but for what `body` adds: the edge back comes from `latch`.
        let latch = self.llvm.label();
        let incoming = [(&bits, before), (&rest, latch)];
        self.llvm.named(&left).phi(ty, &incoming);
        let lane = self.first_of_bits(&left);
        let mut one = Vec::new();
        for operand in operands {
            one.push(operand.unwrap_or_else(|vector| self.of_lane(&vector, &lane)));
        }
        let made = body(self, &one)?;
        if let (Some(slot), Some(made)) = (&slot, made) {
            self.llvm.put_element(&made, slot, &lane);
        }
        self.llvm.jump(latch);
        self.llvm.begin(latch);
        let less = self.llvm.sub(&left, &Operand::constant(ty, 1));
        self.llvm.named(&rest).and(&left, &less);
        let none = Operand::constant(ty, 0);
        let more = self.llvm.icmp(IntCond::Ne, &rest, &none);
        self.llvm.branch_back(&more, again, after, hint);
        self.llvm.begin(after);
        Ok(slot.map(|slot| self.llvm.get(&slot)))
    }

    /// Stores a vector whose lanes are read one by one: LLVM would store all of it for each lane.
    pub(super) fn in_memory(&mut self, vector: Operand) -> Stored {
        if vector.ty() == self.mask_type() {
            return Stored::Mask(vector);
        }
        let slot = self.llvm.slot(vector.ty());
        self.llvm.put(&vector, &slot);
        Stored::Slot(slot)
    }

    /// Returns the element of a lane.
    pub(super) fn of_lane(&mut self, vector: &Stored, lane: &Operand) -> Operand {
        match vector {
            Stored::Mask(mask) => self.llvm.extract(mask, lane),
            Stored::Slot(slot) => self.llvm.get_element(slot, lane),
        }
    }
}
