//! The errors of every call.

use super::*;

const BOGUS: *mut c_void = 0x1234 as _;

fn try_create(
    setup: &Setup,
    queues: &[cl_command_queue],
    properties: &[cl_command_buffer_properties_khr],
) -> cl_int {
    let recording = Recording::new(setup);
    let (mut code, list) = (1, queues.as_ptr());
    let properties = if properties.is_empty() {
        null()
    } else {
        properties.as_ptr()
    };
    let made = cb!(
        recording,
        create(queues.len() as u32, list, properties, &mut code)
    );
    assert_eq!(made.is_null(), code != 0);
    if !made.is_null() {
        good(cb!(recording, release(made)));
    }
    code
}

#[test]
fn creation() {
    let setup = Setup::new();
    let queue = setup.queue.0;
    assert_eq!(try_create(&setup, &[queue], &[]), 0);
    assert_eq!(try_create(&setup, &[queue], &[0]), 0);
    assert_eq!(try_create(&setup, &[queue, queue], &[]), 0);
    let other = Setup::new();
    assert_eq!(
        try_create(&setup, &[queue, other.queue.0], &[]),
        CL_INVALID_CONTEXT
    );
    assert_eq!(try_create(&setup, &[], &[]), CL_INVALID_VALUE);
    assert_eq!(try_create(&setup, &[BOGUS], &[]), CL_INVALID_COMMAND_QUEUE);
    assert_eq!(
        try_create(&setup, &[queue], &flags(1 << 9)),
        CL_INVALID_VALUE
    );
    assert_eq!(
        try_create(&setup, &[queue], &[0x7777, 1, 0]),
        CL_INVALID_VALUE
    );
    let twice = [
        CL_COMMAND_BUFFER_FLAGS_KHR,
        1,
        CL_COMMAND_BUFFER_FLAGS_KHR,
        1,
        0,
    ];
    assert_eq!(try_create(&setup, &[queue], &twice), CL_INVALID_VALUE);
    let sync = flags(CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR);
    assert_eq!(try_create(&setup, &[queue], &sync), 0);
}

#[test]
fn handles() {
    let setup = Setup::new();
    let all = Recording::new(&setup);
    let invalid = CL_INVALID_COMMAND_BUFFER_KHR;
    for bogus in [null_mut(), BOGUS, setup.queue.0] {
        assert_eq!(cb!(all, retain(bogus)), invalid);
        assert_eq!(cb!(all, release(bogus)), invalid);
        assert_eq!(cb!(all, finalize(bogus)), invalid);
        let code = cb!(all, enqueue(0, null_mut(), bogus, 0, null(), null_mut()));
        assert_eq!(code, invalid);
        let code = cb!(
            all,
            info(
                bogus,
                CL_COMMAND_BUFFER_STATE_KHR,
                0,
                null_mut(),
                null_mut()
            )
        );
        assert_eq!(code, invalid);
        assert_eq!(cb!(all, update(bogus, 0, null(), null_mut())), invalid);
        let param = CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR;
        let code = cb!(all, command_info(bogus, param, 0, null_mut(), null_mut()));
        assert_eq!(code, CL_INVALID_MUTABLE_COMMAND_KHR);
    }
    let code = cb!(all, info(all.id, 0x7777, 0, null_mut(), null_mut()));
    assert_eq!(code, CL_INVALID_VALUE);
    let mut byte = 0u8;
    let place = (&raw mut byte).cast();
    let code = cb!(
        all,
        info(all.id, CL_COMMAND_BUFFER_STATE_KHR, 1, place, null_mut())
    );
    assert_eq!(code, CL_INVALID_VALUE);
}

/// The arguments that all calls have which record a command.
struct Tail {
    buffer: cl_command_buffer_khr,
    queue: cl_command_queue,
    properties: *const cl_command_properties_khr,
    count: u32,
    list: *const u32,
    handle: *mut cl_mutable_command_khr,
}

/// Makes all of these calls with a tail that is wrong.
fn record_all(all: &Recording, world: &World, t: &Tail) -> Vec<(&'static str, cl_int)> {
    let (b, q, p, n, l, h) = (t.buffer, t.queue, t.properties, t.count, t.list, t.handle);
    let (zero, one, s) = ([0usize; 3], [1usize; 3], null_mut());
    let (x, y) = (world.a.0, world.b.0);
    let (o, r) = (zero.as_ptr(), one.as_ptr());
    let word = 0u32;
    let pattern: *const c_void = (&raw const word).cast();
    let mut codes = vec![
        ("barrier", cb!(all, barrier(b, q, p, n, l, s, h))),
        ("copy", cb!(all, copy(b, q, p, x, y, 0, 0, 4, n, l, s, h))),
        (
            "rect",
            cb!(
                all,
                copy_rect(b, q, p, x, y, o, o, r, 0, 0, 0, 0, n, l, s, h)
            ),
        ),
        (
            "fill",
            cb!(all, fill(b, q, p, x, pattern, 4, 0, 4, n, l, s, h)),
        ),
    ];
    if let Some(image) = &world.image {
        let i = image.0;
        codes.extend([
            (
                "fill image",
                cb!(all, fill_image(b, q, p, i, pattern, o, r, n, l, s, h)),
            ),
            (
                "to image",
                cb!(all, to_image(b, q, p, x, i, 0, o, r, n, l, s, h)),
            ),
            (
                "from image",
                cb!(all, from_image(b, q, p, i, x, o, r, 0, n, l, s, h)),
            ),
        ]);
    }
    if let Some(svm) = world.svm {
        let far = svm.wrapping_byte_add(128);
        codes.extend([
            ("memcpy", cb!(all, memcpy(b, q, p, far, svm, 4, n, l, s, h))),
            (
                "SVM fill",
                cb!(all, svm_fill(b, q, p, svm, pattern, 4, 4, n, l, s, h)),
            ),
        ]);
    }
    codes
}

