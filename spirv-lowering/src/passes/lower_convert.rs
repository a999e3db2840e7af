//! Lowers conversions with a rounding mode or saturation to plain ones.
//!
//! The result uses `FConv(Rte)`, `SToF(Rte)`, `UToF(Rte)` and `FToS`/`FToU { Rtz, sat: false }`,
//! which are the conversions that SPIR-V has.
//!
//! - Float to integer: round in the float type first, then select the limits.
//! - Integer to float: clear (or round up) the bits that the mantissa has no room for; the rest
//!   converts exactly.
//! - Float to narrower float: convert to nearest, convert back (exact), and step one unit if that
//!   went the wrong way.
//!
//! Conversion to half precision is done by integer arithmetic where the device does not promise to
//! round to nearest. So are two conversions on devices whose driver folds a conversion there and
//! back ([`comes_back`]): of values that are widened again, and of integers to `half`. On such
//! devices, a `float` that was rounded from a `double` or an integer is made opaque.

use crate::analysis::cfg::Cfg;
use crate::edit::opaque::opaque_zero;
use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::{Function, ValueDef};
use crate::ir::op::{FloatCond, IntCond, Op, Rounding};
use crate::ir::types::Type;
use crate::quirks::CodeQuirk;
use crate::target::Target;
use rustc_hash::FxHashSet;

/// Returns the bits of the significand, the implicit one included.
fn precision(ty: Type) -> u32 {
    match ty {
        Type::F16 => 11,
        Type::F32 => 24,
        _ => 53,
    }
}

/// Returns the bits of 2^exponent in a float type, infinity if it is out of range.
fn power_of_two(ty: Type, exponent: u32) -> u64 {
    let (bias, mantissa, max) = match ty {
        Type::F16 => (15, 10, 31),
        Type::F32 => (127, 23, 255),
        _ => (1023, 52, 2047),
    };
    u64::from((exponent + bias).min(max)) << mantissa
}

fn sign_bit(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}

fn round(r: &mut Rewriter, x: Value, rounding: Rounding) -> Value {
    let op = match rounding {
        Rounding::Rte => Op::FRoundEven,
        Rounding::Rtz => return x,
        Rounding::Rtp => Op::FCeil,
        Rounding::Rtn => Op::FFloor,
    };
    r.same(op, [x])
}

fn float_to_int(
    r: &mut Rewriter,
    x: Value,
    to: Type,
    signed: bool,
    rounding: Rounding,
    sat: bool,
) -> Value {
    let from = r.func.ty(x);
    let x = round(r, x, rounding);
    let plain = if signed {
        Op::FToS {
            rounding: Rounding::Rtz,
            sat: false,
        }
    } else {
        Op::FToU {
            rounding: Rounding::Rtz,
            sat: false,
        }
    };
    let mut result = r.op(plain, [x], to);
    if !sat {
        return result;
    }
    let bits = to.bits();
    let (low, high) = if signed {
        (sign_bit(to), sign_bit(to) - 1)
    } else {
        (0, to.mask())
    };
    let above = r.konst(
        from,
        power_of_two(from, if signed { bits - 1 } else { bits }),
    );
    let is_above = r.fcmp(FloatCond::Oge, x, above);
    let high = r.konst(to, high);
    result = r.select(is_above, high, result);
    let below = if signed {
        power_of_two(from, bits - 1) | sign_bit(from)
    } else {
        0
    };
    let below = r.konst(from, below);
    let is_below = r.fcmp(
        if signed {
            FloatCond::Ole
        } else {
            FloatCond::Olt
        },
        x,
        below,
    );
    let low = r.konst(to, low);
    result = r.select(is_below, low, result);
    let is_nan = r.fcmp(FloatCond::Uno, x, x);
    let zero = r.konst(to, 0);
    r.select(is_nan, zero, result)
}

