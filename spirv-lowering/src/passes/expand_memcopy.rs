//! Expands `MemCopy` to loads and stores: unrolled when small, a loop otherwise. The spaces may be
//! any.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// The most chunks that are copied without a loop.
const UNROLL: u64 = 16;

/// Returns the element type, lanes and bytes of one access of a copy with that alignment.
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
    from: Option<Value>,
    at: u64,
    ty: Type,
    lanes: usize,
    align: u32,
) {
    let volatile = false;
    let from = from.map(|from| r.offset(from, at));
    let to = r.offset(to, at);
    let values = match from {
        Some(from) => {
            let types = vec![ty; lanes];
            r.many(Op::Load { align, volatile }, [from], &types)
        }
        None => {
            let zero = r.konst(ty, 0);
            [zero].into_iter().cycle().take(lanes).collect()
        }
    };
    let op = Op::Store { align, volatile };
    r.inst(op, [to].into_iter().chain(values), &[]);
}

/// Copies the bytes from offset `at` to `end`, without a loop.
fn straight(r: &mut Rewriter, to: Value, from: Option<Value>, mut at: u64, end: u64, align: u32) {
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

/// Copies `size` bytes, or stores zeros where there is no source.
pub(super) fn copy(r: &mut Rewriter, to: Value, from: Option<Value>, size: u64, align: u32) {
    let align = if align == 0 {
        1
    } else {
        (1u32 << align.trailing_zeros()).min(16)
    };
    let (ty, lanes, bytes) = chunk(align);
    if size / bytes <= UNROLL {
        return straight(r, to, from, 0, size, align);
    }
    let body = r.new_block(&[Type::I64]);
    let done = r.new_block(&[]);
    let zero = r.konst(Type::I64, 0);
    r.jump(body, &[zero], body);
    let i = r.params(body)[0];
    let source = from.map(|from| r.same(Op::PtrAdd, [from, i]));
    let target = r.same(Op::PtrAdd, [to, i]);
    copy_once(r, target, source, 0, ty, lanes, align);
    let next = r.with_const(Op::IAdd, i, bytes);
    let whole = size / bytes * bytes;
    let more = r.icmp_const(IntCond::Ult, next, whole);
    let again = Edge::with(body, [next]);
    r.end_block(Terminator::Branch(more, again, Edge::new(done)), done);
    straight(r, to, from, whole, size, align);
}

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let (Op::MemCopy { size, align }, &[to, from]) = (data.op, data.args.as_slice()) else {
            return Ok(InstEdit::Keep);
        };
        copy(r, to, Some(from), size, align);
        Ok(InstEdit::Remove)
    })
}
