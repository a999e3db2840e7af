//! Images without kernels: creation, transfers, fills, copies, maps, formats, samplers, and the errors of all of them.

use super::buffers::Random;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, info_value, ok, Buffer, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const R8: cl_image_format = cl_image_format {
    image_channel_order: CL_R,
    image_channel_data_type: CL_UNSIGNED_INT8,
};
const RGBA8: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNORM_INT8,
};
const RGBA32: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT32,
};

fn has_images(setup: &Setup) -> bool {
    let yes = info_value!(
        cl_bool,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_IMAGE_SUPPORT
    ) == CL_TRUE;
    if !yes {
        eprintln!("skipped: the device has no images");
    }
    yes
}

/// A description without pitches; the layers of an array stand where its next coordinate does.
pub fn desc(kind: cl_mem_object_type, [width, height, depth]: [usize; 3]) -> cl_image_desc {
    let layers = match kind {
        CL_MEM_OBJECT_IMAGE1D_ARRAY => height,
        CL_MEM_OBJECT_IMAGE2D_ARRAY => depth,
        _ => 0,
    };
    cl_image_desc {
        image_type: kind,
        image_width: width,
        image_height: height,
        image_depth: depth,
        image_array_size: layers,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    }
}

fn image(
    setup: &Setup,
    flags: cl_mem_flags,
    format: &cl_image_format,
    desc: &cl_image_desc,
    host: *mut c_void,
) -> Buffer {
    Buffer(create!(clCreateImage(
        setup.context.0,
        flags,
        format,
        desc,
        host
    )))
}

/// The error of a creation, 0: there was none.
fn refused(
    setup: &Setup,
    flags: cl_mem_flags,
    format: &cl_image_format,
    desc: &cl_image_desc,
    host: *mut c_void,
) -> String {
    let mut code = 0;
    let made = call!(clCreateImage(
        setup.context.0,
        flags,
        format,
        desc,
        host,
        &mut code
    ));
    if !made.is_null() {
        drop(Buffer(made));
    }
    code_name(code)
}

/// Pitches with 0 for packed.
type Pitches = (usize, usize);

