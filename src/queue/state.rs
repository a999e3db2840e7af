//! What a queue's lock protects: the stream, what its open batch will complete, the commands that are held.

use super::host::{self, Task};
use super::host_tasks::{HostTasks, QueuePosition};
use super::print_buffers::PrintBuffers;
use super::staging::Pool;
use crate::backend::{Op, OrderRule, Placement, Point, ProfileSlot, Stream};
use crate::cl::{self, cl_int};
use crate::command::Command;
use crate::error::{ClError, ClResult};
use crate::handle::Ref;
use crate::object::event::{now_ns, Aftermath, Event, Progress};
use crossbeam_channel::Sender;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Operations in a batch at most.
const BATCH: usize = 256;
/// A batch is submitted after so many operations when the device has nothing to do.
const EAGER: usize = 16;
/// An operation that keeps a device busy for long enough to be submitted at once when it has nothing to do.
pub const HEAVY: u64 = 1 << 22;

/// A command that is not on the timeline yet.
pub struct Held {
    /// What to do.
    pub command: Command,
    /// What it waits for: first its wait list, then what comes before it in the queue.
    pub deps: SmallVec<[Ref<Event>; 4]>,
    /// How many of them are of the wait list.
    pub listed: usize,
    /// Its event, whether the application has it or not.
    pub event: Ref<Event>,
    /// The host thread has been asked to wake the queue at this place.
    pub behind: Option<QueuePosition>,
}

/// What is under the lock.
pub struct QueueState {
    /// The stream.
    pub stream: Box<dyn Stream>,
    /// How far the queue is.
    pub progress: Arc<Progress>,
    /// Order of operations.
    pub rule: OrderRule,
    /// Events are to have times.
    pub profiling: bool,
    /// Events of the open batch.
    pub open_events: Vec<Ref<Event>>,
    /// Host tasks of the open batch.
    pub open_tasks: Vec<Task>,
    tasks: Option<Sender<Task>>,
    /// Tasks of the host thread.
    pub host: HostTasks,
    /// Commands that wait for something not on a timeline.
    pub held: VecDeque<Held>,
    /// A barrier among them: every later command waits for it.
    pub barrier: Option<Ref<Event>>,
    /// Number of the last command recorded.
    pub order: u64,
    /// All commands up to this one are before a barrier.
    pub last_barrier: u64,
    /// The last barrier that the application has asked for, in an out-of-order queue.
    pub barrier_place: QueuePosition,
    /// Families of launches that are over, whose writes are visible to what is recorded.
    pub families_seen: u64,
    heavy: bool,
    /// Staging towards the device.
    pub up: Pool,
    /// Staging from the device.
    pub down: Pool,
    /// Argument buffers.
    pub args: Pool,
    /// What launches print to.
    pub printing: Arc<PrintBuffers>,
    /// To be run when the lock is released.
    pub after: Vec<Aftermath>,
    /// To be told to the context when the lock is released.
    pub reports: Vec<String>,
}

