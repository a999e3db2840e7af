//! The host executor of a queue: what has to be done on the host after the device has done its part.
//!
//! An executor has one thread, started when there is something to do and ended when there has been nothing for a while, or when the
//! queue is gone. Tasks come
//! submitted; the thread waits for the timeline, does the task's work, completes its event and runs callbacks. Tasks are done
//! in the order of the timeline ([`Due`]), those with a sequence number in that order too, which is what keeps the visible
//! completion of an in-order queue in order. The thread holds no lock while it waits or calls back. A task that panics fails,
//! with its event; the next one is done all the same.
//!
//! A callback that waits for a command hands the executor over to another thread (`util/blocking.rs`): the command may need it.
//!
//! A callback for an event may be registered while the thread waits for a later one. So it waits for [`SLICE`] at most and
//! then looks at what has come meanwhile.

pub(super) mod print_buffers;

use super::device_enqueue::LaunchTree;
use super::transfer::staging::Piece;
use crate::backend::BufferCopy;
use crate::cl::{self, cl_int};
use crate::command::Work;
use crate::error::ClError;
use crate::handle::Ref;
use crate::object::event::{now_ns, wake, Event, Owner, Progress};
use crate::object::launch::Retained;
use crate::object::mem::coherence::{Part, Touch};
use crate::object::mem::host_work::HostWork;
use crate::object::mem::Mem;
use crate::object::memories::MemoryIndex;
use crate::util::blocking;
use crate::util::copy;
use crate::util::forked;
use crate::util::guard::guarded;
use crate::util::shutdown::Call;
use crate::util::sync;
use parking_lot::{Condvar, Mutex};
use print_buffers::PrintBuffer;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Work on the host.
pub enum HostAction {
    /// Copies from staging to where the application wants it.
    CopyOut {
        /// The source of the region counts from it.
        piece: Piece,
        /// The destination of the region counts from it.
        base: usize,
        /// The region.
        region: BufferCopy,
    },
    /// Work that a command carries.
    Work(Arc<dyn HostWork>),
    /// Finishes a launch.
    Launched {
        /// The buffer that the kernel has printed to.
        print: Option<PrintBuffer>,
        /// Launches what the kernel has enqueued.
        tree: Option<Box<LaunchTree>>,
        /// Memory that goes with the action.
        #[allow(dead_code)]
        retained: Option<Retained>,
    },
    /// Brings contents from other memories.
    Migrate(Arc<Migration>),
    /// The host's part of a command of a replay.
    OfReplay(Box<HostAction>, Arc<Outcome>),
    /// Ends a replay with such parts.
    EndReplay(Arc<Outcome>),
}

/// The status of the host's parts of a replay.
#[derive(Default)]
pub struct Outcome(AtomicI32);

impl Outcome {
    /// Returns the status of the first that has failed, or CL_COMPLETE.
    pub fn status(&self) -> cl_int {
        self.0.load(Ordering::Acquire)
    }

    /// Notes the status of a part.
    fn note(&self, status: cl_int) {
        let (set, seen) = (Ordering::AcqRel, Ordering::Acquire);
        let _ = (self.0).compare_exchange(cl::CL_COMPLETE as cl_int, status, set, seen);
    }
}

impl HostAction {
    /// Runs the action. Returns the status of the command.
    pub fn run(&self) -> cl_int {
        match self {
            Self::CopyOut {
                piece,
                base,
                region,
            } => {
                // SAFETY: the piece holds the packed region, its batch is complete; the application keeps the
                // destination valid until the command has completed, which it does after this.
                unsafe { copy_region(piece.pointer, *base, region) }
            }
            Self::Work(work) => work.run(),
            Self::Migrate(migration) => migration.run(),
            Self::OfReplay(action, outcome) => outcome.note(action.run()),
            Self::EndReplay(outcome) => return outcome.status(),
            Self::Launched { print, tree, .. } => {
                print.iter().for_each(PrintBuffer::print);
                if let Some(tree) = tree {
                    return tree.run();
                }
            }
        }
        cl::CL_COMPLETE as cl_int
    }
}

/// Contents that a pending command needs from other memories.
pub struct Migration {
    parts: Vec<(Ref<Mem>, Part)>,
    memory: MemoryIndex,
    error: OnceLock<ClError>,
}

impl Migration {
    /// Lists the contents that a command needs copied to a memory of its context.
    pub fn new(work: &Work, memory: MemoryIndex) -> Self {
        let (mut parts, error) = (Vec::new(), OnceLock::new());
        let listed = work.contents(|mem, part, touch| {
            if !mem.is_prepared(memory, part, touch) {
                parts.push((mem.clone(), part.clone()));
            }
            Ok(())
        });
        if let Err(failed) = listed {
            let _ = error.set(failed);
        }
        Self {
            parts,
            memory,
            error,
        }
    }

