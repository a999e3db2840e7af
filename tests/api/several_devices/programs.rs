//! Programs and kernels of several devices.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn programs_are_built_for_each_device() {
    let Some(pair) = pair() else { return };
    let both = pair.program(ADD, 2);
    assert_eq!(
        info_value!(u32, clGetProgramInfo(both.0), CL_PROGRAM_NUM_DEVICES),
        2
    );
    let one = pair.program(ADD, 1);
    let kernel = pair.kernel(&one, "add");
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 16, null_mut());
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    assert_eq!(pair.launch(0, &kernel, 16, &[]).wait(), 0);
    let items = 16usize;
    fails!(
        CL_INVALID_PROGRAM_EXECUTABLE,
        clEnqueueNDRangeKernel(
            pair.queues[1].0,
            kernel.0,
            1,
            null(),
            &items,
            null(),
            0,
            null(),
            null_mut()
        )
    );
    // Variables of a program are those of a device.
    let source = "global uint count = 10; kernel void next(global uint *p) { p[0] = ++count; }";
    let program = pair.program(source, 2);
    let next = pair.kernel(&program, "next");
    next.set_buffer(0, &buffer);
    for (on, expected) in [(0, 11), (0, 12), (1, 11), (0, 13), (1, 12)] {
        let event = pair.launch(on, &next, 1, &[]);
        assert_eq!(pair.read(on, &buffer, 1, &[event.0]), [expected]);
    }
}

unsafe extern "C" fn released(_program: cl_program, count: *mut c_void) {
    // SAFETY: the test keeps its counter.
    let count = unsafe { &*count.cast_const().cast::<AtomicUsize>() };
    count.fetch_add(1, Ordering::SeqCst);
}

/// Constructors run on each device before its first kernel, and what waits for destructors waits for those of all.
#[test]
fn objects_are_those_of_a_device() {
    let Some(pair) = pair() else { return };
    let source = "struct Counter {
            uint count;
            Counter() : count(10 * get_work_dim()) {}
            ~Counter() { count = 0; }
        };
        global Counter counter;
        kernel void next(global uint *p) { p[0] = ++counter.count; }";
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let program = pair.program_with(source, 2, c"-cl-std=CLC++");
    let data = (&raw const COUNT).cast_mut().cast();
    ok!(clSetProgramReleaseCallback(program.0, Some(released), data));
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 16, null_mut());
    let next = pair.kernel(&program, "next");
    next.set_buffer(0, &buffer);
    for (on, expected) in [(0, 11), (0, 12), (1, 11), (0, 13), (1, 12)] {
        let event = pair.launch(on, &next, 1, &[]);
        assert_eq!(pair.read(on, &buffer, 1, &[event.0]), [expected]);
    }
    for queue in &pair.queues {
        ok!(clFinish(queue.0));
    }
    drop(program);
    assert_eq!(COUNT.load(Ordering::SeqCst), 0);
    drop(next);
    assert_eq!(COUNT.load(Ordering::SeqCst), 1);
}

#[test]
fn kernels_tell_of_the_devices_they_are_built_for() {
    let Some(pair) = pair() else { return };
    let (both, one) = (pair.program(ADD, 2), pair.program(ADD, 1));
    let (every, first) = (pair.kernel(&both, "add"), pair.kernel(&one, "add"));
    let mut size = 0usize;
    let place = (&raw mut size).cast();
    for device in pair.devices {
        ok!(clGetKernelWorkGroupInfo(
            every.0,
            device,
            CL_KERNEL_WORK_GROUP_SIZE,
            size_of::<usize>(),
            place,
            null_mut()
        ));
        assert!(size > 0);
        let most = info_value!(
            usize,
            clGetDeviceInfo(device),
            CL_DEVICE_MAX_WORK_GROUP_SIZE
        );
        assert!(size <= most);
    }
    let param = CL_KERNEL_WORK_GROUP_SIZE;
    let bytes = size_of::<usize>();
    fails!(
        CL_INVALID_DEVICE,
        clGetKernelWorkGroupInfo(every.0, null_mut(), param, bytes, place, null_mut())
    );
    let device = pair.devices[1];
    fails!(
        CL_INVALID_DEVICE,
        clGetKernelWorkGroupInfo(first.0, device, param, bytes, place, null_mut())
    );
    // Only one device has it: it need not be named.
    ok!(clGetKernelWorkGroupInfo(
        first.0,
        null_mut(),
        param,
        bytes,
        place,
        null_mut()
    ));
    let status = |device| {
        let mut status: cl_build_status = 7;
        ok!(clGetProgramBuildInfo(
            one.0,
            device,
            CL_PROGRAM_BUILD_STATUS,
            size_of_val(&status),
            (&raw mut status).cast(),
            null_mut()
        ));
        status
    };
    assert_eq!(status(pair.devices[0]), CL_BUILD_SUCCESS);
    assert_eq!(status(pair.devices[1]), CL_BUILD_NONE);
}

#[test]
fn binaries_of_several_devices_load_again() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let mut sizes = [0usize; 2];
    ok!(clGetProgramInfo(
        program.0,
        CL_PROGRAM_BINARY_SIZES,
        size_of_val(&sizes),
        sizes.as_mut_ptr().cast(),
        null_mut()
    ));
    let mut binaries = sizes.map(|size| vec![0u8; size]);
    let [first, second] = &mut binaries;
    let mut places = [first.as_mut_ptr(), second.as_mut_ptr()];
    ok!(clGetProgramInfo(
        program.0,
        CL_PROGRAM_BINARIES,
        size_of_val(&places),
        places.as_mut_ptr().cast(),
        null_mut()
    ));
    // For both in the other order, and for the second alone.
    for order in [&[1usize, 0][..], &[1]] {
        let devices: Vec<_> = order.iter().map(|at| pair.devices[*at]).collect();
        let lengths: Vec<_> = order.iter().map(|at| sizes[*at]).collect();
        let data: Vec<_> = order.iter().map(|at| binaries[*at].as_ptr()).collect();
        let mut statuses = vec![9; order.len()];
        let count = order.len() as u32;
        let loaded = Program(create!(clCreateProgramWithBinary(
            pair.context.0,
            count,
            devices.as_ptr(),
            lengths.as_ptr(),
            data.as_ptr().cast_mut(),
            statuses.as_mut_ptr()
        )));
        assert!(statuses.iter().all(|status| *status == CL_SUCCESS));
        loaded.build();
        let kernel = pair.kernel(&loaded, "add");
        let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 4, [1u32, 2, 3, 4].as_mut_ptr());
        kernel.set_buffer(0, &buffer).set(1, 10u32);
        for on in order {
            assert_eq!(pair.launch(*on, &kernel, 4, &[]).wait(), 0);
        }
        let added = 10 * count;
        let expected = [1, 2, 3, 4].map(|n| n + added);
        assert_eq!(pair.read(0, &buffer, 4, &[]), expected);
    }
}
