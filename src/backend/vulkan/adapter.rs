//! A physical device: what it offers, which of it is used, and the [`Caps`] and [`Target`] that follow. No VkDevice.

use super::completion::Completion;
use super::conv;
use super::features::{Extensions, Features};
use super::instance::{Instance, API_VERSION};
use super::probe::{self, Arithmetic};
use crate::backend::caps::{DeviceKind, SvmCaps};
use crate::backend::image::{self, ImageLimits};
use crate::backend::Caps;
use ash::{amd, ext, khr, nv, vk};
use spirv_lowering::target::{FloatCaps, Target};
use std::ffi::CStr;
use std::sync::Arc;
use std::time::Duration;

/// Queues taken of the family, at most.
const MAX_QUEUES: u32 = 8;

/// How the runtime should treat a device beyond what Vulkan tells of it. Each flag has its reason.
#[derive(Debug, Clone, Copy)]
pub struct Workarounds {
    /// Copy with a compute shader from this many bytes on (u64::MAX: never, nor fill with one). vkCmdCopyBuffer reaches 840 GB/s on an
    /// NVIDIA H200 (driver 580.159) where a shader reaches 4100; on software drivers it is a plain memcpy. Look again
    /// with each driver branch. 2026-11.
    pub compute_copy_from: u64,
    /// How long a wait polls before it blocks, in nanoseconds. Polling answers in 12 us where blocking takes 29 (same
    /// device), and in 22 us instead of 43 on lavapipe. 2026-11.
    pub spin_ns: u64,
    /// Polling takes a processor from the threads that do the work, so it offers it to them each time.
    pub spin_yields: bool,
    /// The longest wait in the driver at a time, in nanoseconds (u64::MAX: no limit). With several threads waiting for
    /// one semaphore a wake-up can come 10 ms late (NVIDIA 580), so GPUs are waited for in slices; on a software
    /// driver the timer of a limited wait costs 12 us. 2026-11.
    pub slice_ns: u64,
    /// How the host learns that a batch is done.
    pub completion: Completion,
    /// Nothing is submitted while a pipeline is made, and pipelines are made one by one. With several threads at it,
    /// NVIDIA's driver (580.159) now and then has a kernel begin in code that is not there; the work hangs, and four
    /// seconds later the device is lost (Xid 109). On an H200, 23 of 50 runs of the integration tests on one queue ended
    /// so: 13 of 26 with the pipeline cache, 3 of 11 without, 7 of 13 with a cache for each pipeline. With pipelines made
    /// one by one 2 of 21 did, with no submission meanwhile none of 17. 2026-11.
    pub pipelines_apart: bool,
    /// How long a work-group may run, for the log: beyond, NVIDIA's driver (580.159) gives the device up after 4.5 s, or
    /// 7.5 s on a queue with graphics, with nobody else on the card. The kernel as a whole may take longer. 2026-11.
    pub group_limit: Option<Duration>,
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
    /// Measured peculiarities.
    pub workarounds: Workarounds,
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

fn has(list: &[vk::ExtensionProperties], name: &CStr) -> bool {
    list.iter()
        .any(|extension| extension.extension_name_as_c_str() == Ok(name))
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

        let mut v11 = vk::PhysicalDeviceVulkan11Properties::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Properties::default();
        let mut v13 = vk::PhysicalDeviceVulkan13Properties::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut subgroup_size = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
        let mut dot_product = vk::PhysicalDeviceShaderIntegerDotProductProperties::default();
        let mut import = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut placed = vk::PhysicalDeviceMapMemoryPlacedPropertiesEXT::default();
        let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let mut sm = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
        let mut cores = vk::PhysicalDeviceShaderCorePropertiesAMD::default();
        let (has_pci, has_sm, has_cores) = (
            has(&list, ext::pci_bus_info::NAME),
            has(&list, nv::shader_sm_builtins::NAME),
            has(&list, amd::shader_core_properties::NAME),
        );
        let mut base = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut v11)
            .push_next(&mut v12);
        if !old {
            base = base.push_next(&mut v13);
        }
        if extensions.maintenance4 {
            base = base.push_next(&mut maintenance4);
        }
        if extensions.subgroup_size_control {
            base = base.push_next(&mut subgroup_size);
        }
        if extensions.integer_dot_product {
            base = base.push_next(&mut dot_product);
        }
        if extensions.external_memory_host {
            base = base.push_next(&mut import);
        }
        if extensions.map_memory_placed {
            base = base.push_next(&mut placed);
        }
        if has_pci {
            base = base.push_next(&mut pci);
        }
        if has_sm {
            base = base.push_next(&mut sm);
        }
        if has_cores {
            base = base.push_next(&mut cores);
        }
        // SAFETY: the chain holds only structures that the device knows.
        unsafe { vk_instance.get_physical_device_properties2(raw, &mut base) };

