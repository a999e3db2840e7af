//! Texels of every format, against bytes and components computed by hand.

use super::{pumice_texel_load, pumice_texel_store, MOST_LANES};
use crate::backend::cpu::format;
use crate::backend::cpu::image::{self, CpuImage, Descriptor};
use crate::backend::{DeviceImage, ImageDesc, ImageDim, PixelFormat};
use crate::cl::*;
use std::sync::Arc;

const WIDTH: u32 = 5;
const HEIGHT: u32 = 3;

fn image(order: u32, data: u32) -> (Arc<dyn DeviceImage>, Descriptor) {
    let desc = ImageDesc {
        dim: ImageDim::D2,
        format: PixelFormat { order, data },
        width: WIDTH,
        height: HEIGHT,
        depth: 1,
        layers: 1,
    };
    let image = CpuImage::create(&desc).expect("an image");
    let descriptor = image::of(image.as_ref()).expect("ours").descriptor();
    (image, descriptor)
}

/// Returns all bytes of an image.
fn bytes(d: &Descriptor) -> Vec<u8> {
    let size = d.pixel as usize * (WIDTH * HEIGHT) as usize;
    // SAFETY: the texels of an image that lives.
    unsafe { std::slice::from_raw_parts(d.texels, size).to_vec() }
}

fn put(d: &Descriptor, at: usize, bytes: &[u8]) {
    // SAFETY: within the texels of an image that lives.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), d.texels.add(at), bytes.len());
    }
}

/// Returns one component of each lane's after the other.
fn load(d: &Descriptor, x: &[i32], y: &[i32], mask: u64) -> Vec<[u32; 4]> {
    let n = x.len();
    let (z, mut out) = (vec![0; n], vec![0xdead_beef; 4 * n]);
    // SAFETY: the image lives; as many coordinates and components as lanes.
    unsafe {
        let (x, y, z) = (x.as_ptr(), y.as_ptr(), z.as_ptr());
        pumice_texel_load(d, n as u32, mask, x, y, z, out.as_mut_ptr());
    }
    (0..n)
        .map(|i| [0, 1, 2, 3].map(|c| out[c * n + i]))
        .collect()
}

fn store(d: &Descriptor, x: &[i32], y: &[i32], mask: u64, texels: &[[u32; 4]]) {
    let n = x.len();
    let z = vec![0; n];
    let values: Vec<u32> = (0..4 * n).map(|i| texels[i % n][i / n]).collect();
    // SAFETY: the image lives; as many coordinates and components as lanes.
    unsafe {
        let (x, y, z) = (x.as_ptr(), y.as_ptr(), z.as_ptr());
        pumice_texel_store(d, n as u32, mask, x, y, z, values.as_ptr());
    }
}

fn floats(values: [f32; 4]) -> [u32; 4] {
    values.map(f32::to_bits)
}

fn integers(values: [i32; 4]) -> [u32; 4] {
    values.map(|value| value as u32)
}

