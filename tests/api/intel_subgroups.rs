//! cl_intel_subgroups and its `_char`, `_short` and `_long`: shuffles, block reads and writes of buffers, local memory and
//! images, collective functions of small integers.

use super::buffers::Random;
use super::images::read_texels;
use super::sub_group_sizes;
use pumice_tests::sys::*;
use pumice_tests::{create, Buffer, Setup};
use std::fmt::Write;
use std::ptr::null_mut;

/// Suffix of the functions, type and bytes of an element, sizes of vectors.
const BLOCKS: [(&str, &str, usize, &[usize]); 5] = [
    ("", "uint", 4, &[1, 2, 4, 8]),
    ("_ui", "uint", 4, &[1, 2, 4, 8]),
    ("_uc", "uchar", 1, &[1, 2, 4, 8, 16]),
    ("_us", "ushort", 2, &[1, 2, 4, 8, 16]),
    ("_ul", "ulong", 8, &[1, 2, 4, 8]),
];
/// Work-items of a launch: whole sub-groups of every size.
const ITEMS: usize = 128;

fn has_block_io(setup: &Setup) -> bool {
    setup.has_extension("cl_intel_subgroups")
}

/// Returns the name of a vector type, or what follows the name of a function.
fn sized(name: &str, size: usize) -> String {
    match size {
        1 => name.to_owned(),
        _ => format!("{name}{size}"),
    }
}

/// Returns the size of sub-groups of a kernel, and the smallest size, each with the attribute that requires it.
fn subgroup_sizes(setup: &Setup) -> [(usize, String); 2] {
    let kernel = setup.kernel_of(
        "kernel void size(global uint *out) { *out = get_max_sub_group_size(); }",
        "size",
    );
    let out = setup.buffer_of(&[0u32]);
    kernel.set_buffer(0, &out);
    setup.run(&kernel, &[ITEMS], Some(&[ITEMS]));
    let usual = setup.read::<u32>(&out, 1)[0] as usize;
    let least = sub_group_sizes::sizes(setup)[0];
    let attribute = format!("__attribute__((intel_reqd_sub_group_size({least})))");
    [(usual, String::new()), (least, attribute)]
}

