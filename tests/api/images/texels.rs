//! Texels that work-items beside one another access: in a row, in any order, outside, and some work-items alone.

use super::*;

/// How texels are seen and stored.
#[derive(Clone, Copy, PartialEq)]
enum As {
    Fraction,
    Signed,
    Unsigned,
    Bits,
}

const SIZE: [usize; 2] = [67, 5];
const COUNT: usize = SIZE[0] * SIZE[1];
/// 0 and 1 in place of the number of a channel.
const ZERO: usize = 4;
const ONE: usize = 5;

/// Formats, the channel of each component, bytes of a channel, and what it is.
const FORMATS: [(cl_uint, cl_uint, [usize; 4], usize, As); 13] = [
    (CL_RGBA, CL_UNORM_INT8, [0, 1, 2, 3], 1, As::Fraction),
    (CL_BGRA, CL_UNORM_INT8, [2, 1, 0, 3], 1, As::Fraction),
    (CL_ARGB, CL_UNORM_INT8, [1, 2, 3, 0], 1, As::Fraction),
    (CL_RG, CL_UNORM_INT8, [0, 1, ZERO, ONE], 1, As::Fraction),
    (CL_R, CL_UNORM_INT8, [0, ZERO, ZERO, ONE], 1, As::Fraction),
    (CL_RGBA, CL_SIGNED_INT8, [0, 1, 2, 3], 1, As::Signed),
    (CL_R, CL_SIGNED_INT8, [0, ZERO, ZERO, ONE], 1, As::Signed),
    (CL_RGBA, CL_UNSIGNED_INT8, [0, 1, 2, 3], 1, As::Unsigned),
    (
        CL_R,
        CL_UNSIGNED_INT8,
        [0, ZERO, ZERO, ONE],
        1,
        As::Unsigned,
    ),
    (CL_RGBA, CL_UNSIGNED_INT32, [0, 1, 2, 3], 4, As::Unsigned),
    (CL_R, CL_SIGNED_INT32, [0, ZERO, ZERO, ONE], 4, As::Signed),
    (CL_RGBA, CL_FLOAT, [0, 1, 2, 3], 4, As::Bits),
    (CL_R, CL_FLOAT, [0, ZERO, ZERO, ONE], 4, As::Bits),
];

/// Where work-items access the image.
fn patterns() -> Vec<Vec<[i32; 2]>> {
    let [w, h] = SIZE.map(|n| n as i32);
    let mut random = Random(77);
    let in_rows: Vec<[i32; 2]> = (0..COUNT as i32).map(|i| [i % w, i / w]).collect();
    let backwards = in_rows.iter().rev().copied().collect();
    let mut mixed = in_rows.clone();
    for i in (1..mixed.len()).rev() {
        mixed.swap(i, random.next(i + 1));
    }
    let beyond = in_rows.iter().map(|[x, y]| [x - 9, y - 1]).collect();
    let mut far = mixed.clone();
    for (i, at) in far.iter_mut().enumerate() {
        match i % 7 {
            0 => at[0] = w,
            3 => at[1] = h + i as i32,
            5 => at[0] = i32::MIN + i as i32,
            6 => at[1] = -1,
            _ => {}
        }
    }
    vec![in_rows, backwards, mixed, beyond, far]
}

/// The place of a texel in the image, if it is in it.
fn place([x, y]: [i32; 2]) -> Option<usize> {
    let [x, y] = [usize::try_from(x).ok()?, usize::try_from(y).ok()?];
    (x < SIZE[0] && y < SIZE[1]).then_some(y * SIZE[0] + x)
}

/// Returns the component that a kernel sees of a channel.
fn seen(bytes: &[u8], kind: As) -> u32 {
    match (kind, bytes) {
        (As::Fraction, &[byte]) => (f32::from(byte) / 255.0).to_bits(),
        (As::Signed, &[byte]) => i32::from(byte as i8) as u32,
        (_, &[byte]) => byte.into(),
        _ => u32::from_ne_bytes(bytes.try_into().expect("a word")),
    }
}

