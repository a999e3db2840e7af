//! Evaluates pure operations on values with unknown bits: [`fold`] computes the bits, and this
//! module how unknown ones propagate.

use super::scalar::Scalar;
use crate::ir::fold::{self, fold};
use crate::ir::function::FpFlags;
use crate::ir::op::{IntCond, Op, Rounding};
use crate::ir::types::Type;
use smallvec::SmallVec;

fn sign_bit(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}

fn exponent_mask(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x7c00,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    }
}

/// Returns the canonical NaN.
fn nan(ty: Type) -> u64 {
    let exponent = exponent_mask(ty);
    exponent | exponent >> 1 & !exponent
}

fn is_nan(ty: Type, bits: u64) -> bool {
    bits & !sign_bit(ty) & ty.mask() > exponent_mask(ty)
}

/// Returns a NaN of unknown payload, as arithmetic makes.
fn any_nan(ty: Type) -> Scalar {
    Scalar {
        bits: nan(ty),
        unknown: ty.mask() & !exponent_mask(ty),
    }
}

fn is_any_nan(ty: Type, value: Scalar) -> bool {
    if !ty.is_float() {
        return false;
    }
    // Its sign may be known.
    let open = any_nan(ty).unknown;
    value.unknown | sign_bit(ty) == open && value.bits & !open == exponent_mask(ty)
}

/// Returns true if a value is a NaN whatever its unknown bits are. Half of a double-precision NaN
/// may be known.
fn is_certainly_nan(ty: Type, value: Scalar) -> bool {
    is_any_nan(ty, value) || ty.is_float() && is_nan(ty, value.bits & !value.unknown)
}

/// Returns true if the unknown bits may make the value a NaN.
fn may_be_nan(ty: Type, value: Scalar) -> bool {
    is_nan(ty, value.bits | value.unknown)
}

/// Returns true if the value is infinite or its unknown bits may make it so.
fn may_be_infinite(ty: Type, value: Scalar) -> bool {
    let open = value.unknown | sign_bit(ty);
    ty.is_float() && (value.bits ^ exponent_mask(ty)) & !open & ty.mask() == 0
}

/// Returns the mask of all bits from the lowest set one upwards.
fn upwards(mask: u64) -> u64 {
    mask | mask.wrapping_neg()
}

fn sext(ty: Type, bits: u64) -> u64 {
    fold::sext(ty, bits) as u64
}

/// Returns true if the operation computes with the values of its floats, not with their bits.
fn is_arithmetic(op: Op) -> bool {
    !matches!(
        op,
        Op::Bitcast
            | Op::Join
            | Op::Low
            | Op::High
            | Op::Select
            | Op::FNeg
            | Op::FAbs
            | Op::FCopySign
    )
}

