//! The queues: how they are made, what they tell, what is refused.

use super::{able, device_queue, on_device, properties, KERNELS};
use pumice_tests::sys::*;
use pumice_tests::{call, create_fails, fails, info, info_text, info_value, ok, Queue, Setup};
use std::ptr::{null, null_mut};

fn default_of(queue: &Queue) -> usize {
    info_value!(
        usize,
        clGetCommandQueueInfo(queue.0),
        CL_QUEUE_DEVICE_DEFAULT
    )
}

#[test]
fn devices_tell_what_they_can() {
    let Some(setup) = able(0) else { return };
    let device = setup.device;
    let word = |name| info_value!(u32, clGetDeviceInfo(device), name);
    assert!(word(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE) >= 256 << 10);
    let preferred = word(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE);
    assert!(preferred > 0 && preferred <= word(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE));
    assert!(word(CL_DEVICE_MAX_ON_DEVICE_QUEUES) >= 1);
    assert!(word(CL_DEVICE_MAX_ON_DEVICE_EVENTS) >= 1024);
    let able = info_value!(
        u64,
        clGetDeviceInfo(device),
        CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES
    );
    let both = CL_DEVICE_QUEUE_SUPPORTED | CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT;
    assert_eq!(able, both);
    let features = info!(clGetDeviceInfo(device), CL_DEVICE_OPENCL_C_FEATURES);
    let text = String::from_utf8_lossy(&features).into_owned();
    assert!(text.contains("__opencl_c_device_enqueue"));
}

#[test]
fn queues_tell_what_they_are() {
    let Some(setup) = able(0) else { return };
    assert_eq!(default_of(&setup.queue), 0);
    let plain = device_queue(&setup, 0, 12_345);
    let size = info_value!(u32, clGetCommandQueueInfo(plain.0), CL_QUEUE_SIZE);
    assert_eq!(size, 12_345);
    let list = properties(0, 12_345);
    let reported = info!(clGetCommandQueueInfo(plain.0), CL_QUEUE_PROPERTIES_ARRAY);
    let bytes: Vec<u8> = list.iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(reported, bytes);
    let bits = info_value!(u64, clGetCommandQueueInfo(plain.0), CL_QUEUE_PROPERTIES);
    assert_eq!(bits, list[1]);
    let context = info_value!(usize, clGetCommandQueueInfo(plain.0), CL_QUEUE_CONTEXT);
    assert_eq!(context, setup.context.0 as usize);
    assert_eq!(default_of(&plain), 0);
    // The second default queue is the first.
    let first = device_queue(&setup, CL_QUEUE_ON_DEVICE_DEFAULT, 0);
    let second = device_queue(&setup, CL_QUEUE_ON_DEVICE_DEFAULT, 0);
    assert_eq!(first.0, second.0);
    let references = |queue: &Queue| {
        info_value!(
            u32,
            clGetCommandQueueInfo(queue.0),
            CL_QUEUE_REFERENCE_COUNT
        )
    };
    assert_eq!(references(&first), 2);
    ok!(clRetainCommandQueue(first.0));
    assert_eq!(references(&first), 3);
    ok!(clReleaseCommandQueue(first.0));
    let preferred = info_value!(
        u32,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE
    );
    let size = info_value!(u32, clGetCommandQueueInfo(first.0), CL_QUEUE_SIZE);
    assert_eq!(size, preferred);
    for queue in [&setup.queue, &plain, &first] {
        assert_eq!(default_of(queue), first.0 as usize);
    }
    // Another in its place.
    ok!(clSetDefaultDeviceCommandQueue(
        setup.context.0,
        setup.device,
        plain.0
    ));
    assert_eq!(default_of(&setup.queue), plain.0 as usize);
    drop(plain);
    assert_eq!(default_of(&setup.queue), 0);
}

