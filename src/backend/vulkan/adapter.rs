//! A physical device: what it offers, which of it is used, and the [`Caps`] and [`Target`] that follow. No VkDevice.

use super::conv;
use super::driver;
use super::features::{Extensions, Features};
use super::instance::{Instance, API_VERSION};
use super::probe;
use super::properties::{has, Properties};
use super::target;
use crate::backend::caps::{DeviceKind, SvmCaps};
use crate::backend::image::{self, ImageLimits};
use crate::backend::machine;
use crate::backend::Caps;
use crate::quirks::{Quirk, Quirks};
use ash::{ext, khr, vk};
use spirv_lowering::target::Target;
use std::sync::Arc;
use std::time::Duration;

/// Alignment in bytes of every allocation.
pub const ALIGNMENT: u64 = 256;

/// Queues taken of the family, at most.
const MAX_QUEUES: u32 = 8;

/// How a device is waited for and copied with.
#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// Copy and fill with a compute shader from this many bytes on; u64::MAX: never.
    pub compute_copy_from: u64,
    /// How long a wait polls before it blocks, in nanoseconds. Polling answers in 12 us where blocking takes 29 (H200), and
    /// in 22 us instead of 43 on lavapipe.
    pub spin_ns: u64,
    /// Polling takes a processor from the threads that do the work, so it offers it to them each time.
    pub spin_yields: bool,
    /// The longest wait in the driver at a time, in nanoseconds; u64::MAX: no limit. On a software driver the timer of a
    /// limited wait costs 12 us.
    pub slice_ns: u64,
    /// Nothing is submitted while a pipeline is made, and pipelines are made one by one.
    pub pipelines_apart: bool,
    /// How long a work-group may run before the device is lost, for the log.
    pub group_limit: Option<Duration>,
}

impl Tuning {
    fn new(kind: DeviceKind, quirks: Quirks) -> Self {
        let gpu = kind == DeviceKind::Gpu;
        let if_quirk = |quirk: Quirk, value: u64| {
            if quirks.has(quirk) {
                value
            } else {
                u64::MAX
            }
        };
        Self {
            compute_copy_from: if_quirk(Quirk::SlowCopies, 1 << 20),
            spin_ns: if gpu { 200_000 } else { 100_000 },
            spin_yields: !gpu,
            slice_ns: if_quirk(Quirk::LateWakeUps, 1_000_000),
            pipelines_apart: quirks.has(Quirk::PipelinesApart),
            group_limit: quirks
                .has(Quirk::LongGroups)
                .then_some(Duration::from_secs(4)),
        }
    }
}

/// The queue family in use.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct QueueFamily {
    pub index: u32,
    pub count: u32,
    pub timestamp_bits: u32,
    pub sparse: bool,
}

/// A usable physical device.
pub struct Adapter {
    /// Its instance.
    pub instance: Arc<Instance>,
    /// Its handle.
    pub raw: vk::PhysicalDevice,
    /// Core properties.
    pub properties: vk::PhysicalDeviceProperties,
    /// Memory types and heaps.
    pub memory: vk::PhysicalDeviceMemoryProperties,
    /// Extensions to enable.
    pub extensions: Extensions,
    /// Where work is submitted.
    pub family: QueueFamily,
    /// Largest single vkAllocateMemory and VkBuffer.
    pub max_allocation: u64,
    /// Largest buffer put together from several allocations; 0 where there is no sparse binding.
    pub max_sparse: u64,
    /// Device addresses are host addresses: software drivers.
    pub host_addresses: bool,
    /// Memory can be given the address that other memory had (bufferDeviceAddressCaptureReplay).
    pub replays_addresses: bool,
    /// Alignment of addresses that memory can be mapped at; 0: it cannot be placed.
    pub placed_map_align: u64,
    /// For kernels that use sub-groups, where the driver would choose among sizes: the one to ask for, and the most of
    /// them in a work-group.
    pub required_subgroups: Option<(u32, u32)>,
    /// How it is waited for and copied with.
    pub tuning: Tuning,
    /// For the layers above.
    pub caps: Caps,
    /// For the compiler, as far as the physical device tells.
    pub target: Target,
    /// What the arithmetic does must be measured: nothing is known of the driver.
    pub measure: bool,
}

