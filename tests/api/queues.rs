//! Command queues.

use pumice_tests::sys::*;
use pumice_tests::{create, create_fails, fails, info, info_value, ok, Event, Queue, Setup};
use std::ptr::{null, null_mut};

#[test]
fn queries() {
    let setup = Setup::with_queue(CL_QUEUE_PROFILING_ENABLE);
    let queue = setup.queue.0;
    assert_eq!(
        info_value!(usize, clGetCommandQueueInfo(queue), CL_QUEUE_CONTEXT),
        setup.context.0 as usize
    );
    assert_eq!(
        info_value!(usize, clGetCommandQueueInfo(queue), CL_QUEUE_DEVICE),
        setup.device as usize
    );
    assert_eq!(
        info_value!(u64, clGetCommandQueueInfo(queue), CL_QUEUE_PROPERTIES),
        CL_QUEUE_PROFILING_ENABLE
    );
    assert_eq!(
        info_value!(u32, clGetCommandQueueInfo(queue), CL_QUEUE_REFERENCE_COUNT),
        1
    );
    ok!(clRetainCommandQueue(queue));
    assert_eq!(
        info_value!(u32, clGetCommandQueueInfo(queue), CL_QUEUE_REFERENCE_COUNT),
        2
    );
    ok!(clReleaseCommandQueue(queue));
    let list = info_value!(
        [u64; 3],
        clGetCommandQueueInfo(queue),
        CL_QUEUE_PROPERTIES_ARRAY
    );
    assert_eq!(
        list,
        [CL_QUEUE_PROPERTIES as u64, CL_QUEUE_PROFILING_ENABLE, 0]
    );
    assert_eq!(
        info_value!(usize, clGetCommandQueueInfo(queue), CL_QUEUE_DEVICE_DEFAULT),
        0
    );
    // Only queues on the device have a size.
    fails!(
        CL_INVALID_COMMAND_QUEUE,
        clGetCommandQueueInfo(queue, CL_QUEUE_SIZE, 0, null_mut(), null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetCommandQueueInfo(queue, 0x1234, 0, null_mut(), null_mut())
    );
    let plain = Queue(create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        null()
    )));
    assert!(info!(clGetCommandQueueInfo(plain.0), CL_QUEUE_PROPERTIES_ARRAY).is_empty());
}

#[test]
fn wrong_properties() {
    let setup = Setup::new();
    let (context, device) = (setup.context.0, setup.device);
    let able = info_value!(
        u64,
        clGetDeviceInfo(device),
        CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES
    ) != 0;
    let on_device = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let list = [CL_QUEUE_PROPERTIES as u64, on_device, 0];
    if !able {
        create_fails!(
            CL_INVALID_QUEUE_PROPERTIES,
            clCreateCommandQueueWithProperties(context, device, list.as_ptr())
        );
    }
    let list = [CL_QUEUE_PROPERTIES as u64, 1 << 40, 0];
    create_fails!(
        CL_INVALID_VALUE,
        clCreateCommandQueueWithProperties(context, device, list.as_ptr())
    );
    let list = [0x7777u64, 1, 0];
    create_fails!(
        CL_INVALID_VALUE,
        clCreateCommandQueueWithProperties(context, device, list.as_ptr())
    );
    create_fails!(
        CL_INVALID_VALUE,
        clCreateCommandQueue(context, device, 1 << 40)
    );
    let queue = Queue(create!(clCreateCommandQueue(
        context,
        device,
        CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
    )));
    ok!(clFinish(queue.0));
    if !able {
        fails!(
            CL_INVALID_OPERATION,
            clSetDefaultDeviceCommandQueue(context, device, queue.0)
        );
    }
}

