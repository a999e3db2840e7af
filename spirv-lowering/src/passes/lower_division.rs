//! Divides 64-bit integers by means of 32-bit floats, where a device has no such integers, and where its compiler gets
//! divisions of them wrong (row `mixed-quotients`).
//!
//! If both operands fit in 32 bits, so does one division. Else an estimate of what is left of the quotient is taken off until
//! the remainder is less than the divisor. The estimate is the product of floats, and too low by 2^-19: the conversions, the
//! reciprocal (2.5 ulp, as Vulkan allows) and the product are off by no more than 2^-20 together, so that it is never too high.
//! Each turns a quotient of n bits into one of n - 18, so there are five at most.

use crate::edit::rewrite::{rewrite_with_terms, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::op::{IntCond, Op, Rounding};
use crate::ir::types::Type;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// 1 - 2^-19, as the bits of a float.
const NEARLY_ONE: u64 = 0x3f7f_ffe0;

/// Operands, and whether they have a sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Division {
    signed: bool,
    a: Value,
    b: Value,
}

/// Runs the pass. Divisions by constants stay unless `constants`. Returns true if anything changed.
pub fn run(func: &mut Function, constants: bool) -> Result<bool> {
    let mut changed = false;
    // The quotients and remainders of the block so far.
    let known: RefCell<FxHashMap<Division, (Value, Value)>> = RefCell::default();
    rewrite_with_terms(
        func,
        |r, inst| {
            let data = r.data(inst);
            let (Op::UDiv | Op::URem | Op::SDiv | Op::SRem, &[a, b]) = (data.op, &data.args[..])
            else {
                return Ok(InstEdit::Keep);
            };
            let (a, b) = (r.resolve(a), r.resolve(b));
            if r.func.ty(b) != Type::I64 || (!constants && r.func.as_const(b).is_some()) {
                return Ok(InstEdit::Keep);
            }
            changed = true;
            let signed = matches!(data.op, Op::SDiv | Op::SRem);
            let division = Division { signed, a, b };
            let mut known = known.borrow_mut();
            let (quotient, remainder) = *known.entry(division).or_insert_with(|| {
                if signed {
                    self::signed(r, a, b)
                } else {
                    unsigned(r, a, b)
                }
            });
            let result = match data.op {
                Op::UDiv | Op::SDiv => quotient,
                _ => remainder,
            };
            Ok(r.replace_result(inst, result))
        },
        |_, _| {
            known.borrow_mut().clear();
            Ok(())
        },
    )?;
    Ok(changed)
}

/// Returns the quotient and the remainder of numbers with signs.
fn signed(r: &mut Rewriter, a: Value, b: Value) -> (Value, Value) {
    let sign_a = r.with_const(Op::AShr, a, 63);
    let sign_b = r.with_const(Op::AShr, b, 63);
    let (magnitude_a, magnitude_b) = (negate_if(r, sign_a, a), negate_if(r, sign_b, b));
    let (quotient, remainder) = unsigned(r, magnitude_a, magnitude_b);
    let sign = r.same(Op::Xor, [sign_a, sign_b]);
    (
        negate_if(r, sign, quotient),
        negate_if(r, sign_a, remainder),
    )
}

/// Negates a number if a mask is all ones, and not if it is zero.
fn negate_if(r: &mut Rewriter, mask: Value, v: Value) -> Value {
    let flipped = r.same(Op::Xor, [v, mask]);
    r.same(Op::ISub, [flipped, mask])
}

/// Returns the quotient and the remainder of numbers without sign.
fn unsigned(r: &mut Rewriter, a: Value, b: Value) -> (Value, Value) {
    let (long, float) = (Type::I64, Type::F32);
    let (short, begin) = (r.new_block(&[]), r.new_block(&[]));
    let (step, done) = (r.new_block(&[long; 2]), r.new_block(&[long; 2]));
    let both = r.same(Op::Or, [a, b]);
    let high = r.with_const(Op::LShr, both, 32);
    let is_short = r.icmp_const(IntCond::Eq, high, 0);
    let branch = Terminator::Branch(is_short, Edge::new(short), Edge::new(begin));
    r.end_block(branch, short);

    let words = [a, b].map(|v| r.op(Op::Trunc, [v], Type::I32));
    let [quotient, remainder] = [Op::UDiv, Op::URem].map(|op| {
        let word = r.same(op, words);
        r.op(Op::ZExt, [word], long)
    });
    r.jump(done, &[quotient, remainder], begin);

    // A division by zero has any result, and an end.
    let one = r.konst(long, 1);
    let divisor = r.same(Op::UMax, [b, one]);
    let convert = Op::UToF(Rounding::Rte);
    let nearly_one = r.konst(float, NEARLY_ONE);
    let divisor_float = r.op(convert, [divisor], float);
    let reciprocal = r.same(Op::FDiv, [nearly_one, divisor_float]);
    let zero = r.konst(long, 0);
    let more = r.icmp(IntCond::Uge, a, divisor);
    let branch = Terminator::Branch(
        more,
        Edge::with(step, [zero, a]),
        Edge::with(done, [zero, a]),
    );
    r.end_block(branch, step);

    let &[quotient, remainder] = r.params(step).as_slice() else {
        return (a, b);
    };
    let left = r.op(convert, [remainder], float);
    let estimate = r.same(Op::FMul, [left, reciprocal]);
    let (rounding, sat) = (Rounding::Rtz, false);
    let estimate = r.op(Op::FToU { rounding, sat }, [estimate], long);
    let estimate = r.same(Op::UMax, [estimate, one]);
    let quotient = r.same(Op::IAdd, [quotient, estimate]);
    let product = r.same(Op::IMul, [estimate, divisor]);
    let remainder = r.same(Op::ISub, [remainder, product]);
    let more = r.icmp(IntCond::Uge, remainder, divisor);
    let (again, end) = (
        Edge::with(step, [quotient, remainder]),
        Edge::with(done, [quotient, remainder]),
    );
    r.end_block(Terminator::Branch(more, again, end), done);

    match r.params(done).as_slice() {
        &[quotient, remainder] => (quotient, remainder),
        _ => (a, b),
    }
}
