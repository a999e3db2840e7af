//! The bytes of a memory object: one allocation in each memory of the context where it is used, and which of them are
//! current.
//!
//! In a context with one memory there is one allocation, made and filled when the object is made. With several, each is
//! made at its first use, and a command finds the newest contents of what it uses brought over before it is encoded
//! (through the host; what the command depends on is complete by then, since commands wait on the host for events of
//! devices with another memory).

use super::coherence::{Contents, Initial, Rows, Touch};
use super::transfer;
use crate::backend::{Memory, Placement, Slice};
use crate::cl::{self, cl_mem_flags};
use crate::error::{ensure, ClResult};
use crate::handle::Ref;
use crate::object::device::Device;
use crate::object::memories::{Memories, MemoryIndex, PerMemory};
use crate::util::lock::{rank, Mutex};
use std::iter::once;
use std::ptr::NonNull;
use std::sync::Arc;

/// Up to this size an object lies where the host reaches it without a submission, if there is such device memory (on
/// many cards there is little of it).
const SMALL: u64 = 256 << 10;

/// Memory through which the host sees a part of an object while that is mapped, where the device's own memory will not
/// do. Kept for the next map when the last one is gone: pinning memory is slow.
struct Shadow {
    memory: Arc<dyn Memory>,
    /// The first byte of the object that it stands for.
    first: u64,
    maps: usize,
}

/// Shadows without maps that an object keeps.
const SPARE_SHADOWS: usize = 2;

/// The bytes of a memory object. Without any: those of one whose bytes are not in memory.
#[derive(Default)]
pub struct Store {
    /// The size in bytes.
    pub size: u64,
    flags: cl_mem_flags,
    /// The application's memory (CL_MEM_USE_HOST_PTR), 0: none.
    pub host_ptr: usize,
    copies: PerMemory<Arc<dyn Memory>>,
    /// Where there is more than one memory that may have its bytes.
    contents: Option<Contents>,
    /// The bytes are an allocation of shared virtual memory; `host_ptr` is its address.
    pub svm: bool,
    /// The bytes are memory of others, which one memory of the context has.
    imported: bool,
    shadows: Mutex<Vec<Shadow>, { rank::SHADOWS }>,
}

impl Store {
    /// Creates the store of a new object in a context with these memories, as the methods get them, too. `initial` is how it begins: the
    /// application's memory for CL_MEM_COPY_HOST_PTR, the header of a pipe.
    pub fn new(
        all: &Memories,
        size: u64,
        flags: cl_mem_flags,
        host_ptr: usize,
        initial: Option<&[u8]>,
    ) -> ClResult<Arc<Self>> {
        let mut contents = None;
        if all.are_several() {
            let initial = match initial {
                Some(bytes) => {
                    let mut copy = transfer::room(bytes.len())?;
                    copy.extend_from_slice(bytes);
                    Initial::Bytes(copy)
                }
                None if host_ptr != 0 => Initial::Application,
                None => Initial::Nothing,
            };
            contents = Some(Contents::new(size, initial));
        }
        let store = Arc::new(Self {
            size,
            flags,
            host_ptr,
            copies: PerMemory::new(all),
            contents,
            ..Self::default()
        });
        if !all.are_several() {
            let memory = store.memory(all, MemoryIndex::FIRST)?;
            let device = all.device(MemoryIndex::FIRST)?;
            if let Some(bytes) = initial {
                transfer::upload(device, memory, 0, bytes)?;
            } else if store.host_ptr != 0 && !store.is_host(memory) {
                transfer::upload(device, memory, 0, store.application_bytes())?;
            }
        }
        Ok(store)
    }

    /// Creates the store of an allocation of shared virtual memory at `address`, with the memory
    /// that each memory of the context has for it. These are the same bytes, unless they are
    /// `separate`: then contents are copied between them.
    pub(super) fn shared(
        size: u64,
        flags: cl_mem_flags,
        address: usize,
        memories: Vec<Option<Arc<dyn Memory>>>,
        separate: bool,
    ) -> Arc<Self> {
        let new = || Contents::new(size, Initial::Nothing);
        Arc::new(Self {
            size,
            flags,
            host_ptr: address,
            copies: memories.into_iter().collect(),
            contents: separate.then(new),
            svm: true,
            ..Self::default()
        })
    }

