//! Refused calls, and handles that are none: nothing of them is kept.

use super::*;

const DEVICES: cl_mem_properties = CL_MEM_DEVICE_HANDLE_LIST_KHR as cl_mem_properties;

/// The number of open files.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("a list").count()
}

/// Handles that name no memory, or too little, belong to the application still. In a process of its own, whose files nobody
/// else opens.
#[test]
fn wrong_handles() {
    if !is_alone("interop::errors::wrong_handles") {
        return;
    }
    let setup = Setup::new();
    let kinds = [
        ("cl_khr_external_memory_opaque_fd", OPAQUE),
        ("cl_khr_external_memory_dma_buf", DMA_BUF),
    ];
    for (extension, kind) in kinds {
        if !setup.has_extension(extension) {
            left_out(extension);
            continue;
        }
        let (small, foreign) = (memory_file(&[0; 64]), memory_file(&vec![0; 4 * SIZE]));
        let mut pipe = [-1; 2];
        // SAFETY: room for two.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: closed here.
        let closed = unsafe {
            let copy = libc::dup(small);
            libc::close(copy);
            copy
        };
        // What the driver makes once.
        let _ = try_buffer(&setup, &[kind, -1i32 as u32 as u64, 0], SIZE);
        let before = open_files();
        for (fd, what) in [
            (-1, "none"),
            (closed, "a closed one"),
            (small, "a small one"),
            (pipe[0], "a pipe"),
            (foreign, "another's"),
        ] {
            if fd == foreign && kind == DMA_BUF {
                continue;
            }
            let list = [kind, fd as u32 as u64, 0];
            let code = try_buffer(&setup, &list, SIZE).err();
            assert_eq!(code, Some(CL_INVALID_VALUE), "{what}");
            let code = try_image(&setup, &list, 0).err();
            assert_eq!(code, Some(CL_INVALID_VALUE), "{what}, as an image");
        }
        assert_eq!(open_files(), before);
        for fd in [small, foreign, pipe[0], pipe[1]] {
            // SAFETY: ours still, as nothing was imported.
            assert_eq!(unsafe { libc::close(fd) }, 0);
        }
    }
}

/// The errors of creation.
#[test]
fn creation() {
    let setup = Setup::new();
    let kind = match setup.has_extension("cl_khr_external_memory_dma_buf") {
        true => DMA_BUF,
        false => return left_out("no cl_khr_external_memory_dma_buf"),
    };
    let fd = memory_file(&[0; 4096]) as u64;
    let device = setup.device as u64;
    let refused: &[(&[u64], cl_int)] = &[
        (&[kind, fd, kind, fd, 0], CL_INVALID_PROPERTY),
        (&[DEVICES, device, 0, 0], CL_INVALID_PROPERTY),
        (&[kind, fd, DEVICES, 0, 0], CL_INVALID_DEVICE),
        (&[kind, fd, DEVICES, fd, 0, 0], CL_INVALID_DEVICE),
        (&[0x7777, 1, 0], CL_INVALID_PROPERTY),
    ];
    for (list, code) in refused {
        assert_eq!(
            try_buffer(&setup, list, 4096).err(),
            Some(*code),
            "{list:x?}"
        );
        assert_eq!(try_image(&setup, list, 0).err(), Some(*code), "{list:x?}");
    }
    let list = [kind, fd, 0];
    let mut memory = [0u8; 64];
    let place = memory.as_mut_ptr().cast::<c_void>();
    for (flags, pointer, code) in [
        (CL_MEM_USE_HOST_PTR, place, CL_INVALID_VALUE),
        (CL_MEM_COPY_HOST_PTR, place, CL_INVALID_VALUE),
        (CL_MEM_ALLOC_HOST_PTR, null_mut(), CL_INVALID_VALUE),
        (0, place, CL_INVALID_HOST_PTR),
    ] {
        let mut found = 0;
        let made = call!(clCreateBufferWithProperties(
            setup.context.0,
            list.as_ptr(),
            flags,
            64,
            pointer,
            &mut found
        ));
        assert!(made.is_null());
        assert_eq!(found, code);
    }
    let mut found = 0;
    let made = call!(clCreateBufferWithProperties(
        setup.context.0,
        list.as_ptr(),
        0,
        0,
        null_mut(),
        &mut found
    ));
    assert!(made.is_null());
    assert_eq!(found, CL_INVALID_BUFFER_SIZE);
    // SAFETY: ours still.
    assert_eq!(unsafe { libc::close(fd as i32) }, 0);
}

