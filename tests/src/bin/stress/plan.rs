//! How a command is enqueued: with waits for all that conflicts with it, and its effect on the model.
//!
//! # The model
//! Every buffer has its contents as a sequential execution would leave them, and a log of the accesses that may still be
//! under way. A thread that enqueues a command locks the buffers it touches, makes the command wait for every logged
//! access that conflicts, enqueues it, and carries its effect out on the model at once. So the order in which
//! the locks are taken is the sequential order, and every event graph that results is a legal one.

use crate::graph::{tick, Lane, Node};
use crate::memory::{Access, Buf, Contents, Mapped};
use crate::world::lock;
use pumice_tests::code_name;
use pumice_tests::ok;
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::{Arc, MutexGuard};

/// Bytes that a command uses.
pub struct Use {
    /// The buffer.
    pub buffer: Arc<Buf>,
    /// Bytes of the buffer (not of the view).
    pub range: Range<usize>,
    /// Set if it changes them.
    pub write: bool,
    /// The map that this use belongs to, which does not stand in its way. 0: none.
    pub map: u64,
}

impl Use {
    /// Creates a read of a range.
    pub fn read(buffer: &Arc<Buf>, range: Range<usize>) -> Self {
        Self {
            buffer: buffer.clone(),
            range,
            write: false,
            map: 0,
        }
    }

    /// Creates a write of a range.
    pub fn write(buffer: &Arc<Buf>, range: Range<usize>) -> Self {
        Self {
            write: true,
            ..Self::read(buffer, range)
        }
    }
}

/// The models of the buffers that a command uses, locked.
pub struct Locked<'a> {
    guards: Vec<(*const Buf, MutexGuard<'a, Contents>)>,
}

impl Locked<'_> {
    /// The contents of a buffer.
    pub fn of(&mut self, buffer: &Arc<Buf>) -> &mut Contents {
        let place = Arc::as_ptr(buffer);
        let found = self.guards.iter_mut().find(|(at, _)| *at == place);
        &mut found.expect("the buffer is among those used").1
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// How a command is enqueued.
pub struct CommandPlan<'a> {
    /// The kind of command.
    pub name: &'static str,
    /// Where.
    pub lane: &'a Arc<Lane>,
    /// The bytes it touches.
    pub uses: &'a [Use],
    /// Further dependencies.
    pub after: &'a [Arc<Node>],
    /// The caller waits.
    pub blocking: bool,
    /// An event is asked for.
    pub want_event: bool,
}

/// The outcome of a command.
pub enum Outcome {
    /// Something that it needs is mapped: not enqueued.
    Skipped,
    /// The command was refused, as it had to be: it is blocking and waits for one that fails.
    Refused,
    /// Enqueued.
    Enqueued(Arc<Node>),
}

impl CommandPlan<'_> {
    /// Enqueues the command with all that it must wait for and carries out its effect on the model.
    pub fn enqueue(
        &self,
        rng: &mut Rng,
        call: impl FnOnce(cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        effect: impl FnOnce(&mut Locked<'_>),
    ) -> Outcome {
        let mut buffers: Vec<&Arc<Buf>> = self.uses.iter().map(|one| &one.buffer).collect();
        buffers.sort_by_key(|buffer| Arc::as_ptr(buffer) as usize);
        buffers.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let mut locked = Locked {
            guards: buffers
                .into_iter()
                .map(|buffer| (Arc::as_ptr(buffer), lock(&buffer.contents)))
                .collect(),
        };
        let begin = tick();
        let mut before: Vec<Arc<Node>> = Vec::new();
        for one in self.uses {
            let contents = locked.of(&one.buffer);
            let failed = |mapped: &Mapped| mapped.fails.as_ref().is_some_and(|node| node.poll());
            contents.mapped.retain(|mapped| !failed(mapped));
            let in_the_way = |mapped: &Mapped| {
                mapped.id != one.map
                    && (one.map != 0 || mapped.fails.is_none())
                    && (mapped.write || one.write)
                    && overlap(&mapped.range, &one.range)
            };
            if contents.mapped.iter().any(in_the_way) {
                return Outcome::Skipped;
            }
            for access in &contents.log {
                if (access.write || one.write) && overlap(&access.range, &one.range) {
                    before.push(access.node.clone());
                }
            }
        }
        let mut events: Vec<cl_event> = Vec::new();
        let mut markers: Vec<cl_event> = Vec::new();
        for node in &before {
            // A wait that the queue's order makes needless does no harm either.
            if self.lane.orders(node, begin) && !(node.event.is_some() && rng.percent(10)) {
                continue;
            }
            let (event, marker) = node.event_after();
            if !events.contains(&event) {
                events.push(event);
            }
            if marker {
                markers.push(event);
            }
        }
        events.extend(self.after.iter().filter_map(|node| node.event));
        let fails = self.after.iter().any(|node| node.fails);
        let list = if events.is_empty() {
            null()
        } else {
            events.as_ptr()
        };
        let mut event = null_mut();
        let place = if self.want_event {
            &raw mut event
        } else {
            null_mut()
        };
        let code = call(events.len() as cl_uint, list, place);
        for marker in markers {
            ok!(clReleaseEvent(marker));
        }
        if fails && self.blocking {
            assert!(code < 0, "{} waits for what fails and succeeded", self.name);
            return Outcome::Refused;
        }
        assert_eq!(code, 0, "{}: {}", self.name, code_name(code));
        let made = self.want_event.then_some(event);
        let node = Node::new(self.name, Some(self.lane.clone()), made, fails);
        // A blocking write may only have taken the data over.
        if self.blocking && !self.name.starts_with("write") {
            node.set_complete();
        }
        if fails {
            for one in self.uses.iter().filter(|one| one.map != 0) {
                let mapped = &mut locked.of(&one.buffer).mapped;
                if mapped.iter().all(|known| known.id != one.map) {
                    mapped.push(Mapped {
                        id: one.map,
                        range: one.range.clone(),
                        write: one.write,
                        fails: Some(node.clone()),
                    });
                }
            }
        } else {
            effect(&mut locked);
            for one in self.uses {
                let contents = locked.of(&one.buffer);
                if one.write {
                    let covers = |a: &Access| {
                        one.range.start <= a.range.start && a.range.end <= one.range.end
                    };
                    contents.log.retain(|access| !covers(access));
                }
                if contents.log.len() > 24 {
                    contents.log.retain(|access| !access.node.poll());
                }
                contents.log.push(Access {
                    range: one.range.clone(),
                    write: one.write,
                    node: node.clone(),
                });
            }
        }
        Outcome::Enqueued(node)
    }
}
