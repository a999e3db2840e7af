//! Commands on shared virtual memory.

use super::*;
use pumice_tests::call;
use std::ffi::c_void;

pub fn rows(t: &mut Table) {
    common(t, "clEnqueueSVMMemcpy", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueSVMMemcpy(
            a.q,
            CL_TRUE,
            w.svm,
            w.svm.wrapping_byte_add(64),
            16,
            a.n,
            a.list,
            w.event()
        ))
    });
    common(
        t,
        "clEnqueueSVMMemFill",
        &[],
        Host::Nothing,
        None,
        |w, a| {
            call!(clEnqueueSVMMemFill(
                a.q,
                w.svm,
                w.place(),
                4,
                16,
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(t, "clEnqueueSVMMap", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueSVMMap(
            a.q,
            CL_TRUE,
            CL_MAP_READ,
            w.svm,
            16,
            a.n,
            a.list,
            w.event()
        ))
    });
    common(t, "clEnqueueSVMUnmap", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueSVMUnmap(a.q, w.svm, a.n, a.list, w.event()))
    });
    common(t, "clEnqueueSVMFree", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueSVMFree(
            a.q,
            1,
            [w.svm].as_mut_ptr(),
            None,
            null_mut(),
            a.n,
            a.list,
            w.event()
        ))
    });
    common(
        t,
        "clEnqueueSVMMigrateMem",
        &[],
        Host::Nothing,
        None,
        |w, a| {
            call!(clEnqueueSVMMigrateMem(
                a.q,
                1,
                [w.svm.cast_const()].as_mut_ptr(),
                null(),
                0,
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    own(t);
}

/// Shared virtual memory.
fn own(t: &mut Table) {
    rows! { t, w;
        clEnqueueSVMMemcpy {
            CL_INVALID_VALUE "no target" = call!(clEnqueueSVMMemcpy(w.s.queue.0, CL_TRUE, null_mut(), w.svm, 16, 0, null(), w.event()));
            CL_INVALID_VALUE "no source" = call!(clEnqueueSVMMemcpy(w.s.queue.0, CL_TRUE, w.svm, null(), 16, 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "overlapping" = call!(clEnqueueSVMMemcpy(w.s.queue.0, CL_TRUE, w.svm.wrapping_byte_add(8), w.svm, 16, 0,
                null(), w.event()));
        }
        clEnqueueSVMMemFill {
            CL_INVALID_VALUE "nowhere" = svm_fill(w, null_mut(), w.place(), 4, 16);
            CL_INVALID_VALUE "not aligned" = svm_fill(w, w.svm.wrapping_byte_add(2), w.place(), 4, 16);
            CL_INVALID_VALUE "no pattern" = svm_fill(w, w.svm, null_mut(), 4, 16);
            CL_INVALID_VALUE "an empty pattern" = svm_fill(w, w.svm, w.place(), 0, 16);
            CL_INVALID_VALUE "a pattern of 3 bytes" = svm_fill(w, w.svm, w.place(), 3, 48);
            CL_INVALID_VALUE "a pattern of 256 bytes" = svm_fill(w, w.svm, w.place(), 256, 256);
            CL_INVALID_VALUE "the size is no multiple" = svm_fill(w, w.svm, w.place(), 4, 18);
        }
        clEnqueueSVMMap {
            CL_INVALID_VALUE "nowhere" = svm_map(w, null_mut(), CL_MAP_READ, 16);
            CL_INVALID_VALUE "nothing" = svm_map(w, w.svm, CL_MAP_READ, 0);
            CL_INVALID_VALUE "flags" = svm_map(w, w.svm, 1 << 9, 16);
        }
        clEnqueueSVMUnmap {
            CL_INVALID_VALUE "nowhere" = call!(clEnqueueSVMUnmap(w.s.queue.0, null_mut(), 0, null(), w.event()));
        }
        clEnqueueSVMFree {
            CL_INVALID_VALUE "a list of nothing" = call!(clEnqueueSVMFree(w.s.queue.0, 0, [w.svm].as_mut_ptr(), None, null_mut(), 0,
                null(), w.event()));
            CL_INVALID_VALUE "no list" = call!(clEnqueueSVMFree(w.s.queue.0, 1, null_mut(), None, null_mut(), 0, null(), w.event()));
        }
        clEnqueueSVMMigrateMem {
            CL_INVALID_VALUE "nothing" = svm_migrate(w, 0, [w.svm.cast_const()].as_mut_ptr(), null(), 0);
            CL_INVALID_VALUE "no list" = svm_migrate(w, 1, null_mut(), null(), 0);
            CL_INVALID_VALUE "flags" = svm_migrate(w, 1, [w.svm.cast_const()].as_mut_ptr(), null(), 1 << 9);
            CL_INVALID_VALUE "more than there is" = svm_migrate(w, 1, [w.svm.cast_const()].as_mut_ptr(), &8192, 0);
        }
    }
    for call in [
        "clEnqueueSVMMemcpy",
        "clEnqueueSVMMemFill",
        "clEnqueueSVMMap",
        "clEnqueueSVMUnmap",
        "clEnqueueSVMFree",
        "clEnqueueSVMMigrateMem",
    ] {
        let how = crate::table::How::Never("the devices here have it");
        t.add(
            call,
            code!(CL_INVALID_OPERATION),
            "no shared virtual memory",
            how,
        );
    }
}

fn svm_fill(
    w: &World,
    to: *mut c_void,
    pattern: *const c_void,
    bytes: usize,
    size: usize,
) -> cl_int {
    call!(clEnqueueSVMMemFill(
        w.s.queue.0,
        to,
        pattern,
        bytes,
        size,
        0,
        null(),
        w.event()
    ))
}

fn svm_map(w: &World, at: *mut c_void, flags: cl_map_flags, size: usize) -> cl_int {
    call!(clEnqueueSVMMap(
        w.s.queue.0,
        CL_TRUE,
        flags,
        at,
        size,
        0,
        null(),
        w.event()
    ))
}

fn svm_migrate(
    w: &World,
    n: cl_uint,
    list: *mut *const c_void,
    sizes: *const usize,
    flags: cl_mem_migration_flags,
) -> cl_int {
    call!(clEnqueueSVMMigrateMem(
        w.s.queue.0,
        n,
        list,
        sizes,
        flags,
        0,
        null(),
        w.event()
    ))
}
