//! Contexts that are terminated (cl_khr_terminate_context).

use pumice_tests::gate::{returns, soon, Gate};
use pumice_tests::sys::*;
use pumice_tests::{
    call, create, create_fails, ext, fails, first_device, info_value, left_out, ok, user_data,
    Buffer, Context, Event, Kernel, Queue, Setup,
};
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

const TERMINATE: cl_context_properties = CL_CONTEXT_TERMINATE_KHR as cl_context_properties;

const SOURCE: &str = "
kernel void count(global uint *groups, global uint *spins) {
    uint s = get_group_id(0);
    for (int i = 0; i < 20000; i++) s = s * 747796405u + 2891336453u;
    spins[0] = s;
    atomic_inc(groups);
}
kernel void hold(volatile global uint *flags, global uint *to) {
    atomic_xchg(flags + 1, 1u);
    while (atomic_or(flags, 0u) == 0) {}
    *to = 7;
}
kernel void store(global uint *to) { *to = 7; }
";

/// Returns a setup whose context can be terminated, if the device can do that.
fn setup(properties: cl_command_queue_properties) -> Option<Setup> {
    let (list, device) = ([TERMINATE, 1, 0], first_device());
    if !Setup::new().has_extension("cl_khr_terminate_context") {
        left_out("the device terminates no contexts");
        return None;
    }
    let context = create!(clCreateContext(list.as_ptr(), 1, &device, None, null_mut()));
    Some(Setup::of(Context(context), properties))
}

fn terminate(setup: &Setup, context: cl_context) -> cl_int {
    ext!(setup, clTerminateContextKHR: clTerminateContextKHR_t(context))
}

/// Enqueues a kernel behind an event.
fn launch(queue: &Queue, kernel: &Kernel, after: Option<&Event>) -> Event {
    let mut event = null_mut();
    ok!(clEnqueueNDRangeKernel(
        queue.0,
        kernel.0,
        1,
        null(),
        [1].as_ptr(),
        null(),
        after.iter().count() as cl_uint,
        after.map_or(null(), |event| &event.0),
        &mut event
    ));
    Event(event)
}

/// Allocates two numbers that kernels and the host see at the same time.
fn flags(setup: &Setup) -> [&AtomicU32; 2] {
    let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
    let memory = call!(clSVMAlloc(setup.context.0, flags, 64, 0)).cast::<u32>();
    assert!(!memory.is_null());
    // SAFETY: 64 bytes, which the tests free at their end.
    [0, 1].map(|at| unsafe {
        let place = memory.add(at);
        place.write(0);
        AtomicU32::from_ptr(place)
    })
}

/// Reads a word: what the call returned.
fn read(setup: &Setup, from: &Buffer) -> cl_int {
    let mut word = 0u32;
    call!(clEnqueueReadBuffer(
        setup.queue.0,
        from.0,
        CL_TRUE,
        0,
        4,
        (&raw mut word).cast(),
        0,
        null(),
        null_mut()
    ))
}

fn finish(setup: &Setup) -> cl_int {
    call!(clFinish(setup.queue.0))
}

unsafe extern "C" fn ended(_: cl_event, status: cl_int, place: *mut c_void) {
    // SAFETY: the tests give the address of a number that outlives the event.
    unsafe { &*place.cast::<AtomicI32>() }.store(status, Ordering::SeqCst);
}