/// Element `k` of the work-item with local id `i` is number `i + k * size` of the block.
#[test]
fn blocks_of_buffers() {
    let setup = Setup::new();
    if !has_block_io(&setup) {
        return pumice_tests::left_out("the device has no cl_intel_subgroups");
    }
    for (size, required) in subgroup_sizes(&setup) {
        let mut random = Random(41);
        for (suffix, ty, bytes, sizes) in BLOCKS {
            for &n in sizes {
                if n == 16 && bytes == 2 && std::env::var_os("PUMICE_LLVM_SPIRV").is_some() {
                    // llvm-spirv 15 ends there (docs/status.md).
                    continue;
                }
                let (vector, read) = (sized(ty, n), sized(suffix, n));
                let half = ITEMS / 2 * n;
                let program = setup.build(
                &format!(
                    "{required} kernel void of_global(global const {ty} *in, global {ty} *each, global {ty} *out) {{
                        size_t first = (get_global_id(0) - get_sub_group_local_id()) * {n};
                        union {{ {vector} v; {ty} e[{n}]; }} u;
                        u.v = intel_sub_group_block_read{read}(in + first);
                        for (int k = 0; k < {n}; k++) each[get_global_id(0) * {n} + k] = u.e[k];
                        intel_sub_group_block_write{read}(out + first, u.v ^ ({ty})1);
                    }}
                    {required} kernel void of_local(global const {ty} *in, global {ty} *each, global {ty} *out) {{
                        local {ty} block[{half}], copy[{half}];
                        size_t part = get_group_id(0) * {half};
                        for (int i = get_local_id(0); i < {half}; i += get_local_size(0)) block[i] = in[part + i];
                        barrier(CLK_LOCAL_MEM_FENCE);
                        size_t first = (get_local_id(0) - get_sub_group_local_id()) * {n};
                        union {{ {vector} v; {ty} e[{n}]; }} u;
                        u.v = intel_sub_group_block_read{read}(block + first);
                        for (int k = 0; k < {n}; k++) each[get_global_id(0) * {n} + k] = u.e[k];
                        intel_sub_group_block_write{read}(copy + first, u.v ^ ({ty})1);
                        barrier(CLK_LOCAL_MEM_FENCE);
                        for (int i = get_local_id(0); i < {half}; i += get_local_size(0)) out[part + i] = copy[i];
                    }}"
                ),
            );
                for name in ["of_global", "of_local"] {
                    let kernel = setup.kernel(&program, name);
                    let data = random.bytes(ITEMS * n * bytes);
                    let input = setup.buffer_of(&data);
                    let (each, out) = (setup.buffer(data.len()), setup.buffer(data.len()));
                    kernel
                        .set_buffer(0, &input)
                        .set_buffer(1, &each)
                        .set_buffer(2, &out);
                    setup.run(&kernel, &[ITEMS], Some(&[ITEMS / 2]));
                    let element = |from: &[u8], at: usize| from[at * bytes..][..bytes].to_vec();
                    let got = setup.read::<u8>(&each, data.len());
                    for (place, item) in (0..ITEMS * n).map(|place| (place, place / n)) {
                        let at = item / size * size * n + item % size + place % n * size;
                        let (got, expected) = (element(&got, place), element(&data, at));
                        assert_eq!(got, expected, "{name}, {read}: component {place}");
                    }
                    let written = setup.read::<u8>(&out, data.len());
                    for (at, (got, from)) in written.iter().zip(&data).enumerate() {
                        let expected = from ^ u8::from(at % bytes == 0);
                        assert_eq!(*got, expected, "{name}, {read}: byte {at}");
                    }
                }
            }
        }
    }
}

/// Formats of texels of 1, 2 and 4 bytes: blocks take their bits.
const FORMATS: [(cl_uint, cl_uint, usize); 12] = [
    (CL_R, CL_UNORM_INT8, 1),
    (CL_R, CL_SNORM_INT8, 1),
    (CL_R, CL_UNSIGNED_INT8, 1),
    (CL_RG, CL_UNORM_INT8, 2),
    (CL_R, CL_SIGNED_INT16, 2),
    (CL_R, CL_HALF_FLOAT, 2),
    (CL_R, CL_FLOAT, 4),
    (CL_R, CL_UNSIGNED_INT32, 4),
    (CL_RGBA, CL_UNORM_INT8, 4),
    (CL_RGBA, CL_SNORM_INT8, 4),
    (CL_BGRA, CL_UNORM_INT8, 4),
    (CL_RG, CL_SIGNED_INT16, 4),
];
/// Rows of the images.
const ROWS: usize = 20;

fn image(setup: &Setup, format: (cl_uint, cl_uint, usize), row: usize, data: &[u8]) -> Buffer {
    let wanted = cl_image_format {
        image_channel_order: format.0,
        image_channel_data_type: format.1,
    };
    let desc = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: row / format.2,
        image_height: data.len() / row,
        image_depth: 1,
        image_array_size: 1,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    };
    Buffer(create!(clCreateImage(
        setup.context.0,
        CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
        &wanted,
        &desc,
        data.as_ptr().cast_mut().cast()
    )))
}

