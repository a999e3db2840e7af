//! The step of a loop's counter that may wrap around is no constant any more, for NVIDIA's compiler: from a constant step
//! it computes how often the loop runs as if the counter never wrapped (seen with driver 580 on Hopper, in its OpenCL too).
//!
//! Counters with small steps stay as they are: they wrap
//! around after so many iterations that no program relies on it, and loops with them are to be unrolled and reduced.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::iterations;
use crate::analysis::loops::{Loop, LoopForest};
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::edit::unknown_zero::{hidden, unknown_zero};
use crate::error::Result;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::fold::sext;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::FxHashSet;

/// Runs the pass. Returns whether anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    hide_those(func, |func, lp, step| {
        iterations::within(func, &[lp]) == u64::MAX
            && is_large(func.ty(step.param), step.by)
            && compared(func, lp, step)
    })
}

/// Hides the steps of which that is true. Returns whether there are any.
pub(super) fn hide_those(
    func: &mut Function,
    is_one: impl Fn(&Function, &Loop, &CounterStep) -> bool,
) -> Result<bool> {
    let cfg = Cfg::new(func);
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    let mut steps: FxHashSet<Inst> = FxHashSet::default();
    for lp in forest.loops.values() {
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
            hidden(r, ty, bits)
        } else {
            let zero = unknown_zero(r, ty);
            r.same(Op::IAdd, [step, zero])
        };
        Ok(InstEdit::Keep)
    })?;
    Ok(true)
}

/// A parameter of a loop's header to which each iteration adds a constant.
pub(super) struct CounterStep {
    pub(super) param: Value,
    /// Its value in the next iteration.
    pub(super) next: Value,
    /// The instruction that adds or subtracts the constant.
    pub(super) inst: Inst,
    /// The constant.
    pub(super) by: u64,
}

fn stepped<'a>(func: &'a Function, lp: &'a Loop) -> impl Iterator<Item = CounterStep> + 'a {
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
            Some(CounterStep {
                param,
                next,
                inst,
                by,
            })
        })
}

/// Returns true if the counter is round the numbers of its type in as many iterations as that has
/// numbers of half its width, or fewer.
fn is_large(ty: Type, step: u64) -> bool {
    ty.is_int() && sext(ty, step).unsigned_abs() >= 1 << (ty.bits() / 2)
}

/// Returns true if a comparison in the loop is of the counter, or of little that is made of it.
fn compared(func: &Function, lp: &Loop, step: &CounterStep) -> bool {
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

/// How many operations may stand between the counter and the comparison.
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
