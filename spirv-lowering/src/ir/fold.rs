//! The executable meaning of every pure scalar operation: constants in, constant out.
//!
//! This is what the optimiser folds with and what tests compare devices with. Where KIR leaves a result unspecified
//! (division by zero, conversions out of range) and where a target may differ (native functions) there is none. NaN
//! results of arithmetic are the canonical quiet NaN; subnormals are kept. Rounding is to nearest even unless the
//! operation says otherwise. Half precision is computed in double precision and rounded once.

use super::function::FpFlags;
use super::op::{FloatCond, IntCond, Op, Rounding};
use super::types::Type;
use crate::fused::Fused;

/// A binary floating-point format.
#[derive(Clone, Copy)]
struct Format {
    /// Bits of the significand, the hidden one included.
    precision: u32,
    /// Largest exponent of a finite value.
    emax: i32,
}

impl Format {
    fn of(ty: Type) -> Option<Self> {
        Some(match ty {
            Type::F16 => Self {
                precision: 11,
                emax: 15,
            },
            Type::F32 => Self {
                precision: 24,
                emax: 127,
            },
            Type::F64 => Self {
                precision: 53,
                emax: 1023,
            },
            _ => return None,
        })
    }
    fn sign_bit(self, negative: bool) -> u64 {
        let width = match self.precision {
            11 => 16,
            24 => 32,
            _ => 64,
        };
        u64::from(negative) << (width - 1)
    }
    fn infinity(self) -> u64 {
        ((self.emax as u64) * 2 + 1) << (self.precision - 1)
    }
    fn nan(self) -> u64 {
        self.infinity() | 1 << (self.precision - 2)
    }
}

/// A float taken apart.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Parts {
    Nan,
    Infinite(bool),
    /// Negative, significand, exponent: significand * 2^exponent.
    Finite(bool, u64, i32),
}

fn unpack(ty: Type, bits: u64) -> Option<Parts> {
    let format = Format::of(ty)?;
    let negative = bits & format.sign_bit(true) != 0;
    let fraction_bits = format.precision - 1;
    let fraction = bits & ((1 << fraction_bits) - 1);
    let field = (bits & !format.sign_bit(true)) >> fraction_bits;
    let max = format.emax as u64 * 2 + 1;
    let bias = format.emax + fraction_bits as i32;
    Some(if field == max {
        if fraction == 0 {
            Parts::Infinite(negative)
        } else {
            Parts::Nan
        }
    } else if field == 0 {
        Parts::Finite(negative, fraction, 1 - bias)
    } else {
        Parts::Finite(negative, fraction | 1 << fraction_bits, field as i32 - bias)
    })
}

/// Shifts right and rounds; `shift` may exceed the width.
fn shift_round(value: u128, shift: u32, negative: bool, rounding: Rounding) -> u128 {
    if shift == 0 {
        return value;
    }
    let (kept, half, sticky) = match shift {
        1..=127 => {
            let half = value >> (shift - 1) & 1 != 0;
            (value >> shift, half, value & ((1 << (shift - 1)) - 1) != 0)
        }
        128 => (0, value >> 127 != 0, value & (u128::MAX >> 1) != 0),
        _ => (0, false, value != 0),
    };
    let up = match rounding {
        Rounding::Rte => half && (sticky || kept & 1 != 0),
        Rounding::Rtz => false,
        Rounding::Rtp => !negative && (half || sticky),
        Rounding::Rtn => negative && (half || sticky),
    };
    kept + u128::from(up)
}

