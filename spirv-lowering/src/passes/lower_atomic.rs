//! Expands atomics that the target does not have to loops around a compare-and-exchange of the
//! integer of that width.
//!
//! These are floating-point add where there is no instruction for it, and always floating-point
//! minimum and maximum. Runs before `lower_local`; atomics on private memory are left alone
//! (`lower_private` makes plain code of them).

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Function, InstData, Terminator};
use crate::ir::op::{FloatCond, IntCond, Op, Order, RmwOp};
use crate::ir::types::{Space, Type};
use crate::target::Target;

/// Emits `op` on plain values: the value that a read-modify-write stores.
pub fn combine(r: &mut Rewriter, op: RmwOp, old: Value, operand: Value) -> Value {
    let pick = |r: &mut Rewriter, cond: Value| r.select(cond, old, operand);
    match op {
        RmwOp::Xchg => operand,
        RmwOp::Add => r.same(Op::IAdd, [old, operand]),
        RmwOp::Sub => r.same(Op::ISub, [old, operand]),
        RmwOp::And => r.same(Op::And, [old, operand]),
        RmwOp::Or => r.same(Op::Or, [old, operand]),
        RmwOp::Xor => r.same(Op::Xor, [old, operand]),
        RmwOp::SMin => {
            let c = r.icmp(IntCond::Slt, old, operand);
            pick(r, c)
        }
        RmwOp::SMax => {
            let c = r.icmp(IntCond::Sgt, old, operand);
            pick(r, c)
        }
        RmwOp::UMin => {
            let c = r.icmp(IntCond::Ult, old, operand);
            pick(r, c)
        }
        RmwOp::UMax => {
            let c = r.icmp(IntCond::Ugt, old, operand);
            pick(r, c)
        }
        RmwOp::FAdd => r.same(Op::FAdd, [old, operand]),
        RmwOp::FMin | RmwOp::FMax => {
            let cond = if op == RmwOp::FMin {
                FloatCond::Olt
            } else {
                FloatCond::Ogt
            };
            let better = r.fcmp(cond, old, operand);
            let nan = r.fcmp(FloatCond::Uno, operand, operand);
            let c = r.op(Op::Or, [better, nan], Type::Bool);
            pick(r, c)
        }
    }
}

/// Emits a loop that compares and exchanges until it succeeds. `first` is the initial expectation;
/// `step` returns, for an expected value, the old value and the one to store. Returns the old value
/// that was replaced.
pub(super) fn until_exchanged(
    r: &mut Rewriter,
    exchange: Op,
    pointer: Value,
    first: Value,
    step: impl FnOnce(&mut Rewriter, Value) -> (Value, Value),
) -> Value {
    let ty = r.func.ty(first);
    let body = r.new_block(&[ty]);
    let done = r.new_block(&[]);
    r.jump(body, &[first], body);
    let expected = r.params(body)[0];
    let (old, new) = step(r, expected);
    let seen = r.op(exchange, [pointer, expected, new], ty);
    let same = r.icmp(IntCond::Eq, seen, expected);
    let again = Edge::with(body, [seen]);
    r.end_block(Terminator::Branch(same, Edge::new(done), again), done);
    old
}

/// Runs the pass.
pub fn run(func: &mut Function, target: &Target) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let Op::AtomicRmw { op, scope, order } = data.op else {
            return Ok(InstEdit::Keep);
        };
        let (pointer, operand) = match *data.args.as_slice() {
            [pointer, operand] => (pointer, operand),
            _ => return Ok(InstEdit::Keep),
        };
        let ty = r.func.ty(operand);
        let space = r.func.ty(pointer).space().unwrap_or(Space::Global);
        let native = match op {
            // Local arrays have elements of one type; those of floats only with an explicit layout.
            RmwOp::FAdd if space == Space::Local => {
                ty == Type::F32
                    && target.float32_atomic_add_local
                    && target.workgroup_explicit_layout
            }
            RmwOp::FAdd => ty == Type::F32 && target.float32_atomic_add_global,
            RmwOp::FMin | RmwOp::FMax => false,
            _ => true,
        };
        if native || space == Space::Private {
            return Ok(InstEdit::Keep);
        }
        let int = ty
            .as_int()
            .ok_or_else(|| LowerError::internal("an atomic on a truth value"))?;
        let first = r.op(
            Op::AtomicLoad {
                scope,
                order: Order::Relaxed,
            },
            [pointer],
            int,
        );
        let exchange = Op::AtomicCmpXchg { scope, order };
        let old = until_exchanged(r, exchange, pointer, first, |r, expected| {
            let old = r.op(Op::Bitcast, [expected], ty);
            let new = combine(r, op, old, operand);
            (old, r.op(Op::Bitcast, [new], int))
        });
        Ok(r.replace_result(inst, old))
    })
}

