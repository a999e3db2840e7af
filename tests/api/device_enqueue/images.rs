//! Images that blocks captured.

use super::{on_device, over, OnDevice};
use crate::images::{desc, read_texels};
use pumice_tests::sys::*;
use pumice_tests::{create, ok, Buffer, Kernel, Setup};
use std::ptr::{null, null_mut};

const FLAGS: &str = "#define FLAGS CLK_ENQUEUE_FLAGS_WAIT_KERNEL\n";

const BYTES: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT8,
};
const DEPTH: cl_image_format = cl_image_format {
    image_channel_order: CL_DEPTH,
    image_channel_data_type: CL_FLOAT,
};
const FLOATS: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_FLOAT,
};

fn on(source: &str, options: &str) -> Option<OnDevice> {
    let on = on_device(&format!("{FLAGS}{source}"), options, 0)?;
    if !on.setup.has_images() {
        pumice_tests::left_out("no images");
        return None;
    }
    Some(on)
}

/// An image with these texels; over a buffer, if one is given.
fn image<T: Copy>(
    setup: &Setup,
    kind: cl_mem_object_type,
    size: [usize; 3],
    format: &cl_image_format,
    texels: &[T],
    buffer: Option<&Buffer>,
) -> Buffer {
    let mut desc = desc(kind, size);
    let (flags, host) = match buffer {
        Some(buffer) => {
            desc.buffer = buffer.0;
            (CL_MEM_READ_WRITE, null_mut())
        }
        None => (
            CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
            texels.as_ptr().cast_mut().cast(),
        ),
    };
    Buffer(create!(clCreateImage(
        setup.context.0,
        flags,
        format,
        &desc,
        host
    )))
}

fn sampler(
    setup: &Setup,
    normalized: cl_bool,
    addressing: cl_addressing_mode,
    filter: cl_filter_mode,
) -> cl_sampler {
    create!(clCreateSampler(
        setup.context.0,
        normalized,
        addressing,
        filter
    ))
}

/// One work-item of a kernel whose arguments are the queue, words, and images. The words.
fn run(on: &OnDevice, kernel: &Kernel, count: usize, images: &[&Buffer]) -> Vec<i32> {
    let words = on.buffer(&vec![0; count]);
    kernel.set_buffer(1, &words);
    for (index, image) in images.iter().enumerate() {
        kernel.set_buffer(2 + index as u32, image);
    }
    on.setup.run(kernel, &[1], None);
    on.setup.read(&words, count)
}

/// Some bytes.
fn some_bytes(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n * 37 % 251) as u8).collect()
}

