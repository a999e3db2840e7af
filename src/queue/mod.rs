//! Command queues.
//!
//! # The contract of a queue
//! 1. An event is complete when its own command is, never later because of a command behind it, but for brief ones that
//!    cannot wait for anything and take a tenth of a millisecond together (`state::BriefCommands`).
//! 2. A call that may not block waits for no device, nor for a thread that does. Who blocks holds no lock.
//! 3. What is enqueued after a wait has begun does not prolong it.
//! 4. A failure ends its command with its own code, and what waits for that with
//!    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST; nothing else.
//! 5. An operation on n pending commands costs what its own dependencies cost, and memory in use is bounded by what the
//!    application handed over.
//!
//! Nothing is promised of commands of one out-of-order queue beside one another: the specification lets a device run them one
//! after the other, and the CPU device does. A command that runs for ever holds up those enqueued after it in its queue; one
//! that waits for an event does not.
//!
//! # The states of a command
//! ```text
//! enqueue --dependencies--> PENDING --all met, place reached--> encoder
//!    |                         ^                                  |  |
//!    \-------- none -----------|---------- no room --------------/  v
//!                              |                             RECORDED in the open batch
//!    failed <-- a dependency --/                                  v submit
//!                                                            SUBMITTED (timeline value of its own)
//!                                  host executor <-- value reached --> done
//!                                        \--> host task, callbacks, pending commands notified
//! ```
//!
//! # Parts
//! - `pending`, `dependencies`, `pump`: commands that wait, with counted dependencies.
//! - `hazards`: host tasks against commands: RAW, WAR, WAW.
//! - `encode`, `transfer`: commands become operations of the stream, with bounded staging memory. `encode::replay`: recorded
//!   ones.
//! - `host`: the executor of host tasks and callbacks.
//! - `device_enqueue`: kernels that kernels enqueue.
//! - `semaphores`: commands that wait for semaphores and signal them.
//! - `state`: what the lock protects.
//!
//! # How it is kept
//! - Each command whose event somebody holds has a value of its own on the timeline, or one with brief commands behind it
//!   ([`QueueState::end_command`]).
//! - A stream waits only for points that are submitted: a queue that another one is to wait for is flushed first.
//! - In an in-order queue nothing is encoded while something before it is pending.
//! - An event is complete when the timeline is at its value *and* the host tasks of the queue up to its own are done, so
//!   completion in an in-order queue is seen in order.
//! - The queue's lock is never held while another queue's is taken, while application code runs, while a memory object may
//!   die, or while the device is waited for.
//! - Whatever resolves a pending command encodes *and submits* it, so waiting for it needs no flush.

mod dependencies;
mod device_enqueue;
mod encode;
mod enqueue;
mod gl;
mod hazards;
mod host;
mod info;
mod pending;
mod pump;
mod semaphores;
mod state;
mod trace;
mod transfer;

#[cfg(test)]
mod tests;

use crate::backend::{OrderRule, ProfileSlot, StreamDesc, Throttle};
use crate::cl::{self, cl_command_queue_properties, cl_int, cl_queue_properties};
use crate::command::{sync, QueueTarget};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::{self, Body, Kind, Object, Ref};
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::device_queue::DeviceQueue;
use crate::object::event::{ContextQueue, Event, Owner, Progress};
use crate::object::properties::{pairs, unsupported};
use crate::util::lock::{rank, Mutex, MutexGuard};
use host::Task;
use state::QueueState;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;

/// A command queue.
pub struct Queue {
    /// The target that commands for this queue are checked against.
    pub target: QueueTarget,
    /// CL_QUEUE_PROPERTIES.
    pub properties: cl_command_queue_properties,
    measuring: bool,
    /// CL_QUEUE_PROPERTIES_ARRAY: the application's list, or an empty one.
    pub list: Vec<cl_queue_properties>,
    progress: Arc<Progress>,
    state: Mutex<QueueState, { rank::QUEUE }>,
    /// Profiled operations whose event is gone, and when they are done, in that order.
    unwanted: Mutex<VecDeque<(u64, ProfileSlot)>, { rank::UNWANTED_TIMES }>,
}

impl Body for Queue {
    const KIND: Kind = Kind::Queue;
}

const HOST_PROPERTIES: cl_command_queue_properties =
    cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl::CL_QUEUE_PROFILING_ENABLE;
const DEVICE_PROPERTIES: cl_command_queue_properties =
    cl::CL_QUEUE_ON_DEVICE | cl::CL_QUEUE_ON_DEVICE_DEFAULT;

