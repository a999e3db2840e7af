//! Conversions between pairs of words and floats. Those to integers truncate, those to floats round
//! to nearest even (`lower_convert` makes the others of these).

use super::pair::{self, Pair};
use crate::edit::rewrite::Rewriter;
use crate::ir::entity::Value;
use crate::ir::op::{FloatCond, IntCond, Op, Rounding};
use crate::ir::types::Type;

/// Returns the bits of 2^exponent.
fn power_of_two(ty: Type, exponent: i64) -> u64 {
    match ty {
        Type::F64 => ((1023 + exponent) as u64) << 52,
        _ => ((127 + exponent) as u64) << 23,
    }
}

/// Converts a 64-bit integer to a float, rounded to nearest.
pub fn to_float(r: &mut Rewriter, v: Pair, to: Type, signed: bool) -> Value {
    if !signed {
        return unsigned_to_float(r, v, to);
    }
    let negative = r.icmp_const(IntCond::Slt, v.high, 0);
    let minus = pair::neg(r, v);
    let magnitude = pair::select(r, negative, minus, v);
    let float = unsigned_to_float(r, magnitude, to);
    let minus = r.same(Op::FNeg, [float]);
    r.select(negative, minus, float)
}

fn unsigned_to_float(r: &mut Rewriter, v: Pair, to: Type) -> Value {
    let convert = Op::UToF(Rounding::Rte);
    let is_word = r.icmp_const(IntCond::Eq, v.high, 0);
    if to == Type::F16 {
        // What does not fit in a word becomes infinity, as the greatest word does.
        let greatest = r.konst(Type::I32, u64::MAX);
        let word = r.select(is_word, v.low, greatest);
        return r.op(convert, [word], to);
    }
    if to == Type::F64 {
        // Each half is exact; their sum is rounded.
        let high = r.op(convert, [v.high], to);
        let high = r.with_const(Op::FMul, high, power_of_two(to, 32));
        let low = r.op(convert, [v.low], to);
        return r.same(Op::FAdd, [high, low]);
    }
    // The 32 bits from the highest that is set on; the lowest of them is set, too, if one below is,
    // so that a number between two floats is not taken for one halfway. Then a power of two.
    let leading = r.same(Op::Clz, [v.high]);
    let within = r.with_const(Op::And, leading, 31);
    let top = r.same(Op::Shl, [v.high, within]);
    let rest = r.with_const(Op::Xor, within, 31);
    let into = r.with_const(Op::LShr, v.low, 1);
    let into = r.same(Op::LShr, [into, rest]);
    let top = r.same(Op::Or, [top, into]);
    let below = r.same(Op::Shl, [v.low, within]);
    let below = r.icmp_const(IntCond::Ne, below, 0);
    let below = r.op(Op::ZExt, [below], Type::I32);
    let top = r.same(Op::Or, [top, below]);
    let word = r.select(is_word, v.low, top);
    let float = r.op(convert, [word], to);
    let bias = r.konst(Type::I32, 127 + 32);
    let exponent = r.same(Op::ISub, [bias, leading]);
    let power = r.with_const(Op::Shl, exponent, 23);
    let power = r.op(Op::Bitcast, [power], Type::F32);
    r.same(Op::FMul, [float, power])
}

/// Converts a float to a 64-bit integer, rounded towards zero.
pub fn of_float(r: &mut Rewriter, x: Value, signed: bool) -> Pair {
    let to_word = |signed| {
        let (rounding, sat) = (Rounding::Rtz, false);
        match signed {
            true => Op::FToS { rounding, sat },
            false => Op::FToU { rounding, sat },
        }
    };
    let ty = r.func.ty(x);
    if ty == Type::F16 {
        // None has more than 16 bits.
        let word = r.op(to_word(signed), [x], Type::I32);
        return pair::extend(r, word, signed);
    }
    let magnitude = match signed {
        true => r.same(Op::FAbs, [x]),
        false => x,
    };
    // All of this is exact.
    let high = r.with_const(Op::FMul, magnitude, power_of_two(ty, -32));
    let high = r.op(to_word(false), [high], Type::I32);
    let taken = r.op(Op::UToF(Rounding::Rte), [high], ty);
    let taken = r.with_const(Op::FMul, taken, power_of_two(ty, 32));
    let low = r.same(Op::FSub, [magnitude, taken]);
    let low = r.op(to_word(false), [low], Type::I32);
    let number = Pair { low, high };
    if !signed {
        return number;
    }
    let zero = r.konst(ty, 0);
    let negative = r.fcmp(FloatCond::Olt, x, zero);
    let minus = pair::neg(r, number);
    pair::select(r, negative, minus, number)
}

/// Returns a double with the sign of another.
pub fn copy_sign(r: &mut Rewriter, x: Value, y: Value) -> Value {
    let low = r.op(Op::Low, [x], Type::I32);
    let [x, y] = [x, y].map(|v| r.op(Op::High, [v], Type::I32));
    let x = r.with_const(Op::And, x, 0x7fff_ffff);
    let y = r.with_const(Op::And, y, 0x8000_0000);
    let high = r.same(Op::Or, [x, y]);
    r.op(Op::Join, [low, high], Type::F64)
}
