//! Shared virtual memory: allocation, commands on pointers, kernels that follow them.

use pumice_tests::sys::*;
use pumice_tests::{call, create, create_fails, fails, info_value, ok, Buffer, Event, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Software drivers have as much as they say; of a GPU it may be in use.
#[test]
fn the_largest_allocation() {
    let setup = Setup::new();
    let size = info_value!(
        cl_ulong,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    let kind = info_value!(
        cl_device_type,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_TYPE
    );
    let pointer = call!(clSVMAlloc(setup.context.0, 0, size as usize, 0));
    assert!(!pointer.is_null() || kind == CL_DEVICE_TYPE_GPU);
    call!(clSVMFree(setup.context.0, pointer));
    assert!(call!(clSVMAlloc(setup.context.0, 0, size as usize + 1, 0)).is_null());
}

/// An allocation of 32-bit words.
struct Shared<'a> {
    setup: &'a Setup,
    pointer: *mut u32,
    words: usize,
}

impl<'a> Shared<'a> {
    fn new(setup: &'a Setup, words: usize) -> Self {
        Self::with(setup, words, CL_MEM_READ_WRITE)
    }

    fn with(setup: &'a Setup, words: usize, flags: cl_svm_mem_flags) -> Self {
        let pointer = call!(clSVMAlloc(setup.context.0, flags, words * 4, 0));
        assert!(!pointer.is_null());
        assert!((pointer as usize).is_multiple_of(128));
        Self {
            setup,
            pointer: pointer.cast(),
            words,
        }
    }

    fn at(&self, index: usize) -> *mut c_void {
        self.pointer.wrapping_add(index).cast()
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is the device's, as mapped memory of any buffer"
    )]
    fn map(&self, flags: cl_map_flags) -> &mut [u32] {
        let queue = self.setup.queue.0;
        let size = self.words * 4;
        ok!(clEnqueueSVMMap(
            queue,
            CL_TRUE,
            flags,
            self.at(0),
            size,
            0,
            null(),
            null_mut()
        ));
        // SAFETY: mapped, and the tests do not use it while the device does.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.words) }
    }

    fn unmap(&self) {
        ok!(clEnqueueSVMUnmap(
            self.setup.queue.0,
            self.at(0),
            0,
            null(),
            null_mut()
        ));
    }

    /// Its contents, through a map.
    fn read(&self) -> Vec<u32> {
        let words = self.map(CL_MAP_READ).to_vec();
        self.unmap();
        words
    }

    fn write(&self, words: &[u32]) {
        self.map(CL_MAP_WRITE_INVALIDATE_REGION)[..words.len()].copy_from_slice(words);
        self.unmap();
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        call!(clFinish(self.setup.queue.0));
        call!(clSVMFree(self.setup.context.0, self.at(0)));
    }
}

fn capabilities(setup: &Setup) -> u64 {
    info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_SVM_CAPABILITIES
    )
}

/// A setup, where the device has shared virtual memory.
fn setup() -> Option<Setup> {
    let setup = Setup::new();
    if capabilities(&setup) == 0 {
        pumice_tests::left_out("no shared virtual memory");
        return None;
    }
    Some(setup)
}

fn memcpy(setup: &Setup, blocking: bool, dst: *mut c_void, src: *const c_void, size: usize) {
    let queue = setup.queue.0;
    ok!(clEnqueueSVMMemcpy(
        queue,
        blocking.into(),
        dst,
        src,
        size,
        0,
        null(),
        null_mut()
    ));
}