/// Order, data, what is written, the bytes of the pixel, what is read.
type Case = (u32, u32, [u32; 4], &'static [u8], [u32; 4]);

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let half = 128.0 / 255.0;
    vec![
        // Halves are rounded to even: 127.5, 32767.5, 31.5, 15.5, 511.5.
        (CL_RGBA, CL_UNORM_INT8, floats([0.0, 1.0, 0.5, 0.2]), &[0, 255, 128, 51], floats([0.0, 1.0, half, 0.2])),
        (CL_RGBA, CL_UNORM_INT8, floats([-3.0, 7.0, f32::NAN, f32::INFINITY]), &[0, 255, 0, 255], floats([0.0, 1.0, 0.0, 1.0])),
        (CL_BGRA, CL_UNORM_INT8, floats([1.0, 0.2, 0.0, 0.5]), &[0, 51, 255, 128], floats([1.0, 0.2, 0.0, half])),
        (CL_ARGB, CL_UNORM_INT8, floats([1.0, 0.2, 0.0, 0.5]), &[128, 255, 51, 0], floats([1.0, 0.2, 0.0, half])),
        (CL_ABGR, CL_UNORM_INT8, floats([1.0, 0.2, 0.0, 0.5]), &[128, 0, 51, 255], floats([1.0, 0.2, 0.0, half])),
        (CL_R, CL_UNORM_INT8, floats([0.2, 1.0, 1.0, 0.0]), &[51], floats([0.2, 0.0, 0.0, 1.0])),
        (CL_A, CL_UNORM_INT8, floats([1.0, 1.0, 1.0, 0.2]), &[51], floats([0.0, 0.0, 0.0, 0.2])),
        (CL_RG, CL_UNORM_INT8, floats([0.2, 1.0, 1.0, 0.0]), &[51, 255], floats([0.2, 1.0, 0.0, 1.0])),
        (CL_RA, CL_UNORM_INT8, floats([0.2, 0.5, 0.5, 1.0]), &[51, 255], floats([0.2, 0.0, 0.0, 1.0])),
        (CL_INTENSITY, CL_FLOAT, floats([0.25, 1.0, 2.0, 3.0]), &[0, 0, 0x80, 0x3e], floats([0.25; 4])),
        (CL_LUMINANCE, CL_FLOAT, floats([0.25, 1.0, 2.0, 3.0]), &[0, 0, 0x80, 0x3e], floats([0.25, 0.25, 0.25, 1.0])),
        (CL_RG, CL_UNORM_INT16, floats([0.5, 1.0, 0.0, 0.0]), &[0, 0x80, 0xff, 0xff], floats([32768.0 / 65535.0, 1.0, 0.0, 1.0])),
        (CL_DEPTH, CL_UNORM_INT16, floats([0.5, 0.0, 0.0, 0.0]), &[0, 0x80], floats([32768.0 / 65535.0, 0.0, 0.0, 1.0])),
        (CL_DEPTH, CL_FLOAT, floats([0.5, 0.0, 0.0, 0.0]), &[0, 0, 0, 0x3f], floats([0.5, 0.0, 0.0, 1.0])),
        (CL_RGBA, CL_SNORM_INT8, floats([-1.0, -2.0, 0.5, 1.0]), &[0x81, 0x81, 64, 127], floats([-1.0, -1.0, 64.0 / 127.0, 1.0])),
        (CL_RG, CL_SNORM_INT16, floats([-1.0, 1.0, 0.0, 0.0]), &[1, 0x80, 0xff, 0x7f], floats([-1.0, 1.0, 0.0, 1.0])),
        (CL_RGBA, CL_SIGNED_INT8, integers([-200, 200, -5, 7]), &[0x80, 127, 0xfb, 7], integers([-128, 127, -5, 7])),
        (CL_RG, CL_SIGNED_INT16, integers([-40000, 40000, 0, 0]), &[0, 0x80, 0xff, 0x7f], integers([-32768, 32767, 0, 1])),
        (CL_RG, CL_SIGNED_INT32, integers([i32::MIN, -2, 0, 0]), &[0, 0, 0, 0x80, 0xfe, 255, 255, 255], integers([i32::MIN, -2, 0, 1])),
        (CL_RGBA, CL_UNSIGNED_INT8, [300, 255, 1, u32::MAX], &[255, 255, 1, 255], [255, 255, 1, 255]),
        (CL_R, CL_UNSIGNED_INT16, [70000, 0, 0, 0], &[255, 255], [65535, 0, 0, 1]),
        (CL_R, CL_UNSIGNED_INT32, [0xfedc_ba98, 0, 0, 0], &[0x98, 0xba, 0xdc, 0xfe], [0xfedc_ba98, 0, 0, 1]),
        (CL_RGBA, CL_HALF_FLOAT, floats([1.0, -2.5, 65504.0, 1e6]), &[0, 0x3c, 0, 0xc1, 0xff, 0x7b, 0, 0x7c], floats([1.0, -2.5, 65504.0, f32::INFINITY])),
        (CL_R, CL_FLOAT, [0x8000_0001, 0, 0, 0], &[1, 0, 0, 0x80], [0x8000_0001, 0, 0, 1f32.to_bits()]),
        (CL_RGB, CL_UNORM_SHORT_565, floats([1.0, 0.5, 0.0, 0.0]), &[0, 0xfc], floats([1.0, 32.0 / 63.0, 0.0, 1.0])),
        (CL_RGB, CL_UNORM_SHORT_555, floats([1.0, 0.5, 0.0, 0.0]), &[0, 0x7e], floats([1.0, 16.0 / 31.0, 0.0, 1.0])),
        (CL_RGB, CL_UNORM_INT_101010, floats([1.0, 0.5, 0.0, 0.0]), &[0, 0, 0xf8, 0x3f], floats([1.0, 512.0 / 1023.0, 0.0, 1.0])),
        (CL_RGBA, CL_UNORM_INT_101010_2, floats([1.0, 0.5, 0.0, 1.0]), &[3, 0, 0xe0, 0xff], floats([1.0, 512.0 / 1023.0, 0.0, 1.0])),
    ]
}