/// A block reads one image, writes another, and asks both, of every type.
#[test]
fn of_every_type() {
    let size = [7usize, 5, 3];
    let types = [
        ("image1d_t", CL_MEM_OBJECT_IMAGE1D, ".x", [7, 1, 1]),
        (
            "image1d_array_t",
            CL_MEM_OBJECT_IMAGE1D_ARRAY,
            ".xy",
            [7, 5, 1],
        ),
        (
            "image1d_buffer_t",
            CL_MEM_OBJECT_IMAGE1D_BUFFER,
            ".x",
            [7, 1, 1],
        ),
        ("image2d_t", CL_MEM_OBJECT_IMAGE2D, ".xy", [7, 5, 1]),
        ("image2d_array_t", CL_MEM_OBJECT_IMAGE2D_ARRAY, "", size),
        ("image3d_t", CL_MEM_OBJECT_IMAGE3D, "", size),
        ("image2d_depth_t", CL_MEM_OBJECT_IMAGE2D, ".xy", [7, 5, 1]),
        (
            "image2d_array_depth_t",
            CL_MEM_OBJECT_IMAGE2D_ARRAY,
            "",
            size,
        ),
    ];
    let is_depth = |name: &str| name.contains("depth");
    let mut source = String::new();
    for (name, _, part, [w, h, d]) in types {
        let change = match is_depth(name) {
            true => format!("write_imagef(to, at{part}, read_imagef(from, at{part}) * 0.5f)"),
            false => format!(
                "write_imageui(to, at{part}, read_imageui(from, at{part}) + (uint4)(1, 2, 3, 4))"
            ),
        };
        source += &format!(
            "kernel void k_{name}(queue_t queue, global int *out, read_only {name} from, write_only {name} to) {{
                 const size_t size[3] = {{{w}, {h}, {d}}};
                 out[0] = enqueue_kernel(queue, FLAGS, ndrange_3D(size), ^{{
                     int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
                     {change};
                     if (at.x == 6) {{
                         out[1] = get_image_width(from);
                         out[2] = get_image_channel_order(to);
                     }}
                 }});
             }}\n"
        );
    }
    for options in ["", "-cl-opt-disable"] {
        let Some(on) = on(&source, options) else {
            return;
        };
        for (name, kind, _, size) in types {
            let count = size.iter().product::<usize>();
            let kernel = on.kernel(&format!("k_{name}"));
            let setup = &on.setup;
            if is_depth(name) {
                let before: Vec<f32> = (0..count).map(|n| n as f32 / 128.0).collect();
                let from = image(setup, kind, size, &DEPTH, &before, None);
                let to = image(setup, kind, size, &DEPTH, &vec![0f32; count], None);
                let words = run(&on, &kernel, 3, &[&from, &to]);
                assert_eq!(words, [0, 7, CL_DEPTH as i32], "{name}");
                let expected: Vec<f32> = before.iter().map(|texel| texel * 0.5).collect();
                assert_eq!(read_texels::<f32>(setup, &to, size, 1), expected, "{name}");
                continue;
            }
            let before = some_bytes(count * 4);
            let zeros = vec![0u8; count * 4];
            let under = [&before, &zeros].map(|bytes| setup.buffer_of(bytes));
            let over = |index: usize| match kind {
                CL_MEM_OBJECT_IMAGE1D_BUFFER => Some(&under[index]),
                _ => None,
            };
            let from = image(setup, kind, size, &BYTES, &before, over(0));
            let to = image(setup, kind, size, &BYTES, &zeros, over(1));
            let words = run(&on, &kernel, 3, &[&from, &to]);
            assert_eq!(words, [0, 7, CL_RGBA as i32], "{name}");
            let added = |(n, &texel): (usize, &u8)| (u32::from(texel) + n as u32 % 4 + 1).min(255);
            let expected: Vec<u32> = before.iter().enumerate().map(added).collect();
            let after = read_texels::<u8>(setup, &to, size, 4);
            assert!(
                after.iter().map(|&byte| u32::from(byte)).eq(expected),
                "{name}"
            );
        }
    }
}

/// Blocks of blocks have the images of the first kernel, whatever lies between them in what is captured; kernels that are called
/// pass them on, too. Those that no block uses may be anything.
#[test]
fn in_blocks_of_blocks() {
    const SOURCE: &str = "
        void last(queue_t queue, int4 add, read_only image2d_t a, char tag, write_only image2d_t b, int x)
        {
            enqueue_kernel(queue, FLAGS, ndrange_1D(1), ^{
                write_imageui(b, (int2)(x, 0), read_imageui(a, (int2)(x, 0)) + convert_uint4(add) + tag);
            });
        }
        kernel void outer(queue_t queue, global int *out, read_only image2d_t a, write_only image2d_t b,
                          read_only image3d_t unused, write_only image2d_t c)
        {
            char tag = 5;
            out[0] = enqueue_kernel(queue, FLAGS, ndrange_1D(7), ^{
                int x = get_global_id(0);
                int4 add = (int4)(1, 2, 3, 4) * (out[1] + 1);
                enqueue_kernel(get_default_queue(), FLAGS, ndrange_1D(1), ^{
                    last(get_default_queue(), add, a, tag, b, x);
                    write_imageui(c, (int2)(x, 0), (uint4)(x, 0, 0, 0));
                });
            });
        }
        kernel void caller(queue_t queue, global int *out, write_only image2d_t c, read_only image2d_t a,
                           write_only image2d_t b, read_only image3d_t unused)
        {
            outer(queue, out, a, b, unused, c);
        }";
    for options in ["", "-cl-opt-disable"] {
        let Some(on) = on(SOURCE, options) else {
            return;
        };
        let setup = &on.setup;
        let size = [7, 1, 1];
        let new = |bytes: &[u8]| image(setup, CL_MEM_OBJECT_IMAGE2D, size, &BYTES, bytes, None);
        let before: Vec<u8> = some_bytes(28).iter().map(|byte| byte / 2).collect();
        for name in ["outer", "caller"] {
            let (a, b, c) = (new(&before), new(&[0; 28]), new(&[0; 28]));
            let cube = image(
                setup,
                CL_MEM_OBJECT_IMAGE3D,
                [2; 3],
                &BYTES,
                &[0u8; 32],
                None,
            );
            let images = match name {
                "outer" => [&a, &b, &cube, &c],
                _ => [&c, &a, &b, &cube],
            };
            assert_eq!(run(&on, &on.kernel(name), 2, &images), [0, 0]);
            let expected: Vec<u8> = before.iter().zip(0..).map(|(b, n)| b + n % 4 + 6).collect();
            assert_eq!(read_texels::<u8>(setup, &b, size, 4), expected, "{name}");
            let numbers: Vec<u8> = (0..7).flat_map(|x| [x, 0, 0, 0]).collect();
            assert_eq!(read_texels::<u8>(setup, &c, size, 4), numbers, "{name}");
        }
    }
}

