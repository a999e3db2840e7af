//! Makes the constant steps of induction variables opaque from which Mesa's compiler computes wrong trip counts.
//!
//! Mesa divides the distance to the limit by the step, where all are constants, and tries the quotient and its neighbours
//! (`nir_loop_analyze`). So a loop that ends early by wrapping around goes on, one whose variable is a float that is rounded in
//! each iteration, as `for (x = 0; x < 3; x += 0.3f)`, ends early, and the quotient of the least integer by -1 ends the process.

use super::wrapping_induction::{make_steps_opaque, InductionStep};
use crate::analysis::constant_trip_counts::ConstantInduction;
use crate::analysis::loops::Loop;
use crate::error::Result;
use crate::ir::entity::Block;
use crate::ir::function::Function;
use crate::ir::op::Op;

/// Runs the pass, when loops are as the driver will see them. Returns true if anything changed.
pub fn run(func: &mut Function) -> Result<bool> {
    make_steps_opaque(func, is_miscounted)
}

/// Returns true if the induction variable begins as a constant and is compared in the loop such that no division computes the
/// trip count.
fn is_miscounted(func: &Function, lp: &Loop, step: &InductionStep) -> bool {
    let params = &func.blocks[lp.header].params;
    let Some(at) = params.iter().position(|&param| param == step.param) else {
        return false;
    };
    let entries = (func.layout.iter()).filter(|block| !lp.blocks.contains(block));
    let edges = entries.flat_map(|&block| func.blocks[block].term.targets());
    let mut begins = edges
        .filter(|edge| edge.block == lp.header)
        .filter_map(|edge| func.as_const(*edge.args.get(at)?));
    let ty = func.ty(step.param);
    let sign = match func.insts[step.inst].op {
        Op::FSub => 1 << (ty.bits() - 1),
        _ => 0,
    };
    let is_variable = |value| value == step.param || value == step.next;
    begins.any(|begin| {
        let counter = ConstantInduction {
            ty,
            begin,
            step: step.by ^ sign,
        };
        let insts = |block: &Block| func.blocks[*block].insts.iter().copied();
        let mut compares = lp.blocks.iter().flat_map(insts);
        compares.any(|inst| !counter.divides(func, inst, is_variable))
    })
}