/// Returns the float nearest, in the sense of `rounding`, to significand * 2^exponent.
fn pack(
    ty: Type,
    negative: bool,
    significand: u128,
    exponent: i32,
    rounding: Rounding,
) -> Option<u64> {
    let format = Format::of(ty)?;
    let sign = format.sign_bit(negative);
    if significand == 0 {
        return Some(sign);
    }
    let length = 128 - significand.leading_zeros() as i32;
    // Exponent of the last place kept.
    let emin = 1 - format.emax - (format.precision as i32 - 1);
    let mut last = (exponent + length - format.precision as i32).max(emin);
    let mut kept = if last >= exponent {
        shift_round(significand, (last - exponent) as u32, negative, rounding)
    } else {
        significand << (exponent - last)
    };
    if kept >> format.precision != 0 {
        kept >>= 1;
        last += 1;
    }
    let hidden = 1u128 << (format.precision - 1);
    if kept < hidden {
        // Subnormal: `last` is `emin`.
        return Some(sign | kept as u64);
    }
    let unbiased = last + format.precision as i32 - 1;
    if unbiased > format.emax {
        let to_infinity = match rounding {
            Rounding::Rte => true,
            Rounding::Rtz => false,
            Rounding::Rtp => !negative,
            Rounding::Rtn => negative,
        };
        return Some(sign | (format.infinity() - u64::from(!to_infinity)));
    }
    let field = (unbiased + format.emax) as u64;
    Some(sign | field << (format.precision - 1) | (kept - hidden) as u64)
}

/// Converts between float formats. Returns `None` for types that are no float formats.
pub fn convert(from: Type, bits: u64, to: Type, rounding: Rounding) -> Option<u64> {
    let format = Format::of(to)?;
    match unpack(from, bits)? {
        Parts::Nan => Some(format.nan()),
        Parts::Infinite(negative) => Some(format.sign_bit(negative) | format.infinity()),
        Parts::Finite(negative, m, e) => pack(to, negative, m.into(), e, rounding),
    }
}

/// Returns the value as f64, which is exact for all formats.
pub fn to_f64(ty: Type, bits: u64) -> Option<f64> {
    Some(match ty {
        Type::F64 => f64::from_bits(bits),
        Type::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(convert(ty, bits, Type::F64, Rounding::Rte)?),
    })
}

/// Rounds an f64 result of half-precision arithmetic.
fn half(value: f64) -> Option<u64> {
    convert(Type::F64, value.to_bits(), Type::F16, Rounding::Rte)
}

fn to_int(
    ty: Type,
    bits: u64,
    to: Type,
    signed: bool,
    rounding: Rounding,
    sat: bool,
) -> Option<u64> {
    let width = to.bits();
    let (min, max) = if signed {
        (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1)
    } else {
        (0, (1i128 << width) - 1)
    };
    let value = match unpack(ty, bits)? {
        Parts::Nan => {
            return sat.then_some(0);
        }
        Parts::Infinite(negative) => {
            if negative {
                i128::MIN
            } else {
                i128::MAX
            }
        }
        Parts::Finite(negative, m, e) => {
            let magnitude = if m == 0 {
                0
            } else if e >= 64 {
                i128::MAX as u128
            } else if e >= 0 {
                u128::from(m) << e.min(63)
            } else {
                shift_round(m.into(), e.unsigned_abs(), negative, rounding)
            };
            let magnitude = magnitude.min(i128::MAX as u128) as i128;
            if negative {
                -magnitude
            } else {
                magnitude
            }
        }
    };
    if value < min || value > max {
        return sat.then(|| value.clamp(min, max) as u64 & to.mask());
    }
    Some(value as u64 & to.mask())
}

fn from_int(bits: u64, from: Type, signed: bool, to: Type, rounding: Rounding) -> Option<u64> {
    let value = if signed {
        i128::from(sext(from, bits))
    } else {
        i128::from(bits)
    };
    pack(to, value < 0, value.unsigned_abs(), 0, rounding)
}

/// Sign-extends an integer to 64 bits.
pub fn sext(ty: Type, bits: u64) -> i64 {
    let shift = 64 - ty.bits();
    (bits << shift) as i64 >> shift
}

/// Compares two integers or pointers.
pub fn int_compare(cond: IntCond, ty: Type, a: u64, b: u64) -> bool {
    let (x, y) = (sext(ty, a), sext(ty, b));
    match cond {
        IntCond::Eq => a == b,
        IntCond::Ne => a != b,
        IntCond::Slt => x < y,
        IntCond::Sle => x <= y,
        IntCond::Sgt => x > y,
        IntCond::Sge => x >= y,
        IntCond::Ult => a < b,
        IntCond::Ule => a <= b,
        IntCond::Ugt => a > b,
        IntCond::Uge => a >= b,
    }
}