/// Priorities and throttles are hints: whatever they are, the queue does its work.
#[test]
fn hints() {
    let setup = Setup::new();
    let (context, device) = (setup.context.0, setup.device);
    for name in ["cl_khr_priority_hints", "cl_khr_throttle_hints"] {
        assert!(setup.has_extension(name), "{name}");
    }
    let buffer = setup.buffer(64);
    let mut number = 0u32;
    for name in [CL_QUEUE_PRIORITY_KHR, CL_QUEUE_THROTTLE_KHR] {
        for value in [1u64, 2, 4] {
            let list = [name, value, 0];
            let queue = Queue(create!(clCreateCommandQueueWithProperties(
                context,
                device,
                list.as_ptr()
            )));
            let reported = info!(clGetCommandQueueInfo(queue.0), CL_QUEUE_PROPERTIES_ARRAY);
            let bytes: Vec<u8> = list.iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!(reported, bytes);
            for _ in 0..20 {
                number += 1;
                let (mut found, from) = (0u32, (&raw const number).cast());
                ok!(clEnqueueFillBuffer(
                    queue.0,
                    buffer.0,
                    from,
                    4,
                    0,
                    64,
                    0,
                    null(),
                    null_mut()
                ));
                ok!(clEnqueueReadBuffer(
                    queue.0,
                    buffer.0,
                    CL_TRUE,
                    60,
                    4,
                    (&raw mut found).cast(),
                    0,
                    null(),
                    null_mut()
                ));
                assert_eq!(found, number);
            }
        }
        for value in [0u64, 3, 8] {
            let list = [name, value, 0];
            create_fails!(
                CL_INVALID_VALUE,
                clCreateCommandQueueWithProperties(context, device, list.as_ptr())
            );
        }
    }
}

/// Dependent work on an out-of-order queue, ordered by events and barriers alone.
#[test]
fn out_of_order() {
    let setup = Setup::with_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let queue = setup.queue.0;
    let buffer = setup.buffer(4096);
    let fill = |value: u32, wait: &[cl_event]| {
        let mut event = null_mut();
        let list = if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        };
        ok!(clEnqueueFillBuffer(
            queue,
            buffer.0,
            (&raw const value).cast(),
            4,
            0,
            4096,
            wait.len() as u32,
            list,
            &mut event
        ));
        Event(event)
    };
    let mut last = fill(0, &[]);
    for value in 1..50 {
        last = fill(value, &[last.0]);
    }
    ok!(clEnqueueBarrierWithWaitList(queue, 0, null(), null_mut()));
    let end = fill(1000, &[]);
    assert_eq!(end.wait(), 0);
    assert_eq!(last.status(), CL_COMPLETE);
    ok!(clFinish(queue));
    assert_eq!(setup.read::<u32>(&buffer, 1024), vec![1000; 1024]);
}

/// A queue that is released with work in it finishes the work.
#[test]
fn released_with_work() {
    let setup = Setup::new();
    let buffer = setup.buffer_of(&[0u32; 256]);
    let queue = setup.new_queue(0);
    let mut event = null_mut();
    let value = 7u32;
    ok!(clEnqueueFillBuffer(
        queue.0,
        buffer.0,
        (&raw const value).cast(),
        4,
        0,
        1024,
        0,
        null(),
        &mut event
    ));
    drop(queue);
    let event = Event(event);
    assert_eq!(event.wait(), 0);
    assert_eq!(setup.read::<u32>(&buffer, 256), vec![7; 256]);
}

/// Many commands without a flush between.
#[test]
fn many_commands() {
    let setup = Setup::new();
    let buffer = setup.buffer_of(&[0u32; 1]);
    let kernel = setup.kernel_of(
        "kernel void up(global uint *p) { p[0] = p[0] * 3 + 1; }",
        "up",
    );
    kernel.set_buffer(0, &buffer);
    let mut expected = 0u32;
    for _ in 0..3000 {
        setup.enqueue(&kernel, &[1], None);
        expected = expected.wrapping_mul(3).wrapping_add(1);
    }
    assert_eq!(setup.read::<u32>(&buffer, 1), vec![expected]);
}
