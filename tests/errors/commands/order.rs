//! Commands that move no bytes: unmapping, migration, markers, barriers; and waiting for a queue.

use super::*;
use pumice_tests::call;

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

/// What no other command has.
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