#[test]
fn allocations_are_checked() {
    let Some(setup) = setup() else { return };
    let context = setup.context.0;
    let none = |flags, size, align| {
        let made = call!(clSVMAlloc(context, flags, size, align));
        call!(clSVMFree(context, made));
        made.is_null()
    };
    assert!(none(CL_MEM_READ_WRITE, 0, 0));
    assert!(none(CL_MEM_READ_WRITE | CL_MEM_READ_ONLY, 64, 0));
    assert!(none(CL_MEM_SVM_ATOMICS, 64, 0), "atomics need fine grain");
    assert!(none(CL_MEM_USE_HOST_PTR, 64, 0));
    assert!(none(CL_MEM_READ_WRITE, 64, 3));
    assert!(none(CL_MEM_READ_WRITE, 64, 1 << 31));
    assert!(none(CL_MEM_READ_WRITE, usize::MAX, 0));
    let largest = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    assert!(none(CL_MEM_READ_WRITE, largest as usize + 1, 0));
    let fine = capabilities(&setup) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0;
    assert_eq!(none(CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0), !fine);
    let atomics = capabilities(&setup) & CL_DEVICE_SVM_ATOMICS != 0;
    let both = CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
    assert_eq!(none(both, 64, 0), !atomics);
    for align in [1u32, 16, 64, 128, 4096] {
        let made = call!(clSVMAlloc(context, 0, 100, align));
        assert!((made as usize).is_multiple_of(align as usize) && !made.is_null());
        call!(clSVMFree(context, made));
    }
    call!(clSVMFree(context, null_mut()));
}

#[test]
fn arguments_point_anywhere_into_an_allocation() {
    let Some(setup) = setup() else { return };
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p, constant uint *c, local uint *l, uint n)
         { l[0] = n; p[get_global_id(0)] = c[get_global_id(0)] + l[0]; }",
        "f",
    );
    let (a, b) = (Shared::new(&setup, 64), Shared::new(&setup, 64));
    a.write(&[7; 64]);
    b.write(&(0..64).collect::<Vec<u32>>());
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, a.at(10)));
    ok!(clSetKernelArgSVMPointer(kernel.0, 1, b.at(3)));
    kernel.set_local(2, 4).set(3, 100u32);
    setup.run(&kernel, &[5], None);
    let mut expected = vec![7; 64];
    expected[10..15].copy_from_slice(&[103, 104, 105, 106, 107]);
    assert_eq!(a.read(), expected);
    fails!(
        CL_INVALID_ARG_INDEX,
        clSetKernelArgSVMPointer(kernel.0, 4, a.at(0))
    );
    fails!(
        CL_INVALID_ARG_VALUE,
        clSetKernelArgSVMPointer(kernel.0, 2, a.at(0))
    );
    fails!(
        CL_INVALID_ARG_VALUE,
        clSetKernelArgSVMPointer(kernel.0, 3, a.at(0))
    );
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, null()));
}

