//! printf calls become records in a buffer.
//!
//! # Buffer layout
//! ```text
//! u32 used       bytes of records asked for, header included: starts at 8; may exceed the capacity
//! u32 capacity   bytes of the whole buffer, header included
//! records        each a multiple of 8 bytes:
//!   u32 site     index of the call site
//!   u32 size     bytes of the record
//!   arguments    see below
//! ```
//! A call reserves its record with one atomic addition to `used`. A record that does not fit is dropped, the call
//! returns -1, and so does every later one. The first that does not fit leaves a record of size zero behind the last
//! one, if there is room. A reader walks from byte 8 while a whole record lies below min(used, capacity) and its size
//! is not zero; the runtime need not clear more than the header.
//!
//! Arguments lie in order, each aligned to its element size (at least 4), vectors without padding between their
//! lanes. Strings known at compile time take no space. [`RecordLayout`] is that rule, for the renderer too.

use super::rewrite::{rewrite, Action, Rewriter};
use crate::error::{LowerError, Result};
use crate::interface::Implicit;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::{Function, Target, Terminator};
use crate::ir::module::{PrintfArg, PrintfSite};
use crate::ir::op::{IntCond, Op, Order, RmwOp, Scope};
use crate::ir::types::{Space, Type};

/// Bytes before the first record.
pub const HEADER: u32 = 8;

/// Where the arguments of a site lie in its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLayout {
    /// Offset of each argument from the start of the record; None for strings known at compile time.
    pub offsets: Vec<Option<u32>>,
    /// Bytes of a record.
    pub size: u32,
}

impl RecordLayout {
    /// The layout of a site's records.
    pub fn new(site: &PrintfSite) -> Self {
        let mut size: u32 = 8;
        let offsets = site
            .args
            .iter()
            .map(|arg| match arg {
                PrintfArg::Text(_) => None,
                PrintfArg::Value { ty, lanes } => {
                    let offset = size.next_multiple_of(ty.size().max(4));
                    size = offset.saturating_add(ty.size().saturating_mul(*lanes));
                    Some(offset)
                }
            })
            .collect();
        Self {
            offsets,
            size: size.saturating_add(7) & !7,
        }
    }
}

fn lower(r: &mut Rewriter, inst: Inst, index: u32, site: &PrintfSite) -> Result<Value> {
    let layout = RecordLayout::new(site);
    let operands = r.data(inst).args;
    let atomic = |op| Op::AtomicRmw {
        op,
        scope: Scope::Device,
        order: Order::Relaxed,
    };
    let base = r.op(Op::Implicit(Implicit::PrintfBuffer, 0), [], Type::I64);
    let base = r.op(Op::IntToPtr, [base], Type::Ptr(Space::Global));
    let write = r.new_block(&[]);
    let reserve = r.new_block(&[]);
    let done = r.new_block(&[Type::I32]);
    // A full buffer is left alone, so that the counter cannot wrap round.
    let used = r.op(
        Op::AtomicLoad {
            scope: Scope::Device,
            order: Order::Relaxed,
        },
        [base],
        Type::I32,
    );
    let capacity_at = r.offset(base, 4);
    let capacity = r.op(
        Op::Load {
            align: 4,
            volatile: false,
        },
        [capacity_at],
        Type::I32,
    );
    let failed = r.konst(Type::I32, u64::from(u32::MAX));
    let full = r.icmp(IntCond::Uge, used, capacity);
    let to_failed = |value| Target {
        block: done,
        args: [value].into_iter().collect(),
    };
    r.end_block(
        Terminator::Branch(full, to_failed(failed), Target::new(reserve)),
        reserve,
    );
    let size = r.konst(Type::I32, u64::from(layout.size));
    let start = r.op(atomic(RmwOp::Add), [base, size], Type::I32);
    let end = r.same(Op::IAdd, [start, size]);
    let fits = r.icmp(IntCond::Ule, end, capacity);
    let start64 = r.op(Op::ZExt, [start], Type::I64);
    let record = r.same(Op::PtrAdd, [base, start64]);
    let overflow = r.new_block(&[]);
    let stop = r.new_block(&[]);
    r.end_block(
        Terminator::Branch(fits, Target::new(write), Target::new(overflow)),
        overflow,
    );
    let head_end = r.with_const(Op::IAdd, start, 8);
    let room = r.icmp(IntCond::Ule, head_end, capacity);
    r.end_block(
        Terminator::Branch(room, Target::new(stop), to_failed(failed)),
        stop,
    );
    let zero = r.konst(Type::I32, 0);
    r.inst(
        Op::Store {
            align: 8,
            volatile: false,
        },
        [record, zero, zero],
        &[],
    );
    r.end_block(Terminator::Jump(to_failed(failed)), write);
    let site_index = r.konst(Type::I32, u64::from(index));
    r.inst(
        Op::Store {
            align: 8,
            volatile: false,
        },
        [record, site_index, size],
        &[],
    );
    let mut operands = operands.iter();
    for (arg, offset) in site.args.iter().zip(&layout.offsets) {
        let (PrintfArg::Value { ty, lanes }, Some(offset)) = (arg, offset) else {
            continue;
        };
        let at = r.offset(record, u64::from(*offset));
        let mut list = vec![at];
        for _ in 0..*lanes {
            let &value = operands
                .next()
                .ok_or_else(|| LowerError::internal("printf call with too few operands"))?;
            let have = r.func.ty(r.resolve(value));
            list.push(match (have, *ty) {
                (Type::Bool, _) => r.op(Op::ZExt, [value], *ty),
                (Type::Ptr(_), Type::I64) => r.op(Op::PtrToInt, [value], Type::I64),
                (Type::Ptr(_), _) => r.op(Op::PtrToInt, [value], Type::I64),
                _ => value,
            });
        }
        r.inst(
            Op::Store {
                align: ty.size().max(4),
                volatile: false,
            },
            list,
            &[],
        );
    }
    let zero = r.konst(Type::I32, 0);
    r.jump(done, &[zero], done);
    Ok(r.params(done)[0])
}

/// Runs the pass.
pub fn run(func: &mut Function, sites: &[PrintfSite]) -> Result<()> {
    rewrite(func, |r, inst| {
        let Op::Printf(index) = r.func.insts[inst].op else {
            return Ok(Action::Keep);
        };
        let site = sites
            .get(index as usize)
            .ok_or_else(|| LowerError::internal(format!("unknown printf site {index}")))?;
        let value = lower(r, inst, index, site)?;
        Ok(r.replace_result(inst, value))
    })
}
