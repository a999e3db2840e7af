//! Makes two loops of one that some ways go back in without the barrier that others pass.
//!
//! LLVM makes one loop of a loop that begins with another, as in `do { do a(); while (x); barrier(); } while (y);`. For work-items
//! that run side by side that is another program: those that leave the inner loop come to the barrier while others are back at the
//! beginning, and each waits for itself. Here the ways back that pass no barrier get an inner loop again, behind which the
//! work-items wait for each other. What a single one does stays the same.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::{Loop, LoopForest};
use crate::ir::entity::Block;
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::op::{Op, Scope};
use rustc_hash::FxHashSet;

/// Runs the pass. True if the function changed.
pub fn run(func: &mut Function) -> bool {
    // All work-items come to these.
    let common = |func: &Function, block: Block| {
        let is_common = |op| matches!(op, Op::Barrier { .. } | Op::Group(_, Scope::WorkGroup));
        let mut insts = func.blocks[block].insts.iter();
        insts.any(|&inst| is_common(func.insts[inst].op))
    };
    let common: FxHashSet<Block> = func
        .layout
        .iter()
        .copied()
        .filter(|&block| common(func, block))
        .collect();
    if common.is_empty() || func.structure.is_some() {
        return false;
    }
    let cfg = Cfg::new(func);
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    let mut changed = false;
    for lp in forest.loops.values() {
        let outer = behind(&cfg, lp, &common);
        let is_inner = |&latch: &Block| !outer.contains(&latch);
        if lp.latches.iter().any(is_inner) && !lp.latches.iter().all(is_inner) {
            separate(func, cfg.preds(lp.header), lp, &outer);
            changed = true;
        }
    }
    changed
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
fn separate(func: &mut Function, preds: &[Block], lp: &Loop, outer: &FxHashSet<Block>) {
    let before = func.add_block();
    let types: Vec<_> = func.blocks[lp.header].params.clone();
    let types = types.into_iter().map(|param| func.ty(param));
    let args = types.collect::<Vec<_>>().into_iter();
    let args = args.map(|ty| func.add_param(before, ty)).collect();
    func.blocks[before].term = Terminator::Jump(Edge {
        block: lp.header,
        args,
    });
    for &pred in preds {
        if lp.latches.contains(&pred) && !outer.contains(&pred) {
            continue;
        }
        for target in func.blocks[pred].term.targets_mut() {
            if target.block == lp.header {
                target.block = before;
            }
        }
    }
}
