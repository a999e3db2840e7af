//! The VkDevice: its entry points, and whether it was lost.
//!
//! All that belongs to it (queues, memory, pipelines, images, streams) holds an `Arc` of it, so that it goes last.

use super::adapter::Adapter;
use super::conv::{self, During};
use super::fault::Faults;
use crate::backend::{DeviceError, Result};
use crate::util::shutdown;
use ash::{ext, khr, vk};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A VkDevice.
pub struct LogicalDevice {
    /// The physical device. It also keeps the instance alive.
    pub adapter: Arc<Adapter>,
    /// The device's entry points.
    pub raw: ash::Device,
    /// VK_KHR_push_descriptor.
    pub push_descriptor: Option<khr::push_descriptor::Device>,
    /// VK_EXT_external_memory_host.
    pub external_memory_host: Option<ext::external_memory_host::Device>,
    /// VK_KHR_external_memory_fd.
    pub external_memory_fd: Option<khr::external_memory_fd::Device>,
    /// VK_KHR_external_semaphore_fd.
    pub external_semaphore_fd: Option<khr::external_semaphore_fd::Device>,
    /// VK_KHR_map_memory2, where memory can be mapped at an address of our choice.
    pub map_memory2: Option<khr::map_memory2::Device>,
    /// The driver's reports about a loss.
    faults: Faults,
    lost: AtomicBool,
}

impl LogicalDevice {
    /// Creates the VkDevice.
    pub fn new(adapter: &Arc<Adapter>) -> Result<Arc<Self>> {
        let raw = adapter.create_device().during("vkCreateDevice")?;
        let instance = &adapter.instance.raw;
        let ext = &adapter.extensions;
        Ok(Arc::new(Self {
            push_descriptor: ext
                .push_descriptor
                .then(|| khr::push_descriptor::Device::new(instance, &raw)),
            external_memory_host: ext
                .external_memory_host
                .then(|| ext::external_memory_host::Device::new(instance, &raw)),
            external_memory_fd: ext
                .external_memory_fd
                .then(|| khr::external_memory_fd::Device::new(instance, &raw)),
            external_semaphore_fd: ext
                .external_semaphore_fd
                .then(|| khr::external_semaphore_fd::Device::new(instance, &raw)),
            map_memory2: (adapter.placed_map_align > 0)
                .then(|| khr::map_memory2::Device::new(instance, &raw)),
            faults: Faults::new(ext, instance, &raw),
            lost: AtomicBool::new(false),
            adapter: Arc::clone(adapter),
            raw,
        }))
    }

    /// Returns an error of a Vulkan call, with note taken of a lost device.
    pub fn failed(&self, call: &'static str, result: vk::Result) -> DeviceError {
        self.noted(conv::error(call, result))
    }

    /// Records whether the error is the loss of the device. Returns the error.
    pub fn noted(&self, error: DeviceError) -> DeviceError {
        if matches!(error, DeviceError::Lost) && !self.lost.swap(true, Ordering::Relaxed) {
            let name = &self.adapter.caps.name;
            crate::log!(Error, "{name}: the device was lost");
            for line in self.faults.describe() {
                crate::log!(Error, "{name}: {line}");
            }
            if let Some(limit) = self.adapter.tuning.group_limit {
                crate::log!(
                    Error,
                    "{name}: this driver gives the device up when one work-group runs for longer than {limit:?}"
                );
            }
        }
        error
    }

    /// Returns true if the device was lost: nothing on it works any more.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for LogicalDevice {
    fn drop(&mut self) {
        if shutdown::has_begun() {
            return;
        }
        // SAFETY: whatever was made from the device holds an Arc of this, so nothing is left; destroyed once.
        unsafe { self.raw.destroy_device(None) };
    }
}
