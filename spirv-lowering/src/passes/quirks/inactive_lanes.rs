//! Ends lanes without a work-item at once, where the driver executes them.
//!
//! llvmpipe runs the work-items of a row in the lanes of a vector. Where the row is no multiple of it, the last lanes have
//! no work-item: their stores are masked and their loads give zeros, but they take part in control flow. A loop whose
//! step is loaded from memory never ends there, until the driver ends it, and every other loop of the kernel with it
//! ([`Quirks::loop_limit`](crate::target::Quirks::loop_limit)). Kernels without loops stay as they are: one that is conditional as a whole costs the driver
//! much to compile.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::LoopForest;
use crate::edit::early_exit;
use crate::edit::rewrite::Rewriter;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{GroupOp, HwVar, IntCond, Op, Scope};
use crate::ir::types::Type;
use crate::target::Target;

/// Emits the test whether the lane has no work-item. It folds away where rows fill the vectors, as
/// sizes are constants then.
fn is_inactive(r: &mut Rewriter, lanes: u32) -> Value {
    let row = r.op(Op::Hw(HwVar::WorkgroupSize(0)), [], Type::I32);
    let rest = r.with_const(Op::And, row, u64::from(lanes - 1));
    let partial = r.icmp_const(IntCond::Ne, rest, 0);
    // Numbers of work-items would not do: Mesa takes those of rows of one for zero.
    let all = r.konst(Type::Bool, 1);
    let ballot = Op::Group(GroupOp::Ballot, Scope::SubGroup);
    let present = r.many(ballot, [all], &[Type::I32; 4])[0];
    let lane = r.op(Op::Hw(HwVar::SubgroupInvocationId), [], Type::I32);
    let mine = r.same(Op::LShr, [present, lane]);
    let mine = r.with_const(Op::And, mine, 1);
    let absent = r.icmp_const(IntCond::Eq, mine, 0);
    r.same(Op::And, [partial, absent])
}

/// Returns true if control flow goes back anywhere.
fn has_loops(func: &Function) -> bool {
    let cfg = Cfg::new(func);
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    !forest.loops.is_empty() || !forest.is_reducible()
}

/// Runs the pass, for sub-groups of at most 32. False: nothing was to be done.
pub fn run(func: &mut Function, target: &Target) -> Result<bool> {
    let lanes = target.subgroup_size;
    if !target.has_subgroups() || lanes > 32 || !has_loops(func) {
        return Ok(false);
    }
    early_exit::run(func, |r| is_inactive(r, lanes))
}
