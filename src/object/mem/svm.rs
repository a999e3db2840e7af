//! Memory objects over shared virtual memory: the one that stands for an allocation, which the application does not
//! see, and buffers made of its pointers with CL_MEM_USE_HOST_PTR.

use super::map::Mapping;
use super::store::Store;
use super::Mem;
use crate::backend::owned_memory::with_owner;
use crate::backend::Memory;
use crate::cl::{self, cl_map_flags, cl_mem_flags};
use crate::error::{ensure, ClResult, OrErr};
use crate::handle::Ref;
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::svm::Allocation;
use std::ptr::NonNull;
use std::sync::Arc;

impl Mem {
    /// Creates the store of an allocation of shared virtual memory at `address`, from the memory
    /// that each memory of the context has there. Several are the same bytes, unless they are
    /// `separate`.
    pub(crate) fn shared(
        context: &Ref<Context>,
        flags: cl_mem_flags,
        address: usize,
        size: usize,
        memories: Vec<Option<Arc<dyn Memory>>>,
        separate: bool,
    ) -> Ref<Self> {
        let store = Store::shared(size as u64, flags, address, memories, separate);
        Self::make(context, flags, store, |_| {})
    }

    /// Returns a buffer over a part of an allocation (CL_MEM_USE_HOST_PTR with a pointer into it).
    pub(super) fn over(
        allocation: &Allocation,
        properties: Vec<cl::cl_mem_properties>,
        flags: cl_mem_flags,
        offset: usize,
        size: usize,
    ) -> Ref<Self> {
        let whole = &allocation.mem;
        Self::make(&whole.context, flags, whole.store.clone(), |mem| {
            mem.size = size;
            mem.properties = properties;
            mem.origin = offset;
        })
    }

    /// Registers a map of shared virtual memory, which needs no mapped memory: the application has
    /// the pointer already. Such maps may overlap.
    pub(crate) fn map_shared(&self, flags: cl_map_flags, offset: usize, size: usize) -> Mapping {
        let mut mapping = Mapping::new(flags, offset, size);
        mapping.pointer = self.host_ptr + offset;
        mapping.direct = self.is_seen_by_host();
        self.mappings.lock().push(mapping.clone());
        mapping
    }

    /// Returns true if the host accesses the device's bytes at its own address without maps.
    pub(crate) fn is_seen_by_host(&self) -> bool {
        self.store.is_seen_by_host()
    }
}

/// Returns the memory of `owner` as another device accesses it, if it does at the same address.
pub(crate) fn same_bytes(owner: &Arc<dyn Memory>, device: &Device) -> ClResult<Arc<dyn Memory>> {
    let address = owner.address();
    // Where the bytes are a device's own, the host has plain memory at the same address.
    let host = || NonNull::new(address as *mut u8).filter(|_| device.caps().svm.system);
    let pointer = owner.mapped().or_else(host).or_err(
        cl::CL_OUT_OF_RESOURCES,
        "the memory is not the host's, so other devices do not see it",
    )?;
    // SAFETY: the memory is there as long as it lives, and the import keeps it.
    let memory = unsafe { device.backend.import_host(pointer, owner.size()) }?;
    ensure!(
        memory.address() == address,
        cl::CL_OUT_OF_RESOURCES,
        "the devices see the memory at different addresses"
    );
    Ok(with_owner(memory, owner.clone()))
}
