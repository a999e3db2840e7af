//! Extensions whose allocations are addresses, and entry points of extensions that are core functions by another name.

use crate::table::{How, Table, NOT_HERE};
use crate::world::World;
use pumice_tests::ext;
use pumice_tests::sys::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

type List = *const cl_mem_properties_intel;

/// The three kinds of allocation.
const ALLOCATE: [&str; 3] = [
    "clHostMemAllocINTEL",
    "clDeviceMemAllocINTEL",
    "clSharedMemAllocINTEL",
];

fn allocate(
    w: &World,
    name: &str,
    c: cl_context,
    d: cl_device_id,
    list: List,
    size: usize,
    align: cl_uint,
) -> cl_int {
    let mut code = 1;
    let made = match name {
        "clHostMemAllocINTEL" => {
            ext!(w.s, clHostMemAllocINTEL: clHostMemAllocINTEL_t(c, list, size, align, &mut code))
        }
        "clDeviceMemAllocINTEL" => {
            ext!(w.s, clDeviceMemAllocINTEL: clDeviceMemAllocINTEL_t(c, d, list, size, align, &mut code))
        }
        _ => {
            ext!(w.s, clSharedMemAllocINTEL: clSharedMemAllocINTEL_t(c, d, list, size, align, &mut code))
        }
    };
    w.made(!made.is_null());
    code
}

fn allocations(t: &mut Table) {
    for name in ALLOCATE {
        t.provoked(name, code!(CL_INVALID_CONTEXT), "not a context", move |w| {
            w.bad(|c| allocate(w, name, c, w.s.device, null(), 16, 0))
        });
        t.provoked(name, code!(CL_INVALID_DEVICE), "not a device", move |w| {
            vec![allocate(w, name, w.s.context.0, w.user.0, null(), 16, 0)]
        });
        t.provoked(name, code!(CL_INVALID_BUFFER_SIZE), "nothing", move |w| {
            vec![allocate(w, name, w.s.context.0, w.s.device, null(), 0, 0)]
        });
        t.provoked(name, code!(CL_INVALID_BUFFER_SIZE), "too large", move |w| {
            vec![allocate(
                w,
                name,
                w.s.context.0,
                w.s.device,
                null(),
                usize::MAX,
                0,
            )]
        });
        t.provoked(
            name,
            code!(CL_INVALID_VALUE),
            "an alignment that is no power of two",
            move |w| vec![allocate(w, name, w.s.context.0, w.s.device, null(), 16, 3)],
        );
        t.provoked(
            name,
            code!(CL_INVALID_VALUE),
            "an alignment beyond the largest type",
            move |w| {
                vec![allocate(
                    w,
                    name,
                    w.s.context.0,
                    w.s.device,
                    null(),
                    16,
                    1 << 20,
                )]
            },
        );
        t.provoked(
            name,
            code!(CL_INVALID_PROPERTY),
            "not a property",
            move |w| {
                vec![allocate(
                    w,
                    name,
                    w.s.context.0,
                    w.s.device,
                    [0x1234, 1, 0].as_ptr(),
                    16,
                    0,
                )]
            },
        );
        let memory = code!(CL_INVALID_PROPERTY);
        t.provoked(name, memory, "twice", move |w| {
            let flags = [CL_MEM_ALLOC_FLAGS_INTEL, 0];
            let list = [flags, flags].concat();
            let list = [list, vec![0]].concat();
            let (c, d) = (w.s.context.0, w.s.device);
            vec![allocate(w, name, c, d, list.as_ptr(), 16, 0)]
        });
        t.provoked(name, memory, "flags for another kind of memory", move |w| {
            let host = CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL;
            let device = CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL;
            let all = match name {
                "clSharedMemAllocINTEL" => vec![host | device],
                _ => vec![host, device],
            };
            let (c, d) = (w.s.context.0, w.s.device);
            all.into_iter()
                .map(|flags| {
                    let list = [CL_MEM_ALLOC_FLAGS_INTEL, flags, 0];
                    allocate(w, name, c, d, list.as_ptr(), 16, 0)
                })
                .collect()
        });
        if name == "clSharedMemAllocINTEL" {
            let none = "for no device, too large";
            t.provoked(name, code!(CL_INVALID_BUFFER_SIZE), none, move |w| {
                let (c, no) = (w.s.context.0, null_mut());
                vec![allocate(w, name, c, no, null(), usize::MAX, 0)]
            });
            let none = "for no device, an alignment beyond the largest type";
            t.provoked(name, code!(CL_INVALID_VALUE), none, move |w| {
                let (c, no) = (w.s.context.0, null_mut());
                vec![allocate(w, name, c, no, null(), 16, 1 << 20)]
            });
            let never = How::Never("the devices here have it");
            let none = "for no device, no such memory";
            t.add(name, code!(CL_INVALID_OPERATION), none, never);
        }
        let never = How::Never("the devices here have it");
        t.add(name, code!(CL_INVALID_OPERATION), "no such memory", never);
    }
}

