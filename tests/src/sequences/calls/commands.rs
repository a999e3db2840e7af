//! Commands on buffers, images, maps and kernels, and waiting.

use super::{blocks, bytes, flags, list, one, pointer, size, Row};
use crate::call;
use crate::sequences::state::Kind;
use opencl_sys as sys;
use std::ptr::{null, null_mut};

/// A command with its list of events, whose event the program takes or does not want.
macro_rules! command {
    ($s:ident, $n:ident, $list:ident, $event:ident, $name:ident($($arg:expr),*)) => {{
        let ($list, mut $event) = (list($s, $n[5]), null_mut());
        let wanted = if $n[5] % 3 == 0 { null_mut() } else { &raw mut $event };
        let code = call!($name($($arg,)* $list.0, pointer(&$list.1), wanted));
        $s.enqueued(stringify!($name), code, $event);
        code
    }};
}

pub(super) use command;

/// Origin and region, of which the third is mostly that of two dimensions.
fn region(number: u32) -> ([usize; 3], [usize; 3]) {
    let digit = |at: u32| (number >> (3 * at)) as usize % 8;
    let origin = [digit(0), digit(1), digit(2) / 7];
    let region = [8 - digit(3), 8 - digit(4), 1 + digit(5) / 7];
    (origin, region)
}

/// The calls.
pub const CALLS: &[Row] = &[
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
            s.table().maps.push([queue, buffer, place]);
        }
    }),
    ("clEnqueueUnmapMemObject", |s, n| {
        let known = {
            let maps = &s.table().maps;
            maps.get(n[3] as usize % maps.len().max(1)).copied()
        };
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
            let maps = &mut s.table().maps;
            let at = maps.iter().position(|map| map[1..] == [object, place]);
            at.map(|at| maps.remove(at));
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
    ("clWaitForEvents", |s, n| {
        s.settle();
        let events = [s.pick(Kind::Event, n[0]), s.pick(Kind::Event, n[1])];
        let code = call!(clWaitForEvents(one(&[1, 2, 0], n[2]), events.as_ptr()));
        s.code("clWaitForEvents", code);
    }),
];
