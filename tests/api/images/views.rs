//! Images over buffers and other images, and kernels that are given images.

use super::*;

#[test]
fn images_over_buffers_share_their_bytes() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let data = random(4096);
    let buffer = setup.buffer_of(&data);
    let mut line = desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [100, 0, 0]);
    line.buffer = buffer.0;
    let line = image(&setup, 0, &RGBA8, &line, null_mut());
    assert_eq!(
        read(&setup, &line, [10, 0, 0], [20, 1, 1], (0, 0), 80),
        data[40..120]
    );
    let mut plane = desc(CL_MEM_OBJECT_IMAGE2D, [10, 6, 0]);
    plane.buffer = buffer.0;
    plane.image_row_pitch = 64;
    let plane = image(&setup, 0, &RGBA8, &plane, null_mut());
    let got = read(&setup, &plane, [2, 1, 0], [3, 4, 1], (0, 0), 48);
    let wanted: Vec<u8> = (1..5)
        .flat_map(|y| data[y * 64 + 8..y * 64 + 20].to_vec())
        .collect();
    assert_eq!(got, wanted);
    write(
        &setup,
        &plane,
        [0, 2, 0],
        [2, 1, 1],
        (0, 0),
        &[1, 2, 3, 4, 5, 6, 7, 8],
    );
    assert_eq!(
        setup.read::<u8>(&buffer, 136)[128..],
        [1, 2, 3, 4, 5, 6, 7, 8]
    );
    let parent = info_value!(*mut c_void, clGetImageInfo(plane.0), CL_IMAGE_BUFFER);
    assert_eq!(parent, buffer.0);
    let mut large = desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [1025, 0, 0]);
    large.buffer = buffer.0;
    let code = refused(&setup, 0, &RGBA8, &large, null_mut());
    assert_eq!(code, code_name(CL_INVALID_IMAGE_SIZE));
    // As source and target of copies.
    let own = image(
        &setup,
        0,
        &RGBA8,
        &desc(CL_MEM_OBJECT_IMAGE2D, [10, 6, 0]),
        null_mut(),
    );
    for (src, dst) in [(&plane, &own), (&own, &plane)] {
        ok!(clEnqueueCopyImage(
            setup.queue.0,
            src.0,
            dst.0,
            [0usize; 3].as_ptr(),
            [0usize; 3].as_ptr(),
            [10usize, 6, 1].as_ptr(),
            0,
            null(),
            null_mut()
        ));
    }
    let all = read(&setup, &own, [0; 3], [10, 6, 1], (0, 0), 240);
    assert_eq!(all, read(&setup, &plane, [0; 3], [10, 6, 1], (0, 0), 240));
    assert_eq!(all[..40], data[..40]);
}

#[test]
fn kernels_refuse_images_that_do_not_fit() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let program = setup.build(
        "kernel void k(read_only image2d_t a, write_only image2d_t b, sampler_t s, global uint *c) {
             write_imagef(b, (int2)(0, 0), read_imagef(a, s, (int2)(0, 0))); c[0] = get_image_width(a);
         }",
    );
    let kernel = setup.kernel(&program, "k");
    let set = |index: cl_uint, object: *mut c_void| {
        let value = &raw const object;
        call!(clSetKernelArg(
            kernel.0,
            index,
            size_of::<*mut c_void>(),
            value.cast()
        ))
    };
    let plane = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 0]);
    let solid = image(
        &setup,
        0,
        &RGBA8,
        &desc(CL_MEM_OBJECT_IMAGE3D, [4, 4, 4]),
        null_mut(),
    );
    let read_only = image(&setup, CL_MEM_READ_ONLY, &RGBA8, &plane, null_mut());
    let write_only = image(&setup, CL_MEM_WRITE_ONLY, &RGBA8, &plane, null_mut());
    let buffer = setup.buffer(64);
    assert_eq!(set(0, null_mut()), CL_INVALID_MEM_OBJECT);
    assert_eq!(set(0, buffer.0), CL_INVALID_MEM_OBJECT);
    assert_eq!(set(0, solid.0), CL_INVALID_ARG_VALUE);
    assert_eq!(set(0, write_only.0), CL_INVALID_ARG_VALUE);
    assert_eq!(set(1, read_only.0), CL_INVALID_ARG_VALUE);
    assert_eq!(set(2, buffer.0), CL_INVALID_SAMPLER);
    assert_eq!(set(3, read_only.0), CL_INVALID_MEM_OBJECT);
    assert_eq!(
        call!(clSetKernelArg(
            kernel.0,
            0,
            3,
            (&raw const read_only.0).cast()
        )),
        CL_INVALID_ARG_SIZE
    );
    assert_eq!(set(0, read_only.0), CL_SUCCESS);
    assert_eq!(set(1, write_only.0), CL_SUCCESS);
}

