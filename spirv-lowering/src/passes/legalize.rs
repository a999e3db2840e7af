//! Legalizes operations that Vulkan SPIR-V has for some widths only.
//!
//! - Bit counting and reversal, and the high half of a product: 32 bits only.
//! - Loads and stores aligned to less than an element: by narrower elements.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::{Function, InstData};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let ty = data.results.first().map(|&v| r.func.ty(v));
        let new = match (data.op, ty, data.args.as_slice()) {
            (Op::Clz | Op::Ctz | Op::Popcount | Op::BitReverse, Some(ty), &[a])
                if ty != Type::I32 =>
            {
                bits(r, data.op, a, ty)
            }
            (Op::SMulHi | Op::UMulHi, Some(ty), &[a, b]) if ty != Type::I32 => {
                mul_hi(r, data.op, a, b, ty)
            }
            (Op::Load { align, .. } | Op::Store { align, .. }, ..) => {
                return access(r, &data, align)
            }
            _ => return Ok(InstEdit::Keep),
        };
        Ok(r.replace_result(inst, new))
    })
}

fn halves(r: &mut Rewriter, v: Value) -> (Value, Value) {
    let low = r.op(Op::Trunc, [v], Type::I32);
    let high = r.with_const(Op::LShr, v, 32);
    let high = r.op(Op::Trunc, [high], Type::I32);
    (low, high)
}

fn bits(r: &mut Rewriter, op: Op, a: Value, ty: Type) -> Value {
    let width = u64::from(ty.bits());
    if ty != Type::I64 {
        let mut wide = r.op(Op::ZExt, [a], Type::I32);
        if op == Op::Ctz {
            wide = r.with_const(Op::Or, wide, 1 << width);
        }
        let mut v = r.same(op, [wide]);
        match op {
            Op::Clz => v = r.with_const(Op::ISub, v, 32 - width),
            Op::BitReverse => v = r.with_const(Op::LShr, v, 32 - width),
            _ => {}
        }
        return r.op(Op::Trunc, [v], ty);
    }
    let (low, high) = halves(r, a);
    match op {
        Op::BitReverse => {
            let (low, high) = (r.same(op, [low]), r.same(op, [high]));
            let (low, high) = (r.op(Op::ZExt, [low], ty), r.op(Op::ZExt, [high], ty));
            let low = r.with_const(Op::Shl, low, 32);
            r.same(Op::Or, [low, high])
        }
        Op::Popcount => {
            let (low, high) = (r.same(op, [low]), r.same(op, [high]));
            let sum = r.same(Op::IAdd, [low, high]);
            r.op(Op::ZExt, [sum], ty)
        }
        _ => {
            // The half that decides, and the other when that is zero.
            let (first, second) = if op == Op::Clz {
                (high, low)
            } else {
                (low, high)
            };
            let empty = r.icmp_const(IntCond::Eq, first, 0);
            let (first, second) = (r.same(op, [first]), r.same(op, [second]));
            let second = r.with_const(Op::IAdd, second, 32);
            let count = r.select(empty, second, first);
            r.op(Op::ZExt, [count], ty)
        }
    }
}

