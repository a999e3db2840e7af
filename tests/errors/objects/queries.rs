//! Counting references, and queries that all objects have.

use crate::table::Table;
use crate::world::World;
use pumice_tests::call;
use pumice_tests::sys::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// A question about an object: the object, name, size, place.
type Ask = fn(&World, *mut c_void, cl_uint, usize, *mut c_void) -> cl_int;
type Object = fn(&World) -> *mut c_void;

/// What all queries refuse: `param` is a name that is known.
fn query(
    t: &mut Table,
    name: &'static str,
    invalid: (&'static str, cl_int),
    object: Object,
    param: cl_uint,
    ask: Ask,
) {
    t.provoked(name, invalid, "not such an object", move |w| {
        let of = |object| ask(w, object, param, 64, w.place());
        match invalid.0 {
            "CL_INVALID_EVENT" => w.bad_event(of),
            // Without a platform it is the loader that chooses one.
            "CL_INVALID_PLATFORM" => vec![of(w.user.0)],
            _ => w.bad(of),
        }
    });
    let value = code!(CL_INVALID_VALUE);
    t.provoked(name, value, "a name that is none", move |w| {
        vec![
            ask(w, object(w), 0xfff1, 64, w.place()),
            ask(w, object(w), 0xfff1, 0, null_mut()),
        ]
    });
    t.provoked(name, value, "a place that is too small", move |w| {
        let codes = vec![
            ask(w, object(w), param, 1, w.place()),
            ask(w, object(w), param, 0, w.place()),
        ];
        w.size_is_open();
        codes
    });
}

macro_rules! counted {
    ($t:ident, $($code:ident: $retain:ident $release:ident;)*) => { $(
        $t.provoked(stringify!($retain), code!($code), "not such an object", |w| match stringify!($code) {
            "CL_INVALID_EVENT" => w.bad_event(|o| call!($retain(o))),
            _ => w.bad(|o| call!($retain(o))),
        });
        $t.provoked(stringify!($release), code!($code), "not such an object", |w| match stringify!($code) {
            "CL_INVALID_EVENT" => w.bad_event(|o| call!($release(o))),
            _ => w.bad(|o| call!($release(o))),
        });
    )* };
}

pub fn rows(t: &mut Table) {
    macro_rules! simple {
        ($name:ident, $code:ident, $param:ident, $object:expr) => {
            query(
                t,
                stringify!($name),
                code!($code),
                $object,
                $param,
                |w, o, n, s, p| call!($name(o, n, s, p, w.size())),
            );
        };
    }
    simple!(
        clGetPlatformInfo,
        CL_INVALID_PLATFORM,
        CL_PLATFORM_NAME,
        |w| w.s.platform
    );
    simple!(clGetDeviceInfo, CL_INVALID_DEVICE, CL_DEVICE_NAME, |w| w
        .s
        .device);
    simple!(
        clGetContextInfo,
        CL_INVALID_CONTEXT,
        CL_CONTEXT_DEVICES,
        |w| w.s.context.0
    );
    simple!(
        clGetCommandQueueInfo,
        CL_INVALID_COMMAND_QUEUE,
        CL_QUEUE_CONTEXT,
        |w| w.s.queue.0
    );
    simple!(
        clGetMemObjectInfo,
        CL_INVALID_MEM_OBJECT,
        CL_MEM_SIZE,
        |w| w.b.0
    );
    simple!(clGetImageInfo, CL_INVALID_MEM_OBJECT, CL_IMAGE_WIDTH, |w| w
        .i
        .0);
    simple!(
        clGetSamplerInfo,
        CL_INVALID_SAMPLER,
        CL_SAMPLER_CONTEXT,
        |w| w.sampler
    );
    simple!(
        clGetProgramInfo,
        CL_INVALID_PROGRAM,
        CL_PROGRAM_CONTEXT,
        |w| w.program.0
    );
    simple!(clGetKernelInfo, CL_INVALID_KERNEL, CL_KERNEL_CONTEXT, |w| w
        .kernel
        .0);
    simple!(clGetEventInfo, CL_INVALID_EVENT, CL_EVENT_CONTEXT, |w| w
        .user
        .0);
    query(
        t,
        "clGetProgramBuildInfo",
        code!(CL_INVALID_PROGRAM),
        |w| w.program.0,
        CL_PROGRAM_BUILD_STATUS,
        |w, o, n, s, p| call!(clGetProgramBuildInfo(o, w.s.device, n, s, p, w.size())),
    );
    query(
        t,
        "clGetKernelArgInfo",
        code!(CL_INVALID_KERNEL),
        |w| w.kernel.0,
        CL_KERNEL_ARG_ADDRESS_QUALIFIER,
        |w, o, n, s, p| call!(clGetKernelArgInfo(o, 0, n, s, p, w.size())),
    );
    query(
        t,
        "clGetKernelWorkGroupInfo",
        code!(CL_INVALID_KERNEL),
        |w| w.kernel.0,
        CL_KERNEL_WORK_GROUP_SIZE,
        |w, o, n, s, p| call!(clGetKernelWorkGroupInfo(o, w.s.device, n, s, p, w.size())),
    );
    query(
        t,
        "clGetKernelSubGroupInfo",
        code!(CL_INVALID_KERNEL),
        |w| w.kernel.0,
        CL_KERNEL_MAX_NUM_SUB_GROUPS,
        |w, o, n, s, p| {
            call!(clGetKernelSubGroupInfo(
                o,
                w.s.device,
                n,
                0,
                null(),
                s,
                p,
                w.size()
            ))
        },
    );
    t.provoked(
        "clGetEventProfilingInfo",
        code!(CL_INVALID_EVENT),
        "not an event",
        |w| {
            w.bad_event(|e| {
                call!(clGetEventProfilingInfo(
                    e,
                    CL_PROFILING_COMMAND_END,
                    8,
                    w.place(),
                    w.size()
                ))
            })
        },
    );
    t.provoked(
        "clGetEventProfilingInfo",
        code!(CL_PROFILING_INFO_NOT_AVAILABLE),
        "a user event",
        |w| {
            vec![call!(clGetEventProfilingInfo(
                w.failed.0,
                CL_PROFILING_COMMAND_END,
                8,
                w.place(),
                w.size()
            ))]
        },
    );
    counted! { t,
        CL_INVALID_DEVICE: clRetainDevice clReleaseDevice;
        CL_INVALID_CONTEXT: clRetainContext clReleaseContext;
        CL_INVALID_COMMAND_QUEUE: clRetainCommandQueue clReleaseCommandQueue;
        CL_INVALID_MEM_OBJECT: clRetainMemObject clReleaseMemObject;
        CL_INVALID_SAMPLER: clRetainSampler clReleaseSampler;
        CL_INVALID_PROGRAM: clRetainProgram clReleaseProgram;
        CL_INVALID_KERNEL: clRetainKernel clReleaseKernel;
        CL_INVALID_EVENT: clRetainEvent clReleaseEvent;
    }
}
