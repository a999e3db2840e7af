//! Lets long loops go on in a further dispatch, for drivers that abandon a work-item's loops after some number of
//! iterations (see `unroll_loops`, which runs before and makes each of them count for more).
//!
//! Loops that may run for long count what the driver counts. Shortly before its limit a work-item stores what
//! it needs to go on to a record of its own in memory, asks for another dispatch, and returns. The runtime has recorded
//! further dispatches of the same kernel behind the first one, with a number of work-groups in memory that is zero
//! unless one was asked for. All start with a look at the record. Its first word: 0 if the work-item is finished, 1 if it
//! is to begin, 2 or more for the loop to go on with; the second: the number of the dispatch.
//!
//! ```text
//! first: on = the specialisation constant says so; on ? again : start
//! again: what does the record say? finished / start / go on with loop 1 / 2 / ...
//! check of each loop, before its header: count > limit ? save : header
//! ```
//!
//! A loop inside others is gone on with by way of their headers, so that no loop has a second entry: before the check of
//! a loop that has others inside stands a look at the way to go, which leads past its body to the next one.
//!
//! All of it stands under a specialisation constant, for launches that are too large to run so long.
//!
//! Left alone: kernels with barriers or other operations of the group, local memory or arrays in private memory, and
//! loops with too much to store. Where that holds of the inner loops alone, or there are too many of them, the outermost
//! ones are gone on with, and an inner one that runs up to the limit within one of their iterations is cut short.

mod emit;
mod needs;
mod plan;
mod route;
mod transform;

use super::unroll_loops::weight;
use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::LoopForest;
use crate::interface::{Implicit, KernelInterface};
use crate::ir::entity::Block;
use crate::ir::function::Function;
use crate::ir::op::{Effect, Op};
use crate::passes::{dce, mem2reg};
use crate::target::Target;
use plan::Plan;
use transform::transform;

/// Instructions of a function that the pass looks at, at most.
const FUNCTION_BUDGET: usize = 8192;

/// Runs the pass. Returns whether anything changed; the interface then says what the runtime has to supply.
pub fn run(func: &mut Function, interface: &mut KernelInterface, target: &Target) -> bool {
    let push = interface.push_size.next_multiple_of(8);
    if target.quirks.loop_limit == 0
        || push + Implicit::ResumeState.size() + Implicit::ResumeGroups.size()
            > target.max_push_constants
        || !is_plain(func)
    {
        return false;
    }
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let forest = LoopForest::new(&cfg, &dom);
    if !forest.irreducible.is_empty() {
        return false;
    }
    let done = [true, false].into_iter().find_map(|inner| {
        let plan = Plan::new(func, &forest, target.quirks.loop_limit, inner)?;
        let mut rewritten = func.clone();
        let bytes = transform(&mut rewritten, &plan)?;
        Some((rewritten, bytes))
    });
    let Some((rewritten, bytes)) = done else {
        return false;
    };
    *func = rewritten;
    mem2reg::run(func);
    dce::run(func);
    interface.implicit.push((Implicit::ResumeState, push));
    let round = push + Implicit::ResumeState.size();
    interface.implicit.push((Implicit::ResumeGroups, round));
    interface.push_size = round + Implicit::ResumeGroups.size();
    interface.resume_bytes = bytes;
    true
}

/// Returns true if a work-item's state is its values and nothing else.
fn is_plain(func: &Function) -> bool {
    let Some(entry) = func.entry() else {
        return false;
    };
    let alone = |&block: &Block| {
        func.blocks[block].insts.iter().all(|&i| {
            let op = func.insts[i].op;
            op.effect() != Effect::Convergent && !matches!(op, Op::Alloca { .. })
        })
    };
    func.vars.is_empty()
        && func.params.is_empty()
        && func.blocks[entry].params.is_empty()
        && weight(func, &func.layout) <= FUNCTION_BUDGET
        && func.layout.iter().all(alone)
}
