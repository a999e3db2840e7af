//! Many threads at once, rightly and wrongly.

use super::buffers::Random;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, ok, Buffer, Event, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn one_queue_from_many_threads() {
    let setup = Setup::new();
    let source = "kernel void add(global uint *p, uint n) { atomic_add(p, n); }";
    let program = setup.build(source);
    let total = setup.buffer_of(&[0u32; 1]);
    thread::scope(|scope| {
        for part in 1..=8u32 {
            let (setup, program, total) = (&setup, &program, &total);
            scope.spawn(move || {
                // A kernel object belongs to one thread.
                let kernel = setup.kernel(program, "add");
                kernel.set_buffer(0, total).set(1, part);
                let mine = setup.buffer(4096);
                for round in 0..40u32 {
                    setup.enqueue(&kernel, &[16], None);
                    let data = [part * 1000 + round; 1024];
                    setup.write(&mine, &data);
                    assert_eq!(setup.read::<u32>(&mine, 1024), data);
                }
            });
        }
    });
    ok!(clFinish(setup.queue.0));
    assert_eq!(setup.read::<u32>(&total, 1), vec![36 * 16 * 40]);
}

#[test]
fn builds_in_many_threads() {
    let setup = Setup::new();
    thread::scope(|scope| {
        for id in 0..4u32 {
            let setup = &setup;
            scope.spawn(move || {
                let source =
                    format!("kernel void f(global uint *p) {{ p[get_global_id(0)] = {id}u; }}");
                let kernel = setup.kernel_of(&source, "f");
                let buffer = setup.buffer(256);
                kernel.set_buffer(0, &buffer);
                setup.run(&kernel, &[64], None);
                assert_eq!(setup.read::<u32>(&buffer, 64), vec![id; 64]);
            });
        }
    });
}

/// Kernels of one program, each compiled by the driver in the thread that first runs it, while others run.
#[test]
fn kernels_begin_in_many_threads() {
    const THREADS: u32 = 8;
    const KERNELS: u32 = 6;
    let setup = Setup::new();
    let source: String = (0..THREADS * KERNELS)
        .map(|k| {
            format!(
                "kernel void k{k}(global uint *p, uint n) {{
                    uint x = get_global_id(0);
                    for (uint i = 0; i < n; i++) x = (x ^ {}u) * {}u + (x >> {});
                    p[get_global_id(0)] = x;
                }}\n",
                k * 77,
                2 * k + 5,
                k % 31 + 1
            )
        })
        .collect();
    let program = setup.build(&source);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (setup, program) = (&setup, &program);
            scope.spawn(move || {
                let queue = setup.new_queue(0);
                let buffer = setup.buffer(256);
                for k in (0..KERNELS).map(|round| round * THREADS + thread) {
                    let kernel = setup.kernel(program, &format!("k{k}"));
                    kernel.set_buffer(0, &buffer).set(1, 9u32);
                    queue.enqueue(&kernel, &[64], None);
                    ok!(clFinish(queue.0));
                    let right = (0..64u32).map(|id| {
                        (0..9).fold(id, |x, _| {
                            let product = (x ^ (k * 77)).wrapping_mul(2 * k + 5);
                            product.wrapping_add(x >> (k % 31 + 1))
                        })
                    });
                    let right: Vec<u32> = right.collect();
                    assert_eq!(setup.read::<u32>(&buffer, 64), right, "kernel {k}");
                }
            });
        }
    });
}

/// User events set by other threads, queues that wait for one another.
#[test]
fn gates_opened_by_other_threads() {
    let setup = Setup::new();
    let buffer = setup.buffer_of(&[0u32; 64]);
    for round in 0..20u32 {
        let gate = Event::user(&setup.context);
        let queue = setup.new_queue(0);
        let mut event = null_mut();
        ok!(clEnqueueFillBuffer(
            queue.0,
            buffer.0,
            (&raw const round).cast(),
            4,
            0,
            256,
            1,
            &gate.0,
            &mut event
        ));
        let event = Event(event);
        let (opened, finished) = (&gate, &queue);
        thread::scope(|scope| {
            scope.spawn(move || opened.finish(CL_COMPLETE));
            scope.spawn(move || ok!(clFinish(finished.0)));
            assert_eq!(event.wait(), CL_SUCCESS);
        });
        assert_eq!(setup.read::<u32>(&buffer, 64), vec![round; 64]);
    }
}

