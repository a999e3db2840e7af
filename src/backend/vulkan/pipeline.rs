//! Kernels: shader modules, their specialisations, the driver's pipeline cache.

use super::adapter::Adapter;
use super::conv::During;
use super::exit;
use super::layouts::{push_range, Layouts};
use super::logical::LogicalDevice;
use super::queue::Queues;
use crate::backend::{Code, DeviceError, Pipeline, Result};
use crate::util::lock::{rank, RwLock};
use crate::util::shutdown;
use crate::util::trace;
use ash::vk;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use spirv_lowering::interface::{KernelInterface, SPEC_LOCAL_SIZE};
use std::any::Any;
use std::ffi::CString;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The objects that pipelines of a device share: the driver's cache, and the layout of all kernels
/// without images.
pub struct Pipelines {
    /// The device.
    pub device: Arc<LogicalDevice>,
    /// The layout of most kernels: push constants and nothing else.
    layout: vk::PipelineLayout,
    queues: Arc<Queues>,
    /// Making pipelines takes it shared, merging takes it alone.
    cache: RwLock<vk::PipelineCache, { rank::PIPELINE_CACHE }>,
}

impl Pipelines {
    /// Creates the cache of a device without pipelines, from `data`, which may be empty.
    pub fn new(queues: &Arc<Queues>, data: &[u8]) -> Result<Self> {
        let device = &queues.device;
        let mut made = Self {
            device: Arc::clone(device),
            layout: vk::PipelineLayout::null(),
            queues: Arc::clone(queues),
            cache: RwLock::new(create_cache(&device.raw, data)?),
        };
        let ranges = [push_range(device)];
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
        // SAFETY: the device lives; the range is within the device's limit.
        made.layout = unsafe { device.raw.create_pipeline_layout(&info, None) }
            .during("vkCreatePipelineLayout")?;
        Ok(made)
    }

    /// Returns true if the header of `data` names this very device and driver.
    pub fn cache_fits(adapter: &Adapter, data: &[u8]) -> bool {
        let word = |at: usize| -> Option<u32> {
            data.get(at..at + 4)
                .and_then(|bytes| bytes.try_into().ok())
                .map(u32::from_le_bytes)
        };
        word(0).is_some_and(|length| (32..=data.len()).contains(&(length as usize)))
            && word(4) == Some(vk::PipelineCacheHeaderVersion::ONE.as_raw() as u32)
            && word(8) == Some(adapter.properties.vendor_id)
            && word(12) == Some(adapter.properties.device_id)
            && data.get(16..32) == Some(&adapter.properties.pipeline_cache_uuid[..])
    }

    /// Returns the contents of the cache, empty when the driver does not report them.
    pub fn cache_data(&self) -> Vec<u8> {
        let cache = self.cache.read();
        // SAFETY: the cache belongs to the device.
        unsafe { self.device.raw.get_pipeline_cache_data(*cache) }.unwrap_or_default()
    }

    /// Adds contents that fit to the cache.
    pub fn merge_cache(&self, data: &[u8]) {
        let cache = self.cache.write();
        let Ok(other) = create_cache(&self.device.raw, data) else {
            return;
        };
        // SAFETY: both caches belong to the device; the lock keeps others from the destination; the source dies once.
        unsafe {
            if let Err(error) = self.device.raw.merge_pipeline_caches(*cache, &[other]) {
                crate::log!(Info, "vkMergePipelineCaches failed: {error:?}");
            }
            self.device.raw.destroy_pipeline_cache(other, None);
        }
    }

    /// Creates a compute pipeline with 32-bit specialisation constants. `subgroup_size`: what its subgroups must have.
    pub fn create(
        &self,
        module: vk::ShaderModule,
        entry: &CString,
        layout: vk::PipelineLayout,
        constants: &[(u32, u32)],
        subgroup_size: Option<u32>,
    ) -> Result<vk::Pipeline> {
        let device = &self.device;
        let mut data: SmallVec<[u8; 64]> = SmallVec::new();
        let mut entries: SmallVec<[vk::SpecializationMapEntry; 16]> = SmallVec::new();
        for (id, value) in constants {
            entries.push(vk::SpecializationMapEntry {
                constant_id: *id,
                offset: data.len() as u32,
                size: 4,
            });
            data.extend_from_slice(&value.to_ne_bytes());
        }
        let special = vk::SpecializationInfo::default()
            .map_entries(&entries)
            .data(&data);
        let mut required = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
            .required_subgroup_size(subgroup_size.unwrap_or(0));
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(entry)
            .specialization_info(&special);
        if subgroup_size.is_some() {
            stage = stage.push_next(&mut required);
        }
        let info = [vk::ComputePipelineCreateInfo::default()
            .stage(stage)
            .layout(layout)];
        let _allowed = exit::compiling().ok_or(DeviceError::Lost)?;
        let _alone = self.queues.hold_back();
        let _span = trace::span("compile", || "Vulkan pipeline".to_owned());
        let cache = self.cache.read();
        // SAFETY: module, layout and cache belong to the device; the structures live.
        match unsafe { device.raw.create_compute_pipelines(*cache, &info, None) } {
            Ok(pipelines) => pipelines
                .first()
                .copied()
                .filter(|pipeline| *pipeline != vk::Pipeline::null())
                .ok_or(DeviceError::OutOfHostMemory),
            Err((_, result)) => {
                crate::log!(Warn, "the driver did not compile a kernel: {result:?}");
                Err(device.failed("vkCreateComputePipelines", result))
            }
        }
    }
}

