//! Queries: each refuses a name that it does not know and a place that is a byte too small, and leaves that alone.

use super::Seen;
use pumice_tests::sys::*;
use pumice_tests::{call, create, ok, Event, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// The same question in all ways: `ask` calls with size, place and place for the size.
fn question(
    seen: &mut Seen,
    name: &str,
    params: &[cl_uint],
    ask: impl Fn(cl_uint, usize, *mut c_void, *mut usize) -> cl_int,
) {
    let unknown = ask(0xfff1, 0, null_mut(), null_mut());
    seen.note(&format!("{name} unknown"), CL_INVALID_VALUE, unknown);
    for param in params {
        let what = format!("{name} {param:#x}");
        let mut size = 0;
        seen.note(&what, CL_SUCCESS, ask(*param, 0, null_mut(), &mut size));
        seen.note(
            &format!("{what} for nothing"),
            CL_SUCCESS,
            ask(*param, 0, null_mut(), null_mut()),
        );
        if size == 0 {
            continue;
        }
        let mut bytes = vec![0xa5u8; size + 8];
        let place = bytes.as_mut_ptr().cast::<c_void>();
        let short = ask(*param, size - 1, place, null_mut());
        seen.note(&format!("{what} too small"), CL_INVALID_VALUE, short);
        let untouched = bytes.iter().all(|byte| *byte == 0xa5);
        let touched = if untouched {
            CL_INVALID_VALUE
        } else {
            CL_SUCCESS
        };
        seen.note(&format!("{what} touched"), CL_INVALID_VALUE, touched);
        let place = bytes.as_mut_ptr().cast::<c_void>();
        seen.note(
            &format!("{what} with room"),
            CL_SUCCESS,
            ask(*param, size + 8, place, null_mut()),
        );
        let kept = bytes.iter().skip(size).all(|byte| *byte == 0xa5);
        let beyond = if kept { CL_SUCCESS } else { CL_INVALID_VALUE };
        seen.note(&format!("{what} beyond its size"), CL_SUCCESS, beyond);
    }
}

#[test]
fn questions() {
    let setup = Setup::new();
    let mut seen = Seen::default();
    let (c, q, d, p) = (setup.context.0, setup.queue.0, setup.device, setup.platform);
    let platform = [
        CL_PLATFORM_NAME,
        CL_PLATFORM_VENDOR,
        CL_PLATFORM_VERSION,
        CL_PLATFORM_PROFILE,
        CL_PLATFORM_EXTENSIONS,
        CL_PLATFORM_NUMERIC_VERSION,
        CL_PLATFORM_EXTENSIONS_WITH_VERSION,
        CL_PLATFORM_HOST_TIMER_RESOLUTION,
    ];
    question(&mut seen, "platform", &platform, |n, s, v, r| {
        call!(clGetPlatformInfo(p, n, s, v, r))
    });
    let device = [
        CL_DEVICE_NAME,
        CL_DEVICE_TYPE,
        CL_DEVICE_VENDOR_ID,
        CL_DEVICE_MAX_WORK_ITEM_SIZES,
        CL_DEVICE_GLOBAL_MEM_SIZE,
        CL_DEVICE_VERSION,
        CL_DEVICE_PLATFORM,
        CL_DEVICE_PARTITION_PROPERTIES,
        CL_DEVICE_REFERENCE_COUNT,
        CL_DEVICE_BUILT_IN_KERNELS,
        CL_DEVICE_SVM_CAPABILITIES,
        CL_DEVICE_ILS_WITH_VERSION,
        CL_DEVICE_OPENCL_C_FEATURES,
        CL_DEVICE_EXTENSIONS_WITH_VERSION,
        CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
        CL_DEVICE_PARENT_DEVICE,
    ];
    question(&mut seen, "device", &device, |n, s, v, r| {
        call!(clGetDeviceInfo(d, n, s, v, r))
    });
    let context = [
        CL_CONTEXT_REFERENCE_COUNT,
        CL_CONTEXT_NUM_DEVICES,
        CL_CONTEXT_DEVICES,
        CL_CONTEXT_PROPERTIES,
    ];
    question(&mut seen, "context", &context, |n, s, v, r| {
        call!(clGetContextInfo(c, n, s, v, r))
    });
    let queue = [
        CL_QUEUE_CONTEXT,
        CL_QUEUE_DEVICE,
        CL_QUEUE_REFERENCE_COUNT,
        CL_QUEUE_PROPERTIES,
        CL_QUEUE_PROPERTIES_ARRAY,
        CL_QUEUE_DEVICE_DEFAULT,
    ];
    question(&mut seen, "queue", &queue, |n, s, v, r| {
        call!(clGetCommandQueueInfo(q, n, s, v, r))
    });
    let buffer = setup.buffer(64);
    let mem = [
        CL_MEM_TYPE,
        CL_MEM_FLAGS,
        CL_MEM_SIZE,
        CL_MEM_HOST_PTR,
        CL_MEM_MAP_COUNT,
        CL_MEM_REFERENCE_COUNT,
        CL_MEM_CONTEXT,
        CL_MEM_ASSOCIATED_MEMOBJECT,
        CL_MEM_OFFSET,
        CL_MEM_USES_SVM_POINTER,
        CL_MEM_PROPERTIES,
    ];
    question(&mut seen, "memory", &mem, |n, s, v, r| {
        call!(clGetMemObjectInfo(buffer.0, n, s, v, r))
    });
    let event = Event::user(&setup.context);
    let events = [
        CL_EVENT_COMMAND_QUEUE,
        CL_EVENT_CONTEXT,
        CL_EVENT_COMMAND_TYPE,
        CL_EVENT_COMMAND_EXECUTION_STATUS,
        CL_EVENT_REFERENCE_COUNT,
    ];
    question(&mut seen, "event", &events, |n, s, v, r| {
        call!(clGetEventInfo(event.0, n, s, v, r))
    });
    event.finish(CL_COMPLETE);
    let program = setup
        .try_build(
            "kernel void k(global int *p, int n) { p[0] = n; }",
            "-cl-kernel-arg-info",
        )
        .unwrap_or_else(|log| panic!("{log}"));
    let (g, programs) = (
        program.0,
        [
            CL_PROGRAM_REFERENCE_COUNT,
            CL_PROGRAM_CONTEXT,
            CL_PROGRAM_NUM_DEVICES,
            CL_PROGRAM_DEVICES,
            CL_PROGRAM_SOURCE,
            CL_PROGRAM_BINARY_SIZES,
            CL_PROGRAM_NUM_KERNELS,
            CL_PROGRAM_KERNEL_NAMES,
            CL_PROGRAM_IL,
            CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT,
            CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT,
        ],
    );
    question(&mut seen, "program", &programs, |n, s, v, r| {
        call!(clGetProgramInfo(g, n, s, v, r))
    });
    let builds = [
        CL_PROGRAM_BUILD_STATUS,
        CL_PROGRAM_BUILD_OPTIONS,
        CL_PROGRAM_BUILD_LOG,
        CL_PROGRAM_BINARY_TYPE,
        CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE,
    ];
    question(&mut seen, "build", &builds, |n, s, v, r| {
        call!(clGetProgramBuildInfo(g, d, n, s, v, r))
    });
    let kernel = setup.kernel(&program, "k");
    let k = kernel.0;
    let kernels = [
        CL_KERNEL_FUNCTION_NAME,
        CL_KERNEL_NUM_ARGS,
        CL_KERNEL_REFERENCE_COUNT,
        CL_KERNEL_CONTEXT,
        CL_KERNEL_PROGRAM,
        CL_KERNEL_ATTRIBUTES,
    ];
    question(&mut seen, "kernel", &kernels, |n, s, v, r| {
        call!(clGetKernelInfo(k, n, s, v, r))
    });
    let groups = [
        CL_KERNEL_WORK_GROUP_SIZE,
        CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
        CL_KERNEL_LOCAL_MEM_SIZE,
        CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
        CL_KERNEL_PRIVATE_MEM_SIZE,
    ];
    question(&mut seen, "group", &groups, |n, s, v, r| {
        call!(clGetKernelWorkGroupInfo(k, d, n, s, v, r))
    });
    let args = [
        CL_KERNEL_ARG_ADDRESS_QUALIFIER,
        CL_KERNEL_ARG_ACCESS_QUALIFIER,
        CL_KERNEL_ARG_TYPE_NAME,
        CL_KERNEL_ARG_TYPE_QUALIFIER,
        CL_KERNEL_ARG_NAME,
    ];
    question(&mut seen, "argument", &args, |n, s, v, r| {
        call!(clGetKernelArgInfo(k, 1, n, s, v, r))
    });
    let timed = setup.new_queue(CL_QUEUE_PROFILING_ENABLE);
    let mut marker = null_mut();
    ok!(clEnqueueMarkerWithWaitList(timed.0, 0, null(), &mut marker));
    let marker = Event(marker);
    ok!(clFinish(timed.0));
    let times = [
        CL_PROFILING_COMMAND_QUEUED,
        CL_PROFILING_COMMAND_SUBMIT,
        CL_PROFILING_COMMAND_START,
        CL_PROFILING_COMMAND_END,
        CL_PROFILING_COMMAND_COMPLETE,
    ];
    question(&mut seen, "time", &times, |n, s, v, r| {
        call!(clGetEventProfilingInfo(marker.0, n, s, v, r))
    });
}

#[test]
fn samplers() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let mut seen = Seen::default();
    let c = setup.context.0;
    let (clamp, near) = (CL_ADDRESS_CLAMP, CL_FILTER_NEAREST);
    let sampler = create!(clCreateSampler(c, CL_TRUE, clamp, near));
    let all = [
        CL_SAMPLER_REFERENCE_COUNT,
        CL_SAMPLER_CONTEXT,
        CL_SAMPLER_ADDRESSING_MODE,
        CL_SAMPLER_FILTER_MODE,
        CL_SAMPLER_NORMALIZED_COORDS,
        CL_SAMPLER_PROPERTIES,
    ];
    question(&mut seen, "sampler", &all, |n, s, v, r| {
        call!(clGetSamplerInfo(sampler, n, s, v, r))
    });
    ok!(clReleaseSampler(sampler));
}
