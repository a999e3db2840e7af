//! Makes two loops of one that some ways go back in without the barrier that others pass.
//!
//! LLVM makes one loop of a loop that begins with another, as in `do { do a(); while (x); barrier(); } while (y);`. For work-items
//! that run side by side that is another program: those that leave the inner loop come to the barrier while others are back at the
//! beginning, and each waits for itself. Here the ways back that pass no barrier get an inner loop again, behind which the
//! work-items wait for each other. What a single one does stays the same.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::{Loop, LoopForest};
use crate::edit::flow::Edit;
use crate::ir::entity::Block;
use crate::ir::function::{Edge, Function};
use crate::ir::op::{Op, Scope};
use rustc_hash::FxHashSet;

/// Runs the pass. True if the function changed.
pub fn run(func: &mut Function) -> bool {
    let (Some(entry), None) = (func.entry(), &func.structure) else {
        return false;
    };
    let blocks = func.layout.iter().copied();
    let common: FxHashSet<Block> = blocks.filter(|&b| is_common(func, b)).collect();
    if common.is_empty() {
        return false;
    }
    let cfg = Cfg::new(func);
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    let mut edit = Edit::new(func, entry);
    let mut changed = false;
    for lp in forest.loops.values() {
        let outer = behind(&cfg, lp, &common);
        let is_inner = |latch: &Block| !outer.contains(latch);
        if lp.latches.iter().any(is_inner) && !lp.latches.iter().all(is_inner) {
            separate(&mut edit, cfg.preds(lp.header), lp, &outer);
            changed = true;
        }
    }
    edit.finish();
    changed
}

/// All work-items come to something in a block.
fn is_common(func: &Function, block: Block) -> bool {
    let mut insts = func.blocks[block].insts.iter();
    insts.any(|&inst| {
        matches!(
            func.insts[inst].op,
            Op::Barrier { .. } | Op::Group(_, Scope::WorkGroup)
        )
    })
}

/// The blocks of a loop that are reached from some of its blocks, those among them, without its header.
fn behind(cfg: &Cfg, lp: &Loop, from: &FxHashSet<Block>) -> FxHashSet<Block> {
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

/// Puts a header before that of a loop, for all that came to it but for the latches that are not among `outer`.
fn separate(edit: &mut Edit, preds: &[Block], lp: &Loop, outer: &FxHashSet<Block>) {
    let before = edit.forwarder(lp.header);
    for &pred in preds {
        if lp.latches.contains(&pred) && !outer.contains(&pred) {
            continue;
        }
        edit.redirect(
            pred,
            |target| target.block == lp.header,
            |_, target| Edge {
                block: before,
                args: target.args,
            },
        );
    }
}