fn commands(t: &mut Table) {
    rows! { t, w;
        clMemFreeINTEL {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| ext!(w.s, clMemFreeINTEL: clMemFreeINTEL_t(c, null_mut())));
            CL_INVALID_VALUE "not an allocation" = ext!(w.s, clMemFreeINTEL: clMemFreeINTEL_t(w.s.context.0, w.place()));
        }
        clMemBlockingFreeINTEL {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| ext!(w.s, clMemBlockingFreeINTEL: clMemBlockingFreeINTEL_t(c, null_mut())));
            CL_INVALID_VALUE "not an allocation" = ext!(w.s, clMemBlockingFreeINTEL: clMemBlockingFreeINTEL_t(w.s.context.0, w.place()));
        }
        clGetMemAllocInfoINTEL {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| info(w, c, CL_MEM_ALLOC_TYPE_INTEL, 4));
            CL_INVALID_VALUE "a name that is none" = info(w, w.s.context.0, 0xfff1, 4);
            CL_INVALID_VALUE "a place that is too small" = { let code = info(w, w.s.context.0, CL_MEM_ALLOC_TYPE_INTEL, 1);
                w.size_is_open(); code };
        }
        clEnqueueMemcpyINTEL {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| copy(w, q, w.svm, w.place(), 0, null()));
            CL_INVALID_VALUE "nowhere" = [copy(w, w.s.queue.0, null_mut(), w.svm, 0, null()), copy(w, w.s.queue.0, w.svm, null(), 0, null())];
            CL_MEM_COPY_OVERLAP "overlapping" = copy(w, w.s.queue.0, w.svm.wrapping_byte_add(8), w.svm, 0, null());
            CL_INVALID_EVENT_WAIT_LIST "a list and a count that do not agree" =
                [copy(w, w.s.queue.0, w.svm, w.place(), 1, null()), copy(w, w.s.queue.0, w.svm, w.place(), 0, &w.user.0)];
            CL_INVALID_CONTEXT "an event of another context" = copy(w, w.s.queue.0, w.svm, w.place(), 1, &w.user_foreign.0);
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST "it waits for an event that failed" =
                copy(w, w.s.queue.0, w.svm, w.place(), 1, &w.failed.0);
            CL_INVALID_EVENT_WAIT_LIST "a list of no events" = copy(w, w.s.queue.0, w.svm, w.place(), 0, &w.user.0);
            CL_INVALID_EVENT_WAIT_LIST "what is in the list is no event" = w.bad_event(|event| copy(w, w.s.queue.0, w.svm, w.place(), 1, &event));
        }
        clEnqueueMemFillINTEL {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| fill(w, q, w.svm, w.place(), 4, 16));
            CL_INVALID_VALUE "nowhere" = fill(w, w.s.queue.0, null_mut(), w.place(), 4, 16);
            CL_INVALID_VALUE "not aligned" = fill(w, w.s.queue.0, w.svm.wrapping_byte_add(2), w.place(), 4, 16);
            CL_INVALID_VALUE "no pattern" = fill(w, w.s.queue.0, w.svm, null(), 4, 16);
            CL_INVALID_VALUE "a pattern of 0, 3 or 256 bytes" = [0, 3, 256].map(|n| fill(w, w.s.queue.0, w.svm, w.place(), n, 768));
            CL_INVALID_VALUE "the size is no multiple" = fill(w, w.s.queue.0, w.svm, w.place(), 4, 18);
            CL_INVALID_CONTEXT "an event of another context" = fill_after(w, 1, &w.user_foreign.0);
            CL_INVALID_EVENT_WAIT_LIST "events are announced, there is no list" = fill_after(w, 1, null());
            CL_INVALID_EVENT_WAIT_LIST "a list of no events" = fill_after(w, 0, &w.user.0);
            CL_INVALID_EVENT_WAIT_LIST "what is in the list is no event" = w.bad_event(|event| fill_after(w, 1, &event));
        }
        clSetKernelArgMemPointerINTEL {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| argument(w, k, 0));
            CL_INVALID_ARG_INDEX "none of so many" = argument(w, w.kernel.0, 3);
            CL_INVALID_ARG_VALUE "not a pointer to global memory" = [1, 2].map(|index| argument(w, w.kernel.0, index));
        }
        clSetKernelArgDevicePointerEXT {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| address(w, k, 0));
            CL_INVALID_ARG_INDEX "none of so many" = address(w, w.kernel.0, 3);
            CL_INVALID_ARG_INDEX "not a pointer to global memory" = [1, 2].map(|index| address(w, w.kernel.0, index));
            CL_INVALID_OPERATION "no addresses" => never "the devices here have them";
        }
    }
}

