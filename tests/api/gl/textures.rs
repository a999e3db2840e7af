//! Textures and renderbuffers.

use super::world::*;
use pumice_tests::sys::*;
use pumice_tests::{call, info_value, Buffer};
use std::ptr::null_mut;

/// Internal format, format, type; channel order and type of OpenCL; bytes of a pixel.
#[rustfmt::skip]
const FORMATS: &[(u32, u32, u32, cl_channel_order, cl_channel_type, usize)] = &[
    (0x8058, 0x1908, 0x1401, CL_RGBA, CL_UNORM_INT8, 4),
    (0x1908, 0x1908, 0x8367, CL_RGBA, CL_UNORM_INT8, 4),
    (0x8C43, 0x1908, 0x1401, CL_sRGBA, CL_UNORM_INT8, 4),
    (0x8D8E, 0x8D99, 0x1400, CL_RGBA, CL_SIGNED_INT8, 4),
    (0x8D88, 0x8D99, 0x1402, CL_RGBA, CL_SIGNED_INT16, 8),
    (0x8D82, 0x8D99, 0x1404, CL_RGBA, CL_SIGNED_INT32, 16),
    (0x8D7C, 0x8D99, 0x1401, CL_RGBA, CL_UNSIGNED_INT8, 4),
    (0x8D76, 0x8D99, 0x1403, CL_RGBA, CL_UNSIGNED_INT16, 8),
    (0x8D70, 0x8D99, 0x1405, CL_RGBA, CL_UNSIGNED_INT32, 16),
    (0x805B, 0x1908, 0x1403, CL_RGBA, CL_UNORM_INT16, 8),
    (0x8814, 0x1908, 0x1406, CL_RGBA, CL_FLOAT, 16),
    (0x881A, 0x1908, 0x140B, CL_RGBA, CL_HALF_FLOAT, 8),
    (0x8229, 0x1903, 0x1401, CL_R, CL_UNORM_INT8, 1),
    (0x822A, 0x1903, 0x1403, CL_R, CL_UNORM_INT16, 2),
    (0x822E, 0x1903, 0x1406, CL_R, CL_FLOAT, 4),
    (0x8231, 0x8D94, 0x1400, CL_R, CL_SIGNED_INT8, 1),
    (0x8236, 0x8D94, 0x1405, CL_R, CL_UNSIGNED_INT32, 4),
    (0x822B, 0x8227, 0x1401, CL_RG, CL_UNORM_INT8, 2),
    (0x822F, 0x8227, 0x140B, CL_RG, CL_HALF_FLOAT, 4),
    (0x8239, 0x8228, 0x1402, CL_RG, CL_SIGNED_INT16, 4),
    (0x8CAC, 0x1902, 0x1406, CL_DEPTH, CL_FLOAT, 4),
    (0x81A5, 0x1902, 0x1403, CL_DEPTH, CL_UNORM_INT16, 2),
];

/// Bytes that are numbers in every format: depthss and floats are none that are not numbers, depths are from 0 to 1.
fn pixels(data: cl_channel_type, size: usize, seed: u32) -> Vec<u8> {
    let mut bytes = noise(size, seed);
    match data {
        CL_FLOAT => bytes.as_chunks_mut().0.iter_mut().for_each(|float| {
            let value = f32::from(float[0]) / 256.0;
            *float = value.to_ne_bytes();
        }),
        CL_HALF_FLOAT => bytes.as_chunks_mut().0.iter_mut().for_each(|half| {
            let [low, high] = *half;
            *half = [low, high & 0xBF & !0x04];
        }),
        _ => {}
    }
    bytes
}

fn format_of(mem: &Buffer) -> (cl_channel_order, cl_channel_type) {
    let format: [u32; 2] = info_value!([u32; 2], clGetImageInfo(mem.0), CL_IMAGE_FORMAT);
    (format[0], format[1])
}