/// Every usable device of an instance.
pub fn enumerate(instance: &Arc<Instance>) -> Vec<Adapter> {
    // SAFETY: the instance lives.
    let devices = unsafe { instance.raw.enumerate_physical_devices() };
    let devices = devices.unwrap_or_else(|error| {
        crate::log!(Warn, "vkEnumeratePhysicalDevices failed: {error:?}");
        Vec::new()
    });
    devices
        .into_iter()
        .filter_map(|raw| {
            // SAFETY: the device was just enumerated from this instance.
            let properties = unsafe { instance.raw.get_physical_device_properties(raw) };
            match Adapter::new(instance, raw, properties) {
                Ok(adapter) => Some(adapter),
                Err(reason) => {
                    let name = conv::text(&properties.device_name);
                    crate::log!(Info, "{name} is left out: {reason}");
                    None
                }
            }
        })
        .collect()
}

impl Adapter {
    fn new(
        instance: &Arc<Instance>,
        raw: vk::PhysicalDevice,
        properties: vk::PhysicalDeviceProperties,
    ) -> Result<Self, String> {
        let vk_instance = &instance.raw;
        let api = properties.api_version.min(API_VERSION | 0xfff);
        if api < vk::API_VERSION_1_2 {
            return Err("it is older than Vulkan 1.2".to_owned());
        }
        // SAFETY: the device belongs to the instance.
        let list = unsafe { vk_instance.enumerate_device_extension_properties(raw) }
            .map_err(|error| format!("vkEnumerateDeviceExtensionProperties: {error:?}"))?;
        let old = api < vk::API_VERSION_1_3;
        let extensions = Extensions {
            external_memory_host: has(&list, ext::external_memory_host::NAME),
            calibrated_timestamps: has(&list, ext::calibrated_timestamps::NAME),
            device_fault: has(&list, ext::device_fault::NAME),
            push_descriptor: has(&list, khr::push_descriptor::NAME),
            atomic_float: has(&list, ext::shader_atomic_float::NAME),
            atomic_float2: has(&list, ext::shader_atomic_float2::NAME),
            shader_clock: has(&list, khr::shader_clock::NAME),
            workgroup_explicit_layout: has(&list, khr::workgroup_memory_explicit_layout::NAME),
            memory_budget: has(&list, ext::memory_budget::NAME),
            map_memory_placed: has(&list, ext::map_memory_placed::NAME)
                && has(&list, khr::map_memory2::NAME),
            maintenance4: old && has(&list, khr::maintenance4::NAME),
            integer_dot_product: old && has(&list, khr::shader_integer_dot_product::NAME),
            subgroup_size_control: old && has(&list, ext::subgroup_size_control::NAME),
        };
        let features = Features::offered(vk_instance, raw, api, &extensions).wanted();
        if let Some(name) = features.missing() {
            return Err(format!("it lacks {name}"));
        }
        let family = choose_family(vk_instance, raw).ok_or("it has no compute queue")?;
        // SAFETY: the device belongs to the instance.
        let memory = unsafe { vk_instance.get_physical_device_memory_properties(raw) };

        let told = Properties::ask(vk_instance, raw, old, &list, &extensions);
        let (v11, v12) = (&told.v11, &told.v12);

        let limits = &properties.limits;
        let kind = conv::device_kind(properties.device_type);
        let unified = matches!(
            properties.device_type,
            vk::PhysicalDeviceType::CPU | vk::PhysicalDeviceType::INTEGRATED_GPU
        );
        let heap = device_heap(&memory);
        let max_buffer = told.max_buffer();
        // Sizes are rounded up: the limit must survive that.
        let max_allocation = v11.max_memory_allocation_size.min(max_buffer) & !0xff;
        let max_sparse = if family.sparse && features.core.sparse_binding == vk::TRUE && !unified {
            max_buffer.min(limits.sparse_address_space_size) & !0xff
        } else {
            0
        };
        let (size_min, size_max) = told.subgroup_sizes();
        let required_subgroups = told.required_subgroups(&features);
        let compute_units = match (told.compute_units, kind) {
            (Some(units), _) => units,
            (_, DeviceKind::Cpu) => {
                std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
            }
            // Vulkan does not tell, and less than one is not allowed.
            _ => 1,
        };
        let quirks = driver::quirks(v12.driver_id, properties.driver_version);
        let known = probe::known(v12.driver_id);
        let answers = known.unwrap_or_default();
        let subgroup_size = if size_min == size_max {
            size_min
        } else {
            required_subgroups.map_or(0, |(size, _)| size)
        };
        let target = target::of(&features, &told, quirks, limits, &answers, subgroup_size);
        let host_addresses = quirks.has(Quirk::HostAddresses);
        let placed_map_align = if features.map_placed.memory_map_placed == vk::TRUE {
            told.placed.min_placed_memory_map_alignment
        } else {
            0
        };
        let images = ImageLimits {
            max_1d: limits.max_image_dimension1_d,
            max_2d: limits.max_image_dimension2_d,
            max_3d: limits.max_image_dimension3_d,
            max_layers: limits.max_image_array_layers,
            max_texels: limits.max_texel_buffer_elements,
            max_sampled: limits
                .max_per_stage_descriptor_sampled_images
                .min(image::MOST_SAMPLED),
            max_storage: limits
                .max_per_stage_descriptor_storage_images
                .min(image::MOST_STORAGE),
            max_samplers: limits
                .max_per_stage_descriptor_samplers
                .min(image::MOST_SAMPLERS),
            buffer_align: limits.min_texel_buffer_offset_alignment.max(1) as u32,
            write_any: features.core.shader_storage_image_write_without_format == vk::TRUE,
            read_any: features.core.shader_storage_image_read_without_format == vk::TRUE,
            exact_short: !quirks.has(Quirk::ShortChannels),
        };
        let caps = Caps {
            images,
            name: conv::text(&properties.device_name),
            vendor: conv::vendor_name(properties.vendor_id).to_owned(),
            vendor_id: properties.vendor_id,
            driver_version: format!(
                "{} {} {}",
                env!("CARGO_PKG_VERSION"),
                conv::text(&v12.driver_name),
                conv::text(&v12.driver_info)
            ),
            device_uuid: v11.device_uuid,
            driver_uuid: v11.driver_uuid,
            luid: (v11.device_luid_valid == vk::TRUE).then_some(v11.device_luid),
            node_mask: v11.device_node_mask,
            pci: told.pci,
            kind,
            unified_memory: unified,
            global_mem_size: heap,
            max_alloc_size: max_allocation.max(max_sparse).min(heap),
            local_mem_size: u64::from(limits.max_compute_shared_memory_size),
            local_mem_dedicated: kind != DeviceKind::Cpu,
            max_work_group_size: limits.max_compute_work_group_invocations,
            max_work_item_sizes: limits.max_compute_work_group_size,
            max_group_count: limits.max_compute_work_group_count,
            compute_units: compute_units.max(1),
            max_clock_mhz: if kind == DeviceKind::Cpu {
                machine::processor_clock().unwrap_or(0)
            } else {
                told.pci.and_then(machine::card_clock).unwrap_or(0)
            },
            subgroup_size: v11.subgroup_size,
            subgroup_sizes: vec![v11.subgroup_size],
            subgroup_ops: target.subgroup_ops,
            max_subgroups: limits
                .max_compute_work_group_invocations
                .div_ceil(size_min.max(1)),
            independent_subgroups: quirks.has(Quirk::IndependentSubgroups),
            fp16: target.fp16.supported,
            fp64: target.fp64.supported,
            int64_atomics: target.int64_atomics_global,
            int64_atomics_local: target.int64_atomics_local,
            timer_resolution_ns: (limits.timestamp_period.ceil() as u64).max(1),
            mem_base_align: ALIGNMENT as u32,
            host_import_align: told.import.min_imported_host_pointer_alignment,
            svm: SvmCaps {
                coarse: host_addresses || cfg!(all(unix, target_pointer_width = "64")),
                fine: host_addresses || placed_map_align > 0,
                atomics: host_addresses,
                system: host_addresses,
            },
            global_cache_size: match kind {
                DeviceKind::Cpu => machine::processor_cache().unwrap_or(0),
                _ => 0,
            },
            global_cacheline: driver::cache_line(properties.vendor_id),
            quirks: quirks.names(),
            rows_are_vectors: quirks.has(Quirk::RowsAreVectors),
            fast_copies: kind == DeviceKind::Gpu,
            native_kernels: false,
        };
        Ok(Self {
            instance: Arc::clone(instance),
            raw,
            properties,
            memory,
            extensions,
            family,
            max_allocation,
            max_sparse,
            host_addresses,
            replays_addresses: features.v12.buffer_device_address_capture_replay == vk::TRUE,
            placed_map_align,
            required_subgroups,
            tuning: Tuning::new(kind, quirks),
            caps,
            target,
            measure: known.is_none(),
        })
    }

