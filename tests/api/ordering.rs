//! Tests of order where part of a command is done by the host: found by the stress test
//! (`tests/src/bin/stress`).

use pumice_tests::sys::*;
use pumice_tests::{ok, Buffer, Event, Queue, Setup};
use std::ptr::{null, null_mut};

const SIZE: usize = 300_000;

fn start_read(queue: &Queue, buffer: &Buffer, data: &mut [u8], wait: &[cl_event]) -> Event {
    let mut event = null_mut();
    ok!(clEnqueueReadBuffer(
        queue.0,
        buffer.0,
        CL_FALSE,
        0,
        data.len(),
        data.as_mut_ptr().cast(),
        wait.len() as u32,
        if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        },
        &mut event
    ));
    Event(event)
}

fn start_fill(queue: &Queue, buffer: &Buffer, value: u8) {
    ok!(clEnqueueFillBuffer(
        queue.0,
        buffer.0,
        (&raw const value).cast(),
        1,
        0,
        SIZE,
        0,
        null(),
        null_mut()
    ));
}

/// A marker and a barrier of an out-of-order queue come after the host's part of reads before them.
#[test]
fn markers_wait_for_the_hosts_part() {
    let setup = Setup::with_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let (buffer, other) = (setup.buffer(SIZE), setup.buffer(SIZE));
    for round in 0..40u8 {
        let mut data = vec![0u8; SIZE];
        start_fill(&setup.queue, &buffer, round + 1);
        ok!(clEnqueueBarrierWithWaitList(
            setup.queue.0,
            0,
            null(),
            null_mut()
        ));
        let _read = start_read(&setup.queue, &buffer, &mut data, &[]);
        let mut event = null_mut();
        if round % 2 == 0 {
            ok!(clEnqueueMarkerWithWaitList(
                setup.queue.0,
                0,
                null(),
                &mut event
            ));
        } else {
            // A command after a barrier.
            ok!(clEnqueueBarrierWithWaitList(
                setup.queue.0,
                0,
                null(),
                null_mut()
            ));
            ok!(clEnqueueFillBuffer(
                setup.queue.0,
                other.0,
                (&raw const round).cast(),
                1,
                0,
                16,
                0,
                null(),
                &mut event
            ));
        }
        assert_eq!(Event(event).wait(), 0);
        assert!(data.iter().all(|&byte| byte == round + 1), "round {round}");
    }
}

/// A command that is held for the host's part of another gets that one submitted, in its own queue and in another.
#[test]
fn what_a_held_command_waits_for_is_submitted() {
    for same in [false, true] {
        let setup = Setup::with_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        let second = setup.new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        let buffer = setup.buffer(SIZE);
        let (mut first, mut again) = (vec![0u8; SIZE], vec![0u8; SIZE]);
        start_fill(&setup.queue, &buffer, 7);
        ok!(clEnqueueBarrierWithWaitList(
            setup.queue.0,
            0,
            null(),
            null_mut()
        ));
        let read = start_read(&setup.queue, &buffer, &mut first, &[]);
        let queue = if same { &setup.queue } else { &second };
        let after = start_read(queue, &buffer, &mut again, &[read.0]);
        // Polls flush the queue of the command alone.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while after.status() > 0 && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(after.status(), 0);
        assert!(first == again && first.iter().all(|&byte| byte == 7));
    }
}

/// Checks that a failure before a marker or barrier without a wait list does not make it fail, nor
/// what comes after.
#[test]
fn barriers_do_not_spread_failure() {
    for properties in [0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let setup = Setup::with_queue(properties);
        let buffer = setup.buffer(SIZE);
        let user = Event::user(&setup.context);
        let mut data = vec![0u8; 64];
        let doomed = start_read(&setup.queue, &buffer, &mut data, &[user.0]);
        let (mut marker, mut after) = (null_mut(), null_mut());
        ok!(clEnqueueMarkerWithWaitList(
            setup.queue.0,
            0,
            null(),
            &mut marker
        ));
        ok!(clEnqueueBarrierWithWaitList(
            setup.queue.0,
            0,
            null(),
            null_mut()
        ));
        ok!(clEnqueueFillBuffer(
            setup.queue.0,
            buffer.0,
            [9u8].as_ptr().cast(),
            1,
            0,
            64,
            0,
            null(),
            &mut after
        ));
        let (marker, after) = (Event(marker), Event(after));
        assert!(marker.status() > 0);
        user.finish(-5);
        assert_eq!(doomed.wait(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        assert_eq!((marker.wait(), after.wait()), (0, 0));
        assert_eq!(setup.read::<u8>(&buffer, 64), vec![9; 64]);
    }
}
