//! Computes a fused multiply-add on the host: a * b + c, rounded once.
//!
//! `f64::mul_add` is the C library's `fma`, and that of mingw-w64 rounds twice: first to the 64
//! bits of an x87 register. So on that target the sum is computed with integers here; elsewhere the
//! C library's is right, and an instruction at best.

/// Set if the C library rounds twice.
const TWICE: bool = cfg!(all(windows, target_env = "gnu"));

/// Numbers with a fused multiply-add.
pub trait Fused {
    /// Computes `self * b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;
}

impl Fused for f32 {
    fn fused(self, b: f32, c: f32) -> f32 {
        if TWICE {
            // It has the value of a number of single precision already, or is too large for one.
            sum(self.into(), b.into(), c.into(), 24, -149) as f32
        } else {
            self.mul_add(b, c)
        }
    }
}

impl Fused for f64 {
    fn fused(self, b: f64, c: f64) -> f64 {
        if TWICE {
            sum(self, b, c, 53, -1074)
        } else {
            self.mul_add(b, c)
        }
    }
}

/// The highest bit of an addend: there is room above for a carry and below for what is rounded off.
const TOP: u32 = 125;

/// Returns the significand of a finite number other than zero, and the power of two that it is
/// multiplied with.
fn parts(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    }
}

/// Shifts a number so that its highest bit is at [`TOP`].
fn raised(significand: u128, exponent: i32) -> (u128, i32) {
    let by = significand.leading_zeros() - (127 - TOP);
    (significand << by, exponent - by as i32)
}

/// Returns 2 to a power that double precision can represent.
fn power(exponent: i32) -> f64 {
    match exponent {
        ..-1022 => f64::from_bits(1 << (exponent + 1074)),
        _ => f64::from_bits(((exponent + 1023) as u64) << 52),
    }
}

/// Computes a * b + c, rounded to the nearest number of `digits` bits that is a multiple of 2 to
/// the power of `least`.
fn sum(a: f64, b: f64, c: f64, digits: u32, least: i32) -> f64 {
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        // Infinities, NaNs and zeros come out as they should of two operations: no product is rounded.
        return a * b + c;
    }
    if !c.is_finite() {
        // However large the product is.
        return c;
    }
    let negative = a.is_sign_negative() != b.is_sign_negative();
    let ((of_a, power_a), (of_b, power_b)) = (parts(a), parts(b));
    let product = raised(u128::from(of_a) * u128::from(of_b), power_a + power_b);
    let (total, exponent, negative) = if c == 0.0 {
        (product.0, product.1, negative)
    } else {
        let (of_c, power_c) = parts(c);
        let addend = raised(of_c.into(), power_c);
        added((product, negative), (addend, c.is_sign_negative()))
    };
    if total == 0 {
        return 0.0;
    }
    let size = rounded(total, exponent, digits, least);
    if negative {
        -size
    } else {
        size
    }
}

/// A number without its sign, as [`raised`] returns it, and whether it is negative.
type Term = ((u128, i32), bool);

/// Adds two numbers. Returns significand, power and sign. If bits are shifted out, the lowest bit
/// is set: both numbers have so many zeros below that it means "a little more", even after the
/// highest bits have cancelled, which they do only where few bits are shifted out.
fn added(one: Term, other: Term) -> (u128, i32, bool) {
    let (larger, smaller) = match one.0 .1 >= other.0 .1 {
        true => (one, other),
        false => (other, one),
    };
    let ((mine, exponent), negative) = larger;
    let difference = exponent.abs_diff(smaller.0 .1);
    let theirs = match difference {
        0..=TOP => {
            let lost = smaller.0 .0 & ((1 << difference) - 1) != 0;
            smaller.0 .0 >> difference | u128::from(lost)
        }
        _ => 1,
    };
    if negative == smaller.1 {
        (mine + theirs, exponent, negative)
    } else {
        (mine.abs_diff(theirs), exponent, negative != (mine < theirs))
    }
}