fn info(w: &World, c: cl_context, name: cl_uint, size: usize) -> cl_int {
    ext!(w.s, clGetMemAllocInfoINTEL: clGetMemAllocInfoINTEL_t(c, w.svm, name, size, w.place(), w.size()))
}

fn copy(
    w: &World,
    q: cl_command_queue,
    to: *mut c_void,
    from: *const c_void,
    n: cl_uint,
    list: *const cl_event,
) -> cl_int {
    ext!(w.s, clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_t(q, CL_TRUE, to, from, 16, n, list, w.event()))
}

fn fill(
    w: &World,
    q: cl_command_queue,
    to: *mut c_void,
    pattern: *const c_void,
    bytes: usize,
    size: usize,
) -> cl_int {
    ext!(w.s, clEnqueueMemFillINTEL: clEnqueueMemFillINTEL_t(q, to, pattern, bytes, size, 0, null(), w.event()))
}

fn argument(w: &World, kernel: cl_kernel, index: cl_uint) -> cl_int {
    ext!(w.s, clSetKernelArgMemPointerINTEL: clSetKernelArgMemPointerINTEL_t(kernel, index, w.svm))
}

fn address(w: &World, kernel: cl_kernel, index: cl_uint) -> cl_int {
    ext!(w.s, clSetKernelArgDevicePointerEXT: clSetKernelArgDevicePointerEXT_t(kernel, index, w.svm.addr() as u64))
}

fn other_names(t: &mut Table) {
    rows! { t, w;
        clCreateCommandQueueWithPropertiesKHR {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| queue(w, c, w.s.device, null()));
            CL_INVALID_DEVICE "not a device" = w.bad(|d| queue(w, w.s.context.0, d, null()));
            CL_INVALID_DEVICE "a device of another context" => never "contexts here have the only device";
            CL_INVALID_VALUE "properties" = queue(w, w.s.context.0, w.s.device, [0x1234, 1, 0].as_ptr());
        }
    }
}

fn queue(w: &World, c: cl_context, d: cl_device_id, list: *const cl_queue_properties) -> cl_int {
    let mut code = 1;
    let made = ext!(w.s, clCreateCommandQueueWithPropertiesKHR: clCreateCommandQueueWithPropertiesKHR_t(c, d, list.cast(), &mut code));
    w.made(!made.is_null());
    code
}

pub fn rows(t: &mut Table) {
    allocations(t);
    commands(t);
    other_names(t);
    khr(t);
    // One device a context: what its memory objects are made for, it supports.
    for call in [
        "clEnqueueReadImage",
        "clEnqueueWriteImage",
        "clEnqueueMapImage",
        "clEnqueueFillImage",
        "clEnqueueCopyImage",
        "clEnqueueCopyImageToBuffer",
        "clEnqueueCopyBufferToImage",
        "clEnqueueNDRangeKernel",
        "clEnqueueTask",
        "clGetKernelSuggestedLocalWorkSize",
        "clGetKernelSuggestedLocalWorkSizeKHR",
    ] {
        let why =
            "contexts here have one device, and no image that it does not support can be made";
        t.add(
            call,
            code!(CL_INVALID_IMAGE_SIZE),
            "not of that device",
            How::Never(why),
        );
        t.add(
            call,
            code!(CL_IMAGE_FORMAT_NOT_SUPPORTED),
            "not of that device",
            How::Never(why),
        );
        if call.contains("Image") {
            t.add(
                call,
                code!(CL_INVALID_OPERATION),
                "no images",
                How::Never("the devices here have them"),
            );
        }
    }
}

