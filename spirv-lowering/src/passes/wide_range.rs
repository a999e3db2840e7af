//! Computes ids and sizes in 64 bits, for launches whose ND-range goes beyond 2^32 work-items in a
//! dimension.
//!
//! `lower_builtin_vars` makes ids of 32 bits, which suffice for nearly all launches. A kernel that
//! is launched with a larger range, or at a larger offset, is lowered a second time with
//! [`wide_range`](crate::target::Target::wide_range): this pass then lowers what may need more
//! bits, and leaves local ids and sizes to that one. The runtime splits the range into dispatches
//! within which 32 bits are enough, so
//!
//! - group id = work-group id + [`Implicit::GroupOffset`], in 64 bits,
//! - global id = global offset + [`Implicit::GroupOffset`] * enqueued local size, in 64 bits, +
//!   (work-group id * work-group size), which is less than 2^32, + local id.
//!
//! The upper halves of offset, size and first group are implicit arguments of their own. Values
//! that can be computed from these are not passed: otherwise a kernel that uses all of them would
//! not fit push constants of 128 bytes.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::interface::Implicit;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{Builtin, HwVar, Op};
use crate::ir::types::Type;

/// Returns a 64-bit value from two implicit arguments, which hold its halves.
fn wide(r: &mut Rewriter, low: Implicit, high: Implicit, dim: u8) -> Value {
    let [low, high] = [low, high].map(|half| {
        let word = r.op(Op::Implicit(half, dim), [], Type::I32);
        r.op(Op::ZExt, [word], Type::I64)
    });
    let high = r.with_const(Op::Shl, high, 32);
    r.same(Op::Or, [low, high])
}

fn global_offset(r: &mut Rewriter, dim: u8) -> Value {
    wide(r, Implicit::GlobalOffset, Implicit::GlobalOffsetHigh, dim)
}

fn global_size(r: &mut Rewriter, dim: u8) -> Value {
    wide(r, Implicit::GlobalSize, Implicit::GlobalSizeHigh, dim)
}

fn first_group(r: &mut Rewriter, dim: u8) -> Value {
    wide(r, Implicit::GroupOffset, Implicit::GroupOffsetHigh, dim)
}

fn enqueued_size(r: &mut Rewriter, dim: u8) -> Value {
    let size = r.op(
        Op::Implicit(Implicit::EnqueuedLocalSize, dim),
        [],
        Type::I32,
    );
    r.op(Op::ZExt, [size], Type::I64)
}

/// Emits the global id without the global offset.
fn index(r: &mut Rewriter, dim: u8) -> Value {
    let first = first_group(r, dim);
    let size = enqueued_size(r, dim);
    let first = r.same(Op::IMul, [first, size]);
    let group = r.op(Op::Hw(HwVar::WorkgroupId(dim)), [], Type::I32);
    let size = r.op(Op::Hw(HwVar::WorkgroupSize(dim)), [], Type::I32);
    let within = r.same(Op::IMul, [group, size]);
    let within = r.op(Op::ZExt, [within], Type::I64);
    let local = r.op(Op::Builtin(Builtin::LocalId(dim)), [], Type::I64);
    let within = r.same(Op::IAdd, [within, local]);
    r.same(Op::IAdd, [first, within])
}

fn lower(r: &mut Rewriter, builtin: Builtin) -> Option<Value> {
    Some(match builtin {
        Builtin::GlobalId(d) => {
            let index = index(r, d);
            let offset = global_offset(r, d);
            r.same(Op::IAdd, [offset, index])
        }
        Builtin::GlobalSize(d) => global_size(r, d),
        Builtin::GlobalOffset(d) => global_offset(r, d),
        Builtin::GroupId(d) => {
            let group = r.op(Op::Hw(HwVar::WorkgroupId(d)), [], Type::I32);
            let group = r.op(Op::ZExt, [group], Type::I64);
            let first = first_group(r, d);
            r.same(Op::IAdd, [first, group])
        }
        Builtin::NumGroups(d) => {
            // Rounded up; no size is zero where a kernel runs, and the sum with the local size may not fit 64 bits.
            let size = global_size(r, d);
            let last = r.with_const(Op::IAdd, size, u64::MAX);
            let local = enqueued_size(r, d);
            let groups = r.same(Op::UDiv, [last, local]);
            r.with_const(Op::IAdd, groups, 1)
        }
        Builtin::GlobalLinearId => {
            let mut id = index(r, 2);
            for d in [1, 0] {
                let size = global_size(r, d);
                let row = r.same(Op::IMul, [id, size]);
                let index = index(r, d);
                id = r.same(Op::IAdd, [row, index]);
            }
            id
        }
        _ => return None,
    })
}

/// Runs the pass. Returns true if the kernel uses any of these values.
pub fn run(func: &mut Function) -> Result<bool> {
    let mut changed = false;
    rewrite(func, |r, inst| match r.func.insts[inst].op {
        Op::Builtin(builtin) => Ok(match lower(r, builtin) {
            Some(value) => {
                changed = true;
                r.replace_result(inst, value)
            }
            None => InstEdit::Keep,
        }),
        _ => Ok(InstEdit::Keep),
    })?;
    Ok(changed)
}
