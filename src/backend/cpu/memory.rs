//! Memory: the host's own. Its device address is its address.

use super::check;
use super::check::allocations::{self, Allocation};
#[cfg(target_os = "linux")]
use super::dma_buf::MappedDescriptor;
use crate::backend::{DeviceError, Memory, Result};
use crate::util::pages::{self, Protection};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// The least alignment of all memory, in bytes.
pub const ALIGNMENT: usize = 256;
/// From this size on memory comes in pages of its own.
const PAGES: usize = 256 << 10;
/// The size and alignment of large pages, where memory is worth them.
const LARGE_PAGE: usize = 2 << 20;

enum Owner {
    /// From the allocator.
    Heap(std::alloc::Layout),
    /// A mapping, with its beginning and size.
    Pages(NonNull<u8>, usize),
    /// The application's.
    Application,
    /// A mapped descriptor.
    #[cfg(target_os = "linux")]
    Mapped(MappedDescriptor),
    /// A part of other memory.
    Part(#[allow(dead_code, reason = "it is kept")] Arc<dyn Memory>),
}

/// A piece of memory.
pub struct CpuMemory {
    base: NonNull<u8>,
    size: u64,
    owner: Owner,
}

// SAFETY: the bytes are accessed through raw pointers alone; who may do so when is the runtime's order of commands.
unsafe impl Send for CpuMemory {}
// SAFETY: as above.
unsafe impl Sync for CpuMemory {}

impl CpuMemory {
    /// Allocates memory. Contents are undefined (zeros, where memory is fresh from the system).
    pub fn new(size: u64, align: u64) -> Result<Self> {
        let failed = DeviceError::OutOfDeviceMemory { size };
        let (Ok(bytes), Ok(align)) = (usize::try_from(size), usize::try_from(align)) else {
            return Err(failed);
        };
        let align = align.max(ALIGNMENT);
        if !align.is_power_of_two() || bytes > isize::MAX as usize - align - LARGE_PAGE {
            return Err(failed);
        }
        if check::on() {
            let memory = Self::pages(bytes.max(1), align, check::ROOM).ok_or(failed)?;
            return Ok(memory.checked());
        }
        if bytes >= PAGES {
            return Self::pages(bytes, align, 0).ok_or(failed);
        }
        // Vectors may be read whole at the end.
        let room = bytes.max(1).next_multiple_of(64);
        let layout = std::alloc::Layout::from_size_align(room, align);
        let layout = layout.map_err(|_| failed.clone())?;
        // SAFETY: the layout has a size above zero.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        Ok(Self {
            base: NonNull::new(base).ok_or(failed)?,
            size,
            owner: Owner::Heap(layout),
        })
    }

    /// Registers the memory as an allocation, where kernels are checked.
    fn checked(self) -> Self {
        if check::on() {
            allocations::add(Allocation {
                base: self.base.as_ptr() as u64,
                size: self.size,
                imported: self.is_foreign(),
            });
        }
        self
    }

    /// Allocates whole pages, with inaccessible pages on both sides.
    fn pages(bytes: usize, align: usize, guard: usize) -> Option<Self> {
        let align = if bytes >= LARGE_PAGE {
            align.max(LARGE_PAGE)
        } else {
            align.max(4096)
        };
        let inner = bytes.next_multiple_of(4096);
        let room = inner + align + 2 * guard;
        // On Windows what is closed is not committed, so that the room for the alignment does not count.
        let closed = guard != 0 || cfg!(windows);
        let access = if closed {
            Protection::None
        } else {
            Protection::ReadWrite
        };
        let start = pages::map(room, access)?;
        let base = (start.as_ptr() as usize + guard).next_multiple_of(align) as *mut u8;
        let base = NonNull::new(base)?;
        // SAFETY: whole pages within the mapping.
        if closed && !unsafe { pages::protect(base, inner, Protection::ReadWrite) } {
            // SAFETY: our own mapping, which nobody has seen.
            unsafe { pages::unmap(start, room) };
            return None;
        }
        if bytes >= LARGE_PAGE {
            // SAFETY: within the mapping.
            unsafe { pages::ask_for_large(base, bytes) };
        }
        Some(Self {
            base,
            size: bytes as u64,
            owner: Owner::Pages(start, room),
        })
    }

    /// Imports memory of the application.
    ///
    /// # Safety
    /// It must be valid as long as this lives.
    pub unsafe fn import(base: NonNull<u8>, size: u64) -> Self {
        let memory = Self {
            base,
            size,
            owner: Owner::Application,
        };
        memory.checked()
    }

    /// Maps the first `size` bytes of a descriptor, which is no longer the caller's on success.
    #[cfg(target_os = "linux")]
    pub fn map(fd: i32, size: u64) -> Result<Self> {
        let mapped = MappedDescriptor::new(fd, size)?;
        let memory = Self {
            base: mapped.base,
            size,
            owner: Owner::Mapped(mapped),
        };
        Ok(memory.checked())
    }

    /// Returns true if it is not memory of this device's own.
    fn is_foreign(&self) -> bool {
        match self.owner {
            Owner::Application => true,
            #[cfg(target_os = "linux")]
            Owner::Mapped(_) => true,
            _ => false,
        }
    }

    /// Takes the memory over from others that share it, or hands it over to them.
    pub fn hand_over(&self, acquire: bool) {
        let _ = acquire;
        #[cfg(target_os = "linux")]
        if let Owner::Mapped(mapped) = &self.owner {
            mapped.hand_over(acquire);
        }
    }

    /// Creates a part of other memory, which it keeps.
    pub fn part(whole: &Arc<dyn Memory>, offset: u64, size: u64) -> Result<Self> {
        let ours = of(whole.as_ref())?;
        let fits = offset.checked_add(size).is_some_and(|end| end <= ours.size);
        let base = NonNull::new(ours.base.as_ptr().wrapping_add(offset as usize));
        let base = base
            .filter(|_| fits)
            .ok_or(DeviceError::OutOfDeviceMemory { size })?;
        Ok(Self {
            base,
            size,
            owner: Owner::Part(whole.clone()),
        })
    }

    /// Returns the first byte.
    pub fn pointer(&self) -> *mut u8 {
        self.base.as_ptr()
    }
}

