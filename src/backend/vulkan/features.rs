//! Extensions and features of a physical device: what it offers, which of it is wanted, what it must not lack.

use ash::{ext, khr, vk};

/// Device extensions that are used where they exist.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Extensions {
    pub external_memory_host: bool,
    pub external_memory_fd: bool,
    /// With VK_KHR_external_memory_fd, which it needs.
    pub external_memory_dma_buf: bool,
    pub external_semaphore_fd: bool,
    pub calibrated_timestamps: bool,
    pub device_fault: bool,
    pub push_descriptor: bool,
    pub atomic_float: bool,
    pub atomic_float2: bool,
    pub shader_clock: bool,
    pub maximal_reconvergence: bool,
    pub workgroup_explicit_layout: bool,
    pub memory_budget: bool,
    /// With VK_KHR_map_memory2, which it needs.
    pub map_memory_placed: bool,
    /// maintenance4 of Vulkan 1.3, as an extension on 1.2.
    pub maintenance4: bool,
    /// shaderIntegerDotProduct of Vulkan 1.3, as an extension on 1.2.
    pub integer_dot_product: bool,
    /// subgroupSizeControl of Vulkan 1.3, as an extension on 1.2.
    pub subgroup_size_control: bool,
    /// Set for a device on another API, which lacks parts of Vulkan. Where it is there, it must be
    /// enabled.
    pub portability_subset: bool,
}

/// Returns true if a list of extensions has that one.
pub fn has(list: &[vk::ExtensionProperties], name: &std::ffi::CStr) -> bool {
    list.iter()
        .any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

impl Extensions {
    /// Returns which extensions of a list Pumice uses. `old`: the device is older than Vulkan 1.3.
    pub fn offered(list: &[vk::ExtensionProperties], old: bool) -> Self {
        Self {
            external_memory_host: has(list, ext::external_memory_host::NAME),
            external_memory_fd: has(list, khr::external_memory_fd::NAME),
            external_memory_dma_buf: has(list, khr::external_memory_fd::NAME)
                && has(list, ext::external_memory_dma_buf::NAME),
            external_semaphore_fd: has(list, khr::external_semaphore_fd::NAME),
            calibrated_timestamps: has(list, ext::calibrated_timestamps::NAME),
            device_fault: has(list, ext::device_fault::NAME),
            push_descriptor: has(list, khr::push_descriptor::NAME),
            atomic_float: has(list, ext::shader_atomic_float::NAME),
            atomic_float2: has(list, ext::shader_atomic_float2::NAME),
            shader_clock: has(list, khr::shader_clock::NAME),
            maximal_reconvergence: has(list, khr::shader_maximal_reconvergence::NAME),
            workgroup_explicit_layout: has(list, khr::workgroup_memory_explicit_layout::NAME),
            memory_budget: has(list, ext::memory_budget::NAME),
            map_memory_placed: has(list, ext::map_memory_placed::NAME)
                && has(list, khr::map_memory2::NAME),
            maintenance4: old && has(list, khr::maintenance4::NAME),
            integer_dot_product: old && has(list, khr::shader_integer_dot_product::NAME),
            subgroup_size_control: old && has(list, ext::subgroup_size_control::NAME),
            portability_subset: has(list, khr::portability_subset::NAME),
        }
    }

    /// Returns the names of the extensions to enable.
    pub fn names(&self) -> Vec<*const std::ffi::c_char> {
        [
            (self.external_memory_host, ext::external_memory_host::NAME),
            (self.external_memory_fd, khr::external_memory_fd::NAME),
            (
                self.external_memory_dma_buf,
                ext::external_memory_dma_buf::NAME,
            ),
            (self.external_semaphore_fd, khr::external_semaphore_fd::NAME),
            (self.calibrated_timestamps, ext::calibrated_timestamps::NAME),
            (self.device_fault, ext::device_fault::NAME),
            (self.push_descriptor, khr::push_descriptor::NAME),
            (self.atomic_float, ext::shader_atomic_float::NAME),
            (self.atomic_float2, ext::shader_atomic_float2::NAME),
            (self.shader_clock, khr::shader_clock::NAME),
            (
                self.maximal_reconvergence,
                khr::shader_maximal_reconvergence::NAME,
            ),
            (
                self.workgroup_explicit_layout,
                khr::workgroup_memory_explicit_layout::NAME,
            ),
            (self.memory_budget, ext::memory_budget::NAME),
            (self.map_memory_placed, ext::map_memory_placed::NAME),
            (self.map_memory_placed, khr::map_memory2::NAME),
            (self.maintenance4, khr::maintenance4::NAME),
            (
                self.integer_dot_product,
                khr::shader_integer_dot_product::NAME,
            ),
            (self.subgroup_size_control, ext::subgroup_size_control::NAME),
            (self.portability_subset, khr::portability_subset::NAME),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, name)| name.as_ptr())
        .collect()
    }
}

