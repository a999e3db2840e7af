//! Commands that are enqueued: what they have in common by kind of argument, then what each has of its own.

use crate::table::Table;
use crate::world::World;
use pumice_tests::sys::*;
use pumice_tests::{call, create, ext, ok};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// The arguments that all commands have: a queue, up to two memory objects, a list of events.
#[derive(Clone, Copy)]
struct Args {
    q: cl_command_queue,
    m: [cl_mem; 2],
    n: cl_uint,
    list: *const cl_event,
}

type Command = fn(&World, &Args) -> cl_int;

/// A memory object that a command takes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Buffer,
    Image,
}
use Kind::{Buffer, Image};

/// What the host does to the first object.
#[derive(Clone, Copy, PartialEq)]
enum Host {
    Reads,
    Writes,
    Nothing,
}

fn usual(w: &World, kinds: &[Kind]) -> Args {
    let mut m = [null_mut(); 2];
    for (n, kind) in kinds.iter().enumerate() {
        m[n] = match (kind, n) {
            (Buffer, 0) => w.b.0,
            (Buffer, _) => w.b2.0,
            (Image, 0) => w.i.0,
            (Image, _) => w.i2.0,
        };
    }
    let q = w.s.queue.0;
    let list = null();
    Args { q, m, n: 0, list }
}

