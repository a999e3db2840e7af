//! Memory of descriptors that can be mapped: DMA buffers of Linux, files in memory.

use crate::backend::{DeviceError, Result};
use crate::util::fds;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// DMA_BUF_IOCTL_SYNC
const SYNC: libc::c_ulong = 0x4008_6200;
/// DMA_BUF_SYNC_RW
const READ_AND_WRITE: u64 = 3;
/// DMA_BUF_SYNC_END
const END: u64 = 4;

/// A mapped descriptor.
pub struct MappedDescriptor {
    /// The first byte.
    pub base: NonNull<u8>,
    size: usize,
    fd: OwnedFd,
}

impl MappedDescriptor {
    /// Maps the first `size` bytes of a descriptor, which is no longer the caller's on success.
    pub fn new(fd: i32, size: u64) -> Result<Self> {
        let failed = |code: String| DeviceError::Driver {
            call: "mapping a handle of memory",
            code,
        };
        let length = fds::length(fd).map_err(|error| failed(error.to_string()))?;
        if length.is_none_or(|length| length < size) {
            return Err(failed("smaller than the object".to_owned()));
        }
        let bytes = usize::try_from(size).map_err(|error| failed(error.to_string()))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address of the system's choice.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(failed(std::io::Error::last_os_error().to_string()));
        }
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(DeviceError::OutOfHostMemory)?,
            size: bytes,
            // SAFETY: open, as it could be mapped; the caller gives it away.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
        })
    }

    /// Makes the writes of others visible (`acquire`), or ours to others. Only DMA buffers need it.
    pub fn hand_over(&self, acquire: bool) {
        let flags = READ_AND_WRITE | if acquire { 0 } else { END };
        // SAFETY: the descriptor is open, and the call reads a word of 64 bits; what knows no such call refuses it.
        unsafe { libc::ioctl(self.fd.as_raw_fd(), SYNC as _, &raw const flags) };
    }
}

impl Drop for MappedDescriptor {
    fn drop(&mut self) {
        // SAFETY: our own mapping; who uses the memory keeps this.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}
