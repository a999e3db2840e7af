//! Command buffers.

use super::{list, one, pointer, size, Row};
use crate::call;
use crate::sequences::state::{Kind, State};
use opencl_sys as sys;
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

/// A function of the platform; its type in the headers is optional.
pub(super) fn function<F: Copy>(state: &State, name: &CStr) -> F {
    let address = call!(clGetExtensionFunctionAddressForPlatform(
        state.platform,
        name.as_ptr()
    ));
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: the driver declares its functions as the headers do, and a pointer to a function that may be none is a pointer.
    unsafe { (&raw const address).cast::<F>().read() }
}

/// Calls such a function.
macro_rules! recorded {
    ($s:expr, $name:literal: $type:ident($($arg:expr),*)) => {{
        let name = concat!($name, "\0").as_bytes();
        let name = CStr::from_bytes_with_nul(name).expect("a name");
        match crate::sequences::calls::recorded::function::<sys::$type>($s, name) {
            // SAFETY: what a program passes wrongly is what the driver has to refuse; all pointers are to what the call asks
            // for.
            Some(function) => unsafe { function($($arg),*) },
            None => panic!("no {}", $name),
        }
    }};
}

pub(super) use recorded;

/// A list of sync points: none, some, and at times one that is not there.
fn points(number: u32) -> Vec<u32> {
    let count = one(&[0, 0, 0, 1, 2], number);
    (0..count).map(|at| 1 + (number / 8 + at) % 4).collect()
}

fn place(points: &[u32]) -> *const u32 {
    if points.is_empty() {
        null()
    } else {
        points.as_ptr()
    }
}

/// A queue for a command: mostly none, which stands for the only one.
fn queue(s: &State, number: u32) -> *mut c_void {
    match number % 4 {
        3 => s.pick(Kind::Queue, number / 4),
        _ => null_mut(),
    }
}

/// The references that command buffers tell of are the program's; afterwards all are given back.
pub fn end(s: &mut State) {
    for object in s.all(Kind::CommandBuffer) {
        let mut count = 0u32;
        let place = (&raw mut count).cast();
        let param = sys::CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR;
        let code = recorded!(
            s,
            "clGetCommandBufferInfoKHR": clGetCommandBufferInfoKHR_fn(object.handle, param, 4, place, null_mut())
        );
        if code != sys::CL_SUCCESS || i64::from(count) != i64::from(object.count) {
            let expected = object.count;
            s.wrong.push(format!(
                "a command buffer: {code} and {count} references, not {expected}"
            ));
        }
        for _ in 0..object.count {
            let code = recorded!(
                s,
                "clReleaseCommandBufferKHR": clReleaseCommandBufferKHR_fn(object.handle)
            );
            if code != sys::CL_SUCCESS {
                s.wrong.push(format!("clReleaseCommandBufferKHR: {code}"));
            }
        }
    }
}

