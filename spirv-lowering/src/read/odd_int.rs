//! Integers of widths that memory and devices lack: 2 to 63 bits, as LLVM's optimised code has them
//! (33 bits of the product of two loop counters, 4 of a mask of truths, 24 of three bytes).
//!
//! Such a value is held zero-extended in the next wider integer, and the other files of this module
//! operate on that. This module keeps the upper bits zero and lets signed operations find the sign:
//! it extends operands before and truncates results after. In memory the value takes its own bytes,
//! without those of the wider integer. Widths above 64 bits are not supported.

use super::body::{bad, unsupported, Body, IdMeaning};
use super::types::TyId;
use super::words::Instruction;
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::Op;
use crate::ir::types::Type;
use spirv::{Decoration, Op as S, OpenclStd100Op as E};

/// The form of an operand or a result in the wider integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Zeros above the value, as it is held.
    Plain,
    /// Sign bits above the value.
    Signed,
    /// The value in the upper bits, zeros below.
    Upper,
    /// A single one above the value, then zeros.
    Marked,
    /// Any bits above the value, which have to be cleared.
    Loose,
    /// A bit count that includes the bits above the value.
    Counted,
}

/// Returns the form that an instruction on integers requires of its operands and that of its
/// result, or `None` if it is not supported for such widths.
fn forms(op: S) -> Option<(Form, Form)> {
    use Form::{Loose, Plain, Signed, Upper};
    Some(match op {
        S::IAdd | S::ISub | S::IMul | S::SNegate | S::Not => (Plain, Loose),
        S::ShiftLeftLogical | S::UConvert | S::ConvertFToU | S::ConvertFToS => (Plain, Loose),
        S::UDiv | S::UMod | S::ShiftRightLogical => (Plain, Plain),
        S::BitwiseAnd | S::BitwiseOr | S::BitwiseXor | S::BitCount => (Plain, Plain),
        S::IEqual | S::INotEqual | S::ConvertUToF => (Plain, Plain),
        S::UGreaterThan | S::UGreaterThanEqual | S::ULessThan | S::ULessThanEqual => (Plain, Plain),
        S::SGreaterThan | S::SGreaterThanEqual | S::SLessThan | S::SLessThanEqual => {
            (Signed, Plain)
        }
        S::SDiv | S::SRem | S::SMod | S::ShiftRightArithmetic => (Signed, Loose),
        S::SConvert | S::ConvertSToF => (Signed, Loose),
        // What was lowest is highest in the wider integer.
        S::BitReverse => (Plain, Upper),
        _ => return None,
    })
}

/// Returns the same as [`forms`] for an instruction of OpenCL.std.
fn extended_forms(op: E) -> Option<(Form, Form)> {
    use Form::{Counted, Loose, Marked, Plain, Signed, Upper};
    Some(match op {
        E::u_min | E::u_max | E::u_abs | E::u_abs_diff | E::popcount => (Plain, Plain),
        E::u_clamp => (Plain, Plain),
        E::s_min | E::s_max | E::s_abs | E::s_abs_diff | E::s_clamp => (Signed, Loose),
        E::u_add_sat | E::u_sub_sat | E::s_add_sat | E::s_sub_sat => (Upper, Upper),
        E::clz => (Plain, Counted),
        E::ctz => (Marked, Plain),
        _ => return None,
    })
}

/// Returns true if the instruction moves values without changing them.
fn only_moves(op: S) -> bool {
    matches!(
        op,
        S::Select
            | S::CompositeConstruct
            | S::CompositeExtract
            | S::CompositeInsert
            | S::VectorShuffle
            | S::VectorExtractDynamic
            | S::VectorInsertDynamic
            | S::CopyObject
            | S::CopyLogical
            | S::ExpectKHR
    )
}

/// Returns true if the result depends on the width of an operand, for a result of any type.
fn knows_the_width(op: S) -> bool {
    matches!(
        op,
        S::IAddCarry
            | S::ISubBorrow
            | S::UMulExtended
            | S::SMulExtended
            | S::SatConvertSToU
            | S::SatConvertUToS
            | S::BitFieldInsert
            | S::BitFieldSExtract
            | S::BitFieldUExtract
    )
}

fn is_chain(op: S) -> bool {
    matches!(
        op,
        S::AccessChain
            | S::InBoundsAccessChain
            | S::PtrAccessChain
            | S::InBoundsPtrAccessChain
            | S::UntypedAccessChainKHR
            | S::UntypedInBoundsAccessChainKHR
            | S::UntypedPtrAccessChainKHR
            | S::UntypedInBoundsPtrAccessChainKHR
    )
}

impl Body<'_, '_> {
    /// Returns the width of an operand, if it is an integer of an odd width.
    fn odd_width(&self, id: u32) -> Option<u32> {
        self.p.types.odd_width(self.type_of(id).ok()?)
    }

