//! Instances: what is below them, and the names that this layer answers to.

use crate::abi::{self, Below};
use crate::{device, entry, tally};
use ash::vk;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ffi::{c_char, CStr};

/// An instance, and what is below it.
#[derive(Clone, Copy)]
pub struct Instance {
    /// The instance.
    pub raw: vk::Instance,
    below: Below,
    /// The next layer's vkDestroyInstance: asked for later, the loader would name the topmost layer's.
    destroy: Option<vk::PFN_vkDestroyInstance>,
}

static INSTANCES: RwLock<BTreeMap<usize, Instance>> = RwLock::new(BTreeMap::new());

/// The instance that a key ([`abi::key`]) belongs to.
pub fn of(key: usize) -> Option<Instance> {
    INSTANCES.read().get(&key).copied()
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
    // SAFETY: the loader has put the link there in this call.
    let below = unsafe { info.as_ref().and_then(|info| abi::below_instance(info)) };
    let Some(below) = below else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    // SAFETY: the type is that of the function.
    let create: Option<vk::PFN_vkCreateInstance> =
        unsafe { below.instance_function(vk::Instance::null(), c"vkCreateInstance") };
    let Some(create) = create else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    // SAFETY: the arguments are passed on, with the link taken off.
    let result = unsafe { create(info, allocator, instance) };
    if result == vk::Result::SUCCESS {
        // SAFETY: a call that succeeded has written a living instance.
        let (raw, key) = unsafe { (*instance, abi::key(*instance)) };
        let instance = Instance {
            raw,
            below,
            // SAFETY: the type is that of the function.
            destroy: unsafe { below.instance_function(raw, c"vkDestroyInstance") },
        };
        INSTANCES.write().insert(key, instance);
        tally::print_at_exit();
    }
    result
}

/// vkDestroyInstance.
///
/// # Safety
/// As vkDestroyInstance.
unsafe extern "system" fn destroy_instance(
    raw: vk::Instance,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if raw == vk::Instance::null() {
        return;
    }
    // SAFETY: the instance lives until the call below.
    let Some(instance) = INSTANCES.write().remove(&unsafe { abi::key(raw) }) else {
        return;
    };
    if let Some(destroy) = instance.destroy {
        // SAFETY: the arguments are passed on.
        unsafe { destroy(raw, allocator) };
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
            entry::untyped(get_instance_proc_addr as vk::PFN_vkGetInstanceProcAddr)
        }
        b"vkCreateInstance" => entry::untyped(create_instance as vk::PFN_vkCreateInstance),
        b"vkDestroyInstance" => entry::untyped(destroy_instance as vk::PFN_vkDestroyInstance),
        b"vkCreateDevice" => entry::untyped(device::create_device as vk::PFN_vkCreateDevice),
        _ => entry::find(text),
    };
    if own.is_some() || raw == vk::Instance::null() {
        return own;
    }
    // SAFETY: the instance lives.
    let instance = of(unsafe { abi::key(raw) })?;
    // SAFETY: the arguments are passed on.
    unsafe { (instance.below.get_instance_proc_addr)(raw, name) }
}
