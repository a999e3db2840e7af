//! Events: user events, failure, callbacks, profiling.

use pumice_tests::sys::*;
use pumice_tests::{create, fails, info_value, ok, user_data, Buffer, Event, Queue, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn fill(queue: &Queue, buffer: &Buffer, value: u32, wait: &[cl_event]) -> Event {
    let mut event = null_mut();
    let list = if wait.is_empty() {
        null()
    } else {
        wait.as_ptr()
    };
    ok!(clEnqueueFillBuffer(
        queue.0,
        buffer.0,
        (&raw const value).cast(),
        4,
        0,
        256,
        wait.len() as u32,
        list,
        &mut event
    ));
    Event(event)
}

fn until(condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn queries() {
    let setup = Setup::new();
    let buffer = setup.buffer(256);
    let event = fill(&setup.queue, &buffer, 1, &[]);
    let e = event.0;
    assert_eq!(
        info_value!(u32, clGetEventInfo(e), CL_EVENT_COMMAND_TYPE),
        CL_COMMAND_FILL_BUFFER
    );
    let queue = setup.queue.0 as usize;
    assert_eq!(
        info_value!(usize, clGetEventInfo(e), CL_EVENT_COMMAND_QUEUE),
        queue
    );
    let context = setup.context.0 as usize;
    assert_eq!(
        info_value!(usize, clGetEventInfo(e), CL_EVENT_CONTEXT),
        context
    );
    assert_eq!(
        info_value!(u32, clGetEventInfo(e), CL_EVENT_REFERENCE_COUNT),
        1
    );
    assert_eq!(event.wait(), CL_SUCCESS);
    assert_eq!(event.status(), CL_COMPLETE);
    fails!(
        CL_INVALID_VALUE,
        clGetEventInfo(e, 0x1234, 0, null_mut(), null_mut())
    );
    fails!(CL_INVALID_VALUE, clWaitForEvents(0, &e));
    fails!(CL_INVALID_VALUE, clWaitForEvents(1, null()));
    let user = Event::user(&setup.context);
    assert_eq!(
        info_value!(u32, clGetEventInfo(user.0), CL_EVENT_COMMAND_TYPE),
        CL_COMMAND_USER
    );
    assert_eq!(
        info_value!(usize, clGetEventInfo(user.0), CL_EVENT_COMMAND_QUEUE),
        0
    );
    assert_eq!(user.status(), CL_SUBMITTED);
    user.finish(CL_COMPLETE);
}

#[test]
fn user_events_hold_commands_back() {
    let setup = Setup::new();
    let buffer = setup.buffer_of(&[0u32; 64]);
    let gate = Event::user(&setup.context);
    let held = fill(&setup.queue, &buffer, 7, &[gate.0]);
    // In order: what comes later waits too.
    let later = fill(&setup.queue, &buffer, 8, &[]);
    ok!(clFlush(setup.queue.0));
    std::thread::sleep(Duration::from_millis(30));
    assert!(held.status() > CL_COMPLETE);
    assert!(later.status() > CL_COMPLETE);
    let other = setup.new_queue(0);
    let mut seen = [1u32; 64];
    ok!(clEnqueueReadBuffer(
        other.0,
        buffer.0,
        1,
        0,
        256,
        seen.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(seen, [0; 64]);
    gate.finish(CL_COMPLETE);
    assert_eq!(later.wait(), CL_SUCCESS);
    assert_eq!(held.status(), CL_COMPLETE);
    assert_eq!(setup.read::<u32>(&buffer, 64), vec![8; 64]);
}

#[test]
fn a_user_event_is_set_once() {
    let setup = Setup::new();
    let user = Event::user(&setup.context);
    fails!(CL_INVALID_VALUE, clSetUserEventStatus(user.0, CL_SUBMITTED));
    ok!(clSetUserEventStatus(user.0, CL_COMPLETE));
    fails!(
        CL_INVALID_OPERATION,
        clSetUserEventStatus(user.0, CL_COMPLETE)
    );
    let buffer = setup.buffer(256);
    let event = fill(&setup.queue, &buffer, 0, &[]);
    fails!(CL_INVALID_EVENT, clSetUserEventStatus(event.0, CL_COMPLETE));
    assert_eq!(event.wait(), CL_SUCCESS);
}

#[test]
fn failures_spread() {
    let setup = Setup::with_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let buffer = setup.buffer_of(&[5u32; 64]);
    let gate = Event::user(&setup.context);
    let first = fill(&setup.queue, &buffer, 1, &[gate.0]);
    let second = fill(&setup.queue, &buffer, 2, &[first.0]);
    let other = setup.new_queue(0);
    let third = fill(&other, &buffer, 3, &[second.0]);
    gate.finish(-42);
    assert_eq!(third.wait(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    assert_eq!(gate.status(), -42);
    for event in [&first, &second, &third] {
        assert!(event.status() < 0, "status {}", event.status());
    }
    ok!(clFinish(setup.queue.0));
    ok!(clFinish(other.0));
    // None of them ran, and the queues go on working.
    assert_eq!(setup.read::<u32>(&buffer, 64), vec![5; 64]);
    assert_eq!(fill(&other, &buffer, 6, &[]).wait(), CL_SUCCESS);
    assert_eq!(setup.read::<u32>(&buffer, 64), vec![6; 64]);
    fails!(
        CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        clEnqueueReadBuffer(
            setup.queue.0,
            buffer.0,
            1,
            0,
            4,
            [0u32; 1].as_mut_ptr().cast(),
            1,
            &gate.0,
            null_mut()
        )
    );
}

#[test]
fn chains_over_queues() {
    let setup = Setup::new();
    let queues = [
        setup.new_queue(0),
        setup.new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
    ];
    let buffer = setup.buffer_of(&[1u32; 1]);
    let kernel = setup.kernel_of("kernel void up(global uint *p) { *p = *p * 5 + 3; }", "up");
    kernel.set_buffer(0, &buffer);
    let mut last: Option<Event> = None;
    let mut expected = 1u32;
    for step in 0..200 {
        let mut event = null_mut();
        let (count, list) = last.as_ref().map_or((0, null()), |e| (1, &raw const e.0));
        ok!(clEnqueueNDRangeKernel(
            queues[step % 2].0,
            kernel.0,
            1,
            null(),
            &1,
            null(),
            count,
            list,
            &mut event
        ));
        last = Some(Event(event));
        expected = expected.wrapping_mul(5).wrapping_add(3);
    }
    assert_eq!(last.map(|e| e.wait()), Some(CL_SUCCESS));
    assert_eq!(setup.read::<u32>(&buffer, 1), vec![expected]);
}

/// A wait for an event of a queue that nobody flushed.
#[test]
fn waiting_flushes() {
    let setup = Setup::new();
    let buffer = setup.buffer(256);
    let event = fill(&setup.queue, &buffer, 1, &[]);
    assert!(
        until(|| event.status() == CL_COMPLETE),
        "polling must make progress"
    );
    let event = fill(&setup.queue, &buffer, 2, &[]);
    let other = setup.new_queue(0);
    assert_eq!(fill(&other, &buffer, 3, &[event.0]).wait(), CL_SUCCESS);
}

static CALLS: AtomicU32 = AtomicU32::new(0);
static LAST: AtomicI32 = AtomicI32::new(77);

unsafe extern "C" fn called(event: cl_event, status: cl_int, user_data: *mut c_void) {
    // Calling the API from a callback is allowed, as long as it does not block.
    let mut kind = 0u32;
    // SAFETY: the pointers live across the call.
    let code = unsafe {
        (pumice_tests::cl().clGetEventInfo)(
            event,
            CL_EVENT_COMMAND_TYPE,
            4,
            (&raw mut kind).cast(),
            null_mut(),
        )
    };
    assert_eq!((code, kind), (0, CL_COMMAND_FILL_BUFFER));
    if user_data as usize == 0x55 {
        LAST.store(status, Ordering::SeqCst);
    }
    CALLS.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn user_called(_event: cl_event, status: cl_int, user_data: *mut c_void) {
    // SAFETY: the test passes a place that outlives the event.
    unsafe { &*user_data.cast::<AtomicI32>() }.store(status, Ordering::SeqCst);
}

#[test]
fn callbacks() {
    let setup = Setup::new();
    let buffer = setup.buffer(256);
    let gate = Event::user(&setup.context);
    let event = fill(&setup.queue, &buffer, 1, &[gate.0]);
    for kind in [CL_SUBMITTED, CL_RUNNING, CL_COMPLETE] {
        let data = if kind == CL_COMPLETE {
            user_data(0x55)
        } else {
            null_mut()
        };
        ok!(clSetEventCallback(event.0, kind, Some(called), data));
    }
    fails!(
        CL_INVALID_VALUE,
        clSetEventCallback(event.0, CL_QUEUED, Some(called), null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clSetEventCallback(event.0, CL_COMPLETE, None, null_mut())
    );
    assert_eq!(CALLS.load(Ordering::SeqCst), 0);
    gate.finish(CL_COMPLETE);
    ok!(clFlush(setup.queue.0));
    assert!(until(|| CALLS.load(Ordering::SeqCst) == 3));
    assert_eq!(LAST.load(Ordering::SeqCst), CL_COMPLETE);
    // One that is registered after the fact is called at once.
    ok!(clSetEventCallback(
        event.0,
        CL_COMPLETE,
        Some(called),
        null_mut()
    ));
    assert!(until(|| CALLS.load(Ordering::SeqCst) == 4));
    // Failure.
    let place = AtomicI32::new(77);
    let user = Event::user(&setup.context);
    ok!(clSetEventCallback(
        user.0,
        CL_COMPLETE,
        Some(user_called),
        (&raw const place).cast_mut().cast()
    ));
    user.finish(-9);
    assert!(until(|| place.load(Ordering::SeqCst) == -9));
}

/// A device that begins at once is not done before it was given the command.
#[test]
fn short_kernels_take_time() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void f(global int *p) { for (int i = 0; i < 2000; i++) p[i & 15] += i; }",
        "f",
    );
    let buffer = setup.buffer(64);
    kernel.set_buffer(0, &buffer);
    for round in 0..300 {
        let queue = setup.new_queue(CL_QUEUE_PROFILING_ENABLE);
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            queue.0,
            kernel.0,
            1,
            null(),
            [1].as_ptr(),
            null(),
            0,
            null(),
            &mut event
        ));
        let event = Event(event);
        ok!(clFinish(queue.0));
        let time = |param| info_value!(u64, clGetEventProfilingInfo(event.0), param);
        let took = time(CL_PROFILING_COMMAND_END) - time(CL_PROFILING_COMMAND_START);
        assert!(took > 0, "round {round}");
    }
}

#[test]
fn profiling() {
    let setup = Setup::with_queue(CL_QUEUE_PROFILING_ENABLE);
    let buffer = setup.buffer(1 << 20);
    let mut previous_end = 0;
    for round in 0..20u32 {
        let mut event = null_mut();
        if round % 2 == 0 {
            ok!(clEnqueueFillBuffer(
                setup.queue.0,
                buffer.0,
                (&raw const round).cast(),
                4,
                0,
                1 << 20,
                0,
                null(),
                &mut event
            ));
        } else {
            let data = vec![round; 1 << 18];
            ok!(clEnqueueWriteBuffer(
                setup.queue.0,
                buffer.0,
                1,
                0,
                1 << 20,
                data.as_ptr().cast(),
                0,
                null(),
                &mut event
            ));
        }
        let event = Event(event);
        assert_eq!(event.wait(), CL_SUCCESS);
        let time = |param| info_value!(u64, clGetEventProfilingInfo(event.0), param);
        let times = [
            time(CL_PROFILING_COMMAND_QUEUED),
            time(CL_PROFILING_COMMAND_SUBMIT),
            time(CL_PROFILING_COMMAND_START),
            time(CL_PROFILING_COMMAND_END),
            time(CL_PROFILING_COMMAND_COMPLETE),
        ];
        assert!(times.is_sorted() && times[0] > 0, "{times:?}");
        assert!(times[4] - times[0] < 20_000_000_000, "{times:?}");
        assert!(times[3] >= previous_end, "in order");
        previous_end = times[3];
    }
    let gate = Event::user(&setup.context);
    fails!(
        CL_PROFILING_INFO_NOT_AVAILABLE,
        clGetEventProfilingInfo(
            gate.0,
            CL_PROFILING_COMMAND_START,
            0,
            null_mut(),
            null_mut()
        )
    );
    let held = fill(&setup.queue, &buffer, 0, &[gate.0]);
    fails!(
        CL_PROFILING_INFO_NOT_AVAILABLE,
        clGetEventProfilingInfo(
            held.0,
            CL_PROFILING_COMMAND_START,
            0,
            null_mut(),
            null_mut()
        )
    );
    gate.finish(CL_COMPLETE);
    assert_eq!(held.wait(), CL_SUCCESS);
    fails!(
        CL_INVALID_VALUE,
        clGetEventProfilingInfo(held.0, 0x1234, 0, null_mut(), null_mut())
    );
    let plain = Setup::new();
    let buffer = plain.buffer(256);
    let event = fill(&plain.queue, &buffer, 0, &[]);
    assert_eq!(event.wait(), CL_SUCCESS);
    fails!(
        CL_PROFILING_INFO_NOT_AVAILABLE,
        clGetEventProfilingInfo(event.0, CL_PROFILING_COMMAND_END, 0, null_mut(), null_mut())
    );
}

#[test]
fn markers_and_barriers() {
    let setup = Setup::with_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let buffer = setup.buffer(256);
    let gate = Event::user(&setup.context);
    let held = fill(&setup.queue, &buffer, 1, &[gate.0]);
    let mut marker = null_mut();
    ok!(clEnqueueMarkerWithWaitList(
        setup.queue.0,
        0,
        null(),
        &mut marker
    ));
    let marker = Event(marker);
    let mut barrier = null_mut();
    ok!(clEnqueueBarrierWithWaitList(
        setup.queue.0,
        1,
        &held.0,
        &mut barrier
    ));
    let barrier = Event(barrier);
    let after = fill(&setup.queue, &buffer, 2, &[]);
    ok!(clFlush(setup.queue.0));
    std::thread::sleep(Duration::from_millis(20));
    for event in [&held, &marker, &barrier, &after] {
        assert!(event.status() > CL_COMPLETE);
    }
    gate.finish(CL_COMPLETE);
    assert_eq!(after.wait(), CL_SUCCESS);
    assert_eq!(marker.wait(), CL_SUCCESS);
    assert_eq!(barrier.status(), CL_COMPLETE);
    assert_eq!(
        info_value!(u32, clGetEventInfo(marker.0), CL_EVENT_COMMAND_TYPE),
        CL_COMMAND_MARKER
    );
    assert_eq!(
        info_value!(u32, clGetEventInfo(barrier.0), CL_EVENT_COMMAND_TYPE),
        CL_COMMAND_BARRIER
    );
    assert_eq!(setup.read::<u32>(&buffer, 64), vec![2; 64]);
    fails!(CL_INVALID_VALUE, clEnqueueMarker(setup.queue.0, null_mut()));
    ok!(clEnqueueBarrier(setup.queue.0));
}

/// An event outlives its queue and context handles.
#[test]
fn events_outlive_their_queue() {
    let setup = Setup::new();
    let buffer = setup.buffer(256);
    let event = fill(&setup.queue, &buffer, 1, &[]);
    drop(buffer);
    let context = setup.context.0;
    drop(setup);
    assert_eq!(event.wait(), CL_SUCCESS);
    assert_eq!(
        info_value!(usize, clGetEventInfo(event.0), CL_EVENT_CONTEXT),
        context as usize
    );
}

/// A gate that is never opened is released with commands behind it.
#[test]
fn an_abandoned_user_event() {
    let setup = Setup::new();
    let buffer = setup.buffer(256);
    let gate = create!(clCreateUserEvent(setup.context.0));
    let held = fill(&setup.queue, &buffer, 1, &[gate]);
    ok!(clSetUserEventStatus(gate, -1));
    ok!(clReleaseEvent(gate));
    assert_eq!(held.wait(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}
