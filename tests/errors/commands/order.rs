//! Commands that move no bytes: unmapping, migration, markers, barriers; and waiting for a queue.

use super::*;
use pumice_tests::{call, create, ok};

pub fn rows(t: &mut Table) {
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
    own(t);
}

/// Adds the errors of this command alone.
fn own(t: &mut Table) {
    rows! { t, w;
        clEnqueueUnmapMemObject {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| call!(clEnqueueUnmapMemObject(q, w.b.0, w.place(), 0, null(), w.event())));
            CL_INVALID_MEM_OBJECT "not a memory object" =
                w.bad(|m| call!(clEnqueueUnmapMemObject(w.s.queue.0, m, w.place(), 0, null(), w.event())));
            CL_INVALID_VALUE "not mapped there" = [w.place(), null_mut()].map(|at|
                call!(clEnqueueUnmapMemObject(w.s.queue.0, w.b.0, at, 0, null(), w.event())));
            CL_INVALID_CONTEXT "an object of another context" =
                call!(clEnqueueUnmapMemObject(w.s.queue.0, w.foreign.0, w.place(), 0, null(), w.event()));
            CL_INVALID_CONTEXT "an event of another context" = unmap(w, 1, &w.user_foreign.0);
            CL_INVALID_EVENT_WAIT_LIST "events are announced, there is no list" = unmap(w, 1, null());
            CL_INVALID_EVENT_WAIT_LIST "a list of no events" = unmap(w, 0, &w.user.0);
            CL_INVALID_EVENT_WAIT_LIST "what is in the list is no event" = w.bad_event(|event| unmap(w, 1, &event));
            CL_INVALID_VALUE "unmapped already" = unmapped_twice(w);
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
        clEnqueueWaitForEvents {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| call!(clEnqueueWaitForEvents(q, 1, &w.failed.0)));
            CL_INVALID_CONTEXT "an event of another context" = call!(clEnqueueWaitForEvents(w.s.queue.0, 1, &w.user_foreign.0));
            CL_INVALID_VALUE "nothing to wait for" = [call!(clEnqueueWaitForEvents(w.s.queue.0, 0, &w.user.0)), call!(clEnqueueWaitForEvents(w.s.queue.0, 1, null()))];
        }
    }
}

/// Unmaps the buffer, which is mapped before it.
fn unmap(w: &World, n: cl_uint, list: *const cl_event) -> cl_int {
    let q = w.s.queue.0;
    let mapped = create!(clEnqueueMapBuffer(
        q,
        w.b.0,
        CL_TRUE,
        CL_MAP_READ,
        0,
        64,
        0,
        null(),
        null_mut()
    ));
    let code = call!(clEnqueueUnmapMemObject(
        q,
        w.b.0,
        mapped,
        n,
        list,
        w.event()
    ));
    ok!(clEnqueueUnmapMemObject(
        q,
        w.b.0,
        mapped,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(q));
    code
}

fn unmapped_twice(w: &World) -> cl_int {
    let (q, n, e) = (w.s.queue.0, null(), null_mut());
    let mapped = create!(clEnqueueMapBuffer(
        q,
        w.b.0,
        CL_TRUE,
        CL_MAP_READ,
        0,
        64,
        0,
        n,
        e
    ));
    ok!(clEnqueueUnmapMemObject(q, w.b.0, mapped, 0, n, e));
    call!(clEnqueueUnmapMemObject(q, w.b.0, mapped, 0, n, w.event()))
}
