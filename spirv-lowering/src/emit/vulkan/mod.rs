//! Emits Target IR as Vulkan SPIR-V 1.5 (Vulkan 1.2).
//!
//! This is a plain walk: the function is structured already and uses only what the target has. The
//! walk decides which capability, which instruction and which memory semantics to use.
//!
//! - Pointers are 64-bit integers (device addresses) until the access, where `OpConvertUToPtr`
//!   makes a `PhysicalStorageBuffer` pointer of the access type. On targets without such integers
//!   they are vectors of two words, and `OpBitcast` makes the pointer.
//! - Memory model `Vulkan`: accesses to memory that other work-items may access are
//!   `NonPrivatePointer`; barriers, fences and ordered atomics make memory available and visible.
//! - Images are untyped by format: one variable for each binding and kind of component.
//! - The argument block is a push-constant structure of 32- and 64-bit words (`push_block`).
//! - Words of push constants and built-in inputs are loaded once, at the start of the entry block.

mod arguments;
mod body;
mod group;
mod image;
mod memory;
mod push_block;
mod writer;

use crate::error::{LowerError, Result};
use crate::interface::KernelInterface;
use crate::ir::function::Function;
use crate::target::Target;

/// Emits a structured kernel as a module with the entry point `main`.
pub fn emit(func: &Function, interface: &KernelInterface, target: &Target) -> Result<Vec<u32>> {
    if target.address_bits != 64 {
        return Err(LowerError::unsupported(
            "addresses that are not 64 bits wide",
        ));
    }
    let emitter = body::Emitter::new(func, interface, target);
    emitter.run().map_err(|e| e.in_function(&func.name))
}
