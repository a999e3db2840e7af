//! Counts the bits of zero-extended 8 and 16-bit values correctly on NVIDIA's driver, which counts those of the sign-extended value.
//!
//! The pass sets one more bit, so that the operand is no extension any more, and subtracts it from the count.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;

/// A bit beyond those of the narrow types.
const BEYOND: u64 = 1 << 31;

/// Returns true if the value has only the bits of a narrower one.
fn is_narrow(r: &Rewriter, value: Value) -> bool {
    let Some(inst) = r.func.def_inst(value) else {
        return false;
    };
    let data = &r.func.insts[inst];
    match data.op {
        Op::ZExt => data.args.iter().all(|&arg| r.func.ty(arg).bits() <= 16),
        Op::And => {
            let masks = data.args.iter().filter_map(|&arg| r.func.as_const(arg));
            masks.into_iter().any(|mask| mask <= 0xffff)
        }
        _ => false,
    }
}

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let (Op::Popcount, &[x]) = (&data.op, data.args.as_slice()) else {
            return Ok(InstEdit::Keep);
        };
        let x = r.resolve(x);
        if r.func.ty(x) != Type::I32 || !is_narrow(r, x) {
            return Ok(InstEdit::Keep);
        }
        let more = r.with_const(Op::Or, x, BEYOND);
        let count = r.same(Op::Popcount, [more]);
        let count = r.with_const(Op::ISub, count, 1);
        Ok(r.replace_result(inst, count))
    })
}
