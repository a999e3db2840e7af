//! Command queues.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    cl_bool, cl_command_queue_info, cl_command_queue_properties, cl_queue_properties,
};
use pumice_runtime::error::ClResult;
use pumice_runtime::object::device::Device;
use pumice_runtime::object::device_queue::{self, DeviceQueue};
use pumice_runtime::object::info::Info;
use pumice_runtime::queue::{self, Created, Queue};
use std::ffi::c_void;

pub fn create(
    context: Handle,
    device: Handle,
    properties: In<cl_queue_properties>,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let device = device.object::<Device>()?;
    let properties = abi::properties(properties).unwrap_or_default();
    match queue::create(&context, &device, properties)? {
        Created::Host(queue) => abi::publish(Ok(queue)),
        Created::Device(queue) => abi::publish(Ok(queue)),
    }
}

/// Implements clCreateCommandQueue, of OpenCL 1.0.
pub fn create_old(
    context: Handle,
    device: Handle,
    properties: cl_command_queue_properties,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let device = device.object::<Device>()?;
    abi::publish(Queue::with_flags(&context, &device, properties))
}

/// Fails for every queue of a later device than OpenCL 1.0, as the function is deprecated since
/// 1.1.
pub fn set_property(
    queue: Handle,
    _properties: cl_command_queue_properties,
    _enable: cl_bool,
    _old: Out<cl_command_queue_properties>,
) -> ClResult {
    queue.object::<Queue>()?.set_property()
}

pub fn retain(queue: Handle) -> ClResult {
    queue::retain(queue.as_ptr())
}

pub fn release(queue: Handle) -> ClResult {
    queue::release(queue.as_ptr())
}

pub fn get_info(
    queue: Handle,
    param: cl_command_queue_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let out = abi::info(size, value, size_ret);
    match queue.object::<DeviceQueue>() {
        Ok(queue) => queue.query(param, out).map(drop),
        Err(_) => queue.object::<Queue>()?.query(param, out).map(drop),
    }
}

pub fn flush(queue: Handle) -> ClResult {
    queue.object::<Queue>()?.flush();
    Ok(())
}

pub fn finish(queue: Handle) -> ClResult {
    queue.object::<Queue>()?.finish()
}

pub fn set_default_device_queue(context: Handle, device: Handle, queue: Handle) -> ClResult {
    let context = context.context()?;
    let device = device.object::<Device>()?;
    context.device_index(&device)?;
    device_queue::set_default(&context, &device, &queue.object::<DeviceQueue>()?)
}
