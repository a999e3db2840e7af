//! Passes that make up for what a driver's compiler gets wrong. None of them is needed for a driver without defects: each
//! runs only for a target that says so.

pub mod bound_halves;
pub mod flip_compares;
pub mod hide_steps;
pub mod hide_zeros;
pub mod idle_lanes;
pub mod loop_results;
pub mod narrow_counts;
pub mod resume_loops;
pub mod round_doubles;
pub mod split_parts;
pub mod unroll_loops;

use crate::edit::rewrite::Rewriter;
use crate::interface::Implicit;
use crate::ir::entity::Value;
use crate::ir::op::Op;
use crate::ir::types::Type;

/// A zero that a compiler cannot know. Nothing that is computed in a kernel can be hidden from it; an argument can: the number
/// of dimensions of the ND-range is at most three.
fn hidden_zero(r: &mut Rewriter, ty: Type) -> Value {
    let dims = r.op(Op::Implicit(Implicit::WorkDim, 0), [], Type::I32);
    let zero = r.with_const(Op::LShr, dims, 2);
    match ty.bits() {
        32 => zero,
        64.. => r.op(Op::ZExt, [zero], ty),
        _ => r.op(Op::Trunc, [zero], ty),
    }
}
