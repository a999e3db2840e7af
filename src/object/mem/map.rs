//! Maps: which pointers the application holds into a memory object.
//!
//! The pointer of a map is always a base plus the offset of the region, where the base is, in this order: the
//! application's own memory (CL_MEM_USE_HOST_PTR), the device memory if the host reads it fast and there is one memory,
//! or a shadow of the region. So maps within a region that is mapped agree with it. *Direct* maps need no copy; for the others the contents
//! are copied at map (unless they are invalidated) and back at unmap (if mapped for writing).

use super::reach::Reach;
use super::Mem;
use crate::backend::image::ImageRegion;
use crate::backend::Slice;
use crate::cl::{self, cl_map_flags};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::object::memories::MemoryIndex;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which map of the process: maps of one object may have the same pointer.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct MapId(u64);

impl MapId {
    /// Returns one that no other map has.
    pub fn fresh() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// A box of an image that is mapped.
#[derive(Debug, Clone, Copy)]
pub struct MappedBox {
    /// The box.
    pub at: ImageRegion,
    /// Bytes from row to row behind the pointer.
    pub row_pitch: usize,
    /// Bytes from slice to slice or layer to layer; 0 where there are none.
    pub slice_pitch: usize,
}

/// A region that is mapped.
#[derive(Clone, Default)]
pub struct Mapping {
    /// Which it is.
    pub id: MapId,
    /// Pointer that the application has.
    pub pointer: usize,
    /// First byte, from the start of the memory object.
    pub offset: usize,
    /// Number of bytes.
    pub size: usize,
    /// CL_MAP_*.
    pub flags: cl_map_flags,
    /// The memory behind the pointer has the contents already: nothing is copied there, and it may be read-only.
    pub current: bool,
    /// Its command is held: it may never come to be.
    pub held: bool,
    /// Its unmap is enqueued and may still fail.
    pub ending: bool,
    /// The pointer is to the device's memory itself.
    pub direct: bool,
    /// Device-visible memory behind the pointer, for shadows of ours.
    pub shadow: Option<Slice>,
    /// The box, of images. Offset is 0 then, size what the rows span behind the pointer.
    pub image: Option<MappedBox>,
}

/// Returns true if the application may write through the pointer of a map with these flags.
fn writes(flags: cl_map_flags) -> bool {
    flags & (cl::CL_MAP_WRITE | cl::CL_MAP_WRITE_INVALIDATE_REGION) != 0
}

impl Mapping {
    /// Returns a map whose pointer is yet to be found.
    pub(super) fn new(flags: cl_map_flags, offset: usize, size: usize) -> Self {
        Self {
            id: MapId::fresh(),
            offset,
            size,
            flags,
            ..Self::default()
        }
    }

    /// Returns the addresses of the host that it leads to.
    pub fn range(&self) -> Range<usize> {
        self.pointer..self.pointer.wrapping_add(self.size)
    }

    /// Returns true if the application may write through the pointer.
    pub fn writes(&self) -> bool {
        writes(self.flags)
    }

    /// Returns true if its unmap is not enqueued.
    pub fn is_open(&self) -> bool {
        !self.ending
    }

    /// Returns true if the contents are copied to where the pointer leads.
    pub fn copies_in(&self) -> bool {
        !self.direct && self.reads()
    }

    /// Returns true if what is written is copied back.
    pub fn copies_out(&self) -> bool {
        !self.direct && self.writes()
    }

    /// Returns true if the contents must be copied to the host before the map is complete.
    pub fn reads(&self) -> bool {
        self.flags & cl::CL_MAP_WRITE_INVALIDATE_REGION == 0 && !self.current
    }
}

/// Returns CL_INVALID_OPERATION if the region of a new map overlaps one that is mapped, and both are for writing.
pub(super) fn check_unwritten(
    mappings: &[Mapping],
    flags: cl_map_flags,
    overlaps: impl Fn(&Mapping) -> bool,
) -> ClResult {
    ensure!(
        !writes(flags)
            || !mappings
                .iter()
                .any(|m| m.is_open() && m.writes() && overlaps(m)),
        cl::CL_INVALID_OPERATION,
        "the region overlaps one that is mapped for writing"
    );
    Ok(())
}

impl Mem {
    /// Registers a map of a range within the object, for a queue on a device with this memory.
    pub(crate) fn map(
        &self,
        index: MemoryIndex,
        flags: cl_map_flags,
        offset: usize,
        size: usize,
    ) -> ClResult<Mapping> {
        let mut mappings = self.mappings.lock();
        check_unwritten(&mappings, flags, |m| {
            m.offset < offset + size && offset < m.offset + m.size
        })?;
        let mut mapping = Mapping::new(flags, offset, size);
        let (memory, at) = (self.memory(index)?, (self.origin + offset) as u64);
        if let Some(base) = self.base(index, &mut mapping)? {
            mapping.pointer = base + offset;
        } else {
            let all = &self.context.memories;
            let shadow = self.store.shadow(all, index, at, size as u64);
            let (shadow, start) =
                shadow.map_err(|error| ClError::new(cl::CL_MAP_FAILURE, error.what))?;
            let Some(base) = shadow.mapped() else {
                self.store.release_shadow(&shadow);
                return err(cl::CL_MAP_FAILURE, "no memory to map to");
            };
            mapping.pointer = base.as_ptr() as usize + start as usize;
            mapping.shadow = Some(Slice::new(shadow, start, size as u64));
        }
        let direct = || Slice::new(memory.clone(), at, size as u64);
        let slice = (mapping.shadow.clone()).or_else(|| mapping.direct.then(direct));
        self.enter(&mut mappings, &mapping, index, slice);
        Ok(mapping)
    }