/// Under the names that the functions had as extensions.
fn khr(t: &mut Table) {
    rows! { t, w;
        clGetKernelSuggestedLocalWorkSizeKHR {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| suggest(w, q, w.kernel.0, 1, &[1], w.size()));
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| suggest(w, w.s.queue.0, k, 1, &[1], w.size()));
            CL_INVALID_KERNEL_ARGS "arguments are not set" = suggest(w, w.s.queue.0, w.unset.0, 1, &[1], w.size());
            CL_INVALID_WORK_DIMENSION "no dimension, or four" =
                [0, 4].map(|dims| suggest(w, w.s.queue.0, w.kernel.0, dims, &[1; 4], w.size()));
            CL_INVALID_CONTEXT "a kernel of another context" = suggest(w, w.other.queue.0, w.kernel.0, 1, &[1], w.size());
            CL_INVALID_GLOBAL_WORK_SIZE "zero" = suggest(w, w.s.queue.0, w.kernel.0, 1, &[0], w.size());
            CL_INVALID_VALUE "no place for the answer" = suggest(w, w.s.queue.0, w.kernel.0, 1, &[1], null_mut());
            CL_INVALID_GLOBAL_OFFSET "an offset" => never "an error before OpenCL 1.1 only";
            CL_INVALID_GLOBAL_OFFSET "sizes and offsets overflow" = suggest_from(w, [usize::MAX].as_ptr(), [2].as_ptr());
            CL_INVALID_GLOBAL_WORK_SIZE "no size" = suggest_from(w, null(), null());
            CL_INVALID_GLOBAL_WORK_SIZE "larger than size_t" => never "host and devices have 64 bits";
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "system pointers" => never "cannot be told from others: the address is the application's word";
            CL_INVALID_PROGRAM_EXECUTABLE "nothing built for the device" => never "kernels are made of programs built for a device; \
                contexts here have one";
        }
        clCreateCommandQueueWithPropertiesKHR {
            CL_INVALID_QUEUE_PROPERTIES "what the device does not support" = { let list = [u64::from(CL_QUEUE_PROPERTIES),
                CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0];
                if w.has_device_queues() { NOT_HERE } else { queue(w, w.s.context.0, w.s.device, list.as_ptr()) } };
            CL_INVALID_QUEUE_PROPERTIES "a device queue with a priority" = queue_of_device(w, CL_QUEUE_PRIORITY_KHR,
                CL_QUEUE_PRIORITY_LOW_KHR);
            CL_INVALID_QUEUE_PROPERTIES "a device queue with a throttle" = queue_of_device(w, CL_QUEUE_THROTTLE_KHR,
                CL_QUEUE_THROTTLE_LOW_KHR);
        }
        clGetKernelSubGroupInfoKHR {
            CL_INVALID_DEVICE "none of several" => never "contexts here have one device";
            CL_INVALID_VALUE "a place that is too small" = { let code = sub_groups_of(w, 8, 4); w.size_is_open(); code };
            CL_INVALID_VALUE "input of no such size" = sub_groups_of(w, 7, 8);
            CL_INVALID_VALUE "no input" = sub_groups_of(w, 0, 8);
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| sub_groups(w, k, w.s.device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE_KHR));
            CL_INVALID_DEVICE "not a device of the kernel" =
                sub_groups(w, w.kernel.0, w.user.0, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE_KHR);
            CL_INVALID_VALUE "a name that is none" = sub_groups(w, w.kernel.0, w.s.device, 0xfff1);
            CL_INVALID_OPERATION "no sub-groups" => never "the devices here have them";
        }
        clEnqueueMigrateMemINTEL {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| migrate(w, q, 0, 0, null()));
            CL_INVALID_VALUE "flags" = migrate(w, w.s.queue.0, 1 << 9, 0, null());
            CL_INVALID_CONTEXT "an event of another context" = migrate(w, w.s.queue.0, 0, 1, &w.user_foreign.0);
            CL_INVALID_EVENT_WAIT_LIST "a list and a count that do not agree" =
                [migrate(w, w.s.queue.0, 0, 1, null()), migrate(w, w.s.queue.0, 0, 0, &w.user.0)];
            CL_INVALID_EVENT_WAIT_LIST "a list of no events" = migrate(w, w.s.queue.0, 0, 0, &w.user.0);
            CL_INVALID_EVENT_WAIT_LIST "what is in the list is no event" = w.bad_event(|event| migrate(w, w.s.queue.0, 0, 1, &event));
        }
        clEnqueueMemAdviseINTEL {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| advise(w, q, 0, 0, null()));
            CL_INVALID_CONTEXT "an event of another context" = advise(w, w.s.queue.0, 0, 1, &w.user_foreign.0);
            CL_INVALID_EVENT_WAIT_LIST "a list and a count that do not agree" =
                [advise(w, w.s.queue.0, 0, 1, null()), advise(w, w.s.queue.0, 0, 0, &w.user.0)];
            CL_INVALID_EVENT_WAIT_LIST "a list of no events" = advise(w, w.s.queue.0, 0, 0, &w.user.0);
            CL_INVALID_EVENT_WAIT_LIST "what is in the list is no event" = w.bad_event(|event| advise(w, w.s.queue.0, 0, 1, &event));
            CL_INVALID_VALUE "advice that is none" = advise(w, w.s.queue.0, 1, 0, null());
            CL_INVALID_VALUE "pointer and size" => never "the specification has not decided which are invalid";
        }
    }
}