/// The feature structures of a device: offered, or (after [`Features::wanted`]) to be enabled.
#[derive(Default)]
pub struct Features {
    pub(super) core: vk::PhysicalDeviceFeatures,
    pub(super) v11: vk::PhysicalDeviceVulkan11Features<'static>,
    pub(super) v12: vk::PhysicalDeviceVulkan12Features<'static>,
    pub(super) v13: vk::PhysicalDeviceVulkan13Features<'static>,
    pub(super) maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>,
    pub(super) dot_product: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>,
    pub(super) subgroup_size: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>,
    pub(super) atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    pub(super) atomic_float2: vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT<'static>,
    pub(super) clock: vk::PhysicalDeviceShaderClockFeaturesKHR<'static>,
    pub(super) reconvergence: vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR<'static>,
    pub(super) workgroup: vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static>,
    pub(super) map_placed: vk::PhysicalDeviceMapMemoryPlacedFeaturesEXT<'static>,
    pub(super) fault: vk::PhysicalDeviceFaultFeaturesEXT<'static>,
    pub(super) portability: vk::PhysicalDevicePortabilitySubsetFeaturesKHR<'static>,
}

impl Features {
    /// Calls `with` with a chain of the structures that this device supports.
    pub(super) fn chained<R>(
        &mut self,
        api: u32,
        ext: &Extensions,
        with: impl FnOnce(&mut vk::PhysicalDeviceFeatures2<'_>) -> R,
    ) -> R {
        let mut base = vk::PhysicalDeviceFeatures2::default()
            .features(self.core)
            .push_next(&mut self.v11)
            .push_next(&mut self.v12);
        if api >= vk::API_VERSION_1_3 {
            base = base.push_next(&mut self.v13);
        } else {
            if ext.maintenance4 {
                base = base.push_next(&mut self.maintenance4);
            }
            if ext.integer_dot_product {
                base = base.push_next(&mut self.dot_product);
            }
            if ext.subgroup_size_control {
                base = base.push_next(&mut self.subgroup_size);
            }
        }
        if ext.atomic_float {
            base = base.push_next(&mut self.atomic_float);
        }
        if ext.shader_clock {
            base = base.push_next(&mut self.clock);
        }
        if ext.maximal_reconvergence {
            base = base.push_next(&mut self.reconvergence);
        }
        if ext.atomic_float2 {
            base = base.push_next(&mut self.atomic_float2);
        }
        if ext.workgroup_explicit_layout {
            base = base.push_next(&mut self.workgroup);
        }
        if ext.map_memory_placed {
            base = base.push_next(&mut self.map_placed);
        }
        if ext.device_fault {
            base = base.push_next(&mut self.fault);
        }
        if ext.portability_subset {
            base = base.push_next(&mut self.portability);
        }
        let result = with(&mut base);
        self.core = base.features;
        self.v11.p_next = std::ptr::null_mut();
        self.v12.p_next = std::ptr::null_mut();
        self.v13.p_next = std::ptr::null_mut();
        self.maintenance4.p_next = std::ptr::null_mut();
        self.dot_product.p_next = std::ptr::null_mut();
        self.subgroup_size.p_next = std::ptr::null_mut();
        self.atomic_float.p_next = std::ptr::null_mut();
        self.atomic_float2.p_next = std::ptr::null_mut();
        self.clock.p_next = std::ptr::null_mut();
        self.reconvergence.p_next = std::ptr::null_mut();
        self.workgroup.p_next = std::ptr::null_mut();
        self.map_placed.p_next = std::ptr::null_mut();
        self.fault.p_next = std::ptr::null_mut();
        self.portability.p_next = std::ptr::null_mut();
        result
    }

    pub(super) fn offered(
        instance: &ash::Instance,
        device: vk::PhysicalDevice,
        api: u32,
        ext: &Extensions,
    ) -> Self {
        let mut features = Self::default();
        features.chained(api, ext, |chain| {
            // SAFETY: the device belongs to the instance; the chain holds structures that the device knows.
            unsafe { instance.get_physical_device_features2(device, chain) }
        });
        features
    }

    /// Returns the offered features to enable: everything that shaders can gain from, nothing that
    /// costs (robustness stays off).
    pub(super) fn wanted(&self) -> Self {
        let (c, v11, v12, v13) = (&self.core, &self.v11, &self.v12, &self.v13);
        let mut want = Self::default();
        want.core.shader_int64 = c.shader_int64;
        want.core.shader_int16 = c.shader_int16;
        want.core.shader_float64 = c.shader_float64;
        want.core.sparse_binding = c.sparse_binding;
        want.core.shader_storage_image_read_without_format =
            c.shader_storage_image_read_without_format;
        want.core.shader_storage_image_write_without_format =
            c.shader_storage_image_write_without_format;
        want.core.shader_storage_image_extended_formats = c.shader_storage_image_extended_formats;
        want.core.image_cube_array = 0;

        want.v11.storage_buffer16_bit_access = v11.storage_buffer16_bit_access;
        want.v11.uniform_and_storage_buffer16_bit_access =
            v11.uniform_and_storage_buffer16_bit_access;
        want.v11.storage_push_constant16 = v11.storage_push_constant16;
        want.v11.variable_pointers = v11.variable_pointers;
        want.v11.variable_pointers_storage_buffer = v11.variable_pointers_storage_buffer;

        want.v12.storage_buffer8_bit_access = v12.storage_buffer8_bit_access;
        want.v12.uniform_and_storage_buffer8_bit_access =
            v12.uniform_and_storage_buffer8_bit_access;
        want.v12.storage_push_constant8 = v12.storage_push_constant8;
        want.v12.shader_buffer_int64_atomics = v12.shader_buffer_int64_atomics;
        want.v12.shader_shared_int64_atomics = v12.shader_shared_int64_atomics;
        want.v12.shader_float16 = v12.shader_float16;
        want.v12.shader_int8 = v12.shader_int8;
        want.v12.scalar_block_layout = v12.scalar_block_layout;
        want.v12.uniform_buffer_standard_layout = v12.uniform_buffer_standard_layout;
        want.v12.shader_subgroup_extended_types = v12.shader_subgroup_extended_types;
        want.v12.host_query_reset = v12.host_query_reset;
        want.v12.timeline_semaphore = v12.timeline_semaphore;
        want.v12.buffer_device_address = v12.buffer_device_address;
        want.v12.buffer_device_address_capture_replay = v12.buffer_device_address_capture_replay;
        want.v12.vulkan_memory_model = v12.vulkan_memory_model;
        want.v12.vulkan_memory_model_device_scope = v12.vulkan_memory_model_device_scope;

        want.v13.maintenance4 = v13.maintenance4;
        want.v13.shader_integer_dot_product = v13.shader_integer_dot_product;
        want.v13.subgroup_size_control = v13.subgroup_size_control;
        want.v13.compute_full_subgroups = v13.compute_full_subgroups;
        want.v13.shader_zero_initialize_workgroup_memory =
            v13.shader_zero_initialize_workgroup_memory;
        want.maintenance4.maintenance4 = self.maintenance4.maintenance4;
        want.dot_product.shader_integer_dot_product = self.dot_product.shader_integer_dot_product;
        want.subgroup_size.subgroup_size_control = self.subgroup_size.subgroup_size_control;
        want.subgroup_size.compute_full_subgroups = self.subgroup_size.compute_full_subgroups;

        let (a, w) = (&self.atomic_float, &mut want.atomic_float);
        w.shader_buffer_float32_atomics = a.shader_buffer_float32_atomics;
        w.shader_buffer_float32_atomic_add = a.shader_buffer_float32_atomic_add;
        w.shader_buffer_float64_atomics = a.shader_buffer_float64_atomics;
        w.shader_buffer_float64_atomic_add = a.shader_buffer_float64_atomic_add;
        w.shader_shared_float32_atomics = a.shader_shared_float32_atomics;
        w.shader_shared_float32_atomic_add = a.shader_shared_float32_atomic_add;
        w.shader_shared_float64_atomics = a.shader_shared_float64_atomics;
        w.shader_shared_float64_atomic_add = a.shader_shared_float64_atomic_add;
        let (a, w) = (&self.clock, &mut want.clock);
        w.shader_device_clock = a.shader_device_clock;
        w.shader_subgroup_clock = a.shader_subgroup_clock;
        want.reconvergence.shader_maximal_reconvergence =
            self.reconvergence.shader_maximal_reconvergence;
        let (a, w) = (&self.atomic_float2, &mut want.atomic_float2);
        w.shader_buffer_float32_atomic_min_max = a.shader_buffer_float32_atomic_min_max;
        w.shader_shared_float32_atomic_min_max = a.shader_shared_float32_atomic_min_max;
        let (a, w) = (&self.workgroup, &mut want.workgroup);
        w.workgroup_memory_explicit_layout = a.workgroup_memory_explicit_layout;
        w.workgroup_memory_explicit_layout_scalar_block_layout =
            a.workgroup_memory_explicit_layout_scalar_block_layout;
        w.workgroup_memory_explicit_layout8_bit_access =
            a.workgroup_memory_explicit_layout8_bit_access;
        w.workgroup_memory_explicit_layout16_bit_access =
            a.workgroup_memory_explicit_layout16_bit_access;
        want.map_placed.memory_map_placed = self.map_placed.memory_map_placed;
        want.fault.device_fault = self.fault.device_fault;
        // What a device on another API has of Vulkan's common parts.
        want.portability = self.portability;
        want
    }

    /// Returns the first required feature that is missing.
    pub(super) fn missing(&self, ext: &Extensions) -> Option<&'static str> {
        let whole = |feature: vk::Bool32| match ext.portability_subset {
            true => feature,
            false => vk::TRUE,
        };
        [
            (self.v12.buffer_device_address, "bufferDeviceAddress"),
            (self.v12.timeline_semaphore, "timelineSemaphore"),
            (self.v12.host_query_reset, "hostQueryReset"),
            (self.v12.vulkan_memory_model, "vulkanMemoryModel"),
            (whole(self.portability.events), "events"),
            (
                whole(self.portability.image_view_format_swizzle),
                "imageViewFormatSwizzle",
            ),
            (
                whole(self.portability.image_view_format_reinterpretation),
                "imageViewFormatReinterpretation",
            ),
        ]
        .into_iter()
        .find(|(have, _)| *have == vk::FALSE)
        .map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portability_subset_is_enabled_where_it_is() {
        let mut property = vk::ExtensionProperties::default();
        assert!(!Extensions::offered(&[property], false).portability_subset);
        let name = khr::portability_subset::NAME.to_bytes();
        for (to, from) in property.extension_name.iter_mut().zip(name) {
            *to = *from as std::ffi::c_char;
        }
        let extensions = Extensions::offered(&[property], false);
        assert_eq!(extensions.names(), [khr::portability_subset::NAME.as_ptr()]);
    }
}
