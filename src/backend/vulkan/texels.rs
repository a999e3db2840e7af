//! The memory of images: a VkImage on memory from gpu-allocator, which several views may share.
//!
//! Optimally tiled, in layout GENERAL all its life but for the beginning ([`super::transition`]).

use super::format;
use super::handles::memory_flag;
use super::heap::{Heaps, Owner};
use super::logical::LogicalDevice;
use super::shared::{self, User};
use crate::backend::external::MemoryHandle;
use crate::backend::{DeviceError, ImageDesc, Placement, Result};
use ash::vk;
use gpu_allocator::vulkan::Allocation;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// No memory has addresses like these.
const FIRST_MARK: u64 = 1 << 63;

static NEXT_MARK: AtomicU64 = AtomicU64::new(FIRST_MARK);

/// The memory of the texels.
enum Backing {
    Own(ManuallyDrop<Allocation>),
    Imported(vk::DeviceMemory),
}

/// A VkImage.
pub struct Texels {
    heaps: Arc<Heaps>,
    /// Its handle.
    pub raw: vk::Image,
    backing: Backing,
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
        let flags = format::create_flags(stored) | format::raw_flags(desc.format);
        // Named, so that drivers need not give up compression for any other.
        let views = format::views(desc.format, stored);
        let mut list = vk::ImageFormatListCreateInfo::default().view_formats(&views);
        let info = create_info(desc, stored, storage).flags(flags);
        let info = match flags.contains(vk::ImageCreateFlags::MUTABLE_FORMAT) {
            true => info.push_next(&mut list),
            false => info,
        };
        let guard = create(device, &info)?;
        let raw = guard.raw;
        // SAFETY: the image belongs to the device.
        let requirements = unsafe { device.raw.get_image_memory_requirements(raw) };
        let size = requirements.size;
        let owner = Owner::Image(raw);
        let allocation = heaps.bind(owner, requirements, Placement::Device, size)?;
        std::mem::forget(guard);
        let backing = Backing::Own(ManuallyDrop::new(allocation));
        Ok(Self::with(heaps, raw, backing, storage))
    }

    /// Creates the texels of a stored format on memory of an opaque handle, which is the driver's on success.
    pub fn import(
        heaps: &Arc<Heaps>,
        desc: &ImageDesc,
        stored: vk::Format,
        storage: bool,
        fd: i32,
    ) -> Result<Arc<Self>> {
        const KIND: MemoryHandle = MemoryHandle::OpaqueFd;
        let device = &heaps.device;
        let dedicated = importable(device, desc, stored, storage)?;
        let mut external =
            vk::ExternalMemoryImageCreateInfo::default().handle_types(memory_flag(KIND));
        let info = create_info(desc, stored, storage).push_next(&mut external);
        let guard = create(device, &info)?;
        let raw = guard.raw;
        // SAFETY: the image belongs to the device.
        let requirements = unsafe { device.raw.get_image_memory_requirements(raw) };
        shared::check(KIND, fd, requirements.size)?;
        let user = (User::Image(raw), dedicated);
        let memory = shared::import(heaps, KIND, fd, requirements, user)?;
        std::mem::forget(guard);
        Ok(Self::with(heaps, raw, Backing::Imported(memory), storage))
    }

    fn with(heaps: &Arc<Heaps>, raw: vk::Image, backing: Backing, storage: bool) -> Arc<Self> {
        Arc::new(Self {
            heaps: Arc::clone(heaps),
            raw,
            backing,
            // Ranges that touch are joined by the tracker.
            mark: NEXT_MARK.fetch_add(2, Ordering::Relaxed),
            storage,
        })
    }

    /// Returns true if the memory is ours, so that the image was made with flags of ours.
    pub fn is_own(&self) -> bool {
        matches!(self.backing, Backing::Own(_))
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
        match &mut self.backing {
            Backing::Own(allocation) => {
                // SAFETY: taken once, here.
                let allocation = unsafe { ManuallyDrop::take(allocation) };
                self.heaps.release(allocation);
            }
            // SAFETY: the only image bound to the memory is gone; freed once.
            Backing::Imported(memory) => unsafe {
                self.heaps.device.raw.free_memory(*memory, None);
            },
        }
    }
}

fn create_info(
    desc: &ImageDesc,
    stored: vk::Format,
    storage: bool,
) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
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
        .initial_layout(vk::ImageLayout::UNDEFINED)
}

fn create<'a>(device: &'a LogicalDevice, info: &vk::ImageCreateInfo<'_>) -> Result<Guard<'a>> {
    // SAFETY: the format offers this usage (the caller asked for supported formats), extents are within the limits.
    let raw = unsafe { device.raw.create_image(info, None) }
        .map_err(|result| device.failed("vkCreateImage", result))?;
    Ok(Guard { device, raw })
}

/// Returns whether the memory of an opaque handle is for one such image alone, or the error that there are none.
fn importable(
    device: &LogicalDevice,
    desc: &ImageDesc,
    stored: vk::Format,
    storage: bool,
) -> Result<bool> {
    let mut external = vk::PhysicalDeviceExternalImageFormatInfo::default()
        .handle_type(memory_flag(MemoryHandle::OpaqueFd));
    let info = vk::PhysicalDeviceImageFormatInfo2::default()
        .format(stored)
        .ty(format::image_type(desc.dim))
        .tiling(vk::ImageTiling::OPTIMAL)
        .usage(format::usage(storage))
        .flags(format::create_flags(stored))
        .push_next(&mut external);
    let mut reported = vk::ExternalImageFormatProperties::default();
    let mut properties = vk::ImageFormatProperties2::default().push_next(&mut reported);
    let adapter = &device.adapter;
    // SAFETY: the device belongs to the instance.
    let known = unsafe {
        (adapter.instance.raw).get_physical_device_image_format_properties2(
            adapter.raw,
            &info,
            &mut properties,
        )
    };
    let features = reported.external_memory_properties.external_memory_features;
    if known.is_err() || !features.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE) {
        return Err(DeviceError::Unsupported(format!(
            "shared images of {stored:?}"
        )));
    }
    Ok(features.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY))
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
