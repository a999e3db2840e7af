//! Commands that are enqueued: what they have in common by kind of argument. What each has of its own stands by kind of what it
//! works on.

use crate::table::Table;
use crate::world::World;
use pumice_tests::sys::*;
use std::ptr::{null, null_mut};

mod buffers;
mod images;
mod kernels;
mod order;
mod shared;

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

/// The access of the host to the first object.
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

pub fn rows(t: &mut Table) {
    buffers::rows(t);
    images::rows(t);
    order::rows(t);
    kernels::rows(t);
    shared::rows(t);
}