    /// Translates an instruction, other than an extended one, that has an operand or result of an
    /// odd width. Returns false if it has none.
    pub(super) fn odd_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        if !self.p.types.has_odd() {
            return Ok(false);
        }
        if op == S::Store {
            let value = inst.word(1)?;
            let Some(width) = self.odd_width(value) else {
                return Ok(false);
            };
            let pointer = self.pointer(inst.word(0)?)?.0;
            self.store_odd(pointer, value, width)?;
            return Ok(true);
        }
        // Of the others the first word is the type of the result; those that have none have nothing to do with numbers.
        let Some(ty) = inst.word(0).ok().and_then(|word| self.p.ty(word).ok()) else {
            return Ok(false);
        };
        let operands = inst.words.get(2..).unwrap_or_default();
        let to = self.p.types.odd_width(ty);
        match op {
            S::Undef if to.is_some() => {
                let (scalar, n) = self.vector_of(ty)?;
                let zero = self.constant(scalar, 0);
                self.set(inst.word(1)?, ty, (0..n).map(|_| zero).collect())?;
                return Ok(true);
            }
            S::Load => {
                let Some(width) = to else {
                    return Ok(false);
                };
                let pointer = self.pointer(inst.word(2)?)?.0;
                let values = self.load_odd(pointer, ty, width)?;
                self.set(inst.word(1)?, ty, values)?;
                return Ok(true);
            }
            S::Bitcast => return self.bitcast_odd(inst, ty),
            _ if only_moves(op) => return Ok(false),
            _ => {}
        }
        if is_chain(op) {
            // Indices are signed.
            self.in_form(operands, Form::Signed, |body| {
                body.memory_inst(inst, op).map(|_| ())
            })?;
            return Ok(true);
        }
        let known = forms(op);
        // Other instructions have literals among their operands, which are no ids.
        let all_ids = known.is_some() || knows_the_width(op);
        let concerned = all_ids && operands.iter().any(|&id| self.odd_width(id).is_some());
        if to.is_none() && !concerned {
            return Ok(false);
        }
        let saturated = self
            .p
            .decorations
            .get(inst.word(1)?, Decoration::SaturatedConversion);
        let Some((form, left)) = known.filter(|_| saturated.is_none()) else {
            return unsupported("integers of a width that is no power of two");
        };
        // An amount to shift by is not negative.
        let formed = match op {
            S::ShiftRightArithmetic => operands.get(..1).unwrap_or_default(),
            _ => operands,
        };
        self.in_form(formed, form, |body| body.arith_inst(inst, op).map(|_| ()))?;
        if let Some(width) = to {
            self.settle(inst.word(1)?, width, left)?;
        }
        Ok(true)
    }

    /// Translates an instruction of OpenCL.std that has an operand or result of an odd width.
    /// Returns false if it has none.
    pub(super) fn odd_extended(&mut self, inst: &Instruction) -> Result<bool> {
        if !self.p.types.has_odd() {
            return Ok(false);
        }
        let Some(width) = self.p.types.odd_width(self.p.ty(inst.word(0)?)?) else {
            return Ok(false);
        };
        let Some((form, left)) = E::from_u32(inst.word(3)?).and_then(extended_forms) else {
            return unsupported("integers of a width that is no power of two");
        };
        self.in_form(inst.rest(4), form, |body| body.opencl_std(inst))?;
        self.settle(inst.word(1)?, width, left)?;
        Ok(true)
    }

    /// Runs `translate` while the operands have another form.
    fn in_form(
        &mut self,
        operands: &[u32],
        form: Form,
        translate: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if form == Form::Plain {
            return translate(self);
        }
        let mut kept: Vec<(u32, Values)> = Vec::new();
        for &id in operands {
            let Some(width) = self.odd_width(id) else {
                continue;
            };
            if kept.iter().any(|(other, _)| *other == id) {
                continue;
            }
            let values = self.value(id)?;
            let formed = values.iter().map(|&v| self.formed(v, width, form));
            let formed: Values = formed.collect();
            self.replace(id, formed)?;
            kept.push((id, values));
        }
        translate(self)?;
        for (id, values) in kept {
            self.replace(id, values)?;
        }
        Ok(())
    }

    fn formed(&mut self, value: Value, width: u32, form: Form) -> Value {
        let ty = self.f.ty(value);
        let by = self.constant(ty, u64::from(ty.bits() - width));
        match form {
            Form::Signed | Form::Upper => {
                let upper = self.ins(Op::Shl, &[value, by], ty);
                if form == Form::Upper {
                    return upper;
                }
                self.ins(Op::AShr, &[upper, by], ty)
            }
            Form::Marked => {
                let mark = self.constant(ty, 1 << width);
                self.ins(Op::Or, &[value, mark], ty)
            }
            Form::Plain | Form::Loose | Form::Counted => value,
        }
    }

    /// Converts a result to the form in which values of its type are represented.
    fn settle(&mut self, id: u32, width: u32, left: Form) -> Result<()> {
        if left == Form::Plain {
            return Ok(());
        }
        let values = self.value(id)?;
        let settled = values.iter().map(|&value| {
            let ty = self.f.ty(value);
            let above = u64::from(ty.bits() - width);
            let (op, bits) = match left {
                Form::Upper => (Op::LShr, above),
                Form::Counted => (Op::ISub, above),
                _ => (Op::And, (1 << width) - 1),
            };
            let bits = self.constant(ty, bits);
            self.ins(op, &[value, bits], ty)
        });
        let settled: Values = settled.collect();
        self.replace(id, settled)
    }

    /// Replaces the value of an id by another one of the same types.
    fn replace(&mut self, id: u32, values: Values) -> Result<()> {
        let meaning = self.index.get(id as usize).and_then(|at| at.checked_sub(1));
        match meaning.and_then(|at| self.meanings.get_mut(at as usize)) {
            Some(IdMeaning::Value(_, old, _)) => {
                *old = values;
                Ok(())
            }
            _ => Err(LowerError::internal("a value without a place")),
        }
    }

    fn store_odd(&mut self, pointer: Value, id: u32, width: u32) -> Result<()> {
        let values = self.value(id)?;
        for (number, &value) in values.iter().enumerate() {
            let ty = self.f.ty(value);
            let (piece, count) = pieces(ty, width);
            for i in 0..count {
                let offset = number as u32 * ty.size() + i;
                let address = self.offset(pointer, offset.into());
                let by = self.constant(ty, u64::from(i * 8));
                let part = self.ins(Op::LShr, &[value, by], ty);
                let part = self.resize(part, piece, false);
                let (align, volatile) = (1, false);
                self.effect(Op::Store { align, volatile }, &[address, part]);
            }
        }
        Ok(())
    }

    fn load_odd(&mut self, pointer: Value, ty: TyId, width: u32) -> Result<Values> {
        let (scalar, n) = self.vector_of(ty)?;
        let mut out = Values::new();
        for number in 0..n as u32 {
            let (piece, count) = pieces(scalar, width);
            let mut sum = self.constant(scalar, 0);
            for i in 0..count {
                let address = self.offset(pointer, (number * scalar.size() + i).into());
                let (align, volatile) = (1, false);
                let load = self.ins_many(Op::Load { align, volatile }, &[address], &[piece]);
                let Some(&part) = load.first() else {
                    return bad("a load of nothing");
                };
                let part = self.resize(part, scalar, false);
                let by = self.constant(scalar, u64::from(i * 8));
                let part = self.ins(Op::Shl, &[part, by], scalar);
                sum = self.ins(Op::Or, &[sum, part], scalar);
            }
            let mask = self.constant(scalar, (1 << width) - 1);
            out.push(self.ins(Op::And, &[sum, mask], scalar));
        }
        Ok(out)
    }

    /// Translates bit casts from or to integers of odd widths, or vectors of Bool, which are the
    /// bits of an integer. Returns false for others.
    fn bitcast_odd(&mut self, inst: &Instruction, ty: TyId) -> Result<bool> {
        let from_ty = self.type_of(inst.word(2)?)?;
        let types = &self.p.types;
        let (Some((from, n)), Some((to, m))) = (types.vector(from_ty), types.vector(ty)) else {
            return Ok(false);
        };
        let width = |ty: TyId, scalar: Type| types.odd_width(ty).unwrap_or(scalar.bits());
        let (from_width, to_width) = (width(from_ty, from), width(ty, to));
        let odd = types.odd_width(from_ty).or(types.odd_width(ty)).is_some();
        if !odd && (from == Type::Bool) == (to == Type::Bool) {
            return Ok(false);
        }
        if from_width * n != to_width * m {
            return bad("a bit cast between types of different size");
        }
        if from_width * n > 64 {
            return unsupported("a bit cast of more than 64 bits of such a width");
        }
        // The first component has the lowest bits.
        let mut whole = self.constant(Type::I64, 0);
        for (i, &value) in self.value(inst.word(2)?)?.iter().enumerate() {
            let bits = match from {
                Type::Bool => self.ins(Op::ZExt, &[value], Type::I64),
                _ => {
                    let int = from.as_int().unwrap_or(Type::I64);
                    let bits = self.cast_scalar(value, int)?;
                    self.resize(bits, Type::I64, false)
                }
            };
            let by = self.constant(Type::I64, i as u64 * u64::from(from_width));
            let bits = self.ins(Op::Shl, &[bits, by], Type::I64);
            whole = self.ins(Op::Or, &[whole, bits], Type::I64);
        }
        let mut out = Values::new();
        for i in 0..m {
            let by = self.constant(Type::I64, u64::from(i * to_width));
            let bits = self.ins(Op::LShr, &[whole, by], Type::I64);
            let mask = self.constant(Type::I64, u64::MAX >> (64 - to_width));
            let bits = self.ins(Op::And, &[bits, mask], Type::I64);
            out.push(match to {
                Type::Bool => self.to_bool(bits),
                _ => {
                    let bits = self.resize(bits, to.as_int().unwrap_or(Type::I64), false);
                    self.cast_scalar(bits, to)?
                }
            });
        }
        self.set(inst.word(1)?, ty, out)?;
        Ok(true)
    }
}

/// Returns the type and the number of pieces in which a value of that width is stored.
fn pieces(held: Type, width: u32) -> (Type, u32) {
    let bytes = width.div_ceil(8);
    if bytes == held.size() {
        (held, 1)
    } else {
        (Type::I8, bytes)
    }
}
