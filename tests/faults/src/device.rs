//! The layer's part in instances and devices: what makes them may fail, and devices are counted.

use crate::{calls, state, Faults};
use ash::vk::{self, Handle};
use pumice_layer::{Chain, Layer};
use std::ffi::CStr;
use std::sync::Arc;

/// A device.
pub type Device = pumice_layer::Device<Faults>;

static CHAIN: Chain<Faults> = Chain::new();

impl Layer for Faults {
    type OfDevice = ();

    fn chain() -> &'static Chain<Self> {
        &CHAIN
    }

    fn find(name: &CStr) -> vk::PFN_vkVoidFunction {
        calls::find(name)
    }

    fn before(name: &'static str) -> Option<vk::Result> {
        state::call(name, calls::codes(name))
    }

    fn device_made(_: &vk::DeviceCreateInfo<'_>, _: &ash::Device, _: &dyn Fn(&CStr) -> bool) {
        state::add_live("device", 1);
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
