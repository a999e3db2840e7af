//! Arithmetic on one lane. What the standard leaves open is an error, not a value.

use super::Undefined;
use crate::ast::{Atomic, Binary, Collect, Pure, Unary};
use crate::floats;
use crate::types::{sign_extend, Scalar};

type Lane = Result<u64, Undefined>;

/// The value of an integer, which has at most 64 bits.
fn wide(scalar: Scalar, bits: u64) -> i128 {
    if scalar.is_signed() {
        i128::from(sign_extend(bits, scalar.bits()))
    } else {
        i128::from(bits)
    }
}

/// The bits of an integer that the type has.
fn narrow(scalar: Scalar, value: i128) -> Lane {
    let bits = value as u64 & scalar.mask();
    if scalar.is_signed() && wide(scalar, bits) != value {
        return Err(Undefined("a signed integer overflows"));
    }
    Ok(bits)
}

/// The nearest value that the type has.
fn saturated(scalar: Scalar, value: i128) -> u64 {
    let bits = scalar.bits();
    let (low, high) = if scalar.is_signed() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    value.clamp(low, high) as u64 & scalar.mask()
}

/// The bits of a float that needs no rounding and on whose way none may arise.
fn float(scalar: Scalar, value: f64) -> Lane {
    let small = value.abs() < 2f64.powi(45) && (value * 16.0).fract() == 0.0;
    let bits = floats::exact(scalar, value).filter(|_| small);
    bits.ok_or(Undefined("a float is rounded"))
}

/// `-1`, in vectors, or 1 for true.
pub fn truth(value: bool, scalar: Scalar, vector: bool) -> u64 {
    match (value, vector) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => scalar.mask(),
    }
}

/// Whether a scalar is not zero.
pub fn is_true(scalar: Scalar, bits: u64) -> bool {
    if scalar.is_float() {
        floats::value(scalar, bits) != 0.0
    } else {
        bits != 0
    }
}

/// A conversion from one type to another.
pub fn convert(from: Scalar, to: Scalar, bits: u64, sat: bool) -> Lane {
    match (from.is_float(), to.is_float()) {
        (false, false) if sat => Ok(saturated(to, wide(from, bits))),
        (false, false) => Ok(wide(from, bits) as u64 & to.mask()),
        (true, true) => float(to, floats::value(from, bits)),
        (false, true) => float(to, wide(from, bits) as f64),
        (true, false) => {
            let value = floats::value(from, bits).trunc() as i128;
            let near = saturated(to, value);
            if !sat && wide(to, near) != value {
                return Err(Undefined("a float is out of the range of an integer"));
            }
            Ok(near)
        }
    }
}

/// An operator of one operand.
pub fn unary(op: Unary, scalar: Scalar, vector: bool, a: u64) -> Lane {
    match op {
        Unary::Zero => Ok(truth(!is_true(scalar, a), scalar, vector)),
        Unary::Not => Ok(!a & scalar.mask()),
        Unary::Neg if scalar.is_float() => float(scalar, -floats::value(scalar, a)),
        Unary::Neg => narrow(scalar, -wide(scalar, a)),
    }
}

