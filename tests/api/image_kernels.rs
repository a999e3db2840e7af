//! Kernels that read, write and ask images, against what the specification's formulas give.

use super::buffers::Random;
use super::images::read_texels;
use pumice_tests::sys::*;
use pumice_tests::{create, Buffer, Kernel, Setup};
use std::ptr::null_mut;

/// Width, height, depth of the test images; layers are as many as the depth.
const SIZE: [usize; 3] = [7, 5, 3];

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    D1,
    D1Array,
    D2,
    D2Array,
    D3,
}

use Shape::*;

impl Shape {
    const ALL: [Self; 5] = [D1, D1Array, D2, D2Array, D3];

    /// In OpenCL C.
    fn name(self) -> &'static str {
        match self {
            D1 => "image1d_t",
            D1Array => "image1d_array_t",
            D2 => "image2d_t",
            D2Array => "image2d_array_t",
            D3 => "image3d_t",
        }
    }
    /// Components of a coordinate in OpenCL C.
    fn swizzle(self) -> &'static str {
        match self {
            D1 => ".x",
            D1Array | D2 => ".xy",
            D2Array | D3 => "",
        }
    }
    fn kind(self) -> cl_mem_object_type {
        match self {
            D1 => CL_MEM_OBJECT_IMAGE1D,
            D1Array => CL_MEM_OBJECT_IMAGE1D_ARRAY,
            D2 => CL_MEM_OBJECT_IMAGE2D,
            D2Array => CL_MEM_OBJECT_IMAGE2D_ARRAY,
            D3 => CL_MEM_OBJECT_IMAGE3D,
        }
    }
    /// Axes that are filtered.
    fn axes(self) -> usize {
        match self {
            D1 | D1Array => 1,
            D2 | D2Array => 2,
            D3 => 3,
        }
    }
    fn layered(self) -> bool {
        matches!(self, D1Array | D2Array)
    }
    /// Size along each coordinate, layers included.
    fn size(self) -> [usize; 3] {
        let [w, h, d] = SIZE;
        match self {
            D1 => [w, 1, 1],
            D1Array => [w, d, 1],
            D2 => [w, h, 1],
            D2Array | D3 => [w, h, d],
        }
    }
}

fn format(order: cl_uint, data: cl_uint) -> cl_image_format {
    cl_image_format {
        image_channel_order: order,
        image_channel_data_type: data,
    }
}

/// An image with these bytes.
fn image(setup: &Setup, shape: Shape, format: cl_image_format, data: &[u8]) -> Buffer {
    let [w, h, d] = shape.size();
    let desc = cl_image_desc {
        image_type: shape.kind(),
        image_width: w,
        image_height: if shape.axes() > 1 { h } else { 1 },
        image_depth: if shape == D3 { d } else { 1 },
        image_array_size: match shape {
            D1Array => h,
            D2Array => d,
            _ => 1,
        },
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    };
    Buffer(create!(clCreateImage(
        setup.context.0,
        CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
        &format,
        &desc,
        data.as_ptr().cast_mut().cast()
    )))
}

fn read_image(setup: &Setup, image: &Buffer, shape: Shape, texel: usize) -> Vec<u8> {
    read_texels(setup, image, shape.size(), texel)
}

/// A sampler that is never released: there are few.
fn sampler(setup: &Setup, normalized: bool, address: cl_uint, filter: cl_uint) -> cl_sampler {
    let list = [
        cl_sampler_properties::from(CL_SAMPLER_NORMALIZED_COORDS),
        normalized.into(),
        cl_sampler_properties::from(CL_SAMPLER_ADDRESSING_MODE),
        address.into(),
        cl_sampler_properties::from(CL_SAMPLER_FILTER_MODE),
        filter.into(),
        0,
    ];
    create!(clCreateSamplerWithProperties(
        setup.context.0,
        list.as_ptr()
    ))
}

