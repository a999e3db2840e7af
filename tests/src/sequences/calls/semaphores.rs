//! Semaphores. A wait comes with its signal, so that nobody waits for ever.

use super::recorded::recorded;
use super::{list, one, pointer, Row};
use crate::sequences::state::{Kind, State};
use opencl_sys as sys;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

const TYPE: u64 = sys::CL_SEMAPHORE_TYPE_KHR as u64;
const BINARY: u64 = sys::CL_SEMAPHORE_TYPE_BINARY_KHR as u64;
const DEVICES: u64 = sys::CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR as u64;

/// The references that semaphores report are the program's; afterwards all are given back.
pub fn end(s: &mut State) {
    for object in s.all(Kind::Semaphore) {
        let mut count = 0u32;
        let place = (&raw mut count).cast();
        let param = sys::CL_SEMAPHORE_REFERENCE_COUNT_KHR;
        let code = recorded!(
            s,
            "clGetSemaphoreInfoKHR": clGetSemaphoreInfoKHR_t(object.handle, param, 4, place, null_mut())
        );
        if code != sys::CL_SUCCESS || i64::from(count) != i64::from(object.count) {
            let expected = object.count;
            s.wrong.push(format!(
                "a semaphore: {code} and {count} references, not {expected}"
            ));
        }
        for _ in 0..object.count {
            let code = recorded!(
                s,
                "clReleaseSemaphoreKHR": clReleaseSemaphoreKHR_t(object.handle)
            );
            if code != sys::CL_SUCCESS {
                s.wrong.push(format!("clReleaseSemaphoreKHR: {code}"));
            }
        }
    }
}

/// The calls.
pub const CALLS: &[Row] = &[
    ("clCreateSemaphoreWithPropertiesKHR", |s, n| {
        let context = s.pick(Kind::Context, n[0]);
        let device = s.device as u64;
        let lists: [&[u64]; 8] = [
            &[TYPE, BINARY, 0],
            &[TYPE, BINARY, DEVICES, device, 0, 0],
            &[DEVICES, device, 0, TYPE, BINARY, 0],
            &[0],
            &[TYPE, 2, 0],
            &[TYPE, BINARY, TYPE],
            &[TYPE, BINARY, DEVICES, device, device, 0, 0],
            &[u64::MAX, 1, 0],
        ];
        // Mostly what is right.
        let chosen = one(&[0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7], n[1]);
        let place = match n[1] % 32 {
            31 => null(),
            _ => lists[chosen].as_ptr(),
        };
        let mut code = 1;
        let made = recorded!(
            s,
            "clCreateSemaphoreWithPropertiesKHR": clCreateSemaphoreWithPropertiesKHR_t(
                context, place, &mut code
            )
        );
        let name = "clCreateSemaphoreWithPropertiesKHR";
        s.made(name, Kind::Semaphore, made, code);
    }),
    ("clRetainSemaphoreKHR", |s, n| {
        let semaphore = s.pick(Kind::Semaphore, n[0]);
        let code = recorded!(s, "clRetainSemaphoreKHR": clRetainSemaphoreKHR_t(semaphore));
        if s.code("clRetainSemaphoreKHR", code) {
            s.counted(Kind::Semaphore, semaphore, true);
        }
    }),
    ("clReleaseSemaphoreKHR", |s, n| {
        let semaphore = s.pick(Kind::Semaphore, n[0]);
        let code = recorded!(s, "clReleaseSemaphoreKHR": clReleaseSemaphoreKHR_t(semaphore));
        if s.code("clReleaseSemaphoreKHR", code) {
            s.counted(Kind::Semaphore, semaphore, false);
        }
    }),
    ("clGetSemaphoreInfoKHR", |s, n| {
        let semaphore = s.pick(Kind::Semaphore, n[0]);
        let param = sys::CL_SEMAPHORE_CONTEXT_KHR + n[1] % 8;
        let mut answer = [0u64; 8];
        let room = one(&[64, 8, 4, 0], n[2]);
        let place = answer.as_mut_ptr().cast();
        let code = recorded!(
            s,
            "clGetSemaphoreInfoKHR": clGetSemaphoreInfoKHR_t(semaphore, param, room, place, null_mut())
        );
        s.code("clGetSemaphoreInfoKHR", code);
    }),
    ("clEnqueueSignalSemaphoresKHR", |s, n| {
        enqueue(s, n, false);
    }),
    ("clEnqueueWaitSemaphoresKHR", |s, n| {
        enqueue(s, n, true);
    }),
];

/// Enqueues a signal of one or two semaphores, and then perhaps a wait for them in another queue.
fn enqueue(s: &mut State, n: super::Numbers, wait: bool) {
    let semaphores = [s.pick(Kind::Semaphore, n[0]), s.pick(Kind::Semaphore, n[1])];
    let count = one(&[1, 1, 1, 2, 0], n[2]);
    let queues = [s.pick(Kind::Queue, n[3]), s.pick(Kind::Queue, n[4])];
    let (list, mut event) = (list(s, n[5]), null_mut());
    let events = pointer(&list.1);
    let code = recorded!(
        s,
        "clEnqueueSignalSemaphoresKHR": clEnqueueSignalSemaphoresKHR_t(
            queues[0], count, semaphores.as_ptr(), null(), list.0, events, &mut event
        )
    );
    s.enqueued("clEnqueueSignalSemaphoresKHR", code, event);
    if !wait || code != sys::CL_SUCCESS {
        return;
    }
    let mut event = null_mut();
    let code = recorded!(
        s,
        "clEnqueueWaitSemaphoresKHR": clEnqueueWaitSemaphoresKHR_t(
            queues[1], count, semaphores.as_ptr(), null(), 0, null(), &mut event
        )
    );
    s.enqueued("clEnqueueWaitSemaphoresKHR", code, event);
}
