//! The passes in order, from a linked module to Vulkan SPIR-V.

use crate::error::{LowerError, Result};
use crate::interface::ProgramGlobals;
use crate::ir::module::Module;
use crate::program::{Lowered, Options};
use crate::target::Target;

/// The layout and initial data of the program-scope variables.
pub fn program_globals(_module: &Module) -> Result<ProgramGlobals> {
    Ok(ProgramGlobals::default())
}

/// Lowers one kernel.
pub fn lower(
    _module: &Module,
    _kernel: &str,
    _target: &Target,
    _options: &mut Options,
) -> Result<Lowered> {
    Err(LowerError::unsupported("the pipeline is not there yet"))
}
