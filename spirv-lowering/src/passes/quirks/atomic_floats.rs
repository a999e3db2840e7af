//! Floats whose bits an atomic works with are bits of integers, for llvmpipe: where a float is computed and its bits are an operand
//! of an atomic, it makes an atomic of floats, for which LLVM has no instruction (the process ends), or takes a maximum of numbers
//! without a sign for one with. So `atomic_max(p, as_uint(x * x))`. What it does lane by lane with doubles ends the process,
//! too, where the processor has no AVX-512.

use crate::edit::rewrite::{rewrite, InstEdit};
use crate::edit::unknown_zero::hide;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{Op, RmwOp};

/// The operands that must not be bits of floats. Floats of 32 bits may be exchanged and stored.
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
                let hidden = hide(r, value);
                r.func.insts[inst].args[at] = hidden;
                changed = true;
            }
        }
        Ok(InstEdit::Keep)
    })?;
    Ok(changed)
}
