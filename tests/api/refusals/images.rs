//! Images: creation.

use super::Seen;
use crate::images::desc;
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, Buffer, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const R8: cl_image_format = cl_image_format {
    image_channel_order: CL_R,
    image_channel_data_type: CL_UNSIGNED_INT8,
};

#[test]
fn image_creation() {
    let setup = Setup::new();
    if !setup.has_images() {
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
        "no description",
        bad,
        clCreateImage(c, rw, &R8, null(), none)
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
    let mut data = [0u8; 4096];
    let p = data.as_mut_ptr().cast::<c_void>();
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
