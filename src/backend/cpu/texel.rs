//! Texels as kernels read and write them. Called by the code of kernels for all lanes of a pack at once.
//!
//! Conversions are those of the OpenCL specification, section 8.3 ("Conversion rules"), correctly rounded.

use super::abi::for_kernels;
use super::format::{Channel, ONE, ZERO};
use super::half;
use super::image::Descriptor;
use super::raw;
use std::sync::OnceLock;

/// Lanes of a pack at most.
const MOST_LANES: usize = 64;

/// A kind of channel: what is stored, and as what it is seen.
trait Stored {
    /// Bytes of a channel; of the pixel, where it is packed.
    const BYTES: usize;
    /// The bits of 1.
    const UNIT: u32;
    /// Reads the channels of the pixel at an address.
    ///
    /// # Safety
    /// `n` channels must be readable there.
    unsafe fn read(at: *const u8, n: usize, out: &mut [u32; 6]);
    /// Writes the channels of the pixel at an address.
    ///
    /// # Safety
    /// `n` channels must be writable there.
    unsafe fn write(at: *mut u8, n: usize, values: &[u32; 4]);
}

fn float(bits: u32) -> f64 {
    f64::from(f32::from_bits(bits))
}

/// Scales a fraction by `most` and rounds it to the nearest; NaN becomes 0.
fn scaled(bits: u32, least: f64, most: f64) -> i32 {
    let value = float(bits);
    if value.is_nan() {
        return 0;
    }
    (value.clamp(least, 1.0) * most).round_ties_even() as i32
}

macro_rules! channels {
    ($name:ident, $ty:ty, $unit:expr, |$v:ident| $read:expr, |$b:ident| $write:expr) => {
        struct $name;
        impl Stored for $name {
            const BYTES: usize = std::mem::size_of::<$ty>();
            const UNIT: u32 = $unit;
            #[inline(always)]
            unsafe fn read(at: *const u8, n: usize, out: &mut [u32; 6]) {
                for (i, out) in out.iter_mut().enumerate().take(n) {
                    // SAFETY: as the caller promises.
                    let $v = unsafe { at.cast::<$ty>().add(i).read_unaligned() };
                    *out = $read;
                }
            }
            #[inline(always)]
            unsafe fn write(at: *mut u8, n: usize, values: &[u32; 4]) {
                for (i, &$b) in values.iter().enumerate().take(n) {
                    let value: $ty = $write;
                    // SAFETY: as the caller promises.
                    unsafe { at.cast::<$ty>().add(i).write_unaligned(value) };
                }
            }
        }
    };
}

const ONE_F: u32 = 1f32.to_bits();

channels!(
    Unorm8,
    u8,
    ONE_F,
    |v| (f32::from(v) / 255.0).to_bits(),
    |b| scaled(b, 0.0, 255.0) as u8
);
channels!(
    Unorm16,
    u16,
    ONE_F,
    |v| (f32::from(v) / 65535.0).to_bits(),
    |b| scaled(b, 0.0, 65535.0) as u16
);
channels!(
    Snorm8,
    i8,
    ONE_F,
    |v| (f32::from(v) / 127.0).max(-1.0).to_bits(),
    |b| scaled(b, -1.0, 127.0) as i8
);
channels!(
    Snorm16,
    i16,
    ONE_F,
    |v| (f32::from(v) / 32767.0).max(-1.0).to_bits(),
    |b| scaled(b, -1.0, 32767.0) as i16
);
channels!(
    Signed8,
    i8,
    1,
    |v| i32::from(v) as u32,
    |b| (b as i32).clamp(-128, 127) as i8
);
channels!(
    Signed16,
    i16,
    1,
    |v| i32::from(v) as u32,
    |b| (b as i32).clamp(-32768, 32767) as i16
);
channels!(Signed32, u32, 1, |v| v, |b| b);
channels!(Unsigned8, u8, 1, |v| u32::from(v), |b| b.min(255) as u8);
channels!(Unsigned16, u16, 1, |v| u32::from(v), |b| b.min(65535)
    as u16);