/// Rows that follow from the kinds of the arguments. `written` is the object that the command writes.
fn common(
    t: &mut Table,
    name: &'static str,
    kinds: &'static [Kind],
    host: Host,
    written: Option<usize>,
    command: Command,
) {
    let with = move |w: &World, change: &dyn Fn(&mut Args)| {
        let mut args = usual(w, kinds);
        change(&mut args);
        command(w, &args)
    };
    t.provoked(
        name,
        code!(CL_INVALID_COMMAND_QUEUE),
        "not a queue",
        move |w| w.bad(|q| with(w, &|a| a.q = q)),
    );
    let list = code!(CL_INVALID_EVENT_WAIT_LIST);
    t.provoked(
        name,
        list,
        "events are announced, there is no list",
        move |w| vec![with(w, &|a| a.n = 1)],
    );
    t.provoked(name, list, "a list of no events", move |w| {
        vec![with(w, &|a| a.list = &w.user.0)]
    });
    t.provoked(name, list, "what is in the list is no event", move |w| {
        w.bad_event(|event| with(w, &|a| (a.n, a.list) = (1, &event)))
    });
    let context = code!(CL_INVALID_CONTEXT);
    t.provoked(name, context, "an event of another context", move |w| {
        vec![with(w, &|a| (a.n, a.list) = (1, &w.user_foreign.0))]
    });
    t.provoked(
        name,
        code!(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
        "a blocking call waits for an event that failed",
        move |w| vec![with(w, &|a| (a.n, a.list) = (1, &w.failed.0))],
    );
    for (n, kind) in kinds.iter().copied().enumerate() {
        let foreign = move |w: &World| match kind {
            Buffer => w.foreign.0,
            Image => w.i_foreign.0,
        };
        t.provoked(
            name,
            context,
            format!("object {n} of another context"),
            move |w| vec![with(w, &|a| a.m[n] = foreign(w))],
        );
        let mem = code!(CL_INVALID_MEM_OBJECT);
        t.provoked(
            name,
            mem,
            format!("object {n} is none, or of another kind"),
            move |w| {
                let mut codes = w.bad(|m| with(w, &|a| a.m[n] = m));
                let other = if kind == Buffer { w.i.0 } else { w.b.0 };
                // Objects of all kinds move between devices.
                if name != "clEnqueueMigrateMemObjects" {
                    codes.push(with(w, &|a| a.m[n] = other));
                }
                codes
            },
        );
    }
    let operation = code!(CL_INVALID_OPERATION);
    if host != Host::Nothing {
        t.provoked(
            name,
            operation,
            "the host may not do that to the object",
            move |w| {
                let objects = match (kinds[0], host) {
                    (Buffer, Host::Reads) => [w.host_write.0, w.host_none.0],
                    (Buffer, _) => [w.host_read.0, w.host_none.0],
                    (Image, Host::Reads) => [w.i_host_write.0, w.i_host_none.0],
                    (Image, _) => [w.i_host_read.0, w.i_host_none.0],
                };
                objects.map(|m| with(w, &|a| a.m[0] = m)).to_vec()
            },
        );
    }
    if let Some(n) = written {
        t.provoked(name, operation, "what is written is immutable", move |w| {
            let object = match kinds[n] {
                Buffer => w.immutable.0,
                Image => w.i_immutable.0,
            };
            vec![with(w, &|a| a.m[n] = object)]
        });
    }
}

const ZERO: [usize; 3] = [0; 3];
const ONE: [usize; 3] = [1; 3];
const TWO: [usize; 3] = [16, 2, 2];

/// The arguments of a rectangle of a buffer.
#[derive(Clone, Copy)]
struct Rect {
    origins: [*const usize; 2],
    region: *const usize,
    /// Of the buffer or source: row, slice; then of host memory or target.
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

/// What rectangles have in common.
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

/// Rectangles of images: origin and region of an object.
fn image_regions(
    t: &mut Table,
    name: &'static str,
    call: fn(&World, *const usize, *const usize) -> cl_int,
) {
    let mut add = |what: &str, origin: *const usize, region: *const usize| {
        let (origin, region) = (origin.addr(), region.addr());
        t.provoked(name, code!(CL_INVALID_VALUE), what, move |w| {
            let at = |address: usize| std::ptr::with_exposed_provenance(address);
            vec![call(w, at(origin), at(region))]
        });
    };
    static FAR: [usize; 3] = [8, 0, 0];
    static DEEP: [usize; 3] = [0, 0, 1];
    static THICK: [usize; 3] = [1, 1, 2];
    static EMPTY: [usize; 3] = [1, 0, 1];
    static START: [usize; 3] = ZERO;
    static POINT: [usize; 3] = ONE;
    for array in [&FAR, &DEEP, &THICK, &EMPTY, &START, &POINT] {
        array.as_ptr().expose_provenance();
    }
    let (start, point) = (START.as_ptr(), POINT.as_ptr());
    add("no origin", null(), point);
    add("no region", start, null());
    add("out of bounds", FAR.as_ptr(), point);
    add("a third origin of two dimensions", DEEP.as_ptr(), point);
    add("two slices of two dimensions", start, THICK.as_ptr());
    add("an empty region", start, EMPTY.as_ptr());
}

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
    common(
        t,
        "clEnqueueMapImage",
        &[Image],
        Host::Reads,
        None,
        |w, a| map_image(w, a, CL_MAP_READ),
    );
    common(
        t,
        "clEnqueueReadImage",
        &[Image],
        Host::Reads,
        None,
        |w, a| {
            call!(clEnqueueReadImage(
                a.q,
                a.m[0],
                CL_TRUE,
                ZERO.as_ptr(),
                ONE.as_ptr(),
                0,
                0,
                w.place(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueWriteImage",
        &[Image],
        Host::Writes,
        Some(0),
        |w, a| {
            call!(clEnqueueWriteImage(
                a.q,
                a.m[0],
                CL_TRUE,
                ZERO.as_ptr(),
                ONE.as_ptr(),
                0,
                0,
                w.place(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueFillImage",
        &[Image],
        Host::Nothing,
        Some(0),
        |w, a| {
            call!(clEnqueueFillImage(
                a.q,
                a.m[0],
                w.place(),
                ZERO.as_ptr(),
                ONE.as_ptr(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueCopyImage",
        &[Image, Image],
        Host::Nothing,
        Some(1),
        |w, a| {
            call!(clEnqueueCopyImage(
                a.q,
                a.m[0],
                a.m[1],
                ZERO.as_ptr(),
                ZERO.as_ptr(),
                ONE.as_ptr(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueCopyImageToBuffer",
        &[Image, Buffer],
        Host::Nothing,
        Some(1),
        |w, a| {
            call!(clEnqueueCopyImageToBuffer(
                a.q,
                a.m[0],
                a.m[1],
                ZERO.as_ptr(),
                ONE.as_ptr(),
                0,
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueCopyBufferToImage",
        &[Buffer, Image],
        Host::Nothing,
        Some(1),
        |w, a| {
            call!(clEnqueueCopyBufferToImage(
                a.q,
                a.m[0],
                a.m[1],
                0,
                ZERO.as_ptr(),
                ONE.as_ptr(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueMigrateMemObjects",
        &[Buffer],
        Host::Nothing,
        None,
        |w, a| {
            call!(clEnqueueMigrateMemObjects(
                a.q,
                1,
                &a.m[0],
                0,
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(
        t,
        "clEnqueueMarkerWithWaitList",
        &[],
        Host::Nothing,
        None,
        |w, a| call!(clEnqueueMarkerWithWaitList(a.q, a.n, a.list, w.event())),
    );
    common(
        t,
        "clEnqueueBarrierWithWaitList",
        &[],
        Host::Nothing,
        None,
        |w, a| call!(clEnqueueBarrierWithWaitList(a.q, a.n, a.list, w.event())),
    );
    common(
        t,
        "clEnqueueNDRangeKernel",
        &[],
        Host::Nothing,
        None,
        |w, a| {
            call!(clEnqueueNDRangeKernel(
                a.q,
                w.kernel.0,
                1,
                null(),
                [1usize].as_ptr(),
                null(),
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(t, "clEnqueueTask", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueTask(a.q, w.kernel.0, a.n, a.list, w.event()))
    });
    common(t, "clEnqueueSVMMemcpy", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueSVMMemcpy(
            a.q,
            CL_TRUE,
            w.svm,
            w.svm.wrapping_byte_add(64),
            16,
            a.n,
            a.list,
            w.event()
        ))
    });
    common(
        t,
        "clEnqueueSVMMemFill",
        &[],
        Host::Nothing,
        None,
        |w, a| {
            call!(clEnqueueSVMMemFill(
                a.q,
                w.svm,
                w.place(),
                4,
                16,
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    common(t, "clEnqueueSVMMap", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueSVMMap(
            a.q,
            CL_TRUE,
            CL_MAP_READ,
            w.svm,
            16,
            a.n,
            a.list,
            w.event()
        ))
    });
    common(t, "clEnqueueSVMUnmap", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueSVMUnmap(a.q, w.svm, a.n, a.list, w.event()))
    });
    common(t, "clEnqueueSVMFree", &[], Host::Nothing, None, |w, a| {
        call!(clEnqueueSVMFree(
            a.q,
            1,
            [w.svm].as_mut_ptr(),
            None,
            null_mut(),
            a.n,
            a.list,
            w.event()
        ))
    });
    common(
        t,
        "clEnqueueSVMMigrateMem",
        &[],
        Host::Nothing,
        None,
        |w, a| {
            call!(clEnqueueSVMMigrateMem(
                a.q,
                1,
                [w.svm.cast_const()].as_mut_ptr(),
                null(),
                0,
                a.n,
                a.list,
                w.event()
            ))
        },
    );
    image_regions(t, "clEnqueueReadImage", |w, o, r| {
        call!(clEnqueueReadImage(
            w.s.queue.0,
            w.i.0,
            CL_TRUE,
            o,
            r,
            0,
            0,
            w.place(),
            0,
            null(),
            w.event()
        ))
    });
    image_regions(t, "clEnqueueWriteImage", |w, o, r| {
        call!(clEnqueueWriteImage(
            w.s.queue.0,
            w.i.0,
            CL_TRUE,
            o,
            r,
            0,
            0,
            w.place(),
            0,
            null(),
            w.event()
        ))
    });
    image_regions(t, "clEnqueueFillImage", |w, o, r| {
        call!(clEnqueueFillImage(
            w.s.queue.0,
            w.i.0,
            w.place(),
            o,
            r,
            0,
            null(),
            w.event()
        ))
    });
    image_regions(t, "clEnqueueMapImage", |w, o, r| {
        makes!(
            w,
            clEnqueueMapImage(
                w.s.queue.0,
                w.i.0,
                CL_TRUE,
                CL_MAP_READ,
                o,
                r,
                w.size(),
                w.size(),
                0,
                null(),
                w.event()
            )
        )
    });
    image_regions(t, "clEnqueueCopyImage", |w, o, r| {
        call!(clEnqueueCopyImage(
            w.s.queue.0,
            w.i.0,
            w.i2.0,
            o,
            ZERO.as_ptr(),
            r,
            0,
            null(),
            w.event()
        ))
    });
    image_regions(t, "clEnqueueCopyImageToBuffer", |w, o, r| {
        call!(clEnqueueCopyImageToBuffer(
            w.s.queue.0,
            w.i.0,
            w.b2.0,
            o,
            r,
            0,
            0,
            null(),
            w.event()
        ))
    });
    image_regions(t, "clEnqueueCopyBufferToImage", |w, o, r| {
        call!(clEnqueueCopyBufferToImage(
            w.s.queue.0,
            w.b2.0,
            w.i.0,
            0,
            o,
            r,
            0,
            null(),
            w.event()
        ))
    });
    own(t);
    kernels(t);
    shared(t);
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

/// The usual arguments with this image.
fn image(w: &World, image: cl_mem) -> Args {
    let mut args = usual(w, &[Image]);
    args.m[0] = image;
    args
}

fn map_image(w: &World, a: &Args, flags: cl_map_flags) -> cl_int {
    makes!(
        w,
        clEnqueueMapImage(
            a.q,
            a.m[0],
            CL_TRUE,
            flags,
            ZERO.as_ptr(),
            ONE.as_ptr(),
            w.size(),
            w.size(),
            a.n,
            a.list,
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

/// What no other command has.
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
        clEnqueueMapImage {
            CL_INVALID_OPERATION "not to be written by the host" =
                [w.i_host_read.0, w.i_host_none.0].map(|m| map_image(w, &image(w, m), CL_MAP_WRITE));
            CL_INVALID_OPERATION "immutable, to be written" = [CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION]
                .map(|flags| map_image(w, &image(w, w.i_immutable.0), flags));
            CL_INVALID_VALUE "flags" = map_image(w, &image(w, w.i.0), 1 << 9);
            CL_INVALID_VALUE "no place for the row pitch" = makes!(w, clEnqueueMapImage(w.s.queue.0, w.i.0, CL_TRUE, CL_MAP_READ,
                ZERO.as_ptr(), ONE.as_ptr(), null_mut(), w.size(), 0, null(), w.event()));
            CL_INVALID_VALUE "no place for the slice pitch" = makes!(w, clEnqueueMapImage(w.s.queue.0, w.i3.0, CL_TRUE, CL_MAP_READ,
                ZERO.as_ptr(), ONE.as_ptr(), [0usize].as_mut_ptr(), null_mut(), 0, null(), w.event()));
            CL_MAP_FAILURE "memory cannot be mapped" => never "needs Vulkan to fail: the fault runner's";
        }
        clEnqueueUnmapMemObject {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| call!(clEnqueueUnmapMemObject(q, w.b.0, w.place(), 0, null(), w.event())));
            CL_INVALID_MEM_OBJECT "not a memory object" =
                w.bad(|m| call!(clEnqueueUnmapMemObject(w.s.queue.0, m, w.place(), 0, null(), w.event())));
            CL_INVALID_VALUE "not mapped there" = [w.place(), null_mut()].map(|at|
                call!(clEnqueueUnmapMemObject(w.s.queue.0, w.b.0, at, 0, null(), w.event())));
            CL_INVALID_CONTEXT "an object of another context" =
                call!(clEnqueueUnmapMemObject(w.s.queue.0, w.foreign.0, w.place(), 0, null(), w.event()));
        }
        clEnqueueReadImage {
            CL_INVALID_VALUE "no memory" = call!(clEnqueueReadImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(), ONE.as_ptr(), 0, 0,
                null_mut(), 0, null(), w.event()));
            CL_INVALID_VALUE "a slice pitch of two dimensions" = call!(clEnqueueReadImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(),
                ONE.as_ptr(), 0, 64, w.place(), 0, null(), w.event()));
        }
        clEnqueueWriteImage {
            CL_INVALID_VALUE "no memory" = call!(clEnqueueWriteImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(), ONE.as_ptr(), 0, 0,
                null_mut(), 0, null(), w.event()));
            CL_INVALID_VALUE "a slice pitch of two dimensions" = call!(clEnqueueWriteImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(),
                ONE.as_ptr(), 0, 64, w.place(), 0, null(), w.event()));
        }
        clEnqueueFillImage {
            CL_INVALID_VALUE "no colour" =
                call!(clEnqueueFillImage(w.s.queue.0, w.i.0, null(), ZERO.as_ptr(), ONE.as_ptr(), 0, null(), w.event()));
        }
        clEnqueueCopyImage {
            CL_IMAGE_FORMAT_MISMATCH "two formats" = call!(clEnqueueCopyImage(w.s.queue.0, w.i.0, w.i_red.0, ZERO.as_ptr(),
                ZERO.as_ptr(), ONE.as_ptr(), 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "within one image" = call!(clEnqueueCopyImage(w.s.queue.0, w.i.0, w.i.0, ZERO.as_ptr(),
                [1, 1, 0].as_ptr(), [4, 4, 1].as_ptr(), 0, null(), w.event()));
        }
        clEnqueueCopyImageToBuffer {
            CL_INVALID_VALUE "out of bounds of the buffer" = call!(clEnqueueCopyImageToBuffer(w.s.queue.0, w.i.0, w.b2.0,
                ZERO.as_ptr(), ONE.as_ptr(), 4093, 0, null(), w.event()));
        }
        clEnqueueCopyBufferToImage {
            CL_INVALID_VALUE "out of bounds of the buffer" = call!(clEnqueueCopyBufferToImage(w.s.queue.0, w.b2.0, w.i.0, 4093,
                ZERO.as_ptr(), ONE.as_ptr(), 0, null(), w.event()));
        }
        clEnqueueMigrateMemObjects {
            CL_INVALID_VALUE "nothing" = call!(clEnqueueMigrateMemObjects(w.s.queue.0, 0, &w.b.0, 0, 0, null(), w.event()));
            CL_INVALID_VALUE "no list" = call!(clEnqueueMigrateMemObjects(w.s.queue.0, 1, null(), 0, 0, null(), w.event()));
            CL_INVALID_VALUE "flags" = call!(clEnqueueMigrateMemObjects(w.s.queue.0, 1, &w.b.0, 1 << 7, 0, null(), w.event()));
        }
        clEnqueueMarker {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| call!(clEnqueueMarker(q, w.event())));
            CL_INVALID_VALUE "no place for the event" = call!(clEnqueueMarker(w.s.queue.0, null_mut()));
        }
        clEnqueueBarrier {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| call!(clEnqueueBarrier(q)));
        }
        clFlush { CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| call!(clFlush(q))); }
        clFinish { CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| call!(clFinish(q))); }
    }
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

/// A launch.
fn launch(
    w: &World,
    kernel: cl_kernel,
    dims: cl_uint,
    offset: *const usize,
    global: &[usize],
    local: &[usize],
) -> cl_int {
    let local = if local.is_empty() {
        null()
    } else {
        local.as_ptr()
    };
    call!(clEnqueueNDRangeKernel(
        w.s.queue.0,
        kernel,
        dims,
        offset,
        global.as_ptr(),
        local,
        0,
        null(),
        w.event()
    ))
}

fn suggest(
    w: &World,
    kernel: cl_kernel,
    dims: cl_uint,
    offset: *const usize,
    global: *const usize,
) -> cl_int {
    suggest_by(w, w.s.queue.0, kernel, dims, offset, global, w.size())
}

/// The loader does not export it.
fn suggest_by(
    w: &World,
    q: cl_command_queue,
    kernel: cl_kernel,
    dims: cl_uint,
    offset: *const usize,
    global: *const usize,
    place: *mut usize,
) -> cl_int {
    ext!(w.s, clGetKernelSuggestedLocalWorkSize: clGetKernelSuggestedLocalWorkSizeKHR_t(q, kernel, dims, offset, global, place))
}

fn kernels(t: &mut Table) {
    rows! { t, w;
        clEnqueueNDRangeKernel {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| launch(w, k, 1, null(), &[1], &[]));
            CL_INVALID_KERNEL_ARGS "arguments are not set" = launch(w, w.unset.0, 1, null(), &[1], &[]);
            CL_INVALID_WORK_DIMENSION "no dimension, or four" = [0, 4].map(|dims| launch(w, w.kernel.0, dims, null(), &[1; 4], &[]));
            CL_INVALID_CONTEXT "a kernel of another context" = call!(clEnqueueNDRangeKernel(w.other.queue.0, w.kernel.0, 1, null(),
                [1usize].as_ptr(), null(), 0, null(), w.event()));
            CL_INVALID_GLOBAL_OFFSET "an offset" => never "an error before OpenCL 1.1 only";
            CL_INVALID_GLOBAL_OFFSET "sizes and offsets overflow" = launch(w, w.kernel.0, 1, [usize::MAX].as_ptr(), &[2], &[]);
            CL_INVALID_GLOBAL_WORK_SIZE "no size, or zero" => never "an error before OpenCL 2.1 only";
            CL_INVALID_GLOBAL_WORK_SIZE "zero" => never "an error before OpenCL 2.1 only";
            CL_INVALID_GLOBAL_WORK_SIZE "larger than size_t" => never "host and devices have 64 bits";
            CL_INVALID_WORK_GROUP_SIZE "an empty group" = launch(w, w.kernel.0, 1, null(), &[4], &[0]);
            CL_INVALID_WORK_GROUP_SIZE "not as the kernel requires" = launch(w, w.four.0, 1, null(), &[8], &[8]);
            CL_INVALID_WORK_GROUP_SIZE "too many in all" = launch(w, w.kernel.0, 3, null(), &[1024; 3], &[64, 64, 64]);
            CL_INVALID_WORK_ITEM_SIZE "too many in one dimension" => never "a dimension may be as large as a group: \
                CL_INVALID_WORK_GROUP_SIZE holds as well";
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "system pointers" => never "cannot be told from others: the address is the application's word";
            CL_INVALID_PROGRAM_EXECUTABLE "nothing built for the device" => never "kernels are made of programs built for a device; \
                contexts here have one";
        }
        clEnqueueTask {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| call!(clEnqueueTask(w.s.queue.0, k, 0, null(), w.event())));
            CL_INVALID_KERNEL_ARGS "arguments are not set" = call!(clEnqueueTask(w.s.queue.0, w.unset.0, 0, null(), w.event()));
            CL_INVALID_CONTEXT "a kernel of another context" = call!(clEnqueueTask(w.other.queue.0, w.kernel.0, 0, null(), w.event()));
            CL_INVALID_WORK_GROUP_SIZE "not as the kernel requires" = call!(clEnqueueTask(w.s.queue.0, w.four.0, 0, null(), w.event()));
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "system pointers" => never "cannot be told from others: the address is the application's word";
            CL_INVALID_PROGRAM_EXECUTABLE "nothing built for the device" => never "kernels are made of programs built for a device; \
                contexts here have one";
        }
        clGetKernelSuggestedLocalWorkSize {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q|
                suggest_by(w, q, w.kernel.0, 1, null(), [1usize].as_ptr(), w.size()));
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| suggest(w, k, 1, null(), [1].as_ptr()));
            CL_INVALID_KERNEL_ARGS "arguments are not set" = suggest(w, w.unset.0, 1, null(), [1].as_ptr());
            CL_INVALID_WORK_DIMENSION "no dimension, or four" = [0, 4].map(|dims| suggest(w, w.kernel.0, dims, null(), [1; 4].as_ptr()));
            CL_INVALID_CONTEXT "a kernel of another context" = suggest_by(w, w.other.queue.0, w.kernel.0, 1,
                null(), [1usize].as_ptr(), w.size());
            CL_INVALID_GLOBAL_OFFSET "an offset" => never "an error before OpenCL 1.1 only";
            CL_INVALID_GLOBAL_OFFSET "sizes and offsets overflow" = suggest(w, w.kernel.0, 1, [usize::MAX].as_ptr(), [2].as_ptr());
            CL_INVALID_GLOBAL_WORK_SIZE "no size" = suggest(w, w.kernel.0, 1, null(), null());
            CL_INVALID_GLOBAL_WORK_SIZE "zero" = suggest(w, w.kernel.0, 1, null(), [0].as_ptr());
            CL_INVALID_GLOBAL_WORK_SIZE "larger than size_t" => never "host and devices have 64 bits";
            CL_INVALID_VALUE "no place for the answer" = suggest_by(w, w.s.queue.0, w.kernel.0, 1, null(),
                [1usize].as_ptr(), null_mut());
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "system pointers" => never "cannot be told from others: the address is the application's word";
            CL_INVALID_PROGRAM_EXECUTABLE "nothing built for the device" => never "kernels are made of programs built for a device; \
                contexts here have one";
        }
    }
}

/// Shared virtual memory.
fn shared(t: &mut Table) {
    rows! { t, w;
        clEnqueueSVMMemcpy {
            CL_INVALID_VALUE "no target" = call!(clEnqueueSVMMemcpy(w.s.queue.0, CL_TRUE, null_mut(), w.svm, 16, 0, null(), w.event()));
            CL_INVALID_VALUE "no source" = call!(clEnqueueSVMMemcpy(w.s.queue.0, CL_TRUE, w.svm, null(), 16, 0, null(), w.event()));
            CL_MEM_COPY_OVERLAP "overlapping" = call!(clEnqueueSVMMemcpy(w.s.queue.0, CL_TRUE, w.svm.wrapping_byte_add(8), w.svm, 16, 0,
                null(), w.event()));
        }
        clEnqueueSVMMemFill {
            CL_INVALID_VALUE "nowhere" = svm_fill(w, null_mut(), w.place(), 4, 16);
            CL_INVALID_VALUE "not aligned" = svm_fill(w, w.svm.wrapping_byte_add(2), w.place(), 4, 16);
            CL_INVALID_VALUE "no pattern" = svm_fill(w, w.svm, null_mut(), 4, 16);
            CL_INVALID_VALUE "an empty pattern" = svm_fill(w, w.svm, w.place(), 0, 16);
            CL_INVALID_VALUE "a pattern of 3 bytes" = svm_fill(w, w.svm, w.place(), 3, 48);
            CL_INVALID_VALUE "a pattern of 256 bytes" = svm_fill(w, w.svm, w.place(), 256, 256);
            CL_INVALID_VALUE "the size is no multiple" = svm_fill(w, w.svm, w.place(), 4, 18);
        }
        clEnqueueSVMMap {
            CL_INVALID_VALUE "nowhere" = svm_map(w, null_mut(), CL_MAP_READ, 16);
            CL_INVALID_VALUE "nothing" = svm_map(w, w.svm, CL_MAP_READ, 0);
            CL_INVALID_VALUE "flags" = svm_map(w, w.svm, 1 << 9, 16);
        }
        clEnqueueSVMUnmap {
            CL_INVALID_VALUE "nowhere" = call!(clEnqueueSVMUnmap(w.s.queue.0, null_mut(), 0, null(), w.event()));
        }
        clEnqueueSVMFree {
            CL_INVALID_VALUE "a list of nothing" = call!(clEnqueueSVMFree(w.s.queue.0, 0, [w.svm].as_mut_ptr(), None, null_mut(), 0,
                null(), w.event()));
            CL_INVALID_VALUE "no list" = call!(clEnqueueSVMFree(w.s.queue.0, 1, null_mut(), None, null_mut(), 0, null(), w.event()));
        }
        clEnqueueSVMMigrateMem {
            CL_INVALID_VALUE "nothing" = svm_migrate(w, 0, [w.svm.cast_const()].as_mut_ptr(), null(), 0);
            CL_INVALID_VALUE "no list" = svm_migrate(w, 1, null_mut(), null(), 0);
            CL_INVALID_VALUE "flags" = svm_migrate(w, 1, [w.svm.cast_const()].as_mut_ptr(), null(), 1 << 9);
            CL_INVALID_VALUE "more than there is" = svm_migrate(w, 1, [w.svm.cast_const()].as_mut_ptr(), &8192, 0);
        }
    }
    for call in [
        "clEnqueueSVMMemcpy",
        "clEnqueueSVMMemFill",
        "clEnqueueSVMMap",
        "clEnqueueSVMUnmap",
        "clEnqueueSVMFree",
        "clEnqueueSVMMigrateMem",
    ] {
        let how = crate::table::How::Never("the devices here have it");
        t.add(
            call,
            code!(CL_INVALID_OPERATION),
            "no shared virtual memory",
            how,
        );
    }
}

fn svm_fill(
    w: &World,
    to: *mut c_void,
    pattern: *const c_void,
    bytes: usize,
    size: usize,
) -> cl_int {
    call!(clEnqueueSVMMemFill(
        w.s.queue.0,
        to,
        pattern,
        bytes,
        size,
        0,
        null(),
        w.event()
    ))
}

fn svm_map(w: &World, at: *mut c_void, flags: cl_map_flags, size: usize) -> cl_int {
    call!(clEnqueueSVMMap(
        w.s.queue.0,
        CL_TRUE,
        flags,
        at,
        size,
        0,
        null(),
        w.event()
    ))
}

fn svm_migrate(
    w: &World,
    n: cl_uint,
    list: *mut *const c_void,
    sizes: *const usize,
    flags: cl_mem_migration_flags,
) -> cl_int {
    call!(clEnqueueSVMMigrateMem(
        w.s.queue.0,
        n,
        list,
        sizes,
        flags,
        0,
        null(),
        w.event()
    ))
}
