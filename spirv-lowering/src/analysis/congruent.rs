//! Tells whether a driver's compiler that numbers values and forwards loads may find two values
//! congruent.

use crate::ir::entity::Value;
use crate::ir::function::{Function, ValueDef};
use crate::ir::op::{Effect, Op};

/// The depth to which operands are compared; deeper ones may be congruent.
const DEPTH: u32 = 6;

/// Returns true if a compiler may find `a` and `b` congruent: they are one value, or one operation
/// on operands that may be congruent, or either is loaded, undefined or otherwise not a function of
/// its operands. Two different parameters are not congruent.
pub fn may_be_congruent(func: &Function, a: Value, b: Value) -> bool {
    within(func, a, b, DEPTH)
}

fn within(func: &Function, a: Value, b: Value, depth: u32) -> bool {
    if a == b || depth == 0 {
        return true;
    }
    let inst_of = |value: Value| match func.values[value].def {
        ValueDef::Result(inst, _) => Some(&func.insts[inst]),
        ValueDef::Param(..) => None,
    };
    let pure = |value: Value| {
        inst_of(value).is_none_or(|i| i.op.effect() == Effect::Pure && i.op != Op::Undef)
    };
    if !pure(a) || !pure(b) {
        return true;
    }
    match (inst_of(a), inst_of(b)) {
        (Some(x), Some(y)) => {
            let mut operands = x.args.iter().zip(&y.args);
            x.op == y.op
                && x.args.len() == y.args.len()
                && operands.all(|(&x, &y)| within(func, x, y, depth - 1))
        }
        _ => false,
    }
}
