//! Inserts a test at the start of a kernel that ends a work-item at once.

use super::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::op::Op;

/// Adds the test, after the variables of the entry block. Returns false if the kernel has no
/// effects.
pub fn run(func: &mut Function, test: impl Fn(&mut Rewriter) -> Value) -> Result<bool> {
    if let Some(entry) = func.entry() {
        // Variables stay in the entry block.
        let mut insts = std::mem::take(&mut func.blocks[entry].insts);
        insts.sort_by_key(|&inst| !matches!(func.insts[inst].op, Op::Alloca { .. }));
        func.blocks[entry].insts = insts;
    }
    let mut done = false;
    rewrite(func, |r, inst| {
        if !done && !matches!(r.func.insts[inst].op, Op::Alloca { .. }) {
            done = true;
            let leaves = test(r);
            let (end, rest) = (r.new_block(&[]), r.new_block(&[]));
            let branch = Terminator::Branch(leaves, Edge::new(end), Edge::new(rest));
            r.end_block(branch, end);
            r.end_block(Terminator::Return(Default::default()), rest);
        }
        Ok(InstEdit::Keep)
    })?;
    Ok(done)
}