fn check_bits(bits: cl_command_queue_properties) -> ClResult {
    let has = |bit: cl_command_queue_properties| bits & bit != 0;
    ensure!(
        !has(!(HOST_PROPERTIES | DEVICE_PROPERTIES)),
        cl::CL_INVALID_VALUE,
        "unknown queue properties"
    );
    let on_device = has(cl::CL_QUEUE_ON_DEVICE);
    ensure!(
        on_device || !has(cl::CL_QUEUE_ON_DEVICE_DEFAULT),
        cl::CL_INVALID_VALUE,
        "CL_QUEUE_ON_DEVICE_DEFAULT without CL_QUEUE_ON_DEVICE"
    );
    ensure!(
        !on_device || has(cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
        cl::CL_INVALID_VALUE,
        "a device queue must be out of order"
    );
    Ok(())
}

/// The queue that clCreateCommandQueueWithProperties makes.
pub enum Created {
    /// A queue of the host's.
    Host(Ref<Queue>),
    /// A device queue.
    Device(Ref<DeviceQueue>),
}

/// The properties of a queue that is to be made.
#[derive(Default)]
struct Wanted {
    bits: cl_command_queue_properties,
    stream: StreamDesc,
    size: Option<cl_queue_properties>,
}

/// Implements clCreateCommandQueueWithProperties. `list` with its closing zero; empty if there is
/// none.
pub fn create(
    context: &Ref<Context>,
    device: &Ref<Device>,
    list: Vec<cl_queue_properties>,
) -> ClResult<Created> {
    let index = context.device_index(device)?;
    let Wanted { bits, stream, size } = Wanted::read(&list)?;
    if bits & cl::CL_QUEUE_ON_DEVICE != 0 {
        // "if ... the CL_QUEUE_PRIORITY_KHR property is specified, and the queue is a CL_QUEUE_ON_DEVICE"; the same of the
        // throttle.
        let hints = [cl::CL_QUEUE_PRIORITY_KHR, cl::CL_QUEUE_THROTTLE_KHR];
        ensure!(
            !list.chunks(2).any(|pair| hints.contains(&pair[0])),
            cl::CL_INVALID_QUEUE_PROPERTIES,
            "priorities and throttles are for queues of the host"
        );
        return DeviceQueue::new(context, device, bits, size, list).map(Created::Device);
    }
    ensure!(
        size.is_none(),
        cl::CL_INVALID_VALUE,
        "CL_QUEUE_SIZE is for device queues"
    );
    Queue::make(context, device, index, bits, list, stream).map(Created::Host)
}

impl Wanted {
    fn read(list: &[cl_queue_properties]) -> ClResult<Self> {
        let mut bits = 0;
        let mut stream = StreamDesc::default();
        let mut size = None;
        for (name, value) in pairs(list, cl::CL_INVALID_VALUE)? {
            if name == cl_queue_properties::from(cl::CL_QUEUE_PROPERTIES) {
                bits = value;
            } else if name == cl_queue_properties::from(cl::CL_QUEUE_SIZE) {
                size = Some(value);
            } else if name == cl::CL_QUEUE_PRIORITY_KHR {
                stream.priority = match value as u32 {
                    cl::CL_QUEUE_PRIORITY_HIGH_KHR => 1,
                    cl::CL_QUEUE_PRIORITY_MED_KHR => 0,
                    cl::CL_QUEUE_PRIORITY_LOW_KHR => -1,
                    _ => return err(cl::CL_INVALID_VALUE, "unknown queue priority"),
                };
            } else if name == cl::CL_QUEUE_THROTTLE_KHR {
                stream.throttle = match value as u32 {
                    cl::CL_QUEUE_THROTTLE_HIGH_KHR => Throttle::High,
                    cl::CL_QUEUE_THROTTLE_MED_KHR => Throttle::Normal,
                    cl::CL_QUEUE_THROTTLE_LOW_KHR => Throttle::Low,
                    _ => return err(cl::CL_INVALID_VALUE, "unknown queue throttle"),
                };
            } else {
                return unsupported("queue", name, cl::CL_INVALID_VALUE);
            }
        }
        check_bits(bits)?;
        Ok(Self { bits, stream, size })
    }
}

impl Queue {
    /// Creates a queue of the host's, by properties as for [`create`].
    pub fn new(
        context: &Ref<Context>,
        device: &Ref<Device>,
        list: Vec<cl_queue_properties>,
    ) -> ClResult<Ref<Self>> {
        match create(context, device, list)? {
            Created::Host(queue) => Ok(queue),
            Created::Device(_) => err(cl::CL_INVALID_VALUE, "a device queue"),
        }
    }

    /// Implements clCreateCommandQueue.
    pub fn with_flags(
        context: &Ref<Context>,
        device: &Ref<Device>,
        bits: cl_command_queue_properties,
    ) -> ClResult<Ref<Self>> {
        let index = context.device_index(device)?;
        ensure!(
            bits & !HOST_PROPERTIES == 0,
            cl::CL_INVALID_VALUE,
            "unknown queue properties"
        );
        Self::make(
            context,
            device,
            index,
            bits,
            Vec::new(),
            StreamDesc::default(),
        )
    }

    fn make(
        context: &Ref<Context>,
        device: &Ref<Device>,
        index: usize,
        properties: cl_command_queue_properties,
        list: Vec<cl_queue_properties>,
        mut desc: StreamDesc,
    ) -> ClResult<Ref<Self>> {
        let traced = crate::util::trace::on();
        if traced {
            trace::begin();
        }
        context.ensure_works()?;
        desc.terminable = context.terminable;
        desc.profiling = traced || properties & cl::CL_QUEUE_PROFILING_ENABLE != 0;
        let (measuring, throttle) = (desc.profiling, desc.throttle);
        let backend = &device.backend;
        let stream = backend
            .create_stream(desc)
            .map_err(|error| ClError::from(error).of_resources())?;
        let progress = Arc::new(Progress::new(stream.timeline().clone(), throttle));
        let rule = match properties & cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE {
            0 => OrderRule::InOrder,
            _ => OrderRule::Unordered,
        };
        let host_memory = backend.host_memory(1, 1).is_some();
        let (shared, output) = (progress.clone(), &context.output);
        let state = QueueState::new(stream, shared, rule, measuring, host_memory, output);
        let queue = Object::new(Self {
            target: QueueTarget {
                context: context.clone(),
                device: device.clone(),
                index,
                memory: context.memory_of(device)?,
                queue: Arc::new(()),
            },
            properties,
            measuring,
            list,
            progress,
            state: Mutex::new(state),
            unwanted: Mutex::default(),
        });
        let owner: Arc<dyn ContextQueue> = queue.clone();
        context.add_queue(Arc::downgrade(&owner));
        // Once the others see this one.
        queue.wait_for_left_writes();
        Ok(queue)
    }

    /// Implements clSetCommandQueueProperty: for OpenCL 1.0 devices only.
    pub fn set_property(&self) -> ClResult {
        err(
            cl::CL_INVALID_OPERATION,
            "the properties of a queue cannot be changed",
        )
    }

    /// Returns true if the context has several memories, so that contents may have to be copied for
    /// a command.
    fn moves_contents(&self) -> bool {
        self.target.context.memories.are_several()
    }

    /// Releases the lock, then does what had to wait for that.
    fn unlock(&self, mut state: MutexGuard<'_, QueueState>) {
        if state.after.is_empty() && state.reports.is_empty() && state.gone.is_empty() {
            return;
        }
        let after = std::mem::take(&mut state.after);
        let reports = std::mem::take(&mut state.reports);
        let _gone = std::mem::take(&mut state.gone);
        drop(state);
        for one in after {
            one.run();
        }
        for report in reports {
            self.target.context.report(&report);
        }
    }

    /// Frees the slots of operations whose times can no longer be queried.
    fn free_unwanted(&self, state: &mut QueueState) {
        if !self.measuring {
            return;
        }
        let mut unwanted = self.unwanted.lock();
        if unwanted.is_empty() {
            return;
        }
        let done = self.progress.timeline.completed().unwrap_or(0);
        while let Some((_, slot)) = unwanted.front().filter(|(value, _)| *value <= done) {
            state.stream.discard_times(*slot);
            unwanted.pop_front();
        }
    }

    /// Implements clFlush. Failures go to the events concerned.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        self.free_unwanted(&mut state);
        state.submit();
        self.unlock(state);
    }

    /// Makes a new queue's commands wait for what blocking writes of other queues have left to their devices.
    fn wait_for_left_writes(&self) {
        for other in self.target.context.queues() {
            let (progress, left) = (other.progress(), other.progress().left());
            if progress.timeline.has_reached(left) {
                continue;
            }
            if progress.submitted() < left {
                other.flush();
            }
            if progress.submitted() < left {
                continue;
            }
            if Arc::ptr_eq(other.device(), &self.target.device) {
                let point = progress.point(left);
                let mut state = self.state.lock();
                state.stream.wait_for(&point);
                state.left_writes.push(point);
            } else {
                // There is no device that both know: the host waits.
                let _ = progress.timeline.wait(left, None);
            }
        }
    }
}

