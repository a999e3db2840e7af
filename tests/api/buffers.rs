//! Buffers: creation, queries, transfers against a model on the host, maps, sub-buffers, fills.

use pumice_tests::sys::*;
use pumice_tests::{create, create_fails, fails, info, info_value, ok, user_data, Buffer, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A small generator of numbers that look random.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next(256) as u8).collect()
    }
}

fn bytes_ptr(data: &[u8]) -> *const c_void {
    data.as_ptr().cast()
}

#[test]
fn queries() {
    let setup = Setup::new();
    let mut host = vec![0u8; 8192];
    let flags = CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR | CL_MEM_HOST_READ_ONLY;
    let place = host.as_mut_ptr().cast();
    let buffer = Buffer(create!(clCreateBuffer(setup.context.0, flags, 8192, place)));
    let mem = buffer.0;
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem), CL_MEM_TYPE),
        CL_MEM_OBJECT_BUFFER
    );
    assert_eq!(
        info_value!(u64, clGetMemObjectInfo(mem), CL_MEM_FLAGS),
        flags
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_SIZE),
        8192
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_HOST_PTR),
        place as usize
    );
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem), CL_MEM_MAP_COUNT),
        0
    );
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem), CL_MEM_REFERENCE_COUNT),
        1
    );
    let context = setup.context.0 as usize;
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_CONTEXT),
        context
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_ASSOCIATED_MEMOBJECT),
        0
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_OFFSET),
        0
    );
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem), CL_MEM_USES_SVM_POINTER),
        0
    );
    assert!(info!(clGetMemObjectInfo(mem), CL_MEM_PROPERTIES).is_empty());
    fails!(
        CL_INVALID_VALUE,
        clGetMemObjectInfo(mem, 0x1234, 0, null_mut(), null_mut())
    );
    let properties = [0u64];
    let with = Buffer(create!(clCreateBufferWithProperties(
        setup.context.0,
        properties.as_ptr(),
        0,
        64,
        null_mut()
    )));
    // No access flag means read-write.
    assert_eq!(
        info_value!(u64, clGetMemObjectInfo(with.0), CL_MEM_FLAGS),
        CL_MEM_READ_WRITE
    );
    assert_eq!(
        info_value!([u64; 1], clGetMemObjectInfo(with.0), CL_MEM_PROPERTIES),
        [0]
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(with.0), CL_MEM_HOST_PTR),
        0
    );
}

#[test]
fn wrong_creation() {
    let setup = Setup::new();
    let context = setup.context.0;
    let mut host = [0u8; 64];
    let place: *mut c_void = host.as_mut_ptr().cast();
    let nowhere = null_mut();
    create_fails!(
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(context, CL_MEM_READ_WRITE, 0, nowhere)
    );
    let most = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    let more = most as usize + 1;
    create_fails!(
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(context, CL_MEM_READ_WRITE, more, nowhere)
    );
    create_fails!(
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(context, 0, usize::MAX, nowhere)
    );
    for flags in [
        1 << 40,
        CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
        CL_MEM_READ_WRITE | CL_MEM_READ_ONLY,
        CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY,
        CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_WRITE_ONLY,
    ] {
        create_fails!(
            CL_INVALID_VALUE,
            clCreateBuffer(context, flags, 64, nowhere)
        );
    }
    let both = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
    create_fails!(CL_INVALID_VALUE, clCreateBuffer(context, both, 64, place));
    let both = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR;
    create_fails!(CL_INVALID_VALUE, clCreateBuffer(context, both, 64, place));
    create_fails!(
        CL_INVALID_HOST_PTR,
        clCreateBuffer(context, CL_MEM_READ_WRITE, 64, place)
    );
    create_fails!(
        CL_INVALID_HOST_PTR,
        clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 64, nowhere)
    );
    create_fails!(
        CL_INVALID_HOST_PTR,
        clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, 64, nowhere)
    );
    let unknown = [0x7777u64, 1, 0];
    create_fails!(
        CL_INVALID_PROPERTY,
        clCreateBufferWithProperties(context, unknown.as_ptr(), 0, 64, nowhere)
    );
}

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

