//! Images in contexts of two devices: they follow the commands that use them, row by row.

use super::pair;
use crate::buffers::Random;
use crate::images::desc;
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, ok, Buffer};
use std::ptr::{null, null_mut};

#[test]
fn images_are_copied_from_and_to_buffers_of_the_other_device() {
    let Some(pair) = pair() else { return };
    let images = |device| info_value!(cl_bool, clGetDeviceInfo(device), CL_DEVICE_IMAGE_SUPPORT);
    if pair.devices.iter().any(|device| images(*device) == 0) {
        return pumice_tests::left_out("no images");
    }
    let format = cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: CL_UNSIGNED_INT32,
    };
    let desc = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: 8,
        image_height: 4,
        image_depth: 0,
        image_array_size: 0,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    };
    let image = |data: &mut [u32]| {
        Buffer(create!(clCreateImage(
            pair.context.0,
            CL_MEM_COPY_HOST_PTR,
            &format,
            &desc,
            data.as_mut_ptr().cast()
        )))
    };
    let mut data: Vec<u32> = (100..132).collect();
    let (a, b) = (image(&mut data), image(&mut [0; 32]));
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 64, null_mut());
    let origin = [0usize; 3];
    let region = [8usize, 4, 1];
    let value = 5u32;
    ok!(clEnqueueFillBuffer(
        pair.queues[0].0,
        buffer.0,
        (&raw const value).cast(),
        4,
        0,
        256,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[0].0));
    ok!(clEnqueueCopyImage(
        pair.queues[1].0,
        a.0,
        b.0,
        origin.as_ptr(),
        origin.as_ptr(),
        region.as_ptr(),
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[1].0));
    ok!(clEnqueueCopyImageToBuffer(
        pair.queues[0].0,
        b.0,
        buffer.0,
        origin.as_ptr(),
        region.as_ptr(),
        64,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[0].0));
    let mut expected = vec![5u32; 64];
    expected[16..48].copy_from_slice(&data);
    assert_eq!(pair.read(1, &buffer, 64, &[]), expected);
    // Back, from the middle, by the other device.
    ok!(clEnqueueCopyBufferToImage(
        pair.queues[1].0,
        buffer.0,
        a.0,
        32,
        origin.as_ptr(),
        region.as_ptr(),
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[1].0));
    let mut code = 1;
    let (mut pitch, mut slices) = (0usize, 0usize);
    let pointer = call!(clEnqueueMapImage(
        pair.queues[0].0,
        a.0,
        CL_TRUE,
        CL_MAP_READ | CL_MAP_WRITE,
        origin.as_ptr(),
        region.as_ptr(),
        &mut pitch,
        &mut slices,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    let row = |y: usize| pointer.wrapping_byte_add(y * pitch).cast::<u32>();
    for y in 0..4 {
        // SAFETY: mapped.
        let words = unsafe { std::slice::from_raw_parts_mut(row(y), 8) };
        assert_eq!(words, &expected[8 + y * 8..16 + y * 8]);
        words[3] = 9;
    }
    ok!(clEnqueueUnmapMemObject(
        pair.queues[0].0,
        a.0,
        pointer,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[0].0));
    let mut seen = vec![0u32; 32];
    ok!(clEnqueueReadImage(
        pair.queues[1].0,
        a.0,
        CL_TRUE,
        origin.as_ptr(),
        region.as_ptr(),
        0,
        0,
        seen.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    let mut wanted = expected[8..40].to_vec();
    (0..4).for_each(|y| wanted[y * 8 + 3] = 9);
    assert_eq!(seen, wanted);
}

#[test]
fn images_follow_the_commands_that_use_them() {
    let Some(pair) = pair() else { return };
    let images = |device| info_value!(cl_bool, clGetDeviceInfo(device), CL_DEVICE_IMAGE_SUPPORT);
    if pair.devices.iter().any(|device| images(*device) == 0) {
        return pumice_tests::left_out("no images");
    }
    let format = cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: CL_UNSIGNED_INT32,
    };
    let desc = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: 5,
        image_height: 3,
        image_depth: 0,
        image_array_size: 0,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    };
    let mut data: Vec<u32> = (0..15).map(|n| n * n + 7).collect();
    let image = Buffer(create!(clCreateImage(
        pair.context.0,
        CL_MEM_COPY_HOST_PTR,
        &format,
        &desc,
        data.as_mut_ptr().cast()
    )));
    let (origin, size) = ([0usize; 3], [5usize, 3, 1]);
    let read = |on: usize| {
        let mut seen = vec![0u32; 15];
        ok!(clEnqueueReadImage(
            pair.queues[on].0,
            image.0,
            CL_TRUE,
            origin.as_ptr(),
            size.as_ptr(),
            0,
            0,
            seen.as_mut_ptr().cast(),
            0,
            null(),
            null_mut()
        ));
        seen
    };
    assert_eq!(read(1), data);
    assert_eq!(read(0), data);
    for (on, other) in [(0, 1), (1, 0), (1, 0)] {
        data[7] += 1;
        ok!(clEnqueueFillImage(
            pair.queues[on].0,
            image.0,
            [data[7], 0, 0, 0].as_ptr().cast(),
            [2usize, 1, 0].as_ptr(),
            [1usize, 1, 1].as_ptr(),
            0,
            null(),
            null_mut()
        ));
        ok!(clFinish(pair.queues[on].0));
        assert_eq!(read(other), data);
    }
}

/// Both devices write their part of one image before either sees the other's, and every box is then seen by both.
#[test]
fn two_devices_write_parts_of_an_image() {
    let Some(pair) = pair() else { return };
    let images = |device| info_value!(cl_bool, clGetDeviceInfo(device), CL_DEVICE_IMAGE_SUPPORT);
    if pair.devices.iter().any(|device| images(*device) == 0) {
        return pumice_tests::left_out("no images");
    }
    let format = cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: CL_UNSIGNED_INT32,
    };
    let kinds = [
        (CL_MEM_OBJECT_IMAGE1D, [12usize, 1, 1]),
        (CL_MEM_OBJECT_IMAGE1D_ARRAY, [12, 6, 1]),
        (CL_MEM_OBJECT_IMAGE2D, [12, 9, 1]),
        (CL_MEM_OBJECT_IMAGE2D_ARRAY, [12, 9, 4]),
        (CL_MEM_OBJECT_IMAGE3D, [12, 9, 4]),
    ];
    let mut random = Random(0x5eed);
    for (kind, size) in kinds {
        let [width, height, depth] = size;
        let desc = desc(kind, [width, height, depth]);
        let mut model: Vec<u32> = (0..width * height * depth).map(|n| n as u32 * 3).collect();
        let image = Buffer(create!(clCreateImage(
            pair.context.0,
            CL_MEM_COPY_HOST_PTR,
            &format,
            &desc,
            model.as_mut_ptr().cast()
        )));
        for round in 0..60u32 {
            let (mut origin, mut part) = ([0usize; 3], [1usize; 3]);
            for axis in 0..3 {
                origin[axis] = random.next(size[axis]);
                part[axis] = 1 + random.next(size[axis] - origin[axis]);
            }
            if random.next(2) == 0 {
                // Whole rows, which are not brought before they are written.
                (origin[0], part[0]) = (0, width);
            }
            let on = pair.queues[random.next(2)].0;
            let value = 1000 + round;
            let cells = |cell: &mut dyn FnMut(usize)| {
                for z in origin[2]..origin[2] + part[2] {
                    for y in origin[1]..origin[1] + part[1] {
                        for x in origin[0]..origin[0] + part[0] {
                            cell((z * height + y) * width + x);
                        }
                    }
                }
            };
            let (o, p) = (origin.as_ptr(), part.as_ptr());
            match random.next(3) {
                0 => {
                    let colour = [value, 0, 0, 0];
                    let colour = colour.as_ptr().cast();
                    ok!(clEnqueueFillImage(
                        on,
                        image.0,
                        colour,
                        o,
                        p,
                        0,
                        null(),
                        null_mut()
                    ));
                    cells(&mut |at| model[at] = value);
                }
                1 => {
                    let mut next = value;
                    let mut data = Vec::new();
                    cells(&mut |at| {
                        model[at] = next;
                        data.push(next);
                        next += 7;
                    });
                    let data = data.as_ptr().cast();
                    ok!(clEnqueueWriteImage(
                        on,
                        image.0,
                        CL_TRUE,
                        o,
                        p,
                        0,
                        0,
                        data,
                        0,
                        null(),
                        null_mut()
                    ));
                }
                _ => {
                    let mut seen = vec![0u32; part.iter().product()];
                    let place = seen.as_mut_ptr().cast();
                    ok!(clEnqueueReadImage(
                        on,
                        image.0,
                        CL_TRUE,
                        o,
                        p,
                        0,
                        0,
                        place,
                        0,
                        null(),
                        null_mut()
                    ));
                    let mut wanted = Vec::new();
                    cells(&mut |at| wanted.push(model[at]));
                    assert_eq!(seen, wanted, "{kind:#x} {origin:?} {part:?} round {round}");
                }
            }
            ok!(clFinish(on));
        }
        if height == 1 {
            continue;
        }
        // At the same time, without waiting for each other.
        let (first, rest) = ([width, 1, depth], [width, height - 1, depth]);
        for round in 0..20u32 {
            for (on, origin, part, value) in [
                (0, [0usize; 3], first, 5 + round),
                (1, [0, 1, 0], rest, 7 + round),
            ] {
                let colour = [value, 0, 0, 0];
                let (o, p) = (origin.as_ptr(), part.as_ptr());
                let (queue, colour) = (pair.queues[on].0, colour.as_ptr().cast());
                ok!(clEnqueueFillImage(
                    queue,
                    image.0,
                    colour,
                    o,
                    p,
                    0,
                    null(),
                    null_mut()
                ));
                ok!(clFlush(queue));
            }
            pair.queues.iter().for_each(|queue| ok!(clFinish(queue.0)));
            let mut seen = vec![0u32; width * height * depth];
            ok!(clEnqueueReadImage(
                pair.queues[round as usize % 2].0,
                image.0,
                CL_TRUE,
                [0usize; 3].as_ptr(),
                size.as_ptr(),
                0,
                0,
                seen.as_mut_ptr().cast(),
                0,
                null(),
                null_mut()
            ));
            for (at, seen) in seen.iter().enumerate() {
                let in_first = at / width % height == 0;
                assert_eq!(
                    *seen,
                    if in_first { 5 } else { 7 } + round,
                    "{kind:#x} {at}"
                );
            }
        }
    }
}