unsafe extern "C" fn reported(_: *const c_char, _: *const c_void, _: usize, place: *mut c_void) {
    // SAFETY: the test gives the address of a number that outlives the context.
    unsafe { &*place.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn released(_: cl_mem, place: *mut c_void) {
    // SAFETY: as above.
    unsafe { &*place.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

fn place<T>(number: &T) -> *mut c_void {
    (&raw const *number).cast_mut().cast()
}

#[test]
fn commands_end_and_waits_return() {
    let Some(setup) = setup(CL_QUEUE_PROFILING_ENABLE) else {
        return;
    };
    let other_queue = setup.new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let program = setup.build(SOURCE);
    let store = setup.kernel(&program, "store");
    let to = setup.buffer_of(&[1u32; 4]);
    store.set_buffer(0, &to);
    let before = launch(&setup.queue, &store, None);
    assert_eq!(before.wait(), 0);
    let gate = Gate::new(&setup).expect("the CPU device has gates");
    let user = Event::user(&setup.context);
    let statuses = [const { AtomicI32::new(1) }; 2];
    let mut ends = Vec::new();
    let running = gate.enqueue(&setup.queue);
    ok!(clRetainEvent(running));
    ends.push(Event(running));
    ends.push(launch(&setup.queue, &store, None));
    ends.push(launch(&other_queue, &store, Some(&user)));
    ends.push(launch(&other_queue, &store, Some(&ends[0])));
    for (event, status) in [&ends[1], &ends[2]].iter().zip(&statuses) {
        ok!(clSetEventCallback(
            event.0,
            CL_COMPLETE as cl_int,
            Some(ended),
            place(status)
        ));
    }
    ok!(clFlush(setup.queue.0));
    assert!(soon(|| ends[0].status() == CL_RUNNING as cl_int));
    let (codes, wait) = std::thread::scope(|scope| {
        let blocked = scope.spawn(|| read(&setup, &to));
        let waits = scope.spawn(|| ends[0].wait());
        let finishes = scope.spawn(|| finish(&setup));
        std::thread::sleep(Duration::from_millis(50));
        let code = gate.returns("clTerminateContextKHR", || {
            terminate(&setup, setup.context.0)
        });
        let wait = gate.returns("a wait", || waits.join().expect("no panic"));
        let blocked = gate.returns("a read", || blocked.join().expect("no panic"));
        gate.returns("clFinish", || finishes.join().expect("no panic"));
        ([code, blocked], wait)
    });
    assert_eq!(codes, [0, CL_CONTEXT_TERMINATED_KHR]);
    assert_eq!(wait, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    // The kernel runs on, and nobody waits for it.
    assert_eq!(gate.flag().load(Ordering::SeqCst), 0);
    for event in &ends {
        assert_eq!(event.status(), CL_CONTEXT_TERMINATED_KHR);
        assert_eq!(
            gate.returns("a wait", || event.wait()),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
        );
        fails!(
            CL_PROFILING_INFO_NOT_AVAILABLE,
            clGetEventProfilingInfo(
                event.0,
                CL_PROFILING_COMMAND_START,
                8,
                place(&0u64),
                null_mut()
            )
        );
    }
    for status in &statuses {
        assert!(soon(|| status.load(Ordering::SeqCst) != 1));
        assert_eq!(status.load(Ordering::SeqCst), CL_CONTEXT_TERMINATED_KHR);
    }
    // What was complete stays so.
    assert_eq!(before.status(), CL_COMPLETE as cl_int);
    assert_eq!(user.status(), CL_SUBMITTED as cl_int);
    user.finish(CL_COMPLETE as cl_int);
    let late = AtomicI32::new(1);
    ok!(clSetEventCallback(
        ends[3].0,
        CL_COMPLETE as cl_int,
        Some(ended),
        place(&late)
    ));
    assert_eq!(late.load(Ordering::SeqCst), CL_CONTEXT_TERMINATED_KHR);
    // Other contexts of the device go on, as far as it has other processors.
    gate.open();
    let other = Setup::new();
    let store = other.kernel(&other.build(SOURCE), "store");
    let to = other.buffer_of(&[1u32; 4]);
    store.set_buffer(0, &to);
    other.run(&store, &[1], None);
    assert_eq!(other.read::<u32>(&to, 1), [7]);
}

#[test]
fn a_terminated_context_makes_nothing() {
    let Some(wanted) = setup(0) else {
        return;
    };
    let (list, device) = ([TERMINATE, 1, 0], first_device());
    let reports = AtomicUsize::new(0);
    let setup = Setup::of(
        Context(create!(clCreateContext(
            list.as_ptr(),
            1,
            &device,
            Some(reported),
            place(&reports)
        ))),
        0,
    );
    let context = setup.context.0;
    let program = setup.build(SOURCE);
    let kernel = setup.kernel(&program, "store");
    let buffer = setup.buffer(256);
    kernel.set_buffer(0, &buffer);
    assert_eq!(terminate(&setup, context), 0);
    assert_eq!(reports.load(Ordering::SeqCst), 1);
    assert_eq!(terminate(&setup, context), CL_CONTEXT_TERMINATED_KHR);
    let flags = CL_MEM_READ_WRITE;
    create_fails!(
        CL_CONTEXT_TERMINATED_KHR,
        clCreateBuffer(context, flags, 64, null_mut())
    );
    create_fails!(
        CL_CONTEXT_TERMINATED_KHR,
        clCreateSubBuffer(
            buffer.0,
            flags,
            CL_BUFFER_CREATE_TYPE_REGION,
            place(&cl_buffer_region {
                origin: 0,
                size: 128
            })
        )
    );
    create_fails!(CL_CONTEXT_TERMINATED_KHR, clCreateUserEvent(context));
    create_fails!(
        CL_CONTEXT_TERMINATED_KHR,
        clCreateCommandQueueWithProperties(context, device, null())
    );
    let mut source = c"kernel void k() {}".as_ptr();
    create_fails!(
        CL_CONTEXT_TERMINATED_KHR,
        clCreateProgramWithSource(context, 1, &mut source, null())
    );
    create_fails!(
        CL_CONTEXT_TERMINATED_KHR,
        clCreateKernel(program.0, c"store".as_ptr())
    );
    create_fails!(CL_CONTEXT_TERMINATED_KHR, clCloneKernel(kernel.0));
    assert!(call!(clSVMAlloc(context, flags, 64, 0)).is_null());
    let code = setup.queue.try_enqueue(&kernel, &[1], None);
    assert_eq!(code, CL_CONTEXT_TERMINATED_KHR);
    fails!(
        CL_CONTEXT_TERMINATED_KHR,
        clEnqueueMarkerWithWaitList(setup.queue.0, 0, null(), null_mut())
    );
    ok!(clFlush(setup.queue.0));
    ok!(clFinish(setup.queue.0));
    // Queries, and references.
    ok!(clRetainContext(context));
    let count = info_value!(u32, clGetContextInfo(context), CL_CONTEXT_REFERENCE_COUNT);
    assert!(count >= 2, "{count}");
    ok!(clReleaseContext(context));
    ok!(clRetainMemObject(buffer.0));
    ok!(clReleaseMemObject(buffer.0));
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(buffer.0), CL_MEM_SIZE),
        256
    );
    // Another one is not touched.
    assert_eq!(wanted.read::<u32>(&wanted.buffer_of(&[5u32]), 1), [5]);
}

#[test]
fn a_launch_ends_with_the_work_groups_that_run() {
    let Some(setup) = setup(0) else {
        return;
    };
    let program = setup.build(SOURCE);
    let count = setup.kernel(&program, "count");
    let spins = setup.buffer(4);
    let [groups, _] = flags(&setup);
    ok!(clSetKernelArgSVMPointer(
        count.0,
        0,
        groups.as_ptr().cast_const().cast()
    ));
    count.set_buffer(1, &spins);
    // Hours of work.
    setup.queue.enqueue(&count, &[1 << 30], Some(&[1]));
    ok!(clFlush(setup.queue.0));
    assert!(soon(|| groups.load(Ordering::SeqCst) > 100));
    assert_eq!(terminate(&setup, setup.context.0), 0);
    let now = groups.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(100));
    let later = groups.load(Ordering::SeqCst);
    assert_eq!(now, later, "work-groups begin");
    call!(clSVMFree(setup.context.0, groups.as_ptr().cast()));
}

#[test]
fn kernels_enqueue_no_more() {
    let Some(setup) = setup(0) else {
        return;
    };
    let list = [
        CL_QUEUE_PROPERTIES as cl_queue_properties,
        CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        0,
    ];
    let _on_device = Queue(create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        list.as_ptr()
    )));
    let source = "
        void once(global uint *runs) {
            atomic_inc(runs);
            enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), ^{ once(runs); });
        }
        kernel void again(global uint *runs) { once(runs); }";
    let program = setup.try_build(source, "-cl-std=CL3.0").expect("a program");
    let again = setup.kernel(&program, "again");
    let [runs, _] = flags(&setup);
    ok!(clSetKernelArgSVMPointer(
        again.0,
        0,
        runs.as_ptr().cast_const().cast()
    ));
    let event = launch(&setup.queue, &again, None);
    ok!(clFlush(setup.queue.0));
    assert!(soon(|| runs.load(Ordering::SeqCst) > 10));
    assert_eq!(terminate(&setup, setup.context.0), 0);
    assert!(soon(|| event.status() == CL_CONTEXT_TERMINATED_KHR));
    let now = runs.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(now, runs.load(Ordering::SeqCst));
    call!(clSVMFree(setup.context.0, runs.as_ptr().cast()));
}

