//! A physical device: what it offers, which of it is used, and the [`Caps`] and [`Target`] that follow. No VkDevice.

use super::caps::{self, PhysicalDeviceInfo};
use super::conv;
use super::driver;
use super::features::{Extensions, Features};
use super::handles::{self, MemoryImport, SemaphoreHandles};
use super::instance::{Instance, API_VERSION};
use super::probe;
use super::properties::Properties;
use super::subgroups::SubgroupControl;
use super::target;
use super::tuning::Tuning;
use super::withhold;
use crate::backend::Caps;
use crate::quirks::Quirk;
use ash::vk;
use spirv_lowering::target::Target;
use std::sync::Arc;

/// Queues taken of the family, at most.
const MAX_QUEUES: u32 = 8;

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
    pub queue_family: QueueFamily,
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
    /// The handles of memory that it imports.
    pub memory_imports: Vec<MemoryImport>,
    /// The sizes of sub-groups, where the driver would choose among several.
    pub subgroups: Option<SubgroupControl>,
    /// How it is waited for and copied with.
    pub tuning: Tuning,
    /// For the layers above.
    pub caps: Caps,
    /// For the compiler, as far as the physical device tells.
    pub target: Target,
    /// Set if the arithmetic must be measured because the driver is not known.
    pub measure: bool,
}

/// Returns every usable device of an instance.
pub fn enumerate(instance: &Arc<Instance>) -> Vec<Adapter> {
    examine(instance)
        .into_iter()
        .filter_map(|examined| match examined.adapter {
            Ok(adapter) => Some(adapter),
            Err(unusable) => {
                let Unusable { reason, remedy } = unusable;
                crate::log!(Info, "{} is left out: {reason}; {remedy}", examined.name);
                None
            }
        })
        .collect()
}

/// Why a device cannot be used, and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// A clause about the device.
    pub reason: String,
    /// A clause of its own.
    pub remedy: &'static str,
}

impl Unusable {
    /// Returns a reason that a newer driver may not have.
    pub fn old(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            remedy: "a newer driver of the vendor, or a newer Mesa, may have it",
        }
    }
}

/// A device of an instance.
pub struct Examined {
    /// As the driver has it.
    pub name: String,
    /// PCI vendor id, or a Khronos vendor id.
    pub vendor_id: u32,
    /// The usable device.
    pub adapter: Result<Adapter, Unusable>,
}

/// Returns every device of an instance.
pub fn examine(instance: &Arc<Instance>) -> Vec<Examined> {
    // SAFETY: the instance lives.
    let devices = unsafe { instance.raw.enumerate_physical_devices() };
    let devices = devices.unwrap_or_else(|error| {
        crate::log!(Warn, "vkEnumeratePhysicalDevices failed: {error:?}");
        Vec::new()
    });
    devices
        .into_iter()
        .map(|raw| {
            // SAFETY: the device was just enumerated from this instance.
            let properties = unsafe { instance.raw.get_physical_device_properties(raw) };
            Examined {
                name: conv::text(&properties.device_name),
                vendor_id: properties.vendor_id,
                adapter: Adapter::new(instance, raw, properties),
            }
        })
        .collect()
}

