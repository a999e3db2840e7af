//! Zeros that floats are multiplied by, divided by or added to are no constants any more, for llvmpipe: its code generator takes
//! `x * 0` and `0 / x` for 0, `x + 0` for x and `x / 0` for anything, whatever x is, so that infinities, NaN and signs of zeros
//! are lost (`lp_build_mul`, `lp_build_div`, `lp_build_add`; what SignedZeroInfNanPreserve and NoContraction say does not reach
//! them).
//!
//! Only a zero without a sign is known there as one. `x - 0` is x in any case; `0 - x` becomes an addition, and so does `x - -0`,
//! of a zero whose sign is gone by then. A product by `-0` is taken for a zero without a sign by what NIR knows of ranges, which then
//! leaves an `fabs` of it out.

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
                let arg = r.func.insts[inst].args[at];
                let (ty, bits) = (r.func.ty(arg), r.func.as_const(arg).unwrap_or(0));
                let zero = hidden(r, ty, bits);
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
        Op::FSub if !unsigned => 0..2,
        Op::FDiv => 0..2,
        Op::Fma => 0..3,
        _ => 0..0,
    }
}

fn is_zero(func: &Function, inst: Inst, at: usize) -> bool {
    let data = &func.insts[inst];
    let Some(&arg) = data.args.get(at) else {
        return false;
    };
    let Some(bits) = func.as_const(arg) else {
        return false;
    };
    let negative = bits == 1 << (func.ty(arg).bits() - 1);
    match data.op {
        Op::FSub if at == 1 => negative,
        Op::FMul => bits == 0 || negative,
        Op::Fma => bits == 0 || negative && at < 2,
        _ => bits == 0,
    }
}

/// A zero with the bits of that constant.
fn hidden(r: &mut Rewriter, ty: Type, bits: u64) -> Value {
    let word = match ty.bits() {
        16 => Type::I16,
        32 => Type::I32,
        _ => Type::I64,
    };
    let mut zero = hidden_zero(r, word);
    if bits != 0 {
        zero = r.with_const(Op::Or, zero, bits);
    }
    r.op(Op::Bitcast, [zero], ty)
}
