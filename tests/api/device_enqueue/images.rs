//! Images that blocks captured.

use super::{on_device, over, OnDevice};
use crate::images::{desc, has_images, read_texels};
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
    if !has_images(&on.setup) {
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