    /// Creates the store of memory of others, with the memory that each memory of the context has for it.
    pub(super) fn imported(
        size: u64,
        flags: cl_mem_flags,
        memories: Vec<Option<Arc<dyn Memory>>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            size,
            flags,
            copies: memories.into_iter().collect(),
            imported: true,
            ..Self::default()
        })
    }

    /// Returns true if every memory that there is is the application's own.
    pub(super) fn is_seen_by_host(&self) -> bool {
        let made = || self.copies.made();
        made().next().is_some() && made().all(|memory| self.is_host(memory))
    }

    /// Returns true if several memories may have the bytes.
    pub fn is_shared(&self) -> bool {
        self.contents.is_some()
    }

    /// Returns true if this memory is the application's own.
    pub fn is_host(&self, memory: &Arc<dyn Memory>) -> bool {
        self.host_ptr != 0
            && memory
                .mapped()
                .is_some_and(|pointer| pointer.as_ptr() as usize == self.host_ptr)
    }

    /// Returns the bytes of the application's memory as the device's own, where the device uses
    /// them in place.
    pub(super) fn in_place(&self, memory: MemoryIndex, at: u64, size: u64) -> Option<Slice> {
        let memory = self.copies.get(memory).ok()??;
        let fits = at.checked_add(size).is_some_and(|end| end <= self.size);
        (fits && !self.is_shared() && self.is_host(memory))
            .then(|| Slice::new(memory.clone(), at, size))
    }

    fn application_bytes(&self) -> &[u8] {
        // SAFETY: the application promised `size` readable bytes there for as long as the object lives, and does not
        // write to them now (it may only while the object is mapped, or before it was made).
        unsafe { std::slice::from_raw_parts(self.host_ptr as *const u8, self.size as usize) }
    }

    /// Returns the allocation in a memory of the context, made if need be.
    pub fn memory(&self, all: &Memories, memory: MemoryIndex) -> ClResult<&Arc<dyn Memory>> {
        self.copies
            .get_or_make(memory, || self.allocate(all.device(memory)?))
    }

    fn allocate(&self, device: &Ref<Device>) -> ClResult<Arc<dyn Memory>> {
        ensure!(
            !self.svm && !self.imported,
            cl::CL_INVALID_DEVICE,
            "the device does not share this memory"
        );
        let backend = &device.backend;
        let caps = backend.caps();
        if let Some(pointer) = NonNull::new(self.host_ptr as *mut u8) {
            let align = caps.host_import_align;
            if align > 0
                && (self.host_ptr as u64).is_multiple_of(align)
                && self.size.is_multiple_of(align)
            {
                // SAFETY: the application keeps this memory valid as long as the object lives (CL_MEM_USE_HOST_PTR);
                // the object lives until the commands that use it have finished.
                match unsafe { backend.import_host(pointer, self.size) } {
                    Ok(memory) => return Ok(memory),
                    Err(error) => crate::log!(Debug, "host memory is not imported: {error}"),
                }
            }
        }
        let placement = if self.flags & cl::CL_MEM_ALLOC_HOST_PTR != 0 && !caps.unified_memory {
            Placement::HostRead
        } else if self.size <= SMALL {
            Placement::DeviceMapped
        } else {
            Placement::Device
        };
        Ok(backend.allocate(self.size, placement)?)
    }

    /// Returns true if [`Store::prepare`] has nothing to copy and nothing to wait for.
    pub fn is_prepared(&self, at: MemoryIndex, rows: Rows, touch: Touch) -> bool {
        let contents = self.contents.as_ref();
        contents.is_none_or(|contents| contents.is_prepared(once(rows), at, touch))
    }

    /// Makes rows (or one range) in a memory the newest ([`Contents::prepare`]). Free in contexts with one memory.
    pub fn prepare(&self, all: &Memories, at: MemoryIndex, rows: Rows, touch: Touch) -> ClResult {
        let Some(contents) = &self.contents else {
            return Ok(());
        };
        let (target, memory) = (all.device(at)?, self.memory(all, at)?);
        contents.prepare(once(rows), at, touch, |range, source, initial| {
            let bytes = match (source, initial) {
                (Some(source), _) => {
                    let Some(current) = self.copies.get(source)? else {
                        return Ok(());
                    };
                    return transfer::between(all.device(source)?, current, target, memory, range);
                }
                (None, Initial::Bytes(bytes)) => bytes.as_slice(),
                (None, Initial::Application) if !self.is_host(memory) => self.application_bytes(),
                _ => return Ok(()),
            };
            // A pipe begins with no more than its header.
            let end = range.end.min(bytes.len() as u64);
            let part = bytes.get(range.start as usize..end as usize);
            transfer::upload(target, memory, range.start, part.unwrap_or_default())
        })
    }

    /// Returns the memory that the host accesses while a range of the object is mapped, and where
    /// the range begins in it. Ranges within one that is mapped already share its memory.
    pub(super) fn shadow(
        &self,
        all: &Memories,
        memory: MemoryIndex,
        at: u64,
        size: u64,
    ) -> ClResult<(Arc<dyn Memory>, u64)> {
        let mut shadows = self.shadows.lock();
        let covers =
            |s: &&mut Shadow| s.maps > 0 && s.first <= at && at + size <= s.first + s.memory.size();
        if let Some(shadow) = shadows.iter_mut().find(covers) {
            shadow.maps += 1;
            return Ok((shadow.memory.clone(), at - shadow.first));
        }
        // A spare one, if no command uses it any more: the stream holds what its commands use.
        let spare = |s: &&mut Shadow| {
            s.maps == 0 && s.memory.size() >= size && Arc::strong_count(&s.memory) == 1
        };
        if let Some(shadow) = shadows.iter_mut().find(spare) {
            (shadow.first, shadow.maps) = (at, 1);
            return Ok((shadow.memory.clone(), 0));
        }
        let device = all.device(memory)?;
        let room = size.next_power_of_two().clamp(4096, self.size.max(4096));
        let memory = device
            .backend
            .allocate(room.max(size), Placement::HostRead)?;
        shadows.push(Shadow {
            memory: memory.clone(),
            first: at,
            maps: 1,
        });
        Ok((memory, 0))
    }

    /// Releases a map through a shadow.
    pub(super) fn release_shadow(&self, memory: &Arc<dyn Memory>) {
        let mut shadows = self.shadows.lock();
        if let Some(shadow) = shadows.iter_mut().find(|s| Arc::ptr_eq(&s.memory, memory)) {
            shadow.maps = shadow.maps.saturating_sub(1);
        }
        let mut spare = 0;
        shadows.retain(|shadow| {
            spare += usize::from(shadow.maps == 0);
            shadow.maps > 0 || spare <= SPARE_SHADOWS
        });
    }
}
