//! Instances and devices: what is below them, and the names that a layer answers to.

use crate::abi::{self, Below};
use crate::{address, untyped, Layer};
use ash::vk::{self, Handle};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ffi::{c_char, CStr};
use std::sync::Arc;

const FAILED: vk::Result = vk::Result::ERROR_INITIALIZATION_FAILED;

/// An instance, and what is below it. The functions are those of the next layer: asked for later, the loader would name the topmost
/// layer's.
#[derive(Clone, Copy)]
struct Instance {
    raw: vk::Instance,
    below: Below,
    destroy: vk::PFN_vkDestroyInstance,
    enumerate: vk::PFN_vkEnumeratePhysicalDevices,
}

/// A device, and what is below it.
pub struct Device<L: Layer> {
    /// The functions of the next layer.
    pub next: ash::Device,
    /// The layer's data of it.
    pub own: L::OfDevice,
    get_proc_addr: vk::PFN_vkGetDeviceProcAddr,
}

/// The instances and devices of a layer, by their keys ([`abi::key`]).
pub struct Chain<L: Layer> {
    instances: RwLock<BTreeMap<usize, Instance>>,
    devices: RwLock<BTreeMap<usize, Arc<Device<L>>>>,
}

impl<L: Layer> Chain<L> {
    /// None.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            instances: RwLock::new(BTreeMap::new()),
            devices: RwLock::new(BTreeMap::new()),
        }
    }

    fn instance(&self, key: usize) -> Option<Instance> {
        self.instances.read().get(&key).copied()
    }
}

/// The device that a device, queue or command buffer belongs to.
///
/// # Safety
/// It must live.
pub unsafe fn device_of<L: Layer, T: Handle>(handle: T) -> Option<Arc<Device<L>>> {
    // SAFETY: the caller's promise.
    let key = unsafe { abi::key(handle) };
    L::chain().devices.read().get(&key).cloned()
}

/// Tells the loader which functions it may ask for all others.
///
/// # Safety
/// Called by the Vulkan loader only, with a structure of its own.
pub unsafe fn negotiate<L: Layer>(negotiation: *mut abi::NegotiateLayerInterface) -> vk::Result {
    // SAFETY: the loader passes a structure that lives as long as the call.
    let Some(negotiation) = (unsafe { negotiation.as_mut() }) else {
        return FAILED;
    };
    if negotiation.s_type != abi::NEGOTIATE_INTERFACE || negotiation.version < abi::VERSION {
        return FAILED;
    }
    negotiation.version = abi::VERSION;
    negotiation.get_instance_proc_addr = Some(get_instance_proc_addr::<L>);
    negotiation.get_device_proc_addr = Some(get_device_proc_addr::<L>);
    negotiation.get_physical_device_proc_addr = None;
    vk::Result::SUCCESS
}

