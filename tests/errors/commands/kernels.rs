//! Launches of kernels, and what sizes are suggested for them.

use super::*;
use crate::table::NOT_HERE;
use pumice_tests::{call, ext, info_value};
use std::ffi::c_void;

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
            CL_INVALID_WORK_GROUP_SIZE "no multiple, where groups must be uniform" = launch(w, w.kernel.0, 1, null(), &[5], &[2]);
            CL_INVALID_WORK_GROUP_SIZE "not of as many sub-groups as the kernel requires" = launch(w, w.two_sub_groups.0, 1, null(), &[1], &[1]);
            CL_INVALID_WORK_GROUP_SIZE "a product that overflows" = launch(w, w.kernel.0, 3, null(), &[4, 4, 1], &[usize::MAX; 3]);
            CL_OUT_OF_RESOURCES "more dispatches than a command may have" = launch(w, w.kernel.0, 1, null(), &[usize::MAX], &[]);
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
            CL_INVALID_WORK_GROUP_SIZE "not of as many sub-groups as the kernel requires" =
                call!(clEnqueueTask(w.s.queue.0, w.two_sub_groups.0, 0, null(), w.event()));
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
        clEnqueueNativeKernel {
            CL_INVALID_COMMAND_QUEUE "not a queue" = if_native(w, true, &|| w.bad(|q| native(w, q, &Native::new(w))));
            CL_INVALID_CONTEXT "an event of another context" = if_native(w, true, &||
                vec![native(w, w.s.queue.0, &Native { list: (1, &w.user_foreign.0), ..Native::new(w) })]);
            CL_INVALID_EVENT_WAIT_LIST "a list and a count that do not agree" = if_native(w, true, &|| [(1, null()), (0, &raw const w.user.0)]
                .map(|list| native(w, w.s.queue.0, &Native { list, ..Native::new(w) })).to_vec());
            CL_INVALID_EVENT_WAIT_LIST "what is in the list is no event" = if_native(w, true, &|| w.bad_event(|event|
                native(w, w.s.queue.0, &Native { list: (1, &event), ..Native::new(w) })));
            CL_INVALID_MEM_OBJECT "not a buffer" = if_native(w, true, &|| [null_mut(), w.user.0, w.i.0].map(|object|
                native(w, w.s.queue.0, &Native { objects: (1, &object, NOWHERE.as_ptr()), ..Native::new(w) })).to_vec());
            CL_INVALID_VALUE "no function" = if_native(w, true, &|| vec![native(w, w.s.queue.0, &Native { function: None, ..Native::new(w) })]);
            CL_INVALID_VALUE "a size, but no arguments" = if_native(w, true, &||
                vec![native(w, w.s.queue.0, &Native { args: (null_mut(), 8), ..Native::new(w) })]);
            CL_INVALID_VALUE "objects, but no arguments" = if_native(w, true, &||
                vec![native(w, w.s.queue.0, &Native { args: (null_mut(), 0), objects: (1, &w.b.0, NOWHERE.as_ptr()), ..Native::new(w) })]);
            CL_INVALID_VALUE "arguments, but no size" = if_native(w, true, &||
                vec![native(w, w.s.queue.0, &Native { args: (w.place(), 0), ..Native::new(w) })]);
            CL_INVALID_VALUE "a count without objects or places" = if_native(w, true, &||
                [(1, null(), NOWHERE.as_ptr()), (1, &raw const w.b.0, null())].map(|objects|
                    native(w, w.s.queue.0, &Native { objects, ..Native::new(w) })).to_vec());
            CL_INVALID_VALUE "objects or places without a count" = if_native(w, true, &||
                [(0, null(), NOWHERE.as_ptr()), (0, &raw const w.b.0, null())].map(|objects|
                    native(w, w.s.queue.0, &Native { objects, ..Native::new(w) })).to_vec());
            CL_INVALID_OPERATION "no native kernels" = if_native(w, false, &|| vec![native(w, w.s.queue.0, &Native::new(w))]);
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "system pointers" => never "cannot be told from others: the address is the application's word";
        }
    }
}

unsafe extern "C" fn nothing_of_native(_: *mut c_void) {}

/// Where an address of a buffer would go.
static NOWHERE: [usize; 1] = [0];

/// The arguments of a native kernel.
struct Native {
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    args: (*mut c_void, usize),
    /// Count, objects, and the places of their addresses, which are not looked at.
    objects: (cl_uint, *const cl_mem, *const usize),
    list: (cl_uint, *const cl_event),
}

impl Native {
    fn new(w: &World) -> Self {
        Self {
            function: Some(nothing_of_native),
            args: (w.place(), 8),
            objects: (0, null(), null()),
            list: (0, null()),
        }
    }
}

fn native(w: &World, q: cl_command_queue, of: &Native) -> cl_int {
    let (n, objects, places) = of.objects;
    // One place, within the arguments.
    let mut place = w.place().cast_const();
    let places = if places.is_null() {
        null_mut()
    } else {
        &raw mut place
    };
    call!(clEnqueueNativeKernel(
        q,
        of.function,
        of.args.0,
        of.args.1,
        n,
        objects,
        places,
        of.list.0,
        of.list.1,
        w.event()
    ))
}

/// Where the device runs native kernels, or runs none.
fn if_native(w: &World, has: bool, calls: &dyn Fn() -> Vec<cl_int>) -> Vec<cl_int> {
    let kinds = info_value!(
        u64,
        clGetDeviceInfo(w.s.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    );
    if (kinds & CL_EXEC_NATIVE_KERNEL != 0) == has {
        calls()
    } else {
        vec![NOT_HERE]
    }
}