    /// Returns the address of the object's first byte for the host, where a map of it needs no shadow. Sets whether
    /// that is the device's memory, and what is to be copied.
    pub(super) fn base(&self, index: MemoryIndex, map: &mut Mapping) -> ClResult<Option<usize>> {
        let bytes = match self.has_texels() {
            true => None,
            false => Some(self.memory(index)?).filter(|_| !self.store.is_shared()),
        };
        if self.host_ptr != 0 {
            map.direct = bytes.is_some_and(|memory| self.store.is_host(memory));
            map.current = self.is_as_made();
            return Ok(Some(self.host_ptr));
        }
        let cached = bytes.filter(|memory| memory.host_cached());
        let base = cached.and_then(|memory| memory.mapped());
        map.direct = base.is_some();
        Ok(base.map(|base| base.as_ptr() as usize + self.origin))
    }

    /// Enters a map. Devices reach what its pointer leads to (`slice`, in that memory of the context), until it ends.
    pub(super) fn enter(
        &self,
        mappings: &mut Vec<Mapping>,
        mapping: &Mapping,
        memory: MemoryIndex,
        slice: Option<Slice>,
    ) {
        if !self.store.svm {
            let known = slice.filter(|_| !self.context.memories.are_several());
            let reach = Reach::Map(known.map(|slice| (memory, slice)));
            self.context.reachable.add(mapping.range(), reach);
        }
        mappings.push(mapping.clone());
    }

    /// Begins to end the latest map with that pointer, one that is held only if there is no other. It
    /// is there until the unmap is recorded ([`remove`]), as that may have to wait, and may fail.
    pub(crate) fn unmap(&self, pointer: usize) -> ClResult<Mapping> {
        let mut mappings = self.mappings.lock();
        let index = to_end(&mappings, pointer, None)?;
        mappings[index].ending = true;
        Ok(mappings[index].clone())
    }
}

/// Returns which map with a pointer an unmap ends: the latest that is there, or else its `own`, or
/// else the latest that is held. CL_INVALID_VALUE if there is none.
fn to_end(mappings: &[Mapping], pointer: usize, own: Option<usize>) -> ClResult<usize> {
    let with_pointer = |m: &Mapping| m.pointer == pointer && m.is_open();
    let there = mappings.iter().rposition(|m| with_pointer(m) && !m.held);
    let held = || mappings.iter().rposition(with_pointer);
    there.or(own).or_else(held).or_err(
        cl::CL_INVALID_VALUE,
        "the pointer is not one that the object is mapped to",
    )
}

/// Chooses again which map an unmap ends that is ready, unless the command of the one that it has is
/// over: it may have failed, or still may. Returns true if it is another one. CL_INVALID_VALUE if
/// there is none with its pointer.
pub(crate) fn renew(mem: &Mem, mapping: &mut Mapping) -> ClResult<bool> {
    let mut mappings = mem.mappings.lock();
    let own = mappings.iter().position(|m| m.id == mapping.id);
    if own.is_some_and(|own| !mappings[own].held) {
        return Ok(false);
    }
    if let Some(own) = own {
        mappings[own].ending = false;
    }
    let index = to_end(&mappings, mapping.pointer, own)?;
    mappings[index].ending = true;
    let another = mappings[index].id != mapping.id;
    *mapping = mappings[index].clone();
    Ok(another)
}

/// Removes a map, if it is there: its unmap is recorded, so that later commands come after it, or
/// its own command failed.
pub(crate) fn remove(mem: &Mem, mapping: &Mapping) {
    let mut mappings = mem.mappings.lock();
    let Some(index) = mappings.iter().position(|m| m.id == mapping.id) else {
        return;
    };
    mappings.remove(index);
    if let Some(shadow) = &mapping.shadow {
        mem.store.release_shadow(&shadow.memory);
    }
    if !mem.store.svm {
        mem.context.reachable.remove(&mapping.range(), true);
    }
}

/// Changes a map that is still there.
fn change(mem: &Mem, mapping: &Mapping, change: impl FnOnce(&mut Mapping)) {
    let mut mappings = mem.mappings.lock();
    if let Some(known) = mappings.iter_mut().find(|m| m.id == mapping.id) {
        change(known);
    }
}

/// Records whether the command of a map is pending.
pub(crate) fn set_held(mem: &Mem, mapping: &Mapping, held: bool) {
    change(mem, mapping, |known| known.held = held);
}

/// Leaves a map as it was before its unmap, which failed.
pub(crate) fn reopen(mem: &Mem, mapping: &Mapping) {
    change(mem, mapping, |known| known.ending = false);
}