#[test]
fn memory_in_use_is_kept() {
    let Some(setup) = setup(0) else {
        return;
    };
    let [open, begun] = flags(&setup);
    let mut bytes = vec![0u32; 1024];
    let buffer = Buffer(create!(clCreateBuffer(
        setup.context.0,
        CL_MEM_USE_HOST_PTR,
        4096,
        bytes.as_mut_ptr().cast()
    )));
    let freed = AtomicUsize::new(0);
    ok!(clSetMemObjectDestructorCallback(
        buffer.0,
        Some(released),
        place(&freed)
    ));
    let hold = setup.kernel(&setup.build(SOURCE), "hold");
    ok!(clSetKernelArgSVMPointer(
        hold.0,
        0,
        open.as_ptr().cast_const().cast()
    ));
    hold.set_buffer(1, &buffer);
    let running = launch(&setup.queue, &hold, None);
    ok!(clFlush(setup.queue.0));
    assert!(soon(|| begun.load(Ordering::SeqCst) == 1));
    let code = returns(
        "clTerminateContextKHR",
        || open.store(1, Ordering::SeqCst),
        || terminate(&setup, setup.context.0),
    );
    assert_eq!((code, running.status()), (0, CL_CONTEXT_TERMINATED_KHR));
    drop(buffer);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(freed.load(Ordering::SeqCst), 0, "the kernel uses it");
    open.store(1, Ordering::SeqCst);
    assert!(soon(|| freed.load(Ordering::SeqCst) == 1));
    assert_eq!(bytes[0], 7, "a work-group that runs goes on to its end");
    call!(clSVMFree(setup.context.0, open.as_ptr().cast()));
}

