//! The properties of a device that lowering depends on. They are plain data: the runtime fills them
//! from queries and probes, and their bytes are part of the cache key of lowered kernels.

use crate::quirks::{CodeQuirk, CodeQuirks};

/// The measured properties of the device's arithmetic in one floating-point width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatCaps {
    /// The type exists in shaders.
    pub supported: bool,
    /// GLSL.std.450 Fma is a true fused multiply-add (rounds once).
    pub fused_fma: bool,
    /// OpFDiv is correctly rounded.
    pub exact_div: bool,
    /// GLSL.std.450 Sqrt is correctly rounded.
    pub exact_sqrt: bool,
    /// Subnormal inputs and results are kept even if no mode is declared.
    pub denormals: bool,
    /// The DenormPreserve execution mode can be declared for this width.
    pub denorm_preserve: bool,
    /// The DenormFlushToZero execution mode can be declared for this width.
    pub denorm_flush: bool,
    /// The SignedZeroInfNanPreserve execution mode can be declared for this width.
    pub signed_zero_inf_nan: bool,
    /// The RoundingModeRTE execution mode can be declared for this width.
    pub rte: bool,
}

impl FloatCaps {
    /// Returns true if subnormal numbers are kept, by default or because the mode for that is
    /// declared.
    pub fn keeps_denormals(&self) -> bool {
        self.denormals || self.denorm_preserve
    }

    /// A type that the device does not have.
    pub const NONE: Self = Self {
        supported: false,
        fused_fma: false,
        exact_div: false,
        exact_sqrt: false,
        denormals: false,
        denorm_preserve: false,
        denorm_flush: false,
        signed_zero_inf_nan: false,
        rte: false,
    };
}

/// VkSubgroupFeatureFlagBits, as in [`Target::subgroup_ops`].
#[allow(missing_docs)]
pub mod subgroup {
    pub const BASIC: u32 = 0x01;
    pub const VOTE: u32 = 0x02;
    pub const ARITHMETIC: u32 = 0x04;
    pub const BALLOT: u32 = 0x08;
    pub const SHUFFLE: u32 = 0x10;
    pub const CLUSTERED: u32 = 0x40;
}

/// Capabilities of the device that shape the generated code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Width of device addresses in bits. Only 64 is implemented.
    pub address_bits: u32,
    /// Largest push-constant block, in bytes.
    pub max_push_constants: u32,
    /// Bytes of shared memory a work-group may use.
    pub max_local_memory: u32,
    /// Half precision arithmetic and storage.
    pub fp16: FloatCaps,
    /// UnpackHalf2x16 is exact, of subnormal halves too. Matters where there is no `half`.
    pub unpacks_halves: bool,
    /// PackHalf2x16 rounds to nearest even, to subnormal halves and to infinity too. Matters where there is no `half`.
    pub packs_halves: bool,
    /// Single precision.
    pub fp32: FloatCaps,
    /// Double precision.
    pub fp64: FloatCaps,
    /// GLSL.std.450 Exp2 is within the bounds that -cl-fast-relaxed-math sets for exp and exp2.
    pub good_exp2: bool,
    /// GLSL.std.450 Log2 is within those for log, log2 and log10, subnormal operands included.
    pub good_log2: bool,
    /// Integers of 8 and 16 bits in arithmetic. Without them there is no `half` either.
    pub small_ints: bool,
    /// Elements of 8 bits in memory.
    pub storage8: bool,
    /// Elements of 16 bits in memory. Without them there is no `half` either.
    pub storage16: bool,
    /// 64-bit integers. Without them there are no atomics of that width, and no clocks.
    pub int64: bool,
    /// 64-bit integer atomics on buffers (shaderBufferInt64Atomics).
    pub int64_atomics_global: bool,
    /// 64-bit integer atomics on shared memory (shaderSharedInt64Atomics).
    pub int64_atomics_local: bool,
    /// 32-bit float atomic add on buffers.
    pub float32_atomic_add_global: bool,
    /// 32-bit float atomic add on shared memory.
    pub float32_atomic_add_local: bool,
    /// VK_KHR_workgroup_memory_explicit_layout with its 8- and 16-bit features.
    pub workgroup_explicit_layout: bool,
    /// vulkanMemoryModelDeviceScope.
    pub memory_model_device_scope: bool,
    /// The device has fast instructions for dot products of four bytes packed into words: signed ones, unsigned ones,
    /// signed with unsigned ones.
    pub dot_4x8: [bool; 3],
    /// shaderStorageImageReadWithoutFormat.
    pub storage_image_read: bool,
    /// The device's linear filter is good enough for images of floats, of all formats that kernels may read.
    pub device_filters: bool,
    /// Kernels are checked: coordinates that CLK_ADDRESS_NONE leaves undefined are kept, so that they are seen.
    pub checks_images: bool,
    /// Subgroup operations that exist, as VkSubgroupFeatureFlagBits.
    pub subgroup_ops: u32,
    /// Subgroup size, 0 when unknown or varying.
    pub subgroup_size: u32,
    /// Subgroup operations take integers of 8, 16 and 64 bits and `half` (shaderSubgroupExtendedTypes).
    pub subgroup_extended_types: bool,
    /// Shaders can ask that work-items which part meet again where the source has them meet
    /// (shaderMaximalReconvergence).
    pub maximal_reconvergence: bool,
    /// Shaders can read a clock of the device (shaderDeviceClock).
    pub clock_device: bool,
    /// Shaders can read a clock that the work-items of a sub-group share (shaderSubgroupClock).
    pub clock_subgroup: bool,
    /// The defects and peculiarities of the driver.
    pub quirks: CodeQuirks,
    /// Set for launches beyond 2^32 work-items in a dimension: ids and sizes have 64 bits
    /// ([`wide_range`](crate::passes::wide_range)).
    pub wide_range: bool,
    /// Set if kernels stay KIR, from which [`native`](crate::native) makes code for a processor, in packs of `subgroup_size` lanes.
    pub native: bool,
}