const MODES: [(cl_uint, &str, bool); 5] = [
    (CL_ADDRESS_NONE, "CLK_ADDRESS_NONE", false),
    (CL_ADDRESS_CLAMP_TO_EDGE, "CLK_ADDRESS_CLAMP_TO_EDGE", false),
    (CL_ADDRESS_CLAMP, "CLK_ADDRESS_CLAMP", false),
    (CL_ADDRESS_REPEAT, "CLK_ADDRESS_REPEAT", true),
    (
        CL_ADDRESS_MIRRORED_REPEAT,
        "CLK_ADDRESS_MIRRORED_REPEAT",
        true,
    ),
];

/// Texel index of an axis by the formulas of the specification; None: the border.
fn wrap(mode: cl_uint, index: i64, size: i64) -> Option<i64> {
    match mode {
        CL_ADDRESS_CLAMP => (0..size).contains(&index).then_some(index),
        CL_ADDRESS_REPEAT if index < 0 => Some(index + size),
        CL_ADDRESS_REPEAT if index >= size => Some(index - size),
        _ => Some(index.clamp(0, size - 1)),
    }
}

/// A coordinate in texels.
fn texels(mode: cl_uint, normalized: bool, c: f32, size: usize) -> f32 {
    let size = size as f32;
    match mode {
        CL_ADDRESS_REPEAT => (c - c.floor()) * size,
        CL_ADDRESS_MIRRORED_REPEAT => (c - 2.0 * (0.5 * c).round_ties_even()).abs() * size,
        _ if normalized => c * size,
        _ => c,
    }
}

struct Reference<'a> {
    shape: Shape,
    data: &'a [[f32; 4]],
    border: [f32; 4],
    mode: cl_uint,
    normalized: bool,
    linear: bool,
}

impl Reference<'_> {
    fn fetch(&self, at: [Option<i64>; 3]) -> [f32; 4] {
        let [w, h, _] = self.shape.size();
        match at {
            [Some(x), Some(y), Some(z)] => {
                self.data[x as usize + w * (y as usize + h * z as usize)]
            }
            _ => self.border,
        }
    }

    fn sample(&self, at: [f32; 4]) -> [f32; 4] {
        let size = self.shape.size();
        let axes = self.shape.axes();
        // For each coordinate the texels that count and their weights.
        let mut parts: [Vec<(Option<i64>, f32)>; 3] = Default::default();
        for (i, part) in parts.iter_mut().enumerate() {
            let n = size[i] as i64;
            if i < axes {
                let u = texels(self.mode, self.normalized, at[i], size[i]);
                if self.linear {
                    let low = (u - 0.5).floor();
                    let a = (u - 0.5) - low;
                    part.push((wrap(self.mode, low as i64, n), 1.0 - a));
                    part.push((wrap(self.mode, (low as i64).saturating_add(1), n), a));
                } else {
                    part.push((wrap(self.mode, u.floor() as i64, n), 1.0));
                }
            } else if i == axes && self.shape.layered() {
                let layer = at[i].round_ties_even() as i64;
                part.push((Some(layer.clamp(0, n - 1)), 1.0));
            } else {
                part.push((Some(0), 1.0));
            }
        }
        let mut sum = [0.0f64; 4];
        for &(x, wx) in &parts[0] {
            for &(y, wy) in &parts[1] {
                for &(z, wz) in &parts[2] {
                    let texel = self.fetch([x, y, z]);
                    for (s, t) in sum.iter_mut().zip(texel) {
                        *s += f64::from(t) * f64::from(wx) * f64::from(wy) * f64::from(wz);
                    }
                }
            }
        }
        sum.map(|s| s as f32)
    }
}

/// Coordinates in and around an image, some of them on the edges of texels, far away, and no number at all.
fn coordinates(random: &mut Random, shape: Shape, normalized: bool, inside: bool) -> Vec<[f32; 4]> {
    let size = shape.size();
    let mut list = Vec::new();
    for n in 0..256 {
        let mut at = [0.0f32; 4];
        for (i, c) in at.iter_mut().take(3).enumerate() {
            let s = size[i] as f32;
            let wide = if inside { 1.0 } else { 3.0 };
            let mut u = (random.next(4096) as f32 / 4096.0 * wide - (wide - 1.0) / 2.0) * s;
            if n % 4 == 0 {
                u = u.floor();
            }
            if n % 64 == 1 && !inside {
                u *= 1.0e6;
            }
            *c = if normalized && i < shape.axes() {
                u / s
            } else {
                u
            };
        }
        list.push(at);
    }
    list
}

