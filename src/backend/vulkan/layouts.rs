//! Layouts of descriptor sets and of pipelines. A kernel without images and samplers has none of its own.

use super::logical::LogicalDevice;
use crate::backend::image::ImageDim;
use crate::backend::Result;
use ash::vk;
use spirv_lowering::interface::KernelInterface;
use std::sync::Arc;

/// Returns the push constants of every kernel.
pub fn push_range(device: &LogicalDevice) -> vk::PushConstantRange {
    vk::PushConstantRange::default()
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
        .size(device.adapter.properties.limits.max_push_constants_size)
}

/// The layouts of a kernel.
pub struct Layouts {
    device: Arc<LogicalDevice>,
    /// The layout of set 0.
    pub set: vk::DescriptorSetLayout,
    /// The layout of pipelines.
    pub pipeline: vk::PipelineLayout,
}

impl Layouts {
    /// Returns the layouts of a kernel; None: it has no images or samplers.
    pub fn of(
        device: &Arc<LogicalDevice>,
        interface: &KernelInterface,
    ) -> Result<Option<Arc<Self>>> {
        let mut bindings: Vec<vk::DescriptorSetLayoutBinding<'_>> = Vec::new();
        let mut add = |binding: u32, kind: vk::DescriptorType| {
            bindings.push(
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(kind)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE),
            );
        };
        for arg in &interface.args {
            if let Some(image) = arg.kind.image() {
                let texels = image.dim == ImageDim::Buffer;
                let of = &image.bindings;
                for binding in [of.sampled, of.raw_sampled].into_iter().flatten() {
                    add(binding, sampled_type(texels));
                }
                for binding in [of.storage, of.raw_storage].into_iter().flatten() {
                    add(binding, storage_type(texels));
                }
            }
        }
        for sampler in &interface.samplers {
            add(sampler.binding, vk::DescriptorType::SAMPLER);
        }
        if bindings.is_empty() {
            return Ok(None);
        }
        let mut layouts = Self {
            device: Arc::clone(device),
            set: vk::DescriptorSetLayout::null(),
            pipeline: vk::PipelineLayout::null(),
        };
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the device lives; the compiler gives each descriptor a binding of its own.
        layouts.set = unsafe { device.raw.create_descriptor_set_layout(&info, None) }
            .map_err(|result| device.failed("vkCreateDescriptorSetLayout", result))?;
        let (sets, ranges) = ([layouts.set], [push_range(device)]);
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&sets)
            .push_constant_ranges(&ranges);
        // SAFETY: the set layout was just made.
        layouts.pipeline = unsafe { device.raw.create_pipeline_layout(&info, None) }
            .map_err(|result| device.failed("vkCreatePipelineLayout", result))?;
        Ok(Some(Arc::new(layouts)))
    }
}

impl Drop for Layouts {
    fn drop(&mut self) {
        // SAFETY: pipelines hold an Arc of this, and streams one of the pipeline; destroyed once; null is fine.
        unsafe {
            self.device.raw.destroy_pipeline_layout(self.pipeline, None);
            self.device
                .raw
                .destroy_descriptor_set_layout(self.set, None);
        }
    }
}

/// Returns the descriptor type of images that are read. `texels`: texel buffers.
pub fn sampled_type(texels: bool) -> vk::DescriptorType {
    if texels {
        vk::DescriptorType::UNIFORM_TEXEL_BUFFER
    } else {
        vk::DescriptorType::SAMPLED_IMAGE
    }
}

/// Returns the descriptor type of images that are written. `texels`: texel buffers.
pub fn storage_type(texels: bool) -> vk::DescriptorType {
    if texels {
        vk::DescriptorType::STORAGE_TEXEL_BUFFER
    } else {
        vk::DescriptorType::STORAGE_IMAGE
    }
}