/// Returns the result of a pure operation. `noise` fills in what the operation leaves open
/// altogether.
pub fn eval(
    op: Op,
    fp: FpFlags,
    types: &[Type],
    args: &[Scalar],
    result: Type,
    noise: u64,
) -> Scalar {
    let nothing = Scalar::unknown(result, noise);
    let mask = result.mask();
    let Some((&a, &ty)) = args.first().zip(types.first()) else {
        return nothing;
    };
    let convert = Op::FConv(Rounding::Rte);
    match op {
        Op::UnpackHalf => {
            let half = Scalar {
                bits: a.bits & Type::F16.mask(),
                unknown: a.unknown & Type::F16.mask(),
            };
            return eval(convert, fp, &[Type::F16], &[half], result, noise);
        }
        Op::PackHalf => return eval(convert, fp, types, args, Type::F16, noise),
        _ => {}
    }
    let b = args.get(1).copied().unwrap_or_default();
    let floats = ty.is_float() || result.is_float();
    let mut bits: SmallVec<[u64; 4]> = args.iter().map(|v| v.bits).collect();
    let mut unknown = args.iter().fold(0, |all, v| all | v.unknown);
    let lifted = floats && is_arithmetic(op);
    if lifted {
        // That it is a NaN is all that matters of one.
        unknown = 0;
        for ((&value, &ty), bits) in args.iter().zip(types).zip(&mut bits) {
            if is_certainly_nan(ty, value) {
                *bits = nan(ty);
            } else {
                unknown |= value.unknown;
            }
        }
    }
    let shift = matches!(op, Op::Shl | Op::LShr | Op::AShr);
    if shift && b.bits >= u64::from(ty.bits()) {
        return nothing;
    }
    let Some(folded) = fold(op, fp, types, &bits, result) else {
        return nothing;
    };
    if let Op::ICmp(cond) = op {
        if let Some(ordered) = order(cond, ty, a, b) {
            return Scalar::known(ordered.into());
        }
    }
    let spread = if unknown == 0 {
        0
    } else {
        match op {
            Op::And => (a.unknown | b.unknown) & (a.bits | a.unknown) & (b.bits | b.unknown),
            Op::Or => (a.unknown | b.unknown) & (!a.bits | a.unknown) & (!b.bits | b.unknown),
            Op::Xor | Op::Not => unknown,
            Op::IAdd | Op::ISub | Op::IMul | Op::INeg | Op::PtrAdd => upwards(unknown),
            _ if shift && b.unknown != 0 => mask,
            Op::Shl => a.unknown << b.bits,
            Op::LShr => a.unknown >> b.bits,
            Op::AShr => (sext(ty, a.unknown) as i64 >> b.bits) as u64,
            Op::BitReverse => a.unknown.reverse_bits() >> (64 - ty.bits()),
            Op::ZExt | Op::Trunc | Op::Bitcast | Op::PtrToInt | Op::IntToPtr | Op::FNeg => {
                a.unknown
            }
            Op::Low => a.unknown & Type::I32.mask(),
            Op::High => a.unknown >> 32,
            Op::Join => a.unknown | b.unknown << 32,
            Op::SExt => sext(ty, a.unknown),
            Op::FAbs => a.unknown & !sign_bit(ty),
            Op::FCopySign => a.unknown & !sign_bit(ty) | b.unknown & sign_bit(ty),
            Op::Select => {
                let c = args.get(2).copied().unwrap_or_default();
                if a.unknown != 0 {
                    let open = b.unknown | c.unknown | (b.bits ^ c.bits);
                    // A NaN or an infinity must not look like a NaN of which nothing else is known.
                    if is_certainly_nan(result, b) != is_certainly_nan(result, c) {
                        open | exponent_mask(result)
                    } else {
                        open
                    }
                } else if a.bits & 1 != 0 {
                    b.unknown
                } else {
                    c.unknown
                }
            }
            Op::ICmp(IntCond::Eq | IntCond::Ne)
                if (a.bits ^ b.bits) & !(a.unknown | b.unknown) & ty.mask() != 0 =>
            {
                // They differ whatever the rest is, and `folded` says so.
                0
            }
            _ => mask,
        }
    };
    let mut value = Scalar {
        bits: folded,
        unknown: spread & mask,
    };
    if floats && matches!(op, Op::FNeg | Op::FAbs | Op::FCopySign) {
        // Operations on bits, but devices have been seen to leave a NaN's sign as it was, and may change it.
        if is_certainly_nan(ty, a) {
            value = any_nan(result);
        } else if may_be_nan(ty, a) {
            // If it is one, so is the result, of which no more is known.
            value.unknown |= any_nan(result).unknown;
        } else if op == Op::FCopySign && may_be_nan(ty, b) {
            value.unknown |= sign_bit(result);
        }
    }
    if lifted && result.is_float() && value.unknown == 0 {
        if is_nan(result, folded) {
            value = any_nan(result);
        } else if folded & !sign_bit(result) == 0
            && (matches!(op, Op::FMin | Op::FMax) && a.bits ^ b.bits == sign_bit(ty))
        {
            // Which of the zeros is open.
            value.unknown = sign_bit(result);
        }
    }
    // Bits that become a float are not computed with: their sign is theirs.
    if fp.0 != 0 && floats && !matches!(op, Op::Bitcast | Op::Join | Op::Low | Op::High) {
        value = with_freedoms(fp, types, args, result, value).unwrap_or(nothing);
        if fp.has(FpFlags::NSZ) && matches!(op, Op::FDiv) && b.bits & !sign_bit(ty) == 0 {
            value.unknown |= sign_bit(result);
        }
    }
    value
}

/// Returns the result of a comparison that is the same for all values that the two integers may
/// have.
fn order(cond: IntCond, ty: Type, a: Scalar, b: Scalar) -> Option<bool> {
    // A number with a sign is ordered like one without, its highest bit changed.
    let sign = match cond {
        IntCond::Eq | IntCond::Ne => return None,
        IntCond::Slt | IntCond::Sle | IntCond::Sgt | IntCond::Sge => sign_bit(ty),
        IntCond::Ult | IntCond::Ule | IntCond::Ugt | IntCond::Uge => 0,
    };
    let range = |v: Scalar| {
        let bits = (v.bits ^ sign) & ty.mask();
        // The bits of a NaN are not those of an infinity.
        let more = Type::float(ty.bits()).is_some_and(|float| is_any_nan(float, v));
        let least = bits & !v.unknown | u64::from(more);
        (least, bits | v.unknown & ty.mask())
    };
    let ((least, most), (low, high)) = (range(a), range(b));
    let below = match (most < low, least >= high) {
        (false, false) => None,
        (below, _) => Some(below),
    };
    let above = match (least > high, most <= low) {
        (false, false) => None,
        (above, _) => Some(above),
    };
    match cond {
        IntCond::Ult | IntCond::Slt => below,
        IntCond::Uge | IntCond::Sge => below.map(|below| !below),
        IntCond::Ugt | IntCond::Sgt => above,
        _ => above.map(|above| !above),
    }
}

