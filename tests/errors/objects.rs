//! Objects: counting references, queries, and what makes them.

use crate::table::Table;
use crate::world::{description, World};
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

fn queries(t: &mut Table) {
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

const RGBA: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT8,
};

fn image(
    w: &World,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    desc: *const cl_image_desc,
    at: *mut c_void,
) -> cl_int {
    makes!(w, clCreateImage(w.s.context.0, flags, format, desc, at))
}

fn sub(
    w: &World,
    of: cl_mem,
    flags: cl_mem_flags,
    kind: cl_uint,
    region: Option<(usize, usize)>,
) -> cl_int {
    let region = region.map(|(origin, size)| cl_buffer_region { origin, size });
    let place = region.as_ref().map_or(null(), |r| (&raw const *r).cast());
    makes!(w, clCreateSubBuffer(of, flags, kind, place))
}

fn partition(w: &World, list: &[isize], n: cl_uint) -> cl_int {
    call!(clCreateSubDevices(
        w.s.device,
        list.as_ptr(),
        n,
        w.place().cast(),
        null_mut()
    ))
}

fn set(w: &World, kernel: cl_kernel, index: cl_uint, size: usize, value: *const c_void) -> cl_int {
    let _ = w;
    call!(clSetKernelArg(kernel, index, size, value))
}

fn with_binary(w: &World, n: cl_uint, devices: *const cl_device_id, bytes: &[u8]) -> cl_int {
    let (length, mut at) = (bytes.len(), bytes.as_ptr());
    makes!(
        w,
        clCreateProgramWithBinary(w.s.context.0, n, devices, &length, &mut at, null_mut())
    )
}

/// Builds a program of its own, which may end up as a program whose build failed.
fn build(w: &World, source: &str, options: &std::ffi::CStr) -> cl_int {
    let program = w.s.program(source);
    call!(clBuildProgram(
        program.0,
        0,
        null(),
        options.as_ptr(),
        None,
        null_mut()
    ))
}

extern "C" fn nothing_of_event(_: cl_event, _: cl_int, _: *mut c_void) {}

