//! Makes large constant steps of induction variables opaque, for NVIDIA's compiler: from a constant step it computes the trip count
//! as if the variable never wrapped around (seen with driver 580 on Hopper, in its OpenCL too).
//!
//! Small steps stay as they are: such variables wrap around only after so many iterations that no program relies on it, and their
//! loops are worth unrolling and strength reduction.

use crate::analysis::control_flow::ControlFlow;
use crate::analysis::iterations;
use crate::analysis::loops::Loop;
use crate::edit::opaque::{opaque_const, opaque_zero};
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::fold::sext;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::FxHashSet;

/// Runs the pass. Returns true if anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    make_steps_opaque(func, |func, lp, step| {
        iterations::trips(func, lp).is_none()
            && is_large(func.ty(step.param), step.by)
            && compared(func, lp, step)
    })
}

/// Makes the steps opaque for which `is_one` returns true. Returns true if there are any.
pub(super) fn make_steps_opaque(
    func: &mut Function,
    is_one: impl Fn(&Function, &Loop, &InductionStep) -> bool,
) -> Result<bool> {
    let flow = ControlFlow::new(func);
    let mut steps: FxHashSet<Inst> = FxHashSet::default();
    for lp in flow.loops().loops.values() {
        let of_loop = stepped(func, lp).filter(|step| is_one(func, lp, step));
        steps.extend(of_loop.map(|step| step.inst));
    }
    if steps.is_empty() {
        return Ok(false);
    }
    rewrite(func, |r, inst| {
        if !steps.contains(&inst) {
            return Ok(InstEdit::Keep);
        }
        // The constant is the operand that is one.
        let args = r.func.insts[inst].args.iter().copied().enumerate();
        let mut known = args
            .rev()
            .filter_map(|(at, step)| Some((at, step, r.func.as_const(step)?)));
        let Some((at, step, bits)) = known.next() else {
            return Ok(InstEdit::Keep);
        };
        let ty = r.func.ty(step);
        r.func.insts[inst].args[at] = if ty.is_float() {
            opaque_const(r, ty, bits)
        } else {
            let zero = opaque_zero(r, ty);
            r.same(Op::IAdd, [step, zero])
        };
        Ok(InstEdit::Keep)
    })?;
    Ok(true)
}

/// A parameter of a loop's header to which each iteration adds a constant.
pub(super) struct InductionStep {
    pub(super) param: Value,
    /// Its value in the next iteration.
    pub(super) next: Value,
    /// The instruction that adds or subtracts the constant.
    pub(super) inst: Inst,
    /// The constant.
    pub(super) by: u64,
}

fn stepped<'a>(func: &'a Function, lp: &'a Loop) -> impl Iterator<Item = InductionStep> + 'a {
    let edges = (lp.latches.iter()).flat_map(|&latch| func.blocks[latch].term.targets());
    let params = &func.blocks[lp.header].params;
    edges
        .filter(|edge| edge.block == lp.header)
        .flat_map(move |edge| params.iter().zip(&edge.args))
        .filter_map(|(&param, &next)| {
            let inst = func.def_inst(next)?;
            let data = &func.insts[inst];
            let &[a, b] = data.args.as_slice() else {
                return None;
            };
            let by = match data.op {
                Op::IAdd | Op::FAdd | Op::FSub if a == param => func.as_const(b)?,
                Op::IAdd | Op::FAdd if b == param => func.as_const(a)?,
                _ => return None,
            };
            Some(InductionStep {
                param,
                next,
                inst,
                by,
            })
        })
}

/// Returns true if the variable passes all numbers of its type in no more iterations than a type of half the width has numbers.
fn is_large(ty: Type, step: u64) -> bool {
    ty.is_int() && sext(ty, step).unsigned_abs() >= 1 << (ty.bits() / 2)
}

/// Returns true if an integer comparison in the loop has an operand computed from the induction variable in at most [`DEPTH`]
/// operations.
fn compared(func: &Function, lp: &Loop, step: &InductionStep) -> bool {
    let insts = |block: &Block| func.blocks[*block].insts.iter().copied();
    lp.blocks.iter().flat_map(insts).any(|inst| {
        let data = &func.insts[inst];
        matches!(data.op, Op::ICmp(_))
            && data
                .args
                .iter()
                .any(|&arg| made_of(func, arg, step.param, step.next, DEPTH))
    })
}

/// The most operations between the induction variable and the comparison.
const DEPTH: u32 = 3;

fn made_of(func: &Function, value: Value, param: Value, next: Value, depth: u32) -> bool {
    if value == param || value == next {
        return true;
    }
    let Some(inst) = func.def_inst(value) else {
        return false;
    };
    depth > 0
        && func.insts[inst]
            .args
            .iter()
            .any(|&arg| made_of(func, arg, param, next, depth - 1))
}
