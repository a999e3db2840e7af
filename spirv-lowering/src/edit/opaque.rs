//! Makes opaque values: a zero that no compiler can prove to be one, and values combined with it.

use super::rewrite::Rewriter;
use crate::ir::entity::Value;
use crate::ir::op::{HwVar, Op};
use crate::ir::types::Type;

/// Emits an opaque zero of an integer type. It is the last bit of the product of two consecutive
/// numbers, of which one is even, and a compiler's range analysis says nothing about the last bit.
/// The first of them is the number of work-groups, which no kernel computes.
pub fn opaque_zero(r: &mut Rewriter, ty: Type) -> Value {
    let zero = zero_by_number(r, 0);
    match ty.bits() {
        32 => zero,
        64.. => r.op(Op::ZExt, [zero], ty),
        _ => r.op(Op::Trunc, [zero], ty),
    }
}

/// Emits one of several opaque zeros, of 32 bits. Those of other numbers are other values to a
/// compiler, which knows nothing of them by what it knows of this.
pub fn zero_by_number(r: &mut Rewriter, number: u64) -> Value {
    let groups = r.op(Op::Hw(HwVar::NumWorkgroups(0)), [], Type::I32);
    let first = match number {
        0 => groups,
        _ => r.with_const(Op::IAdd, groups, number),
    };
    let one = r.konst(Type::I32, 1);
    let next = r.same(Op::IAdd, [first, one]);
    let product = r.same(Op::IMul, [first, next]);
    r.same(Op::And, [product, one])
}

/// Returns the same integer as an opaque value.
pub fn opaque(r: &mut Rewriter, value: Value) -> Value {
    let zero = opaque_zero(r, r.func.ty(value));
    r.same(Op::Xor, [value, zero])
}

/// Returns a constant integer or float as an opaque value.
pub fn opaque_const(r: &mut Rewriter, ty: Type, bits: u64) -> Value {
    let word = match ty.bits() {
        8 => Type::I8,
        16 => Type::I16,
        32 => Type::I32,
        _ => Type::I64,
    };
    let mut hidden = opaque_zero(r, word);
    if bits != 0 {
        hidden = r.with_const(Op::Or, hidden, bits);
    }
    if word == ty {
        return hidden;
    }
    r.op(Op::Bitcast, [hidden], ty)
}
