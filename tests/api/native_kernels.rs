//! clEnqueueNativeKernel, on devices that run native kernels.

use pumice_tests::sys::*;
use pumice_tests::{call, fails, info_value, ok, Event, Setup};
use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::{null, null_mut};

#[repr(C)]
#[derive(Clone, Copy)]
struct Args {
    factor: u32,
    count: u32,
    data: *mut u32,
}

unsafe extern "C" fn scale(args: *mut c_void) {
    // SAFETY: enqueued with such arguments below.
    let args = unsafe { &*args.cast::<Args>() };
    for i in 0..args.count as usize {
        // SAFETY: the buffer has that many words.
        unsafe { *args.data.add(i) *= args.factor };
    }
}

fn runs_them(setup: &Setup) -> bool {
    let capabilities = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    );
    capabilities & CL_EXEC_NATIVE_KERNEL != 0
}

/// Between kernels, in the order of the queue, with a copy of the arguments that has the buffer's address.
#[test]
fn in_their_turn() {
    let setup = Setup::new();
    if !runs_them(&setup) {
        return pumice_tests::left_out("no native kernels");
    }
    let program = setup
        .build("kernel void add(global uint *p) { p[get_global_id(0)] += get_global_id(0) + 1; }");
    let kernel = setup.kernel(&program, "add");
    let buffer = setup.buffer_of(&[0u32; 256]);
    kernel.set_buffer(0, &buffer);
    let mut args = Args {
        factor: 3,
        count: 256,
        data: null_mut(),
    };
    let start = (&raw mut args).cast::<u8>();
    let place: *const c_void = start.wrapping_add(offset_of!(Args, data)).cast();
    let mut event = null_mut();
    for _ in 0..2 {
        setup.queue.enqueue(&kernel, &[256], None);
        ok!(clEnqueueNativeKernel(
            setup.queue.0,
            Some(scale),
            start.cast(),
            size_of::<Args>(),
            1,
            &buffer.0,
            (&raw const place).cast_mut(),
            0,
            null(),
            &mut event
        ));
    }
    let event = Event(event);
    let got: Vec<u32> = setup.read(&buffer, 256);
    for (i, &word) in got.iter().enumerate() {
        let i = i as u32 + 1;
        assert_eq!(word, (i * 3 + i) * 3);
    }
    assert_eq!(
        info_value!(u32, clGetEventInfo(event.0), CL_EVENT_COMMAND_TYPE),
        CL_COMMAND_NATIVE_KERNEL
    );
    // Without arguments, and wrong ones.
    static CALLED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    unsafe extern "C" fn count(args: *mut c_void) {
        assert!(args.is_null());
        CALLED.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
    ok!(clEnqueueNativeKernel(
        setup.queue.0,
        Some(count),
        null_mut(),
        0,
        0,
        null(),
        null_mut(),
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(setup.queue.0));
    assert_eq!(CALLED.load(std::sync::atomic::Ordering::SeqCst), 1);
    let beyond: *const c_void = start.wrapping_add(size_of::<Args>()).cast();
    fails!(
        CL_INVALID_VALUE,
        clEnqueueNativeKernel(
            setup.queue.0,
            Some(scale),
            start.cast(),
            size_of::<Args>(),
            1,
            &buffer.0,
            (&raw const beyond).cast_mut(),
            0,
            null(),
            null_mut()
        )
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueNativeKernel(
            setup.queue.0,
            None,
            null_mut(),
            0,
            0,
            null(),
            null_mut(),
            0,
            null(),
            null_mut()
        )
    );
    let _ = call!(clFinish(setup.queue.0));
}
