//! The Vulkan back end.
//!
//! ```text
//! instance -> adapter (what a physical device offers) -> device (VkDevice, made at first use)
//!                                                          |- memory    buffers with device addresses
//!                                                          |- image     images, their views, samplers
//!                                                          |- pipeline  kernels, specialised and cached
//!                                                          '- submit    streams: record -> VkQueue -> timeline
//! ```
//!
//! Invariants:
//! - Every Vulkan object is owned by one Rust value that holds an `Arc` of the device; the `VkDevice` goes last.
//! - Memory is known to kernels by its device address alone, so hazards are tracked by address ranges.
//! - A stream submits to one `VkQueue` all its life: barriers at the head of a batch order it after the batch before.
//! - No result of the driver is ignored or unwrapped: all become [`super::DeviceError`].

mod adapter;
mod apart;
mod conv;
mod copy;
mod descriptor;
mod device;
mod driver;
mod exit;
mod fault;
mod features;
mod format;
mod image;
mod instance;
mod memory;
mod pipeline;
mod place;
mod probe;
mod profile;
mod properties;
mod recent;
mod record;
mod settle;
mod sparse;
mod submit;
mod svm;
mod target;
mod timeline;

#[cfg(test)]
mod tests;

pub use instance::validation_messages;

use instance::Instance;
use std::sync::Arc;

/// Every usable Vulkan device of the machine, in the loader's order. Empty (with a line in the log) when there is no
/// Vulkan loader or no usable device. Cheap: no `VkDevice` is made before it is needed.
pub fn enumerate() -> Vec<Arc<dyn super::Device>> {
    enumerate_with(crate::util::config::get().validation)
        .into_iter()
        .map(|device| device as Arc<dyn super::Device>)
        .collect()
}

/// As [`enumerate`], with the validation layer chosen by the caller.
fn enumerate_with(validation: bool) -> Vec<Arc<device::VulkanDevice>> {
    let instance = match Instance::new(validation) {
        Ok(instance) => Arc::new(instance),
        Err(error) => {
            crate::log!(Info, "no Vulkan: {error}");
            return Vec::new();
        }
    };
    adapter::enumerate(&instance)
        .into_iter()
        .map(|adapter| Arc::new(device::VulkanDevice::new(Arc::new(adapter))))
        .collect()
}