#[test]
fn formats() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let size = [13, 7, 1];
    let mut seen = 0;
    for (seed, &(internal, format, data, order, channel, pixel)) in FORMATS.iter().enumerate() {
        let (bytes, what) = (13 * 7 * pixel, (internal, format, data));
        let before = pixels(channel, bytes, seed as u32);
        let name = world.new_texture(TEXTURE_2D, size, what, Some(&before));
        let mem = match sharing.texture(TEXTURE_2D, 0, name) {
            Err(CL_IMAGE_FORMAT_NOT_SUPPORTED) => continue,
            made => made.unwrap_or_else(|code| panic!("{internal:#x}: {code}")),
        };
        seen += 1;
        assert_eq!(format_of(&mem), (order, channel), "{internal:#x}");
        sharing.acquire(&mem);
        assert!(
            sharing.read_image(&mem, size, bytes) == before,
            "{internal:#x}: read"
        );
        let after = pixels(channel, bytes, 1000 + seed as u32);
        sharing.write_image(&mem, size, &after);
        sharing.release(&mem);
        sharing.finish();
        assert!(
            world.texture_bytes(TEXTURE_2D, 0, name, what, bytes) == after,
            "{internal:#x}: written"
        );
        drop(mem);
        gl!(world.gl, DeleteTextures(1, &name));
    }
    assert!(seen >= 18, "{seen}");
}

#[test]
fn geometries() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    #[rustfmt::skip]
    let all = [
        (TEXTURE_1D, [37, 1, 1], CL_MEM_OBJECT_IMAGE1D, CL_GL_OBJECT_TEXTURE1D),
        (TEXTURE_1D_ARRAY, [37, 5, 1], CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_GL_OBJECT_TEXTURE1D_ARRAY),
        (TEXTURE_2D, [37, 11, 1], CL_MEM_OBJECT_IMAGE2D, CL_GL_OBJECT_TEXTURE2D),
        (0x84F5, [37, 11, 1], CL_MEM_OBJECT_IMAGE2D, CL_GL_OBJECT_TEXTURE2D),
        (TEXTURE_2D_ARRAY, [37, 11, 3], CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_GL_OBJECT_TEXTURE2D_ARRAY),
        (TEXTURE_3D, [37, 11, 3], CL_MEM_OBJECT_IMAGE3D, CL_GL_OBJECT_TEXTURE3D),
    ];
    for (target, size, kind, object) in all {
        let bytes = size.iter().product::<usize>() * 4;
        let before = noise(bytes, target);
        let name = world.new_texture(target, size, RGBA8, Some(&before));
        let mem = sharing.texture(target, 0, name).expect("an image");
        assert_eq!(
            info_value!(u32, clGetMemObjectInfo(mem.0), CL_MEM_TYPE),
            kind
        );
        assert_eq!(
            info_value!(usize, clGetImageInfo(mem.0), CL_IMAGE_WIDTH),
            37
        );
        let (mut found, mut of) = (0, 0);
        assert_eq!(cl!(sharing, object_info(mem.0, &mut found, &mut of)), 0);
        assert_eq!((found, of), (object, name));
        sharing.acquire(&mem);
        assert!(
            sharing.read_image(&mem, size, bytes) == before,
            "{target:#x}"
        );
        let after = noise(bytes, target + 1);
        sharing.write_image(&mem, size, &after);
        sharing.release(&mem);
        sharing.finish();
        assert!(
            world.texture_bytes(target, 0, name, RGBA8, bytes) == after,
            "{target:#x}"
        );
    }
}

#[test]
fn faces_of_a_cube_and_mipmap_levels() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let gl = &world.gl;
    let mut name = 0;
    gl!(gl, GenTextures(1, &mut name));
    gl!(gl, BindTexture(0x8513, name));
    let level_bytes = |level: usize| (16usize >> level) * (16 >> level) * 4;
    for face in 0..6u32 {
        for level in 0..5usize {
            let side = 16 >> level;
            let bytes = noise(level_bytes(level), face * 8 + level as u32);
            gl!(
                gl,
                TexImage2D(
                    0x8515 + face,
                    level as i32,
                    0x8058,
                    side,
                    side,
                    0,
                    0x1908,
                    0x1401,
                    bytes.as_ptr().cast()
                )
            );
        }
    }
    world.check();
    for (face, level) in [(0, 0), (3, 1), (5, 4), (2, 2)] {
        let target = 0x8515 + face;
        let mem = sharing
            .texture(target, level as i32, name)
            .expect("an image");
        let side = 16usize >> level;
        assert_eq!(
            info_value!(usize, clGetImageInfo(mem.0), CL_IMAGE_HEIGHT),
            side
        );
        let info = |what| {
            let mut value = 0u32;
            let place = (&raw mut value).cast();
            assert_eq!(
                cl!(sharing, texture_info(mem.0, what, 4, place, null_mut())),
                0
            );
            value
        };
        assert_eq!(
            [info(CL_GL_TEXTURE_TARGET), info(CL_GL_MIPMAP_LEVEL)],
            [target, level as u32]
        );
        sharing.acquire(&mem);
        let before = noise(level_bytes(level), face * 8 + level as u32);
        assert!(sharing.read_image(&mem, [side, side, 1], before.len()) == before);
        let after = noise(before.len(), 99);
        sharing.write_image(&mem, [side, side, 1], &after);
        sharing.release(&mem);
        sharing.finish();
        assert!(world.texture_bytes(target, level as i32, name, RGBA8, after.len()) == after);
        // Its neighbours are as they were.
        let next = 0x8515 + (face + 1) % 6;
        let other = noise(after.len(), (face + 1) % 6 * 8 + level as u32);
        assert!(world.texture_bytes(next, level as i32, name, RGBA8, after.len()) == other);
    }
}

