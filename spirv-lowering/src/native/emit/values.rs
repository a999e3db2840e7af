//! Values: what they are for those who use them, and how they go from block to block.

use super::slots::Lanes;
use super::{Context, Emitter};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Value};
use crate::native::llvm::{LlvmType, Operand};
use crate::native::strides::{Class, Reach};
use crate::native::tree::Edge;

impl Emitter<'_> {
    /// Returns the class of a value as data for a use in this context.
    pub(super) fn class(&self, value: Value, cx: &Context) -> Class {
        self.classes.class(self.tree, value, cx.block)
    }

    /// Returns the class of a value as an address for a use in this context.
    pub(super) fn reach(&self, value: Value, cx: &Context) -> Reach {
        self.classes.reach(self.tree, value, cx.block)
    }

    /// Returns true if the value is a scalar in this context.
    pub(super) fn is_uniform(&self, value: Value, cx: &Context) -> bool {
        self.class(value, cx) == Class::Uniform
    }

    /// Returns the vector of an affine value.
    pub(super) fn spread(&mut self, first: &Operand, stride: i64) -> Operand {
        let step = |lane: u64| (stride as u64).wrapping_mul(lane);
        let ty = first.ty();
        if ty == LlvmType::PTR {
            let steps = self.lanes_const(LlvmType::I64, step);
            return self.llvm.offset(first, &steps);
        }
        let all = self.splat(first);
        let steps = self.lanes_const(ty, step);
        self.llvm.add(&all, &steps)
    }

    /// Defines the result of an operation as a vector, if it has a result.
    pub(super) fn define_if(
        &mut self,
        result: Option<Value>,
        found: Option<Operand>,
        cx: &Context,
    ) {
        if let (Some(result), Some(found)) = (result, found) {
            self.define(result, Lanes::each(found), cx);
        }
    }

    /// Assigns the arguments of an edge to the parameters of its target.
    pub(super) fn assign(&mut self, edge: &Edge, cx: &Context) -> Result<()> {
        let func = self.func;
        let targets = func.blocks[edge.from].term.targets();
        let Some(target) = targets.get(edge.index) else {
            return Err(LowerError::internal("an edge that is not there"));
        };
        let blends = self.classes.is_join(edge.to);
        let params = &func.blocks[edge.to].params;
        // All are read before one is written.
        let mut assignments = Vec::with_capacity(params.len());
        for (&param, &arg) in params.iter().zip(&target.args) {
            assignments.push(self.set_param(param, arg, blends, cx)?);
        }
        for assignment in assignments {
            self.store_param(assignment, cx);
        }
        Ok(())
    }

    /// Reads the parameters of a block that begins.
    pub(super) fn read_params(&mut self, block: Block, cx: &Context) {
        if self.tree.edges_in[block] == 0 {
            return;
        }
        for &param in &self.func.blocks[block].params {
            self.read_param(param, cx);
        }
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
  v3 = zext v0 : i64
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
