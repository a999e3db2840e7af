//! Makes work-items beyond the ND-range end at once, in kernels that do not observe how work-items
//! are grouped.
//!
//! Where the application leaves the work-group size to the implementation, or gives one that does
//! not divide the ND-range, the runtime then rounds the number of work-groups up instead of looking
//! for divisors. Odd sizes run in full work-groups, and a kernel has a few pipelines instead of one
//! for each size. A specialisation constant ([`SPEC_GUARD`]) enables the test, so that launches
//! whose sizes fit do not pay for it.

use crate::edit::early_exit;
use crate::edit::rewrite::Rewriter;
use crate::error::Result;
use crate::interface::{Implicit, SPEC_GUARD};
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::module::{EntryPoint, Module, ParamKind};
use crate::ir::op::{Builtin, HwVar, IntCond, Op};
use crate::ir::types::{Space, Type};

/// Returns true if the result of the kernel does not depend on how its work-items are grouped. Must
/// be called before built-in variables are lowered.
pub fn applies(func: &Function, kernel: &EntryPoint, module: &Module) -> bool {
    let attributes = &kernel.attributes;
    if attributes.required_work_group_size.is_some() || attributes.required_sub_groups.is_some() {
        return false;
    }
    let local = |param: &ParamKind| matches!(param, ParamKind::Pointer(Space::Local));
    if kernel.params.iter().any(|param| local(&param.kind)) {
        return false;
    }
    let tells = |op: Op| match op {
        Op::Barrier { .. } | Op::Group(..) => true,
        Op::GlobalAddr(id) => module
            .globals
            .get(id)
            .is_none_or(|global| global.space == Some(Space::Local)),
        Op::Builtin(builtin) => !matches!(
            builtin,
            Builtin::GlobalId(_)
                | Builtin::GlobalSize(_)
                | Builtin::GlobalOffset(_)
                | Builtin::GlobalLinearId
                | Builtin::WorkDim
        ),
        _ => false,
    };
    !func.layout_insts().any(|&inst| tells(func.insts[inst].op))
}

/// Computes whether the work-item is beyond the end of the ND-range and the test is enabled.
fn beyond(r: &mut Rewriter) -> Value {
    let guard = r.op(Op::SpecSize(SPEC_GUARD), [], Type::I32);
    let mut beyond = None;
    for dim in 0..3 {
        let group = r.op(Op::Hw(HwVar::WorkgroupId(dim)), [], Type::I32);
        let size = r.op(Op::Hw(HwVar::WorkgroupSize(dim)), [], Type::I32);
        let local = r.op(Op::Hw(HwVar::LocalInvocationId(dim)), [], Type::I32);
        let base = r.op(Op::Implicit(Implicit::GlobalBase, dim), [], Type::I32);
        let end = r.op(Op::Implicit(Implicit::GlobalEnd, dim), [], Type::I32);
        let first = r.same(Op::IMul, [group, size]);
        let id = r.same(Op::IAdd, [first, local]);
        let id = r.same(Op::IAdd, [id, base]);
        let outside = r.icmp(IntCond::Uge, id, end);
        beyond = Some(match beyond {
            Some(others) => r.same(Op::Or, [others, outside]),
            None => outside,
        });
    }
    let on = r.icmp_const(IntCond::Ne, guard, 0);
    match beyond {
        Some(beyond) => r.same(Op::And, [on, beyond]),
        None => on,
    }
}

/// Runs the pass on a kernel to which it [`applies`]. Returns false if there was nothing to guard.
pub fn run(func: &mut Function) -> Result<bool> {
    Ok(early_exit::run(func, beyond))
}