impl Object<Queue> {
    /// Waits until all commands enqueued before are complete (clFinish). Failures of commands are
    /// reported by their events.
    pub fn finish(self: &Arc<Self>) -> ClResult {
        let mut state = self.state.lock();
        self.free_unwanted(&mut state);
        if state.pending.is_empty() {
            state.submit();
            let (value, seq) = (self.progress.submitted(), state.host.posted);
            self.unlock(state);
            // While the host executor has something to do it waits for the timeline; two threads that wait for one semaphore
            // make NVIDIA's driver miss wake-ups for 10 ms.
            self.progress.wait_host(seq);
            self.progress.timeline.wait(value, None)?;
        } else {
            // Not for commands that come later: a marker stands for all before it.
            drop(state);
            if let Some(event) = self.enqueue(sync::marker(), &[], false, true)? {
                event.wait();
            }
        }
        self.state.lock().stream.reclaim();
        Ok(())
    }
}

impl ContextQueue for Object<Queue> {
    fn handle(&self) -> *mut c_void {
        self as *const Self as *mut c_void
    }

    fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    fn device(&self) -> &Ref<Device> {
        &self.target.device
    }

    fn flush(&self) {
        Queue::flush(self);
    }

    fn terminate(&self) {
        self.terminate_pending();
        // What is open is submitted, and fails like all else.
        Queue::flush(self);
        self.progress.timeline.terminate();
    }
}