/// With a sampler of the program, which some devices have filter.
#[test]
fn are_sampled() {
    const SOURCE: &str = "
        constant sampler_t linear = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
        kernel void k(queue_t queue, global int *out, read_only image2d_t a, write_only image1d_t b)
        {
            out[0] = enqueue_kernel(queue, FLAGS, ndrange_1D(3), ^{
                int x = get_global_id(0);
                write_imagef(b, x, read_imagef(a, linear, (float2)((x + 1) / 4.0f, 0.5f)));
            });
        }";
    let Some(on) = on(SOURCE, "") else { return };
    let setup = &on.setup;
    let before: Vec<f32> = (0..16).map(|n| n as f32).collect();
    let a = image(
        setup,
        CL_MEM_OBJECT_IMAGE2D,
        [4, 1, 1],
        &FLOATS,
        &before,
        None,
    );
    let b = image(
        setup,
        CL_MEM_OBJECT_IMAGE1D,
        [3, 1, 1],
        &FLOATS,
        &[0f32; 12],
        None,
    );
    assert_eq!(run(&on, &on.kernel("k"), 1, &[&a, &b]), [0]);
    let between: Vec<f32> = (0..12).map(|n| n as f32 + 2.0).collect();
    assert_eq!(read_texels::<f32>(setup, &b, [3, 1, 1], 4), between);
}

