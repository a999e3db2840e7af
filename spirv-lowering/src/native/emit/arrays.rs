//! Variables of a work-item: element after element, each for all lanes.

use super::packs::OWN;
use super::slots::Lanes;
use super::{Context, Emitter};
use crate::error::Result;
use crate::ir::entity::{SecondaryMap, Value, Var};
use crate::ir::types::Type;
use crate::native::llvm::{Cast, LlvmType, Operand};
use crate::native::strides::Class;

/// Where variables lie.
pub struct Variables<'a> {
    /// Variables with one element for all lanes.
    uniform: &'a SecondaryMap<Var, bool>,
    /// The offsets in the frame; None: on the stack.
    frame: Option<&'a SecondaryMap<Var, u32>>,
    /// The offset in the frame of memory that work-items have of their own.
    pub own: u32,
    /// Variables on the stack.
    slots: SecondaryMap<Var, Option<Operand>>,
}

impl<'a> Variables<'a> {
    pub fn new(
        uniform: &'a SecondaryMap<Var, bool>,
        frame: Option<&'a SecondaryMap<Var, u32>>,
        own: u32,
    ) -> Self {
        Self {
            uniform,
            frame,
            own,
            slots: SecondaryMap::new(),
        }
    }
}

/// Where an element is.
enum Element {
    /// Lanes have one array.
    Shared(Operand),
    /// The elements of all lanes, one after the other.
    Row(Operand),
    /// A vector of addresses, one for each lane.
    Each(Operand),
}

impl Emitter<'_> {
    fn array(&mut self, var: Var) -> Operand {
        if let Some(frame) = self.variables.frame {
            let offset = Operand::i64(frame[var].into());
            return self.llvm.offset(&OWN, &offset);
        }
        if let Some(slot) = &self.variables.slots[var] {
            return slot.clone();
        }
        let data = &self.func.vars[var];
        let (count, ty) = (data.len.fixed.max(1), self.vec(data.elem));
        let slot = self.llvm.array(count.into(), ty);
        self.variables.slots[var] = Some(slot.clone());
        slot
    }

    fn element_of(&mut self, var: Var, index: Value, cx: &Context) -> Result<Element> {
        let elem = self.func.vars[var].elem;
        let base = self.array(var);
        if self.variables.uniform[var] {
            return Ok(Element::Shared(base));
        }
        if self.is_uniform(index, cx) {
            let index = self.scalar(index, cx)?;
            let index = self.llvm.cast(Cast::ZExt, &index, LlvmType::I64);
            let row = self.vec(elem);
            return Ok(Element::Row(self.llvm.element(row, &base, &index)));
        }
        let index = self.vector(index, cx)?;
        let by = self.splat_const(Type::I32, self.shape.lanes.into());
        let row = self.llvm.mul(&index, &by);
        let own = self.lane_numbers();
        let at = self.llvm.add(&row, &own);
        let wide = self.vec(Type::I64);
        let at = self.llvm.cast(Cast::ZExt, &at, wide);
        let at = self.llvm.element(elem.into(), &base, &at);
        Ok(Element::Each(at))
    }

    pub(super) fn array_load(
        &mut self,
        var: Var,
        index: Value,
        result: Value,
        cx: &Context,
    ) -> Result<()> {
        let elem = self.func.vars[var].elem;
        let lanes = match self.element_of(var, index, cx)? {
            Element::Shared(base) => Lanes::Same(self.llvm.load(elem.into(), &base, 8)),
            Element::Row(at) => {
                let (vec, align) = (self.vec(elem), self.element_align(elem));
                Lanes::each(self.llvm.load(vec, &at, align))
            }
            Element::Each(at) => Lanes::each(self.gather(elem, &at, elem.size(), cx)),
        };
        self.define(result, lanes, cx);
        Ok(())
    }

    pub(super) fn array_store(
        &mut self,
        var: Var,
        index: Value,
        value: Value,
        cx: &Context,
    ) -> Result<()> {
        let elem = self.func.vars[var].elem;
        let at = match self.element_of(var, index, cx)? {
            Element::Shared(base) => {
                // Of an affine value the first lane is enough, which runs wherever there is a barrier.
                let one = match self.class(value, cx) {
                    Class::Affine(stride) => self.anchored(value, stride, cx)?,
                    _ => self.scalar(value, cx)?,
                };
                self.llvm.store(&one, &base, 8);
                return Ok(());
            }
            Element::Each(at) => {
                let vector = self.vector(value, cx)?;
                self.scatter(&at, &vector, elem.size(), cx);
                return Ok(());
            }
            Element::Row(at) => at,
        };
        let mut vector = self.vector(value, cx)?;
        let align = self.element_align(elem);
        // The place is ours: no other lane writes in between.
        if let Some(mask) = &cx.mask {
            vector = self.fenced(value, vector);
            let old = self.llvm.load(vector.ty(), &at, align);
            vector = self.llvm.select(mask, &vector, &old);
        }
        self.llvm.store(&vector, &at, align);
        Ok(())
    }

    fn element_align(&self, elem: Type) -> u32 {
        (self.shape.lanes * elem.size()).min(64)
    }
}