fn bytes<const N: usize>(data: &[[f32; N]]) -> Vec<u8> {
    data.iter()
        .flatten()
        .flat_map(|x| x.to_ne_bytes())
        .collect()
}

fn close(a: [f32; 4], b: [f32; 4], tolerance: f32) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
}

/// Texels are below.
const LARGEST: f32 = 125.0;

#[test]
fn samplers() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let mut random = Random(11);
    for shape in Shape::ALL {
        let (name, swizzle) = (shape.name(), shape.swizzle());
        let mut source = format!(
            "kernel void arg(read_only {name} im, sampler_t s, global const float4 *at, global float4 *out) {{
                 size_t i = get_global_id(0); out[i] = read_imagef(im, s, at[i]{swizzle}); }}
             kernel void ints(read_only {name} im, sampler_t s, global const float4 *at, global float4 *out) {{
                 size_t i = get_global_id(0); out[i] = read_imagef(im, s, convert_int4(at[i]){swizzle}); }}"
        );
        let mut literals = Vec::new();
        for (mode, mode_name, repeats) in MODES {
            for (normalized, linear) in [(false, false), (false, true), (true, false), (true, true)]
            {
                if repeats && !normalized {
                    continue;
                }
                let kernel = format!("literal{}", literals.len());
                let coords = if normalized { "TRUE" } else { "FALSE" };
                let filter = if linear { "LINEAR" } else { "NEAREST" };
                source += &format!(
                    "constant sampler_t s{kernel} = CLK_NORMALIZED_COORDS_{coords} | {mode_name} | CLK_FILTER_{filter};
                     float4 of_{kernel}(read_only {name} im, float4 at) {{ return read_imagef(im, s{kernel}, at{swizzle}); }}
                     kernel void {kernel}(read_only {name} im, sampler_t s, global const float4 *at, global float4 *out) {{
                         size_t i = get_global_id(0); out[i] = of_{kernel}(im, at[i]); }}\n"
                );
                literals.push((kernel, mode, normalized, linear));
            }
        }
        let program = setup.build(&source);
        let count = shape.size().iter().product();
        let four: Vec<[f32; 4]> = (0..count)
            .map(|_| [0; 4].map(|_| random.next(LARGEST as usize * 8) as f32 / 8.0))
            .collect();
        let rgba = image(&setup, shape, format(CL_RGBA, CL_FLOAT), &bytes(&four));
        let one: Vec<[f32; 1]> = four.iter().map(|t| [t[0]]).collect();
        let r = image(&setup, shape, format(CL_R, CL_FLOAT), &bytes(&one));
        let one: Vec<[f32; 4]> = four.iter().map(|t| [t[0], 0.0, 0.0, 1.0]).collect();
        let read = |kernel: &Kernel, mem: &Buffer, s: cl_sampler, at: &[[f32; 4]]| {
            let input = setup.buffer_of(at);
            let out = setup.buffer(size_of_val(at));
            kernel.set_buffer(0, mem).set(1, s);
            kernel.set_buffer(2, &input).set_buffer(3, &out);
            setup.run(kernel, &[at.len()], None);
            setup.read::<[f32; 4]>(&out, at.len())
        };
        for (literal, mode, normalized, linear) in &literals {
            let filter = if *linear {
                CL_FILTER_LINEAR
            } else {
                CL_FILTER_NEAREST
            };
            let s = sampler(&setup, *normalized, *mode, filter);
            let at = coordinates(&mut random, shape, *normalized, *mode == CL_ADDRESS_NONE);
            for (mem, data, border) in [(&rgba, &four, [0.0; 4]), (&r, &one, [0.0, 0.0, 0.0, 1.0])]
            {
                let reference = Reference {
                    shape,
                    data,
                    border,
                    mode: *mode,
                    normalized: *normalized,
                    linear: *linear,
                };
                // The specification leaves the error of a linear filter undefined (section 8.2, "Addressing and Filter
                // Modes"). Asked is 2^-17 of the largest texel, as of weights that are computed as floats: not the eight
                // bits of those of a filter of hardware.
                let tolerance = if *linear { LARGEST / 131_072.0 } else { 0.0 };
                for kernel in ["arg", literal] {
                    let kernel_object = setup.kernel(&program, kernel);
                    let got = read(&kernel_object, mem, s, &at);
                    for (at, got) in at.iter().zip(got) {
                        // Far away floats have no fraction, and what is left of it is not worth comparing.
                        let far = at.iter().any(|c| c.abs() > 1.0e4);
                        if far && (*linear || *normalized) {
                            assert!(got.iter().all(|x| x.is_finite()));
                            continue;
                        }
                        let want = reference.sample(*at);
                        assert!(
                            close(got, want, tolerance),
                            "{name}, {kernel}, mode {mode:#x}, normalized {normalized}, linear {linear}: at {at:?} \
                             {got:?} instead of {want:?}"
                        );
                    }
                }
                if !normalized && !linear {
                    let kernel = setup.kernel(&program, "ints");
                    let whole: Vec<[f32; 4]> = at.iter().map(|a| a.map(f32::trunc)).collect();
                    let got = read(&kernel, mem, s, &whole);
                    for (at, got) in whole.iter().zip(got) {
                        let want = reference.sample(*at);
                        assert_eq!(got, want, "{name}, mode {mode:#x}, at the integers {at:?}");
                    }
                }
            }
            // No number, and no end: any texel will do.
            let kernel = setup.kernel(&program, "arg");
            let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3.0e38].map(|x| [x; 4]);
            for got in read(&kernel, &rgba, s, &odd) {
                assert!(*linear || got.iter().all(|x| x.is_finite()), "{got:?}");
            }
        }
    }
}