fn write(
    setup: &Setup,
    image: &Buffer,
    origin: [usize; 3],
    size: [usize; 3],
    (row, slice): Pitches,
    data: &[u8],
) {
    ok!(clEnqueueWriteImage(
        setup.queue.0,
        image.0,
        CL_TRUE,
        origin.as_ptr(),
        size.as_ptr(),
        row,
        slice,
        data.as_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
}

fn read(
    setup: &Setup,
    image: &Buffer,
    origin: [usize; 3],
    size: [usize; 3],
    (row, slice): Pitches,
    bytes: usize,
) -> Vec<u8> {
    let mut data = vec![0xeeu8; bytes];
    ok!(clEnqueueReadImage(
        setup.queue.0,
        image.0,
        CL_TRUE,
        origin.as_ptr(),
        size.as_ptr(),
        row,
        slice,
        data.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    data
}

fn random(count: usize) -> Vec<u8> {
    let mut random = Random(count as u64 + 1);
    (0..count).map(|_| random.next(256) as u8).collect()
}

const KINDS: [(cl_mem_object_type, [usize; 3]); 5] = [
    (CL_MEM_OBJECT_IMAGE1D, [37, 1, 1]),
    (CL_MEM_OBJECT_IMAGE1D_ARRAY, [37, 5, 1]),
    (CL_MEM_OBJECT_IMAGE2D, [37, 11, 1]),
    (CL_MEM_OBJECT_IMAGE2D_ARRAY, [37, 11, 4]),
    (CL_MEM_OBJECT_IMAGE3D, [37, 11, 4]),
];

/// A box of a packed image.
fn part(
    data: &[u8],
    [width, height, _]: [usize; 3],
    element: usize,
    [x, y, z]: [usize; 3],
    [w, h, d]: [usize; 3],
) -> Vec<u8> {
    let mut all = Vec::new();
    for slice in z..z + d {
        for row in y..y + h {
            let at = ((slice * height + row) * width + x) * element;
            all.extend_from_slice(&data[at..at + w * element]);
        }
    }
    all
}

#[test]
fn every_type_is_written_and_read_with_pitches() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
    }
    for format in [R8, RGBA8, RGBA32] {
        for (kind, size) in KINDS {
            let [w, h, d] = size;
            let made = image(
                &setup,
                CL_MEM_READ_WRITE,
                &format,
                &desc(kind, size),
                null_mut(),
            );
            let element = info_value!(usize, clGetImageInfo(made.0), CL_IMAGE_ELEMENT_SIZE);
            let data = random(w * h * d * element);
            write(&setup, &made, [0; 3], size, (0, 0), &data);
            assert_eq!(read(&setup, &made, [0; 3], size, (0, 0), data.len()), data);
            // A part, rows and slices apart.
            let origin = [3, h / 3, d / 3];
            let some = [w - 9, h - h / 3, d - d / 3];
            let row = some[0] * element + 5 * element;
            let layered = kind == CL_MEM_OBJECT_IMAGE1D_ARRAY;
            let slices = layered || d > 1;
            let slice = match (slices, layered) {
                (false, _) => 0,
                (true, true) => row * 2,
                (true, false) => row * (some[1] + 2),
            };
            let (y, z) = if layered { (slice, 0) } else { (row, slice) };
            let room = (some[2] - 1) * z + (some[1] - 1) * y + some[0] * element;
            let got = read(&setup, &made, origin, some, (row, slice), room);
            let wanted = part(&data, size, element, origin, some);
            for plane in 0..some[2] {
                for line in 0..some[1] {
                    let at = plane * z + line * y;
                    let from = (plane * some[1] + line) * some[0] * element;
                    let bytes = some[0] * element;
                    assert_eq!(got[at..at + bytes], wanted[from..from + bytes], "{kind:#x}");
                }
            }
            // Back again, elsewhere.
            write(&setup, &made, [0, h / 3, d / 3], some, (row, slice), &got);
            let back = read(&setup, &made, [0, h / 3, d / 3], some, (0, 0), wanted.len());
            assert_eq!(back, wanted);
        }
    }
}

#[test]
fn host_memory_of_images_is_copied_or_used() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
    }
    let (row, slice, size) = (24usize, 24 * 5, [4usize, 3, 2]);
    let mut host = random(slice * 2);
    let mut about = desc(CL_MEM_OBJECT_IMAGE3D, size);
    (about.image_row_pitch, about.image_slice_pitch) = (row, slice);
    let packed: Vec<u8> = (0..6)
        .flat_map(|line| {
            let at = line / 3 * slice + line % 3 * row;
            host[at..at + 16].to_vec()
        })
        .collect();
    let pointer = host.as_mut_ptr().cast();
    let copied = image(&setup, CL_MEM_COPY_HOST_PTR, &RGBA8, &about, pointer);
    assert_eq!(read(&setup, &copied, [0; 3], size, (0, 0), 96), packed);
    let used = image(&setup, CL_MEM_USE_HOST_PTR, &RGBA8, &about, pointer);
    assert_eq!(read(&setup, &used, [0; 3], size, (0, 0), 96), packed);
    assert_eq!(
        info_value!(usize, clGetImageInfo(used.0), CL_IMAGE_ROW_PITCH),
        row
    );
    assert_eq!(
        info_value!(usize, clGetImageInfo(used.0), CL_IMAGE_SLICE_PITCH),
        slice
    );
    write(&setup, &used, [1, 1, 1], [1, 1, 1], (0, 0), &[9, 8, 7, 6]);
    // A map of such an image leads into the application's memory.
    let (mut row_out, mut slice_out, mut code) = (0, 0, 0);
    let mapped = call!(clEnqueueMapImage(
        setup.queue.0,
        used.0,
        CL_TRUE,
        CL_MAP_READ,
        [1usize, 1, 1].as_ptr(),
        [2usize, 2, 1].as_ptr(),
        &mut row_out,
        &mut slice_out,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!((code, row_out, slice_out), (0, row, slice));
    let at = slice + row + 4;
    assert_eq!(mapped as usize, host.as_ptr() as usize + at);
    assert_eq!(host[at..at + 4], [9, 8, 7, 6]);
    ok!(clEnqueueUnmapMemObject(
        setup.queue.0,
        used.0,
        mapped,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(setup.queue.0));
}

#[test]
fn maps_show_boxes_and_write_them_back() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
    }
    for (kind, size) in KINDS {
        let [w, h, d] = size;
        let made = image(
            &setup,
            CL_MEM_READ_WRITE,
            &RGBA8,
            &desc(kind, size),
            null_mut(),
        );
        let mut data = random(w * h * d * 4);
        write(&setup, &made, [0; 3], size, (0, 0), &data);
        let (origin, some) = ([2, h / 2, d / 2], [w - 5, h - h / 2, d - d / 2]);
        let map = |flags: cl_map_flags, code: &mut cl_int| -> (*mut c_void, usize, usize) {
            let (mut row, mut slice) = (0, 0);
            let pointer = call!(clEnqueueMapImage(
                setup.queue.0,
                made.0,
                CL_TRUE,
                flags,
                origin.as_ptr(),
                some.as_ptr(),
                &mut row,
                &mut slice,
                0,
                null(),
                null_mut(),
                code
            ));
            (pointer, row, slice)
        };
        let mut code = 0;
        let (pointer, row, slice) = map(CL_MAP_READ | CL_MAP_WRITE, &mut code);
        assert_eq!(code, 0);
        let (again, ..) = map(CL_MAP_READ, &mut code);
        assert_eq!(code, 0);
        let (none, ..) = map(CL_MAP_WRITE, &mut code);
        assert_eq!((none, code), (null_mut(), CL_INVALID_OPERATION));
        assert_eq!(
            info_value!(u32, clGetMemObjectInfo(made.0), CL_MEM_MAP_COUNT),
            2
        );
        let (y, z) = if kind == CL_MEM_OBJECT_IMAGE1D_ARRAY {
            (slice, 0)
        } else {
            (row, slice)
        };
        for plane in 0..some[2] {
            for line in 0..some[1] {
                let from = ((plane + origin[2]) * h + line + origin[1]) * w + origin[0];
                let wanted = &mut data[from * 4..(from + some[0]) * 4];
                // SAFETY: the map has these rows.
                let seen = unsafe {
                    std::slice::from_raw_parts_mut(
                        pointer.cast::<u8>().add(plane * z + line * y),
                        some[0] * 4,
                    )
                };
                assert_eq!(seen, wanted);
                for (to, value) in seen.iter_mut().zip(wanted) {
                    *to = to.wrapping_mul(3);
                    *value = *to;
                }
            }
        }
        for pointer in [again, pointer] {
            ok!(clEnqueueUnmapMemObject(
                setup.queue.0,
                made.0,
                pointer,
                0,
                null(),
                null_mut()
            ));
        }
        assert_eq!(read(&setup, &made, [0; 3], size, (0, 0), data.len()), data);
    }
}

#[test]
fn images_are_copied_among_types_and_to_buffers() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
    }
    let whole: Vec<(Buffer, [usize; 3], Vec<u8>)> = KINDS
        .iter()
        .map(|(kind, size)| {
            let made = image(
                &setup,
                CL_MEM_READ_WRITE,
                &RGBA8,
                &desc(*kind, *size),
                null_mut(),
            );
            let data = random(size.iter().product::<usize>() * 4);
            write(&setup, &made, [0; 3], *size, (0, 0), &data);
            (made, *size, data)
        })
        .collect();
    for (src, from_size, data) in &whole {
        for (_, to_size, _) in &whole {
            let size: [usize; 3] = std::array::from_fn(|a| from_size[a].min(to_size[a]).min(7));
            let origin = std::array::from_fn(|a| from_size[a] - size[a]);
            let (kind, _) = KINDS.iter().find(|(_, size)| size == to_size).unwrap();
            let dst = image(
                &setup,
                CL_MEM_READ_WRITE,
                &RGBA8,
                &desc(*kind, *to_size),
                null_mut(),
            );
            ok!(clEnqueueCopyImage(
                setup.queue.0,
                src.0,
                dst.0,
                origin.as_ptr(),
                [0usize; 3].as_ptr(),
                size.as_ptr(),
                0,
                null(),
                null_mut()
            ));
            let bytes = size.iter().product::<usize>() * 4;
            let wanted = part(data, *from_size, 4, origin, size);
            assert_eq!(read(&setup, &dst, [0; 3], size, (0, 0), bytes), wanted);
            // Through a buffer, at a place that suits no pixel.
            let buffer = setup.buffer(bytes + 3);
            ok!(clEnqueueCopyImageToBuffer(
                setup.queue.0,
                src.0,
                buffer.0,
                origin.as_ptr(),
                size.as_ptr(),
                3,
                0,
                null(),
                null_mut()
            ));
            assert_eq!(setup.read::<u8>(&buffer, bytes + 3)[3..], wanted);
            ok!(clEnqueueCopyBufferToImage(
                setup.queue.0,
                buffer.0,
                dst.0,
                3,
                [0usize; 3].as_ptr(),
                size.as_ptr(),
                0,
                null(),
                null_mut()
            ));
            assert_eq!(read(&setup, &dst, [0; 3], size, (0, 0), bytes), wanted);
        }
    }
    let (src, ..) = &whole[2];
    let overlap = call!(clEnqueueCopyImage(
        setup.queue.0,
        src.0,
        src.0,
        [0usize; 3].as_ptr(),
        [3usize, 0, 0].as_ptr(),
        [4usize, 4, 1].as_ptr(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(overlap, CL_MEM_COPY_OVERLAP);
}

#[test]
fn fills_convert_their_colour() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
    }
    for (kind, size) in KINDS {
        let made = image(
            &setup,
            CL_MEM_READ_WRITE,
            &RGBA8,
            &desc(kind, size),
            null_mut(),
        );
        let bytes = size.iter().product::<usize>() * 4;
        write(&setup, &made, [0; 3], size, (0, 0), &vec![1; bytes]);
        let [_, h, d] = size;
        let (origin, some) = ([5, h / 2, d / 2], [9, h - h / 2, d - d / 2]);
        ok!(clEnqueueFillImage(
            setup.queue.0,
            made.0,
            [0.5f32, 2.0, -1.0, 1.0].as_ptr().cast(),
            origin.as_ptr(),
            some.as_ptr(),
            0,
            null(),
            null_mut()
        ));
        let all = read(&setup, &made, [0; 3], size, (0, 0), bytes);
        let filled = part(&all, size, 4, origin, some);
        assert!(filled.chunks(4).all(|pixel| pixel == [128, 255, 0, 255]));
        assert_eq!(
            all.iter().filter(|byte| **byte == 1).count(),
            bytes - filled.len()
        );
    }
}

