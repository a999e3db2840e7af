//! Unrolls loops for drivers that abandon a work-item's loops after some number of iterations.
//!
//! Mesa's llvmpipe counts the iterations of all loops of a shader together and at 65535 treats each loop as finished:
//! kernels that loop for longer silently compute something else. A copy of the body costs no iteration, so the
//! bodies are repeated, exits included, inner loops first and as often as a budget of instructions permits. That
//! moves the limit by an order of magnitude for the small loops that run so long; it cannot remove it. Loops that are
//! known to run only a few times stay as they are. Barriers and group operations are copied too, which is right only where,
//! as in llvmpipe, the work-items that left a loop just wait behind it; each one costs the driver much, so loops with them
//! are repeated less often.

use super::repair_ssa;
use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::{Loop, LoopForest, LoopId};
use crate::ir::compact::CopyMap;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Function, Terminator, ValueDef};
use crate::ir::op::{Effect, IntCond, Op};
use rustc_hash::FxHashSet;

/// Times that a body is repeated, at most.
pub const MAX_FACTOR: usize = 16;
/// The same for a loop with a barrier or group operation.
const MAX_CONVERGENT: usize = 4;
/// Instructions of an unrolled loop, at most.
const LOOP_BUDGET: usize = 512;
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
                if iterations(func, &forest, id) <= u64::from(limit / 16) {
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
        for lp in ready {
            done.insert(lp.header);
            let factor = factor(func, lp).min(max_factor);
            if factor > 1 && weight(func, &func.layout) < FUNCTION_BUDGET {
                // Loops inside have had their turn, and so have their copies.
                let copied = unroll(func, lp, factor, |b| done.contains(&b));
                done.extend(copied);
                changed = true;
            }
        }
    }
}

/// Instructions of some blocks, constants aside.
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
    let convergent = lp.blocks.iter().any(|&b| {
        let insts = &func.blocks[b].insts;
        insts
            .iter()
            .any(|&i| func.insts[i].op.effect() == Effect::Convergent)
    });
    let most = if convergent {
        MAX_CONVERGENT
    } else {
        MAX_FACTOR
    };
    (LOOP_BUDGET / weight(func, &lp.blocks).max(1)).min(most)
}

/// An upper bound of the iterations of a loop over the whole kernel; `u64::MAX` when unknown.
pub(super) fn iterations(func: &Function, forest: &LoopForest, id: LoopId) -> u64 {
    iterations_or(func, forest, id, u64::MAX)
}

/// The same, with a number for loops whose end is not known.
pub(super) fn iterations_or(func: &Function, forest: &LoopForest, id: LoopId, unknown: u64) -> u64 {
    let mut total = 1u64;
    let mut at = Some(id);
    while let Some(id) = at {
        total = total.saturating_mul(trips(func, &forest.loops[id]).unwrap_or(unknown));
        at = forest.loops[id].parent;
    }
    total
}

/// An upper bound of the iterations of the first of some loops, each inside the next, while the last is run once.
pub(super) fn within(func: &Function, loops: &[&Loop]) -> u64 {
    loops.iter().fold(1, |all, lp| {
        all.saturating_mul(trips(func, lp).unwrap_or(u64::MAX))
    })
}

/// An upper bound of the iterations of a loop each time it is entered: for a counter that goes up or down from a
/// constant by a constant, and an exit taken in every iteration's course once the counter passes a constant.
fn trips(func: &Function, lp: &Loop) -> Option<u64> {
    let [latch] = lp.latches[..] else {
        return None;
    };
    // Only exits in the header or the latch: those are passed in every iteration.
    for block in [lp.header, latch] {
        let Terminator::Branch(cond, a, b) = &func.blocks[block].term else {
            continue;
        };
        let inside = |b: Block| lp.blocks.contains(&b);
        let stays_if = match (inside(a.block), inside(b.block)) {
            (true, false) => true,
            (false, true) => false,
            _ => continue,
        };
        let Some(inst) = func.def_inst(*cond) else {
            continue;
        };
        let (Op::ICmp(kind), &[x, y]) = (func.insts[inst].op, &func.insts[inst].args[..]) else {
            continue;
        };
        if let Some(n) = count(func, lp, latch, kind, stays_if, x, y) {
            return Some(n);
        }
    }
    None
}

fn count(
    func: &Function,
    lp: &Loop,
    latch: Block,
    kind: IntCond,
    stays_if: bool,
    x: Value,
    y: Value,
) -> Option<u64> {
    let end = func.as_const(y)?;
    let (param, ahead) = counter(func, lp, x)?;
    let ValueDef::Param(_, index) = func.values[param].def else {
        return None;
    };
    let index = index as usize;
    let mut start = None;
    let mut step = None;
    for &block in &func.layout {
        for target in func.blocks[block].term.targets() {
            if target.block != lp.header {
                continue;
            }
            let arg = *target.args.get(index)?;
            if block == latch {
                let (from, by) = counter(func, lp, arg)?;
                if from != param {
                    return None;
                }
                step = Some(by);
            } else {
                let value = func.as_const(arg)?;
                if start.is_some_and(|s| s != value) {
                    return None;
                }
                start = Some(value);
            }
        }
    }
    let bits = func.ty(param).bits();
    let signed = |v: u64| {
        let shift = 64 - bits.clamp(1, 64);
        ((v << shift) as i64) >> shift
    };
    // What is compared begins so far ahead of the counter.
    let start = signed(start?.wrapping_add(ahead));
    let (end, step) = (signed(end), signed(step?));
    if step == 0 || start < 0 || end < 0 {
        return None;
    }
    // It may step over the end once, and must not wrap around by that.
    let most = signed(u64::MAX >> (64 - bits.clamp(1, 64)) >> 1);
    let past = end.checked_add(step)?;
    // The counter moves towards the end, and the order of the two decides: then it passes the end after so many steps.
    let towards = (end > start) == (step > 0);
    let ordered = match kind {
        IntCond::Eq => !stays_if && (end - start) % step == 0,
        IntCond::Ne => stays_if && (end - start) % step == 0,
        IntCond::Slt | IntCond::Sle => stays_if == (step > 0) && past <= most,
        IntCond::Ult | IntCond::Ule => stays_if == (step > 0) && past >= 0,
        IntCond::Sgt | IntCond::Sge => stays_if == (step < 0) && past <= most,
        IntCond::Ugt | IntCond::Uge => stays_if && step < 0 && end > step.saturating_neg(),
    };
    let steps = end.abs_diff(start) / step.unsigned_abs() + 2;
    (towards && ordered).then_some(steps)
}

/// A value as a parameter of the loop's header plus a constant.
fn counter(func: &Function, lp: &Loop, value: Value) -> Option<(Value, u64)> {
    if let ValueDef::Param(block, _) = func.values[value].def {
        return (block == lp.header).then_some((value, 0));
    }
    let inst = func.def_inst(value)?;
    let (Op::IAdd, &[x, y]) = (func.insts[inst].op, &func.insts[inst].args[..]) else {
        return None;
    };
    match func.values[x].def {
        ValueDef::Param(block, _) if block == lp.header => Some((x, func.as_const(y)?)),
        _ => None,
    }
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