#[test]
fn host_access_flags() {
    let setup = Setup::new();
    let queue = setup.queue.0;
    let mut word = 0u32;
    let place: *mut c_void = (&raw mut word).cast();
    let none = null_mut();
    let make = |flags| {
        Buffer(create!(clCreateBuffer(
            setup.context.0,
            flags,
            64,
            null_mut()
        )))
    };
    for (flags, may_read, may_write) in [
        (CL_MEM_HOST_READ_ONLY, true, false),
        (CL_MEM_HOST_WRITE_ONLY, false, true),
        (CL_MEM_HOST_NO_ACCESS, false, false),
    ] {
        let buffer = make(flags);
        let expect = |may| {
            if may {
                CL_SUCCESS
            } else {
                CL_INVALID_OPERATION
            }
        };
        let read = pumice_tests::call!(clEnqueueReadBuffer(
            queue,
            buffer.0,
            1,
            0,
            4,
            place,
            0,
            null(),
            none
        ));
        assert_eq!(read, expect(may_read));
        let write = pumice_tests::call!(clEnqueueWriteBuffer(
            queue,
            buffer.0,
            1,
            0,
            4,
            place,
            0,
            null(),
            none
        ));
        assert_eq!(write, expect(may_write));
        for (map, may) in [(CL_MAP_READ, may_read), (CL_MAP_WRITE, may_write)] {
            let mut code = 1;
            let pointer = pumice_tests::call!(clEnqueueMapBuffer(
                queue,
                buffer.0,
                1,
                map,
                0,
                4,
                0,
                null(),
                none,
                &mut code
            ));
            assert_eq!(code, expect(may));
            if may {
                ok!(clEnqueueUnmapMemObject(
                    queue,
                    buffer.0,
                    pointer,
                    0,
                    null(),
                    none
                ));
            }
        }
    }
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

/// What a rectangular copy means, byte by byte.
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

fn map(setup: &Setup, buffer: &Buffer, flags: cl_map_flags, offset: usize, size: usize) -> *mut u8 {
    create!(clEnqueueMapBuffer(
        setup.queue.0,
        buffer.0,
        1,
        flags,
        offset,
        size,
        0,
        null(),
        null_mut()
    ))
    .cast()
}

fn unmap(setup: &Setup, buffer: &Buffer, pointer: *mut u8) {
    ok!(clEnqueueUnmapMemObject(
        setup.queue.0,
        buffer.0,
        pointer.cast(),
        0,
        null(),
        null_mut()
    ));
}

#[test]
fn maps_show_and_take_contents() {
    let setup = Setup::new();
    let mut host = vec![0u8; 4096 * 3];
    // With memory of the driver, with memory for the host, and with memory of the application, aligned and not.
    let aligned = host.as_ptr().align_offset(4096);
    let spots = [None, None, Some(aligned), Some(aligned + 13)];
    for (index, spot) in spots.into_iter().enumerate() {
        let initial: Vec<u8> = (0..4096).map(|i| (i * 7 + index) as u8).collect();
        let (flags, place) = match spot {
            Some(at) => {
                host[at..at + 4096].copy_from_slice(&initial);
                (CL_MEM_USE_HOST_PTR, host[at..].as_mut_ptr().cast())
            }
            None if index == 0 => (CL_MEM_COPY_HOST_PTR, initial.as_ptr().cast_mut().cast()),
            None => (
                CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR,
                initial.as_ptr().cast_mut().cast(),
            ),
        };
        let buffer = Buffer(create!(clCreateBuffer(setup.context.0, flags, 4096, place)));
        let pointer = map(&setup, &buffer, CL_MAP_READ | CL_MAP_WRITE, 1000, 500);
        if let Some(at) = spot {
            // The specification fixes the address.
            assert_eq!(pointer as usize, host[at..].as_ptr() as usize + 1000);
        }
        assert_eq!(
            info_value!(u32, clGetMemObjectInfo(buffer.0), CL_MEM_MAP_COUNT),
            1
        );
        // SAFETY: mapped, 500 bytes.
        let mapped = unsafe { std::slice::from_raw_parts_mut(pointer, 500) };
        assert_eq!(*mapped, initial[1000..1500]);
        mapped.fill(99);
        unmap(&setup, &buffer, pointer);
        let mut expected = initial.clone();
        expected[1000..1500].fill(99);
        assert!(setup.read::<u8>(&buffer, 4096) == expected, "spot {index}");
        assert_eq!(
            info_value!(u32, clGetMemObjectInfo(buffer.0), CL_MEM_MAP_COUNT),
            0
        );
        // A kernel sees what was written, and the host what the kernel wrote.
        let kernel = setup.kernel_of(
            "kernel void up(global uchar *p) { p[get_global_id(0)] += 1; }",
            "up",
        );
        kernel.set_buffer(0, &buffer);
        setup.run(&kernel, &[4096], None);
        let pointer = map(&setup, &buffer, CL_MAP_READ, 0, 4096);
        for byte in &mut expected {
            *byte = byte.wrapping_add(1);
        }
        // SAFETY: mapped, 4096 bytes.
        let mapped = unsafe { std::slice::from_raw_parts(pointer, 4096) };
        assert!(mapped == expected, "spot {index}");
        unmap(&setup, &buffer, pointer);
        // Without the old contents.
        let pointer = map(&setup, &buffer, CL_MAP_WRITE_INVALIDATE_REGION, 0, 4096);
        // SAFETY: mapped, 4096 bytes.
        unsafe { pointer.write_bytes(5, 4096) };
        unmap(&setup, &buffer, pointer);
        assert!(
            setup.read::<u8>(&buffer, 4096) == vec![5; 4096],
            "spot {index}"
        );
    }
}

#[test]
fn several_maps_at_once() {
    let setup = Setup::new();
    let buffer = setup.buffer_of(&(0..1024u32).collect::<Vec<_>>());
    let one = map(&setup, &buffer, CL_MAP_READ, 0, 1024);
    let two = map(&setup, &buffer, CL_MAP_READ, 2048, 1024);
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(buffer.0), CL_MEM_MAP_COUNT),
        2
    );
    // SAFETY: both are mapped.
    unsafe {
        assert_eq!(one.cast::<u32>().add(3).read(), 3);
        assert_eq!(two.cast::<u32>().add(3).read(), 515);
    }
    unmap(&setup, &buffer, one);
    unmap(&setup, &buffer, two);
    ok!(clFinish(setup.queue.0));
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(buffer.0), CL_MEM_MAP_COUNT),
        0
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueUnmapMemObject(setup.queue.0, buffer.0, one.cast(), 0, null(), null_mut())
    );
}

