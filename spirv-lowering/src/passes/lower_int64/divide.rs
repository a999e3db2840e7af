//! Division of pairs of words.

use super::pair::{self, Pair};
use crate::edit::rewrite::Rewriter;
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Terminator};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// The operands of a division, whose quotient and remainder are computed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Division {
    pub signed: bool,
    pub a: Pair,
    pub b: Pair,
}

/// Returns quotient and remainder.
pub fn divide(r: &mut Rewriter, signed: bool, a: Pair, b: Pair) -> (Pair, Pair) {
    if !signed {
        return unsigned(r, a, b);
    }
    let mut magnitude = |v: Pair| {
        let sign = r.with_const(Op::AShr, v.high, 31);
        (sign, negate_if(r, sign, v))
    };
    let ((sign_a, a), (sign_b, b)) = (magnitude(a), magnitude(b));
    let (quotient, remainder) = unsigned(r, a, b);
    let sign = r.same(Op::Xor, [sign_a, sign_b]);
    (
        negate_if(r, sign, quotient),
        negate_if(r, sign_a, remainder),
    )
}

/// Negates a number if a mask is all ones, and not if it is zero.
fn negate_if(r: &mut Rewriter, mask: Value, v: Pair) -> Pair {
    let flipped = Pair {
        low: r.same(Op::Xor, [v.low, mask]),
        high: r.same(Op::Xor, [v.high, mask]),
    };
    let mask = Pair {
        low: mask,
        high: mask,
    };
    pair::sub(r, flipped, mask)
}

/// Divides numbers without sign. If both fit in a word, so does the result of one division. Else
/// the high word of the quotient is that of a division of words, as the divisor has one word or is
/// greater than the dividend's high word, and the 32 bits of the low word follow one by one.
fn unsigned(r: &mut Rewriter, a: Pair, b: Pair) -> (Pair, Pair) {
    let word = Type::I32;
    let (short, long) = (r.new_block(&[]), r.new_block(&[]));
    let step = r.new_block(&[word; 4]);
    let done = r.new_block(&[word; 4]);
    let high = r.same(Op::Or, [a.high, b.high]);
    let is_short = r.icmp_const(IntCond::Eq, high, 0);
    let branch = Terminator::Branch(is_short, Edge::new(short), Edge::new(long));
    r.end_block(branch, short);

    let quotient = r.same(Op::UDiv, [a.low, b.low]);
    let remainder = r.same(Op::URem, [a.low, b.low]);
    let zero = r.konst(word, 0);
    r.jump(done, &[quotient, zero, remainder, zero], long);

    let one_word = r.icmp_const(IntCond::Eq, b.high, 0);
    let (zero, one) = (r.konst(word, 0), r.konst(word, 1));
    let divisor = r.select(one_word, b.low, one);
    let first = r.same(Op::UDiv, [a.high, divisor]);
    let first = r.select(one_word, first, zero);
    let rest = r.same(Op::URem, [a.high, divisor]);
    let rest = r.select(one_word, rest, a.high);
    let count = r.konst(word, 32);
    r.jump(step, &[count, a.low, rest, zero], step);

    // The remainder so far, and the low word, from which bits of the dividend leave at the top and
    // into which those of the quotient come at the bottom.
    let &[count, bits, low, high] = r.params(step).as_slice() else {
        return (a, b);
    };
    let lost = r.icmp_const(IntCond::Slt, high, 0);
    let top = r.with_const(Op::LShr, bits, 31);
    let bits = r.with_const(Op::Shl, bits, 1);
    let doubled = pair::shift_by_constant(r, Op::Shl, Pair { low, high }, 1);
    let doubled = Pair {
        low: r.same(Op::Or, [doubled.low, top]),
        ..doubled
    };
    let fits = pair::compare(r, IntCond::Uge, doubled, b);
    let fits = r.same(Op::Or, [fits, lost]);
    let reduced = pair::sub(r, doubled, b);
    let remainder = pair::select(r, fits, reduced, doubled);
    let bit = r.op(Op::ZExt, [fits], word);
    let bits = r.same(Op::Or, [bits, bit]);
    let left = r.with_const(Op::ISub, count, 1);
    let again = r.icmp_const(IntCond::Ne, left, 0);
    let edge = |block, args: [Value; 4]| Edge {
        block,
        args: args.into_iter().collect(),
    };
    let next = edge(step, [left, bits, remainder.low, remainder.high]);
    let end = edge(done, [bits, first, remainder.low, remainder.high]);
    r.end_block(Terminator::Branch(again, next, end), done);

    let &[low, high, rest_low, rest_high] = r.params(done).as_slice() else {
        return (a, b);
    };
    let remainder = Pair {
        low: rest_low,
        high: rest_high,
    };
    (Pair { low, high }, remainder)
}
