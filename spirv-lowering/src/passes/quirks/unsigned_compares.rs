//! Replaces signed comparisons that drivers get wrong by unsigned ones of numbers with flipped sign bits:
//!
//! - with a negation: NVIDIA's compiler ends loops such as `for (i = n; i > -m; i--)` after five or six iterations, whatever the
//!   width, the step and the form of the negation (seen with driver 580 on Hopper, in its OpenCL too).
//! - of 64-bit values that are sign-extended from 32 bits: Mesa's NIR before 24.1.3 compares them with a constant in 32 bits, and
//!   takes the least number of that width for 2^31, so that `(long)i < 5` is never true. The constant may become one only once a
//!   loop is unrolled.

use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// Which comparisons are flipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compares {
    /// Set to flip comparisons with a negation.
    pub of_negations: bool,
    /// Set to flip 64-bit comparisons with a 32-bit number.
    pub of_extended: bool,
}

/// Runs the pass. Returns whether anything changed.
pub fn run(func: &mut Function, which: Compares) -> Result<bool> {
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let (Op::ICmp(cond), &[a, b]) = (&data.op, data.args.as_slice()) else {
            return Ok(InstEdit::Keep);
        };
        let Some(unsigned) = of_flipped(*cond) else {
            return Ok(InstEdit::Keep);
        };
        let (a, b) = (r.resolve(a), r.resolve(b));
        let is_wrong = |value| {
            which.of_negations && negation(r.func, value, DEPTH)
                || which.of_extended && extended(r.func, value)
        };
        if !is_wrong(a) && !is_wrong(b) {
            return Ok(InstEdit::Keep);
        }
        changed = true;
        let top = 1 << (r.func.ty(a).bits() - 1);
        let (a, b) = (r.with_const(Op::Xor, a, top), r.with_const(Op::Xor, b, top));
        let result = r.icmp(unsigned, a, b);
        Ok(r.replace_result(inst, result))
    })?;
    Ok(changed)
}

/// Returns the comparison that takes a signed one's place.
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

/// Returns true if the value is or may be the negation of another: an extension of one, or the
/// minimum, maximum or selection of one and another value.
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

/// Returns true if the value is sign-extended from 32 bits to 64.
fn extended(func: &Function, value: Value) -> bool {
    let Some(inst) = func.def_inst(value).map(|inst| &func.insts[inst]) else {
        return false;
    };
    func.ty(value) == Type::I64
        && match (&inst.op, inst.args.as_slice()) {
            (Op::SExt, _) => true,
            (Op::AShr, &[_, by]) => func.as_const(by).is_some_and(|by| by >= 32),
            _ => false,
        }
}
