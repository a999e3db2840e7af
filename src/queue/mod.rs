//! Command queues: the only active part of the runtime.
//!
//! ```text
//! enqueue: resolve wait list -> encode into the stream's open batch (caller's thread) -> event = (timeline, value)
//!                            \-> hold: kept as data until what it waits for is on a timeline of this device
//! host thread: host parts of commands (copies out of staging, printf), callbacks, waking queues with held commands
//! ```
//!
//! # Invariants
//! - A stream waits only for points that are submitted: a queue that another one is to wait for is flushed first.
//! - In an in-order queue nothing is encoded while something before it is held.
//! - An event is complete when the timeline is there *and* the host tasks of the queue up to its own are done, so
//!   completion in an in-order queue is seen in order.
//! - The queue's lock is never held while another queue's is taken, while application code runs, or while a memory
//!   object may die. The device may be waited for under it, but only for what is submitted; host tasks may not.
//! - Whatever resolves a held command encodes *and submits* it, so waiting for it needs no flush.

mod buffer_images;
mod children;
mod dispatches;
mod encode;
mod enqueue;
mod held;
mod host;
mod host_tasks;
mod images;
mod info;
mod launch;
mod order;
mod print_buffers;
mod resolve;
mod resume;
mod staging;
mod state;
mod trace;
mod transfer;

#[cfg(test)]
mod tests;

use crate::backend::{OrderRule, ProfileSlot, StreamDesc, Throttle};
use crate::cl::{self, cl_command_queue_properties, cl_int, cl_queue_properties};
use crate::command::QueueTarget;
use crate::error::{err, ClError, ClResult};
use crate::handle::{self, Body, Kind, Object, Ref};
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::device_queue::DeviceQueue;
use crate::object::event::{ContextQueue, Event, Owner, Progress};
use crate::util::lock::{rank, Mutex, MutexGuard};
use host::Task;
use state::QueueState;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Weak};

/// A command queue.
pub struct Queue {
    target: QueueTarget,
    properties: cl_command_queue_properties,
    measuring: bool,
    list: Vec<cl_queue_properties>,
    progress: Arc<Progress>,
    state: Mutex<QueueState, { rank::QUEUE }>,
    /// Profiled operations whose event is gone, and when they are done, in that order.
    unwanted: Mutex<VecDeque<(u64, ProfileSlot)>, { rank::UNWANTED_TIMES }>,
    me: Weak<Object<Queue>>,
}

impl Body for Queue {
    const KIND: Kind = Kind::Queue;
}

const HOST_PROPERTIES: cl_command_queue_properties =
    cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl::CL_QUEUE_PROFILING_ENABLE;
const DEVICE_PROPERTIES: cl_command_queue_properties =
    cl::CL_QUEUE_ON_DEVICE | cl::CL_QUEUE_ON_DEVICE_DEFAULT;

fn check_bits(bits: cl_command_queue_properties) -> ClResult {
    if bits & !(HOST_PROPERTIES | DEVICE_PROPERTIES) != 0 {
        return err(cl::CL_INVALID_VALUE, "unknown queue properties");
    }
    if bits & cl::CL_QUEUE_ON_DEVICE_DEFAULT != 0 && bits & cl::CL_QUEUE_ON_DEVICE == 0 {
        return err(
            cl::CL_INVALID_VALUE,
            "CL_QUEUE_ON_DEVICE_DEFAULT without CL_QUEUE_ON_DEVICE",
        );
    }
    let in_order = bits & cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0;
    if bits & cl::CL_QUEUE_ON_DEVICE != 0 && in_order {
        return err(cl::CL_INVALID_VALUE, "a device queue must be out of order");
    }
    Ok(())
}

/// What clCreateCommandQueueWithProperties makes.
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

/// clCreateCommandQueueWithProperties. `list` with its closing zero; empty: none given.
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
        if list.chunks(2).any(|pair| hints.contains(&pair[0])) {
            return err(
                cl::CL_INVALID_QUEUE_PROPERTIES,
                "priorities and throttles are for queues of the host",
            );
        }
        return DeviceQueue::new(context, device, bits, size, list).map(Created::Device);
    }
    if size.is_some() {
        return err(cl::CL_INVALID_VALUE, "CL_QUEUE_SIZE is for device queues");
    }
    Queue::make(context, device, index, bits, list, stream).map(Created::Host)
}

