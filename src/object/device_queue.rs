//! Device queues (OpenCL API specification, "Command Queues": CL_QUEUE_ON_DEVICE), and what the kernels of a context that
//! enqueue others share on a device: queues, events, and who is told of the records that a launch has left.
//!
//! A device queue is memory (`backend/device_queue.rs`). Kernels write records there; [`OnDevice::collect`] takes them
//! out and gives each to the *family* it belongs to: a launch of the application's with all that it has enqueued, directly
//! and not. `queue/children.rs` launches what they say.

use super::context::Context;
use super::device::Device;
use super::info::{unknown, Info, InfoOut, Written};
use crate::backend::device_queue::{EventsMemory, QueueMemory, Record};
use crate::backend::Point;
use crate::cl::{self, cl_command_queue_properties, cl_queue_properties, cl_uint};
use crate::error::{err, ClResult};
use crate::handle::{Body, Kind, Object, Ref};
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, in bytes.
pub const PREFERRED_SIZE: u32 = 256 << 10;
/// CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, in bytes.
pub const MAX_SIZE: u32 = 32 << 20;
/// CL_DEVICE_MAX_ON_DEVICE_QUEUES. Nothing keeps applications from making more but memory.
pub const MAX_QUEUES: u32 = 64;
/// CL_DEVICE_MAX_ON_DEVICE_EVENTS
pub const MAX_EVENTS: u32 = 16 << 10;
/// CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES
pub const PROPERTIES: cl_command_queue_properties =
    cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl::CL_QUEUE_PROFILING_ENABLE;

/// How long a record may take to be written: a thread in the middle of it may have to wait for a processor.
const PATIENCE: Duration = Duration::from_secs(30);

/// A device queue.
pub struct DeviceQueue {
    context: Ref<Context>,
    device: Ref<Device>,
    properties: cl_command_queue_properties,
    list: Vec<cl_queue_properties>,
    size: u32,
    memory: Arc<QueueMemory>,
}

impl Body for DeviceQueue {
    const KIND: Kind = Kind::Queue;
}

impl DeviceQueue {
    /// clCreateCommandQueueWithProperties with CL_QUEUE_ON_DEVICE; the properties have been checked, but for what the device
    /// supports. A context has one default queue a device: a second one is the first.
    pub fn new(
        context: &Ref<Context>,
        device: &Ref<Device>,
        properties: cl_command_queue_properties,
        size: Option<u64>,
        list: Vec<cl_queue_properties>,
    ) -> ClResult<Ref<Self>> {
        let index = context.device_index(device)?;
        if !device.features().device_enqueue {
            return err(
                cl::CL_INVALID_QUEUE_PROPERTIES,
                "the device has no device queues",
            );
        }
        let size = size.unwrap_or(PREFERRED_SIZE.into());
        if size == 0 || size > MAX_SIZE.into() {
            return err(
                cl::CL_INVALID_QUEUE_PROPERTIES,
                format!("a device queue of {size} bytes; at most {MAX_SIZE} are possible"),
            );
        }
        let on_device = context.on_device(index)?;
        let is_default = properties & cl::CL_QUEUE_ON_DEVICE_DEFAULT != 0;
        if let Some(known) = on_device.default_queue().filter(|_| is_default) {
            return Ok(known);
        }
        let memory = QueueMemory::new(device.backend().as_ref(), size as u32)?;
        let queue = Object::new(Self {
            context: context.clone(),
            device: device.clone(),
            properties,
            list,
            size: size as u32,
            memory: Arc::new(memory),
        });
        on_device.add(&queue, is_default);
        Ok(queue)
    }

    /// CL_QUEUE_CONTEXT
    pub fn context(&self) -> &Ref<Context> {
        &self.context
    }

    /// CL_QUEUE_DEVICE
    pub fn device(&self) -> &Ref<Device> {
        &self.device
    }

    /// What kernels know it by.
    pub fn memory(&self) -> &Arc<QueueMemory> {
        &self.memory
    }
}

impl Info for Ref<DeviceQueue> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            cl::CL_QUEUE_CONTEXT => out.write(&self.context),
            cl::CL_QUEUE_DEVICE => out.write(&self.device),
            cl::CL_QUEUE_REFERENCE_COUNT => out.write(self.api_refs()),
            cl::CL_QUEUE_PROPERTIES => out.write(self.properties),
            cl::CL_QUEUE_PROPERTIES_ARRAY => out.write(self.list.as_slice()),
            cl::CL_QUEUE_SIZE => out.write(self.size),
            cl::CL_QUEUE_DEVICE_DEFAULT => out.write(self.context.default_queue(&self.device)),
            _ => unknown(param),
        }
    }
}

