//! Inserts a test at the start of a kernel that ends a work-item at once.

use super::rewrite::{at_start, Rewriter};
use crate::ir::entity::{Inst, Value};
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::op::Op;

/// Adds the test, after the variables of the entry block. Returns false if the kernel has no
/// effects.
pub fn run(func: &mut Function, test: impl Fn(&mut Rewriter) -> Value) -> bool {
    let is_variable = |&inst: &Inst| matches!(func.insts[inst].op, Op::Alloca { .. });
    if func.layout_insts().all(is_variable) {
        return false;
    }
    at_start(func, |r| {
        let leaves = test(r);
        let (end, rest) = (r.new_block(&[]), r.new_block(&[]));
        let branch = Terminator::Branch(leaves, Edge::new(end), Edge::new(rest));
        r.end_block(branch, end);
        r.end_block(Terminator::Return(Default::default()), rest);
    });
    true
}