#[test]
fn images_over_buffers_share_their_bytes() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
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
    assert_eq!(code, code_name(CL_INVALID_IMAGE_DESCRIPTOR));
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
fn required_formats_are_there_and_can_be_made() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
    }
    let list = |flags: cl_mem_flags, kind: cl_mem_object_type| -> Vec<cl_image_format> {
        let mut count = 0;
        ok!(clGetSupportedImageFormats(
            setup.context.0,
            flags,
            kind,
            0,
            null_mut(),
            &mut count
        ));
        let mut list = vec![RGBA8; count as usize];
        ok!(clGetSupportedImageFormats(
            setup.context.0,
            flags,
            kind,
            count,
            list.as_mut_ptr(),
            null_mut()
        ));
        list
    };
    let has = |list: &[cl_image_format], order: u32, data: u32| {
        list.iter().any(|format| {
            (format.image_channel_order, format.image_channel_data_type) == (order, data)
        })
    };
    let types = [
        CL_UNORM_INT8,
        CL_UNORM_INT16,
        CL_SNORM_INT8,
        CL_SNORM_INT16,
        CL_SIGNED_INT8,
        CL_SIGNED_INT16,
        CL_SIGNED_INT32,
        CL_UNSIGNED_INT8,
        CL_UNSIGNED_INT16,
        CL_UNSIGNED_INT32,
        CL_HALF_FLOAT,
        CL_FLOAT,
    ];
    for (kind, size) in KINDS {
        for flags in [CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE] {
            let list = list(flags, kind);
            for order in [CL_R, CL_RG, CL_RGBA] {
                for data in types {
                    assert!(has(&list, order, data), "{kind:#x} {order:#x} {data:#x}");
                }
            }
            assert!(has(&list, CL_BGRA, CL_UNORM_INT8));
            for format in &list {
                image(&setup, flags, format, &desc(kind, size), null_mut());
            }
        }
        assert!(has(&list(CL_MEM_READ_ONLY, kind), CL_sRGBA, CL_UNORM_INT8));
        let both = list(CL_MEM_KERNEL_READ_AND_WRITE, kind);
        for order in [CL_R, CL_RGBA] {
            for data in [
                CL_UNORM_INT8,
                CL_SIGNED_INT32,
                CL_UNSIGNED_INT16,
                CL_HALF_FLOAT,
                CL_FLOAT,
            ] {
                assert!(has(&both, order, data));
            }
        }
    }
    assert!(has(
        &list(CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D),
        CL_DEPTH,
        CL_FLOAT
    ));
    assert!(!has(
        &list(CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE3D),
        CL_DEPTH,
        CL_FLOAT
    ));
    assert!(has(
        &list(0, CL_MEM_OBJECT_IMAGE1D_BUFFER),
        CL_RGBA,
        CL_FLOAT
    ));
    let kind = call!(clGetSupportedImageFormats(
        setup.context.0,
        0,
        CL_MEM_OBJECT_BUFFER,
        0,
        null_mut(),
        null_mut()
    ));
    assert_eq!(kind, CL_INVALID_VALUE);
}