fn float_compare(cond: FloatCond, a: f64, b: f64) -> bool {
    use FloatCond::*;
    let unordered = a.is_nan() || b.is_nan();
    match cond {
        Oeq => a == b,
        One => !unordered && a != b,
        Olt => a < b,
        Ole => a <= b,
        Ogt => a > b,
        Oge => a >= b,
        Ord => !unordered,
        Ueq => unordered || a == b,
        Une => a != b,
        Ult => unordered || a < b,
        Ule => unordered || a <= b,
        Ugt => unordered || a > b,
        Uge => unordered || a >= b,
        Uno => unordered,
    }
}

/// Defines a float operation for both native types.
macro_rules! arithmetic {
    ($float:ty, $op:expr, $a:expr, $b:expr, $c:expr) => {{
        let (a, b, c): ($float, $float, $float) = ($a, $b, $c);
        Some(match $op {
            Op::FAdd => a + b,
            Op::FSub => a - b,
            Op::FMul => a * b,
            Op::FDiv => a / b,
            Op::FRem => a % b,
            Op::FMin if a.is_nan() => b,
            Op::FMin if b.is_nan() => a,
            Op::FMin => {
                // -0 is less than +0 here.
                if b < a || b == a && b.is_sign_negative() {
                    b
                } else {
                    a
                }
            }
            Op::FMax if a.is_nan() => b,
            Op::FMax if b.is_nan() => a,
            Op::FMax => {
                if b > a || b == a && a.is_sign_negative() {
                    b
                } else {
                    a
                }
            }
            Op::Fma => a.fused(b, c),
            Op::FSqrt => a.sqrt(),
            Op::FFloor => a.floor(),
            Op::FCeil => a.ceil(),
            Op::FTrunc => a.trunc(),
            Op::FRoundEven => a.round_ties_even(),
            _ => return None,
        })
    }};
}

/// Computes a * b + c of half-precision values: the exact product and a sum rounded to odd, which a
/// further rounding to fewer bits turns into the correct result.
fn half_fma(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    if !sum.is_finite() || !product.is_finite() {
        return sum;
    }
    let back = sum - product;
    let rest = (product - (sum - back)) + (c - back);
    if rest == 0.0 || sum.to_bits() & 1 != 0 {
        return sum;
    }
    // One step towards the rest, to the odd neighbour.
    let away = (rest > 0.0) == (sum > 0.0);
    f64::from_bits(if away {
        sum.to_bits() + 1
    } else {
        sum.to_bits() - 1
    })
}

fn float_op(op: Op, ty: Type, args: &[u64]) -> Option<u64> {
    let format = Format::of(ty)?;
    let a = *args.first()?;
    let b = args.get(1).copied().unwrap_or(0);
    let c = args.get(2).copied().unwrap_or(0);
    let sign = format.sign_bit(true);
    match op {
        Op::FNeg => return Some(a ^ sign),
        Op::FAbs => return Some(a & !sign),
        Op::FCopySign => return Some(a & !sign | b & sign),
        _ => {}
    }
    let (bits, is_nan) = match ty {
        Type::F32 => {
            let f = |bits: u64| f32::from_bits(bits as u32);
            let r: f32 = arithmetic!(f32, op, f(a), f(b), f(c))?;
            (u64::from(r.to_bits()), r.is_nan())
        }
        Type::F64 => {
            let f = f64::from_bits;
            let r: f64 = arithmetic!(f64, op, f(a), f(b), f(c))?;
            (r.to_bits(), r.is_nan())
        }
        _ => {
            let (x, y, z) = (to_f64(ty, a)?, to_f64(ty, b)?, to_f64(ty, c)?);
            let r = if op == Op::Fma {
                half_fma(x, y, z)
            } else {
                arithmetic!(f64, op, x, y, z)?
            };
            (half(r)?, r.is_nan())
        }
    };
    Some(if is_nan { format.nan() } else { bits })
}

