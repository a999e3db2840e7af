//! A device as applications see it: the answers to clGetDeviceInfo, from what the back end reports.
//!
//! Where a feature is missing its limits are zero, as the specification asks. Root devices are not counted: retaining
//! and releasing them does nothing, and they live as long as the platform. Sub-devices are counted (`sub_device.rs`).

use super::device_side;
use super::info::{
    name_version, name_versions, unknown, version, version_string, Info, InfoOut, Written,
};
use super::partition;
use crate::backend::{self, caps::DeviceKind, Caps, SharedKind};
use crate::cl::{
    self, cl_device_fp_config, cl_device_info, cl_device_partition_property,
    cl_device_svm_capabilities, cl_device_type, cl_device_unified_shared_memory_capabilities_intel,
    cl_uint,
};
use crate::compile::{printf, Language};
use crate::error::{err, ClResult};
use crate::features::{self, Features, VENDOR_SUFFIX};
use crate::handle::{Body, Kind, Object, Ref};
use spirv_lowering::target::FloatCaps;
use std::any::Any;
use std::ffi::{c_void, CStr};
use std::sync::{Arc, OnceLock, Weak};

/// Bytes of all arguments of a kernel.
pub const MAX_PARAMETER_SIZE: usize = 4096;

/// CL_DEVICE_MAX_PIPE_ARGS: what every device with pipes has. More would do, as far as arguments go.
const PIPE_ARGS: u32 = 16;
/// CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, of a work-item. They are not counted anywhere: a pipe gives as many as it has
/// packets.
const PIPE_MAX_ACTIVE_RESERVATIONS: u32 = 1024;
/// CL_DEVICE_PIPE_MAX_PACKET_SIZE, in bytes.
pub const PIPE_MAX_PACKET_SIZE: u32 = 16 << 10;

/// CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE in bytes, at most: programs take a part of what is reported and index it with `int`.
const MAX_CONSTANT_BUFFER_SIZE: u64 = 4 << 30;

/// CL_DEVICE_IMAGE_PITCH_ALIGNMENT, in pixels.
const IMAGE_PITCH_ALIGNMENT: u32 = 1;
/// CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, in pixels.
const IMAGE_BASE_ALIGNMENT: u32 = 1;

/// Returns the entry of a list with one for each device of a context.
pub fn of_device<T>(each: &[T], device: usize) -> ClResult<&T> {
    match each.get(device) {
        Some(one) => Ok(one),
        None => err(cl::CL_INVALID_DEVICE, "no such device in the context"),
    }
}

/// The device that a sub-device is a part of.
struct Partition {
    parent: Ref<Device>,
    /// CL_DEVICE_PARTITION_TYPE
    kind: Vec<cl_device_partition_property>,
}

/// A device.
pub struct Device {
    /// An object that has it, and so is not named here.
    platform: Weak<dyn Any + Send + Sync>,
    partition: Option<Partition>,
    /// The device of the back end.
    pub backend: Arc<dyn backend::Device>,
    /// The optional features of OpenCL that it has.
    pub features: Features,
    /// The OpenCL C that programs for it are compiled as.
    pub language: Language,
    svm: OnceLock<cl_device_svm_capabilities>,
}

impl Body for Device {
    const KIND: Kind = Kind::Device;
}

impl Device {
    pub(super) fn new(
        platform: Weak<dyn Any + Send + Sync>,
        backend: Arc<dyn backend::Device>,
    ) -> Ref<Self> {
        Object::new(Self::over(platform, backend, None))
    }

    fn over(
        platform: Weak<dyn Any + Send + Sync>,
        backend: Arc<dyn backend::Device>,
        partition: Option<Partition>,
    ) -> Self {
        let features = Features::new(backend.caps(), backend.target());
        let language = features.language();
        Self {
            platform,
            partition,
            backend,
            features,
            language,
            svm: OnceLock::new(),
        }
    }

    /// Creates a sub-device over a part of the device below.
    pub(crate) fn part(
        parent: &Ref<Self>,
        backend: Arc<dyn backend::Device>,
        kind: Vec<cl_device_partition_property>,
    ) -> Self {
        let partition = Partition {
            parent: parent.clone(),
            kind,
        };
        Self::over(parent.platform.clone(), backend, Some(partition))
    }

    /// Returns the parent device of a sub-device.
    pub fn parent(&self) -> Option<&Ref<Self>> {
        self.partition.as_ref().map(|partition| &partition.parent)
    }

