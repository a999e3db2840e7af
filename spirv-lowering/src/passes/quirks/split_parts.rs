//! Splits very long straight-line kernels into parts that are dispatched one after the other, for drivers that take time by
//! the square of the number of stores to compile a kernel
//! ([`Quirks::long_lines`](crate::target::Quirks::long_lines): llvmpipe makes a loop over the work-items of a sub-group
//! of each component).
//!
//! The parts stand in one module, chosen by a specialisation constant ([`SPEC_PART`]), so that the driver sees one at a
//! time. Nothing may live from one part to the next but what can be computed again: cuts are made only where that holds.
//! Work-items then run the first part of all before the second of any, which is one of the orders in which work-items of
//! a kernel without barriers and loops may run.
//!
//! ```text
//! block: a; b; c -> block: what can be computed again; part == 0 ? p0 : (part == 1 ? p1 : ...); p0: a; p1: b; ...
//! ```

use crate::analysis::cfg::Cfg;
use crate::interface::{MOST_PARTS, SPEC_PART};
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{BlockData, Edge, Function, Terminator};
use crate::ir::op::{Effect, IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// The approximate weight of a part: the 64-bit components that it stores.
pub const WEIGHT: u64 = 512;

/// Runs the pass. Gives the number of parts; 1: nothing has changed.
pub fn run(func: &mut Function, weight: u64) -> u32 {
    let Some(block) = candidate(func, weight) else {
        return 1;
    };
    let Some((first, parts)) = cut(func, block, weight) else {
        return 1;
    };
    let count = parts.len() as u32;
    rebuild(func, block, first, parts);
    count
}

/// Returns the components that an instruction accesses one by one, with their price beside that of
/// a store.
fn price(func: &Function, inst: Inst) -> u64 {
    let data = &func.insts[inst];
    let bytes =
        |values: &[Value]| -> u64 { values.iter().map(|&v| u64::from(func.ty(v).size())).sum() };
    match data.op {
        Op::Store { .. } => bytes(data.args.get(1..).unwrap_or_default()).div_ceil(8),
        Op::Load { .. } => bytes(&data.results) / 64,
        _ => 0,
    }
}

/// Returns the block to split: all others do nothing but compute, and nothing is run twice.
fn candidate(func: &Function, weight: u64) -> Option<Block> {
    if !func.vars.is_empty() {
        return None;
    }
    let cfg = Cfg::new(func);
    let place = |block: Block| cfg.rpo_index(block);
    let mut heavy = None;
    for &block in &func.layout {
        let mut pure = true;
        let mut total = 0;
        for &inst in &func.blocks[block].insts {
            let op = func.insts[inst].op;
            match op.effect() {
                Effect::Convergent => return None,
                _ if matches!(op, Op::Alloca { .. } | Op::Printf(_)) => return None,
                Effect::Pure => {}
                _ => pure = false,
            }
            total += price(func, inst);
        }
        // An edge back makes a loop.
        if cfg
            .succs(block)
            .iter()
            .any(|&next| place(next) <= place(block))
        {
            return None;
        }
        if !pure {
            if heavy.is_some() || total < 2 * weight {
                return None;
            }
            heavy = Some(block);
        }
    }
    heavy
}

/// Returns the instructions before the parts, and those of the parts, or `None` if the block cannot
/// be cut.
fn cut(func: &Function, block: Block, weight: u64) -> Option<(Vec<Inst>, Vec<Vec<Inst>>)> {
    // Values of the block that are not computed again.
    let mut bound: FxHashMap<Value, usize> = FxHashMap::default();
    let (mut first, mut rest): (Vec<Inst>, Vec<Inst>) = (Vec::new(), Vec::new());
    for &inst in &func.blocks[block].insts {
        let data = &func.insts[inst];
        let again = data.op.effect() == Effect::Pure
            && !data.args.iter().any(|arg| bound.contains_key(arg));
        if again {
            first.push(inst);
            continue;
        }
        let at = rest.len();
        for arg in &data.args {
            if let Some(last) = bound.get_mut(arg) {
                *last = at;
            }
        }
        bound.extend(data.results.iter().map(|&result| (result, at)));
        rest.push(inst);
    }
    // Other blocks, and the end of this one, may use none of them.
    let mut outside = false;
    let mut note = |value: Value| outside |= bound.contains_key(&value);
    for &other in &func.layout {
        if other != block {
            for &inst in &func.blocks[other].insts {
                func.insts[inst].args.iter().for_each(|&arg| note(arg));
            }
        }
        func.blocks[other].term.for_each_use(&mut note);
    }
    if outside {
        return None;
    }
    let mut parts: Vec<Vec<Inst>> = Vec::new();
    let mut part: Vec<Inst> = Vec::new();
    let (mut heavy, mut needed) = (0, 0);
    for (at, &inst) in rest.iter().enumerate() {
        if heavy >= weight && needed < at && parts.len() + 1 < MOST_PARTS as usize {
            parts.push(std::mem::take(&mut part));
            heavy = 0;
        }
        heavy += price(func, inst);
        let results = func.insts[inst].results.iter();
        let last = results.filter_map(|result| bound.get(result)).max();
        needed = needed.max(last.copied().unwrap_or(0));
        part.push(inst);
    }
    parts.push(part);
    (parts.len() > 1).then_some((first, parts))
}

fn rebuild(func: &mut Function, block: Block, first: Vec<Inst>, parts: Vec<Vec<Inst>>) {
    let end = func.blocks.push(BlockData::default());
    func.blocks[end].term = std::mem::take(&mut func.blocks[block].term);
    func.blocks[block].insts = first;
    let mut added: Vec<Block> = Vec::new();
    let value = |func: &mut Function, at: Block, op: Op, args: &[Value], ty: Type| {
        let inst = func.make_inst(op, args.iter().copied(), &[ty]);
        func.blocks[at].insts.push(inst);
        func.insts[inst].results[0]
    };
    let chosen = value(func, block, Op::SpecSize(SPEC_PART), &[], Type::I32);
    let mut at = block;
    let last = parts.len().saturating_sub(1);
    for (number, insts) in parts.into_iter().enumerate() {
        let part = func.blocks.push(BlockData {
            insts,
            ..BlockData::default()
        });
        func.blocks[part].term = Terminator::Jump(Edge::new(end));
        added.push(part);
        if number == last {
            func.blocks[at].term = Terminator::Jump(Edge::new(part));
            break;
        }
        let next = func.blocks.push(BlockData::default());
        let this = value(func, at, Op::Const(number as u64), &[], Type::I32);
        let equal = Op::ICmp(IntCond::Eq);
        let here = value(func, at, equal, &[chosen, this], Type::Bool);
        func.blocks[at].term = Terminator::Branch(here, Edge::new(part), Edge::new(next));
        added.push(next);
        at = next;
    }
    added.push(end);
    let known: FxHashSet<Block> = func.layout.iter().copied().collect();
    added.retain(|block| !known.contains(block));
    let place = func.layout.iter().position(|&b| b == block);
    let place = place.map_or(func.layout.len(), |at| at + 1);
    func.layout.splice(place..place, added);
}