/// Kernels write what OpenGL renders with, and read what it has rendered, without glFinish.
#[test]
fn kernels_and_rendering() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let source = "
        kernel void invert(read_only image2d_t from, write_only image2d_t to) {
            const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
            int2 at = (int2)(get_global_id(0), get_global_id(1));
            write_imagef(to, at, (float4)(1.0f) - read_imagef(from, s, at));
        }";
    let kernel = sharing.setup.kernel_of(source, "invert");
    let size = [64, 32, 1];
    let [from, to] = [(); 2].map(|()| world.new_texture(TEXTURE_2D, size, RGBA8, None));
    let [rendered, written] =
        [from, to].map(|name| sharing.texture(TEXTURE_2D, 0, name).expect("an image"));
    for shade in [0.0f32, 0.2, 1.0] {
        world.with_framebuffer(true, from, || {
            gl!(world.gl, ClearColor(shade, 1.0 - shade, 0.4, 1.0));
            gl!(world.gl, Clear(0x4000));
        });
        let list = [rendered.0, written.0];
        drop(sharing.hand_over(true, &list, &[]).expect("an acquire"));
        kernel.set(0, rendered.0).set(1, written.0);
        sharing.setup.enqueue(&kernel, &[64, 32], None);
        // A context is current in this thread: what it is given next comes after this.
        drop(sharing.hand_over(false, &list, &[]).expect("a release"));
        let byte = |value: f32| (value * 255.0).round() as u8;
        let expected = [byte(1.0 - shade), byte(shade), 255 - byte(0.4), 0].repeat(64 * 32);
        let pixels = world.attached_bytes(true, to, [64, 32], (0x1908, 0x1401), expected.len());
        assert!(
            pixels == expected,
            "{:?} {:?}",
            &pixels[..4],
            &expected[..4]
        );
    }
}

#[test]
fn renderbuffers() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    #[rustfmt::skip]
    let formats = [
        (0x8058, 0x1908, 0x1401, CL_UNORM_INT8, 4),
        (0x8D76, 0x8D99, 0x1403, CL_UNSIGNED_INT16, 8),
        (0x8D82, 0x8D99, 0x1404, CL_SIGNED_INT32, 16),
        (0x8814, 0x1908, 0x1406, CL_FLOAT, 16),
    ];
    for (internal, format, data, channel, pixel) in formats {
        let mut name = 0;
        gl!(world.gl, GenRenderbuffers(1, &mut name));
        gl!(world.gl, BindRenderbuffer(RENDERBUFFER, name));
        gl!(world.gl, RenderbufferStorage(RENDERBUFFER, internal, 21, 9));
        gl!(world.gl, BindRenderbuffer(RENDERBUFFER, 0));
        let mem = sharing.renderbuffer(name).expect("an image");
        assert_eq!(format_of(&mem), (CL_RGBA, channel));
        if channel == CL_UNORM_INT8 {
            world.with_framebuffer(false, name, || {
                gl!(world.gl, ClearColor(0.0, 1.0, 0.2, 1.0));
                gl!(world.gl, Clear(0x4000));
            });
            sharing.acquire(&mem);
            let cleared = [0, 255, 51, 255].repeat(21 * 9);
            assert!(sharing.read_image(&mem, [21, 9, 1], cleared.len()) == cleared);
            sharing.release(&mem);
        }
        let after = pixels(channel, 21 * 9 * pixel, internal);
        sharing.acquire(&mem);
        sharing.write_image(&mem, [21, 9, 1], &after);
        sharing.release(&mem);
        sharing.finish();
        let found = world.attached_bytes(false, name, [21, 9], (format, data), after.len());
        assert!(found == after, "{internal:#x}");
        sharing.acquire(&mem);
        assert!(sharing.read_image(&mem, [21, 9, 1], after.len()) == after);
        sharing.release(&mem);
        sharing.finish();
        drop(mem);
        gl!(world.gl, DeleteRenderbuffers(1, &name));
    }
}

