//! Bounds integers before they are converted to halfs, for LLVM: it replaces `fpext (sitofp x to half)` by `sitofp x` where few bits
//! of x are significant, as in `x << 24`, although x may be far beyond the largest half, which makes it infinite.
//!
//! An integer beyond becomes one with many significant bits that is beyond as well.

use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;

/// Infinite as a half, and every bit of it is one.
const BEYOND: u64 = 0xffff;

/// Runs the pass. Returns whether anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let [x] = *data.args.as_slice() else {
            return Ok(InstEdit::Keep);
        };
        let x = r.resolve(x);
        let wide = r.func.ty(x).bits() > 16;
        let half = data.results.first().map(|&v| r.func.ty(v)) == Some(Type::F16);
        let bounded = match data.op {
            Op::SToF(_) if wide && half => {
                let x = r.with_const(Op::SMin, x, BEYOND);
                r.with_const(Op::SMax, x, BEYOND.wrapping_neg())
            }
            Op::UToF(_) if wide && half => r.with_const(Op::UMin, x, BEYOND),
            _ => return Ok(InstEdit::Keep),
        };
        changed = true;
        let result = r.op(data.op, [bounded], Type::F16);
        Ok(r.replace_result(inst, result))
    })?;
    Ok(changed)
}
