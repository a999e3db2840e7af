//! Pixels that share bytes, as kernels read them: RAW10 and RAW12 (cl_ext_image_raw10_raw12). Of each pixel of a block the
//! high eight bits are a byte; one more byte holds the low bits of all, those of the first pixel lowest. They are not
//! written: work-items beside one another would write the same bytes.

use super::format::Channel;
use super::image::Descriptor;

/// A block of pixels.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Pixels of a block.
    pixels: u32,
    /// Low bits of each.
    low: u32,
}

impl Block {
    /// Returns the layout of pixels that share bytes, or `None` if the channel has none.
    fn of(channel: Channel) -> Option<Self> {
        match channel {
            Channel::Raw10 => Some(Self { pixels: 4, low: 2 }),
            Channel::Raw12 => Some(Self { pixels: 2, low: 4 }),
            _ => None,
        }
    }
}

/// Returns the first byte of the block that pixel `x` of a row lies in, from the start of the row.
pub fn block_offset(d: &Descriptor, x: u32) -> u64 {
    let pixels = Block::of(d.layout.channel).map_or(1, |block| block.pixels);
    u64::from(x / pixels) * u64::from(d.pixel)
}

/// Reads a pixel in each lane of the mask; those outside are the border's, which is opaque.
///
/// # Safety
/// The descriptor is that of a living image; `out` has four times as many numbers as there are coordinates.
pub unsafe fn load(
    d: &Descriptor,
    (x, y, z): (&[i32], &[i32], &[i32]),
    mask: u64,
    out: &mut [u32],
) {
    let Some(Block { pixels, low }) = Block::of(d.layout.channel) else {
        return;
    };
    let lanes = x.len();
    for (lane, ((&x, &y), &z)) in x.iter().zip(y).zip(z).enumerate() {
        let x = x as u32;
        let y = if d.row == 0 { 0 } else { y as u32 };
        let z = if d.slice == 0 { 0 } else { z as u32 };
        let inside = x < d.size[0] && y < d.size[1] && z < d.size[2] && mask >> lane & 1 == 1;
        let mut value = 0;
        if inside {
            let offset = block_offset(d, x) + u64::from(y) * d.row + u64::from(z) * d.slice;
            let block = d.texels.wrapping_add(offset as usize);
            let place = x % pixels;
            // SAFETY: the block lies within the image: rows are whole blocks.
            let (high, lows) = unsafe {
                (
                    block.wrapping_add(place as usize).read(),
                    block.wrapping_add(pixels as usize).read(),
                )
            };
            let own = u32::from(lows) >> (place * low) & ((1 << low) - 1);
            value = u32::from(high) << low | own;
        }
        for (c, component) in [value, 0, 0, 1].into_iter().enumerate() {
            out[c * lanes + lane] = component;
        }
    }
}
