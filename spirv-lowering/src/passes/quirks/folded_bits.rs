//! Rewrites operations that NVIDIA's compiler folds wrongly:
//!
//! - `x << 8 | x >> 8` of 16 bits is read from a register that was never written: the counts become opaque;
//! - `~x` of a loop, done an even number of times, is done once: its result becomes opaque;
//! - `(x & 1) * 20` is 20, as if `x` were odd, in some kernels, many of which have `x % 3` or `x | 1` too, and so are
//!   `((a == b) & x) * 20` and an element of an array with such a number: one bit of a number becomes a selection.

use crate::edit::opaque::{opaque, opaque_zero};
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::{Function, ValueDef};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::FxHashSet;

/// Runs the pass, after the last folding of constants. Returns true if anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    let mut carried = FxHashSet::default();
    for &block in &func.layout {
        for edge in func.blocks[block].term.targets() {
            carried.extend(edge.args.iter().copied());
        }
    }
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let &[result] = &data.results[..] else {
            return Ok(InstEdit::Keep);
        };
        let new = match (data.op, r.func.ty(result), &data.args[..]) {
            (Op::Or, Type::I16, &[a, b]) => {
                let Some((x, left, right)) = rotation(r.func, a, b) else {
                    return Ok(InstEdit::Keep);
                };
                let zero = opaque_zero(r, Type::I16);
                let halves = [(Op::Shl, left), (Op::LShr, right)].map(|(op, by)| {
                    let by = r.same(Op::Xor, [by, zero]);
                    r.same(op, [x, by])
                });
                r.same(Op::Or, halves)
            }
            (Op::Not, Type::I8 | Type::I16 | Type::I32 | Type::I64, &[x])
                if carried.contains(&result) && is_param(r.func, x) =>
            {
                let flipped = r.same(Op::Not, [x]);
                opaque(r, flipped)
            }
            (Op::And, ty @ (Type::I32 | Type::I64), &[x, y]) => {
                let Some((x, chosen)) = bit(r.func, x, y) else {
                    return Ok(InstEdit::Keep);
                };
                let low = r.with_const(Op::And, x, 1);
                let mut odd = r.icmp_const(IntCond::Ne, low, 0);
                if r.func.as_const(chosen) != Some(1) {
                    let chosen = r.icmp_const(IntCond::Ne, chosen, 0);
                    odd = r.same(Op::And, [chosen, odd]);
                }
                let [one, zero] = [1, 0].map(|bits| r.konst(ty, bits));
                r.select(odd, one, zero)
            }
            _ => return Ok(InstEdit::Keep),
        };
        changed = true;
        Ok(r.replace_result(inst, new))
    })?;
    Ok(changed)
}

/// Returns true for parameters of blocks.
fn is_param(func: &Function, value: Value) -> bool {
    matches!(func.values[value].def, ValueDef::Param(..))
}

/// How many operations are looked through for a bit.
const DEPTH: u32 = 4;

/// Returns the number of which `x & y` is the last bit, and the other operand, which is 0 or 1.
fn bit(func: &Function, x: Value, y: Value) -> Option<(Value, Value)> {
    if is_bit(func, y, DEPTH) {
        Some((x, y))
    } else {
        is_bit(func, x, DEPTH).then_some((y, x))
    }
}

/// Returns true if a number is 0 or 1 by the operation that makes it.
fn is_bit(func: &Function, value: Value, depth: u32) -> bool {
    if let Some(bits) = func.as_const(value) {
        return bits <= 1;
    }
    let (Some(inst), Some(depth)) = (func.def_inst(value), depth.checked_sub(1)) else {
        return false;
    };
    let data = &func.insts[inst];
    let bit = |&arg: &Value| is_bit(func, arg, depth);
    match data.op {
        Op::ZExt => func.ty(data.args[0]) == Type::Bool || bit(&data.args[0]),
        Op::And => data.args.iter().any(bit),
        Op::Or | Op::Xor => data.args.iter().all(bit),
        Op::Select => data.args[1..].iter().all(bit),
        _ => false,
    }
}

/// Returns the value and the counts of a rotation by 8, or by what a specialization may make 8.
fn rotation(func: &Function, a: Value, b: Value) -> Option<(Value, Value, Value)> {
    let shifted = |value: Value| {
        let data = &func.insts[func.def_inst(value)?];
        let &[x, by] = &data.args[..] else {
            return None;
        };
        matches!(func.as_const(by), None | Some(8)).then_some((data.op, x, by))
    };
    match (shifted(a)?, shifted(b)?) {
        ((Op::Shl, x, left), (Op::LShr, y, right)) | ((Op::LShr, y, right), (Op::Shl, x, left))
            if x == y =>
        {
            Some((x, left, right))
        }
        _ => None,
    }
}
