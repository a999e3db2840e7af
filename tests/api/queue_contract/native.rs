//! Native kernels that enqueue while the program waits, and chains over two queues.

use super::fill;
use pumice_tests::gate::{returns, runs_native_kernels};
use pumice_tests::sys::*;
use pumice_tests::{create, left_out, ok, Event, Queue, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// The fill that a native kernel enqueues.
struct Job {
    queue: cl_command_queue,
    buffer: cl_mem,
}

unsafe extern "C" fn enqueues(args: *mut c_void) {
    // SAFETY: enqueued with such an argument below.
    let job = unsafe { args.cast::<Job>().read() };
    std::thread::sleep(Duration::from_millis(50));
    let one = 1u32;
    ok!(clEnqueueFillBuffer(
        job.queue,
        job.buffer,
        (&raw const one).cast(),
        4,
        0,
        4,
        0,
        null(),
        null_mut()
    ));
    ok!(clFlush(job.queue));
}

/// Enqueues a native kernel that enqueues a fill of the second buffer into a queue. Its event.
fn native(queue: &Queue, mut job: Job) -> Event {
    let mut event = null_mut();
    ok!(clEnqueueNativeKernel(
        queue.0,
        Some(enqueues),
        (&raw mut job).cast(),
        size_of::<Job>(),
        0,
        null(),
        null_mut(),
        0,
        null(),
        &mut event
    ));
    ok!(clFlush(queue.0));
    Event(event)
}

/// The program waits meanwhile in a read, a map or clFinish of that queue.
#[test]
fn native_kernels_enqueue_where_the_program_waits() {
    for properties in [0, CL_QUEUE_PROFILING_ENABLE] {
        let setup = Setup::with_queue(properties);
        if !runs_native_kernels(&setup) {
            return left_out("no native kernels");
        }
        let (queue, first) = (setup.queue.0, setup.new_queue(0));
        let (buffer, other) = (setup.buffer_of(&[9u32; 64]), setup.buffer_of(&[0u32; 64]));
        let job = || Job {
            queue,
            buffer: other.0,
        };
        let read = |wait: &[cl_event]| {
            let mut word = 0u32;
            let list = if wait.is_empty() {
                null()
            } else {
                wait.as_ptr()
            };
            let mut event = null_mut();
            ok!(clEnqueueReadBuffer(
                queue,
                buffer.0,
                1,
                0,
                4,
                (&raw mut word).cast(),
                wait.len() as cl_uint,
                list,
                &mut event
            ));
            drop(Event(event));
            assert_eq!(word, 9);
        };
        let waits: [(&str, &dyn Fn()); 4] = [
            ("a read behind it", &|| {
                drop(native(&setup.queue, job()));
                read(&[]);
            }),
            ("a read that waits for its event", &|| {
                let event = native(&first, job());
                read(&[event.0]);
            }),
            ("a map behind it", &|| {
                drop(native(&setup.queue, job()));
                let mut event = null_mut();
                let mapped = create!(clEnqueueMapBuffer(
                    queue,
                    buffer.0,
                    1,
                    CL_MAP_READ,
                    0,
                    64,
                    0,
                    null(),
                    &mut event
                ));
                drop(Event(event));
                ok!(clEnqueueUnmapMemObject(
                    queue,
                    buffer.0,
                    mapped,
                    0,
                    null(),
                    null_mut()
                ));
            }),
            ("clFinish", &|| {
                drop(native(&setup.queue, job()));
                ok!(clFinish(queue));
            }),
        ];
        for (what, wait) in waits {
            setup.write(&other, &[0u32]);
            // Nothing but the end of the process helps where it hangs.
            let lost = || {
                eprintln!("{what}: nothing can be enqueued meanwhile");
                std::process::abort()
            };
            returns(what, lost, wait);
            ok!(clFinish(first.0));
            ok!(clFinish(queue));
            assert_eq!(setup.read::<u32>(&other, 1), [1], "{what}");
        }
    }
}

/// Commands alternately of two queues, each of which waits for the one before, and nobody for any but the last.
#[test]
fn chains_over_two_queues_end() {
    let setup = Setup::new();
    let source = "kernel void next(global uint *p) { *p = *p * 5 + 1; }";
    let kernel = setup.kernel_of(source, "next");
    let buffer = setup.buffer_of(&[0u32]);
    kernel.set_buffer(0, &buffer);
    let queues = [setup.new_queue(0), setup.new_queue(0)];
    let mut last = fill(&queues[1], &buffer, 1, 4, &[]);
    let mut expected = 1u32;
    for number in 0..3000 {
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            queues[number % 2].0,
            kernel.0,
            1,
            null(),
            [1].as_ptr(),
            null(),
            1,
            &last.0,
            &mut event
        ));
        last = Event(event);
        expected = expected.wrapping_mul(5).wrapping_add(1);
    }
    for queue in &queues {
        ok!(clFlush(queue.0));
    }
    assert_eq!(last.wait(), CL_SUCCESS);
    assert_eq!(setup.read::<u32>(&buffer, 1), [expected]);
}
