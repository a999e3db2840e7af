//! The processor's floating-point mode: rounding, subnormal numbers, traps.
//!
//! The mode belongs to the thread, and so to the application: `gcc -ffast-math` makes every program that it links flush
//! subnormal numbers to zero, others round upward or trap. None of that may reach what the library computes, which other
//! processes find in the cache. So it computes in the standard mode, which is set in three places: where a call enters the
//! library (`icd/src/shell.rs`), where a thread of its own begins (`util/thread.rs`), and again where a function of the
//! application has returned to it (`object/callback.rs`).

use std::marker::PhantomData;

/// The standard mode: rounds to nearest, has subnormal numbers, never traps. Dropping it restores the mode of before, with
/// the exceptions that had been raised by then.
pub struct FloatMode {
    before: Registers,
    /// The mode was another.
    changed: bool,
    /// Keeps it on its thread.
    _thread: PhantomData<*const ()>,
}

impl FloatMode {
    /// Sets the standard mode.
    #[inline]
    pub fn standard() -> Self {
        let before = Registers::read();
        let standard = before.standard();
        let changed = before != standard;
        if changed {
            standard.write();
        }
        Self {
            before,
            changed,
            _thread: PhantomData,
        }
    }

    /// Sets the standard mode for good.
    pub fn stay_standard() {
        std::mem::forget(Self::standard());
    }
}

impl Drop for FloatMode {
    #[inline]
    fn drop(&mut self) {
        if self.changed || self.before.raised_more() {
            self.before.write();
        }
    }
}

/// The control registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, PartialEq)]
struct Registers {
    /// The register of vectors: control, and the exceptions that were raised.
    mxcsr: u32,
    /// The control word of the x87, whose rounding the C library asks for.
    x87: u16,
}

#[cfg(target_arch = "x86_64")]
impl Registers {
    /// The bits of MXCSR that say which exceptions were raised.
    const RAISED: u32 = 0x3f;
    /// MXCSR: all exceptions masked, to nearest.
    const MXCSR: u32 = 0x1f80;
    /// The x87's masks of exceptions, and its bits of rounding. The rest is its precision, which nothing here uses.
    const X87_MASKS: u16 = 0x3f;
    const X87_ROUNDING: u16 = 0xc00;

    #[inline]
    fn read() -> Self {
        let (mut mxcsr, mut x87) = (0u32, 0u16);
        // SAFETY: each instruction writes the given word alone.
        unsafe {
            std::arch::asm!(
                "stmxcsr [{}]", "fnstcw [{}]", in(reg) &mut mxcsr, in(reg) &mut x87,
                options(nostack, preserves_flags)
            );
        }
        Self { mxcsr, x87 }
    }

    #[inline]
    fn standard(self) -> Self {
        Self {
            mxcsr: Self::MXCSR | self.mxcsr & Self::RAISED,
            x87: self.x87 & !Self::X87_ROUNDING | Self::X87_MASKS,
        }
    }

    /// Returns true if the thread has raised exceptions since this state was read. The standard
    /// mode must be set.
    #[inline]
    fn raised_more(self) -> bool {
        let mut mxcsr = 0u32;
        // SAFETY: the instruction writes the given word alone.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &mut mxcsr, options(nostack, preserves_flags));
        }
        mxcsr != self.mxcsr
    }

    #[cold]
    fn write(self) {
        // SAFETY: each instruction reads the given word alone; both words are as the processor gave them, but for rounding,
        // masks and subnormal numbers.
        unsafe {
            std::arch::asm!(
                "ldmxcsr [{}]", "fldcw [{}]", in(reg) &self.mxcsr, in(reg) &self.x87,
                options(nostack, readonly, preserves_flags)
            );
        }
    }
}

/// The control register, FPCR, and the exceptions that were raised, FPSR.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, PartialEq)]
struct Registers {
    control: u64,
    raised: u64,
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    #[inline]
    fn read() -> Self {
        let (control, raised): (u64, u64);
        // SAFETY: registers of this thread are read.
        unsafe {
            std::arch::asm!(
                "mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) raised,
                options(nostack, nomem, preserves_flags)
            );
        }
        Self { control, raised }
    }

    #[inline]
    fn standard(self) -> Self {
        Self { control: 0, ..self }
    }

    /// Returns true if the thread has raised exceptions since this state was read. The standard
    /// mode must be set.
    #[inline]
    fn raised_more(self) -> bool {
        Self::read().raised != self.raised
    }

    #[cold]
    fn write(self) {
        // SAFETY: registers of this thread; no code here depends on the mode that they had.
        unsafe {
            std::arch::asm!(
                "msr fpcr, {}", "msr fpsr, {}", in(reg) self.control, in(reg) self.raised,
                options(nostack, nomem, preserves_flags)
            );
        }
    }
}

/// Not known for this processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[derive(Clone, Copy, PartialEq)]
struct Registers;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Registers {
    fn read() -> Self {
        Self
    }

    fn standard(self) -> Self {
        self
    }

    fn raised_more(self) -> bool {
        false
    }

    fn write(self) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Round upward, flush to zero, trap at overflow; with an exception raised.
    const HOSTILE: Registers = Registers {
        mxcsr: 0xdb41,
        x87: 0x0b37,
    };

    /// A bit of the x87's control word that processors read as they like.
    const RESERVED: u16 = 0x40;

    #[test]
    fn the_mode_of_before_comes_back() {
        let usual = FloatMode::standard();
        HOSTILE.write();
        let third = {
            let _mode = FloatMode::standard();
            let now = Registers::read();
            assert_eq!((now.mxcsr & 0xffc0, now.x87 & !RESERVED), (0x1f80, 0x033f));
            // A function of the application sets a mode, and returns.
            let inner = FloatMode::standard();
            HOSTILE.write();
            drop(inner);
            black_box(1.0f32) / black_box(3.0)
        };
        let now = Registers::read();
        drop(usual);
        assert_eq!(
            (now.mxcsr, now.x87 & !RESERVED),
            (HOSTILE.mxcsr, HOSTILE.x87)
        );
        assert_eq!(third.to_bits(), 0x3eaa_aaab);
    }
}