#[test]
fn errors_of_creation() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
    }
    let good = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 0]);
    let mut bytes = [0u8; 1024];
    let host: *mut c_void = bytes.as_mut_ptr().cast();
    let no_host = null_mut();
    let expect = |code: cl_int, flags, format: &_, desc: &_, host| {
        assert_eq!(refused(&setup, flags, format, desc, host), code_name(code));
    };
    expect(0, 0, &RGBA8, &good, no_host);
    expect(
        CL_INVALID_HOST_PTR,
        CL_MEM_COPY_HOST_PTR,
        &RGBA8,
        &good,
        no_host,
    );
    expect(CL_INVALID_HOST_PTR, 0, &RGBA8, &good, host);
    expect(
        CL_INVALID_VALUE,
        CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
        &RGBA8,
        &good,
        no_host,
    );
    let format = |order, data| cl_image_format {
        image_channel_order: order,
        image_channel_data_type: data,
    };
    for (order, data) in [
        (0, CL_FLOAT),
        (CL_RGBA, 0),
        (CL_RGBA, CL_UNORM_SHORT_565),
        (CL_RGB, CL_FLOAT),
        (CL_BGRA, CL_FLOAT),
        (CL_LUMINANCE, CL_SIGNED_INT8),
        (CL_DEPTH, CL_UNORM_INT8),
    ] {
        expect(
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
            0,
            &format(order, data),
            &good,
            no_host,
        );
    }
    let depth = format(CL_DEPTH, CL_FLOAT);
    let solid = desc(CL_MEM_OBJECT_IMAGE3D, [4, 4, 4]);
    expect(CL_IMAGE_FORMAT_NOT_SUPPORTED, 0, &depth, &solid, no_host);
    let srgb = format(CL_sRGBA, CL_UNORM_INT8);
    expect(0, CL_MEM_READ_ONLY, &srgb, &good, no_host);
    expect(
        CL_IMAGE_FORMAT_NOT_SUPPORTED,
        CL_MEM_WRITE_ONLY,
        &srgb,
        &good,
        no_host,
    );
    let invalid = CL_INVALID_IMAGE_DESCRIPTOR;
    expect(
        invalid,
        0,
        &RGBA8,
        &desc(CL_MEM_OBJECT_BUFFER, [8, 8, 0]),
        no_host,
    );
    expect(
        invalid,
        0,
        &RGBA8,
        &desc(CL_MEM_OBJECT_IMAGE2D, [8, 0, 0]),
        no_host,
    );
    expect(
        invalid,
        0,
        &RGBA8,
        &desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [8, 0, 0]),
        no_host,
    );
    let changed = |change: &dyn Fn(&mut cl_image_desc)| {
        let mut desc = good;
        change(&mut desc);
        desc
    };
    let copy = CL_MEM_COPY_HOST_PTR;
    expect(
        invalid,
        0,
        &RGBA8,
        &changed(&|d| d.image_row_pitch = 64),
        no_host,
    );
    expect(0, copy, &RGBA8, &changed(&|d| d.image_row_pitch = 64), host);
    expect(
        invalid,
        copy,
        &RGBA8,
        &changed(&|d| d.image_row_pitch = 28),
        host,
    );
    expect(
        invalid,
        copy,
        &RGBA8,
        &changed(&|d| d.image_row_pitch = 34),
        host,
    );
    expect(
        invalid,
        0,
        &RGBA8,
        &changed(&|d| d.num_mip_levels = 1),
        no_host,
    );
    expect(
        invalid,
        0,
        &RGBA8,
        &changed(&|d| d.num_samples = 1),
        no_host,
    );
    let width = info_value!(
        usize,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_IMAGE2D_MAX_WIDTH
    );
    let wide = desc(CL_MEM_OBJECT_IMAGE2D, [width + 1, 1, 0]);
    expect(CL_INVALID_IMAGE_SIZE, 0, &RGBA8, &wide, no_host);
    let buffer = setup.buffer(64);
    let code = call!(clGetImageInfo(
        buffer.0,
        CL_IMAGE_WIDTH,
        0,
        null_mut(),
        null_mut()
    ));
    assert_eq!(code, CL_INVALID_MEM_OBJECT);
}