    /// Returns the device of the platform that it is, or is a part of.
    pub fn root(device: &Ref<Self>) -> &Ref<Self> {
        let mut device = device;
        while let Some(above) = device.parent() {
            device = above;
        }
        device
    }

    /// Returns true if this is a sub-device of that device, directly or through other sub-devices.
    pub fn is_within(&self, whole: &Ref<Self>) -> bool {
        let mut above = self.parent();
        while let Some(device) = above {
            if Arc::ptr_eq(device, whole) {
                return true;
            }
            above = device.parent();
        }
        false
    }

    /// Returns a device without platform, on a back end made for a test.
    #[cfg(test)]
    pub(crate) fn for_tests(backend: Arc<dyn backend::Device>) -> Ref<Self> {
        Self::new(Weak::<Object<Self>>::new(), backend)
    }

    /// Returns the capabilities of the device.
    pub fn caps(&self) -> &Caps {
        self.backend.caps()
    }

    /// Returns the handle of the platform, or null once that is gone.
    pub fn platform(&self) -> *const c_void {
        let platform = self.platform.upgrade();
        platform.map_or(std::ptr::null(), |platform| Arc::as_ptr(&platform).cast())
    }

    /// Returns CL_DEVICE_TYPE
    pub fn kind(&self) -> cl_device_type {
        match self.caps().kind {
            DeviceKind::Gpu => cl::CL_DEVICE_TYPE_GPU,
            DeviceKind::Cpu => cl::CL_DEVICE_TYPE_CPU,
            DeviceKind::Accelerator => cl::CL_DEVICE_TYPE_ACCELERATOR,
        }
    }

    /// Returns the alignment that sub-buffers need, in bytes (CL_DEVICE_MEM_BASE_ADDR_ALIGN is in
    /// bits): at least that of long16.
    pub fn base_align(&self) -> usize {
        self.caps().mem_base_align.max(128) as usize
    }

    /// Returns CL_DEVICE_SVM_CAPABILITIES. What depends on the addresses that the driver deals out
    /// is tried once.
    pub fn svm_capabilities(&self) -> cl_device_svm_capabilities {
        *self.svm.get_or_init(|| {
            let caps = self.caps().svm;
            let works = |kind| caps.system || self.backend.allocate_shared(4096, 1, kind).is_ok();
            let mut bits = 0;
            if caps.coarse && works(SharedKind::Coarse) {
                bits |= cl::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
            }
            if bits != 0 && caps.fine && works(SharedKind::Fine) {
                bits |= cl::CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
                if caps.atomics {
                    bits |= cl::CL_DEVICE_SVM_ATOMICS;
                }
                if caps.system {
                    bits |= cl::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
                }
            }
            bits
        })
    }

    /// Returns CL_DEVICE_*_MEM_CAPABILITIES_INTEL.
    pub fn usm_capabilities(
        &self,
        param: cl_device_info,
    ) -> cl_device_unified_shared_memory_capabilities_intel {
        const ALL: u64 = cl::CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL
            | cl::CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL
            | cl::CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL
            | cl::CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ATOMIC_ACCESS_INTEL;
        let svm = self.svm_capabilities();
        let has = |bit| svm & bit != 0;
        let host = if has(cl::CL_DEVICE_SVM_ATOMICS) {
            ALL
        } else if has(cl::CL_DEVICE_SVM_FINE_GRAIN_BUFFER) {
            cl::CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL
        } else {
            0
        };
        match param {
            cl::CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL
            | cl::CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL => host,
            cl::CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL
                if has(cl::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) =>
            {
                cl::CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL
                    | cl::CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL
            }
            // Where devices see the host's memory at its own address, several see the same.
            cl::CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL
            | cl::CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL
                if has(cl::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) =>
            {
                host
            }
            _ => 0,
        }
    }

    /// Returns the preferred multiple of work-group sizes.
    pub fn preferred_multiple(&self) -> usize {
        self.caps().subgroup_size.max(1) as usize
    }

    fn single_fp_config(&self) -> cl_device_fp_config {
        let fp32 = &self.backend.target().fp32;
        // The compiler makes up for what the device lacks, where a program asks for it.
        ieee(fp32) | cl::CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
    }

