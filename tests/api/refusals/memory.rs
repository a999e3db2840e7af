//! Buffers, their parts and maps; shared virtual memory.

use super::Seen;
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, ok, Buffer, Event, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

#[test]
fn buffers_and_parts() {
    let setup = Setup::new();
    let mut seen = Seen::default();
    let (c, q) = (setup.context.0, setup.queue.0);
    let (n, e) = (null(), null_mut());
    let value = CL_INVALID_VALUE;
    let list = [0x1234 as cl_mem_properties, 1, 0];
    makes_none!(
        seen,
        "properties",
        CL_INVALID_PROPERTY,
        clCreateBufferWithProperties(c, list.as_ptr(), 0, 16, null_mut())
    );
    makes_none!(
        seen,
        "no context",
        CL_INVALID_CONTEXT,
        clCreateBufferWithProperties(null_mut(), null(), 0, 16, null_mut())
    );
    makes_none!(
        seen,
        "size",
        CL_INVALID_BUFFER_SIZE,
        clCreateBufferWithProperties(c, null(), 0, 0, null_mut())
    );
    makes_none!(
        seen,
        "size",
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(c, 0, usize::MAX, null_mut())
    );
    let whole = setup.buffer(1 << 16);
    let region = |origin, size| cl_buffer_region { origin, size };
    let kind = CL_BUFFER_CREATE_TYPE_REGION;
    let of = |flags, kind, region: Option<cl_buffer_region>| {
        let mut code = 0;
        let info: *const c_void = region.as_ref().map_or(null(), |r| (&raw const *r).cast());
        let made = call!(clCreateSubBuffer(whole.0, flags, kind, info, &mut code));
        if !made.is_null() {
            ok!(clReleaseMemObject(made));
        }
        code
    };
    seen.note("no region", value, of(0, kind, None));
    seen.note("a kind", value, of(0, 0x1, Some(region(0, 16))));
    seen.note(
        "empty",
        CL_INVALID_BUFFER_SIZE,
        of(0, kind, Some(region(0, 0))),
    );
    seen.note(
        "out of bounds",
        value,
        of(0, kind, Some(region(1 << 15, 1 << 16))),
    );
    seen.note(
        "overflow",
        value,
        of(0, kind, Some(region(usize::MAX - 15, 32))),
    );
    let device = setup.device;
    let align = info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    if align > 1 {
        let odd = region(align as usize / 2, 16);
        seen.note(
            "misaligned",
            CL_MISALIGNED_SUB_BUFFER_OFFSET,
            of(0, kind, Some(odd)),
        );
    }
    seen.note(
        "host pointers",
        value,
        of(CL_MEM_ALLOC_HOST_PTR, kind, Some(region(0, 16))),
    );
    let part = region(0, 16);
    let part = Buffer(create!(clCreateSubBuffer(
        whole.0,
        0,
        kind,
        (&raw const part).cast()
    )));
    let again = region(0, 16);
    makes_none!(
        seen,
        "of a part",
        CL_INVALID_MEM_OBJECT,
        clCreateSubBuffer(part.0, 0, kind, (&raw const again).cast())
    );
    // Maps.
    let mapped = create!(clEnqueueMapBuffer(
        q,
        whole.0,
        CL_TRUE,
        CL_MAP_WRITE,
        64,
        64,
        0,
        n,
        e
    ));
    makes_none!(
        seen,
        "mapped for writing",
        CL_INVALID_OPERATION,
        clEnqueueMapBuffer(q, whole.0, CL_TRUE, CL_MAP_WRITE, 0, 65, 0, n, e)
    );
    ok!(clEnqueueUnmapMemObject(q, whole.0, mapped, 0, n, e));
    makes_none!(
        seen,
        "nothing",
        value,
        clEnqueueMapBuffer(q, whole.0, CL_TRUE, CL_MAP_READ, 0, 0, 0, n, e)
    );
    makes_none!(
        seen,
        "flags",
        value,
        clEnqueueMapBuffer(q, whole.0, CL_TRUE, 1 << 9, 0, 16, 0, n, e)
    );
    makes_none!(
        seen,
        "out of bounds",
        value,
        clEnqueueMapBuffer(q, whole.0, CL_TRUE, CL_MAP_READ, 1 << 16, 1, 0, n, e)
    );
    // Fills, copies.
    let pattern = [0u8; 256];
    let p = pattern.as_ptr().cast();
    for (what, size, offset, length) in [
        ("no pattern size", 0, 0, 16),
        ("three bytes", 3, 0, 48),
        ("256 bytes", 256, 0, 256),
        ("offset", 4, 2, 16),
        ("size", 4, 0, 18),
        ("bounds", 4, 1 << 16, 4),
        ("overflow", 4, usize::MAX - 3, 8),
    ] {
        gives!(
            seen,
            what,
            value,
            clEnqueueFillBuffer(q, whole.0, p, size, offset, length, 0, n, e)
        );
    }
    gives!(
        seen,
        "no pattern",
        value,
        clEnqueueFillBuffer(q, whole.0, null(), 4, 0, 16, 0, n, e)
    );
    gives!(
        seen,
        "overlap",
        CL_MEM_COPY_OVERLAP,
        clEnqueueCopyBuffer(q, whole.0, part.0, 4, 0, 8, 0, n, e)
    );
    gives!(
        seen,
        "flags",
        value,
        clEnqueueMigrateMemObjects(q, 1, &whole.0, 1 << 7, 0, n, e)
    );
    gives!(
        seen,
        "nothing",
        value,
        clEnqueueMigrateMemObjects(q, 0, &whole.0, 0, 0, n, e)
    );
    gives!(
        seen,
        "nothing",
        value,
        clEnqueueMigrateMemObjects(q, 1, null(), 0, 0, n, e)
    );
    gives!(
        seen,
        "no function",
        value,
        clSetMemObjectDestructorCallback(whole.0, None, null_mut())
    );
}