/// Returns `significand * 2^exponent`, rounded to nearest even in a format of `digits` bits whose
/// smallest subnormal number is `2^least`.
fn rounded(significand: u128, exponent: i32, digits: u32, least: i32) -> f64 {
    let highest = exponent + 127 - significand.leading_zeros() as i32;
    let unit = (highest - (digits as i32 - 1)).max(least);
    let kept = match unit - exponent {
        by @ ..=0 => significand << by.unsigned_abs(),
        by @ 1..=127 => {
            let (whole, rest) = (significand >> by, significand & ((1 << by) - 1));
            let half = 1 << (by - 1);
            let up = rest > half || rest == half && whole & 1 == 1;
            whole + u128::from(up)
        }
        // Less than half a unit.
        _ => 0,
    };
    if unit > 1023 {
        return f64::INFINITY;
    }
    // At most 2 to the power of `digits`; the product is a number of the format, or too large for one.
    kept as f64 * power(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a generator (xorshift) that repeats its numbers in each run.
    fn numbers() -> impl FnMut() -> u64 {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
    }

    fn same(ours: f64, known: f64) -> bool {
        ours.to_bits() == known.to_bits() || ours.is_nan() && known.is_nan()
    }

    /// Compares with values from exact fractions.
    #[test]
    fn known_sums() {
        let tiny = f64::from_bits(1);
        let known = [
            (-98.9, 1.85, 1.0, -181.96500000000003),
            (0.1, 10.0, -1.0, 5.551115123125783e-17),
            (tiny, 0.5, tiny, 2.0 * tiny),
            (tiny, 0.5, 0.0, 0.0),
            (tiny, -0.5, 0.0, -0.0),
            (tiny, 0.75, 0.0, tiny),
            (f64::MAX, 2.0, -f64::MAX, f64::MAX),
            (f64::MAX, 2.0, f64::MAX, f64::INFINITY),
            (1.0, 1.0, -1.0, 0.0),
            (-0.0, 1.0, -0.0, -0.0),
            (f64::INFINITY, 0.0, 1.0, f64::NAN),
            (3.0, f64::NEG_INFINITY, 1.0, f64::NEG_INFINITY),
            (f64::MAX, f64::MAX, f64::NEG_INFINITY, f64::NEG_INFINITY),
            (
                1.0 + f64::EPSILON,
                1.0 + f64::EPSILON,
                tiny,
                1.0000000000000004,
            ),
        ];
        for (a, b, c, value) in known {
            for found in [sum(a, b, c, 53, -1074), a.fused(b, c)] {
                assert!(same(found, value), "{a:e} * {b:e} + {c:e}: {found:e}");
            }
        }
        // Halfway between two numbers but for a bit far below.
        let (a, b) = (1.0 + f32::EPSILON, 1.0 + 2f32.powi(-12));
        let c = 2f32.powi(-100);
        let exact = f64::from(a) * f64::from(b);
        assert_eq!(f64::from(exact as f32), f64::from(a.fused(b, 0.0)));
        for found in [
            sum(a.into(), b.into(), c.into(), 24, -149) as f32,
            a.fused(b, c),
        ] {
            assert!(found >= exact as f32);
        }
    }

    /// Compares with the C library, where it rounds once: numbers near each other, so that much
    /// cancels, and any.
    #[cfg(not(all(windows, target_env = "gnu")))]
    #[test]
    fn random_sums() {
        let mut next = numbers();
        let spread = [0x7ff, 0xff, 0x3f, 3];
        for at in 0..400_000 {
            let range = spread[at % spread.len()];
            let mut double = || {
                let (bits, exponent) = (next(), 0x3ff - range / 2 + next() % (range + 1));
                // Some with few digits, so that sums are exact, or halfway.
                let bits = if next() % 3 == 0 {
                    bits & !0xffff_ffff
                } else {
                    bits
                };
                f64::from_bits(bits & !(0x7ff << 52) | (exponent & 0x7ff) << 52)
            };
            let (a, b) = (double(), double());
            let c = match at % 5 {
                0 => -(a * b),
                1 => -(a * b) * (1.0 + f64::EPSILON * 3.0),
                2 => (a * b) * f64::EPSILON * 0.5,
                _ => double(),
            };
            let (ours, known) = (sum(a, b, c, 53, -1074), a.mul_add(b, c));
            assert!(
                same(ours, known),
                "{a:e} * {b:e} + {c:e}: {ours:e}, not {known:e}"
            );

            let mut single = || {
                let (bits, exponent) = (next() as u32, next() as u32 % (range as u32 + 1));
                let exponent = (127 + exponent).wrapping_sub(range as u32 / 2) & 0xff;
                f32::from_bits(bits & !(0xff << 23) | exponent << 23)
            };
            let (a, b) = (single(), single());
            let c = match at % 5 {
                0 => -(a * b),
                1 => (a * b) * f32::EPSILON * 0.5,
                _ => single(),
            };
            let ours = sum(a.into(), b.into(), c.into(), 24, -149) as f32;
            let known = a.mul_add(b, c);
            let same = ours.to_bits() == known.to_bits() || ours.is_nan() && known.is_nan();
            assert!(same, "{a:e} * {b:e} + {c:e}: {ours:e}, not {known:e}");
        }
    }
}