fn creation(t: &mut Table) {
    const KIND: cl_uint = CL_BUFFER_CREATE_TYPE_REGION;
    rows! { t, w;
        clGetPlatformIDs {
            CL_INVALID_VALUE "no room" = call!(clGetPlatformIDs(0, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "nothing is asked" = call!(clGetPlatformIDs(0, null_mut(), null_mut()));
            CL_PLATFORM_NOT_FOUND_KHR "no platform" => never "Pumice has one as soon as its library is loaded";
        }
        clIcdGetPlatformIDsKHR {
            CL_PLATFORM_NOT_FOUND_KHR "no platform" => never "Pumice has one as soon as its library is loaded";
        }
        clGetDeviceIDs {
            CL_INVALID_PLATFORM "not a platform" = call!(clGetDeviceIDs(w.user.0, CL_DEVICE_TYPE_ALL, 1, w.place().cast(), null_mut()));
            CL_INVALID_DEVICE_TYPE "not a type" = call!(clGetDeviceIDs(w.s.platform, 0, 1, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "no room" = call!(clGetDeviceIDs(w.s.platform, CL_DEVICE_TYPE_ALL, 0, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "nothing is asked" = call!(clGetDeviceIDs(w.s.platform, CL_DEVICE_TYPE_ALL, 0, null_mut(), null_mut()));
            CL_DEVICE_NOT_FOUND "an accelerator" =
                call!(clGetDeviceIDs(w.s.platform, CL_DEVICE_TYPE_ACCELERATOR, 1, w.place().cast(), null_mut()));
        }
        clGetDeviceAndHostTimer {
            CL_INVALID_DEVICE "not a device" = w.bad(|d| call!(clGetDeviceAndHostTimer(d, w.place().cast(), w.place().cast())));
            CL_INVALID_VALUE "no place for the host's" = call!(clGetDeviceAndHostTimer(w.s.device, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "no place for the device's" = call!(clGetDeviceAndHostTimer(w.s.device, null_mut(), w.place().cast()));
        }
        clGetHostTimer {
            CL_INVALID_DEVICE "not a device" = w.bad(|d| call!(clGetHostTimer(d, w.place().cast())));
            CL_INVALID_VALUE "no place" = call!(clGetHostTimer(w.s.device, null_mut()));
        }
        clCreateSubDevices {
            CL_INVALID_DEVICE "not a device" = w.bad(|d|
                call!(clCreateSubDevices(d, [CL_DEVICE_PARTITION_EQUALLY, 1, 0].as_ptr(), 1, w.place().cast(), null_mut())));
            CL_INVALID_VALUE "no way to part" = [partition(w, &[0x1234, 1, 0], 1), partition(w, &[0], 1)];
        }
        clCreateContext {
            CL_INVALID_VALUE "no devices" = makes!(w, clCreateContext(null(), 1, null(), None, null_mut()));
            CL_INVALID_VALUE "none of them" = makes!(w, clCreateContext(null(), 0, &w.s.device, None, null_mut()));
            CL_INVALID_VALUE "user data, no function" = makes!(w, clCreateContext(null(), 1, &w.s.device, None, w.place()));
            CL_INVALID_DEVICE "not a device" = makes!(w, clCreateContext(null(), 2, [w.s.device, w.user.0].as_ptr(), None, null_mut()));
            CL_INVALID_PLATFORM "not a platform" = makes!(w, clCreateContext([CL_CONTEXT_PLATFORM, w.user.0.addr() as isize, 0].as_ptr(), 1,
                &w.s.device, None, null_mut()));
            CL_INVALID_PLATFORM "none can be chosen" => never "there is one: Pumice's";
            CL_INVALID_PROPERTY "not a property" = makes!(w, clCreateContext([0x1234, 1, 0].as_ptr(), 1, &w.s.device, None, null_mut()));
            CL_INVALID_PROPERTY "not a value" = makes!(w, clCreateContext([CL_CONTEXT_INTEROP_USER_SYNC, 7, 0].as_ptr(), 1, &w.s.device, None,
                null_mut()));
            CL_INVALID_PROPERTY "twice" = makes!(w, clCreateContext([CL_CONTEXT_INTEROP_USER_SYNC, 0, CL_CONTEXT_INTEROP_USER_SYNC, 0, 0]
                .as_ptr(), 1, &w.s.device, None, null_mut()));
            CL_DEVICE_NOT_AVAILABLE "a lost device" => never "needs a device that is lost: the fault runner's";
        }
        clCreateContextFromType {
            CL_INVALID_VALUE "user data, no function" = makes!(w, clCreateContextFromType(null(), CL_DEVICE_TYPE_ALL, None, w.place()));
            CL_INVALID_DEVICE_TYPE "not a type" = makes!(w, clCreateContextFromType(null(), 0, None, null_mut()));
            CL_DEVICE_NOT_FOUND "an accelerator" = makes!(w, clCreateContextFromType(null(), CL_DEVICE_TYPE_ACCELERATOR, None, null_mut()));
            CL_INVALID_PLATFORM "none can be chosen" => never "there is one: Pumice's";
            CL_DEVICE_NOT_AVAILABLE "a lost device" => never "needs a device that is lost: the fault runner's";
        }
        clSetContextDestructorCallback {
            CL_INVALID_VALUE "no function" = call!(clSetContextDestructorCallback(w.s.context.0, None, null_mut()));
        }
        clCreateCommandQueue {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateCommandQueue(c, w.s.device, 0)));
            CL_INVALID_DEVICE "not a device" = w.bad(|d| makes!(w, clCreateCommandQueue(w.s.context.0, d, 0)));
            CL_INVALID_DEVICE "a device of another context" => never "contexts here have the only device";
            CL_INVALID_VALUE "properties" = makes!(w, clCreateCommandQueue(w.s.context.0, w.s.device, 1 << 9));
        }
        clCreateCommandQueueWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateCommandQueueWithProperties(c, w.s.device, null())));
            CL_INVALID_DEVICE "not a device" = w.bad(|d| makes!(w, clCreateCommandQueueWithProperties(w.s.context.0, d, null())));
            CL_INVALID_DEVICE "a device of another context" => never "contexts here have the only device";
            CL_INVALID_VALUE "properties" = [[0x1234, 1, 0], [u64::from(CL_QUEUE_PROPERTIES), 1 << 9, 0]].map(|list|
                makes!(w, clCreateCommandQueueWithProperties(w.s.context.0, w.s.device, list.as_ptr())));
        }
        clCreateBuffer {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateBuffer(c, 0, 16, null_mut())));
            CL_INVALID_VALUE "flags" = [CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 1 << 40, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS]
                .map(|flags| makes!(w, clCreateBuffer(w.s.context.0, flags, 16, null_mut())));
            CL_INVALID_VALUE "immutable and written" = makes!(w, clCreateBuffer(w.s.context.0,
                CL_MEM_IMMUTABLE_EXT | CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE, 16, w.place()));
            CL_INVALID_VALUE "immutable without contents" = makes!(w, clCreateBuffer(w.s.context.0, CL_MEM_IMMUTABLE_EXT, 16, null_mut()));
            CL_INVALID_BUFFER_SIZE "nothing" = makes!(w, clCreateBuffer(w.s.context.0, 0, 0, null_mut()));
            CL_INVALID_BUFFER_SIZE "too large" = makes!(w, clCreateBuffer(w.s.context.0, 0, usize::MAX, null_mut()));
            CL_INVALID_BUFFER_SIZE "more than the allocation has" =
                makes!(w, clCreateBuffer(w.s.context.0, CL_MEM_USE_HOST_PTR, 8192, w.svm));
            CL_INVALID_HOST_PTR "none, but wanted" = makes!(w, clCreateBuffer(w.s.context.0, CL_MEM_COPY_HOST_PTR, 16, null_mut()));
            CL_INVALID_HOST_PTR "one that is not wanted" = makes!(w, clCreateBuffer(w.s.context.0, 0, 16, w.place()));
            CL_INVALID_OPERATION "addresses of buffers" => never "the call has no properties";
            CL_INVALID_PROPERTY "not a property" => never "the call has no properties";
            CL_INVALID_PROPERTY "not a value" => never "the call has no properties";
            CL_INVALID_PROPERTY "twice" => never "the call has no properties";
        }
        clCreateBufferWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateBufferWithProperties(c, null(), 0, 16, null_mut())));
            CL_INVALID_PROPERTY "not a property" =
                makes!(w, clCreateBufferWithProperties(w.s.context.0, [0x1234, 1, 0].as_ptr(), 0, 16, null_mut()));
            CL_INVALID_BUFFER_SIZE "nothing" = makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), 0, 0, null_mut()));
            CL_INVALID_BUFFER_SIZE "too large" = makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), 0, usize::MAX, null_mut()));
            CL_INVALID_HOST_PTR "none, but wanted" =
                makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), CL_MEM_COPY_HOST_PTR, 16, null_mut()));
            CL_INVALID_HOST_PTR "one that is not wanted" =
                makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), 0, 16, w.place()));
            CL_INVALID_VALUE "flags" = makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), 1 << 40, 16, null_mut()));
        }
        clCreateSubBuffer {
            CL_INVALID_MEM_OBJECT "not a buffer" = { let mut all = w.bad(|m| sub(w, m, 0, KIND, Some((0, 16))));
                all.push(sub(w, w.i.0, 0, KIND, Some((0, 16)))); all };
            CL_INVALID_MEM_OBJECT "a part" = sub(w, w.part.0, 0, KIND, Some((0, 16)));
            CL_INVALID_VALUE "no region" = sub(w, w.b.0, 0, KIND, None);
            CL_INVALID_VALUE "a kind" = sub(w, w.b.0, 0, 1, Some((0, 16)));
            CL_INVALID_VALUE "out of bounds" = [(2048, 4096), (usize::MAX - 255, 512)].map(|r| sub(w, w.b.0, 0, KIND, Some(r)));
            CL_INVALID_VALUE "host pointers" = [CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR, CL_MEM_COPY_HOST_PTR]
                .map(|flags| sub(w, w.b.0, flags, KIND, Some((0, 16))));
            CL_INVALID_VALUE "the host may read the buffer only" = sub(w, w.host_read.0, CL_MEM_HOST_WRITE_ONLY, KIND, Some((0, 16)));
            CL_INVALID_VALUE "the host may write the buffer only" = sub(w, w.host_write.0, CL_MEM_HOST_READ_ONLY, KIND, Some((0, 16)));
            CL_INVALID_VALUE "the host may do nothing" = [CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY]
                .map(|flags| sub(w, w.host_none.0, flags, KIND, Some((0, 16))));
            CL_INVALID_VALUE "an immutable buffer" = [CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_HOST_WRITE_ONLY]
                .map(|flags| sub(w, w.immutable.0, flags, KIND, Some((0, 16))));
            CL_INVALID_BUFFER_SIZE "nothing" = sub(w, w.b.0, 0, KIND, Some((0, 0)));
        }
        clSetMemObjectDestructorCallback {
            CL_INVALID_VALUE "no function" = call!(clSetMemObjectDestructorCallback(w.b.0, None, null_mut()));
        }
        clCreateImage {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateImage(c, 0, &RGBA, &description(8, 8, 0), null_mut())));
            CL_INVALID_VALUE "flags" = image(w, 1 << 40, &RGBA, &description(8, 8, 0), null_mut());
            CL_INVALID_VALUE "immutable and written" =
                image(w, CL_MEM_IMMUTABLE_EXT | CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE, &RGBA, &description(8, 8, 0), w.place());
            CL_INVALID_VALUE "immutable without contents" = image(w, CL_MEM_IMMUTABLE_EXT, &RGBA, &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "none" = image(w, 0, null(), &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an order that is none" = image(w, 0,
                &cl_image_format { image_channel_order: 1, ..RGBA }, &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_SIZE "too large" = image(w, 0, &RGBA, &description(1 << 30, 8, 0), null_mut());
            CL_INVALID_HOST_PTR "none, but wanted" = image(w, CL_MEM_COPY_HOST_PTR, &RGBA, &description(8, 8, 0), null_mut());
            CL_INVALID_HOST_PTR "one that is not wanted" = image(w, 0, &RGBA, &description(8, 8, 0), w.place());
        }
        clGetSupportedImageFormats {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c|
                call!(clGetSupportedImageFormats(c, 0, CL_MEM_OBJECT_IMAGE2D, 1, w.place().cast(), null_mut())));
            CL_INVALID_VALUE "flags" = call!(clGetSupportedImageFormats(w.s.context.0, 1 << 40, CL_MEM_OBJECT_IMAGE2D, 1, w.place().cast(),
                null_mut()));
            CL_INVALID_VALUE "not an image" =
                call!(clGetSupportedImageFormats(w.s.context.0, 0, CL_MEM_OBJECT_BUFFER, 1, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "no room" =
                call!(clGetSupportedImageFormats(w.s.context.0, 0, CL_MEM_OBJECT_IMAGE2D, 0, w.place().cast(), null_mut()));
        }
        clCreateSampler {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateSampler(c, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST)));
            CL_INVALID_VALUE "values" = [(7, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST), (CL_TRUE, 1, CL_FILTER_NEAREST),
                (CL_TRUE, CL_ADDRESS_CLAMP, 1)].map(|(n, a, f)| makes!(w, clCreateSampler(w.s.context.0, n, a, f)));
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
        }
        clCreateSamplerWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateSamplerWithProperties(c, null())));
            CL_INVALID_VALUE "a property" = makes!(w, clCreateSamplerWithProperties(w.s.context.0, [0x1234, 1, 0].as_ptr()));
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
        }
        clCreatePipe {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreatePipe(c, 0, 4, 16, null())));
            CL_INVALID_PIPE_SIZE "no packets, or of no size" = [(0, 16), (4, 0)].map(|(size, count)|
                makes!(w, clCreatePipe(w.s.context.0, 0, size, count, null())));
            CL_INVALID_VALUE "flags" = makes!(w, clCreatePipe(w.s.context.0, 1 << 40, 4, 16, null()));
            CL_INVALID_VALUE "properties" = makes!(w, clCreatePipe(w.s.context.0, 0, 4, 16, [0x1234, 1, 0].as_ptr()));
        }
        clGetPipeInfo {
            CL_INVALID_MEM_OBJECT "not a pipe" = { let ask = |m| call!(clGetPipeInfo(m, CL_PIPE_PACKET_SIZE, 4, w.place(), w.size()));
                let mut all = w.bad(ask); all.push(ask(w.b.0)); all };
        }
        clCreateUserEvent { CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateUserEvent(c))); }
        clSetUserEventStatus {
            CL_INVALID_EVENT "not a user event" = w.bad_event(|e| call!(clSetUserEventStatus(e, CL_COMPLETE)));
            CL_INVALID_VALUE "neither complete nor negative" = call!(clSetUserEventStatus(w.user.0, CL_RUNNING));
            CL_INVALID_OPERATION "for the second time" = call!(clSetUserEventStatus(w.failed.0, CL_COMPLETE));
        }
        clSetEventCallback {
            CL_INVALID_EVENT "not an event" = w.bad_event(|e| call!(clSetEventCallback(e, CL_COMPLETE, Some(nothing_of_event), null_mut())));
            CL_INVALID_VALUE "no function" = call!(clSetEventCallback(w.user.0, CL_COMPLETE, None, null_mut()));
            CL_INVALID_VALUE "not such a status" = call!(clSetEventCallback(w.user.0, CL_QUEUED as cl_int, Some(nothing_of_event),
                null_mut()));
        }
        clWaitForEvents {
            CL_INVALID_VALUE "nothing to wait for" = [call!(clWaitForEvents(0, &w.failed.0)), call!(clWaitForEvents(1, null()))];
            CL_INVALID_EVENT "not an event" = call!(clWaitForEvents(2, [w.failed.0, w.b.0].as_ptr()));
            CL_INVALID_CONTEXT "two contexts" = call!(clWaitForEvents(2, [w.user.0, w.user_foreign.0].as_ptr()));
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST "one that failed" = call!(clWaitForEvents(1, &w.failed.0));
        }
        clCreateProgramWithSource {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c|
                makes!(w, clCreateProgramWithSource(c, 1, [c"".as_ptr()].as_mut_ptr(), null())));
            CL_INVALID_VALUE "no strings" = [makes!(w, clCreateProgramWithSource(w.s.context.0, 0, [c"".as_ptr()].as_mut_ptr(), null())),
                makes!(w, clCreateProgramWithSource(w.s.context.0, 1, null_mut(), null())),
                makes!(w, clCreateProgramWithSource(w.s.context.0, 1, [null()].as_mut_ptr(), null()))];
        }
        clCreateProgramWithBinary {
            CL_INVALID_VALUE "no devices" = [with_binary(w, 0, &w.s.device, b"x"), with_binary(w, 1, null(), b"x")];
            CL_INVALID_VALUE "an empty binary" = with_binary(w, 1, &w.s.device, b"");
            CL_INVALID_DEVICE "not a device" = with_binary(w, 1, &w.user.0, b"x");
            CL_INVALID_BINARY "not a binary" = with_binary(w, 1, &w.s.device, b"not a binary");
        }
        clCreateProgramWithIL {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateProgramWithIL(c, w.place(), 20)));
            CL_INVALID_VALUE "nothing" = [makes!(w, clCreateProgramWithIL(w.s.context.0, null(), 20)),
                makes!(w, clCreateProgramWithIL(w.s.context.0, w.place(), 0))];
            CL_INVALID_VALUE "not SPIR-V" = makes!(w, clCreateProgramWithIL(w.s.context.0, w.place(), 20));
        }
        clCreateProgramWithBuiltInKernels {
            CL_INVALID_VALUE "no names" = makes!(w, clCreateProgramWithBuiltInKernels(w.s.context.0, 1, &w.s.device, null()));
            CL_INVALID_VALUE "names that are none" =
                makes!(w, clCreateProgramWithBuiltInKernels(w.s.context.0, 1, &w.s.device, c"none".as_ptr()));
        }
        clBuildProgram {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p| call!(clBuildProgram(p, 0, null(), null(), None, null_mut())));
            CL_INVALID_VALUE "devices without a list" = [call!(clBuildProgram(w.unbuilt.0, 1, null(), null(), None, null_mut())),
                call!(clBuildProgram(w.unbuilt.0, 0, &w.s.device, null(), None, null_mut()))];
            CL_INVALID_VALUE "user data, no function" = call!(clBuildProgram(w.unbuilt.0, 0, null(), null(), None, w.place()));
            CL_INVALID_DEVICE "not a device" = call!(clBuildProgram(w.unbuilt.0, 1, &w.user.0, null(), None, null_mut()));
            CL_INVALID_OPERATION "there are kernels" = call!(clBuildProgram(w.program.0, 0, null(), null(), None, null_mut()));
            CL_INVALID_BUILD_OPTIONS "an option that is none" = build(w, "kernel void k() {}", c"-no-such-option");
            CL_BUILD_PROGRAM_FAILURE "not OpenCL C" = build(w, "no such thing", c"");
            CL_COMPILER_NOT_AVAILABLE "no compiler" => never "needs a machine without clang";
        }
        clCompileProgram {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p|
                call!(clCompileProgram(p, 0, null(), null(), 0, null(), null_mut(), None, null_mut())));
            CL_INVALID_VALUE "devices without a list" =
                call!(clCompileProgram(w.unbuilt.0, 1, null(), null(), 0, null(), null_mut(), None, null_mut()));
            CL_INVALID_VALUE "headers without a count" =
                call!(clCompileProgram(w.unbuilt.0, 0, null(), null(), 0, &w.unbuilt.0, null_mut(), None, null_mut()));
            CL_INVALID_VALUE "user data, no function" =
                call!(clCompileProgram(w.unbuilt.0, 0, null(), null(), 0, null(), null_mut(), None, w.place()));
            CL_INVALID_DEVICE "not a device" =
                call!(clCompileProgram(w.unbuilt.0, 1, &w.user.0, null(), 0, null(), null_mut(), None, null_mut()));
            CL_INVALID_OPERATION "there are kernels" =
                call!(clCompileProgram(w.program.0, 0, null(), null(), 0, null(), null_mut(), None, null_mut()));
            CL_COMPILER_NOT_AVAILABLE "no compiler" => never "needs a machine without clang";
        }
        clLinkProgram {
            CL_INVALID_VALUE "no programs" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 0, null(), None, null_mut()));
            CL_INVALID_VALUE "user data, no function" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 1, &w.unbuilt.0, None, w.place()));
            CL_INVALID_PROGRAM "not a program" = makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 1, &w.user.0, None, null_mut()));
            CL_INVALID_DEVICE "not a device" =
                makes!(w, clLinkProgram(w.s.context.0, 1, &w.user.0, null(), 1, &w.unbuilt.0, None, null_mut()));
            CL_LINKER_NOT_AVAILABLE "no linker" => never "the linker is part of the library";
        }
        clUnloadPlatformCompiler { CL_INVALID_PLATFORM "not a platform" = call!(clUnloadPlatformCompiler(w.user.0)); }
        clSetProgramReleaseCallback {
            CL_INVALID_VALUE "no function" => never "the operation is refused before: no device has destructors";
        }
        clGetProgramInfo {
            CL_INVALID_PROGRAM_EXECUTABLE "nothing is built" = [CL_PROGRAM_NUM_KERNELS, CL_PROGRAM_KERNEL_NAMES]
                .map(|n| call!(clGetProgramInfo(w.unbuilt.0, n, 64, w.place(), w.size())));
        }
        clGetProgramBuildInfo {
            CL_INVALID_DEVICE "not a device of the program" = w.bad(|d|
                call!(clGetProgramBuildInfo(w.program.0, d, CL_PROGRAM_BUILD_STATUS, 4, w.place(), w.size())));
        }
        clCreateKernel {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p| makes!(w, clCreateKernel(p, c"plain".as_ptr())));
            CL_INVALID_PROGRAM_EXECUTABLE "nothing is built" = makes!(w, clCreateKernel(w.unbuilt.0, c"plain".as_ptr()));
            CL_INVALID_KERNEL_NAME "no such kernel" = makes!(w, clCreateKernel(w.program.0, c"none".as_ptr()));
            CL_INVALID_VALUE "no name" = makes!(w, clCreateKernel(w.program.0, null()));
            CL_INVALID_KERNEL_DEFINITION "two devices, two signatures" => never "contexts here have one device";
        }
        clCreateKernelsInProgram {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p| call!(clCreateKernelsInProgram(p, 8, w.place().cast(), null_mut())));
            CL_INVALID_PROGRAM_EXECUTABLE "nothing is built" =
                call!(clCreateKernelsInProgram(w.unbuilt.0, 8, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "no room for all" = call!(clCreateKernelsInProgram(w.program.0, 1, w.place().cast(), null_mut()));
        }
        clCloneKernel { CL_INVALID_KERNEL "not a kernel" = w.bad(|k| makes!(w, clCloneKernel(k))); }
        clSetKernelArg {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| set(w, k, 1, 4, w.place()));
            CL_INVALID_ARG_INDEX "none of so many" = set(w, w.kernel.0, 3, 4, w.place());
            CL_INVALID_MEM_OBJECT "not a buffer" = set(w, w.kernel.0, 0, 8, (&raw const w.user.0).cast());
            CL_INVALID_MEM_OBJECT "an image for a buffer" = set(w, w.kernel.0, 0, 8, (&raw const w.i.0).cast());
            CL_INVALID_MEM_OBJECT "a buffer for an image" = set(w, w.pictures.0, 0, 8, (&raw const w.b.0).cast());
            CL_INVALID_ARG_SIZE "of a buffer" = set(w, w.kernel.0, 0, 4, (&raw const w.b.0).cast());
            CL_INVALID_ARG_SIZE "of a sampler" = set(w, w.pictures.0, 2, 4, (&raw const w.sampler).cast());
            CL_INVALID_ARG_SIZE "of a number" = [0, 2, 8].map(|size| set(w, w.kernel.0, 1, size, w.place()));
            CL_INVALID_ARG_SIZE "of local memory" => never "an error before OpenCL 3.1 only";
            CL_INVALID_ARG_VALUE "an image that is only written, to read" = set(w, w.pictures.0, 0, 8, (&raw const w.i_write.0).cast());
            CL_INVALID_ARG_VALUE "an image that is only read, to write" =
                [&w.i_read.0, &w.i_immutable.0].map(|i| set(w, w.pictures.0, 1, 8, (&raw const *i).cast()));
            CL_INVALID_SAMPLER "not a sampler" = set(w, w.pictures.0, 2, 8, (&raw const w.b.0).cast());
        }
        clSetKernelArgSVMPointer {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| call!(clSetKernelArgSVMPointer(k, 0, w.svm)));
            CL_INVALID_ARG_INDEX "none of so many" = call!(clSetKernelArgSVMPointer(w.kernel.0, 3, w.svm));
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
        }
        clSetKernelExecInfo {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| call!(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8,
                (&raw const w.svm).cast())));
            CL_INVALID_VALUE "a name that is none" = call!(clSetKernelExecInfo(w.kernel.0, 0xfff1, 8, (&raw const w.svm).cast()));
        }
        clGetKernelArgInfo {
            CL_KERNEL_ARG_INFO_NOT_AVAILABLE "built without" =
                call!(clGetKernelArgInfo(w.bare.0, 0, CL_KERNEL_ARG_NAME, 64, w.place(), w.size()));
            CL_INVALID_ARG_INDEX "none of so many" = call!(clGetKernelArgInfo(w.kernel.0, 3, CL_KERNEL_ARG_NAME, 64, w.place(), w.size()));
        }
        clGetKernelWorkGroupInfo {
            CL_INVALID_DEVICE "not a device of the kernel" =
                call!(clGetKernelWorkGroupInfo(w.kernel.0, w.user.0, CL_KERNEL_WORK_GROUP_SIZE, 8, w.place(), w.size()));
            CL_INVALID_VALUE "the global size of a kernel that is not built in" =
                call!(clGetKernelWorkGroupInfo(w.kernel.0, w.s.device, CL_KERNEL_GLOBAL_WORK_SIZE, 24, w.place(), w.size()));
        }
        clGetKernelSubGroupInfo {
            CL_INVALID_DEVICE "not a device of the kernel" =
                call!(clGetKernelSubGroupInfo(w.kernel.0, w.user.0, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, null(), 8, w.place(), w.size()));
            CL_INVALID_VALUE "no input" = call!(clGetKernelSubGroupInfo(w.kernel.0, w.s.device,
                CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 8, null(), 8, w.place(), w.size()));
        }
    }
}

