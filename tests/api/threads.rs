//! Many threads at once, rightly and wrongly.

use super::buffers::Random;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, ok, Buffer, Event, Setup};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

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
