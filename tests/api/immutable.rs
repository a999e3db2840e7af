//! Memory objects that nothing writes after their creation (cl_ext_immutable_memory_objects).

use super::images::desc;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, info_value, ok, Buffer, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const IMMUTABLE: cl_mem_flags = CL_MEM_IMMUTABLE_EXT | CL_MEM_COPY_HOST_PTR;
const RGBA8: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT8,
};

/// The error of a call that makes a memory object.
macro_rules! made {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        let mut code = 0;
        let object = call!($name($($arg,)* &mut code));
        if !object.is_null() {
            drop(Buffer(object));
        }
        code_name(code)
    }};
}

fn data() -> Vec<u8> {
    (0..4096).map(|i| (i * 7) as u8).collect()
}

#[test]
fn flags_that_write_are_refused() {
    let setup = Setup::new();
    let c = setup.context.0;
    let mut data = data();
    let host = data.as_mut_ptr().cast::<c_void>();
    let value = code_name(CL_INVALID_VALUE);
    for more in [
        CL_MEM_READ_WRITE,
        CL_MEM_WRITE_ONLY,
        CL_MEM_HOST_WRITE_ONLY,
        CL_MEM_USE_HOST_PTR,
    ] {
        let got = made!(clCreateBuffer(c, IMMUTABLE | more, 4096, host));
        assert_eq!(got, value, "{more:#x}");
    }
    // Its contents must come from somewhere.
    for flags in [0, CL_MEM_ALLOC_HOST_PTR] {
        let flags = flags | CL_MEM_IMMUTABLE_EXT;
        assert_eq!(made!(clCreateBuffer(c, flags, 4096, null_mut())), value);
    }
    let buffer = Buffer(create!(clCreateBuffer(c, IMMUTABLE, 4096, host)));
    let flags = info_value!(cl_mem_flags, clGetMemObjectInfo(buffer.0), CL_MEM_FLAGS);
    assert_eq!(flags, IMMUTABLE);
    let region = cl_buffer_region {
        origin: 0,
        size: 1024,
    };
    let kind = CL_BUFFER_CREATE_TYPE_REGION;
    for (flags, code) in [
        (0, 0),
        (CL_MEM_READ_ONLY, 0),
        (CL_MEM_READ_WRITE, CL_INVALID_VALUE),
        (CL_MEM_WRITE_ONLY, CL_INVALID_VALUE),
        (CL_MEM_HOST_WRITE_ONLY, CL_INVALID_VALUE),
    ] {
        let region = (&raw const region).cast();
        let got = made!(clCreateSubBuffer(buffer.0, flags, kind, region));
        assert_eq!(got, code_name(code), "{flags:#x}");
    }
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    // An image over it has to be immutable, too, and then needs no host pointer.
    let mut over = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 1]);
    over.buffer = buffer.0;
    for (flags, code) in [(0, CL_INVALID_VALUE), (CL_MEM_IMMUTABLE_EXT, 0)] {
        let got = made!(clCreateImage(c, flags, &RGBA8, &over, null_mut()));
        assert_eq!(got, code_name(code));
    }
    let own = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 1]);
    let flags = CL_MEM_IMMUTABLE_EXT;
    assert_eq!(
        made!(clCreateImage(c, flags, &RGBA8, &own, null_mut())),
        value
    );
    // Whatever kernels can read can be immutable, but for pixels that share bytes.
    let formats = |flags| {
        let mut formats = vec![RGBA8; 256];
        let (kind, mut count) = (CL_MEM_OBJECT_IMAGE2D, 0);
        ok!(clGetSupportedImageFormats(
            c,
            flags,
            kind,
            256,
            formats.as_mut_ptr(),
            &mut count
        ));
        formats.truncate(count as usize);
        formats.retain(|format| {
            let raw = [CL_UNSIGNED_INT_RAW10_EXT, CL_UNSIGNED_INT_RAW12_EXT];
            flags == CL_MEM_IMMUTABLE_EXT || !raw.contains(&format.image_channel_data_type)
        });
        let pairs = formats.iter();
        pairs
            .map(|format| (format.image_channel_order, format.image_channel_data_type))
            .collect::<Vec<_>>()
    };
    assert_eq!(formats(CL_MEM_IMMUTABLE_EXT), formats(CL_MEM_READ_ONLY));
}

