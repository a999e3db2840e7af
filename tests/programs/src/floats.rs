//! Numbers of the three floating-point types as bits. Only exact results are given: what has to be rounded may be
//! contracted or computed otherwise by a conforming device.

use crate::types::Scalar;

/// The value of some bits.
pub fn value(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::Double => f64::from_bits(bits),
        Scalar::Float => f64::from(f32::from_bits(bits as u32)),
        _ => {
            let (exponent, fraction) = ((bits >> 10) & 31, (bits & 1023) as f64);
            let size = match exponent {
                0 => fraction * 2f64.powi(-24),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1024.0 + fraction) * 2f64.powi(exponent as i32 - 25),
            };
            if bits & 0x8000 == 0 {
                size
            } else {
                -size
            }
        }
    }
}

/// The bits of a value that the type has, is finite and not denormal.
pub fn exact(scalar: Scalar, value: f64) -> Option<u64> {
    if !value.is_finite() {
        return None;
    }
    match scalar {
        Scalar::Double => Some(value.to_bits()),
        Scalar::Float => {
            let single = value as f32;
            let fits = f64::from(single) == value && (single.is_normal() || single == 0.0);
            fits.then(|| u64::from(single.to_bits()))
        }
        _ => {
            let bits = value.to_bits();
            let sign = bits >> 63 << 15;
            if value == 0.0 {
                return Some(sign);
            }
            let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
            let fraction = bits & ((1 << 52) - 1);
            let fits = (-14..=15).contains(&exponent) && fraction % (1 << 42) == 0;
            fits.then(|| sign | ((exponent + 15) as u64) << 10 | fraction >> 42)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_trip() {
        for bits in 0..0x1_0000u64 {
            let normal = (1..31).contains(&(bits >> 10 & 31)) || bits & 0x7fff == 0;
            let back = exact(Scalar::Half, value(Scalar::Half, bits));
            assert_eq!(back, normal.then_some(bits));
        }
        assert_eq!(exact(Scalar::Half, 2049.0), None);
        assert_eq!(exact(Scalar::Float, 16_777_217.0), None);
        assert_eq!(exact(Scalar::Float, -2.5), Some(0xc020_0000));
    }
}
