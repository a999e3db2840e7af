//! Buffers whose device addresses the application asks for (cl_ext_buffer_device_address). Every buffer of ours has a
//! fixed address on each device; the property only makes it known.

use super::Mem;
use crate::cl::{self, cl_mem_device_address_ext, cl_mem_properties};
use crate::error::{ensure, ClResult};
use crate::handle::{Object, Ref};
use crate::object::addresses::Addressed;
use crate::object::memories::MemoryIndex;
use crate::object::properties::{pairs, unsupported};
use std::sync::{Arc, Weak};

/// Checks the properties of a buffer (with their closing zero).
pub(super) fn check_properties(properties: &[cl_mem_properties]) -> ClResult {
    for (name, value) in pairs(properties, cl::CL_INVALID_PROPERTY)? {
        if name != cl::CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT {
            return unsupported("memory", name, cl::CL_INVALID_PROPERTY);
        }
        ensure!(
            value <= 1,
            cl::CL_INVALID_PROPERTY,
            "CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT is neither true nor false"
        );
    }
    Ok(())
}

impl Addressed {
    /// Returns the buffer that contains an address of a memory.
    pub fn find(&self, memory: MemoryIndex, address: u64) -> Option<Ref<Mem>> {
        let (found, offset) = self.below(memory, address)?;
        let mem = found.downcast::<Object<Mem>>().ok()?;
        (offset < mem.size as u64).then_some(mem)
    }
}

impl Mem {
    /// Returns true if the application may query the buffer's addresses.
    pub(super) fn is_addressed(&self) -> bool {
        (self.properties).starts_with(&[cl::CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, 1])
    }

    /// Returns CL_MEM_DEVICE_ADDRESS_EXT: the address on each device of the context.
    pub fn device_addresses(&self) -> ClResult<Vec<cl_mem_device_address_ext>> {
        ensure!(
            self.is_addressed(),
            cl::CL_INVALID_OPERATION,
            "the object was not made with CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT"
        );
        let devices = self.context.devices.iter();
        devices.map(|device| self.device_address(device)).collect()
    }
}

/// Registers the addresses of a new buffer, if the application may query them.
pub(super) fn publish(mem: Ref<Mem>) -> ClResult<Ref<Mem>> {
    if mem.is_addressed() {
        for memory in mem.context.memories.all() {
            let address = mem.device_address(mem.context.memories.device(memory)?)?;
            let known: Weak<Object<Mem>> = Arc::downgrade(&mem);
            mem.context.addressed.insert(memory, address, known);
        }
    }
    Ok(mem)
}
