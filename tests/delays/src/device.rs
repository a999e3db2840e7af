//! Devices: the functions below them, and the gates of their queues.

use crate::abi;
use crate::entry;
use crate::gates::Gates;
use crate::instance;
use ash::vk::{self, Handle};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ffi::{c_char, CStr};
use std::sync::Arc;

/// A device.
pub struct Device {
    /// The functions of the next layer.
    pub next: ash::Device,
    get_proc_addr: vk::PFN_vkGetDeviceProcAddr,
    /// What holds its submissions back; none without timeline semaphores.
    pub gates: Option<Gates>,
}

static DEVICES: RwLock<BTreeMap<usize, Arc<Device>>> = RwLock::new(BTreeMap::new());

/// The device that a device or queue belongs to.
///
/// # Safety
/// It must live.
pub unsafe fn of<T: Handle>(handle: T) -> Option<Arc<Device>> {
    // SAFETY: the caller's promise.
    let key = unsafe { abi::key(handle) };
    DEVICES.read().get(&key).cloned()
}

/// vkCreateDevice.
///
/// # Safety
/// Called by the loader or the layer above, with valid arguments.
pub unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    const FAILED: vk::Result = vk::Result::ERROR_INITIALIZATION_FAILED;
    // SAFETY: the loader passes a valid structure.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return FAILED;
    };
    // SAFETY: the loader has put the link there in this call; the physical device lives.
    let (below, instance) = unsafe { (abi::below_device(info), instance::of(abi::key(physical))) };
    let (Some(below), Some(instance)) = (below, instance) else {
        return FAILED;
    };
    // SAFETY: the type is that of the function.
    let create: Option<vk::PFN_vkCreateDevice> =
        unsafe { below.instance_function(instance.raw, c"vkCreateDevice") };
    let (Some(create), Some(get_proc_addr)) = (create, below.get_device_proc_addr) else {
        return FAILED;
    };
    // SAFETY: the arguments are passed on, with the link taken off.
    let result = unsafe { create(physical, info, allocator, device) };
    if result != vk::Result::SUCCESS {
        return result;
    }
    // SAFETY: a call that succeeded has written a living device.
    let (raw, key) = unsafe { (*device, abi::key(*device)) };
    // SAFETY: the device is the next layer's, and so are the functions.
    let next = unsafe {
        ash::Device::load_with(
            |name| {
                get_proc_addr(raw, name.as_ptr())
                    .map_or(std::ptr::null(), |found| found as *const _)
            },
            raw,
        )
    };
    // SAFETY: the structure is valid; the device lives.
    let timelines = unsafe {
        abi::has_timelines(info) && get_proc_addr(raw, c"vkSignalSemaphore".as_ptr()).is_some()
    };
    let made = Device {
        gates: timelines.then(|| Gates::new(&next)),
        next,
        get_proc_addr,
    };
    DEVICES.write().insert(key, Arc::new(made));
    result
}

/// vkDestroyDevice.
///
/// # Safety
/// As vkDestroyDevice.
pub unsafe extern "system" fn destroy_device(
    raw: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if raw == vk::Device::null() {
        return;
    }
    // SAFETY: the device lives until the call below.
    let Some(device) = DEVICES.write().remove(&unsafe { abi::key(raw) }) else {
        return;
    };
    if let Some(gates) = &device.gates {
        gates.close();
    }
    // SAFETY: the arguments are passed on.
    unsafe { (device.next.fp_v1_0().destroy_device)(raw, allocator) };
}

/// vkGetDeviceProcAddr: functions of this layer, where the next has them too, or of the next.
///
/// # Safety
/// As vkGetDeviceProcAddr.
pub unsafe extern "system" fn get_device_proc_addr(
    raw: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the device lives, and the name is a C string.
    let (device, text) = unsafe { (of(raw)?, CStr::from_ptr(name)) };
    // SAFETY: the arguments are passed on.
    let below = unsafe { (device.get_proc_addr)(raw, name) }?;
    entry::find(text).or(Some(below))
}