    /// Makes the VkDevice, with everything enabled that caps and target tell of.
    pub fn create_device(&self) -> Result<ash::Device, vk::Result> {
        let api = self.properties.api_version.min(API_VERSION | 0xfff);
        let ext = &self.extensions;
        let names = ext.names();
        let priorities: Vec<f32> = (0..self.family.count)
            .map(|index| queue_priority(index, self.family.count))
            .collect();
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(self.family.index)
            .queue_priorities(&priorities)];
        let mut features = Features::offered(&self.instance.raw, self.raw, api, ext).wanted();
        features.chained(api, ext, |chain| {
            let info = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&names)
                .push_next(chain);
            // SAFETY: extensions and features are among those that the device offers; all structures live.
            unsafe { self.instance.raw.create_device(self.raw, &info, None) }
        })
    }
}

/// With four queues and more, the last is low and the last but one high; all others are normal.
pub fn queue_class(index: u32, count: u32) -> i8 {
    match count.saturating_sub(index) {
        1 if count >= 4 => -1,
        2 if count >= 4 => 1,
        _ => 0,
    }
}

fn queue_priority(index: u32, count: u32) -> f32 {
    match queue_class(index, count) {
        -1 => 0.0,
        1 => 1.0,
        _ => 0.5,
    }
}

