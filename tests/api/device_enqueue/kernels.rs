//! Tests of enqueued kernels: captures, local memory, ranges, events, order, errors, depth.

use super::{able, device_queue, on_device, over, status, OnDevice, KERNELS};
use crate::command_buffers::Recording;
use pumice_tests::process::resident;
use pumice_tests::sys::*;
use pumice_tests::{call, fails, info_value, is_alone, ok, Event};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

fn kernels(options: &str, size: u32) -> Option<OnDevice> {
    on_device(KERNELS, options, size)
}

/// Codes of OpenCL C.
const CLK_ENQUEUE_FAILURE: i32 = -101;
const CLK_INVALID_QUEUE: i32 = -102;
const CLK_EVENT_ALLOCATION_FAILURE: i32 = -100;
const CLK_INVALID_EVENT_WAIT_LIST: i32 = -57;
const CLK_INVALID_ARG_SIZE: i32 = -51;
const CLK_INVALID_NDRANGE: i32 = -160;
const CLK_DEVICE_QUEUE_FULL: i32 = -161;

#[test]
fn blocks_have_what_they_captured() {
    let Some(on) = kernels("", 0) else { return };
    let to = on.setup.buffer_of(&vec![0i64; 26]);
    let kernel = on.kernel("captures");
    kernel
        .set_buffer(1, &to)
        .set(2, -5i32)
        .set(3, [1.0f32, 2.0, 3.0, 4.5])
        .set(4, b'x');
    on.setup.run(&kernel, &[1], None);
    let words = on.setup.read::<i64>(&to, 26);
    assert!(words[..10].iter().all(|&word| word == 0));
    for (id, part) in words[10..].chunks(4).enumerate() {
        assert_eq!(part, [(-5i64 << 40) + id as i64, 33, 120, -5]);
    }
}

/// The application may release a buffer as soon as the kernel is enqueued: children, and theirs, use it still.
#[test]
fn buffers_are_kept_for_blocks() {
    const SOURCE: &str = "
        kernel void k(queue_t queue, global int *out, global const int *from)
        {
            uint count = get_global_size(0);
            if (get_global_id(0) != 0) return;
            enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{
                enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(count), ^{
                    out[get_global_id(0)] = from[get_global_id(0)] + 1;
                });
            });
        }";
    let Some(on) = on_device(SOURCE, "", 0) else {
        return;
    };
    let count = 1 << 18;
    let out = on.setup.buffer_of(&vec![0i32; count]);
    for round in 0..12 {
        let from = on.setup.buffer_of(&vec![round; count]);
        let kernel = on.kernel("k");
        kernel.set_buffer(1, &out).set_buffer(2, &from);
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            on.setup.queue.0,
            kernel.0,
            1,
            null(),
            &count,
            null(),
            0,
            null(),
            &mut event
        ));
        drop((from, kernel));
        // What is free is used again.
        let other = on.setup.buffer_of(&vec![-1i32; count]);
        assert_eq!(over(event), CL_COMPLETE as cl_int);
        drop(other);
        assert_eq!(on.setup.read::<i32>(&out, count), vec![round + 1; count]);
    }
}

/// Every form of `ndrange_*`, compared with launches of the host's.
#[test]
fn ranges_are_those_of_the_host() {
    let Some(on) = kernels("", 0) else { return };
    type Form<'a> = (Option<&'a [usize]>, &'a [usize], Option<&'a [usize]>);
    let forms: [Form<'_>; 12] = [
        (None, &[24], None),
        (None, &[24], Some(&[6])),
        (Some(&[100]), &[24], Some(&[8])),
        (None, &[6, 4], None),
        (None, &[6, 4], Some(&[3, 2])),
        (Some(&[5, 7]), &[6, 4], Some(&[3, 2])),
        (None, &[4, 3, 2], None),
        (None, &[4, 3, 2], Some(&[2, 3, 1])),
        (Some(&[1, 2, 3]), &[4, 3, 2], Some(&[2, 3, 1])),
        (None, &[24], Some(&[7])),
        (Some(&[1 << 33]), &[24], Some(&[8])),
        (Some(&[5, (1 << 34) - 2]), &[6, 4], Some(&[3, 2])),
    ];
    for (number, (offset, global, local)) in forms.into_iter().enumerate() {
        let (to, expected) = (on.buffer(&[0; 24]), on.buffer(&[0; 24]));
        let code = on.buffer(&[77]);
        let kernel = on.kernel("ranges");
        kernel
            .set_buffer(1, &to)
            .set(2, number as i32)
            .set_buffer(3, &code);
        on.setup.run(&kernel, &[1], None);
        assert_eq!(on.setup.read::<i32>(&code, 1), [0]);
        let host = on.setup.kernel(&on.program, "as_ranges");
        host.set_buffer(0, &expected)
            .set(1, i32::from(local.is_some()));
        let pointer = |sizes: Option<&[usize]>| sizes.map_or(std::ptr::null(), <[usize]>::as_ptr);
        ok!(clEnqueueNDRangeKernel(
            on.setup.queue.0,
            host.0,
            global.len() as u32,
            pointer(offset),
            global.as_ptr(),
            pointer(local),
            0,
            std::ptr::null(),
            null_mut()
        ));
        let read = |buffer| on.setup.read::<u32>(buffer, 24);
        assert_eq!(read(&to), read(&expected), "form {number}");
    }
}