#[test]
fn integers_saturate() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let program = setup.build(
        "kernel void signed_ints(read_only image2d_t from, write_only image2d_t to, global int4 *out) {
             int2 at = (int2)(get_global_id(0), get_global_id(1));
             write_imagei(to, at, read_imagei(from, at) * 1000 - (int4)(at.x, at.y, 0, 1)); }
         kernel void unsigned_ints(read_only image2d_t from, write_only image2d_t to, global int4 *out) {
             int2 at = (int2)(get_global_id(0), get_global_id(1));
             write_imageui(to, at, read_imageui(from, at) * 1000u + (uint4)(at.x, at.y, 0, 1)); }
         kernel void ask(read_only image2d_t from, write_only image2d_t to, global int4 *out) {
             out[0] = (int4)(get_image_width(from), get_image_height(to), get_image_channel_data_type(from),
                             get_image_channel_order(to));
             out[1].xy = get_image_dim(to); }",
    );
    let mut random = Random(5);
    let [w, h, _] = D2.size();
    for (data, low, high) in [
        (CL_SIGNED_INT8, -128, 127),
        (CL_SIGNED_INT16, -32768, 32767),
        (CL_SIGNED_INT32, i64::from(i32::MIN), i64::from(i32::MAX)),
        (CL_UNSIGNED_INT8, 0, 255),
        (CL_UNSIGNED_INT16, 0, 65535),
        (CL_UNSIGNED_INT32, 0, i64::from(u32::MAX)),
    ] {
        let is_signed = low < 0;
        let size = match high {
            127 | 255 => 1,
            32767 | 65535 => 2,
            _ => 4usize,
        };
        let format = format(CL_RGBA, data);
        let values: Vec<i64> = (0..w * h * 4)
            .map(|_| random.next(200) as i64 - if is_signed { 100 } else { 0 })
            .collect();
        let encode = |values: &[i64]| -> Vec<u8> {
            let one = |v: &i64| v.to_le_bytes()[..size].to_vec();
            values.iter().flat_map(one).collect()
        };
        let from = image(&setup, D2, format, &encode(&values));
        let to = image(&setup, D2, format, &vec![0; w * h * 4 * size]);
        let out = setup.buffer_of(&[[0i32; 4]; 2]);
        let name = if is_signed {
            "signed_ints"
        } else {
            "unsigned_ints"
        };
        let kernel = setup.kernel(&program, name);
        kernel
            .set_buffer(0, &from)
            .set_buffer(1, &to)
            .set_buffer(2, &out);
        setup.run(&kernel, &[w, h], None);
        let sign = if is_signed { -1 } else { 1 };
        let want: Vec<i64> = values
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let at = [i / 4 % w, i / 4 / w, 0, 1][i % 4] as i64;
                (v * 1000 + sign * at).clamp(low, high)
            })
            .collect();
        assert_eq!(
            read_image(&setup, &to, D2, 4 * size),
            encode(&want),
            "{data:#x}"
        );
        let kernel = setup.kernel(&program, "ask");
        kernel
            .set_buffer(0, &from)
            .set_buffer(1, &to)
            .set_buffer(2, &out);
        setup.run(&kernel, &[1], None);
        let answers: Vec<[i32; 4]> = setup.read(&out, 2);
        assert_eq!(
            answers[0],
            [w as i32, h as i32, data as i32, CL_RGBA as i32]
        );
        assert_eq!(answers[1][..2], [w as i32, h as i32]);
    }
}