        let limits = &properties.limits;
        let kind = conv::device_kind(properties.device_type);
        let unified = matches!(
            properties.device_type,
            vk::PhysicalDeviceType::CPU | vk::PhysicalDeviceType::INTEGRATED_GPU
        );
        let heap = device_heap(&memory);
        let max_buffer = match (old, extensions.maintenance4) {
            (false, _) => v13.max_buffer_size,
            (true, true) => maintenance4.max_buffer_size,
            (true, false) => v11.max_memory_allocation_size,
        };
        // Sizes are rounded up: the limit must survive that.
        let max_allocation = v11.max_memory_allocation_size.min(max_buffer) & !0xff;
        let max_sparse = if family.sparse && features.core.sparse_binding == vk::TRUE && !unified {
            max_buffer.min(limits.sparse_address_space_size) & !0xff
        } else {
            0
        };
        let control = features.v13.subgroup_size_control == vk::TRUE
            || features.subgroup_size.subgroup_size_control == vk::TRUE;
        let (required_stages, most_required) = if old {
            (
                subgroup_size.required_subgroup_size_stages,
                subgroup_size.max_compute_workgroup_subgroups,
            )
        } else {
            (
                v13.required_subgroup_size_stages,
                v13.max_compute_workgroup_subgroups,
            )
        };
        let (size_min, size_max) = match (old, extensions.subgroup_size_control) {
            (false, _) => (v13.min_subgroup_size, v13.max_subgroup_size),
            (true, true) => (
                subgroup_size.min_subgroup_size,
                subgroup_size.max_subgroup_size,
            ),
            (true, false) => (v11.subgroup_size, v11.subgroup_size),
        };
        let required_subgroups = (size_min != size_max
            && control
            && required_stages.contains(vk::ShaderStageFlags::COMPUTE)
            && (size_min..=size_max).contains(&v11.subgroup_size))
        .then_some((v11.subgroup_size, most_required));
        let subgroup_ops = if v11
            .subgroup_supported_stages
            .contains(vk::ShaderStageFlags::COMPUTE)
        {
            v11.subgroup_supported_operations.as_raw()
        } else {
            0
        };
        let compute_units = match kind {
            _ if has_sm => sm.shader_sm_count,
            _ if has_cores => {
                cores.shader_engine_count
                    * cores.shader_arrays_per_engine_count
                    * cores.compute_units_per_shader_array
            }
            DeviceKind::Cpu => std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            _ => 1,
        };
        let known = probe::known(v12.driver_id);
        let answers = known.unwrap_or_default();
        let dot = if old {
            [
                dot_product.integer_dot_product4x8_bit_packed_signed_accelerated,
                dot_product.integer_dot_product4x8_bit_packed_unsigned_accelerated,
                dot_product.integer_dot_product4x8_bit_packed_mixed_signedness_accelerated,
            ]
        } else {
            [
                v13.integer_dot_product4x8_bit_packed_signed_accelerated,
                v13.integer_dot_product4x8_bit_packed_unsigned_accelerated,
                v13.integer_dot_product4x8_bit_packed_mixed_signedness_accelerated,
            ]
        };
        let has_dot = features.v13.shader_integer_dot_product == vk::TRUE
            || features.dot_product.shader_integer_dot_product == vk::TRUE;
        let target = target(
            &features,
            &v12,
            limits,
            &answers,
            dot.map(|fast| has_dot && fast == vk::TRUE),
            subgroup_ops,
            if size_min == size_max {
                size_min
            } else {
                required_subgroups.map_or(0, |(size, _)| size)
            },
        );
        let host_addresses = matches!(
            v12.driver_id,
            vk::DriverId::MESA_LLVMPIPE | vk::DriverId::GOOGLE_SWIFTSHADER
        );
        let placed_map_align = if features.map_placed.memory_map_placed == vk::TRUE {
            placed.min_placed_memory_map_alignment
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
            exact_short: probe::exact_short(v12.driver_id),
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
            pci: has_pci.then_some([
                pci.pci_domain,
                pci.pci_bus,
                pci.pci_device,
                pci.pci_function,
            ]),
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
            // Vulkan does not tell.
            max_clock_mhz: host_clock_mhz(kind).unwrap_or(1000),
            subgroup_size: v11.subgroup_size,
            subgroup_ops,
            max_subgroups: limits
                .max_compute_work_group_invocations
                .div_ceil(size_min.max(1)),
            independent_subgroups: probe::independent_subgroups(v12.driver_id),
            fp16: target.fp16.supported,
            fp64: target.fp64.supported,
            int64_atomics: target.int64_atomics_global,
            int64_atomics_local: target.int64_atomics_local,
            timer_resolution_ns: (limits.timestamp_period.ceil() as u64).max(1),
            mem_base_align: super::memory::ALIGNMENT as u32,
            host_import_align: import.min_imported_host_pointer_alignment,
            svm: SvmCaps {
                coarse: host_addresses || cfg!(all(unix, target_pointer_width = "64")),
                fine: host_addresses || placed_map_align > 0,
                atomics: host_addresses,
                system: host_addresses,
            },
            // Vulkan does not tell.
            global_cache_size: host_cache_size(kind).unwrap_or(0),
            global_cacheline: if properties.vendor_id == 0x10de {
                128
            } else {
                64
            },
        };
        let workarounds = Workarounds {
            group_limit: (v12.driver_id == vk::DriverId::NVIDIA_PROPRIETARY)
                .then_some(Duration::from_secs(4)),
            pipelines_apart: v12.driver_id == vk::DriverId::NVIDIA_PROPRIETARY,
            compute_copy_from: if kind == DeviceKind::Gpu && extensions.push_descriptor {
                1 << 20
            } else {
                u64::MAX
            },
            spin_ns: if kind == DeviceKind::Gpu {
                200_000
            } else {
                100_000
            },
            spin_yields: kind != DeviceKind::Gpu,
            slice_ns: if kind == DeviceKind::Gpu {
                1_000_000
            } else {
                u64::MAX
            },
            completion: Completion::wanted(Completion::Semaphore),
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
            workarounds,
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

/// The processor's clock, for devices that are the processor.
fn host_clock_mhz(kind: DeviceKind) -> Option<u32> {
    if kind != DeviceKind::Cpu {
        return None;
    }
    let from_sysfs =
        std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
            .ok()
            .and_then(|text| text.trim().parse::<u32>().ok())
            .map(|khz| khz / 1000);
    from_sysfs
        .or_else(|| {
            let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
            let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
            line.split(':')
                .nth(1)?
                .trim()
                .parse::<f32>()
                .ok()
                .map(|mhz| mhz as u32)
        })
        .filter(|mhz| *mhz > 0)
}

/// The processor's largest cache, for devices that are the processor. Bytes.
fn host_cache_size(kind: DeviceKind) -> Option<u64> {
    if kind != DeviceKind::Cpu {
        return None;
    }
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    caches
        .flatten()
        .filter_map(|cache| std::fs::read_to_string(cache.path().join("size")).ok())
        .filter_map(|text| {
            let kib = text.trim().strip_suffix('K')?;
            kib.parse::<u64>().ok()?.checked_mul(1024)
        })
        .max()
}

fn float_caps(
    supported: bool,
    known: Arithmetic,
    preserve: bool,
    flush: bool,
    special: bool,
    rte: bool,
) -> FloatCaps {
    if !supported {
        return FloatCaps::NONE;
    }
    FloatCaps {
        supported,
        fused_fma: known.fused_fma,
        exact_div: known.exact_div,
        exact_sqrt: known.exact_sqrt,
        denormals: known.denormals,
        denorm_preserve: preserve,
        denorm_flush: flush,
        signed_zero_inf_nan: special,
        rte,
    }
}

fn target(
    features: &Features,
    v12: &vk::PhysicalDeviceVulkan12Properties<'_>,
    limits: &vk::PhysicalDeviceLimits,
    answers: &probe::Answers,
    dot_4x8: [bool; 3],
    subgroup_ops: u32,
    subgroup_size: u32,
) -> Target {
    let on = |flag: vk::Bool32| flag == vk::TRUE;
    let fp16 = on(features.v12.shader_float16) && on(features.v11.storage_buffer16_bit_access);
    let fp64 = on(features.core.shader_float64);
    // Where widths may not differ in a mode, a mode counts only if all widths in question have it.
    let independent =
        |which: vk::ShaderFloatControlsIndependence, modes: [vk::Bool32; 3]| -> [bool; 3] {
            let [half, single, double] = modes.map(on);
            let (half_ok, double_ok) = (half || !fp16, double || !fp64);
            match which {
                vk::ShaderFloatControlsIndependence::ALL => [half, single, double],
                vk::ShaderFloatControlsIndependence::TYPE_32_ONLY => {
                    [half && double_ok, single, double && half_ok]
                }
                _ => {
                    let all = half_ok && single && double_ok;
                    [half && all, single && all, double && all]
                }
            }
        };
    let denorm = v12.denorm_behavior_independence;
    let rounding = v12.rounding_mode_independence;
    let preserve = independent(
        denorm,
        [
            v12.shader_denorm_preserve_float16,
            v12.shader_denorm_preserve_float32,
            v12.shader_denorm_preserve_float64,
        ],
    );
    let mut flush = independent(
        denorm,
        [
            v12.shader_denorm_flush_to_zero_float16,
            v12.shader_denorm_flush_to_zero_float32,
            v12.shader_denorm_flush_to_zero_float64,
        ],
    );
    // One mode for all widths: flushing in some of them would stand beside preserving in others.
    if denorm == vk::ShaderFloatControlsIndependence::NONE && preserve.contains(&true) {
        flush = [false; 3];
    }
    let rte = independent(
        rounding,
        [
            v12.shader_rounding_mode_rte_float16,
            v12.shader_rounding_mode_rte_float32,
            v12.shader_rounding_mode_rte_float64,
        ],
    );
    let special = [
        v12.shader_signed_zero_inf_nan_preserve_float16,
        v12.shader_signed_zero_inf_nan_preserve_float32,
        v12.shader_signed_zero_inf_nan_preserve_float64,
    ]
    .map(on);
    let workgroup = &features.workgroup;
    Target {
        fences_wait: v12.driver_id == vk::DriverId::MESA_LLVMPIPE,
        long_words: v12.driver_id == vk::DriverId::MESA_LLVMPIPE,
        address_bits: 64,
        max_push_constants: limits.max_push_constants_size,
        max_local_memory: limits.max_compute_shared_memory_size,
        int8: on(features.v12.shader_int8) && on(features.v12.storage_buffer8_bit_access),
        int16: on(features.core.shader_int16) && on(features.v11.storage_buffer16_bit_access),
        fp16: float_caps(
            fp16,
            answers.fp16,
            preserve[0],
            flush[0],
            special[0],
            rte[0],
        ),
        fp32: float_caps(
            true,
            answers.fp32,
            preserve[1],
            flush[1],
            special[1],
            // NVIDIA's driver flushes subnormals, unless this mode stands: then it still does in Fma and Sqrt, and what
            // a function built on both makes of a subnormal number is nonsense. To nearest is what it does anyway.
            rte[1] && v12.driver_id != vk::DriverId::NVIDIA_PROPRIETARY,
        ),
        fp64: float_caps(
            fp64,
            answers.fp64,
            preserve[2],
            flush[2],
            special[2],
            rte[2],
        ),
        good_exp2: answers.exp2,
        good_log2: answers.log2,
        int64_atomics_global: on(features.v12.shader_buffer_int64_atomics),
        int64_atomics_local: on(features.v12.shader_shared_int64_atomics),
        float32_atomic_add_global: on(features.atomic_float.shader_buffer_float32_atomic_add),
        float32_atomic_add_local: on(features.atomic_float.shader_shared_float32_atomic_add),
        workgroup_explicit_layout: on(workgroup.workgroup_memory_explicit_layout)
            && on(workgroup.workgroup_memory_explicit_layout8_bit_access)
            && on(workgroup.workgroup_memory_explicit_layout16_bit_access),
        memory_model_device_scope: on(features.v12.vulkan_memory_model_device_scope),
        device_filters: crate::util::config::get().device_filters,
        storage_image_read: on(features.core.shader_storage_image_read_without_format),
        dot_4x8,
        subgroup_ops,
        subgroup_size,
        subgroup_extended_types: on(features.v12.shader_subgroup_extended_types),
        subgroup_arithmetic: true,
        clock_device: on(features.clock.shader_device_clock),
        clock_subgroup: on(features.clock.shader_subgroup_clock),
        loop_limit: probe::loop_limit(v12.driver_id),
        idle_lanes_run: probe::idle_lanes_run(v12.driver_id),
        miscounts_to_negations: v12.driver_id == vk::DriverId::NVIDIA_PROPRIETARY,
        misrounds_doubles: probe::misrounds_doubles(v12.driver_id),
        debug_lines: false,
    }
}
