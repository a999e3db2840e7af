//! The processor's mode of computing with floats.

/// How the processor computes with floats, which an application may have changed for its own threads.
pub struct FloatMode {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    before: u64,
}

impl FloatMode {
    /// Rounds to nearest, has subnormal numbers, never traps.
    #[cfg(target_arch = "x86_64")]
    pub fn standard() -> Self {
        let mut before = 0u32;
        let standard = 0x1f80u32;
        // SAFETY: both instructions access the given words alone; the mode is restored when this is dropped.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &mut before, options(nostack));
            if before & 0xffc0 != standard {
                std::arch::asm!("ldmxcsr [{}]", in(reg) &standard, options(nostack, readonly));
            }
        }
        Self {
            before: u64::from(before),
        }
    }

    #[cfg(target_arch = "aarch64")]
    pub fn standard() -> Self {
        let before: u64;
        // SAFETY: a register of this thread, restored when this is dropped.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) before, options(nostack, nomem));
            std::arch::asm!("msr fpcr, {}", in(reg) 0u64, options(nostack, nomem));
        }
        Self { before }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn standard() -> Self {
        Self {}
    }
}

impl Drop for FloatMode {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if self.before & 0xffc0 != 0x1f80 {
            let before = self.before as u32;
            // SAFETY: the mode that the thread had.
            unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &before, options(nostack, readonly)) };
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the mode that the thread had.
        unsafe {
            std::arch::asm!("msr fpcr, {}", in(reg) self.before, options(nostack, nomem));
        }
    }
}