/// The calls.
pub const CALLS: &[Row] = &[
    ("clCreateCommandBufferKHR", |s, n| {
        let queues = [s.pick(Kind::Queue, n[0]), s.pick(Kind::Queue, n[1])];
        let count = one(&[1, 1, 1, 2, 0], n[2]);
        let bits = one(&[0, 1, 2, 3, 7, 8], n[3]);
        let properties = [sys::CL_COMMAND_BUFFER_FLAGS_KHR, bits, 0];
        let (mut code, list) = (1, properties.as_ptr());
        let made = recorded!(
            s,
            "clCreateCommandBufferKHR": clCreateCommandBufferKHR_fn(count, queues.as_ptr(), list, &mut code)
        );
        s.made("clCreateCommandBufferKHR", Kind::CommandBuffer, made, code);
    }),
    ("clRetainCommandBufferKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let code = recorded!(
            s,
            "clRetainCommandBufferKHR": clRetainCommandBufferKHR_fn(buffer)
        );
        if s.code("clRetainCommandBufferKHR", code) {
            s.counted(Kind::CommandBuffer, buffer, true);
        }
    }),
    ("clReleaseCommandBufferKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let code = recorded!(
            s,
            "clReleaseCommandBufferKHR": clReleaseCommandBufferKHR_fn(buffer)
        );
        if s.code("clReleaseCommandBufferKHR", code) {
            s.counted(Kind::CommandBuffer, buffer, false);
        }
    }),
    ("clFinalizeCommandBufferKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let code = recorded!(
            s,
            "clFinalizeCommandBufferKHR": clFinalizeCommandBufferKHR_fn(buffer)
        );
        s.code("clFinalizeCommandBufferKHR", code);
    }),
    ("clGetCommandBufferInfoKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let param = sys::CL_COMMAND_BUFFER_QUEUES_KHR + n[1] % 7;
        let mut answer = [0u64; 8];
        let room = one(&[64, 8, 4, 0], n[2]);
        let code = recorded!(
            s,
            "clGetCommandBufferInfoKHR": clGetCommandBufferInfoKHR_fn(
                buffer,
                param,
                room,
                answer.as_mut_ptr().cast(),
                null_mut()
            )
        );
        s.code("clGetCommandBufferInfoKHR", code);
    }),
    ("clEnqueueCommandBufferKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let mut queues = [s.pick(Kind::Queue, n[1]), s.pick(Kind::Queue, n[2])];
        let count = one(&[0, 0, 0, 1, 2], n[3]);
        let place = match count {
            0 => null_mut(),
            _ => queues.as_mut_ptr(),
        };
        let (list, mut event) = (list(s, n[5]), null_mut());
        let wanted = if n[5].is_multiple_of(3) {
            null_mut()
        } else {
            &raw mut event
        };
        let events = pointer(&list.1);
        let code = recorded!(
            s,
            "clEnqueueCommandBufferKHR": clEnqueueCommandBufferKHR_fn(count, place, buffer, list.0, events, wanted)
        );
        s.enqueued("clEnqueueCommandBufferKHR", code, event);
    }),
    ("clCommandCopyBufferKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let (queue, from, to) = (
            queue(s, n[5]),
            s.pick(Kind::Mem, n[1]),
            s.pick(Kind::Mem, n[2]),
        );
        let (a, b, bytes) = (size(0, n[3]), size(0, n[3] / 8), size(64, n[4]));
        let points = points(n[5]);
        let (count, list) = (points.len() as u32, place(&points));
        let code = recorded!(
            s,
            "clCommandCopyBufferKHR": clCommandCopyBufferKHR_fn(
                buffer,
                queue,
                null(),
                from,
                to,
                a,
                b,
                bytes,
                count,
                list,
                null_mut(),
                null_mut()
            )
        );
        s.code("clCommandCopyBufferKHR", code);
    }),
    ("clCommandFillBufferKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let (queue, to, memory) = (queue(s, n[5]), s.pick(Kind::Mem, n[1]), s.memory());
        let pattern = one(&[4, 1, 16, 3, 0, 128, 256], n[4]);
        let points = points(n[5]);
        let (count, list) = (points.len() as u32, place(&points));
        let (at, bytes) = (size(0, n[2]), size(64, n[3]));
        let code = recorded!(
            s,
            "clCommandFillBufferKHR": clCommandFillBufferKHR_fn(
                buffer,
                queue,
                null(),
                to,
                memory,
                pattern,
                at,
                bytes,
                count,
                list,
                null_mut(),
                null_mut()
            )
        );
        s.code("clCommandFillBufferKHR", code);
    }),
    ("clCommandFillImageKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let (queue, to, memory) = (queue(s, n[5]), s.pick(Kind::Mem, n[1]), s.memory());
        let digit = |at: u32| (n[2] >> (3 * at)) as usize % 8;
        let (origin, region) = ([digit(0), digit(1), 0], [8 - digit(2), 8 - digit(3), 1]);
        let points = points(n[5]);
        let (count, list) = (points.len() as u32, place(&points));
        let code = recorded!(
            s,
            "clCommandFillImageKHR": clCommandFillImageKHR_fn(
                buffer,
                queue,
                null(),
                to,
                memory,
                origin.as_ptr(),
                region.as_ptr(),
                count,
                list,
                null_mut(),
                null_mut()
            )
        );
        s.code("clCommandFillImageKHR", code);
    }),
    ("clCommandNDRangeKernelKHR", |s, n| {
        let buffer = s.pick(Kind::CommandBuffer, n[0]);
        let (queue, kernel) = (queue(s, n[5]), s.pick(Kind::Kernel, n[1]));
        let dims = one(&[1, 1, 2, 3, 0, 4], n[2]);
        let global = [one(&[4, 16, 1, 0, 1000], n[3]), 1 + n[3] as usize % 3, 1, 1];
        let local = [one(&[1, 4, 0, 3, 1 << 20], n[4]), 1, 1, 1];
        let local = match n[4] % 3 {
            0 => null(),
            _ => local.as_ptr(),
        };
        let points = points(n[5]);
        let (count, list) = (points.len() as u32, place(&points));
        let mut command = null_mut();
        let code = recorded!(
            s,
            "clCommandNDRangeKernelKHR": clCommandNDRangeKernelKHR_fn(
                buffer,
                queue,
                null(),
                kernel,
                dims,
                null(),
                global.as_ptr(),
                local,
                count,
                list,
                null_mut(),
                &mut command
            )
        );
        s.code("clCommandNDRangeKernelKHR", code);
    }),
];
