//! Values: as scalars, as vectors, and in slots on the stack where neither will do.
//!
//! Block parameters that lanes reach on different ways, values that leave leaking loops, and those whose place in the text
//! does not come before all their uses lie in slots, which LLVM makes registers of.

use super::classes::Class;
use super::emitter::{Context, Emitter, Mask, Written};
use super::text::{constant, scalar};
use super::tree::Edge;
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Value};
use crate::ir::types::Type;

impl Emitter<'_> {
    /// The class of a value for who uses it here.
    pub fn class(&self, value: Value, cx: &Context) -> Class {
        if self.classes.escapes_to(self.tree, value, cx.block) {
            return Class::Varying;
        }
        self.classes.of(value)
    }

    /// Is it a scalar here?
    pub fn is_uniform(&self, value: Value, cx: &Context) -> bool {
        self.class(value, cx) == Class::Uniform
    }

    pub fn is_ancestor(&self, chain: usize, mut of: usize) -> bool {
        while of > chain {
            of = self.chains[of];
        }
        of == chain
    }

    pub fn slot_type(&self, value: Value, vector: bool) -> String {
        let ty = self.func.ty(value);
        if vector {
            self.vec(ty)
        } else {
            scalar(ty).to_owned()
        }
    }

    /// The value as it was written, from its slot where the text does not reach.
    pub fn get(&mut self, value: Value, cx: &Context) -> Result<Written> {
        if let Some(bits) = self.func.as_const(value) {
            let ty = self.func.ty(value);
            return Ok(Written {
                scalar: Some(constant(ty, bits)),
                vector: Some(self.splat_const(ty, bits)),
                chain: 0,
            });
        }
        let written = self.written[value].clone();
        let escapes = self.classes.escapes_to(self.tree, value, cx.block);
        let known = written.scalar.is_some() || written.vector.is_some();
        if known && !escapes && self.is_ancestor(written.chain, cx.chain) {
            return Ok(written);
        }
        if !known {
            return Err(LowerError::internal(format!("{value} is not written yet")));
        }
        if !self.wanted.contains(&value) {
            self.missing.insert(value);
            return Ok(written);
        }
        let Some(slot) = self.slots.get(&value).cloned() else {
            return Err(LowerError::internal(format!("{value} has no slot")));
        };
        let vector = escapes || self.slot_is_vector(value);
        let ty = self.slot_type(value, vector);
        let loaded = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
        let mut out = Written {
            chain: cx.chain,
            ..Written::default()
        };
        if vector {
            out.vector = Some(loaded);
        } else {
            out.scalar = Some(loaded.clone());
            if let Class::Affine { stride, .. } = self.classes.of(value) {
                out.vector = Some(self.spread(self.func.ty(value), &loaded, stride));
            }
        }
        Ok(out)
    }

    /// Values that escape have one of each lane; loose ones cannot be told from lane 0.
    pub fn slot_is_vector(&self, value: Value) -> bool {
        self.classes.escaping.contains(&value)
            || matches!(
                self.classes.of(value),
                Class::Varying | Class::Affine { loose: true, .. }
            )
    }

    /// The vector of an affine value.
    pub fn spread(&mut self, ty: Type, base: &str, stride: i64) -> String {
        if ty.is_ptr() {
            let steps = self.lanes_const(Type::I64, |lane| (stride as u64).wrapping_mul(lane));
            return self.text.def(&format!(
                "getelementptr i8, ptr {base}, <{} x i64> {steps}",
                self.lanes
            ));
        }
        let vec = self.vec(ty);
        let all = self.splat(ty, base);
        let steps = self.lanes_const(ty, |lane| (stride as u64).wrapping_mul(lane));
        self.text.def(&format!("add {vec} {all}, {steps}"))
    }

    /// The scalar of a uniform value.
    pub fn scalar(&mut self, value: Value, cx: &Context) -> Result<String> {
        let written = self.get(value, cx)?;
        if let Some(scalar) = written.scalar {
            return Ok(scalar);
        }
        // From a lane that runs.
        let vector = written.vector.unwrap_or_default();
        let lane = self.first_lane(&cx.mask);
        let ty = self.vec(self.func.ty(value));
        Ok(self
            .text
            .def(&format!("extractelement {ty} {vector}, i64 {lane}")))
    }

    /// The vector of any value.
    pub fn vector(&mut self, value: Value, cx: &Context) -> Result<String> {
        let written = self.get(value, cx)?;
        if let Some(vector) = written.vector {
            return Ok(vector);
        }
        let ty = self.func.ty(value);
        let scalar = written.scalar.unwrap_or_default();
        Ok(self.splat(ty, &scalar))
    }

    /// Notes the vector that an operation has found, where it has a result.
    pub fn define_if(&mut self, result: Option<Value>, found: Option<String>, cx: &Context) {
        if let (Some(result), Some(found)) = (result, found) {
            self.define(result, None, Some(found), cx);
        }
    }

    /// Notes that a value was written.
    pub fn define(
        &mut self,
        value: Value,
        scalar: Option<String>,
        vector: Option<String>,
        cx: &Context,
    ) {
        let (scalar, vector) = match (scalar, vector) {
            // Of one lane alone everything is a scalar.
            (None, Some(vector)) if self.lanes == 1 => {
                let ty = self.vec(self.func.ty(value));
                let only = format!("extractelement {ty} {vector}, i64 0");
                (Some(self.text.def(&only)), None)
            }
            both => both,
        };
        self.written[value] = Written {
            scalar,
            vector,
            chain: cx.chain,
        };
        if !self.wanted.contains(&value) {
            return;
        }
        let is_vector = self.slot_is_vector(value);
        let ty = self.slot_type(value, is_vector);
        let slot = match self.slots.get(&value) {
            Some(slot) => slot.clone(),
            None => {
                let slot = self.alloca(&ty);
                self.slots.insert(value, slot.clone());
                slot
            }
        };
        if is_vector {
            let vector = match self.vector(value, cx) {
                Ok(vector) => vector,
                Err(_) => return,
            };
            let blend = self.classes.escaping.contains(&value);
            let mask = if blend { &cx.mask } else { &None };
            let vector = match mask {
                Some(_) => self.fenced(value, vector),
                None => vector,
            };
            self.store_slot(&slot, &ty, &vector, mask);
        } else if let Some(scalar) = self.written[value].scalar.clone() {
            self.store_slot(&slot, &ty, &scalar, &None);
        }
    }

    pub fn store_slot(&mut self, slot: &str, ty: &str, value: &str, mask: &Mask) {
        let value = match mask {
            None => value.to_owned(),
            Some(mask) => {
                let old = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
                let mask_type = self.mask_type();
                self.text.def(&format!(
                    "select {mask_type} {mask}, {ty} {value}, {ty} {old}"
                ))
            }
        };
        self.text
            .line(&format!("store {ty} {value}, ptr {slot}, align 64"));
    }

    // --- block parameters

    pub fn param_slot(&mut self, param: Value) -> (String, String, bool) {
        let vector = self.classes.of(param) == Class::Varying;
        let ty = self.slot_type(param, vector);
        // Parameters have slots of their own beside those of values that are read from elsewhere.
        let key = format!("param {param}");
        if let Some(slot) = self.loaded.get(&key) {
            return (slot.clone(), ty, vector);
        }
        let slot = self.alloca(&ty);
        self.loaded.insert(key, slot.clone());
        (slot, ty, vector)
    }

    /// Gives the parameters of the block that an edge goes to their values.
    pub fn assign(&mut self, edge: &Edge, cx: &Context) -> Result<()> {
        let func = self.func;
        let targets = func.blocks[edge.from].term.targets();
        let Some(target) = targets.get(edge.index) else {
            return Err(LowerError::internal("an edge that is not there"));
        };
        let params = &func.blocks[edge.to].params;
        if params.is_empty() {
            return Ok(());
        }
        let blend = self.classes.is_join(edge.to);
        let mut values = Vec::new();
        for (&param, &arg) in params.iter().zip(&target.args) {
            values.push(match self.classes.of(param) {
                Class::Varying => self.vector(arg, cx)?,
                Class::Affine { .. } => self.anchored(arg, cx)?,
                _ => self.scalar(arg, cx)?,
            });
        }
        for ((&param, &arg), mut value) in params.iter().zip(&target.args).zip(values) {
            let (slot, ty, vector) = self.param_slot(param);
            let mask = if blend && vector {
                cx.mask.clone()
            } else {
                None
            };
            if mask.is_some() {
                value = self.fenced(arg, value);
            }
            // What is told from the first lane that runs is nothing if none does.
            if let (Class::Affine { .. }, Some(lanes), false) =
                (self.classes.of(param), &cx.mask, cx.some)
            {
                let any = self.any(lanes);
                let old = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
                let kept = format!("select i1 {any}, {ty} {value}, {ty} {old}");
                value = self.text.def(&kept);
            }
            self.store_slot(&slot, &ty, &value, &mask);
        }
        Ok(())
    }

    /// Reads the parameters of a block that begins.
    pub fn read_params(&mut self, block: Block, cx: &Context) {
        if self.tree.edges_in[block] == 0 {
            return;
        }
        for &param in &self.func.blocks[block].params {
            let (slot, ty, vector) = self.param_slot(param);
            let loaded = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
            if vector {
                self.define(param, None, Some(loaded), cx);
                continue;
            }
            let vector = match self.classes.of(param) {
                Class::Affine { stride, .. } => {
                    Some(self.spread(self.func.ty(param), &loaded, stride))
                }
                _ => None,
            };
            self.define(param, Some(loaded), vector, cx);
        }
    }

    // --- one lane alone, see `serial`

    /// Is what is written for one lane?
    pub fn is_alone(&self) -> bool {
        self.of_all.is_some()
    }

    /// Begins to write for one lane.
    pub fn alone(&mut self, cx: &Context) -> Context {
        self.of_all = Some(self.classes);
        self.classes = self.of_one_lane;
        Context {
            mask: None,
            some: true,
            chain: self.new_chain(cx.chain),
            ..cx.clone()
        }
    }

    /// Ends that.
    pub fn together_again(&mut self) {
        if let Some(classes) = self.of_all.take() {
            self.classes = classes;
        }
    }

    /// Has a value be that scalar, and tells what it was.
    pub fn replace(&mut self, value: Value, scalar: String, cx: &Context) -> Written {
        let new = Written {
            scalar: Some(scalar),
            vector: None,
            chain: cx.chain,
        };
        std::mem::replace(&mut self.written[value], new)
    }

    /// Has it be that again.
    pub fn restore(&mut self, value: Value, written: Written) {
        self.written[value] = written;
    }

    /// The slot of a block's parameter, which gets another when it is next asked for.
    pub fn take_param_slot(&mut self, param: Value) -> String {
        let (slot, ..) = self.param_slot(param);
        self.loaded.remove(&format!("param {param}"));
        slot
    }

    /// What a block's parameter has in its slot, which it loses.
    pub fn take_param(&mut self, param: Value) -> Written {
        let (_, ty, is_vector) = self.param_slot(param);
        let slot = self.take_param_slot(param);
        let loaded = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
        let vector = match self.classes.of(param) {
            _ if is_vector => Some(loaded.clone()),
            Class::Affine { stride, .. } => Some(self.spread(self.func.ty(param), &loaded, stride)),
            _ => None,
        };
        Written {
            scalar: (!is_vector).then_some(loaded),
            vector,
            chain: 0,
        }
    }

    /// Has a block's parameter begin with that scalar.
    pub fn begin_param(&mut self, param: Value, value: &str) {
        let (slot, ty, _) = self.param_slot(param);
        self.store_slot(&slot, &ty, value, &None);
    }

    /// Gives a block's parameter its slot.
    pub fn set_param_slot(&mut self, param: Value, slot: String) {
        self.loaded.insert(format!("param {param}"), slot);
    }

    /// Has a value lie in a slot of all lanes.
    pub fn set_slot(&mut self, value: Value, slot: String) {
        self.slots.insert(value, slot);
        self.wanted.insert(value);
    }
}

