//! Makes integer operands of atomics opaque that are the bits of a computed float, for llvmpipe, as in `atomic_max(p, as_uint(x * x))`.
//!
//! It makes an atomic of floats of them, for which LLVM has no instruction (the process ends), or takes an unsigned maximum for a
//! signed one. The atomics of doubles that it expands lane by lane end the process, too, where the processor has no AVX-512.

use crate::edit::opaque::opaque;
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{Op, RmwOp};

/// Returns the operands that must not be bits of floats. Floats of 32 bits may be exchanged and
/// stored.
fn operands(op: &Op, bits: u32) -> std::ops::Range<usize> {
    match op {
        Op::AtomicRmw { op, .. } | Op::VarRmw { op, .. } if bits == 64 || *op != RmwOp::Xchg => {
            1..2
        }
        Op::AtomicCmpXchg { .. } | Op::VarCmpXchg { .. } if bits == 64 => 1..3,
        Op::AtomicCmpXchg { .. } | Op::VarCmpXchg { .. } => 1..2,
        Op::AtomicStore { .. } | Op::VarAtomicStore { .. } if bits == 64 => 1..2,
        _ => 0..0,
    }
}

/// Returns true if the value has the bits of a float.
fn is_float(func: &Function, value: Value) -> bool {
    let Some(inst) = func.def_inst(value).map(|inst| &func.insts[inst]) else {
        return false;
    };
    inst.op == Op::Bitcast
        && inst
            .args
            .first()
            .is_some_and(|&from| func.ty(from).is_float())
}

/// Runs the pass. Returns whether anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = &r.func.insts[inst];
        let Some(&operand) = data.args.get(1) else {
            return Ok(InstEdit::Keep);
        };
        for at in operands(&data.op, r.func.ty(operand).bits()) {
            let value = r.resolve(r.func.insts[inst].args[at]);
            if is_float(r.func, value) {
                let hidden = opaque(r, value);
                r.func.insts[inst].args[at] = hidden;
                changed = true;
            }
        }
        Ok(InstEdit::Keep)
    })?;
    Ok(changed)
}