#[test]
fn samplers_tell_what_they_are() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
    }
    let list = [
        cl_sampler_properties::from(CL_SAMPLER_NORMALIZED_COORDS),
        0,
        cl_sampler_properties::from(CL_SAMPLER_FILTER_MODE),
        CL_FILTER_LINEAR.into(),
        0,
    ];
    let sampler = create!(clCreateSamplerWithProperties(
        setup.context.0,
        list.as_ptr()
    ));
    let value = |name| info_value!(u32, clGetSamplerInfo(sampler), name);
    assert_eq!(value(CL_SAMPLER_NORMALIZED_COORDS), 0);
    assert_eq!(value(CL_SAMPLER_ADDRESSING_MODE), CL_ADDRESS_CLAMP);
    assert_eq!(value(CL_SAMPLER_FILTER_MODE), CL_FILTER_LINEAR);
    assert_eq!(value(CL_SAMPLER_REFERENCE_COUNT), 1);
    ok!(clRetainSampler(sampler));
    assert_eq!(value(CL_SAMPLER_REFERENCE_COUNT), 2);
    ok!(clReleaseSampler(sampler));
    ok!(clReleaseSampler(sampler));
    assert_eq!(call!(clReleaseSampler(sampler)), CL_INVALID_SAMPLER);
    let refused = |list: &[cl_sampler_properties]| {
        let mut code = 0;
        call!(clCreateSamplerWithProperties(
            setup.context.0,
            list.as_ptr(),
            &mut code
        ));
        code
    };
    let name = cl_sampler_properties::from(CL_SAMPLER_ADDRESSING_MODE);
    assert_eq!(refused(&[name, 1, 0]), CL_INVALID_VALUE);
    assert_eq!(
        refused(&[
            name,
            CL_ADDRESS_CLAMP.into(),
            name,
            CL_ADDRESS_CLAMP.into(),
            0
        ]),
        CL_INVALID_VALUE
    );
    assert_eq!(refused(&[7, 1, 0]), CL_INVALID_VALUE);
}

#[test]
fn kernels_refuse_images_that_do_not_fit() {
    let setup = Setup::new();
    if !has_images(&setup) {
        return;
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
    if !has_images(&setup) {
        return;
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