impl Owner for Object<Queue> {
    fn context(&self) -> &Ref<Context> {
        &self.target.context
    }

    fn profiling(&self) -> bool {
        self.properties & cl::CL_QUEUE_PROFILING_ENABLE != 0
    }

    fn measures(&self) -> bool {
        self.measuring
    }

    fn watch(&self, event: Ref<Event>) {
        let Some(owner) = event.owner().cloned() else {
            return;
        };
        // Who is over already is not to wait for the executor, which may be waiting for something later.
        if event.is_over() {
            let status = event.status();
            return event.settle(status).run();
        }
        let mut state = self.state.lock();
        let Some(value) = event.value() else {
            // Another thread has found it over meanwhile, and left it to us to notify those who wait.
            drop(state);
            event.settle(cl::CL_COMPLETE as cl_int).run();
            return;
        };
        let posted = state.post(Task {
            event: Some(event.clone()),
            ..Task::at(value, owner)
        });
        self.unlock(state);
        if let Err(error) = posted {
            // No thread to wait in: wait here.
            crate::log!(Warn, "{error}");
            let status = event.wait();
            event.settle(status).run();
        }
    }

    fn dependencies_met(&self, commands: &[u64]) {
        let mut state = self.state.lock();
        for command in commands {
            state.pending.met(*command);
        }
    }

    fn host_task_done(&self) {
        self.state.lock().host_tasks_done();
    }

    fn pump(self: Arc<Self>) {
        self.pump_pending();
    }

    fn take_times(&self, slots: &[ProfileSlot]) -> ClResult<(u64, u64)> {
        let mut state = self.state.lock();
        let mut all = None;
        for slot in slots {
            let times = state.stream.take_times(*slot)?;
            let (start, end) = all.unwrap_or((times.start, times.end));
            all = Some((times.start.min(start), times.end.max(end)));
        }
        all.or_err(
            cl::CL_PROFILING_INFO_NOT_AVAILABLE,
            "the command was not measured",
        )
    }

    fn discard_times(&self, slots: &[ProfileSlot]) {
        let mut unwanted = self.unwanted.lock();
        // Under the lock, so that values do not go down.
        let value = self.progress.recorded();
        unwanted.extend(slots.iter().map(|slot| (value, *slot)));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        state.submit();
        state.close();
    }
}

/// Finishes every queue of a context.
pub fn finish_all(context: &Context) -> ClResult {
    for owner in context.queues() {
        // One that is being released has nothing left to finish.
        if let Ok(queue) = handle::lookup::<Queue>(owner.handle()) {
            queue.finish()?;
        }
    }
    Ok(())
}

/// Implements clRetainCommandQueue
pub fn retain(handle: *const c_void) -> ClResult {
    match handle::lookup::<DeviceQueue>(handle) {
        Ok(_) => handle::retain::<DeviceQueue>(handle),
        Err(_) => handle::retain::<Queue>(handle),
    }
}

/// Implements clReleaseCommandQueue: flushes, as the specification requires, then drops a
/// reference. Pending commands keep the queue.
pub fn release(handle: *const c_void) -> ClResult {
    if handle::lookup::<DeviceQueue>(handle).is_ok() {
        return handle::release::<DeviceQueue>(handle);
    }
    let queue = handle::lookup::<Queue>(handle)?;
    queue.flush();
    handle::release::<Queue>(handle)
}