/// Returns the dot product of four bytes.
fn dot4(a: u64, b: u64, a_signed: bool, b_signed: bool) -> u64 {
    let byte = |word: u64, i: u32, signed: bool| {
        let byte = word >> (8 * i) & 0xff;
        if signed {
            sext(Type::I8, byte)
        } else {
            byte as i64
        }
    };
    let sum: i64 = (0..4)
        .map(|i| byte(a, i, a_signed) * byte(b, i, b_signed))
        .sum();
    sum as u64
}

fn int_op(op: Op, ty: Type, args: &[u64]) -> Option<u64> {
    let bits = ty.bits();
    let a = *args.first()?;
    let b = args.get(1).copied().unwrap_or(0);
    let (x, y) = (sext(ty, a), sext(ty, b));
    let amount = (b % u64::from(bits)) as u32;
    Some(
        match op {
            Op::IAdd => a.wrapping_add(b),
            Op::ISub => a.wrapping_sub(b),
            Op::IMul => a.wrapping_mul(b),
            Op::SDiv if y == 0 || (y == -1 && x == sext(ty, 1 << (bits - 1))) => return None,
            Op::SRem if y == 0 || (y == -1 && x == sext(ty, 1 << (bits - 1))) => return None,
            Op::SDiv => x.wrapping_div(y) as u64,
            Op::SRem => x.wrapping_rem(y) as u64,
            Op::UDiv => a.checked_div(b)?,
            Op::URem => a.checked_rem(b)?,
            Op::SMulHi => ((i128::from(x) * i128::from(y)) >> bits) as u64,
            Op::UMulHi => ((u128::from(a) * u128::from(b)) >> bits) as u64,
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::Shl => a << amount,
            Op::LShr => a >> amount,
            Op::AShr => (x >> amount) as u64,
            Op::SMin => x.min(y) as u64,
            Op::SMax => x.max(y) as u64,
            Op::UMin => a.min(b),
            Op::UMax => a.max(b),
            Op::INeg => a.wrapping_neg(),
            Op::Not => !a,
            Op::Clz => u64::from(a.leading_zeros() - (64 - bits)),
            Op::Ctz => u64::from(a.trailing_zeros().min(bits)),
            Op::Popcount => u64::from(a.count_ones()),
            Op::BitReverse => a.reverse_bits() >> (64 - bits),
            Op::SDot4 => dot4(a, b, true, true),
            Op::UDot4 => dot4(a, b, false, false),
            Op::SUDot4 => dot4(a, b, true, false),
            _ => return None,
        } & ty.mask(),
    )
}