#[test]
fn written_and_read_back() {
    for (order, data, written, pixel, read) in cases() {
        let (_image, d) = image(order, data);
        let size = pixel.len();
        assert_eq!(d.pixel as usize, size, "{order:#x} {data:#x}");
        store(&d, &[2], &[1], 1, &[written]);
        let mut all = vec![0; size * (WIDTH * HEIGHT) as usize];
        let at = size * (WIDTH + 2) as usize;
        all[at..at + size].copy_from_slice(pixel);
        assert_eq!(bytes(&d), all, "{order:#x} {data:#x}");
        assert_eq!(load(&d, &[2], &[1], 1), [read], "{order:#x} {data:#x}");
    }
}

/// Pixels of two blocks a row, against the tables of cl_ext_image_raw10_raw12. What is beyond is the border.
#[test]
fn pixels_that_share_bytes() {
    let raw10: (u32, &[u8], &[u32]) = (
        CL_UNSIGNED_INT_RAW10_EXT,
        &[
            0xff,
            0x80,
            0x01,
            0x00,
            0b11_10_01_00,
            1,
            2,
            3,
            4,
            0b00_01_10_11,
        ],
        &[0x3fc, 0x201, 6, 3, 7, 10, 13, 16],
    );
    let raw12: (u32, &[u8], &[u32]) = (
        CL_UNSIGNED_INT_RAW12_EXT,
        &[0xab, 0xcd, 0xfe, 0x00, 0xff, 0x0f],
        &[0xabe, 0xcdf, 0x00f, 0xff0],
    );
    for (data, stored, pixels) in [raw10, raw12] {
        let format = PixelFormat { order: CL_R, data };
        let desc = ImageDesc {
            dim: ImageDim::D2,
            format,
            width: 2,
            height: 2,
            depth: 1,
            layers: 1,
        };
        let image = CpuImage::create(&desc).expect("an image");
        let d = image::of(image.as_ref()).expect("ours").descriptor();
        assert_eq!(d.size, [pixels.len() as u32, 2, 1]);
        put(&d, 0, &vec![0; 2 * stored.len()]);
        put(&d, stored.len(), stored);
        let count = pixels.len() as i32;
        let x: Vec<i32> = (-1..=count).collect();
        let got = load(&d, &x, &vec![1; x.len()], u64::MAX);
        let border = [0, 0, 0, 1];
        assert_eq!((got[0], got[x.len() - 1]), (border, border));
        for (pixel, got) in pixels.iter().zip(&got[1..]) {
            assert_eq!(*got, [*pixel, 0, 0, 1], "{data:#x}");
        }
        // Other lanes, other rows, and lanes that are off.
        assert_eq!(load(&d, &[1, 1], &[0, 1], 3)[0], border);
        assert_eq!(load(&d, &[1, 1], &[1, 1], 2)[1], [pixels[1], 0, 0, 1]);
        // Nothing writes them.
        store(&d, &[0], &[0], 1, &[[1; 4]]);
        assert_eq!(load(&d, &[0], &[0], 1)[0], border);
    }
}