#[test]
fn sub_buffers() {
    let setup = Setup::new();
    let align = info_value!(
        u32,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MEM_BASE_ADDR_ALIGN
    ) as usize
        / 8;
    let size = align * 4;
    let buffer = setup.buffer_of(&vec![1u8; size]);
    let kind = CL_BUFFER_CREATE_TYPE_REGION;
    let region = cl_buffer_region {
        origin: align,
        size: align,
    };
    let region: *const c_void = (&raw const region).cast();
    let sub = Buffer(create!(clCreateSubBuffer(buffer.0, 0, kind, region)));
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(sub.0), CL_MEM_OFFSET),
        align
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(sub.0), CL_MEM_SIZE),
        align
    );
    assert_eq!(
        info_value!(
            usize,
            clGetMemObjectInfo(sub.0),
            CL_MEM_ASSOCIATED_MEMOBJECT
        ),
        buffer.0 as usize
    );
    // It is a window on the same memory.
    setup.write(&sub, &vec![2u8; align]);
    let kernel = setup.kernel_of(
        "kernel void up(global uchar *p) { p[get_global_id(0)] += 5; }",
        "up",
    );
    kernel.set_buffer(0, &sub);
    setup.run(&kernel, &[align], None);
    let mut expected = vec![1u8; size];
    expected[align..2 * align].fill(7);
    assert!(setup.read::<u8>(&buffer, size) == expected);
    // Wrong ones.
    let wrong = |flags, origin, size| {
        let region = cl_buffer_region { origin, size };
        let mut code = 0;
        pumice_tests::call!(clCreateSubBuffer(
            buffer.0,
            flags,
            kind,
            (&raw const region).cast(),
            &mut code
        ));
        code
    };
    assert_eq!(wrong(0, 0, 0), CL_INVALID_BUFFER_SIZE);
    assert_eq!(wrong(0, size, 1), CL_INVALID_VALUE);
    assert_eq!(wrong(0, usize::MAX, 2), CL_INVALID_VALUE);
    assert_eq!(wrong(0, 1, 8), CL_MISALIGNED_SUB_BUFFER_OFFSET);
    assert_eq!(wrong(CL_MEM_USE_HOST_PTR, 0, 8), CL_INVALID_VALUE);
    create_fails!(
        CL_INVALID_VALUE,
        clCreateSubBuffer(buffer.0, 0, kind, null())
    );
    create_fails!(
        CL_INVALID_VALUE,
        clCreateSubBuffer(buffer.0, 0, 0x7777, region)
    );
    create_fails!(
        CL_INVALID_MEM_OBJECT,
        clCreateSubBuffer(sub.0, 0, kind, region)
    );
    let read_only = Buffer(create!(clCreateBuffer(
        setup.context.0,
        CL_MEM_READ_ONLY,
        size,
        null_mut()
    )));
    create_fails!(
        CL_INVALID_VALUE,
        clCreateSubBuffer(read_only.0, CL_MEM_READ_WRITE, kind, region)
    );
    // Flags are inherited.
    let inherited = Buffer(create!(clCreateSubBuffer(read_only.0, 0, kind, region)));
    assert_eq!(
        info_value!(u64, clGetMemObjectInfo(inherited.0), CL_MEM_FLAGS),
        CL_MEM_READ_ONLY
    );
}

