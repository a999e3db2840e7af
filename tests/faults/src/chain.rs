//! Instances and devices: what is below them, and the names that this layer answers to.

use crate::abi::{self, Below};
use crate::{calls, state};
use ash::vk::{self, Handle};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ffi::{c_char, CStr};
use std::sync::Arc;

const FAILED: vk::Result = vk::Result::ERROR_INITIALIZATION_FAILED;

/// An instance, and what is below it.
#[derive(Clone, Copy)]
struct Instance {
    raw: vk::Instance,
    below: Below,
    enumerate: vk::PFN_vkEnumeratePhysicalDevices,
}

/// A device, and what is below it.
pub struct Device {
    /// The functions of the next layer.
    pub next: ash::Device,
    get_proc_addr: vk::PFN_vkGetDeviceProcAddr,
}

static INSTANCES: RwLock<BTreeMap<usize, Instance>> = RwLock::new(BTreeMap::new());
static DEVICES: RwLock<BTreeMap<usize, Arc<Device>>> = RwLock::new(BTreeMap::new());

/// A function without its type.
pub fn untyped<Function: Copy>(function: Function) -> vk::PFN_vkVoidFunction {
    assert_eq!(size_of::<Function>(), size_of::<vk::PFN_vkVoidFunction>());
    // SAFETY: called with function pointers alone; whoever asked for the name knows the type.
    unsafe { std::mem::transmute_copy(&function) }
}

/// The device that a device, queue or command buffer belongs to.
///
/// # Safety
/// It must live.
pub unsafe fn device_of<T: Handle>(handle: T) -> Option<Arc<Device>> {
    // SAFETY: the caller's promise.
    let key = unsafe { abi::key(handle) };
    DEVICES.read().get(&key).cloned()
}

/// vkCreateInstance.
///
/// # Safety
/// Called by the loader or the layer above, with valid arguments.
unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    if let Some(code) = state::call("vkCreateInstance", calls::codes("vkCreateInstance")) {
        return code;
    }
    // SAFETY: the loader has put the link there in this call.
    let below = unsafe { info.as_ref().and_then(|info| abi::below_instance(info)) };
    let Some(below) = below else {
        return FAILED;
    };
    // SAFETY: the type is that of the function.
    let create: Option<vk::PFN_vkCreateInstance> =
        unsafe { below.instance_function(vk::Instance::null(), c"vkCreateInstance") };
    let Some(create) = create else {
        return FAILED;
    };
    // SAFETY: the arguments are passed on, with the link taken off.
    let result = unsafe { create(info, allocator, instance) };
    if result != vk::Result::SUCCESS {
        return result;
    }
    // SAFETY: a call that succeeded has written a living instance.
    let (raw, key) = unsafe { (*instance, abi::key(*instance)) };
    // SAFETY: the type is that of the function.
    let enumerate = unsafe { below.instance_function(raw, c"vkEnumeratePhysicalDevices") };
    let Some(enumerate) = enumerate else {
        return FAILED;
    };
    let made = Instance {
        raw,
        below,
        enumerate,
    };
    INSTANCES.write().insert(key, made);
    result
}

/// vkEnumeratePhysicalDevices.
///
/// # Safety
/// As vkEnumeratePhysicalDevices.
unsafe extern "system" fn enumerate_physical_devices(
    raw: vk::Instance,
    count: *mut u32,
    devices: *mut vk::PhysicalDevice,
) -> vk::Result {
    let name = "vkEnumeratePhysicalDevices";
    if let Some(code) = state::call(name, calls::codes(name)) {
        return code;
    }
    // SAFETY: the instance lives.
    let instance = INSTANCES.read().get(&unsafe { abi::key(raw) }).copied();
    // SAFETY: the arguments are passed on.
    instance.map_or(FAILED, |instance| unsafe {
        (instance.enumerate)(raw, count, devices)
    })
}

/// vkCreateDevice.
///
/// # Safety
/// Called by the loader or the layer above, with valid arguments.
unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    if let Some(code) = state::call("vkCreateDevice", calls::codes("vkCreateDevice")) {
        return code;
    }
    // SAFETY: the loader has put the link there in this call; the physical device lives.
    let (below, instance) = unsafe {
        (
            info.as_ref().and_then(|info| abi::below_device(info)),
            INSTANCES.read().get(&abi::key(physical)).copied(),
        )
    };
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
    let made = Device {
        next,
        get_proc_addr,
    };
    DEVICES.write().insert(key, Arc::new(made));
    state::lives("device", 1);
    result
}

/// vkDestroyDevice.
///
/// # Safety
/// As vkDestroyDevice.
unsafe extern "system" fn destroy_device(
    raw: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if raw == vk::Device::null() {
        return;
    }
    // SAFETY: the device lives until the call below.
    if let Some(device) = DEVICES.write().remove(&unsafe { abi::key(raw) }) {
        // SAFETY: the arguments are passed on.
        unsafe { (device.next.fp_v1_0().destroy_device)(raw, allocator) };
        state::lives("device", -1);
    }
}

fn device_function(name: &CStr) -> vk::PFN_vkVoidFunction {
    match name.to_bytes() {
        b"vkGetDeviceProcAddr" => untyped(get_device_proc_addr as vk::PFN_vkGetDeviceProcAddr),
        b"vkDestroyDevice" => untyped(destroy_device as vk::PFN_vkDestroyDevice),
        _ => calls::find(name),
    }
}

/// vkGetInstanceProcAddr: functions of this layer, or of the next.
///
/// # Safety
/// As vkGetInstanceProcAddr.
pub unsafe extern "system" fn get_instance_proc_addr(
    raw: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the name is a C string.
    let text = unsafe { CStr::from_ptr(name) };
    let own = match text.to_bytes() {
        b"vkGetInstanceProcAddr" => {
            untyped(get_instance_proc_addr as vk::PFN_vkGetInstanceProcAddr)
        }
        b"vkCreateInstance" => untyped(create_instance as vk::PFN_vkCreateInstance),
        b"vkEnumeratePhysicalDevices" => {
            untyped(enumerate_physical_devices as vk::PFN_vkEnumeratePhysicalDevices)
        }
        b"vkCreateDevice" => untyped(create_device as vk::PFN_vkCreateDevice),
        _ => device_function(text),
    };
    if own.is_some() || raw == vk::Instance::null() {
        return own;
    }
    // SAFETY: the instance lives.
    let instance = INSTANCES.read().get(&unsafe { abi::key(raw) }).copied()?;
    // SAFETY: the arguments are passed on.
    unsafe { (instance.below.get_instance_proc_addr)(raw, name) }
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
    let (device, text) = unsafe { (device_of(raw)?, CStr::from_ptr(name)) };
    // SAFETY: the arguments are passed on.
    let below = unsafe { (device.get_proc_addr)(raw, name) }?;
    device_function(text).or(Some(below))
}
