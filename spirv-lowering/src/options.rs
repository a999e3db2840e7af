//! The options for lowering a kernel.

use crate::ir::function::Function;
use crate::library::BuiltinLibrary;
use std::time::Duration;

/// Called after each pass with its name and the function.
pub type DumpHook<'a> = &'a mut dyn FnMut(&str, &Function);

/// The memory that is zero before a kernel writes to it (cl_khr_initialize_memory).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZeroedMemory {
    /// Local memory, when a work-group begins.
    pub local: bool,
    /// Private memory, when a work-item begins.
    pub private: bool,
}

/// The options for lowering a kernel.
#[derive(Default)]
pub struct Options<'a> {
    /// Set by -cl-fp32-correctly-rounded-divide-sqrt.
    pub correctly_rounded_divide_sqrt: bool,
    /// Set by -cl-denorms-are-zero.
    pub denorms_are_zero: bool,
    /// Set by -cl-fast-relaxed-math and -cl-unsafe-math-optimizations: built-ins may be replaced by
    /// native instructions.
    pub unsafe_math: bool,
    /// The memory that kernels find zeroed.
    pub zeroed: ZeroedMemory,
    /// Run the verifier after each pass (always done in debug builds).
    pub verify: bool,
    /// Receives the function after each pass.
    pub dump: Option<DumpHook<'a>>,
    /// Receives the time that each pass took.
    pub timings: Option<&'a mut Vec<(&'static str, Duration)>>,
    /// The passes to skip, by name. Skipping one that a kernel needs is an error.
    pub skip: &'a [&'a str],
    /// The number of optional passes to run before all others are skipped, to find by bisection the
    /// first that causes a fault. None: all.
    pub limit: Option<usize>,
    /// The size in instructions, as read, from which on functions have one copy in kernels of any
    /// size, and are called where there are calls; `None`: where that pays. For tests.
    pub one_copy_from: Option<u64>,
    /// The library of functions that lowering adds (software division and the like).
    pub library: Option<&'a BuiltinLibrary>,
}

impl Options<'_> {
    /// Returns true if a pass of this name is to run. Counts optional passes for [`Self::limit`].
    pub(crate) fn admits(&mut self, name: &str, needed: bool) -> bool {
        if self.skip.contains(&name) {
            return false;
        }
        match &mut self.limit {
            Some(left) if !needed => {
                let admitted = *left > 0;
                *left = left.saturating_sub(1);
                admitted
            }
            _ => true,
        }
    }
}
