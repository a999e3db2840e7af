//! Shaders of our own, for copies and fills.
//!
//! They are WGSL, and WGSL has no device addresses; so they reach memory through storage-buffer descriptors, pushed into the
//! command buffer (VK_KHR_push_descriptor).

use super::pipeline::{create_module, Pipelines};
use crate::backend::Result;
use crate::util::lock::{rank, Mutex};
use crate::util::shutdown;
use ash::vk;
use pumice_shaders::util as shaders;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The utility shaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shader {
    /// Linear, in units of 16 bytes.
    Copy16,
    /// Linear, in units of 4 bytes.
    Copy4,
    /// A repeated block of 16-byte units.
    Fill16,
    /// A box, in units of 4 bytes.
    Rect4,
}

/// Pipelines of the utility shaders, made when first used.
pub struct Utilities {
    common: Arc<Pipelines>,
    made: Mutex<Option<Made>, { rank::UTILITIES }>,
    broken: AtomicBool,
}

#[derive(Default, Clone, Copy)]
struct Made {
    set_layout: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipelines: [vk::Pipeline; 4],
}

impl Utilities {
    /// Creates the set of utilities, none of which is compiled yet.
    pub fn new(common: &Arc<Pipelines>) -> Self {
        Self {
            common: Arc::clone(common),
            made: Mutex::default(),
            broken: AtomicBool::new(false),
        }
    }

    /// Returns the pipeline of a shader and its layout. Returns `None` where the device cannot run
    /// it, or not faster than transfer commands.
    pub fn get(&self, shader: Shader) -> Option<(vk::Pipeline, vk::PipelineLayout)> {
        let device = &self.common.device;
        let unwanted = device.adapter.tuning.compute_copy_from == u64::MAX;
        if unwanted || device.push_descriptor.is_none() || self.broken.load(Ordering::Relaxed) {
            return None;
        }
        let mut made = self.made.lock();
        if made.is_none() {
            let mut new = Made::default();
            let result = new.make(&self.common);
            // Kept even when incomplete: what was made must be destroyed.
            *made = Some(new);
            if let Err(error) = result {
                crate::log!(Warn, "utility shaders cannot be used: {error}");
                self.broken.store(true, Ordering::Relaxed);
                return None;
            }
        }
        made.as_ref()
            .map(|made| (made.pipelines[shader as usize], made.layout))
    }
}

impl Drop for Utilities {
    fn drop(&mut self) {
        let made = self.made.get_mut().take();
        let (Some(made), false) = (made, shutdown::has_begun()) else {
            return;
        };
        let raw = &self.common.device.raw;
        // SAFETY: streams hold an Arc of this, so none is left; each is destroyed once, and null handles are allowed.
        unsafe {
            for pipeline in made.pipelines {
                raw.destroy_pipeline(pipeline, None);
            }
            raw.destroy_pipeline_layout(made.layout, None);
            raw.destroy_descriptor_set_layout(made.set_layout, None);
        }
    }
}

impl Made {
    fn make(&mut self, common: &Pipelines) -> Result {
        let device = &common.device;
        let binding = |index| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(index)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings = [binding(0), binding(1)];
        let info = vk::DescriptorSetLayoutCreateInfo::default()
            .flags(vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR)
            .bindings(&bindings);
        // SAFETY: VK_KHR_push_descriptor is enabled.
        self.set_layout = unsafe { device.raw.create_descriptor_set_layout(&info, None) }
            .map_err(|result| device.failed("vkCreateDescriptorSetLayout", result))?;
        let (sets, ranges) = (
            [self.set_layout],
            [vk::PushConstantRange::default()
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
                .size(32)],
        );
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&sets)
            .push_constant_ranges(&ranges);
        // SAFETY: the set layout was just made.
        self.layout = unsafe { device.raw.create_pipeline_layout(&info, None) }
            .map_err(|result| device.failed("vkCreatePipelineLayout", result))?;
        for (shader, code, entry) in [
            (Shader::Copy16, shaders::COPY, c"copy16"),
            (Shader::Copy4, shaders::COPY, c"copy4"),
            (Shader::Fill16, shaders::FILL, c"fill16"),
            (Shader::Rect4, shaders::RECT, c"rect4"),
        ] {
            let words: Vec<u32> = code
                .chunks_exact(4)
                .filter_map(|bytes| bytes.try_into().ok())
                .map(u32::from_le_bytes)
                .collect();
            let module = create_module(device, &words)?;
            let pipeline = common.create(module, &CString::from(entry), self.layout, &[], None);
            // SAFETY: pipelines do not need their module once made.
            unsafe { device.raw.destroy_shader_module(module, None) };
            self.pipelines[shader as usize] = pipeline?;
        }
        Ok(())
    }
}