/// clSetDefaultDeviceCommandQueue.
pub fn set_default(
    context: &Ref<Context>,
    device: &Ref<Device>,
    queue: &Ref<DeviceQueue>,
) -> ClResult {
    let index = context.device_index(device)?;
    if !Arc::ptr_eq(&queue.context, context) || !Arc::ptr_eq(&queue.device, device) {
        return err(
            cl::CL_INVALID_COMMAND_QUEUE,
            "the queue is of another context or device",
        );
    }
    context.on_device(index)?.set_default(queue);
    Ok(())
}

/// Records for a family, with the queues that they came from.
#[derive(Default)]
pub struct Inbox(Mutex<Vec<(Record, Arc<QueueMemory>)>>);

impl Inbox {
    /// Takes what has come.
    pub fn take(&self) -> Vec<(Record, Arc<QueueMemory>)> {
        std::mem::take(&mut self.0.lock())
    }
}

/// What kernels of a context that enqueue others share on a device.
pub struct OnDevice {
    events: EventsMemory,
    queues: Mutex<Vec<Weak<QueueMemory>>>,
    default: Mutex<Weak<Object<DeviceQueue>>>,
    families: Mutex<FxHashMap<u32, Arc<Inbox>>>,
    next: AtomicU64,
    /// How many families are over, and where the streams that they ran on had come to.
    families_over: AtomicU64,
    last_points: Mutex<Vec<Point>>,
    /// How many launches have ended whose kernels could set events.
    ended: Mutex<u64>,
    changed: Condvar,
}

impl OnDevice {
    /// Without any queue.
    pub fn new(device: &Device) -> ClResult<Self> {
        Ok(Self {
            events: EventsMemory::new(device.backend().as_ref(), MAX_EVENTS)?,
            queues: Mutex::default(),
            default: Mutex::new(Weak::new()),
            families: Mutex::default(),
            next: AtomicU64::new(0),
            families_over: AtomicU64::new(0),
            last_points: Mutex::default(),
            ended: Mutex::new(0),
            changed: Condvar::new(),
        })
    }

    fn add(&self, queue: &Ref<DeviceQueue>, is_default: bool) {
        let mut queues = self.queues.lock();
        queues.retain(|known| known.strong_count() > 0);
        queues.push(Arc::downgrade(queue.memory()));
        drop(queues);
        if is_default {
            self.set_default(queue);
        }
    }

    fn set_default(&self, queue: &Ref<DeviceQueue>) {
        *self.default.lock() = Arc::downgrade(queue);
    }

    /// CL_QUEUE_DEVICE_DEFAULT
    pub fn default_queue(&self) -> Option<Ref<DeviceQueue>> {
        self.default.lock().upgrade()
    }

    /// The events.
    pub fn events(&self) -> &EventsMemory {
        &self.events
    }

    /// All queues. A launch keeps them: kernels may have found any of them in memory.
    pub fn queues(&self) -> Vec<Arc<QueueMemory>> {
        self.queues
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// A new family: its number and where its records come to, until [`OnDevice::forget`].
    pub fn family(&self) -> (u32, Arc<Inbox>) {
        let mut families = self.families.lock();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed) as u32;
            if let std::collections::hash_map::Entry::Vacant(free) = families.entry(number) {
                return (number, free.insert(Arc::default()).clone());
            }
        }
    }

    /// A family is over.
    pub fn forget(&self, number: u32) {
        self.families.lock().remove(&number);
    }

    /// Takes all records out of these queues and gives them to their families. The number of a launch has that of its family
    /// in the upper half.
    pub fn collect(&self, queues: &[Arc<QueueMemory>]) {
        for queue in queues {
            queue.take(PATIENCE, |record| {
                let family = self
                    .families
                    .lock()
                    .get(&((record.launch >> 32) as u32))
                    .cloned();
                match family {
                    Some(family) => family.0.lock().push((record, queue.clone())),
                    None => {
                        crate::log!(Error, "a record in a device queue is of no launch");
                        queue.free(record.size);
                    }
                }
            });
        }
    }

    /// A family is over, and this point reached.
    pub fn note_family(&self, point: Point) {
        let mut points = self.last_points.lock();
        points.retain(|known| !Arc::ptr_eq(&known.timeline, &point.timeline));
        points.push(point);
        self.families_over.fetch_add(1, Ordering::Release);
    }

    /// How many families are over.
    pub fn families_over(&self) -> u64 {
        self.families_over.load(Ordering::Acquire)
    }

    /// Points that have been reached, with all that the kernels of those families wrote before them.
    pub fn last_points(&self) -> Vec<Point> {
        self.last_points.lock().clone()
    }

    /// Kernels that could set events have ended.
    pub fn note_ended(&self) {
        *self.ended.lock() += 1;
        self.changed.notify_all();
    }

    /// How many times that was said.
    pub fn ended(&self) -> u64 {
        *self.ended.lock()
    }

    /// Waits until it is said more often than that, or a while.
    pub fn wait_ended(&self, known: u64) {
        let mut ended = self.ended.lock();
        if *ended == known {
            self.changed.wait_for(&mut ended, Duration::from_millis(5));
        }
    }
}
