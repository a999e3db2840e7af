//! Translates the OpenCL.std instruction set: to operations of KIR where they are exact and cheap,
//! otherwise to calls of library functions by the mangled name of the scalar OpenCL C built-in.

use super::body::{bad, Body};
use super::words::Instruction;
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::{FpFlags, Values};
use crate::ir::op::{FloatCond, IntCond, Op};
use crate::ir::types::Type;
use spirv::OpenclStd100Op as E;

/// Saturating operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SatOp {
    SAdd,
    UAdd,
    SSub,
    USub,
}

/// Returns the letters of a scalar type in mangled names, of signed integers unless `unsigned`.
pub(super) fn mangle(ty: Type, unsigned: bool) -> Result<&'static str> {
    Ok(match (ty, unsigned) {
        (Type::F16, _) => "Dh",
        (Type::F32, _) => "f",
        (Type::F64, _) => "d",
        (Type::I8, false) => "c",
        (Type::I8, true) => "h",
        (Type::I16, false) => "s",
        (Type::I16, true) => "t",
        (Type::I32, false) => "i",
        (Type::I32, true) => "j",
        (Type::I64, false) => "l",
        (Type::I64, true) => "m",
        _ => return bad("an operand of the wrong type"),
    })
}

impl Body<'_, '_> {
    /// Reads an instruction of the set OpenCL.std.
    pub(super) fn opencl_std(&mut self, inst: &Instruction) -> Result<()> {
        let number = inst.word(3)?;
        let Some(op) = E::from_u32(number) else {
            return bad(format!("OpenCL.std instruction {number}"));
        };
        self.extended_inst(inst, op).map_err(|e| {
            let tag = |what: String| format!("{op:?}: {what}");
            match e {
                LowerError::InvalidInput { function, what } => LowerError::InvalidInput {
                    function,
                    what: tag(what),
                },
                LowerError::Unsupported { function, what } => LowerError::Unsupported {
                    function,
                    what: tag(what),
                },
                e => e,
            }
        })
    }

