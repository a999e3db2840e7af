//! Tests of queries about pipes, and of errors of the API.

use super::*;

#[test]
fn information() {
    let Some(on) = pipes_with("-cl-std=CL3.0 -cl-kernel-arg-info") else {
        return;
    };
    let device = on.setup.device;
    let limit = |name| info_value!(u32, clGetDeviceInfo(device), name);
    assert!(limit(CL_DEVICE_MAX_PIPE_ARGS) >= 16);
    assert!(limit(CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS) >= 1);
    assert!(limit(CL_DEVICE_PIPE_MAX_PACKET_SIZE) >= 1024);
    let both = CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
    for (flags, reported) in [
        (0, both),
        (both, both),
        (CL_MEM_HOST_NO_ACCESS, both),
        (CL_MEM_READ_WRITE, CL_MEM_READ_WRITE),
    ] {
        let pipe = Buffer(create!(clCreatePipe(
            on.setup.context.0,
            flags,
            12,
            5,
            null()
        )));
        assert_eq!(
            info_value!(u32, clGetPipeInfo(pipe.0), CL_PIPE_PACKET_SIZE),
            12
        );
        assert_eq!(
            info_value!(u32, clGetPipeInfo(pipe.0), CL_PIPE_MAX_PACKETS),
            5
        );
        assert!(info!(clGetPipeInfo(pipe.0), CL_PIPE_PROPERTIES).is_empty());
        let mem = |name| info_value!(u64, clGetMemObjectInfo(pipe.0), name);
        assert_eq!(
            info_value!(u32, clGetMemObjectInfo(pipe.0), CL_MEM_TYPE),
            CL_MEM_OBJECT_PIPE
        );
        assert_eq!(mem(CL_MEM_FLAGS), reported);
        assert!(mem(CL_MEM_SIZE) >= 60);
        assert_eq!(mem(CL_MEM_HOST_PTR), 0);
        assert_eq!(mem(CL_MEM_ASSOCIATED_MEMOBJECT), 0);
        assert_eq!(mem(CL_MEM_OFFSET), 0);
        assert_eq!(
            info_value!(u32, clGetMemObjectInfo(pipe.0), CL_MEM_USES_SVM_POINTER),
            0
        );
    }
    let forward = on.kernel("forward");
    for (index, access) in [
        (0, CL_KERNEL_ARG_ACCESS_READ_ONLY),
        (1, CL_KERNEL_ARG_ACCESS_WRITE_ONLY),
    ] {
        let of = |name| info_value!(u32, clGetKernelArgInfo(forward.0, index), name);
        assert_eq!(of(CL_KERNEL_ARG_ACCESS_QUALIFIER), access);
        assert_eq!(
            of(CL_KERNEL_ARG_ADDRESS_QUALIFIER),
            CL_KERNEL_ARG_ADDRESS_GLOBAL
        );
        assert_eq!(
            info_value!(
                u64,
                clGetKernelArgInfo(forward.0, index),
                CL_KERNEL_ARG_TYPE_QUALIFIER
            ),
            u64::from(CL_KERNEL_ARG_TYPE_PIPE)
        );
        assert_eq!(
            info_text!(
                clGetKernelArgInfo(forward.0, index),
                CL_KERNEL_ARG_TYPE_NAME
            ),
            "uint"
        );
    }
    let get = on.kernel("get");
    assert_eq!(
        info_value!(
            u64,
            clGetKernelArgInfo(get.0, 1),
            CL_KERNEL_ARG_TYPE_QUALIFIER
        ),
        0
    );
}

#[test]
fn refused_pipes() {
    let Some(on) = pipes() else { return };
    let context = on.setup.context.0;
    let limit = info_value!(
        u32,
        clGetDeviceInfo(on.setup.device),
        CL_DEVICE_PIPE_MAX_PACKET_SIZE
    );
    for flags in [
        CL_MEM_READ_ONLY,
        CL_MEM_WRITE_ONLY,
        CL_MEM_COPY_HOST_PTR,
        CL_MEM_HOST_READ_ONLY,
        CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY,
        1 << 40,
    ] {
        create_fails!(CL_INVALID_VALUE, clCreatePipe(context, flags, 4, 4, null()));
    }
    let properties: [cl_pipe_properties; 1] = [0];
    create_fails!(
        CL_INVALID_VALUE,
        clCreatePipe(context, 0, 4, 4, properties.as_ptr())
    );
    for (size, most) in [(0, 4), (4, 0), (limit + 1, 4), (u32::MAX, u32::MAX)] {
        create_fails!(
            CL_INVALID_PIPE_SIZE,
            clCreatePipe(context, 0, size, most, null())
        );
    }
    create_fails!(
        CL_MEM_OBJECT_ALLOCATION_FAILURE,
        clCreatePipe(context, 0, limit, u32::MAX, null())
    );
    create_fails!(
        CL_MEM_OBJECT_ALLOCATION_FAILURE,
        clCreatePipe(context, 0, 1, u32::MAX, null())
    );
    create_fails!(
        CL_INVALID_CONTEXT,
        clCreatePipe(null_mut(), 0, 4, 4, null())
    );
    drop(on.pipe(limit, 2));
}