#[cfg(test)]
mod tests {
    use crate::native::text_of;

    /// The second arm is small, so that it is run whether lanes take it or not.
    #[test]
    fn arms_that_no_lane_takes_leave_parameters_as_they_are() {
        let func = "func fn0 \"f\" () -> () {
block0:
  v0 = hw.local_invocation_id.0 : i32
  v1 = arg_load.8 : i32
  v2 = iadd v0, v1 : i32
  v3 = zext v2 : i64
  v4 = const 2 : i64
  v5 = shl v3, v4 : i64
  v6 = arg_load.0 : i64
  v7 = int_to_ptr v6 : ptr.global
  v8 = ptr_add v7, v5 : ptr.global
  v9 = load.align4 v8 : i32
  v10 = const 0 : i32
  v11 = icmp.slt v9, v10 : bool
  br v11, block1, block2
block1:
  store.align4 v8, v10
  jump block3(v8)
block2:
  jump block3(v8)
block3(v12: ptr.global):
  v13 = ptr_add v12, v4 : ptr.global
  store.align4 v13, v9
  return
}
";
        let text = text_of(func, 16);
        let kept = text
            .lines()
            .filter(|line| line.contains("select i1") && line.contains(", ptr %"));
        assert_eq!(kept.count(), 1, "{text}");
    }
}
