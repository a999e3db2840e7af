//! The libraries of built-in functions.

use crate::error::Result;
use crate::ir::module::Module;
use crate::link;
use crate::read::Library;

/// The libraries that define built-in functions: libclc and Pumice's own. They are read once and
/// shared by all programs.
#[derive(Debug)]
pub struct BuiltinLibrary {
    own: Library,
    libclc: Library,
}

impl BuiltinLibrary {
    /// Creates the library from the SPIR-V of libclc and of Pumice's own. It only builds an index;
    /// functions are read on demand.
    pub fn new(libclc: &[u32], own: &[u32]) -> Result<Self> {
        Ok(Self {
            own: Library::new(own.to_vec()).map_err(|e| e.in_function("the built-in library"))?,
            libclc: Library::new(libclc.to_vec()).map_err(|e| e.in_function("libclc"))?,
        })
    }

    /// Defines the imported functions of a module.
    pub(crate) fn resolve(&self, module: &mut Module) -> Result<()> {
        link::resolve(module, &[&self.own, &self.libclc])
    }

    /// Returns true if the function of that (mangled) name comes from libclc.
    pub(crate) fn is_libclc(&self, name: &str) -> bool {
        self.libclc.defines(name) && !self.own.defines(name)
    }

    /// Returns true if the library defines a function of that (mangled) name.
    pub fn defines(&self, name: &str) -> bool {
        self.own.defines(name) || self.libclc.defines(name)
    }
}