pub fn rows(t: &mut Table) {
    queries(t);
    creation(t);
    images(t);
}

/// The same image by the older calls, and by that with properties.
fn images(t: &mut Table) {
    rows! { t, w;
        clCreateImage2D {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateImage2D(c, 0, &RGBA, 8, 8, 0, null_mut())));
            CL_INVALID_VALUE "flags" = makes!(w, clCreateImage2D(w.s.context.0, 1 << 40, &RGBA, 8, 8, 0, null_mut()));
            CL_INVALID_VALUE "immutable without contents" =
                makes!(w, clCreateImage2D(w.s.context.0, CL_MEM_IMMUTABLE_EXT, &RGBA, 8, 8, 0, null_mut()));
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "none" = makes!(w, clCreateImage2D(w.s.context.0, 0, null(), 8, 8, 0, null_mut()));
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an order that is none" = makes!(w, clCreateImage2D(w.s.context.0, 0,
                &cl_image_format { image_channel_order: 1, ..RGBA }, 8, 8, 0, null_mut()));
            CL_INVALID_HOST_PTR "none, but wanted" =
                makes!(w, clCreateImage2D(w.s.context.0, CL_MEM_COPY_HOST_PTR, &RGBA, 8, 8, 0, null_mut()));
            CL_INVALID_HOST_PTR "one that is not wanted" = makes!(w, clCreateImage2D(w.s.context.0, 0, &RGBA, 8, 8, 0, w.place()));
            CL_INVALID_IMAGE_SIZE "nothing, or too large" = [0, 1 << 30].map(|width|
                makes!(w, clCreateImage2D(w.s.context.0, 0, &RGBA, width, 8, 0, null_mut())));
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
        }
        clCreateImageWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| with_properties(w, c, null(), 0, &RGBA, null_mut()));
            CL_INVALID_PROPERTY "not a property" = with_properties(w, w.s.context.0, [0x1234, 1, 0].as_ptr(), 0, &RGBA, null_mut());
            CL_INVALID_VALUE "flags" = with_properties(w, w.s.context.0, null(), 1 << 40, &RGBA, null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "none" = with_properties(w, w.s.context.0, null(), 0, null(), null_mut());
            CL_INVALID_HOST_PTR "none, but wanted" =
                with_properties(w, w.s.context.0, null(), CL_MEM_COPY_HOST_PTR, &RGBA, null_mut());
            CL_INVALID_HOST_PTR "one that is not wanted" = with_properties(w, w.s.context.0, null(), 0, &RGBA, w.place());
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
        }
        clCreateImage { CL_INVALID_OPERATION "no images" => never "the devices here have them"; }
        clSetDefaultDeviceCommandQueue {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| call!(clSetDefaultDeviceCommandQueue(c, w.s.device, w.s.queue.0)));
            CL_INVALID_DEVICE "not a device" = w.bad(|d| call!(clSetDefaultDeviceCommandQueue(w.s.context.0, d, w.s.queue.0)));
            CL_INVALID_DEVICE "a device of another context" => never "contexts here have the only device";
        }
        clSetProgramSpecializationConstant {
            CL_INVALID_PROGRAM "not a program, or one of source" = { let ask = |p|
                call!(clSetProgramSpecializationConstant(p, 0, 4, w.place()));
                let mut all = w.bad(ask); all.push(ask(w.unbuilt.0)); all };
            CL_COMPILER_NOT_AVAILABLE "no compiler" => never "needs a machine without clang";
            CL_INVALID_OPERATION "no intermediate language" => never "the devices here have it";
        }
        clSetContextDestructorCallback {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| call!(clSetContextDestructorCallback(c, Some(nothing_of_context), null_mut())));
        }
        clSetMemObjectDestructorCallback {
            CL_INVALID_MEM_OBJECT "not a memory object" = w.bad(|m|
                call!(clSetMemObjectDestructorCallback(m, Some(nothing_of_context), null_mut())));
        }
        clGetDeviceAndHostTimer { CL_INVALID_OPERATION "no timers that agree" => never "the devices here have them"; }
        clSetProgramReleaseCallback {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p| call!(clSetProgramReleaseCallback(p, Some(nothing_of_context), null_mut())));
            CL_INVALID_OPERATION "no device has destructors" =
                call!(clSetProgramReleaseCallback(w.program.0, Some(nothing_of_context), null_mut()));
        }
        clCreateProgramWithBuiltInKernels {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateProgramWithBuiltInKernels(c, 1, &w.s.device, c"none".as_ptr())));
            CL_INVALID_DEVICE "not a device" =
                makes!(w, clCreateProgramWithBuiltInKernels(w.s.context.0, 1, &w.user.0, c"none".as_ptr()));
        }
        clCompileProgram {
            CL_COMPILE_PROGRAM_FAILURE "not OpenCL C" = compile(w, "no such thing", c"");
            CL_INVALID_COMPILER_OPTIONS "an option that is none" = compile(w, "kernel void k() {}", c"-no-such-option");
        }
        clLinkProgram {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clLinkProgram(c, 0, null(), null(), 1, &w.unbuilt.0, None, null_mut())));
        }
        clCreateContextFromType {
            CL_INVALID_PROPERTY "not a property" = makes!(w, clCreateContextFromType(
                [CL_CONTEXT_PLATFORM, w.s.platform.addr() as isize, 0x1234, 1, 0].as_ptr(), CL_DEVICE_TYPE_ALL, None, null_mut()));
        }
        clSetKernelArg {
            CL_INVALID_MEM_OBJECT "no object where only one will do" = set(w, w.pictures.0, 0, 8, null());
        }
        clGetHostTimer { CL_INVALID_OPERATION "no timers that agree" => never "the devices here have them"; }
    }
}

fn with_properties(
    w: &World,
    c: cl_context,
    list: *const cl_mem_properties,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    at: *mut c_void,
) -> cl_int {
    makes!(
        w,
        clCreateImageWithProperties(c, list, flags, format, &description(8, 8, 0), at)
    )
}

/// Compiles a program of its own.
fn compile(w: &World, source: &str, options: &std::ffi::CStr) -> cl_int {
    let program = w.s.program(source);
    call!(clCompileProgram(
        program.0,
        0,
        null(),
        options.as_ptr(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ))
}

extern "C" fn nothing_of_context(_: *mut c_void, _: *mut c_void) {}
