//! Reads the instructions that work scalar by scalar: arithmetic, comparison, selection,
//! conversion.

use super::body::{bad, Body};
use super::types::TyId;
use super::words::Instruction;
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::{FpFlags, Values};
use crate::ir::op::{FloatCond, IntCond, Op, Rounding};
use crate::ir::types::Type;
use spirv::{Decoration, Op as S};

/// The class of type that an operation requires of its operands.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Int,
    Float,
    Bool,
}

impl Class {
    fn has(self, ty: Type) -> bool {
        match self {
            Self::Int => ty.is_int(),
            Self::Float => ty.is_float(),
            Self::Bool => ty == Type::Bool,
        }
    }
}

/// Returns the operation, the class of its operands and their number, for instructions whose
/// operands have the result's type.
fn same_type(op: S) -> Option<(Op, Class, usize)> {
    use Class::{Bool, Float, Int};
    Some(match op {
        S::IAdd => (Op::IAdd, Int, 2),
        S::ISub => (Op::ISub, Int, 2),
        S::IMul => (Op::IMul, Int, 2),
        S::SDiv => (Op::SDiv, Int, 2),
        S::UDiv => (Op::UDiv, Int, 2),
        S::SRem => (Op::SRem, Int, 2),
        S::UMod => (Op::URem, Int, 2),
        S::SNegate => (Op::INeg, Int, 1),
        S::BitwiseAnd => (Op::And, Int, 2),
        S::BitwiseOr => (Op::Or, Int, 2),
        S::BitwiseXor => (Op::Xor, Int, 2),
        S::Not => (Op::Not, Int, 1),
        S::BitReverse => (Op::BitReverse, Int, 1),
        S::FAdd => (Op::FAdd, Float, 2),
        S::FSub => (Op::FSub, Float, 2),
        S::FMul => (Op::FMul, Float, 2),
        S::FDiv => (Op::FDiv, Float, 2),
        S::FRem => (Op::FRem, Float, 2),
        S::FNegate => (Op::FNeg, Float, 1),
        S::LogicalAnd => (Op::And, Bool, 2),
        S::LogicalOr => (Op::Or, Bool, 2),
        S::LogicalNotEqual => (Op::Xor, Bool, 2),
        S::LogicalNot => (Op::Not, Bool, 1),
        _ => return None,
    })
}

fn compare(op: S) -> Option<Op> {
    use FloatCond::*;
    use IntCond::*;
    Some(match op {
        S::IEqual => Op::ICmp(Eq),
        S::INotEqual => Op::ICmp(Ne),
        S::UGreaterThan => Op::ICmp(IntCond::Ugt),
        S::UGreaterThanEqual => Op::ICmp(IntCond::Uge),
        S::ULessThan => Op::ICmp(IntCond::Ult),
        S::ULessThanEqual => Op::ICmp(IntCond::Ule),
        S::SGreaterThan => Op::ICmp(Sgt),
        S::SGreaterThanEqual => Op::ICmp(Sge),
        S::SLessThan => Op::ICmp(Slt),
        S::SLessThanEqual => Op::ICmp(Sle),
        S::FOrdEqual => Op::FCmp(Oeq),
        S::FUnordEqual => Op::FCmp(Ueq),
        S::FOrdNotEqual | S::LessOrGreater => Op::FCmp(One),
        S::FUnordNotEqual => Op::FCmp(Une),
        S::FOrdLessThan => Op::FCmp(Olt),
        S::FUnordLessThan => Op::FCmp(FloatCond::Ult),
        S::FOrdGreaterThan => Op::FCmp(Ogt),
        S::FUnordGreaterThan => Op::FCmp(FloatCond::Ugt),
        S::FOrdLessThanEqual => Op::FCmp(Ole),
        S::FUnordLessThanEqual => Op::FCmp(FloatCond::Ule),
        S::FOrdGreaterThanEqual => Op::FCmp(Oge),
        S::FUnordGreaterThanEqual => Op::FCmp(FloatCond::Uge),
        S::Ordered => Op::FCmp(Ord),
        S::Unordered => Op::FCmp(Uno),
        _ => return None,
    })
}

