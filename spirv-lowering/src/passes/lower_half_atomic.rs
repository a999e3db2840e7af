//! Atomics of 16 bits become loops around a compare-and-exchange of the 32 bits around them, which leave the other half as it is.
//!
//! Vulkan has none of 16 bits without extensions, and those have no minimum on integers and no compare-and-exchange. A load is
//! one of the whole word. Atomics on private memory are left alone (`lower_private` makes plain code of them). Runs before
//! `lower_atomic`, to which the words are like any other, and before local memory becomes arrays.

use super::lower_atomic::{combine, until_exchanged};
use crate::edit::rewrite::{rewrite, Action, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::{Function, InstData};
use crate::ir::op::{IntCond, Op, Order};
use crate::ir::types::{Space, Type};

/// The type of an atomic of 16 bits on memory that others see.
fn half_type(func: &Function, data: &InstData) -> Option<Type> {
    let value = match data.op {
        Op::AtomicLoad { .. } => data.results.first(),
        Op::AtomicStore { .. } | Op::AtomicRmw { .. } | Op::AtomicCmpXchg { .. } => {
            data.args.get(1)
        }
        _ => None,
    };
    let (ty, pointer) = (func.ty(*value?), func.ty(*data.args.first()?));
    (ty.size() == 2 && pointer.space() != Some(Space::Private)).then_some(ty)
}

/// Brings a value to the lower half of a word.
fn to_word(r: &mut Rewriter, value: Value) -> Value {
    let int = match r.func.ty(value) {
        Type::I16 => value,
        _ => r.op(Op::Bitcast, [value], Type::I16),
    };
    r.op(Op::ZExt, [int], Type::I32)
}

/// Runs the pass. True if there was one.
pub fn run(func: &mut Function) -> Result<bool> {
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let Some(ty) = half_type(r.func, &data) else {
            return Ok(Action::Keep);
        };
        changed = true;
        let operand = |r: &mut Rewriter, i: usize| {
            let value = data.args.get(i).map(|&value| r.resolve(value));
            value.ok_or_else(|| LowerError::internal("an atomic without an operand"))
        };
        let pointer = operand(r, 0)?;
        let address = r.op(Op::PtrToInt, [pointer], Type::I64);
        let upper = r.with_const(Op::And, address, 2);
        let back = r.op(Op::INeg, [upper], Type::I64);
        let word = r.same(Op::PtrAdd, [pointer, back]);
        let upper = r.op(Op::Trunc, [upper], Type::I32);
        let by = r.with_const(Op::Shl, upper, 3);
        let half = |r: &mut Rewriter, whole: Value| {
            let part = r.same(Op::LShr, [whole, by]);
            let part = r.op(Op::Trunc, [part], Type::I16);
            match ty {
                Type::I16 => part,
                _ => r.op(Op::Bitcast, [part], ty),
            }
        };
        let (scope, order) = match data.op {
            Op::AtomicLoad { scope, order } => {
                let whole = r.op(Op::AtomicLoad { scope, order }, [word], Type::I32);
                let value = half(r, whole);
                return Ok(r.replace_result(inst, value));
            }
            Op::AtomicStore { scope, order }
            | Op::AtomicRmw { scope, order, .. }
            | Op::AtomicCmpXchg { scope, order } => (scope, order),
            _ => return Err(LowerError::internal("not an atomic")),
        };
        let value = operand(r, 1)?;
        let replacement = match data.op {
            Op::AtomicCmpXchg { .. } => operand(r, 2)?,
            _ => value,
        };
        let load = Op::AtomicLoad {
            scope,
            order: Order::Relaxed,
        };
        let first = r.op(load, [word], Type::I32);
        let exchange = Op::AtomicCmpXchg { scope, order };
        let old = until_exchanged(r, exchange, word, first, |r, expected| {
            let old = half(r, expected);
            let new = match data.op {
                Op::AtomicRmw { op, .. } => combine(r, op, old, value),
                Op::AtomicCmpXchg { .. } => {
                    let same = r.icmp(IntCond::Eq, old, value);
                    r.select(same, replacement, old)
                }
                _ => value,
            };
            let new = to_word(r, new);
            let new = r.same(Op::Shl, [new, by]);
            let ones = r.konst(Type::I32, u16::MAX.into());
            let hole = r.same(Op::Shl, [ones, by]);
            let keep = r.same(Op::Not, [hole]);
            let kept = r.same(Op::And, [expected, keep]);
            (old, r.same(Op::Or, [kept, new]))
        });
        match data.results.is_empty() {
            true => Ok(Action::Remove),
            false => Ok(r.replace_result(inst, old)),
        }
    })?;
    Ok(changed)
}
