//! Forked children of a process that uses a device: they get errors, or a device that works, and never hang.

use pumice_tests::sys::*;
use pumice_tests::{call, good_child, job, left_out, ok, Event, Setup};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

const SOURCE: &str = "kernel void add(global int *p, int n) { p[get_global_id(0)] += n; }";
/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Forks. What the child finds wrong is its exit status.
pub fn fork(work: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the child works and ends, and returns to nobody.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no child");
    if pid == 0 {
        // A panic that left here would end the thread, and with the only one the process, by way of the exit handlers of
        // drivers.
        let wrong = catch_unwind(AssertUnwindSafe(work)).unwrap_or(101);
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(wrong) };
    }
    pid
}

/// Returns the number of errors that a child found, once it has ended.
pub fn found_by(pid: libc::pid_t) -> i32 {
    let end = Instant::now() + PATIENCE;
    let mut status = 0;
    // SAFETY: the child's id, and a place for its status.
    while unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > end {
            // SAFETY: the child of this process, not waited for yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(libc::WIFEXITED(status), "status {status:#x}");
    libc::WEXITSTATUS(status)
}

fn in_child(work: impl FnOnce() -> i32) -> i32 {
    found_by(fork(work))
}

/// Runs a kernel on 64 words. Whether they are right.
fn works(setup: &Setup) -> bool {
    let kernel = setup.kernel_of(SOURCE, "add");
    let buffer = setup.buffer_of(&[1i32; 64]);
    kernel.set_buffer(0, &buffer).set(1, 5i32);
    setup.run(&kernel, &[64], None);
    setup.read::<i32>(&buffer, 64) == [6; 64]
}

/// The number of the first call that does not fail as it should; 0: all do.
fn refused(setup: &Setup, mem: cl_mem, event: cl_event) -> i32 {
    let (queue, device) = (setup.queue.0, setup.device);
    let mut code = 0;
    let mut word = 0u32;
    let word = (&raw mut word).cast();
    let mut size = 0usize;
    let codes = [
        call!(clFinish(queue)),
        call!(clFlush(queue)),
        call!(clWaitForEvents(1, &event)),
        call!(clEnqueueReadBuffer(
            queue,
            mem,
            CL_TRUE,
            0,
            4,
            word,
            0,
            null(),
            null_mut()
        )),
        call!(clEnqueueMarkerWithWaitList(queue, 0, null(), null_mut())),
        call!(clGetDeviceInfo(
            device,
            CL_DEVICE_NAME,
            0,
            null_mut(),
            &mut size
        )),
        {
            let made = call!(clCreateContext(
                null(),
                1,
                &device,
                None,
                null_mut(),
                &mut code
            ));
            if made.is_null() {
                code
            } else {
                0
            }
        },
        {
            let made = call!(clCreateBuffer(
                setup.context.0,
                0,
                64,
                null_mut(),
                &mut code
            ));
            if made.is_null() {
                code
            } else {
                0
            }
        },
        // What destructors do is done without a word.
        match call!(clReleaseMemObject(mem)) {
            CL_SUCCESS => CL_OUT_OF_RESOURCES,
            other => other,
        },
    ];
    let wrong = codes.iter().position(|&code| code != CL_OUT_OF_RESOURCES);
    wrong.map_or(0, |at| at as i32 + 1)
}

/// Not a test of its own: the child of the one below, and the parent of further ones.
#[test]
fn inner() {
    let Some(mode) = job() else {
        return;
    };
    let setup = Setup::new();
    match mode.as_str() {
        // A context and a queue that had nothing to do are as good in the child.
        "fresh" => assert_eq!(in_child(|| i32::from(!works(&setup))), 0),
        "used" => {
            assert!(works(&setup));
            let buffer = setup.buffer_of(&[0u32; 16]);
            let event = Event::user(&setup.context);
            event.finish(CL_COMPLETE);
            assert_eq!(in_child(|| refused(&setup, buffer.0, event.0)), 0);
        }
        // With a kernel under way, and threads in calls that last.
        "busy" => {
            let source = "kernel void busy(global uint *p) {
                uint sum = p[0];
                for (int i = 0; i < 200000; i++) sum = sum * 3 + p[i & 63];
                p[get_global_id(0)] = sum;
            }";
            let kernel = setup.kernel_of(source, "busy");
            let buffer = setup.buffer_of(&[1u32; 4096]);
            kernel.set_buffer(0, &buffer);
            let event = Event::user(&setup.context);
            setup.enqueue(&kernel, &[4096], None);
            ok!(clFlush(setup.queue.0));
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| event.wait());
                std::thread::sleep(Duration::from_millis(20));
                for _ in 0..8 {
                    assert_eq!(in_child(|| refused(&setup, buffer.0, event.0)), 0);
                }
                event.finish(CL_COMPLETE);
                assert_eq!(waits.join().expect("the thread"), CL_COMPLETE);
            });
        }
        other => panic!("{other}"),
    }
    // The parent has not noticed.
    assert!(works(&setup));
}

#[test]
fn children_are_refused_or_work() {
    for mode in ["fresh", "used", "busy"] {
        good_child("forks::inner", mode, &[("PUMICE_DEVICES", "cpu")]);
    }
}

/// Drivers have threads, too, and nothing that a child could do about them.
#[test]
fn children_of_a_driver_are_refused() {
    if std::env::var("PUMICE_DEVICES").is_ok_and(|devices| devices.starts_with("cpu")) {
        return left_out("the device is the processor");
    }
    good_child::<&str>("forks::inner", "used", &[]);
}
