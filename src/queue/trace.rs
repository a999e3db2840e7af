//! Commands on the timeline of `PUMICE_TRACE`: each as a slice in a lane of its queue's device, with an arrow from the call that
//! enqueued it.
//!
//! While a timeline is written all queues measure times, and every command has an event, which stands here until it is over.
//! Whoever collects (the thread that writes the file, and calls that have waited) takes the times and lets the event go. What is
//! enqueued and not over is bounded by [`MOST`]: beyond, the oldest commands of the queue are left out.

use crate::cl;
use crate::command::{Command, Launch, Work};
use crate::handle::Ref;
use crate::object::event::Event;
use crate::util::trace::{self, Row};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

/// Commands that are waited for, of one queue.
const MOST: usize = 1 << 15;
/// The process id that the trace gives the first device.
const FIRST_DEVICE: u32 = 1 << 30;
/// Lanes of a queue: more commands do not run at the same time, or share the last.
const LANES: u32 = 64;

/// A command that was enqueued.
struct Waiting {
    event: Ref<Event>,
    name: String,
    details: String,
    /// The thread that enqueued it, and when.
    from: (Row, u64),
}

/// A queue with commands.
struct Lanes {
    /// In place of the process: the device.
    device: u32,
    /// The first of its lanes. From 1: viewers take a thread 0 for the main thread of its process, and number it like that.
    first: u32,
    /// When the last command of each lane was over.
    ends: Vec<u64>,
    waiting: VecDeque<Waiting>,
    /// Commands that there was no room for.
    lost: u64,
}

/// The devices and queues that a trace has named so far.
#[derive(Default)]
struct TracedQueues {
    devices: Vec<usize>,
    /// By their handles.
    queues: BTreeMap<usize, Lanes>,
    /// Queues that there have been.
    count: u32,
}

static TRACED: Mutex<TracedQueues> = Mutex::new(TracedQueues {
    devices: Vec::new(),
    queues: BTreeMap::new(),
    count: 0,
});
/// Held by who collects: in turn, so that lanes are filled in order.
static COLLECTING: Mutex<()> = Mutex::new(());
/// The number of the last arrow.
static ARROWS: AtomicU64 = AtomicU64::new(0);

/// Records that a queue is in use.
pub fn begin() {
    trace::set_collector(collect);
}

/// Adds a command to the trace when it is complete.
pub fn add(event: &Ref<Event>, command: (String, String), queued: u64) {
    let Some(owner) = event.owner() else { return };
    let (handle, (name, details)) = (owner.handle() as usize, command);
    let waiting = Waiting {
        event: event.clone(),
        name,
        details,
        from: (trace::this_thread(), queued),
    };
    let mut known = TRACED.lock();
    let TracedQueues {
        devices,
        queues,
        count,
    } = &mut *known;
    let queue = queues.entry(handle).or_insert_with(|| {
        let device = owner.device();
        let of = std::sync::Arc::as_ptr(device) as usize;
        let index = devices.iter().position(|known| *known == of);
        let index = index.unwrap_or_else(|| {
            devices.push(of);
            devices.len() - 1
        });
        let number = FIRST_DEVICE + index as u32;
        trace::name_process(number, &device.caps().name);
        *count += 1;
        Lanes {
            device: number,
            first: (*count - 1) * LANES + 1,
            ends: Vec::new(),
            waiting: VecDeque::new(),
            lost: 0,
        }
    });
    queue.waiting.push_back(waiting);
    let mut dropped = None;
    if queue.waiting.len() > MOST {
        dropped = queue.waiting.pop_front();
        queue.lost += 1;
    }
    drop(known);
    // This may be the last reference to a queue.
    drop(dropped);
}

/// Writes the commands that are complete.
fn collect() {
    let Some(_turn) = COLLECTING.try_lock() else {
        return;
    };
    let mut over = Vec::new();
    {
        let mut known = TRACED.lock();
        for (handle, queue) in &mut known.queues {
            let waiting = &mut queue.waiting;
            while waiting.front().is_some_and(|first| first.event.is_over()) {
                over.extend(waiting.pop_front().map(|one| (*handle, one)));
            }
        }
    }
    for (handle, one) in over {
        let times = one.event.measured();
        let mut known = TRACED.lock();
        if let Some(queue) = known.queues.get_mut(&handle) {
            queue.write(&one, times);
        }
        drop(known);
        drop(one);
    }
    // A queue whose commands have all been entered may be gone, and another one have its handle. Its lanes stay.
    let mut known = TRACED.lock();
    known.queues.retain(|handle, queue| {
        let handle = *handle as *const std::ffi::c_void;
        !queue.waiting.is_empty() || crate::handle::lookup::<super::Queue>(handle).is_ok()
    });
}