#[test]
fn local_memory() {
    let Some(on) = kernels("", 0) else { return };
    let words = on.words("locals", 33, |kernel| {
        kernel.set(2, 64u32);
    });
    assert_eq!(words[0], 0);
    for (id, &word) in words[1..].iter().enumerate() {
        let (group, local) = (id as i32 / 16 * 16, id as i32 % 16);
        let expected = (15 - local) + 100 * (15 - local) + group + (local ^ 1);
        assert_eq!(word, expected, "{id}");
    }
}

#[test]
fn events_order_kernels() {
    let Some(on) = kernels("", 0) else { return };
    let expected = (1..20).fold(1i32, |value, i| value.wrapping_mul(3).wrapping_add(i));
    let words = on.words("chain", 2, |kernel| {
        kernel.set(2, 20i32);
    });
    assert_eq!(words, [0, expected]);
    let words = on.words("fork_and_join", 130, |_| {});
    assert_eq!(words[..2], [0, 3 * 63 * 32]);
}

#[test]
fn user_events() {
    let Some(on) = kernels("", 0) else { return };
    for late in [0, 1] {
        for (code, expected) in [(0, [1, 0, 22, 33, 0]), (-5, [1, 0, 0, 0, 0])] {
            let words = on.words("user_event", 5, |kernel| {
                kernel.set(2, code).set(3, late);
            });
            assert_eq!(words, expected, "{code} {late}");
        }
    }
}

/// A launch is complete only when what it enqueued is; another queue's kernel may be what that waits for.
#[test]
fn parents_wait_for_their_children() {
    let Some(on) = kernels("", 0) else { return };
    let words = on.buffer(&[0; 4]);
    let left = on.setup.buffer_of(&[0u64]);
    let other = on.setup.new_queue(0);
    let kernel = on.kernel("wait_for_another");
    kernel.set_buffer(1, &words).set_buffer(2, &left);
    let (mut first, mut second) = (null_mut(), null_mut());
    on.enqueue_on(&on.setup.queue, &kernel, Some(&mut first));
    // What comes after it in its queue waits, too.
    let after = on.setup.kernel(&on.program, "add");
    after.set_buffer(0, &words).set(1, 3i32);
    on.enqueue_on(&on.setup.queue, &after, Some(&mut second));
    ok!(clFlush(on.setup.queue.0));
    std::thread::sleep(Duration::from_millis(50));
    assert!(status(first) > 0 && status(second) > 0);
    let setter = on.setup.kernel(&on.program, "set_for_another");
    setter.set_buffer(0, &words).set_buffer(1, &left);
    on.enqueue_on(&other, &setter, None);
    ok!(clFinish(other.0));
    assert_eq!(over(first), CL_COMPLETE as cl_int);
    assert_eq!(over(second), CL_COMPLETE as cl_int);
    assert_eq!(on.setup.read::<i32>(&words, 4), [33, 11, 1, 0]);
}

