//! Makes the results of 64-bit divisions opaque: NVIDIA's compiler takes a product of one for the product of another.
//!
//! It divides such integers in a function of its own, whose results are in the same registers each time.

use crate::edit::opaque::opaque_zero;
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;

/// Runs the pass, after the last folding of constants. Returns true if anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let (Op::UDiv | Op::URem | Op::SDiv | Op::SRem, &[a, b]) = (data.op, &data.args[..]) else {
            return Ok(InstEdit::Keep);
        };
        let (op, by) = (data.op, r.resolve(b));
        if r.func.ty(by) != Type::I64 || r.func.as_const(by).is_some() {
            return Ok(InstEdit::Keep);
        }
        changed = true;
        let result = r.same(op, [a, b]);
        let zero = opaque_zero(r, Type::I64);
        let zeros = r.with_const(Op::IMul, zero, 0x1_0000_0001);
        let result = r.same(Op::Xor, [result, zeros]);
        Ok(r.replace_result(inst, result))
    })?;
    Ok(changed)
}