fn mul_hi(r: &mut Rewriter, op: Op, a: Value, b: Value, ty: Type) -> Value {
    let signed = op == Op::SMulHi;
    if ty != Type::I64 {
        let extend = if signed { Op::SExt } else { Op::ZExt };
        let (a, b) = (r.op(extend, [a], Type::I32), r.op(extend, [b], Type::I32));
        let product = r.same(Op::IMul, [a, b]);
        let high = r.with_const(Op::LShr, product, ty.bits().into());
        return r.op(Op::Trunc, [high], ty);
    }
    let mask = 0xffff_ffff;
    let (al, bl) = (
        r.with_const(Op::And, a, mask),
        r.with_const(Op::And, b, mask),
    );
    let (ah, bh) = (r.with_const(Op::LShr, a, 32), r.with_const(Op::LShr, b, 32));
    let low = r.same(Op::IMul, [al, bl]);
    let carry = r.with_const(Op::LShr, low, 32);
    let cross = r.same(Op::IMul, [ah, bl]);
    let cross = r.same(Op::IAdd, [cross, carry]);
    let (cross_low, cross_high) = (
        r.with_const(Op::And, cross, mask),
        r.with_const(Op::LShr, cross, 32),
    );
    let other = r.same(Op::IMul, [al, bh]);
    let other = r.same(Op::IAdd, [other, cross_low]);
    let other = r.with_const(Op::LShr, other, 32);
    let high = r.same(Op::IMul, [ah, bh]);
    let high = r.same(Op::IAdd, [high, cross_high]);
    let mut high = r.same(Op::IAdd, [high, other]);
    if signed {
        for (x, y) in [(a, b), (b, a)] {
            let sign = r.with_const(Op::AShr, x, 63);
            let excess = r.same(Op::And, [sign, y]);
            high = r.same(Op::ISub, [high, excess]);
        }
    }
    high
}

/// Splits an access whose elements are not aligned.
fn access(r: &mut Rewriter, data: &InstData, align: u32) -> Result<InstEdit> {
    let store = data.results.is_empty();
    let values = if store {
        data.args.get(1..).unwrap_or_default()
    } else {
        &data.results
    };
    let (Some(&pointer), Some(&first)) = (data.args.first(), values.first()) else {
        return Ok(InstEdit::Keep);
    };
    let ty = r.func.ty(first);
    let piece = if align == 0 {
        ty.size()
    } else {
        1 << align.trailing_zeros()
    };
    if piece >= ty.size() {
        return Ok(InstEdit::Keep);
    }
    let volatile = matches!(
        data.op,
        Op::Load { volatile: true, .. } | Op::Store { volatile: true, .. }
    );
    let odd = || LowerError::internal(format!("an access of type {ty:?}"));
    let (whole, part) = (
        ty.as_int().ok_or_else(odd)?,
        Type::int(piece * 8).ok_or_else(odd)?,
    );
    let parts = ty.size() / piece;
    if store {
        let mut out = vec![pointer];
        for &v in values {
            let v = to_int(r, v, ty, whole);
            for k in 0..parts {
                let shifted = if k == 0 {
                    v
                } else {
                    r.with_const(Op::LShr, v, u64::from(k * piece * 8))
                };
                out.push(r.op(Op::Trunc, [shifted], part));
            }
        }
        r.inst(
            Op::Store {
                align: piece,
                volatile,
            },
            out,
            &[],
        );
        return Ok(InstEdit::Remove);
    }
    let count = parts as usize * values.len();
    let loaded = r.many(
        Op::Load {
            align: piece,
            volatile,
        },
        [pointer],
        &vec![part; count],
    );
    for (&value, pieces) in values.iter().zip(loaded.chunks(parts as usize)) {
        let mut sum: Option<Value> = None;
        for (k, &p) in pieces.iter().enumerate() {
            let wide = r.op(Op::ZExt, [p], whole);
            let wide = if k == 0 {
                wide
            } else {
                r.with_const(Op::Shl, wide, k as u64 * u64::from(piece) * 8)
            };
            sum = Some(match sum {
                Some(s) => r.same(Op::Or, [s, wide]),
                None => wide,
            });
        }
        let Some(mut sum) = sum else { continue };
        if ty.is_ptr() {
            sum = r.op(Op::IntToPtr, [sum], ty);
        } else if ty != whole {
            sum = r.op(Op::Bitcast, [sum], ty);
        }
        r.replace(value, sum);
    }
    Ok(InstEdit::Remove)
}

fn to_int(r: &mut Rewriter, v: Value, ty: Type, whole: Type) -> Value {
    if ty.is_ptr() {
        r.op(Op::PtrToInt, [v], Type::I64)
    } else if ty != whole {
        r.op(Op::Bitcast, [v], whole)
    } else {
        v
    }
}
