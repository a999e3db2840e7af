//! Kernels that kernels enqueue (OpenCL API specification, "Device-Side Enqueue"): a launch of the application's and all that it leads to,
//! a *tree*, is one task of the queue's host thread.
//!
//! ```text
//! launch ends -> records taken from the device queues -> children: ready, or waiting for device events
//!    ^                                                       |
//!    +---- a batch of ready children on a stream of our own <-+
//! ```
//!
//! The host thread launches children in batches, on a stream that belongs to no queue, until none is left; then the
//! launch's event completes. So no child begins before its parent has ended, whatever its flags say, which all of them
//! allow. Nothing recurses: a parent that has ended keeps a few words until its children are over ([`Node`]).
//!
//! Later commands of an in-order queue, or of one with a barrier, are held until the task is done (`hazards`). Other queues may
//! meanwhile run kernels that set the events which a tree waits for.

use super::encode::dispatches::{record_launch, Uses};
use super::encode::recorder::Recorder;
use super::host::print_buffers::{PrintBuffer, PrintBuffers};
use super::transfer::staging::{Piece, Pool, UNBOUNDED};
use crate::backend::device_queue::{Found, QueueMemory, Record};
use crate::backend::spare_stream::SpareStream;
use crate::backend::{Op, OrderRule, Placement, Point};
use crate::cl::{self, cl_int};
use crate::command::kernel::{nd_range, LaunchPlan, NdRange};
use crate::command::{Launch, QueueTarget, Work};
use crate::error::{ClError, ClResult};
use crate::object::device_queue::default_of;
use crate::object::device_side::{Inbox, UnderWay};
use crate::object::event::now_ns;
use crate::object::kernel::BlockLaunch;
use crate::object::launch::Enqueues;
use crate::object::mem::queue_images::Identity;
use crate::util::shutdown;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use spirv_lowering::device_queue::record;
use spirv_lowering::ir::module::PrintfSite;
use std::collections::hash_map::Entry;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Children in a batch at most.
const BATCH: usize = 256;
/// The children in a batch at most, if they print.
const PRINTING: usize = 16;
/// How long a record that another launch is writing is waited for at most. Kernels that take longer are seldom, and the word
/// may never come: kernels can write to a queue what they like.
const PATIENCE: Duration = Duration::from_secs(120);
/// The part of [`PATIENCE`] for which the thread gives the processor away for no more than a moment.
const SHORT: Duration = Duration::from_millis(1);

/// A launch of the application's that may enqueue kernels.
pub struct LaunchTree {
    target: QueueTarget,
    enqueues: Arc<Enqueues>,
    /// All queues that its kernels can know.
    queues: Vec<Arc<QueueMemory>>,
    /// The address of the default one, 0: none.
    default: u64,
    number: u32,
    inbox: Arc<Inbox>,
    printing: Arc<PrintBuffers>,
    /// When its first launch has ended.
    begun: Point,
    /// Until that launch has ended.
    first: Mutex<Option<UnderWay>>,
    /// The memory with what the first kernel knows of device queues.
    pub(super) state: Piece,
    /// The identity by which the tree has images of its own: it runs on another stream than the launches of its queue.
    identity: Identity,
}

impl LaunchTree {
    /// Creates a tree whose first launch has the number 0. `room` allocates memory for the
    /// device-queue state of that launch.
    pub fn new(
        target: &QueueTarget,
        enqueues: &Arc<Enqueues>,
        printing: Arc<PrintBuffers>,
        begun: Point,
        room: impl FnOnce(u64) -> ClResult<Piece>,
    ) -> ClResult<Self> {
        let on_device = &enqueues.on_device;
        let (number, inbox) = on_device.tree();
        let default = default_of(on_device);
        let default = default.map_or(0, |queue| queue.memory.address());
        let bytes = enqueues.state(&target.device, default, u64::from(number) << 32);
        let piece = room(bytes.len() as u64).inspect_err(|_| on_device.forget(number))?;
        piece.write(&bytes);
        Ok(Self {
            target: target.clone(),
            enqueues: enqueues.clone(),
            queues: on_device.queues(),
            default,
            number,
            inbox,
            printing,
            begun,
            first: Mutex::new(Some(on_device.under_way())),
            state: piece,
            identity: Identity::default(),
        })
    }

