//! Querying devices; partitioning a device; device timers.

use super::platform;
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_device_id, cl_device_info, cl_device_partition_property, cl_device_type, cl_uint,
    cl_ulong,
};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::handle::{self, Object};
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
    let (device, out) = (device.object::<Device>()?, abi::info(size, value, size_ret));
    if param == cl::CL_DEVICE_REFERENCE_COUNT {
        let count = device.parent().map_or(1, |_| device.api_refs());
        return out.write(count).map(drop);
    }
    device.query(param, out).map(drop)
}

/// Implements clRetainDevice. Root devices are not counted.
pub fn retain(device: Handle) -> ClResult {
    match device.object::<Device>()?.parent() {
        None => Ok(()),
        Some(_) => handle::retain::<Device>(device.as_ptr()),
    }
}

/// Implements clReleaseDevice. Root devices are not counted.
pub fn release(device: Handle) -> ClResult {
    match device.object::<Device>()?.parent() {
        None => Ok(()),
        Some(_) => handle::release::<Device>(device.as_ptr()),
    }
}

pub fn create_sub_devices(
    device: Handle,
    properties: In<cl_device_partition_property>,
    num_devices: cl_uint,
    out_devices: Out<cl_device_id>,
    num_devices_ret: Out<cl_uint>,
) -> ClResult {
    let device = device.object::<Device>()?;
    let scheme = abi::partition_scheme(properties).unwrap_or_default();
    let division = device.division(&scheme)?;
    let count = division.parts.len();
    if !out_devices.is_null() {
        if (num_devices as usize) < count {
            return err(
                cl::CL_INVALID_VALUE,
                format!("no room for {count} sub-devices"),
            );
        }
        let made = Device::divide(&device, &division)?;
        out_devices.set_all(made.iter().map(Object::publish));
    }
    num_devices_ret.set(count as cl_uint);
    Ok(())
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
    let (on_device, on_host) = device.backend.timestamps()?;
    device_timestamp.set(on_device);
    host_timestamp.set(on_host);
    Ok(())
}

pub fn get_host_timer(device: Handle, host_timestamp: Out<cl_ulong>) -> ClResult {
    let device = device.object::<Device>()?;
    if host_timestamp.is_null() {
        return err(cl::CL_INVALID_VALUE, "host_timestamp is NULL");
    }
    host_timestamp.set(device.backend.timestamps()?.1);
    Ok(())
}