/// With samplers that are arguments: blocks, and blocks of blocks, read what the kernel itself reads through them.
#[test]
fn are_sampled_as_arguments_say() {
    const SOURCE: &str = "
        float4 at(int x, bool normalized) { return (float4)((x - 2) / (normalized ? 4.0f : 1.0f), 0.25f, 0, 0); }
        kernel void k(queue_t queue, global int *out, read_only image2d_t a, write_only image2d_t b,
                      sampler_t s, sampler_t t, int flags)
        {
            bool n = flags & 1, m = flags & 2;
            for (int x = 0; x < 9; x++) {
                write_imagef(b, (int2)(x, 0), read_imagef(a, s, at(x, n).xy));
                write_imagef(b, (int2)(x, 1), read_imagef(a, t, at(x, m).xy));
            }
            char between = out[1];
            out[0] = enqueue_kernel(queue, FLAGS, ndrange_1D(9), ^{
                int x = get_global_id(0);
                write_imagef(b, (int2)(x, 2 + between), read_imagef(a, s, at(x, n).xy));
                enqueue_kernel(get_default_queue(), FLAGS, ndrange_1D(1), ^{
                    write_imagef(b, (int2)(x, 3), read_imagef(a, t, at(x, m).xy));
                });
            });
        }
        kernel void caller(queue_t queue, global int *out, read_only image2d_t a, write_only image2d_t b,
                           sampler_t t, sampler_t s, int flags)
        {
            k(queue, out, a, b, s, t, flags);
        }";
    let ways = [
        (CL_TRUE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_LINEAR),
        (CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST),
        (CL_TRUE, CL_ADDRESS_REPEAT, CL_FILTER_NEAREST),
        (CL_TRUE, CL_ADDRESS_MIRRORED_REPEAT, CL_FILTER_LINEAR),
        (CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_LINEAR),
    ];
    for options in ["", "-cl-opt-disable"] {
        let Some(on) = on(SOURCE, options) else {
            return;
        };
        let setup = &on.setup;
        let before: Vec<f32> = (0..16).map(|n| n as f32).collect();
        let new =
            |size, texels: &[f32]| image(setup, CL_MEM_OBJECT_IMAGE2D, size, &FLOATS, texels, None);
        let a = new([4, 1, 1], &before);
        let samplers = ways
            .map(|(normalized, addressing, filter)| sampler(setup, normalized, addressing, filter));
        for name in ["k", "caller"] {
            let kernel = on.kernel(name);
            for (index, way) in ways.iter().enumerate() {
                let other = (index + 1) % ways.len();
                let b = new([9, 4, 1], &[0.0; 9 * 4 * 4]);
                let flags = i32::from(way.0 == CL_TRUE) | i32::from(ways[other].0 == CL_TRUE) << 1;
                let (s, t) = match name {
                    "k" => (4, 5),
                    _ => (5, 4),
                };
                kernel.set(s, samplers[index]).set(t, samplers[other]);
                kernel.set(6, flags);
                assert_eq!(run(&on, &kernel, 2, &[&a, &b]), [0, 0]);
                let rows = read_texels::<f32>(setup, &b, [9, 4, 1], 4);
                let (own, of_blocks) = rows.split_at(9 * 2 * 4);
                assert_eq!(own, of_blocks, "{name} {options} {way:?}");
                assert!(own.iter().any(|&x| x != 0.0));
            }
        }
        for sampler in samplers {
            ok!(clReleaseSampler(sampler));
        }
    }
}

/// Blocks with images that are called where they are, in kernels and in blocks.
#[test]
fn in_blocks_that_are_called() {
    const SOURCE: &str = "
        kernel void k(queue_t queue, global int *out, read_only image2d_t a, write_only image2d_t b, sampler_t s)
        {
            int (^get)(int) = ^(int x) { return (int)read_imageui(a, s, (int2)(x, 0)).x; };
            void (^put)(int, int) = ^(int x, int y) { write_imageui(b, (int2)(x, 0), (uint4)(y)); };
            for (int x = 0; x < 4; x++)
                put(x, get(x) + 1);
            out[0] = enqueue_kernel(queue, FLAGS, ndrange_1D(4), ^{
                int x = get_global_id(0);
                int (^inner)(int) = ^(int y) { return (int)read_imageui(a, s, (int2)(y, 0)).y + get_image_width(a); };
                out[1 + x] = inner(x);
                void (^other)(int, int) = ^(int x, int y) { write_imageui(b, (int2)(x, 0), (uint4)(y)); };
                other(x + 4, inner(x));
            });
            void (^both)(void) = ^{ out[5] += read_imageui(a, s, (int2)(get_global_id(0), 0)).x; };
            both();
            out[0] |= enqueue_kernel(queue, FLAGS, ndrange_1D(1), both);
        }";
    for options in ["", "-cl-opt-disable"] {
        let Some(on) = on(SOURCE, options) else {
            return;
        };
        let setup = &on.setup;
        let before = some_bytes(32);
        let new = |texels: &[u8]| {
            image(
                setup,
                CL_MEM_OBJECT_IMAGE2D,
                [8, 1, 1],
                &BYTES,
                texels,
                None,
            )
        };
        let (a, b) = (new(&before), new(&[0; 32]));
        let made = sampler(setup, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST);
        let kernel = on.kernel("k");
        kernel.set(4, made);
        let words = run(&on, &kernel, 6, &[&a, &b]);
        let second = |x: usize| i32::from(before[4 * x + 1]) + 8;
        assert_eq!(words[0], 0);
        assert_eq!(words[1..5], [0, 1, 2, 3].map(second), "{options}");
        assert_eq!(words[5], 2 * i32::from(before[0]));
        let after = read_texels::<u8>(setup, &b, [8, 1, 1], 4);
        for x in 0..4 {
            assert_eq!(after[4 * x], before[4 * x] + 1, "{options}");
            assert_eq!(
                i32::from(after[4 * x + 16]),
                second(x).min(255),
                "{options}"
            );
        }
        ok!(clReleaseSampler(made));
    }
}

