//! Device queues (OpenCL API specification, "Command Queues": CL_QUEUE_ON_DEVICE): memory that kernels write records to
//! (`backend/device_queue.rs`), of what `device_side` knows for a context and a device.

use super::context::Context;
use super::device::Device;
use super::device_side::{DeviceSide, MAX_SIZE, PREFERRED_SIZE};
use super::info::{answer, Info, InfoOut, Written};
use crate::backend::device_queue::QueueMemory;
use crate::cl::{self, cl_command_queue_properties, cl_queue_properties, cl_uint};
use crate::error::{ensure, ClResult};
use crate::handle::{Body, Kind, Object, Ref};
use std::any::Any;
use std::sync::{Arc, Weak};

/// A device queue.
pub struct DeviceQueue {
    /// CL_QUEUE_CONTEXT
    pub context: Ref<Context>,
    /// CL_QUEUE_DEVICE
    pub device: Ref<Device>,
    properties: cl_command_queue_properties,
    list: Vec<cl_queue_properties>,
    size: u32,
    /// The memory by which kernels know it.
    pub memory: Arc<QueueMemory>,
}

impl Body for DeviceQueue {
    const KIND: Kind = Kind::Queue;
}

impl DeviceQueue {
    /// Implements clCreateCommandQueueWithProperties with CL_QUEUE_ON_DEVICE; the properties have
    /// been checked, but for what the device supports. A context has one default queue a device: a
    /// second one is the first.
    pub fn new(
        context: &Ref<Context>,
        device: &Ref<Device>,
        properties: cl_command_queue_properties,
        size: Option<u64>,
        list: Vec<cl_queue_properties>,
    ) -> ClResult<Ref<Self>> {
        let index = context.device_index(device)?;
        let size = size.unwrap_or(PREFERRED_SIZE.into());
        ensure!(
            size != 0 && size <= MAX_SIZE.into(),
            cl::CL_INVALID_QUEUE_PROPERTIES,
            "a device queue of {size} bytes; at most {MAX_SIZE} are possible"
        );
        let on_device = context.on_device(index)?;
        let memory = QueueMemory::new(device.backend.as_ref(), size as u32)?;
        let queue = Object::new(Self {
            context: context.clone(),
            device: device.clone(),
            properties,
            list,
            size: size as u32,
            memory: Arc::new(memory),
        });
        if properties & cl::CL_QUEUE_ON_DEVICE_DEFAULT != 0 {
            let mut default = on_device.default.lock();
            if let Some(found) = upgraded(&default) {
                return Ok(found);
            }
            *default = Some(weak(&queue));
        }
        on_device.add(&queue.memory);
        Ok(queue)
    }
}

impl Info for Ref<DeviceQueue> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_QUEUE_CONTEXT => &self.context,
            CL_QUEUE_DEVICE => &self.device,
            CL_QUEUE_REFERENCE_COUNT => self.api_refs(),
            CL_QUEUE_PROPERTIES => self.properties,
            CL_QUEUE_PROPERTIES_ARRAY => self.list.as_slice(),
            CL_QUEUE_SIZE => self.size,
            CL_QUEUE_DEVICE_DEFAULT => default_queue(&self.context, &self.device),
        }
    }
}

/// Implements clSetDefaultDeviceCommandQueue.
pub fn set_default(
    context: &Ref<Context>,
    device: &Ref<Device>,
    queue: &Ref<DeviceQueue>,
) -> ClResult {
    let index = context.device_index(device)?;
    ensure!(
        Arc::ptr_eq(&queue.context, context) && Arc::ptr_eq(&queue.device, device),
        cl::CL_INVALID_COMMAND_QUEUE,
        "the queue is of another context or device"
    );
    *context.on_device(index)?.default.lock() = Some(weak(queue));
    Ok(())
}

/// Returns CL_QUEUE_DEVICE_DEFAULT: the default queue on a device.
pub fn default_queue(context: &Context, device: &Ref<Device>) -> Option<Ref<DeviceQueue>> {
    let index = context.device_index(device).ok()?;
    default_of(context.created_on_device(index)?)
}

/// Returns the default queue of those.
pub fn default_of(on_device: &DeviceSide) -> Option<Ref<DeviceQueue>> {
    upgraded(&on_device.default.lock())
}

fn upgraded(default: &Option<Weak<dyn Any + Send + Sync>>) -> Option<Ref<DeviceQueue>> {
    default.as_ref()?.upgrade()?.downcast().ok()
}

fn weak(queue: &Ref<DeviceQueue>) -> Weak<dyn Any + Send + Sync> {
    let queue: Arc<dyn Any + Send + Sync> = queue.clone();
    Arc::downgrade(&queue)
}
