//! Launches of kernels, and what sizes are suggested for them.

use super::*;
use pumice_tests::{call, ext};

pub fn rows(t: &mut Table) {
    common(
        t,
        "clEnqueueNDRangeKernel",
        &[],
        Host::Nothing,
        None,
        |w, a| {
            call!(clEnqueueNDRangeKernel(
                a.q,
                w.kernel.0,
                1,
                null(),
                [1usize].as_ptr(),
                null(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(t, "clEnqueueTask", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueTask(a.q, w.kernel.0, a.n, a.list, w.event()))
    });
    own(t);
}

/// A launch.
fn launch(
    w: &World,
    kernel: cl_kernel,
    dims: cl_uint,
    offset: *const usize,
    global: &[usize],
    local: &[usize],
) -> cl_int {
    let local = if local.is_empty() {
        null()
    } else {
        local.as_ptr()
    };
    call!(clEnqueueNDRangeKernel(
        w.s.queue.0,
        kernel,
        dims,
        offset,
        global.as_ptr(),
        local,
        0,
        null(),
        w.event()
    ))
}

fn suggest(
    w: &World,
    kernel: cl_kernel,
    dims: cl_uint,
    offset: *const usize,
    global: *const usize,
) -> cl_int {
    suggest_by(w, w.s.queue.0, kernel, dims, offset, global, w.size())
}

/// The loader does not export it.
fn suggest_by(
    w: &World,
    q: cl_command_queue,
    kernel: cl_kernel,
    dims: cl_uint,
    offset: *const usize,
    global: *const usize,
    place: *mut usize,
) -> cl_int {
    ext!(w.s, clGetKernelSuggestedLocalWorkSize: clGetKernelSuggestedLocalWorkSizeKHR_t(q, kernel, dims, offset, global, place))
}

fn own(t: &mut Table) {
    rows! { t, w;
        clEnqueueNDRangeKernel {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| launch(w, k, 1, null(), &[1], &[]));
            CL_INVALID_KERNEL_ARGS "arguments are not set" = launch(w, w.unset.0, 1, null(), &[1], &[]);
            CL_INVALID_WORK_DIMENSION "no dimension, or four" = [0, 4].map(|dims| launch(w, w.kernel.0, dims, null(), &[1; 4], &[]));
            CL_INVALID_CONTEXT "a kernel of another context" = call!(clEnqueueNDRangeKernel(w.other.queue.0, w.kernel.0, 1, null(),
                [1usize].as_ptr(), null(), 0, null(), w.event()));
            CL_INVALID_GLOBAL_OFFSET "an offset" => never "an error before OpenCL 1.1 only";
            CL_INVALID_GLOBAL_OFFSET "sizes and offsets overflow" = launch(w, w.kernel.0, 1, [usize::MAX].as_ptr(), &[2], &[]);
            CL_INVALID_GLOBAL_WORK_SIZE "no size, or zero" => never "an error before OpenCL 2.1 only";
            CL_INVALID_GLOBAL_WORK_SIZE "zero" => never "an error before OpenCL 2.1 only";
            CL_INVALID_GLOBAL_WORK_SIZE "larger than size_t" => never "host and devices have 64 bits";
            CL_INVALID_WORK_GROUP_SIZE "an empty group" = launch(w, w.kernel.0, 1, null(), &[4], &[0]);
            CL_INVALID_WORK_GROUP_SIZE "not as the kernel requires" = launch(w, w.four.0, 1, null(), &[8], &[8]);
            CL_INVALID_WORK_GROUP_SIZE "too many in all" = launch(w, w.kernel.0, 3, null(), &[1024; 3], &[64, 64, 64]);
            CL_INVALID_WORK_ITEM_SIZE "too many in one dimension" => never "a dimension may be as large as a group: \
                CL_INVALID_WORK_GROUP_SIZE holds as well";
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "system pointers" => never "cannot be told from others: the address is the application's word";
            CL_INVALID_PROGRAM_EXECUTABLE "nothing built for the device" => never "kernels are made of programs built for a device; \
                contexts here have one";
        }
        clEnqueueTask {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| call!(clEnqueueTask(w.s.queue.0, k, 0, null(), w.event())));
            CL_INVALID_KERNEL_ARGS "arguments are not set" = call!(clEnqueueTask(w.s.queue.0, w.unset.0, 0, null(), w.event()));
            CL_INVALID_CONTEXT "a kernel of another context" = call!(clEnqueueTask(w.other.queue.0, w.kernel.0, 0, null(), w.event()));
            CL_INVALID_WORK_GROUP_SIZE "not as the kernel requires" = call!(clEnqueueTask(w.s.queue.0, w.four.0, 0, null(), w.event()));
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "system pointers" => never "cannot be told from others: the address is the application's word";
            CL_INVALID_PROGRAM_EXECUTABLE "nothing built for the device" => never "kernels are made of programs built for a device; \
                contexts here have one";
        }
        clGetKernelSuggestedLocalWorkSize {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q|
                suggest_by(w, q, w.kernel.0, 1, null(), [1usize].as_ptr(), w.size()));
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| suggest(w, k, 1, null(), [1].as_ptr()));
            CL_INVALID_KERNEL_ARGS "arguments are not set" = suggest(w, w.unset.0, 1, null(), [1].as_ptr());
            CL_INVALID_WORK_DIMENSION "no dimension, or four" = [0, 4].map(|dims| suggest(w, w.kernel.0, dims, null(), [1; 4].as_ptr()));
            CL_INVALID_CONTEXT "a kernel of another context" = suggest_by(w, w.other.queue.0, w.kernel.0, 1,
                null(), [1usize].as_ptr(), w.size());
            CL_INVALID_GLOBAL_OFFSET "an offset" => never "an error before OpenCL 1.1 only";
            CL_INVALID_GLOBAL_OFFSET "sizes and offsets overflow" = suggest(w, w.kernel.0, 1, [usize::MAX].as_ptr(), [2].as_ptr());
            CL_INVALID_GLOBAL_WORK_SIZE "no size" = suggest(w, w.kernel.0, 1, null(), null());
            CL_INVALID_GLOBAL_WORK_SIZE "zero" = suggest(w, w.kernel.0, 1, null(), [0].as_ptr());
            CL_INVALID_GLOBAL_WORK_SIZE "larger than size_t" => never "host and devices have 64 bits";
            CL_INVALID_VALUE "no place for the answer" = suggest_by(w, w.s.queue.0, w.kernel.0, 1, null(),
                [1usize].as_ptr(), null_mut());
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "system pointers" => never "cannot be told from others: the address is the application's word";
            CL_INVALID_PROGRAM_EXECUTABLE "nothing built for the device" => never "kernels are made of programs built for a device; \
                contexts here have one";
        }
    }
}
