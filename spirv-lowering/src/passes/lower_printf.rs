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
//! lanes. Strings known at compile time take no space: those that were parameters of functions, or variables, are known here at
//! the latest. Others have [`STRING`] bytes: a word that is 0 for a null pointer, and the characters that fit, up to a zero.
//! [`RecordLayout`] is that rule, for the renderer too.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::interface::Implicit;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::module::{PrintfArg, PrintfSite};
use crate::ir::op::{IntCond, Op, Order, RmwOp, Scope};
use crate::ir::strings::{shown_string, Globals};
use crate::ir::types::{Space, Type};

/// Bytes before the first record.
pub const HEADER: u32 = 8;

/// The bytes of a string that is not known at compile time, with the word before it.
pub const STRING: u32 = 256;

/// The layout of the records of a printf call site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLayout {
    /// Offset of each argument from the start of the record; None for strings known at compile time.
    pub offsets: Vec<Option<u32>>,
    /// Bytes of a record.
    pub size: u32,
}

impl RecordLayout {
    /// Creates the layout of a site's records.
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
                PrintfArg::String => {
                    let offset = size.next_multiple_of(4);
                    size = offset.saturating_add(STRING);
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

fn lower(r: &mut Rewriter, operands: &[Value], index: u32, site: &PrintfSite) -> Result<Value> {
    let layout = RecordLayout::new(site);
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
    let to_failed = |value| Edge::with(done, [value]);
    r.end_block(
        Terminator::Branch(full, to_failed(failed), Edge::new(reserve)),
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
        Terminator::Branch(fits, Edge::new(write), Edge::new(overflow)),
        overflow,
    );
    let head_end = r.with_const(Op::IAdd, start, 8);
    let room = r.icmp(IntCond::Ule, head_end, capacity);
    r.end_block(
        Terminator::Branch(room, Edge::new(stop), to_failed(failed)),
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
        let Some(offset) = offset else {
            continue;
        };
        let at = r.offset(record, u64::from(*offset));
        let PrintfArg::Value { ty, lanes } = arg else {
            let &pointer = operands
                .next()
                .ok_or_else(|| LowerError::internal("printf call with too few operands"))?;
            copy_string(r, at, pointer)?;
            continue;
        };
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

/// Copies a string to its place in a record.
fn copy_string(r: &mut Rewriter, to: Value, from: Value) -> Result<()> {
    let from = r.resolve(from);
    if !matches!(r.func.ty(from).space(), Some(space) if space != Space::Generic) {
        return Err(LowerError::unsupported(
            "printf: a %s argument in the generic address space",
        ));
    }
    let byte = |r: &mut Rewriter, at: Value, value: Value| {
        let (align, volatile) = (1, false);
        r.inst(Op::Store { align, volatile }, [at, value], &[]);
    };
    let some = r.icmp_const(IntCond::Ne, from, 0);
    let flag = r.op(Op::ZExt, [some], Type::I32);
    let (align, volatile) = (4, false);
    r.inst(Op::Store { align, volatile }, [to, flag], &[]);
    let (head, body) = (r.new_block(&[Type::I32]), r.new_block(&[]));
    let (next, after) = (r.new_block(&[]), r.new_block(&[]));
    let zero = r.konst(Type::I32, 0);
    let start = Edge::with(head, [zero]);
    r.end_block(Terminator::Branch(some, start, Edge::new(after)), head);
    let i = r.params(head)[0];
    let more = r.icmp_const(IntCond::Ult, i, u64::from(STRING - 4));
    r.end_block(
        Terminator::Branch(more, Edge::new(body), Edge::new(after)),
        body,
    );
    let by = r.op(Op::ZExt, [i], Type::I64);
    let source = r.same(Op::PtrAdd, [from, by]);
    let (align, volatile) = (1, false);
    let c = r.op(Op::Load { align, volatile }, [source], Type::I8);
    let target = r.offset(to, 4);
    let target = r.same(Op::PtrAdd, [target, by]);
    byte(r, target, c);
    let end = r.icmp_const(IntCond::Eq, c, 0);
    r.end_block(
        Terminator::Branch(end, Edge::new(after), Edge::new(next)),
        next,
    );
    let i = r.with_const(Op::IAdd, i, 1);
    r.jump(head, &[i], after);
    Ok(())
}

/// Returns the site with the strings that are known by now, and the operands that remain, or `None`
/// if no string is.
fn resolved(
    r: &Rewriter,
    inst: Inst,
    site: &PrintfSite,
    globals: &Globals,
) -> Option<(PrintfSite, Vec<Value>)> {
    let data = &r.func.insts[inst];
    let mut operands = data.args.iter().copied();
    let (mut args, mut left) = (Vec::new(), Vec::new());
    let mut found = false;
    for arg in &site.args {
        match arg {
            PrintfArg::Text(_) => args.push(arg.clone()),
            PrintfArg::Value { lanes, .. } => {
                left.extend(operands.by_ref().take(*lanes as usize));
                args.push(arg.clone());
            }
            PrintfArg::String => {
                let pointer = operands.next()?;
                match shown_string(r.func, globals, r.resolve(pointer)) {
                    Some(text) => {
                        found = true;
                        args.push(PrintfArg::Text(text));
                    }
                    None => {
                        left.push(pointer);
                        args.push(arg.clone());
                    }
                }
            }
        }
    }
    let format = site.format.clone();
    found.then_some((PrintfSite { format, args }, left))
}

/// Runs the pass. Returns all sites, with new ones for calls whose strings were found here.
pub fn run(
    func: &mut Function,
    sites: &[PrintfSite],
    globals: &Globals,
) -> Result<Vec<PrintfSite>> {
    let mut all = sites.to_vec();
    rewrite(func, |r, inst| {
        let Op::Printf(index) = r.func.insts[inst].op else {
            return Ok(InstEdit::Keep);
        };
        let site = sites
            .get(index as usize)
            .ok_or_else(|| LowerError::internal(format!("unknown printf site {index}")))?;
        let value = match resolved(r, inst, site, globals) {
            Some((site, operands)) => {
                let index = all.len() as u32;
                let value = lower(r, &operands, index, &site)?;
                all.push(site);
                value
            }
            None => {
                let operands = r.data(inst).args;
                lower(r, &operands, index, site)?
            }
        };
        Ok(r.replace_result(inst, value))
    })?;
    Ok(all)
}
