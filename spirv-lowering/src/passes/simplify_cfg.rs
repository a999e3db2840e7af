//! Simplifies control flow: branches on constants, unreachable blocks, chains of blocks, empty blocks, redundant
//! block parameters, and small pure diamonds, which become `select`.
//!
//! It keeps convergent operations in the control flow they are in: blocks are only joined with their sole
//! predecessor, forwarded when empty, or speculated when pure. Structured functions are left alone.

use crate::analysis::cfg::{remove_unreachable, Cfg};
use crate::analysis::control_flow::Analyses;
use crate::analysis::uses::use_counts;
use crate::ir::entity::{Block, Entity, SecondaryMap, Value};
use crate::ir::function::{Edge, Function, Terminator, ValueDef, Values};
use crate::ir::op::{Effect, IntCond, Op};
use crate::ir::subst::Subst;
use crate::ir::types::Type;
use rustc_hash::FxHashMap;

/// The most rounds of all steps; each is linear.
const MAX_ROUNDS: usize = 16;
/// The most instructions speculated on one side of a diamond.
const MAX_SPECULATED: usize = 6;
/// The most values that differ between the sides of a diamond.
const MAX_SELECTS: usize = 4;

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function, analyses: &mut Analyses) -> bool {
    if func.layout.is_empty() || func.structure.is_some() {
        return false;
    }
    let mut changed = false;
    for _ in 0..MAX_ROUNDS {
        let mut round = fold_terminators(func);
        let flow = analyses.control_flow(func);
        round |= remove_unreachable(func, &flow.cfg);
        round |= redundant_params(func, &flow.cfg);
        round |= forward_empty(func, &flow.cfg);
        round |= diamonds(func);
        let flow = analyses.control_flow(func);
        round |= merge_chains(func, &flow.cfg);
        changed |= round;
        if !round {
            break;
        }
    }
    changed
}

/// Folds branches with a constant condition or equal targets.
fn fold_terminators(func: &mut Function) -> bool {
    let mut changed = false;
    for i in 0..func.layout.len() {
        let block = func.layout[i];
        let term = std::mem::take(&mut func.blocks[block].term);
        let (term, new) = match term {
            Terminator::Branch(v, a, b) => match func.as_const(v) {
                Some(bits) => (Terminator::Jump(if bits & 1 != 0 { a } else { b }), true),
                None if a == b => (Terminator::Jump(a), true),
                None => match negated(func, v) {
                    Some(inner) => (Terminator::Branch(inner, b, a), true),
                    None => (Terminator::Branch(v, a, b), false),
                },
            },
            Terminator::Switch(v, mut cases, default) => {
                if let Some(bits) = func.as_const(v) {
                    let case = cases.iter().position(|(k, _)| *k == bits);
                    let target = case.map_or(default, |i| cases.swap_remove(i).1);
                    (Terminator::Jump(target), true)
                } else {
                    let before = cases.len();
                    cases.retain(|(_, t)| *t != default);
                    let shorter = cases.len() != before;
                    match (cases.len(), cases.pop()) {
                        (1, Some((bits, target))) => {
                            let ty = func.ty(v);
                            let k = func.append_const(block, ty, bits);
                            let c = func.append1(block, Op::ICmp(IntCond::Eq), [v, k], Type::Bool);
                            (Terminator::Branch(c, target, default), true)
                        }
                        (_, Some(last)) => {
                            cases.push(last);
                            (Terminator::Switch(v, cases, default), shorter)
                        }
                        (_, None) => (Terminator::Jump(default), true),
                    }
                }
            }
            other => (other, false),
        };
        func.blocks[block].term = term;
        changed |= new;
    }
    changed
}

/// Returns `x` if the value is `not x`.
fn negated(func: &Function, value: Value) -> Option<Value> {
    let data = &func.insts[func.def_inst(value)?];
    (data.op == Op::Not)
        .then(|| data.args.first().copied())
        .flatten()
}

/// Removes the parameters of a block for which `keep` is false, and their arguments.
fn drop_params(func: &mut Function, block: Block, keep: &[bool], cfg: &Cfg) {
    let mut flags = keep.iter();
    let params = &mut func.blocks[block].params;
    params.retain(|_| flags.next().copied().unwrap_or(true));
    for (i, param) in params.clone().into_iter().enumerate() {
        func.values[param].def = ValueDef::Param(block, i as u32);
    }
    for (pred, number) in cfg.pred_edges(block) {
        if let Some(target) = func.blocks[pred].term.target_mut(number) {
            let mut flags = keep.iter();
            target
                .args
                .retain(|_| flags.next().copied().unwrap_or(true));
        }
    }
}

