//! OpenCL built-in variables become Vulkan ones and implicit arguments.
//!
//! All ids and sizes are 32-bit values, zero-extended to `size_t`: the extension is the last step, so that later
//! passes see how few bits matter. One dispatch covers a box of work-groups of one size; the runtime may need several
//! for an ND-range (non-uniform remainders, group counts beyond the device's limit), hence
//!
//! - global id = work-group id * work-group size + local id + [`Implicit::GlobalBase`],
//! - group id = work-group id + [`Implicit::GroupOffset`],
//! - local size = the work-group size of this dispatch (the specialisation constant).

use super::rewrite::{rewrite, Action, Rewriter};
use crate::error::Result;
use crate::interface::Implicit;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{Builtin, HwVar, Op};
use crate::ir::types::Type;

fn hw(r: &mut Rewriter, var: HwVar) -> Value {
    r.op(Op::Hw(var), [], Type::I32)
}

fn implicit(r: &mut Rewriter, which: Implicit, dim: u8) -> Value {
    r.op(Op::Implicit(which, dim), [], Type::I32)
}

fn extend(r: &mut Rewriter, value: Value) -> Value {
    r.op(Op::ZExt, [value], Type::I64)
}

fn global_id(r: &mut Rewriter, dim: u8) -> Value {
    let group = hw(r, HwVar::WorkgroupId(dim));
    let size = hw(r, HwVar::WorkgroupSize(dim));
    let local = hw(r, HwVar::LocalInvocationId(dim));
    let first = r.same(Op::IMul, [group, size]);
    let id = r.same(Op::IAdd, [first, local]);
    let base = implicit(r, Implicit::GlobalBase, dim);
    r.same(Op::IAdd, [id, base])
}

/// The global id less the global offset, in 64 bits.
fn global_index(r: &mut Rewriter, dim: u8) -> Value {
    let id = global_id(r, dim);
    let offset = implicit(r, Implicit::GlobalOffset, dim);
    let index = r.same(Op::ISub, [id, offset]);
    extend(r, index)
}

fn lower(r: &mut Rewriter, builtin: Builtin) -> Value {
    match builtin {
        Builtin::GlobalId(d) => {
            let id = global_id(r, d);
            extend(r, id)
        }
        Builtin::GlobalSize(d) => {
            let v = implicit(r, Implicit::GlobalSize, d);
            extend(r, v)
        }
        Builtin::GlobalOffset(d) => {
            let v = implicit(r, Implicit::GlobalOffset, d);
            extend(r, v)
        }
        Builtin::LocalId(d) => {
            let v = hw(r, HwVar::LocalInvocationId(d));
            extend(r, v)
        }
        Builtin::LocalSize(d) => {
            let v = hw(r, HwVar::WorkgroupSize(d));
            extend(r, v)
        }
        Builtin::EnqueuedLocalSize(d) => {
            let v = implicit(r, Implicit::EnqueuedLocalSize, d);
            extend(r, v)
        }
        Builtin::GroupId(d) => {
            let id = hw(r, HwVar::WorkgroupId(d));
            let offset = implicit(r, Implicit::GroupOffset, d);
            let v = r.same(Op::IAdd, [id, offset]);
            extend(r, v)
        }
        Builtin::NumGroups(d) => {
            let v = implicit(r, Implicit::NumGroups, d);
            extend(r, v)
        }
        Builtin::WorkDim => implicit(r, Implicit::WorkDim, 0),
        Builtin::GlobalLinearId => {
            let mut id = global_index(r, 2);
            for d in [1, 0] {
                let size = implicit(r, Implicit::GlobalSize, d);
                let size = extend(r, size);
                let row = r.same(Op::IMul, [id, size]);
                let index = global_index(r, d);
                id = r.same(Op::IAdd, [row, index]);
            }
            id
        }
        Builtin::LocalLinearId => {
            let v = hw(r, HwVar::LocalInvocationIndex);
            extend(r, v)
        }
        Builtin::SubGroupMaxSize => hw(r, HwVar::SubgroupSize),
        Builtin::SubGroupSize => {
            // The last sub-group of a work-group may be smaller.
            let mut items = hw(r, HwVar::WorkgroupSize(0));
            for d in [1, 2] {
                let size = hw(r, HwVar::WorkgroupSize(d));
                items = r.same(Op::IMul, [items, size]);
            }
            let size = hw(r, HwVar::SubgroupSize);
            let id = hw(r, HwVar::SubgroupId);
            let before = r.same(Op::IMul, [id, size]);
            let left = r.same(Op::ISub, [items, before]);
            r.same(Op::UMin, [left, size])
        }
        Builtin::NumSubGroups => hw(r, HwVar::NumSubgroups),
        Builtin::NumEnqueuedSubGroups => {
            let mut items = implicit(r, Implicit::EnqueuedLocalSize, 0);
            for d in [1, 2] {
                let size = implicit(r, Implicit::EnqueuedLocalSize, d);
                items = r.same(Op::IMul, [items, size]);
            }
            let size = hw(r, HwVar::SubgroupSize);
            let sum = r.same(Op::IAdd, [items, size]);
            let sum = r.with_const(Op::ISub, sum, 1);
            r.same(Op::UDiv, [sum, size])
        }
        Builtin::SubGroupId => hw(r, HwVar::SubgroupId),
        Builtin::SubGroupLocalId => hw(r, HwVar::SubgroupInvocationId),
    }
}

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    rewrite(func, |r, inst| match r.func.insts[inst].op {
        Op::Builtin(builtin) => {
            let value = lower(r, builtin);
            Ok(r.replace_result(inst, value))
        }
        _ => Ok(Action::Keep),
    })
}