#[test]
fn kernels_follow_pointers_in_memory() {
    let Some(setup) = setup() else { return };
    let source = "
        typedef struct node { uint value; global struct node *next; global uint *elsewhere; } node;
        kernel void walk(global node *first, global uint *sum)
        {
            for (global node *n = first; n; n = n->next) {
                *sum += n->value + *n->elsewhere;
                *n->elsewhere = 1000 + n->value;
            }
        }";
    let kernel = setup.kernel_of(source, "walk");
    let (nodes, far) = (Shared::new(&setup, 6 * 4), Shared::new(&setup, 16));
    let sum = setup.buffer_of(&[0u32]);
    far.write(&(0..16).map(|n| n * 10).collect::<Vec<u32>>());
    {
        // value, padding, next, elsewhere: six words a node
        let words = nodes.map(CL_MAP_WRITE);
        for (index, node) in words.chunks_mut(6).enumerate() {
            let next = if index == 3 {
                0
            } else {
                nodes.at((index + 1) * 6) as u64
            };
            let elsewhere = far.at(index * 2) as u64;
            node[0] = index as u32 + 1;
            for (place, address) in [(2, next), (4, elsewhere)] {
                node[place] = address as u32;
                node[place + 1] = (address >> 32) as u32;
            }
        }
        nodes.unmap();
    }
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, nodes.at(0)));
    kernel.set_buffer(1, &sum);
    let reached = [far.at(5)];
    let (size, list) = (size_of_val(&reached), reached.as_ptr().cast());
    ok!(clSetKernelExecInfo(
        kernel.0,
        CL_KERNEL_EXEC_INFO_SVM_PTRS,
        size,
        list
    ));
    setup.enqueue(&kernel, &[1], None);
    // In order behind the kernel, without anything that names `far` as its argument.
    let mut words = [0u32; 16];
    memcpy(&setup, false, words.as_mut_ptr().cast(), far.at(0), 64);
    ok!(clFinish(setup.queue.0));
    assert_eq!(setup.read::<u32>(&sum, 1), [10 + 20 + 40 + 60]);
    let mut expected: Vec<u32> = (0..16).map(|n| n * 10).collect();
    for n in 0..4 {
        expected[n * 2] = 1001 + n as u32;
    }
    assert_eq!(words.as_slice(), expected);

    ok!(clSetKernelExecInfo(
        kernel.0,
        CL_KERNEL_EXEC_INFO_SVM_PTRS,
        0,
        null()
    ));
    fails!(
        CL_INVALID_VALUE,
        clSetKernelExecInfo(kernel.0, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, null())
    );
    fails!(
        CL_INVALID_VALUE,
        clSetKernelExecInfo(kernel.0, CL_KERNEL_EXEC_INFO_SVM_PTRS, 7, list)
    );
    fails!(
        CL_INVALID_VALUE,
        clSetKernelExecInfo(kernel.0, 0x1234, size, list)
    );
    let system = capabilities(&setup) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0;
    let yes: cl_bool = CL_TRUE;
    let code = call!(clSetKernelExecInfo(
        kernel.0,
        CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM,
        4,
        (&raw const yes).cast()
    ));
    assert_eq!(
        code,
        if system {
            CL_SUCCESS
        } else {
            CL_INVALID_OPERATION
        }
    );
}

#[test]
fn copies_and_fills_keep_the_order_of_the_queue() {
    let Some(setup) = setup() else { return };
    let kernel = setup.kernel_of(
        "kernel void twice(global uint *p) { p[get_global_id(0)] *= 2; }",
        "twice",
    );
    let (a, b) = (Shared::new(&setup, 256), Shared::new(&setup, 256));
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, b.at(0)));
    let mut host: Vec<u32> = (0..256).collect();
    let (mut middle, mut last) = (vec![0u32; 256], vec![0u32; 256]);
    for _ in 0..20 {
        last.fill(0);
        memcpy(&setup, false, a.at(0), host.as_ptr().cast(), 1024);
        memcpy(&setup, false, b.at(0), a.at(0), 1024);
        setup.enqueue(&kernel, &[256], None);
        memcpy(&setup, false, middle.as_mut_ptr().cast(), b.at(0), 1024);
        memcpy(
            &setup,
            false,
            last.as_mut_ptr().cast(),
            middle.as_ptr().cast(),
            1024,
        );
        let pattern = 5u32;
        let place = (&raw const pattern).cast();
        let queue = setup.queue.0;
        ok!(clEnqueueSVMMemFill(
            queue,
            b.at(0),
            place,
            4,
            1024,
            0,
            null(),
            null_mut()
        ));
        // Memory of the host, no allocation.
        let target = middle.as_mut_ptr().cast();
        ok!(clEnqueueSVMMemFill(
            queue,
            target,
            place,
            4,
            512,
            0,
            null(),
            null_mut()
        ));
        memcpy(&setup, true, a.at(0), middle.as_ptr().cast(), 1024);
        assert!(last
            .iter()
            .zip(&host)
            .all(|(now, before)| *now == before.wrapping_mul(2)));
        assert_eq!(&a.read()[..128], [5; 128]);
        assert_eq!(&a.read()[128..], &last[128..]);
        assert_eq!(b.read(), [5; 256]);
        host.copy_from_slice(&last);
    }
}

