//! Translates bfloat16, the upper half of a 32-bit float: its type and conversions
//! (SPV_KHR_bfloat16), and conversions to and from integers that hold its bits
//! (SPV_INTEL_bfloat16_conversion, cl_intel_bfloat16_conversions).
//!
//! A value is held as the integer of its bits, so that memory, composites and selections need
//! nothing else. What computes with it computes with floats of 32 bits. Results are rounded to
//! nearest even; a NaN stays one, and is quiet.

use super::body::{bad, unsupported, Body};
use super::types::TyId;
use super::words::Instruction;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{IntCond, Op, Rounding};
use crate::ir::types::Type;
use spirv::Op as S;

impl Body<'_, '_> {
    /// Translates a conversion of SPV_INTEL_bfloat16_conversion. Returns false if the instruction is
    /// none.
    pub(super) fn bfloat16_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        if !matches!(op, S::ConvertFToBF16INTEL | S::ConvertBF16ToFINTEL) {
            return Ok(false);
        }
        let (ty, id) = self.result(inst)?;
        self.bfloat16_conversion(ty, id, inst.word(2)?)?;
        Ok(true)
    }

    /// Converts floats to the bits of bfloat16 values, or back, as the type of the result demands.
    pub(super) fn bfloat16_conversion(&mut self, ty: TyId, id: u32, value: u32) -> Result<()> {
        let (to, n) = self.vector_of(ty)?;
        let (from, convert): (_, fn(&mut Self, Value) -> Value) = match to {
            Type::I16 => (Type::F32, Self::bfloat16_of_float),
            Type::F32 => (Type::I16, Self::float_of_bfloat16),
            _ => return bad("it does not convert between these types"),
        };
        let values = self.lanes(value, from, n)?;
        let out = values.iter().map(|&x| convert(self, x)).collect();
        self.set(id, ty, out)
    }

    /// Returns a value like [`uniform`](Self::uniform), bfloat16 values as floats of 32 bits.
    pub(super) fn floats(&mut self, id: u32) -> Result<(Values, Type)> {
        let (values, ty) = self.uniform(id)?;
        if !self.p.types.is_bfloat(self.type_of(id)?) {
            return Ok((values, ty));
        }
        let floats = values.iter().map(|&x| self.float_of_bfloat16(x));
        Ok((floats.collect(), Type::F32))
    }

    /// Sets a result, whose values are floats of 32 bits where its type is bfloat16.
    pub(super) fn set_floats(&mut self, id: u32, ty: TyId, mut values: Values) -> Result<()> {
        if self.p.types.is_bfloat(ty) {
            if !matches!(self.rounding(id)?, None | Some(Rounding::Rte)) {
                return unsupported("a conversion to bfloat16 that does not round to nearest even");
            }
            if values.iter().any(|&x| self.f.ty(x) != Type::F32) {
                return bad("its operands have the wrong type");
            }
            for x in &mut values {
                *x = self.bfloat16_of_float(*x);
            }
        }
        self.set(id, ty, values)
    }

    fn bfloat16_of_float(&mut self, x: Value) -> Value {
        const BITS: Type = Type::I32;
        let bits = self.ins(Op::Bitcast, &[x], BITS);
        let [half, one, most, quiet] =
            [16, 1, 0x7fff, 1 << 22].map(|constant| self.constant(BITS, constant));
        // The bits of NaNs are greater than those of infinity.
        let [all_but_sign, infinity] =
            [0x7fff_ffff, 0x7f80_0000].map(|constant| self.constant(BITS, constant));
        // Half a unit of the last place, and less by one where that is even.
        let upper = self.ins(Op::LShr, &[bits, half], BITS);
        let odd = self.ins(Op::And, &[upper, one], BITS);
        let rounding = self.ins(Op::IAdd, &[odd, most], BITS);
        let rounded = self.ins(Op::IAdd, &[bits, rounding], BITS);
        let quieted = self.ins(Op::Or, &[bits, quiet], BITS);
        let magnitude = self.ins(Op::And, &[bits, all_but_sign], BITS);
        let is_nan = self.ins(Op::ICmp(IntCond::Ugt), &[magnitude, infinity], Type::Bool);
        let bits = self.select(is_nan, quieted, rounded);
        let upper = self.ins(Op::LShr, &[bits, half], BITS);
        self.ins(Op::Trunc, &[upper], Type::I16)
    }

    fn float_of_bfloat16(&mut self, x: Value) -> Value {
        let bits = self.ins(Op::ZExt, &[x], Type::I32);
        let half = self.constant(Type::I32, 16);
        let bits = self.ins(Op::Shl, &[bits, half], Type::I32);
        self.ins(Op::Bitcast, &[bits], Type::F32)
    }
}
