//! Commands on pointers: copies, fills, maps, and memory that is freed by the queue.

use super::*;

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
