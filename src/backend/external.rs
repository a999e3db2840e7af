//! Semaphores and memory that other APIs and other processes share, named by handles of the system.

use super::{DeviceImage, Result, Slice};
use std::any::Any;
use std::sync::Arc;

/// A kind of handle of semaphores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SemaphoreHandle {
    /// A file descriptor of the driver's that refers to the payload.
    OpaqueFd,
    /// A sync file of Linux, which has a copy of the payload; -1: one that is signalled.
    SyncFd,
}

/// A binary semaphore that can be shared.
pub trait Semaphore: Send + Sync {
    /// Returns a new file descriptor for the payload, which belongs to the caller. With a copy of the payload the semaphore is
    /// no longer signalled; a signal must have been submitted before.
    fn export(&self, kind: SemaphoreHandle) -> Result<i32>;
    /// Replaces the payload by that of a sync file until the next wait. On success the file descriptor is no longer the
    /// caller's.
    fn import_sync_fd(&self, fd: i32) -> Result;
    /// Returns the semaphore as `Any`, for its back end to downcast.
    fn as_any(&self) -> &dyn Any;
}

/// A kind of handle of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryHandle {
    /// A file descriptor of the driver's.
    OpaqueFd,
    /// A DMA buffer of Linux.
    DmaBuf,
}

/// Memory, or an image, that others share.
#[derive(Clone, Copy)]
pub enum SharedResource<'a> {
    /// A range of memory.
    Memory(&'a Slice),
    /// An image.
    Image(&'a Arc<dyn DeviceImage>),
}