#[test]
fn kernels_see_images_over_buffers_and_images() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let uint8 = cl_image_format {
        image_channel_order: CL_RGBA,
        image_channel_data_type: CL_UNSIGNED_INT8,
    };
    let data = random(64 * 6);
    let buffer = setup.buffer_of(&data);
    let mut plane = desc(CL_MEM_OBJECT_IMAGE2D, [10, 6, 0]);
    plane.buffer = buffer.0;
    plane.image_row_pitch = 64;
    let plane = image(&setup, CL_MEM_READ_WRITE, &uint8, &plane, null_mut());
    let mut line = desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [96, 0, 0]);
    line.buffer = buffer.0;
    let line = image(&setup, CL_MEM_READ_WRITE, &uint8, &line, null_mut());
    let program = setup.build(
        "kernel void plane(read_only image2d_t from, global uint4 *to) {
             int2 at = (int2)(get_global_id(0) % 10, get_global_id(0) / 10);
             to[get_global_id(0)] = read_imageui(from, at);
         }
         kernel void invert(write_only image2d_t to) {
             int2 at = (int2)(get_global_id(0) % 10, get_global_id(0) / 10);
             write_imageui(to, at, (uint4)(get_global_id(0), 1, 2, 3));
         }
         kernel void line(read_only image1d_buffer_t from, global uint4 *to) {
             to[get_global_id(0)] = read_imageui(from, (int)get_global_id(0));
         }
         kernel void colour(read_only image2d_t from, global float4 *to) {
             to[0] = read_imagef(from, (int2)(0, 0));
         }",
    );
    let seen = setup.buffer(96 * 16);
    let kernel = setup.kernel(&program, "plane");
    kernel.set_buffer(0, &plane).set_buffer(1, &seen);
    setup.run(&kernel, &[60], None);
    let texels = setup.read::<[u32; 4]>(&seen, 60);
    for (at, texel) in texels.iter().enumerate() {
        let first = at / 10 * 64 + at % 10 * 4;
        let wanted: [u32; 4] = std::array::from_fn(|channel| data[first + channel].into());
        assert_eq!(*texel, wanted, "pixel {at}");
    }
    let kernel = setup.kernel(&program, "invert");
    kernel.set_buffer(0, &plane);
    setup.run(&kernel, &[60], None);
    let bytes = setup.read::<u8>(&buffer, data.len());
    for (at, pixel) in bytes.chunks(4).enumerate() {
        let (x, y) = (at % 16, at / 16);
        if x < 10 {
            assert_eq!(pixel, [(y * 10 + x) as u8, 1, 2, 3]);
        } else {
            assert_eq!(pixel, &data[at * 4..at * 4 + 4], "beyond the row");
        }
    }
    // What one image writes, another over the same buffer sees.
    let kernel = setup.kernel(&program, "line");
    kernel.set_buffer(0, &line).set_buffer(1, &seen);
    setup.run(&kernel, &[96], None);
    assert_eq!(setup.read::<[u32; 4]>(&seen, 18)[17], [11, 1, 2, 3]);

    // The same texels as sRGB.
    let own = image(
        &setup,
        0,
        &RGBA8,
        &desc(CL_MEM_OBJECT_IMAGE2D, [2, 2, 0]),
        null_mut(),
    );
    write(&setup, &own, [0; 3], [2, 2, 1], (0, 0), &[188; 16]);
    let mut other = desc(CL_MEM_OBJECT_IMAGE2D, [2, 2, 0]);
    other.buffer = own.0;
    let srgb = cl_image_format {
        image_channel_order: CL_sRGBA,
        image_channel_data_type: CL_UNORM_INT8,
    };
    let other = image(&setup, CL_MEM_READ_ONLY, &srgb, &other, null_mut());
    let kernel = setup.kernel(&program, "colour");
    kernel.set_buffer(0, &other).set_buffer(1, &seen);
    setup.run(&kernel, &[1], None);
    let [r, _, _, a] = setup.read::<[f32; 4]>(&seen, 1)[0];
    // Half a step of eight bits is the specification's bound for the conversion.
    assert!(
        (r - 0.5029).abs() < 0.5 / 255.0 && (a - 188.0 / 255.0).abs() < 0.001,
        "{r} {a}"
    );
}
