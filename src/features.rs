//! The features that a device offers to OpenCL programs: one list, from which come the extension
//! string, the versioned lists, the feature macros of OpenCL C, and the compiler's command line.
//!
//! A feature is only offered if it works. A change that makes a feature work sets its flag in
//! [`Features::new`]; [`Features::version`] is the version of which the device has all required
//! features.

use crate::backend::external::{MemoryHandle, SemaphoreHandle};
use crate::backend::{gl, Caps};
use crate::cl::{self, cl_bitfield, cl_semaphore_type_khr};
use crate::compile::Language;
use spirv_lowering::target::Target;
use std::ffi::CStr;

/// The OpenCL version of the platform, and the highest of a device: major, minor.
pub const VERSION: (u32, u32) = (3, 1);

/// The name that ends every version string.
pub const VENDOR_SUFFIX: &str = "PUMICE";

/// C++ for OpenCL.
const CXX_FOR_OPENCL: &str = "cl_ext_cxx_for_opencl";

/// A name with its version: major, minor, patch.
pub type Versioned = (&'static str, (u32, u32, u32));

/// CL_DEVICE_SEMAPHORE_TYPES_KHR
pub const SEMAPHORE_TYPES: [cl_semaphore_type_khr; 1] = [cl::CL_SEMAPHORE_TYPE_BINARY_KHR];

/// CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR
pub const COMMAND_BUFFER_CAPABILITIES: cl_bitfield =
    cl::CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR
        | cl::CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR
        | cl::CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR
        | cl::CL_COMMAND_BUFFER_CAPABILITY_MULTIPLE_QUEUE_KHR;

/// CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR
pub const PLATFORM_COMMAND_BUFFERS: cl_bitfield = cl::CL_COMMAND_BUFFER_PLATFORM_UNIVERSAL_SYNC_KHR
    | cl::CL_COMMAND_BUFFER_PLATFORM_REMAP_QUEUES_KHR
    | cl::CL_COMMAND_BUFFER_PLATFORM_AUTOMATIC_REMAP_KHR;

/// The fields that an update of a command buffer can change: CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR.
pub const UPDATABLE_FIELDS: cl_bitfield = cl::CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR
    | cl::CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR
    | cl::CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR
    | cl::CL_MUTABLE_DISPATCH_ARGUMENTS_KHR
    | cl::CL_MUTABLE_DISPATCH_EXEC_INFO_KHR;

/// The optional features that work on a device. Some work on every device: program-scope variables,
/// the generic address space, pipes (the library's, over global memory), queues on the device,
/// integer dot products, atomic functions on `float` (loops, where the device has nothing better),
/// acquire and release, SPIR-V and device UUIDs. Pipes and queues are ordered by atomics of the
/// scope of the device, or of that of a queue family, as all queues belong to one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Features {
    pub fp16: bool,
    pub fp64: bool,
    /// 64-bit atomics on global memory and on local memory.
    pub int64_atomics: bool,
    /// Atomics with memory_scope_device order memory of other work-groups.
    pub atomic_scope_device: bool,
    pub atomic_seq_cst: bool,
    pub images: bool,
    pub image_3d_writes: bool,
    pub read_write_images: bool,
    /// Images of RAW10 and RAW12.
    pub raw_images: bool,
    /// Writes to images of sRGB formats.
    pub srgb_image_writes: bool,
    pub work_group_collectives: bool,
    pub subgroups: bool,
    /// Sub-groups of a work-group make progress independently of one another.
    pub independent_subgroups: bool,
    /// Atomic functions on `double`: on global memory, on local memory.
    pub double_atomics: [bool; 2],
    /// Atomic functions on `half`.
    pub half_atomics: bool,
    /// Clocks of the device and of the processor that a sub-group runs on.
    pub clocks: [bool; 2],
    pub pci_bus_info: bool,
    /// Memory of the host in place.
    pub imports_host: bool,
    /// Memory of others by file descriptors: opaque ones, and DMA buffers.
    pub shared_memory: [bool; 2],
    /// Semaphores of others by file descriptors: opaque ones, and sync files.
    pub shared_semaphores: [bool; 2],
    /// Allocations of the host that the device sees at their address.
    pub usm: bool,
    /// Contexts can be terminated.
    pub terminable: bool,
    /// Objects of OpenGL.
    pub gl: bool,
    /// Images and fences of EGL.
    pub egl: bool,
}