/// Returns the result of an operation on constants, or `None` if it has effects, is unspecified for
/// these operands or depends on the target. `types` and `args` are those of the operands.
pub fn fold(op: Op, _fp: FpFlags, types: &[Type], args: &[u64], result: Type) -> Option<u64> {
    let ty = *types.first()?;
    let a = *args.first()?;
    match op {
        Op::ICmp(cond) => Some(int_compare(cond, ty, a, *args.get(1)?).into()),
        Op::FCmp(cond) => {
            let b = to_f64(ty, *args.get(1)?)?;
            Some(float_compare(cond, to_f64(ty, a)?, b).into())
        }
        Op::Select => Some(if a & 1 != 0 {
            *args.get(1)?
        } else {
            *args.get(2)?
        }),
        Op::ZExt => Some(a),
        Op::SExt => Some(sext(ty, a) as u64 & result.mask()),
        Op::Trunc => Some(a & result.mask()),
        Op::FConv(rounding) => convert(ty, a, result, rounding),
        Op::SToF(rounding) => from_int(a, ty, true, result, rounding),
        Op::UToF(rounding) => from_int(a, ty, false, result, rounding),
        Op::FToS { rounding, sat } => to_int(ty, a, result, true, rounding, sat),
        Op::FToU { rounding, sat } => to_int(ty, a, result, false, rounding, sat),
        Op::Bitcast | Op::PtrToInt | Op::IntToPtr => Some(a),
        Op::SamplerWord => Some(a & result.mask()),
        Op::SpaceCast => (a == 0).then_some(0),
        Op::Low => Some(a & Type::I32.mask()),
        Op::High => Some(a >> 32),
        Op::UnpackHalf => convert(Type::F16, a & Type::F16.mask(), Type::F32, Rounding::Rte),
        Op::PackHalf => convert(Type::F32, a, Type::F16, Rounding::Rte),
        Op::Join => Some(a | *args.get(1)? << 32),
        Op::PtrAdd => Some(a.wrapping_add(*args.get(1)?)),
        _ if result.is_float() => float_op(op, result, args),
        _ if result.is_int() || result == Type::Bool => int_op(op, result, args),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Type::*;

    fn go(op: Op, ty: Type, args: &[u64]) -> Option<u64> {
        fold(op, FpFlags::default(), &vec![ty; args.len()], args, ty)
    }
    fn conv(op: Op, from: Type, bits: u64, to: Type) -> Option<u64> {
        fold(op, FpFlags::default(), &[from], &[bits], to)
    }

    #[test]
    fn integers_of_all_widths() {
        assert_eq!(go(Op::IAdd, I8, &[0xff, 2]), Some(1));
        assert_eq!(go(Op::ISub, I16, &[0, 1]), Some(0xffff));
        assert_eq!(go(Op::SDiv, I8, &[0x80, 0xff]), None);
        assert_eq!(go(Op::SDiv, I8, &[0xf9, 2]), Some(0xfd));
        assert_eq!(go(Op::SRem, I8, &[0xf9, 2]), Some(0xff));
        assert_eq!(go(Op::UDiv, I32, &[7, 0]), None);
        assert_eq!(go(Op::SMulHi, I32, &[0xffff_ffff, 0xffff_ffff]), Some(0));
        assert_eq!(
            go(Op::UMulHi, I32, &[0xffff_ffff, 0xffff_ffff]),
            Some(0xffff_fffe)
        );
        assert_eq!(go(Op::SMulHi, I64, &[u64::MAX, 5]), Some(u64::MAX));
        assert_eq!(go(Op::Shl, I32, &[1, 33]), Some(2));
        assert_eq!(go(Op::AShr, I16, &[0x8000, 15]), Some(0xffff));
        assert_eq!(go(Op::LShr, I64, &[1 << 63, 63]), Some(1));
        assert_eq!(go(Op::Clz, I8, &[1]), Some(7));
        assert_eq!(go(Op::Clz, I8, &[0]), Some(8));
        assert_eq!(go(Op::Ctz, I16, &[0]), Some(16));
        assert_eq!(go(Op::BitReverse, I8, &[1]), Some(0x80));
        assert_eq!(go(Op::SMin, I8, &[0x80, 1]), Some(0x80));
        assert_eq!(go(Op::UMin, I8, &[0x80, 1]), Some(1));
        assert_eq!(go(Op::Not, Bool, &[1]), Some(0));
        assert_eq!(go(Op::Xor, Bool, &[1, 1]), Some(0));
        let cmp = |c, a, b| fold(Op::ICmp(c), FpFlags::default(), &[I8, I8], &[a, b], Bool);
        assert_eq!(cmp(IntCond::Slt, 0xff, 0), Some(1));
        assert_eq!(cmp(IntCond::Ult, 0xff, 0), Some(0));
        assert_eq!(conv(Op::SExt, Bool, 1, I32), Some(0xffff_ffff));
        assert_eq!(conv(Op::ZExt, Bool, 1, I64), Some(1));
        assert_eq!(conv(Op::SExt, I8, 0x80, I16), Some(0xff80));
    }

    #[test]
    fn floats() {
        let f = |x: f32| u64::from(x.to_bits());
        assert_eq!(go(Op::FAdd, F32, &[f(1.0), f(2.0)]), Some(f(3.0)));
        assert_eq!(
            go(Op::FSub, F32, &[f(f32::INFINITY), f(f32::INFINITY)]),
            Some(0x7fc0_0000)
        );
        assert_eq!(go(Op::FNeg, F32, &[0x7fc0_0001]), Some(0xffc0_0001));
        assert_eq!(go(Op::FMin, F32, &[0x7fc0_0000, f(2.0)]), Some(f(2.0)));
        assert_eq!(go(Op::FRem, F32, &[f(-5.5), f(2.0)]), Some(f(-1.5)));
        assert_eq!(go(Op::FRoundEven, F32, &[f(2.5)]), Some(f(2.0)));
        assert_eq!(go(Op::FRoundEven, F32, &[f(-0.5)]), Some(f(-0.0)));
        assert_eq!(
            go(Op::FDiv, F64, &[1f64.to_bits(), 0]),
            Some(f64::INFINITY.to_bits())
        );
        assert_eq!(
            go(Op::FNative(crate::ir::op::NativeFn::Sin), F32, &[0]),
            None
        );
        // fma: (1 + 2^-12)^2 - 1 - 2^-11 = 2^-24
        let x = 1.0 + 2f32.powi(-12);
        let c = -1.0 - 2f32.powi(-11);
        assert_eq!(
            go(Op::Fma, F32, &[f(x), f(x), f(c)]),
            Some(f(2f32.powi(-24)))
        );
    }

    #[test]
    fn half_precision() {
        // 1 = 0x3c00, 65504 = 0x7bff, smallest subnormal = 1.
        assert_eq!(go(Op::FAdd, F16, &[0x3c00, 0x3c00]), Some(0x4000));
        assert_eq!(go(Op::FAdd, F16, &[0x7bff, 0x7bff]), Some(0x7c00));
        assert_eq!(go(Op::FMul, F16, &[0x0001, 0x3800]), Some(0));
        assert_eq!(go(Op::FMul, F16, &[0x0003, 0x3800]), Some(2));
        assert_eq!(go(Op::FDiv, F16, &[0x3c00, 0x4200]), Some(0x3555));
        assert_eq!(go(Op::FSqrt, F16, &[0xbc00]), Some(0x7e00));
        // A tie in the first rounding that a tiny addend breaks: 65504 * (1 + 2^-10) = 65567.97 -> infinite;
        // 1 * (1 + 2^-10) + 2^-11 is a tie that rounds to even (1 + 2^-9), less a hair it does not.
        let (one_ulp, half_ulp) = (0x3c01, 0x1000);
        assert_eq!(go(Op::Fma, F16, &[0x3c00, one_ulp, half_ulp]), Some(0x3c02));
        // 2^-24 * -2^-24 as the hair: product -2^-48 against c = 1 + 2^-10 ... stays.
        assert_eq!(go(Op::Fma, F16, &[0x0001, 0x8001, one_ulp]), Some(one_ulp));
        // 2048 * 1 + ... sum of a tie and a product far below it: 2049 is a tie between 2048 and 2050.
        assert_eq!(go(Op::FAdd, F16, &[0x6800, 0x3c00]), Some(0x6800));
        // 2047.5 (0x67ff is 2047) ... 2048 + (1 + 2^-10) rounds up.
        assert_eq!(go(Op::FAdd, F16, &[0x6800, 0x3c01]), Some(0x6801));
    }

    #[test]
    fn half_fma_rounds_once() {
        // Against exact integer arithmetic in units of 2^-48.
        let mut state = 12345u64;
        let mut random = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 40) as u16
        };
        for _ in 0..20000 {
            let (a, b, c) = (random(), random(), random());
            let exact = |bits: u16| match unpack(F16, bits.into()) {
                Some(Parts::Finite(n, m, e)) => {
                    Some(((m as i128) << (e + 24)) * if n { -1 } else { 1 })
                }
                _ => None,
            };
            let (Some(x), Some(y), Some(z)) = (exact(a), exact(b), exact(c)) else {
                continue;
            };
            let sum = x * y + (z << 24);
            if sum == 0 {
                continue;
            }
            let expect = pack(F16, sum < 0, sum.unsigned_abs(), -48, Rounding::Rte);
            assert_eq!(
                go(Op::Fma, F16, &[a.into(), b.into(), c.into()]),
                expect,
                "{a:x} {b:x} {c:x}"
            );
        }
    }

    #[test]
    fn conversions() {
        use Rounding::*;
        let d = |x: f64| x.to_bits();
        // Nearest agrees with the hardware on many doubles.
        let mut bits = 0x3ff0_0000_0000_0001u64;
        for _ in 0..20000 {
            bits = bits
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let x = f64::from_bits(bits);
            if x.is_nan() {
                continue;
            }
            let y = (x as f32).to_bits();
            assert_eq!(
                conv(Op::FConv(Rte), F64, bits, F32),
                Some(y.into()),
                "{x:e}"
            );
            let z = f32::from_bits(bits as u32);
            if !z.is_nan() {
                assert_eq!(
                    conv(Op::FConv(Rte), F32, bits & 0xffff_ffff, F64),
                    Some(d(z.into()))
                );
                let i = conv(
                    Op::FToS {
                        rounding: Rtz,
                        sat: true,
                    },
                    F32,
                    bits & 0xffff_ffff,
                    I32,
                );
                assert_eq!(i, Some(u64::from(z as i32 as u32)));
                let i = conv(
                    Op::FToU {
                        rounding: Rtz,
                        sat: true,
                    },
                    F32,
                    bits & 0xffff_ffff,
                    I64,
                );
                assert_eq!(i, Some(z as u64));
            }
            assert_eq!(
                conv(Op::SToF(Rte), I64, bits, F32),
                Some((bits as i64 as f32).to_bits().into())
            );
            assert_eq!(conv(Op::UToF(Rte), I64, bits, F64), Some(d(bits as f64)));
        }
        let third = d(1.0 / 3.0);
        assert_eq!(conv(Op::FConv(Rtz), F64, third, F32), Some(0x3eaa_aaaa));
        assert_eq!(conv(Op::FConv(Rtp), F64, third, F32), Some(0x3eaa_aaab));
        assert_eq!(
            conv(Op::FConv(Rtn), F64, d(-1.0 / 3.0), F32),
            Some(0xbeaa_aaab)
        );
        assert_eq!(conv(Op::FConv(Rtz), F64, d(1e300), F32), Some(0x7f7f_ffff));
        assert_eq!(conv(Op::FConv(Rtp), F64, d(1e300), F32), Some(0x7f80_0000));
        assert_eq!(conv(Op::FConv(Rtp), F64, d(-1e300), F32), Some(0xff7f_ffff));
        assert_eq!(conv(Op::FConv(Rtp), F64, d(1e-300), F32), Some(1));
        assert_eq!(conv(Op::FConv(Rte), F64, d(1e-300), F16), Some(0));
        assert_eq!(conv(Op::FConv(Rte), F32, 0x477f_f000, F16), Some(0x7c00));
        assert_eq!(conv(Op::FConv(Rte), F32, 0x477f_efff, F16), Some(0x7bff));
        assert_eq!(
            conv(Op::SToF(Rtz), I32, 0x7fff_ffff, F32),
            Some(0x4eff_ffff)
        );
        assert_eq!(
            conv(Op::SToF(Rtn), I32, 0x8000_0001, F32),
            Some(0xcf00_0000)
        );
        let to = |r, sat| Op::FToS { rounding: r, sat };
        assert_eq!(conv(to(Rte, false), F32, 0x4020_0000, I32), Some(2));
        assert_eq!(conv(to(Rtp, false), F32, 0x4020_0000, I32), Some(3));
        assert_eq!(conv(to(Rtn, false), F32, 0xc020_0000, I8), Some(0xfd));
        assert_eq!(conv(to(Rte, true), F32, 0x4f80_0000, I8), Some(0x7f));
        assert_eq!(conv(to(Rte, false), F32, 0x4f80_0000, I8), None);
        assert_eq!(conv(to(Rte, true), F32, 0x7fc0_0000, I8), Some(0));
        let unsigned = Op::FToU {
            rounding: Rte,
            sat: true,
        };
        assert_eq!(conv(unsigned, F64, d(-1.0), I32), Some(0));
        assert_eq!(conv(unsigned, F64, d(1e30), I64), Some(u64::MAX));
    }
}