struct World {
    a: Buffer,
    b: Buffer,
    image: Option<Buffer>,
    svm: Option<*mut c_void>,
}

impl World {
    fn new(setup: &Setup) -> Self {
        let format = cl_image_format {
            image_channel_order: CL_RGBA,
            image_channel_data_type: CL_UNSIGNED_INT8,
        };
        // SAFETY: all zeros are a description.
        let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
        desc.image_type = CL_MEM_OBJECT_IMAGE2D;
        (desc.image_width, desc.image_height) = (8, 4);
        let flag = |param| info_value!(u32, clGetDeviceInfo(setup.device), param) != 0;
        let shared = info_value!(
            u64,
            clGetDeviceInfo(setup.device),
            CL_DEVICE_SVM_CAPABILITIES
        );
        Self {
            a: setup.buffer(256),
            b: setup.buffer(256),
            image: flag(CL_DEVICE_IMAGE_SUPPORT).then(|| {
                Buffer(create!(clCreateImage(
                    setup.context.0,
                    CL_MEM_READ_WRITE,
                    &format,
                    &desc,
                    null_mut()
                )))
            }),
            svm: (shared != 0)
                .then(|| call!(clSVMAlloc(setup.context.0, CL_MEM_READ_WRITE, 256, 0))),
        }
    }
}

#[test]
fn recording() {
    let setup = Setup::new();
    let world = World::new(&setup);
    let all = Recording::new(&setup);
    let good_tail = || Tail {
        buffer: all.id,
        queue: null_mut(),
        properties: null(),
        count: 0,
        list: null(),
        handle: null_mut(),
    };
    let (point, mut handle) = (99u32, null_mut());
    let unknown = [0x7777u64, 1, 0];
    let none = [0u64];
    let check = |tail: Tail, want| {
        for (name, code) in record_all(&all, &world, &tail) {
            assert_eq!(code, want, "{name}: {}", code_name(code));
        }
    };
    check(good_tail(), 0);
    check(
        Tail {
            properties: none.as_ptr(),
            ..good_tail()
        },
        0,
    );
    for buffer in [null_mut(), BOGUS] {
        check(
            Tail {
                buffer,
                ..good_tail()
            },
            CL_INVALID_COMMAND_BUFFER_KHR,
        );
    }
    let (beside, other) = (setup.new_queue(0), Setup::new());
    for (queue, want) in [
        (setup.queue.0, 0),
        (beside.0, CL_INVALID_COMMAND_QUEUE),
        (BOGUS, CL_INVALID_COMMAND_QUEUE),
        (other.queue.0, CL_INVALID_CONTEXT),
    ] {
        check(
            Tail {
                queue,
                ..good_tail()
            },
            want,
        );
    }
    let invalid = CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
    check(
        Tail {
            count: 1,
            ..good_tail()
        },
        invalid,
    );
    check(
        Tail {
            list: &point,
            ..good_tail()
        },
        invalid,
    );
    check(
        Tail {
            list: &point,
            count: 1,
            ..good_tail()
        },
        invalid,
    );
    check(
        Tail {
            properties: unknown.as_ptr(),
            ..good_tail()
        },
        CL_INVALID_VALUE,
    );
    check(
        Tail {
            handle: &mut handle,
            ..good_tail()
        },
        CL_INVALID_VALUE,
    );
    all.finalize();
    check(good_tail(), CL_INVALID_OPERATION);
    if let Some(pointer) = world.svm {
        drop(all);
        call!(clSVMFree(setup.context.0, pointer));
    }
}

