//! Accesses to small elements by words.

use super::{Element, Lower};
use crate::edit::rewrite::{InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Value, Var};
use crate::ir::function::{InstData, Storage};
use crate::ir::op::{Op, Order, RmwOp, Scope};
use crate::ir::types::Type;

/// A place in a word: the bits below it.
#[derive(Clone, Copy)]
enum Shift {
    Known(u64),
    Value(Value),
}

impl Shift {
    fn apply(self, r: &mut Rewriter, op: Op, value: Value) -> Value {
        match self {
            Self::Known(0) => value,
            Self::Known(bits) => r.with_const(op, value, bits),
            Self::Value(bits) => r.same(op, [value, bits]),
        }
    }
}

/// Returns the alignment of the address `offset` bytes after an address aligned to `align`.
fn align_at(align: u32, offset: u32) -> u32 {
    match offset {
        0 => align,
        _ => align.min(1 << offset.trailing_zeros()),
    }
}

/// Returns elements of some bytes that lie in a word from its lowest bit on.
fn split(r: &mut Rewriter, word: Value, size: u32, count: u32) -> Vec<Value> {
    let mask = (1u64 << (size * 8)) - 1;
    let element = |k: u32| {
        let part = Shift::Known(u64::from(k * size * 8)).apply(r, Op::LShr, word);
        r.with_const(Op::And, part, mask)
    };
    (0..count).map(element).collect()
}

/// Returns a word of elements of some bytes.
fn join(r: &mut Rewriter, size: u32, elements: &[Value]) -> Value {
    let mut word = None;
    for (k, &element) in elements.iter().enumerate() {
        let part = Shift::Known(u64::from(size) * 8 * k as u64).apply(r, Op::Shl, element);
        word = Some(match word {
            Some(word) => r.same(Op::Or, [word, part]),
            None => part,
        });
    }
    word.unwrap_or_else(|| r.konst(Type::I32, 0))
}

/// Returns the mask that clears some low bits at a place.
fn hole(r: &mut Rewriter, bits: u32, at: Shift) -> Value {
    let ones = r.konst(Type::I32, (1u64 << bits) - 1);
    let ones = at.apply(r, Op::Shl, ones);
    r.same(Op::Not, [ones])
}

/// Returns the pointer to the word around an address, and where in it the address is.
fn around(r: &mut Rewriter, pointer: Value, align: u32) -> (Value, Shift) {
    if align >= 4 {
        return (pointer, Shift::Known(0));
    }
    let address = r.op(Op::PtrToInt, [pointer], Type::I64);
    let bytes = r.with_const(Op::And, address, 3);
    let back = r.same(Op::INeg, [bytes]);
    let word = r.same(Op::PtrAdd, [pointer, back]);
    let bytes = r.op(Op::Trunc, [bytes], Type::I32);
    (word, Shift::Value(r.with_const(Op::Shl, bytes, 3)))
}

