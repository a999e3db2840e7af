//! The frame of the tests' Vulkan layers: how they come between the loader and a driver ([`abi`]),
//! and the instances and devices that they serve ([`chain`]). The work of a layer is a [`Layer`];
//! the crate of its library exports `vkNegotiateLoaderLayerInterfaceVersion`, which calls
//! [`negotiate`].

pub mod abi;
mod chain;

pub use chain::{device_of, negotiate, Chain, Device};

use ash::vk;
use std::ffi::{c_void, CStr};

/// A layer.
pub trait Layer: Sized + 'static {
    /// Its data of a device.
    type OfDevice: Send + Sync + 'static;

    /// Its instances and devices.
    fn chain() -> &'static Chain<Self>;

    /// Its functions that take a device, a queue or a command buffer, by name; those for devices themselves are here.
    fn find(name: &CStr) -> vk::PFN_vkVoidFunction;

    /// Before one of vkCreateInstance, vkEnumeratePhysicalDevices and vkCreateDevice. A code: it fails with that.
    fn before(_name: &'static str) -> Option<vk::Result> {
        None
    }

    /// An instance was made.
    fn instance_made() {}

    /// A device was made, with the functions of the next layer; `find` looks up those of extensions.
    fn device_made(
        info: &vk::DeviceCreateInfo<'_>,
        next: &ash::Device,
        find: &dyn Fn(&CStr) -> vk::PFN_vkVoidFunction,
    ) -> Self::OfDevice;

    /// The device goes: nothing of the layer's may use it any more.
    fn device_goes(_device: &Device<Self>) {}

    /// Notifies that the device is destroyed.
    fn device_gone() {}
}

/// A function without its type.
pub fn untyped<Function: Copy>(function: Function) -> vk::PFN_vkVoidFunction {
    assert_eq!(size_of::<Function>(), size_of::<vk::PFN_vkVoidFunction>());
    // SAFETY: called with function pointers alone; whoever asked for the name knows the type.
    unsafe { std::mem::transmute_copy(&function) }
}

/// The address of a function, null for none.
pub fn address(function: vk::PFN_vkVoidFunction) -> *const c_void {
    function.map_or(std::ptr::null(), |found| found as *const c_void)
}
