//! Lowers OpenCL built-in variables to Vulkan ones and implicit arguments.
//!
//! All ids and sizes are 32-bit values, zero-extended to `size_t`: the extension is the last step,
//! so that later passes see how few bits matter. One dispatch covers a box of work-groups of one
//! size; the runtime may need several for an ND-range (non-uniform remainders, group counts beyond
//! the device's limit), hence
//!
//! - global id = work-group id * work-group size + local id + [`Implicit::GlobalBase`],
//! - group id = work-group id + [`Implicit::GroupOffset`],
//! - local size = the work-group size of this dispatch (the specialisation constant).
//!
//! Kernels that use sub-groups run in linear work-groups, (x * y * z, 1, 1) for Vulkan: OpenCL's
//! sub-groups partition a work-group in the order of linear local ids, Vulkan's need not where
//! there are rows. The local ids come from the linear one then.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
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

/// Computes the number of work-items in the work-group of this dispatch.
fn items(r: &mut Rewriter) -> Value {
    let mut items = hw(r, HwVar::WorkgroupSize(0));
    for d in [1, 2] {
        let size = hw(r, HwVar::WorkgroupSize(d));
        items = r.same(Op::IMul, [items, size]);
    }
    items
}

/// The arrangement of work-items in work-groups.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrangement {
    /// The size of a sub-group, if the kernel uses sub-groups.
    pub lanes: Option<u32>,
    /// Set if work-groups are linear for Vulkan, which they are where there are sub-groups.
    pub linear: bool,
}

type Linear = Arrangement;

fn local_id(r: &mut Rewriter, linear: Linear, dim: u8) -> Value {
    if !linear.linear || linear.lanes.is_none() {
        return hw(r, HwVar::LocalInvocationId(dim));
    }
    let mut id = hw(r, HwVar::LocalInvocationIndex);
    for d in 0..dim {
        let size = hw(r, HwVar::WorkgroupSize(d));
        id = r.same(Op::UDiv, [id, size]);
    }
    if dim < 2 {
        let size = hw(r, HwVar::WorkgroupSize(dim));
        id = r.same(Op::URem, [id, size]);
    }
    id
}

fn global_id(r: &mut Rewriter, linear: Linear, dim: u8) -> Value {
    let group = hw(r, HwVar::WorkgroupId(dim));
    let size = hw(r, HwVar::WorkgroupSize(dim));
    let local = local_id(r, linear, dim);
    let first = r.same(Op::IMul, [group, size]);
    let id = r.same(Op::IAdd, [first, local]);
    let base = implicit(r, Implicit::GlobalBase, dim);
    r.same(Op::IAdd, [id, base])
}

/// Computes the global id less the global offset, in 64 bits.
fn global_index(r: &mut Rewriter, linear: Linear, dim: u8) -> Value {
    let id = global_id(r, linear, dim);
    let offset = implicit(r, Implicit::GlobalOffset, dim);
    let index = r.same(Op::ISub, [id, offset]);
    extend(r, index)
}

/// Returns true for a 64-bit built-in variable that is computed in 32 bits.
pub fn is_narrow(builtin: Builtin) -> bool {
    matches!(
        builtin,
        Builtin::GlobalId(_)
            | Builtin::GlobalSize(_)
            | Builtin::GlobalOffset(_)
            | Builtin::LocalId(_)
            | Builtin::LocalSize(_)
            | Builtin::EnqueuedLocalSize(_)
            | Builtin::GroupId(_)
            | Builtin::NumGroups(_)
            | Builtin::LocalLinearId
    )
}

/// Emits the value of a built-in variable.
pub(super) fn lower(r: &mut Rewriter, linear: Linear, builtin: Builtin) -> Value {
    let lanes = u64::from(linear.lanes.unwrap_or(1).max(1));
    match builtin {
        Builtin::GlobalId(d) => {
            let id = global_id(r, linear, d);
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
            let v = local_id(r, linear, d);
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
            let mut id = global_index(r, linear, 2);
            for d in [1, 0] {
                let size = implicit(r, Implicit::GlobalSize, d);
                let size = extend(r, size);
                let row = r.same(Op::IMul, [id, size]);
                let index = global_index(r, linear, d);
                id = r.same(Op::IAdd, [row, index]);
            }
            id
        }
        Builtin::LocalLinearId => {
            let v = hw(r, HwVar::LocalInvocationIndex);
            extend(r, v)
        }
        Builtin::SubGroupMaxSize => r.konst(Type::I32, lanes),
        Builtin::SubGroupSize => {
            // The last sub-group of a work-group may be smaller.
            let items = items(r);
            let index = hw(r, HwVar::LocalInvocationIndex);
            let before = r.with_const(Op::And, index, !(lanes - 1));
            let left = r.same(Op::ISub, [items, before]);
            let most = r.konst(Type::I32, lanes);
            r.same(Op::UMin, [left, most])
        }
        Builtin::NumSubGroups => {
            let items = items(r);
            let sum = r.with_const(Op::IAdd, items, lanes - 1);
            r.with_const(Op::UDiv, sum, lanes)
        }
        Builtin::NumEnqueuedSubGroups => {
            let mut items = implicit(r, Implicit::EnqueuedLocalSize, 0);
            for d in [1, 2] {
                let size = implicit(r, Implicit::EnqueuedLocalSize, d);
                items = r.same(Op::IMul, [items, size]);
            }
            let sum = r.with_const(Op::IAdd, items, lanes - 1);
            r.with_const(Op::UDiv, sum, lanes)
        }
        Builtin::SubGroupId => {
            let index = hw(r, HwVar::LocalInvocationIndex);
            r.with_const(Op::UDiv, index, lanes)
        }
        Builtin::SubGroupLocalId => hw(r, HwVar::SubgroupInvocationId),
    }
}

/// Runs the pass.
pub fn run(func: &mut Function, linear: Linear) -> Result<()> {
    rewrite(func, |r, inst| match r.func.insts[inst].op {
        Op::Builtin(builtin) => {
            let value = lower(r, linear, builtin);
            Ok(r.replace_result(inst, value))
        }
        _ => Ok(InstEdit::Keep),
    })
}