impl Adapter {
    fn new(
        instance: &Arc<Instance>,
        raw: vk::PhysicalDevice,
        properties: vk::PhysicalDeviceProperties,
    ) -> Result<Self, Unusable> {
        let vk_instance = &instance.raw;
        let api = properties.api_version.min(API_VERSION | 0xfff);
        if api < vk::API_VERSION_1_2 {
            return Err(Unusable::old("it is older than Vulkan 1.2"));
        }
        // SAFETY: the device belongs to the instance.
        let list =
            unsafe { vk_instance.enumerate_device_extension_properties(raw) }.map_err(|error| {
                Unusable::old(format!("vkEnumerateDeviceExtensionProperties: {error:?}"))
            })?;
        let old = api < vk::API_VERSION_1_3;
        let mut extensions = Extensions::offered(&list, old);
        withhold::extensions(&mut extensions);
        // The layer's validator of SPIR-V knows it from the SDK of 1.3.280.
        extensions.maximal_reconvergence &= instance
            .layer
            .is_none_or(|layer| layer >= vk::make_api_version(0, 1, 3, 280));
        let features = wanted_features(vk_instance, raw, api, &extensions);
        if let Some(name) = features.missing(&extensions) {
            return Err(Unusable::old(format!("it lacks {name}")));
        }
        let queue_family = choose_queue_family(vk_instance, raw).ok_or_else(|| Unusable {
            reason: "it has no compute queue".to_owned(),
            remedy: "nothing brings it: it cannot run kernels",
        })?;
        // SAFETY: the device belongs to the instance.
        let memory = unsafe { vk_instance.get_physical_device_memory_properties(raw) };

        let mut reported = Properties::ask(vk_instance, raw, old, &list, &extensions);
        withhold::properties(&mut reported);
        let (v11, v12) = (&reported.v11, &reported.v12);

        let limits = &properties.limits;
        let kind = conv::device_kind(properties.device_type);
        let unified = caps::is_unified(&properties);
        let max_buffer = reported.max_buffer();
        // Sizes are rounded up: the limit must survive that.
        let max_allocation = v11.max_memory_allocation_size.min(max_buffer) & !0xff;
        let max_sparse =
            if queue_family.sparse && features.core.sparse_binding == vk::TRUE && !unified {
                max_buffer.min(limits.sparse_address_space_size) & !0xff
            } else {
                0
            };
        let (size_min, size_max) = reported.subgroup_sizes();
        let subgroups = reported.subgroup_control(&features);
        let info = conv::text(&v12.driver_info);
        let version = driver::version_of(v12.driver_id, properties.driver_version, &info);
        let quirks = driver::quirks(v12.driver_id, version);
        if quirks.has(Quirk::LoopResults) {
            return Err(Unusable {
                reason: "it gives loops wrong results".to_owned(),
                remedy: "install Mesa 25.0 or newer (Debian 12 has it in bookworm-backports)",
            });
        }
        let known = probe::recorded_answers(v12.driver_id, version);
        let answers = known.unwrap_or_default();
        let subgroup_size = if size_min == size_max {
            size_min
        } else {
            subgroups.map_or(0, |control| control.usual())
        };
        let target = target::of(
            &features,
            &reported,
            quirks,
            limits,
            &answers,
            subgroup_size,
        );
        let host_addresses = quirks.has(Quirk::HostAddresses);
        let placed_map_align = if features.map_placed.memory_map_placed == vk::TRUE {
            reported.placed.min_placed_memory_map_alignment
        } else {
            0
        };
        let memory_imports = handles::imports_of(instance, raw, &extensions);
        let caps = caps::of(&PhysicalDeviceInfo {
            properties: &properties,
            features: &features,
            reported: &reported,
            quirks,
            target: &target,
            memory: device_heap(&memory),
            max_alloc: max_allocation.max(max_sparse),
            placed_map_align,
            memory_imports: &memory_imports,
            semaphores: match extensions.external_semaphore_fd {
                true => SemaphoreHandles::of(instance, raw),
                false => SemaphoreHandles::default(),
            },
            subgroups,
        });
        Ok(Self {
            instance: Arc::clone(instance),
            raw,
            properties,
            memory,
            extensions,
            queue_family,
            max_allocation,
            max_sparse,
            host_addresses,
            replays_addresses: features.v12.buffer_device_address_capture_replay == vk::TRUE,
            placed_map_align,
            memory_imports,
            subgroups,
            tuning: Tuning::new(kind, quirks),
            caps,
            target,
            measure: known.is_none(),
        })
    }

    /// Creates the VkDevice, with every feature and extension enabled that caps and target report.
    pub fn create_device(&self) -> Result<ash::Device, vk::Result> {
        let api = self.properties.api_version.min(API_VERSION | 0xfff);
        let ext = &self.extensions;
        let names = ext.names();
        let priorities: Vec<f32> = (0..self.queue_family.count)
            .map(|index| queue_priority(index, self.queue_family.count))
            .collect();
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(self.queue_family.index)
            .queue_priorities(&priorities)];
        let mut features = wanted_features(&self.instance.raw, self.raw, api, ext);
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

/// Returns the features to enable of those that a device offers.
fn wanted_features(
    instance: &ash::Instance,
    device: vk::PhysicalDevice,
    api: u32,
    extensions: &Extensions,
) -> Features {
    let mut offered = Features::offered(instance, device, api, extensions);
    withhold::features(&mut offered);
    offered.wanted()
}

/// Returns the priority class of a queue: with four queues and more, the last is low and the last
/// but one high; all others are normal.
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

/// Returns a compute family without graphics where there is one (it does not disturb a desktop),
/// else any with compute.
fn choose_queue_family(
    instance: &ash::Instance,
    device: vk::PhysicalDevice,
) -> Option<QueueFamily> {
    // SAFETY: the device belongs to the instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(device) };
    families
        .iter()
        .enumerate()
        .filter(|(_, queue_family)| {
            queue_family.queue_flags.contains(vk::QueueFlags::COMPUTE)
                && queue_family.queue_count > 0
        })
        .max_by_key(|(index, queue_family)| {
            let alone = !queue_family.queue_flags.contains(vk::QueueFlags::GRAPHICS);
            (
                queue_family.timestamp_valid_bits > 0,
                alone,
                std::cmp::Reverse(*index),
            )
        })
        .map(|(index, queue_family)| QueueFamily {
            index: index as u32,
            count: queue_family
                .queue_count
                .min(
                    crate::util::config::get()
                        .queues
                        .unwrap_or(MAX_QUEUES)
                        .max(1),
                )
                .min(MAX_QUEUES),
            timestamp_bits: queue_family.timestamp_valid_bits,
            sparse: queue_family
                .queue_flags
                .contains(vk::QueueFlags::SPARSE_BINDING),
        })
}

/// Returns the bytes of the largest heap of device memory.
fn device_heap(memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    memory
        .memory_heaps_as_slice()
        .iter()
        .filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
        .map(|heap| heap.size)
        .max()
        .unwrap_or(0)
}