/// Threads that retain, release, use and destroy the same buffers without agreeing: every call must return a code.
/// Handles are passed where the loader does not follow them.
#[test]
fn handles_that_die_meanwhile() {
    let setup = Setup::new();
    let slots: Vec<AtomicPtr<libc::c_void>> = (0..4).map(|_| AtomicPtr::new(null_mut())).collect();
    thread::scope(|scope| {
        for id in 0..4u64 {
            let (setup, slots) = (&setup, &slots);
            scope.spawn(move || {
                let mut random = Random(id * 7919 + 17);
                let mut word = [0u32; 16];
                for _ in 0..400 {
                    let slot = &slots[random.next(slots.len())];
                    match random.next(3) {
                        0 => {
                            let fresh = create!(clCreateBuffer(
                                setup.context.0,
                                CL_MEM_READ_WRITE,
                                64,
                                null_mut()
                            ));
                            let old = slot.swap(fresh, Ordering::AcqRel);
                            if !old.is_null() {
                                drop(Buffer(old));
                            }
                        }
                        1 => {
                            let mem = slot.load(Ordering::Acquire);
                            let code = call!(clEnqueueReadBuffer(
                                setup.queue.0,
                                mem,
                                1,
                                0,
                                64,
                                word.as_mut_ptr().cast(),
                                0,
                                null(),
                                null_mut()
                            ));
                            assert!(
                                matches!(code, CL_SUCCESS | CL_INVALID_MEM_OBJECT),
                                "{}",
                                code_name(code)
                            );
                        }
                        _ => {
                            let mem = slot.load(Ordering::Acquire);
                            let code = call!(clEnqueueFillBuffer(
                                setup.queue.0,
                                mem,
                                word.as_ptr().cast(),
                                4,
                                0,
                                64,
                                0,
                                null(),
                                null_mut()
                            ));
                            assert!(
                                matches!(code, CL_SUCCESS | CL_INVALID_MEM_OBJECT),
                                "{}",
                                code_name(code)
                            );
                        }
                    }
                }
            });
        }
    });
    ok!(clFinish(setup.queue.0));
    for slot in slots {
        let mem = slot.into_inner();
        if !mem.is_null() {
            drop(Buffer(mem));
        }
    }
}

/// clSetKernelArg of one kernel from many threads is the application's mistake: what is computed is open, but nothing
/// beyond the buffers that were set is touched, and all calls return what they may.
#[test]
fn one_kernel_from_many_threads() {
    let setup = Setup::new();
    let source = "kernel void store(global uint *p, uint n) { p[get_global_id(0)] = n; }";
    let kernel = setup.kernel_of(source, "store");
    let first = setup.buffer_of(&[0u32; 64]);
    kernel.set_buffer(0, &first).set(1, 0u32);
    thread::scope(|scope| {
        for part in 1..=8u32 {
            let (setup, kernel) = (&setup, &kernel);
            scope.spawn(move || {
                for _ in 0..100 {
                    let own = setup.buffer_of(&[0u32; 64]);
                    kernel.set_buffer(0, &own).set(1, part);
                    let code = setup.queue.try_enqueue(kernel, &[64], None);
                    // The buffer of another thread may have gone by now.
                    assert!(
                        [CL_SUCCESS, CL_INVALID_KERNEL_ARGS].contains(&code),
                        "{}",
                        code_name(code)
                    );
                    let seen = setup.read::<u32>(&own, 64);
                    assert!(seen.iter().all(|n| *n <= 8), "{seen:?}");
                }
            });
        }
    });
    kernel.set_buffer(0, &first).set(1, 77u32);
    setup.run(&kernel, &[64], None);
    assert_eq!(setup.read::<u32>(&first, 64), vec![77; 64]);
}