impl Wanted {
    fn read(list: &[cl_queue_properties]) -> ClResult<Self> {
        let mut bits = 0;
        let mut stream = StreamDesc::default();
        let mut size = None;
        let mut seen: Vec<cl_queue_properties> = Vec::new();
        for pair in list.chunks(2) {
            let &[name, ref rest @ ..] = pair else { break };
            if name == 0 {
                break;
            }
            let Some(&value) = rest.first() else {
                return err(cl::CL_INVALID_VALUE, "a queue property has no value");
            };
            if seen.contains(&name) {
                return err(cl::CL_INVALID_VALUE, "a queue property is given twice");
            }
            seen.push(name);
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
                return err(
                    cl::CL_INVALID_VALUE,
                    format!("queue property {name:#x} is not supported"),
                );
            }
        }
        check_bits(bits)?;
        Ok(Self { bits, stream, size })
    }
}

impl Queue {
    /// A queue of the host's, by properties as for [`create`].
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

    /// clCreateCommandQueue.
    pub fn with_flags(
        context: &Ref<Context>,
        device: &Ref<Device>,
        bits: cl_command_queue_properties,
    ) -> ClResult<Ref<Self>> {
        let index = context.device_index(device)?;
        if bits & !HOST_PROPERTIES != 0 {
            return err(cl::CL_INVALID_VALUE, "unknown queue properties");
        }
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
        desc: StreamDesc,
    ) -> ClResult<Ref<Self>> {
        let traced = crate::util::trace::on();
        if traced {
            trace::begin();
        }
        let measuring = traced || properties & cl::CL_QUEUE_PROFILING_ENABLE != 0;
        let in_order = properties & cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0;
        let desc_of_stream = StreamDesc {
            profiling: measuring,
            ..desc
        };
        let stream = device
            .backend()
            .create_stream(desc_of_stream)
            .map_err(|error| ClError::from(error).of_resources())?;
        let progress = Arc::new(Progress::new(stream.timeline().clone(), desc.throttle));
        let rule = if in_order {
            OrderRule::InOrder
        } else {
            OrderRule::Unordered
        };
        let state = Mutex::new(QueueState::new(stream, progress.clone(), rule, measuring));
        let target = QueueTarget {
            context: context.clone(),
            device: device.clone(),
            index,
            memory: context.memory_of(device)?,
            queue: Arc::new(()),
        };
        let queue = Object::new_cyclic(|me| Self {
            target,
            properties,
            measuring,
            list,
            progress,
            state,
            unwanted: Mutex::default(),
            me: me.clone(),
        });
        let owner: Arc<dyn ContextQueue> = queue.clone();
        context.add_queue(Arc::downgrade(&owner));
        // What blocking writes of other queues have left on its way is done for this one.
        for other in context.queues() {
            let (progress, left) = (other.progress(), other.progress().left());
            if progress.timeline.completed().is_ok_and(|now| now >= left) {
                continue;
            }
            if progress.submitted() < left {
                other.flush();
            }
            if progress.submitted() >= left {
                let _ = progress.timeline.wait(left, None);
            }
        }
        Ok(queue)
    }

    /// CL_QUEUE_CONTEXT.
    pub fn context(&self) -> &Ref<Context> {
        &self.target.context
    }

    /// CL_QUEUE_DEVICE.
    pub fn device(&self) -> &Ref<Device> {
        &self.target.device
    }

    /// CL_QUEUE_PROPERTIES.
    pub fn properties(&self) -> cl_command_queue_properties {
        self.properties
    }

    /// CL_QUEUE_PROPERTIES_ARRAY: the list as given, empty where there was none.
    pub fn property_list(&self) -> &[cl_queue_properties] {
        &self.list
    }

    /// What commands for this queue are checked against.
    pub fn target(&self) -> &QueueTarget {
        &self.target
    }

    /// clSetCommandQueueProperty: for OpenCL 1.0 devices only.
    pub fn set_property(&self) -> ClResult {
        err(
            cl::CL_INVALID_OPERATION,
            "the properties of a queue cannot be changed",
        )
    }

    /// CL_QUEUE_PROFILING_ENABLE
    fn is_profiling(&self) -> bool {
        self.properties & cl::CL_QUEUE_PROFILING_ENABLE != 0
    }

