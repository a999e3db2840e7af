//! Descriptor set 0 of kernels with images and samplers, for each launch.
//!
//! Sets come from pools that the batch owns and resets when it is used again. Launches in one batch that show a kernel
//! the same resources share a set.

use super::image::{Descriptor, Images, VulkanImage};
use super::layouts::{sampled_type, storage_type, Layouts};
use super::logical::LogicalDevice;
use crate::backend::image::{Resource, MOST_SAMPLED, MOST_SAMPLERS, MOST_STORAGE};
use crate::backend::{Binding, DeviceError, Result};
use ash::vk::{self, Handle};
use smallvec::SmallVec;

/// Sets of a pool.
const SETS: u32 = 64;
/// Sets of a batch that are looked at for one with the same resources.
const RECENT: usize = 8;

/// The key of a set: its layout, then each binding's number and handle.
type Key = SmallVec<[u64; 8]>;

/// The descriptor sets of a batch.
#[derive(Default)]
pub struct Sets {
    pools: Vec<vk::DescriptorPool>,
    /// The pool in use.
    at: usize,
    recent: Vec<(Key, vk::DescriptorSet)>,
}

impl Sets {
    /// Frees all sets. None may be in use.
    pub fn reset(&mut self, device: &LogicalDevice) {
        if self.recent.is_empty() && self.at == 0 {
            return;
        }
        self.recent.clear();
        self.at = 0;
        for pool in &self.pools {
            // SAFETY: the batch has completed, so no set is in use. The call cannot fail.
            let reset = unsafe {
                device
                    .raw
                    .reset_descriptor_pool(*pool, vk::DescriptorPoolResetFlags::empty())
            };
            if let Err(error) = reset {
                crate::log!(Warn, "vkResetDescriptorPool: {error:?}");
            }
        }
    }

    /// Destroys the pools. No set may be in use.
    pub fn destroy(&mut self, device: &LogicalDevice) {
        for pool in self.pools.drain(..) {
            // SAFETY: no set is in use, as the caller knows; destroyed once.
            unsafe { device.raw.destroy_descriptor_pool(pool, None) };
        }
    }

    fn new_pool(device: &LogicalDevice) -> Result<vk::DescriptorPool> {
        let size = |kind, descriptor_count| vk::DescriptorPoolSize {
            ty: kind,
            descriptor_count,
        };
        // Room for one kernel with as many as are reported, and for many small ones.
        let sizes = [
            size(vk::DescriptorType::SAMPLED_IMAGE, 2 * MOST_SAMPLED),
            size(vk::DescriptorType::STORAGE_IMAGE, 2 * MOST_STORAGE),
            size(vk::DescriptorType::UNIFORM_TEXEL_BUFFER, MOST_SAMPLED),
            size(vk::DescriptorType::STORAGE_TEXEL_BUFFER, MOST_STORAGE),
            size(vk::DescriptorType::SAMPLER, 2 * MOST_SAMPLERS),
        ];
        let info = vk::DescriptorPoolCreateInfo::default()
            .max_sets(SETS)
            .pool_sizes(&sizes);
        // SAFETY: the device lives.
        unsafe { device.raw.create_descriptor_pool(&info, None) }
            .map_err(|result| device.failed("vkCreateDescriptorPool", result))
    }

    fn allocate(
        &mut self,
        device: &LogicalDevice,
        layout: vk::DescriptorSetLayout,
    ) -> Result<vk::DescriptorSet> {
        let layouts = [layout];
        loop {
            let (pool, fresh) = match self.pools.get(self.at) {
                Some(pool) => (*pool, false),
                None => {
                    let pool = Self::new_pool(device)?;
                    self.pools.push(pool);
                    (pool, true)
                }
            };
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(pool)
                .set_layouts(&layouts);
            // SAFETY: the pool is used by the thread that records the batch alone; the layout lives.
            match unsafe { device.raw.allocate_descriptor_sets(&info) } {
                Ok(sets) => return sets.first().copied().ok_or(DeviceError::OutOfHostMemory),
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL)
                    if !fresh =>
                {
                    self.at += 1
                }
                Err(result) => return Err(device.failed("vkAllocateDescriptorSets", result)),
            }
        }
    }

    /// Returns a set with these resources, which the batch keeps alive.
    pub fn with(
        &mut self,
        device: &LogicalDevice,
        known: &Images,
        layouts: &Layouts,
        bindings: &[Binding],
    ) -> Result<vk::DescriptorSet> {
        let mut images: SmallVec<[vk::DescriptorImageInfo; 8]> = SmallVec::new();
        let mut texels: SmallVec<[vk::BufferView; 8]> = SmallVec::new();
        let mut kinds: SmallVec<[vk::DescriptorType; 8]> = SmallVec::new();
        let mut key = Key::new();
        key.push(layouts.set.as_raw());
        for binding in bindings {
            let mut info = vk::DescriptorImageInfo::default();
            let mut view = vk::BufferView::null();
            let kind = match &binding.resource {
                Resource::Sampler(word) => {
                    info.sampler = known.sampler(*word)?;
                    vk::DescriptorType::SAMPLER
                }
                Resource::Sampled(shown) | Resource::Storage(shown) => {
                    let write = matches!(binding.resource, Resource::Storage(_));
                    let shown = VulkanImage::of(&**shown)?;
                    let (texels, kind) = match shown.descriptor(write)? {
                        Descriptor::Image(image) => {
                            info.image_view = image;
                            info.image_layout = vk::ImageLayout::GENERAL;
                            (false, image.as_raw())
                        }
                        Descriptor::Texels(texels) => {
                            view = texels;
                            (true, texels.as_raw())
                        }
                    };
                    key.push(kind);
                    if write {
                        storage_type(texels)
                    } else {
                        sampled_type(texels)
                    }
                }
            };
            key.push(u64::from(binding.binding));
            key.push(info.sampler.as_raw());
            images.push(info);
            texels.push(view);
            kinds.push(kind);
        }
        let recent = self.recent.iter().rev().take(RECENT);
        if let Some((_, set)) = recent.into_iter().find(|(earlier, _)| *earlier == key) {
            return Ok(*set);
        }
        let set = self.allocate(device, layouts.set)?;
        let writes: SmallVec<[vk::WriteDescriptorSet<'_>; 8]> = bindings
            .iter()
            .zip(&kinds)
            .zip(images.iter().zip(&texels))
            .map(|((binding, kind), (image, view))| {
                let write = vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(binding.binding)
                    .descriptor_type(*kind);
                if *view == vk::BufferView::null() {
                    write.image_info(std::slice::from_ref(image))
                } else {
                    write.texel_buffer_view(std::slice::from_ref(view))
                }
            })
            .collect();
        // SAFETY: the set is new and in no command buffer yet; views and samplers live, the batch keeps them.
        unsafe { device.raw.update_descriptor_sets(&writes, &[]) };
        self.recent.push((key, set));
        Ok(set)
    }
}
