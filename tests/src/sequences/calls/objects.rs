//! Calls that create, change, query, retain and release objects.

use super::{bytes, flags, one, size, Row};
use crate::call;
use crate::sequences::state::Kind;
use opencl_sys as sys;
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

const SOURCES: [&CStr; 3] = [
    c"kernel void plain(global int *p, int n, local int *l) { if (p) p[0] = n; }
      kernel __attribute__((reqd_work_group_size(4, 1, 1))) void four(global int *p) { if (p) p[0] = 1; }
      kernel void say(int n) { printf(\"%d\\n\", n); }",
    c"kernel void look(read_only image2d_t i, sampler_t s, global float4 *p) {
          if (p) p[0] = read_imagef(i, s, (int2)(0, 0)); }",
    c"no OpenCL C",
];
const KERNELS: [&CStr; 5] = [c"plain", c"four", c"say", c"look", c"none"];
const OPTIONS: [Option<&CStr>; 4] = [
    None,
    Some(c"-w"),
    Some(c"-cl-std=CL3.0 -cl-kernel-arg-info"),
    Some(c"-no-such-option"),
];

macro_rules! retain {
    ($name:ident $kind:ident) => {
        (stringify!($name), |s, n| {
            let handle = s.pick(Kind::$kind, n[0]);
            let code = call!($name(handle));
            if s.code(stringify!($name), code) {
                s.counted(Kind::$kind, handle, true);
            }
        })
    };
}

macro_rules! release {
    ($name:ident $kind:ident) => {
        (stringify!($name), |s, n| {
            let handle = s.pick(Kind::$kind, n[0]);
            // What waits for a user event that is gone waits for ever.
            let last = {
                let table = s.table();
                let last = s.threaded || table.references(Kind::Event, handle) == 1;
                last && table.waiting.contains(&handle)
            };
            if last {
                s.settle();
            }
            let code = call!($name(handle));
            if s.code(stringify!($name), code) {
                s.counted(Kind::$kind, handle, false);
            }
        })
    };
}

/// A query, into a place of some size. It has zeros: of binaries one asks with pointers there.
macro_rules! query {
    ($name:ident $kind:ident $first:ident $count:literal) => {
        (stringify!($name), |s, n| {
            let handle = s.pick(Kind::$kind, n[0]);
            let param = sys::$first + n[1] % ($count + 2);
            let room = one(&[4096, 8, 4, 1, 0], n[2]);
            let place = if n[3] % 4 == 3 { null_mut() } else { s.zeros() };
            let mut size = 0;
            let code = call!($name(handle, param, room, place, &mut size));
            s.code(stringify!($name), code);
        })
    };
}

fn format(number: u32) -> sys::cl_image_format {
    sys::cl_image_format {
        image_channel_order: sys::CL_RGBA - number % 3,
        image_channel_data_type: one(
            &[sys::CL_UNORM_INT8, sys::CL_FLOAT, sys::CL_UNSIGNED_INT16, 7],
            number / 3,
        ),
    }
}

/// The calls.
pub const CALLS: &[Row] = &[
    ("clCreateContext", |s, n| {
        let devices = [s.device, null_mut()];
        let count = one(&[1, 1, 0, 2], n[0]);
        let mut code = 1;
        let list = one(
            &[[0, 0, 0], [sys::CL_CONTEXT_PLATFORM, 7, 0], [0x1234, 1, 0]],
            n[1] / 8,
        );
        let list = if n[1] % 8 == 7 { list.as_ptr() } else { null() };
        let made = call!(clCreateContext(
            list,
            count,
            devices.as_ptr(),
            None,
            null_mut(),
            &mut code
        ));
        s.made("clCreateContext", Kind::Context, made, code);
    }),
    ("clCreateCommandQueueWithProperties", |s, n| {
        let (context, mut code) = (s.pick(Kind::Context, n[0]), 1);
        let device = if n[1] % 16 == 15 {
            s.platform
        } else {
            s.device
        };
        let name = u64::from(sys::CL_QUEUE_PROPERTIES);
        let list = [name, one(&[0u64, 1, 2, 3, 64], n[2]), 0];
        let list = if n[2] == 0 { null() } else { list.as_ptr() };
        let made = call!(clCreateCommandQueueWithProperties(
            context, device, list, &mut code
        ));
        if s.made(
            "clCreateCommandQueueWithProperties",
            Kind::Queue,
            made,
            code,
        ) {
            s.table().context_of.insert(made, context);
        }
    }),
    ("clCreateBuffer", |s, n| {
        let (context, memory, mut code) = (s.pick(Kind::Context, n[0]), s.memory(), 1);
        let flags = flags(n[1]);
        let host = flags & (sys::CL_MEM_USE_HOST_PTR | sys::CL_MEM_COPY_HOST_PTR) != 0;
        let place = if host != (n[3] % 16 == 15) {
            memory
        } else {
            null_mut()
        };
        let size = match host {
            true => bytes(n[2]),
            false => size(1024, n[2]),
        };
        let made = call!(clCreateBuffer(context, flags, size, place, &mut code));
        s.made("clCreateBuffer", Kind::Mem, made, code);
    }),
    ("clCreateSubBuffer", |s, n| {
        let (buffer, mut code) = (s.pick(Kind::Mem, n[0]), 1);
        let region = sys::cl_buffer_region {
            origin: size(0, n[1]),
            size: size(64, n[2]),
        };
        let region = if n[3] % 16 == 15 {
            null()
        } else {
            (&raw const region).cast()
        };
        let kind = sys::CL_BUFFER_CREATE_TYPE_REGION;
        let made = call!(clCreateSubBuffer(
            buffer,
            flags(n[4]),
            kind,
            region,
            &mut code
        ));
        s.made("clCreateSubBuffer", Kind::Mem, made, code);
    }),
    ("clCreateImage", |s, n| {
        let (context, mut code) = (s.pick(Kind::Context, n[0]), 1);
        // SAFETY: numbers and pointers, which may be zero.
        let mut desc: sys::cl_image_desc = unsafe { std::mem::zeroed() };
        desc.image_type = sys::CL_MEM_OBJECT_IMAGE2D + n[1] % 8;
        desc.image_width = size(8, n[2]);
        desc.image_height = size(8, n[2] / 8);
        desc.image_depth = one(&[0, 2, 1, 1 << 20], n[2] / 64);
        desc.image_array_size = one(&[0, 2, 1, 1 << 20], n[2] / 256);
        desc.image_row_pitch = one(&[0, 0, 32, 64, 7], n[3]);
        if n[4] % 4 == 3 {
            desc.buffer = s.pick(Kind::Mem, n[4] / 4);
        }
        let format = format(n[5]);
        let flags = flags(n[1] / 8) & !(sys::CL_MEM_USE_HOST_PTR | sys::CL_MEM_COPY_HOST_PTR);
        let made = call!(clCreateImage(
            context,
            flags,
            &format,
            &desc,
            null_mut(),
            &mut code
        ));
        s.made("clCreateImage", Kind::Mem, made, code);
    }),
    ("clCreatePipe", |s, n| {
        let (context, mut code) = (s.pick(Kind::Context, n[0]), 1);
        let (packet, count) = (size(4, n[2]) as u32, size(16, n[3]) as u32);
        let made = call!(clCreatePipe(
            context,
            flags(n[1]),
            packet,
            count,
            null(),
            &mut code
        ));
        s.made("clCreatePipe", Kind::Mem, made, code);
    }),
    ("clCreateSampler", |s, n| {
        let (context, mut code) = (s.pick(Kind::Context, n[0]), 1);
        let (address, filter) = (
            sys::CL_ADDRESS_NONE + n[1] % 6,
            sys::CL_FILTER_NEAREST + n[2] % 3,
        );
        let made = call!(clCreateSampler(
            context,
            n[3] % 3,
            address,
            filter,
            &mut code
        ));
        s.made("clCreateSampler", Kind::Sampler, made, code);
    }),
    ("clCreateProgramWithSource", |s, n| {
        let (context, mut code) = (s.pick(Kind::Context, n[0]), 1);
        let mut source = one(&SOURCES, n[1] / 4 * (n[1] % 2)).as_ptr();
        let count = one(&[1, 1, 1, 0], n[2]);
        let made = call!(clCreateProgramWithSource(
            context,
            count,
            &mut source,
            null(),
            &mut code
        ));
        s.made("clCreateProgramWithSource", Kind::Program, made, code);
    }),
    ("clCreateProgramWithIL", |s, n| {
        let (context, mut code) = (s.pick(Kind::Context, n[0]), 1);
        let words = [0x0723_0203u32, 0x0001_0000, n[1], n[2], n[3], n[4]];
        let length = 4 * (n[5] as usize % 7);
        let made = call!(clCreateProgramWithIL(
            context,
            words.as_ptr().cast(),
            length,
            &mut code
        ));
        s.made("clCreateProgramWithIL", Kind::Program, made, code);
    }),
    ("clBuildProgram", |s, n| {
        let program = s.pick(Kind::Program, n[0]);
        let options = one(&OPTIONS, n[1]).map_or(null(), CStr::as_ptr);
        let device = s.device;
        let (count, list) = one(&[(0, false), (1, true), (1, false), (0, true)], n[2]);
        let list = if list { &raw const device } else { null() };
        let code = call!(clBuildProgram(
            program,
            count,
            list,
            options,
            None,
            null_mut()
        ));
        s.code("clBuildProgram", code);
    }),
    ("clCompileProgram", |s, n| {
        let program = s.pick(Kind::Program, n[0]);
        let options = one(&OPTIONS, n[1]).map_or(null(), CStr::as_ptr);
        let header = s.pick(Kind::Program, n[2]);
        let mut name = c"header.h".as_ptr();
        let count = one(&[0, 0, 1], n[3]);
        let (headers, names) = match count {
            0 => (null(), null_mut()),
            _ => (&raw const header, &raw mut name),
        };
        let code = call!(clCompileProgram(
            program,
            0,
            null(),
            options,
            count,
            headers,
            names,
            None,
            null_mut()
        ));
        s.code("clCompileProgram", code);
    }),
    ("clLinkProgram", |s, n| {
        let (context, mut code) = (s.pick(Kind::Context, n[0]), 1);
        let programs = [s.pick(Kind::Program, n[1]), s.pick(Kind::Program, n[2])];
        let count = one(&[1, 2, 0], n[3]);
        let made = call!(clLinkProgram(
            context,
            0,
            null(),
            null(),
            count,
            programs.as_ptr(),
            None,
            null_mut(),
            &mut code
        ));
        // A link that fails may leave a program for its log.
        if code == sys::CL_LINK_PROGRAM_FAILURE && !made.is_null() {
            call!(clReleaseProgram(made));
        } else {
            s.made("clLinkProgram", Kind::Program, made, code);
        }
    }),
    ("clCreateKernel", |s, n| {
        let (program, mut code) = (s.pick(Kind::Program, n[0]), 1);
        let made = call!(clCreateKernel(
            program,
            one(&KERNELS, n[1]).as_ptr(),
            &mut code
        ));
        s.made("clCreateKernel", Kind::Kernel, made, code);
    }),
    ("clCloneKernel", |s, n| {
        let (kernel, mut code) = (s.pick(Kind::Kernel, n[0]), 1);
        let made = call!(clCloneKernel(kernel, &mut code));
        s.made("clCloneKernel", Kind::Kernel, made, code);
    }),
    ("clSetKernelArg", |s, n| {
        let kernel = s.pick(Kind::Kernel, n[0]);
        let (mem, sampler) = (s.pick(Kind::Mem, n[3]), s.pick(Kind::Sampler, n[3]));
        let (size, value): (usize, *const c_void) = match n[2] % 6 {
            0 => (8, (&raw const mem).cast()),
            1 => (4, (&raw const n[3]).cast()),
            2 => (64, null()),
            3 => (8, (&raw const sampler).cast()),
            4 => (one(&[0, 1, 7, 1 << 40], n[3]), null()),
            _ => (one(&[0, 1, 4, 8], n[3]), (&raw const mem).cast()),
        };
        let code = call!(clSetKernelArg(kernel, n[1] % 4, size, value));
        s.code("clSetKernelArg", code);
    }),
    ("clCreateUserEvent", |s, n| {
        let context = s.pick(Kind::Context, n[0]);
        s.user_event(context);
    }),
    ("clSetUserEventStatus", |s, n| {
        let event = s.pick(Kind::Event, n[0]);
        let code = call!(clSetUserEventStatus(
            event,
            one(&[0, -1, 1, 3, i32::MIN], n[1])
        ));
        if s.code("clSetUserEventStatus", code) {
            s.table().waiting.retain(|waiting| *waiting != event);
        }
    }),
    query!(clGetContextInfo Context CL_CONTEXT_REFERENCE_COUNT 4),
    query!(clGetCommandQueueInfo Queue CL_QUEUE_CONTEXT 7),
    query!(clGetMemObjectInfo Mem CL_MEM_TYPE 11),
    query!(clGetImageInfo Mem CL_IMAGE_FORMAT 11),
    query!(clGetSamplerInfo Sampler CL_SAMPLER_REFERENCE_COUNT 9),
    query!(clGetProgramInfo Program CL_PROGRAM_REFERENCE_COUNT 5),
    query!(clGetKernelInfo Kernel CL_KERNEL_FUNCTION_NAME 6),
    query!(clGetEventInfo Event CL_EVENT_COMMAND_QUEUE 5),
    query!(clGetEventProfilingInfo Event CL_PROFILING_COMMAND_QUEUED 5),
    retain!(clRetainContext Context),
    retain!(clRetainCommandQueue Queue),
    retain!(clRetainMemObject Mem),
    retain!(clRetainSampler Sampler),
    retain!(clRetainProgram Program),
    retain!(clRetainKernel Kernel),
    retain!(clRetainEvent Event),
    release!(clReleaseContext Context),
    release!(clReleaseCommandQueue Queue),
    release!(clReleaseMemObject Mem),
    release!(clReleaseSampler Sampler),
    release!(clReleaseProgram Program),
    release!(clReleaseKernel Kernel),
    release!(clReleaseEvent Event),
];
