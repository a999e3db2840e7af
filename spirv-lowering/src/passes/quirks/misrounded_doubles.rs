//! Expands Trunc and RoundEven of doubles to Floor, for llvmpipe on processors without AVX-512: it takes every double beyond
//! 2^24 for a whole number, which holds in single precision alone (Mesa 22.3; its Floor is right).

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{FloatCond, Op};
use crate::ir::types::Type;

const SIGN: u64 = 1 << 63;

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let (op, &[x]) = (&data.op, data.args.as_slice()) else {
            return Ok(InstEdit::Keep);
        };
        if !matches!(op, Op::FTrunc | Op::FRoundEven) || r.func.ty(x) != Type::F64 {
            return Ok(InstEdit::Keep);
        }
        let x = r.resolve(x);
        let size = r.same(Op::FAbs, [x]);
        let whole = match op {
            Op::FTrunc => r.same(Op::FFloor, [size]),
            _ => nearest(r, size),
        };
        let bits = r.op(Op::Bitcast, [x], Type::I64);
        let sign = r.with_const(Op::And, bits, SIGN);
        let whole = r.op(Op::Bitcast, [whole], Type::I64);
        let both = r.same(Op::Or, [whole, sign]);
        let result = r.op(Op::Bitcast, [both], Type::F64);
        Ok(r.replace_result(inst, result))
    })
}

/// Returns the whole number nearest to one that is not negative, the even one of two. Every step is
/// exact.
fn nearest(r: &mut Rewriter, size: Value) -> Value {
    let constant = |r: &mut Rewriter, value: f64| r.konst(Type::F64, value.to_bits());
    let (half, one) = (constant(r, 0.5), constant(r, 1.0));
    let below = r.same(Op::FFloor, [size]);
    let rest = r.same(Op::FSub, [size, below]);
    let halved = r.same(Op::FMul, [below, half]);
    let even = r.same(Op::FFloor, [halved]);
    let odd = r.fcmp(FloatCond::One, halved, even);
    let tie = r.fcmp(FloatCond::Oeq, rest, half);
    let more = r.fcmp(FloatCond::Ogt, rest, half);
    let tie_up = r.op(Op::And, [tie, odd], Type::Bool);
    let up = r.op(Op::Or, [more, tie_up], Type::Bool);
    let above = r.same(Op::FAdd, [below, one]);
    r.select(up, above, below)
}