#[test]
fn commands_are_checked() {
    let Some(setup) = setup() else { return };
    let queue = setup.queue.0;
    let a = Shared::new(&setup, 64);
    let word = 1u32;
    let pattern: *const c_void = (&raw const word).cast();
    let (no, none) = (null(), null_mut());
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMemcpy(queue, 1, null_mut(), a.at(0), 4, 0, no, none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMemcpy(queue, 1, a.at(0), null(), 4, 0, no, none)
    );
    fails!(
        CL_MEM_COPY_OVERLAP,
        clEnqueueSVMMemcpy(queue, 1, a.at(1), a.at(0), 8, 0, no, none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMemcpy(queue, 1, a.at(60), a.at(0), 32, 0, no, none)
    );
    for (pointer, pattern, length, size) in [
        (null_mut(), pattern, 4, 16),
        (a.at(0), null(), 4, 16),
        (a.at(0), pattern, 0, 16),
        (a.at(0), pattern, 3, 12),
        (a.at(0), pattern, 256, 256),
        (a.at(0), pattern, 4, 15),
        (a.at(1), pattern, 8, 16),
        (a.at(60), pattern, 4, 32),
    ] {
        fails!(
            CL_INVALID_VALUE,
            clEnqueueSVMMemFill(queue, pointer, pattern, length, size, 0, no, none)
        );
    }
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMap(queue, 1, CL_MAP_READ, null_mut(), 4, 0, no, none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMap(queue, 1, CL_MAP_READ, a.at(0), 0, 0, no, none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMap(queue, 1, 1 << 20, a.at(0), 4, 0, no, none)
    );
    fails!(
        CL_INVALID_EVENT_WAIT_LIST,
        clEnqueueSVMMap(queue, 1, CL_MAP_READ, a.at(0), 4, 1, no, none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMUnmap(queue, null_mut(), 0, no, none)
    );
    let mut pointers = [a.at(3).cast_const(), a.at(0)];
    let sizes = [8usize, 0];
    let list = pointers.as_mut_ptr();
    ok!(clEnqueueSVMMigrateMem(
        queue,
        2,
        list,
        sizes.as_ptr(),
        0,
        0,
        no,
        none
    ));
    ok!(clEnqueueSVMMigrateMem(
        queue,
        2,
        list,
        null(),
        CL_MIGRATE_MEM_OBJECT_HOST,
        0,
        no,
        none
    ));
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMigrateMem(queue, 0, list, null(), 0, 0, no, none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMigrateMem(queue, 1, null_mut(), null(), 0, 0, no, none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMigrateMem(queue, 2, list, null(), 1 << 9, 0, no, none)
    );
    let large = [1024usize, 0];
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMMigrateMem(queue, 2, list, large.as_ptr(), 0, 0, no, none)
    );
    let mut free = [a.at(0)];
    let data = null_mut();
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMFree(queue, 0, free.as_mut_ptr(), None, data, 0, no, none)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueSVMFree(queue, 1, null_mut(), None, data, 0, no, none)
    );
    // Events say what they are of, and when it was.
    let profiled = setup.new_queue(CL_QUEUE_PROFILING_ENABLE);
    let queue = profiled.0;
    let mut events = [null_mut(); 5];
    let [copy, fill, map, unmap, migrate] = &mut events;
    ok!(clEnqueueSVMMemcpy(
        queue,
        0,
        a.at(0),
        a.at(32),
        64,
        0,
        no,
        copy
    ));
    ok!(clEnqueueSVMMemFill(
        queue,
        a.at(0),
        pattern,
        4,
        64,
        0,
        no,
        fill
    ));
    ok!(clEnqueueSVMMap(
        queue,
        0,
        CL_MAP_READ,
        a.at(0),
        64,
        0,
        no,
        map
    ));
    ok!(clEnqueueSVMUnmap(queue, a.at(0), 0, no, unmap));
    ok!(clEnqueueSVMMigrateMem(
        queue,
        1,
        list,
        null(),
        0,
        0,
        no,
        migrate
    ));
    ok!(clFinish(queue));
    let kinds = [
        CL_COMMAND_SVM_MEMCPY,
        CL_COMMAND_SVM_MEMFILL,
        CL_COMMAND_SVM_MAP,
        CL_COMMAND_SVM_UNMAP,
        CL_COMMAND_SVM_MIGRATE_MEM,
    ];
    for (event, kind) in events.into_iter().map(Event).zip(kinds) {
        assert_eq!(
            info_value!(u32, clGetEventInfo(event.0), CL_EVENT_COMMAND_TYPE),
            kind
        );
        let time = |param| info_value!(u64, clGetEventProfilingInfo(event.0), param);
        let times = [
            time(CL_PROFILING_COMMAND_QUEUED),
            time(CL_PROFILING_COMMAND_SUBMIT),
            time(CL_PROFILING_COMMAND_START),
            time(CL_PROFILING_COMMAND_END),
            time(CL_PROFILING_COMMAND_COMPLETE),
        ];
        assert!(times.is_sorted() && times[0] > 0, "{kind:#x}: {times:?}");
    }
}

static FREED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn give_back(
    _queue: cl_command_queue,
    count: cl_uint,
    pointers: *mut *mut c_void,
    data: *mut c_void,
) {
    for index in 0..count as usize {
        // SAFETY: the list has that many.
        let pointer = unsafe { pointers.add(index).read() };
        call!(clSVMFree(data, pointer));
    }
    FREED.fetch_add(count as usize, Ordering::SeqCst);
}

#[test]
fn memory_is_freed_in_its_turn() {
    let Some(setup) = setup() else { return };
    let (queue, context) = (setup.queue.0, setup.context.0);
    let alloc = || call!(clSVMAlloc(context, 0, 4096, 0));
    let mut pointers = [alloc(), alloc()];
    let gate = Event::user(&setup.context);
    let mut event = null_mut();
    let list = pointers.as_mut_ptr();
    ok!(clEnqueueSVMFree(
        queue,
        2,
        list,
        Some(give_back),
        context,
        1,
        &gate.0,
        &mut event
    ));
    // The list is copied.
    pointers.fill(null_mut());
    let event = Event(event);
    assert_eq!(FREED.load(Ordering::SeqCst), 0);
    gate.finish(CL_COMPLETE);
    assert_eq!(event.wait(), CL_SUCCESS);
    assert_eq!(FREED.load(Ordering::SeqCst), 2);
    assert_eq!(
        info_value!(u32, clGetEventInfo(event.0), CL_EVENT_COMMAND_TYPE),
        CL_COMMAND_SVM_FREE
    );
    // By the driver itself, behind a kernel that uses it.
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p) { p[get_global_id(0)] = 1; }",
        "f",
    );
    for _ in 0..50 {
        let mut one = [alloc()];
        ok!(clSetKernelArgSVMPointer(kernel.0, 0, one[0]));
        setup.enqueue(&kernel, &[1024], None);
        ok!(clEnqueueSVMFree(
            queue,
            1,
            one.as_mut_ptr(),
            None,
            null_mut(),
            0,
            null(),
            null_mut()
        ));
    }
    ok!(clFinish(queue));
}

