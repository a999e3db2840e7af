//! Simplifies comparisons and selections.

use super::{FoldResult, Folder};
use crate::ir::entity::Value;
use crate::ir::fold::sext;
use crate::ir::function::Values;
use crate::ir::op::{FloatCond, IntCond, Op};
use crate::ir::types::Type;

impl Folder<'_> {
    /// Simplifies a comparison of integers.
    pub(super) fn icmp(&mut self, cond: IntCond, a: Value, b: Value) -> FoldResult {
        let ty = self.func.ty(a);
        let two = |cond, x, y| FoldResult::Rewrite(Op::ICmp(cond), Values::from_slice(&[x, y]));
        let one = |op, x| FoldResult::Rewrite(op, Values::from_slice(&[x]));
        if self.c(a).is_some() && self.c(b).is_none() {
            return two(swap(cond), b, a);
        }
        if a == b {
            use IntCond::*;
            let holds = matches!(cond, Eq | Sle | Sge | Ule | Uge);
            return FoldResult::Value(self.constant(Type::Bool, holds.into()));
        }
        let (da, db) = (self.def(a), self.def(b));
        // Both extended in the same way.
        if let (Some((x @ (Op::ZExt | Op::SExt), ax)), Some((y, ay))) = (da, db) {
            let (p, q) = (ax[0], ay.first().copied());
            if let Some(q) = q.filter(|&q| x == y && self.func.ty(q) == self.func.ty(p)) {
                if self.func.ty(p) != Type::Bool {
                    return two(if x == Op::ZExt { unsigned(cond) } else { cond }, p, q);
                }
            }
        }
        let Some(k) = self.c(b) else {
            return FoldResult::Keep;
        };
        if ty == Type::Bool {
            return match (cond, k) {
                (IntCond::Eq, 1) | (IntCond::Ne, 0) => FoldResult::Value(a),
                _ => one(Op::Not, a),
            };
        }
        match (cond, k) {
            (IntCond::Ult, 0) => return FoldResult::Value(self.constant(Type::Bool, 0)),
            (IntCond::Uge, 0) => return FoldResult::Value(self.constant(Type::Bool, 1)),
            (IntCond::Ult, 1) | (IntCond::Ule, 0) => {
                let zero = self.constant(ty, 0);
                return two(IntCond::Eq, a, zero);
            }
            (IntCond::Uge, 1) | (IntCond::Ugt, 0) => {
                let zero = self.constant(ty, 0);
                return two(IntCond::Ne, a, zero);
            }
            _ => {}
        }
        let equality = matches!(cond, IntCond::Eq | IntCond::Ne);
        let Some((inner, args)) = da else {
            return FoldResult::Keep;
        };
        let Some(&x) = args.first() else {
            return FoldResult::Keep;
        };
        let y = args.get(1).copied();
        let z = args.get(2).copied();
        let xt = self.func.ty(x);
        match inner {
            Op::ZExt if xt == Type::Bool => {
                // 0 or 1 compared with k.
                let at = |n| crate::ir::fold::int_compare(cond, ty, n, k);
                match (at(0), at(1)) {
                    (false, true) => FoldResult::Value(x),
                    (true, false) => one(Op::Not, x),
                    (always, _) => FoldResult::Value(self.constant(Type::Bool, always.into())),
                }
            }
            Op::SExt if xt == Type::Bool => {
                let at = |n| crate::ir::fold::int_compare(cond, ty, n, k);
                match (at(0), at(ty.mask())) {
                    (false, true) => FoldResult::Value(x),
                    (true, false) => one(Op::Not, x),
                    (always, _) => FoldResult::Value(self.constant(Type::Bool, always.into())),
                }
            }
            Op::ZExt if k & !xt.mask() == 0 => {
                let k = self.constant(xt, k);
                two(unsigned(cond), x, k)
            }
            Op::SExt => {
                let wide = sext(xt, k) as u64 & ty.mask();
                if wide != k {
                    return FoldResult::Keep;
                }
                let k = self.constant(xt, k);
                two(cond, x, k)
            }
            Op::IAdd if equality => match y.and_then(|y| self.c(y)) {
                Some(c) => {
                    let k = self.constant(ty, k.wrapping_sub(c));
                    two(cond, x, k)
                }
                None => FoldResult::Keep,
            },
            Op::Xor if equality => match y.and_then(|y| self.c(y)) {
                Some(c) => {
                    let k = self.constant(ty, k ^ c);
                    two(cond, x, k)
                }
                None if k == 0 => match y {
                    Some(y) => two(cond, x, y),
                    None => FoldResult::Keep,
                },
                None => FoldResult::Keep,
            },
            Op::ISub if equality && k == 0 => match y {
                Some(y) => two(cond, x, y),
                None => FoldResult::Keep,
            },
            Op::Select => {
                let arms = (y.and_then(|v| self.c(v)), z.and_then(|v| self.c(v)));
                let (Some(t), Some(f)) = arms else {
                    return FoldResult::Keep;
                };
                let at = |n| crate::ir::fold::int_compare(cond, ty, n, k);
                match (at(t), at(f)) {
                    (true, false) => FoldResult::Value(x),
                    (false, true) => one(Op::Not, x),
                    (always, _) => FoldResult::Value(self.constant(Type::Bool, always.into())),
                }
            }
            _ => FoldResult::Keep,
        }
    }

    /// Simplifies a comparison of floats.
    pub(super) fn fcmp(&mut self, cond: FloatCond, a: Value, b: Value) -> FoldResult {
        if self.c(a).is_some() && self.c(b).is_none() {
            let args = Values::from_slice(&[b, a]);
            return FoldResult::Rewrite(Op::FCmp(swap_float(cond)), args);
        }
        FoldResult::Keep
    }

    /// Simplifies a selection.
    pub(super) fn select(&mut self, ty: Type, c: Value, a: Value, b: Value) -> FoldResult {
        let args = |list: &[Value]| Values::from_slice(list);
        if let Some(bits) = self.c(c) {
            return FoldResult::Value(if bits & 1 != 0 { a } else { b });
        }
        if a == b || self.is_undef(b) {
            return FoldResult::Value(a);
        }
        if self.is_undef(a) {
            return FoldResult::Value(b);
        }
        if let Some((Op::Not, inner)) = self.def(c) {
            let inner = inner[0];
            return FoldResult::Rewrite(Op::Select, args(&[inner, b, a]));
        }
        let (ca, cb) = (self.c(a), self.c(b));
        if ty == Type::Bool {
            return match (ca, cb) {
                (Some(1), Some(0)) => FoldResult::Value(c),
                (Some(0), Some(1)) => FoldResult::Rewrite(Op::Not, args(&[c])),
                (Some(1), _) => FoldResult::Rewrite(Op::Or, args(&[c, b])),
                (_, Some(0)) => FoldResult::Rewrite(Op::And, args(&[c, a])),
                _ => FoldResult::Keep,
            };
        }
        if ty.is_int() {
            match (ca, cb) {
                (Some(1), Some(0)) => return FoldResult::Rewrite(Op::ZExt, args(&[c])),
                (Some(m), Some(0)) if m == ty.mask() => {
                    return FoldResult::Rewrite(Op::SExt, args(&[c]))
                }
                _ => {}
            }
        }
        // An arm that selects by the same condition.
        if let Some((Op::Select, inner)) = self.def(a) {
            if inner[0] == c {
                return FoldResult::Rewrite(Op::Select, args(&[c, inner[1], b]));
            }
        }
        if let Some((Op::Select, inner)) = self.def(b) {
            if inner[0] == c {
                return FoldResult::Rewrite(Op::Select, args(&[c, a, inner[2]]));
            }
        }
        FoldResult::Keep
    }
}