/// The same in an out-of-order queue, where a barrier makes the difference, and events do.
#[test]
fn barriers_wait_for_children() {
    let Some(on) = kernels("", 0) else { return };
    let queue = on.setup.new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let after = on.setup.kernel(&on.program, "add");
    for by_event in [false, true] {
        let words = on.buffer(&[0; 2]);
        let kernel = on.kernel("tree");
        kernel.set_buffer(1, &words).set(2, 3i32).set(3, 5i32);
        let mut event = null_mut();
        on.enqueue_on(&queue, &kernel, Some(&mut event));
        let (count, list) = match by_event {
            true => (1, &event as *const _),
            false => (0, std::ptr::null()),
        };
        if !by_event {
            ok!(clEnqueueBarrierWithWaitList(
                queue.0,
                0,
                std::ptr::null(),
                null_mut()
            ));
        }
        after.set_buffer(0, &words).set(1, 3i32);
        // words[0] = words[1] * 3, and no failure: 0, where the sum was before.
        ok!(clEnqueueNDRangeKernel(
            queue.0,
            after.0,
            1,
            std::ptr::null(),
            &1,
            std::ptr::null(),
            count,
            list,
            null_mut()
        ));
        ok!(clFinish(queue.0));
        assert_eq!(over(event), CL_COMPLETE as cl_int);
        assert_eq!(on.setup.read::<i32>(&words, 2), [0, 0]);
    }
}

#[test]
fn events_are_used_again() {
    let Some(on) = kernels("", 0) else { return };
    let words = on.buffer(&[0; 2]);
    let kernel = on.kernel("many_events");
    kernel.set_buffer(1, &words);
    let most = info_value!(
        u32,
        clGetDeviceInfo(on.setup.device),
        CL_DEVICE_MAX_ON_DEVICE_EVENTS
    );
    let launches = most as i32 / 400 + 20;
    for _ in 0..launches {
        on.setup.enqueue(&kernel, &[1], None);
    }
    assert_eq!(on.setup.read::<i32>(&words, 2), [0, 400 * launches]);
}

#[test]
fn events_that_nobody_releases() {
    for (options, code) in [
        ("", CLK_ENQUEUE_FAILURE),
        ("-g", CLK_EVENT_ALLOCATION_FAILURE),
    ] {
        let Some(on) = kernels(options, 0) else {
            return;
        };
        let most = info_value!(
            u32,
            clGetDeviceInfo(on.setup.device),
            CL_DEVICE_MAX_ON_DEVICE_EVENTS
        ) as i32;
        let words = on.buffer(&[0; 6]);
        let kernel = on.setup.kernel(&on.program, "use_up_events");
        kernel.set_buffer(0, &words).set(1, most);
        on.setup.run(&kernel, &[1], None);
        assert_eq!(on.setup.read::<i32>(&words, 6), [most, 0, code, 0, 0, 1]);
    }
}

#[test]
fn times_of_events() {
    let Some(on) = kernels("", 0) else { return };
    let (times, words) = (on.setup.buffer_of(&[0u64; 4]), on.buffer(&[0; 2]));
    let kernel = on.kernel("profile");
    kernel.set_buffer(1, &times).set_buffer(2, &words);
    on.setup.run(&kernel, &[1], None);
    assert_eq!(on.setup.read::<i32>(&words, 1), [0]);
    let times = on.setup.read::<u64>(&times, 4);
    assert!(times[0] > 0 && times[1] >= times[0], "{times:?}");
    assert_eq!(times[..2], times[2..]);
}

#[test]
fn queries_of_blocks() {
    let Some(on) = kernels("", 0) else { return };
    let words = on.buffer(&[0; 8]);
    let kernel = on.setup.kernel(&on.program, "queries");
    kernel.set_buffer(0, &words);
    on.setup.run(&kernel, &[1], None);
    let words = on.setup.read::<u32>(&words, 8);
    let device = on.setup.device;
    let most = info_value!(
        usize,
        clGetDeviceInfo(device),
        CL_DEVICE_MAX_WORK_GROUP_SIZE
    ) as u32;
    assert!((1..=most).contains(&words[0]) && (1..=most).contains(&words[2]));
    assert!(words[1] > 0);
    if info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_MAX_NUM_SUB_GROUPS) > 0 {
        assert!(words[3] > 0);
        assert_eq!(words[4], 50u32.div_ceil(words[3]));
    }
}

#[test]
fn variables_of_the_program() {
    let Some(on) = kernels("", 0) else { return };
    let words = on.words("variables", 1, |_| {});
    assert_eq!(words, [0]);
    let to = on.buffer(&[0]);
    let kernel = on.setup.kernel(&on.program, "read_variables");
    kernel.set_buffer(0, &to);
    on.setup.run(&kernel, &[1], None);
    assert_eq!(on.setup.read::<i32>(&to, 1), [25]);
}