#[test]
fn written_texels() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    for shape in Shape::ALL {
        let (name, swizzle) = (shape.name(), shape.swizzle());
        // Outside of the image nothing is written.
        let program = setup.build(&format!(
            "kernel void fill(write_only {name} im) {{
                 int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0) - 1;
                 write_imagef(im, at{swizzle}, convert_float4(at) + 0.5f); }}"
        ));
        let [w, h, d] = shape.size();
        let count = w * h * d;
        let mem = image(
            &setup,
            shape,
            format(CL_RGBA, CL_FLOAT),
            &vec![0; count * 16],
        );
        let kernel = setup.kernel(&program, "fill");
        kernel.set_buffer(0, &mem);
        let beyond = |size: usize, used: bool| if used { size + 2 } else { 2 };
        let axes = shape.axes() + usize::from(shape.layered());
        setup.run(
            &kernel,
            &[w + 2, beyond(h, axes > 1), beyond(d, axes > 2)],
            None,
        );
        let got = read_image(&setup, &mem, shape, 16);
        let mut want = Vec::new();
        for i in 0..count {
            // What the geometry has not was 0 in one work-item and -1 in the other.
            let at = [i % w, i / w % h, i / w / h].map(|c| c as f32 + 0.5);
            want.extend([at[0], at[1], at[2], -0.5]);
        }
        for (i, (got, want)) in got.chunks(16).zip(want.chunks(4)).enumerate() {
            let got: Vec<f32> = got
                .chunks(4)
                .map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
                .collect();
            assert_eq!(got[..axes], want[..axes], "{name}, texel {i}");
        }
    }
}

