//! Unrolls loops for drivers that abandon a work-item's loops after some number of iterations.
//!
//! Mesa's llvmpipe counts the iterations of all loops of a shader together and at 65535 treats each loop as finished:
//! kernels that loop for longer silently compute something else. A copy of the body costs no iteration, so the
//! bodies are repeated, exits included, inner loops first and as often as budgets of instructions and atomic operations permit. That
//! moves the limit by an order of magnitude for the small loops that run so long; it cannot remove it. Loops that are
//! known to run only a few times stay as they are. Barriers and group operations are copied too, which is right only where,
//! as in llvmpipe, the work-items that left a loop just wait behind it; each one costs the driver much, so loops with them
//! are repeated less often.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::iterations;
use crate::analysis::loops::{Loop, LoopForest, LoopId};
use crate::edit::repair_ssa;
use crate::ir::compact::CopyMap;
use crate::ir::entity::{Block, Value};
use crate::ir::function::Function;
use crate::ir::op::{Effect, Op};
use rustc_hash::FxHashSet;

/// Times that a body is repeated, at most.
pub const MAX_FACTOR: usize = 16;
/// The same for a loop with a barrier or group operation.
const MAX_CONVERGENT: usize = 4;
/// Instructions of an unrolled loop, at most.
const LOOP_BUDGET: usize = 512;
/// Atomic operations in loops that stand beside one another, at most: each is a loop over the lanes to the driver, and hundreds
/// take it seconds to compile.
const ATOMIC_BUDGET: usize = 64;
/// Instructions of a function in which more loops are unrolled, at most.
const FUNCTION_BUDGET: usize = 8192;

/// Runs the pass for a driver that gives up after `limit` iterations; bodies are repeated `max_factor` times at most. Returns whether anything changed. The graph must
/// be reducible where loops are to be unrolled; other cycles are left alone.
pub fn run(func: &mut Function, limit: u32, max_factor: usize) -> bool {
    let mut done: FxHashSet<Block> = FxHashSet::default();
    let mut changed = false;
    loop {
        let cfg = Cfg::new(func);
        let dom = DomTree::new(&cfg);
        let forest = LoopForest::new(&cfg, &dom);
        if done.is_empty() {
            // What runs far below the limit in all is not worth the code.
            for id in forest.loops.keys() {
                if iterations::over_kernel(func, &forest, id) <= u64::from(limit / 16) {
                    done.insert(forest.loops[id].header);
                }
            }
        }
        let wait: FxHashSet<LoopId> = forest
            .loops
            .values()
            .filter(|l| !done.contains(&l.header))
            .filter_map(|l| l.parent)
            .collect();
        let ready: Vec<&Loop> = forest
            .loops
            .iter()
            .filter(|(id, l)| !wait.contains(id) && !done.contains(&l.header))
            .map(|(_, l)| l)
            .collect();
        if ready.is_empty() {
            return changed;
        }
        let atomics = |lp: &&Loop| ops(func, lp).filter(|op| op.is_atomic()).count();
        let atomics: Vec<usize> = ready.iter().map(atomics).collect();
        let in_all: usize = atomics.iter().sum();
        for (lp, atomics) in ready.into_iter().zip(atomics) {
            done.insert(lp.header);
            let mut factor = factor(func, lp).min(max_factor);
            if atomics > 0 {
                factor = factor.min(ATOMIC_BUDGET / in_all);
            }
            if factor > 1 && weight(func, &func.layout) < FUNCTION_BUDGET {
                // Loops inside have had their turn, and so have their copies.
                let copied = unroll(func, lp, factor, |b| done.contains(&b));
                done.extend(copied);
                changed = true;
            }
        }
    }
}

/// Returns the instructions of some blocks, constants aside.
pub(super) fn weight(func: &Function, blocks: &[Block]) -> usize {
    let cost = |&b: &Block| {
        let insts = &func.blocks[b].insts;
        let real = insts
            .iter()
            .filter(|&&i| !matches!(func.insts[i].op, Op::Const(_) | Op::Undef));
        real.count() + 1
    };
    blocks.iter().map(cost).sum()
}

/// How often to repeat the body of a loop.
fn factor(func: &Function, lp: &Loop) -> usize {
    let convergent = ops(func, lp).any(|op| op.effect() == Effect::Convergent);
    let most = if convergent {
        MAX_CONVERGENT
    } else {
        MAX_FACTOR
    };
    (LOOP_BUDGET / weight(func, &lp.blocks).max(1)).min(most)
}

/// Returns the operations of a loop.
fn ops<'a>(func: &'a Function, lp: &'a Loop) -> impl Iterator<Item = Op> + 'a {
    let insts = lp.blocks.iter().flat_map(|&b| &func.blocks[b].insts);
    insts.map(|&inst| func.insts[inst].op)
}

/// Puts copies of a loop's body between its end and its beginning. Returns the copies of the blocks that are `wanted`.
fn unroll(
    func: &mut Function,
    lp: &Loop,
    factor: usize,
    wanted: impl Fn(Block) -> bool,
) -> Vec<Block> {
    let body = func.clone();
    let mut maps = Vec::with_capacity(factor - 1);
    for _ in 1..factor {
        let mut map = CopyMap::new(&body);
        let first = func.insts.len();
        for &from in &lp.blocks {
            let to = func.add_block();
            map.set_block(from, to);
            for &param in &body.blocks[from].params {
                let new = func.add_param(to, body.values[param].ty);
                map.set_value(param, new);
            }
            map.copy_insts(&body, from, func, to);
        }
        map.fix_operands(func, first);
        for &from in &lp.blocks {
            func.blocks[map.block(from)].term = map.term(&body.blocks[from].term);
        }
        maps.push(map);
    }
    // Each copy goes on with the next one; the last with the loop's header, to which its jumps back led already.
    let headers: Vec<Block> = std::iter::once(lp.header)
        .chain(maps.iter().map(|m| m.block(lp.header)))
        .collect();
    for (i, &header) in headers.iter().enumerate() {
        let next = headers.get(i + 1).copied().unwrap_or(lp.header);
        for &latch in &lp.latches {
            let at = match i.checked_sub(1) {
                Some(copy) => maps[copy].block(latch),
                None => latch,
            };
            for target in func.blocks[at].term.targets_mut() {
                if target.block == header {
                    target.block = next;
                }
            }
        }
    }
    // What is used after the loop may now come from any copy.
    let mut defs: Vec<(Block, Value)> = Vec::new();
    for &block in &lp.blocks {
        let params = body.blocks[block].params.iter().copied();
        defs.extend(params.map(|v| (block, v)));
        for &inst in &body.blocks[block].insts {
            defs.extend(body.insts[inst].results.iter().map(|&v| (block, v)));
        }
    }
    let groups: Vec<Vec<(Block, Value)>> = defs
        .into_iter()
        .map(|(block, value)| {
            let copies = maps.iter().map(|m| (m.block(block), m.value(value)));
            std::iter::once((block, value)).chain(copies).collect()
        })
        .collect();
    repair_ssa::join_copies(func, &lp.blocks, &groups);
    let kept = lp.blocks.iter().filter(|&&b| wanted(b));
    kept.flat_map(|&b| maps.iter().map(move |m| m.block(b)))
        .collect()
}