channels!(Half, u16, ONE_F, |v| half::float_of(v).to_bits(), |b| {
    half::half_bits(float(b))
});
channels!(Float, u32, ONE_F, |v| v, |b| b);

/// Bytes with the sRGB transfer function; the fourth channel has none.
struct Srgb8;

fn linear() -> &'static [u32; 256] {
    static TABLE: OnceLock<[u32; 256]> = OnceLock::new();
    TABLE.get_or_init(|| {
        std::array::from_fn(|i| {
            let c = i as f64 / 255.0;
            let linear = if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            };
            (linear as f32).to_bits()
        })
    })
}

fn srgb(bits: u32) -> u8 {
    let value = float(bits);
    if value.is_nan() {
        return 0;
    }
    let c = value.clamp(0.0, 1.0);
    let c = if c <= 0.003_130_8 {
        c * 12.92
    } else {
        1.055 * c.powf(1.0 / 2.4) - 0.055
    };
    (c * 255.0).round_ties_even() as u8
}

impl Stored for Srgb8 {
    const BYTES: usize = 1;
    const UNIT: u32 = ONE_F;
    unsafe fn read(at: *const u8, n: usize, out: &mut [u32; 6]) {
        let table = linear();
        for (i, out) in out.iter_mut().enumerate().take(n) {
            // SAFETY: as the caller promises.
            let v = unsafe { at.add(i).read() };
            *out = if i == 3 {
                (f32::from(v) / 255.0).to_bits()
            } else {
                table[usize::from(v)]
            };
        }
    }
    unsafe fn write(at: *mut u8, n: usize, values: &[u32; 4]) {
        for (i, &bits) in values.iter().enumerate().take(n) {
            let v = if i == 3 {
                scaled(bits, 0.0, 255.0) as u8
            } else {
                srgb(bits)
            };
            // SAFETY: as the caller promises.
            unsafe { at.add(i).write(v) };
        }
    }
}

/// Pixels whose channels are bits of one number: how many, from which on.
macro_rules! packed {
    ($name:ident, $ty:ty, $fields:expr) => {
        struct $name;
        impl Stored for $name {
            const BYTES: usize = std::mem::size_of::<$ty>();
            const UNIT: u32 = ONE_F;
            unsafe fn read(at: *const u8, _: usize, out: &mut [u32; 6]) {
                // SAFETY: as the caller promises.
                let v = u32::from(unsafe { at.cast::<$ty>().read_unaligned() });
                let fields: &[(u32, u32)] = &$fields;
                for (&(bits, shift), out) in fields.iter().zip(out) {
                    let most = (1u32 << bits) - 1;
                    *out = ((v >> shift & most) as f32 / most as f32).to_bits();
                }
            }
            unsafe fn write(at: *mut u8, _: usize, values: &[u32; 4]) {
                let fields: &[(u32, u32)] = &$fields;
                let mut v = 0u32;
                for (&(bits, shift), &value) in fields.iter().zip(values) {
                    v |= (scaled(value, 0.0, f64::from((1u32 << bits) - 1)) as u32) << shift;
                }
                // SAFETY: as the caller promises.
                unsafe { at.cast::<$ty>().write_unaligned(v as $ty) };
            }
        }
    };
}

packed!(Packed565, u16, [(5, 11), (6, 5), (5, 0)]);
packed!(Packed555, u16, [(5, 10), (5, 5), (5, 0)]);
packed!(Packed101010, u32, [(10, 20), (10, 10), (10, 0)]);
packed!(Packed1010102, u32, [(10, 22), (10, 12), (10, 2), (2, 0)]);

/// Returns the address of each lane's texel, which is null outside of the image.
fn places(
    d: &Descriptor,
    (x, y, z): (&[i32], &[i32], &[i32]),
    mask: u64,
    out: &mut [*mut u8; MOST_LANES],
) {
    for (i, ((&x, &y), &z)) in x.iter().zip(y).zip(z).enumerate() {
        let (y, z) = (
            if d.row == 0 { 0 } else { y as u32 },
            if d.slice == 0 { 0 } else { z as u32 },
        );
        let inside = (x as u32) < d.size[0] && y < d.size[1] && z < d.size[2] && mask >> i & 1 == 1;
        let offset = u64::from(x as u32) * u64::from(d.pixel)
            + u64::from(y) * d.row
            + u64::from(z) * d.slice;
        out[i] = if inside {
            d.texels.wrapping_add(offset as usize)
        } else {
            std::ptr::null_mut()
        };
    }
}

