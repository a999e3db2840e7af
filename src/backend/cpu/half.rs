//! Halves to wider numbers and back, where the processor has no instruction for that.

use super::abi::for_kernels;

/// A half in the lowest bits of the register that a float would be in.
pub type HalfRegister = f32;

for_kernels! {
    /// Rounds to the nearest half, ties to even.
    pub fn half_of_double(x: f64) -> HalfRegister {
        HalfRegister::from_bits(u32::from(half_bits(x)))
    }
}

for_kernels! {
    /// Rounds to nearest, ties to even.
    pub fn half_of_float(x: f32) -> HalfRegister {
        half_of_double(f64::from(x))
    }
}

for_kernels! {
    /// Widens, which is exact.
    pub fn float_of_half(x: HalfRegister) -> f32 {
        double_of_half(x) as f32
    }
}

for_kernels! {
    /// Widens, which is exact.
    pub fn double_of_half(x: HalfRegister) -> f64 {
        let bits = x.to_bits() & 0xffff;
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let (exponent, fraction) = ((bits >> 10) & 31, bits & 0x3ff);
        match exponent {
            0 => sign * f64::from(fraction) * 2f64.powi(-24),
            31 if fraction == 0 => sign * f64::INFINITY,
            31 => f64::from_bits(
                u64::from(bits >> 15) << 63 | 0x7ff8 << 48 | u64::from(fraction & 0x1ff) << 42,
            ),
            _ => sign * f64::from(fraction | 0x400) * 2f64.powi(exponent as i32 - 25),
        }
    }
}

/// Returns the value of a half.
pub fn float_of(bits: u16) -> f32 {
    float_of_half(HalfRegister::from_bits(u32::from(bits)))
}

/// Returns the bits of the nearest half, ties to even.
pub fn half_bits(x: f64) -> u16 {
    let bits = x.to_bits();
    let sign = ((bits >> 48) & 0x8000) as u16;
    if x.is_nan() {
        return sign | 0x7e00 | ((bits >> 42) & 0x1ff) as u16;
    }
    let size = x.abs();
    // Half way between the largest half and the one that would follow.
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = (((bits >> 52) & 0x7ff) as i32 - 1023).max(-14);
    // In units of the last place: whole numbers are halves. Powers of two, so nothing is lost.
    let units = size * 2f64.powi(10 - exponent);
    let whole = units.round_ties_even() as u32;
    // Subnormal ones have no hidden bit; what was rounded up to the next power carries into the exponent.
    sign | (((exponent + 14) as u32) << 10).wrapping_add(whole) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_there_and_back() {
        for bits in 0..=u16::MAX {
            let register = HalfRegister::from_bits(u32::from(bits));
            let wide = double_of_half(register);
            let back = half_bits(wide);
            if wide.is_nan() {
                assert!(back & 0x7c00 == 0x7c00 && back & 0x3ff != 0, "{bits:#x}");
            } else {
                assert_eq!(back, bits, "{wide}");
            }
        }
        // Ties to even, subnormals, overflow.
        assert_eq!(half_bits(1.0 + 2f64.powi(-11)), 0x3c00);
        assert_eq!(half_bits(1.0 + 3.0 * 2f64.powi(-11)), 0x3c02);
        assert_eq!(half_bits(2f64.powi(-25)), 0);
        assert_eq!(half_bits(2f64.powi(-25) * 1.001), 1);
        assert_eq!(half_bits(65519.9), 0x7bff);
        assert_eq!(half_bits(65520.0), 0x7c00);
        assert_eq!(half_bits(-1e-300), 0x8000);
    }
}