/// Removes parameters that always get one value, or the same values as another parameter.
fn redundant_params(func: &mut Function, cfg: &Cfg) -> bool {
    let mut subst = Subst::new();
    let mut dropped: SecondaryMap<Block, Vec<bool>> = SecondaryMap::new();
    // Until nothing changes: replacing one parameter may make others redundant.
    let mut again = true;
    while again {
        again = false;
        for &block in cfg.rpo().iter().skip(1) {
            let n = func.blocks[block].params.len();
            if n == 0 {
                continue;
            }
            // Arguments by parameter, over all edges.
            let mut columns: Vec<Values> = vec![Values::new(); n];
            for (pred, number) in cfg.pred_edges(block) {
                if let Some(target) = func.blocks[pred].term.target(number) {
                    for (column, &arg) in columns.iter_mut().zip(&target.args) {
                        column.push(subst.get(arg));
                    }
                }
            }
            let mut seen: FxHashMap<Values, Value> = FxHashMap::default();
            for (i, column) in columns.into_iter().enumerate() {
                if dropped[block].get(i) == Some(&true) {
                    continue;
                }
                let param = func.blocks[block].params[i];
                let mut others = column.iter().copied().filter(|&v| v != param);
                let replacement = match others.next() {
                    // Only itself: the block is not reachable in earnest.
                    None => None,
                    Some(first) if others.all(|v| v == first) => Some(first),
                    Some(_) => match seen.get(&column) {
                        Some(&twin) if func.ty(twin) == func.ty(param) => Some(twin),
                        _ => {
                            seen.insert(column, param);
                            None
                        }
                    },
                };
                if let Some(value) = replacement {
                    subst.set(param, value);
                    let flags = &mut dropped[block];
                    flags.resize(n, false);
                    flags[i] = true;
                    again = true;
                }
            }
        }
    }
    if subst.is_empty() {
        return false;
    }
    for &block in cfg.rpo() {
        if !dropped[block].is_empty() {
            let keep: Vec<bool> = dropped[block].iter().map(|d| !d).collect();
            drop_params(func, block, &keep, cfg);
        }
    }
    subst.apply(func);
    true
}

/// The most empty blocks that are skipped: a cycle of them has no end.
const MAX_SKIPS: usize = 64;

/// Keeps a loop separate from the loop that it begins with, where there are convergent operations.
/// The work-items that leave the inner loop wait for each other after it; in one loop some would be
/// at a barrier while others are back at its beginning.
fn keep_nested_loops(func: &Function, cfg: &Cfg, skip: &mut SecondaryMap<Block, Option<Edge>>) {
    let mut insts = func.layout_insts();
    if !insts.any(|&inst| func.insts[inst].op.effect() == Effect::Convergent) {
        return;
    }
    let place = |block| cfg.rpo_index(block);
    let is_header = |block| cfg.preds(block).iter().any(|&p| place(p) >= place(block));
    for &block in cfg.rpo() {
        if skip[block].is_none() || !is_header(block) {
            continue;
        }
        let mut end = block;
        for _ in 0..MAX_SKIPS {
            match &skip[end] {
                Some(next) => end = next.block,
                None => break,
            }
        }
        if is_header(end) {
            skip[block] = None;
        }
    }
}

/// Redirects jumps to empty blocks to where those lead.
fn forward_empty(func: &mut Function, cfg: &Cfg) -> bool {
    let entry = func.entry();
    let uses = use_counts(func);
    // Blocks that may be skipped, and where they lead.
    let mut skip: SecondaryMap<Block, Option<Edge>> = SecondaryMap::new();
    let mut any = false;
    for &block in &func.layout {
        let data = &func.blocks[block];
        let Terminator::Jump(target) = &data.term else {
            continue;
        };
        if !data.insts.is_empty() || Some(block) == entry || target.block == block {
            continue;
        }
        // Its parameters may be used in its jump alone.
        let own = |p: Value| target.args.iter().filter(|&&a| a == p).count() as u32;
        if data.params.iter().all(|&p| uses[p] == own(p)) {
            skip[block] = Some(target.clone());
            any = true;
        }
    }
    if !any {
        return false;
    }
    keep_nested_loops(func, cfg, &mut skip);
    let mut changed = false;
    for i in 0..func.layout.len() {
        let block = func.layout[i];
        if skip[block].is_some() && func.blocks[block].insts.is_empty() {
            // It goes away, or leads to a cycle of empty blocks.
            continue;
        }
        let mut term = std::mem::take(&mut func.blocks[block].term);
        for target in term.targets_mut() {
            for _ in 0..MAX_SKIPS {
                let Some(next) = &skip[target.block] else {
                    break;
                };
                if next.block == target.block {
                    break;
                }
                let params = &func.blocks[target.block].params;
                let args = next.args.iter().map(|&a| {
                    let own = params.iter().position(|&p| p == a);
                    own.and_then(|i| target.args.get(i).copied()).unwrap_or(a)
                });
                *target = Edge::with(next.block, args);
                changed = true;
            }
        }
        func.blocks[block].term = term;
    }
    if changed {
        let cfg = Cfg::new(func);
        remove_unreachable(func, &cfg);
    }
    changed
}