/// Returns true if the texels of the active lanes are consecutive in a row, all within the image.
fn is_run(d: &Descriptor, (x, y, z): (&[i32], &[i32], &[i32]), mask: u64) -> bool {
    let lanes = x.len();
    let all = u64::MAX >> (64 - lanes);
    let (first, last) = (x[0], x[0].wrapping_add(lanes as i32 - 1));
    mask & all == all
        && first >= 0
        && last >= first
        && (last as u32) < d.size[0]
        && x.iter()
            .enumerate()
            .all(|(i, &x)| x == first.wrapping_add(i as i32))
        && (d.row == 0 || ((y[0] as u32) < d.size[1] && y.iter().all(|&v| v == y[0])))
        && (d.slice == 0 || ((z[0] as u32) < d.size[2] && z.iter().all(|&v| v == z[0])))
}

#[inline(always)]
unsafe fn load_as<S: Stored>(
    d: &Descriptor,
    coordinates: (&[i32], &[i32], &[i32]),
    mask: u64,
    out: &mut [u32],
) {
    let lanes = coordinates.0.len();
    let mut at = [std::ptr::null_mut(); MOST_LANES];
    places(d, coordinates, mask, &mut at);
    let n = usize::from(d.layout.channels).min(4);
    let components = d.layout.components.map(|c| usize::from(c.min(ONE)));
    let mut values = [0u32; 6];
    values[usize::from(ZERO)] = 0;
    values[usize::from(ONE)] = S::UNIT;
    let outside = [0, 0, 0, if d.opaque_border { S::UNIT } else { 0 }];
    for (lane, &at) in at[..lanes].iter().enumerate() {
        if at.is_null() {
            for (c, &value) in outside.iter().enumerate() {
                out[c * lanes + lane] = value;
            }
            continue;
        }
        // SAFETY: within the image.
        unsafe { S::read(at, n, &mut values) };
        for (c, &from) in components.iter().enumerate() {
            out[c * lanes + lane] = values[from];
        }
    }
}

