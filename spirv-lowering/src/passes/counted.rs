//! Iterations that a driver counts in a kernel with shared functions, whose calls are iterations, too (see
//! [`share_calls`](super::share_calls)).

use super::unroll_loops::iterations_or;
use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::LoopForest;
use crate::ir::entity::{Block, FuncId};
use crate::ir::function::Function;
use crate::ir::op::Op;
use rustc_hash::FxHashMap;

/// The iterations in a run of a function, each call of a shared function being one beside that function's own. Loops
/// whose end is not known count once.
pub(super) fn iterations(func: &Function, shared: &FxHashMap<FuncId, u64>) -> u64 {
    let cfg = Cfg::new(func);
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    let runs = |block: Block| {
        let around = forest.innermost(block);
        around.map_or(1, |id| iterations_or(func, &forest, id, 1))
    };
    let loops = forest.loops.values().map(|lp| runs(lp.header));
    let calls = func.layout.iter().map(|&block| {
        let each = func.blocks[block].insts.iter().filter_map(|&inst| {
            let Op::Call(callee) = func.insts[inst].op else {
                return None;
            };
            Some(shared.get(&callee)?.saturating_add(1))
        });
        match each.fold(0, u64::saturating_add) {
            0 => 0,
            each => each.saturating_mul(runs(block)),
        }
    });
    loops.chain(calls).fold(0, u64::saturating_add)
}