    fn double_fp_config(&self) -> cl_device_fp_config {
        if self.features.fp64 {
            // The minimum that double precision means in OpenCL; the compiler makes up for what the device lacks. The
            // rounding modes other than to nearest are those of conversions; the conformance tests ask for them.
            cl::CL_FP_FMA
                | cl::CL_FP_ROUND_TO_NEAREST
                | cl::CL_FP_ROUND_TO_ZERO
                | cl::CL_FP_ROUND_TO_INF
                | cl::CL_FP_INF_NAN
                | cl::CL_FP_DENORM
        } else {
            0
        }
    }

    fn half_fp_config(&self) -> cl_device_fp_config {
        if self.features.fp16 {
            ieee(&self.backend.target().fp16)
        } else {
            0
        }
    }

    /// Returns the vector widths that pay off. Arithmetic is scalar; only types narrower than a
    /// register gain from vectors.
    fn vector_width(&self, bytes: u32, supported: bool) -> cl_uint {
        match self.caps().kind {
            _ if !supported => 0,
            DeviceKind::Cpu => (16 / bytes).max(1),
            _ => (4 / bytes).max(1),
        }
    }
}

fn ieee(float: &FloatCaps) -> cl_device_fp_config {
    let mut bits = cl::CL_FP_ROUND_TO_NEAREST | cl::CL_FP_INF_NAN;
    if float.keeps_denormals() {
        bits |= cl::CL_FP_DENORM;
    }
    if float.fused_fma {
        bits |= cl::CL_FP_FMA;
    }
    bits
}

fn pointers(strings: &[&'static CStr]) -> Vec<*const c_void> {
    strings
        .iter()
        .map(|string| string.as_ptr().cast())
        .collect()
}

impl Info for Device {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            0x1000..=0x10ff | 0x12b9..=0x12bb => self.query_core(param, out),
            _ => self.query_extension(param, out),
        }
    }
}

