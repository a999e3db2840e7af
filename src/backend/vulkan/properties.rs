//! The properties that a physical device reports beyond its core properties, queried in one call,
//! and values derived from them.

use super::features::{has, Extensions, Features};
use super::subgroups::SubgroupControl;
use ash::{amd, ext, nv, vk};

/// The structures that the device filled in. Those of extensions that it lacks are zeros.
#[derive(Default)]
#[allow(missing_docs)]
pub struct Properties {
    /// Set if the device is older than Vulkan 1.3.
    pub old: bool,
    pub v11: vk::PhysicalDeviceVulkan11Properties<'static>,
    pub v12: vk::PhysicalDeviceVulkan12Properties<'static>,
    pub v13: vk::PhysicalDeviceVulkan13Properties<'static>,
    pub maintenance4: vk::PhysicalDeviceMaintenance4Properties<'static>,
    pub subgroup_size: vk::PhysicalDeviceSubgroupSizeControlProperties<'static>,
    pub dot_product: vk::PhysicalDeviceShaderIntegerDotProductProperties<'static>,
    pub import: vk::PhysicalDeviceExternalMemoryHostPropertiesEXT<'static>,
    pub placed: vk::PhysicalDeviceMapMemoryPlacedPropertiesEXT<'static>,
    /// domain, bus, device, function
    pub pci: Option<[u32; 4]>,
    /// Compute units, by the extensions of vendors.
    pub compute_units: Option<u32>,
    subgroup_size_control: bool,
    maintenance4_known: bool,
}

impl Properties {
    /// Queries the properties of a physical device.
    pub fn ask(
        instance: &ash::Instance,
        device: vk::PhysicalDevice,
        old: bool,
        list: &[vk::ExtensionProperties],
        extensions: &Extensions,
    ) -> Self {
        let mut reported = Self {
            old,
            subgroup_size_control: extensions.subgroup_size_control,
            maintenance4_known: extensions.maintenance4,
            ..Self::default()
        };
        let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let mut sm = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
        let mut cores = vk::PhysicalDeviceShaderCorePropertiesAMD::default();
        let (has_pci, has_sm, has_cores) = (
            has(list, ext::pci_bus_info::NAME),
            has(list, nv::shader_sm_builtins::NAME),
            has(list, amd::shader_core_properties::NAME),
        );
        let mut base = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut reported.v11)
            .push_next(&mut reported.v12);
        if !old {
            base = base.push_next(&mut reported.v13);
        }
        if extensions.maintenance4 {
            base = base.push_next(&mut reported.maintenance4);
        }
        if extensions.subgroup_size_control {
            base = base.push_next(&mut reported.subgroup_size);
        }
        if extensions.integer_dot_product {
            base = base.push_next(&mut reported.dot_product);
        }
        if extensions.external_memory_host {
            base = base.push_next(&mut reported.import);
        }
        if extensions.map_memory_placed {
            base = base.push_next(&mut reported.placed);
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
        // SAFETY: the device belongs to the instance; the chain holds only structures that it knows.
        unsafe { instance.get_physical_device_properties2(device, &mut base) };
        reported.unchain();
        reported.pci = has_pci.then_some([
            pci.pci_domain,
            pci.pci_bus,
            pci.pci_device,
            pci.pci_function,
        ]);
        reported.compute_units = if has_sm {
            Some(sm.shader_sm_count)
        } else if has_cores {
            Some(
                cores.shader_engine_count
                    * cores.shader_arrays_per_engine_count
                    * cores.compute_units_per_shader_array,
            )
        } else {
            None
        };
        reported
    }

    /// Clears the links of the chain, as the structures move.
    fn unchain(&mut self) {
        self.v11.p_next = std::ptr::null_mut();
        self.v12.p_next = std::ptr::null_mut();
        self.v13.p_next = std::ptr::null_mut();
        self.maintenance4.p_next = std::ptr::null_mut();
        self.subgroup_size.p_next = std::ptr::null_mut();
        self.dot_product.p_next = std::ptr::null_mut();
        self.import.p_next = std::ptr::null_mut();
        self.placed.p_next = std::ptr::null_mut();
    }

    /// Returns the bytes of the largest buffer.
    pub fn max_buffer(&self) -> u64 {
        match (self.old, self.maintenance4_known) {
            (false, _) => self.v13.max_buffer_size,
            (true, true) => self.maintenance4.max_buffer_size,
            (true, false) => self.v11.max_memory_allocation_size,
        }
    }

    /// Returns the smallest and the largest sub-group.
    pub fn subgroup_sizes(&self) -> (u32, u32) {
        match (self.old, self.subgroup_size_control) {
            (false, _) => (self.v13.min_subgroup_size, self.v13.max_subgroup_size),
            (true, true) => (
                self.subgroup_size.min_subgroup_size,
                self.subgroup_size.max_subgroup_size,
            ),
            (true, false) => (self.v11.subgroup_size, self.v11.subgroup_size),
        }
    }

    /// Returns the sizes of sub-groups, if the driver chooses among several and pipelines can
    /// require one.
    pub fn subgroup_control(&self, features: &Features) -> Option<SubgroupControl> {
        let control = features.v13.subgroup_size_control == vk::TRUE
            || features.subgroup_size.subgroup_size_control == vk::TRUE;
        let (stages, most) = if self.old {
            (
                self.subgroup_size.required_subgroup_size_stages,
                self.subgroup_size.max_compute_workgroup_subgroups,
            )
        } else {
            (
                self.v13.required_subgroup_size_stages,
                self.v13.max_compute_workgroup_subgroups,
            )
        };
        let can = control && stages.contains(vk::ShaderStageFlags::COMPUTE);
        let all =
            can.then(|| SubgroupControl::new(self.subgroup_sizes(), self.v11.subgroup_size, most));
        all.flatten()
    }

    /// Returns the VkSubgroupFeatureFlagBits that work in compute.
    pub fn subgroup_ops(&self) -> u32 {
        let stages = self.v11.subgroup_supported_stages;
        if stages.contains(vk::ShaderStageFlags::COMPUTE) {
            self.v11.subgroup_supported_operations.as_raw()
        } else {
            0
        }
    }

    /// Returns which dot products of packed bytes are fast: signed, unsigned, mixed.
    pub fn dot_4x8(&self, features: &Features) -> [bool; 3] {
        let there = features.v13.shader_integer_dot_product == vk::TRUE
            || features.dot_product.shader_integer_dot_product == vk::TRUE;
        let fast = if self.old {
            let reported = &self.dot_product;
            [
                reported.integer_dot_product4x8_bit_packed_signed_accelerated,
                reported.integer_dot_product4x8_bit_packed_unsigned_accelerated,
                reported.integer_dot_product4x8_bit_packed_mixed_signedness_accelerated,
            ]
        } else {
            let reported = &self.v13;
            [
                reported.integer_dot_product4x8_bit_packed_signed_accelerated,
                reported.integer_dot_product4x8_bit_packed_unsigned_accelerated,
                reported.integer_dot_product4x8_bit_packed_mixed_signedness_accelerated,
            ]
        };
        fast.map(|fast| there && fast == vk::TRUE)
    }
}