#[test]
fn buffers_are_made_of_allocations() {
    let Some(setup) = setup() else { return };
    let a = Shared::new(&setup, 64);
    a.write(&(0..64).collect::<Vec<u32>>());
    let flags = CL_MEM_USE_HOST_PTR;
    let buffer = Buffer(create!(clCreateBuffer(
        setup.context.0,
        flags,
        128,
        a.at(32)
    )));
    let query = |mem: &Buffer| info_value!(u32, clGetMemObjectInfo(mem.0), CL_MEM_USES_SVM_POINTER);
    assert_eq!(query(&buffer), CL_TRUE);
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(buffer.0), CL_MEM_HOST_PTR),
        a.at(32) as usize
    );
    assert_eq!(
        setup.read::<u32>(&buffer, 32),
        (32..64).collect::<Vec<u32>>()
    );
    setup.write(&buffer, &[9u32; 4]);
    assert_eq!(a.read()[30..38], [30, 31, 9, 9, 9, 9, 36, 37]);
    create_fails!(
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(setup.context.0, flags, 132, a.at(32))
    );
    let kernel = setup.kernel_of(
        "kernel void add(global uint *a, global uint *b) { a[get_global_id(0)] += b[get_global_id(0)]; }",
        "add",
    );
    // The same bytes by both ways.
    kernel.set_buffer(0, &buffer);
    ok!(clSetKernelArgSVMPointer(kernel.0, 1, a.at(32)));
    setup.enqueue(&kernel, &[4], None);
    setup.enqueue(&kernel, &[4], None);
    assert_eq!(a.read()[32..36], [36; 4]);
    assert_eq!(query(&setup.buffer(64)), CL_FALSE);
}