/// Kernels read the depths, and the stencils stay.
#[test]
fn depths_beside_stencils() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let source = "
        kernel void depths(read_only image2d_depth_t from, global float *p) {
            int2 at = (int2)(get_global_id(0), get_global_id(1));
            p[at.y * 16 + at.x] = read_imagef(from, at);
        }";
    let kernel = sharing.setup.kernel_of(source, "depths");
    let depths = sharing.setup.buffer(16 * 8 * 4);
    let packed = (0x88F0, 0x84F9, 0x84FA);
    let words: Vec<u32> = (0..16 * 8u32).map(|n| (n * 130_000) << 8 | n).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = world.new_texture(TEXTURE_2D, [16, 8, 1], packed, Some(&bytes));
    let mem = (sharing.texture_for(CL_MEM_READ_ONLY, TEXTURE_2D, 0, name)).expect("an image");
    const DEPTH_STENCIL: cl_channel_order = 0x10BE;
    const UNORM_INT24: cl_channel_type = 0x10DF;
    assert_eq!(format_of(&mem), (DEPTH_STENCIL, UNORM_INT24));
    let element = info_value!(usize, clGetImageInfo(mem.0), CL_IMAGE_ELEMENT_SIZE);
    assert_eq!(element, 4);
    sharing.acquire(&mem);
    kernel.set(0, mem.0).set_buffer(1, &depths);
    sharing.setup.enqueue(&kernel, &[16, 8], None);
    sharing.release(&mem);
    for (word, depth) in words.iter().zip(sharing.setup.read::<f32>(&depths, 16 * 8)) {
        let expected = (word >> 8) as f32 / 0xFF_FFFF as f32;
        assert!((depth - expected).abs() < 1e-6, "{depth} {expected}");
    }
    let found = world.texture_bytes(TEXTURE_2D, 0, name, packed, bytes.len());
    assert!(found == bytes);
    // "Such use will return a CL_INVALID_OPERATION error."
    let mut pixels = [0u8; 64];
    let code = call!(clEnqueueReadImage(
        sharing.queue(),
        mem.0,
        CL_TRUE,
        [0usize; 3].as_ptr(),
        [1usize; 3].as_ptr(),
        0,
        0,
        pixels.as_mut_ptr().cast(),
        0,
        std::ptr::null(),
        null_mut()
    ));
    assert_eq!(code, CL_INVALID_OPERATION);
    let written = sharing.texture(TEXTURE_2D, 0, name).map(drop);
    assert_eq!(written, Err(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR));
    let both = (0x8CAD, 0x84F9, 0x8DAD);
    let name = world.new_texture(TEXTURE_2D, [16, 8, 1], both, None);
    let mem = (sharing.texture_for(CL_MEM_READ_ONLY, TEXTURE_2D, 0, name)).expect("an image");
    assert_eq!(format_of(&mem), (DEPTH_STENCIL, CL_FLOAT));
    let element = info_value!(usize, clGetImageInfo(mem.0), CL_IMAGE_ELEMENT_SIZE);
    assert_eq!(element, 8);
}

#[test]
fn buffer_textures() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let source = "
        kernel void next(read_write image1d_buffer_t image) {
            int at = get_global_id(0);
            write_imageui(image, at, read_imageui(image, at) + 1);
        }";
    let bytes = noise(16 * 100, 8);
    let buffer = world.new_buffer(&bytes);
    let mut name = 0;
    gl!(world.gl, GenTextures(1, &mut name));
    gl!(world.gl, BindTexture(TEXTURE_BUFFER, name));
    gl!(world.gl, TexBuffer(TEXTURE_BUFFER, 0x8D70, buffer));
    world.check();
    let mem = sharing.texture(TEXTURE_BUFFER, 0, name).expect("an image");
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem.0), CL_MEM_TYPE),
        CL_MEM_OBJECT_IMAGE1D_BUFFER
    );
    assert_eq!(
        info_value!(usize, clGetImageInfo(mem.0), CL_IMAGE_WIDTH),
        100
    );
    let program = sharing.setup.try_build(source, "-cl-std=CL3.0");
    let program = program.unwrap_or_else(|log| panic!("{log}"));
    let kernel = sharing.setup.kernel(&program, "next");
    sharing.acquire(&mem);
    kernel.set(0, mem.0);
    sharing.setup.enqueue(&kernel, &[100], None);
    sharing.release(&mem);
    sharing.finish();
    let expected: Vec<u8> = (bytes.as_chunks().0.iter())
        .flat_map(|word| u32::from_ne_bytes(*word).wrapping_add(1).to_ne_bytes())
        .collect();
    assert_eq!(world.buffer_bytes(buffer, bytes.len()), expected);
}