/// The formula of the specification's section on sRGB images, for bytes whose values are tabulated.
#[test]
fn srgb_is_linear_when_read() {
    let known = [
        (0, 0.0f32),
        (10, 0.003_035_27),
        (11, 0.003_346_54),
        (128, 0.215_860_5),
        (188, 0.502_886_5),
        (255, 1.0),
    ];
    for (order, channel) in [(CL_sRGBA, 0), (CL_sBGRA, 2)] {
        let (_image, d) = image(order, CL_UNORM_INT8);
        for (byte, value) in known {
            let mut pixel = [0, 0, 0, 51];
            pixel[channel] = byte;
            put(&d, 0, &pixel);
            let [r, g, b, a] = load(&d, &[0], &[0], 1)[0].map(f32::from_bits);
            assert!((r - value).abs() <= 1e-6, "{byte}: {r}");
            assert_eq!([g, b, a], [0.0, 0.0, 0.2]);
            // As copies with conversion write it.
            store(&d, &[1], &[0], 1, &[floats([r, g, b, a])]);
            assert_eq!(bytes(&d)[4..8], pixel);
        }
    }
}

#[test]
fn the_lowest_signed_fraction_is_minus_one() {
    let (_image, d) = image(CL_R, CL_SNORM_INT8);
    put(&d, 0, &[0x80]);
    assert_eq!(load(&d, &[0], &[0], 1)[0][0], (-1f32).to_bits());
    let (_image, d) = image(CL_R, CL_SNORM_INT16);
    put(&d, 0, &[0, 0x80]);
    assert_eq!(load(&d, &[0], &[0], 1)[0][0], (-1f32).to_bits());
}

/// Nothing is written outside of an image, or in lanes that do not take part; outside there is the border's colour.
#[test]
fn outside_of_the_image() {
    let (x, y) = ([-1, 5, 0, 0, i32::MIN, 1], [0, 0, -1, 3, i32::MAX, 1]);
    for (order, opaque) in [(CL_RG, true), (CL_RGBA, false), (CL_A, false), (CL_R, true)] {
        let (_image, d) = image(order, CL_FLOAT);
        store(&d, &x, &y, 0b01_1111, &[floats([9.0; 4]); 6]);
        assert!(bytes(&d).iter().all(|&byte| byte == 0));
        let border = [0, 0, 0, if opaque { 1f32.to_bits() } else { 0 }];
        assert_eq!(load(&d, &x, &y, 0b01_1111)[..5], [border; 5]);
    }
    let (_image, d) = image(CL_R, CL_SIGNED_INT32);
    assert_eq!(load(&d, &[9], &[0], 1), [[0, 0, 0, 1]]);
}

/// A whole row at once, which has code of its own, gives what its texels give one by one.
#[test]
fn rows_are_their_texels() {
    let lanes = 64i32;
    assert_eq!(lanes as usize, MOST_LANES);
    for support in format::all() {
        let desc = ImageDesc {
            dim: ImageDim::D2,
            format: support.format,
            width: 70,
            height: 2,
            depth: 1,
            layers: 1,
        };
        let image = CpuImage::create(&desc).expect("an image");
        let d = image::of(image.as_ref()).expect("ours").descriptor();
        let size = 140 * d.pixel as usize;
        let noise: Vec<u8> = (0..size as u32)
            .map(|i| ((i * i * 7 + i * 13) >> 3) as u8)
            .collect();
        put(&d, 0, &noise);
        for n in [1, 3, 8, lanes] {
            let (x, y): (Vec<i32>, Vec<i32>) = (2..2 + n).map(|x| (x, 1)).unzip();
            let row = load(&d, &x, &y, u64::MAX);
            let single = |i: usize| load(&d, &x[i..=i], &y[i..=i], 1)[0];
            let texels: Vec<_> = (0..n as usize).map(single).collect();
            assert_eq!(row, texels, "{:?}, {n} lanes", support.format);
        }
    }
}
