//! Computes absolute differences of unsigned integers in a form that LLVM does not recognise: it
//! replaces `umax(x, y) - umin(x, y)`, and the smaller of two values subtracted from the larger by a
//! selection, by `(umax(x, y) - y) | (umax(x, y) - x)`.
//!
//! LLVM 22 takes the signed absolute value of `y - x` where it knows that y is not smaller, which is
//! wrong for differences of half the range and more (`TargetLowering::expandABD`).

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::Function;
use crate::ir::op::{IntCond, Op};

/// Returns the operands of the instruction that defines a value, if it has this operation.
fn operands(func: &Function, value: Value, op: Op) -> Option<[Value; 2]> {
    let data = &func.insts[func.def_inst(value)?];
    match *data.args.as_slice() {
        [x, y] if data.op == op => Some([x, y]),
        _ => None,
    }
}

/// Returns the two values of which an instruction computes the absolute difference.
fn difference(func: &Function, inst: Inst) -> Option<[Value; 2]> {
    let data = &func.insts[inst];
    match (data.op, data.args.as_slice()) {
        (Op::ISub, &[larger, smaller]) => {
            let [x, y] = operands(func, larger, Op::UMax)?;
            let other = operands(func, smaller, Op::UMin)?;
            (other == [x, y] || other == [y, x]).then_some([x, y])
        }
        (Op::Select, &[cond, yes, no]) => {
            let [x, y] = operands(func, yes, Op::ISub)?;
            let larger = [IntCond::Ugt, IntCond::Uge]
                .iter()
                .any(|&is| operands(func, cond, Op::ICmp(is)) == Some([x, y]));
            let smaller = [IntCond::Ult, IntCond::Ule]
                .iter()
                .any(|&is| operands(func, cond, Op::ICmp(is)) == Some([y, x]));
            let reversed = operands(func, no, Op::ISub) == Some([y, x]);
            (reversed && (larger || smaller)).then_some([x, y])
        }
        _ => None,
    }
}

/// Returns `(umax(x, y) - y) | (umax(x, y) - x)`.
fn either(r: &mut Rewriter<'_>, [x, y]: [Value; 2]) -> Value {
    let larger = r.same(Op::UMax, [x, y]);
    let differences = [r.same(Op::ISub, [larger, y]), r.same(Op::ISub, [larger, x])];
    r.same(Op::Or, differences)
}

/// Runs the pass. Returns whether anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    let insts: Vec<Inst> = func.layout_insts().copied().collect();
    let found: rustc_hash::FxHashMap<Inst, [Value; 2]> = insts
        .into_iter()
        .filter_map(|inst| Some((inst, difference(func, inst)?)))
        .collect();
    if found.is_empty() {
        return Ok(false);
    }
    rewrite(func, |r, inst| match found.get(&inst) {
        Some(&values) => {
            let values = values.map(|value| r.resolve(value));
            let result = either(r, values);
            Ok(r.replace_result(inst, result))
        }
        None => Ok(InstEdit::Keep),
    })?;
    Ok(true)
}