fn suggest(
    w: &World,
    q: cl_command_queue,
    kernel: cl_kernel,
    dims: cl_uint,
    global: &[usize],
    place: *mut usize,
) -> cl_int {
    ext!(w.s, clGetKernelSuggestedLocalWorkSizeKHR: clGetKernelSuggestedLocalWorkSizeKHR_t(q, kernel, dims, null(), global.as_ptr(),
        place))
}

fn sub_groups(w: &World, kernel: cl_kernel, device: cl_device_id, name: cl_uint) -> cl_int {
    let input = [1usize];
    ext!(w.s, clGetKernelSubGroupInfoKHR: clGetKernelSubGroupInfoKHR_t(kernel, device, name, 8, input.as_ptr().cast(), 8, w.place(),
        w.size()))
}

fn migrate(
    w: &World,
    q: cl_command_queue,
    flags: cl_mem_migration_flags,
    n: cl_uint,
    list: *const cl_event,
) -> cl_int {
    ext!(w.s, clEnqueueMigrateMemINTEL: clEnqueueMigrateMemINTEL_t(q, w.svm, 16, flags, n, list, w.event()))
}

fn advise(
    w: &World,
    q: cl_command_queue,
    advice: cl_mem_advice_intel,
    n: cl_uint,
    list: *const cl_event,
) -> cl_int {
    ext!(w.s, clEnqueueMemAdviseINTEL: clEnqueueMemAdviseINTEL_t(q, w.svm, 16, advice, n, list, w.event()))
}

fn suggest_from(w: &World, offset: *const usize, global: *const usize) -> cl_int {
    let (q, k) = (w.s.queue.0, w.kernel.0);
    ext!(w.s, clGetKernelSuggestedLocalWorkSizeKHR: clGetKernelSuggestedLocalWorkSizeKHR_t(q, k, 1, offset, global, w.size()))
}

/// With input of such a size (none: no input), and a place of such a size.
fn sub_groups_of(w: &World, input: usize, size: usize) -> cl_int {
    let (k, d, one) = (w.kernel.0, w.s.device, [1usize]);
    let from = if input == 0 {
        null()
    } else {
        one.as_ptr().cast()
    };
    let name = CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE_KHR;
    ext!(w.s, clGetKernelSubGroupInfoKHR: clGetKernelSubGroupInfoKHR_t(k, d, name, input, from, size, w.place(), w.size()))
}

fn fill_after(w: &World, n: cl_uint, list: *const cl_event) -> cl_int {
    let (q, place) = (w.s.queue.0, w.place());
    ext!(w.s, clEnqueueMemFillINTEL: clEnqueueMemFillINTEL_t(q, w.svm, place, 4, 16, n, list, w.event()))
}

/// A device queue with one more property, where there are such queues.
fn queue_of_device(w: &World, name: cl_queue_properties, value: cl_uint) -> cl_int {
    let kind = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let list = [
        u64::from(CL_QUEUE_PROPERTIES),
        kind,
        name,
        u64::from(value),
        0,
    ];
    match w.has_device_queues() {
        true => queue(w, w.s.context.0, w.s.device, list.as_ptr()),
        false => NOT_HERE,
    }
}