#[test]
fn sub_buffers_count_from_their_buffer() {
    let Some(setup) = setup() else { return };
    // A page for the buffer to begin at, then one that is aligned for no sub-buffer.
    for begin in [1024, 9] {
        let a = Shared::new(&setup, 4096);
        a.write(&[0; 4096]);
        let flags = CL_MEM_USE_HOST_PTR;
        let context = setup.context.0;
        let buffer = Buffer(create!(clCreateBuffer(context, flags, 8192, a.at(begin))));
        let region = cl_buffer_region {
            origin: 1024,
            size: 2048,
        };
        let sub = Buffer(create!(clCreateSubBuffer(
            buffer.0,
            0,
            CL_BUFFER_CREATE_TYPE_REGION,
            (&raw const region).cast()
        )));
        let offset = |mem: &Buffer| info_value!(usize, clGetMemObjectInfo(mem.0), CL_MEM_OFFSET);
        assert_eq!((offset(&buffer), offset(&sub)), (0, 1024));
        assert_eq!(
            info_value!(usize, clGetMemObjectInfo(sub.0), CL_MEM_HOST_PTR),
            a.at(begin + 256) as usize
        );
        setup.write(&sub, &[7u32; 4]);
        let kernel = setup.kernel_of("kernel void one(global uint *a) { a[4] = 1; }", "one");
        kernel.set_buffer(0, &sub);
        setup.enqueue(&kernel, &[1], None);
        let first = begin + 256;
        assert_eq!(a.read()[first - 1..first + 6], [0, 7, 7, 7, 7, 1, 0]);
        let mapped = create!(clEnqueueMapBuffer(
            setup.queue.0,
            sub.0,
            CL_TRUE,
            CL_MAP_READ,
            64,
            64,
            0,
            null(),
            null_mut()
        ));
        assert_eq!(mapped, a.at(first + 16));
        ok!(clEnqueueUnmapMemObject(
            setup.queue.0,
            sub.0,
            mapped,
            0,
            null(),
            null_mut()
        ));
        ok!(clFinish(setup.queue.0));
    }
}

#[test]
fn images_of_buffers_over_shared_memory() {
    let Some(setup) = setup() else { return };
    if info_value!(
        cl_bool,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_IMAGE_SUPPORT
    ) == CL_FALSE
    {
        return pumice_tests::left_out("no images");
    }
    let a = Shared::new(&setup, 4096);
    a.write(&(0..4096).collect::<Vec<u32>>());
    let context = setup.context.0;
    let flags = CL_MEM_USE_HOST_PTR;
    let buffer = Buffer(create!(clCreateBuffer(context, flags, 8192, a.at(1024))));
    let region = cl_buffer_region {
        origin: 4096,
        size: 4096,
    };
    let sub = Buffer(create!(clCreateSubBuffer(
        buffer.0,
        0,
        CL_BUFFER_CREATE_TYPE_REGION,
        (&raw const region).cast()
    )));
    let format = cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: CL_UNSIGNED_INT32,
    };
    for (kind, name, at) in [
        (
            CL_MEM_OBJECT_IMAGE2D,
            "image2d_t",
            "(int2)(get_global_id(0), 0)",
        ),
        (
            CL_MEM_OBJECT_IMAGE1D_BUFFER,
            "image1d_buffer_t",
            "(int)get_global_id(0)",
        ),
    ] {
        // SAFETY: zeros are a description that says nothing.
        let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
        (desc.image_type, desc.image_width, desc.image_height) = (kind, 64, 1);
        desc.buffer = sub.0;
        let image = Buffer(create!(clCreateImage(
            context,
            0,
            &raw const format,
            &raw const desc,
            null_mut()
        )));
        assert_eq!(
            info_value!(usize, clGetMemObjectInfo(image.0), CL_MEM_OFFSET),
            0
        );
        let kernel = setup.kernel_of(
            &format!(
                "kernel void get(read_only {name} i, global uint *o)
                 {{ o[get_global_id(0)] = read_imageui(i, {at}).x; }}"
            ),
            "get",
        );
        let out = setup.buffer(256);
        kernel.set_buffer(0, &image).set_buffer(1, &out);
        setup.run(&kernel, &[64], None);
        assert_eq!(
            setup.read::<u32>(&out, 64),
            (2048..2112).collect::<Vec<u32>>(),
            "{name}"
        );
    }
}

