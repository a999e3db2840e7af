//! Colours become pixels: what clEnqueueFillImage writes (OpenCL C specification, "Conversion Rules").

use crate::backend::PixelFormat;
use crate::cl;
use smallvec::SmallVec;

/// The bytes of one pixel, or of a block of equal ones ([`PixelFormat::block`]).
pub type Pixel = SmallVec<[u8; 16]>;

/// Returns the bytes of a fill colour: four channels of 32 bits, one for depth images.
pub fn colour_bytes(format: PixelFormat) -> usize {
    if format.order == cl::CL_DEPTH {
        4
    } else {
        16
    }
}

/// Returns the pixel of a fill colour: floats for normalised and floating-point types, else
/// integers of the type's signedness.
pub fn pack(format: PixelFormat, colour: &[u8]) -> Pixel {
    let mut words = [0u32; 4];
    for (word, bytes) in words.iter_mut().zip(colour.chunks_exact(4)) {
        if let Ok(bytes) = bytes.try_into() {
            *word = u32::from_ne_bytes(bytes);
        }
    }
    if format.is_srgb() {
        for word in words.iter_mut().take(3) {
            *word = to_srgb(f32::from_bits(*word)).to_bits();
        }
    }
    let [r, g, b, a] = words;
    let stored: &[u32] = match format.order {
        cl::CL_A => &[a],
        cl::CL_RG | cl::CL_RGx => &[r, g],
        cl::CL_RA => &[r, a],
        cl::CL_RGB | cl::CL_RGBx => &[r, g, b],
        cl::CL_RGBA | cl::CL_sRGBA => &[r, g, b, a],
        cl::CL_BGRA | cl::CL_sBGRA => &[b, g, r, a],
        cl::CL_ARGB => &[a, r, g, b],
        cl::CL_ABGR => &[a, b, g, r],
        _ => &[r],
    };
    let packed = |bits: &[u32]| -> u32 {
        let mut all = 0;
        for (word, bits) in stored.iter().zip(bits) {
            all = all << bits | unorm(*word, ((1u32 << bits) - 1) as f32);
        }
        all
    };
    let mut pixel = Pixel::new();
    let mut put = |bytes: &[u8]| pixel.extend_from_slice(bytes);
    match format.data {
        cl::CL_UNORM_SHORT_565 => put(&(packed(&[5, 6, 5]) as u16).to_ne_bytes()),
        cl::CL_UNORM_SHORT_555 => put(&(packed(&[5, 5, 5]) as u16).to_ne_bytes()),
        cl::CL_UNORM_INT_101010 => put(&packed(&[10, 10, 10]).to_ne_bytes()),
        cl::CL_UNORM_INT_101010_2 => put(&packed(&[10, 10, 10, 2]).to_ne_bytes()),
        // The high eight bits of each pixel, then the low ones of all, those of the first pixel lowest.
        cl::CL_UNSIGNED_INT_RAW10_EXT => {
            let value = r.min(0x3ff);
            let (high, low) = ((value >> 2) as u8, (value & 3) as u8);
            put(&[high, high, high, high, low * 0b0101_0101]);
        }
        cl::CL_UNSIGNED_INT_RAW12_EXT => {
            let value = r.min(0xfff);
            let (high, low) = ((value >> 4) as u8, (value & 15) as u8);
            put(&[high, high, low * 0b0001_0001]);
        }
        data => stored.iter().for_each(|&word| {
            let signed = word as i32;
            match data {
                cl::CL_UNORM_INT8 => put(&[unorm(word, 255.0) as u8]),
                cl::CL_UNORM_INT16 => put(&(unorm(word, 65535.0) as u16).to_ne_bytes()),
                cl::CL_SNORM_INT8 => put(&[snorm(word, 127.0) as i8 as u8]),
                cl::CL_SNORM_INT16 => put(&(snorm(word, 32767.0) as i16).to_ne_bytes()),
                cl::CL_SIGNED_INT8 => put(&[signed.clamp(-128, 127) as i8 as u8]),
                cl::CL_SIGNED_INT16 => put(&(signed.clamp(-32768, 32767) as i16).to_ne_bytes()),
                cl::CL_UNSIGNED_INT8 => put(&[word.min(255) as u8]),
                cl::CL_UNSIGNED_INT16 => put(&(word.min(65535) as u16).to_ne_bytes()),
                cl::CL_HALF_FLOAT => put(&half_from(f32::from_bits(word)).to_ne_bytes()),
                _ => put(&word.to_ne_bytes()),
            }
        }),
    }
    pixel
}

