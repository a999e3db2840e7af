//! The Vulkan back end.
//!
//! ```text
//! instance -> adapter   what a physical device offers
//!  -> logical           the VkDevice, made at first use; owned by all below
//!  -> queue             VkQueues, and what is submitted to them; timeline: semaphores as points in time
//!  -> heap              memory types, gpu-allocator
//!       -> memory       buffers with device addresses; import, sparse, svm, replay: other memory behind them
//!       -> texels, image      images, their views, samplers; transition: how they get to their layout
//!  -> pipeline          kernels, specialised and cached; utility: shaders of our own
//!  -> batch             commands that are submitted together: record, copy
//!  -> stream            batches -> VkQueue -> timeline
//!  -> device            all of it, behind the traits of the back end
//! ```
//!
//! Files import what stands above them, never the other way (`ci/layering`).
//!
//! Invariants:
//! - Every Vulkan object is owned by one Rust value that holds an `Arc` of the device; the `VkDevice` goes last.
//! - Memory is known to kernels by its device address alone, so hazards are tracked by address ranges.
//! - A stream submits to one `VkQueue` all its life: barriers at the head of a batch order it after the batch before.
//! - No result of the driver is ignored or unwrapped: all become [`super::DeviceError`].

mod adapter;
mod barrier;
mod batch;
mod caps;
mod clock;
mod conv;
mod copy;
mod descriptor;
mod device;
mod driver;
mod exit;
mod fault;
mod features;
mod format;
mod handles;
mod handover;
mod heap;
mod image;
mod import;
mod instance;
mod layouts;
mod loaded;
mod logical;
mod memory;
mod pipeline;
mod probe;
mod profile;
mod properties;
mod queue;
mod record;
mod replay;
mod semaphore;
mod shared;
mod sparse;
mod stream;
mod subgroups;
mod svm;
mod target;
mod texels;
mod timeline;
mod tracker;
mod transition;
mod tuning;
mod utility;
mod withhold;

#[cfg(test)]
mod tests;

pub use adapter::Unusable;
pub use instance::validation_messages;

use instance::Instance;
use std::sync::Arc;

/// Returns every usable Vulkan device of the machine, in the loader's order. Empty (with a line in
/// the log) when there is no Vulkan loader or no usable device. Cheap: no `VkDevice` is made before
/// it is needed.
pub fn enumerate() -> Vec<Arc<dyn super::Device>> {
    enumerate_with(crate::util::config::get().validation)
        .into_iter()
        .map(|device| device as Arc<dyn super::Device>)
        .collect()
}

/// A Vulkan device of the machine, for who looks for what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surveyed {
    /// As the driver has it.
    pub name: String,
    /// PCI vendor id, or a Khronos vendor id.
    pub vendor_id: u32,
    /// Whether it is software; or why it cannot be used.
    pub software: Result<bool, Unusable>,
}

/// Returns every Vulkan device of the machine. An error when there is no Vulkan loader or it makes
/// no instance.
pub fn survey() -> Result<Vec<Surveyed>, String> {
    let instance = Instance::new(false).map_err(|error| error.to_string())?;
    let examined = adapter::examine(&Arc::new(instance)).into_iter();
    let surveyed = examined.map(|one| Surveyed {
        name: one.name,
        vendor_id: one.vendor_id,
        software: one
            .adapter
            .map(|adapter| adapter.caps.kind == super::caps::DeviceKind::Cpu),
    });
    Ok(surveyed.collect())
}

/// Does the same as [`enumerate`], with the validation layer chosen by the caller.
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