/// A kernel may write what it likes where a block has the number of an image or a sampler: blocks without their image do not run,
/// and their events and the launch's fail. Samplers are what they can be.
#[test]
fn with_numbers_of_nothing() {
    // What a sampler is in memory: its properties, by clang's names.
    const SOURCE: &str = "
        #define SAMPLER (CLK_ADDRESS_REPEAT | CLK_NORMALIZED_COORDS_TRUE | CLK_FILTER_LINEAR)
        kernel void k(queue_t queue, global int *out, read_only image2d_t a, read_only image1d_t b, sampler_t s,
                      ulong image, ulong sampler)
        {
            void (^block)(void) = ^{
                float4 x = read_imagef(a, (int2)(0, 0)) + read_imagef(a, s, (float2)(0, 0));
                out[1] = x.x < 100;
            };
            ulong *captured = (ulong *)block;
            int images = 0, samplers = 0;
            for (int i = 2; i < 5; i++) {
                if (captured[i] == 3) {
                    captured[i] = image;
                    images++;
                } else if (captured[i] == SAMPLER) {
                    captured[i] = sampler;
                    samplers++;
                }
            }
            out[0] = images != 1 || samplers != 1 ? 1 : enqueue_kernel(queue, FLAGS, ndrange_1D(1), block);
        }";
    let Some(on) = on(SOURCE, "") else { return };
    let setup = &on.setup;
    let texels = [1f32; 16];
    let a = image(
        setup,
        CL_MEM_OBJECT_IMAGE2D,
        [2, 2, 1],
        &FLOATS,
        &texels,
        None,
    );
    let b = image(
        setup,
        CL_MEM_OBJECT_IMAGE1D,
        [4, 1, 1],
        &FLOATS,
        &texels,
        None,
    );
    let made = sampler(setup, CL_TRUE, CL_ADDRESS_REPEAT, CL_FILTER_LINEAR);
    let word = 0x27u64;
    for (image, sampler_word, runs) in [
        (3, word, true),
        (3, u64::MAX, true),
        (3, 0x5555_5555_5555_555a, true),
        (0, word, false),
        (4, word, false),
        (8, word, false),
        (1 << 32 | 3, word, false),
        (u64::MAX, word, false),
        (3, 0, true),
    ] {
        let kernel = on.kernel("k");
        let words = on.buffer(&[7, 7]);
        kernel.set_buffer(1, &words);
        kernel.set_buffer(2, &a).set_buffer(3, &b).set(4, made);
        kernel.set(5, image).set(6, sampler_word);
        let mut event = null_mut();
        on.enqueue_on(&setup.queue, &kernel, Some(&mut event));
        let status = over(event);
        assert_eq!(
            status == CL_COMPLETE as cl_int,
            runs,
            "{image} {sampler_word:#x}: {status}"
        );
        let expected = if runs { [0, 1] } else { [0, 7] };
        assert_eq!(
            setup.read::<i32>(&words, 2),
            expected,
            "{image} {sampler_word:#x}"
        );
    }
    ok!(clReleaseSampler(made));
}

/// The application may release an image as soon as the kernel is enqueued.
#[test]
fn are_kept_for_blocks() {
    const SOURCE: &str = "
        kernel void k(queue_t queue, global uint4 *out, read_only image2d_t a)
        {
            enqueue_kernel(queue, FLAGS, ndrange_1D(7),
                           ^{ out[get_global_id(0)] = read_imageui(a, (int2)(get_global_id(0), 0)); });
        }";
    let Some(on) = on(SOURCE, "") else { return };
    let setup = &on.setup;
    let before = some_bytes(28);
    let a = image(
        setup,
        CL_MEM_OBJECT_IMAGE2D,
        [7, 1, 1],
        &BYTES,
        &before,
        None,
    );
    let words = on.buffer(&[0; 28]);
    let kernel = on.kernel("k");
    kernel.set_buffer(1, &words).set_buffer(2, &a);
    let begin = create!(clCreateUserEvent(setup.context.0));
    let mut event = null_mut();
    ok!(clEnqueueNDRangeKernel(
        setup.queue.0,
        kernel.0,
        1,
        null(),
        &1,
        null(),
        1,
        &begin,
        &mut event
    ));
    drop((a, kernel));
    ok!(clSetUserEventStatus(begin, CL_COMPLETE as cl_int));
    assert_eq!(over(event), CL_COMPLETE as cl_int);
    ok!(clReleaseEvent(begin));
    let expected: Vec<i32> = before.iter().map(|&byte| byte.into()).collect();
    assert_eq!(setup.read::<i32>(&words, 28), expected);
}

