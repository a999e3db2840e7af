//! Whether a compiler that numbers values, and remembers what memory holds, may take two values for one.

use crate::ir::entity::Value;
use crate::ir::function::{Function, ValueDef};
use crate::ir::op::{Effect, Op};

/// How far operands are followed; what is farther away may be one.
const DEPTH: u32 = 6;

/// Whether two values may be taken for one: the same value, the same operation on operands that may be, or what is read,
/// undefined or otherwise not told by operands alone, which may be anything. A parameter is no other value.
pub fn alike(func: &Function, a: Value, b: Value) -> bool {
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
    let told = |value: Value| {
        inst_of(value).is_none_or(|i| i.op.effect() == Effect::Pure && i.op != Op::Undef)
    };
    if !told(a) || !told(b) {
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