impl Features {
    /// Computes the features from the capabilities of the device and of the compiler.
    pub fn new(caps: &Caps, target: &Target) -> Self {
        let subgroups = target.has_subgroups();
        Self {
            fp16: caps.fp16 && target.fp16.supported,
            fp64: caps.fp64 && target.fp64.supported,
            int64_atomics: caps.int64_atomics && caps.int64_atomics_local,
            atomic_scope_device: target.memory_model_device_scope,
            // The compiler orders sequentially consistent operations by acquire-release fences on both sides.
            atomic_seq_cst: target.memory_model_device_scope,
            images: caps.images.full_profile(),
            image_3d_writes: caps.images.full_profile(),
            read_write_images: caps.images.full_profile(),
            raw_images: caps.images.full_profile() && caps.images.raw,
            srgb_image_writes: caps.images.full_profile() && caps.images.srgb_writes,
            work_group_collectives: subgroups,
            subgroups,
            independent_subgroups: subgroups && caps.independent_subgroups,
            double_atomics: [target.int64_atomics_global, target.int64_atomics_local]
                .map(|atomics| atomics && target.fp64.supported),
            // Loops around one of the word of 32 bits, or of the 16 bits themselves.
            half_atomics: caps.fp16 && target.fp16.supported,
            clocks: [target.clock_device, target.clock_subgroup],
            pci_bus_info: caps.pci.is_some(),
            imports_host: caps.host_import_align > 0,
            shared_memory: [MemoryHandle::OpaqueFd, MemoryHandle::DmaBuf]
                .map(|kind| caps.memory_imports.contains(&kind)),
            shared_semaphores: [SemaphoreHandle::OpaqueFd, SemaphoreHandle::SyncFd].map(|kind| {
                caps.semaphore_imports.contains(&kind) && caps.semaphore_exports.contains(&kind)
            }),
            usm: caps.svm.coarse && caps.svm.fine,
            terminable: caps.terminable,
            // Contents are copied by way of the host, so that it works on every device with images.
            gl: caps.images.full_profile() && gl::is_there(),
            egl: caps.images.full_profile() && gl::has_egl(),
        }
    }

    /// Returns the OpenCL version of the device. 3.1 requires sub-groups (with extended types,
    /// rotate, shuffle and relative shuffle), SPIR-V 1.0 to 1.4, device UUID, extended bit
    /// operations, integer dot products, SPIR-V queries and suggested work-group sizes.
    pub fn version(&self) -> (u32, u32) {
        match self.subgroups {
            true => VERSION,
            false => (3, 0),
        }
    }

