//! Evaluates operations with one definite result, as a device does where KIR leaves it open.

use super::eval::eval;
use super::scalar::Scalar;
use crate::fused::Fused;
use crate::ir::fold::convert;
use crate::ir::function::FpFlags;
use crate::ir::op::{NativeFn, Op, Rounding};
use crate::ir::types::Type;

/// Returns the result of a pure operation. It is known if all operands are.
pub(super) fn concrete(op: Op, types: &[Type], args: &[Scalar], result: Type) -> Scalar {
    let value = match op {
        Op::FNative(which) => native(which, types, args, result).unwrap_or_default(),
        // Freedoms of fast arithmetic are not taken.
        _ => eval(op, FpFlags::default(), types, args, result, 0),
    };
    if args.iter().all(|arg| arg.is_known()) {
        return Scalar::known(value.bits);
    }
    match op {
        Op::FNative(_) => Scalar::unknown(result, value.bits),
        _ => value,
    }
}

/// Evaluates a native function, rounded once.
fn native(which: NativeFn, types: &[Type], args: &[Scalar], result: Type) -> Option<Scalar> {
    let wide = |at: usize| {
        let (ty, value) = (*types.get(at)?, args.get(at)?);
        convert(ty, value.bits, Type::F64, Rounding::Rte).map(f64::from_bits)
    };
    let x = wide(0)?;
    if which == NativeFn::Fma && result == Type::F32 {
        let [a, b, c] = [0, 1, 2].map(|at| args.get(at).map_or(0.0, single));
        return Some(Scalar::known(a.fused(b, c).to_bits().into()));
    }
    let value = match which {
        NativeFn::Sin => x.sin(),
        NativeFn::Cos => x.cos(),
        NativeFn::Exp2 => x.exp2(),
        NativeFn::Log2 => x.log2(),
        NativeFn::Rsqrt => 1.0 / x.sqrt(),
        NativeFn::Sqrt => x.sqrt(),
        NativeFn::Pow => x.powf(wide(1)?),
        NativeFn::Fma => x.fused(wide(1)?, wide(2)?),
    };
    let bits = convert(Type::F64, value.to_bits(), result, Rounding::Rte)?;
    Some(Scalar::known(bits))
}

fn single(value: &Scalar) -> f32 {
    f32::from_bits(value.bits as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_has_a_value() {
        let go = |op, ty: Type, args: &[u64]| {
            let types = vec![ty; args.len()];
            let args: Vec<Scalar> = args.iter().map(|&bits| Scalar::known(bits)).collect();
            concrete(op, &types, &args, ty)
        };
        assert!(go(Op::UDiv, Type::I32, &[7, 0]).is_known());
        assert!(go(Op::Shl, Type::I32, &[7, 40]).is_known());
        let (inf, two) = (f32::INFINITY.to_bits().into(), 4f32.to_bits().into());
        let nan = go(Op::FSub, Type::F32, &[inf, inf]);
        assert!(nan.is_known() && single(&nan).is_nan());
        let root = go(Op::FNative(NativeFn::Rsqrt), Type::F32, &[two]);
        assert_eq!(single(&root), 0.5);
        let half = go(Op::FNative(NativeFn::Sqrt), Type::F16, &[0x4400]);
        assert_eq!(half, Scalar::known(0x4000));
        let unknown = Scalar::unknown(Type::F32, 0);
        let sum = concrete(Op::FAdd, &[Type::F32; 2], &[unknown; 2], Type::F32);
        assert!(!sum.is_known());
    }
}
