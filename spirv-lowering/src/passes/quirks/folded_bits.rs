//! Rewrites operations that NVIDIA's compiler folds wrongly:
//!
//! - `x << 8 | x >> 8` of 16 bits is read from a register that was never written: the counts become opaque;
//! - `~x` of a loop, done an even number of times, is done once: its result becomes opaque;
//! - `(x & 1) * 20` of 64 bits is 20, as if `x` were odd, in kernels that have `x % 3` or `x | 1` too: it becomes a selection.

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
            (Op::IMul | Op::Shl, Type::I64, &[x, by]) => {
                let (Some(by), true) = (r.func.as_const(by), is_bit(r.func, x)) else {
                    return Ok(InstEdit::Keep);
                };
                let factor = match data.op {
                    Op::Shl => 1u64.wrapping_shl(by as u32),
                    _ => by,
                };
                let odd = r.icmp_const(IntCond::Ne, x, 0);
                let [factor, zero] = [factor, 0].map(|bits| r.konst(Type::I64, bits));
                r.select(odd, factor, zero)
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

/// Returns true for the last bit of a number.
fn is_bit(func: &Function, value: Value) -> bool {
    func.def_inst(value).is_some_and(|inst| {
        let data = &func.insts[inst];
        data.op == Op::And && data.args.iter().any(|&arg| func.as_const(arg) == Some(1))
    })
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