impl Device {
    /// Returns CL_DEVICE_* of the core specification, in the order of their values.
    fn query_core(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        let caps = self.caps();
        let features = &self.features;
        match param {
            cl::CL_DEVICE_TYPE => out.write(self.kind()),
            cl::CL_DEVICE_VENDOR_ID => out.write(caps.vendor_id),
            cl::CL_DEVICE_MAX_COMPUTE_UNITS => out.write(caps.compute_units.max(1)),
            cl::CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS => out.write(3u32),
            cl::CL_DEVICE_MAX_WORK_GROUP_SIZE => out.write(caps.max_work_group_size as usize),
            cl::CL_DEVICE_MAX_WORK_GROUP_SIZES => {
                out.write(caps.max_work_item_sizes.map(|n| n as usize))
            }
            cl::CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR | cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR => {
                out.write(self.vector_width(1, true))
            }
            cl::CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT
            | cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT => out.write(self.vector_width(2, true)),
            cl::CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT | cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_INT => {
                out.write(self.vector_width(4, true))
            }
            cl::CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG | cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG => {
                out.write(self.vector_width(8, true))
            }
            cl::CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT
            | cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT => out.write(self.vector_width(4, true)),
            cl::CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE
            | cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE => {
                out.write(self.vector_width(8, features.fp64))
            }
            cl::CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF | cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF => {
                out.write(self.vector_width(2, features.fp16))
            }
            cl::CL_DEVICE_MAX_CLOCK_FREQUENCY => out.write(caps.max_clock_mhz),
            cl::CL_DEVICE_ADDRESS_BITS => out.write(64u32),
            cl::CL_DEVICE_MAX_MEM_ALLOC_SIZE => out.write(caps.max_alloc_size),

            cl::CL_DEVICE_IMAGE_SUPPORT => out.write(features.images),
            // Without images every limit is zero.
            cl::CL_DEVICE_MAX_READ_IMAGE_ARGS
            | cl::CL_DEVICE_MAX_WRITE_IMAGE_ARGS
            | cl::CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS
            | cl::CL_DEVICE_MAX_SAMPLERS
            | cl::CL_DEVICE_IMAGE_PITCH_ALIGNMENT
            | cl::CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT => out.write(self.image_count(param)),
            cl::CL_DEVICE_IMAGE2D_MAX_WIDTH
            | cl::CL_DEVICE_IMAGE2D_MAX_HEIGHT
            | cl::CL_DEVICE_IMAGE3D_MAX_WIDTH
            | cl::CL_DEVICE_IMAGE3D_MAX_HEIGHT
            | cl::CL_DEVICE_IMAGE3D_MAX_DEPTH
            | cl::CL_DEVICE_IMAGE_MAX_BUFFER_SIZE
            | cl::CL_DEVICE_IMAGE_MAX_ARRAY_SIZE => out.write(self.image_size(param)),

            cl::CL_DEVICE_MAX_PARAMETER_SIZE => out.write(MAX_PARAMETER_SIZE),
            cl::CL_DEVICE_MEM_BASE_ADDR_ALIGN => out.write(self.base_align() as cl_uint * 8),
            // The size of long16, the largest built-in type.
            cl::CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE => out.write(128u32),
            cl::CL_DEVICE_SINGLE_FP_CONFIG => out.write(self.single_fp_config()),
            cl::CL_DEVICE_DOUBLE_FP_CONFIG => out.write(self.double_fp_config()),
            cl::CL_DEVICE_HALF_FP_CONFIG => out.write(self.half_fp_config()),
            cl::CL_DEVICE_GLOBAL_MEM_CACHE_TYPE => out.write(if caps.global_cache_size > 0 {
                cl::CL_READ_WRITE_CACHE
            } else {
                cl::CL_NONE
            }),
            cl::CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE => out.write(caps.global_cacheline),
            cl::CL_DEVICE_GLOBAL_MEM_CACHE_SIZE => out.write(caps.global_cache_size),
            cl::CL_DEVICE_GLOBAL_MEM_SIZE => out.write(caps.global_mem_size),
            // Constant memory is global memory; larger buffers work, too.
            cl::CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE => {
                out.write(caps.max_alloc_size.min(MAX_CONSTANT_BUFFER_SIZE))
            }
            cl::CL_DEVICE_MAX_CONSTANT_ARGS => out.write((MAX_PARAMETER_SIZE / 8) as cl_uint),
            cl::CL_DEVICE_LOCAL_MEM_TYPE => out.write(if caps.local_mem_dedicated {
                cl::CL_LOCAL
            } else {
                cl::CL_GLOBAL
            }),
            cl::CL_DEVICE_LOCAL_MEM_SIZE => out.write(caps.local_mem_size),
            cl::CL_DEVICE_ERROR_CORRECTION_SUPPORT => out.write(false),
            cl::CL_DEVICE_HOST_UNIFIED_MEMORY => out.write(caps.unified_memory),
            cl::CL_DEVICE_PROFILING_TIMER_RESOLUTION => {
                out.write(caps.timer_resolution_ns.max(1) as usize)
            }
            cl::CL_DEVICE_ENDIAN_LITTLE => out.write(cfg!(target_endian = "little")),
            cl::CL_DEVICE_AVAILABLE => out.write(!self.backend.is_lost()),
            cl::CL_DEVICE_COMPILER_AVAILABLE => out.write(true),
            cl::CL_DEVICE_LINKER_AVAILABLE => out.write(true),
            cl::CL_DEVICE_EXECUTION_CAPABILITIES => out.write(if caps.native_kernels {
                cl::CL_EXEC_KERNEL | cl::CL_EXEC_NATIVE_KERNEL
            } else {
                cl::CL_EXEC_KERNEL
            }),
            cl::CL_DEVICE_QUEUE_ON_HOST_PROPERTIES => out
                .write(cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl::CL_QUEUE_PROFILING_ENABLE),
            cl::CL_DEVICE_BUILT_IN_KERNELS => out.write(""),
            cl::CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION => out.write(name_versions(&[])),
            cl::CL_DEVICE_PLATFORM => out.write(self.platform()),
            cl::CL_DEVICE_NAME => out.write(&caps.name),
            cl::CL_DEVICE_VENDOR => out.write(&caps.vendor),
            cl::CL_DRIVER_VERSION => out.write(&caps.driver_version),
            cl::CL_DEVICE_PROFILE => out.write("FULL_PROFILE"),
            cl::CL_DEVICE_VERSION => out.write(version_string(features.version())),
            cl::CL_DEVICE_NUMERIC_VERSION => {
                let (major, minor) = features.version();
                out.write(version(major, minor, 0))
            }
            // The newest version that is supported without exceptions: 2.0 and later have optional parts.
            cl::CL_DEVICE_OPENCL_C_VERSION => out.write(format!("OpenCL C 1.2 {VENDOR_SUFFIX}")),
            cl::CL_DEVICE_OPENCL_C_ALL_VERSIONS => {
                let versions = features.opencl_c_versions();
                let list = versions
                    .iter()
                    .map(|&(major, minor)| name_version("OpenCL C", major, minor, 0));
                out.write(list.collect::<Vec<_>>())
            }
            cl::CL_DEVICE_OPENCL_C_FEATURES => {
                out.write(name_versions(&features.opencl_c_features()))
            }
            cl::CL_DEVICE_EXTENSIONS => out.write(features::names(&features.extensions())),
            cl::CL_DEVICE_EXTENSIONS_WITH_VERSION => {
                out.write(name_versions(&features.extensions()))
            }
            cl::CL_DEVICE_IL_VERSION => {
                let names = features.spirv_versions().into_iter();
                let names = names.map(|(major, minor)| format!("SPIR-V_{major}.{minor}"));
                out.write(names.collect::<Vec<_>>().join(" "))
            }
            cl::CL_DEVICE_ILS_WITH_VERSION => {
                let list = features.spirv_versions().into_iter();
                let list = list.map(|(major, minor)| name_version("SPIR-V", major, minor, 0));
                out.write(list.collect::<Vec<_>>())
            }
            // None; the form is prescribed, so this is the date that other drivers without one give.
            cl::CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED => out.write("v0000-01-01-00"),
            cl::CL_DEVICE_PRINTF_BUFFER_SIZE => out.write(printf::BUFFER_SIZE as usize),
            cl::CL_DEVICE_PREFERRED_INTEROP_USER_SYNC => out.write(true),

            cl::CL_DEVICE_PARENT_DEVICE => out.write(self.parent().cloned()),
            cl::CL_DEVICE_PARTITION_MAX_SUB_DEVICES => out.write(match self.backend.processors() {
                [] | [_] => 0u32,
                some => some.len() as u32,
            }),
            cl::CL_DEVICE_PARTITION_PROPERTIES => {
                out.write(partition::properties(self.backend.processors()))
            }
            cl::CL_DEVICE_PARTITION_TYPE => {
                let kind = self
                    .partition
                    .as_ref()
                    .map(|partition| partition.kind.clone());
                out.write(kind.unwrap_or_else(|| vec![0]))
            }
            cl::CL_DEVICE_PARTITION_AFFINITY_DOMAIN => {
                out.write(partition::domains(self.backend.processors()))
            }

            // Program-scope variables; shared virtual memory; queues on the device.
            cl::CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE
            | cl::CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE => out.write(1usize << 20),
            cl::CL_DEVICE_SVM_CAPABILITIES => out.write(self.svm_capabilities()),
            cl::CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES => {
                let both = cl::CL_DEVICE_QUEUE_SUPPORTED | cl::CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT;
                out.write(cl::cl_bitfield::from(both))
            }
            cl::CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES => out.write(device_side::PROPERTIES),
            cl::CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE => out.write(device_side::PREFERRED_SIZE),
            cl::CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE => out.write(device_side::MAX_SIZE),
            cl::CL_DEVICE_MAX_ON_DEVICE_QUEUES => out.write(device_side::MAX_QUEUES),
            cl::CL_DEVICE_MAX_ON_DEVICE_EVENTS => out.write(device_side::MAX_EVENTS),

            cl::CL_DEVICE_PIPE_SUPPORT => out.write(true),
            cl::CL_DEVICE_MAX_PIPE_ARGS => out.write(PIPE_ARGS),
            cl::CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS => out.write(PIPE_MAX_ACTIVE_RESERVATIONS),
            cl::CL_DEVICE_PIPE_MAX_PACKET_SIZE => out.write(PIPE_MAX_PACKET_SIZE),

            // Zero: aligned to the natural size of the type.
            cl::CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT
            | cl::CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT
            | cl::CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT => out.write(0u32),
            cl::CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES => {
                out.write(features.atomic_memory_capabilities())
            }
            cl::CL_DEVICE_ATOMIC_FENCE_CAPABILITIES => {
                out.write(features.atomic_fence_capabilities())
            }

            cl::CL_DEVICE_MAX_NUM_SUB_GROUPS => out.write(if features.subgroups {
                caps.max_subgroups
            } else {
                0
            }),
            cl::CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS => {
                out.write(features.independent_subgroups)
            }
            cl::CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT => out.write(true),
            cl::CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE => {
                out.write(self.preferred_multiple())
            }
            cl::CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT => {
                out.write(features.work_group_collectives)
            }
            cl::CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT => out.write(true),

            // cl_khr_device_uuid
            cl::CL_DEVICE_UUID => out.write(caps.device_uuid),
            cl::CL_DRIVER_UUID => out.write(caps.driver_uuid),
            cl::CL_DEVICE_LUID_VALID => out.write(caps.luid.is_some()),
            cl::CL_DEVICE_LUID => out.write(caps.luid.unwrap_or_default()),
            cl::CL_DEVICE_NODE_MASK => out.write(caps.node_mask),

            // OpenCL 3.1. Integer dot products: packed and unpacked inputs are required, acceleration is not.
            cl::CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES => out.write(
                cl::CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_PACKED
                    | cl::CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT,
            ),
            // Plain arithmetic.
            cl::CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT => out.write([false; 6]),
            // Without accumulation, that is.
            cl::CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED => {
                let [signed, unsigned, mixed] = self.backend.target().dot_4x8;
                out.write([signed, unsigned, mixed, false, false, false])
            }
            cl::CL_DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS => {
                out.write(pointers(&features.spirv_extended_instruction_sets()))
            }
            cl::CL_DEVICE_SPIRV_EXTENSIONS => out.write(pointers(&features.spirv_extensions())),
            cl::CL_DEVICE_SPIRV_CAPABILITIES => out.write(features.spirv_capabilities()),

            cl::CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR if features.kernel_clock() => {
                out.write(features.clock_capabilities())
            }

            // cl_khr_extended_versioning, where its values differ from the core ones.
            cl::CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR => out.write(version(1, 2, 0)),
            _ => unknown(param),
        }
    }

