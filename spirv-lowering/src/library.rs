//! Where built-in functions come from.

use crate::error::Result;
use crate::ir::module::Module;
use crate::link;
use crate::read::Library;

/// The libraries from which built-in functions are taken: libclc and our own. Read once, shared by all programs.
#[derive(Debug)]
pub struct BuiltinLibrary {
    own: Library,
    libclc: Library,
}

impl BuiltinLibrary {
    /// From the SPIR-V of libclc and of our own library. Only an index is made here; functions are read on demand.
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

    /// Does the function of that (mangled) name come from libclc?
    pub(crate) fn is_libclc(&self, name: &str) -> bool {
        self.libclc.defines(name) && !self.own.defines(name)
    }

    /// Is there a function of that (mangled) name?
    pub fn defines(&self, name: &str) -> bool {
        self.own.defines(name) || self.libclc.defines(name)
    }
}