/// The errors of handing over.
#[test]
fn handing_over() {
    let setup = Setup::new();
    if !setup.has_extension("cl_khr_external_memory") {
        return left_out("no cl_khr_external_memory");
    }
    let plain = setup.buffer(64);
    let queue = setup.queue.0;
    let failed = Event(create!(clCreateUserEvent(setup.context.0)));
    ok!(clSetUserEventStatus(failed.0, -1));
    let none = null_mut::<c_void>();
    type Function = clEnqueueAcquireExternalMemObjectsKHR_t;
    let functions: [Function; 2] = [
        setup.function(c"clEnqueueAcquireExternalMemObjectsKHR"),
        setup.function(c"clEnqueueReleaseExternalMemObjectsKHR"),
    ];
    for function in functions {
        let call = |queue, number, list: *const cl_mem, count, waits: *const cl_event| {
            // SAFETY: what is wrong is to be refused.
            let code = unsafe {
                function.expect("a function")(queue, number, list, count, waits, null_mut())
            };
            code_name(code)
        };
        for (number, (found, expected)) in [
            (call(none, 0, null(), 0, null()), CL_INVALID_COMMAND_QUEUE),
            (call(queue, 1, null(), 0, null()), CL_INVALID_VALUE),
            (call(queue, 0, &plain.0, 0, null()), CL_INVALID_VALUE),
            (call(queue, 1, &none, 0, null()), CL_INVALID_MEM_OBJECT),
            (call(queue, 1, &plain.0, 0, null()), CL_INVALID_MEM_OBJECT),
            (
                call(queue, 0, null(), 1, null()),
                CL_INVALID_EVENT_WAIT_LIST,
            ),
            (
                call(queue, 0, null(), 1, &failed.0),
                CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            ),
            // Trivially done.
            (call(queue, 0, null(), 0, null()), CL_SUCCESS),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(found, code_name(expected), "{number}");
        }
    }
    ok!(clFinish(queue));
}

/// The errors of semaphores that others share.
#[test]
fn semaphores() {
    let setup = Setup::new();
    let exports = CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR;
    let sync = CL_SEMAPHORE_HANDLE_SYNC_FD_KHR as cl_semaphore_properties_khr;
    let plain = Semaphore::try_new(&setup, &[TYPE, BINARY, 0]).expect("a semaphore");
    assert_eq!(plain.fd(OPAQUE_SEMAPHORE).err(), Some(CL_INVALID_VALUE));
    let reimport = |semaphore: &Semaphore<'_>, fd| {
        ext!(
            setup,
            clReImportSemaphoreSyncFdKHR: clReImportSemaphoreSyncFdKHR_t(semaphore.1, null_mut(), fd)
        )
    };
    assert_eq!(reimport(&plain, -1), CL_INVALID_SEMAPHORE_KHR);
    if !setup.has_extension("cl_khr_external_semaphore_opaque_fd") {
        let list = [TYPE, BINARY, exports, OPAQUE_SEMAPHORE, 0, 0];
        let code = Semaphore::try_new(&setup, &list).err();
        assert_eq!(code, Some(CL_INVALID_PROPERTY));
        let code = Semaphore::try_new(&setup, &[TYPE, BINARY, OPAQUE_SEMAPHORE, 0, 0]).err();
        assert_eq!(code, Some(CL_INVALID_DEVICE));
        return left_out("the device shares no semaphores");
    }
    let one = Semaphore::exported(&setup, OPAQUE_SEMAPHORE);
    assert_eq!(one.fd(sync).err(), Some(CL_INVALID_VALUE));
    assert_eq!(reimport(&one, -1), CL_INVALID_SEMAPHORE_KHR);
    let fd = one.fd(OPAQUE_SEMAPHORE).expect("a file descriptor");
    let opaque = OPAQUE_SEMAPHORE;
    let refused: &[(&[u64], cl_int)] = &[
        (
            &[TYPE, BINARY, exports, opaque, opaque, 0, 0],
            CL_INVALID_VALUE,
        ),
        (&[TYPE, BINARY, exports, 0x7777, 0, 0], CL_INVALID_PROPERTY),
        (
            &[TYPE, BINARY, opaque, fd as u64, exports, opaque, 0, 0],
            CL_INVALID_OPERATION,
        ),
        (
            &[TYPE, BINARY, opaque, fd as u64, sync, u64::MAX, 0],
            CL_INVALID_PROPERTY,
        ),
    ];
    for (list, code) in refused {
        let found = Semaphore::try_new(&setup, list).err();
        assert_eq!(found, Some(*code), "{list:x?}");
    }
    let imported = Semaphore::of(&setup, fd);
    assert_eq!(imported.fd(opaque).err(), Some(CL_INVALID_VALUE));
    // Only its size is asked for.
    let mut size = 0;
    let code = ext!(
        setup,
        clGetSemaphoreHandleForTypeKHR: clGetSemaphoreHandleForTypeKHR_t(
            one.1, setup.device, opaque as u32, 0, null_mut(), &mut size
        )
    );
    assert_eq!((code, size), (0, 4));
}
