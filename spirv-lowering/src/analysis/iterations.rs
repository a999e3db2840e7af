//! Bounds the trip counts of loops from constants.

use super::loops::Loop;
use crate::ir::entity::{Block, Value};
use crate::ir::fold::{fold, sext};
use crate::ir::function::{Function, Terminator, ValueDef};
use crate::ir::op::{Effect, IntCond, Op};
use crate::ir::types::Type;
use smallvec::SmallVec;

/// Returns an upper bound of a loop's trip count. It is taken from an exit that every iteration
/// passes: one that compares an induction variable of constant begin and step with a constant, or
/// one whose condition can be computed iteration by iteration, as of a variable that is doubled or
/// halved.
pub fn trips(func: &Function, lp: &Loop) -> Option<u64> {
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
        if let Some(n) = follow(func, lp, latch, *cond, stays_if) {
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
    let ty = func.ty(param);
    let signed = |v: u64| sext(ty, v);
    // What is compared begins so far ahead of the counter.
    let start = signed(start?.wrapping_add(ahead));
    let (end, step) = (signed(end), signed(step?));
    if step == 0 || start < 0 || end < 0 {
        return None;
    }
    // It may step over the end once, and must not wrap around by that.
    let most = signed(ty.mask() >> 1);
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

/// The most iterations that are computed; a variable that is halved is 0 after 64.
const FOLLOWED: u64 = 70;

/// Computes the iterations until an exit is taken whose condition depends on constants and one
/// parameter of the header.
fn follow(func: &Function, lp: &Loop, latch: Block, cond: Value, stays_if: bool) -> Option<u64> {
    let mut param = None;
    if !depends(func, lp.header, cond, &mut param, 8) {
        return None;
    }
    let param = param?;
    let ValueDef::Param(_, index) = func.values[param].def else {
        return None;
    };
    let (mut start, mut next) = (None, None);
    for &block in &func.layout {
        for target in func.blocks[block].term.targets() {
            if target.block != lp.header {
                continue;
            }
            let arg = *target.args.get(index as usize)?;
            let seen = if block == latch {
                &mut next
            } else {
                &mut start
            };
            if seen.is_some_and(|s| {
                func.as_const(s).is_none() || func.as_const(s) != func.as_const(arg)
            }) {
                return None;
            }
            *seen = Some(arg);
        }
    }
    let (mut at, next) = (func.as_const(start?)?, next?);
    let mut of_next = None;
    if !depends(func, lp.header, next, &mut of_next, 8) || of_next.is_some_and(|p| p != param) {
        return None;
    }
    for n in 1..=FOLLOWED {
        if (compute(func, cond, param, at)? != 0) != stays_if {
            return Some(n + 1);
        }
        at = compute(func, next, param, at)?;
    }
    None
}

/// Returns true if a value is computed from constants and at most one parameter of `header`, and
/// stores that parameter in `param`.
fn depends(
    func: &Function,
    header: Block,
    value: Value,
    param: &mut Option<Value>,
    depth: u32,
) -> bool {
    match func.values[value].def {
        ValueDef::Param(block, _) => block == header && *param.get_or_insert(value) == value,
        ValueDef::Result(inst, _) => {
            let data = &func.insts[inst];
            depth > 0
                && data.results.len() == 1
                && data.op.effect() == Effect::Pure
                && (data.args.iter()).all(|&arg| depends(func, header, arg, param, depth - 1))
        }
    }
}

/// Computes a value that [`depends`] accepts, with `at` as the value of the parameter.
fn compute(func: &Function, value: Value, param: Value, at: u64) -> Option<u64> {
    if value == param {
        return Some(at);
    }
    let data = &func.insts[func.def_inst(value)?];
    if let Op::Const(bits) = data.op {
        return Some(bits);
    }
    let mut args = SmallVec::<[u64; 4]>::new();
    for &arg in &data.args {
        args.push(compute(func, arg, param, at)?);
    }
    let types: SmallVec<[Type; 4]> = data.args.iter().map(|&v| func.ty(v)).collect();
    fold(data.op, data.fp, &types, &args, func.ty(value))
}

/// Returns a value as a parameter of the loop's header plus a constant.
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