/// Component `k` is element `i` of row `k`; coordinates count bytes, and bits are not converted. What is read outside of an
/// image of texels of 4 bytes is the edge, and what is written there is dropped.
#[test]
fn blocks_of_images() {
    let setup = Setup::new();
    if !has_block_io(&setup) {
        return pumice_tests::left_out("the device has no cl_intel_subgroups");
    }
    for (size, required) in subgroup_sizes(&setup) {
        let mut random = Random(43);
        for (suffix, ty, bytes, sizes) in &BLOCKS[1..] {
            let (bytes, mut source) = (*bytes, String::new());
            let sizes: Vec<usize> = sizes.iter().copied().filter(|&n| n <= 8).collect();
            for &n in &sizes {
                let (vector, name) = (sized(ty, n), sized(suffix, n));
                writeln!(
                source,
                "{required} kernel void read{n}(read_only image2d_t im, int2 at, global {ty} *each) {{
                    union {{ {vector} v; {ty} e[{n}]; }} u;
                    u.v = intel_sub_group_block_read{name}(im, at);
                    for (int k = 0; k < {n}; k++) each[get_global_id(0) * {n} + k] = u.e[k];
                }}
                {required} kernel void write{n}(write_only image2d_t im, int2 at, global const {ty} *each) {{
                    union {{ {vector} v; {ty} e[{n}]; }} u;
                    for (int k = 0; k < {n}; k++) u.e[k] = each[get_global_id(0) * {n} + k];
                    intel_sub_group_block_write{name}(im, at, u.v);
                }}"
            )
            .unwrap();
            }
            let program = setup.build(&source);
            for format in FORMATS {
                // A block, and some texels before and behind it.
                let row = size * bytes + 16;
                for &n in &sizes {
                    let data = random.bytes(row * ROWS);
                    let im = image(&setup, format, row, &data);
                    let what = |at: [i32; 2]| format!("{ty} {n}, {format:x?}, at {at:?}");
                    let kernel = setup.kernel(&program, &format!("read{n}"));
                    let each = setup.buffer(size * n * bytes);
                    // Reads may begin at any byte.
                    for at in [[0, 0], [8, 3], [5, 7], [-8, 18]] {
                        if format.2 < 4 && at[0] < 0 {
                            continue;
                        }
                        kernel.set_buffer(0, &im).set(1, at).set_buffer(2, &each);
                        setup.run(&kernel, &[size], Some(&[size]));
                        let got = setup.read::<u8>(&each, size * n * bytes);
                        for (place, got) in got.iter().enumerate() {
                            let (item, k, byte) =
                                (place / bytes / n, place / bytes % n, place % bytes);
                            let x = at[0] + (item * bytes + byte) as i32;
                            let y = (at[1] + k as i32).min(ROWS as i32 - 1);
                            // The texel is that of the edge, and the byte its.
                            let (texel, part) = (x.div_euclid(4), x.rem_euclid(4));
                            let last = row as i32 / 4 - 1;
                            let x = texel.clamp(0, last) * 4 + part;
                            let expected = data[y as usize * row + x as usize];
                            assert_eq!(*got, expected, "{}: byte {place}", what(at));
                        }
                    }
                    let kernel = setup.kernel(&program, &format!("write{n}"));
                    for at in [[0, 0], [8, 3], [4, 14]] {
                        let values = random.bytes(size * n * bytes);
                        let each = setup.buffer_of(&values);
                        let im = image(&setup, format, row, &data);
                        kernel.set_buffer(0, &im).set(1, at).set_buffer(2, &each);
                        setup.run(&kernel, &[size], Some(&[size]));
                        let mut expected = data.clone();
                        for (place, &value) in values.iter().enumerate() {
                            let (item, k, byte) =
                                (place / bytes / n, place / bytes % n, place % bytes);
                            let (x, y) = (at[0] as usize + item * bytes + byte, at[1] as usize + k);
                            if y < ROWS && x < row {
                                expected[y * row + x] = value;
                            }
                        }
                        let got: Vec<u8> =
                            read_texels(&setup, &im, [row / format.2, ROWS, 1], format.2);
                        assert!(got == expected, "{}", what(at));
                    }
                }
            }
        }
    }
}