static DESTROYED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn destroyed(_mem: cl_mem, user_data: *mut c_void) {
    let place = user_data as u32;
    let _ = DESTROYED.compare_exchange(2 - place, 3 - place, Ordering::SeqCst, Ordering::SeqCst);
}

#[test]
fn destructor_callbacks_run_last_registered_first() {
    let setup = Setup::new();
    let buffer = setup.buffer(1 << 20);
    ok!(clSetMemObjectDestructorCallback(
        buffer.0,
        Some(destroyed),
        user_data(1)
    ));
    ok!(clSetMemObjectDestructorCallback(
        buffer.0,
        Some(destroyed),
        user_data(2)
    ));
    fails!(
        CL_INVALID_VALUE,
        clSetMemObjectDestructorCallback(buffer.0, None, null_mut())
    );
    let value = 0u32;
    ok!(clEnqueueFillBuffer(
        setup.queue.0,
        buffer.0,
        (&raw const value).cast(),
        4,
        0,
        1 << 20,
        0,
        null(),
        null_mut()
    ));
    drop(buffer);
    ok!(clFinish(setup.queue.0));
    for _ in 0..1000 {
        if DESTROYED.load(Ordering::SeqCst) == 2 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("the callbacks did not run");
}

#[test]
fn migration() {
    let setup = Setup::new();
    let queue = setup.queue.0;
    let buffer = setup.buffer_of(&[3u32; 64]);
    for flags in [0, CL_MIGRATE_MEM_OBJECT_HOST] {
        ok!(clEnqueueMigrateMemObjects(
            queue,
            1,
            &buffer.0,
            flags,
            0,
            null(),
            null_mut()
        ));
    }
    assert_eq!(setup.read::<u32>(&buffer, 64), vec![3; 64]);
    fails!(
        CL_INVALID_VALUE,
        clEnqueueMigrateMemObjects(queue, 0, null(), 0, 0, null(), null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueMigrateMemObjects(queue, 1, &buffer.0, 1 << 30, 0, null(), null_mut())
    );
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