/// Commands that their enqueues refuse, too.
#[test]
fn commands() {
    let (setup, other) = (Setup::new(), Setup::new());
    let all = Recording::new(&setup);
    let (a, foreign) = (setup.buffer(256), other.buffer(256));
    let (b, n, l, s, h) = (all.id, 0, null(), null_mut(), null_mut());
    let (q, p) = (null_mut(), null());
    let copy = |from: *mut c_void, to: *mut c_void, at: usize, size: usize| {
        cb!(all, copy(b, q, p, from, to, at, 0, size, n, l, s, h))
    };
    assert_eq!(copy(BOGUS, a.0, 0, 4), CL_INVALID_MEM_OBJECT);
    assert_eq!(copy(foreign.0, a.0, 0, 4), CL_INVALID_CONTEXT);
    assert_eq!(copy(a.0, a.0, 250, 16), CL_INVALID_VALUE);
    assert_eq!(copy(a.0, a.0, 2, 4), CL_MEM_COPY_OVERLAP);
    let word = 0u32;
    let pattern: *const c_void = (&raw const word).cast();
    let fill = |pattern, size| cb!(all, fill(b, q, p, a.0, pattern, size, 0, 12, n, l, s, h));
    assert_eq!(fill(null(), 4), CL_INVALID_VALUE);
    assert_eq!(fill(pattern, 0), CL_INVALID_VALUE);
    assert_eq!(fill(pattern, 8), CL_INVALID_VALUE);
    let kernel = setup.kernel_of(BUMP, "bump");
    let launch = |kernel: cl_kernel, dims, global: &[usize], local: *const usize| {
        let sizes = global.as_ptr();
        cb!(
            all,
            launch(b, q, p, kernel, dims, null(), sizes, local, n, l, s, h)
        )
    };
    assert_eq!(launch(kernel.0, 1, &[64], null()), CL_INVALID_KERNEL_ARGS);
    kernel.set_buffer(0, &a);
    assert_eq!(launch(BOGUS, 1, &[64], null()), CL_INVALID_KERNEL);
    assert_eq!(
        launch(kernel.0, 0, &[64], null()),
        CL_INVALID_WORK_DIMENSION
    );
    assert_eq!(
        launch(kernel.0, 4, &[1, 1, 1, 1], null()),
        CL_INVALID_WORK_DIMENSION
    );
    assert_eq!(launch(kernel.0, 1, &[64], &0), CL_INVALID_WORK_GROUP_SIZE);
    let theirs = other.kernel_of(BUMP, "bump");
    assert_eq!(launch(theirs.0, 1, &[64], null()), CL_INVALID_CONTEXT);
    let asserts = [
        CL_MUTABLE_DISPATCH_ASSERTS_KHR,
        CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR,
        0,
    ];
    let code = all.try_launch(
        &kernel,
        &[64],
        &[],
        asserts.as_ptr(),
        null_mut(),
        null_mut(),
    );
    assert_eq!(code, CL_INVALID_VALUE);
    let unknown = [CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR, 1 << 20, 0];
    let code = all.try_launch(
        &kernel,
        &[64],
        &[],
        unknown.as_ptr(),
        null_mut(),
        null_mut(),
    );
    assert_eq!(code, CL_INVALID_VALUE);
    // Nothing was recorded.
    let mut point = 0;
    good(all.try_launch(&kernel, &[64], &[], null(), &mut point, null_mut()));
    assert_eq!(
        all.try_launch(&kernel, &[64], &[point], null(), null_mut(), null_mut()),
        0
    );
    let invalid = CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
    let code = all.try_launch(&kernel, &[64], &[point + 2], null(), null_mut(), null_mut());
    assert_eq!(code, invalid);
}

#[test]
fn enqueueing() {
    let (setup, other) = (Setup::new(), Setup::new());
    let all = Recording::new(&setup);
    let queue = setup.new_queue(CL_QUEUE_PROFILING_ENABLE);
    assert_eq!(all.enqueue(None, &[], null_mut()), CL_INVALID_OPERATION);
    all.finalize();
    assert_eq!(all.enqueue(None, &[], null_mut()), 0);
    assert_eq!(all.enqueue(Some(&queue), &[], null_mut()), 0);
    assert_eq!(
        all.enqueue(Some(&other.queue), &[], null_mut()),
        CL_INVALID_CONTEXT
    );
    let mut list = [queue.0, queue.0];
    let enqueue = |count, list: *mut cl_command_queue, events, waits| {
        cb!(all, enqueue(count, list, all.id, events, waits, null_mut()))
    };
    assert_eq!(enqueue(2, list.as_mut_ptr(), 0, null()), CL_INVALID_VALUE);
    assert_eq!(enqueue(0, list.as_mut_ptr(), 0, null()), CL_INVALID_VALUE);
    assert_eq!(enqueue(1, null_mut(), 0, null()), CL_INVALID_VALUE);
    list[0] = BOGUS;
    assert_eq!(
        enqueue(1, list.as_mut_ptr(), 0, null()),
        CL_INVALID_COMMAND_QUEUE
    );
    let event = Event(create!(clCreateUserEvent(other.context.0)));
    assert_eq!(enqueue(0, null_mut(), 1, &event.0), CL_INVALID_CONTEXT);
    assert_eq!(
        enqueue(0, null_mut(), 1, &BOGUS),
        CL_INVALID_EVENT_WAIT_LIST
    );
    assert_eq!(
        enqueue(0, null_mut(), 1, null()),
        CL_INVALID_EVENT_WAIT_LIST
    );
    assert_eq!(
        enqueue(0, null_mut(), 0, &event.0),
        CL_INVALID_EVENT_WAIT_LIST
    );
    ok!(clSetUserEventStatus(event.0, 0));
    let replayed = all.replay_event(None, &[]);
    ok!(clWaitForEvents(1, &replayed.0));
}
