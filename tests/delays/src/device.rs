//! The layer's part in instances and devices: each device has gates.

use crate::{entry, gates::Gates, tally, Delays};
use ash::vk::{self, Handle};
use pumice_layer::abi::find;
use pumice_layer::{Chain, Layer};
use std::ffi::CStr;
use std::sync::Arc;

/// A device; none of its gates without timeline semaphores.
pub type Device = pumice_layer::Device<Delays>;

static CHAIN: Chain<Delays> = Chain::new();

impl Layer for Delays {
    /// The gates that delay its submissions; none without timeline semaphores.
    type OfDevice = Option<Gates>;

    fn chain() -> &'static Chain<Self> {
        &CHAIN
    }

    fn find(name: &CStr) -> vk::PFN_vkVoidFunction {
        entry::find(name)
    }

    fn instance_made() {
        tally::print_at_exit();
    }

    fn device_made(
        info: &vk::DeviceCreateInfo<'_>,
        next: &ash::Device,
        find: &dyn Fn(&CStr) -> vk::PFN_vkVoidFunction,
    ) -> Option<Gates> {
        // SAFETY: the structure is that of a call that succeeded.
        let timelines = unsafe { has_timelines(info) } && find(c"vkSignalSemaphore").is_some();
        timelines.then(|| Gates::new(next))
    }

    fn device_goes(device: &Device) {
        if let Some(gates) = &device.own {
            gates.close();
        }
    }
}

/// The device that a device or queue belongs to.
///
/// # Safety
/// It must live.
pub unsafe fn of<T: Handle>(handle: T) -> Option<Arc<Device>> {
    // SAFETY: the caller's promise.
    unsafe { pumice_layer::device_of(handle) }
}

/// Whether a device is made with timeline semaphores.
///
/// # Safety
/// `info` must be valid for vkCreateDevice.
unsafe fn has_timelines(info: &vk::DeviceCreateInfo<'_>) -> bool {
    let (all, one) = (
        vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        vk::StructureType::PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
    );
    // SAFETY: the types are those of the two kinds of structures.
    unsafe {
        find(
            info.p_next,
            all,
            |features: &vk::PhysicalDeviceVulkan12Features<'_>| {
                features.timeline_semaphore == vk::TRUE
            },
        )
        .is_some()
            || find(
                info.p_next,
                one,
                |features: &vk::PhysicalDeviceTimelineSemaphoreFeatures<'_>| {
                    features.timeline_semaphore == vk::TRUE
                },
            )
            .is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timelines_are_found_in_a_chain() {
        let mut variable = vk::PhysicalDeviceVariablePointersFeatures::default();
        let mut features = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
        let info = vk::DeviceCreateInfo::default()
            .push_next(&mut features)
            .push_next(&mut variable);
        // SAFETY: the chain is valid.
        assert!(unsafe { has_timelines(&info) });
        let mut without = vk::PhysicalDeviceVulkan12Features::default();
        let info = vk::DeviceCreateInfo::default().push_next(&mut without);
        // SAFETY: as above.
        assert!(!unsafe { has_timelines(&info) });
    }
}
