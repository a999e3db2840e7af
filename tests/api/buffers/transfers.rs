//! Transfers against a model on the host, and those that are refused.

use super::*;

#[test]
fn wrong_transfers() {
    let setup = Setup::new();
    let queue = setup.queue.0;
    let buffer = setup.buffer(64);
    let mut host = [0u8; 128];
    let place: *mut c_void = host.as_mut_ptr().cast();
    let none = null_mut();
    for (offset, size) in [(0, 65), (64, 1), (60, 5), (usize::MAX, 2), (1, usize::MAX)] {
        fails!(
            CL_INVALID_VALUE,
            clEnqueueReadBuffer(queue, buffer.0, 1, offset, size, place, 0, null(), none)
        );
        fails!(
            CL_INVALID_VALUE,
            clEnqueueWriteBuffer(queue, buffer.0, 1, offset, size, place, 0, null(), none)
        );
        fails!(
            CL_INVALID_VALUE,
            clEnqueueFillBuffer(queue, buffer.0, place, 1, offset, size, 0, null(), none)
        );
        fails!(
            CL_INVALID_VALUE,
            clEnqueueCopyBuffer(queue, buffer.0, buffer.0, offset, 0, size, 0, null(), none)
        );
        create_fails!(
            CL_INVALID_VALUE,
            clEnqueueMapBuffer(
                queue,
                buffer.0,
                1,
                CL_MAP_READ,
                offset,
                size,
                0,
                null(),
                none
            )
        );
    }
    fails!(
        CL_INVALID_VALUE,
        clEnqueueReadBuffer(queue, buffer.0, 1, 0, 4, null_mut(), 0, null(), none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueWriteBuffer(queue, buffer.0, 1, 0, 4, null(), 0, null(), none)
    );
    fails!(
        CL_MEM_COPY_OVERLAP,
        clEnqueueCopyBuffer(queue, buffer.0, buffer.0, 0, 8, 16, 0, null(), none)
    );
    // Fills: pattern sizes, alignments, no pattern.
    for (pattern, offset, size) in [(0, 0, 16), (3, 0, 12), (256, 0, 64), (8, 4, 16), (8, 0, 12)] {
        fails!(
            CL_INVALID_VALUE,
            clEnqueueFillBuffer(
                queue,
                buffer.0,
                place,
                pattern,
                offset,
                size,
                0,
                null(),
                none
            )
        );
    }
    fails!(
        CL_INVALID_VALUE,
        clEnqueueFillBuffer(queue, buffer.0, null(), 4, 0, 16, 0, null(), none)
    );
    // Maps.
    let flags = CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION;
    create_fails!(
        CL_INVALID_VALUE,
        clEnqueueMapBuffer(queue, buffer.0, 1, flags, 0, 4, 0, null(), none)
    );
    create_fails!(
        CL_INVALID_VALUE,
        clEnqueueMapBuffer(queue, buffer.0, 1, 1 << 20, 0, 4, 0, null(), none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueUnmapMemObject(queue, buffer.0, place, 0, null(), none)
    );
    // Rectangles.
    let zero = [0usize; 3];
    let region = [4usize, 4, 1];
    let empty = [4usize, 0, 1];
    let read = |origin: &[usize; 3], region: &[usize; 3], row: usize, slice: usize| {
        pumice_tests::call!(clEnqueueReadBufferRect(
            queue,
            buffer.0,
            1,
            origin.as_ptr(),
            zero.as_ptr(),
            region.as_ptr(),
            row,
            slice,
            0,
            0,
            place,
            0,
            null(),
            none
        ))
    };
    assert_eq!(read(&zero, &region, 0, 0), CL_SUCCESS);
    assert_eq!(read(&zero, &empty, 0, 0), CL_INVALID_VALUE);
    assert_eq!(
        read(&zero, &region, 2, 0),
        CL_INVALID_VALUE,
        "row pitch below the width"
    );
    assert_eq!(
        read(&zero, &region, 8, 12),
        CL_INVALID_VALUE,
        "slice pitch below a slice"
    );
    assert_eq!(
        read(&[0, 15, 0], &region, 4, 0),
        CL_INVALID_VALUE,
        "out of bounds"
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueReadBufferRect(
            queue,
            buffer.0,
            1,
            null(),
            zero.as_ptr(),
            region.as_ptr(),
            0,
            0,
            0,
            0,
            place,
            0,
            null(),
            none
        )
    );
}

/// Random writes, copies, fills and reads of all sizes and alignments against the same on the host.
#[test]
fn linear_transfers_match_a_model() {
    let setup = Setup::new();
    let queue = setup.queue.0;
    let none = null_mut();
    const SIZE: usize = 300_000;
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut models = [random.bytes(SIZE), random.bytes(SIZE)];
    let buffers = [setup.buffer_of(&models[0]), setup.buffer_of(&models[1])];
    for round in 0..200 {
        let which = random.next(2);
        let most = if round % 4 == 0 { SIZE } else { 500 };
        let size = 1 + random.next(most);
        let offset = random.next(SIZE - size + 1);
        let range = offset..offset + size;
        match random.next(4) {
            0 => {
                let data = random.bytes(size);
                ok!(clEnqueueWriteBuffer(
                    queue,
                    buffers[which].0,
                    (round % 2) as u32,
                    offset,
                    size,
                    bytes_ptr(&data),
                    0,
                    null(),
                    none
                ));
                ok!(clFinish(queue));
                models[which][range].copy_from_slice(&data);
            }
            1 => {
                let from = random.next(SIZE - size + 1);
                let source = models[1 - which][from..from + size].to_vec();
                ok!(clEnqueueCopyBuffer(
                    queue,
                    buffers[1 - which].0,
                    buffers[which].0,
                    from,
                    offset,
                    size,
                    0,
                    null(),
                    none
                ));
                models[which][range].copy_from_slice(&source);
            }
            2 => {
                let width = 1 << random.next(8);
                let pattern = random.bytes(width);
                let (offset, size) = (offset / width * width, size / width * width);
                ok!(clEnqueueFillBuffer(
                    queue,
                    buffers[which].0,
                    bytes_ptr(&pattern),
                    width,
                    offset,
                    size,
                    0,
                    null(),
                    none
                ));
                for (index, byte) in models[which][offset..offset + size].iter_mut().enumerate() {
                    *byte = pattern[index % width];
                }
            }
            _ => {
                let mut data = vec![0u8; size];
                ok!(clEnqueueReadBuffer(
                    queue,
                    buffers[which].0,
                    1,
                    offset,
                    size,
                    data.as_mut_ptr().cast(),
                    0,
                    null(),
                    none
                ));
                assert!(data == models[which][range], "round {round}");
            }
        }
    }
    for (buffer, model) in buffers.iter().zip(&models) {
        assert!(setup.read::<u8>(buffer, SIZE) == *model);
    }
}

/// Copies a rectangle byte by byte, as the reference.
#[allow(clippy::too_many_arguments)]
fn copy_rect(
    src: &[u8],
    dst: &mut [u8],
    from: [usize; 3],
    to: [usize; 3],
    region: [usize; 3],
    from_pitch: [usize; 2],
    to_pitch: [usize; 2],
) {
    for z in 0..region[2] {
        for y in 0..region[1] {
            for x in 0..region[0] {
                let at = |origin: [usize; 3], pitch: [usize; 2]| {
                    (origin[2] + z) * pitch[1] + (origin[1] + y) * pitch[0] + origin[0] + x
                };
                dst[at(to, to_pitch)] = src[at(from, from_pitch)];
            }
        }
    }
}

#[test]
fn rectangles_match_a_model() {
    let setup = Setup::new();
    let queue = setup.queue.0;
    let none = null_mut();
    const SIZE: usize = 1 << 16;
    let mut random = Random(0xfeed_f00d_dead_beef);
    for round in 0..60 {
        let a = random.bytes(SIZE);
        let b = random.bytes(SIZE);
        let region = [1 + random.next(60), 1 + random.next(8), 1 + random.next(5)];
        let mut side = || {
            let origin = [random.next(20), random.next(4), random.next(3)];
            let row = region[0] + origin[0] + random.next(30);
            let slice = row * (region[1] + origin[1] + random.next(3));
            (origin, [row, slice])
        };
        let ((from, from_pitch), (to, to_pitch)) = (side(), side());
        let (source, target) = (setup.buffer_of(&a), setup.buffer_of(&b));
        let mut expected = b.clone();
        copy_rect(&a, &mut expected, from, to, region, from_pitch, to_pitch);
        match round % 3 {
            0 => {
                ok!(clEnqueueCopyBufferRect(
                    queue,
                    source.0,
                    target.0,
                    from.as_ptr(),
                    to.as_ptr(),
                    region.as_ptr(),
                    from_pitch[0],
                    from_pitch[1],
                    to_pitch[0],
                    to_pitch[1],
                    0,
                    null(),
                    none
                ));
                assert!(
                    setup.read::<u8>(&target, SIZE) == expected,
                    "copy, round {round}"
                );
            }
            1 => {
                ok!(clEnqueueWriteBufferRect(
                    queue,
                    target.0,
                    1,
                    to.as_ptr(),
                    from.as_ptr(),
                    region.as_ptr(),
                    to_pitch[0],
                    to_pitch[1],
                    from_pitch[0],
                    from_pitch[1],
                    bytes_ptr(&a),
                    0,
                    null(),
                    none
                ));
                assert!(
                    setup.read::<u8>(&target, SIZE) == expected,
                    "write, round {round}"
                );
            }
            _ => {
                let mut host = b.clone();
                ok!(clEnqueueReadBufferRect(
                    queue,
                    source.0,
                    1,
                    from.as_ptr(),
                    to.as_ptr(),
                    region.as_ptr(),
                    from_pitch[0],
                    from_pitch[1],
                    to_pitch[0],
                    to_pitch[1],
                    host.as_mut_ptr().cast(),
                    0,
                    null(),
                    none
                ));
                assert!(host == expected, "read, round {round}");
            }
        }
    }
}

#[test]
fn overlapping_rectangles() {
    let setup = Setup::new();
    let buffer = setup.buffer(4096);
    let copy = |from: [usize; 3], to: [usize; 3], region: [usize; 3]| {
        pumice_tests::call!(clEnqueueCopyBufferRect(
            setup.queue.0,
            buffer.0,
            buffer.0,
            from.as_ptr(),
            to.as_ptr(),
            region.as_ptr(),
            64,
            0,
            64,
            0,
            0,
            null(),
            null_mut()
        ))
    };
    assert_eq!(copy([0, 0, 0], [8, 2, 0], [16, 8, 1]), CL_MEM_COPY_OVERLAP);
    // Side by side within the same rows: no overlap.
    assert_eq!(copy([0, 0, 0], [32, 0, 0], [16, 8, 1]), CL_SUCCESS);
    assert_eq!(copy([0, 0, 0], [0, 8, 0], [64, 8, 1]), CL_SUCCESS);
    ok!(clFinish(setup.queue.0));
}

/// Larger than any staging memory.
#[test]
fn large_transfers() {
    let setup = Setup::new();
    let count = 24 << 20;
    let data: Vec<u32> = (0..count as u32)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect();
    let buffer = setup.buffer(count * 4);
    setup.write(&buffer, &data);
    assert!(setup.read::<u32>(&buffer, count) == data);
}
