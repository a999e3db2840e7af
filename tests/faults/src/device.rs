//! The layer's part in instances and devices: what makes them may fail, and devices are counted.

use crate::{calls, state, Faults};
use ash::khr::external_memory_fd;
use ash::vk::{self, Handle};
use pumice_layer::{Chain, Layer};
use std::ffi::CStr;
use std::sync::Arc;

/// A device.
pub type Device = pumice_layer::Device<Faults>;

static CHAIN: Chain<Faults> = Chain::new();

impl Layer for Faults {
    type OfDevice = external_memory_fd::DeviceFn;

    fn chain() -> &'static Chain<Self> {
        &CHAIN
    }

    fn find(name: &CStr) -> vk::PFN_vkVoidFunction {
        calls::find(name)
    }

    fn before(name: &'static str) -> Option<vk::Result> {
        state::call(name, calls::codes(name))
    }

    fn device_made(
        _: &vk::DeviceCreateInfo<'_>,
        _: &ash::Device,
        find: &dyn Fn(&CStr) -> vk::PFN_vkVoidFunction,
    ) -> Self::OfDevice {
        state::add_live("device", 1);
        Self::OfDevice::load(|name| pumice_layer::address(find(name)))
    }

    fn device_gone() {
        state::add_live("device", -1);
    }
}

/// The device that a device, queue or command buffer belongs to.
///
/// # Safety
/// It must live.
pub unsafe fn of<T: Handle>(handle: T) -> Option<Arc<Device>> {
    // SAFETY: the caller's promise.
    unsafe { pumice_layer::device_of(handle) }
}

/// The next layer's functions of Vulkan 1.0.
pub fn fp_v1_0(device: &Device) -> &ash::DeviceFnV1_0 {
    device.next.fp_v1_0()
}

/// The next layer's functions of Vulkan 1.2.
pub fn fp_v1_2(device: &Device) -> &ash::DeviceFnV1_2 {
    device.next.fp_v1_2()
}

/// The next layer's functions of VK_KHR_external_memory_fd.
pub fn external_memory_fd(device: &Device) -> &external_memory_fd::DeviceFn {
    &device.own
}
