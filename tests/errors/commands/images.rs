//! Commands on images.

use super::*;
use pumice_tests::{call, create, ok};

pub fn rows(t: &mut Table) {
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
}

/// Adds the errors of this command alone.
fn own(t: &mut Table) {
    rows! { t, w;
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
            CL_INVALID_OPERATION "mapped for writing already" = while_mapped(w, || map_image(w, &image(w, w.i.0), CL_MAP_WRITE));
            CL_INVALID_VALUE "two ways of writing" = map_image(w, &image(w, w.i.0), CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
            CL_INVALID_VALUE "no place for the row pitch of a line" = makes!(w, clEnqueueMapImage(w.s.queue.0, w.i_line.0, CL_TRUE, CL_MAP_READ,
                ZERO.as_ptr(), ONE.as_ptr(), null_mut(), null_mut(), 0, null(), w.event()));
        }
        clEnqueueReadImage {
            CL_INVALID_VALUE "no memory" = call!(clEnqueueReadImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(), ONE.as_ptr(), 0, 0,
                null_mut(), 0, null(), w.event()));
            CL_INVALID_VALUE "a slice pitch of two dimensions" = call!(clEnqueueReadImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(),
                ONE.as_ptr(), 0, 64, w.place(), 0, null(), w.event()));
            CL_INVALID_VALUE "rows, or slices, that are too small" = [
                call!(clEnqueueReadImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(), [8, 8, 1].as_ptr(), 31, 0, w.place(), 0, null(), w.event())),
                call!(clEnqueueReadImage(w.s.queue.0, w.i3.0, CL_TRUE, ZERO.as_ptr(), [8, 8, 1].as_ptr(), 32, 255, w.place(), 0, null(),
                    w.event()))];
        }
        clEnqueueWriteImage {
            CL_INVALID_VALUE "no memory" = call!(clEnqueueWriteImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(), ONE.as_ptr(), 0, 0,
                null_mut(), 0, null(), w.event()));
            CL_INVALID_VALUE "a slice pitch of two dimensions" = call!(clEnqueueWriteImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(),
                ONE.as_ptr(), 0, 64, w.place(), 0, null(), w.event()));
            CL_INVALID_VALUE "rows that are too small" = call!(clEnqueueWriteImage(w.s.queue.0, w.i.0, CL_TRUE, ZERO.as_ptr(),
                [8, 8, 1].as_ptr(), 31, 0, w.place(), 0, null(), w.event()));
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
            CL_INVALID_MEM_OBJECT "an image over that buffer" = call!(clEnqueueCopyImageToBuffer(w.s.queue.0, w.i_line.0, w.b2.0,
                ZERO.as_ptr(), ONE.as_ptr(), 0, 0, null(), w.event()));
        }
        clEnqueueCopyBufferToImage {
            CL_INVALID_VALUE "out of bounds of the buffer" = call!(clEnqueueCopyBufferToImage(w.s.queue.0, w.b2.0, w.i.0, 4093,
                ZERO.as_ptr(), ONE.as_ptr(), 0, null(), w.event()));
            CL_INVALID_MEM_OBJECT "an image over that buffer" = call!(clEnqueueCopyBufferToImage(w.s.queue.0, w.b2.0, w.i_line.0, 0,
                ZERO.as_ptr(), ONE.as_ptr(), 0, null(), w.event()));
        }
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
    static FARTHEST: [usize; 3] = [usize::MAX, 0, 0];
    static DEEP: [usize; 3] = [0, 0, 1];
    static THICK: [usize; 3] = [1, 1, 2];
    static EMPTY: [usize; 3] = [1, 0, 1];
    static START: [usize; 3] = ZERO;
    static POINT: [usize; 3] = ONE;
    for array in [&FAR, &FARTHEST, &DEEP, &THICK, &EMPTY, &START, &POINT] {
        array.as_ptr().expose_provenance();
    }
    let (start, point) = (START.as_ptr(), POINT.as_ptr());
    add("no origin", null(), point);
    add("no region", start, null());
    add("out of bounds", FAR.as_ptr(), point);
    add("an end that overflows", FARTHEST.as_ptr(), point);
    add("a third origin of two dimensions", DEEP.as_ptr(), point);
    add("two slices of two dimensions", start, THICK.as_ptr());
    add("an empty region", start, EMPTY.as_ptr());
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

/// While the image is mapped for writing.
fn while_mapped(w: &World, call: impl Fn() -> cl_int) -> cl_int {
    let (q, mut pitch) = (w.s.queue.0, 0usize);
    let mapped = create!(clEnqueueMapImage(
        q,
        w.i.0,
        CL_TRUE,
        CL_MAP_WRITE,
        ZERO.as_ptr(),
        ONE.as_ptr(),
        &mut pitch,
        null_mut(),
        0,
        null(),
        null_mut()
    ));
    let code = call();
    ok!(clEnqueueUnmapMemObject(
        q,
        w.i.0,
        mapped,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(q));
    code
}