/// Loads a row of texels of `n` channels.
#[inline(always)]
unsafe fn load_run<S: Stored>(d: &Descriptor, at: *const u8, lanes: usize, out: &mut [u32]) {
    let n = usize::from(d.layout.channels).min(4);
    let components = d.layout.components;
    let mut all = [[0u32; 6]; MOST_LANES];
    for (lane, values) in all[..lanes].iter_mut().enumerate() {
        // SAFETY: the run lies within the image.
        unsafe { S::read(at.wrapping_add(lane * n * S::BYTES), n, values) };
    }
    for (c, out) in out.chunks_exact_mut(lanes).enumerate() {
        match components[c] {
            ZERO => out.fill(0),
            ONE => out.fill(S::UNIT),
            from => {
                for (out, values) in out.iter_mut().zip(&all) {
                    *out = values[usize::from(from)];
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn store_as<S: Stored>(
    d: &Descriptor,
    coordinates: (&[i32], &[i32], &[i32]),
    mask: u64,
    values: &[u32],
) {
    let lanes = coordinates.0.len();
    let mut at = [std::ptr::null_mut(); MOST_LANES];
    places(d, coordinates, mask, &mut at);
    let n = usize::from(d.layout.channels).min(4);
    let stored = d.layout.stored.map(|c| usize::from(c & 3));
    for (lane, &at) in at[..lanes].iter().enumerate() {
        if at.is_null() {
            continue;
        }
        let pixel = stored.map(|c| values[c * lanes + lane]);
        // SAFETY: within the image.
        unsafe { S::write(at, n, &pixel) };
    }
}

macro_rules! by_channel {
    ($channel:expr, $f:ident, $($arg:expr),*) => {
        match $channel {
            Channel::Unorm8 => $f::<Unorm8>($($arg),*),
            Channel::Unorm16 => $f::<Unorm16>($($arg),*),
            Channel::Snorm8 => $f::<Snorm8>($($arg),*),
            Channel::Snorm16 => $f::<Snorm16>($($arg),*),
            Channel::Signed8 => $f::<Signed8>($($arg),*),
            Channel::Signed16 => $f::<Signed16>($($arg),*),
            Channel::Signed32 | Channel::Unsigned32 => $f::<Signed32>($($arg),*),
            Channel::Unsigned8 => $f::<Unsigned8>($($arg),*),
            Channel::Unsigned16 => $f::<Unsigned16>($($arg),*),
            Channel::Half => $f::<Half>($($arg),*),
            Channel::Float => $f::<Float>($($arg),*),
            Channel::Srgb8 => $f::<Srgb8>($($arg),*),
            Channel::Packed565 => $f::<Packed565>($($arg),*),
            Channel::Packed555 => $f::<Packed555>($($arg),*),
            Channel::Packed101010 => $f::<Packed101010>($($arg),*),
            Channel::Packed1010102 => $f::<Packed1010102>($($arg),*),
            // Read by `raw::load`, and never written.
            Channel::Raw10 | Channel::Raw12 => {}
        }
    };
}

for_kernels! {
    /// Reads a texel in each lane of the mask.
    ///
    /// # Safety
    /// The descriptor is that of a living image; coordinates have `lanes` (1 to 64) numbers each, `out` room for four times as
    /// many: all first components, all second ones, and so on.
    pub unsafe fn pumice_texel_load(
        d: *const Descriptor,
        lanes: u32,
        mask: u64,
        x: *const i32,
        y: *const i32,
        z: *const i32,
        out: *mut u32,
    ) {
        let lanes = lanes as usize;
        // SAFETY: as the caller promises.
        let (d, x, y, z, out) = unsafe {
            (
                &*d,
                std::slice::from_raw_parts(x, lanes),
                std::slice::from_raw_parts(y, lanes),
                std::slice::from_raw_parts(z, lanes),
                std::slice::from_raw_parts_mut(out, 4 * lanes),
            )
        };
        let channel = d.layout.channel;
        if matches!(channel, Channel::Raw10 | Channel::Raw12) {
            // SAFETY: the image lives; the slices are of `lanes` coordinates.
            return unsafe { raw::load(d, (x, y, z), mask, out) };
        }
        let packed = channel as u8 >= Channel::Packed565 as u8;
        if !packed && is_run(d, (x, y, z), mask) {
            let offset = x[0] as u64 * u64::from(d.pixel)
                + u64::from(y[0] as u32) * d.row
                + u64::from(z[0] as u32) * d.slice;
            let at = d.texels.wrapping_add(offset as usize);
            // SAFETY: the run lies within the image.
            unsafe { by_channel!(channel, load_run, d, at, lanes, out) };
            return;
        }
        // SAFETY: only places within the image are read.
        unsafe { by_channel!(channel, load_as, d, (x, y, z), mask, out) };
    }
}

for_kernels! {
    /// Writes a texel in each lane of the mask.
    ///
    /// # Safety
    /// As [`pumice_texel_load`], with `values` in place of `out`.
    pub unsafe fn pumice_texel_store(
        d: *const Descriptor,
        lanes: u32,
        mask: u64,
        x: *const i32,
        y: *const i32,
        z: *const i32,
        values: *const u32,
    ) {
        let lanes = lanes as usize;
        // SAFETY: as the caller promises.
        let (d, x, y, z, values) = unsafe {
            (
                &*d,
                std::slice::from_raw_parts(x, lanes),
                std::slice::from_raw_parts(y, lanes),
                std::slice::from_raw_parts(z, lanes),
                std::slice::from_raw_parts(values, 4 * lanes),
            )
        };
        // SAFETY: only places within the image are written.
        unsafe { by_channel!(d.layout.channel, store_as, d, (x, y, z), mask, values) };
    }
}

#[cfg(test)]
mod tests;
