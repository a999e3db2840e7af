//! The contract of a queue (the header of `src/queue/mod.rs`), with commands that wait for the program.

mod images;
mod launches;
mod native;

use opencl_sys::*;
use pumice_tests::gate::{has_gates, returns, runs_native_kernels, soon, Gate, Held};
use pumice_tests::{create, info_value, is_alone, left_out, ok, Buffer, Event, Queue, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn fill(queue: &Queue, buffer: &Buffer, value: u32, size: usize, wait: &[cl_event]) -> Event {
    let mut event = null_mut();
    ok!(clEnqueueFillBuffer(
        queue.0,
        buffer.0,
        (&raw const value).cast(),
        4,
        0,
        size,
        wait.len() as cl_uint,
        if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        },
        &mut event
    ));
    Event(event)
}

unsafe extern "C" fn seen(_: cl_event, _: cl_int, flag: *mut c_void) {
    // SAFETY: the test keeps the flag until it has seen the call.
    unsafe { &*flag.cast::<AtomicBool>() }.store(true, Ordering::SeqCst);
}

/// The command behind it waits for the host.
#[test]
fn an_event_does_not_wait_for_later_commands() {
    let setup = Setup::new();
    let buffer = setup.buffer_of(&[0u32; 64]);
    for flush_between in [false, true] {
        let Some(gate) = Gate::new(&setup) else {
            return left_out("no fine-grained atomics");
        };
        let first = fill(&setup.queue, &buffer, 7, 256, &[]);
        let called = AtomicBool::new(false);
        let user = (&raw const called).cast_mut().cast();
        ok!(clSetEventCallback(first.0, CL_COMPLETE, Some(seen), user));
        if flush_between {
            ok!(clFlush(setup.queue.0));
        }
        gate.enqueue(&setup.queue);
        ok!(clFlush(setup.queue.0));
        assert_eq!(gate.returns("the wait for the event", || first.wait()), 0);
        assert!(soon(|| called.load(Ordering::SeqCst)), "the callback");
        assert!(gate.is_closed());
        gate.open();
        ok!(clFinish(setup.queue.0));
    }
}

/// Transfers that do not block, larger than any staging memory, behind a command that waits for the host.
#[test]
fn calls_that_do_not_block_return_at_once() {
    const SIZE: usize = 40 << 20;
    let setup = Setup::new();
    let Some(gate) = Gate::new(&setup) else {
        return left_out("no fine-grained atomics");
    };
    let queue = setup.queue.0;
    let buffer = setup.buffer(SIZE);
    let (input, mut output) = (vec![3u8; SIZE], vec![0u8; SIZE]);
    fill(&setup.queue, &buffer, 1, SIZE, &[]).wait();
    gate.enqueue(&setup.queue);
    let (source, target) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
    let none = (0, null(), null_mut());
    let pointer = gate.returns("a call that does not block", || {
        let (count, list, event) = none;
        ok!(clEnqueueWriteBuffer(
            queue, buffer.0, 0, 0, SIZE, source, count, list, event
        ));
        ok!(clEnqueueReadBuffer(
            queue, buffer.0, 0, 0, SIZE, target, count, list, event
        ));
        let flags = CL_MAP_READ;
        let pointer = create!(clEnqueueMapBuffer(
            queue, buffer.0, 0, flags, 0, SIZE, count, list, event
        ));
        ok!(clFlush(queue));
        pointer
    });
    assert!(gate.is_closed());
    gate.open();
    ok!(clFinish(queue));
    assert!(output == input);
    // SAFETY: mapped for so many bytes.
    let mapped = unsafe { std::slice::from_raw_parts(pointer as *const u8, SIZE) };
    assert!(mapped == input);
    ok!(clEnqueueUnmapMemObject(
        queue,
        buffer.0,
        pointer,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
}

/// While a thread waits in a call that blocks, another one enqueues into the same queue.
#[test]
fn who_blocks_holds_up_no_other_thread() {
    let setup = Setup::new();
    let Some(gate) = Gate::new(&setup) else {
        return left_out("no fine-grained atomics");
    };
    let (buffer, other) = (setup.buffer_of(&[9u32; 64]), setup.buffer(256));
    gate.enqueue(&setup.queue);
    let (queue, from) = (setup.queue.0 as usize, buffer.0 as usize);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut bytes = [0u32; 64];
            let (queue, from) = (queue as cl_command_queue, from as cl_mem);
            let to = bytes.as_mut_ptr().cast();
            ok!(clEnqueueReadBuffer(
                queue,
                from,
                1,
                0,
                256,
                to,
                0,
                null(),
                null_mut()
            ));
            bytes
        });
        std::thread::sleep(Duration::from_millis(50));
        gate.returns("an enqueue beside a blocking read", || {
            drop(fill(&setup.queue, &other, 1, 256, &[]));
            ok!(clFlush(setup.queue.0));
        });
        assert!(gate.is_closed());
        gate.open();
        assert_eq!(reader.join().expect("no panic"), [9; 64]);
    });
    ok!(clFinish(setup.queue.0));
}