    /// Returns the extensions of the device. The first table are those of the platform.
    pub fn extensions(&self) -> Vec<Versioned> {
        let one = (1, 0, 0);
        let mut list = platform_extensions();
        let device: &[(bool, &'static str, (u32, u32, u32))] = &[
            // Required of every device.
            (true, "cl_khr_byte_addressable_store", one),
            (true, "cl_khr_global_int32_base_atomics", one),
            (true, "cl_khr_global_int32_extended_atomics", one),
            (true, "cl_khr_local_int32_base_atomics", one),
            (true, "cl_khr_local_int32_extended_atomics", one),
            (self.fp16, "cl_khr_fp16", one),
            (self.fp64, "cl_khr_fp64", one),
            (self.int64_atomics, "cl_khr_int64_base_atomics", one),
            (self.int64_atomics, "cl_khr_int64_extended_atomics", one),
            // The work happens in clang: a macro and a hint.
            (true, "cl_khr_expect_assume", one),
            (true, "cl_khr_extended_bit_ops", one),
            (true, "cl_khr_extended_async_copies", one),
            (true, "cl_khr_async_work_group_copy_fence", one),
            (true, "cl_ext_float_atomics", one),
            (self.kernel_clock(), "cl_khr_kernel_clock", one),
            (true, "cl_khr_il_program", one),
            (true, "cl_khr_spirv_queries", one),
            (true, "cl_khr_spirv_linkonce_odr", one),
            // The decorations are read and carry no obligation.
            (true, "cl_khr_spirv_no_integer_wrap_decoration", one),
            (true, "cl_khr_create_command_queue", one),
            (true, "cl_khr_suggested_local_work_size", one),
            // Obeyed where the driver has queues of several priorities.
            (true, "cl_khr_priority_hints", one),
            // How the host waits for a queue: the device's own clocks are not ours to set.
            (true, "cl_khr_throttle_hints", one),
            (true, "cl_khr_device_uuid", one),
            (self.pci_bus_info, "cl_khr_pci_bus_info", one),
            (true, "cl_khr_initialize_memory", one),
            (self.terminable, "cl_khr_terminate_context", one),
            (true, "cl_arm_printf", (2, 0, 0)),
            // An option, which lets programs in OpenCL C 1.x have what later ones have.
            (true, "cl_arm_non_uniform_work_group_size", one),
            (true, "cl_ext_immutable_memory_objects", one),
            (true, "cl_khr_semaphore", (1, 0, 1)),
            (
                self.imports_host || self.shared_memory[1],
                "cl_arm_import_memory",
                (1, 1, 0),
            ),
            (self.imports_host, "cl_arm_import_memory_host", one),
            (self.shared_memory[1], "cl_arm_import_memory_dma_buf", one),
            (self.shares_memory(), "cl_khr_external_memory", (1, 0, 1)),
            (
                self.shared_memory[0],
                "cl_khr_external_memory_opaque_fd",
                one,
            ),
            (self.shared_memory[1], "cl_khr_external_memory_dma_buf", one),
            (
                self.shares_semaphores(),
                "cl_khr_external_semaphore",
                (1, 0, 1),
            ),
            (
                self.shared_semaphores[0],
                "cl_khr_external_semaphore_opaque_fd",
                one,
            ),
            (
                self.shared_semaphores[1],
                "cl_khr_external_semaphore_sync_fd",
                one,
            ),
            (true, "cl_khr_command_buffer", (0, 9, 8)),
            (true, "cl_khr_command_buffer_multi_device", (0, 9, 2)),
            (true, "cl_khr_command_buffer_mutable_dispatch", (0, 9, 5)),
            // Global memory is addressed so in any case.
            (true, "cl_ext_buffer_device_address", (1, 0, 2)),
            (true, CXX_FOR_OPENCL, one),
            (self.usm, "cl_intel_unified_shared_memory", (1, 1, 0)),
            (self.usm, "cl_khr_unified_svm", (0, 9, 0)),
            (self.image_3d_writes, "cl_khr_3d_image_writes", one),
            (self.images, "cl_khr_depth_images", one),
            (self.srgb_image_writes, "cl_khr_srgb_image_writes", one),
            (self.gl, "cl_khr_gl_sharing", one),
            (self.gl, "cl_khr_gl_event", one),
            (self.gl, "cl_khr_gl_depth_images", one),
            (self.egl, "cl_khr_egl_image", one),
            (self.egl, "cl_khr_egl_event", one),
            (self.images, "cl_khr_image2d_from_buffer", one),
            (self.images, "cl_ext_image_from_buffer", one),
            (self.raw_images, "cl_ext_image_raw10_raw12", one),
            (self.images, "cl_ext_image_requirements_info", (0, 5, 0)),
            // This one demands that sub-groups make progress independently of one another, the rest do not.
            (self.independent_subgroups, "cl_khr_subgroups", one),
            (self.subgroups, "cl_khr_subgroup_extended_types", one),
            (self.subgroups, "cl_khr_subgroup_non_uniform_vote", one),
            (self.subgroups, "cl_khr_subgroup_ballot", one),
            (
                self.subgroups,
                "cl_khr_subgroup_non_uniform_arithmetic",
                one,
            ),
            (self.subgroups, "cl_khr_subgroup_shuffle", one),
            (self.subgroups, "cl_khr_subgroup_shuffle_relative", one),
            (self.subgroups, "cl_khr_subgroup_clustered_reduce", one),
            (self.subgroups, "cl_khr_subgroup_rotate", one),
            (self.subgroups, "cl_intel_required_subgroup_size", one),
            (self.block_io(), "cl_intel_subgroups", one),
            (self.block_io(), "cl_intel_subgroups_char", one),
            (self.block_io(), "cl_intel_subgroups_short", one),
            (self.block_io(), "cl_intel_subgroups_long", one),
            (self.block_io(), "cl_intel_subgroup_local_block_io", one),
            (self.block_io(), "cl_intel_spirv_subgroups", one),
            (
                self.work_group_collectives,
                "cl_khr_work_group_uniform_arithmetic",
                one,
            ),
            (true, "cl_khr_integer_dot_product", (2, 0, 0)),
            (true, "cl_intel_bfloat16_conversions", one),
            (true, "cl_arm_integer_dot_product_int8", one),
            (true, "cl_arm_integer_dot_product_accumulate_int8", one),
            (true, "cl_arm_integer_dot_product_accumulate_int16", one),
            (
                true,
                "cl_arm_integer_dot_product_accumulate_saturate_int8",
                one,
            ),
        ];
        list.extend(
            device
                .iter()
                .filter(|(works, ..)| *works)
                .map(|&(_, name, version)| (name, version)),
        );
        list
    }

    /// Returns the OpenCL C features (`__opencl_c_*`), as CL_DEVICE_OPENCL_C_FEATURES lists them
    /// and the compiler defines them.
    pub fn opencl_c_features(&self) -> Vec<Versioned> {
        let [global64, local64] = self.double_atomics;
        let features: &[(bool, &'static str)] = &[
            (true, "__opencl_c_int64"),
            (self.fp64, "__opencl_c_fp64"),
            (true, "__opencl_c_atomic_order_acq_rel"),
            (self.atomic_seq_cst, "__opencl_c_atomic_order_seq_cst"),
            (self.atomic_scope_device, "__opencl_c_atomic_scope_device"),
            // Without SVM atomics, all devices means this device.
            (
                self.atomic_scope_device,
                "__opencl_c_atomic_scope_all_devices",
            ),
            (self.images, "__opencl_c_images"),
            (self.image_3d_writes, "__opencl_c_3d_image_writes"),
            (self.read_write_images, "__opencl_c_read_write_images"),
            (self.raw_images, "__opencl_c_ext_image_raw10_raw12"),
            (true, "__opencl_c_generic_address_space"),
            (
                self.work_group_collectives,
                "__opencl_c_work_group_collective_functions",
            ),
            (self.subgroups, "__opencl_c_subgroups"),
            (true, "__opencl_c_program_scope_global_variables"),
            (true, "__opencl_c_pipes"),
            (true, "__opencl_c_device_enqueue"),
            (true, "__opencl_c_integer_dot_product_input_4x8bit"),
            (true, "__opencl_c_integer_dot_product_input_4x8bit_packed"),
            (true, "__opencl_c_ext_fp32_global_atomic_load_store"),
            (self.clocks[0], "__opencl_c_kernel_clock_scope_device"),
            (self.clocks[1], "__opencl_c_kernel_clock_scope_sub_group"),
            (true, "__opencl_c_ext_fp32_global_atomic_add"),
            (true, "__opencl_c_ext_fp32_global_atomic_min_max"),
            (true, "__opencl_c_ext_fp32_local_atomic_load_store"),
            (true, "__opencl_c_ext_fp32_local_atomic_add"),
            (true, "__opencl_c_ext_fp32_local_atomic_min_max"),
            (
                self.half_atomics,
                "__opencl_c_ext_fp16_global_atomic_load_store",
            ),
            (self.half_atomics, "__opencl_c_ext_fp16_global_atomic_add"),
            (
                self.half_atomics,
                "__opencl_c_ext_fp16_global_atomic_min_max",
            ),
            (
                self.half_atomics,
                "__opencl_c_ext_fp16_local_atomic_load_store",
            ),
            (self.half_atomics, "__opencl_c_ext_fp16_local_atomic_add"),
            (
                self.half_atomics,
                "__opencl_c_ext_fp16_local_atomic_min_max",
            ),
            (global64, "__opencl_c_ext_fp64_global_atomic_load_store"),
            (global64, "__opencl_c_ext_fp64_global_atomic_add"),
            (global64, "__opencl_c_ext_fp64_global_atomic_min_max"),
            (local64, "__opencl_c_ext_fp64_local_atomic_load_store"),
            (local64, "__opencl_c_ext_fp64_local_atomic_add"),
            (local64, "__opencl_c_ext_fp64_local_atomic_min_max"),
        ];
        features
            .iter()
            .filter(|(works, _)| *works)
            .map(|&(_, name)| (name, (3, 0, 0)))
            .collect()
    }

    /// Returns the language for the compiler.
    pub fn language(&self) -> Language {
        let names = |list: Vec<Versioned>| list.into_iter().map(|(name, _)| name).collect();
        let mut extensions = self.extensions();
        // It is a language, and has no macro in OpenCL C.
        extensions.retain(|(name, _)| *name != CXX_FOR_OPENCL);
        Language {
            extensions: names(extensions),
            features: names(self.opencl_c_features()),
            opencl_version: self.version().0 * 100 + self.version().1 * 10,
            images: self.images,
        }
    }

    /// Returns the versions of OpenCL C that programs may request, oldest first.
    pub fn opencl_c_versions(&self) -> Vec<(u32, u32)> {
        let mut versions = vec![(1, 0), (1, 1), (1, 2), (3, 0)];
        if self.version() >= (3, 1) {
            versions.push((3, 1));
        }
        versions
    }

    /// Returns the versions of SPIR-V that clCreateProgramWithIL accepts, newest first.
    pub fn spirv_versions(&self) -> Vec<(u32, u32)> {
        vec![(1, 6), (1, 5), (1, 4), (1, 3), (1, 2), (1, 1), (1, 0)]
    }

    /// Returns the SPIR-V extended instruction sets.
    pub fn spirv_extended_instruction_sets(&self) -> Vec<&'static CStr> {
        // Debug information is read over. cl_khr_spirv_extended_debug_info, which says so, too, is unknown to the CTS,
        // whose `compiler_defines_for_extensions` fails on it.
        vec![c"OpenCL.std", c"OpenCL.DebugInfo.100"]
    }

    /// Returns the SPIR-V extensions.
    pub fn spirv_extensions(&self) -> Vec<&'static CStr> {
        let all: &[(bool, &'static CStr)] = &[
            (true, c"SPV_KHR_no_integer_wrap_decoration"),
            (true, c"SPV_KHR_expect_assume"),
            (true, c"SPV_KHR_bit_instructions"),
            (true, c"SPV_KHR_linkonce_odr"),
            (true, c"SPV_KHR_untyped_pointers"),
            (true, c"SPV_KHR_integer_dot_product"),
            (true, c"SPV_KHR_bfloat16"),
            (true, c"SPV_INTEL_bfloat16_conversion"),
            (self.subgroups, c"SPV_KHR_subgroup_rotate"),
            (self.block_io(), c"SPV_INTEL_subgroups"),
            (self.kernel_clock(), c"SPV_KHR_shader_clock"),
            (true, c"SPV_EXT_shader_atomic_float_add"),
            (self.half_atomics, c"SPV_EXT_shader_atomic_float16_add"),
            (true, c"SPV_EXT_shader_atomic_float_min_max"),
            (
                self.work_group_collectives,
                c"SPV_KHR_uniform_group_instructions",
            ),
        ];
        all.iter()
            .filter(|(works, _)| *works)
            .map(|&(_, name)| name)
            .collect()
    }

    /// Returns the SPIR-V capabilities, as their token values.
    pub fn spirv_capabilities(&self) -> Vec<u32> {
        let doubles = self.double_atomics.contains(&true);
        let groups = self.subgroups || self.work_group_collectives;
        // Name                      value  from the SPIR-V specification, section 3.31
        let all: &[(bool, u32)] = &[
            (true, 4), // Addresses
            (true, 5), // Linkage
            (true, 6), // Kernel
            (true, 7), // Vector16
            // Half precision in memory needs no half-precision arithmetic.
            (true, 8),                           // Float16Buffer
            (self.fp16, 9),                      // Float16
            (self.fp64, 10),                     // Float64
            (true, 11),                          // Int64
            (self.int64_atomics, 12),            // Int64Atomics
            (self.images, 13),                   // ImageBasic
            (self.read_write_images, 14),        // ImageReadWrite
            (true, 17),                          // Pipes
            (true, 60),                          // PipeStorage
            (groups, 18),                        // Groups
            (true, 19),                          // DeviceEnqueue
            (true, 22),                          // Int16
            (true, 38),                          // GenericPointer
            (true, 39),                          // Int8
            (true, 6017),                        // DotProductInput4x8Bit
            (true, 6018),                        // DotProductInput4x8BitPacked
            (true, 6019),                        // DotProduct
            (true, 5116),                        // BFloat16TypeKHR
            (true, 5117),                        // BFloat16DotProductKHR
            (true, 6115),                        // BFloat16ConversionINTEL
            (true, 5629),                        // ExpectAssumeKHR
            (true, 6025),                        // BitInstructions
            (true, 71),                          // UniformDecoration
            (true, 4473),                        // UntypedPointersKHR
            (self.images, 20),                   // LiteralSampler
            (self.images, 43),                   // Sampled1D
            (self.images, 44),                   // Image1D
            (self.images, 46),                   // SampledBuffer
            (self.images, 47),                   // ImageBuffer
            (self.subgroups, 58),                // SubgroupDispatch
            (true, 6033),                        // AtomicFloat32AddEXT
            (true, 5612),                        // AtomicFloat32MinMaxEXT
            (self.half_atomics, 6095),           // AtomicFloat16AddEXT
            (self.half_atomics, 5616),           // AtomicFloat16MinMaxEXT
            (doubles, 6034),                     // AtomicFloat64AddEXT
            (doubles, 5613),                     // AtomicFloat64MinMaxEXT
            (self.kernel_clock(), 5055),         // ShaderClockKHR
            (self.subgroups, 61),                // GroupNonUniform
            (self.subgroups, 62),                // GroupNonUniformVote
            (self.subgroups, 63),                // GroupNonUniformArithmetic
            (self.subgroups, 64),                // GroupNonUniformBallot
            (self.subgroups, 65),                // GroupNonUniformShuffle
            (self.subgroups, 66),                // GroupNonUniformShuffleRelative
            (self.subgroups, 67),                // GroupNonUniformClustered
            (self.subgroups, 6026),              // GroupNonUniformRotateKHR
            (self.block_io(), 5568),             // SubgroupShuffleINTEL
            (self.block_io(), 5569),             // SubgroupBufferBlockIOINTEL
            (self.block_io(), 5570),             // SubgroupImageBlockIOINTEL
            (self.work_group_collectives, 6400), // GroupUniformArithmeticKHR
        ];
        let works = |&&(works, _): &&(bool, u32)| works;
        all.iter().filter(works).map(|&(_, value)| value).collect()
    }

    /// Returns true if there is cl_khr_external_memory, with any handles.
    pub fn shares_memory(&self) -> bool {
        self.shared_memory.contains(&true)
    }

    /// Returns true if there is cl_khr_external_semaphore, with any handles.
    pub fn shares_semaphores(&self) -> bool {
        self.shared_semaphores.contains(&true)
    }

    /// Returns true if there are block reads and writes of sub-groups (cl_intel_subgroups), in buffers and in images.
    pub fn block_io(&self) -> bool {
        self.subgroups && self.images
    }

    /// Returns true if there is cl_khr_kernel_clock, of any scope.
    pub fn kernel_clock(&self) -> bool {
        self.clocks.contains(&true)
    }

    /// Returns CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR
    pub fn clock_capabilities(&self) -> cl_bitfield {
        let [device, subgroup] = self.clocks;
        cl_bitfield::from(device) | cl_bitfield::from(subgroup) << 2
    }

    /// Returns the capabilities of cl_ext_float_atomics:
    /// CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT, and those of `double` and `half`.
    pub fn float_atomic_capabilities(&self) -> [cl_bitfield; 3] {
        /// Load and store, add, minimum and maximum; those of local memory stand 16 bits higher.
        const ALL: cl_bitfield = 7;
        let bits = |global: bool, local: bool| {
            let part = |works: bool, shift: u32| if works { ALL << shift } else { 0 };
            part(global, 0) | part(local, 16)
        };
        let [global, local] = self.double_atomics;
        [
            bits(true, true),
            bits(global, local),
            bits(self.half_atomics, self.half_atomics),
        ]
    }

    /// Returns CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES
    pub fn atomic_memory_capabilities(&self) -> cl_bitfield {
        let mut bits = cl::CL_DEVICE_ATOMIC_ORDER_RELAXED
            | cl::CL_DEVICE_ATOMIC_ORDER_ACQ_REL
            | cl::CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP;
        if self.atomic_seq_cst {
            bits |= cl::CL_DEVICE_ATOMIC_ORDER_SEQ_CST;
        }
        if self.atomic_scope_device {
            bits |= cl::CL_DEVICE_ATOMIC_SCOPE_DEVICE | cl::CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES;
        }
        bits
    }

    /// Returns CL_DEVICE_ATOMIC_FENCE_CAPABILITIES
    pub fn atomic_fence_capabilities(&self) -> cl_bitfield {
        self.atomic_memory_capabilities()
            | cl::CL_DEVICE_ATOMIC_ORDER_ACQ_REL
            | cl::CL_DEVICE_ATOMIC_SCOPE_WORK_ITEM
    }
}

/// Returns the extensions that do not depend on a device.
pub fn platform_extensions() -> Vec<Versioned> {
    vec![
        ("cl_khr_icd", (2, 0, 1)),
        ("cl_khr_extended_versioning", (1, 0, 0)),
    ]
}

/// Returns a list of names as the space-separated string of the older queries.
pub fn names(list: &[Versioned]) -> String {
    list.iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_shape_the_lists() {
        let mut caps = Caps {
            fp64: true,
            ..Caps::default()
        };
        let target = Target::full();
        let with = Features::new(&caps, &target);
        assert!(names(&with.extensions())
            .split(' ')
            .any(|n| n == "cl_khr_fp64"));
        assert!(!names(&with.extensions()).contains("pci_bus_info"));
        caps.fp64 = false;
        let without = Features::new(&caps, &target);
        assert!(!names(&without.extensions()).contains("fp64"));
        assert!(without
            .opencl_c_features()
            .iter()
            .all(|(name, _)| *name != "__opencl_c_fp64"));
    }
}