impl Lower<'_> {
    /// Replaces a load of small integers by loads of words.
    pub(super) fn load(&self, r: &mut Rewriter, data: &InstData) -> Result<InstEdit> {
        let (Op::Load { align, volatile }, &[pointer], Some(&first)) =
            (data.op, data.args.as_slice(), data.results.first())
        else {
            return Err(LowerError::internal("a load of another form"));
        };
        let size = r.func.ty(first).size();
        let align = align.max(size);
        let load = |align| Op::Load { align, volatile };
        let mut at = 0;
        while let Some(rest) = data.results.get(at..).filter(|rest| !rest.is_empty()) {
            let offset = at as u32 * size;
            let align = align_at(align, offset);
            let words = rest.len() as u32 * size / 4;
            let place = r.offset(pointer, offset.into());
            let elements = if align >= 4 && words > 0 {
                let types = vec![Type::I32; words as usize];
                let words = r.many(load(align), [place], &types);
                let elements = words
                    .iter()
                    .flat_map(|&word| split(r, word, size, 4 / size));
                elements.collect()
            } else if self.target.has_storage(size) {
                let narrow = Type::int(size * 8).unwrap_or(Type::I16);
                let element = r.op(load(align), [place], narrow);
                vec![r.op(Op::ZExt, [element], Type::I32)]
            } else {
                let (place, shift) = around(r, place, align);
                let word = r.op(load(4), [place], Type::I32);
                let word = shift.apply(r, Op::LShr, word);
                split(r, word, size, 1)
            };
            for (&result, &element) in rest.iter().zip(&elements) {
                r.replace(result, element);
            }
            at += elements.len().max(1);
        }
        Ok(InstEdit::Remove)
    }

    /// Replaces a store of small integers by accesses to words.
    pub(super) fn store(&self, r: &mut Rewriter, data: &InstData) -> Result<InstEdit> {
        let (Op::Store { align, volatile }, Some((&pointer, values))) =
            (data.op, data.args.split_first())
        else {
            return Err(LowerError::internal("a store of another form"));
        };
        let Some(&first) = values.first() else {
            return Ok(InstEdit::Remove);
        };
        let size = self.ty(r, first).size();
        let align = align.max(size);
        let store = |align| Op::Store { align, volatile };
        let values: Vec<Value> = values.iter().map(|&value| r.resolve(value)).collect();
        let mut at = 0;
        while let Some(rest) = values.get(at..).filter(|rest| !rest.is_empty()) {
            let offset = at as u32 * size;
            let align = align_at(align, offset);
            let words = rest.len() * size as usize / 4;
            let place = r.offset(pointer, offset.into());
            if align >= 4 && words > 0 {
                let per_word = 4 / size as usize;
                let mut args = vec![place];
                for elements in rest.chunks(per_word).take(words) {
                    args.push(join(r, size, elements));
                }
                r.inst(store(align), args, &[]);
                at += words * per_word;
                continue;
            }
            let element = rest[0];
            if self.target.has_storage(size) {
                let narrow = Type::int(size * 8).unwrap_or(Type::I16);
                let element = r.op(Op::Trunc, [element], narrow);
                r.inst(store(align), [place, element], &[]);
            } else {
                let (place, shift) = around(r, place, align);
                let mask = hole(r, size * 8, shift);
                let bits = shift.apply(r, Op::Shl, element);
                for (op, operand) in [(RmwOp::And, mask), (RmwOp::Or, bits)] {
                    let (scope, order) = (Scope::Device, Order::Relaxed);
                    let op = Op::AtomicRmw { op, scope, order };
                    r.op(op, [place, operand], Type::I32);
                }
            }
            at += 1;
        }
        Ok(InstEdit::Remove)
    }

    /// Rewrites an access to an array that became one of words.
    pub(super) fn array(&self, r: &mut Rewriter, data: &InstData) -> Result<Option<InstEdit>> {
        let (Op::VarLoad(var)
        | Op::VarStore(var)
        | Op::VarRmw { var, .. }
        | Op::VarCmpXchg { var, .. }
        | Op::VarAtomicLoad { var, .. }
        | Op::VarAtomicStore { var, .. }) = data.op
        else {
            return Ok(None);
        };
        let (Some(&element), Some((&index, values))) =
            (self.arrays.get(&var), data.args.split_first())
        else {
            return Ok(None);
        };
        let index = r.resolve(index);
        let values: Vec<Value> = values.iter().map(|&value| r.resolve(value)).collect();
        match data.op {
            Op::VarLoad(_) => {
                for (&result, value) in data.results.iter().zip(load(r, var, index, element)) {
                    r.replace(result, value);
                }
            }
            Op::VarStore(_) => store(r, var, index, element, &values),
            _ => return Err(LowerError::internal("an atomic on small elements")),
        }
        Ok(Some(InstEdit::Remove))
    }
}

/// Returns the first word of an element of an array of a work-group, and where the element begins.
fn word_of(r: &mut Rewriter, index: Value, bytes: u32) -> (Value, Shift) {
    if bytes.is_multiple_of(4) {
        let first = r.with_const(Op::IMul, index, u64::from(bytes / 4));
        return (first, Shift::Known(0));
    }
    let byte = r.with_const(Op::IMul, index, bytes.into());
    let word = r.with_const(Op::LShr, byte, 2);
    let within = r.with_const(Op::And, byte, 3);
    (word, Shift::Value(r.with_const(Op::Shl, within, 3)))
}

fn load(r: &mut Rewriter, var: Var, index: Value, element: Element) -> Vec<Value> {
    let size = element.ty.size();
    if element.storage == Storage::Function {
        let word = r.op(Op::VarLoad(var), [index], Type::I32);
        return split(r, word, size, 1);
    }
    let bytes = size * element.lanes;
    let (first, shift) = word_of(r, index, bytes);
    let mut elements = Vec::new();
    for k in 0..bytes.div_ceil(4) {
        let at = r.with_const(Op::IAdd, first, k.into());
        let word = r.op(Op::VarLoad(var), [at], Type::I32);
        let word = shift.apply(r, Op::LShr, word);
        elements.extend(split(r, word, size, (4 / size).min(element.lanes)));
    }
    elements
}

fn store(r: &mut Rewriter, var: Var, index: Value, element: Element, values: &[Value]) {
    let size = element.ty.size();
    if element.storage == Storage::Function {
        r.inst(
            Op::VarStore(var),
            [index].iter().chain(values).copied(),
            &[],
        );
        return;
    }
    let bytes = size * element.lanes;
    let (first, shift) = word_of(r, index, bytes);
    for (k, values) in values.chunks(4 / size as usize).enumerate() {
        let at = r.with_const(Op::IAdd, first, k as u64);
        let word = join(r, size, values);
        if bytes.is_multiple_of(4) {
            r.inst(Op::VarStore(var), [at, word], &[]);
            continue;
        }
        // Other work-items may store to the rest of the word.
        let mask = hole(r, bytes * 8, shift);
        let word = shift.apply(r, Op::Shl, word);
        for (op, operand) in [(RmwOp::And, mask), (RmwOp::Or, word)] {
            let (scope, order) = (Scope::WorkGroup, Order::Relaxed);
            let op = Op::VarRmw {
                var,
                op,
                scope,
                order,
            };
            r.op(op, [at, operand], Type::I32);
        }
    }
}
