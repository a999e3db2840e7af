//! The names of kinds of handles, and the error for one that is refused, in the specification (cl_khr_external_memory, cl_khr_external_semaphore).

use crate::backend::external::{MemoryHandle, SemaphoreHandle};
use crate::backend::DeviceError;
use crate::cl::{
    self, cl_external_memory_handle_type_khr, cl_external_semaphore_handle_type_khr, cl_properties,
};
use crate::error::ClError;

const MEMORY: [(cl_external_memory_handle_type_khr, MemoryHandle); 2] = [
    (
        cl::CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
        MemoryHandle::OpaqueFd,
    ),
    (
        cl::CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
        MemoryHandle::DmaBuf,
    ),
];

const SEMAPHORES: [(cl_external_semaphore_handle_type_khr, SemaphoreHandle); 2] = [
    (
        cl::CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR,
        SemaphoreHandle::OpaqueFd,
    ),
    (cl::CL_SEMAPHORE_HANDLE_SYNC_FD_KHR, SemaphoreHandle::SyncFd),
];

/// Returns the kind with that name in a property list.
fn kind<T: Copy>(all: &[(u32, T)], name: cl_properties) -> Option<T> {
    let found = all.iter().find(|(known, _)| u64::from(*known) == name);
    found.map(|(_, kind)| *kind)
}

/// Returns the names of kinds.
fn names<T: PartialEq>(all: &[(u32, T)], kinds: &[T]) -> Vec<u32> {
    let named = |kind: &T| all.iter().find(|(_, known)| known == kind);
    let found = kinds.iter().filter_map(named);
    found.map(|(name, _)| *name).collect()
}

/// Returns the kind of handles of memory with that name.
pub(super) fn memory_kind(name: cl_properties) -> Option<MemoryHandle> {
    kind(&MEMORY, name)
}

/// Returns the names of kinds of handles of memory.
pub(super) fn memory_names(kinds: &[MemoryHandle]) -> Vec<cl_external_memory_handle_type_khr> {
    names(&MEMORY, kinds)
}

/// Returns the kind of handles of semaphores with that name.
pub(super) fn semaphore_kind(name: cl_properties) -> Option<SemaphoreHandle> {
    kind(&SEMAPHORES, name)
}

/// Returns the names of kinds of handles of semaphores.
pub(super) fn semaphore_names(
    kinds: &[SemaphoreHandle],
) -> Vec<cl_external_semaphore_handle_type_khr> {
    names(&SEMAPHORES, kinds)
}

/// Returns the error for a handle that the driver refuses.
pub(super) fn of_handle(error: DeviceError) -> ClError {
    match error {
        DeviceError::Driver { .. } => ClError::new(cl::CL_INVALID_VALUE, error.to_string()),
        error => error.into(),
    }
}
