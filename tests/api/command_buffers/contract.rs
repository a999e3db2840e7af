//! Replays as commands of a queue: order, events, failures, several at the same time.

use super::*;
use pumice_tests::gate::GRACE;
use std::time::Instant;

fn status(event: &Event) -> cl_int {
    info_value!(
        i32,
        clGetEventInfo(event.0),
        CL_EVENT_COMMAND_EXECUTION_STATUS
    )
}

fn wait(event: &Event) -> cl_int {
    call!(clWaitForEvents(1, &event.0))
}

/// A replay waits for its wait list, has one event, and fails with what it waits for.
#[test]
fn events() {
    for properties in [0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let setup = Setup::with_queue(properties);
        let kernel = setup.kernel_of(BUMP, "bump");
        let buffer = setup.buffer_of(&[0u32; 64]);
        kernel.set_buffer(0, &buffer);
        let recording = Recording::new(&setup);
        recording.launch(&kernel, &[64], &[]);
        recording.launch(&kernel, &[64], &[]);
        recording.finalize();
        let gate = Event(create!(clCreateUserEvent(setup.context.0)));
        let replayed = recording.replay_event(None, &[gate.0]);
        ok!(clFlush(setup.queue.0));
        let kind = info_value!(u32, clGetEventInfo(replayed.0), CL_EVENT_COMMAND_TYPE);
        assert_eq!(kind, CL_COMMAND_COMMAND_BUFFER_KHR);
        assert!(status(&replayed) > CL_COMPLETE as cl_int);
        ok!(clSetUserEventStatus(gate.0, 0));
        assert_eq!(wait(&replayed), 0);
        assert_eq!(setup.read::<u32>(&buffer, 64), [2; 64]);
        // The failure of what one waits for is its own, and nobody else's.
        let gate = Event(create!(clCreateUserEvent(setup.context.0)));
        let failed = recording.replay_event(None, &[gate.0]);
        let after = recording.replay_event(None, &[failed.0]);
        ok!(clSetUserEventStatus(gate.0, -5));
        let code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        for event in [&failed, &after] {
            assert_eq!(wait(event), code);
            assert_eq!(status(event), code);
        }
        assert_eq!(wait(&recording.replay_event(None, &[])), 0);
        assert_eq!(setup.read::<u32>(&buffer, 64), [4; 64]);
    }
}

/// Replays of one command buffer by two queues at the same time.
#[test]
fn at_the_same_time() {
    let order = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let setup = Setup::with_queue(order);
    let kernel = setup.kernel_of(BUMP, "add");
    let buffer = setup.buffer_of(&[0u32; 1]);
    kernel.set_buffer(0, &buffer).set(1, 3u32);
    let bits = CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR;
    let recording = Recording::with(&setup, &setup.queue, bits);
    for _ in 0..10 {
        recording.launch(&kernel, &[16], &[]);
    }
    recording.finalize();
    let other = setup.new_queue(0);
    let mut events = Vec::new();
    for _ in 0..20 {
        events.push(recording.replay_event(None, &[]));
        events.push(recording.replay_event(Some(&other), &[]));
    }
    for event in &events {
        ok!(clFlush(other.0));
        assert_eq!(wait(event), 0);
    }
    assert_eq!(setup.read::<u32>(&buffer, 1), [40 * 10 * 16 * 3]);
}

/// Times are in their order, and replays of a queue follow one another.
#[test]
fn times() {
    let setup = Setup::with_queue(CL_QUEUE_PROFILING_ENABLE);
    let kernel = setup.kernel_of(BUMP, "bump");
    let buffer = setup.buffer_of(&[0u32; 1024]);
    kernel.set_buffer(0, &buffer);
    let recording = Recording::new(&setup);
    for _ in 0..5 {
        recording.launch(&kernel, &[1024], &[]);
    }
    recording.finalize();
    let mut last = 0;
    for _ in 0..3 {
        let event = recording.replay_event(None, &[]);
        assert_eq!(wait(&event), 0);
        let names = [
            CL_PROFILING_COMMAND_QUEUED,
            CL_PROFILING_COMMAND_SUBMIT,
            CL_PROFILING_COMMAND_START,
            CL_PROFILING_COMMAND_END,
            CL_PROFILING_COMMAND_COMPLETE,
        ];
        let times = names.map(|name| info_value!(u64, clGetEventProfilingInfo(event.0), name));
        assert!(times.is_sorted(), "{times:?}");
        assert!(times[2] >= last);
        last = times[3];
    }
}

