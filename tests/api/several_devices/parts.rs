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