/// All work-items enqueue at once, by packs and with gaps.
#[test]
fn every_work_item_enqueues() {
    let Some(on) = kernels("", 1 << 20) else {
        return;
    };
    let items = 1000;
    let words = on.buffer(&[0; 2]);
    let kernel = on.kernel("from_all");
    kernel.set_buffer(1, &words);
    on.setup.run(&kernel, &[items], None);
    let sum: usize = (0..items).filter(|id| id % 3 != 1).map(|id| 2 * id).sum();
    assert_eq!(on.setup.read::<i32>(&words, 2), [0, sum as i32]);
}

/// A thousand levels deep, and a hundred thousand in all, in memory that does not grow with them.
#[test]
fn trees() {
    if !is_alone("device_enqueue::kernels::trees") {
        return;
    }
    let Some(on) = kernels("", 16 << 20) else {
        return;
    };
    let run = |depth: i32, width: i32| {
        let start = Instant::now();
        let words = on.words("tree", 2, |kernel| {
            kernel.set(2, depth).set(3, width);
        });
        assert_eq!(words[1], 0, "some were refused");
        (words[0], start.elapsed())
    };
    assert_eq!(run(1, 2).0, 3);
    let (count, took) = run(1000, 1);
    assert_eq!(count, 1001);
    println!(
        "a depth of 1000: {:.2} us a child",
        took.as_secs_f64() * 1e3
    );
    let before = resident();
    // Where a driver runs the kernels, or the interpreter, and takes ten times as long, a tenth will do.
    let checked = std::env::var_os("PUMICE_CHECK").is_some();
    let capabilities = info_value!(
        u64,
        clGetDeviceInfo(on.setup.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    );
    let depth = if capabilities & CL_EXEC_NATIVE_KERNEL != 0 && !checked {
        5
    } else {
        4
    };
    let all = (10i32.pow(depth + 1) - 1) / 9;
    for _ in 0..3 {
        let (count, took) = run(depth as i32, 10);
        assert_eq!(count, all);
        let each = took.as_secs_f64() * 1e6 / f64::from(all);
        println!("{all} children: {each:.2} us each");
    }
    let grown = resident() - before;
    println!("{} MiB more than before", grown >> 20);
    assert!(grown < 64 << 20, "{grown} bytes");
}

/// A queue that cannot hold a level of a tree holds a tree: what the youngest lead to ends first.
#[test]
fn trees_wider_than_their_queue() {
    // The last level has 4096 records of more than 128 bytes.
    let Some(on) = kernels("", 384 << 10) else {
        return;
    };
    let words = on.words("tree", 2, |kernel| {
        kernel.set(2, 4i32).set(3, 8i32);
    });
    assert_eq!(words, [(8i32.pow(5) - 1) / 7, 0]);
}

/// A queue that is full says so, and what it took runs; then it is empty again.
#[test]
fn overflow() {
    for (options, code) in [("", CLK_ENQUEUE_FAILURE), ("-g", CLK_DEVICE_QUEUE_FULL)] {
        let Some(on) = kernels(options, 4096) else {
            return;
        };
        for _ in 0..3 {
            let words = on.words("overflow", 3, |kernel| {
                kernel.set(2, 100i32);
            });
            assert!((5..50).contains(&words[0]), "{words:?}");
            assert_eq!(words[0] + words[1], 100);
            assert_eq!(words[2], code);
        }
        // Trees that do not fit end all the same.
        let words = on.words("tree", 2, |kernel| {
            kernel.set(2, 6i32).set(3, 4i32);
        });
        assert!(words[0] > 1 && words[1] > 0, "{words:?}");
        let words = on.words("overflow", 3, |kernel| {
            kernel.set(2, 1i32);
        });
        assert_eq!(words, [1, 0, 0]);
    }
}

/// Each dimension of a work-group has a limit of its own (`CL_DEVICE_MAX_WORK_ITEM_SIZES`).
#[test]
fn long_groups() {
    for (options, code) in [("", CLK_ENQUEUE_FAILURE), ("-g", CLK_INVALID_NDRANGE)] {
        let Some(on) = kernels(options, 1 << 16) else {
            return;
        };
        let sizes = info_value!(
            [usize; 3],
            clGetDeviceInfo(on.setup.device),
            CL_DEVICE_MAX_WORK_ITEM_SIZES
        );
        for (dimension, most) in sizes.into_iter().enumerate() {
            for more in 0..2 {
                let mut size = [1u32; 3];
                size[dimension] = most as u32 + more;
                let words = on.words("long_group", 2, |kernel| {
                    kernel.set(2, size[0]).set(3, size[1]).set(4, size[2]);
                });
                let want = [[most as i32, 0], [0, code]][more as usize];
                assert_eq!(words, want, "{size:?}");
            }
        }
    }
}

#[test]
fn errors() {
    let precise = [
        CLK_INVALID_QUEUE,
        CLK_INVALID_NDRANGE,
        CLK_INVALID_NDRANGE,
        CLK_INVALID_EVENT_WAIT_LIST,
        CLK_INVALID_EVENT_WAIT_LIST,
        CLK_INVALID_EVENT_WAIT_LIST,
        CLK_INVALID_EVENT_WAIT_LIST,
        CLK_INVALID_ARG_SIZE,
        0,
        0,
        0,
    ];
    for options in ["", "-g"] {
        let Some(on) = kernels(options, 0) else {
            return;
        };
        let no_event = on.setup.buffer_of(&[1u64 << 33]);
        let words = on.words("errors", 24, |kernel| {
            kernel
                .set(2, 0u32)
                .set(3, 1u64 << 63)
                .set_buffer(4, &no_event);
        });
        let expected = precise.map(|code| match (code, options) {
            (0, _) | (_, "-g") => code,
            _ => CLK_ENQUEUE_FAILURE,
        });
        assert_eq!(words[..11], expected, "{options}");
        assert_eq!(words[19..21], [0, 7]);
    }
}

/// A child that cannot be launched fails its event and the launch's, and no other child.
#[test]
fn children_that_fail() {
    let Some(on) = kernels("", 0) else { return };
    let words = on.buffer(&[9; 4]);
    let kernel = on.kernel("too_much");
    kernel.set_buffer(1, &words);
    let mut event = null_mut();
    on.enqueue_on(&on.setup.queue, &kernel, Some(&mut event));
    assert_eq!(over(event), CL_OUT_OF_RESOURCES);
    ok!(clFinish(on.setup.queue.0));
    assert_eq!(on.setup.read::<i32>(&words, 4), [0, 9, 9, 1]);
    // The queue is as good as before.
    let words = on.words("tree", 2, |kernel| {
        kernel.set(2, 3i32).set(3, 3i32);
    });
    assert_eq!(words, [40, 0]);
}

/// A replay fails with a child of its kernels, and what comes after that is not done.
#[test]
fn replays_whose_children_fail() {
    let Some(on) = kernels("", 0) else { return };
    let (words, other) = (on.buffer(&[9; 4]), on.buffer(&[5; 4]));
    let kernel = on.kernel("too_much");
    kernel.set_buffer(1, &words);
    let recording = Recording::new(&on.setup);
    recording.launch(&kernel, &[1], &[]);
    recording.copy(&words, &other, 16);
    recording.finalize();
    for _ in 0..2 {
        let event = recording.replay_event(None, &[]);
        call!(clWaitForEvents(1, &event.0));
        assert_eq!(status(event.0), CL_OUT_OF_RESOURCES);
        ok!(clFinish(on.setup.queue.0));
        assert_eq!(on.setup.read::<i32>(&words, 4), [0, 9, 9, 1]);
        assert_eq!(on.setup.read::<i32>(&other, 4), [5; 4]);
        on.setup.write(&words, &[9i32; 4]);
    }
    let last = Recording::new(&on.setup);
    last.launch(&kernel, &[1], &[]);
    last.finalize();
    let event = last.replay_event(None, &[]);
    call!(clWaitForEvents(1, &event.0));
    assert_eq!(status(event.0), CL_OUT_OF_RESOURCES);
}

/// A launch that waits for an event of the host that fails enqueues nothing.
#[test]
fn launches_that_never_come_to_be() {
    let Some(on) = kernels("", 0) else { return };
    let words = on.buffer(&[0; 2]);
    let kernel = on.kernel("tree");
    kernel.set_buffer(1, &words).set(2, 1i32).set(3, 1i32);
    let user = Event::user(&on.setup.context);
    let mut event = null_mut();
    ok!(clEnqueueNDRangeKernel(
        on.setup.queue.0,
        kernel.0,
        1,
        std::ptr::null(),
        &1,
        std::ptr::null(),
        1,
        &user.0,
        &mut event
    ));
    user.finish(-7);
    assert!(over(event) < 0);
    assert_eq!(on.setup.read::<i32>(&words, 2), [0, 0]);
    fails!(
        CL_INVALID_KERNEL_ARGS,
        clEnqueueNDRangeKernel(
            on.setup.queue.0,
            on.setup.kernel(&on.program, "tree").0,
            1,
            std::ptr::null(),
            &1,
            std::ptr::null(),
            0,
            std::ptr::null(),
            null_mut()
        )
    );
}

/// Threads with queues of their own and one device queue.
#[test]
fn several_host_queues() {
    let Some(on) = kernels("", 1 << 20) else {
        return;
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let queue = on.setup.new_queue(0);
                let words = on.buffer(&[0; 2]);
                let kernel = on.kernel("tree");
                kernel.set_buffer(1, &words).set(2, 3i32).set(3, 6i32);
                for _ in 0..20 {
                    on.enqueue_on(&queue, &kernel, None);
                }
                ok!(clFinish(queue.0));
                let words = on.setup.read::<i32>(&words, 2);
                assert_eq!(words, [20 * (1 + 6 + 36 + 216), 0]);
            });
        }
    });
}