/// An operator of two operands.
pub fn binary(op: Binary, scalar: Scalar, vector: bool, a: u64, b: u64) -> Lane {
    if scalar.is_float() {
        let (x, y) = (floats::value(scalar, a), floats::value(scalar, b));
        return match op {
            Binary::Add => float(scalar, x + y),
            Binary::Sub => float(scalar, x - y),
            Binary::Mul => float(scalar, x * y),
            Binary::Eq => Ok(truth(x == y, scalar, vector)),
            Binary::Ne => Ok(truth(x != y, scalar, vector)),
            Binary::Lt => Ok(truth(x < y, scalar, vector)),
            Binary::Le => Ok(truth(x <= y, scalar, vector)),
            Binary::Gt => Ok(truth(x > y, scalar, vector)),
            Binary::Ge => Ok(truth(x >= y, scalar, vector)),
            _ => Err(Undefined("an operator that floats do not have")),
        };
    }
    let (x, y) = (wide(scalar, a), wide(scalar, b));
    let amount = b as u32 & (scalar.bits() - 1);
    match op {
        Binary::Add => narrow(scalar, x + y),
        Binary::Sub => narrow(scalar, x - y),
        Binary::Mul => narrow(scalar, x.wrapping_mul(y)).and_then(|bits| {
            let fits = x.checked_mul(y).is_some() || !scalar.is_signed();
            fits.then_some(bits)
                .ok_or(Undefined("a signed integer overflows"))
        }),
        Binary::Div | Binary::Rem if y == 0 => Err(Undefined("a division by zero")),
        Binary::Div => narrow(scalar, x / y),
        Binary::Rem => narrow(scalar, x / y).map(|_| (x % y) as u64 & scalar.mask()),
        Binary::And => Ok(a & b),
        Binary::Or => Ok(a | b),
        Binary::Xor => Ok(a ^ b),
        Binary::Shl => Ok(a << amount & scalar.mask()),
        Binary::Shr => Ok((x >> amount) as u64 & scalar.mask()),
        Binary::Eq => Ok(truth(x == y, scalar, vector)),
        Binary::Ne => Ok(truth(x != y, scalar, vector)),
        Binary::Lt => Ok(truth(x < y, scalar, vector)),
        Binary::Le => Ok(truth(x <= y, scalar, vector)),
        Binary::Gt => Ok(truth(x > y, scalar, vector)),
        Binary::Ge => Ok(truth(x >= y, scalar, vector)),
        Binary::Both => Ok(truth(a != 0 && b != 0, scalar, vector)),
        Binary::Either => Ok(truth(a != 0 || b != 0, scalar, vector)),
    }
}

/// A built-in function on the lanes of its operands; `third` has its own type in `select`.
pub fn pure(f: Pure, scalar: Scalar, vector: bool, args: [u64; 3], third: Scalar) -> Lane {
    let [a, b, c] = args;
    if scalar.is_float() && !matches!(f, Pure::Select | Pure::Bitselect) {
        let [x, y, z] = args.map(|bits| floats::value(scalar, bits));
        return match f {
            Pure::Fabs => float(scalar, x.abs()),
            Pure::Floor => float(scalar, x.floor()),
            Pure::Ceil => float(scalar, x.ceil()),
            Pure::Trunc => float(scalar, x.trunc()),
            Pure::Rint => float(scalar, x.round_ties_even()),
            Pure::Fmax if x == 0.0 && y == 0.0 && a != b => Err(Undefined("of two zeros one")),
            Pure::Fmin if x == 0.0 && y == 0.0 && a != b => Err(Undefined("of two zeros one")),
            Pure::Fmax => float(scalar, x.max(y)),
            Pure::Fmin => float(scalar, x.min(y)),
            Pure::Fma | Pure::Mad => float(scalar, x * y).and(float(scalar, x * y + z)),
            _ => Err(Undefined("a function that floats do not have")),
        };
    }
    let (x, y) = (wide(scalar, a), wide(scalar, b));
    let bits = scalar.bits();
    let mask = scalar.mask();
    Ok(match f {
        Pure::Abs => x.unsigned_abs() as u64 & mask,
        Pure::AbsDiff => (x - y).unsigned_abs() as u64 & mask,
        Pure::AddSat => saturated(scalar, x + y),
        Pure::SubSat => saturated(scalar, x - y),
        Pure::Hadd => ((x + y) >> 1) as u64 & mask,
        Pure::Rhadd => ((x + y + 1) >> 1) as u64 & mask,
        Pure::Clz => u64::from(a.leading_zeros() - (64 - bits)),
        Pure::Ctz => u64::from(a.trailing_zeros().min(bits)),
        Pure::Popcount => u64::from(a.count_ones()),
        Pure::Rotate => {
            let by = b as u32 & (bits - 1);
            let low = if by == 0 { 0 } else { a >> (bits - by) };
            (a << by | low) & mask
        }
        Pure::MulHi => (x.wrapping_mul(y) >> bits) as u64 & mask,
        Pure::Max => x.max(y) as u64 & mask,
        Pure::Min => x.min(y) as u64 & mask,
        Pure::Quotient if y == 0 => c,
        Pure::Quotient => narrow(scalar, x / y).unwrap_or(c),
        Pure::Bitselect => a & !c | b & c,
        Pure::Select if vector => [a, b][usize::from(c >> (third.bits() - 1) & 1 != 0)],
        Pure::Select => [a, b][usize::from(c != 0)],
        _ => return Err(Undefined("a function that integers do not have")),
    })
}