/// The calls of OpenCL 1.0.
#[test]
fn older_calls() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let flat = world.new_texture(TEXTURE_2D, [4, 4, 1], RGBA8, None);
    let deep = world.new_texture(TEXTURE_3D, [4, 4, 4], RGBA8, None);
    let context = sharing.setup.context.0;
    let mut codes = [1; 4];
    let mems = [
        cl!(
            sharing,
            from_texture_2d(
                context,
                CL_MEM_READ_WRITE,
                TEXTURE_2D,
                0,
                flat,
                &mut codes[0]
            )
        ),
        cl!(
            sharing,
            from_texture_3d(
                context,
                CL_MEM_READ_WRITE,
                TEXTURE_3D,
                0,
                deep,
                &mut codes[1]
            )
        ),
        cl!(
            sharing,
            from_texture_2d(
                context,
                CL_MEM_READ_WRITE,
                TEXTURE_3D,
                0,
                deep,
                &mut codes[2]
            )
        ),
        cl!(
            sharing,
            from_texture_3d(
                context,
                CL_MEM_READ_WRITE,
                TEXTURE_2D,
                0,
                flat,
                &mut codes[3]
            )
        ),
    ];
    assert_eq!(codes, [0, 0, CL_INVALID_VALUE, CL_INVALID_VALUE]);
    drop(mems.map(Buffer));
}

/// OpenGL ES: there is no glGetTexImage.
#[test]
fn textures_of_opengl_es() {
    let Some(world) = World::new(OPENGL_ES_API) else {
        return;
    };
    let sharing = world.setup();
    #[rustfmt::skip]
    let all = [
        (TEXTURE_2D, [16, 8, 1], RGBA8),
        (TEXTURE_2D_ARRAY, [16, 8, 3], RGBA8),
        (TEXTURE_3D, [16, 8, 3], RGBA8),
        (TEXTURE_2D, [16, 8, 1], (0x8D7C, 0x8D99, 0x1401)),
        (TEXTURE_2D, [16, 8, 1], (0x8814, 0x1908, 0x1406)),
        (TEXTURE_2D, [16, 8, 1], (0x8236, 0x8D94, 0x1405)),
    ];
    for (target, size, what) in all {
        let pixel = match what.0 {
            0x8814 => 16,
            _ => 4,
        };
        let channel = if what.0 == 0x8814 {
            CL_FLOAT
        } else {
            CL_UNORM_INT8
        };
        let bytes = size.iter().product::<usize>() * pixel;
        let before = pixels(channel, bytes, what.0);
        let name = world.new_texture(target, size, what, Some(&before));
        let mem = sharing
            .texture(target, 0, name)
            .unwrap_or_else(|code| panic!("{what:x?} {code}"));
        sharing.acquire(&mem);
        assert!(sharing.read_image(&mem, size, bytes) == before, "{what:x?}");
        let after = pixels(channel, bytes, 7);
        sharing.write_image(&mem, size, &after);
        sharing.release(&mem);
        sharing.acquire(&mem);
        assert!(sharing.read_image(&mem, size, bytes) == after, "{what:x?}");
        sharing.release(&mem);
        sharing.finish();
        if target == TEXTURE_2D && what == RGBA8 {
            let found = world.attached_bytes(true, name, [16, 8], (0x1908, 0x1401), bytes);
            assert!(found == after);
        }
    }
    let bytes = noise(1000, 1);
    let name = world.new_buffer(&bytes);
    let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    sharing.acquire(&mem);
    assert_eq!(sharing.setup.read::<u8>(&mem, 1000), bytes);
}

/// Objects of one queue of the device, read and written by another thread than that of the context.
#[test]
fn threads_without_a_context() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let before = noise(32 * 32 * 4, 5);
    let name = world.new_texture(TEXTURE_2D, [32, 32, 1], RGBA8, Some(&before));
    gl!(world.gl, Finish());
    let after = noise(before.len(), 6);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mem = sharing.texture(TEXTURE_2D, 0, name).expect("an image");
            sharing.acquire(&mem);
            assert!(sharing.read_image(&mem, [32, 32, 1], before.len()) == before);
            sharing.write_image(&mem, [32, 32, 1], &after);
            sharing.release(&mem);
            sharing.finish();
        });
    });
    assert!(world.texture_bytes(TEXTURE_2D, 0, name, RGBA8, after.len()) == after);
}
