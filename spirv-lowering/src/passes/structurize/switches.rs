//! Puts switches into the form that drivers get right: on 32 bits, with a label for each target.

use crate::ir::entity::{Block, Value};
use crate::ir::function::{Edge, Function, Terminator, Values};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// Changes all switches.
pub fn run(func: &mut Function) {
    join_labels(func);
    narrow(func);
}

/// Leaves one label for each target. Work-items that reach a block by several labels are apart for some drivers, which enter
/// the block once for each label, so that what they do together there is wrong.
fn join_labels(func: &mut Function) {
    for block in func.layout.clone() {
        let Terminator::Switch(value, cases, default) = func.blocks[block].term.clone() else {
            continue;
        };
        let count = cases.len();
        let mut arms: Vec<(Edge, Vec<u64>)> = Vec::new();
        let mut arm_of: FxHashMap<(Block, Values), usize> = FxHashMap::default();
        for (label, edge) in cases {
            if edge == default {
                continue;
            }
            let next = arms.len();
            let arm = *arm_of
                .entry((edge.block, edge.args.clone()))
                .or_insert(next);
            match arms.get_mut(arm) {
                Some((_, labels)) => labels.push(label),
                None => arms.push((edge, vec![label])),
            }
        }
        if arms.len() == count {
            continue;
        }
        func.blocks[block].term = match arms.as_mut_slice() {
            [] => Terminator::Jump(default),
            [(edge, labels)] => {
                let cond = is_any(func, block, value, labels);
                Terminator::Branch(cond, edge.clone(), default)
            }
            arms => {
                let ty = func.ty(value);
                let mut selector = value;
                let mut cases = Vec::with_capacity(arms.len());
                for (edge, labels) in arms {
                    let first = labels.remove(0);
                    if !labels.is_empty() {
                        let other = is_any(func, block, value, labels);
                        let label = func.append_const(block, ty, first);
                        selector = func.append1(block, Op::Select, [other, label, selector], ty);
                    }
                    cases.push((first, edge.clone()));
                }
                Terminator::Switch(selector, cases, default)
            }
        };
    }
}

/// Returns true, at run time, if the value is one of the labels, of which there is at least one. Sorts them.
fn is_any(func: &mut Function, at: Block, value: Value, labels: &mut [u64]) -> Value {
    let ty = func.ty(value);
    labels.sort_unstable();
    let mut any = None;
    for run in labels.chunk_by(|a, b| a + 1 == *b) {
        let first = func.append_const(at, ty, run[0]);
        let is_in = if run.len() == 1 {
            func.append1(at, Op::ICmp(IntCond::Eq), [value, first], Type::Bool)
        } else {
            let offset = func.append1(at, Op::ISub, [value, first], ty);
            let length = func.append_const(at, ty, run.len() as u64);
            func.append1(at, Op::ICmp(IntCond::Ult), [offset, length], Type::Bool)
        };
        any = Some(match any {
            Some(any) => func.append1(at, Op::Or, [any, is_in], Type::Bool),
            None => is_in,
        });
    }
    any.unwrap_or_else(|| func.append_const(at, Type::Bool, 0))
}

/// Converts switches on other integers to 32 bits, and a switch with one case to a branch.
fn narrow(func: &mut Function) {
    for block in func.layout.clone() {
        let Terminator::Switch(value, cases, default) = func.blocks[block].term.clone() else {
            continue;
        };
        let ty = func.ty(value);
        if let [(bits, target)] = cases.as_slice() {
            let constant = func.append_const(block, ty, *bits);
            let cond = func.append1(block, Op::ICmp(IntCond::Eq), [value, constant], Type::Bool);
            func.blocks[block].term = Terminator::Branch(cond, target.clone(), default);
            continue;
        }
        match ty {
            Type::I8 | Type::I16 => {
                let wide = func.append1(block, Op::ZExt, [value], Type::I32);
                func.blocks[block].term = Terminator::Switch(wide, cases, default);
            }
            Type::I64 => {
                // A 32-bit value that no case has stands for all that does not fit.
                let fits = |bits: u64| bits as i64 == i64::from(bits as i32);
                let (small, large): (Vec<_>, Vec<_>) =
                    cases.into_iter().partition(|&(bits, _)| fits(bits));
                let taken: FxHashSet<u32> = small.iter().map(|&(bits, _)| bits as u32).collect();
                let Some(free) = (0..=u32::MAX).rev().find(|v| !taken.contains(v)) else {
                    continue;
                };
                let mut at = block;
                for (bits, target) in large {
                    let next = func.add_block();
                    let constant = func.append_const(at, ty, bits);
                    let cond =
                        func.append1(at, Op::ICmp(IntCond::Eq), [value, constant], Type::Bool);
                    func.blocks[at].term = Terminator::Branch(cond, target, Edge::new(next));
                    at = next;
                }
                let low = func.append1(at, Op::Trunc, [value], Type::I32);
                let back = func.append1(at, Op::SExt, [low], Type::I64);
                let same = func.append1(at, Op::ICmp(IntCond::Eq), [back, value], Type::Bool);
                let other = func.append_const(at, Type::I32, free.into());
                let narrow = func.append1(at, Op::Select, [same, low, other], Type::I32);
                let cases = small
                    .into_iter()
                    .map(|(bits, t)| (bits & 0xffff_ffff, t))
                    .collect();
                func.blocks[at].term = Terminator::Switch(narrow, cases, default);
            }
            _ => {}
        }
    }
}