/// Images over a buffer: blocks see what the kernel wrote to the buffer, and later blocks in the buffer what a block wrote to the
/// image.
#[test]
fn over_buffers() {
    const SOURCE: &str = "
        kernel void k(queue_t queue, global int *out, read_only image2d_t a, write_only image2d_t b,
                      global uchar *under_a, global uchar *under_b)
        {
            clk_event_t done;
            for (int i = 0; i < 64; i++)
                under_a[i] = 100 + i;
            under_b[63] = 9;
            const size_t size[2] = {4, 3};
            out[0] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_2D(size), 0, 0, &done, ^{
                int2 at = (int2)(get_global_id(0), get_global_id(1));
                write_imageui(b, at, read_imageui(a, at) + 1);
            });
            out[1] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(64), 1, &done, 0,
                                    ^{ out[2 + get_global_id(0)] = under_b[get_global_id(0)]; });
            release_event(done);
        }";
    let Some(on) = on(SOURCE, "") else { return };
    let setup = &on.setup;
    let under = [0u8, 7].map(|byte| setup.buffer_of(&[byte; 64]));
    let size = [4, 3, 1];
    let over = |buffer| {
        image(
            setup,
            CL_MEM_OBJECT_IMAGE2D,
            size,
            &BYTES,
            &[0u8; 0],
            Some(buffer),
        )
    };
    let kernel = on.kernel("k");
    kernel.set_buffer(4, &under[0]).set_buffer(5, &under[1]);
    let words = run(&on, &kernel, 66, &[&over(&under[0]), &over(&under[1])]);
    assert_eq!(words[..2], [0, 0]);
    let expected = (0..64).map(|n| match n {
        0..48 => 101 + n,
        63 => 9,
        _ => 7,
    });
    assert!(words[2..].iter().copied().eq(expected), "{words:?}");
}

/// Blocks that read and write one image, one after the other.
#[test]
fn read_and_written() {
    const SOURCE: &str = "
        kernel void k(queue_t queue, global int *out,
        #ifdef __opencl_c_read_write_images
                      read_write image2d_t a)
        {
            clk_event_t before;
            out[0] = enqueue_kernel(queue, FLAGS, ndrange_1D(7), 0, 0, &before, ^{
                int2 at = (int2)(get_global_id(0), 0);
                write_imageui(a, at, read_imageui(a, at) * 2);
            });
            out[0] |= enqueue_kernel(queue, FLAGS, ndrange_1D(7), 1, &before, 0, ^{
                int2 at = (int2)(get_global_id(0), 0);
                write_imageui(a, at, read_imageui(a, at) + 3);
            });
            release_event(before);
        }
        #else
                      read_only image2d_t a)
        {
            out[0] = 1;
        }
        #endif
        ";
    let Some(on) = on(SOURCE, "") else { return };
    let setup = &on.setup;
    let before: Vec<u8> = (0..28).collect();
    let a = image(
        setup,
        CL_MEM_OBJECT_IMAGE2D,
        [7, 1, 1],
        &BYTES,
        &before,
        None,
    );
    match run(&on, &on.kernel("k"), 1, &[&a])[0] {
        1 => return pumice_tests::left_out("no images that are read and written"),
        code => assert_eq!(code, 0),
    }
    let expected: Vec<u8> = before.iter().map(|texel| texel * 2 + 3).collect();
    assert_eq!(read_texels::<u8>(setup, &a, [7, 1, 1], 4), expected);
}
