//! Memory that kernels and the runtime share while kernels run, in words.
//!
//! Only what Vulkan promises of coherent memory is relied on: a word arrives whole, and what a kernel wrote is there when it
//! has ended. A device beyond a bus need not exclude the host in atomic operations, nor are words seen in the order in which
//! they were written ([`spirv_lowering::device_queue`] says which side writes what).

use super::{Device, DeviceError, Memory, Placement, Result};
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::sync::Arc;

/// The main user of the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MainUser {
    /// Kernels do, with atomic operations; the host reads a word now and then.
    Device,
    /// The host reads all of it.
    Host,
}

/// Mapped memory, in words that others write too.
pub(super) struct Words {
    /// The memory.
    pub memory: Arc<dyn Memory>,
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the memory is mapped as long as it lives, and is only reached by atomic operations.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Allocates `size` bytes of memory, uninitialised.
    pub fn new(device: &dyn Device, size: usize, place: MainUser) -> Result<Self> {
        let placement = match place {
            MainUser::Device => Placement::DeviceMapped,
            MainUser::Host => Placement::HostRead,
        };
        let memory = device.allocate(size as u64, placement)?;
        // A device may leave memory of its own unmapped although it could be.
        let memory = match memory.mapped() {
            Some(_) => memory,
            None => device.allocate(size as u64, Placement::HostRead)?,
        };
        let base = memory.mapped().ok_or_else(|| {
            DeviceError::Unsupported("memory of a device queue that is not mapped".into())
        })?;
        Ok(Self { memory, base, size })
    }

    /// Fills the memory with zeros.
    pub fn cleared(self) -> Self {
        for at in (0..self.size).step_by(4) {
            self.set(at, 0);
        }
        self
    }

    /// Returns the 32 bits at an offset, a multiple of 4. Returns a spare word if there is no such
    /// offset.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        static NOWHERE: AtomicU32 = AtomicU32::new(0);
        if at % 4 != 0 || at.saturating_add(4) > self.size {
            return &NOWHERE;
        }
        // SAFETY: within the mapping, which is at least 256-byte aligned.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Returns the 32 bits at an offset.
    pub fn get(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Relaxed)
    }

    /// Sets the 32 bits at an offset.
    pub fn set(&self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    /// Returns the 64 bits at a place, which others may be half through with.
    pub fn get_long(&self, at: usize) -> u64 {
        u64::from(self.get(at)) | u64::from(self.get(at + 4)) << 32
    }

    /// Stores 64 bits at an offset, one half after the other.
    pub fn set_long(&self, at: usize, value: u64) {
        self.set(at, value as u32);
        self.set(at + 4, (value >> 32) as u32);
    }
}

/// Orders this thread's earlier writes before its later ones, to mapped memory of a device as well:
/// that may be write-combined, where atomic orders have no effect.
pub(super) fn in_order() {
    fence(Ordering::SeqCst);
}
