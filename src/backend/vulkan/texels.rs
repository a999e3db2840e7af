//! The memory of images: a VkImage on memory from gpu-allocator, which several views may share.
//!
//! Optimally tiled, in layout GENERAL all its life but for the beginning ([`super::transition`]).

use super::format;
use super::heap::{Heaps, Owner};
use super::logical::LogicalDevice;
use crate::backend::{ImageDesc, Placement, Result};
use ash::vk;
use gpu_allocator::vulkan::Allocation;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// No memory has addresses like these.
const FIRST_MARK: u64 = 1 << 63;

static NEXT_MARK: AtomicU64 = AtomicU64::new(FIRST_MARK);

/// A VkImage.
pub struct Texels {
    heaps: Arc<Heaps>,
    /// Its handle.
    pub raw: vk::Image,
    allocation: ManuallyDrop<Allocation>,
    /// Its address for the tracker.
    pub mark: u64,
    /// Kernels may write it, where the format of the view can be written.
    pub storage: bool,
}

impl Texels {
    /// Creates the texels of a stored format. The layout is not defined yet.
    pub fn new(
        heaps: &Arc<Heaps>,
        desc: &ImageDesc,
        stored: vk::Format,
        storage: bool,
    ) -> Result<Arc<Self>> {
        let device = &heaps.device;
        let info = vk::ImageCreateInfo::default()
            .flags(format::create_flags(stored))
            .image_type(format::image_type(desc.dim))
            .format(stored)
            .extent(vk::Extent3D {
                width: desc.width.max(1),
                height: desc.height.max(1),
                depth: desc.depth.max(1),
            })
            .mip_levels(1)
            .array_layers(desc.layers.max(1))
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(vk::ImageTiling::OPTIMAL)
            .usage(format::usage(storage))
            .sharing_mode(vk::SharingMode::EXCLUSIVE)
            .initial_layout(vk::ImageLayout::UNDEFINED);
        // SAFETY: the format offers this usage (the caller asked for supported formats), extents are within the limits.
        let raw = unsafe { device.raw.create_image(&info, None) }
            .map_err(|result| device.failed("vkCreateImage", result))?;
        let guard = Guard { device, raw };
        // SAFETY: the image belongs to the device.
        let requirements = unsafe { device.raw.get_image_memory_requirements(raw) };
        let size = requirements.size;
        let owner = Owner::Image(raw);
        let allocation = heaps.bind(owner, requirements, Placement::Device, size)?;
        std::mem::forget(guard);
        Ok(Arc::new(Self {
            heaps: Arc::clone(heaps),
            raw,
            allocation: ManuallyDrop::new(allocation),
            // Ranges that touch are joined by the tracker.
            mark: NEXT_MARK.fetch_add(2, Ordering::Relaxed),
            storage,
        }))
    }

    /// Returns the device of the texels.
    pub fn device(&self) -> &Arc<LogicalDevice> {
        &self.heaps.device
    }
}

impl Drop for Texels {
    fn drop(&mut self) {
        // SAFETY: views keep an Arc of this, and streams one of the views until the work that uses them has completed;
        // destroyed once.
        unsafe { self.heaps.device.raw.destroy_image(self.raw, None) };
        // SAFETY: taken once, here.
        let allocation = unsafe { ManuallyDrop::take(&mut self.allocation) };
        self.heaps.release(allocation);
    }
}

/// A VkImage that destroys itself unless it is handed on.
struct Guard<'a> {
    device: &'a LogicalDevice,
    raw: vk::Image,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing was recorded with the image yet.
        unsafe { self.device.raw.destroy_image(self.raw, None) };
    }
}
