//! Variables of a work-item: element after element, each for all lanes.

use super::emitter::{Context, Emitter};
use super::slots::Lanes;
use super::strides::Class;
use super::text::scalar;
use crate::error::Result;
use crate::ir::entity::{Value, Var};
use crate::ir::types::Type;

/// Where an element is.
enum Element {
    /// Lanes have one array.
    Shared(String),
    /// Those of all lanes, one behind the other.
    Row(String),
    /// A vector of addresses, one for each lane.
    Apart(String),
}

impl Emitter<'_> {
    pub fn array(&mut self, var: Var) -> Result<String> {
        if let Some(frame) = &self.frame {
            let offset = frame[var];
            let base = self.ids.frame.clone();
            return Ok(self
                .text
                .def(&format!("getelementptr i8, ptr {base}, i64 {offset}")));
        }
        if let Some(name) = &self.arrays[var] {
            return Ok(name.clone());
        }
        let data = &self.func.vars[var];
        let ty = format!("[{} x {}]", data.len.fixed.max(1), self.vec(data.elem));
        let name = self.alloca(&ty);
        self.arrays[var] = Some(name.clone());
        Ok(name)
    }

    fn element_of(&mut self, var: Var, index: Value, cx: &mut Context) -> Result<Element> {
        let elem = self.func.vars[var].elem;
        let base = self.array(var)?;
        Ok(if self.region.uniform[var] {
            Element::Shared(base)
        } else if self.is_uniform(index, cx) {
            Element::Row(self.element(elem, &base, index, cx)?)
        } else {
            Element::Apart(self.elements(elem, &base, index, cx)?)
        })
    }

    pub fn array_load(
        &mut self,
        var: Var,
        index: Value,
        result: Value,
        cx: &mut Context,
    ) -> Result<()> {
        let elem = self.func.vars[var].elem;
        let loaded = match self.element_of(var, index, cx)? {
            Element::Shared(base) => {
                let load = format!("load {}, ptr {base}, align 8", scalar(elem));
                let loaded = self.text.def(&load);
                self.define(result, Lanes::Same(loaded), cx);
                return Ok(());
            }
            Element::Row(at) => {
                let (vec, align) = (self.vec(elem), self.element_align(elem));
                self.text
                    .def(&format!("load {vec}, ptr {at}, align {align}"))
            }
            Element::Apart(at) => self.gather(elem, &at, elem.size(), cx),
        };
        self.define(result, Lanes::each(loaded), cx);
        Ok(())
    }

    pub fn array_store(
        &mut self,
        var: Var,
        index: Value,
        value: Value,
        cx: &mut Context,
    ) -> Result<()> {
        let elem = self.func.vars[var].elem;
        let at = match self.element_of(var, index, cx)? {
            Element::Shared(base) => {
                // An affine value is told by its first lane, which runs wherever there is a barrier.
                let one = match self.class(value, cx) {
                    Class::Affine(stride) => self.anchored(value, stride, cx)?,
                    _ => self.scalar(value, cx)?,
                };
                self.text.line(&format!(
                    "store {} {one}, ptr {base}, align 8",
                    scalar(elem)
                ));
                return Ok(());
            }
            Element::Apart(at) => {
                let vector = self.vector(value, cx)?;
                self.scatter(elem, &at, &vector, elem.size(), cx);
                return Ok(());
            }
            Element::Row(at) => at,
        };
        let vector = self.vector(value, cx)?;
        let (vec, align) = (self.vec(elem), self.element_align(elem));
        let vector = match &cx.mask {
            None => vector,
            // The place is ours: no other lane writes in between.
            Some(mask) => {
                let vector = self.fenced(value, vector);
                let old = self
                    .text
                    .def(&format!("load {vec}, ptr {at}, align {align}"));
                let masks = self.mask_type();
                self.text.def(&format!(
                    "select {masks} {mask}, {vec} {vector}, {vec} {old}"
                ))
            }
        };
        self.text
            .line(&format!("store {vec} {vector}, ptr {at}, align {align}"));
        Ok(())
    }

    pub fn element_align(&self, elem: Type) -> u32 {
        (self.lanes * elem.size()).min(64)
    }

    pub fn element(
        &mut self,
        elem: Type,
        base: &str,
        index: Value,
        cx: &Context,
    ) -> Result<String> {
        let index = self.scalar(index, cx)?;
        let index = self.text.def(&format!("zext i32 {index} to i64"));
        let vec = self.vec(elem);
        Ok(self
            .text
            .def(&format!("getelementptr {vec}, ptr {base}, i64 {index}")))
    }

    pub fn elements(
        &mut self,
        elem: Type,
        base: &str,
        index: Value,
        cx: &Context,
    ) -> Result<String> {
        let index = self.vector(index, cx)?;
        let vec = self.vec(Type::I32);
        let by = self.splat_const(Type::I32, u64::from(self.lanes));
        let row = self.text.def(&format!("mul {vec} {index}, {by}"));
        let own = self.lanes_const(Type::I32, |lane| lane);
        let at = self.text.def(&format!("add {vec} {row}, {own}"));
        let wide = self.vec(Type::I64);
        let at = self.text.def(&format!("zext {vec} {at} to {wide}"));
        Ok(self.text.def(&format!(
            "getelementptr {}, ptr {base}, {wide} {at}",
            scalar(elem)
        )))
    }
}