/// Returns the result of an instruction as far as its fast-math flags define it, or `None` if they
/// leave all of it open.
fn with_freedoms(
    fp: FpFlags,
    types: &[Type],
    args: &[Scalar],
    result: Type,
    value: Scalar,
) -> Option<Scalar> {
    let known = Scalar::known(value.bits);
    let all = types.iter().copied().zip(args.iter().copied());
    let mut floats = all.chain([(result, known)]).filter(|(ty, _)| ty.is_float());
    let promised = |(ty, value)| {
        fp.has(FpFlags::NNAN) && may_be_nan(ty, value)
            || fp.has(FpFlags::NINF) && may_be_infinite(ty, value)
    };
    if floats.any(promised) {
        return None;
    }
    let mut value = value;
    if fp.has(FpFlags::NSZ) && result.is_float() && value.bits & !sign_bit(result) == 0 {
        value.unknown |= sign_bit(result);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(op: Op, ty: Type, args: &[Scalar]) -> Scalar {
        go_to(op, ty, args, ty)
    }

    fn go_to(op: Op, ty: Type, args: &[Scalar], result: Type) -> Scalar {
        let types = vec![ty; args.len()];
        eval(op, FpFlags::default(), &types, args, result, 0x5a5a)
    }

    #[test]
    fn masks_take_unknown_bits_away() {
        let half = Scalar {
            bits: 0x1234,
            unknown: 0xff00,
        };
        let low = go(Op::And, Type::I32, &[half, Scalar::known(0xff)]);
        assert_eq!(low, Scalar::known(0x34));
        let sum = go(Op::IAdd, Type::I32, &[half, Scalar::known(1)]);
        assert_eq!(sum.unknown, 0xffff_ff00);
        let set = go(Op::Or, Type::I16, &[half, Scalar::known(0xff00)]);
        assert_eq!(set, Scalar::known(0xff34));
    }

    #[test]
    fn orders_are_known_of_ranges() {
        let compare = |cond, a: Scalar, b| {
            go_to(
                Op::ICmp(cond),
                Type::I32,
                &[a, Scalar::known(b)],
                Type::Bool,
            )
        };
        let high = Scalar {
            bits: 0x4000_0000,
            unknown: 0xff,
        };
        assert_eq!(compare(IntCond::Ult, high, 0x4000_0100), Scalar::known(1));
        assert_eq!(compare(IntCond::Ugt, high, 0x4000_00ff), Scalar::known(0));
        assert_ne!(compare(IntCond::Ugt, high, 0x4000_00fe).unknown, 0);
        assert_eq!(compare(IntCond::Uge, high, 0x4000_0000), Scalar::known(1));
        assert_ne!(compare(IntCond::Uge, high, 0x4000_0001).unknown, 0);
        let signed = Scalar {
            bits: 0,
            unknown: 0x8000_0000,
        };
        assert_ne!(compare(IntCond::Slt, signed, 0).unknown, 0);
        assert_eq!(compare(IntCond::Sle, signed, 0), Scalar::known(1));
        // Of a NaN it is known that it is no infinity.
        let nan = Scalar {
            bits: 0x7f80_0000,
            unknown: 0x007f_ffff,
        };
        assert_eq!(compare(IntCond::Ugt, nan, 0x7f80_0000), Scalar::known(1));
    }

    #[test]
    fn signs_of_zeros_are_those_of_quotients() {
        let inf = |fp| {
            let args = [Scalar::known(0x3f80_0000), Scalar::known(0)];
            eval(Op::FDiv, fp, &[Type::F32; 2], &args, Type::F32, 0)
        };
        assert_eq!(inf(FpFlags::default()), Scalar::known(0x7f80_0000));
        assert_eq!(inf(FpFlags(FpFlags::NSZ)).unknown, 0x8000_0000);
        // But not bits that become a float, whatever is promised of it.
        let types = [Type::I32];
        let zero = [Scalar::known(0)];
        let float = eval(
            Op::Bitcast,
            FpFlags(FpFlags::NSZ),
            &types,
            &zero,
            Type::F32,
            0,
        );
        assert_eq!(float, Scalar::known(0));
    }

    #[test]
    fn a_nan_stays_a_nan_and_no_more() {
        let inf = Scalar::known(0x7f80_0000);
        let value = go(Op::FSub, Type::F32, &[inf, inf]);
        assert_eq!(value.unknown, 0x807f_ffff);
        let again = go(Op::FAdd, Type::F32, &[value, inf]);
        assert_eq!(again, value);
        let ordered = eval(
            Op::FCmp(crate::ir::op::FloatCond::Ord),
            FpFlags::default(),
            &[Type::F32; 2],
            &[value, value],
            Type::Bool,
            0,
        );
        assert_eq!(ordered, Scalar::known(0));
    }

    #[test]
    fn what_may_break_a_promise_has_any_bits() {
        let unknown = Scalar {
            bits: 0,
            unknown: Type::F32.mask(),
        };
        let sign_of = |fp, from| {
            let args = [Scalar::known(0), from];
            eval(Op::FCopySign, fp, &[Type::F32; 2], &args, Type::F32, 0).unknown
        };
        let all = Type::F32.mask();
        assert_eq!(sign_of(FpFlags(FpFlags::NINF), unknown), all);
        assert_eq!(
            sign_of(FpFlags(FpFlags::NINF), Scalar::known(0x7f80_0000)),
            all
        );
        assert_eq!(
            sign_of(FpFlags(FpFlags::NINF), Scalar::known(0xbf80_0000)),
            0
        );
        assert_eq!(sign_of(FpFlags::default(), unknown), 1 << 31);
    }

    #[test]
    fn what_may_be_a_nan_has_any_sign() {
        let any = Scalar::unknown(Type::F32, 0x1234);
        let (one, half) = (Scalar::known(0x3f80_0000), Scalar::known(0x3f00_0000));
        for args in [[any, one], [one, any]] {
            let value = go(Op::FCopySign, Type::F32, &args);
            assert_ne!(value.unknown & 0x8000_0000, 0, "{value:x?}");
        }
        let known = go(Op::FCopySign, Type::F32, &[half, one]);
        assert_eq!(known, half);
        // The upper half of a NaN of double precision.
        let upper = Scalar {
            bits: 0x7ff8_0000,
            unknown: 0x800f_ffff,
        };
        let value = go(Op::FAbs, Type::F32, &[upper]);
        assert_eq!(value, any_nan(Type::F32));
    }

    #[test]
    fn a_nan_or_an_infinity_is_not_known_to_be_a_nan() {
        let ty = Type::F16;
        let choice = eval(
            Op::Select,
            FpFlags::default(),
            &[Type::Bool, ty, ty],
            &[
                Scalar::unknown(Type::Bool, 0),
                any_nan(ty),
                Scalar::known(0x7c00),
            ],
            ty,
            0,
        );
        let ordered = eval(
            Op::FCmp(crate::ir::op::FloatCond::Ord),
            FpFlags::default(),
            &[ty; 2],
            &[choice, choice],
            Type::Bool,
            0,
        );
        assert_eq!(ordered.unknown, 1);
    }

    #[test]
    fn what_may_be_a_nan_has_any_bits() {
        let ty = Type::F32;
        let number = Scalar::known(0x66af_91bb);
        let choice = eval(
            Op::Select,
            FpFlags::default(),
            &[Type::Bool, ty, ty],
            &[Scalar::unknown(Type::Bool, 0), number, any_nan(ty)],
            ty,
            0,
        );
        let negated = go(Op::FNeg, ty, &[choice]);
        assert_eq!(negated.unknown & 0x807f_ffff, 0x807f_ffff);
    }

    #[test]
    fn the_lesser_of_zeros_has_any_sign() {
        let (zero, other, number) = (0, 0x8000, 0x7bff);
        let least = |a, b| go(Op::FMin, Type::F16, &[Scalar::known(a), Scalar::known(b)]);
        assert_eq!(least(zero, number), Scalar::known(0));
        assert_eq!(least(zero, other).unknown, 0x8000);
    }

    #[test]
    fn what_is_left_open_is_unknown() {
        let (one, zero) = (Scalar::known(1), Scalar::known(0));
        assert_eq!(go(Op::UDiv, Type::I8, &[one, zero]).unknown, 0xff);
        assert_eq!(
            go(Op::Shl, Type::I8, &[one, Scalar::known(8)]).unknown,
            0xff
        );
    }
}
