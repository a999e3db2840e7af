//! Handing memory and images over from and to others that share them.
//!
//! While others use them they belong to the external queue family: acquiring and releasing are transfers between that and
//! ours. Images are handed over in layout GENERAL.

use super::barrier::{self, STAGES};
use super::batch::Batch;
use super::image::VulkanImage;
use super::memory::VulkanMemory;
use crate::backend::external::SharedResource;
use crate::backend::Result;
use ash::vk;

impl Batch {
    /// Records the transfer of a resource from the external queue family to ours, or back.
    pub fn hand_over(&mut self, resource: SharedResource<'_>, acquire: bool) -> Result {
        let device = &self.tools.device;
        let ours = device.adapter.queue_family.index;
        let (from, to) = match acquire {
            true => (vk::QUEUE_FAMILY_EXTERNAL, ours),
            false => (ours, vk::QUEUE_FAMILY_EXTERNAL),
        };
        let all = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
        let (before, after, first, second) = match acquire {
            true => (
                vk::AccessFlags::empty(),
                all,
                vk::PipelineStageFlags::TOP_OF_PIPE,
                STAGES,
            ),
            false => (
                all,
                vk::AccessFlags::empty(),
                STAGES,
                vk::PipelineStageFlags::BOTTOM_OF_PIPE,
            ),
        };
        match resource {
            SharedResource::Memory(slice) => {
                let memory = VulkanMemory::of(&*slice.memory)?;
                let barrier = vk::BufferMemoryBarrier::default()
                    .src_access_mask(before)
                    .dst_access_mask(after)
                    .src_queue_family_index(from)
                    .dst_queue_family_index(to)
                    .buffer(memory.buffer)
                    .offset(memory.offset + slice.offset)
                    .size(slice.size);
                barrier::of_resources(device, self.commands, [first, second], &[barrier], &[]);
            }
            SharedResource::Image(image) => {
                let barrier = vk::ImageMemoryBarrier::default()
                    .src_access_mask(before)
                    .dst_access_mask(after)
                    .old_layout(vk::ImageLayout::GENERAL)
                    .new_layout(vk::ImageLayout::GENERAL)
                    .src_queue_family_index(from)
                    .dst_queue_family_index(to)
                    .image(VulkanImage::of(&**image)?.raw()?)
                    .subresource_range(
                        vk::ImageSubresourceRange::default()
                            .aspect_mask(vk::ImageAspectFlags::COLOR)
                            .level_count(1)
                            .layer_count(vk::REMAINING_ARRAY_LAYERS),
                    );
                barrier::of_resources(device, self.commands, [first, second], &[], &[barrier]);
            }
        }
        Ok(())
    }
}