#[test]
fn other_contexts_are_not_terminated() {
    let setup = Setup::new();
    let terminates = setup.has_extension("cl_khr_terminate_context");
    assert_eq!(terminate(&setup, setup.context.0), CL_INVALID_OPERATION);
    assert_eq!(terminate(&setup, null_mut()), CL_INVALID_CONTEXT);
    assert_eq!(terminate(&setup, setup.queue.0), CL_INVALID_CONTEXT);
    assert_eq!(terminate(&setup, user_data(64)), CL_INVALID_CONTEXT);
    assert_eq!(setup.read::<u32>(&setup.buffer_of(&[5u32]), 1), [5]);
    let device = setup.device;
    let mut list = [TERMINATE, 0, 0];
    let without = Context(create!(clCreateContext(
        list.as_ptr(),
        1,
        &device,
        None,
        null_mut()
    )));
    assert_eq!(terminate(&setup, without.0), CL_INVALID_OPERATION);
    list[1] = 1;
    if terminates {
        let can = info_value!(
            u64,
            clGetDeviceInfo(device),
            CL_DEVICE_TERMINATE_CAPABILITY_KHR
        );
        assert_eq!(can, 1);
        let with = Context(create!(clCreateContext(
            list.as_ptr(),
            1,
            &device,
            None,
            null_mut()
        )));
        assert_eq!(terminate(&setup, with.0), 0);
    } else {
        create_fails!(
            CL_INVALID_PROPERTY,
            clCreateContext(list.as_ptr(), 1, &device, None, null_mut())
        );
        fails!(
            CL_INVALID_VALUE,
            clGetDeviceInfo(
                device,
                CL_DEVICE_TERMINATE_CAPABILITY_KHR,
                0,
                null_mut(),
                null_mut()
            )
        );
    }
}