fn int_to_float(r: &mut Rewriter, x: Value, to: Type, signed: bool, rounding: Rounding) -> Value {
    let from = r.func.ty(x);
    let plain = |r: &mut Rewriter, x: Value, signed: bool| {
        let op = if signed {
            Op::SToF(Rounding::Rte)
        } else {
            Op::UToF(Rounding::Rte)
        };
        r.op(op, [x], to)
    };
    let exact = from.bits() - u32::from(signed) <= precision(to);
    if rounding == Rounding::Rte || exact {
        return plain(r, x, signed);
    }
    // Magnitude and sign.
    let (magnitude, negative) = if signed {
        let negative = r.icmp_const(IntCond::Slt, x, 0);
        let minus = r.same(Op::INeg, [x]);
        (r.select(negative, minus, x), Some(negative))
    } else {
        (x, None)
    };
    // The unit in the last place: 2^max(0, width - clz - precision).
    let leading = r.same(Op::Clz, [magnitude]);
    let width = r.konst(from, u64::from(from.bits() - precision(to)));
    let spare = r.same(Op::UMin, [leading, width]);
    let shift = r.same(Op::ISub, [width, spare]);
    let one = r.konst(from, 1);
    let unit = r.same(Op::Shl, [one, shift]);
    let below = r.same(Op::ISub, [unit, one]);
    let rest = r.same(Op::And, [magnitude, below]);
    let mut kept = r.same(Op::Xor, [magnitude, rest]);
    let mut overflow = None;
    let away = match (rounding, negative) {
        (Rounding::Rtp, None) => Some(r.konst(Type::Bool, 1)),
        (Rounding::Rtp, Some(negative)) => Some(r.same(Op::Not, [negative])),
        (Rounding::Rtn, Some(negative)) => Some(negative),
        _ => None,
    };
    if let Some(away) = away {
        let inexact = r.icmp_const(IntCond::Ne, rest, 0);
        let up = r.same(Op::And, [away, inexact]);
        let next = r.same(Op::IAdd, [kept, unit]);
        kept = r.select(up, next, kept);
        // 2^width: wrapped to zero.
        let wrapped = r.icmp_const(IntCond::Eq, kept, 0);
        overflow = Some(r.same(Op::And, [wrapped, up]));
    }
    let mut result;
    if to == Type::F16 && from.bits() > 16 - u32::from(signed) {
        // Beyond the largest half.
        let limit = r.konst(from, 65504);
        let clamped = r.same(Op::UMin, [kept, limit]);
        result = plain(r, clamped, false);
        if let Some(away) = away {
            let beyond = r.icmp(IntCond::Ugt, magnitude, limit);
            let infinite = r.same(Op::And, [beyond, away]);
            let infinity = r.konst(to, 0x7c00);
            result = r.select(infinite, infinity, result);
        }
    } else {
        result = plain(r, kept, false);
    }
    if let Some(overflow) = overflow {
        let power = r.konst(to, power_of_two(to, from.bits()));
        result = r.select(overflow, power, result);
    }
    if let Some(negative) = negative {
        let minus = r.same(Op::FNeg, [result]);
        result = r.select(negative, minus, result);
    }
    result
}

/// Converts `float` to `half`, to nearest even, in integers.
fn float_to_half(r: &mut Rewriter, x: Value) -> Value {
    let u = r.op(Op::Bitcast, [x], Type::I32);
    let sign = r.with_const(Op::LShr, u, 16);
    let sign = r.with_const(Op::And, sign, 0x8000);
    let a = r.with_const(Op::And, u, 0x7fff_ffff);
    // Normal results: round at bit 13, rebias.
    let odd = r.with_const(Op::LShr, a, 13);
    let odd = r.with_const(Op::And, odd, 1);
    let normal = r.with_const(Op::IAdd, a, 0xc800_0fff);
    let normal = r.same(Op::IAdd, [normal, odd]);
    let normal = r.with_const(Op::LShr, normal, 13);
    // Subnormal results: the addition of one half rounds at the right bit.
    let small = r.op(Op::Bitcast, [a], Type::F32);
    let half = r.konst(Type::F32, 0x3f00_0000);
    let small = r.same(Op::FAdd, [small, half]);
    let small = r.op(Op::Bitcast, [small], Type::I32);
    let small = r.with_const(Op::ISub, small, 0x3f00_0000);
    let is_small = r.icmp_const(IntCond::Ult, a, 0x3880_0000);
    let finite = r.select(is_small, small, normal);
    // Infinity and NaN.
    let infinity = r.konst(Type::I32, 0x7c00);
    let nan = r.konst(Type::I32, 0x7e00);
    let is_nan = r.icmp_const(IntCond::Ugt, a, 0x7f80_0000);
    let special = r.select(is_nan, nan, infinity);
    let is_large = r.icmp_const(IntCond::Uge, a, 0x4780_0000);
    let result = r.select(is_large, special, finite);
    let result = r.same(Op::Or, [result, sign]);
    let result = r.op(Op::Trunc, [result], Type::I16);
    r.op(Op::Bitcast, [result], Type::F16)
}

/// The properties of the device that matter to conversions to narrower floats.
#[derive(Clone, Copy)]
struct Narrowing {
    /// Set if the device converts to `half` correctly.
    by_driver: bool,
    /// See [`ForgottenRounding`](crate::quirks::CodeQuirk::ForgottenRounding).
    forgets: bool,
    /// See [`FlushedFloats`](crate::quirks::CodeQuirk::FlushedFloats).
    flushes: bool,
}

