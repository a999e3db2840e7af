//! The state that a queue's lock protects: the stream, what its open batch will complete, the pending commands.

use super::hazards::{HostTasks, QueuePosition};
use super::host::print_buffers::PrintBuffers;
use super::host::{Executor, Task};
use super::pending::{Pending, PendingCommands};
use super::transfer::staging::{Pool, UNBOUNDED};
use crate::backend::{Op, OrderRule, Placement, Point, ProfileSlot, Stream};
use crate::cl;
use crate::command::access::{Ranges, SourceCopy};
use crate::command::Work;
use crate::compile::printf::Output;
use crate::error::{ClError, ClResult};
use crate::handle::Ref;
use crate::object::context::Context;
use crate::object::event::{now_ns, Event, Notifications, Progress};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Operations in a batch at most.
const BATCH: usize = 256;
/// A batch is submitted after so many operations when the device has nothing to do.
const EAGER: usize = 16;
/// Small operations wake a device that has nothing to do this often at most: waking one costs the time of many of them.
const WAKE_INTERVAL: Duration = Duration::from_micros(100);
/// Bytes of staging memory in each direction at most.
const STAGING: u64 = 16 << 20;
/// An operation that keeps a device busy for long enough to be submitted at once when it has nothing to do.
pub const HEAVY: u64 = 1 << 22;

/// Whether somebody may ask for the completion of the open command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Observed {
    /// Nobody.
    No,
    /// Whoever holds the last of the open events.
    ByEvent,
    /// A host task.
    ByTask,
}

/// The commands, each of bounded work, that are recorded behind one that somebody observes, and
/// whose end is its end for the observer. What the device does to show the end of each command by
/// itself may take longer than the commands
/// (docs/decisions/0192-brief-commands-share-one-end.md).
#[derive(Debug, Default)]
struct BriefCommands {
    commands: u32,
    work: u64,
}

impl BriefCommands {
    /// The most commands that end together: a tenth of a millisecond of empty kernels.
    const COMMANDS: u32 = 32;
    /// The most work behind the first of them, in instructions and bytes: a tenth of a millisecond
    /// of a slow GPU.
    const WORK: u64 = 1 << 20;

    /// Returns true if the device has to show the end of the command recorded last, which is
    /// `observed` or not, before the next one begins, whose work `next` bounds.
    fn shows_end(&mut self, observed: bool, next: impl FnOnce() -> Option<u64>) -> bool {
        if !observed && self.commands == 0 {
            return false;
        }
        let work = next().map_or(u64::MAX, |next| self.work.saturating_add(next));
        if work > Self::WORK || self.commands == Self::COMMANDS {
            *self = Self::default();
            return true;
        }
        *self = Self {
            commands: self.commands + 1,
            work,
        };
        false
    }
}

/// Makes sure that an executor has a thread.
fn started(executor: &Arc<Executor>) -> ClResult {
    executor.start().map_err(|error| {
        ClError::new(
            cl::CL_OUT_OF_HOST_MEMORY,
            format!("no thread for host tasks: {error}"),
        )
    })
}

/// The state under the lock.
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
    open_events: Vec<Ref<Event>>,
    /// Host tasks of the open batch.
    open_tasks: Vec<Task>,
    /// Somebody may ask for the completion of the open command.
    observed: Observed,
    /// The commands recorded behind one whose completion is observed with theirs.
    brief: BriefCommands,
    executor: Arc<Executor>,
    /// The executor of tasks that migrate contents from other memories, which wait for devices.
    bringing: Option<Arc<Executor>>,
    /// Tasks of the host executor.
    pub host: HostTasks,
    /// Commands that wait for something not on a timeline.
    pub pending: PendingCommands,
    /// The device reads and writes all memory of the host.
    pub host_memory: bool,
    /// Number of the last command recorded.
    pub order: u64,
    /// All commands up to this one are before a barrier.
    pub last_barrier: u64,
    /// The last barrier that the application has asked for, in an out-of-order queue.
    pub barrier_place: QueuePosition,
    /// Trees of launches that are over, whose writes are visible to what is recorded.
    pub trees_seen: u64,
    /// Writes that other queues had left to the device when the queue was made: every command waits for them.
    pub left_writes: Vec<Point>,
    heavy: bool,
    /// The open batch signals what others wait for.
    awaited: bool,
    /// When small operations last woke the device.
    woken: Option<Instant>,
    /// Staging towards the device.
    pub up: Pool,
    /// Staging from the device.
    pub down: Pool,
    /// Argument buffers.
    pub args: Pool,
    /// The buffers that launches print to.
    pub printing: Arc<PrintBuffers>,
    /// The host tasks that print, in order.
    pub print_tasks: VecDeque<u64>,
    /// To be run when the lock is released.
    pub after: Vec<Notifications>,
    /// Commands that are over, or recorded, and whose memory objects may go with them: dropped when the lock is released.
    #[expect(
        clippy::vec_box,
        reason = "they are in boxes before, and need not move"
    )]
    pub gone: Vec<Box<Pending>>,
    /// Messages for the context's callback, when the lock is released.
    pub reports: Vec<String>,
}

