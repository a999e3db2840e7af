//! Maps of buffers.

use super::*;

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