#[test]
fn reads_see_writes() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let Ok(program) = setup.try_build(
        "kernel void steps(read_write image2d_t im, global float4 *out) {
             int2 at = (int2)(get_global_id(0), get_global_id(1));
             float4 sum = read_imagef(im, at);
             for (int i = 0; i < 3; i++) {
                 write_imagef(im, at, sum + 1.0f);
                 atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item);
                 sum += read_imagef(im, at);
             }
             write_imagef(im, at, (float4)(7.0f));
             atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item);
             out[at.y * get_image_width(im) + at.x] = sum * 100.0f + read_imagef(im, at);
         }
         kernel void neighbours(read_write image2d_t im, global float4 *out) {
             int2 at = (int2)(get_global_id(0), get_global_id(1));
             write_imagef(im, at, convert_float4((int4)(at, at)));
             work_group_barrier(CLK_IMAGE_MEM_FENCE);
             out[at.y * get_image_width(im) + at.x] = read_imagef(im, (int2)(get_image_width(im) - 1 - at.x, at.y));
         }",
        "-cl-std=CL3.0",
    ) else {
        return pumice_tests::left_out("no read_write images");
    };
    let [w, h, _] = D2.size();
    let start: Vec<[f32; 4]> = (0..w * h).map(|i| [i as f32; 4]).collect();
    let mem = image(&setup, D2, format(CL_RGBA, CL_FLOAT), &bytes(&start));
    let out = setup.buffer(w * h * 16);
    let kernel = setup.kernel(&program, "steps");
    kernel.set_buffer(0, &mem).set_buffer(1, &out);
    setup.run(&kernel, &[w, h], None);
    let got: Vec<[f32; 4]> = setup.read(&out, w * h);
    for (i, got) in got.iter().enumerate() {
        let sum = (0..3).fold(i as f32, |sum, _| sum + (sum + 1.0));
        assert_eq!(*got, [sum * 100.0 + 7.0; 4], "texel {i}");
    }
    let kernel = setup.kernel(&program, "neighbours");
    kernel.set_buffer(0, &mem).set_buffer(1, &out);
    setup.run(&kernel, &[w, h], Some(&[w, 1]));
    let got: Vec<[f32; 4]> = setup.read(&out, w * h);
    for (i, got) in got.iter().enumerate() {
        let (x, y) = ((w - 1 - i % w) as f32, (i / w) as f32);
        assert_eq!(*got, [x, y, x, y], "texel {i}");
    }
}

#[test]
fn halves_and_functions() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    // Without optimisation everything goes through private memory, images and samplers too.
    for options in ["", "-cl-opt-disable", "-cl-std=CL1.2"] {
        let program = setup
            .try_build(
                "#ifdef cl_khr_fp16
                 #pragma OPENCL EXTENSION cl_khr_fp16 : enable
                 #endif
                 float4 twice(read_only image2d_t im, sampler_t s, int2 at) { return 2.0f * read_imagef(im, s, at); }
                 kernel void f(read_only image2d_t from, write_only image2d_t to, sampler_t s) {
                     const sampler_t own = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
                     int2 at = (int2)(get_global_id(0), get_global_id(1));
                     float4 sum = twice(from, own, at) + twice(from, s, at - 1);
                 #ifdef cl_khr_fp16
                     write_imageh(to, at, convert_half4(sum) + read_imageh(from, own, at + 1));
                 #else
                     write_imagef(to, at, sum + read_imagef(from, own, at + 1));
                 #endif
                 }",
                options,
            )
            .unwrap_or_else(|log| panic!("{options}: {log}"));
        let [w, h, _] = D2.size();
        let texels: Vec<[f32; 4]> = (0..w * h).map(|i| [i as f32, 1.0, -2.0, 0.5]).collect();
        let from = image(&setup, D2, format(CL_RGBA, CL_FLOAT), &bytes(&texels));
        let to = image(&setup, D2, format(CL_RGBA, CL_FLOAT), &vec![0; w * h * 16]);
        let kernel = setup.kernel(&program, "f");
        let s = sampler(&setup, false, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST);
        kernel.set_buffer(0, &from).set_buffer(1, &to).set(2, s);
        setup.run(&kernel, &[w, h], None);
        let got = read_image(&setup, &to, D2, 16);
        for (i, got) in got.chunks(16).enumerate() {
            let (x, y) = (i % w, i / w);
            let at = |x: usize, y: usize| texels[x + w * y];
            let before = at(x.saturating_sub(1), y.saturating_sub(1));
            let after = if x + 1 < w && y + 1 < h {
                at(x + 1, y + 1)
            } else {
                [0.0; 4]
            };
            for c in 0..4 {
                let want = 2.0 * at(x, y)[c] + 2.0 * before[c] + after[c];
                let got = f32::from_ne_bytes([0, 1, 2, 3].map(|b| got[4 * c + b]));
                assert_eq!(got, want, "{options}: texel {x}, {y}");
            }
        }
    }
}