fn float_to_float(
    r: &mut Rewriter,
    x: Value,
    to: Type,
    rounding: Rounding,
    narrowing: Narrowing,
) -> Value {
    let Narrowing {
        by_driver,
        forgets,
        flushes,
    } = narrowing;
    let from = r.func.ty(x);
    if from.bits() <= to.bits() {
        return if from == to {
            x
        } else {
            r.op(Op::FConv(Rounding::Rte), [x], to)
        };
    }
    let by_driver = by_driver && rounding == Rounding::Rte;
    let nearest = if to == Type::F16 && from == Type::F32 && !by_driver {
        float_to_half(r, x)
    } else if to == Type::F16 && from == Type::F64 {
        double_to_half(r, x, by_driver, forgets)
    } else {
        let nearest = r.op(Op::FConv(Rounding::Rte), [x], to);
        match forgets && to == Type::F32 {
            true => opaque_float(r, nearest),
            false => nearest,
        }
    };
    if rounding == Rounding::Rte {
        return nearest;
    }
    let int = to.as_int().unwrap_or(Type::I32);
    let mut back = r.op(Op::FConv(Rounding::Rte), [nearest], from);
    let bits = r.op(Op::Bitcast, [nearest], int);
    if flushes && to == Type::F32 {
        back = of_subnormal(r, bits, back);
    }
    let down = r.with_const(Op::ISub, bits, 1);
    let (wrong, stepped) = match rounding {
        Rounding::Rtz | Rounding::Rte => {
            let a = r.same(Op::FAbs, [back]);
            let b = r.same(Op::FAbs, [x]);
            (r.fcmp(FloatCond::Ogt, a, b), down)
        }
        Rounding::Rtp | Rounding::Rtn => {
            let up = r.with_const(Op::IAdd, bits, 1);
            let negative = r.icmp_const(IntCond::Slt, bits, 0);
            if rounding == Rounding::Rtp {
                (
                    r.fcmp(FloatCond::Olt, back, x),
                    r.select(negative, down, up),
                )
            } else {
                (
                    r.fcmp(FloatCond::Ogt, back, x),
                    r.select(negative, up, down),
                )
            }
        }
    };
    let bits = r.select(wrong, stepped, bits);
    r.op(Op::Bitcast, [bits], to)
}

/// Converts a subnormal `float` of these bits to `double` by its fraction as an integer; for other
/// values the result is `known`.
fn of_subnormal(r: &mut Rewriter, bits: Value, known: Value) -> Value {
    const UNIT: u64 = (1023 - 149) << 52;
    let fraction = r.with_const(Op::And, bits, 0x7fff_ffff);
    let is_subnormal = r.icmp_const(IntCond::Ult, fraction, 1 << 23);
    let number = r.op(Op::UToF(Rounding::Rte), [fraction], Type::F64);
    let number = r.with_const(Op::FMul, number, UNIT);
    let negated = r.same(Op::FNeg, [number]);
    let is_negative = r.icmp_const(IntCond::Slt, bits, 0);
    let number = r.select(is_negative, negated, number);
    r.select(is_subnormal, number, known)
}

/// Converts `double` to `half`, to nearest even, through a `float` that is rounded to odd so that
/// the second rounding is right.
fn double_to_half(r: &mut Rewriter, x: Value, by_driver: bool, forgets: bool) -> Value {
    let mut nearest = r.op(Op::FConv(Rounding::Rte), [x], Type::F32);
    if forgets {
        nearest = opaque_float(r, nearest);
    }
    let back = r.op(Op::FConv(Rounding::Rte), [nearest], Type::F64);
    let bits = r.op(Op::Bitcast, [nearest], Type::I32);
    // Truncate towards zero, then set the last bit if that lost something.
    let a = r.same(Op::FAbs, [back]);
    let b = r.same(Op::FAbs, [x]);
    let too_large = r.fcmp(FloatCond::Ogt, a, b);
    let less = r.with_const(Op::ISub, bits, 1);
    let truncated = r.select(too_large, less, bits);
    let inexact = r.fcmp(FloatCond::One, back, x);
    let odd = r.with_const(Op::Or, truncated, 1);
    let bits = r.select(inexact, odd, truncated);
    let float = r.op(Op::Bitcast, [bits], Type::F32);
    if by_driver {
        r.op(Op::FConv(Rounding::Rte), [float], Type::F16)
    } else {
        float_to_half(r, float)
    }
}