    /// Copies the contents. They become the command's when it is encoded.
    fn run(&self) {
        let migrate = |(mem, part): &(Ref<Mem>, Part)| mem.prepare(self.memory, part, Touch::Read);
        if let Err(failed) = self.parts.iter().try_for_each(migrate) {
            let _ = self.error.set(failed);
        }
    }

    /// Returns the error that prevented the contents from being copied.
    pub fn error(&self) -> Option<&ClError> {
        self.error.get()
    }
}

/// Copies a region between two places in host memory.
///
/// # Safety
/// Every row of the region must be readable from `src` and writable from `dst` on.
pub unsafe fn copy_region(src: usize, dst: usize, region: &BufferCopy) {
    for slice in 0..region.slices {
        for row in 0..region.rows {
            let from =
                region.src_offset + slice * region.src_slice_pitch + row * region.src_row_pitch;
            let to =
                region.dst_offset + slice * region.dst_slice_pitch + row * region.dst_row_pitch;
            let (from, to) = (
                src.wrapping_add(from as usize),
                dst.wrapping_add(to as usize),
            );
            // SAFETY: the caller vouches for every row.
            unsafe { copy::copy(from, to, region.bytes as usize) };
        }
    }
}

/// A task of the host executor.
pub struct Task {
    /// The value of the timeline at which the task is due.
    pub value: u64,
    /// Its number, 0: not counted.
    pub seq: u64,
    /// The work.
    pub action: Option<HostAction>,
    /// The event to complete.
    pub event: Option<Ref<Event>>,
    /// The queue, kept alive until the task is done.
    pub owner: Arc<dyn Owner>,
    /// The batch could not be submitted.
    pub failed: Option<cl_int>,
    /// The number of a pending command that waits for the value.
    pub command: Option<u64>,
}

impl Task {
    /// Returns a task of a queue that is due at a value, and does nothing then.
    pub fn at(value: u64, owner: Arc<dyn Owner>) -> Self {
        Self {
            value,
            seq: 0,
            action: None,
            event: None,
            owner,
            failed: None,
            command: None,
        }
    }
}

/// How long the thread waits for the timeline before it looks for tasks that are due earlier.
const SLICE: Duration = Duration::from_millis(1);
/// How long the thread stays without a task.
const IDLE: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Inbox {
    tasks: Vec<Task>,
    /// There is a thread, which sees what is added.
    thread: bool,
    /// When somebody last said that tasks would come.
    expected: Option<Instant>,
    /// Tasks that will come when their batch is submitted, for which the thread stays.
    promised: usize,
    /// The queue is gone.
    closed: bool,
}

/// The executor of a queue.
pub struct Executor {
    inbox: Mutex<Inbox>,
    /// Tasks that the thread has taken. No other locks it.
    due: Mutex<Due>,
    arrived: Condvar,
    progress: Arc<Progress>,
}

impl Executor {
    /// Creates an executor without a thread.
    pub fn new(progress: Arc<Progress>) -> Arc<Self> {
        Arc::new(Self {
            inbox: Mutex::default(),
            due: Mutex::default(),
            arrived: Condvar::new(),
            progress,
        })
    }

