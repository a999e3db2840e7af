//! The step of a loop's counter that may wrap around is no constant any more, for NVIDIA's compiler: from a constant step
//! it computes how often the loop runs as if the counter never wrapped (seen with driver 580 on Hopper, in its OpenCL too).
//!
//! Counters with small steps stay as they are: they wrap
//! around after so many iterations that no program relies on it, and loops with them are to be unrolled and reduced.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::iterations;
use crate::analysis::loops::{Loop, LoopForest};
use crate::edit::rewrite::{rewrite, Action};
use crate::edit::unknown_zero::unknown_zero;
use crate::error::Result;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::Function;
use crate::ir::op::Op;
use rustc_hash::FxHashSet;

/// Runs the pass. Returns whether anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    let cfg = Cfg::new(func);
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    let mut steps: FxHashSet<Inst> = FxHashSet::default();
    for lp in forest.loops.values() {
        if iterations::within(func, &[lp]) == u64::MAX {
            steps.extend(large_steps(func, lp));
        }
    }
    if steps.is_empty() {
        return Ok(false);
    }
    rewrite(func, |r, inst| {
        if !steps.contains(&inst) {
            return Ok(Action::Keep);
        }
        let data = r.data(inst);
        let &[a, b] = data.args.as_slice() else {
            return Ok(Action::Keep);
        };
        let (a, b) = (r.resolve(a), r.resolve(b));
        // The constant is the operand that is one.
        let (counter, step) = if r.func.as_const(b).is_some() {
            (a, b)
        } else {
            (b, a)
        };
        let zero = unknown_zero(r, r.func.ty(step));
        let step = r.same(Op::IAdd, [step, zero]);
        let next = r.same(Op::IAdd, [counter, step]);
        Ok(r.replace_result(inst, next))
    })?;
    Ok(true)
}

/// The additions of a constant to a parameter of the loop's header that are its value in the next iteration, where the
/// constant is large and the counter is compared with something.
fn large_steps(func: &Function, lp: &Loop) -> Vec<Inst> {
    let mut found = Vec::new();
    for &latch in &lp.latches {
        for edge in func.blocks[latch].term.targets() {
            if edge.block != lp.header {
                continue;
            }
            for (&param, &next) in func.blocks[lp.header].params.iter().zip(&edge.args) {
                let step = step_of(func, param, next);
                if step.is_some_and(|inst| is_large(func, inst)) && compared(func, lp, param, next)
                {
                    found.extend(step);
                }
            }
        }
    }
    found
}

/// What adds a constant to the parameter.
fn step_of(func: &Function, param: Value, next: Value) -> Option<Inst> {
    let inst = func.def_inst(next)?;
    let (Op::IAdd, &[a, b]) = (&func.insts[inst].op, func.insts[inst].args.as_slice()) else {
        return None;
    };
    let by_constant = |counter, step| counter == param && func.as_const(step).is_some();
    (by_constant(a, b) || by_constant(b, a)).then_some(inst)
}

/// The counter is round the numbers of its type in as many iterations as that has numbers of half its width, or fewer.
fn is_large(func: &Function, add: Inst) -> bool {
    let args = &func.insts[add].args;
    let Some((step, bits)) = args
        .iter()
        .find_map(|&arg| Some((func.as_const(arg)?, func.ty(arg).bits())))
    else {
        return false;
    };
    let unused = 64 - bits.clamp(1, 64);
    let step = ((step << unused) as i64 >> unused).unsigned_abs();
    step >= 1 << (bits / 2)
}

/// A comparison in the loop is of the counter, or of little that is made of it.
fn compared(func: &Function, lp: &Loop, param: Value, next: Value) -> bool {
    let insts = |block: &Block| func.blocks[*block].insts.iter().copied();
    lp.blocks.iter().flat_map(insts).any(|inst| {
        let data = &func.insts[inst];
        matches!(data.op, Op::ICmp(_))
            && data
                .args
                .iter()
                .any(|&arg| made_of(func, arg, param, next, DEPTH))
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