    /// Launches all that the first launch, which has ended, has led to, and waits for it. The status of the launch.
    pub fn run(&self) -> cl_int {
        drop(self.first.lock().take());
        let device = self.target.device.backend.as_ref();
        let mut stream = match SpareStream::new(device) {
            Ok(stream) => stream,
            Err(error) => return ClError::from(error).code,
        };
        stream.wait_for(&self.begun);
        let first = Node {
            parent: NONE,
            ended: true,
            ..Node::default()
        };
        let mut children = Children {
            tree: self,
            stream,
            memory: Pool::new(Placement::HostWrite, 64 << 10, UNBOUNDED),
            nodes: [(0, first)].into_iter().collect(),
            last: 0,
            ended: Vec::new(),
            ready: VecDeque::new(),
            own: FxHashSet::default(),
            blocked: FxHashMap::default(),
            foreign: FxHashMap::default(),
            captures: FxHashMap::default(),
            times: Vec::new(),
            status: cl::CL_COMPLETE as cl_int,
        };
        match children.run() {
            Ok(()) => {
                let status = children.status;
                let timeline = children.stream.timeline().clone();
                if let Ok(value) = timeline.completed() {
                    let point = Point { timeline, value };
                    self.enqueues.on_device.note_tree(point);
                }
                children.stream.give_back();
                status
            }
            Err(error) => error.code,
        }
    }
}

impl Drop for LaunchTree {
    fn drop(&mut self) {
        self.enqueues.on_device.forget(self.number);
        // Of a launch that never came to be, or failed.
        for (found, queue) in self.inbox.take() {
            queue.forget(found);
        }
    }
}

/// No node.
const NONE: u32 = u32::MAX;

/// A launch that has been made, until it and its children are over.
#[derive(Default)]
struct Node {
    parent: u32,
    /// Children that are not over.
    open: u32,
    ended: bool,
    /// Its device event, 0: none.
    event: u64,
    /// When it began and ended, in nanoseconds.
    start: u64,
    end: u64,
    status: cl_int,
}

/// A record that is to be carried out.
struct Child {
    record: Record,
    queue: Arc<QueueMemory>,
    parent: u32,
    /// How many events of the wait list are complete.
    waited: usize,
}

/// A tree at work.
struct Children<'f> {
    tree: &'f LaunchTree,
    stream: SpareStream<'f>,
    memory: Pool,
    /// By number. That of the application's launch is 0.
    nodes: FxHashMap<u32, Node>,
    /// The number of the last one.
    last: u32,
    /// Nodes that have ended since their children were last counted.
    ended: Vec<u32>,
    ready: VecDeque<Child>,
    /// Events of children that are not over.
    own: FxHashSet<u64>,
    /// Children by the event of the tree that they wait for.
    blocked: FxHashMap<u64, Vec<Child>>,
    /// By the event that something else completes.
    foreign: FxHashMap<u64, Vec<Child>>,
    /// Where kernels want the times of events.
    captures: FxHashMap<u64, Vec<u64>>,
    /// Times that are to be written, and where.
    times: Vec<(u64, [u64; 2])>,
    /// The status of the tree: the first failure.
    status: cl_int,
}