/// Returns the value that an atomic function writes.
pub fn atomic(op: Atomic, scalar: Scalar, old: u64, a: u64, b: u64) -> u64 {
    let (x, y) = (wide(scalar, old), wide(scalar, a));
    match op {
        Atomic::Add => old.wrapping_add(a) & scalar.mask(),
        Atomic::Sub => old.wrapping_sub(a) & scalar.mask(),
        Atomic::Min => [a, old][usize::from(x < y)],
        Atomic::Max => [a, old][usize::from(x > y)],
        Atomic::And => old & a,
        Atomic::Or => old | a,
        Atomic::Xor => old ^ a,
        Atomic::Xchg => a,
        Atomic::Cmpxchg => [old, b][usize::from(old == a)],
    }
}

/// The results of a collective function for those that take part, in their order.
pub fn collect(
    what: Collect,
    scalar: Scalar,
    values: &[u64],
    from: usize,
) -> Result<Vec<u64>, Undefined> {
    let (add, low, high): (_, i128, i128) = match scalar.is_signed() {
        true => (Scalar::unsigned(scalar), i128::MIN, i128::MAX),
        false => (scalar, 0, i128::MAX),
    };
    let order = |a: u64, b: u64| wide(scalar, a).cmp(&wide(scalar, b));
    let sum = |a: u64, b: u64| {
        if scalar.is_float() {
            binary(Binary::Add, scalar, false, a, b)
        } else {
            binary(Binary::Add, add, false, a, b)
        }
    };
    let least = |a: u64, b: u64| if order(a, b).is_le() { a } else { b };
    let most = |a: u64, b: u64| if order(a, b).is_ge() { a } else { b };
    let all = |value: u64| Ok(vec![value; values.len()]);
    match what {
        Collect::ReduceAdd => all(values.iter().try_fold(0, |a, &b| sum(a, b))?),
        Collect::ReduceMin => all(values.iter().copied().reduce(least).unwrap_or(0)),
        Collect::ReduceMax => all(values.iter().copied().reduce(most).unwrap_or(0)),
        // Each from another.
        Collect::Shuffle => Err(Undefined("a shuffle by one place")),
        Collect::Broadcast => all(*values
            .get(from)
            .ok_or(Undefined("a broadcast from nowhere"))?),
        Collect::Ballot => {
            let bits = values.iter().take(32).enumerate();
            all(bits.fold(0, |mask, (i, &value)| mask | u64::from(value != 0) << i))
        }
        Collect::All => all(u64::from(values.iter().all(|&value| value != 0))),
        Collect::Any => all(u64::from(values.iter().any(|&value| value != 0))),
        Collect::ScanInclusiveAdd | Collect::ScanExclusiveAdd => {
            let mut total = 0;
            let mut results = Vec::new();
            for &value in values {
                let before = total;
                total = sum(total, value)?;
                let inclusive = what == Collect::ScanInclusiveAdd;
                results.push(if inclusive { total } else { before });
            }
            Ok(results)
        }
        Collect::ScanInclusiveMax => {
            let mut best = saturated(scalar, low);
            let step = |&value: &u64| {
                best = most(best, value);
                best
            };
            Ok(values.iter().map(step).collect())
        }
        Collect::ScanExclusiveMin => {
            let mut best = saturated(scalar, high);
            let step = |&value: &u64| {
                let before = best;
                best = least(best, value);
                before
            };
            Ok(values.iter().map(step).collect())
        }
    }
}
