//! Tells whether a division computes the trip count of a loop whose induction variable has constant
//! begin, step and limit. It does not where the variable wraps around, or where its sums are
//! rounded.

use crate::ir::entity::{Inst, Value};
use crate::ir::fold::{sext, to_f64};
use crate::ir::function::Function;
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// An induction variable whose begin and step are constants.
#[derive(Debug, Clone, Copy)]
pub struct ConstantInduction {
    /// The type of the variable.
    pub ty: Type,
    /// Its first value.
    pub begin: u64,
    /// The constant added in each iteration.
    pub step: u64,
}

impl ConstantInduction {
    /// Returns true if (limit - begin) / step is about the trip count, for `compare` being a
    /// comparison of the variable with a constant. Also returns true if `compare` is no such
    /// comparison.
    pub fn divides(
        self,
        func: &Function,
        compare: Inst,
        is_variable: impl Fn(Value) -> bool,
    ) -> bool {
        let data = &func.insts[compare];
        let &[a, b] = data.args.as_slice() else {
            return true;
        };
        let limit = if is_variable(a) { b } else { a };
        if !is_variable(a) && !is_variable(b) {
            return true;
        }
        match (data.op, limit_of(func, limit)) {
            (Op::ICmp(cond), Some(limit)) => self.integers(cond, limit),
            (Op::FCmp(_), Some(limit)) => self.floats(limit).unwrap_or(false),
            _ => true,
        }
    }

    fn integers(self, cond: IntCond, limit: u64) -> bool {
        use IntCond::*;
        let (ty, bits) = (self.ty, self.ty.bits());
        let step = i128::from(sext(ty, self.step));
        let least = 1u64 << (bits - 1);
        if matches!(cond, Eq | Ne) {
            // The least number by -1 is no number of the type.
            return (limit.wrapping_sub(self.begin) & ty.mask(), step) != (least, -1);
        }
        let signed = matches!(cond, Slt | Sle | Sgt | Sge);
        let number = |bits: u64| match signed {
            true => i128::from(sext(ty, bits)),
            false => i128::from(bits),
        };
        let (begin, limit) = (number(self.begin), number(limit));
        let (low, high) = match signed {
            true => (-i128::from(least), i128::from(least) - 1),
            false => (0, i128::from(ty.mask())),
        };
        let way = limit - begin;
        let towards = way == 0 || (way > 0) == (step > 0);
        let has_quotient = !signed || way.unsigned_abs() < u128::from(least);
        towards && (low..=high).contains(&(limit + step)) && has_quotient
    }

    /// Returns true if every value up to the limit is exact: a multiple of one number, and few
    /// enough of them.
    fn floats(self, limit: u64) -> Option<bool> {
        let number = |bits| to_f64(self.ty, bits);
        let (begin, step, limit) = (number(self.begin)?, number(self.step)?, number(limit)?);
        let precision = match self.ty {
            Type::F16 => 11,
            Type::F32 => 24,
            _ => 53,
        };
        if !step.is_normal() {
            return Some(false);
        }
        // The last bit of the step that is set.
        let beyond = 52 - (step.to_bits() | 1 << 52).trailing_zeros().min(52);
        let exponent = (step.to_bits() >> 52 & 0x7ff) as i32 - 1023 - beyond as i32;
        let unit = 2f64.powi(exponent);
        let is_exact = |x: f64| {
            let units = x / unit;
            units.fract() == 0.0 && units.abs() <= 2f64.powi(precision)
        };
        Some([begin, limit, begin + step, limit + step, limit - begin].map(is_exact) == [true; 5])
    }
}

/// Returns the constant, or a constant bound of a limit that is not one.
fn limit_of(func: &Function, limit: Value) -> Option<u64> {
    func.as_const(limit).or_else(|| {
        let data = &func.insts[func.def_inst(limit)?];
        match data.op {
            Op::SMin | Op::UMin | Op::SMax | Op::UMax | Op::FMin | Op::FMax => {
                data.args.iter().find_map(|&arg| func.as_const(arg))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(ty: Type, cond: IntCond, [begin, limit, step]: [i64; 3]) -> bool {
        let [begin, limit, step] = [begin, limit, step].map(|n| n as u64 & ty.mask());
        ConstantInduction { ty, begin, step }.integers(cond, limit)
    }

    fn floats([begin, limit, step]: [f32; 3]) -> Option<bool> {
        let [begin, limit, step] = [begin, limit, step].map(|x| x.to_bits().into());
        let ty = Type::F32;
        ConstantInduction { ty, begin, step }.floats(limit)
    }

    #[test]
    fn integers_that_do_not_wrap() {
        use IntCond::*;
        assert!(integers(Type::I32, Slt, [0, 10, 1]));
        assert!(integers(Type::I32, Sge, [10, 0, -3]));
        assert!(integers(Type::I8, Ult, [0, 250, 5]));
        assert!(integers(Type::I32, Ne, [0, 10, 3]));
        // Away from the limit, past the end, too far, and a quotient that is no number.
        assert!(!integers(Type::I8, Ugt, [-4, -119, 27]));
        assert!(!integers(Type::I32, Slt, [0, i32::MAX.into(), 1]));
        assert!(!integers(Type::I32, Sgt, [5, i64::from(i32::MIN) + 5, -1]));
        assert!(!integers(Type::I32, Ne, [0, i32::MIN.into(), -1]));
        assert!(!integers(Type::I64, Ne, [-1, i64::MAX, -1]));
    }

    #[test]
    fn floats_that_are_exact() {
        assert_eq!(floats([0.0, 10.0, 1.0]), Some(true));
        assert_eq!(floats([1.0, -2.5, -0.25]), Some(true));
        assert_eq!(floats([0.0, 3.0, 0.3]), Some(false));
        assert_eq!(floats([0.1, 3.0, 1.0]), Some(false));
        assert_eq!(floats([0.0, 3e7, 1.0]), Some(false));
        assert_eq!(floats([0.0, f32::INFINITY, 1.0]), Some(false));
    }
}
