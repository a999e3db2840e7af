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

/// Adds the errors that all queries have in common: `param` is a known name.
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
    rows! { t, w;
        clGetCommandQueueInfo {
            CL_INVALID_COMMAND_QUEUE "a queue that has nothing of that name" =
                call!(clGetCommandQueueInfo(w.s.queue.0, CL_QUEUE_SIZE, 4, w.place(), w.size()));
        }
        clGetEventInfo {
            CL_INVALID_VALUE "what the event has not" => never "all that is known can be asked of all events";
        }
        clGetEventProfilingInfo {
            CL_INVALID_VALUE "a name that is none" = profile(w, w.measured.0, 0xfff1, 8);
            CL_INVALID_VALUE "a place that is too small" = { let code = profile(w, w.measured.0, CL_PROFILING_COMMAND_END, 4);
                w.size_is_open(); code };
            CL_PROFILING_INFO_NOT_AVAILABLE "of a queue that does not measure" = profile(w, w.unmeasured.0, CL_PROFILING_COMMAND_END, 8);
        }
        clGetKernelSubGroupInfo {
            CL_INVALID_DEVICE "none of several" => never "contexts here have one device";
            CL_INVALID_OPERATION "no sub-groups" => never "the devices here have them";
            CL_INVALID_VALUE "input of no such size" = call!(clGetKernelSubGroupInfo(w.kernel.0, w.s.device,
                CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 7, [1usize].as_ptr().cast(), 8, w.place(), w.size()));
        }
        clGetKernelWorkGroupInfo {
            CL_INVALID_DEVICE "none of several" => never "contexts here have one device";
        }
        clGetMemObjectInfo {
            CL_INVALID_OPERATION "the address of a buffer that has none" =
                call!(clGetMemObjectInfo(w.b.0, CL_MEM_DEVICE_ADDRESS_EXT, 8, w.place(), w.size()));
            CL_INVALID_OPERATION "no addresses" => never "the devices here have them";
        }
        clGetPipeInfo {
            CL_INVALID_VALUE "a name that is none" = call!(clGetPipeInfo(w.pipe.0, 0xfff1, 4, w.place(), w.size()));
            CL_INVALID_VALUE "a place that is too small" = { let code = call!(clGetPipeInfo(w.pipe.0, CL_PIPE_PACKET_SIZE, 1, w.place(),
                w.size())); w.size_is_open(); code };
        }
    }
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

fn profile(w: &World, event: cl_event, name: cl_uint, size: usize) -> cl_int {
    call!(clGetEventProfilingInfo(
        event,
        name,
        size,
        w.place(),
        w.size()
    ))
}