    /// Returns the numbers of images and samplers, and alignments, by query.
    fn image_count(&self, param: cl_uint) -> cl_uint {
        let limits = &self.caps().images;
        if !self.features.images {
            return 0;
        }
        match param {
            cl::CL_DEVICE_MAX_READ_IMAGE_ARGS => limits.max_sampled,
            cl::CL_DEVICE_MAX_WRITE_IMAGE_ARGS => limits.max_storage,
            cl::CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS if self.features.read_write_images => {
                limits.max_storage
            }
            cl::CL_DEVICE_MAX_SAMPLERS => limits.max_samplers,
            cl::CL_DEVICE_IMAGE_PITCH_ALIGNMENT => IMAGE_PITCH_ALIGNMENT,
            cl::CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT => IMAGE_BASE_ALIGNMENT,
            _ => 0,
        }
    }

    /// Returns the largest extent of images that a query is for.
    fn image_size(&self, param: cl_uint) -> usize {
        let limits = &self.caps().images;
        if !self.features.images {
            return 0;
        }
        let size = match param {
            // One-dimensional images and arrays have the same limit.
            cl::CL_DEVICE_IMAGE2D_MAX_WIDTH => limits.max_2d.min(limits.max_1d),
            cl::CL_DEVICE_IMAGE2D_MAX_HEIGHT => limits.max_2d,
            cl::CL_DEVICE_IMAGE_MAX_BUFFER_SIZE => limits.max_texels,
            cl::CL_DEVICE_IMAGE_MAX_ARRAY_SIZE => limits.max_layers,
            _ => limits.max_3d,
        };
        size as usize
    }

    /// Queries of extensions, only where the extension is reported.
    fn query_extension(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match (param, self.caps().pci) {
            (cl::CL_DEVICE_PCI_BUS_INFO_KHR, Some(pci)) => out.write(pci),
            // CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT, that of double, that of half.
            (0x4231..=0x4233, _) => {
                let [single, double, half] = self.features.float_atomic_capabilities();
                out.write(match param {
                    0x4231 => single,
                    0x4232 => double,
                    _ => half,
                })
            }
            (0x4190..=0x4194, _) if self.features.usm => out.write(self.usm_capabilities(param)),
            // CL_DEVICE_SUB_GROUP_SIZES_INTEL
            (0x4108, _) if self.features.subgroups => {
                let sizes = self.caps().subgroup_sizes.iter();
                let sizes: Vec<usize> = sizes.map(|&size| size as usize).collect();
                out.write(sizes.as_slice())
            }
            // A version number has no room for 2021, which programs ask for by -cl-std=CLC++2021.
            (cl::CL_DEVICE_CXX_FOR_OPENCL_NUMERIC_VERSION_EXT, _) => out.write(version(1, 0, 0)),
            _ => unknown(param),
        }
    }
}
