//! `MemCopy` becomes loads and stores: unrolled when small, a loop otherwise. Between any spaces.

use super::rewrite::{rewrite, Action, Rewriter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::{Function, Target, Terminator};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// Most chunks that are copied without a loop.
const UNROLL: u64 = 16;

/// Element type, lanes and bytes of one access of a copy with that alignment.
fn chunk(align: u32) -> (Type, usize, u64) {
    match align {
        0 | 1 => (Type::I8, 1, 1),
        2 => (Type::I16, 1, 2),
        4 => (Type::I32, 1, 4),
        8 => (Type::I32, 2, 8),
        _ => (Type::I32, 4, 16),
    }
}

fn copy_once(
    r: &mut Rewriter,
    to: Value,
    from: Value,
    at: u64,
    ty: Type,
    lanes: usize,
    align: u32,
) {
    let (from, to) = (r.offset(from, at), r.offset(to, at));
    let values = r.many(
        Op::Load {
            align,
            volatile: false,
        },
        [from],
        &vec![ty; lanes],
    );
    r.inst(
        Op::Store {
            align,
            volatile: false,
        },
        [to].into_iter().chain(values),
        &[],
    );
}

/// Copies `size` bytes from offset `at` on, without a loop.
fn straight(r: &mut Rewriter, to: Value, from: Value, mut at: u64, end: u64, align: u32) {
    let mut align = align;
    while at < end {
        let (ty, lanes, bytes) = chunk(align);
        if at + bytes > end {
            align = (bytes / 2) as u32;
            continue;
        }
        copy_once(r, to, from, at, ty, lanes, align.max(1));
        at += bytes;
    }
}

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let Op::MemCopy { size, align } = data.op else {
            return Ok(Action::Keep);
        };
        let (to, from) = match data.args.as_slice() {
            &[to, from] => (to, from),
            _ => return Ok(Action::Keep),
        };
        let align = if align == 0 {
            1
        } else {
            (1u32 << align.trailing_zeros()).min(16)
        };
        let (ty, lanes, bytes) = chunk(align);
        if size / bytes <= UNROLL {
            straight(r, to, from, 0, size, align);
            return Ok(Action::Remove);
        }
        let body = r.new_block(&[Type::I64]);
        let done = r.new_block(&[]);
        let zero = r.konst(Type::I64, 0);
        r.jump(body, &[zero], body);
        let i = r.params(body)[0];
        let (source, target) = (r.same(Op::PtrAdd, [from, i]), r.same(Op::PtrAdd, [to, i]));
        copy_once(r, target, source, 0, ty, lanes, align);
        let next = r.with_const(Op::IAdd, i, bytes);
        let whole = size / bytes * bytes;
        let more = r.icmp_const(IntCond::Ult, next, whole);
        let again = Target {
            block: body,
            args: [next].into_iter().collect(),
        };
        r.end_block(Terminator::Branch(more, again, Target::new(done)), done);
        straight(r, to, from, whole, size, align);
        Ok(Action::Remove)
    })
}
