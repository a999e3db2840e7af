//! Lowers what a kernel for processors asks of its sub-groups where these need not be packs.
//!
//! A kernel may require sub-groups of more work-items, or fewer, than a vector has elements
//! (`intel_reqd_sub_group_size`). Packs of that many lanes take several registers a value, or leave
//! parts of one empty. Where no lane looks at another one of its sub-group, packs have as many lanes
//! as vectors have elements, and numbers of sub-groups are computed from linear local ids, of which
//! sub-groups are consecutive pieces.

use super::lower_builtin_vars::{self, Arrangement};
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::entity::Inst;
use crate::ir::function::Function;
use crate::ir::op::{Builtin, HwVar, Op, Scope};
use crate::ir::types::{Space, Type};

/// Returns true if lanes look at one another, so that a sub-group must be a pack: by operations of
/// sub-groups, or by fences or volatile accesses to local memory without a barrier, where a program
/// relies on lanes that run in step. Lanes that wait for one another by atomic operations do so as
/// those of kernels that require no size. Functions that a kernel calls have no operations of
/// sub-groups (`share_calls`).
pub fn must_be_packs(func: &Function) -> bool {
    let between_lanes = |&inst: &Inst| match func.insts[inst].op {
        Op::Group(_, scope) => scope == Scope::SubGroup,
        Op::Barrier { exec, .. } => exec == Scope::SubGroup,
        Op::Fence { .. } => true,
        Op::Load { volatile, .. } | Op::Store { volatile, .. } => {
            let place = func.insts[inst].args.first().map(|&place| func.ty(place));
            volatile && place == Some(Type::Ptr(Space::Local))
        }
        _ => false,
    };
    func.layout_insts().any(between_lanes)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_function;

    #[test]
    fn lanes_that_look_at_one_another_share_a_pack() {
        for (inst, expected) in [
            ("v3 = group.sub_group.reduce.iadd v1 : i32", true),
            ("v3 = group.work_group.reduce.iadd v1 : i32", false),
            ("v3 = builtin.sub_group_local_id : i32", false),
            ("v3 = load.align4.volatile v2 : i32", true),
            ("v3 = load.align4 v2 : i32", false),
            ("v3 = load.align4.volatile v0 : i32", false),
        ] {
            let text = format!(
                "func fn0 \"f\" (ptr.global, i32, ptr.local) -> () {{\nblock0(v0: ptr.global, v1: i32, v2: ptr.local):\n  \
                 {inst}\n  store.align4 v0, v3\n  return\n}}\n"
            );
            let func = parse_function(&text).unwrap();
            assert_eq!(must_be_packs(&func), expected, "{inst}");
        }
    }
}
