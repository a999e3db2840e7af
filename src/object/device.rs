//! A device as applications see it: the answers to clGetDeviceInfo, from what the back end reports.
//!
//! Where a feature is missing its limits are zero, as the specification asks. Root devices are not counted: retaining
//! and releasing them does nothing, and they live as long as the platform. Sub-devices are counted.

use super::device_side;
use super::external_handles::{memory_names, semaphore_names};
use super::info::{
    answer, name_version, name_versions, version, version_string, Info, InfoOut, Written,
};
use super::partition::{self, PartitionPlan};
use super::svm_types::TypeCapabilities;
use crate::backend::external::MemoryHandle;
use crate::backend::image::ImageLimits;
use crate::backend::{self, caps::DeviceKind, Caps, SharedKind};
use crate::cl::{
    self, cl_device_fp_config, cl_device_info, cl_device_partition_property,
    cl_device_svm_capabilities, cl_device_type, cl_device_unified_shared_memory_capabilities_intel,
    cl_uint,
};
use crate::compile::{printf, Language};
use crate::error::{ClError, ClResult, OrErr};
use crate::features::{self, Features, VENDOR_SUFFIX};
use crate::handle::{Body, Kind, Object, Ref};
use spirv_lowering::target::FloatCaps;
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
    let one = each.get(device);
    one.or_err(cl::CL_INVALID_DEVICE, "no such device in the context")
}

/// Returns the place of a device in a list, or CL_INVALID_DEVICE: it is none of those `of` something.
pub(super) fn place_of(device: &Ref<Device>, all: &[Ref<Device>], of: &str) -> ClResult<usize> {
    let place = all.iter().position(|known| Arc::ptr_eq(known, device));
    place.ok_or_else(|| {
        let what = format!("the device is not one of the {of}'s");
        ClError::new(cl::CL_INVALID_DEVICE, what)
    })
}

/// The device that a sub-device is a part of.
struct Partition {
    parent: Ref<Device>,
    /// CL_DEVICE_PARTITION_TYPE
    kind: Vec<cl_device_partition_property>,
}

/// A platform, as its devices know it.
pub trait HasDevices: Send + Sync {
    /// Returns all devices of the platform.
    fn devices(&self) -> &[Ref<Device>];
}

/// A device.
pub struct Device {
    /// An object that has it, and so is not named here.
    platform: Weak<dyn HasDevices>,
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
        platform: Weak<dyn HasDevices>,
        backend: Arc<dyn backend::Device>,
    ) -> Ref<Self> {
        Object::new(Self::over(platform, backend, None))
    }

    fn over(
        platform: Weak<dyn HasDevices>,
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

    /// Returns how a scheme, the properties up to the zero that ends them, divides the device.
    pub fn division(&self, scheme: &[cl_device_partition_property]) -> ClResult<PartitionPlan> {
        partition::plan(self.backend.processors(), scheme)
    }

    /// Implements clCreateSubDevices for a division of the device.
    pub fn divide(device: &Ref<Self>, plan: &PartitionPlan) -> ClResult<Vec<Ref<Self>>> {
        let make = |numbers: &Vec<u32>| {
            let backend = device.backend.sub_device(numbers)?;
            Ok(Object::new(Self::part(device, backend, plan.kind.clone())))
        };
        plan.parts.iter().map(make).collect()
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
        struct None;
        impl HasDevices for None {
            fn devices(&self) -> &[Ref<Device>] {
                &[]
            }
        }
        Self::new(Weak::<None>::new(), backend)
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

    /// Returns what the device can do with memory of each type of cl_khr_unified_svm.
    pub fn svm_types(&self) -> TypeCapabilities {
        let usm = [
            cl::CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
            cl::CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL,
            cl::CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
        ];
        TypeCapabilities::new(
            self.svm_capabilities(),
            usm.map(|param| self.usm_capabilities(param)),
        )
    }

    /// Returns the same of all devices of the platform.
    pub fn platform_svm_types(&self) -> TypeCapabilities {
        let platform = self.platform.upgrade();
        let devices = platform.as_ref().map_or(&[][..], |all| all.devices());
        TypeCapabilities::common(devices.iter().map(|device| device.svm_types()))
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

/// The minimum that double precision means in OpenCL; the compiler makes up for what the device lacks. The
/// rounding modes other than to nearest are those of conversions; the conformance tests ask for them.
const DOUBLE: cl_device_fp_config = cl::CL_FP_FMA
    | cl::CL_FP_ROUND_TO_NEAREST
    | cl::CL_FP_ROUND_TO_ZERO
    | cl::CL_FP_ROUND_TO_INF
    | cl::CL_FP_INF_NAN
    | cl::CL_FP_DENORM;

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

impl Info for Ref<Device> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            0x1000..=0x10ff | 0x12b9..=0x12bb => self.query_core(param, out),
            _ => self.query_extension(param, out),
        }
    }
}

