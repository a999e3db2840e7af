//! Zeros that floats are multiplied by, divided by or added to are no constants any more, for llvmpipe: its code generator takes
//! `x * 0` and `0 / x` for 0, `x + 0` for x and `x / 0` for anything, whatever x is, so that infinities, NaN and signs of zeros
//! are lost (`lp_build_mul`, `lp_build_div`, `lp_build_add`; what SignedZeroInfNanPreserve and NoContraction say does not reach
//! them).
//!
//! Only a zero without a sign is known there as one. `x - 0` is x in any case; `0 - x` becomes an addition.

use super::hidden_zero;
use crate::edit::rewrite::{rewrite, Action, Rewriter};
use crate::error::Result;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::{FpFlags, Function, InstData};
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::FxHashSet;

/// Runs the pass, before arguments are lowered. Returns whether anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    let found: FxHashSet<Inst> = (func.layout.iter())
        .flat_map(|&block| func.blocks[block].insts.iter().copied())
        .filter(|&inst| operands(&func.insts[inst]).any(|at| is_zero(func, inst, at)))
        .collect();
    if found.is_empty() {
        return Ok(false);
    }
    rewrite(func, |r, inst| {
        if !found.contains(&inst) {
            return Ok(Action::Keep);
        }
        for at in operands(&r.func.insts[inst]) {
            if is_zero(r.func, inst, at) {
                let ty = r.func.ty(r.func.insts[inst].args[at]);
                let zero = hidden(r, ty);
                r.func.insts[inst].args[at] = zero;
            }
        }
        Ok(Action::Keep)
    })?;
    Ok(true)
}

/// The operands of which a zero may be taken for one that settles the result, where the result then is another.
fn operands(data: &InstData) -> std::ops::Range<usize> {
    let unsigned = data.fp.has(FpFlags::NSZ);
    match data.op {
        Op::FMul if !(unsigned && data.fp.has(FpFlags::NNAN)) => 0..2,
        Op::FAdd if !unsigned => 0..2,
        Op::FSub if !unsigned => 0..1,
        Op::FDiv => 0..2,
        Op::Fma => 0..3,
        _ => 0..0,
    }
}

fn is_zero(func: &Function, inst: Inst, at: usize) -> bool {
    (func.insts[inst].args.get(at)).is_some_and(|&arg| func.as_const(arg) == Some(0))
}

fn hidden(r: &mut Rewriter, ty: Type) -> Value {
    let bits = match ty.bits() {
        16 => Type::I16,
        32 => Type::I32,
        _ => Type::I64,
    };
    let zero = hidden_zero(r, bits);
    r.op(Op::Bitcast, [zero], ty)
}