/// A command that is enqueued after clFinish was called, and waits for the program, does not prolong it.
#[test]
fn finish_waits_for_nothing_that_comes_later() {
    for properties in [0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let setup = Setup::with_queue(properties);
        let buffer = setup.buffer_of(&[0u32; 64]);
        let (before, after) = (Held::new(&setup), Held::new(&setup));
        let first = fill(&setup.queue, &buffer, 1, 256, &[before.event.0]);
        let rescue = || after.open();
        returns("clFinish", rescue, || {
            std::thread::scope(|scope| {
                let queue = setup.queue.0 as usize;
                let finish = scope.spawn(move || ok!(clFinish(queue as cl_command_queue)));
                std::thread::sleep(Duration::from_millis(50));
                drop(fill(&setup.queue, &buffer, 2, 256, &[after.event.0]));
                before.open();
                finish.join().expect("no panic");
            });
        });
        assert_eq!(first.status(), CL_COMPLETE);
        after.open();
        ok!(clFinish(setup.queue.0));
    }
}

/// The application keeps the source of a write until that is complete, so nothing need be copied meanwhile.
#[test]
#[cfg(target_os = "linux")]
fn transfers_on_a_busy_queue_take_no_memory() {
    if !is_alone("queue_contract::transfers_on_a_busy_queue_take_no_memory") {
        return;
    }
    const SIZE: usize = 8 << 20;
    let setup = Setup::new();
    let Some(gate) = Gate::new(&setup) else {
        return left_out("no fine-grained atomics");
    };
    let buffer = setup.buffer(SIZE);
    let input = vec![3u8; SIZE];
    fill(&setup.queue, &buffer, 1, SIZE, &[]).wait();
    gate.enqueue(&setup.queue);
    let before = pumice_tests::process::resident();
    let (queue, source) = (setup.queue.0, input.as_ptr().cast());
    gate.returns("writes that do not block", || {
        for _ in 0..60 {
            let none = (0, null(), null_mut());
            ok!(clEnqueueWriteBuffer(
                queue, buffer.0, 0, 0, SIZE, source, none.0, none.1, none.2
            ));
        }
        ok!(clFlush(queue));
    });
    // In bytes, of 480 MiB in all.
    let grown = pumice_tests::process::resident() - before;
    assert!(gate.is_closed());
    gate.open();
    ok!(clFinish(queue));
    assert!(grown < 240 << 20, "{} MiB", grown >> 20);
}

/// A kernel of another queue, which nobody waits for, begins before a long launch has ended.
#[test]
fn short_kernels_get_a_turn() {
    let setup = Setup::new();
    if !runs_native_kernels(&setup) {
        return left_out("a device that runs one kernel after the other");
    }
    let param = CL_DEVICE_MAX_COMPUTE_UNITS;
    if info_value!(u32, clGetDeviceInfo(setup.device), param) < 2 {
        return left_out("one processor, which the long kernel has");
    }
    let source = "kernel void grind(global uint *out, uint rounds) {
        uint value = get_global_id(0);
        for (uint i = 0; i < rounds; i++) value = value * 1664525u + 1013904223u;
        out[get_global_id(0) % 64] = value;
    }";
    let kernel = setup.kernel_of(source, "grind");
    let buffer = setup.buffer_of(&[0u32; 64]);
    kernel.set_buffer(0, &buffer).set(1, 20_000u32);
    setup.run(&kernel, &[64], Some(&[64]));
    let mut long = null_mut();
    ok!(clEnqueueNDRangeKernel(
        setup.queue.0,
        kernel.0,
        1,
        null(),
        [1usize << 20].as_ptr(),
        [64usize].as_ptr(),
        0,
        null(),
        &mut long
    ));
    let long = Event(long);
    ok!(clFlush(setup.queue.0));
    let (queue, other) = (setup.new_queue(0), setup.buffer(256));
    let short = fill(&queue, &other, 1, 256, &[]);
    ok!(clFlush(queue.0));
    assert!(soon(|| short.status() == CL_COMPLETE));
    assert!(long.status() > CL_COMPLETE, "the long launch is over");
    ok!(clFinish(setup.queue.0));
}

