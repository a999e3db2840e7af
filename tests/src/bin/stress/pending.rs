//! Checks that a thread makes once a command is complete: data read, memory that writes read, maps; and callbacks.

use crate::graph::{Lane, Node};
use crate::memory::{Buf, Contents, Mapped};
use crate::plan::{CommandPlan, Outcome, Use};
use crate::world::lock;
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use pumice_tests::{call, ok};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Fails with the place of the first difference.
pub fn compare(name: &str, got: &[u8], expected: &[u8]) {
    if got != expected {
        let at = got.iter().zip(expected).position(|(a, b)| a != b);
        let wrong = got.iter().zip(expected).filter(|(a, b)| a != b).count();
        let at = at.unwrap_or(got.len().min(expected.len()));
        let show = |bytes: &[u8]| format!("{:02x?}", &bytes[at..(at + 16).min(bytes.len())]);
        panic!(
            "{name}: {wrong} of {} bytes differ, first at {at}: {} instead of {}",
            expected.len(),
            show(got),
            show(expected)
        );
    }
}

/// The kind of map.
#[derive(Clone, Copy)]
pub enum Way {
    /// A buffer or an image.
    Object(cl_mem),
    /// Shared virtual memory.
    Pointer,
}

/// A map that its thread has yet to end.
pub struct Map {
    /// The buffer with the model.
    pub buffer: Arc<Buf>,
    /// The kind of map.
    pub way: Way,
    /// The pointer that the application got.
    pub pointer: usize,
    /// Bytes of the model, from the first to the last.
    pub range: Range<usize>,
    /// Where behind the pointer which of them are.
    pub rows: Vec<(usize, Range<usize>)>,
    /// CL_MAP_*.
    pub flags: cl_map_flags,
    /// Its number in the buffer's list.
    pub id: u64,
    /// The contents of the range that it must show.
    pub expected: Vec<u8>,
}

/// Something to look at when a command is over.
pub enum Pending {
    /// Data were read there: they must be these. Nothing if the command fails.
    Read(Arc<Node>, Box<[u8]>, Vec<u8>),
    /// The command reads from there until then.
    Write(Arc<Node>, Box<[u8]>),
    /// A map.
    Map(Arc<Node>, Map),
}

static MAPS: AtomicUsize = AtomicUsize::new(1);

/// A number for a map.
pub fn map_number() -> u64 {
    MAPS.fetch_add(1, Ordering::Relaxed) as u64
}

impl Pending {
    /// Waits for the command and checks what it did.
    pub fn settle(self, rng: &mut Rng, lane: &Arc<Lane>) {
        match self {
            Self::Read(node, got, expected) => {
                node.finish(rng);
                compare(node.name, &got, &expected);
            }
            Self::Write(node, mut data) => {
                node.finish(rng);
                // A command that still reads it will be found out.
                data.fill(0xdd);
            }
            Self::Map(node, map) => {
                node.finish(rng);
                if !node.fails {
                    map.end(rng, lane);
                }
            }
        }
    }
}

impl Map {
    fn end(self, rng: &mut Rng, lane: &Arc<Lane>) {
        let invalidates = self.flags & CL_MAP_WRITE_INVALIDATE_REGION != 0;
        let writes = self.flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION) != 0;
        let mut after = self.expected;
        for (offset, row) in &self.rows {
            let model = &mut after[row.start - self.range.start..row.end - self.range.start];
            let place = self.pointer + offset;
            // SAFETY: the map is complete; its rows stay mapped until it is unmapped below. Other maps of these bytes
            // are for reading only.
            let seen = unsafe { std::slice::from_raw_parts(place as *const u8, row.len()) };
            if !invalidates {
                compare("map", seen, model);
            }
            if !writes {
                continue;
            }
            let part = match invalidates {
                true => 0..row.len(),
                false => rng.range(row.len(), 1),
            };
            let new = rng.bytes(part.len());
            // SAFETY: as above; what is mapped for writing is mapped once.
            unsafe {
                let to = (place + part.start) as *mut u8;
                std::ptr::copy_nonoverlapping(new.as_ptr(), to, new.len());
            }
            model[part].copy_from_slice(&new);
        }
        let plan = CommandPlan {
            name: "unmap",
            lane,
            uses: &[Use {
                buffer: self.buffer.clone(),
                range: self.range.clone(),
                write: writes,
                map: self.id,
            }],
            after: &[],
            blocking: false,
            want_event: rng.percent(70),
        };
        let outcome = plan.enqueue(
            rng,
            |count, list, event| {
                let pointer = self.pointer as *mut c_void;
                match self.way {
                    Way::Object(mem) => call!(clEnqueueUnmapMemObject(
                        lane.id, mem, pointer, count, list, event
                    )),
                    Way::Pointer => {
                        call!(clEnqueueSVMUnmap(lane.id, pointer, count, list, event))
                    }
                }
            },
            |locked| {
                let contents = locked.of(&self.buffer);
                for (_, row) in self.rows.iter().filter(|_| writes) {
                    let model = row.start - self.range.start..row.end - self.range.start;
                    contents.bytes[row.clone()].copy_from_slice(&after[model]);
                }
                contents.mapped.retain(|mapped| mapped.id != self.id);
            },
        );
        assert!(
            matches!(outcome, Outcome::Enqueued(_)),
            "an unmap stands in its own way"
        );
    }

    /// Enters a map into the buffer's list.
    pub fn enter(buffer: &mut Contents, id: u64, range: &Range<usize>, write: bool) {
        buffer.mapped.push(Mapped {
            id,
            range: range.clone(),
            write,
            fails: None,
        });
    }
}

