//! The table: what a program may call, and what its numbers mean there.
//!
//! Wrong are handles, sizes, offsets, flags and counts; what a call may read and write beyond what it can check (memory of the
//! host, what kernels do) stays within what there is, and nobody waits for a user event that is not set.

use crate::state::{Kind, State};
use opencl_sys as sys;
use pumice_tests::call;
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

type Numbers = [u32; crate::program::NUMBERS];
type Row = (&'static str, fn(&mut State, Numbers));

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

/// What programs begin with.
pub const BEGIN: [&str; 7] = [
    "clCreateContext",
    "clCreateCommandQueueWithProperties",
    "clCreateBuffer",
    "clCreateProgramWithSource",
    "clBuildProgram",
    "clCreateKernel",
    "clCreateUserEvent",
];

/// The row of a call.
pub fn find(name: &str) -> Option<usize> {
    CALLS.iter().position(|(known, _)| *known == name)
}

/// One of a list, the first for 0.
fn one<T: Copy>(list: &[T], number: u32) -> T {
    list[number as usize % list.len()]
}

/// A size or an offset, with 0 for `usual`.
fn size(usual: usize, number: u32) -> usize {
    match number % 8 {
        0 => usual,
        1 => 0,
        2 => 1,
        3 => usual + 1,
        4 => usize::MAX,
        5 => usize::MAX - usual,
        _ => (number as usize >> 3) % (4 << 20),
    }
}

/// A size up to what there is room for on the host.
fn bytes(number: u32) -> usize {
    match size(64, number) {
        // What no object has is refused before anything is touched.
        beyond if beyond > 1 << 40 => beyond,
        other => other % (64 << 10),
    }
}

/// Flags: none, one that is known, or any bits.
fn flags(number: u32) -> u64 {
    match number % 4 {
        0 => 0,
        1 | 2 => 1 << ((number / 4) % 10),
        _ => u64::from(number / 4),
    }
}

/// A list of events: none, some, and at times a count that does not fit.
fn list(state: &State, number: u32) -> (u32, Vec<sys::cl_event>) {
    let count = one(&[0, 0, 1, 2, 3], number) as usize;
    let mut events: Vec<_> = (0..count as u32)
        .map(|at| state.pick(Kind::Event, (number / 8).wrapping_add(at * 7)))
        .collect();
    let count = if number % 64 == 63 { count + 1 } else { count };
    if count > events.len() {
        events.clear();
    }
    (count as u32, events)
}

fn pointer(list: &[sys::cl_event]) -> *const sys::cl_event {
    if list.is_empty() {
        null()
    } else {
        list.as_ptr()
    }
}

/// A command that blocks when its number is odd: then nothing may wait for the program.
fn blocks(state: &mut State, number: u32) -> u32 {
    let blocking = number % 4 == 1;
    if blocking {
        state.settle();
    }
    u32::from(blocking)
}

macro_rules! command {
    ($s:ident, $n:ident, $list:ident, $event:ident, $name:ident($($arg:expr),*)) => {{
        let ($list, mut $event) = (list($s, $n[5]), null_mut());
        let wanted = if $n[5] % 3 == 0 { null_mut() } else { &raw mut $event };
        let code = call!($name($($arg,)* $list.0, pointer(&$list.1), wanted));
        $s.enqueued(stringify!($name), code, $event);
        code
    }};
}

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
            if s.waiting.contains(&handle) && s.references(Kind::Event, handle) == 1 {
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

/// Origin and region, of which the third is mostly that of two dimensions.
fn region(number: u32) -> ([usize; 3], [usize; 3]) {
    let digit = |at: u32| (number >> (3 * at)) as usize % 8;
    let origin = [digit(0), digit(1), digit(2) / 7];
    let region = [8 - digit(3), 8 - digit(4), 1 + digit(5) / 7];
    (origin, region)
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
        s.made(
            "clCreateCommandQueueWithProperties",
            Kind::Queue,
            made,
            code,
        );
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
    ("clEnqueueNDRangeKernel", |s, n| {
        let (queue, kernel) = (s.pick(Kind::Queue, n[0]), s.pick(Kind::Kernel, n[1]));
        let dims = one(&[1, 1, 2, 3, 0, 4], n[2]);
        let global = [one(&[4, 16, 1, 0, 1000], n[3]), 1 + n[3] as usize % 3, 1];
        let local = [one(&[1, 4, 0, 3, 1 << 20], n[4]), 1, 1];
        let local = if n[4] % 3 == 0 {
            null()
        } else {
            local.as_ptr()
        };
        command!(
            s,
            n,
            list,
            event,
            clEnqueueNDRangeKernel(queue, kernel, dims, null(), global.as_ptr(), local)
        );
    }),
    ("clEnqueueTask", |s, n| {
        let (queue, kernel) = (s.pick(Kind::Queue, n[0]), s.pick(Kind::Kernel, n[1]));
        command!(s, n, list, event, clEnqueueTask(queue, kernel));
    }),
    ("clEnqueueReadBuffer", |s, n| {
        let (queue, buffer, blocking) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            blocks(s, n[4]),
        );
        let memory = s.memory();
        command!(
            s,
            n,
            list,
            event,
            clEnqueueReadBuffer(queue, buffer, blocking, size(0, n[2]), bytes(n[3]), memory)
        );
    }),
    ("clEnqueueWriteBuffer", |s, n| {
        let (queue, buffer, blocking) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            blocks(s, n[4]),
        );
        let memory = s.memory();
        command!(
            s,
            n,
            list,
            event,
            clEnqueueWriteBuffer(queue, buffer, blocking, size(0, n[2]), bytes(n[3]), memory)
        );
    }),
    ("clEnqueueReadBufferRect", |s, n| {
        let (queue, buffer, blocking) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            blocks(s, n[4]),
        );
        let (memory, (origin, region)) = (s.memory(), region(n[2]));
        let pitch = one(&[0, 0, 16, 7], n[3]);
        command!(
            s,
            n,
            list,
            event,
            clEnqueueReadBufferRect(
                queue,
                buffer,
                blocking,
                origin.as_ptr(),
                origin.as_ptr(),
                region.as_ptr(),
                pitch,
                size(0, n[3] / 4),
                pitch,
                0,
                memory
            )
        );
    }),
    ("clEnqueueCopyBuffer", |s, n| {
        let (queue, from, to) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            s.pick(Kind::Mem, n[2]),
        );
        let (a, b) = (size(0, n[3]), size(0, n[3] / 8));
        command!(
            s,
            n,
            list,
            event,
            clEnqueueCopyBuffer(queue, from, to, a, b, size(64, n[4]))
        );
    }),
    ("clEnqueueFillBuffer", |s, n| {
        let (queue, buffer) = (s.pick(Kind::Queue, n[0]), s.pick(Kind::Mem, n[1]));
        let memory = s.memory();
        let pattern = one(&[4, 1, 16, 3, 0, 128, 256], n[4]);
        command!(
            s,
            n,
            list,
            event,
            clEnqueueFillBuffer(
                queue,
                buffer,
                memory,
                pattern,
                size(0, n[2]),
                size(64, n[3])
            )
        );
    }),
    ("clEnqueueMapBuffer", |s, n| {
        let (queue, buffer, blocking) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            blocks(s, n[4]),
        );
        let flags = one(&[1, 2, 4, 3, 6, 0, 8], n[4] / 4);
        let (list, mut event, mut code) = (list(s, n[5]), null_mut(), 1);
        let place = call!(clEnqueueMapBuffer(
            queue,
            buffer,
            blocking,
            flags,
            size(0, n[2]),
            size(64, n[3]),
            list.0,
            pointer(&list.1),
            &mut event,
            &mut code
        ));
        s.enqueued("clEnqueueMapBuffer", code, event);
        if (code == sys::CL_SUCCESS) == place.is_null() {
            s.wrong
                .push("clEnqueueMapBuffer: a place, or none".to_owned());
        }
        if code == sys::CL_SUCCESS {
            s.maps.push([queue, buffer, place]);
        }
    }),
    ("clEnqueueUnmapMemObject", |s, n| {
        let known = s.maps.get(n[3] as usize % s.maps.len().max(1)).copied();
        let [queue, object, place] = match (known, n[4] % 8) {
            (Some(map), 0..=5) => map,
            _ => [
                s.pick(Kind::Queue, n[0]),
                s.pick(Kind::Mem, n[1]),
                s.memory(),
            ],
        };
        let code = command!(
            s,
            n,
            list,
            event,
            clEnqueueUnmapMemObject(queue, object, place)
        );
        if code == sys::CL_SUCCESS {
            let at = s.maps.iter().position(|map| map[1..] == [object, place]);
            at.map(|at| s.maps.remove(at));
        }
    }),
    ("clEnqueueReadImage", |s, n| {
        let (queue, image, blocking) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            blocks(s, n[4]),
        );
        let (memory, (origin, region)) = (s.memory(), region(n[2]));
        let pitch = one(&[0, 0, 256, 7], n[3]);
        command!(
            s,
            n,
            list,
            event,
            clEnqueueReadImage(
                queue,
                image,
                blocking,
                origin.as_ptr(),
                region.as_ptr(),
                pitch,
                0,
                memory
            )
        );
    }),
    ("clEnqueueWriteImage", |s, n| {
        let (queue, image, blocking) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            blocks(s, n[4]),
        );
        let (memory, (origin, region)) = (s.memory(), region(n[2]));
        let pitch = one(&[0, 0, 256, 7], n[3]);
        command!(
            s,
            n,
            list,
            event,
            clEnqueueWriteImage(
                queue,
                image,
                blocking,
                origin.as_ptr(),
                region.as_ptr(),
                pitch,
                0,
                memory
            )
        );
    }),
    ("clEnqueueFillImage", |s, n| {
        let (queue, image, (origin, region)) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            region(n[2]),
        );
        let memory = s.memory();
        command!(
            s,
            n,
            list,
            event,
            clEnqueueFillImage(queue, image, memory, origin.as_ptr(), region.as_ptr())
        );
    }),
    ("clEnqueueCopyImage", |s, n| {
        let (queue, from, to) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            s.pick(Kind::Mem, n[2]),
        );
        let ((a, region), (b, _)) = (region(n[3]), region(n[4]));
        command!(
            s,
            n,
            list,
            event,
            clEnqueueCopyImage(queue, from, to, a.as_ptr(), b.as_ptr(), region.as_ptr())
        );
    }),
    ("clEnqueueCopyImageToBuffer", |s, n| {
        let (queue, from, to) = (
            s.pick(Kind::Queue, n[0]),
            s.pick(Kind::Mem, n[1]),
            s.pick(Kind::Mem, n[2]),
        );
        let (origin, region) = region(n[3]);
        command!(
            s,
            n,
            list,
            event,
            clEnqueueCopyImageToBuffer(
                queue,
                from,
                to,
                origin.as_ptr(),
                region.as_ptr(),
                size(0, n[4])
            )
        );
    }),
    ("clEnqueueMigrateMemObjects", |s, n| {
        let (queue, object) = (s.pick(Kind::Queue, n[0]), s.pick(Kind::Mem, n[1]));
        let (flags, count) = (flags(n[2]), one(&[1, 0], n[3]));
        command!(
            s,
            n,
            list,
            event,
            clEnqueueMigrateMemObjects(queue, count, &object, flags)
        );
    }),
    ("clEnqueueMarkerWithWaitList", |s, n| {
        let queue = s.pick(Kind::Queue, n[0]);
        command!(s, n, list, event, clEnqueueMarkerWithWaitList(queue));
    }),
    ("clEnqueueBarrierWithWaitList", |s, n| {
        let queue = s.pick(Kind::Queue, n[0]);
        command!(s, n, list, event, clEnqueueBarrierWithWaitList(queue));
    }),
    ("clFlush", |s, n| {
        let code = call!(clFlush(s.pick(Kind::Queue, n[0])));
        s.code("clFlush", code);
    }),
    ("clFinish", |s, n| {
        s.settle();
        let code = call!(clFinish(s.pick(Kind::Queue, n[0])));
        s.code("clFinish", code);
    }),
    ("clCreateUserEvent", |s, n| {
        let (context, mut code) = (s.pick(Kind::Context, n[0]), 1);
        let made = call!(clCreateUserEvent(context, &mut code));
        if s.made("clCreateUserEvent", Kind::Event, made, code) {
            s.waiting.push(made);
        }
    }),
    ("clSetUserEventStatus", |s, n| {
        let event = s.pick(Kind::Event, n[0]);
        let code = call!(clSetUserEventStatus(
            event,
            one(&[0, -1, 1, 3, i32::MIN], n[1])
        ));
        if s.code("clSetUserEventStatus", code) {
            s.waiting.retain(|waiting| *waiting != event);
        }
    }),
    ("clWaitForEvents", |s, n| {
        s.settle();
        let events = [s.pick(Kind::Event, n[0]), s.pick(Kind::Event, n[1])];
        let code = call!(clWaitForEvents(one(&[1, 2, 0], n[2]), events.as_ptr()));
        s.code("clWaitForEvents", code);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_knows_all() {
        let known = include_str!("../../../errors/specification.txt");
        for (name, _) in CALLS {
            assert!(known.contains(&format!("{name} CL_")), "{name}");
        }
        for name in BEGIN {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
