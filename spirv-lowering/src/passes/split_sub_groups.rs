//! Lowers what a kernel for processors asks of its sub-groups where these need not be packs.
//!
//! A kernel may require sub-groups of more work-items, or fewer, than a vector has elements
//! (`intel_reqd_sub_group_size`). Packs of that many lanes take several registers a value, or leave
//! parts of one empty. Where no lane looks at another one of its sub-group, packs have as many lanes
//! as vectors have elements, and numbers of sub-groups are computed from linear local ids, of which
//! sub-groups are consecutive pieces.

use super::lower_builtin_vars::{self, Arrangement};
use crate::analysis::waits::{self, Looking};
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::function::Function;
use crate::ir::op::{Builtin, HwVar, Op, Scope};
use crate::ir::types::Type;

/// Returns true if work-items of a sub-group look at one another, or may wait for one another, so
/// that a sub-group must be a pack. Functions that a kernel calls have no such operations
/// (`share_calls`).
pub fn must_be_packs(func: &Function, looking: &Looking) -> bool {
    let between_lanes = |op: Op| match op {
        Op::Group(_, scope) => scope == Scope::SubGroup,
        Op::Barrier { exec, .. } => exec == Scope::SubGroup,
        _ => false,
    };
    let mut insts = func.layout_insts();
    insts.any(|&inst| between_lanes(func.insts[inst].op)) || waits::may_wait(func, looking)
}

/// Runs the pass, for sub-groups of `size` work-items.
pub fn run(func: &mut Function, size: u32) -> Result<bool> {
    let mut changed = false;
    let arrangement = Arrangement {
        lanes: Some(size),
        linear: false,
    };
    rewrite(func, |r, inst| {
        let value = match r.func.insts[inst].op {
            Op::Builtin(Builtin::SubGroupLocalId) => {
                let index = r.op(Op::Hw(HwVar::LocalInvocationIndex), [], Type::I32);
                r.with_const(Op::And, index, u64::from(size) - 1)
            }
            Op::Builtin(builtin) if builtin.is_of_sub_groups() => {
                lower_builtin_vars::lower(r, arrangement, builtin)
            }
            _ => return Ok(InstEdit::Keep),
        };
        changed = true;
        Ok(r.replace_result(inst, value))
    })?;
    Ok(changed)
}