    /// Times are measured: for the application, or for a timeline.
    fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Releases the lock, then does what had to wait for that.
    fn unlock(&self, mut state: MutexGuard<'_, QueueState>) {
        if state.after.is_empty() && state.reports.is_empty() {
            return;
        }
        let after = std::mem::take(&mut state.after);
        let reports = std::mem::take(&mut state.reports);
        drop(state);
        for one in after {
            one.run();
        }
        for report in reports {
            self.target.context.report(&report);
        }
    }

    /// Frees what measured operations whose times nobody can ask for any more.
    fn free_unwanted(&self, state: &mut QueueState) {
        let mut unwanted = self.unwanted.lock();
        if unwanted.is_empty() {
            return;
        }
        let done = self.progress.timeline.completed().unwrap_or(0);
        while let Some((_, slot)) = unwanted.front().filter(|(value, _)| *value <= done) {
            // Only to free the slot.
            let _ = state.stream.take_times(*slot);
            unwanted.pop_front();
        }
    }

    fn submit_all(&self) {
        let mut state = self.state.lock();
        if self.is_measuring() {
            self.free_unwanted(&mut state);
        }
        state.submit();
        self.unlock(state);
    }

    /// clFlush.
    pub fn flush(&self) -> ClResult {
        self.submit_all();
        Ok(())
    }

    /// clFinish. Failures of commands are told by their events.
    pub fn finish(&self) -> ClResult {
        self.submit_all();
        if self.progress.held() > 0 {
            self.progress.wait_unheld();
        }
        let (value, seq) = {
            let mut state = self.state.lock();
            state.submit();
            let place = (self.progress.submitted(), state.host.posted);
            self.unlock(state);
            place
        };
        // While the host thread has something to do it waits for the timeline; two threads that wait for one semaphore
        // make NVIDIA's driver miss wake-ups for 10 ms.
        self.progress.wait_host(seq);
        self.progress
            .timeline
            .wait(value, None)
            .map_err(ClError::from)?;
        self.state.lock().stream.reclaim();
        Ok(())
    }
}

impl ContextQueue for Object<Queue> {
    fn handle(&self) -> *mut c_void {
        self.me.as_ptr() as *mut c_void
    }

    fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    fn flush(&self) {
        self.submit_all();
    }
}

impl Owner for Object<Queue> {
    fn device(&self) -> &Ref<Device> {
        &self.target.device
    }

    fn profiling(&self) -> bool {
        self.is_profiling()
    }

    fn measures(&self) -> bool {
        self.is_measuring()
    }

    fn watch(&self, event: Ref<Event>) {
        let Some(owner) = event.owner().cloned() else {
            return;
        };
        let mut state = self.state.lock();
        let Some(value) = event.value() else {
            // Another thread has found it over meanwhile, and left it to us to tell those who wait.
            drop(state);
            event.settle(cl::CL_COMPLETE as cl_int).run();
            return;
        };
        let posted = state.post(Task {
            value,
            seq: 0,
            action: None,
            event: Some(event.clone()),
            owner,
            failed: None,
        });
        self.unlock(state);
        if let Err(error) = posted {
            // No thread to wait in: wait here.
            crate::log!(Warn, "{error}");
            let status = event.wait();
            event.settle(status).run();
        }
    }

    fn pump(&self) {
        self.pump_held();
    }

    fn take_times(&self, slots: &[ProfileSlot]) -> ClResult<(u64, u64)> {
        let mut state = self.state.lock();
        let mut all: Option<(u64, u64)> = None;
        for slot in slots {
            let times = state.stream.take_times(*slot)?;
            all = Some(match all {
                Some((start, end)) => (start.min(times.start), end.max(times.end)),
                None => (times.start, times.end),
            });
        }
        all.ok_or_else(|| {
            ClError::new(
                cl::CL_PROFILING_INFO_NOT_AVAILABLE,
                "the command was not measured",
            )
        })
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
        self.state.get_mut().submit();
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

/// clRetainCommandQueue
pub fn retain(handle: *const c_void) -> ClResult {
    match handle::lookup::<DeviceQueue>(handle) {
        Ok(_) => handle::retain::<DeviceQueue>(handle),
        Err(_) => handle::retain::<Queue>(handle),
    }
}

/// clReleaseCommandQueue: flushes, as the specification asks, then drops a reference. Held commands keep the queue.
pub fn release(handle: *const c_void) -> ClResult {
    if handle::lookup::<DeviceQueue>(handle).is_ok() {
        return handle::release::<DeviceQueue>(handle);
    }
    let queue = handle::lookup::<Queue>(handle)?;
    queue.submit_all();
    handle::release::<Queue>(handle)
}