impl Lanes {
    /// Writes the slices of a command. `times`: queued, submit, start and end, or the status if
    /// there are none.
    fn write(&mut self, one: &Waiting, times: Result<[u64; 4], cl::cl_int>) {
        let ([queued, submit, start, end], status) = match times {
            Ok(times) => (times, Cow::Borrowed("complete")),
            Err(status) => {
                let now = crate::util::monotonic_ns();
                let status = format!("failed ({status})").into();
                ([one.from.1, now, now, now], status)
            }
        };
        let lane = self.ends.iter().position(|last| *last <= start);
        let lane = lane.unwrap_or(self.ends.len()).min(LANES as usize - 1);
        let row = Row {
            process: self.device,
            thread: self.first + lane as u32,
        };
        match self.ends.get_mut(lane) {
            Some(last) => *last = end.max(*last),
            None => {
                let number = self.first / LANES + 1;
                let beside = if lane > 0 { ", beside" } else { "" };
                trace::name_thread(row, &format!("queue {number}{beside}"));
                self.ends.push(end);
            }
        }
        let microseconds = |from: u64, to: u64| {
            let time = to.saturating_sub(from) as f64 / 1e3;
            Cow::Owned(format!("{time:.1} us"))
        };
        let mut details = vec![
            ("details", Cow::Borrowed(one.details.as_str())),
            ("queued to submitted", microseconds(queued, submit)),
            ("submitted to started", microseconds(submit, start)),
            ("status", status),
        ];
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            details.push((
                "commands before it that are missing here",
                lost.to_string().into(),
            ));
        }
        trace::slice(row, "command", &one.name, (start, end), &details);
        let number = ARROWS.fetch_add(1, Ordering::Relaxed) + 1;
        trace::arrow(number, one.from, (row, start));
    }
}

/// Returns the name of a command, and its details.
pub fn describe(command: &Command) -> (String, String) {
    let name = match &command.work {
        Work::Launch(launch) => &launch.kernel.code.interface().name,
        Work::Transfer { write: true, .. } => "write",
        Work::Transfer { .. } => "read",
        Work::Copy { .. } => "copy",
        Work::Fill { .. } => "fill",
        Work::TransferImage { write: true, .. } => "write image",
        Work::TransferImage { .. } => "read image",
        Work::CopyImage { .. } => "copy image",
        Work::CopyTexels { to_image: true, .. } => "copy buffer to image",
        Work::CopyTexels { .. } => "copy image to buffer",
        Work::FillImage { .. } => "fill image",
        Work::Map { .. } => "map",
        Work::Unmap { .. } => "unmap",
        Work::Migrate { .. } => "migrate",
        Work::Host(_) => "by the host",
        Work::Native(_) => "native kernel",
        Work::Replay(_) => "command buffer",
        Work::Handover { acquire: true, .. } => "acquire",
        Work::Handover { .. } => "release",
        Work::Semaphores { .. } | Work::Marker => match command.kind {
            cl::CL_COMMAND_MARKER => "marker",
            cl::CL_COMMAND_SEMAPHORE_WAIT_KHR => "wait for semaphores",
            cl::CL_COMMAND_SEMAPHORE_SIGNAL_KHR => "signal semaphores",
            _ => "nothing",
        },
        Work::Barrier => "barrier",
    };
    let bytes = |bytes: u64| format!("{bytes} bytes");
    let details = match &command.work {
        Work::Launch(Launch { grid, .. }) => {
            let dims = (grid.dims as usize).clamp(1, 3);
            let (global, local) = (&grid.global[..dims], &grid.local[..dims]);
            let count = grid.dispatches.len();
            format!("global size {global:?}, local size {local:?}, {count} dispatches")
        }
        Work::Transfer { region, .. } | Work::Copy { region, .. } => bytes(region.total()),
        Work::TransferImage { rows, .. } => bytes(rows.total()),
        Work::Fill { size, .. } => bytes(*size),
        _ if matches!(name, "by the host" | "nothing") => format!("command {:#x}", command.kind),
        Work::Replay(replay) => format!("{} commands", replay.commands.len()),
        _ => String::new(),
    };
    (name.to_owned(), details)
}
