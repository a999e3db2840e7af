//! Arithmetic on pairs of words.

use crate::edit::rewrite::Rewriter;
use crate::ir::entity::Value;
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// A 64-bit integer: two I32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pair {
    pub low: Value,
    pub high: Value,
}

impl Pair {
    /// Emits a constant.
    pub fn konst(r: &mut Rewriter, bits: u64) -> Self {
        Self {
            low: r.konst(Type::I32, bits),
            high: r.konst(Type::I32, bits >> 32),
        }
    }
}

/// Emits a sum.
pub fn add(r: &mut Rewriter, a: Pair, b: Pair) -> Pair {
    let low = r.same(Op::IAdd, [a.low, b.low]);
    let carry = r.icmp(IntCond::Ult, low, b.low);
    let carry = r.op(Op::ZExt, [carry], Type::I32);
    let high = r.same(Op::IAdd, [a.high, b.high]);
    Pair {
        low,
        high: r.same(Op::IAdd, [high, carry]),
    }
}

/// Emits a difference.
pub fn sub(r: &mut Rewriter, a: Pair, b: Pair) -> Pair {
    let low = r.same(Op::ISub, [a.low, b.low]);
    let borrow = r.icmp(IntCond::Ult, a.low, b.low);
    let borrow = r.op(Op::ZExt, [borrow], Type::I32);
    let high = r.same(Op::ISub, [a.high, b.high]);
    Pair {
        low,
        high: r.same(Op::ISub, [high, borrow]),
    }
}

/// Emits a negation.
pub fn neg(r: &mut Rewriter, a: Pair) -> Pair {
    let zero = Pair::konst(r, 0);
    sub(r, zero, a)
}

/// Emits the lower 64 bits of a product.
pub fn mul(r: &mut Rewriter, a: Pair, b: Pair) -> Pair {
    let low = r.same(Op::IMul, [a.low, b.low]);
    let high = r.same(Op::UMulHi, [a.low, b.low]);
    let one = r.same(Op::IMul, [a.low, b.high]);
    let other = r.same(Op::IMul, [a.high, b.low]);
    let cross = r.same(Op::IAdd, [one, other]);
    Pair {
        low,
        high: r.same(Op::IAdd, [high, cross]),
    }
}

/// Emits a selection.
pub fn select(r: &mut Rewriter, cond: Value, yes: Pair, no: Pair) -> Pair {
    Pair {
        low: r.select(cond, yes.low, no.low),
        high: r.select(cond, yes.high, no.high),
    }
}

/// Shifts by `by`, of which only the low six bits count.
pub fn shift(r: &mut Rewriter, op: Op, a: Pair, by: Value) -> Pair {
    let known = r.resolve(by);
    match r.func.as_const(known) {
        Some(bits) => shift_by_constant(r, op, a, bits as u32 % 64),
        None => shift_by_value(r, op, a, by),
    }
}

/// Emits a shift by less than 64 bits.
pub fn shift_by_constant(r: &mut Rewriter, op: Op, a: Pair, by: u32) -> Pair {
    let Pair { low, high } = a;
    let within = u64::from(by % 32);
    if by == 0 {
        return a;
    }
    // What is shifted in from the other half, and all of that.
    if op == Op::Shl {
        let up = r.with_const(Op::Shl, low, within);
        if by >= 32 {
            let low = r.konst(Type::I32, 0);
            return Pair { low, high: up };
        }
        let into = r.with_const(Op::LShr, low, 32 - within);
        let high = r.with_const(Op::Shl, high, within);
        let high = r.same(Op::Or, [high, into]);
        return Pair { low: up, high };
    }
    let down = r.with_const(op, high, within);
    if by >= 32 {
        let high = match op {
            Op::AShr => r.with_const(Op::AShr, high, 31),
            _ => r.konst(Type::I32, 0),
        };
        return Pair { low: down, high };
    }
    let into = r.with_const(Op::Shl, high, 32 - within);
    let low = r.with_const(Op::LShr, low, within);
    let low = r.same(Op::Or, [low, into]);
    Pair { low, high: down }
}

fn shift_by_value(r: &mut Rewriter, op: Op, a: Pair, by: Value) -> Pair {
    let Pair { low, high } = a;
    let far = r.with_const(Op::And, by, 32);
    let far = r.icmp_const(IntCond::Ne, far, 0);
    let within = r.with_const(Op::And, by, 31);
    // By 32 less `within`, in two steps, as one of 32 is none.
    let rest = r.with_const(Op::Xor, within, 31);
    if op == Op::Shl {
        let up = r.same(Op::Shl, [low, within]);
        let into = r.with_const(Op::LShr, low, 1);
        let into = r.same(Op::LShr, [into, rest]);
        let near = r.same(Op::Shl, [high, within]);
        let near = r.same(Op::Or, [near, into]);
        let zero = r.konst(Type::I32, 0);
        return Pair {
            low: r.select(far, zero, up),
            high: r.select(far, up, near),
        };
    }
    let down = r.same(op, [high, within]);
    let into = r.with_const(Op::Shl, high, 1);
    let into = r.same(Op::Shl, [into, rest]);
    let near = r.same(Op::LShr, [low, within]);
    let near = r.same(Op::Or, [near, into]);
    let empty = match op {
        Op::AShr => r.with_const(Op::AShr, high, 31),
        _ => r.konst(Type::I32, 0),
    };
    Pair {
        low: r.select(far, down, near),
        high: r.select(far, empty, down),
    }
}

/// Emits a comparison.
pub fn compare(r: &mut Rewriter, cond: IntCond, a: Pair, b: Pair) -> Value {
    use IntCond::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
    // The high halves decide unless they are equal.
    let (decides, rest) = match cond {
        Eq | Ne => {
            let low = r.same(Op::Xor, [a.low, b.low]);
            let high = r.same(Op::Xor, [a.high, b.high]);
            let any = r.same(Op::Or, [low, high]);
            return r.icmp_const(cond, any, 0);
        }
        Slt => (Slt, Ult),
        Sle => (Slt, Ule),
        Sgt => (Sgt, Ugt),
        Sge => (Sgt, Uge),
        Ult => (Ult, Ult),
        Ule => (Ult, Ule),
        Ugt => (Ugt, Ugt),
        Uge => (Ugt, Uge),
    };
    let decided = r.icmp(decides, a.high, b.high);
    let equal = r.icmp(Eq, a.high, b.high);
    let rest = r.icmp(rest, a.low, b.low);
    let rest = r.same(Op::And, [equal, rest]);
    r.same(Op::Or, [decided, rest])
}

/// Returns the minimum or maximum.
pub fn extreme(r: &mut Rewriter, op: Op, a: Pair, b: Pair) -> Pair {
    let cond = match op {
        Op::SMin => IntCond::Slt,
        Op::SMax => IntCond::Sgt,
        Op::UMin => IntCond::Ult,
        _ => IntCond::Ugt,
    };
    let first = compare(r, cond, a, b);
    select(r, first, a, b)
}

/// Extends a narrower integer or a truth value.
pub fn extend(r: &mut Rewriter, from: Value, signed: bool) -> Pair {
    let op = if signed { Op::SExt } else { Op::ZExt };
    let low = match r.func.ty(from) {
        Type::I32 => from,
        _ => r.op(op, [from], Type::I32),
    };
    let high = match signed {
        true => r.with_const(Op::AShr, low, 31),
        false => r.konst(Type::I32, 0),
    };
    Pair { low, high }
}
