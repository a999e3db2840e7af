//! Shared virtual memory, and callbacks. Commands stay within an allocation, as nobody could refuse what does not; before one is
//! freed all that could use it is over.

use super::commands::command;
use super::{blocks, list, one, pointer, size, Row};
use crate::call;
use crate::sequences::state::{Kind, State};
use opencl_sys as sys;
use std::ffi::c_void;
use std::ptr::null_mut;

/// A range within an allocation of the queue's context, on words: with another's memory the application may do nothing, and nobody
/// could refuse it.
fn part(state: &State, queue: *mut c_void, which: u32, number: u32) -> (*mut c_void, usize) {
    let table = state.table();
    let context = table.context_of.get(&queue);
    let list: Vec<_> = table
        .shared
        .iter()
        .filter(|(.., of)| Some(of) == context)
        .collect();
    let Some(&&(start, size, _)) = list.get(which as usize % list.len().max(1)) else {
        return (null_mut(), 16);
    };
    let words = size / 4;
    if words == 0 {
        return (start, 0);
    }
    let first = number as usize % words;
    let count = (number / 64) as usize % (words - first + 1);
    match which % 32 {
        31 => (null_mut(), count * 4),
        _ => (start.wrapping_byte_add(first * 4), count * 4),
    }
}

extern "C" fn nothing_of_event(_: sys::cl_event, _: i32, _: *mut c_void) {}
extern "C" fn nothing(_: *mut c_void, _: *mut c_void) {}

/// The calls.
pub const CALLS: &[Row] = &[
    ("clSVMAlloc", |s, n| {
        let context = s.pick(Kind::Context, n[0]);
        let size = size(1024, n[2]);
        let flags = one(&[0, 1, 2, 4, 1 << 10, 3 << 10, 1 << 40], n[1]);
        let align = one(&[0, 4, 64, 3, 1 << 20], n[3]);
        let made = call!(clSVMAlloc(context, flags, size, align));
        if !made.is_null() {
            s.good += 1;
            s.table().shared.push((made, size, context));
        }
        if !made.is_null() && (size == 0 || context.is_null() || flags > 1 << 30) {
            s.wrong
                .push(format!("clSVMAlloc allocates {size} bytes with {flags:#x}"));
        }
    }),
    ("clSVMFree", |s, n| {
        if s.table().shared.len() < 2 {
            return;
        }
        s.settle();
        for queue in s.all(Kind::Queue) {
            let code = call!(clFinish(queue.handle));
            s.code("clFinish", code);
        }
        // Queues that the program has released may have commands yet; their memory stays.
        let freed = {
            let mut table = s.table();
            let at = n[1] as usize % table.shared.len();
            (table.released == 0).then(|| table.shared.remove(at))
        };
        if let Some((start, _, context)) = freed {
            call!(clSVMFree(context, start));
        }
    }),
    ("clEnqueueSVMMemcpy", |s, n| {
        let (queue, blocking) = (s.pick(Kind::Queue, n[0]), blocks(s, n[4]));
        let (to, a) = part(s, queue, n[1], n[2]);
        let (from, b) = part(s, queue, n[1] / 32, n[3]);
        let (from, b) = match n[4] % 3 {
            0 => (s.memory(), a),
            _ => (from, b),
        };
        command!(
            s,
            n,
            list,
            event,
            clEnqueueSVMMemcpy(queue, blocking, to, from, a.min(b))
        );
    }),
    ("clEnqueueSVMMemFill", |s, n| {
        let queue = s.pick(Kind::Queue, n[0]);
        let (to, size) = part(s, queue, n[1], n[2]);
        let (memory, pattern) = (s.memory(), one(&[4, 1, 2, 3, 0, 16, 256], n[4]));
        command!(
            s,
            n,
            list,
            event,
            clEnqueueSVMMemFill(queue, to, memory, pattern, size)
        );
    }),
    ("clEnqueueSVMMap", |s, n| {
        let queue = s.pick(Kind::Queue, n[0]);
        let ((to, size), blocking) = (part(s, queue, n[1], n[2]), blocks(s, n[4]));
        let flags = one(&[1, 2, 4, 3, 6, 0, 8], n[4] / 4);
        command!(
            s,
            n,
            list,
            event,
            clEnqueueSVMMap(queue, blocking, flags, to, size)
        );
    }),
    ("clEnqueueSVMUnmap", |s, n| {
        let queue = s.pick(Kind::Queue, n[0]);
        let (to, _) = part(s, queue, n[1], n[2]);
        command!(s, n, list, event, clEnqueueSVMUnmap(queue, to));
    }),
    ("clSetEventCallback", |s, n| {
        let event = s.pick(Kind::Event, n[0]);
        let function = if n[2] % 8 == 7 {
            None
        } else {
            Some(nothing_of_event as _)
        };
        let status = one(&[0, 1, 2, 3, 7, -1], n[1]);
        let code = call!(clSetEventCallback(event, status, function, null_mut()));
        s.code("clSetEventCallback", code);
    }),
    ("clSetMemObjectDestructorCallback", |s, n| {
        let object = s.pick(Kind::Mem, n[0]);
        let function = if n[2] % 8 == 7 {
            None
        } else {
            Some(nothing as _)
        };
        let code = call!(clSetMemObjectDestructorCallback(
            object,
            function,
            null_mut()
        ));
        s.code("clSetMemObjectDestructorCallback", code);
    }),
    ("clSetContextDestructorCallback", |s, n| {
        let context = s.pick(Kind::Context, n[0]);
        let function = if n[2] % 8 == 7 {
            None
        } else {
            Some(nothing as _)
        };
        let code = call!(clSetContextDestructorCallback(
            context,
            function,
            null_mut()
        ));
        s.code("clSetContextDestructorCallback", code);
    }),
];