impl Children<'_> {
    fn run(&mut self) -> ClResult {
        let on_device = &self.tree.enqueues.on_device;
        // The first kernel has ended.
        on_device.note_ended();
        loop {
            self.tree.target.context.ensure_works()?;
            let known = on_device.ended();
            self.collect();
            for (found, queue) in self.tree.inbox.take() {
                self.accept(found, queue);
            }
            while let Some(node) = self.ended.pop() {
                self.complete_upwards(node);
            }
            self.look_at_foreign();
            if !self.ready.is_empty() || !self.times.is_empty() {
                self.launch_batch()?;
                on_device.note_ended();
            } else if self.blocked.is_empty() && self.foreign.is_empty() {
                return Ok(());
            } else if shutdown::has_begun() {
                return crate::error::err(cl::CL_OUT_OF_RESOURCES, "the process is ending");
            } else {
                on_device.wait_ended(known);
            }
        }
    }

    /// Collects all records of this tree, none of whose launches is running. They may lie after
    /// those of others.
    fn collect(&mut self) {
        let on_device = &self.tree.enqueues.on_device;
        let since = Instant::now();
        let mut dead = None;
        while let Some(stuck) = on_device.collect(&self.tree.queues) {
            let given_up = since.elapsed() > PATIENCE || shutdown::has_begun();
            if given_up || dead.as_ref() == Some(&stuck) {
                stuck.skip();
                if self.status >= 0 {
                    self.status = cl::CL_OUT_OF_RESOURCES;
                }
                continue;
            }
            // What its launch has written is there when that has ended. So if none runs any more, look once again.
            dead = on_device.all_ended().then_some(stuck);
            if dead.is_some() {
                continue;
            }
            match since.elapsed() < SHORT {
                true => std::thread::yield_now(),
                false => on_device.wait_ended(on_device.ended()),
            }
        }
    }

    /// Accepts a record.
    fn accept(&mut self, found: Found, queue: Arc<QueueMemory>) {
        let events = &self.tree.enqueues.on_device.events;
        let Some(record) = queue.read(found) else {
            crate::log!(Error, "a record in a device queue makes no sense");
            return;
        };
        let parent = record.launch as u32;
        let Some(node) = self.nodes.get_mut(&parent) else {
            crate::log!(Error, "a record in a device queue is of no launch");
            queue.free(record.size);
            return;
        };
        if record.kind == record::CAPTURE {
            queue.free(record.size);
            let (event, to) = (record.event, record.range[0]);
            if events.status(event) > 0 && self.own.contains(&event) {
                self.captures.entry(event).or_default().push(to);
            } else {
                self.write_times(event, to);
            }
            return;
        }
        node.open += 1;
        if record.event != 0 {
            self.own.insert(record.event);
        }
        self.place(Child {
            record,
            queue,
            parent,
            waited: 0,
        });
    }

    /// Adds a child to the list for its state: ready, blocked by an event of this tree or of
    /// another, or failed.
    fn place(&mut self, mut child: Child) {
        let events = &self.tree.enqueues.on_device.events;
        while let Some(&event) = child.record.waits.get(child.waited) {
            let status = events.status(event);
            if status < 0 {
                return self.give_up(child, cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
            }
            if status > 0 {
                let list = match self.own.contains(&event) {
                    true => &mut self.blocked,
                    false => &mut self.foreign,
                };
                list.entry(event).or_default().push(child);
                return;
            }
            child.waited += 1;
        }
        self.ready.push_back(child);
    }

    /// Processes children whose events were completed by others.
    fn look_at_foreign(&mut self) {
        if self.foreign.is_empty() {
            return;
        }
        let events = &self.tree.enqueues.on_device.events;
        let (own, foreign) = (&self.own, &mut self.foreign);
        let known: Vec<u64> = foreign
            .keys()
            .filter(|event| events.status(**event) <= 0 || own.contains(event))
            .copied()
            .collect();
        for event in known {
            for child in self.foreign.remove(&event).unwrap_or_default() {
                self.place(child);
            }
        }
    }

    /// Removes a child from its queue, since it no longer waits for anything.
    fn leave_queue(&self, child: &Child) {
        let events = &self.tree.enqueues.on_device.events;
        child.queue.free(child.record.size);
        child.record.waits.iter().for_each(|&e| events.release(e));
    }

    /// Ends a child that will not be launched.
    fn give_up(&mut self, child: Child, status: cl_int) {
        self.leave_queue(&child);
        let now = now_ns();
        let node = self.node(&child, now);
        self.end(node, now, status);
    }

    fn node(&mut self, child: &Child, start: u64) -> u32 {
        self.last += 1;
        let node = Node {
            parent: child.parent,
            event: child.record.event,
            start,
            end: start,
            ..Node::default()
        };
        self.nodes.insert(self.last, node);
        self.last
    }

    fn end(&mut self, node: u32, now: u64, status: cl_int) {
        if let Some(found) = self.nodes.get_mut(&node) {
            (found.ended, found.end, found.status) = (true, now, status);
            self.ended.push(node);
        }
    }

    /// Completes a launch that has ended, if its children are complete, and then perhaps the one
    /// that enqueued it.
    fn complete_upwards(&mut self, mut index: u32) {
        let now = now_ns();
        while let Entry::Occupied(entry) = self.nodes.entry(index) {
            let node = entry.get();
            // The first one's event is the host's.
            if !node.ended || node.open > 0 || node.parent == NONE {
                return;
            }
            let Node {
                parent,
                event,
                status,
                start,
                end,
                ..
            } = entry.remove();
            let times = [end - start, now.saturating_sub(start)];
            if event != 0 {
                self.complete(event, status, times);
            }
            if let Some(parent) = self.nodes.get_mut(&parent) {
                parent.open = parent.open.saturating_sub(1);
            }
            index = parent;
        }
    }

    fn complete(&mut self, event: u64, status: cl_int, times: [u64; 2]) {
        let events = &self.tree.enqueues.on_device.events;
        events.complete(event, status, times);
        self.own.remove(&event);
        for to in self.captures.remove(&event).unwrap_or_default() {
            self.write_times(event, to);
        }
        events.release(event);
        for child in self.blocked.remove(&event).unwrap_or_default() {
            self.place(child);
        }
    }

    /// Writes the times of a complete event, of which the record has a reference, with the next
    /// batch.
    fn write_times(&mut self, event: u64, to: u64) {
        let events = &self.tree.enqueues.on_device.events;
        self.times.push((to, events.times(event)));
        events.release(event);
    }

    /// Records that, before the children that waited for those events.
    fn record_times(&mut self) -> ClResult {
        let tree = self.tree;
        let device = tree.target.device.backend.as_ref();
        let writer = &tree.enqueues.on_device.times;
        for (to, times) in self.times.drain(..) {
            if !writer.write(device, &mut *self.stream, to, times)? {
                crate::log!(Warn, "times of a device event could not be written");
            }
        }
        if self.stream.open_len() > 0 {
            self.stream.barrier()?;
        }
        Ok(())
    }

    /// Takes the children of the next batch. If more are ready than fit into one, these are the
    /// youngest, and the oldest of all, so that none waits for ever. Descendants of the youngest
    /// end first, so that a queue holds a few children of each level of a tree instead of a whole
    /// level.
    fn next_batch(&mut self) -> VecDeque<Child> {
        let Some(rest) = self.ready.len().checked_sub(BATCH).filter(|&rest| rest > 0) else {
            return std::mem::take(&mut self.ready);
        };
        let mut next = self.ready.split_off(rest + 1);
        next.extend(self.ready.pop_front());
        next
    }

    /// Launches children that are ready, and waits for them.
    fn launch_batch(&mut self) -> ClResult {
        self.record_times()?;
        let mut next = self.next_batch();
        let start = now_ns();
        let mut launched: SmallVec<[u32; 16]> = SmallVec::new();
        let mut prints: Vec<PrintBuffer> = Vec::new();
        while prints.len() < PRINTING {
            let Some(child) = next.pop_front() else {
                break;
            };
            self.leave_queue(&child);
            let node = self.node(&child, start);
            match self.launch(&child, node) {
                Ok(None) => self.end(node, start, cl::CL_COMPLETE as cl_int),
                Ok(Some(print)) => {
                    launched.push(node);
                    prints.extend(print);
                }
                Err(error) => {
                    crate::log!(Warn, "a kernel enqueued by a kernel failed: {error}");
                    if self.status >= 0 {
                        self.status = error.code;
                    }
                    self.end(node, start, error.code);
                }
            }
        }
        // Those that there was no room to print for.
        self.ready.append(&mut next);
        if launched.is_empty() && self.stream.open_len() == 0 {
            return Ok(());
        }
        let under_way = self.tree.enqueues.on_device.under_way();
        // The next batch sees what this one wrote.
        self.stream.barrier()?;
        let value = self.stream.submit(false)?;
        self.stream.timeline().clone().wait(value, None)?;
        drop(under_way);
        self.stream.reclaim();
        prints.iter().for_each(PrintBuffer::print);
        let now = now_ns().max(start + 1);
        for node in launched {
            self.end(node, now, cl::CL_COMPLETE as cl_int);
        }
        Ok(())
    }

    /// Records a child in the stream; None: there is nothing to do. What it may print to, if it prints.
    fn launch(&mut self, child: &Child, node: u32) -> ClResult<Option<Option<PrintBuffer>>> {
        let record = &child.record;
        if record.kind == record::MARKER {
            return Ok(None);
        }
        let tree = self.tree;
        let captured = self.piece(&record.captured)?;
        let sizes = record.range.map(|size| size as usize);
        let [offset, global, local] = [&sizes[..3], &sizes[3..6], &sizes[6..]];
        let range = NdRange {
            dims: record.dims,
            offset: Some(offset),
            global: Some(global),
            local: Some(local).filter(|local| local[0] != 0),
        };
        let block = BlockLaunch {
            number: record.block,
            captured: &record.captured,
            address: captured.address(),
            locals: &record.locals,
            wide: range.is_wide(),
        };
        let device = &tree.target.device;
        let kernel = tree.enqueues.launch(device, &tree.identity, &block)?;
        let kind = cl::CL_COMMAND_NDRANGE_KERNEL;
        let command =
            nd_range(&tree.target, kernel, &range, kind).and_then(LaunchPlan::make_pipelines)?;
        let Work::Launch(launch) = command.work else {
            return Ok(None);
        };
        self.record_child(&launch, node).map(Some)
    }

    /// Allocates memory with these bytes for the batch.
    fn piece(&mut self, bytes: &[u8]) -> ClResult<Piece> {
        let piece = self.room(bytes.len().max(8) as u64)?;
        piece.write(bytes);
        Ok(piece)
    }

    fn record_child(&mut self, launch: &Launch, node: u32) -> ClResult<Option<PrintBuffer>> {
        let tree = self.tree;
        let enqueue = match &launch.kernel.enqueues {
            Some(enqueues) => {
                let number = u64::from(tree.number) << 32 | u64::from(node);
                let state = enqueues.state(&tree.target.device, tree.default, number);
                self.piece(&state)?.address()
            }
            None => 0,
        };
        let place = (tree.target.memory, &tree.identity);
        record_launch(self, launch, place, &mut Uses::new(), enqueue)
    }
}

impl Recorder for Children<'_> {
    fn room(&mut self, size: u64) -> ClResult<Piece> {
        let device = &self.tree.target.device.backend;
        let value = self.stream.open_value();
        let timeline = self.stream.timeline().as_ref();
        self.memory.take_any(device, size, value, timeline)
    }

    fn print_buffer(&mut self, sites: &Arc<Vec<PrintfSite>>) -> ClResult<PrintBuffer> {
        let device = &self.tree.target.device.backend;
        self.tree.printing.take(device.as_ref(), sites)
    }

    fn barrier(&mut self) -> ClResult {
        Ok(self.stream.barrier()?)
    }

    fn record(&mut self, op: Op<'_>, _timed: bool) -> ClResult {
        self.stream.record(op, OrderRule::Unordered, false)?;
        Ok(())
    }
}
