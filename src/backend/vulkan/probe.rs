//! What the device's arithmetic does where Vulkan is silent: fused multiply-add, exact division and square root.
//!
//! The answers here are conservative and known by driver; a measurement with small compute shaders, cached by driver
//! UUID, can replace [`arithmetic`] without anything else changing.

use ash::vk;

/// Answers for one floating-point width.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// Fma rounds once.
    pub fused_fma: bool,
    /// Division is correctly rounded.
    pub exact_div: bool,
    /// The square root is correctly rounded.
    pub exact_sqrt: bool,
    /// Subnormals survive without an execution mode.
    pub denormals: bool,
}

/// Answers for half, single and double precision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// 16 bits.
    pub fp16: Arithmetic,
    /// 32 bits.
    pub fp32: Arithmetic,
    /// 64 bits.
    pub fp64: Arithmetic,
}

/// What is known of a driver.
pub fn arithmetic(driver: vk::DriverId) -> Answers {
    let software = Arithmetic {
        fused_fma: false,
        exact_div: true,
        exact_sqrt: true,
        denormals: true,
    };
    let exact = Arithmetic {
        fused_fma: true,
        exact_div: true,
        exact_sqrt: true,
        denormals: true,
    };
    match driver {
        // Fma is a multiplication and an addition; the rest is the host's IEEE arithmetic. Half precision division
        // and square root go through single precision, which rounds correctly (24 >= 2 * 11 + 2 bits).
        vk::DriverId::MESA_LLVMPIPE => Answers {
            fp16: software,
            fp32: software,
            fp64: software,
        },
        vk::DriverId::NVIDIA_PROPRIETARY => Answers {
            fp16: Arithmetic {
                fused_fma: true,
                denormals: true,
                ..Arithmetic::default()
            },
            fp32: Arithmetic {
                fused_fma: true,
                ..Arithmetic::default()
            },
            fp64: exact,
        },
        _ => Answers::default(),
    }
}