/// Shuffles of every type, by any place, and in two sub-groups side by side.
#[test]
fn shuffles() {
    let setup = Setup::new();
    if !has_block_io(&setup) {
        return pumice_tests::left_out("the device has no cl_intel_subgroups");
    }
    for (size, required) in subgroup_sizes(&setup) {
        let mut types = vec![
            "int4", "uint3", "float16", "long", "uchar8", "short2", "char", "ushort",
        ];
        for (extension, ty) in [("cl_khr_fp16", "half"), ("cl_khr_fp64", "double")] {
            if setup.has_extension(extension) {
                types.push(ty);
            }
        }
        for ty in types {
            let scalar = ty.trim_end_matches(|c: char| c.is_ascii_digit());
            let last = match ty.len() > scalar.len() {
                true => ".s1",
                false => "",
            };
            let kernel = setup.kernel_of(
                &format!(
                    "#pragma OPENCL EXTENSION cl_khr_fp16 : enable
                {required} kernel void f(global int *out) {{
                    uint i = get_sub_group_local_id(), n = get_max_sub_group_size();
                    {ty} a = ({ty})({scalar})i, b = ({ty})({scalar})(i + 64);
                    out += get_global_id(0) * 4;
                    out[0] = (int)intel_sub_group_shuffle(a, (i * 3 + 1) % n){last};
                    out[1] = (int)intel_sub_group_shuffle_xor(a, i & 1 ? 1 : 3){last};
                    out[2] = (int)intel_sub_group_shuffle_down(a, b, i / 2 + 1){last};
                    out[3] = (int)intel_sub_group_shuffle_up(a, b, i / 2 + 1){last};
                }}"
                ),
                "f",
            );
            let out = setup.buffer_of(&[0i32; ITEMS * 4]);
            kernel.set_buffer(0, &out);
            setup.run(&kernel, &[ITEMS], Some(&[ITEMS]));
            for (item, got) in setup.read::<i32>(&out, ITEMS * 4).chunks(4).enumerate() {
                let i = item % size;
                let down = i + i / 2 + 1;
                let up = i as i32 - (i as i32 / 2 + 1);
                let expected = [
                    ((i * 3 + 1) % size) as i32,
                    (i ^ if i & 1 == 1 { 1 } else { 3 }) as i32,
                    (if down < size { down } else { down - size + 64 }) as i32,
                    if up >= 0 { up + 64 } else { up + size as i32 },
                ];
                assert_eq!(got, expected, "{ty}, item {item}");
            }
        }
    }
}

#[test]
fn collectives_of_small_integers() {
    let setup = Setup::new();
    if !has_block_io(&setup) {
        return pumice_tests::left_out("the device has no cl_intel_subgroups");
    }
    for (size, required) in subgroup_sizes(&setup) {
        for ty in ["char", "uchar", "short", "ushort"] {
            let kernel = setup.kernel_of(
                &format!(
                    "{required} kernel void f(global int *out) {{
                    {ty} x = get_sub_group_local_id();
                    out += get_global_id(0) * 5;
                    out[0] = intel_sub_group_broadcast(x, 2);
                    out[1] = intel_sub_group_reduce_max(x);
                    out[2] = intel_sub_group_scan_inclusive_min(x);
                    out[3] = intel_sub_group_scan_exclusive_add(({ty})1);
                    out[4] = intel_sub_group_reduce_add(x);
                }}"
                ),
                "f",
            );
            let out = setup.buffer_of(&[0i32; ITEMS * 5]);
            kernel.set_buffer(0, &out);
            setup.run(&kernel, &[ITEMS], Some(&[ITEMS]));
            let sum = size * (size - 1) / 2;
            let sum = match ty {
                "char" => sum as i8 as i32,
                "uchar" => sum as u8 as i32,
                _ => sum as i32,
            };
            for (item, got) in setup.read::<i32>(&out, ITEMS * 5).chunks(5).enumerate() {
                let expected = [2, size as i32 - 1, 0, (item % size) as i32, sum];
                assert_eq!(got, expected, "{ty}, item {item}");
            }
        }
    }
}
