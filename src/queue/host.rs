//! The host thread of a queue: what has to be done on the host after the device has done its part.
//!
//! One thread a queue, started when it is first needed. It receives tasks, each submitted already, waits for the timeline,
//! does the task's work, completes its event and runs callbacks. Tasks are done in the order of the timeline ([`Due`]),
//! those with a sequence number in that order too, which is what keeps the visible completion of an in-order queue in
//! order. It takes no lock while it waits or calls back. A task that panics fails, with its event; the next one is done all the same.
//!
//! A callback for an event may be asked for when the thread waits for a later one already. So it waits for one batch
//! after another, and looks at what has come meanwhile.

use super::children::Family;
use super::print_buffers::PrintBuffer;
use super::staging::Piece;
use crate::backend::{self, BufferCopy};
use crate::cl::{self, cl_int};
use crate::error::ClError;
use crate::handle::Ref;
use crate::object::event::{now_ns, wake, Event, Owner, Progress};
use crate::object::launch::Kept;
use crate::object::mem::host_work::HostWork;
use crate::util::copy;
use crate::util::forked;
use crate::util::guard::guarded;
use crate::util::leaving::Call;
use crossbeam_channel::{Receiver, Sender};
use spirv_lowering::ir::module::PrintfSite;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Work on the host.
pub enum Action {
    /// Copies from staging to where the application wants it. The source of the region counts from the piece.
    CopyOut {
        #[allow(missing_docs)]
        piece: Piece,
        /// Destination that the region counts from.
        base: usize,
        #[allow(missing_docs)]
        region: BufferCopy,
    },
    /// What a command says.
    Work(Arc<dyn HostWork>),
    /// Prints what a kernel has left in its printf buffer.
    Printf {
        #[allow(missing_docs)]
        buffer: PrintBuffer,
        #[allow(missing_docs)]
        sites: Arc<Vec<PrintfSite>>,
        /// Goes with the action.
        #[allow(dead_code)]
        kept: Option<Kept>,
    },
    /// Launches what a kernel has enqueued.
    Children {
        #[allow(missing_docs)]
        family: Box<Family>,
        /// What the kernel has printed to.
        printf: Option<(PrintBuffer, Arc<Vec<PrintfSite>>)>,
    },
    /// Nothing: what was kept until the device is done may go.
    LetGo(#[allow(dead_code)] Kept),
}

impl Action {
    /// Does it. The status of the command.
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
            Self::LetGo(_) => {}
            Self::Printf { buffer, sites, .. } => buffer.print(sites),
            Self::Children { family, printf } => {
                if let Some((buffer, sites)) = printf {
                    buffer.print(sites);
                }
                return family.run();
            }
        }
        cl::CL_COMPLETE as cl_int
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

/// A task for the host thread.
pub struct Task {
    /// To be done when the timeline has reached this.
    pub value: u64,
    /// Its number, 0: not counted.
    pub seq: u64,
    /// What to do.
    pub action: Option<Action>,
    /// The event to complete.
    pub event: Option<Ref<Event>>,
    /// The queue, kept alive until the task is done.
    pub owner: Arc<dyn Owner>,
    /// The batch could not be submitted.
    pub failed: Option<cl_int>,
}

/// Starts the thread of a queue. Forked children do not have it.
pub fn start(progress: Arc<Progress>) -> std::io::Result<Sender<Task>> {
    forked::needs_threads();
    let (sender, receiver) = crossbeam_channel::unbounded();
    std::thread::Builder::new()
        .name("pumice-host".into())
        .spawn(move || run(&receiver, &progress))?;
    Ok(sender)
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

    /// Takes over what has come. Each task was submitted, which some callbacks want to know.
    fn add_all(&mut self, tasks: &Receiver<Task>) {
        while let Ok(task) = tasks.try_recv() {
            self.welcome(task);
        }
    }

    fn welcome(&mut self, task: Task) {
        if let (Some(event), None, Some(_call)) = (&task.event, task.failed, Call::enter()) {
            guarded("a callback", || event.submitted_callbacks().run());
        }
        self.add(task);
    }

    fn first(&self) -> Option<u64> {
        self.tasks.keys().next().map(|(value, _)| *value)
    }

    fn take(&mut self) -> Option<Task> {
        self.tasks.pop_first().map(|(_, task)| task)
    }
}

thread_local! {
    static IS_HOST_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// This thread is that of a queue: tasks of others may be waiting for it.
pub fn is_host_thread() -> bool {
    IS_HOST_THREAD.get()
}

fn run(tasks: &Receiver<Task>, progress: &Arc<Progress>) {
    IS_HOST_THREAD.set(true);
    let mut due = Due::default();
    loop {
        if due.tasks.is_empty() {
            match tasks.recv() {
                Ok(task) => due.welcome(task),
                Err(_) => return,
            }
        }
        due.add_all(tasks);
        let reached = match due.first() {
            Some(value) => come_nearer(progress, value),
            None => continue,
        };
        if let Some(status) = reached {
            // What has come meanwhile may be due before it.
            due.add_all(tasks);
            if let Some(task) = due.take() {
                perform(task, status, progress);
            }
        }
    }
}

/// Waits for a value of the timeline, or for the next batch on the way there. Gives the status of what was to be done by
/// then when it is reached, or never will be.
fn come_nearer(progress: &Progress, value: u64) -> Option<cl_int> {
    let Some(_call) = Call::enter() else {
        return Some(cl::CL_OUT_OF_RESOURCES);
    };
    let step = || -> backend::Result<bool> {
        if progress.timeline.wait(value, Some(Duration::ZERO))? {
            return Ok(true);
        }
        let next = (progress.timeline.completed()? + 1).min(value);
        progress.timeline.wait(next, None)?;
        Ok(next == value)
    };
    match step() {
        Ok(true) => Some(cl::CL_COMPLETE as cl_int),
        Ok(false) => None,
        Err(error) => Some(ClError::from(error).code),
    }
}

/// Does a task whose time has come.
fn perform(task: Task, reached: cl_int, progress: &Progress) {
    let Task {
        seq,
        action,
        event,
        owner,
        failed,
        ..
    } = task;
    let Some(_call) = Call::enter() else {
        // The process is ending; what holds on to memory of the device is left.
        let after = event
            .as_ref()
            .map(|event| event.settle(cl::CL_OUT_OF_RESOURCES));
        std::mem::forget((after, action, event, owner));
        return;
    };
    let mut status = failed.unwrap_or(reached);
    if let (Some(action), true) = (&action, status >= 0) {
        if !guarded("the host's part of a command", || status = action.run()) {
            status = cl::CL_OUT_OF_RESOURCES;
        }
        if let (Some(event), true) = (&event, owner.measures()) {
            match action {
                Action::Children { .. } => event.set_children_end(now_ns()),
                _ => event.set_host_end(now_ns()),
            }
        }
    }
    drop(action);
    let after = event.as_ref().map(|event| event.settle(status));
    if seq > 0 {
        progress.set_host_done(seq);
    }
    if let Some(after) = after {
        guarded("a callback", || after.run());
    }
    if seq > 0 && progress.held() > 0 {
        guarded("a command that waited", || wake([owner.clone()]));
    }
    drop(event);
    // This may be the last reference to the queue, whose end also ends this thread.
    drop(owner);
}
