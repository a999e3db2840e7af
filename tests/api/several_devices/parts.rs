//! Buffers that several devices write parts of.

use super::*;

#[test]
fn parts_written_by_two_devices_make_a_whole() {
    let Some(pair) = pair() else { return };
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 1024, null_mut());
    let half = |origin: usize| {
        let region = cl_buffer_region { origin, size: 2048 };
        let place = (&raw const region).cast();
        let kind = CL_BUFFER_CREATE_TYPE_REGION;
        Buffer(create!(clCreateSubBuffer(buffer.0, 0, kind, place)))
    };
    let halves = [half(0), half(2048)];
    for (on, half) in halves.iter().enumerate() {
        let value = on as u32 + 5;
        let mut event = null_mut();
        let pattern = (&raw const value).cast();
        let queue = pair.queues[on].0;
        ok!(clEnqueueFillBuffer(
            queue,
            half.0,
            pattern,
            4,
            0,
            2048,
            0,
            null(),
            &mut event
        ));
        assert_eq!(Event(event).wait(), CL_SUCCESS);
    }
    let mut expected = vec![5u32; 1024];
    expected[512..].fill(6);
    assert_eq!(pair.read(0, &buffer, 1024, &[]), expected);

    // A map by one device of what the other wrote, and the other way round.
    let mut code = 1;
    let flags = CL_MAP_READ | CL_MAP_WRITE;
    let pointer = call!(clEnqueueMapBuffer(
        pair.queues[0].0,
        buffer.0,
        CL_TRUE,
        flags,
        2000,
        100,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    // SAFETY: mapped.
    let mapped = unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u32>(), 25) };
    assert_eq!(mapped, &expected[500..525]);
    mapped.fill(9);
    let mut event = null_mut();
    ok!(clEnqueueUnmapMemObject(
        pair.queues[0].0,
        buffer.0,
        pointer,
        0,
        null(),
        &mut event
    ));
    let event = Event(event);
    expected[500..525].fill(9);
    assert_eq!(pair.read(1, &buffer, 1024, &[event.0]), expected);
    ok!(clFinish(pair.queues[1].0));

    // Migration, and a copy whose source is on the other device.
    let other = pair.buffer(CL_MEM_READ_WRITE, 1024, null_mut());
    let queue = pair.queues[1].0;
    let list = [buffer.0, other.0];
    ok!(clEnqueueMigrateMemObjects(
        queue,
        2,
        list.as_ptr(),
        0,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
    let queue = pair.queues[0].0;
    ok!(clEnqueueCopyBuffer(
        queue,
        buffer.0,
        other.0,
        0,
        0,
        4096,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
    assert_eq!(pair.read(1, &other, 1024, &[]), expected);
}

#[test]
fn two_devices_write_parts_of_a_buffer_at_a_time() {
    let Some(pair) = pair() else { return };
    let words = 1 << 16;
    let mut zeros = vec![1u32; words];
    let program = pair.program(ADD, 2);
    for flags in [CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR] {
        let buffer = pair.buffer(flags, words, zeros.as_mut_ptr());
        let parts: Vec<Buffer> = (0..4)
            .map(|part| {
                let region = cl_buffer_region {
                    origin: part * words,
                    size: words,
                };
                let place = (&raw const region).cast();
                let kind = CL_BUFFER_CREATE_TYPE_REGION;
                Buffer(create!(clCreateSubBuffer(buffer.0, 0, kind, place)))
            })
            .collect();
        // Nothing orders the devices.
        let mut events = Vec::new();
        for round in 0..8u32 {
            for (part, buffer) in parts.iter().enumerate() {
                let kernel = pair.kernel(&program, "add");
                kernel.set_buffer(0, buffer).set(1, round + part as u32);
                events.push(pair.launch(part % 2, &kernel, words / 4, &[]));
            }
        }
        for queue in &pair.queues {
            ok!(clFlush(queue.0));
        }
        for event in &events {
            assert_eq!(event.wait(), 0);
        }
        let expected: Vec<u32> = (0..words as u32)
            .map(|word| 1 + 28 + 8 * (word / (words as u32 / 4)))
            .collect();
        for on in [1, 0] {
            assert_eq!(pair.read(on, &buffer, words, &[]), expected);
        }
        // One is written without its parts again.
        for on in [1, 0] {
            let part = pair.read(on, &parts[2], words / 4, &[]);
            assert_eq!(part, expected[words / 2..words * 3 / 4]);
        }
        drop(parts);
        drop(buffer);
        zeros.fill(1);
    }
}

#[test]
fn rectangles_and_invalidating_maps_keep_what_is_around_them() {
    let Some(pair) = pair() else { return };
    let mut start: Vec<u32> = (0..256).collect();
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 256, start.as_mut_ptr());
    let mut expected = start.clone();
    assert_eq!(pair.read(0, &buffer, 256, &[]), expected);
    // 3 rows of 2 words, 16 words apart.
    let data = [900u32, 901, 902, 903, 904, 905];
    ok!(clEnqueueWriteBufferRect(
        pair.queues[1].0,
        buffer.0,
        CL_TRUE,
        [16usize, 2, 0].as_ptr(),
        [0usize, 0, 0].as_ptr(),
        [8usize, 3, 1].as_ptr(),
        64,
        0,
        8,
        0,
        data.as_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[1].0));
    for row in 0..3 {
        let at = 4 + (2 + row) * 16;
        expected[at..at + 2].copy_from_slice(&data[row * 2..row * 2 + 2]);
    }
    assert_eq!(pair.read(0, &buffer, 256, &[]), expected);
    let mut code = 1;
    let queue = pair.queues[0].0;
    let pointer = call!(clEnqueueMapBuffer(
        queue,
        buffer.0,
        CL_TRUE,
        CL_MAP_WRITE_INVALIDATE_REGION,
        40,
        80,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    assert_eq!(
        info_value!(cl_uint, clGetMemObjectInfo(buffer.0), CL_MEM_MAP_COUNT),
        1
    );
    // SAFETY: mapped.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u32>(), 20) }.fill(77);
    // By the other device: a map belongs to no queue.
    let mut event = null_mut();
    ok!(clEnqueueUnmapMemObject(
        pair.queues[1].0,
        buffer.0,
        pointer,
        0,
        null(),
        &mut event
    ));
    assert_eq!(Event(event).wait(), 0);
    expected[10..30].fill(77);
    for on in 0..2 {
        assert_eq!(pair.read(on, &buffer, 256, &[]), expected);
    }
    // A rectangle read, and one copied, by the device that has them not.
    let mut seen = [0u32; 6];
    ok!(clEnqueueFillBuffer(
        queue,
        buffer.0,
        (&raw const data[0]).cast(),
        4,
        300,
        4,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
    expected[75] = 900;
    ok!(clEnqueueReadBufferRect(
        pair.queues[1].0,
        buffer.0,
        CL_TRUE,
        [40usize, 3, 0].as_ptr(),
        [0usize, 0, 0].as_ptr(),
        [8usize, 3, 1].as_ptr(),
        64,
        0,
        8,
        0,
        seen.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    let wanted = [58, 59, 74, 75, 90, 91].map(|word: usize| expected[word]);
    assert_eq!(seen, wanted);
}

/// Columns of one matrix, by rectangles and by boxes of an image over it: nothing orders the devices.
#[test]
fn two_devices_write_columns_at_a_time() {
    let Some(pair) = pair() else { return };
    let (width, height) = (256usize, 512usize);
    let mut start = vec![0u32; width * height];
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, width * height, start.as_mut_ptr());
    let over_buffers = |device| {
        let extensions = info_text!(clGetDeviceInfo(device), CL_DEVICE_EXTENSIONS);
        extensions.contains("cl_khr_image2d_from_buffer")
    };
    let image = pair.devices.into_iter().all(over_buffers).then(|| {
        let format = cl_image_format {
            image_channel_order: CL_R,
            image_channel_data_type: CL_UNSIGNED_INT32,
        };
        let desc = cl_image_desc {
            image_type: CL_MEM_OBJECT_IMAGE2D,
            image_width: width,
            image_height: height,
            image_depth: 0,
            image_array_size: 0,
            image_row_pitch: width * 4,
            image_slice_pitch: 0,
            num_mip_levels: 0,
            num_samples: 0,
            buffer: buffer.0,
        };
        let made = create!(clCreateImage(pair.context.0, 0, &format, &desc, null_mut()));
        Buffer(made)
    });
    let gate = Event::user(&pair.context);
    let mut gate = Some(gate);
    for round in 0..24u32 {
        let data: Vec<Vec<u32>> = (0..8)
            .map(|column| vec![round * 8 + column; 32 * height])
            .collect();
        // Eight columns of 32 words, one device the even ones.
        for (column, data) in data.iter().enumerate() {
            let queue = pair.queues[column % 2].0;
            let origin = [column * 128, 0, 0];
            let list: Vec<cl_event> = gate.iter().map(|event| event.0).collect();
            let (waits, list) = match list.as_slice() {
                [] => (0, null()),
                list => (1, list.as_ptr()),
            };
            match &image {
                Some(image) if column % 4 > 1 => {
                    let (origin, size) = ([column * 32, 0, 0], [32, height, 1]);
                    let colour = [round * 8 + column as u32; 4];
                    ok!(clEnqueueFillImage(
                        queue,
                        image.0,
                        colour.as_ptr().cast(),
                        origin.as_ptr(),
                        size.as_ptr(),
                        waits,
                        list,
                        null_mut()
                    ));
                }
                _ => ok!(clEnqueueWriteBufferRect(
                    queue,
                    buffer.0,
                    CL_FALSE,
                    origin.as_ptr(),
                    [0usize; 3].as_ptr(),
                    [128usize, height, 1].as_ptr(),
                    width * 4,
                    0,
                    128,
                    0,
                    data.as_ptr().cast(),
                    waits,
                    list,
                    null_mut()
                )),
            }
        }
        for queue in &pair.queues {
            ok!(clFlush(queue.0));
        }
        if let Some(gate) = gate.take() {
            gate.finish(CL_COMPLETE);
        }
        for queue in &pair.queues {
            ok!(clFinish(queue.0));
        }
        // A column of the other device, then everything.
        let mut seen = vec![0u32; 32 * height];
        ok!(clEnqueueReadBufferRect(
            pair.queues[1].0,
            buffer.0,
            CL_TRUE,
            [0usize; 3].as_ptr(),
            [0usize; 3].as_ptr(),
            [128usize, height, 1].as_ptr(),
            width * 4,
            0,
            128,
            0,
            seen.as_mut_ptr().cast(),
            0,
            null(),
            null_mut()
        ));
        assert_eq!(seen, data[0], "round {round}");
        let all = pair.read(round as usize % 2, &buffer, width * height, &[]);
        for (at, value) in all.iter().enumerate() {
            let expected = round * 8 + (at % width / 32) as u32;
            assert_eq!(*value, expected, "word {at} in round {round}");
        }
    }
}