#[test]
fn fine_grained_memory_needs_no_maps() {
    let setup = Setup::new();
    if capabilities(&setup) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER == 0 {
        return pumice_tests::left_out("no fine-grained buffers");
    }
    let a = Shared::with(
        &setup,
        1024,
        CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
    );
    // SAFETY: the device is idle whenever this is used.
    let words = unsafe { std::slice::from_raw_parts_mut(a.pointer, 1024) };
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p) { p[get_global_id(0)] = p[get_global_id(0)] * 3 + 1; }",
        "f",
    );
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, a.at(0)));
    for round in 0..20u32 {
        for (index, word) in words.iter_mut().enumerate() {
            *word = index as u32 + round;
        }
        setup.run(&kernel, &[1024], None);
        assert!((0..)
            .zip(words.iter())
            .all(|(n, word)| *word == (n + round) * 3 + 1));
    }
}

#[test]
fn memory_of_the_system_is_shared_where_the_device_says_so() {
    let setup = Setup::new();
    if capabilities(&setup) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM == 0 {
        return pumice_tests::left_out("no fine-grained memory of the system");
    }
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p, global uint *q) { q[get_global_id(0)] += p[get_global_id(0)] * 2; }",
        "f",
    );
    let source: Vec<u32> = (0..5000).collect();
    let mut target = vec![1u32; 5000];
    ok!(clSetKernelArgSVMPointer(
        kernel.0,
        0,
        source.as_ptr().cast()
    ));
    ok!(clSetKernelArgSVMPointer(
        kernel.0,
        1,
        target.as_mut_ptr().cast()
    ));
    let zeros = vec![0u32; 5000];
    let place: *mut c_void = target.as_mut_ptr().cast();
    // What the host copies and what the device computes keep their order.
    for _ in 0..10 {
        memcpy(&setup, false, place, zeros.as_ptr().cast(), 20000);
        setup.enqueue(&kernel, &[5000], None);
        setup.enqueue(&kernel, &[5000], None);
    }
    let mut copy = vec![0u32; 5000];
    memcpy(&setup, true, copy.as_mut_ptr().cast(), place, 20000);
    assert!((0..).zip(&copy).all(|(n, word)| *word == n * 4));
    assert_eq!(copy, target);
}

static GONE: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn gone(_context: cl_context, _data: *mut c_void) {
    GONE.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_context_takes_forgotten_allocations_along() {
    let Some(setup) = setup() else { return };
    let device = setup.device;
    let context: cl_context = create!(clCreateContext(null(), 1, &device, None, null_mut()));
    ok!(clSetContextDestructorCallback(
        context,
        Some(gone),
        null_mut()
    ));
    assert!(!call!(clSVMAlloc(context, 0, 4096, 0)).is_null());
    assert!(!call!(clSVMAlloc(context, 0, 64, 0)).is_null());
    ok!(clReleaseContext(context));
    assert_eq!(GONE.load(Ordering::SeqCst), 1);
}
