//! The state of one kernel in the pipeline beside its function: what passes know of it, and what
//! they leave for later ones.

use crate::analysis::arg_access::ArgAccess;
use crate::analysis::waits::Looking;
use crate::interface::{Implicit, KernelInterface};
use crate::ir::module::{EntryPoint, Module, PrintfSite};
use crate::passes::lower_globals::Layout;
use crate::passes::lower_images::Descriptors;
use crate::target::Target;

/// The state of a kernel on its way through the pipeline.
pub struct Lowering<'a> {
    /// The device.
    pub target: &'a Target,
    /// The program.
    pub program: &'a Module,
    /// The kernel.
    pub kernel: &'a EntryPoint,
    /// The offsets of the program's variables.
    pub layout: &'a Layout,
    /// The part of the program that the kernel reaches. Passes add variables.
    pub reached: Module,
    /// Set by `arg_access`: the accesses of the kernel to memory behind its arguments.
    pub access: ArgAccess,
    /// Set by `lower_images`: the descriptors that replace images.
    pub images: Descriptors,
    /// Set by `lower_printf`: the printf sites by the index in printf records.
    pub printfs: Vec<PrintfSite>,
    /// Set while a pass runs on a function that the kernel calls. These come before the kernel.
    pub is_callee: bool,
    /// The ones of them in which a work-item looks at what others have written.
    pub looking: Looking,
    /// The implicit arguments that these use.
    pub implicits: Vec<Implicit>,
    /// Bytes of private memory of all functions.
    pub private_size: u32,
    /// Set if one of them reaches memory through pointers that come from memory.
    pub indirect: bool,
    /// Set if the kernel has collective operations.
    pub collective: bool,
    /// The work-items of a pack, for processors.
    pub lanes: u32,
    /// Set by `guard_range`: work-items beyond the ND-range end at once.
    pub guarded: bool,
    /// Set by `lower_args`: what the runtime supplies at dispatch. Later passes complete it.
    pub interface: Option<KernelInterface>,
}

impl<'a> Lowering<'a> {
    /// Creates the state before the first pass.
    pub fn new(
        target: &'a Target,
        program: &'a Module,
        kernel: &'a EntryPoint,
        layout: &'a Layout,
        reached: Module,
    ) -> Self {
        Self {
            target,
            program,
            kernel,
            layout,
            reached,
            access: ArgAccess::default(),
            images: Descriptors::default(),
            printfs: Vec::new(),
            is_callee: false,
            looking: Looking::default(),
            implicits: Vec::new(),
            private_size: 0,
            indirect: false,
            collective: false,
            lanes: target.subgroup_size,
            guarded: false,
            interface: None,
        }
    }
}