impl Drop for Pipelines {
    fn drop(&mut self) {
        if shutdown::has_begun() {
            return;
        }
        let raw = &self.device.raw;
        // SAFETY: codes and pipelines hold an Arc of this, so none is left; each is destroyed once.
        unsafe {
            raw.destroy_pipeline_layout(self.layout, None);
            raw.destroy_pipeline_cache(*self.cache.get_mut(), None);
        }
    }
}

fn create_cache(raw: &ash::Device, data: &[u8]) -> Result<vk::PipelineCache> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
    // SAFETY: the device lives; drivers ignore initial data that they cannot use.
    unsafe { raw.create_pipeline_cache(&info, None) }.during("vkCreatePipelineCache")
}

/// Creates a shader module.
pub fn create_module(device: &LogicalDevice, words: &[u32]) -> Result<vk::ShaderModule> {
    let info = vk::ShaderModuleCreateInfo::default().code(words);
    // SAFETY: the caller vouches for valid SPIR-V.
    unsafe { device.raw.create_shader_module(&info, None) }
        .map_err(|result| device.failed("vkCreateShaderModule", result))
}

/// The key of a pipeline: its specialisation constants.
type Key = ([u32; 3], SmallVec<[(u32, u32); 4]>);

/// Pipelines whose keys have one hash.
type Specialised = SmallVec<[(Key, Arc<dyn Pipeline>); 1]>;

/// A loaded kernel.
pub struct VulkanCode {
    common: Arc<Pipelines>,
    module: vk::ShaderModule,
    entry: CString,
    /// Where the kernel has images or samplers.
    layouts: Option<Arc<Layouts>>,
    interface: KernelInterface,
    name: Arc<str>,
    /// By hash of the key, so that looking up needs no owned key.
    pipelines: RwLock<FxHashMap<u64, Specialised>, { rank::CODE_PIPELINES }>,
    /// A pipeline takes long to make: the code is long, or one has taken long.
    costly: AtomicBool,
}

/// Work-group sizes and sizes of local arguments of a kernel that are remembered: lavapipe keeps 90 KB for each. What is in use
/// lives on.
const MOST_PIPELINES: usize = 128;

/// Code of more words takes long to compile: NVIDIA's driver needs 0.8 s for 32,000 words, and 12 s for 233,000.
const LONG_CODE: usize = 20_000;
/// A pipeline that takes longer to make is not made for each work-group size.
const LONG: Duration = Duration::from_millis(200);

fn hash(local_size: [u32; 3], local_args: &[(u32, u32)]) -> u64 {
    let mut hasher = FxHasher::default();
    local_size.hash(&mut hasher);
    local_args.hash(&mut hasher);
    hasher.finish()
}

impl VulkanCode {
    /// Loads a kernel.
    pub fn new(
        common: &Arc<Pipelines>,
        words: &[u32],
        interface: &KernelInterface,
    ) -> Result<Self> {
        let device = &common.device;
        // The compiler names every entry point so, whatever the kernel is called.
        let entry = c"main".to_owned();
        if interface.push_size > device.adapter.properties.limits.max_push_constants_size {
            return Err(DeviceError::Unsupported(format!(
                "{} bytes of push constants",
                interface.push_size
            )));
        }
        let layouts = Layouts::of(device, interface)?;
        Ok(Self {
            module: create_module(device, words)?,
            layouts,
            common: Arc::clone(common),
            entry,
            interface: interface.clone(),
            name: interface.name.as_str().into(),
            pipelines: RwLock::new(FxHashMap::default()),
            costly: AtomicBool::new(words.len() > LONG_CODE),
        })
    }

    /// Returns the sub-group size that the pipeline must require, and the number of sub-groups of a
    /// work-group with it.
    fn required_subgroups(&self) -> Option<(u32, u32)> {
        let control = self.common.device.adapter.subgroups?;
        let required = self.interface.attributes.required_sub_group_size;
        control.requested_size(required, self.interface.uses_subgroups)
    }

