//! A zero that no compiler knows to be one: for what a driver must not see through.

use super::rewrite::Rewriter;
use crate::ir::entity::Value;
use crate::ir::op::{HwVar, Op};
use crate::ir::types::Type;

/// A zero of an integer type. One of two numbers in a row is even, and what is known of the range of a product says nothing of its
/// last bit; the first is the number of work-groups, which no kernel computes.
pub fn unknown_zero(r: &mut Rewriter, ty: Type) -> Value {
    let groups = r.op(Op::Hw(HwVar::NumWorkgroups(0)), [], Type::I32);
    let one = r.konst(Type::I32, 1);
    let next = r.same(Op::IAdd, [groups, one]);
    let product = r.same(Op::IMul, [groups, next]);
    let zero = r.same(Op::And, [product, one]);
    match ty.bits() {
        32 => zero,
        64.. => r.op(Op::ZExt, [zero], ty),
        _ => r.op(Op::Trunc, [zero], ty),
    }
}

/// The same integer, of which no compiler knows anything any more.
pub fn hide(r: &mut Rewriter, value: Value) -> Value {
    let zero = unknown_zero(r, r.func.ty(value));
    r.same(Op::Xor, [value, zero])
}

/// An integer or a float with the bits of that constant, of which no compiler knows one that is zero.
pub fn hidden(r: &mut Rewriter, ty: Type, bits: u64) -> Value {
    let word = match ty.bits() {
        8 => Type::I8,
        16 => Type::I16,
        32 => Type::I32,
        _ => Type::I64,
    };
    let mut hidden = unknown_zero(r, word);
    if bits != 0 {
        hidden = r.with_const(Op::Or, hidden, bits);
    }
    if word == ty {
        return hidden;
    }
    r.op(Op::Bitcast, [hidden], ty)
}
