//! One order for host and device: memory that both reach is read when what comes before has written it, written when that
//! is over, and blocking commands are done when they return. Every case has a kernel in front that takes its time.

use pumice_tests::sys::*;
use pumice_tests::{create, fails, info_value, ok, Buffer, Event, Kernel, Queue, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const WORDS: usize = 16 << 10;
const BYTES: usize = WORDS * 4;

/// Returns what the slow kernel leaves.
fn expected(index: usize) -> u32 {
    index as u32 * 3 + 7
}

fn wrong(words: &[u32]) -> usize {
    let differs = |(index, word): &(usize, &u32)| **word != expected(*index);
    words.iter().enumerate().filter(differs).count()
}

/// Memory of the application, aligned so that devices can use it in place.
#[repr(align(4096))]
struct Words([u32; WORDS]);

impl Words {
    fn new() -> Box<Self> {
        Box::new(Self([0; WORDS]))
    }

    fn at(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

struct Scene {
    setup: Setup,
    slow: Kernel,
    copy: Kernel,
    /// The memory that the buffer of results is read into.
    out: Box<Words>,
}

impl Scene {
    fn new() -> Self {
        Self::with_queue(0)
    }

    fn with_queue(flags: cl_command_queue_properties) -> Self {
        let setup = Setup::with_queue(flags);
        let program = setup.build(
            "kernel void slow(global uint *p, uint n) {
                 uint x = get_global_id(0), a = x;
                 for (uint i = 0; i < n; i++) a = a * 1664525u + 1013904223u;
                 p[x] = x * 3u + 7u + (a == 0x12345u);
             }
             kernel void copy(global const uint *a, global uint *b) { b[get_global_id(0)] = a[get_global_id(0)]; }",
        );
        let (slow, copy) = (
            setup.kernel(&program, "slow"),
            setup.kernel(&program, "copy"),
        );
        let scene = Self {
            setup,
            slow,
            copy,
            out: Words::new(),
        };
        // The pipelines are made.
        let buffer = scene.buffer();
        scene.slow.set_buffer(0, &buffer).set(1, 1u32);
        scene.run(&scene.slow, &[], None);
        scene.copy.set_buffer(0, &buffer).set_buffer(1, &buffer);
        scene.finish();
        scene.slow.set(1, 6000u32);
        scene
    }

    fn queue(&self) -> cl_command_queue {
        self.setup.queue.0
    }

    fn finish(&self) {
        ok!(clFinish(self.queue()));
    }

    /// A buffer of zeros.
    fn buffer(&self) -> Buffer {
        self.setup.buffer_of(&vec![0u32; WORDS])
    }

    fn svm(&self, flags: cl_svm_mem_flags) -> Option<*mut u32> {
        let bits = info_value!(
            u64,
            clGetDeviceInfo(self.setup.device),
            CL_DEVICE_SVM_CAPABILITIES
        );
        let fine = flags & CL_MEM_SVM_FINE_GRAIN_BUFFER != 0;
        if bits == 0 || (fine && bits & CL_DEVICE_SVM_FINE_GRAIN_BUFFER == 0) {
            pumice_tests::left_out("no shared virtual memory of that kind");
            return None;
        }
        let flags = flags | CL_MEM_READ_WRITE;
        let pointer = pumice_tests::call!(clSVMAlloc(self.setup.context.0, flags, BYTES, 0));
        assert!(!pointer.is_null());
        if fine {
            // SAFETY: memory of that size that the host sees.
            unsafe { pointer.write_bytes(0, BYTES) };
        }
        Some(pointer.cast())
    }

    fn fine(&self) -> Option<*mut u32> {
        self.svm(CL_MEM_SVM_FINE_GRAIN_BUFFER)
    }

    fn free(&self, pointer: *mut u32) {
        self.finish();
        pumice_tests::call!(clSVMFree(self.setup.context.0, pointer.cast()));
    }

    fn run(&self, kernel: &Kernel, wait: &[&Event], event: Option<&mut Event>) {
        let list: Vec<cl_event> = wait.iter().map(|event| event.0).collect();
        let mut made = null_mut();
        ok!(clEnqueueNDRangeKernel(
            self.queue(),
            kernel.0,
            1,
            null(),
            &WORDS,
            null(),
            list.len() as u32,
            pointer(&list),
            if event.is_some() {
                &mut made
            } else {
                null_mut()
            }
        ));
        if let Some(event) = event {
            *event = Event(made);
        }
    }

    /// The slow kernel writes to a pointer. Its event.
    fn slow_to(&self, pointer: *mut u32) -> Event {
        ok!(clSetKernelArgSVMPointer(self.slow.0, 0, pointer.cast()));
        let mut event = Event(null_mut());
        self.run(&self.slow, &[], Some(&mut event));
        event
    }

    /// The slow kernel writes to a buffer. Its event.
    fn slow_into(&self, buffer: &Buffer) -> Event {
        self.slow.set_buffer(0, buffer);
        let mut event = Event(null_mut());
        self.run(&self.slow, &[], Some(&mut event));
        event
    }

    fn write(
        &self,
        queue: cl_command_queue,
        buffer: &Buffer,
        blocking: bool,
        from: *const c_void,
        wait: &[&Event],
    ) {
        let list: Vec<cl_event> = wait.iter().map(|event| event.0).collect();
        ok!(clEnqueueWriteBuffer(
            queue,
            buffer.0,
            blocking.into(),
            0,
            BYTES,
            from,
            list.len() as u32,
            pointer(&list),
            null_mut()
        ));
    }

    fn read_to(&self, buffer: &Buffer, to: *mut c_void) -> Event {
        let mut event = null_mut();
        ok!(clEnqueueReadBuffer(
            self.queue(),
            buffer.0,
            CL_FALSE,
            0,
            BYTES,
            to,
            0,
            null(),
            &mut event
        ));
        Event(event)
    }

    fn map(&self, buffer: &Buffer, blocking: bool, flags: cl_map_flags) -> (*mut c_void, Event) {
        let mut event = null_mut();
        let pointer = create!(clEnqueueMapBuffer(
            self.queue(),
            buffer.0,
            blocking.into(),
            flags,
            0,
            BYTES,
            0,
            null(),
            &mut event
        ));
        (pointer, Event(event))
    }

    fn unmap(&self, buffer: &Buffer, pointer: *mut c_void) {
        ok!(clEnqueueUnmapMemObject(
            self.queue(),
            buffer.0,
            pointer,
            0,
            null(),
            null_mut()
        ));
    }

    /// The buffer has what the slow kernel leaves, as a blocking read on that queue sees it.
    fn check(&mut self, queue: cl_command_queue, buffer: &Buffer, what: &str) {
        self.out.0.fill(0);
        let out = self.out.at();
        let (wait, event) = (null(), null_mut());
        ok!(clEnqueueReadBuffer(
            queue, buffer.0, CL_TRUE, 0, BYTES, out, 0, wait, event
        ));
        assert_eq!(wrong(&self.out.0), 0, "{what}");
        self.finish();
    }
}

fn pointer(list: &[cl_event]) -> *const cl_event {
    if list.is_empty() {
        null()
    } else {
        list.as_ptr()
    }
}

/// The words at a pointer, after the command that was to fill them.
fn seen(pointer: *const u32) -> usize {
    // SAFETY: an allocation of that size; nothing writes to it now, as the tests claim.
    wrong(unsafe { std::slice::from_raw_parts(pointer, WORDS) })
}

#[test]
fn writes_read_what_kernels_wrote_to_shared_memory() {
    let mut scene = Scene::new();
    let Some(shared) = scene.fine() else { return };
    let queue = scene.queue();
    for blocking in [false, true] {
        let buffer = scene.buffer();
        // SAFETY: nothing uses it now.
        unsafe { shared.write_bytes(0, WORDS) };
        scene.slow_to(shared);
        scene.write(queue, &buffer, blocking, shared.cast(), &[]);
        scene.check(queue, &buffer, "in order");
    }
    let buffer = scene.buffer();
    // SAFETY: nothing uses it now.
    unsafe { shared.write_bytes(0, WORDS) };
    let other = scene.setup.new_queue(0);
    let event = scene.slow_to(shared);
    scene.write(other.0, &buffer, false, shared.cast(), &[&event]);
    scene.check(other.0, &buffer, "from another queue");
    // SAFETY: nothing uses it now.
    unsafe { shared.write_bytes(0, WORDS) };
    let event = scene.slow_to(shared);
    let small = scene.buffer();
    for at in (0..BYTES).step_by(4096) {
        ok!(clEnqueueWriteBuffer(
            other.0,
            small.0,
            CL_FALSE,
            at,
            4096,
            shared.wrapping_byte_add(at).cast(),
            1,
            &event.0,
            null_mut()
        ));
    }
    scene.check(other.0, &small, "in small pieces");
    scene.free(shared);
}

#[test]
fn writes_out_of_order_read_what_they_wait_for() {
    let mut scene = Scene::with_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let Some(shared) = scene.fine() else { return };
    let (queue, buffer) = (scene.queue(), scene.buffer());
    let event = scene.slow_to(shared);
    scene.write(queue, &buffer, true, shared.cast(), &[&event]);
    scene.check(queue, &buffer, "out of order");
    scene.free(shared);
}

#[test]
fn images_are_written_from_shared_memory() {
    let mut scene = Scene::new();
    let Some(shared) = scene.fine() else { return };
    let format = cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: CL_UNSIGNED_INT32,
    };
    let side = 128usize;
    let image = Buffer(create!(clCreateImage2D(
        scene.setup.context.0,
        CL_MEM_READ_WRITE,
        &format,
        side,
        side,
        0,
        null_mut()
    )));
    let (origin, region) = ([0usize; 3], [side, side, 1]);
    scene.slow_to(shared);
    ok!(clEnqueueWriteImage(
        scene.queue(),
        image.0,
        CL_FALSE,
        origin.as_ptr(),
        region.as_ptr(),
        0,
        0,
        shared.cast(),
        0,
        null(),
        null_mut()
    ));
    ok!(clEnqueueReadImage(
        scene.queue(),
        image.0,
        CL_TRUE,
        origin.as_ptr(),
        region.as_ptr(),
        0,
        0,
        scene.out.at(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(wrong(&scene.out.0), 0);
    scene.free(shared);
}

#[test]
fn kernels_see_what_was_read_into_mapped_memory() {
    let mut scene = Scene::new();
    let (a, b, result) = (scene.buffer(), scene.buffer(), scene.buffer());
    let (mapped, _event) = scene.map(&b, true, CL_MAP_WRITE);
    scene.slow_into(&a);
    scene.read_to(&a, mapped);
    scene.unmap(&b, mapped);
    scene.copy.set_buffer(0, &b).set_buffer(1, &result);
    scene.run(&scene.copy, &[], None);
    scene.check(scene.queue(), &result, "read, unmap, kernel");
}

#[test]
fn kernels_see_what_was_read_into_shared_memory() {
    let mut scene = Scene::new();
    let (a, result) = (scene.buffer(), scene.buffer());
    let Some(shared) = scene.fine() else { return };
    scene.slow_into(&a);
    scene.read_to(&a, shared.cast());
    ok!(clSetKernelArgSVMPointer(scene.copy.0, 0, shared.cast()));
    scene.copy.set_buffer(1, &result);
    scene.run(&scene.copy, &[], None);
    scene.check(scene.queue(), &result, "read, kernel");
    scene.free(shared);
}

#[test]
fn coarse_memory_is_read_and_written_while_mapped() {
    let mut scene = Scene::new();
    let Some(shared) = scene.svm(0) else { return };
    let (queue, buffer, result) = (scene.queue(), scene.buffer(), scene.buffer());
    let map = |blocking, flags| {
        let mut event = null_mut();
        ok!(clEnqueueSVMMap(
            queue,
            blocking,
            flags,
            shared.cast(),
            BYTES,
            0,
            null(),
            &mut event
        ));
        Event(event)
    };
    let unmap = || {
        ok!(clEnqueueSVMUnmap(
            queue,
            shared.cast(),
            0,
            null(),
            null_mut()
        ))
    };
    scene.slow_to(shared);
    let event = map(CL_FALSE, CL_MAP_READ);
    scene.write(queue, &buffer, false, shared.cast(), &[&event]);
    unmap();
    scene.check(queue, &buffer, "map, write from it");
    let a = scene.buffer();
    map(CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION);
    // SAFETY: mapped for writing.
    unsafe { shared.write_bytes(0, WORDS) };
    scene.slow_into(&a);
    scene.read_to(&a, shared.cast());
    unmap();
    ok!(clSetKernelArgSVMPointer(scene.copy.0, 0, shared.cast()));
    scene.copy.set_buffer(1, &result);
    scene.run(&scene.copy, &[], None);
    scene.check(queue, &result, "read into it, unmap, kernel");
    scene.free(shared);
}

#[test]
fn writes_from_mapped_memory_wait_for_the_map() {
    let mut scene = Scene::new();
    let (queue, other) = (scene.queue(), scene.setup.new_queue(0));
    let (a, b) = (scene.buffer(), scene.buffer());
    scene.slow_into(&a);
    let (mapped, event) = scene.map(&a, false, CL_MAP_READ);
    scene.write(queue, &b, false, mapped, &[&event]);
    scene.unmap(&a, mapped);
    scene.check(queue, &b, "a buffer");
    let (mut words, b) = (Words::new(), scene.buffer());
    let over = Buffer(create!(clCreateBuffer(
        scene.setup.context.0,
        CL_MEM_USE_HOST_PTR,
        BYTES,
        words.at()
    )));
    scene.slow_into(&over);
    let (mapped, event) = scene.map(&over, false, CL_MAP_READ);
    assert_eq!(mapped, words.at());
    scene.write(other.0, &b, false, mapped, &[&event]);
    scene.check(other.0, &b, "memory of the application, from another queue");
    scene.unmap(&over, mapped);
    scene.finish();
}

#[test]
fn memory_of_the_system_has_the_same_order() {
    let mut scene = Scene::new();
    let bits = info_value!(
        u64,
        clGetDeviceInfo(scene.setup.device),
        CL_DEVICE_SVM_CAPABILITIES
    );
    if bits & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM == 0 {
        return pumice_tests::left_out("no fine-grained memory of the system");
    }
    let (queue, other) = (scene.queue(), scene.setup.new_queue(0));
    let (a, b, result) = (scene.buffer(), scene.buffer(), scene.buffer());
    let mut words = Words::new();
    let event = scene.slow_to(words.at().cast());
    scene.write(queue, &b, false, words.at(), &[]);
    scene.write(other.0, &a, false, words.at(), &[&event]);
    scene.check(queue, &b, "in order");
    scene.check(other.0, &a, "from another queue");
    words.0.fill(0);
    scene.slow_into(&a);
    scene.read_to(&a, words.at());
    ok!(clSetKernelArgSVMPointer(scene.copy.0, 0, words.at()));
    scene.copy.set_buffer(1, &result);
    scene.run(&scene.copy, &[], None);
    scene.check(queue, &result, "read, kernel");
}

#[test]
fn blocking_copies_are_done() {
    let scene = Scene::new();
    let (Some(from), Some(to)) = (scene.fine(), scene.fine()) else {
        return;
    };
    let queue = scene.queue();
    let mut words = Words::new();
    for (index, word) in words.0.iter_mut().enumerate() {
        *word = expected(index);
    }
    let copy = |source: *const c_void| {
        // SAFETY: nothing uses it now.
        unsafe { to.write_bytes(0, WORDS) };
        scene.slow_to(from);
        ok!(clEnqueueSVMMemcpy(
            queue,
            CL_TRUE,
            to.cast(),
            source,
            BYTES,
            0,
            null(),
            null_mut()
        ));
        seen(to)
    };
    assert_eq!(copy(from.cast()), 0, "shared to shared");
    assert_eq!(copy(words.at()), 0, "host to shared");
    // SAFETY: nothing uses it now.
    unsafe { to.write_bytes(0, WORDS) };
    let over = Buffer(create!(clCreateBuffer(
        scene.setup.context.0,
        CL_MEM_USE_HOST_PTR,
        BYTES,
        to.cast()
    )));
    scene.slow_to(from);
    scene.write(queue, &over, true, words.at(), &[]);
    assert_eq!(seen(to), 0, "a buffer over shared memory");
    drop(over);
    scene.free(from);
    scene.free(to);
}

#[test]
fn queues_made_later_see_blocking_writes() {
    let mut scene = Scene::new();
    let (a, busy) = (scene.buffer(), scene.buffer());
    let mut words = Words::new();
    for (index, word) in words.0.iter_mut().enumerate() {
        *word = expected(index);
    }
    scene.slow_into(&busy);
    scene.write(scene.queue(), &a, true, words.at(), &[]);
    let later: Queue = scene.setup.new_queue(0);
    scene.check(later.0, &a, "a queue made later");
}

#[test]
fn maps_and_unmaps_that_fail_change_nothing() {
    let scene = Scene::new();
    let buffer = scene.buffer();
    let count = || info_value!(cl_uint, clGetMemObjectInfo(buffer.0), CL_MEM_MAP_COUNT);
    let (first, _event) = scene.map(&buffer, true, CL_MAP_READ);
    // Found out at once, and when it is held.
    let failed = Event::user(&scene.setup.context);
    failed.finish(-5);
    let later = Event::user(&scene.setup.context);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            later.finish(-5);
        });
        for event in [&failed, &later] {
            let mut code = 0;
            pumice_tests::call!(clEnqueueMapBuffer(
                scene.queue(),
                buffer.0,
                CL_TRUE,
                CL_MAP_READ,
                0,
                BYTES,
                1,
                &event.0,
                null_mut(),
                &mut code
            ));
            assert_eq!(code, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
            assert_eq!(count(), 1);
        }
    });
    let held = Event::user(&scene.setup.context);
    for event in [&failed, &held] {
        let mut unmapped = null_mut();
        ok!(clEnqueueUnmapMemObject(
            scene.queue(),
            buffer.0,
            first,
            1,
            &event.0,
            &mut unmapped
        ));
        if std::ptr::eq(event, &held) {
            held.finish(-7);
        }
        assert!(Event(unmapped).wait() < 0);
        assert_eq!(count(), 1, "the map stands");
    }
    scene.unmap(&buffer, first);
    scene.finish();
    assert_eq!(count(), 0);
    fails!(
        CL_INVALID_VALUE,
        clEnqueueUnmapMemObject(scene.queue(), buffer.0, first, 0, null(), null_mut())
    );
}