/// Converts to a normalised number, rounded to nearest even and saturated; NaN is 0.
fn unorm(word: u32, scale: f32) -> u32 {
    (f32::from_bits(word) * scale)
        .round_ties_even()
        .clamp(0.0, scale) as u32
}

/// Converts as [`unorm`] does, with a sign; -1 is the negated scale, and one below it saturates to
/// the type's least value.
fn snorm(word: u32, scale: f32) -> i32 {
    (f32::from_bits(word) * scale)
        .round_ties_even()
        .clamp(-scale - 1.0, scale) as i32
}

fn to_srgb(linear: f32) -> f32 {
    if linear.is_nan() || linear < 0.0 {
        0.0
    } else if linear > 1.0 {
        1.0
    } else if linear < 0.003_130_8 {
        12.92 * linear
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    }
}

/// Rounds to half precision, to nearest even.
fn half_from(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // 65520 and more round to infinity.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // A subnormal half, or 0: scaled so that one unit of it is 1, the addition rounds.
        let units = f32::from_bits(magnitude) * 16_777_216.0;
        return sign | units.round_ties_even() as u16;
    }
    let rebiased = magnitude - (112 << 23);
    let rounded = rebiased + 0xfff + (rebiased >> 13 & 1);
    sign | (rounded >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(order: u32, data: u32, colour: [f32; 4]) -> Vec<u8> {
        let bytes: Vec<u8> = colour.iter().flat_map(|c| c.to_ne_bytes()).collect();
        pack(PixelFormat { order, data }, &bytes).to_vec()
    }

    #[test]
    fn colours_are_rounded_and_saturated() {
        let c = [0.5, -1.0, 2.0, f32::NAN];
        assert_eq!(floats(cl::CL_RGBA, cl::CL_UNORM_INT8, c), [128, 0, 255, 0]);
        assert_eq!(floats(cl::CL_BGRA, cl::CL_UNORM_INT8, c), [255, 0, 128, 0]);
        assert_eq!(
            floats(cl::CL_RG, cl::CL_SNORM_INT8, [-1.0, -3.0, 0.0, 0.0]),
            [129, 128]
        );
        assert_eq!(
            floats(cl::CL_RGB, cl::CL_UNORM_SHORT_565, [1.0, 0.0, 1.0, 0.0]),
            0xf81fu16.to_ne_bytes()
        );
        assert_eq!(
            floats(cl::CL_RGBA, cl::CL_UNORM_INT_101010_2, [1.0, 0.0, 0.5, 1.0]),
            (1023u32 << 22 | 512 << 2 | 3).to_ne_bytes()
        );
        assert_eq!(
            floats(cl::CL_sRGBA, cl::CL_UNORM_INT8, [1.0, 0.0, 0.5, 0.5]),
            [255, 0, 188, 128]
        );
        let ints: Vec<u8> = [-200i32, 300, 5, 0]
            .iter()
            .flat_map(|c| c.to_ne_bytes())
            .collect();
        let format = PixelFormat {
            order: cl::CL_RG,
            data: cl::CL_SIGNED_INT8,
        };
        assert_eq!(pack(format, &ints).as_slice(), [128, 127]);
    }

    #[test]
    fn blocks_of_equal_pixels() {
        let of = |data, value: u32| {
            let colour: Vec<u8> = [value, 9, 9, 9]
                .iter()
                .flat_map(|c| c.to_ne_bytes())
                .collect();
            let format = PixelFormat {
                order: cl::CL_R,
                data,
            };
            let block = pack(format, &colour);
            assert_eq!(block.len(), format.bytes());
            block.to_vec()
        };
        let (ten, twelve) = (cl::CL_UNSIGNED_INT_RAW10_EXT, cl::CL_UNSIGNED_INT_RAW12_EXT);
        assert_eq!(of(ten, 0x202), [0x80, 0x80, 0x80, 0x80, 0xaa]);
        assert_eq!(of(ten, 4000), [255; 5]);
        assert_eq!(of(twelve, 0xabc), [0xab, 0xab, 0xcc]);
        assert_eq!(of(twelve, 5000), [255; 3]);
    }

    #[test]
    fn halves_round_to_nearest_even() {
        for (value, bits) in [
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65520.0, 0x7c00),
            (65519.9, 0x7bff),
            (5.960_464_5e-8, 1),
            (2.980_232_2e-8, 0),
            (6.103_515_6e-5, 0x0400),
            (1.000_488_3, 0x3c00),
            (1.001_464_8, 0x3c02),
        ] {
            assert_eq!(half_from(value), bits, "{value}");
        }
    }
}
