//! Commands on buffers.

use super::*;
use pumice_tests::{call, create, ok};
use std::ffi::c_void;

const TWO: [usize; 3] = [16, 2, 2];

pub fn rows(t: &mut Table) {
    common(
        t,
        "clEnqueueReadBuffer",
        &[Buffer],
        Host::Reads,
        None,
        |w, a| {
            call!(clEnqueueReadBuffer(
                a.q,
                a.m[0],
                CL_TRUE,
                0,
                16,
                w.place(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueWriteBuffer",
        &[Buffer],
        Host::Writes,
        Some(0),
        |w, a| {
            call!(clEnqueueWriteBuffer(
                a.q,
                a.m[0],
                CL_TRUE,
                0,
                16,
                w.place(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueReadBufferRect",
        &[Buffer],
        Host::Reads,
        None,
        |w, a| rect(w, "clEnqueueReadBufferRect", a, &Rect::new(w)),
    );
    common(
        t,
        "clEnqueueWriteBufferRect",
        &[Buffer],
        Host::Writes,
        Some(0),
        |w, a| rect(w, "clEnqueueWriteBufferRect", a, &Rect::new(w)),
    );
    let two = &[Buffer, Buffer];
    common(
        t,
        "clEnqueueCopyBufferRect",
        two,
        Host::Nothing,
        Some(1),
        |w, a| rect(w, "clEnqueueCopyBufferRect", a, &Rect::new(w)),
    );
    rectangles(t, "clEnqueueReadBufferRect", &[Buffer]);
    rectangles(t, "clEnqueueWriteBufferRect", &[Buffer]);
    rectangles(t, "clEnqueueCopyBufferRect", two);
    common(
        t,
        "clEnqueueCopyBuffer",
        two,
        Host::Nothing,
        Some(1),
        |w, a| {
            call!(clEnqueueCopyBuffer(
                a.q,
                a.m[0],
                a.m[1],
                0,
                0,
                16,
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueFillBuffer",
        &[Buffer],
        Host::Nothing,
        Some(0),
        |w, a| {
            call!(clEnqueueFillBuffer(
                a.q,
                a.m[0],
                w.place(),
                4,
                0,
                16,
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueMapBuffer",
        &[Buffer],
        Host::Reads,
        None,
        |w, a| {
            makes!(
                w,
                clEnqueueMapBuffer(
                    a.q,
                    a.m[0],
                    CL_TRUE,
                    CL_MAP_READ,
                    0,
                    16,
                    a.n,
                    a.list,
                    w.event()
                )
            )
        },
    );
    own(t);
}

/// Adds the errors of this command alone.
fn own(t: &mut Table) {
    rows! { t, w;
        clEnqueueReadBuffer {
            CL_INVALID_VALUE "out of bounds" = [(4090, 16), (4097, 0), (usize::MAX, 2)].map(|(at, size)|
                call!(clEnqueueReadBuffer(w.s.queue.0, w.b.0, CL_TRUE, at, size, w.place(), 0, null(), w.event())));
            CL_INVALID_VALUE "no memory" =
                call!(clEnqueueReadBuffer(w.s.queue.0, w.b.0, CL_TRUE, 0, 16, null_mut(), 0, null(), w.event()));
        }
        clEnqueueWriteBuffer {
            CL_INVALID_VALUE "out of bounds" = [(4090, 16), (4097, 0), (usize::MAX, 2)].map(|(at, size)|
                call!(clEnqueueWriteBuffer(w.s.queue.0, w.b.0, CL_TRUE, at, size, w.place(), 0, null(), w.event())));
            CL_INVALID_VALUE "no memory" =
                call!(clEnqueueWriteBuffer(w.s.queue.0, w.b.0, CL_TRUE, 0, 16, null_mut(), 0, null(), w.event()));
        }
        clEnqueueCopyBuffer {
            CL_INVALID_VALUE "the source out of bounds" =
                call!(clEnqueueCopyBuffer(w.s.queue.0, w.b.0, w.b2.0, 4090, 0, 16, 0, null(), w.event()));
            CL_INVALID_VALUE "the target out of bounds" =
                call!(clEnqueueCopyBuffer(w.s.queue.0, w.b.0, w.b2.0, 0, 4090, 16, 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "within one buffer" =
                call!(clEnqueueCopyBuffer(w.s.queue.0, w.b.0, w.b.0, 0, 8, 16, 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "two parts of a buffer" =
                call!(clEnqueueCopyBuffer(w.s.queue.0, w.part.0, w.part2.0, 512, 8, 16, 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "a part and its buffer" =
                call!(clEnqueueCopyBuffer(w.s.queue.0, w.b.0, w.part.0, 0, 8, 16, 0, null(), w.event()));
        }
        clEnqueueCopyBufferRect {
            CL_INVALID_VALUE "one buffer, two row pitches" = call!(clEnqueueCopyBufferRect(w.s.queue.0, w.b.0, w.b.0,
                ZERO.as_ptr(), [0, 32, 0].as_ptr(), TWO.as_ptr(), 16, 512, 32, 512, 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "within one buffer" = call!(clEnqueueCopyBufferRect(w.s.queue.0, w.b.0, w.b.0,
                ZERO.as_ptr(), [8, 0, 0].as_ptr(), TWO.as_ptr(), 32, 256, 32, 256, 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "two parts of a buffer" = call!(clEnqueueCopyBufferRect(w.s.queue.0, w.part.0, w.part2.0,
                [0, 16, 0].as_ptr(), ZERO.as_ptr(), TWO.as_ptr(), 32, 256, 32, 256, 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "as the specification's algorithm has it" = call!(clEnqueueCopyBufferRect(w.s.queue.0, w.b.0, w.b.0,
                ZERO.as_ptr(), [0, 1, 0].as_ptr(), TWO.as_ptr(), 32, 256, 32, 256, 0, null(), w.event()));
        }
        clEnqueueFillBuffer {
            CL_INVALID_VALUE "out of bounds" = fill(w, w.place(), 4, 4096, 4);
            CL_INVALID_VALUE "no pattern" = fill(w, null_mut(), 4, 0, 16);
            CL_INVALID_VALUE "an empty pattern" = fill(w, w.place(), 0, 0, 16);
            CL_INVALID_VALUE "a pattern of 3 bytes" = fill(w, w.place(), 3, 0, 48);
            CL_INVALID_VALUE "a pattern of 256 bytes" = fill(w, w.place(), 256, 0, 256);
            CL_INVALID_VALUE "the offset is no multiple" = fill(w, w.place(), 4, 2, 16);
            CL_INVALID_VALUE "the size is no multiple" = fill(w, w.place(), 4, 0, 18);
        }
        clEnqueueMapBuffer {
            CL_INVALID_VALUE "out of bounds" = [(4090, 16), (4096, 1), (usize::MAX, 2)].map(|(at, size)|
                map(w, w.b.0, CL_MAP_READ, at, size));
            CL_INVALID_VALUE "nothing" = map(w, w.b.0, CL_MAP_READ, 0, 0);
            CL_INVALID_VALUE "flags" = [1 << 9, CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION]
                .map(|flags| map(w, w.b.0, flags, 0, 16));
            CL_INVALID_OPERATION "not to be written by the host" =
                [w.host_read.0, w.host_none.0].map(|m| map(w, m, CL_MAP_WRITE, 0, 16));
            CL_INVALID_OPERATION "immutable, to be written" = [CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION]
                .map(|flags| map(w, w.immutable.0, flags, 0, 16));
            CL_INVALID_OPERATION "mapped for writing already" = while_mapped(w, || map(w, w.b.0, CL_MAP_WRITE, 32, 64));
            CL_MAP_FAILURE "memory cannot be mapped" => never "needs Vulkan to fail: the fault runner's";
        }
    }
}

/// The arguments of a rectangle of a buffer.
#[derive(Clone, Copy)]
struct Rect {
    origins: [*const usize; 2],
    region: *const usize,
    /// The pitches of the buffer or source: row, slice; then of host memory or target.
    pitches: [usize; 4],
    ptr: *mut c_void,
}

impl Rect {
    fn new(w: &World) -> Self {
        Self {
            origins: [ZERO.as_ptr(); 2],
            region: TWO.as_ptr(),
            pitches: [0; 4],
            ptr: w.place(),
        }
    }
}

fn rect(w: &World, name: &str, a: &Args, r: &Rect) -> cl_int {
    let (e, [o1, o2], [p1, p2, p3, p4]) = (w.event(), r.origins, r.pitches);
    let (x, y) = (a.m[0], a.m[1]);
    match name {
        "clEnqueueReadBufferRect" => call!(clEnqueueReadBufferRect(
            a.q, x, CL_TRUE, o1, o2, r.region, p1, p2, p3, p4, r.ptr, a.n, a.list, e
        )),
        "clEnqueueWriteBufferRect" => call!(clEnqueueWriteBufferRect(
            a.q, x, CL_TRUE, o1, o2, r.region, p1, p2, p3, p4, r.ptr, a.n, a.list, e
        )),
        _ => call!(clEnqueueCopyBufferRect(
            a.q, x, y, o1, o2, r.region, p1, p2, p3, p4, a.n, a.list, e
        )),
    }
}

/// Adds the errors that rectangles have in common.
fn rectangles(t: &mut Table, name: &'static str, kinds: &'static [Kind]) {
    let mut add = |what: &str, change: fn(&mut Rect)| {
        t.provoked(name, code!(CL_INVALID_VALUE), what, move |w| {
            let mut r = Rect::new(w);
            change(&mut r);
            vec![rect(w, name, &usual(w, kinds), &r)]
        });
    };
    add("no origin", |r| r.origins[0] = null());
    add("no other origin", |r| r.origins[1] = null());
    add("no region", |r| r.region = null());
    add("beyond the end", |r| r.origins[0] = [4090, 0, 0].as_ptr());
    add("an empty region", |r| r.region = [16, 0, 1].as_ptr());
    add("row pitch too small", |r| r.pitches[0] = 15);
    add("slice pitch too small", |r| {
        r.pitches[..2].copy_from_slice(&[16, 16])
    });
    add("slice pitch no multiple", |r| {
        r.pitches[..2].copy_from_slice(&[16, 40])
    });
    add("other row pitch too small", |r| r.pitches[2] = 15);
    add("other slice pitch too small", |r| {
        r.pitches[2..].copy_from_slice(&[16, 16])
    });
    add("other slice pitch no multiple", |r| {
        r.pitches[2..].copy_from_slice(&[16, 40])
    });
    if kinds.len() == 1 {
        add("no memory", |r| r.ptr = null_mut());
    } else {
        add("the target beyond the end", |r| {
            r.origins[1] = [4090, 0, 0].as_ptr()
        });
    }
}

fn map(w: &World, m: cl_mem, flags: cl_map_flags, offset: usize, size: usize) -> cl_int {
    makes!(
        w,
        clEnqueueMapBuffer(
            w.s.queue.0,
            m,
            CL_TRUE,
            flags,
            offset,
            size,
            0,
            null(),
            w.event()
        )
    )
}

/// While the first 64 bytes of the buffer are mapped for writing.
fn while_mapped(w: &World, call: impl Fn() -> cl_int) -> cl_int {
    let (q, n, e) = (w.s.queue.0, null(), null_mut());
    let mapped = create!(clEnqueueMapBuffer(
        q,
        w.b.0,
        CL_TRUE,
        CL_MAP_WRITE,
        0,
        64,
        0,
        n,
        e
    ));
    let code = call();
    ok!(clEnqueueUnmapMemObject(q, w.b.0, mapped, 0, n, e));
    ok!(clFinish(q));
    code
}

fn fill(w: &World, pattern: *const c_void, bytes: usize, offset: usize, size: usize) -> cl_int {
    call!(clEnqueueFillBuffer(
        w.s.queue.0,
        w.b.0,
        pattern,
        bytes,
        offset,
        size,
        0,
        null(),
        w.event()
    ))
}