/// The objects that a callback releases: the event that it was called for among others, and the
/// queue and the context.
struct Released {
    handles: [usize; 3],
    calls: AtomicU32,
}

extern "C" fn release_all(event: cl_event, _: cl_int, data: *mut c_void) {
    // SAFETY: the test keeps it until the callback has run.
    let released = unsafe { &*data.cast::<Released>() };
    let [buffer, queue, context] = released.handles.map(std::ptr::without_provenance_mut);
    let codes = [
        call!(clReleaseEvent(event)),
        call!(clReleaseMemObject(buffer)),
        call!(clReleaseCommandQueue(queue)),
        call!(clReleaseContext(context)),
    ];
    let good = codes.iter().filter(|code| **code == CL_SUCCESS).count();
    released.calls.fetch_add(good as u32, Ordering::SeqCst);
}

#[test]
fn callbacks_release_what_they_were_called_for() {
    for round in 0..20 {
        let setup = Setup::new();
        let buffer = setup.buffer(4096);
        let gate = Event::user(&setup.context);
        let mut event = null_mut();
        let zero = 0u32;
        ok!(clEnqueueFillBuffer(
            setup.queue.0,
            buffer.0,
            (&raw const zero).cast(),
            4,
            0,
            4096,
            1,
            &gate.0,
            &mut event
        ));
        let released = Released {
            handles: [
                buffer.0 as usize,
                setup.queue.0 as usize,
                setup.context.0 as usize,
            ],
            calls: AtomicU32::new(0),
        };
        let data = (&raw const released).cast_mut().cast();
        ok!(clSetEventCallback(
            event,
            CL_COMPLETE,
            Some(release_all),
            data
        ));
        // The callback has the only references from now on.
        ok!(clFlush(setup.queue.0));
        std::mem::forget((buffer, setup));
        if round % 2 == 0 {
            gate.finish(CL_COMPLETE);
        } else {
            gate.finish(-5);
        }
        drop(gate);
        let begun = Instant::now();
        while released.calls.load(Ordering::SeqCst) < 4 {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "the callback did not run"
            );
            thread::yield_now();
        }
    }
}

/// All that an application has goes while commands wait and run; those run to their end, or fail with their event.
#[test]
fn contexts_go_with_work_pending() {
    let source = "kernel void spin(global uint *p) { uint n = p[0]; for (uint i = 0; i < 20000; i++) n = n * 5 + i; p[0] = n; }";
    for round in 0..12 {
        let setup = Setup::with_queue(if round % 2 == 0 {
            0
        } else {
            CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
        });
        let second = setup.new_queue(0);
        let kernel = setup.kernel_of(source, "spin");
        let buffer = setup.buffer_of(&[1u32; 64]);
        kernel.set_buffer(0, &buffer);
        let gate = Event::user(&setup.context);
        for _ in 0..3 {
            setup.enqueue(&kernel, &[64], None);
        }
        let mut last = null_mut();
        ok!(clEnqueueMarkerWithWaitList(
            setup.queue.0,
            1,
            &gate.0,
            &mut last
        ));
        let last = Event(last);
        let mut after = null_mut();
        ok!(clEnqueueBarrierWithWaitList(
            second.0, 1, &last.0, &mut after
        ));
        let after = Event(after);
        drop((kernel, buffer, second));
        if round % 3 == 0 {
            // The event goes first: nobody can set it any more, and what waits for it is given up.
            drop((last, after, gate));
            drop(setup);
            continue;
        }
        drop(setup);
        let status = if round % 3 == 1 { CL_COMPLETE } else { -9 };
        gate.finish(status);
        let code = after.wait();
        assert_eq!(
            code == CL_SUCCESS,
            status == CL_COMPLETE,
            "{}",
            code_name(code)
        );
    }
}