#[test]
fn commands_that_write_are_refused() {
    let setup = Setup::new();
    let (c, q) = (setup.context.0, setup.queue.0);
    let mut host = data();
    let pointer = host.as_mut_ptr().cast::<c_void>();
    let buffer = Buffer(create!(clCreateBuffer(c, IMMUTABLE, 4096, pointer)));
    host.fill(0);
    let other = setup.buffer(4096);
    let (from, to) = (other.0, buffer.0);
    let (zero, box3) = ([0usize; 3], [8usize, 8, 1]);
    let (at, size) = (zero.as_ptr(), box3.as_ptr());
    let (n, l, e) = (0, null(), null_mut());
    let four = [1u8, 2, 3, 4];
    let four = four.as_ptr().cast::<c_void>();
    let mut codes = vec![
        call!(clEnqueueWriteBuffer(q, to, 1, 0, 16, pointer, n, l, e)),
        call!(clEnqueueWriteBufferRect(
            q, to, 1, at, at, size, 0, 0, 0, 0, pointer, n, l, e
        )),
        call!(clEnqueueCopyBuffer(q, from, to, 0, 0, 16, n, l, e)),
        call!(clEnqueueCopyBufferRect(
            q, from, to, at, at, size, 0, 0, 0, 0, n, l, e
        )),
        call!(clEnqueueFillBuffer(q, to, four, 4, 0, 16, n, l, e)),
    ];
    let images = setup.has_images().then(|| {
        let mut host = data();
        let pointer = host.as_mut_ptr().cast::<c_void>();
        let own = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 1]);
        let mut over = own;
        over.buffer = buffer.0;
        let image = |flags, desc: &cl_image_desc, pointer| {
            Buffer(create!(clCreateImage(c, flags, &RGBA8, desc, pointer)))
        };
        [
            image(IMMUTABLE, &own, pointer),
            image(CL_MEM_IMMUTABLE_EXT, &over, null_mut()),
            image(0, &own, null_mut()),
        ]
    });
    for image in images.iter().flat_map(|images| &images[..2]) {
        let plain = images.as_ref().map_or(null_mut(), |images| images[2].0);
        let i = image.0;
        codes.extend([
            call!(clEnqueueWriteImage(
                q, i, 1, at, size, 0, 0, pointer, n, l, e
            )),
            call!(clEnqueueCopyImage(q, plain, i, at, at, size, n, l, e)),
            call!(clEnqueueCopyBufferToImage(q, from, i, 0, at, size, n, l, e)),
            call!(clEnqueueCopyImageToBuffer(
                q, plain, to, at, size, 0, n, l, e
            )),
            call!(clEnqueueFillImage(
                q,
                i,
                [0u32; 4].as_ptr().cast(),
                at,
                size,
                n,
                l,
                e
            )),
        ]);
        for flags in [CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION] {
            let (mut code, mut row) = (0, 0);
            let none = null_mut();
            let mapped = call!(clEnqueueMapImage(
                q, i, 1, flags, at, size, &mut row, none, n, l, e, &mut code
            ));
            assert!(mapped.is_null());
            codes.push(code);
        }
    }
    for flags in [
        CL_MAP_WRITE,
        CL_MAP_READ | CL_MAP_WRITE,
        CL_MAP_WRITE_INVALIDATE_REGION,
    ] {
        let mut code = 0;
        let mapped = call!(clEnqueueMapBuffer(
            q, to, 1, flags, 0, 16, n, l, e, &mut code
        ));
        assert!(mapped.is_null());
        codes.push(code);
    }
    for (number, code) in codes.into_iter().enumerate() {
        assert_eq!(
            code_name(code),
            code_name(CL_INVALID_OPERATION),
            "call {number}"
        );
    }
    // What reads goes on, and a migration that gives up the contents does not.
    ok!(clEnqueueMigrateMemObjects(
        q,
        1,
        &buffer.0,
        CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED,
        n,
        l,
        e
    ));
    assert!(setup.read::<u8>(&buffer, 4096) == data());
    ok!(clEnqueueCopyBuffer(q, to, from, 0, 0, 4096, n, l, e));
    assert!(setup.read::<u8>(&other, 4096) == data());
    let mapped = create!(clEnqueueMapBuffer(q, to, 1, CL_MAP_READ, 0, 16, n, l, e));
    // SAFETY: mapped for reading.
    let bytes = unsafe { std::slice::from_raw_parts(mapped.cast::<u8>(), 16) };
    assert_eq!(bytes, &data()[..16]);
    ok!(clEnqueueUnmapMemObject(q, to, mapped, n, l, e));
}

#[test]
fn kernels_that_write_are_refused() {
    let setup = Setup::new();
    let c = setup.context.0;
    let mut host = data();
    let pointer = host.as_mut_ptr().cast::<c_void>();
    let buffer = Buffer(create!(clCreateBuffer(c, IMMUTABLE, 4096, pointer)));
    let program = setup.build(
        "kernel void k(constant int *a, const global int *b, global int *c) {
             size_t i = get_global_id(0);
             c[i] = a[i] + b[i];
         }",
    );
    let kernel = setup.kernel(&program, "k");
    let set = |kernel: &pumice_tests::Kernel, index, mem: &Buffer| {
        let value = (&raw const mem.0).cast();
        call!(clSetKernelArg(kernel.0, index, size_of::<cl_mem>(), value))
    };
    assert_eq!(set(&kernel, 0, &buffer), 0);
    assert_eq!(set(&kernel, 1, &buffer), 0);
    let refused = code_name(CL_INVALID_ARG_VALUE);
    assert_eq!(code_name(set(&kernel, 2, &buffer)), refused);
    let out = setup.buffer(4096);
    assert_eq!(set(&kernel, 2, &out), 0);
    setup.run(&kernel, &[1024], None);
    let words = |bytes: &[u8]| -> Vec<i32> {
        let chunks = bytes.chunks(4);
        chunks
            .map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    };
    let want: Vec<i32> = words(&data()).iter().map(|v| v.wrapping_mul(2)).collect();
    assert!(setup.read::<i32>(&out, 1024) == want);
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let program = setup.build(
        "kernel void k(read_only image2d_t a, write_only image2d_t b) {
             int2 at = (int2)(get_global_id(0), get_global_id(1));
             write_imageui(b, at, read_imageui(a, at));
         }",
    );
    let kernel = setup.kernel(&program, "k");
    let shape = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 1]);
    let image = Buffer(create!(clCreateImage(
        c, IMMUTABLE, &RGBA8, &shape, pointer
    )));
    let target = Buffer(create!(clCreateImage(c, 0, &RGBA8, &shape, null_mut())));
    assert_eq!(set(&kernel, 0, &image), 0);
    assert_eq!(code_name(set(&kernel, 1, &image)), refused);
    assert_eq!(set(&kernel, 1, &target), 0);
    setup.run(&kernel, &[8, 8], None);
    let mut got = vec![0u8; 256];
    ok!(clEnqueueReadImage(
        setup.queue.0,
        target.0,
        1,
        [0usize; 3].as_ptr(),
        [8usize, 8, 1].as_ptr(),
        0,
        0,
        got.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    assert!(got == data()[..256]);
}