impl Target {
    /// Returns true if sub-groups and collective functions work: the size of sub-groups is known,
    /// and the operations exist to which the others can be lowered.
    pub fn has_subgroups(&self) -> bool {
        let needed = subgroup::BASIC | subgroup::VOTE | subgroup::BALLOT | subgroup::SHUFFLE;
        let size = self.subgroup_size;
        size.is_power_of_two() && size <= 128 && self.subgroup_ops & needed == needed
    }

    /// Returns true if memory is accessed by elements of that many bytes, 1 or 2. For the validator
    /// a vector that becomes a pointer to them is arithmetic.
    pub fn has_storage(&self, bytes: u32) -> bool {
        let storage = match bytes {
            1 => self.storage8,
            _ => self.storage16,
        };
        storage && (self.int64 || self.small_ints)
    }

    /// Returns the target of a device with all capabilities, for tests: explicit shared-memory
    /// layout, exact arithmetic, 256 bytes of push constants.
    pub fn full() -> Self {
        let exact = FloatCaps {
            supported: true,
            fused_fma: true,
            exact_div: true,
            exact_sqrt: true,
            denormals: true,
            denorm_preserve: true,
            denorm_flush: false,
            signed_zero_inf_nan: true,
            rte: true,
        };
        Self {
            address_bits: 64,
            max_push_constants: 256,
            max_local_memory: 48 << 10,
            fp16: exact,
            unpacks_halves: true,
            packs_halves: true,
            fp32: exact,
            fp64: exact,
            good_exp2: true,
            good_log2: true,
            small_ints: true,
            storage8: true,
            storage16: true,
            int64: true,
            int64_atomics_global: true,
            int64_atomics_local: true,
            float32_atomic_add_global: true,
            float32_atomic_add_local: true,
            workgroup_explicit_layout: true,
            memory_model_device_scope: true,
            dot_4x8: [true; 3],
            storage_image_read: true,
            device_filters: true,
            checks_images: false,
            subgroup_ops: 0xff,
            subgroup_size: 32,
            subgroup_extended_types: true,
            maximal_reconvergence: true,
            clock_device: true,
            clock_subgroup: true,
            quirks: CodeQuirks::default(),
            wide_range: false,
            native: false,
        }
    }

    /// Returns the target for a processor whose vectors have `lanes` lanes of 32 bits.
    pub fn processor(lanes: u32) -> Self {
        let full = Self::full();
        Self {
            max_push_constants: 1 << 20,
            max_local_memory: 1 << 20,
            // Halves are computed as floats and rounded.
            fp16: FloatCaps {
                fused_fma: false,
                ..full.fp16
            },
            good_exp2: false,
            good_log2: false,
            dot_4x8: [false; 3],
            device_filters: false,
            subgroup_size: lanes,
            native: true,
            ..full
        }
    }

    /// Returns the target of a device that computes with 32-bit integers alone, but has smaller and
    /// larger ones in memory.
    pub fn weak() -> Self {
        Self {
            max_push_constants: 128,
            max_local_memory: 16 << 10,
            small_ints: false,
            fp16: FloatCaps::NONE,
            unpacks_halves: false,
            packs_halves: false,
            int64: false,
            int64_atomics_global: false,
            int64_atomics_local: false,
            float32_atomic_add_global: false,
            float32_atomic_add_local: false,
            workgroup_explicit_layout: false,
            dot_4x8: [false; 3],
            subgroup_size: 16,
            subgroup_extended_types: false,
            clock_device: false,
            clock_subgroup: false,
            ..Self::full()
        }
    }

    /// Returns the target for lavapipe 22.3: no explicit shared-memory layout, no fused multiply-add, no float controls.
    pub fn lavapipe() -> Self {
        let plain = FloatCaps {
            fused_fma: false,
            denorm_preserve: false,
            signed_zero_inf_nan: false,
            rte: false,
            ..Self::full().fp32
        };
        Self {
            max_push_constants: 128,
            max_local_memory: 32 << 10,
            fp16: plain,
            unpacks_halves: false,
            packs_halves: false,
            fp32: plain,
            fp64: plain,
            good_exp2: false,
            good_log2: false,
            workgroup_explicit_layout: false,
            storage_image_read: false,
            device_filters: false,
            dot_4x8: [false; 3],
            subgroup_size: 8,
            quirks: CodeQuirks::from([
                CodeQuirk::NanTexels,
                CodeQuirk::ConstantZeros,
                CodeQuirk::FencesWait,
                CodeQuirk::LongWords,
                CodeQuirk::DividedTripCounts,
                CodeQuirk::SkippedValues,
            ]),
            ..Self::full()
        }
    }
}
