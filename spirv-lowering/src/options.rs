//! How a kernel is to be lowered.

use crate::ir::function::Function;
use crate::library::BuiltinLibrary;
use std::time::Duration;

/// Called after each pass with its name and the function as it is then.
pub type DumpHook<'a> = &'a mut dyn FnMut(&str, &Function);

/// How a kernel is to be lowered.
#[derive(Default)]
pub struct Options<'a> {
    /// -cl-fp32-correctly-rounded-divide-sqrt
    pub correctly_rounded_divide_sqrt: bool,
    /// -cl-denorms-are-zero
    pub denorms_are_zero: bool,
    /// -cl-fast-relaxed-math, -cl-unsafe-math-optimizations: built-ins may be replaced by native instructions.
    pub unsafe_math: bool,
    /// Run the verifier after each pass (always done in debug builds).
    pub verify: bool,
    /// Receives the function after each pass.
    pub dump: Option<DumpHook<'a>>,
    /// Receives the time that each pass took.
    pub timings: Option<&'a mut Vec<(&'static str, Duration)>>,
    /// Passes to leave out, by name. Without some of them a kernel does not lower: that is an error then.
    pub skip: &'a [&'a str],
    /// Passes to run before all others are left out that a kernel lowers without, to find the first that does harm
    /// by bisection. None: all.
    pub limit: Option<usize>,
    /// Where functions that only the lowering needs are taken from (software division and the like).
    pub library: Option<&'a BuiltinLibrary>,
}

impl Options<'_> {
    /// A pass of this name is to run. Counts it, where they are counted; those that are needed are not.
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
