//! Images: transfers, fills, copies, maps.

mod creation;
mod from_buffers;
mod raw;
mod requirements;
mod srgb;
mod texels;
mod views;

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

/// Returns the formats of images of a type.
fn supported(setup: &Setup, flags: cl_mem_flags, kind: cl_mem_object_type) -> Vec<cl_image_format> {
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
}

/// All texels of an image, of `each` components of type `T`.
pub fn read_texels<T: Copy + Default>(
    setup: &Setup,
    image: &Buffer,
    size: [usize; 3],
    each: usize,
) -> Vec<T> {
    let mut data = vec![T::default(); size.iter().product::<usize>() * each];
    ok!(clEnqueueReadImage(
        setup.queue.0,
        image.0,
        CL_TRUE,
        [0usize; 3].as_ptr(),
        size.as_ptr(),
        0,
        0,
        data.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    data
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
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
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
fn maps_show_boxes_and_write_them_back() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
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
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
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
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
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

/// NaN becomes 0 in a normalised channel, and stays NaN in others.
#[test]
fn numbers_that_are_none_become_zero() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let program = setup.build(
        "kernel void k(write_only image2d_t im, float4 v) { write_imagef(im, (int2)(get_global_id(0), 0), v); }",
    );
    let kernel = setup.kernel(&program, "k");
    // No value that lies between two of a format, which devices may round either way.
    let colour = [f32::NAN, 0.25, -f32::NAN, 0.0];
    let half = [0x7e00u16, 0x3400, 0xfe00, 0].map(u16::to_ne_bytes);
    for (data, texel) in [
        (CL_UNORM_INT8, vec![0, 64, 0, 0]),
        (CL_SNORM_INT8, vec![0, 32, 0, 0]),
        (CL_UNORM_INT16, vec![0, 0, 0, 64, 0, 0, 0, 0]),
        (CL_SNORM_INT16, vec![0, 0, 0, 32, 0, 0, 0, 0]),
        (CL_HALF_FLOAT, half.concat()),
    ] {
        let format = cl_image_format {
            image_channel_order: CL_RGBA,
            image_channel_data_type: data,
        };
        let size = [9, 1, 1];
        let desc = desc(CL_MEM_OBJECT_IMAGE2D, size);
        let made = image(&setup, CL_MEM_READ_WRITE, &format, &desc, null_mut());
        for fill in [false, true] {
            if fill {
                ok!(clEnqueueFillImage(
                    setup.queue.0,
                    made.0,
                    colour.as_ptr().cast(),
                    [0; 3].as_ptr(),
                    size.as_ptr(),
                    0,
                    null(),
                    null_mut()
                ));
            } else {
                kernel.set_buffer(0, &made).set(1, colour);
                setup.run(&kernel, &size[..1], None);
            }
            let all = read(&setup, &made, [0; 3], size, (0, 0), size[0] * texel.len());
            for got in all.chunks(texel.len()) {
                if data == CL_HALF_FLOAT {
                    let word = |at: usize| u16::from_ne_bytes([got[at], got[at + 1]]) & 0x7fff;
                    assert!(word(0) > 0x7c00 && word(4) > 0x7c00, "{got:?}");
                    assert_eq!([word(2), word(6)], [0x3400, 0]);
                } else {
                    assert_eq!(got, texel, "{data:#x}, fill: {fill}");
                }
            }
        }
    }
}

#[test]
fn two_queues_write_parts_of_a_new_image() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let other = setup.new_queue(0);
    let size = [32usize, 32, 1];
    let half = [32usize, 16, 1];
    let data = random(32 * 32 * 4);
    for round in 0..20 {
        let mem = image(
            &setup,
            0,
            &RGBA8,
            &desc(CL_MEM_OBJECT_IMAGE2D, size),
            null_mut(),
        );
        // Nothing orders the two; the one enqueued first is submitted last.
        for (queue, row) in [(&setup.queue, 0usize), (&other, 16)] {
            ok!(clEnqueueWriteImage(
                queue.0,
                mem.0,
                CL_FALSE,
                [0, row, 0].as_ptr(),
                half.as_ptr(),
                0,
                0,
                data[row * 128..].as_ptr().cast(),
                0,
                null(),
                null_mut()
            ));
        }
        ok!(clFinish(other.0));
        ok!(clFinish(setup.queue.0));
        let got = read(&setup, &mem, [0; 3], size, (0, 0), 4096);
        assert!(got == data, "round {round}");
    }
}
