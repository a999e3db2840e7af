//! The abilities of a device as [`Caps`]: its limits, features and quirks.

use super::conv;
use super::driver;
use super::features::Features;
use super::handles::{MemoryImport, SemaphoreHandles};
use super::properties::Properties;
use super::subgroups::{self, SubgroupControl};
use crate::backend::caps::{DeviceKind, SvmCaps};
use crate::backend::image::{self, ImageLimits};
use crate::backend::{machine, Caps};
use crate::quirks::{Quirk, Quirks};
use ash::vk;
use spirv_lowering::target::Target;

/// Alignment in bytes of every allocation.
pub const ALIGNMENT: u64 = 256;

/// The properties of a physical device.
pub struct PhysicalDeviceInfo<'a> {
    /// Core properties.
    pub properties: &'a vk::PhysicalDeviceProperties,
    /// The enabled features.
    pub features: &'a Features,
    /// Other properties.
    pub reported: &'a Properties,
    /// The quirks of its driver.
    pub quirks: Quirks,
    /// The properties that the compiler uses.
    pub target: &'a Target,
    /// Bytes of the largest heap of device memory.
    pub memory: u64,
    /// Bytes of the largest buffer.
    pub max_alloc: u64,
    /// Alignment of addresses that memory can be mapped at; 0: it cannot be placed.
    pub placed_map_align: u64,
    /// The handles of memory.
    pub memory_imports: &'a [MemoryImport],
    /// The handles of semaphores.
    pub semaphores: SemaphoreHandles,
    /// The sizes of sub-groups, where there are several.
    pub subgroups: Option<SubgroupControl>,
}

/// Returns true if host and device share memory.
pub fn is_unified(properties: &vk::PhysicalDeviceProperties) -> bool {
    matches!(
        properties.device_type,
        vk::PhysicalDeviceType::CPU | vk::PhysicalDeviceType::INTEGRATED_GPU
    )
}

fn image_limits(info: &PhysicalDeviceInfo<'_>) -> ImageLimits {
    let limits = &info.properties.limits;
    let (features, quirks) = (info.features, info.quirks);
    ImageLimits {
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
        // No format of Vulkan is so.
        raw: false,
        // Storage images are not sRGB.
        srgb_writes: false,
    }
}

/// Returns the abilities for the layers above.
pub fn of(info: &PhysicalDeviceInfo<'_>) -> Caps {
    let PhysicalDeviceInfo {
        properties,
        reported,
        quirks,
        target,
        ..
    } = info;
    let limits = &properties.limits;
    let (v11, v12) = (&reported.v11, &reported.v12);
    let kind = conv::device_kind(properties.device_type);
    let host_addresses = quirks.has(Quirk::HostAddresses);
    let hardware_sizes = match info.subgroups {
        Some(control) => control.sizes(),
        None => vec![v11.subgroup_size],
    };
    let subgroup_sizes = match target.has_subgroups() {
        true => subgroups::with_emulated(&hardware_sizes),
        false => hardware_sizes.clone(),
    };
    let least_of = |sizes: &[u32]| sizes.first().copied().unwrap_or(1).max(1);
    let compute_units = match (reported.compute_units, kind) {
        (Some(units), _) => units,
        (_, DeviceKind::Cpu) => crate::util::cores() as u32,
        // Vulkan does not tell, and less than one is not allowed.
        _ => 1,
    };
    Caps {
        images: image_limits(info),
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
        pci: reported.pci,
        kind,
        unified_memory: is_unified(properties),
        global_mem_size: info.memory,
        max_alloc_size: info.max_alloc.min(info.memory),
        local_mem_size: u64::from(limits.max_compute_shared_memory_size),
        local_mem_dedicated: kind != DeviceKind::Cpu,
        max_work_group_size: limits.max_compute_work_group_invocations,
        max_work_item_sizes: limits.max_compute_work_group_size,
        max_group_count: limits.max_compute_work_group_count,
        compute_units: compute_units.max(1),
        max_clock_mhz: if kind == DeviceKind::Cpu {
            machine::processor_clock()
        } else {
            reported.pci.and_then(machine::card_clock)
        }
        .unwrap_or(machine::NOMINAL_CLOCK),
        subgroup_size: v11.subgroup_size,
        least_subgroup: least_of(&hardware_sizes),
        subgroup_ops: target.subgroup_ops,
        max_subgroups: limits
            .max_compute_work_group_invocations
            .div_ceil(least_of(&subgroup_sizes)),
        subgroup_sizes,
        independent_subgroups: quirks.has(Quirk::IndependentSubgroups),
        fp16: target.fp16.supported,
        fp64: target.fp64.supported,
        int64_atomics: target.int64_atomics_global,
        int64_atomics_local: target.int64_atomics_local,
        timer_resolution_ns: (limits.timestamp_period.ceil() as u64).max(1),
        mem_base_align: ALIGNMENT as u32,
        host_import_align: reported.import.min_imported_host_pointer_alignment,
        svm: SvmCaps {
            coarse: host_addresses || cfg!(all(unix, target_pointer_width = "64")),
            fine: host_addresses || info.placed_map_align > 0,
            atomics: host_addresses,
            system: host_addresses,
        },
        ordered_writes: host_addresses,
        global_cache_size: match kind {
            DeviceKind::Cpu => machine::processor_cache().unwrap_or(0),
            _ => 0,
        },
        global_cacheline: driver::cache_line(properties.vendor_id),
        quirks: quirks.names(),
        rows_are_vectors: quirks.has(Quirk::RowsAreVectors),
        fast_copies: kind == DeviceKind::Gpu,
        native_kernels: false,
        terminable: false,
        memory_imports: (info.memory_imports.iter())
            .map(|import| import.kind)
            .collect(),
        semaphore_imports: info.semaphores.imports.clone(),
        semaphore_exports: info.semaphores.exports.clone(),
    }
}