/// Commands that the host has a part in stand between others: kernels that print.
#[test]
fn kernels_that_print() {
    for properties in [0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let setup = Setup::with_queue(properties);
        let program = setup.build(BUMP);
        let (bump, say) = (
            setup.kernel(&program, "bump"),
            setup.kernel(&program, "say"),
        );
        let buffer = setup.buffer_of(&[100u32; 64]);
        bump.set_buffer(0, &buffer);
        say.set_buffer(0, &buffer);
        let recording = Recording::new(&setup);
        for _ in 0..3 {
            let bumped = recording.launch(&bump, &[64], &[]);
            recording.launch(&say, &[1], &[bumped]);
        }
        recording.finalize();
        // More than there are buffers to print to.
        let mut last = None;
        for _ in 0..20 {
            let waits: Vec<cl_event> = last.iter().map(|event: &Event| event.0).collect();
            last = Some(recording.replay_event(None, &waits));
        }
        assert_eq!(wait(last.as_ref().expect("one")), 0);
        assert_eq!(setup.read::<u32>(&buffer, 64), [160; 64]);
    }
}

const CHILDREN: &str = "
kernel void parent(global uint *p) {
    enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64), ^{
        p[get_global_id(0)] += 2;
    });
}
kernel void twice(global uint *p) { p[get_global_id(0)] *= 2; }";

/// A command after a kernel comes after those that it enqueues.
#[test]
fn kernels_that_enqueue() {
    for properties in [0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let setup = Setup::with_queue(properties);
        let list = [
            u64::from(CL_QUEUE_PROPERTIES),
            CL_QUEUE_ON_DEVICE
                | CL_QUEUE_ON_DEVICE_DEFAULT
                | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
            0,
        ];
        let _children = Queue(create!(clCreateCommandQueueWithProperties(
            setup.context.0,
            setup.device,
            list.as_ptr()
        )));
        let program = setup
            .try_build(CHILDREN, "-cl-std=CL3.0")
            .expect("a program");
        let (parent, twice) = (
            setup.kernel(&program, "parent"),
            setup.kernel(&program, "twice"),
        );
        let buffer = setup.buffer_of(&[1u32; 64]);
        parent.set_buffer(0, &buffer);
        twice.set_buffer(0, &buffer);
        let recording = Recording::new(&setup);
        let first = recording.launch(&parent, &[1], &[]);
        let second = recording.launch(&twice, &[64], &[first]);
        recording.launch(&parent, &[1], &[second]);
        recording.finalize();
        let mut want = 1;
        for _ in 0..3 {
            let event = recording.replay_event(None, &[]);
            assert_eq!(wait(&event), 0);
            want = (want + 2) * 2 + 2;
            assert_eq!(setup.read::<u32>(&buffer, 64), [want; 64]);
        }
    }
}

/// Objects that the application has released are kept; handles of the command buffer go with it.
#[test]
fn released_objects() {
    let mut setup = Setup::new();
    let queue = setup.new_queue(0);
    let (a, b) = (setup.buffer_of(&[3u32; 64]), setup.buffer_of(&[0u32; 64]));
    let recording = Recording::with(&setup, &queue, 0);
    let scratch = setup.buffer(256);
    recording.copy(&a, &scratch, 256);
    recording.copy(&scratch, &b, 256);
    let kernel = setup.kernel_of(BUMP, "bump");
    kernel.set_buffer(0, &b);
    recording.launch(&kernel, &[64], &[]);
    recording.finalize();
    drop((kernel, scratch, queue));
    let event = recording.replay_event(None, &[]);
    assert_eq!(wait(&event), 0);
    assert_eq!(setup.read::<u32>(&b, 64), [4; 64]);
    // Released while it runs.
    let event = recording.replay_event(None, &[]);
    drop(recording);
    assert_eq!(wait(&event), 0);
    assert_eq!(setup.read::<u32>(&b, 64), [4; 64]);
    setup.queue = setup.new_queue(0);
}

