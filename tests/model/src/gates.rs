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
//! A wait for a semaphore that nobody has signalled yet is as a gate, which its signal opens.
//!
//! A gate of a device occupies one of its threads. The CPU device has as many as there are processors, and runs other
//! commands on the others, so at most one gate of each device is closed at a time. Where a device has a single thread, or runs
//! one kernel after the other, as llvmpipe does and a GPU may, a kernel that waits is *alone*: of other commands of that device
//! only those that are over before it begins are promised. A native kernel is never alone: who waits in it is the host.
//!
//! More promises hold for programs that are *strict*: in an out-of-order queue a command does not wait for another one that
//! waits for a gate of a device; an image that is made with contents does not wait for a device, and a command of one device
//! not for another, where memory was used last; a native kernel that waits may be on a device with a single thread; and a
//! driver that runs one kernel after the other makes pipelines and makes and destroys images meanwhile, which lavapipe
//! does not.

use crate::order::{Order, Set};
use crate::program::{Program, ProgramAction, What};

/// The promises that hold while some gates are closed.
pub struct Promises<'a> {
    program: &'a Program,
    order: &'a Order,
    closed: Set,
    /// Commands that a gate may keep from running by being alone on their device.
    barred: Set,
    /// Devices that are occupied so.
    alone: Vec<usize>,
    /// Queues whose later commands may not run.
    queues: Vec<usize>,
}

impl<'a> Promises<'a> {
    /// While these gates of the program so far are closed.
    pub fn new(program: &'a Program, order: &'a Order, closed: &[usize]) -> Self {
        let set: Set = closed.iter().fold(0, |set, gate| set | 1 << gate);
        let (mut barred, mut begun, mut alone, mut queues) = (0, 0, Vec::new(), Vec::new());
        for &gate in closed {
            let own = &program.actions[gate];
            // One that is stuck itself occupies nothing.
            let begins = order.known(gate) & set == 0;
            if !own.what.is_gate_of_device() || !begins {
                continue;
            }
            let device = |queue: usize| program.queues[queue].device;
            let is_alone = own.what == What::GateKernel(true);
            if is_alone {
                alone.push(device(own.queue));
            }
            begun |= 1 << gate;
            for (index, other) in program.actions.iter().enumerate() {
                // What another device needs may lie in the memory of this one.
                let near = |&lane: &usize| !program.strict || device(lane) == device(own.queue);
                let same = is_alone && other.lanes().iter().any(near);
                if same && order.known(gate) >> index & 1 == 0 {
                    barred |= 1 << index;
                }
            }
        }
        // What is barred may bar others in turn.
        let mut last = None;
        while !program.strict && last != Some(barred) {
            last = Some(barred);
            for (index, action) in program.actions.iter().enumerate() {
                let waits = order.slow(index) & (begun | barred) != 0;
                let lanes = action.lanes().iter().copied();
                let own: Vec<usize> = lanes
                    .filter(|&lane| !program.queues[lane].in_order)
                    .collect();
                if own.is_empty() || !waits {
                    continue;
                }
                queues.extend(&own);
                for (other, one) in program.actions.iter().enumerate() {
                    let same = one.lanes().iter().any(|lane| own.contains(lane));
                    if same && order.known(index) >> other & 1 == 0 {
                        barred |= 1 << other;
                    }
                }
            }
        }
        Self {
            program,
            order,
            closed: set,
            barred,
            alone,
            queues,
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

    fn is_image(&self, memory: usize) -> bool {
        self.program.memories[memory].kind.pitch().is_some()
    }

    /// The host would wait for what is not promised, if this action came next. What it waits for by semaphores stands in its wait
    /// list.
    pub fn holds_up(&self, action: &ProgramAction) -> bool {
        let exclusive = !self.program.strict && !self.alone.is_empty();
        let waits = match action.what {
            What::Wait(of) => self.order.slow(of),
            What::Finish(queue) => self.order.slow_queue(queue),
            What::Create(memory) => return exclusive && self.is_image(memory),
            // The last command that uses it may end while a gate is closed that has not begun yet.
            What::Release(memory) => {
                let alone = |gate: usize| {
                    self.closed >> gate & 1 == 1
                        && self.program.actions[gate].what == What::GateKernel(true)
                };
                let mut all = 0..self.program.actions.len();
                return !self.program.strict && all.any(alone) && self.is_image(memory);
            }
            What::Begin(of) => return exclusive && self.program.recordings[of].from.is_some(),
            What::Kernel { .. }
            | What::GateKernel(_)
            | What::Finalize(_)
            | What::Update { .. }
            | What::Replay { .. } => return exclusive,
            _ if action.blocking => {
                let device = self.program.queues[action.queue].device;
                if exclusive || self.alone.contains(&device) || self.queues.contains(&action.queue)
                {
                    return true;
                }
                self.order.slow_before(action)
            }
            _ => return false,
        };
        waits & (self.closed | self.barred) != 0
    }
}