impl Object<Device> {
    /// Returns CL_DEVICE_* of the core specification, in the order of their values.
    fn query_core(self: &Arc<Self>, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        let (caps, features, target) = (self.caps(), &self.features, self.backend.target());
        // Without images every limit is zero.
        let (images, some) = match features.images {
            true => (caps.images, 1),
            false => (ImageLimits::default(), 0),
        };
        let storage = images.max_storage;
        let either = |this: bool, yes: cl_uint, no: cl_uint| if this { yes } else { no };
        let versioned = |name: &'static str, versions: &[(u32, u32)]| {
            let version = |&(major, minor): &(u32, u32)| name_version(name, major, minor, 0);
            versions.iter().map(version).collect::<Vec<_>>()
        };
        answer! { param, out;
            CL_DEVICE_TYPE => self.kind(),
            CL_DEVICE_VENDOR_ID => caps.vendor_id,
            CL_DEVICE_MAX_COMPUTE_UNITS => caps.compute_units.max(1),
            CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS => 3u32,
            CL_DEVICE_MAX_WORK_GROUP_SIZE => caps.max_work_group_size as usize,
            CL_DEVICE_MAX_WORK_GROUP_SIZES => caps.max_work_item_sizes.map(|n| n as usize),
            CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR | CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR
                => self.vector_width(1, true),
            CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT | CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT
                => self.vector_width(2, true),
            CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT | CL_DEVICE_NATIVE_VECTOR_WIDTH_INT
            | CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT | CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT
                => self.vector_width(4, true),
            CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG | CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG
                => self.vector_width(8, true),
            CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE | CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE
                => self.vector_width(8, features.fp64),
            CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF | CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF
                => self.vector_width(2, features.fp16),
            CL_DEVICE_MAX_CLOCK_FREQUENCY => caps.max_clock_mhz,
            CL_DEVICE_ADDRESS_BITS => 64u32,
            CL_DEVICE_MAX_MEM_ALLOC_SIZE => caps.max_alloc_size,

            CL_DEVICE_IMAGE_SUPPORT => features.images,
            CL_DEVICE_MAX_READ_IMAGE_ARGS => images.max_sampled,
            CL_DEVICE_MAX_WRITE_IMAGE_ARGS => storage,
            CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS => either(features.read_write_images, storage, 0),
            CL_DEVICE_MAX_SAMPLERS => images.max_samplers,
            CL_DEVICE_IMAGE_PITCH_ALIGNMENT => IMAGE_PITCH_ALIGNMENT * some,
            CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT => IMAGE_BASE_ALIGNMENT * some,
            // One-dimensional images and arrays have the same limit.
            CL_DEVICE_IMAGE2D_MAX_WIDTH => images.max_2d.min(images.max_1d) as usize,
            CL_DEVICE_IMAGE2D_MAX_HEIGHT => images.max_2d as usize,
            CL_DEVICE_IMAGE3D_MAX_WIDTH | CL_DEVICE_IMAGE3D_MAX_HEIGHT | CL_DEVICE_IMAGE3D_MAX_DEPTH
                => images.max_3d as usize,
            CL_DEVICE_IMAGE_MAX_BUFFER_SIZE => images.max_texels as usize,
            CL_DEVICE_IMAGE_MAX_ARRAY_SIZE => images.max_layers as usize,

            CL_DEVICE_MAX_PARAMETER_SIZE => MAX_PARAMETER_SIZE,
            CL_DEVICE_MEM_BASE_ADDR_ALIGN => self.base_align() as cl_uint * 8,
            // The size of long16, the largest built-in type.
            CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE => 128u32,
            // The compiler makes up for what the device lacks, where a program asks for it.
            CL_DEVICE_SINGLE_FP_CONFIG
                => ieee(&target.fp32) | cl::CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT,
            CL_DEVICE_DOUBLE_FP_CONFIG => if features.fp64 { DOUBLE } else { 0 },
            CL_DEVICE_HALF_FP_CONFIG => if features.fp16 { ieee(&target.fp16) } else { 0 },
            CL_DEVICE_GLOBAL_MEM_CACHE_TYPE
                => either(caps.global_cache_size > 0, cl::CL_READ_WRITE_CACHE, cl::CL_NONE),
            CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE => caps.global_cacheline,
            CL_DEVICE_GLOBAL_MEM_CACHE_SIZE => caps.global_cache_size,
            CL_DEVICE_GLOBAL_MEM_SIZE => caps.global_mem_size,
            // Constant memory is global memory; larger buffers work, too.
            CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE => caps.max_alloc_size.min(MAX_CONSTANT_BUFFER_SIZE),
            CL_DEVICE_MAX_CONSTANT_ARGS => (MAX_PARAMETER_SIZE / 8) as cl_uint,
            CL_DEVICE_LOCAL_MEM_TYPE => either(caps.local_mem_dedicated, cl::CL_LOCAL, cl::CL_GLOBAL),
            CL_DEVICE_LOCAL_MEM_SIZE => caps.local_mem_size,
            CL_DEVICE_ERROR_CORRECTION_SUPPORT => false,
            CL_DEVICE_HOST_UNIFIED_MEMORY => caps.unified_memory,
            CL_DEVICE_PROFILING_TIMER_RESOLUTION => caps.timer_resolution_ns.max(1) as usize,
            CL_DEVICE_ENDIAN_LITTLE => cfg!(target_endian = "little"),
            CL_DEVICE_AVAILABLE => !self.backend.is_lost(),
            CL_DEVICE_COMPILER_AVAILABLE | CL_DEVICE_LINKER_AVAILABLE => true,
            CL_DEVICE_EXECUTION_CAPABILITIES => match caps.native_kernels {
                true => cl::CL_EXEC_KERNEL | cl::CL_EXEC_NATIVE_KERNEL,
                false => cl::CL_EXEC_KERNEL,
            },
            CL_DEVICE_QUEUE_ON_HOST_PROPERTIES
                => cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl::CL_QUEUE_PROFILING_ENABLE,
            CL_DEVICE_BUILT_IN_KERNELS => "",
            CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION => name_versions(&[]),
            CL_DEVICE_PLATFORM => self.platform(),
            CL_DEVICE_NAME => &caps.name,
            CL_DEVICE_VENDOR => &caps.vendor,
            CL_DRIVER_VERSION => &caps.driver_version,
            CL_DEVICE_PROFILE => "FULL_PROFILE",
            CL_DEVICE_VERSION => version_string(features.version()),
            CL_DEVICE_NUMERIC_VERSION => version(features.version().0, features.version().1, 0),
            // The newest version that is supported without exceptions: 2.0 and later have optional parts.
            CL_DEVICE_OPENCL_C_VERSION => format!("OpenCL C 1.2 {VENDOR_SUFFIX}"),
            CL_DEVICE_OPENCL_C_ALL_VERSIONS => versioned("OpenCL C", &features.opencl_c_versions()),
            CL_DEVICE_OPENCL_C_FEATURES => name_versions(&features.opencl_c_features()),
            CL_DEVICE_EXTENSIONS => features::names(&features.extensions()),
            CL_DEVICE_EXTENSIONS_WITH_VERSION => name_versions(&features.extensions()),
            CL_DEVICE_IL_VERSION => {
                let names = features.spirv_versions().into_iter();
                let names = names.map(|(major, minor)| format!("SPIR-V_{major}.{minor}"));
                names.collect::<Vec<_>>().join(" ")
            },
            CL_DEVICE_ILS_WITH_VERSION => versioned("SPIR-V", &features.spirv_versions()),
            // None; the form is prescribed, so this is the date that other drivers without one give.
            CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED => "v0000-01-01-00",
            CL_DEVICE_PRINTF_BUFFER_SIZE => printf::BUFFER_SIZE,
            CL_DEVICE_PREFERRED_INTEROP_USER_SYNC => true,

            CL_DEVICE_PARENT_DEVICE => self.parent().cloned(),
            CL_DEVICE_PARTITION_MAX_SUB_DEVICES => match self.backend.processors() {
                [] | [_] => 0u32,
                some => some.len() as u32,
            },
            CL_DEVICE_PARTITION_PROPERTIES => partition::properties(self.backend.processors()),
            CL_DEVICE_PARTITION_TYPE
                => self.partition.as_ref().map_or_else(|| vec![0], |part| part.kind.clone()),
            CL_DEVICE_PARTITION_AFFINITY_DOMAIN => partition::domains(self.backend.processors()),

            // Program-scope variables; shared virtual memory; queues on the device.
            CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE | CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE
                => 1usize << 20,
            CL_DEVICE_SVM_CAPABILITIES => self.svm_capabilities(),
            CL_DEVICE_SVM_TYPE_CAPABILITIES_KHR =>
                self.svm_types().list(self.platform_svm_types()).as_slice(),
            CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES => cl::cl_bitfield::from(
                cl::CL_DEVICE_QUEUE_SUPPORTED | cl::CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT
            ),
            CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES => device_side::PROPERTIES,
            CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE => device_side::PREFERRED_SIZE,
            CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE => device_side::MAX_SIZE,
            CL_DEVICE_MAX_ON_DEVICE_QUEUES => device_side::MAX_QUEUES,
            CL_DEVICE_MAX_ON_DEVICE_EVENTS => device_side::MAX_EVENTS,

            CL_DEVICE_PIPE_SUPPORT => true,
            CL_DEVICE_MAX_PIPE_ARGS => PIPE_ARGS,
            CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS => PIPE_MAX_ACTIVE_RESERVATIONS,
            CL_DEVICE_PIPE_MAX_PACKET_SIZE => PIPE_MAX_PACKET_SIZE,

            // Zero: aligned to the natural size of the type.
            CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT
            | CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT
            | CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT => 0u32,
            CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES => features.atomic_memory_capabilities(),
            CL_DEVICE_ATOMIC_FENCE_CAPABILITIES => features.atomic_fence_capabilities(),

            CL_DEVICE_MAX_NUM_SUB_GROUPS => either(features.subgroups, caps.max_subgroups, 0),
            CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS => features.independent_subgroups,
            CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT => true,
            CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE => caps.subgroup_size.max(1) as usize,
            CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT => features.work_group_collectives,
            CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT => true,

            // cl_khr_device_uuid
            CL_DEVICE_UUID => caps.device_uuid,
            CL_DRIVER_UUID => caps.driver_uuid,
            CL_DEVICE_LUID_VALID => caps.luid.is_some(),
            CL_DEVICE_LUID => caps.luid.unwrap_or_default(),
            CL_DEVICE_NODE_MASK => caps.node_mask,

            // OpenCL 3.1. Integer dot products: packed and unpacked inputs are required, acceleration is not.
            CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES
                => cl::CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_PACKED
                | cl::CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT,
            // Plain arithmetic.
            CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT => [false; 6],
            // Without accumulation, that is.
            CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED => {
                let [signed, unsigned, mixed] = target.dot_4x8;
                [signed, unsigned, mixed, false, false, false]
            },
            CL_DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS
                => pointers(&features.spirv_extended_instruction_sets()),
            CL_DEVICE_SPIRV_EXTENSIONS => pointers(&features.spirv_extensions()),
            CL_DEVICE_SPIRV_CAPABILITIES => features.spirv_capabilities(),

            CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR if features.kernel_clock()
                => features.clock_capabilities(),

            // cl_khr_extended_versioning, where its values differ from the core ones.
            CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR => version(1, 2, 0),
        }
    }

    /// Queries of extensions, only where the extension is reported.
    fn query_extension(self: &Arc<Self>, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        let (caps, features) = (self.caps(), &self.features);
        let [single, double, half] = features.float_atomic_capabilities();
        let (memory, semaphores) = (features.shares_memory(), features.shares_semaphores());
        answer! { param, out;
            CL_DEVICE_PCI_BUS_INFO_KHR if caps.pci.is_some() => caps.pci.unwrap_or_default(),
            CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT => single,
            CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT => double,
            CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT => half,
            CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL | CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL
            | CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL
            | CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL
            | CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL if features.usm
                => self.usm_capabilities(param),
            CL_DEVICE_SUB_GROUP_SIZES_INTEL if features.subgroups
                => caps.subgroup_sizes.iter().map(|size| *size as usize).collect::<Vec<_>>(),
            CL_DEVICE_TERMINATE_CAPABILITY_KHR if features.terminable
                => cl::CL_DEVICE_TERMINATE_CAPABILITY_CONTEXT_KHR,
            CL_DEVICE_SEMAPHORE_TYPES_KHR => features::SEMAPHORE_TYPES,
            CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR if memory
                => memory_names(&caps.memory_imports),
            CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR if memory => {
                let mut kinds = caps.memory_imports.clone();
                kinds.retain(|kind| *kind == MemoryHandle::DmaBuf);
                memory_names(&kinds)
            },
            CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR if semaphores
                => semaphore_names(&caps.semaphore_imports),
            CL_DEVICE_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR if semaphores
                => semaphore_names(&caps.semaphore_exports),
            CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR => features::COMMAND_BUFFER_CAPABILITIES,
            CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR => cl::cl_bitfield::default(),
            CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR
                => cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl::CL_QUEUE_PROFILING_ENABLE,
            // Queues of one root device wait for one another there; others by way of the host.
            CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR => 1 as cl_uint,
            CL_DEVICE_COMMAND_BUFFER_SYNC_DEVICES_KHR => Device::root(self),
            CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR => features::UPDATABLE_FIELDS,
            // A version number has no room for 2021, which programs ask for by -cl-std=CLC++2021.
            CL_DEVICE_CXX_FOR_OPENCL_NUMERIC_VERSION_EXT => version(1, 0, 0),
        }
    }
}