/// From a binary of a program, and from objects that were linked.
#[test]
fn programs_from_the_cache() {
    let Some(on) = kernels("", 0) else { return };
    let size = info_value!(
        usize,
        clGetProgramInfo(on.program.0),
        CL_PROGRAM_BINARY_SIZES
    );
    let mut bytes = vec![0u8; size];
    let mut place = bytes.as_mut_ptr();
    ok!(clGetProgramInfo(
        on.program.0,
        CL_PROGRAM_BINARIES,
        size_of::<usize>(),
        (&raw mut place).cast(),
        null_mut()
    ));
    let (context, device) = (on.setup.context.0, on.setup.device);
    let mut made = 1;
    let program = pumice_tests::Program(pumice_tests::create!(clCreateProgramWithBinary(
        context,
        1,
        &device,
        &size,
        &mut place.cast_const(),
        &mut made
    )));
    ok!(clBuildProgram(
        program.0,
        1,
        &device,
        c"-cl-std=CL3.0".as_ptr(),
        None,
        null_mut()
    ));
    let words = on.buffer(&[0; 2]);
    let kernel = on.setup.kernel(&program, "tree");
    kernel
        .set(0, on.queue.0 as usize)
        .set_buffer(1, &words)
        .set(2, 2i32)
        .set(3, 3i32);
    on.setup.run(&kernel, &[1], None);
    assert_eq!(on.setup.read::<i32>(&words, 2), [13, 0]);
}