/// Downcasts a memory to one of this back end.
pub fn of(memory: &dyn Memory) -> Result<&CpuMemory> {
    let ours = memory.as_any().downcast_ref();
    ours.ok_or_else(|| DeviceError::Unsupported("memory of another device".to_owned()))
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        if check::on() && !matches!(self.owner, Owner::Part(_)) {
            allocations::remove(self.base.as_ptr() as u64, self.size);
        }
        match &self.owner {
            // SAFETY: allocated with this layout, freed once.
            Owner::Heap(layout) => unsafe { std::alloc::dealloc(self.base.as_ptr(), *layout) },
            // SAFETY: our own mapping, unmapped once.
            Owner::Pages(start, room) => unsafe {
                pages::unmap(*start, *room);
            },
            Owner::Application | Owner::Part(_) => {}
            #[cfg(target_os = "linux")]
            Owner::Mapped(_) => {}
        }
    }
}

impl Memory for CpuMemory {
    fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }
    fn size(&self) -> u64 {
        self.size
    }
    fn mapped(&self) -> Option<NonNull<u8>> {
        Some(self.base)
    }
    fn host_cached(&self) -> bool {
        true
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_alignments() {
        for (size, align) in [(1, 1), (100, 4096), (1 << 20, 256), (5 << 20, 1 << 22)] {
            let memory = CpuMemory::new(size, align).expect("memory");
            assert_eq!(memory.address() % align.max(256), 0);
            // SAFETY: within the memory.
            unsafe { std::ptr::write_bytes(memory.pointer(), 7, size as usize) };
        }
        assert!(CpuMemory::new(u64::MAX - 5, 1).is_err());
        assert!(CpuMemory::new(1 << 60, 1).is_err());
        let whole: Arc<dyn Memory> = Arc::new(CpuMemory::new(64, 1).expect("memory"));
        assert!(CpuMemory::part(&whole, 32, 33).is_err());
        assert_eq!(
            CpuMemory::part(&whole, 32, 32).map(|p| p.address()).ok(),
            Some(whole.address() + 32)
        );
    }
}