#[test]
fn shared_memory() {
    let setup = Setup::new();
    let (c, q, d) = (setup.context.0, setup.queue.0, setup.device);
    if info_value!(u64, clGetDeviceInfo(d), CL_DEVICE_SVM_CAPABILITIES) == 0 {
        return pumice_tests::left_out("no shared virtual memory");
    }
    let mut seen = Seen::default();
    let (n, e) = (null(), null_mut());
    let value = CL_INVALID_VALUE;
    let memory = call!(clSVMAlloc(c, CL_MEM_READ_WRITE, 4096, 0));
    assert!(!memory.is_null());
    let at = |offset: usize| memory.wrapping_byte_add(offset);
    for (what, flags, size, align) in [
        ("flags", CL_MEM_USE_HOST_PTR, 64, 0),
        ("size", CL_MEM_READ_WRITE, 0, 0),
        ("alignment", CL_MEM_READ_WRITE, 64, 3),
        ("alignment", CL_MEM_READ_WRITE, 64, 1 << 30),
        ("two ways", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0),
        ("atomics alone", CL_MEM_SVM_ATOMICS, 64, 0),
        ("too large", CL_MEM_READ_WRITE, usize::MAX, 0),
    ] {
        let made = call!(clSVMAlloc(c, flags, size, align));
        assert!(made.is_null(), "{what}");
    }
    gives!(
        seen,
        "no target",
        value,
        clEnqueueSVMMemcpy(q, CL_TRUE, null_mut(), memory, 16, 0, n, e)
    );
    gives!(
        seen,
        "no source",
        value,
        clEnqueueSVMMemcpy(q, CL_TRUE, memory, null(), 16, 0, n, e)
    );
    gives!(
        seen,
        "overlap",
        CL_MEM_COPY_OVERLAP,
        clEnqueueSVMMemcpy(q, CL_TRUE, at(8), memory, 16, 0, n, e)
    );
    let pattern = [1u8; 256];
    let p = pattern.as_ptr().cast();
    for (what, to, bytes, size) in [
        ("nowhere", null_mut(), 4, 16),
        ("alignment", at(2), 4, 16),
        ("no size", memory, 0, 16),
        ("three", memory, 3, 48),
        ("256", memory, 256, 256),
        ("size", memory, 4, 18),
    ] {
        gives!(
            seen,
            what,
            value,
            clEnqueueSVMMemFill(q, to, p, bytes, size, 0, n, e)
        );
    }
    gives!(
        seen,
        "no pattern",
        value,
        clEnqueueSVMMemFill(q, memory, null(), 4, 16, 0, n, e)
    );
    gives!(
        seen,
        "nowhere",
        value,
        clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, null_mut(), 16, 0, n, e)
    );
    gives!(
        seen,
        "nothing",
        value,
        clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, memory, 0, 0, n, e)
    );
    gives!(
        seen,
        "flags",
        value,
        clEnqueueSVMMap(q, CL_TRUE, 1 << 9, memory, 16, 0, n, e)
    );
    gives!(
        seen,
        "nowhere",
        value,
        clEnqueueSVMUnmap(q, null_mut(), 0, n, e)
    );
    let mut list = [memory];
    let mut inside: [*const c_void; 1] = [memory];
    gives!(
        seen,
        "none",
        value,
        clEnqueueSVMFree(q, 0, list.as_mut_ptr(), None, null_mut(), 0, n, e)
    );
    gives!(
        seen,
        "no list",
        value,
        clEnqueueSVMFree(q, 1, null_mut(), None, null_mut(), 0, n, e)
    );
    gives!(
        seen,
        "none",
        value,
        clEnqueueSVMMigrateMem(q, 0, inside.as_mut_ptr(), null(), 0, 0, n, e)
    );
    gives!(
        seen,
        "no list",
        value,
        clEnqueueSVMMigrateMem(q, 1, null_mut(), null(), 0, 0, n, e)
    );
    let large = 8192usize;
    gives!(
        seen,
        "too much",
        value,
        clEnqueueSVMMigrateMem(q, 1, inside.as_mut_ptr(), &large, 0, 0, n, e)
    );
    gives!(
        seen,
        "flags",
        value,
        clEnqueueSVMMigrateMem(q, 1, inside.as_mut_ptr(), null(), 1 << 9, 0, n, e)
    );
    let event = Event::user(&setup.context);
    let list_error = CL_INVALID_EVENT_WAIT_LIST;
    gives!(
        seen,
        "an empty list",
        list_error,
        clEnqueueSVMUnmap(q, memory, 0, &event.0, e)
    );
    gives!(
        seen,
        "no list",
        list_error,
        clEnqueueSVMMemcpy(q, CL_TRUE, at(64), memory, 16, 1, n, e)
    );
    event.finish(-7);
    let failed = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    gives!(
        seen,
        "after a failure",
        failed,
        clEnqueueSVMMemcpy(q, CL_TRUE, at(64), memory, 16, 1, &event.0, e)
    );
    gives!(
        seen,
        "after a failure",
        failed,
        clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, memory, 16, 1, &event.0, e)
    );
    ok!(clFinish(q));
    call!(clSVMFree(c, memory));
}