/// Objects with functions of one name, each with a block.
#[test]
fn linked_objects() {
    let Some(setup) = able(0) else { return };
    let queue = device_queue(&setup, CL_QUEUE_ON_DEVICE_DEFAULT, 0);
    let part = |name: &str, number: i32| {
        let source = format!(
            "static int helper(queue_t q, global int *p) {{
                 return enqueue_kernel(q, 0, ndrange_1D(1), ^{{ p[0] += {number}; }}); }}
             kernel void {name}(queue_t q, global int *p) {{ p[1] |= helper(q, p); }}"
        );
        let program = setup.program(&source);
        ok!(clCompileProgram(
            program.0,
            1,
            &setup.device,
            c"-cl-std=CL3.0".as_ptr(),
            0,
            std::ptr::null(),
            null_mut(),
            None,
            null_mut()
        ));
        program
    };
    let parts = [part("first", 7), part("second", 100)];
    let list = parts.each_ref().map(|part| part.0);
    let linked = pumice_tests::Program(pumice_tests::create!(clLinkProgram(
        setup.context.0,
        1,
        &setup.device,
        std::ptr::null(),
        2,
        list.as_ptr(),
        None,
        null_mut()
    )));
    let words = setup.buffer_of(&[0i32; 2]);
    for name in ["first", "second", "first"] {
        let kernel = setup.kernel(&linked, name);
        kernel.set(0, queue.0 as usize).set_buffer(1, &words);
        setup.run(&kernel, &[1], None);
    }
    assert_eq!(setup.read::<i32>(&words, 2), [114, 0]);
}
