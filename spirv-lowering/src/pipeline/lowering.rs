//! What the passes of one kernel know of it beside its function, and what they leave for those that come later.

use crate::analysis::arg_access::ArgAccess;
use crate::interface::KernelInterface;
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
    /// Where the program's variables are.
    pub layout: &'a Layout,
    /// What the kernel reaches of the program. Passes add variables.
    pub reached: Module,
    /// `arg_access`: what the kernel does with memory behind its arguments.
    pub access: ArgAccess,
    /// `lower_images`: descriptors that take the place of images.
    pub images: Descriptors,
    /// `lower_printf`: the printf sites by the index in printf records.
    pub printfs: Vec<PrintfSite>,
    /// The kernel has collective operations.
    pub collective: bool,
    /// `guard_range`: work-items beyond the ND-range end at once.
    pub guarded: bool,
    /// `lower_args`: what the runtime supplies at dispatch. Later passes complete it.
    pub interface: Option<KernelInterface>,
}

impl<'a> Lowering<'a> {
    /// Of a kernel that nothing is known of yet.
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
            collective: false,
            guarded: false,
            interface: None,
        }
    }
}
