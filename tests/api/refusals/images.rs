//! Images: commands and creation.

use super::Seen;
use crate::images::desc;
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, ok, Buffer, Event, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const R8: cl_image_format = cl_image_format {
    image_channel_order: CL_R,
    image_channel_data_type: CL_UNSIGNED_INT8,
};
const RGBA8: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT8,
};

fn has_images(setup: &Setup) -> bool {
    let device = setup.device;
    info_value!(cl_bool, clGetDeviceInfo(device), CL_DEVICE_IMAGE_SUPPORT) == CL_TRUE
}

#[test]
fn image_commands() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return pumice_tests::left_out("no images");
    }
    let mut seen = Seen::default();
    let other = Setup::new();
    let new = |format: &cl_image_format, desc: &cl_image_desc, flags| {
        Buffer(create!(clCreateImage(
            setup.context.0,
            flags,
            format,
            desc,
            null_mut()
        )))
    };
    let flat = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 0]);
    let image = new(&R8, &flat, CL_MEM_READ_WRITE);
    let wide = new(&RGBA8, &flat, CL_MEM_READ_WRITE);
    let line = new(
        &R8,
        &desc(CL_MEM_OBJECT_IMAGE1D, [8, 0, 0]),
        CL_MEM_READ_WRITE,
    );
    let layers = desc(CL_MEM_OBJECT_IMAGE2D_ARRAY, [8, 8, 2]);
    let layers = new(&R8, &layers, CL_MEM_READ_WRITE);
    let deep = new(
        &R8,
        &desc(CL_MEM_OBJECT_IMAGE3D, [8, 8, 2]),
        CL_MEM_READ_WRITE,
    );
    let unseen = new(&R8, &flat, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
    let buffer = setup.buffer(4096);
    let texels = cl_image_desc {
        buffer: buffer.0,
        ..desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [64, 0, 0])
    };
    let texels = new(&RGBA8, &texels, CL_MEM_READ_WRITE);
    let mut data = [0u8; 1024];
    let (p, q) = (data.as_mut_ptr().cast::<c_void>(), setup.queue.0);
    let (zero, all) = ([0usize; 3], [8usize, 8, 1]);
    let (z, a) = (zero.as_ptr(), all.as_ptr());
    let (n, e) = (null(), null_mut());
    let value = CL_INVALID_VALUE;
    let boxes: [(&str, [usize; 3], [usize; 3]); 5] = [
        ("an empty region", zero, [8, 0, 1]),
        ("out of bounds", [1, 0, 0], all),
        ("a depth of a flat image", zero, [8, 8, 2]),
        ("a third coordinate", [0, 0, 1], all),
        ("overflowing", [usize::MAX, 0, 0], all),
    ];
    for (what, origin, region) in &boxes {
        let (o, r) = (origin.as_ptr(), region.as_ptr());
        let (i, b) = (image.0, buffer.0);
        gives!(
            seen,
            what,
            value,
            clEnqueueReadImage(q, i, CL_TRUE, o, r, 0, 0, p, 0, n, e)
        );
        gives!(
            seen,
            what,
            value,
            clEnqueueWriteImage(q, i, CL_TRUE, o, r, 0, 0, p, 0, n, e)
        );
        gives!(
            seen,
            what,
            value,
            clEnqueueFillImage(q, i, p, o, r, 0, n, e)
        );
        gives!(
            seen,
            what,
            value,
            clEnqueueCopyImageToBuffer(q, i, b, o, r, 0, 0, n, e)
        );
        gives!(
            seen,
            what,
            value,
            clEnqueueCopyBufferToImage(q, b, i, 0, o, r, 0, n, e)
        );
        gives!(
            seen,
            what,
            value,
            clEnqueueCopyImage(q, i, layers.0, o, z, r, 0, n, e)
        );
        let mut pitch = 0;
        makes_none!(
            seen,
            what,
            value,
            clEnqueueMapImage(
                q,
                i,
                CL_TRUE,
                CL_MAP_READ,
                o,
                r,
                &mut pitch,
                null_mut(),
                0,
                n,
                e
            )
        );
    }
    // Null pointers.
    let (i, b) = (image.0, buffer.0);
    gives!(
        seen,
        "no origin",
        value,
        clEnqueueReadImage(q, i, CL_TRUE, null(), a, 0, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "no region",
        value,
        clEnqueueReadImage(q, i, CL_TRUE, z, null(), 0, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "no memory",
        value,
        clEnqueueReadImage(q, i, CL_TRUE, z, a, 0, 0, null_mut(), 0, n, e)
    );
    gives!(
        seen,
        "no origin",
        value,
        clEnqueueWriteImage(q, i, CL_TRUE, null(), a, 0, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "no region",
        value,
        clEnqueueWriteImage(q, i, CL_TRUE, z, null(), 0, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "no memory",
        value,
        clEnqueueWriteImage(q, i, CL_TRUE, z, a, 0, 0, null(), 0, n, e)
    );
    gives!(
        seen,
        "no colour",
        value,
        clEnqueueFillImage(q, i, null(), z, a, 0, n, e)
    );
    gives!(
        seen,
        "no origin",
        value,
        clEnqueueFillImage(q, i, p, null(), a, 0, n, e)
    );
    gives!(
        seen,
        "no region",
        value,
        clEnqueueFillImage(q, i, p, z, null(), 0, n, e)
    );
    gives!(
        seen,
        "no source origin",
        value,
        clEnqueueCopyImage(q, i, layers.0, null(), z, a, 0, n, e)
    );
    gives!(
        seen,
        "no origin",
        value,
        clEnqueueCopyImage(q, i, layers.0, z, null(), a, 0, n, e)
    );
    gives!(
        seen,
        "no region",
        value,
        clEnqueueCopyImage(q, i, layers.0, z, z, null(), 0, n, e)
    );
    gives!(
        seen,
        "no origin",
        value,
        clEnqueueCopyImageToBuffer(q, i, b, null(), a, 0, 0, n, e)
    );
    gives!(
        seen,
        "no region",
        value,
        clEnqueueCopyImageToBuffer(q, i, b, z, null(), 0, 0, n, e)
    );
    gives!(
        seen,
        "no origin",
        value,
        clEnqueueCopyBufferToImage(q, b, i, 0, null(), a, 0, n, e)
    );
    gives!(
        seen,
        "no region",
        value,
        clEnqueueCopyBufferToImage(q, b, i, 0, z, null(), 0, n, e)
    );
    // Pitches.
    gives!(
        seen,
        "short rows",
        value,
        clEnqueueReadImage(q, i, CL_TRUE, z, a, 7, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "short rows",
        value,
        clEnqueueWriteImage(q, i, CL_TRUE, z, a, 7, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "slices of a flat image",
        value,
        clEnqueueReadImage(q, i, CL_TRUE, z, a, 8, 64, p, 0, n, e)
    );
    gives!(
        seen,
        "slices of a flat image",
        value,
        clEnqueueWriteImage(q, i, CL_TRUE, z, a, 8, 64, p, 0, n, e)
    );
    gives!(
        seen,
        "short slices",
        value,
        clEnqueueReadImage(q, deep.0, CL_TRUE, z, a, 8, 63, p, 0, n, e)
    );
    // Formats, overlap, kinds, contexts.
    let mismatch = CL_IMAGE_FORMAT_MISMATCH;
    gives!(
        seen,
        "formats",
        mismatch,
        clEnqueueCopyImage(q, i, wide.0, z, z, a, 0, n, e)
    );
    let one = [1usize, 1, 0];
    let seven = [7usize, 7, 1];
    let (o, r) = (one.as_ptr(), seven.as_ptr());
    gives!(
        seen,
        "overlap",
        CL_MEM_COPY_OVERLAP,
        clEnqueueCopyImage(q, i, i, z, o, r, 0, n, e)
    );
    let mem = CL_INVALID_MEM_OBJECT;
    gives!(
        seen,
        "a buffer",
        mem,
        clEnqueueReadImage(q, b, CL_TRUE, z, a, 0, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "a buffer",
        mem,
        clEnqueueFillImage(q, b, p, z, a, 0, n, e)
    );
    gives!(
        seen,
        "a buffer",
        mem,
        clEnqueueCopyImage(q, b, i, z, z, a, 0, n, e)
    );
    gives!(
        seen,
        "an image",
        mem,
        clEnqueueCopyImageToBuffer(q, i, i, z, a, 0, 0, n, e)
    );
    gives!(
        seen,
        "an image",
        mem,
        clEnqueueCopyBufferToImage(q, i, i, 0, z, a, 0, n, e)
    );
    gives!(
        seen,
        "an image",
        mem,
        clEnqueueReadBuffer(q, i, CL_TRUE, 0, 1, p, 0, n, e)
    );
    gives!(
        seen,
        "an image",
        mem,
        clEnqueueFillBuffer(q, i, p, 1, 0, 1, 0, n, e)
    );
    let row = [8usize, 1, 1];
    let r = row.as_ptr();
    gives!(
        seen,
        "its own buffer",
        mem,
        clEnqueueCopyImageToBuffer(q, texels.0, b, z, r, 1024, 0, n, e)
    );
    gives!(
        seen,
        "its own buffer",
        mem,
        clEnqueueCopyBufferToImage(q, b, texels.0, 1024, z, r, 0, n, e)
    );
    gives!(
        seen,
        "beyond the buffer",
        value,
        clEnqueueCopyImageToBuffer(q, i, b, z, a, 4096 - 63, 0, n, e)
    );
    gives!(
        seen,
        "beyond the buffer",
        value,
        clEnqueueCopyBufferToImage(q, b, i, 4096 - 63, z, a, 0, n, e)
    );
    gives!(
        seen,
        "beyond all",
        value,
        clEnqueueCopyBufferToImage(q, b, i, usize::MAX, z, a, 0, n, e)
    );
    let context = CL_INVALID_CONTEXT;
    let oq = other.queue.0;
    gives!(
        seen,
        "of another context",
        context,
        clEnqueueReadImage(oq, i, CL_TRUE, z, a, 0, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "of another context",
        context,
        clEnqueueFillImage(oq, i, p, z, a, 0, n, e)
    );
    gives!(
        seen,
        "of another context",
        context,
        clEnqueueCopyImage(oq, i, layers.0, z, z, a, 0, n, e)
    );
    gives!(
        seen,
        "of another context",
        context,
        clEnqueueCopyImageToBuffer(oq, i, b, z, a, 0, 0, n, e)
    );
    let event = Event::user(&other.context);
    gives!(
        seen,
        "event of another context",
        context,
        clEnqueueFillImage(q, i, p, z, a, 1, &event.0, e)
    );
    let list = CL_INVALID_EVENT_WAIT_LIST;
    gives!(
        seen,
        "no list",
        list,
        clEnqueueFillImage(q, i, p, z, a, 1, n, e)
    );
    gives!(
        seen,
        "an empty list",
        list,
        clEnqueueFillImage(q, i, p, z, a, 0, &event.0, e)
    );
    event.finish(CL_COMPLETE);
    // What the host may not do.
    let operation = CL_INVALID_OPERATION;
    let u = unseen.0;
    gives!(
        seen,
        "without access",
        operation,
        clEnqueueReadImage(q, u, CL_TRUE, z, a, 0, 0, p, 0, n, e)
    );
    gives!(
        seen,
        "without access",
        operation,
        clEnqueueWriteImage(q, u, CL_TRUE, z, a, 0, 0, p, 0, n, e)
    );
    // Maps.
    let mut pitch = 0usize;
    let mut map = |what: &str, code, image: cl_mem, flags, row: bool, slice: bool| {
        let (mut rows, mut slices) = (0, 0);
        let rows: *mut usize = if row { &mut rows } else { null_mut() };
        let slices: *mut usize = if slice { &mut slices } else { null_mut() };
        let region = if image == line.0 { r } else { a };
        makes_none!(
            seen,
            what,
            code,
            clEnqueueMapImage(q, image, CL_TRUE, flags, z, region, rows, slices, 0, n, e)
        );
    };
    map("no row pitch", value, i, CL_MAP_READ, false, false);
    map("no slice pitch", value, layers.0, CL_MAP_READ, true, false);
    map("no slice pitch", value, deep.0, CL_MAP_READ, true, false);
    map("no row pitch", value, line.0, CL_MAP_READ, false, false);
    map("unknown flags", value, i, 1 << 9, true, false);
    let both = CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    map("both ways of writing", value, i, both, true, false);
    map("without access", operation, u, CL_MAP_READ, true, false);
    map("without access", operation, u, CL_MAP_WRITE, true, false);
    map("a buffer", mem, b, CL_MAP_READ, true, false);
    let mapped = create!(clEnqueueMapImage(
        q,
        i,
        CL_TRUE,
        CL_MAP_WRITE,
        z,
        a,
        &mut pitch,
        null_mut(),
        0,
        n,
        e
    ));
    map(
        "mapped for writing",
        operation,
        i,
        CL_MAP_WRITE,
        true,
        false,
    );
    gives!(
        seen,
        "another pointer",
        value,
        clEnqueueUnmapMemObject(q, i, p, 0, n, e)
    );
    ok!(clEnqueueUnmapMemObject(q, i, mapped, 0, n, e));
    gives!(
        seen,
        "once more",
        value,
        clEnqueueUnmapMemObject(q, i, mapped, 0, n, e)
    );
    ok!(clFinish(q));
}

#[test]
fn image_creation() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return pumice_tests::left_out("no images");
    }
    let mut seen = Seen::default();
    let c = setup.context.0;
    let (none, rw) = (null_mut(), CL_MEM_READ_WRITE);
    let flat = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 0]);
    let bad = CL_INVALID_IMAGE_DESCRIPTOR;
    let format = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
    makes_none!(
        seen,
        "no format",
        format,
        clCreateImage(c, rw, null(), &flat, none)
    );
    makes_none!(
        seen,
        "no description",
        bad,
        clCreateImage(c, rw, &R8, null(), none)
    );
    makes_none!(
        seen,
        "no context",
        CL_INVALID_CONTEXT,
        clCreateImage(none, rw, &R8, &flat, none)
    );
    let odd = [
        CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
        1 << 50,
        CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR,
    ];
    for flags in odd {
        makes_none!(
            seen,
            format!("flags {flags:#x}"),
            CL_INVALID_VALUE,
            clCreateImage(c, flags, &R8, &flat, none)
        );
    }
    for (order, data) in [
        (0, 0),
        (CL_RGB, CL_UNSIGNED_INT8),
        (CL_RGBA, CL_UNORM_SHORT_565),
        (CL_R, 0x1234),
    ] {
        let wrong = cl_image_format {
            image_channel_order: order,
            image_channel_data_type: data,
        };
        makes_none!(
            seen,
            format!("{order:#x} {data:#x}"),
            format,
            clCreateImage(c, rw, &wrong, &flat, none)
        );
    }
    let host = CL_INVALID_HOST_PTR;
    let mut data = [0u8; 4096];
    let p = data.as_mut_ptr().cast::<c_void>();
    makes_none!(
        seen,
        "no memory",
        host,
        clCreateImage(c, CL_MEM_COPY_HOST_PTR, &R8, &flat, none)
    );
    makes_none!(
        seen,
        "memory for nothing",
        host,
        clCreateImage(c, rw, &R8, &flat, p)
    );
    let kinds = [
        (
            "no kind",
            cl_image_desc {
                image_type: 0,
                ..flat
            },
        ),
        (
            "a buffer's",
            cl_image_desc {
                image_type: CL_MEM_OBJECT_BUFFER,
                ..flat
            },
        ),
        (
            "levels",
            cl_image_desc {
                num_mip_levels: 2,
                ..flat
            },
        ),
        (
            "samples",
            cl_image_desc {
                num_samples: 4,
                ..flat
            },
        ),
        (
            "a pitch for nothing",
            cl_image_desc {
                image_row_pitch: 16,
                ..flat
            },
        ),
        (
            "a slice pitch for nothing",
            cl_image_desc {
                image_slice_pitch: 64,
                ..flat
            },
        ),
        (
            "a buffer image without buffer",
            desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [8, 0, 0]),
        ),
    ];
    for (what, wrong) in &kinds {
        makes_none!(seen, what, bad, clCreateImage(c, rw, &R8, wrong, none));
    }
    let pitched = [
        (
            "a short pitch",
            cl_image_desc {
                image_row_pitch: 4,
                ..flat
            },
        ),
        (
            "a short slice pitch",
            cl_image_desc {
                image_slice_pitch: 32,
                ..desc(CL_MEM_OBJECT_IMAGE3D, [8, 8, 2])
            },
        ),
    ];
    for (what, wrong) in &pitched {
        makes_none!(
            seen,
            what,
            bad,
            clCreateImage(c, CL_MEM_COPY_HOST_PTR, &R8, wrong, p)
        );
    }
    let size = CL_INVALID_IMAGE_SIZE;
    let device = setup.device;
    let most = info_value!(usize, clGetDeviceInfo(device), CL_DEVICE_IMAGE2D_MAX_WIDTH);
    let large = desc(CL_MEM_OBJECT_IMAGE2D, [most + 1, 1, 0]);
    makes_none!(
        seen,
        "too wide",
        size,
        clCreateImage(c, rw, &R8, &large, none)
    );
    let huge = desc(CL_MEM_OBJECT_IMAGE2D, [usize::MAX, usize::MAX, 0]);
    makes_none!(
        seen,
        "far too wide",
        size,
        clCreateImage(c, rw, &R8, &huge, none)
    );
    let property = CL_INVALID_PROPERTY;
    let list = [0x1234 as cl_mem_properties, 1, 0];
    makes_none!(
        seen,
        "properties",
        property,
        clCreateImageWithProperties(c, list.as_ptr(), rw, &R8, &flat, none)
    );
    // From buffers.
    let read_only = Buffer(create!(clCreateBuffer(c, CL_MEM_READ_ONLY, 4096, none)));
    let of = |buffer: &Buffer, width| cl_image_desc {
        buffer: buffer.0,
        ..desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [width, 0, 0])
    };
    let value = CL_INVALID_VALUE;
    makes_none!(
        seen,
        "more than its buffer",
        value,
        clCreateImage(c, rw, &R8, &of(&read_only, 8), none)
    );
    makes_none!(
        seen,
        "more than its buffer",
        value,
        clCreateImage(c, CL_MEM_WRITE_ONLY, &R8, &of(&read_only, 8), none)
    );
    makes_none!(
        seen,
        "larger than its buffer",
        CL_INVALID_IMAGE_SIZE,
        clCreateImage(c, CL_MEM_READ_ONLY, &R8, &of(&read_only, 4097), none)
    );
    let mut number = 0;
    gives!(
        seen,
        "flags",
        value,
        clGetSupportedImageFormats(
            c,
            1 << 50,
            CL_MEM_OBJECT_IMAGE2D,
            0,
            null_mut(),
            &mut number
        )
    );
    gives!(
        seen,
        "a buffer",
        value,
        clGetSupportedImageFormats(c, rw, CL_MEM_OBJECT_BUFFER, 0, null_mut(), &mut number)
    );
    let mut out = R8;
    gives!(
        seen,
        "no room",
        value,
        clGetSupportedImageFormats(c, rw, CL_MEM_OBJECT_IMAGE2D, 0, &mut out, null_mut())
    );
}