#[test]
fn what_is_refused() {
    let Some(setup) = able(0) else { return };
    let (context, device) = (setup.context.0, setup.device);
    let most = info_value!(
        u32,
        clGetDeviceInfo(device),
        CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE
    );
    for size in [most + 1, u32::MAX] {
        let list = properties(0, size);
        create_fails!(
            CL_INVALID_QUEUE_PROPERTIES,
            clCreateCommandQueueWithProperties(context, device, list.as_ptr())
        );
    }
    let name = CL_QUEUE_PROPERTIES as cl_queue_properties;
    let size = CL_QUEUE_SIZE as cl_queue_properties;
    for list in [
        // In order; no device queue; a host queue with a size.
        vec![name, CL_QUEUE_ON_DEVICE, 0],
        vec![name, CL_QUEUE_ON_DEVICE_DEFAULT, 0],
        vec![size, 4096, 0],
    ] {
        create_fails!(
            CL_INVALID_VALUE,
            clCreateCommandQueueWithProperties(context, device, list.as_ptr())
        );
    }
    let queue = device_queue(&setup, 0, 0);
    let host = setup.queue.0;
    // No command goes to a device queue.
    fails!(CL_INVALID_COMMAND_QUEUE, clFlush(queue.0));
    fails!(CL_INVALID_COMMAND_QUEUE, clFinish(queue.0));
    fails!(
        CL_INVALID_COMMAND_QUEUE,
        clEnqueueMarkerWithWaitList(queue.0, 0, null(), null_mut())
    );
    let kernel = setup.kernel_of("kernel void k(global int *p) { p[0] = 1; }", "k");
    fails!(
        CL_INVALID_COMMAND_QUEUE,
        clEnqueueNDRangeKernel(
            queue.0,
            kernel.0,
            1,
            null(),
            &1,
            null(),
            0,
            null(),
            null_mut()
        )
    );
    for wrong in [host, null_mut()] {
        fails!(
            CL_INVALID_COMMAND_QUEUE,
            clSetDefaultDeviceCommandQueue(context, device, wrong)
        );
    }
    let other = Setup::new();
    fails!(
        CL_INVALID_COMMAND_QUEUE,
        clSetDefaultDeviceCommandQueue(other.context.0, other.device, queue.0)
    );
    fails!(
        CL_INVALID_COMMAND_QUEUE,
        clGetCommandQueueInfo(host, CL_QUEUE_SIZE, 0, null_mut(), null_mut())
    );
}

#[test]
fn arguments() {
    let Some(on) = on_device(KERNELS, "-cl-kernel-arg-info", 0) else {
        return;
    };
    let kernel = on.kernel("tree");
    let name = info_text!(clGetKernelArgInfo(kernel.0, 0), CL_KERNEL_ARG_TYPE_NAME);
    assert_eq!(name, "queue_t");
    let own = on.queue.0;
    let set = |value: *const cl_command_queue, size: usize| {
        call!(clSetKernelArg(kernel.0, 0, size, value.cast()))
    };
    assert_eq!(set(&own, size_of::<cl_command_queue>()), CL_SUCCESS);
    assert_eq!(set(&own, 4), CL_INVALID_ARG_SIZE);
    assert_eq!(set(null(), 8), CL_INVALID_DEVICE_QUEUE);
    let other = Setup::new();
    let foreign = device_queue(&other, 0, 0);
    for wrong in [null_mut(), on.setup.queue.0] {
        assert_eq!(set(&wrong, 8), CL_INVALID_DEVICE_QUEUE);
    }
    assert_eq!(set(&foreign.0, 8), CL_INVALID_CONTEXT);
    // The argument does not keep the queue.
    let gone = device_queue(&on.setup, 0, 0);
    assert_eq!(set(&gone.0, 8), CL_SUCCESS);
    drop(gone);
    let words = on.buffer(&[0; 2]);
    kernel.set_buffer(1, &words).set(2, 0i32).set(3, 0i32);
    fails!(
        CL_INVALID_KERNEL_ARGS,
        clEnqueueNDRangeKernel(
            on.setup.queue.0,
            kernel.0,
            1,
            null(),
            &1,
            null(),
            0,
            null(),
            null_mut()
        )
    );
}

/// Blocks are no kernels of the application's.
#[test]
fn programs_do_not_show_blocks() {
    let Some(on) = on_device(KERNELS, "", 0) else {
        return;
    };
    let names = info_text!(clGetProgramInfo(on.program.0), CL_PROGRAM_KERNEL_NAMES);
    assert!(!names.contains("block"), "{names}");
    let count = info_value!(
        usize,
        clGetProgramInfo(on.program.0),
        CL_PROGRAM_NUM_KERNELS
    );
    assert_eq!(count, names.split(';').count());
    assert_eq!(count, KERNELS.matches("\nkernel void").count());
    create_fails!(
        CL_INVALID_KERNEL_NAME,
        clCreateKernel(on.program.0, c"__grow_block_invoke_kernel".as_ptr())
    );
}

/// However many threads ask for a default queue at once, there is one.
#[test]
fn one_default_queue_for_all_threads() {
    let Some(setup) = able(0) else { return };
    const THREADS: usize = 4;
    let barrier = std::sync::Barrier::new(THREADS);
    for _ in 0..50 {
        let handles: Vec<usize> = std::thread::scope(|scope| {
            let made = || {
                barrier.wait();
                let queue = device_queue(&setup, CL_QUEUE_ON_DEVICE_DEFAULT, 0);
                // Kept until all have theirs.
                barrier.wait();
                queue.0 as usize
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(made)).collect();
            threads
                .into_iter()
                .map(|t| t.join().expect("a queue"))
                .collect()
        });
        assert!(handles.iter().all(|&h| h == handles[0]), "{handles:?}");
    }
}
