//! Gates, and what holds while they are closed.
//!
//! A gate waits until the program opens it: a user event, a kernel that waits for a flag in memory that host and device
//! share, a native kernel that waits for one. While gates are closed the contract of a queue (`src/queue/mod.rs`) says of each
//! action before that:
//!
//! - A command is *stuck* if a closed gate comes before it by the order of its queue, its wait list, or a marker or barrier
//!   ([`crate::order`]). Its event is not complete, and no callback for that has come.
//! - A command is *promised* if no closed gate can delay it: its event is complete, and its callback has come, a moment after
//!   its queue was flushed. So is one whose wait list has failed.
//! - Of the others, which fail behind a closed gate, nothing is said.
//! - Every call returns: those that do not block, and those that wait for what is promised alone. The planner lets the host
//!   wait for nothing else.
//! - Memory in flight is no more than the program handed over, and some more.
//!
//! A gate of a device occupies one of its threads. The CPU device has as many as there are processors, and runs other
//! commands on the others, so at most one gate of each device is closed at a time. Where a device has a single thread, or runs
//! one kernel after the other, as llvmpipe does and a GPU may, a kernel that waits is *alone*: of other commands of that device
//! only those that are over before it begins are promised, and no call that gives an image its first contents returns. A
//! native kernel is never alone: who waits in it is the host.
//!
//! A gate of an out-of-order queue may hold up the other commands of that queue: the specification lets a device run them one
//! after the other.

use crate::order::{Order, Set};
use crate::program::{Action, Program, What};

/// What holds while some gates are closed.
pub struct Promises<'a> {
    program: &'a Program,
    order: &'a Order,
    closed: Set,
    /// Commands that a gate may keep from running by being alone on their device.
    barred: Set,
    /// Devices that are occupied so.
    alone: Vec<usize>,
    /// Out-of-order queues with a gate that has begun.
    held_up: Vec<usize>,
}

impl<'a> Promises<'a> {
    /// While these gates of the program so far are closed.
    pub fn new(program: &'a Program, order: &'a Order, closed: &[usize]) -> Self {
        let set: Set = closed.iter().fold(0, |set, gate| set | 1 << gate);
        let (mut barred, mut alone, mut held_up) = (0, Vec::new(), Vec::new());
        for &gate in closed {
            let own = &program.actions[gate];
            // One that is stuck itself occupies nothing.
            let begins = order.known(gate) & set == 0;
            if !own.what.is_command() || !begins {
                continue;
            }
            let device = program.queues[own.queue].device;
            let whole = own.what == What::GateKernel(true);
            if whole {
                alone.push(device);
            } else if program.queues[own.queue].in_order {
                continue;
            } else {
                held_up.push(own.queue);
            }
            for (index, other) in program.actions.iter().enumerate() {
                let same = other.what.is_command()
                    && match whole {
                        true => program.queues[other.queue].device == device,
                        false => other.queue == own.queue,
                    };
                if same && order.known(gate) >> index & 1 == 0 {
                    barred |= 1 << index;
                }
            }
        }
        Self {
            program,
            order,
            closed: set,
            barred,
            alone,
            held_up,
        }
    }

    /// The action is over soon.
    pub fn promised(&self, index: usize) -> bool {
        self.order.slow(index) & (self.closed | self.barred) == 0
    }

    /// The action is not over.
    pub fn stuck(&self, index: usize) -> bool {
        let own = 1 << index & self.closed;
        !self.program.fails(index) && (own | self.order.known(index) & self.closed) != 0
    }

    /// The host would wait for what is not promised, if this action came next.
    pub fn holds_up(&self, action: &Action) -> bool {
        let waits = match action.what {
            What::Wait(of) => self.order.slow(of),
            What::Finish(queue) => self.order.slow_queue(queue),
            _ if action.blocking => {
                let device = self.program.queues[action.queue].device;
                if self.alone.contains(&device) || self.held_up.contains(&action.queue) {
                    return true;
                }
                self.order.slow_before(action)
            }
            What::Create(of) => return self.waits_to_create(of),
            _ => return false,
        };
        waits & (self.closed | self.barred) != 0
    }

    /// To make an image is to bring its first contents to the device, which a gate may occupy.
    fn waits_to_create(&self, memory: usize) -> bool {
        let own = &self.program.memories[memory];
        !self.alone.is_empty() && matches!(own.kind, crate::program::Kind::Image(_))
    }
}
