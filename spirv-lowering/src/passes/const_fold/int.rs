//! Simplifies operations on two integers.

use super::{FoldResult, Folder};
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::Op;
use crate::ir::types::Type;
use smallvec::SmallVec;

/// Some bits of a value at another position.
struct ShiftedBits {
    x: Value,
    shift: i64,
    mask: u64,
}

impl Folder<'_> {
    /// Simplifies an operation on two integers.
    pub(super) fn int2(&mut self, op: Op, ty: Type, a: Value, b: Value) -> FoldResult {
        let bits = u64::from(ty.bits());
        let mask = ty.mask();
        let (ca, cb) = (self.c(a), self.c(b));
        let two = |op, x, y| FoldResult::Rewrite(op, Values::from_slice(&[x, y]));
        let one = |op, x| FoldResult::Rewrite(op, Values::from_slice(&[x]));
        if ca.is_some() && cb.is_none() && op.is_commutative() {
            return two(op, b, a);
        }
        if a == b {
            match op {
                Op::ISub | Op::Xor => return FoldResult::Value(self.constant(ty, 0)),
                Op::And | Op::Or | Op::SMin | Op::SMax | Op::UMin | Op::UMax => {
                    return FoldResult::Value(a)
                }
                _ => {}
            }
        }
        if ca == Some(0) && matches!(op, Op::Shl | Op::LShr | Op::AShr | Op::UDiv | Op::URem) {
            return FoldResult::Value(a);
        }
        if let Some(action) = self.of_widened(op, ty, a, b) {
            return action;
        }
        if op == Op::ISub && ca == Some(0) {
            return one(Op::INeg, b);
        }
        let Some(k) = cb else {
            if op == Op::Or {
                if let Some(action) = self.join_parts(ty, a, b) {
                    return action;
                }
            }
            return match (op, self.def(a), self.def(b)) {
                (Op::IAdd, _, Some((Op::INeg, args))) => two(Op::ISub, a, args[0]),
                (Op::IAdd, Some((Op::INeg, args)), _) => two(Op::ISub, b, args[0]),
                (Op::ISub, _, Some((Op::INeg, args))) => two(Op::IAdd, a, args[0]),
                (Op::ISub, Some((Op::IAdd, args)), _) if args[0] == b => FoldResult::Value(args[1]),
                (Op::ISub, Some((Op::IAdd, args)), _) if args[1] == b => FoldResult::Value(args[0]),
                (Op::IAdd, Some((Op::ISub, args)), _) if args[1] == b => FoldResult::Value(args[0]),
                (Op::IAdd, _, Some((Op::ISub, args))) if args[1] == a => FoldResult::Value(args[0]),
                _ => FoldResult::Keep,
            };
        };
        // The second operand is the constant k.
        match op {
            Op::ISub => {
                let k = self.constant(ty, k.wrapping_neg());
                return two(Op::IAdd, a, k);
            }
            Op::IAdd | Op::Or | Op::Xor | Op::Shl | Op::LShr | Op::AShr if k == 0 => {
                return FoldResult::Value(a)
            }
            Op::And | Op::IMul | Op::UMulHi if k == 0 => return FoldResult::Value(b),
            Op::And if k == mask => return FoldResult::Value(a),
            Op::Or if k == mask => return FoldResult::Value(b),
            Op::Xor if k == mask => return one(Op::Not, a),
            Op::IMul | Op::UDiv | Op::SDiv if k == 1 => return FoldResult::Value(a),
            Op::URem | Op::SRem if k == 1 => return FoldResult::Value(self.constant(ty, 0)),
            Op::IMul if k == mask => return one(Op::INeg, a),
            Op::IMul if k.is_power_of_two() => {
                let amount = self.constant(ty, k.trailing_zeros().into());
                return two(Op::Shl, a, amount);
            }
            Op::UDiv if k.is_power_of_two() => {
                let amount = self.constant(ty, k.trailing_zeros().into());
                return two(Op::LShr, a, amount);
            }
            Op::URem if k.is_power_of_two() => {
                let low = self.constant(ty, k - 1);
                return two(Op::And, a, low);
            }
            Op::UMin if k == 0 => return FoldResult::Value(b),
            Op::UMin if k == mask => return FoldResult::Value(a),
            Op::UMax if k == 0 => return FoldResult::Value(a),
            Op::UMax if k == mask => return FoldResult::Value(b),
            _ => {}
        }
        // Chains: (x op c) op k.
        let Some((inner, args)) = self.def(a) else {
            return FoldResult::Keep;
        };
        let Some(&x) = args.first() else {
            return FoldResult::Keep;
        };
        if let (Op::And, Op::ZExt) = (op, inner) {
            // The mask keeps all that the extension left.
            let low = self.func.ty(x).mask();
            if k & low == low {
                return FoldResult::Value(a);
            }
        }
        let Some(c) = args.get(1).and_then(|&v| self.c(v)) else {
            return FoldResult::Keep;
        };
        // Masks that keep all or nothing of what a shift left.
        if op == Op::And {
            let left = match inner {
                Op::LShr if c < bits => mask >> c,
                Op::Shl if c < bits => mask << c & mask,
                Op::IMul if c != 0 => mask << c.trailing_zeros() & mask,
                _ => mask,
            };
            if left & !k == 0 {
                return FoldResult::Value(a);
            }
            if left & k == 0 {
                return FoldResult::Value(self.constant(ty, 0));
            }
        }
        let (op, k) = match (op, inner) {
            (Op::IAdd, Op::IAdd) => (op, c.wrapping_add(k)),
            (Op::IMul, Op::IMul) => (op, c.wrapping_mul(k)),
            (Op::IMul, Op::Shl) if c < bits => (op, k << c),
            (Op::Shl, Op::IMul) if k < bits => (Op::IMul, c << k),
            (Op::And, Op::And) => (op, c & k),
            (Op::Or, Op::Or) => (op, c | k),
            (Op::Xor, Op::Xor) => (op, c ^ k),
            (Op::Shl, Op::Shl) | (Op::LShr, Op::LShr) if c < bits && k < bits => {
                if c + k >= bits {
                    return FoldResult::Value(self.constant(ty, 0));
                }
                (op, c + k)
            }
            (Op::AShr, Op::AShr) if c < bits && k < bits => (op, (c + k).min(bits - 1)),
            (Op::LShr, Op::Shl) if c == k && k < bits => (Op::And, mask >> k),
            (Op::Shl, Op::LShr) if c == k && k < bits => (Op::And, mask << k),
            (Op::Xor, Op::Not) => (Op::Xor, !k),
            _ => return FoldResult::Keep,
        };
        let k = self.constant(ty, k);
        two(op, x, k)
    }

    /// Returns a value as `(x >> shift) & mask`, where a negative shift goes left.
    fn part(&self, ty: Type, value: Value) -> ShiftedBits {
        let mut steps: SmallVec<[(Op, u64); 6]> = SmallVec::new();
        let mut x = value;
        while steps.len() < 6 {
            let Some((op @ (Op::And | Op::Shl | Op::LShr), args)) = self.def(x) else {
                break;
            };
            let Some(k) = self.c(args[1]) else { break };
            if op != Op::And && k >= u64::from(ty.bits()) {
                break;
            }
            steps.push((op, k));
            x = args[0];
        }
        let mut part = ShiftedBits {
            x,
            shift: 0,
            mask: ty.mask(),
        };
        for (op, k) in steps.into_iter().rev() {
            match op {
                Op::And => part.mask &= k,
                Op::Shl => {
                    part.shift -= k as i64;
                    part.mask = part.mask << k & ty.mask();
                }
                _ => {
                    part.shift += k as i64;
                    part.mask >>= k;
                }
            }
        }
        part
    }

    /// Joins two parts of one value by `or` into one part, if their relative position is unchanged.
    fn join_parts(&mut self, ty: Type, a: Value, b: Value) -> Option<FoldResult> {
        let (p, q) = (self.part(ty, a), self.part(ty, b));
        if p.x != q.x || p.shift != q.shift || p.shift.unsigned_abs() >= u64::from(ty.bits()) {
            return None;
        }
        let mask = p.mask | q.mask;
        let amount = p.shift.unsigned_abs();
        let (moved, all) = if p.shift > 0 {
            let k = self.constant(ty, amount);
            (self.emit(Op::LShr, &[p.x, k], ty), ty.mask() >> amount)
        } else if p.shift < 0 {
            let k = self.constant(ty, amount);
            (
                self.emit(Op::Shl, &[p.x, k], ty),
                ty.mask() << amount & ty.mask(),
            )
        } else {
            (p.x, ty.mask())
        };
        if all & !mask == 0 {
            return Some(FoldResult::Value(moved));
        }
        let mask = self.constant(ty, mask);
        Some(FoldResult::Rewrite(
            Op::And,
            Values::from_slice(&[moved, mask]),
        ))
    }

    /// Moves an operation on zero-extended values before the extension, where the result is the
    /// same.
    fn of_widened(&mut self, op: Op, ty: Type, a: Value, b: Value) -> Option<FoldResult> {
        // The operand that is an extension gives the narrow type; the other is one too, or a constant that fits.
        let extended = |v: Value| match self.def(v) {
            Some((Op::ZExt, args)) => Some((args[0], self.func.ty(args[0]))),
            _ => None,
        };
        let (x, y) = (extended(a), extended(b));
        let from = x.or(y)?.1;
        if from == Type::Bool {
            return None;
        }
        let narrow = |v: Value, known: Option<(Value, Type)>| match (known, self.c(v)) {
            (Some((inner, t)), _) => (t == from).then_some(Ok(inner)),
            (None, Some(k)) => (k & !from.mask() == 0).then_some(Err(k)),
            _ => None,
        };
        let two = |op, x, y| Some(FoldResult::Rewrite(op, Values::from_slice(&[x, y])));
        match op {
            Op::LShr | Op::AShr => {
                let (inner, k) = (x?.0, self.c(b)?);
                if k >= u64::from(ty.bits()) {
                    return None;
                }
                if k >= u64::from(from.bits()) {
                    return Some(FoldResult::Value(self.constant(ty, 0)));
                }
                let k = self.constant(from, k);
                let value = self.emit(Op::LShr, &[inner, k], from);
                return Some(FoldResult::Rewrite(Op::ZExt, Values::from_slice(&[value])));
            }
            Op::And if x.is_some() && self.c(b).is_some() => {
                let (inner, k) = (x?.0, self.c(b)?);
                let k = self.constant(from, k);
                let value = self.emit(Op::And, &[inner, k], from);
                return Some(FoldResult::Rewrite(Op::ZExt, Values::from_slice(&[value])));
            }
            Op::SDiv | Op::SRem | Op::SMin | Op::SMax => {
                if narrow(a, x).is_none() || narrow(b, y).is_none() {
                    return None;
                }
                // Neither is negative.
                if self
                    .c(a)
                    .or(self.c(b))
                    .is_some_and(|k| k >> (ty.bits() - 1) != 0)
                {
                    return None;
                }
                let unsigned = match op {
                    Op::SDiv => Op::UDiv,
                    Op::SRem => Op::URem,
                    Op::SMin => Op::UMin,
                    _ => Op::UMax,
                };
                return two(unsigned, a, b);
            }
            Op::UDiv | Op::URem | Op::And | Op::Or | Op::Xor | Op::UMin | Op::UMax => {}
            _ => return None,
        }
        let (x, y) = (narrow(a, x)?, narrow(b, y)?);
        let x = x.unwrap_or_else(|k| self.constant(from, k));
        let y = y.unwrap_or_else(|k| self.constant(from, k));
        let value = self.emit(op, &[x, y], from);
        Some(FoldResult::Rewrite(Op::ZExt, Values::from_slice(&[value])))
    }
}