impl QueueState {
    /// Creates the state of a new queue.
    pub fn new(
        stream: Box<dyn Stream>,
        progress: Arc<Progress>,
        rule: OrderRule,
        profiling: bool,
        host_memory: bool,
        output: &Arc<Output>,
    ) -> Self {
        let executor = Executor::new(progress.clone());
        Self {
            stream,
            progress,
            rule,
            profiling,
            open_events: Vec::new(),
            open_tasks: Vec::new(),
            observed: Observed::No,
            brief: BriefCommands::default(),
            executor,
            bringing: None,
            host: HostTasks::default(),
            pending: PendingCommands::default(),
            host_memory,
            order: 0,
            last_barrier: 0,
            barrier_place: QueuePosition::default(),
            trees_seen: 0,
            left_writes: Vec::new(),
            heavy: false,
            awaited: false,
            woken: None,
            up: Pool::new(Placement::HostWrite, 1 << 20, STAGING),
            down: Pool::new(Placement::HostRead, 1 << 20, STAGING),
            args: Pool::new(Placement::HostWrite, 256 << 10, UNBOUNDED),
            printing: PrintBuffers::new(output),
            print_tasks: VecDeque::new(),
            after: Vec::new(),
            gone: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// Returns true if commands run as if one after another.
    pub fn in_order(&self) -> bool {
        self.rule == OrderRule::InOrder
    }

    /// Returns the timeline value at which everything recorded is done.
    pub fn value(&self) -> u64 {
        self.stream.recorded_value()
    }

    /// Returns the first host task that prints and is not over.
    pub fn first_print_task(&mut self) -> Option<u64> {
        let done = self.progress.host_done();
        while self.print_tasks.front().is_some_and(|seq| *seq <= done) {
            self.print_tasks.pop_front();
        }
        self.print_tasks.front().copied()
    }

    /// Ends the open command: later operations belong to another, which does `next`. No event that
    /// the application has may depend on it, unless it is brief.
    pub fn end_command(&mut self, next: &Work) {
        let observed = std::mem::replace(&mut self.observed, Observed::No);
        let (brief, events) = (&mut self.brief, &self.open_events);
        // One reference is ours.
        let held = || (events.last()).is_some_and(|event| Arc::strong_count(event) > 1);
        self.stream.end_command(&mut || match observed {
            Observed::No => brief.shows_end(false, || next.bound()),
            Observed::ByEvent => brief.shows_end(held(), || next.bound()),
            Observed::ByTask => {
                *brief = BriefCommands::default();
                true
            }
        });
    }

    /// Adds the event of the open command.
    pub fn add_open_event(&mut self, event: Ref<Event>) {
        self.open_events.push(event);
        if self.observed == Observed::No {
            self.observed = Observed::ByEvent;
        }
    }

    /// Adds those to notify when the lock is released, if there are any.
    pub fn notify(&mut self, notifications: Notifications) {
        if !notifications.is_empty() {
            self.after.push(notifications);
        }
    }

    /// Marks commands to be looked at that waited for host tasks which are complete.
    pub fn host_tasks_done(&mut self) {
        let done = self.progress.host_done();
        let more = self.pending.host_done(done);
        self.progress.watch_host(more);
    }

    /// Returns true if the device has finished everything submitted. False where that cannot be
    /// found out.
    pub fn device_idle(&self) -> bool {
        let submitted = self.progress.submitted();
        self.progress.timeline.has_reached(submitted)
    }

    /// Removes the writes of other queues that are complete, which the stream makes visible anyhow.
    pub fn forget_left_writes(&mut self) {
        self.left_writes
            .retain(|point| !point.timeline.has_reached(point.value));
    }

    /// Returns true if nothing is recorded, submitted or left to the host.
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

    /// Makes the open batch be submitted as soon as the open command is followed.
    pub fn submit_soon(&mut self) {
        self.awaited = true;
    }

    /// Counts a recorded operation that takes a while.
    pub fn note_work(&mut self, amount: u64) {
        self.heavy |= amount >= HEAVY;
    }

    /// Orders everything recorded from now on after everything before.
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

    /// Starts the host executor's thread if it is not running. Must be called before anything is
    /// recorded that leaves a task to it: once a task is counted ([`QueueState::new_host_task`])
    /// other threads wait for it.
    pub fn host_thread(&mut self) -> ClResult {
        started(&self.executor)
    }

    /// Posts a task to the host executor, at once or with the open batch.
    pub fn post(&mut self, task: Task) -> ClResult {
        let submitted = self.progress.submitted();
        self.host_thread()?;
        if task.value > submitted {
            self.open_tasks.push(task);
            self.executor.promise();
            self.observed = Observed::ByTask;
        } else {
            self.executor.post([task], 0);
        }
        Ok(())
    }

    /// Returns the host executor.
    #[cfg(test)]
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// Ends the threads of the executors, when they have done what is posted.
    pub fn close(&self) {
        let bringing = self.bringing.iter();
        bringing.chain([&self.executor]).for_each(|e| e.close());
    }

    /// Posts a task that copies contents to an executor of its own.
    pub fn post_migration(&mut self, task: Task) -> ClResult {
        let progress = &self.progress;
        let executor = (self.bringing).get_or_insert_with(|| Executor::new(progress.clone()));
        started(executor)?;
        executor.post([task], 0);
        Ok(())
    }

    /// Submits the batch when that pays: it is full, or the device has nothing to do.
    pub fn maybe_submit(&mut self) {
        let length = self.stream.open_len();
        let look = length >= EAGER && length.is_multiple_of(EAGER);
        if self.awaited
            || length >= BATCH
            || (self.heavy && self.device_idle())
            || (look && self.device_idle() && self.wake_now())
        {
            self.submit();
        }
    }

    /// Returns true, once in an interval, if small operations may wake the device.
    fn wake_now(&mut self) -> bool {
        let now = Instant::now();
        let pays = self.woken.is_none_or(|woken| now - woken >= WAKE_INTERVAL);
        if pays {
            self.woken = Some(now);
        }
        pays
    }

    /// Submits the open batch. Failures go to its events, and to `after` and `reports`.
    pub fn submit(&mut self) {
        self.heavy = false;
        self.awaited = false;
        if self.stream.open_len() == 0 {
            return;
        }
        self.observed = Observed::No;
        self.brief = BriefCommands::default();
        // Before the device can begin: it may be done when this returns.
        let now = if self.profiling { now_ns() } else { 0 };
        let failed = match self.stream.submit(false) {
            Ok(value) => {
                self.progress.set_submitted(value);
                for event in self.open_events.drain(..).filter(|_| self.profiling) {
                    event.set_submit_time(now);
                }
                None
            }
            Err(error) => {
                let error = ClError::from(error);
                self.reports.push(format!(
                    "a batch of commands could not be submitted: {}",
                    error.what
                ));
                let tasks = &self.open_tasks;
                let has_task = |event: &Ref<Event>| {
                    let own =
                        |task: &Task| task.event.as_ref().is_some_and(|e| Arc::ptr_eq(e, event));
                    tasks.iter().any(own)
                };
                let events = self.open_events.drain(..);
                let alone = events.filter(|event| !has_task(event));
                self.after
                    .extend(alone.map(|event| event.settle(error.code)));
                Some(error.code)
            }
        };
        if !self.open_tasks.is_empty() {
            let promised = self.open_tasks.len();
            let tasks = self.open_tasks.drain(..).map(|mut task| {
                task.failed = failed;
                task
            });
            self.executor.post(tasks, promised);
        }
        self.stream.reclaim();
    }
}

impl QueueState {
    /// Adds a host task that accesses these ranges of memory (`shared`: which devices access). Returns its number.
    pub fn new_host_task(&mut self, ranges: Ranges, shared: bool) -> u64 {
        self.host.add(self.progress.host_done(), ranges, shared)
    }

    /// Returns the last host task of this queue that must be complete before `work` begins.
    pub fn host_hazard(&self, work: &Work) -> Option<u64> {
        let done = self.progress.host_done();
        self.host.hazard(done, self.in_order(), work)
    }

    /// Returns true if all that comes before a command must be done before it is encoded: the thread that encodes it copies
    /// from memory that devices access.
    pub fn follows_all(&self, context: &Context, work: &Work) -> bool {
        match work.source_copy() {
            SourceCopy::None => false,
            SourceCopy::Shared => true,
            // Where the device has the host's memory, it reads the source itself.
            SourceCopy::Host => !self.host_memory && context.pointers_are_followed(),
        }
    }

    /// Returns the position that must be reached before a command that follows all recorded ones,
    /// unless it is reached already.
    pub fn unreached(&self) -> Option<QueuePosition> {
        let place = match self.in_order() {
            true => QueuePosition {
                value: self.value(),
                host_seq: self.host.posted,
            },
            false => self.barrier_place,
        };
        (!self.has_reached(place)).then_some(place)
    }

    /// Returns true if the timeline and the host executor have reached a position.
    pub fn has_reached(&self, place: QueuePosition) -> bool {
        self.progress.host_done() >= place.host_seq
            && self.progress.timeline.has_reached(place.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_commands_share_their_end() {
        let mut brief = BriefCommands::default();
        let none_observed = (0..100).all(|_| !brief.shows_end(false, || Some(8)));
        assert!(none_observed);
        // One that may take long begins behind a command that is observed, or behind brief ones after it.
        assert!(brief.shows_end(true, || None));
        assert!(!brief.shows_end(true, || Some(8)) && !brief.shows_end(false, || Some(8)));
        assert!(brief.shows_end(false, || None) && !brief.shows_end(false, || None));
        // Neither many of them nor much work.
        let shown: Vec<usize> = (0..100)
            .filter(|_| brief.shows_end(true, || Some(8)))
            .collect();
        assert_eq!(shown, [32, 65, 98]);
        assert!(!brief.shows_end(true, || Some(BriefCommands::WORK / 2)));
        assert!(brief.shows_end(true, || Some(BriefCommands::WORK)));
        assert!(brief.shows_end(true, || Some(u64::MAX)));
    }
}