/// A compute family without graphics where there is one (it does not disturb a desktop), else any with compute.
fn choose_family(instance: &ash::Instance, device: vk::PhysicalDevice) -> Option<QueueFamily> {
    // SAFETY: the device belongs to the instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(device) };
    families
        .iter()
        .enumerate()
        .filter(|(_, family)| {
            family.queue_flags.contains(vk::QueueFlags::COMPUTE) && family.queue_count > 0
        })
        .max_by_key(|(index, family)| {
            let alone = !family.queue_flags.contains(vk::QueueFlags::GRAPHICS);
            (
                family.timestamp_valid_bits > 0,
                alone,
                std::cmp::Reverse(*index),
            )
        })
        .map(|(index, family)| QueueFamily {
            index: index as u32,
            count: family
                .queue_count
                .min(
                    crate::util::config::get()
                        .queues
                        .unwrap_or(MAX_QUEUES)
                        .max(1),
                )
                .min(MAX_QUEUES),
            timestamp_bits: family.timestamp_valid_bits,
            sparse: family.queue_flags.contains(vk::QueueFlags::SPARSE_BINDING),
        })
}

/// Bytes of the largest heap of device memory.
fn device_heap(memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    memory
        .memory_heaps_as_slice()
        .iter()
        .filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
        .map(|heap| heap.size)
        .max()
        .unwrap_or(0)
}
