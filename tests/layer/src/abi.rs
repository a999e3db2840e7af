//! The interface between the Vulkan loader and a layer, after `vk_layer.h`, which ash does not have.
//!
//! In the chain of vkCreateInstance and vkCreateDevice the loader puts a list of links, one for each layer below. Each layer
//! takes the first one off before it calls the next layer.

use ash::vk::{self, Handle};
use std::ffi::{c_void, CStr};

/// The version of the interface that is spoken here.
pub const VERSION: u32 = 2;

/// LAYER_NEGOTIATE_INTERFACE_STRUCT.
pub const NEGOTIATE_INTERFACE: i32 = 1;

/// VK_LAYER_LINK_INFO.
const LINK_INFO: i32 = 0;

/// VkNegotiateLayerInterface.
#[repr(C)]
#[allow(missing_docs)]
pub struct NegotiateLayerInterface {
    pub s_type: i32,
    pub p_next: *mut c_void,
    pub version: u32,
    pub get_instance_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr>,
    pub get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
    pub get_physical_device_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr>,
}

/// VkLayerInstanceLink. Its last member, another function, is not looked at.
#[repr(C)]
struct InstanceLink {
    next: *mut InstanceLink,
    get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
}

/// VkLayerDeviceLink.
#[repr(C)]
struct DeviceLink {
    next: *mut DeviceLink,
    get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    get_device_proc_addr: vk::PFN_vkGetDeviceProcAddr,
}

/// VkLayerInstanceCreateInfo and VkLayerDeviceCreateInfo, where `function` is [`LINK_INFO`].
#[repr(C)]
struct LayerCreateInfo<Link> {
    s_type: vk::StructureType,
    p_next: *const c_void,
    function: i32,
    link: *mut Link,
}

/// The functions below this layer that make the rest.
#[derive(Clone, Copy)]
pub struct Below {
    /// The next layer's vkGetInstanceProcAddr.
    pub get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    /// The next layer's vkGetDeviceProcAddr; none while an instance is made.
    pub get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
}

impl Below {
    /// The next layer's function of an instance, or a global one.
    ///
    /// # Safety
    /// `Function` must be the type of the function of that name.
    pub unsafe fn instance_function<Function: Copy>(
        &self,
        instance: vk::Instance,
        name: &CStr,
    ) -> Option<Function> {
        // SAFETY: the instance is the next layer's or null.
        let found = unsafe { (self.get_instance_proc_addr)(instance, name.as_ptr()) }?;
        assert_eq!(size_of::<Function>(), size_of_val(&found));
        // SAFETY: both are function pointers, and the caller knows the type.
        Some(unsafe { std::mem::transmute_copy(&found) })
    }
}

/// A structure of the chain that begins with `next`.
///
/// # Safety
/// The chain must be valid, and `T` the type of structures of this kind for which `is` holds.
pub unsafe fn find<T>(
    mut next: *const c_void,
    kind: vk::StructureType,
    is: impl Fn(&T) -> bool,
) -> Option<*mut T> {
    while !next.is_null() {
        // SAFETY: every structure of a chain begins so.
        let base = unsafe { &*next.cast::<vk::BaseInStructure<'_>>() };
        // SAFETY: the caller says that T is the type.
        if base.s_type == kind && is(unsafe { &*next.cast::<T>() }) {
            return Some(next.cast::<T>().cast_mut());
        }
        next = base.p_next.cast();
    }
    None
}

/// Takes this layer's link off the chain of vkCreateInstance.
///
/// # Safety
/// `info` must be what the loader passed, in the call in which it did.
pub unsafe fn below_instance(info: &vk::InstanceCreateInfo<'_>) -> Option<Below> {
    let kind = vk::StructureType::LOADER_INSTANCE_CREATE_INFO;
    // SAFETY: structures of this kind are the loader's; it lets layers advance the list.
    unsafe {
        let found = find(info.p_next, kind, |info: &LayerCreateInfo<InstanceLink>| {
            info.function == LINK_INFO
        })?;
        let link = (*found).link.as_ref()?;
        (*found).link = link.next;
        Some(Below {
            get_instance_proc_addr: link.get_instance_proc_addr,
            get_device_proc_addr: None,
        })
    }
}

/// Takes this layer's link off the chain of vkCreateDevice.
///
/// # Safety
/// `info` must be what the loader passed, in the call in which it did.
pub unsafe fn below_device(info: &vk::DeviceCreateInfo<'_>) -> Option<Below> {
    let kind = vk::StructureType::LOADER_DEVICE_CREATE_INFO;
    // SAFETY: as in `below_instance`.
    unsafe {
        let found = find(info.p_next, kind, |info: &LayerCreateInfo<DeviceLink>| {
            info.function == LINK_INFO
        })?;
        let link = (*found).link.as_ref()?;
        (*found).link = link.next;
        Some(Below {
            get_instance_proc_addr: link.get_instance_proc_addr,
            get_device_proc_addr: Some(link.get_device_proc_addr),
        })
    }
}

/// Returns the loader's table, which objects of one instance or of one device have in common, and
/// no others.
///
/// # Safety
///
/// The handle must be that of a living instance, physical device, device or queue.
pub unsafe fn key<T: Handle>(handle: T) -> usize {
    // SAFETY: the loader defines that such handles point to a pointer.
    unsafe { *(handle.as_raw() as usize as *const usize) }
}