impl QueueState {
    /// Of a new queue.
    pub fn new(
        stream: Box<dyn Stream>,
        progress: Arc<Progress>,
        rule: OrderRule,
        profiling: bool,
    ) -> Self {
        Self {
            stream,
            progress,
            rule,
            profiling,
            open_events: Vec::new(),
            open_tasks: Vec::new(),
            tasks: None,
            host: HostTasks::default(),
            held: VecDeque::new(),
            barrier: None,
            order: 0,
            last_barrier: 0,
            barrier_place: QueuePosition::default(),
            families_seen: 0,
            heavy: false,
            up: Pool::new(Placement::HostWrite, 1 << 20),
            down: Pool::new(Placement::HostRead, 1 << 20),
            args: Pool::new(Placement::HostWrite, 256 << 10),
            printing: Arc::default(),
            after: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// Commands run as if one after another.
    pub fn in_order(&self) -> bool {
        self.rule == OrderRule::InOrder
    }

    /// The timeline value at which everything recorded is done.
    pub fn value(&self) -> u64 {
        if self.stream.open_len() > 0 {
            self.stream.open_value()
        } else {
            self.progress.submitted()
        }
    }

    /// The device has finished everything submitted. False where that cannot be found out.
    pub fn device_idle(&self) -> bool {
        self.progress
            .timeline
            .completed()
            .is_ok_and(|now| now >= self.progress.submitted())
    }

    /// Nothing is recorded, submitted or left to the host.
    pub fn idle(&self) -> bool {
        self.stream.open_len() == 0
            && self.progress.host_done() >= self.host.posted
            && self.device_idle()
    }

    /// Records an operation.
    pub fn record(&mut self, op: Op<'_>, profile: bool) -> ClResult<Option<ProfileSlot>> {
        let slot = self.stream.record(op, self.rule, profile)?;
        self.progress.set_recorded(self.stream.open_value());
        Ok(slot)
    }

    /// An operation that takes a while is among those recorded.
    pub fn note_work(&mut self, amount: u64) {
        self.heavy |= amount >= HEAVY;
    }

    /// Everything recorded from now on comes after everything before.
    pub fn barrier(&mut self) -> ClResult {
        if self.last_barrier < self.order {
            self.stream.barrier()?;
            self.last_barrier = self.order;
        }
        Ok(())
    }

    /// Makes what follows wait for points of other queues. What is recorded already need not wait: it goes first.
    pub fn wait_for(&mut self, points: &[Point]) -> ClResult {
        if points.is_empty() {
            return Ok(());
        }
        if self.stream.open_len() > 0 {
            self.submit();
        }
        for point in points {
            self.stream.wait_for(point);
        }
        Ok(())
    }

    /// There is a host thread, or none can be made. To be asked before anything is recorded that leaves a task to it: once
    /// a task is counted ([`QueueState::new_host_task`]) everyone waits for it.
    pub fn host_thread(&mut self) -> ClResult<&Sender<Task>> {
        let tasks = self.tasks.take();
        let sender = match tasks {
            Some(sender) => sender,
            None => host::start(self.progress.clone()).map_err(|e| {
                ClError::new(cl::CL_OUT_OF_HOST_MEMORY, format!("no host thread: {e}"))
            })?,
        };
        Ok(self.tasks.insert(sender))
    }

    /// Gives a task to the host thread, at once or with the open batch.
    pub fn post(&mut self, task: Task) -> ClResult {
        let submitted = self.progress.submitted();
        let sender = self.host_thread()?;
        if task.value > submitted {
            self.open_tasks.push(task);
        } else {
            // The thread lives as long as the sender: this cannot fail.
            let _ = sender.send(task);
        }
        Ok(())
    }

    /// Submits when it pays: the batch is full, or the device has nothing to do.
    pub fn maybe_submit(&mut self) {
        let length = self.stream.open_len();
        let look = self.heavy || (length >= EAGER && length.is_multiple_of(EAGER));
        if length >= BATCH || (look && self.device_idle()) {
            self.submit();
        }
    }

    /// Submits the open batch. Failures go to its events, and to `after` and `reports`.
    pub fn submit(&mut self) {
        self.heavy = false;
        if self.stream.open_len() == 0 {
            return;
        }
        // Before the device can begin: it may be done when this returns.
        let now = if self.profiling { now_ns() } else { 0 };
        let failed = match self.stream.submit(false) {
            Ok(value) => {
                self.progress.set_submitted(value);
                None
            }
            Err(error) => {
                let error = ClError::from(error);
                self.reports.push(format!(
                    "a batch of commands could not be submitted: {}",
                    error.what
                ));
                Some(error.code)
            }
        };
        match failed {
            None => {
                if self.profiling {
                    for event in self.open_events.drain(..) {
                        event.set_submit_time(now);
                    }
                }
                self.open_events.clear();
            }
            Some(code) => {
                let events = std::mem::take(&mut self.open_events);
                let tasks: &[Task] = &self.open_tasks;
                let with_host = |event: &Ref<Event>| {
                    tasks
                        .iter()
                        .any(|t| t.event.as_ref().is_some_and(|e| Arc::ptr_eq(e, event)))
                };
                let settled: Vec<Aftermath> = events
                    .iter()
                    .filter(|event| !with_host(event))
                    .map(|event| event.settle(code))
                    .collect();
                self.after.extend(settled);
            }
        }
        if let Some(sender) = &self.tasks {
            for mut task in self.open_tasks.drain(..) {
                task.failed = failed;
                let _ = sender.send(task);
            }
        }
        self.stream.reclaim();
    }

    /// The status of commands that the failure of another takes along.
    pub const DEPENDENCY_FAILED: cl_int = cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}
