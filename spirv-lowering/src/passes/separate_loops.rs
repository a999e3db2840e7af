//! Splits a loop in two where some back edges bypass the barrier that others pass.
//!
//! LLVM makes one loop of a loop that begins with another, as in `do { do a(); while (x);
//! barrier(); } while (y);`. For work-items that run side by side that is another program: those
//! that leave the inner loop reach the barrier while others are back at the beginning, and each
//! waits for itself. This pass gives the back edges without a barrier an inner loop again, after
//! which the work-items wait for each other. The work of a single one stays the same.

use crate::analysis::cfg::Cfg;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::loops::Loop;
use crate::edit::flow::Edit;
use crate::ir::entity::Block;
use crate::ir::function::{Edge, Function};
use crate::ir::op::{Op, Scope};
use rustc_hash::FxHashSet;

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function) -> bool {
    let (Some(entry), None) = (func.entry(), &func.structure) else {
        return false;
    };
    let blocks = func.layout.iter().copied();
    let common: FxHashSet<Block> = blocks.filter(|&b| is_common(func, b)).collect();
    if common.is_empty() {
        return false;
    }
    let flow = ControlFlow::new(func);
    let cfg = &flow.cfg;
    let mut edit = Edit::new(func, entry);
    let mut changed = false;
    for lp in flow.loops().loops.values() {
        let outer = reached_from(cfg, lp, &common);
        let is_inner = |latch: &Block| !outer.contains(latch);
        if lp.latches.iter().any(is_inner) && !lp.latches.iter().all(is_inner) {
            separate(&mut edit, cfg.preds(lp.header), lp, &outer);
            changed = true;
        }
    }
    edit.finish();
    changed
}

/// Returns true if a block has an operation that all work-items have to reach.
fn is_common(func: &Function, block: Block) -> bool {
    let mut insts = func.blocks[block].insts.iter();
    insts.any(|&inst| {
        matches!(
            func.insts[inst].op,
            Op::Barrier { .. } | Op::Group(_, Scope::WorkGroup)
        )
    })
}

/// Returns the blocks of a loop that are reached from `from`, those included, without passing its
/// header.
fn reached_from(cfg: &Cfg, lp: &Loop, from: &FxHashSet<Block>) -> FxHashSet<Block> {
    let inside: FxHashSet<Block> = lp.blocks.iter().copied().collect();
    let mut found: FxHashSet<Block> = inside.intersection(from).copied().collect();
    let mut stack: Vec<Block> = found.iter().copied().collect();
    while let Some(block) = stack.pop() {
        for &next in cfg.succs(block) {
            if next != lp.header && inside.contains(&next) && found.insert(next) {
                stack.push(next);
            }
        }
    }
    found
}

/// Inserts a header before that of a loop, for all predecessors but the latches that are not in
/// `outer`.
fn separate(edit: &mut Edit, preds: &[Block], lp: &Loop, outer: &FxHashSet<Block>) {
    let before = edit.forwarder(lp.header);
    for &pred in preds {
        if lp.latches.contains(&pred) && !outer.contains(&pred) {
            continue;
        }
        edit.redirect(
            pred,
            |target| target.block == lp.header,
            |_, target| Edge::with(before, target.args),
        );
    }
}