#[test]
fn work_items_access_texels_in_any_order() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let kernels = |suffix: &str, ty: &str| {
        format!(
            "kernel void look_{suffix}(read_only image2d_t im, global int2 *at, uint some, global uint4 *out) {{
                 const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
                 size_t i = get_global_id(0);
                 uint4 v = (uint4)(1, 2, 3, 4);
                 if (some >> (i & 31) & 1)
                     v = as_uint4(read_image{suffix}(im, s, at[i]));
                 out[i] = v;
             }}
             kernel void put_{suffix}(write_only image2d_t im, global int2 *at, uint some, global uint4 *in) {{
                 size_t i = get_global_id(0);
                 if (some >> (i & 31) & 1)
                     write_image{suffix}(im, at[i], as_{ty}4(in[i]));
             }}"
        )
    };
    let source = [("f", "float"), ("i", "int"), ("ui", "uint")].map(|(s, ty)| kernels(s, ty));
    let program = setup.build(&source.concat());
    let formats = supported(&setup, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D);
    for (order, data, components, size, kind) in FORMATS {
        if !formats
            .iter()
            .any(|f| (f.image_channel_order, f.image_channel_data_type) == (order, data))
        {
            continue;
        }
        let name = format!("{order:#x} {data:#x}");
        let (suffix, unit) = match kind {
            As::Fraction | As::Bits => ("f", 1f32.to_bits()),
            As::Signed => ("i", 1),
            As::Unsigned => ("ui", 1),
        };
        let channels = components.iter().filter(|&&c| c < ZERO).count();
        let pixel = channels * size;
        let mut bytes = random(COUNT * pixel);
        if kind == As::Bits {
            // No infinities and NaN.
            bytes.iter_mut().skip(3).step_by(4).for_each(|b| *b &= 0xbf);
        }
        let format = cl_image_format {
            image_channel_order: order,
            image_channel_data_type: data,
        };
        let plane = desc(CL_MEM_OBJECT_IMAGE2D, [SIZE[0], SIZE[1], 0]);
        let im = image(&setup, CL_MEM_READ_WRITE, &format, &plane, null_mut());
        let region = [SIZE[0], SIZE[1], 1];
        let border = [
            0,
            0,
            0,
            if components[3] == 3 || components[3] == 0 {
                0
            } else {
                unit
            },
        ];
        for (number, at) in patterns().iter().enumerate() {
            let places = setup.buffer_of(at);
            for some in [u32::MAX, 0x8421_7f31] {
                let is_active = |i: usize| some >> (i & 31) & 1 == 1;
                write(&setup, &im, [0; 3], region, (0, 0), &bytes);
                let out = setup.buffer(COUNT * 16);
                let kernel = setup.kernel(&program, &format!("look_{suffix}"));
                kernel.set_buffer(0, &im).set_buffer(1, &places);
                kernel.set(2, some).set_buffer(3, &out);
                setup.run(&kernel, &[COUNT], None);
                let got = setup.read::<[u32; 4]>(&out, COUNT);
                for (i, got) in got.iter().enumerate() {
                    let want = match place(at[i]) {
                        _ if !is_active(i) => [1, 2, 3, 4],
                        None => border,
                        Some(place) => components.map(|c| match c {
                            ZERO => 0,
                            ONE => unit,
                            _ => seen(&bytes[place * pixel + c * size..][..size], kind),
                        }),
                    };
                    // Fractions may be 1.5 units of the last place off.
                    let off = |(&got, &want): (&u32, &u32)| {
                        kind == As::Fraction && got.abs_diff(want) < 2
                    };
                    let fits = *got == want || got.iter().zip(&want).all(off);
                    assert!(fits, "{name}, {number}, {some:#x}, {i}: {got:x?} {want:x?}");
                }

                let mut random = Random(9 + number as u64);
                let values: Vec<[u32; 4]> = (0..COUNT)
                    .map(|_| {
                        [(); 4].map(|()| match kind {
                            As::Bits => random.next(1 << 30) as u32,
                            As::Fraction if random.next(20) == 0 => f32::NAN.to_bits(),
                            As::Fraction => ((random.next(700) as f32 - 90.0) / 510.0).to_bits(),
                            _ => (random.next(700) as u32).wrapping_sub(200),
                        })
                    })
                    .collect();
                let written = setup.buffer_of(&values);
                let kernel = setup.kernel(&program, &format!("put_{suffix}"));
                kernel.set_buffer(0, &im).set_buffer(1, &places);
                kernel.set(2, some).set_buffer(3, &written);
                setup.run(&kernel, &[COUNT], None);
                let mut want: Vec<Option<u32>> = vec![None; COUNT * channels];
                for (i, &at) in at.iter().enumerate() {
                    let Some(place) = place(at).filter(|_| is_active(i)) else {
                        continue;
                    };
                    for (component, &channel) in components.iter().enumerate() {
                        if channel < ZERO {
                            want[place * channels + channel] = Some(values[i][component]);
                        }
                    }
                }
                let got = read(&setup, &im, [0; 3], region, (0, 0), COUNT * pixel);
                for (i, got) in got.chunks(size).enumerate() {
                    let old = &bytes[i * size..][..size];
                    let fits = match (want[i], kind) {
                        (None, _) => got == old,
                        // Fractions may be 0.6 off.
                        (Some(bits), As::Fraction) => {
                            let value = f32::from_bits(bits);
                            let value = if value.is_nan() {
                                0.0
                            } else {
                                value.clamp(0.0, 1.0)
                            };
                            (f32::from(got[0]) - value * 255.0).abs() <= 0.6
                        }
                        (Some(bits), As::Signed) if size == 1 => {
                            i32::from(got[0] as i8) == (bits as i32).clamp(-128, 127)
                        }
                        (Some(bits), _) if size == 1 => u32::from(got[0]) == bits.min(255),
                        (Some(bits), _) => got == bits.to_ne_bytes(),
                    };
                    assert!(
                        fits,
                        "{name}, {number}, {some:#x}, channel {i}: {got:?} {:?}",
                        want[i]
                    );
                }
            }
        }
    }
}