/// Returns true if the operation is pure and cheap enough to be computed on both paths.
fn is_speculable(op: Op) -> bool {
    op.effect() == Effect::Pure
        && !matches!(
            op,
            Op::SDiv
                | Op::UDiv
                | Op::SRem
                | Op::URem
                | Op::FDiv
                | Op::FRem
                | Op::FSqrt
                | Op::FNative(_)
                | Op::Alloca { .. }
        )
}

/// Replaces `if (c) x = a; else x = b;` by a select.
fn diamonds(func: &mut Function) -> bool {
    let mut preds: SecondaryMap<Block, u32> = SecondaryMap::new();
    for &block in &func.layout {
        for target in func.blocks[block].term.targets() {
            preds[target.block] += 1;
        }
    }
    let mut changed = false;
    // Inner diamonds come later in the layout as a rule.
    for i in (0..func.layout.len()).rev() {
        let block = func.layout[i];
        let Terminator::Branch(cond, a, b) = &func.blocks[block].term else {
            continue;
        };
        let cond = *cond;
        // The join a side leads to, and the arguments it passes.
        let side = |t: &Edge| -> Option<Edge> {
            let data = &func.blocks[t.block];
            let Terminator::Jump(next) = &data.term else {
                return None;
            };
            let small = data.insts.iter().filter(|&&i| {
                !matches!(
                    func.insts[i].op,
                    Op::Const(_) | Op::Undef | Op::GlobalAddr(_)
                )
            });
            let plain = preds[t.block] == 1
                && t.block != block
                && data.params.is_empty()
                && next.block != t.block
                && data.insts.iter().all(|&i| is_speculable(func.insts[i].op))
                && small.count() <= MAX_SPECULATED;
            plain.then(|| next.clone())
        };
        let (via_a, via_b) = (side(a), side(b));
        let (a, b) = (a.clone(), b.clone());
        let (ends, hoist) = match (via_a, via_b) {
            (Some(x), Some(y)) if x.block == y.block => ((x, y), vec![a.block, b.block]),
            (Some(x), _) if x.block == b.block => ((x, b), vec![a.block]),
            (_, Some(y)) if y.block == a.block => ((a, y), vec![b.block]),
            _ if a.block == b.block => ((a, b), vec![]),
            _ => continue,
        };
        let (x, y) = ends;
        if x.block == block || x.args.len() != y.args.len() {
            continue;
        }
        let differ = x.args.iter().zip(&y.args).filter(|(p, q)| p != q);
        if differ.count() > MAX_SELECTS {
            continue;
        }
        for side in hoist {
            let insts = std::mem::take(&mut func.blocks[side].insts);
            func.blocks[block].insts.extend(insts);
            func.blocks[side].term = Terminator::Unreachable;
            preds[side] = 0;
        }
        // Of the two edges to the join one is left.
        preds[x.block] -= 1;
        let mut args = Values::new();
        for (&p, &q) in x.args.iter().zip(&y.args) {
            args.push(if p == q {
                p
            } else {
                let ty = func.ty(p);
                func.append1(block, Op::Select, [cond, p, q], ty)
            });
        }
        func.blocks[block].term = Terminator::Jump(Edge::with(x.block, args));
        changed = true;
    }
    if changed {
        let cfg = Cfg::new(func);
        remove_unreachable(func, &cfg);
    }
    changed
}

/// Joins each block with its sole successor if it is the sole predecessor of that.
fn merge_chains(func: &mut Function, cfg: &Cfg) -> bool {
    let entry = func.entry();
    let mut subst = Subst::new();
    let mut gone = vec![false; func.blocks.len()];
    let mut changed = false;
    for &head in cfg.rpo() {
        if gone[head.index()] {
            continue;
        }
        while let Terminator::Jump(target) = &func.blocks[head].term {
            let next = target.block;
            if next == head || Some(next) == entry || cfg.single_pred(next).is_none() {
                break;
            }
            let args = target.args.clone();
            let data = std::mem::take(&mut func.blocks[next]);
            for (&param, &arg) in data.params.iter().zip(&args) {
                subst.set(param, arg);
            }
            let to = &mut func.blocks[head];
            to.insts.extend(data.insts);
            to.term = data.term;
            gone[next.index()] = true;
            changed = true;
        }
    }
    if changed {
        func.layout.retain(|b| !gone[b.index()]);
        subst.apply(func);
    }
    changed
}
