//! A kernel that is interpreted, launch by launch.

use super::allocations::Given;
use super::images::Bound;
use super::report;
use super::source::Real;
use crate::backend::cpu::image::Descriptor;
use crate::backend::NativeCode;
use crate::util::lock::{rank, Mutex};
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::interp::{run_checked, Checks, Dispatched, Memory};
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::native::{self, Packing};

/// The arguments of a checked launch.
#[derive(Debug, Clone, Copy)]
pub struct LaunchArgs<'a> {
    /// Specialisation constant and bytes of each argument in local memory.
    pub local_args: &'a [(u32, u32)],
    /// The argument block.
    pub push: &'a [u8],
    /// Images, by binding.
    pub descriptors: &'a [Descriptor],
    /// Begin and end of the memory that it was given; empty: it may access any.
    pub given: &'a [(u64, u64)],
}

/// See the module.
pub struct CheckedKernel {
    interface: KernelInterface,
    /// None: its text cannot be read, which has been said.
    module: Option<Module>,
}

/// Held by launches that use device queues.
static ENQUEUING: Mutex<(), { rank::CHECKED_LAUNCH }> = Mutex::new(());

impl CheckedKernel {
    /// Creates a checked kernel.
    pub fn new(native: &dyn NativeCode, interface: &KernelInterface) -> Self {
        let name = &interface.name;
        let module = parse_module(native.kir());
        let module = module.map_err(|error| report::not_checked(name, &error.to_string()));
        Self {
            interface: interface.clone(),
            module: module.ok(),
        }
    }

    /// Runs all work-groups, and reports what is wrong. Returns false if the kernel cannot be
    /// interpreted, and nothing has happened.
    ///
    /// # Safety
    /// As for the code of the kernel: the launch may access the memory that its arguments lead to, and its images.
    pub unsafe fn run(&self, groups: [u32; 3], local_size: [u32; 3], args: LaunchArgs) -> bool {
        let Some(module) = &self.module else {
            return false;
        };
        let asked = crate::util::config::get().check;
        let checks = Checks {
            memory: asked.memory,
            races: asked.race,
            barriers: asked.barrier,
        };
        let packing = Packing::of(
            local_size,
            self.interface.lanes,
            self.interface.uses_subgroups,
        );
        let claims = asked.claims.then(|| native::claims(module, packing));
        let claims = claims.and_then(|claims| match claims {
            Ok(claims) => Some(claims),
            Err(error) => {
                report::not_checked(&self.interface.name, &error.to_string());
                None
            }
        });
        let launch = Dispatched {
            module,
            implicit: &self.interface.implicit,
            groups,
            local_size,
            push: args.push,
            local_args: args.local_args,
            lanes: self.interface.lanes,
            claims: claims.as_deref().map(|claims| (claims, packing.order())),
        };
        // What launches change comes back when they are over: two must not take one place of a device queue.
        let _one = self.interface.enqueues().then(|| ENQUEUING.lock());
        let given = Given::new(args.given);
        let (mut real, mut memory) = (Real::new(&given), Memory::new());
        // SAFETY: as the caller promises.
        let mut images = unsafe { Bound::new(args.descriptors) };
        match run_checked(&launch, checks, &mut real, &mut images, &mut memory) {
            Ok(findings) => {
                let wrong = findings.wrong.iter();
                wrong.for_each(|one| report::say(&self.interface, &given, one));
                findings.claims.iter().for_each(report::false_claim);
                // SAFETY: as the caller promises.
                unsafe { real.put_back(&memory) };
                true
            }
            Err(error) => {
                report::not_checked(&self.interface.name, &error.to_string());
                false
            }
        }
    }
}
