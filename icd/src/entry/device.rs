//! Querying devices; partitioning a device; device timers.

use super::platform;
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_device_id, cl_device_info, cl_device_partition_property, cl_device_type, cl_uint,
    cl_ulong,
};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::handle::Object;
use pumice_runtime::object::device::Device;
use pumice_runtime::object::info::Info;
use std::ffi::c_void;

pub fn get_ids(
    platform: Handle,
    device_type: cl_device_type,
    entries: cl_uint,
    devices: Out<cl_device_id>,
    count: Out<cl_uint>,
) -> ClResult {
    let platform = platform::resolve(platform)?;
    let found = platform.devices_of(device_type);
    if found.is_err() {
        count.set(0);
    }
    let handles: Vec<_> = found?.iter().map(Object::handle).collect();
    abi::list_out(&handles, entries, devices, count)
}

pub fn get_info(
    device: Handle,
    param: cl_device_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    device
        .object::<Device>()?
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}

/// Root devices are not counted.
pub fn retain(device: Handle) -> ClResult {
    device.object::<Device>().map(drop)
}

/// Root devices are not counted.
pub fn release(device: Handle) -> ClResult {
    device.object::<Device>().map(drop)
}

/// No device can be partitioned, so no partitioning scheme is a supported one.
pub fn create_sub_devices(
    device: Handle,
    _properties: In<cl_device_partition_property>,
    _num_devices: cl_uint,
    _out_devices: Out<cl_device_id>,
    _num_devices_ret: Out<cl_uint>,
) -> ClResult {
    device.object::<Device>()?;
    err(cl::CL_INVALID_VALUE, "the device cannot be partitioned")
}

pub fn get_device_and_host_timer(
    device: Handle,
    device_timestamp: Out<cl_ulong>,
    host_timestamp: Out<cl_ulong>,
) -> ClResult {
    let device = device.object::<Device>()?;
    if device_timestamp.is_null() || host_timestamp.is_null() {
        return err(cl::CL_INVALID_VALUE, "a timestamp pointer is NULL");
    }
    let (on_device, on_host) = device.backend().timestamps()?;
    device_timestamp.set(on_device);
    host_timestamp.set(on_host);
    Ok(())
}

pub fn get_host_timer(device: Handle, host_timestamp: Out<cl_ulong>) -> ClResult {
    let device = device.object::<Device>()?;
    if host_timestamp.is_null() {
        return err(cl::CL_INVALID_VALUE, "host_timestamp is NULL");
    }
    host_timestamp.set(device.backend().timestamps()?.1);
    Ok(())
}