/// A large command buffer is one command: many replays of it are enqueued without waiting for any.
#[test]
fn many_commands() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(BUMP, "bump");
    let buffer = setup.buffer_of(&[0u32; 64]);
    kernel.set_buffer(0, &buffer);
    let recording = Recording::new(&setup);
    for _ in 0..2000 {
        recording.launch(&kernel, &[64], &[]);
    }
    recording.finalize();
    let start = Instant::now();
    for _ in 0..5 {
        recording.replay();
    }
    assert!(start.elapsed() < GRACE);
    assert_eq!(setup.read::<u32>(&buffer, 64), [10_000; 64]);
}

const ROWS: &str = "
kernel void rows(read_only image2d_t from, write_only image2d_t to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imageui(to, at, read_imageui(from, at) + 1);
}";

/// Images over buffers are those of the queue that a replay runs in.
#[test]
fn images_over_buffers() {
    let setup = Setup::new();
    if !setup.has_images() {
        return;
    }
    let format = cl_image_format {
        image_channel_order: CL_RGBA,
        image_channel_data_type: CL_UNSIGNED_INT8,
    };
    let (from, to) = (setup.buffer_of(&[4u8; 1024]), setup.buffer_of(&[0u8; 1024]));
    let image = |over: &Buffer| {
        // SAFETY: all zeros are a description.
        let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
        desc.image_type = CL_MEM_OBJECT_IMAGE2D;
        (desc.image_width, desc.image_height, desc.image_row_pitch) = (16, 16, 64);
        desc.buffer = over.0;
        let flags = CL_MEM_READ_WRITE;
        Buffer(create!(clCreateImage(
            setup.context.0,
            flags,
            &format,
            &desc,
            null_mut()
        )))
    };
    let (source, target) = (image(&from), image(&to));
    let kernel = setup.kernel_of(ROWS, "rows");
    kernel.set_buffer(0, &source).set_buffer(1, &target);
    let bits = CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR;
    let recording = Recording::with(&setup, &setup.queue, bits);
    recording.launch(&kernel, &[16, 16], &[]);
    recording.copy(&to, &from, 1024);
    recording.finalize();
    let other = setup.new_queue(0);
    let mut last: Option<Event> = None;
    for n in 0..6 {
        let waits: Vec<cl_event> = last.iter().map(|event| event.0).collect();
        let queue = (n % 2 == 1).then_some(&other);
        last = Some(recording.replay_event(queue, &waits));
    }
    assert_eq!(wait(last.as_ref().expect("one")), 0);
    assert_eq!(setup.read::<u8>(&from, 1024), [10; 1024]);
}

const BESIDE: &str = "
kernel void child(global uint *p) { p[get_global_id(0)] += 1; }
kernel void parent(global uint *p) {
    enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64), ^{
        p[get_global_id(0)] += 2;
    });
}";

/// Replays that pause for their children do not hold up other queues, and their events come in order.
#[test]
fn pauses_hold_up_nobody() {
    let setup = Setup::new();
    let list = [
        u64::from(CL_QUEUE_PROPERTIES),
        CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        0,
    ];
    let _children = Queue(create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        list.as_ptr()
    )));
    let program = setup.try_build(BESIDE, "-cl-std=CL3.0").expect("a program");
    let (parent, child) = (
        setup.kernel(&program, "parent"),
        setup.kernel(&program, "child"),
    );
    let (ours, theirs) = (setup.buffer_of(&[0u32; 64]), setup.buffer_of(&[0u32; 64]));
    parent.set_buffer(0, &ours);
    child.set_buffer(0, &ours);
    let recording = Recording::new(&setup);
    for _ in 0..4 {
        let point = recording.launch(&parent, &[1], &[]);
        recording.launch(&child, &[64], &[point]);
    }
    recording.finalize();
    let other = setup.new_queue(0);
    let events: Vec<Event> = (0..5).map(|_| recording.replay_event(None, &[])).collect();
    child.set_buffer(0, &theirs);
    for _ in 0..10 {
        other.enqueue(&child, &[64], None);
        ok!(clFinish(other.0));
    }
    assert_eq!(wait(&events[4]), 0);
    assert!(events.iter().all(|event| status(event) == 0));
    assert_eq!(setup.read::<u32>(&ours, 64), [60; 64]);
    assert_eq!(setup.read::<u32>(&theirs, 64), [10; 64]);
}