/// How long it takes to enqueue and finish so many commands of a shape, the best of three.
fn cost(run: impl Fn(usize), count: usize) -> Duration {
    let once = || {
        let start = Instant::now();
        run(count);
        start.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

/// Pending commands cost what their own dependencies cost.
#[test]
fn pending_commands_cost_by_their_number() {
    let setup = Setup::with_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let buffer = setup.buffer_of(&[0u32; 64]);
    let one_event_each = |count: usize| {
        let gates: Vec<Held> = (0..count).map(|_| Held::new(&setup)).collect();
        for gate in &gates {
            drop(fill(&setup.queue, &buffer, 1, 4, &[gate.event.0]));
        }
        gates.iter().rev().for_each(Held::open);
        ok!(clFinish(setup.queue.0));
    };
    let many_events = |count: usize| {
        let gates: Vec<Held> = (0..count).map(|_| Held::new(&setup)).collect();
        let list: Vec<cl_event> = gates.iter().map(|gate| gate.event.0).collect();
        drop(fill(&setup.queue, &buffer, 1, 4, &list));
        gates.iter().rev().for_each(Held::open);
        ok!(clFinish(setup.queue.0));
    };
    let chain = |count: usize| {
        let queues = [setup.new_queue(0), setup.new_queue(0)];
        let gate = Held::new(&setup);
        let mut last: Option<Event> = None;
        for number in 0..count {
            let before = last.as_ref().map_or(gate.event.0, |event| event.0);
            last = Some(fill(&queues[number % 2], &buffer, 1, 4, &[before]));
        }
        gate.open();
        queues.iter().for_each(|queue| ok!(clFinish(queue.0)));
    };
    let markers = |count: usize| {
        let queue = setup.new_queue(0);
        let gate = Held::new(&setup);
        drop(fill(&queue, &buffer, 1, 4, &[gate.event.0]));
        for _ in 0..count {
            ok!(clEnqueueMarkerWithWaitList(queue.0, 0, null(), null_mut()));
        }
        gate.open();
        ok!(clFinish(queue.0));
    };
    let shapes: [(&str, &dyn Fn(usize)); 4] = [
        ("an event each", &one_event_each),
        ("one command of many events", &many_events),
        ("a chain over two queues", &chain),
        ("markers behind a held command", &markers),
    ];
    for (name, shape) in shapes {
        let (few, many) = (cost(shape, 500), cost(shape, 4000));
        // Eight times the commands; by the square 64 times.
        let limit = few * 32 + Duration::from_millis(50);
        assert!(many < limit, "{name}: {few:?}, then {many:?}");
    }
}

/// A command that waits for one that has failed, of another queue, fails; others go on.
#[test]
fn failures_reach_those_who_wait_and_nobody_else() {
    let setup = Setup::new();
    let (one, two) = (setup.new_queue(0), setup.new_queue(0));
    let buffer = setup.buffer_of(&[5u32; 64]);
    let gate = Event::user(&setup.context);
    let failed = fill(&one, &buffer, 1, 256, &[gate.0]);
    let waits = fill(&two, &buffer, 2, 256, &[failed.0]);
    let goes_on = fill(&one, &buffer, 3, 4, &[]);
    gate.finish(-7);
    let status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    failed.wait();
    waits.wait();
    assert_eq!((failed.status(), waits.status()), (status, status));
    assert_eq!(goes_on.wait(), CL_SUCCESS);
    let late = fill(&two, &buffer, 4, 4, &[failed.0]);
    late.wait();
    assert_eq!(late.status(), status);
    ok!(clFinish(two.0));
    let mut expected = vec![5u32; 64];
    expected[0] = 3;
    assert_eq!(setup.read::<u32>(&buffer, 64), expected);
}

/// Memory of the application that nothing has written is not written back when it is mapped: it may be a file's, or read-only.
#[test]
#[cfg(target_os = "linux")]
fn memory_that_is_read_only_stays_as_it_is() {
    const SIZE: usize = 1 << 16;
    let setup = Setup::new();
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory, which is unmapped at the end.
    let memory = unsafe { libc::mmap(null_mut(), SIZE, protection, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    // SAFETY: so many bytes are there, for this test alone.
    let bytes = unsafe { std::slice::from_raw_parts_mut(memory.cast::<u8>(), SIZE) };
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (at * 7) as u8;
    }
    let expected = bytes.to_vec();
    // SAFETY: the memory from above, which nothing writes from here on.
    assert_eq!(unsafe { libc::mprotect(memory, SIZE, libc::PROT_READ) }, 0);
    let queue = setup.queue.0;
    let flags = CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY;
    for offset in [0, 13] {
        let host = memory.wrapping_byte_add(offset);
        let size = SIZE - 100;
        let buffer = Buffer(create!(clCreateBuffer(setup.context.0, flags, size, host)));
        let seen = setup.read::<u8>(&buffer, size);
        assert!(seen == expected[offset..offset + size]);
        let pointer = create!(clEnqueueMapBuffer(
            queue,
            buffer.0,
            1,
            CL_MAP_READ,
            0,
            size,
            0,
            null(),
            null_mut()
        ));
        assert_eq!(pointer, host);
        ok!(clEnqueueUnmapMemObject(
            queue,
            buffer.0,
            pointer,
            0,
            null(),
            null_mut()
        ));
        ok!(clFinish(queue));
    }
    // SAFETY: nothing uses it any more.
    unsafe { libc::munmap(memory, SIZE) };
}

/// Where there are gates there is something to test here.
#[test]
fn gates_are_there_where_they_should_be() {
    let setup = Setup::new();
    if runs_native_kernels(&setup) {
        assert!(has_gates(&setup), "the CPU device has fine-grained atomics");
    }
}
