//! A kernel that is interpreted, launch by launch.

use super::report;
use super::source::Real;
use crate::backend::NativeCode;
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::interp::{run_checked, Checks, Dispatched, Memory};
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::parse::parse_module;

/// See the module.
pub struct CheckedKernel {
    name: String,
    interface: KernelInterface,
    /// None: its text cannot be read, which has been said.
    module: Option<Module>,
    lanes: u32,
}

impl CheckedKernel {
    /// For sub-groups of so many work-items.
    pub fn new(native: &dyn NativeCode, interface: &KernelInterface, lanes: u32) -> Self {
        let name = interface.name.clone();
        let module = parse_module(native.kir());
        let module = module.map_err(|error| report::not_checked(&name, &error.to_string()));
        Self {
            name,
            interface: interface.clone(),
            module: module.ok(),
            lanes,
        }
    }

    /// Runs all work-groups, and says what is wrong. False: it cannot be interpreted, and nothing has happened.
    ///
    /// # Safety
    /// As for the code of the kernel: the launch may access the memory that its arguments lead to.
    pub unsafe fn run(
        &self,
        groups: [u32; 3],
        local_size: [u32; 3],
        local_args: &[(u32, u32)],
        push: &[u8],
    ) -> bool {
        let Some(module) = &self.module else {
            return false;
        };
        let asked = crate::util::config::get().check;
        let checks = Checks {
            memory: asked.memory,
            races: asked.race,
            barriers: asked.barrier,
        };
        let launch = Dispatched {
            module,
            implicit: &self.interface.implicit,
            groups,
            local_size,
            push,
            local_args,
            lanes: self.lanes,
        };
        let (mut real, mut memory) = (Real::default(), Memory::new());
        match run_checked(&launch, checks, &mut real, &mut memory) {
            Ok(findings) => {
                findings.iter().for_each(|one| report::say(&self.name, one));
                // SAFETY: as the caller promises.
                unsafe { real.put_back(&memory) };
                true
            }
            Err(error) => {
                report::not_checked(&self.name, &error.to_string());
                false
            }
        }
    }
}
