//! Signed comparisons with a negation become unsigned ones of numbers whose sign bits are flipped, for NVIDIA's compiler:
//! it ends loops such as `for (i = n; i > -m; i--)` after five or six iterations, whatever the width, the step and the
//! form of the negation (seen with driver 580 on Hopper, in its OpenCL too).

use crate::edit::rewrite::{rewrite, Action};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{IntCond, Op};

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let (Op::ICmp(cond), &[a, b]) = (&data.op, data.args.as_slice()) else {
            return Ok(Action::Keep);
        };
        let Some(unsigned) = of_flipped(*cond) else {
            return Ok(Action::Keep);
        };
        let (a, b) = (r.resolve(a), r.resolve(b));
        if !negation(r.func, a, DEPTH) && !negation(r.func, b, DEPTH) {
            return Ok(Action::Keep);
        }
        let top = 1 << (r.func.ty(a).bits() - 1);
        let (a, b) = (r.with_const(Op::Xor, a, top), r.with_const(Op::Xor, b, top));
        let result = r.icmp(unsigned, a, b);
        Ok(r.replace_result(inst, result))
    })
}

/// The comparison that takes a signed one's place.
fn of_flipped(cond: IntCond) -> Option<IntCond> {
    match cond {
        IntCond::Slt => Some(IntCond::Ult),
        IntCond::Sle => Some(IntCond::Ule),
        IntCond::Sgt => Some(IntCond::Ugt),
        IntCond::Sge => Some(IntCond::Uge),
        _ => None,
    }
}

/// How far from the comparison a negation is looked for.
const DEPTH: u32 = 6;

/// Whether the value is minus another, or may be: widened, or the lesser, greater or chosen one of two. Folding leaves few
/// other ways to write it.
fn negation(func: &Function, value: Value, depth: u32) -> bool {
    let Some(inst) = func.def_inst(value) else {
        return false;
    };
    let data = &func.insts[inst];
    let inner = |v: Value| depth > 0 && negation(func, v, depth - 1);
    match (&data.op, data.args.as_slice()) {
        (Op::INeg, _) => true,
        (Op::SExt, &[narrow]) => inner(narrow),
        (Op::SMin | Op::SMax, &[a, b]) | (Op::Select, &[_, a, b]) => inner(a) || inner(b),
        (Op::IAdd, &[a, b]) => {
            let inverted = |v| {
                func.def_inst(v)
                    .is_some_and(|i| func.insts[i].op == Op::Not)
            };
            (inverted(a) && func.as_const(b) == Some(1))
                || (inverted(b) && func.as_const(a) == Some(1))
        }
        _ => false,
    }
}