    /// Starts the thread if it is not running, for tasks that are posted within [`IDLE`]. A forked
    /// child does not have it.
    pub fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let mut inbox = self.inbox.lock();
        inbox.expected = Some(Instant::now());
        if inbox.thread {
            return Ok(());
        }
        forked::needs_threads();
        let executor = self.clone();
        sync::spawn("pumice-host", move || executor.run())?;
        inbox.thread = true;
        Ok(())
    }

    /// Keeps the thread alive for a task that is posted when its batch is submitted.
    /// [`Executor::start`] has succeeded just before.
    pub fn promise(&self) {
        self.inbox.lock().promised += 1;
    }

    /// Adds tasks, of which `promised` were announced. For others [`Executor::start`] has succeeded
    /// just before.
    pub fn post(&self, tasks: impl IntoIterator<Item = Task>, promised: usize) {
        let mut inbox = self.inbox.lock();
        inbox.tasks.extend(tasks);
        inbox.promised = inbox.promised.saturating_sub(promised);
        drop(inbox);
        self.arrived.notify_one();
    }

    /// Ends the thread when it has done what is posted.
    pub fn close(&self) {
        self.inbox.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Waits for tasks. Returns none when none will come, or none has come for a while: the thread ends.
    fn receive(&self) -> Vec<Task> {
        let mut inbox = self.inbox.lock();
        loop {
            if !inbox.tasks.is_empty() {
                return std::mem::take(&mut inbox.tasks);
            }
            let timed_out = !inbox.closed && self.arrived.wait_for(&mut inbox, IDLE).timed_out();
            let expected = inbox.expected.is_some_and(|at| at.elapsed() < IDLE);
            let over = inbox.closed || timed_out && !expected && inbox.promised == 0;
            if over && inbox.tasks.is_empty() {
                inbox.thread = false;
                return Vec::new();
            }
        }
    }

    fn run(self: &Arc<Self>) {
        loop {
            let idle = self.due.lock().tasks.is_empty();
            let arrived = match idle {
                true => self.receive(),
                false => std::mem::take(&mut self.inbox.lock().tasks),
            };
            if !self.add_all(arrived) {
                return;
            }
            let Some(value) = self.due.lock().first() else {
                return;
            };
            if let Some(status) = self.wait_for(value) {
                // What has come meanwhile may be due before it.
                let arrived = std::mem::take(&mut self.inbox.lock().tasks);
                if !self.add_all(arrived) {
                    return;
                }
                let task = self.due.lock().take();
                if task.is_some_and(|task| !self.perform(task, status)) {
                    return;
                }
            }
        }
    }

    /// Adds tasks that have arrived. Marks each as submitted, which some callbacks are for. Returns false if another thread
    /// has taken over.
    fn add_all(self: &Arc<Self>, tasks: Vec<Task>) -> bool {
        let mut submitted = Vec::new();
        for task in tasks {
            if let (Some(event), None) = (&task.event, task.failed) {
                submitted.extend(event.submitted_callbacks());
            }
            self.due.lock().add(task);
        }
        let Some(_call) = (!submitted.is_empty()).then(Call::enter).flatten() else {
            return true;
        };
        self.call_back(|| {
            for callbacks in submitted {
                guarded("a callback", || callbacks.run());
            }
        })
    }

    /// Runs what may call the application back. Returns false if it has waited, so that another thread has taken over.
    fn call_back(self: &Arc<Self>, callbacks: impl FnOnce()) -> bool {
        let executor = self.clone();
        blocking::handing_over(
            move || {
                let executor = executor.clone();
                sync::spawn("pumice-host", move || executor.run())
            },
            callbacks,
        )
    }

    /// Waits for a value of the timeline, for [`SLICE`] at most. Returns the status of what is due then, when the value is
    /// reached or never will be.
    fn wait_for(&self, value: u64) -> Option<cl_int> {
        let Some(_call) = Call::enter() else {
            return Some(cl::CL_OUT_OF_RESOURCES);
        };
        match self.progress.timeline.wait(value, Some(SLICE)) {
            Ok(true) => Some(cl::CL_COMPLETE as cl_int),
            Ok(false) => None,
            Err(error) => Some(ClError::from(error).code),
        }
    }

    /// Runs a task that is due. Returns false if another thread has taken over.
    fn perform(self: &Arc<Self>, task: Task, reached: cl_int) -> bool {
        let progress = &self.progress;
        let Task {
            value,
            seq,
            action,
            event,
            owner,
            failed,
            command,
        } = task;
        let Some(_call) = Call::enter() else {
            // The process is ending; what holds on to memory of the device is left.
            let after = event
                .as_ref()
                .map(|event| event.settle(cl::CL_OUT_OF_RESOURCES));
            std::mem::forget((after, action, event, owner));
            return true;
        };
        let mut status = failed.unwrap_or(reached);
        if status >= 0 {
            status = progress.status(value);
        }
        if let (Some(action), true) = (&action, status >= 0) {
            if !guarded("the host's part of a command", || status = action.run()) {
                status = cl::CL_OUT_OF_RESOURCES;
            }
            if let (Some(event), true) = (&event, owner.measures()) {
                match action {
                    HostAction::Launched { tree: Some(_), .. } => event.set_children_end(now_ns()),
                    _ => event.set_host_end(now_ns()),
                }
            }
        }
        drop(action);
        let after = event.as_ref().map(|event| event.settle(status));
        if seq > 0 {
            progress.set_host_done(seq);
        }
        self.call_back(|| {
            guarded("a command that waited", || {
                if let Some(command) = command {
                    owner.dependencies_met(&[command]);
                    wake([owner.clone()]);
                }
                if seq > 0 && progress.host_watched() {
                    owner.host_task_done();
                    wake([owner.clone()]);
                }
                if let Some(after) = after {
                    after.run();
                }
            });
        })
    }
}

/// Tasks that have come, by when they are due: a value of the timeline, then the order in which they came.
#[derive(Default)]
struct Due {
    tasks: BTreeMap<(u64, u64), Task>,
    came: u64,
    /// When the last task with a sequence number is due: the next one not before.
    counted: u64,
}

impl Due {
    fn add(&mut self, task: Task) {
        // The timeline never comes to what was not submitted.
        let mut value = if task.failed.is_some() { 0 } else { task.value };
        if task.seq > 0 {
            self.counted = self.counted.max(value);
            value = self.counted;
        }
        self.came += 1;
        self.tasks.insert((value, self.came), task);
    }

    fn first(&self) -> Option<u64> {
        self.tasks.keys().next().map(|(value, _)| *value)
    }

    fn take(&mut self) -> Option<Task> {
        self.tasks.pop_first().map(|(_, task)| task)
    }
}