#[test]
fn refused_arguments() {
    let Some(on) = pipes() else { return };
    let (pipe, buffer) = (on.pipe(4, 4), on.setup.buffer(64));
    let put = on.kernel("put");
    let handle = size_of::<*mut c_void>();
    let set = |index, size, mem: *mut c_void| {
        call!(clSetKernelArg(put.0, index, size, (&raw const mem).cast()))
    };
    assert_eq!(set(0, handle, pipe.0), CL_SUCCESS);
    assert_eq!(set(0, 4, pipe.0), CL_INVALID_ARG_SIZE);
    assert_eq!(set(0, handle, buffer.0), CL_INVALID_MEM_OBJECT);
    assert_eq!(set(0, handle, null_mut()), CL_INVALID_MEM_OBJECT);
    assert_eq!(set(0, handle, on.setup.context.0), CL_INVALID_MEM_OBJECT);
    fails!(
        CL_INVALID_MEM_OBJECT,
        clSetKernelArg(put.0, 0, handle, null())
    );
    // A pipe is no buffer.
    assert_eq!(set(1, handle, pipe.0), CL_INVALID_MEM_OBJECT);
    let elsewhere = Setup::new();
    let foreign = Buffer(create!(clCreatePipe(elsewhere.context.0, 0, 4, 4, null())));
    assert_eq!(set(0, handle, foreign.0), CL_INVALID_CONTEXT);
    if info_value!(
        u64,
        clGetDeviceInfo(on.setup.device),
        CL_DEVICE_SVM_CAPABILITIES
    ) != 0
    {
        fails!(
            CL_INVALID_ARG_VALUE,
            clSetKernelArgSVMPointer(put.0, 0, null_mut())
        );
    }
}

/// Commands on memory do not reach pipes, and queries on other objects do not either.
#[test]
fn refused_commands() {
    let Some(on) = pipes() else { return };
    let (pipe, buffer) = (on.pipe(4, 16), on.setup.buffer(64));
    let q = on.setup.queue.0;
    let (n, e) = (null(), null_mut());
    let mut data = [0u32; 4];
    let at: *mut c_void = data.as_mut_ptr().cast();
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueReadBuffer(q, pipe.0, 1, 0, 16, at, 0, n, e)
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueWriteBuffer(q, pipe.0, 1, 0, 16, at, 0, n, e)
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueCopyBuffer(q, pipe.0, buffer.0, 0, 0, 16, 0, n, e)
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueCopyBuffer(q, buffer.0, pipe.0, 0, 0, 16, 0, n, e)
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueFillBuffer(q, pipe.0, at, 4, 0, 16, 0, n, e)
    );
    create_fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueMapBuffer(q, pipe.0, 1, CL_MAP_READ, 0, 16, 0, n, e)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueUnmapMemObject(q, pipe.0, at, 0, n, e)
    );
    let (origin, region) = ([0usize; 3], [1usize; 3]);
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueReadImage(
            q,
            pipe.0,
            1,
            origin.as_ptr(),
            region.as_ptr(),
            0,
            0,
            at,
            0,
            n,
            e
        )
    );
    let part = cl_buffer_region {
        origin: 0,
        size: 16,
    };
    create_fails!(
        CL_INVALID_MEM_OBJECT,
        clCreateSubBuffer(
            pipe.0,
            0,
            CL_BUFFER_CREATE_TYPE_REGION,
            (&raw const part).cast()
        )
    );
    let value = (&raw mut data).cast();
    fails!(
        CL_INVALID_MEM_OBJECT,
        clGetImageInfo(pipe.0, CL_IMAGE_WIDTH, 8, value, null_mut())
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clGetPipeInfo(buffer.0, CL_PIPE_PACKET_SIZE, 4, value, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetPipeInfo(pipe.0, CL_PIPE_PACKET_SIZE, 3, value, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetPipeInfo(pipe.0, CL_MEM_SIZE, 8, value, null_mut())
    );
    // Migration is for every memory object, and changes nothing.
    let words = on.setup.buffer_of(&[5u32]);
    assert_eq!(on.run("put", &pipe, &words, 1, 1), [0]);
    ok!(clEnqueueMigrateMemObjects(q, 1, &pipe.0, 0, 0, n, e));
    assert_eq!(on.packets(&pipe), 1);
}