/// Returns the inverse condition.
pub(super) fn invert(cond: IntCond) -> IntCond {
    use IntCond::*;
    match cond {
        Eq => Ne,
        Ne => Eq,
        Slt => Sge,
        Sle => Sgt,
        Sgt => Sle,
        Sge => Slt,
        Ult => Uge,
        Ule => Ugt,
        Ugt => Ule,
        Uge => Ult,
    }
}

/// Returns the condition for swapped operands.
fn swap(cond: IntCond) -> IntCond {
    use IntCond::*;
    match cond {
        Eq => Eq,
        Ne => Ne,
        Slt => Sgt,
        Sle => Sge,
        Sgt => Slt,
        Sge => Sle,
        Ult => Ugt,
        Ule => Uge,
        Ugt => Ult,
        Uge => Ule,
    }
}

/// Returns the condition on narrow operands that equals this one on the zero-extended ones.
fn unsigned(cond: IntCond) -> IntCond {
    use IntCond::*;
    match cond {
        Slt => Ult,
        Sle => Ule,
        Sgt => Ugt,
        Sge => Uge,
        other => other,
    }
}

/// Returns the condition that holds where another does not.
pub(super) fn invert_float(cond: FloatCond) -> FloatCond {
    use FloatCond::*;
    match cond {
        Oeq => Une,
        One => Ueq,
        Olt => Uge,
        Ole => Ugt,
        Ogt => Ule,
        Oge => Ult,
        Ord => Uno,
        Ueq => One,
        Une => Oeq,
        Ult => Oge,
        Ule => Ogt,
        Ugt => Ole,
        Uge => Olt,
        Uno => Ord,
    }
}

fn swap_float(cond: FloatCond) -> FloatCond {
    use FloatCond::*;
    match cond {
        Olt => Ogt,
        Ole => Oge,
        Ogt => Olt,
        Oge => Ole,
        Ult => Ugt,
        Ule => Uge,
        Ugt => Ult,
        Uge => Ule,
        other => other,
    }
}