/// Returns the same `float` as an opaque value, whose origin the driver cannot see.
fn opaque_float(r: &mut Rewriter, float: Value) -> Value {
    let zero = opaque_zero(r, Type::I32);
    let bits = r.op(Op::Bitcast, [float], Type::I32);
    let bits = r.op(Op::Or, [bits, zero], Type::I32);
    r.op(Op::Bitcast, [bits], Type::F32)
}

/// Returns the values whose bits are those of a `half` that is widened, and of a `float` that is
/// widened if `floats`.
///
/// For a device that takes a conversion there and back for the identity, so that nothing is rounded
/// ([`ForgottenHalves`](crate::quirks::CodeQuirk::ForgottenHalves), [`ForgottenRounding`](crate::quirks::CodeQuirk::ForgottenRounding)). A `half` that is widened again is
/// computed by integers. One that only reaches arithmetic or memory is not among them.
fn comes_back(func: &Function, floats: bool) -> FxHashSet<Value> {
    let mut known = FxHashSet::default();
    let mut open: Vec<Value> = Vec::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let to = data.results.first().map(|&value| func.ty(value));
            let widens = |&x: &Value| {
                matches!(data.op, Op::FConv(_))
                    && match func.ty(x) {
                        Type::F16 => true,
                        Type::F32 => floats && to == Some(Type::F64),
                        _ => false,
                    }
            };
            open.extend(data.args.first().copied().filter(widens));
        }
    }
    if open.is_empty() {
        return known;
    }
    let cfg = Cfg::new(func);
    while let Some(value) = open.pop() {
        if !known.insert(value) {
            continue;
        }
        match func.values[value].def {
            ValueDef::Result(inst, _) => {
                let data = &func.insts[inst];
                if matches!(data.op, Op::Bitcast | Op::Select | Op::FNeg | Op::FAbs) {
                    let width = func.ty(value).bits();
                    let bits = |&x: &Value| func.ty(x).bits() == width;
                    open.extend(data.args.iter().copied().filter(bits));
                }
            }
            ValueDef::Param(block, index) => {
                for &from in cfg.preds(block) {
                    let edges = func.blocks[from].term.targets();
                    let into = edges.iter().filter(|target| target.block == block);
                    open.extend(into.filter_map(|target| target.args.get(index as usize)));
                }
            }
        }
    }
    known
}

/// Runs the pass.
pub fn run(func: &mut Function, target: &Target) -> Result<()> {
    let forgets = target.quirks.has(CodeQuirk::ForgottenRounding);
    let back = match forgets || target.quirks.has(CodeQuirk::ForgottenHalves) {
        true => comes_back(func, forgets),
        false => FxHashSet::default(),
    };
    rewrite(func, |r, inst| {
        let data = &r.func.insts[inst];
        let (Some(&x), Some(&result)) = (data.args.first(), data.results.first()) else {
            return Ok(InstEdit::Keep);
        };
        let op = data.op;
        let to = r.func.ty(result);
        let x = r.resolve(x);
        let value = match op {
            Op::FConv(rounding) => {
                let by_driver = match target.fp16.supported {
                    true => target.fp16.rte,
                    false => target.packs_halves,
                };
                let by_driver = by_driver && !back.contains(&result);
                let forgets = forgets && (rounding != Rounding::Rte || back.contains(&result));
                let narrowing = Narrowing {
                    by_driver,
                    forgets,
                    flushes: target.quirks.has(CodeQuirk::FlushedFloats),
                };
                float_to_float(r, x, to, rounding, narrowing)
            }
            Op::SToF(Rounding::Rte) | Op::UToF(Rounding::Rte)
                if forgets
                    && r.func.ty(x).bits() > to.bits() / 2
                    && to != Type::F64
                    && back.contains(&result) =>
            {
                let float = r.op(op, [x], Type::F32);
                match to {
                    // Exact before, but beyond the largest half.
                    Type::F16 => float_to_half(r, float),
                    _ => opaque_float(r, float),
                }
            }
            Op::SToF(rounding) if rounding != Rounding::Rte => {
                int_to_float(r, x, to, true, rounding)
            }
            Op::UToF(rounding) if rounding != Rounding::Rte => {
                int_to_float(r, x, to, false, rounding)
            }
            Op::FToS { rounding, sat } if rounding != Rounding::Rtz || sat => {
                float_to_int(r, x, to, true, rounding, sat)
            }
            Op::FToU { rounding, sat } if rounding != Rounding::Rtz || sat => {
                float_to_int(r, x, to, false, rounding, sat)
            }
            _ => return Ok(InstEdit::Keep),
        };
        Ok(r.replace_result(inst, value))
    })
}