    fn extended_inst(&mut self, inst: &Instruction, op: E) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        match op {
            E::vloadn | E::vload_half | E::vload_halfn | E::vloada_halfn => {
                return self.vload(inst, op)
            }
            E::vstoren
            | E::vstore_half
            | E::vstore_half_r
            | E::vstore_halfn
            | E::vstore_halfn_r
            | E::vstorea_halfn
            | E::vstorea_halfn_r => return self.vstore(inst, op),
            E::prefetch => return Ok(()),
            E::printf => return self.printf(inst),
            E::shuffle | E::shuffle2 => return self.shuffle(inst, op),
            E::fract | E::modf | E::sincos | E::frexp | E::lgamma_r | E::remquo => {
                return self.with_pointer(inst, op);
            }
            E::length
            | E::fast_length
            | E::normalize
            | E::fast_normalize
            | E::distance
            | E::fast_distance
            | E::cross => {
                return self.geometric(inst, op);
            }
            _ => {}
        }
        let (scalar, n) = self.vector_of(ty)?;
        self.fp = self.fp_of(id);
        // Operands: each has the result's number of components. One stands for all of them: LLVM's SPIR-V target leaves
        // the exponent of OpenCL C's `ldexp(float4, int)` a scalar.
        let mut operands: Vec<Values> = Vec::new();
        for &arg in inst.rest(4) {
            let (mut values, _) = self.uniform(arg)?;
            if let [one] = *values {
                values = std::iter::repeat_n(one, n).collect();
            }
            if values.len() != n {
                return bad(format!(
                    "%{arg} has another number of components than the result"
                ));
            }
            operands.push(values);
        }
        let mut out = Values::with_capacity(n);
        for i in 0..n {
            let args: Vec<Value> = operands.iter().filter_map(|o| o.get(i).copied()).collect();
            out.push(self.lane(op, &args, scalar, n > 1)?);
        }
        self.set(id, ty, out)
    }

    /// Translates one lane of an elementwise instruction.
    fn lane(&mut self, op: E, args: &[Value], ty: Type, vector: bool) -> Result<Value> {
        let arity = args.len();
        let arg = |i: usize| {
            args.get(i)
                .copied()
                .ok_or_else(|| LowerError::invalid("an operand is missing"))
        };
        let x = arg(0)?;
        let xt = self.f.ty(x);
        let all_same = args.iter().all(|&a| self.f.ty(a) == ty);
        let need = |ok: bool, count: usize| {
            if ok && all_same && arity == count {
                Ok(())
            } else {
                bad("its operands do not fit")
            }
        };
        let (float, int) = (ty.is_float(), ty.is_int());
        let unary = match op {
            E::fabs => Some((Op::FAbs, float)),
            E::floor => Some((Op::FFloor, float)),
            E::ceil => Some((Op::FCeil, float)),
            E::trunc => Some((Op::FTrunc, float)),
            E::rint => Some((Op::FRoundEven, float)),
            E::clz => Some((Op::Clz, int)),
            E::ctz => Some((Op::Ctz, int)),
            E::popcount => Some((Op::Popcount, int)),
            _ => None,
        };
        if let Some((kir, ok)) = unary {
            need(ok, 1)?;
            return Ok(self.ins(kir, &[x], ty));
        }
        let binary = match op {
            E::fmax | E::fmax_common => Some((Op::FMax, float)),
            E::fmin | E::fmin_common => Some((Op::FMin, float)),
            E::copysign => Some((Op::FCopySign, float)),
            E::s_max => Some((Op::SMax, int)),
            E::u_max => Some((Op::UMax, int)),
            E::s_min => Some((Op::SMin, int)),
            E::u_min => Some((Op::UMin, int)),
            E::s_mul_hi => Some((Op::SMulHi, int)),
            E::u_mul_hi => Some((Op::UMulHi, int)),
            E::s_mul24 | E::u_mul24 => Some((Op::IMul, int)),
            E::native_divide | E::half_divide => Some((Op::FDiv, float)),
            _ => None,
        };
        if let Some((kir, ok)) = binary {
            need(ok, 2)?;
            if op == E::native_divide {
                self.fp = FpFlags(self.fp.0 | FpFlags::ARCP);
            }
            let y = arg(1)?;
            return Ok(self.ins(kir, &[x, y], ty));
        }
        match op {
            E::native_recip | E::half_recip => {
                need(float, 1)?;
                let one = self.float(ty, 1.0);
                if op == E::native_recip {
                    self.fp = FpFlags(self.fp.0 | FpFlags::ARCP);
                }
                Ok(self.ins(Op::FDiv, &[one, x], ty))
            }
            E::mad => {
                need(float, 3)?;
                self.fp = FpFlags(self.fp.0 | FpFlags::CONTRACT);
                let product = self.ins(Op::FMul, &[x, arg(1)?], ty);
                Ok(self.ins(Op::FAdd, &[product, arg(2)?], ty))
            }
            E::fclamp => {
                need(float, 3)?;
                let low = self.ins(Op::FMax, &[x, arg(1)?], ty);
                Ok(self.ins(Op::FMin, &[low, arg(2)?], ty))
            }
            E::degrees | E::radians => {
                need(float, 1)?;
                let degrees = 180.0 / std::f64::consts::PI;
                let factor = if op == E::degrees {
                    degrees
                } else {
                    std::f64::consts::PI / 180.0
                };
                let factor = self.float(ty, factor);
                Ok(self.ins(Op::FMul, &[x, factor], ty))
            }
            E::mix => {
                need(float, 3)?;
                let span = self.ins(Op::FSub, &[arg(1)?, x], ty);
                let part = self.ins(Op::FMul, &[span, arg(2)?], ty);
                Ok(self.ins(Op::FAdd, &[x, part], ty))
            }
            E::step => {
                need(float, 2)?;
                let (zero, unit) = (self.float(ty, 0.0), self.float(ty, 1.0));
                let below = self.ins(Op::FCmp(FloatCond::Olt), &[arg(1)?, x], Type::Bool);
                Ok(self.select(below, zero, unit))
            }
            E::smoothstep => {
                need(float, 3)?;
                let (zero, unit) = (self.float(ty, 0.0), self.float(ty, 1.0));
                let (two, three) = (self.float(ty, 2.0), self.float(ty, 3.0));
                let above = self.ins(Op::FSub, &[arg(2)?, x], ty);
                let span = self.ins(Op::FSub, &[arg(1)?, x], ty);
                let t = self.ins(Op::FDiv, &[above, span], ty);
                let t = self.ins(Op::FMax, &[t, zero], ty);
                let t = self.ins(Op::FMin, &[t, unit], ty);
                let square = self.ins(Op::FMul, &[t, t], ty);
                let twice = self.ins(Op::FMul, &[two, t], ty);
                let rest = self.ins(Op::FSub, &[three, twice], ty);
                Ok(self.ins(Op::FMul, &[square, rest], ty))
            }
            E::sign => {
                need(float, 1)?;
                let (zero, unit, minus) = (
                    self.float(ty, 0.0),
                    self.float(ty, 1.0),
                    self.float(ty, -1.0),
                );
                let positive = self.ins(Op::FCmp(FloatCond::Ogt), &[x, zero], Type::Bool);
                let negative = self.ins(Op::FCmp(FloatCond::Olt), &[x, zero], Type::Bool);
                let nan = self.ins(Op::FCmp(FloatCond::Uno), &[x, x], Type::Bool);
                // A zero keeps its sign; NaN gives 0.
                let rest = self.select(nan, zero, x);
                let rest = self.select(negative, minus, rest);
                Ok(self.select(positive, unit, rest))
            }
            E::round => {
                need(float, 1)?;
                let whole = self.ins(Op::FTrunc, &[x], ty);
                let part = self.ins(Op::FSub, &[x, whole], ty);
                let part = self.ins(Op::FAbs, &[part], ty);
                let (half, zero, unit) = (
                    self.float(ty, 0.5),
                    self.float(ty, 0.0),
                    self.float(ty, 1.0),
                );
                let up = self.ins(Op::FCmp(FloatCond::Oge), &[part, half], Type::Bool);
                let step = self.select(up, unit, zero);
                let step = self.ins(Op::FCopySign, &[step, x], ty);
                let sum = self.ins(Op::FAdd, &[whole, step], ty);
                Ok(self.ins(Op::FCopySign, &[sum, x], ty))
            }
            E::fdim => {
                need(float, 2)?;
                let y = arg(1)?;
                let zero = self.float(ty, 0.0);
                let below = self.ins(Op::FCmp(FloatCond::Ole), &[x, y], Type::Bool);
                let diff = self.ins(Op::FSub, &[x, y], ty);
                Ok(self.select(below, zero, diff))
            }
            E::nan => {
                let (quiet, payload) = match ty {
                    Type::F16 => (0x7e00, 0x1ff),
                    Type::F32 => (0x7fc0_0000, 0x3f_ffff),
                    Type::F64 => (0x7ff8_0000_0000_0000, 0x7_ffff_ffff_ffff),
                    _ => return bad("its result type does not fit"),
                };
                if Some(xt) != ty.as_int() {
                    return bad("its operand does not fit");
                }
                let (quiet, payload) = (self.constant(xt, quiet), self.constant(xt, payload));
                let bits = self.ins(Op::And, &[x, payload], xt);
                let bits = self.ins(Op::Or, &[bits, quiet], xt);
                Ok(self.ins(Op::Bitcast, &[bits], ty))
            }
            E::s_abs => {
                need(int, 1)?;
                let minus = self.ins(Op::INeg, &[x], ty);
                Ok(self.ins(Op::SMax, &[x, minus], ty))
            }
            E::u_abs => {
                need(int, 1)?;
                Ok(x)
            }
            E::s_abs_diff | E::u_abs_diff => {
                need(int, 2)?;
                let y = arg(1)?;
                let (max, min) = if op == E::s_abs_diff {
                    (Op::SMax, Op::SMin)
                } else {
                    (Op::UMax, Op::UMin)
                };
                let (high, low) = (self.ins(max, &[x, y], ty), self.ins(min, &[x, y], ty));
                Ok(self.ins(Op::ISub, &[high, low], ty))
            }
            E::s_add_sat | E::u_add_sat | E::s_sub_sat | E::u_sub_sat => {
                need(int, 2)?;
                let sat = match op {
                    E::s_add_sat => SatOp::SAdd,
                    E::u_add_sat => SatOp::UAdd,
                    E::s_sub_sat => SatOp::SSub,
                    _ => SatOp::USub,
                };
                let y = arg(1)?;
                Ok(self.saturating(sat, x, y))
            }
            E::s_hadd | E::u_hadd | E::s_rhadd | E::u_rhadd => {
                need(int, 2)?;
                let y = arg(1)?;
                let shift = if matches!(op, E::s_hadd | E::s_rhadd) {
                    Op::AShr
                } else {
                    Op::LShr
                };
                let unit = self.constant(ty, 1);
                let differ = self.ins(Op::Xor, &[x, y], ty);
                let half = self.ins(shift, &[differ, unit], ty);
                if matches!(op, E::s_hadd | E::u_hadd) {
                    let common = self.ins(Op::And, &[x, y], ty);
                    Ok(self.ins(Op::IAdd, &[common, half], ty))
                } else {
                    let any = self.ins(Op::Or, &[x, y], ty);
                    Ok(self.ins(Op::ISub, &[any, half], ty))
                }
            }
            E::s_clamp | E::u_clamp => {
                need(int, 3)?;
                let (max, min) = if op == E::s_clamp {
                    (Op::SMax, Op::SMin)
                } else {
                    (Op::UMax, Op::UMin)
                };
                let low = self.ins(max, &[x, arg(1)?], ty);
                Ok(self.ins(min, &[low, arg(2)?], ty))
            }
            E::s_mad_hi | E::u_mad_hi => {
                need(int, 3)?;
                let hi = if op == E::s_mad_hi {
                    Op::SMulHi
                } else {
                    Op::UMulHi
                };
                let high = self.ins(hi, &[x, arg(1)?], ty);
                Ok(self.ins(Op::IAdd, &[high, arg(2)?], ty))
            }
            E::s_mad24 | E::u_mad24 => {
                need(int, 3)?;
                let product = self.ins(Op::IMul, &[x, arg(1)?], ty);
                Ok(self.ins(Op::IAdd, &[product, arg(2)?], ty))
            }
            E::s_mad_sat | E::u_mad_sat => {
                need(int, 3)?;
                self.mad_sat(x, arg(1)?, arg(2)?, op == E::s_mad_sat)
            }
            E::rotate => {
                need(int, 2)?;
                let mask = self.constant(ty, u64::from(ty.bits()) - 1);
                let left = self.ins(Op::And, &[arg(1)?, mask], ty);
                let right = self.ins(Op::INeg, &[left], ty);
                let right = self.ins(Op::And, &[right, mask], ty);
                let high = self.ins(Op::Shl, &[x, left], ty);
                let low = self.ins(Op::LShr, &[x, right], ty);
                Ok(self.ins(Op::Or, &[high, low], ty))
            }
            E::s_upsample | E::u_upsample => {
                let y = arg(1)?;
                if !xt.is_int() || self.f.ty(y) != xt || ty.bits() != xt.bits() * 2 {
                    return bad("its operands do not fit");
                }
                let shift = self.constant(ty, xt.bits().into());
                let high = self.ins(Op::ZExt, &[x], ty);
                let high = self.ins(Op::Shl, &[high, shift], ty);
                let low = self.ins(Op::ZExt, &[y], ty);
                Ok(self.ins(Op::Or, &[high, low], ty))
            }
            E::bitselect => {
                need(float || int, 3)?;
                let bits = ty.as_int().unwrap_or(Type::I32);
                let (a, b) = (self.cast_scalar(x, bits)?, self.cast_scalar(arg(1)?, bits)?);
                let mask = self.cast_scalar(arg(2)?, bits)?;
                let differ = self.ins(Op::Xor, &[a, b], bits);
                let taken = self.ins(Op::And, &[differ, mask], bits);
                let value = self.ins(Op::Xor, &[a, taken], bits);
                self.cast_scalar(value, ty)
            }
            E::select => {
                let (y, c) = (arg(1)?, arg(2)?);
                let ct = self.f.ty(c);
                if xt != ty || self.f.ty(y) != ty || !ct.is_int() {
                    return bad("its operands do not fit");
                }
                let cond = if vector {
                    self.sign_bit(c)
                } else {
                    self.to_bool(c)
                };
                Ok(self.select(cond, y, x))
            }
            _ => self.library_lane(op, args, ty),
        }
    }

    /// Calls the scalar built-in of the same name for one lane.
    fn library_lane(&mut self, op: E, args: &[Value], ty: Type) -> Result<Value> {
        let expected = match op {
            E::fma => 3,
            E::atan2
            | E::atan2pi
            | E::fmod
            | E::hypot
            | E::ldexp
            | E::maxmag
            | E::minmag
            | E::nextafter
            | E::pow
            | E::pown
            | E::powr
            | E::remainder
            | E::rootn
            | E::half_powr
            | E::native_powr => 2,
            _ => 1,
        };
        let Some(&x) = args.first() else {
            return bad("an operand is missing");
        };
        if args.len() != expected {
            return bad("it has the wrong number of operands");
        }
        let xt = self.f.ty(x);
        let rest_int = matches!(op, E::ldexp | E::pown | E::rootn);
        let rest_fit = args
            .iter()
            .skip(1)
            .all(|&a| self.f.ty(a) == if rest_int { Type::I32 } else { xt });
        let result_fits = if op == E::ilogb {
            ty == Type::I32
        } else {
            ty == xt
        };
        if !xt.is_float() || !rest_fit || !result_fits {
            return bad("its operands do not fit");
        }
        let name = format!("{op:?}");
        let mut mangled = format!("_Z{}{name}", name.len());
        for &a in args {
            mangled.push_str(mangle(self.f.ty(a), false)?);
        }
        let &[value] = self.call_name(&mangled, args, &[ty])?.as_slice() else {
            return Err(LowerError::internal("a call without result"));
        };
        if op == E::lgamma {
            return self.lgamma_of(x, value);
        }
        // libclc's compare x with |x| to find its sign, and take minus zero for positive.
        let loses_sign = matches!(
            op,
            E::sin | E::tan | E::atan | E::atanh | E::expm1 | E::log1p | E::erf
        );
        if ty != Type::F64 || !loses_sign {
            return Ok(value);
        }
        let zero = self.float(ty, 0.0);
        let is_zero = self.ins(Op::FCmp(FloatCond::Oeq), &[x, zero], Type::Bool);
        Ok(self.select(is_zero, x, value))
    }

    /// Corrects libclc's logarithm of the gamma function, which is -infinity at -infinity and
    /// overflows near zero in single precision.
    pub(super) fn lgamma_of(&mut self, x: Value, value: Value) -> Result<Value> {
        let ty = self.f.ty(x);
        let low = self.float(ty, f64::NEG_INFINITY);
        let is_low = self.ins(Op::FCmp(FloatCond::Oeq), &[x, low], Type::Bool);
        let high = self.float(ty, f64::INFINITY);
        let value = self.select(is_low, high, value);
        if ty != Type::F32 {
            return Ok(value);
        }
        // There it is the logarithm of the number's reciprocal, to half an ulp.
        let size = self.ins(Op::FAbs, &[x], ty);
        let bound = self.float(ty, 2f64.powi(-21));
        let is_near = self.ins(Op::FCmp(FloatCond::Olt), &[size, bound], Type::Bool);
        let &[log] = self.call_name("_Z3logf", &[size], &[ty])?.as_slice() else {
            return Err(LowerError::internal("a call without result"));
        };
        let near = self.ins(Op::FNeg, &[log], ty);
        Ok(self.select(is_near, near, value))
    }

    /// Adds or subtracts with saturation.
    pub fn saturating(&mut self, op: SatOp, x: Value, y: Value) -> Value {
        let ty = self.f.ty(x);
        match op {
            SatOp::UAdd => {
                let room = self.ins(Op::Not, &[y], ty);
                let low = self.ins(Op::UMin, &[x, room], ty);
                self.ins(Op::IAdd, &[low, y], ty)
            }
            SatOp::USub => {
                let low = self.ins(Op::UMin, &[x, y], ty);
                self.ins(Op::ISub, &[x, low], ty)
            }
            SatOp::SAdd | SatOp::SSub => {
                let kir = if op == SatOp::SAdd {
                    Op::IAdd
                } else {
                    Op::ISub
                };
                let value = self.ins(kir, &[x, y], ty);
                let changed = self.ins(Op::Xor, &[value, x], ty);
                // Addition overflows if the result's sign is that of neither operand; subtraction, if the operands'
                // signs differ and the result's is not that of the first.
                let other = if op == SatOp::SAdd { value } else { x };
                let differ = self.ins(Op::Xor, &[other, y], ty);
                let both = self.ins(Op::And, &[changed, differ], ty);
                let over = self.sign_bit(both);
                let shift = self.constant(ty, u64::from(ty.bits()) - 1);
                let sign = self.ins(Op::AShr, &[x, shift], ty);
                let max = self.constant(ty, ty.mask() >> 1);
                let limit = self.ins(Op::Xor, &[sign, max], ty);
                self.select(over, limit, value)
            }
        }
    }

    /// Computes a saturated multiply-add of 64-bit integers through 128 bits.
    fn mad_sat_long(&mut self, a: Value, b: Value, c: Value, signed: bool) -> Value {
        let ty = Type::I64;
        let mul_hi = if signed { Op::SMulHi } else { Op::UMulHi };
        let (low, high) = (
            self.ins(Op::IMul, &[a, b], ty),
            self.ins(mul_hi, &[a, b], ty),
        );
        let low = self.ins(Op::IAdd, &[low, c], ty);
        let carry = self.ins(Op::ICmp(IntCond::Ult), &[low, c], Type::Bool);
        let carry = self.ins(Op::ZExt, &[carry], ty);
        let high = self.ins(Op::IAdd, &[high, carry], ty);
        let zero = self.constant(ty, 0);
        if !signed {
            let over = self.ins(Op::ICmp(IntCond::Ne), &[high, zero], Type::Bool);
            let max = self.constant(ty, u64::MAX);
            return self.select(over, max, low);
        }
        let shift = self.constant(ty, 63);
        let above = self.ins(Op::AShr, &[c, shift], ty);
        let high = self.ins(Op::IAdd, &[high, above], ty);
        let fits = self.ins(Op::AShr, &[low, shift], ty);
        let over = self.ins(Op::ICmp(IntCond::Ne), &[high, fits], Type::Bool);
        let sign = self.ins(Op::AShr, &[high, shift], ty);
        let max = self.constant(ty, i64::MAX as u64);
        let limit = self.ins(Op::Xor, &[sign, max], ty);
        self.select(over, limit, low)
    }

    fn mad_sat(&mut self, a: Value, b: Value, c: Value, signed: bool) -> Result<Value> {
        let ty = self.f.ty(a);
        if ty == Type::I64 {
            return Ok(self.mad_sat_long(a, b, c, signed));
        }
        let wide = if ty == Type::I32 {
            Type::I64
        } else {
            Type::I32
        };
        let (a, b) = (self.resize(a, wide, signed), self.resize(b, wide, signed));
        let c = self.resize(c, wide, signed);
        let product = self.ins(Op::IMul, &[a, b], wide);
        let sum = self.ins(Op::IAdd, &[product, c], wide);
        let clamped = if signed {
            let max = ty.mask() >> 1;
            let (min, max) = (self.constant(wide, !max), self.constant(wide, max));
            let low = self.ins(Op::SMax, &[sum, min], wide);
            self.ins(Op::SMin, &[low, max], wide)
        } else {
            let max = self.constant(wide, ty.mask());
            self.ins(Op::UMin, &[sum, max], wide)
        };
        Ok(self.resize(clamped, ty, false))
    }
}
