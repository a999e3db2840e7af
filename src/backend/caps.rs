//! The abilities of a device, independent of the API that reports them. clGetDeviceInfo reads them.

use super::external::{MemoryHandle, SemaphoreHandle};

/// Identity, limits and features of a device.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct Caps {
    pub name: String,
    pub vendor: String,
    /// PCI vendor id, or a Khronos vendor id.
    pub vendor_id: u32,
    /// CL_DRIVER_VERSION: ours with the Vulkan driver's.
    pub driver_version: String,
    pub device_uuid: [u8; 16],
    pub driver_uuid: [u8; 16],
    pub luid: Option<[u8; 8]>,
    pub node_mask: u32,
    /// domain, bus, device, function
    pub pci: Option<[u32; 4]>,
    pub kind: DeviceKind,
    /// Host and device share memory.
    pub unified_memory: bool,
    /// Bytes of device memory.
    pub global_mem_size: u64,
    /// Bytes of the largest allocation.
    pub max_alloc_size: u64,
    /// Bytes of shared memory of a work-group.
    pub local_mem_size: u64,
    /// Shared memory is real on-chip memory.
    pub local_mem_dedicated: bool,
    pub max_work_group_size: u32,
    pub max_work_item_sizes: [u32; 3],
    /// Largest number of groups of one dispatch.
    pub max_group_count: [u32; 3],
    pub compute_units: u32,
    /// Clock in MHz, or [`NOMINAL_CLOCK`](super::machine::NOMINAL_CLOCK) where the system does not report it.
    pub max_clock_mhz: u32,
    /// Work-items of a sub-group, where a kernel does not ask for another size.
    pub subgroup_size: u32,
    /// Sizes that a kernel can require, ascending.
    pub subgroup_sizes: Vec<u32>,
    /// The least of them that is not emulated.
    pub least_subgroup: u32,
    /// VkSubgroupFeatureFlagBits that work in compute.
    pub subgroup_ops: u32,
    pub max_subgroups: u32,
    /// Sub-groups of a work-group may wait for one another in loops.
    pub independent_subgroups: bool,
    pub fp16: bool,
    pub fp64: bool,
    pub int64_atomics: bool,
    pub int64_atomics_local: bool,
    /// Nanoseconds a tick of the profiling timer.
    pub timer_resolution_ns: u64,
    /// Alignment in bytes of base addresses.
    pub mem_base_align: u32,
    /// Alignment that import_host needs; 0: not possible.
    pub host_import_align: u64,
    pub svm: SvmCaps,
    /// The host sees what a kernel writes while it runs, and in the order in which its atomic operations put it.
    pub ordered_writes: bool,
    pub global_cache_size: u64,
    pub global_cacheline: u32,
    /// Names of the driver's faults that are made up for.
    pub quirks: Vec<String>,
    /// A sub-group is a vector filled from one row of a work-group: short rows leave lanes empty.
    pub rows_are_vectors: bool,
    /// Set if copies within its memory are fast for many bytes: a GPU moves 4 MiB in the time of a
    /// submission.
    pub fast_copies: bool,
    /// Set if it calls functions of the host ([`super::Op::Call`]).
    pub native_kernels: bool,
    /// Set if the commands of a stream can be terminated.
    pub terminable: bool,
    pub images: super::image::ImageLimits,
    /// Handles by which memory of others can be used.
    pub memory_imports: Vec<MemoryHandle>,
    /// Handles by which semaphores of others can be used.
    pub semaphore_imports: Vec<SemaphoreHandle>,
    /// Handles by which its semaphores can be used by others.
    pub semaphore_exports: Vec<SemaphoreHandle>,
}

impl Caps {
    /// Returns the size of the device's sub-groups in which a kernel with sub-groups of `size`
    /// work-items runs.
    pub fn hardware_subgroup(&self, size: u32) -> u32 {
        size.max(self.least_subgroup)
    }
}

/// The shared virtual memory that the device may have, as far as is known before the device is
/// created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SvmCaps {
    /// Memory at an address that the host has, too: worth trying [`super::Device::allocate_shared`].
    pub coarse: bool,
    /// The host sees such memory without maps.
    pub fine: bool,
    /// Atomic operations of the device and of the host on such memory exclude each other.
    pub atomics: bool,
    /// The device reads and writes any memory of the host by its address.
    pub system: bool,
}

/// The type of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum DeviceKind {
    #[default]
    Gpu,
    Cpu,
    Accelerator,
}