impl Body<'_, '_> {
    /// Returns the type and id of an instruction's result.
    pub fn result(&self, inst: &Instruction) -> Result<(TyId, u32)> {
        Ok((self.p.ty(inst.word(0)?)?, inst.word(1)?))
    }

    /// Returns the scalar type and component count of a result that must be a scalar or vector.
    pub fn vector_of(&self, ty: TyId) -> Result<(Type, usize)> {
        let (scalar, n) = self
            .p
            .types
            .vector(ty)
            .ok_or_else(|| LowerError::invalid("its result type is not a scalar or vector"))?;
        Ok((scalar, n as usize))
    }

    /// Applies a function to each lane of operands that all have the result's type.
    pub fn map1(
        &mut self,
        inst: &Instruction,
        at: usize,
        f: impl Fn(&mut Self, Value) -> Value,
    ) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (_, n) = self.vector_of(ty)?;
        let (args, _) = self.uniform(inst.word(at)?)?;
        if args.len() != n {
            return bad("its operand has another number of components");
        }
        let values = args.iter().map(|&a| f(self, a)).collect();
        self.set(id, ty, values)
    }

    /// Reads an arithmetic instruction. Returns false for others.
    pub(super) fn arith_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        if let Some((kir, class, count)) = same_type(op) {
            let (ty, id) = self.result(inst)?;
            let (scalar, n) = self.vector_of(ty)?;
            if !class.has(scalar) {
                return bad("its result type does not fit");
            }
            if class == Class::Float {
                self.fp = self.fp_of(id);
            }
            let a = self.lanes(inst.word(2)?, scalar, n)?;
            let b = if count == 2 {
                self.lanes(inst.word(3)?, scalar, n)?
            } else {
                Values::new()
            };
            let mut out = Values::with_capacity(n);
            for (i, &x) in a.iter().enumerate() {
                out.push(match b.get(i) {
                    Some(&y) if kir == Op::FRem => self.remainder(x, y, scalar)?,
                    Some(&y) => self.ins(kir, &[x, y], scalar),
                    None => self.ins(kir, &[x], scalar),
                });
            }
            self.set(id, ty, out)?;
            return Ok(true);
        }
        if let Some(kir) = compare(op) {
            let (ty, id) = self.result(inst)?;
            let (a, scalar) = self.uniform(inst.word(2)?)?;
            let b = self.lanes(inst.word(3)?, scalar, a.len())?;
            let fits = match kir {
                Op::ICmp(IntCond::Eq | IntCond::Ne) => !scalar.is_float() && scalar != Type::Handle,
                Op::ICmp(_) => scalar.is_int() || scalar.is_ptr(),
                _ => scalar.is_float(),
            };
            if !fits {
                return bad("its operands have the wrong type");
            }
            if scalar.is_float() {
                self.fp = FpFlags(self.fp_of(id).0 & !FpFlags::CONTRACT);
            }
            let out = a
                .iter()
                .zip(&b)
                .map(|(&x, &y)| self.ins(kir, &[x, y], Type::Bool))
                .collect();
            self.set(id, ty, out)?;
            return Ok(true);
        }
        match op {
            S::LogicalEqual => {
                let (ty, id) = self.result(inst)?;
                let (_, n) = self.vector_of(ty)?;
                let (a, b) = (
                    self.lanes(inst.word(2)?, Type::Bool, n)?,
                    self.lanes(inst.word(3)?, Type::Bool, n)?,
                );
                let out = a
                    .iter()
                    .zip(&b)
                    .map(|(&x, &y)| self.ins(Op::ICmp(IntCond::Eq), &[x, y], Type::Bool));
                let out = out.collect();
                self.set(id, ty, out)?;
            }
            S::ShiftLeftLogical | S::ShiftRightLogical | S::ShiftRightArithmetic => {
                let kir = match op {
                    S::ShiftLeftLogical => Op::Shl,
                    S::ShiftRightLogical => Op::LShr,
                    _ => Op::AShr,
                };
                let (ty, id) = self.result(inst)?;
                let (scalar, n) = self.vector_of(ty)?;
                let a = self.lanes(inst.word(2)?, scalar, n)?;
                let (b, amount) = self.uniform(inst.word(3)?)?;
                if !scalar.is_int() || !amount.is_int() || b.len() != n {
                    return bad("its operands have the wrong type");
                }
                let mut out = Values::new();
                for (&x, &y) in a.iter().zip(&b) {
                    let y = self.resize(y, scalar, false);
                    out.push(self.ins(kir, &[x, y], scalar));
                }
                self.set(id, ty, out)?;
            }
            S::SMod | S::FMod => {
                let (ty, id) = self.result(inst)?;
                let (scalar, n) = self.vector_of(ty)?;
                let (a, b) = (
                    self.lanes(inst.word(2)?, scalar, n)?,
                    self.lanes(inst.word(3)?, scalar, n)?,
                );
                let float = op == S::FMod;
                if !(if float {
                    scalar.is_float()
                } else {
                    scalar.is_int()
                }) {
                    return bad("its result type does not fit");
                }
                let mut out = Values::new();
                for (&x, &y) in a.iter().zip(&b) {
                    out.push(self.modulo(x, y, scalar, float)?);
                }
                self.set(id, ty, out)?;
            }
            S::IAddCarry | S::ISubBorrow | S::UMulExtended | S::SMulExtended => {
                self.extended(inst, op)?
            }
            S::VectorTimesScalar => {
                let (ty, id) = self.result(inst)?;
                let (scalar, n) = self.vector_of(ty)?;
                self.fp = self.fp_of(id);
                let a = self.lanes(inst.word(2)?, scalar, n)?;
                let b = self.scalar_of(inst.word(3)?, scalar)?;
                if !scalar.is_float() {
                    return bad("its result type does not fit");
                }
                let out = a
                    .iter()
                    .map(|&x| self.ins(Op::FMul, &[x, b], scalar))
                    .collect();
                self.set(id, ty, out)?;
            }
            S::Dot => {
                let (ty, id) = self.result(inst)?;
                self.fp = self.fp_of(id);
                let (a, scalar) = self.floats(inst.word(2)?)?;
                let (b, other) = self.floats(inst.word(3)?)?;
                if !scalar.is_float() || scalar != other || a.len() != b.len() {
                    return bad("its operands have the wrong type");
                }
                let value = self.dot(&a, &b, scalar);
                self.set_floats(id, ty, [value].into_iter().collect())?;
            }
            S::IsNan | S::IsInf | S::IsFinite | S::IsNormal | S::SignBitSet => {
                let (_, scalar) = self.uniform(inst.word(2)?)?;
                if !scalar.is_float() {
                    return bad("its operand is not of a float type");
                }
                self.map1(inst, 2, |b, x| b.classify(op, x, scalar))?;
            }
            S::Any | S::All => {
                let (ty, id) = self.result(inst)?;
                let (values, scalar) = self.uniform(inst.word(2)?)?;
                let mut result = None;
                for v in values {
                    // LLVM's target applies these to integer vectors; the sign bit counts, as in OpenCL C.
                    let v = match scalar {
                        Type::Bool => v,
                        t if t.is_int() => self.sign_bit(v),
                        _ => return bad("its operand is not a vector of Bool"),
                    };
                    let kir = if op == S::Any { Op::Or } else { Op::And };
                    result = Some(match result {
                        Some(r) => self.ins(kir, &[r, v], Type::Bool),
                        None => v,
                    });
                }
                let value = result.ok_or_else(|| LowerError::invalid("an empty vector"))?;
                self.set(id, ty, [value].into_iter().collect())?;
            }
            S::Select => self.select_inst(inst)?,
            S::BitCount => {
                let (ty, id) = self.result(inst)?;
                let (scalar, n) = self.vector_of(ty)?;
                let (a, from) = self.uniform(inst.word(2)?)?;
                if a.len() != n || !from.is_int() || !scalar.is_int() {
                    return bad("its operands have the wrong type");
                }
                let mut out = Values::new();
                for x in a {
                    let count = self.ins(Op::Popcount, &[x], from);
                    out.push(self.resize(count, scalar, false));
                }
                self.set(id, ty, out)?;
            }
            S::BitFieldInsert | S::BitFieldSExtract | S::BitFieldUExtract => {
                self.bit_field(inst, op)?
            }
            S::UConvert
            | S::SConvert
            | S::SatConvertSToU
            | S::SatConvertUToS
            | S::FConvert
            | S::ConvertFToU
            | S::ConvertFToS
            | S::ConvertSToF
            | S::ConvertUToF
            | S::QuantizeToF16 => self.convert(inst, op)?,
            S::SDot | S::UDot | S::SUDot | S::SDotAccSat | S::UDotAccSat | S::SUDotAccSat => {
                self.integer_dot(inst, op)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Converts an integer to another width.
    pub fn resize(&mut self, value: Value, to: Type, signed: bool) -> Value {
        let from = self.f.ty(value);
        if from == to || !from.is_int() || !to.is_int() {
            return value;
        }
        if let Some(bits) = self.f.as_const(value) {
            let bits = if signed {
                super::consts::sext(bits, from.bits()) as u64
            } else {
                bits
            };
            return self.constant(to, bits);
        }
        let op = match (to.bits() > from.bits(), signed) {
            (false, _) => Op::Trunc,
            (true, true) => Op::SExt,
            (true, false) => Op::ZExt,
        };
        self.ins(op, &[value], to)
    }

    /// Returns a Bool: whether the sign bit of an integer is set.
    pub fn sign_bit(&mut self, value: Value) -> Value {
        let zero = self.constant(self.f.ty(value), 0);
        self.ins(Op::ICmp(IntCond::Slt), &[value, zero], Type::Bool)
    }

    /// Computes the sum of the products of components.
    pub fn dot(&mut self, a: &[Value], b: &[Value], ty: Type) -> Value {
        let mut sum = None;
        for (&x, &y) in a.iter().zip(b) {
            let product = self.ins(Op::FMul, &[x, y], ty);
            sum = Some(match sum {
                Some(s) => self.ins(Op::FAdd, &[s, product], ty),
                None => product,
            });
        }
        match sum {
            Some(s) => s,
            None => self.float(ty, 0.0),
        }
    }

    /// Computes a floating-point remainder exactly, as the built-in function requires; the
    /// instructions of devices compute it from a rounded quotient.
    fn remainder(&mut self, x: Value, y: Value, ty: Type) -> Result<Value> {
        let letters = super::opencl_std::mangle(ty, false)?.repeat(2);
        match self
            .call_name(&format!("_Z4fmod{letters}"), &[x, y], &[ty])?
            .as_slice()
        {
            &[value] => Ok(value),
            _ => bad("it has no result"),
        }
    }

    fn modulo(&mut self, x: Value, y: Value, ty: Type, float: bool) -> Result<Value> {
        if float {
            let r = self.remainder(x, y, ty)?;
            let zero = self.float(ty, 0.0);
            let some = self.ins(Op::FCmp(FloatCond::One), &[r, zero], Type::Bool);
            let rneg = self.ins(Op::FCmp(FloatCond::Olt), &[r, zero], Type::Bool);
            let yneg = self.ins(Op::FCmp(FloatCond::Olt), &[y, zero], Type::Bool);
            let differ = self.ins(Op::Xor, &[rneg, yneg], Type::Bool);
            let fix = self.ins(Op::And, &[some, differ], Type::Bool);
            let sum = self.ins(Op::FAdd, &[r, y], ty);
            return Ok(self.select(fix, sum, r));
        }
        let r = self.ins(Op::SRem, &[x, y], ty);
        let zero = self.constant(ty, 0);
        let some = self.ins(Op::ICmp(IntCond::Ne), &[r, zero], Type::Bool);
        let signs = self.ins(Op::Xor, &[r, y], ty);
        let differ = self.sign_bit(signs);
        let fix = self.ins(Op::And, &[some, differ], Type::Bool);
        let sum = self.ins(Op::IAdd, &[r, y], ty);
        Ok(self.select(fix, sum, r))
    }

    fn extended(&mut self, inst: &Instruction, op: S) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (a, scalar) = self.uniform(inst.word(2)?)?;
        let b = self.lanes(inst.word(3)?, scalar, a.len())?;
        if !scalar.is_int() {
            return bad("its operands are not integers");
        }
        let (mut low, mut high) = (Values::new(), Values::new());
        for (&x, &y) in a.iter().zip(&b) {
            let (l, h) = match op {
                S::IAddCarry => {
                    let sum = self.ins(Op::IAdd, &[x, y], scalar);
                    let carry = self.ins(Op::ICmp(IntCond::Ult), &[sum, x], Type::Bool);
                    (sum, self.ins(Op::ZExt, &[carry], scalar))
                }
                S::ISubBorrow => {
                    let borrow = self.ins(Op::ICmp(IntCond::Ult), &[x, y], Type::Bool);
                    (
                        self.ins(Op::ISub, &[x, y], scalar),
                        self.ins(Op::ZExt, &[borrow], scalar),
                    )
                }
                _ => {
                    let hi = if op == S::SMulExtended {
                        Op::SMulHi
                    } else {
                        Op::UMulHi
                    };
                    (
                        self.ins(Op::IMul, &[x, y], scalar),
                        self.ins(hi, &[x, y], scalar),
                    )
                }
            };
            low.push(l);
            high.push(h);
        }
        low.extend(high);
        self.set(id, ty, low)
    }

    /// Translates IsNan, IsInf and the other classifications of floats. The result is Bool.
    pub fn classify(&mut self, op: S, x: Value, ty: Type) -> Value {
        let inf = self.float(ty, f64::INFINITY);
        match op {
            S::IsNan => self.ins(Op::FCmp(FloatCond::Uno), &[x, x], Type::Bool),
            S::IsInf => {
                let abs = self.ins(Op::FAbs, &[x], ty);
                self.ins(Op::FCmp(FloatCond::Oeq), &[abs, inf], Type::Bool)
            }
            S::IsFinite => {
                let abs = self.ins(Op::FAbs, &[x], ty);
                self.ins(Op::FCmp(FloatCond::Olt), &[abs, inf], Type::Bool)
            }
            S::IsNormal => {
                // On the bits, so that a device that flushes subnormals does not matter.
                let int = ty.as_int().unwrap_or(Type::I32);
                let (frac, exp) = match ty {
                    Type::F16 => (10, 0x1f),
                    Type::F32 => (23, 0xff),
                    _ => (52, 0x7ff),
                };
                let bits = self.ins(Op::Bitcast, &[x], int);
                let (shift, mask) = (self.constant(int, frac), self.constant(int, exp));
                let bits = self.ins(Op::LShr, &[bits, shift], int);
                let bits = self.ins(Op::And, &[bits, mask], int);
                let one = self.constant(int, 1);
                let bits = self.ins(Op::ISub, &[bits, one], int);
                let limit = self.constant(int, exp - 1);
                self.ins(Op::ICmp(IntCond::Ult), &[bits, limit], Type::Bool)
            }
            _ => {
                let bits = self.ins(Op::Bitcast, &[x], ty.as_int().unwrap_or(Type::I32));
                self.sign_bit(bits)
            }
        }
    }

    fn select_inst(&mut self, inst: &Instruction) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (cond, scalar) = self.uniform(inst.word(2)?)?;
        if scalar != Type::Bool {
            return bad("its condition is not Bool");
        }
        let (a, b) = (self.value(inst.word(3)?)?, self.value(inst.word(4)?)?);
        if a.len() != b.len() || cond.len() != 1 && cond.len() != a.len() {
            return bad("its operands have different numbers of components");
        }
        let mut out = Values::new();
        for (i, (&x, &y)) in a.iter().zip(&b).enumerate() {
            if self.f.ty(x) != self.f.ty(y) {
                return bad("its operands have different types");
            }
            let Some(&c) = cond.get(if cond.len() == 1 { 0 } else { i }) else {
                return bad("no condition");
            };
            out.push(self.select(c, x, y));
        }
        self.set(id, ty, out)
    }

    fn bit_field(&mut self, inst: &Instruction, op: S) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (scalar, n) = self.vector_of(ty)?;
        if !scalar.is_int() {
            return bad("its result type is not an integer");
        }
        let base = self.lanes(inst.word(2)?, scalar, n)?;
        let insert = op == S::BitFieldInsert;
        let (part, at) = if insert {
            (self.lanes(inst.word(3)?, scalar, n)?, 4)
        } else {
            (Values::new(), 3)
        };
        let (offset, count) = (
            self.scalar(inst.word(at)?)?,
            self.scalar(inst.word(at + 1)?)?,
        );
        if !self.f.ty(offset).is_int() || !self.f.ty(count).is_int() {
            return bad("offset or count is not an integer");
        }
        let (offset, count) = (
            self.resize(offset, scalar, false),
            self.resize(count, scalar, false),
        );
        let width = self.constant(scalar, scalar.bits().into());
        let (zero, all) = (self.constant(scalar, 0), self.constant(scalar, u64::MAX));
        let empty = self.ins(Op::ICmp(IntCond::Eq), &[count, zero], Type::Bool);
        let unused = self.ins(Op::ISub, &[width, count], scalar);
        let mut out = Values::new();
        for (i, &x) in base.iter().enumerate() {
            out.push(match part.get(i) {
                Some(&y) => {
                    let mask = self.ins(Op::LShr, &[all, unused], scalar);
                    let mask = self.ins(Op::Shl, &[mask, offset], scalar);
                    let moved = self.ins(Op::Shl, &[y, offset], scalar);
                    let diff = self.ins(Op::Xor, &[moved, x], scalar);
                    let diff = self.ins(Op::And, &[diff, mask], scalar);
                    let value = self.ins(Op::Xor, &[x, diff], scalar);
                    self.select(empty, x, value)
                }
                None => {
                    let high = self.ins(Op::ISub, &[unused, offset], scalar);
                    let up = self.ins(Op::Shl, &[x, high], scalar);
                    let down = if op == S::BitFieldSExtract {
                        Op::AShr
                    } else {
                        Op::LShr
                    };
                    let value = self.ins(down, &[up, unused], scalar);
                    self.select(empty, zero, value)
                }
            });
        }
        self.set(id, ty, out)
    }

    /// Returns the rounding mode that an id is decorated with.
    pub(super) fn rounding(&self, id: u32) -> Result<Option<Rounding>> {
        Ok(
            match self.p.decorations.word(id, Decoration::FPRoundingMode) {
                None => None,
                Some(mode) => Some(rounding_mode(mode)?),
            },
        )
    }

    fn convert(&mut self, inst: &Instruction, op: S) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (mut to, n) = self.vector_of(ty)?;
        if self.p.types.is_bfloat(ty) {
            to = Type::F32;
        }
        let (args, from) = self.floats(inst.word(2)?)?;
        if args.len() != n {
            return bad("its operand has another number of components");
        }
        let sat = self
            .p
            .decorations
            .get(id, Decoration::SaturatedConversion)
            .is_some();
        let mode = self.rounding(id)?;
        let near = mode.unwrap_or(Rounding::Rte);
        let zero = mode.unwrap_or(Rounding::Rtz);
        let (from_ok, to_ok) = match op {
            S::UConvert | S::SConvert | S::SatConvertSToU | S::SatConvertUToS => {
                (from.is_int(), to.is_int())
            }
            S::FConvert | S::QuantizeToF16 => (from.is_float(), to.is_float()),
            S::ConvertFToU | S::ConvertFToS => (from.is_float(), to.is_int()),
            _ => (from.is_int(), to.is_float()),
        };
        if !from_ok || !to_ok {
            return bad("it does not convert between these types");
        }
        let mut out = Values::with_capacity(n);
        for x in args {
            out.push(match op {
                S::UConvert if sat => self.clamp_unsigned(x, to),
                S::SConvert if sat => self.clamp_signed(x, to),
                S::UConvert => self.resize(x, to, false),
                S::SConvert => self.resize(x, to, true),
                S::SatConvertSToU => self.sat_signed_to_unsigned(x, to),
                S::SatConvertUToS => self.sat_unsigned_to_signed(x, to),
                S::FConvert if from == to => x,
                S::FConvert => self.ins(Op::FConv(near), &[x], to),
                S::QuantizeToF16 if from == Type::F16 => x,
                S::QuantizeToF16 => {
                    let half = self.ins(Op::FConv(Rounding::Rte), &[x], Type::F16);
                    self.ins(Op::FConv(Rounding::Rte), &[half], to)
                }
                S::ConvertFToU => self.ins(
                    Op::FToU {
                        rounding: zero,
                        sat,
                    },
                    &[x],
                    to,
                ),
                S::ConvertFToS => self.ins(
                    Op::FToS {
                        rounding: zero,
                        sat,
                    },
                    &[x],
                    to,
                ),
                S::ConvertSToF => self.ins(Op::SToF(near), &[x], to),
                _ => self.ins(Op::UToF(near), &[x], to),
            });
        }
        self.set_floats(id, ty, out)
    }

    /// Clamps a signed integer to a narrower signed type.
    pub fn clamp_signed(&mut self, x: Value, to: Type) -> Value {
        let from = self.f.ty(x);
        if to.bits() >= from.bits() {
            return self.resize(x, to, true);
        }
        let max = (1u64 << (to.bits() - 1)) - 1;
        let (min, max) = (self.constant(from, !max), self.constant(from, max));
        let x = self.ins(Op::SMax, &[x, min], from);
        let x = self.ins(Op::SMin, &[x, max], from);
        self.resize(x, to, true)
    }

    /// Clamps an unsigned integer to a narrower unsigned type.
    pub fn clamp_unsigned(&mut self, x: Value, to: Type) -> Value {
        let from = self.f.ty(x);
        if to.bits() >= from.bits() {
            return self.resize(x, to, false);
        }
        let max = self.constant(from, to.mask());
        let x = self.ins(Op::UMin, &[x, max], from);
        self.resize(x, to, false)
    }

    /// Emits a saturated conversion of a signed to an unsigned integer.
    pub fn sat_signed_to_unsigned(&mut self, x: Value, to: Type) -> Value {
        let from = self.f.ty(x);
        let zero = self.constant(from, 0);
        let x = self.ins(Op::SMax, &[x, zero], from);
        self.clamp_unsigned(x, to)
    }

    /// Emits a saturated conversion of an unsigned to a signed integer.
    pub fn sat_unsigned_to_signed(&mut self, x: Value, to: Type) -> Value {
        let from = self.f.ty(x);
        if to.bits() > from.bits() {
            return self.resize(x, to, false);
        }
        let max = self.constant(from, to.mask() >> 1);
        let x = self.ins(Op::UMin, &[x, max], from);
        self.resize(x, to, false)
    }

    fn integer_dot(&mut self, inst: &Instruction, op: S) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (to, _) = self.vector_of(ty)?;
        let acc = matches!(op, S::SDotAccSat | S::UDotAccSat | S::SUDotAccSat);
        let a_signed = !matches!(op, S::UDot | S::UDotAccSat);
        let b_signed = matches!(op, S::SDot | S::SDotAccSat);
        if !to.is_int() {
            return bad("its result type is not an integer");
        }
        let packed = self.packed_dot(inst, op)?;
        let (a, b) = (
            self.dot_lanes(inst.word(2)?)?,
            self.dot_lanes(inst.word(3)?)?,
        );
        if a.len() != b.len() {
            return bad("its operands have different numbers of components");
        }
        // Wide enough that no sum of products overflows; 64-bit sums wrap.
        let wide = if to == Type::I64 || self.f.ty(a[0]) == Type::I32 {
            Type::I64
        } else {
            Type::I32
        };
        let wide = if acc { Type::I64 } else { wide };
        let mut sum = packed.map(|sum| self.resize(sum, wide, a_signed));
        let lanes = if packed.is_some() { 0 } else { a.len() };
        for (&x, &y) in a.iter().zip(&b).take(lanes) {
            let (x, y) = (
                self.resize(x, wide, a_signed),
                self.resize(y, wide, b_signed),
            );
            let product = self.ins(Op::IMul, &[x, y], wide);
            sum = Some(match sum {
                Some(s) => self.ins(Op::IAdd, &[s, product], wide),
                None => product,
            });
        }
        let mut value = sum.ok_or_else(|| LowerError::invalid("an empty vector"))?;
        if acc {
            let plus = self.scalar_of(inst.word(4)?, to)?;
            if to == Type::I64 {
                let op = if a_signed {
                    super::opencl_std::SatOp::SAdd
                } else {
                    super::opencl_std::SatOp::UAdd
                };
                value = self.saturating(op, value, plus);
            } else {
                let plus = self.resize(plus, wide, a_signed);
                value = self.ins(Op::IAdd, &[value, plus], wide);
                value = if a_signed {
                    self.clamp_signed(value, to)
                } else {
                    self.clamp_unsigned(value, to)
                };
            }
        }
        let value = self.resize(value, to, a_signed);
        self.set(id, ty, [value].into_iter().collect())
    }

    /// Computes the dot product of two packed operands, or returns `None` if they are not packed.
    fn packed_dot(&mut self, inst: &Instruction, op: S) -> Result<Option<Value>> {
        let (a, a_ty) = self.uniform(inst.word(2)?)?;
        let (b, b_ty) = self.uniform(inst.word(3)?)?;
        let (&[x], &[y], Type::I32, Type::I32) = (a.as_slice(), b.as_slice(), a_ty, b_ty) else {
            return Ok(None);
        };
        let dot = match op {
            S::SDot | S::SDotAccSat => Op::SDot4,
            S::UDot | S::UDotAccSat => Op::UDot4,
            _ => Op::SUDot4,
        };
        Ok(Some(self.ins(dot, &[x, y], Type::I32)))
    }

    /// Returns the components of a dot-product operand; a 32-bit integer holds four of 8 bits.
    fn dot_lanes(&mut self, id: u32) -> Result<Values> {
        let (values, ty) = self.uniform(id)?;
        match (values.as_slice(), ty) {
            (&[x], Type::I32) => {
                let mut out = Values::new();
                for i in 0..4 {
                    let shift = self.constant(Type::I32, i * 8);
                    let part = self.ins(Op::LShr, &[x, shift], Type::I32);
                    out.push(self.ins(Op::Trunc, &[part], Type::I8));
                }
                Ok(out)
            }
            (_, ty) if ty.is_int() && !values.is_empty() => Ok(values),
            _ => bad("its operands are not integer vectors"),
        }
    }
}

/// Returns the rounding mode that SPIR-V numbers `mode`.
pub(super) fn rounding_mode(mode: u32) -> Result<Rounding> {
    Ok(match mode {
        0 => Rounding::Rte,
        1 => Rounding::Rtz,
        2 => Rounding::Rtp,
        3 => Rounding::Rtn,
        _ => return bad(format!("rounding mode {mode}")),
    })
}