/// vkCreateInstance.
///
/// # Safety
/// Called by the loader or the layer above, with valid arguments.
unsafe extern "system" fn create_instance<L: Layer>(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    if let Some(code) = L::before("vkCreateInstance") {
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
    // SAFETY: the types are those of the functions.
    let (destroy, enumerate) = unsafe {
        (
            below.instance_function(raw, c"vkDestroyInstance"),
            below.instance_function(raw, c"vkEnumeratePhysicalDevices"),
        )
    };
    let (Some(destroy), Some(enumerate)) = (destroy, enumerate) else {
        return FAILED;
    };
    let made = Instance {
        raw,
        below,
        destroy,
        enumerate,
    };
    L::chain().instances.write().insert(key, made);
    L::instance_made();
    result
}

/// vkDestroyInstance.
///
/// # Safety
/// As vkDestroyInstance.
unsafe extern "system" fn destroy_instance<L: Layer>(
    raw: vk::Instance,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if raw == vk::Instance::null() {
        return;
    }
    // SAFETY: the instance lives until the call below.
    let gone = L::chain()
        .instances
        .write()
        .remove(&unsafe { abi::key(raw) });
    if let Some(instance) = gone {
        // SAFETY: the arguments are passed on.
        unsafe { (instance.destroy)(raw, allocator) };
    }
}

/// vkEnumeratePhysicalDevices.
///
/// # Safety
/// As vkEnumeratePhysicalDevices.
unsafe extern "system" fn enumerate_physical_devices<L: Layer>(
    raw: vk::Instance,
    count: *mut u32,
    devices: *mut vk::PhysicalDevice,
) -> vk::Result {
    if let Some(code) = L::before("vkEnumeratePhysicalDevices") {
        return code;
    }
    // SAFETY: the instance lives.
    let instance = L::chain().instance(unsafe { abi::key(raw) });
    // SAFETY: the arguments are passed on.
    instance.map_or(FAILED, |instance| unsafe {
        (instance.enumerate)(raw, count, devices)
    })
}

/// vkCreateDevice.
///
/// # Safety
/// Called by the loader or the layer above, with valid arguments.
unsafe extern "system" fn create_device<L: Layer>(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    if let Some(code) = L::before("vkCreateDevice") {
        return code;
    }
    // SAFETY: the loader passes a valid structure.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return FAILED;
    };
    // SAFETY: the loader has put the link there in this call; the physical device lives.
    let (below, instance) = unsafe {
        let instance = L::chain().instance(abi::key(physical));
        (abi::below_device(info), instance)
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
    let find = |name: &CStr| unsafe { get_proc_addr(raw, name.as_ptr()) };
    // SAFETY: as above.
    let next = unsafe { ash::Device::load_with(|name| address(find(name)), raw) };
    let made = Device {
        own: L::device_made(info, &next, &find),
        next,
        get_proc_addr,
    };
    L::chain().devices.write().insert(key, Arc::new(made));
    result
}

/// vkDestroyDevice.
///
/// # Safety
/// As vkDestroyDevice.
unsafe extern "system" fn destroy_device<L: Layer>(
    raw: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if raw == vk::Device::null() {
        return;
    }
    // SAFETY: the device lives until the call below.
    let gone = L::chain().devices.write().remove(&unsafe { abi::key(raw) });
    if let Some(device) = gone {
        L::device_goes(&device);
        // SAFETY: the arguments are passed on.
        unsafe { (device.next.fp_v1_0().destroy_device)(raw, allocator) };
        L::device_gone();
    }
}

fn device_function<L: Layer>(name: &CStr) -> vk::PFN_vkVoidFunction {
    match name.to_bytes() {
        b"vkGetDeviceProcAddr" => untyped(get_device_proc_addr::<L> as vk::PFN_vkGetDeviceProcAddr),
        b"vkDestroyDevice" => untyped(destroy_device::<L> as vk::PFN_vkDestroyDevice),
        _ => L::find(name),
    }
}

/// vkGetInstanceProcAddr: functions of the layer, or of the next.
///
/// # Safety
/// As vkGetInstanceProcAddr.
unsafe extern "system" fn get_instance_proc_addr<L: Layer>(
    raw: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the name is a C string.
    let text = unsafe { CStr::from_ptr(name) };
    let own = match text.to_bytes() {
        b"vkGetInstanceProcAddr" => {
            untyped(get_instance_proc_addr::<L> as vk::PFN_vkGetInstanceProcAddr)
        }
        b"vkCreateInstance" => untyped(create_instance::<L> as vk::PFN_vkCreateInstance),
        b"vkDestroyInstance" => untyped(destroy_instance::<L> as vk::PFN_vkDestroyInstance),
        b"vkEnumeratePhysicalDevices" => {
            untyped(enumerate_physical_devices::<L> as vk::PFN_vkEnumeratePhysicalDevices)
        }
        b"vkCreateDevice" => untyped(create_device::<L> as vk::PFN_vkCreateDevice),
        _ => device_function::<L>(text),
    };
    if own.is_some() || raw == vk::Instance::null() {
        return own;
    }
    // SAFETY: the instance lives.
    let instance = L::chain().instance(unsafe { abi::key(raw) })?;
    // SAFETY: the arguments are passed on.
    unsafe { (instance.below.get_instance_proc_addr)(raw, name) }
}

/// vkGetDeviceProcAddr: functions of the layer, where the next has them too, or of the next.
///
/// # Safety
/// As vkGetDeviceProcAddr.
unsafe extern "system" fn get_device_proc_addr<L: Layer>(
    raw: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the device lives, and the name is a C string.
    let (device, text) = unsafe { (device_of::<L, _>(raw)?, CStr::from_ptr(name)) };
    // SAFETY: the arguments are passed on.
    let below = unsafe { (device.get_proc_addr)(raw, name) }?;
    device_function::<L>(text).or(Some(below))
}