/// Returns the width in bytes of an atomic on local memory.
fn local_width(func: &Function, data: &InstData) -> Option<u32> {
    let pointer = *data.args.first()?;
    if !data.op.is_atomic() || func.ty(pointer) != Type::Ptr(Space::Local) {
        return None;
    }
    let value = data.results.first().or(data.args.get(1))?;
    Some(func.ty(*value).size())
}

/// Returns true if there are atomics of 32 and of 64 bits on local memory.
pub fn local_widths_differ(func: &Function) -> bool {
    let insts = func.layout_insts();
    let widths = insts.filter_map(|&inst| local_width(func, &func.insts[inst]));
    widths.fold(0, |all, width| all | width) == 12
}

/// Widens 32-bit atomics on local memory to the 64 bits around them, for an array that has both:
/// loops around a compare-and-exchange that leave the other half unchanged.
pub fn widen_local(func: &mut Function) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        if local_width(r.func, &data) != Some(4) {
            return Ok(InstEdit::Keep);
        }
        let operand = |i: usize| {
            let value = data.args.get(i).map(|&value| r.resolve(value));
            value.ok_or_else(|| LowerError::internal("an atomic without an operand"))
        };
        let pointer = operand(0)?;
        let (first_operand, second) = (operand(1).ok(), operand(2).ok());
        let bits = r.op(Op::PtrToInt, [pointer], Type::I64);
        let upper = r.with_const(Op::And, bits, 4);
        let back = r.op(Op::INeg, [upper], Type::I64);
        let word = r.same(Op::PtrAdd, [pointer, back]);
        let by = r.with_const(Op::Shl, upper, 3);
        let (scope, order) = match data.op {
            Op::AtomicLoad { scope, order }
            | Op::AtomicStore { scope, order }
            | Op::AtomicRmw { scope, order, .. }
            | Op::AtomicCmpXchg { scope, order } => (scope, order),
            _ => return Err(LowerError::internal("not an atomic")),
        };
        let value = data.results.first().copied().or(first_operand);
        let ty = value.map_or(Type::I32, |value| r.func.ty(value));
        let half = |r: &mut Rewriter, whole: Value| {
            let part = r.same(Op::LShr, [whole, by]);
            let part = r.op(Op::Trunc, [part], Type::I32);
            match ty {
                Type::I32 => part,
                _ => r.op(Op::Bitcast, [part], ty),
            }
        };
        let load_order = match data.op {
            Op::AtomicLoad { .. } => order,
            _ => Order::Relaxed,
        };
        let load = Op::AtomicLoad {
            scope,
            order: load_order,
        };
        let first = r.op(load, [word], Type::I64);
        if let Op::AtomicLoad { .. } = data.op {
            let value = half(r, first);
            return Ok(r.replace_result(inst, value));
        }
        let missing = || LowerError::internal("an atomic without an operand");
        let operand = first_operand.ok_or_else(missing)?;
        let replacement = match data.op {
            Op::AtomicCmpXchg { .. } => second.ok_or_else(missing)?,
            _ => operand,
        };
        let exchange = Op::AtomicCmpXchg { scope, order };
        let old = until_exchanged(r, exchange, word, first, |r, expected| {
            let old = half(r, expected);
            let new = match data.op {
                Op::AtomicRmw { op, .. } => combine(r, op, old, operand),
                Op::AtomicCmpXchg { .. } => {
                    let same = r.icmp(IntCond::Eq, old, operand);
                    r.select(same, replacement, old)
                }
                _ => operand,
            };
            let new = match ty {
                Type::I32 => new,
                _ => r.op(Op::Bitcast, [new], Type::I32),
            };
            let new = r.op(Op::ZExt, [new], Type::I64);
            let new = r.same(Op::Shl, [new, by]);
            let ones = r.konst(Type::I64, u32::MAX.into());
            let hole = r.same(Op::Shl, [ones, by]);
            let keep = r.same(Op::Not, [hole]);
            let kept = r.same(Op::And, [expected, keep]);
            (old, r.same(Op::Or, [kept, new]))
        });
        match data.results.is_empty() {
            true => Ok(InstEdit::Remove),
            false => Ok(r.replace_result(inst, old)),
        }
    })
}
