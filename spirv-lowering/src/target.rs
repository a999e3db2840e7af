//! What the device can do, as far as lowering cares. Plain data: the runtime fills it from what it queried and
//! probed; its bytes are part of the cache key of lowered kernels.

/// A floating-point width and what was measured of the device's arithmetic in it.
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
    /// Subnormal inputs and results are kept without further measures.
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
    /// Subnormal numbers survive, of themselves or because the mode for that is declared.
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
    /// Single precision.
    pub fp32: FloatCaps,
    /// Double precision.
    pub fp64: FloatCaps,
    /// GLSL.std.450 Exp2 is within the bounds that -cl-fast-relaxed-math sets for exp and exp2.
    pub good_exp2: bool,
    /// GLSL.std.450 Log2 is within those for log, log2 and log10, subnormal operands included.
    pub good_log2: bool,
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
    /// A NaN that is written to a normalised channel of an image becomes its greatest number.
    pub saturates_nan: bool,
    /// Subgroup operations that exist, as VkSubgroupFeatureFlagBits.
    pub subgroup_ops: u32,
    /// Subgroup size, 0 when unknown or varying.
    pub subgroup_size: u32,
    /// Subgroup operations take integers of 8, 16 and 64 bits and `half` (shaderSubgroupExtendedTypes).
    pub subgroup_extended_types: bool,
    /// Shaders can read a clock of the device (shaderDeviceClock).
    pub clock_device: bool,
    /// Shaders can read a clock that the work-items of a sub-group share (shaderSubgroupClock).
    pub clock_subgroup: bool,
    /// A memory fence makes the work-items of a group wait for one another, so that none may stand in divergent flow:
    /// fences are left out, and atomics do without order (llvmpipe; a processor orders them by itself).
    pub fences_wait: bool,
    /// Memory is accessed an element at a time, whatever the vector, so that one of 64 bits is better than two of 32
    /// (llvmpipe; each is a loop over the work-items of a sub-group).
    pub long_words: bool,
    /// Compiling takes a time that grows with the square of the number of components stored: kernels with very many are made
    /// in parts ([`split_parts`](crate::passes::quirks::split_parts)).
    pub long_lines: bool,
    /// Iterations of all loops of a work-item together after which the driver takes each loop for finished. 0: no such
    /// limit.
    pub loop_limit: u32,
    /// Lanes of a sub-group without a work-item take part in control flow, with zeros for what they load (llvmpipe).
    pub idle_lanes_run: bool,
    /// What a loop computes is computed again for work-items that have left it, while others go on
    /// ([`loop_results`](crate::passes::quirks::loop_results)).
    pub redoes_loop_results: bool,
    /// The driver's compiler ends loops early whose bound is a negation ([`flip_compares`](crate::passes::quirks::flip_compares)).
    pub miscounts_to_negations: bool,
    /// The driver's compiler gets comparisons of 64 bits wrong with a number of 32 ([`flip_compares`](crate::passes::quirks::flip_compares)).
    pub miscompares_extended: bool,
    /// The driver's compiler takes it that counters with constant steps do not wrap around
    /// ([`hide_steps`](crate::passes::quirks::hide_steps)).
    pub miscounts_wrapping: bool,
    /// The driver's compiler counts the iterations of a loop by a division of constants, also where the counter wraps around or is
    /// rounded ([`hide_counts`](crate::passes::quirks::hide_counts)).
    pub divides_to_count: bool,
    /// The driver's compiler takes an atomic that works with the bits of a float for one of floats
    /// ([`hide_floats`](crate::passes::quirks::hide_floats)).
    pub mistakes_atomic_floats: bool,
    /// The driver's compiler takes `x * 0` for 0 and `x + 0` for x ([`hide_zeros`](crate::passes::quirks::hide_zeros)).
    pub drops_zeros: bool,
    /// A choice between one and a zero of the other sign gives a zero of the same sign
    /// ([`hide_zeros`](crate::passes::quirks::hide_zeros)).
    pub drops_chosen_signs: bool,
    /// The bits of 8 and 16-bit values are counted with those of their extension
    /// ([`narrow_counts`](crate::passes::quirks::narrow_counts)).
    pub miscounts_narrow_bits: bool,
    /// An integer that is infinite as a half is itself again as a wider number
    /// ([`bound_halves`](crate::passes::quirks::bound_halves)).
    pub widens_overflow: bool,
    /// A number that a half rounds is itself again as a wider one ([`lower_convert`](crate::passes::lower_convert)).
    pub forgets_halves: bool,
    /// A double or an integer that a float or a half rounds is itself again as a wider number
    /// ([`lower_convert`](crate::passes::lower_convert)).
    pub forgets_rounding: bool,
    /// A float that a double is narrowed to, and that is subnormal, is 0 as a double again
    /// ([`lower_convert`](crate::passes::lower_convert)).
    pub flushes_narrowed: bool,
    /// Trunc and RoundEven of doubles are wrong ([`round_doubles`](crate::passes::quirks::round_doubles)).
    pub misrounds_doubles: bool,
    /// The kernel is for launches beyond 2^32 work-items in a dimension: ids and sizes have 64 bits
    /// ([`wide_range`](crate::passes::wide_range)).
    pub wide_range: bool,
    /// Kernels stay KIR, from which [`native`](crate::native) makes code for a processor, in packs of `subgroup_size` lanes.
    pub native: bool,
}

impl Target {
    /// Whether sub-groups and collective functions work: their size is known, and the few operations are there that the
    /// others can be made of.
    pub fn has_subgroups(&self) -> bool {
        let needed = subgroup::BASIC | subgroup::VOTE | subgroup::BALLOT | subgroup::SHUFFLE;
        let size = self.subgroup_size;
        size.is_power_of_two() && size <= 128 && self.subgroup_ops & needed == needed
    }

    /// A device with everything, for tests: explicit shared-memory layout, exact arithmetic, 256 bytes of push
    /// constants.
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
            fp32: exact,
            fp64: exact,
            good_exp2: true,
            good_log2: true,
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
            saturates_nan: false,
            subgroup_ops: 0xff,
            subgroup_size: 32,
            subgroup_extended_types: true,
            clock_device: true,
            clock_subgroup: true,
            fences_wait: false,
            long_words: false,
            long_lines: false,
            loop_limit: 0,
            idle_lanes_run: false,
            redoes_loop_results: false,
            miscounts_to_negations: false,
            miscounts_wrapping: false,
            divides_to_count: false,
            mistakes_atomic_floats: false,
            miscompares_extended: false,
            drops_zeros: false,
            miscounts_narrow_bits: false,
            drops_chosen_signs: false,
            widens_overflow: false,
            forgets_halves: false,
            forgets_rounding: false,
            flushes_narrowed: false,
            misrounds_doubles: false,
            wide_range: false,
            native: false,
        }
    }

    /// A processor whose vectors have so many lanes of 32 bits.
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

    /// What lavapipe 22.3 offers: no explicit shared-memory layout, no fused multiply-add, no float controls.
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
            fp32: plain,
            fp64: plain,
            good_exp2: false,
            good_log2: false,
            workgroup_explicit_layout: false,
            storage_image_read: false,
            device_filters: false,
            dot_4x8: [false; 3],
            subgroup_size: 8,
            saturates_nan: true,
            drops_zeros: true,
            fences_wait: true,
            long_words: true,
            long_lines: true,
            loop_limit: 65535,
            idle_lanes_run: true,
            redoes_loop_results: true,
            miscompares_extended: true,
            divides_to_count: true,
            mistakes_atomic_floats: true,
            ..Self::full()
        }
    }
}