/// Callbacks registered and not called yet.
pub static CALLBACKS: AtomicUsize = AtomicUsize::new(0);

struct Watch {
    name: &'static str,
    kinds: Vec<cl_int>,
    fails: bool,
    called: std::sync::Mutex<Vec<cl_int>>,
}

struct Hook {
    watch: Arc<Watch>,
    kind: cl_int,
}

extern "C" fn called(event: cl_event, status: cl_int, data: *mut c_void) {
    // SAFETY: the box that `watch` has given to this callback, which is called once.
    let hook = unsafe { Box::from_raw(data.cast::<Hook>()) };
    let watch = &hook.watch;
    if status < 0 {
        assert!(watch.fails, "a callback of {} got {status}", watch.name);
    } else {
        assert_eq!(
            status, hook.kind,
            "status given to a callback of {}",
            watch.name
        );
        assert!(
            !(watch.fails && hook.kind == CL_COMPLETE),
            "a callback of {}, which fails, got CL_COMPLETE",
            watch.name
        );
    }
    // Calls that do not block are allowed.
    ok!(clRetainEvent(event));
    ok!(clReleaseEvent(event));
    let mut order = lock(&watch.called);
    order.push(hook.kind);
    // From SUBMITTED over RUNNING to COMPLETE, which are falling numbers. Callbacks that are registered after the fact
    // are called at once, by the thread that registers them, so only those registered before count.
    if order.len() == watch.kinds.len() {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let mut kinds = watch.kinds.clone();
        kinds.sort_unstable();
        assert_eq!(sorted, kinds, "callbacks of {}", watch.name);
    }
    drop(order);
    drop(hook);
    CALLBACKS.fetch_sub(1, Ordering::SeqCst);
}

/// Registers callbacks for some of the states of a command.
pub fn watch(node: &Node, rng: &mut Rng) {
    let Some(event) = node.event else { return };
    let mut kinds = Vec::new();
    for kind in [CL_SUBMITTED, CL_RUNNING, CL_COMPLETE, CL_COMPLETE] {
        if rng.percent(50) {
            kinds.push(kind);
        }
    }
    let watch = Arc::new(Watch {
        name: node.name,
        kinds: kinds.clone(),
        fails: node.fails,
        called: std::sync::Mutex::default(),
    });
    for kind in kinds {
        CALLBACKS.fetch_add(1, Ordering::SeqCst);
        let hook = Box::new(Hook {
            watch: watch.clone(),
            kind,
        });
        ok!(clSetEventCallback(
            event,
            kind,
            Some(called),
            Box::into_raw(hook).cast()
        ));
    }
}

/// A user event to be set when another event is over.
struct Chain {
    event: cl_event,
    status: cl_int,
}

extern "C" fn set_next(_: cl_event, _: cl_int, data: *mut c_void) {
    // SAFETY: the box that `chain` has given to this callback, which is called once.
    let chain = unsafe { Box::from_raw(data.cast::<Chain>()) };
    ok!(clSetUserEventStatus(chain.event, chain.status));
    ok!(clReleaseEvent(chain.event));
    CALLBACKS.fetch_sub(1, Ordering::SeqCst);
}

/// Sets a user event, and releases it, when a command is complete.
pub fn chain(node: &Node, user: cl_event, status: cl_int) -> bool {
    let Some(event) = node.event else {
        return false;
    };
    CALLBACKS.fetch_add(1, Ordering::SeqCst);
    let data = Box::into_raw(Box::new(Chain {
        event: user,
        status,
    }));
    ok!(clSetEventCallback(
        event,
        CL_COMPLETE,
        Some(set_next),
        data.cast()
    ));
    if let Some(lane) = &node.lane {
        ok!(clFlush(lane.id));
    }
    true
}