    fn find(
        &self,
        hash: u64,
        local_size: [u32; 3],
        local_args: &[(u32, u32)],
    ) -> Option<Arc<dyn Pipeline>> {
        let pipelines = self.pipelines.read();
        let (_, pipeline) = pipelines
            .get(&hash)?
            .iter()
            .find(|((size, args), _)| *size == local_size && args.as_slice() == local_args)?;
        Some(Arc::clone(pipeline))
    }
}

impl Code for VulkanCode {
    fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    fn specialise(
        &self,
        local_size: [u32; 3],
        local_args: &[(u32, u32)],
        _groups: u64,
    ) -> Result<Arc<dyn Pipeline>> {
        let hash = hash(local_size, local_args);
        if let Some(pipeline) = self.find(hash, local_size, local_args) {
            return Ok(pipeline);
        }
        let mut constants: SmallVec<[(u32, u32); 16]> =
            SPEC_LOCAL_SIZE.into_iter().zip(local_size).collect();
        constants.extend_from_slice(local_args);
        // Two threads may both get here; the first to enter its pipeline wins.
        let start = Instant::now();
        let layout = self.layouts.as_ref().map(|layouts| layouts.pipeline);
        let layout = layout.unwrap_or(self.common.layout);
        let raw = self.common.create(
            self.module,
            &self.entry,
            layout,
            &constants,
            self.required_subgroups().map(|(size, _)| size),
        )?;
        if start.elapsed() > LONG {
            self.costly.store(true, Ordering::Relaxed);
        }
        let made: Arc<dyn Pipeline> = Arc::new(VulkanPipeline::new(self, raw, layout));
        let mut pipelines = self.pipelines.write();
        if pipelines.len() >= MOST_PIPELINES && !pipelines.contains_key(&hash) {
            pipelines.clear();
        }
        let list = pipelines.entry(hash).or_default();
        if let Some((_, earlier)) = list
            .iter()
            .find(|((size, args), _)| *size == local_size && args.as_slice() == local_args)
        {
            return Ok(Arc::clone(earlier));
        }
        list.push((
            (local_size, SmallVec::from_slice(local_args)),
            Arc::clone(&made),
        ));
        Ok(made)
    }

    fn specialised(&self) -> usize {
        self.pipelines.read().len()
    }

    fn costly(&self) -> bool {
        self.costly.load(Ordering::Relaxed)
    }

    fn max_work_group_size(&self) -> u32 {
        let most = self.common.device.adapter.caps.max_work_group_size;
        match self.required_subgroups() {
            Some((size, count)) => most.min(size.saturating_mul(count)),
            None => most,
        }
    }
}

impl Drop for VulkanCode {
    fn drop(&mut self) {
        // SAFETY: pipelines do not need their module once made; destroyed once.
        unsafe {
            self.common
                .device
                .raw
                .destroy_shader_module(self.module, None)
        };
    }
}

/// A specialised kernel.
pub struct VulkanPipeline {
    common: Arc<Pipelines>,
    /// The kernel's name.
    pub name: Arc<str>,
    /// The pipeline.
    pub raw: vk::Pipeline,
    /// Its layout.
    pub layout: vk::PipelineLayout,
    /// Its layouts, where it has images or samplers.
    pub layouts: Option<Arc<Layouts>>,
    stamp: AtomicU64,
}

impl VulkanPipeline {
    fn new(code: &VulkanCode, raw: vk::Pipeline, layout: vk::PipelineLayout) -> Self {
        Self {
            common: Arc::clone(&code.common),
            name: Arc::clone(&code.name),
            raw,
            layout,
            layouts: code.layouts.clone(),
            stamp: AtomicU64::new(0),
        }
    }

    /// Downcasts a pipeline to one of this back end.
    pub fn of(pipeline: &dyn Pipeline) -> Result<&Self> {
        pipeline
            .as_any()
            .downcast_ref()
            .ok_or_else(|| DeviceError::Unsupported("a kernel of another back end".to_owned()))
    }

    /// Returns true if `batch` has not taken a reference yet; marks it taken.
    pub fn first_use(&self, batch: u64) -> bool {
        if self.stamp.load(Ordering::Relaxed) == batch {
            return false;
        }
        self.stamp.store(batch, Ordering::Relaxed);
        true
    }
}

impl Pipeline for VulkanPipeline {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for VulkanPipeline {
    fn drop(&mut self) {
        if shutdown::has_begun() {
            return;
        }
        // SAFETY: streams keep an Arc until the work that uses it has completed; destroyed once.
        unsafe { self.common.device.raw.destroy_pipeline(self.raw, None) };
    }
}
