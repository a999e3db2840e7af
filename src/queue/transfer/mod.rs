//! Transfers of buffers: reads, writes and copies, on the spot where the memory is mapped and idle, by the device where it has
//! the host's memory, else through staging memory, in parts if they are large.

pub(super) mod parts;
pub(super) mod staging;

use super::encode::{Encoded, How, Outcome};
use super::host::{copy_region, HostAction, Task};
use super::pending::Slots;
use super::state::QueueState;
use super::Queue;
use crate::backend::{BufferCopy, Op, ProfileSlot, Slice};
use crate::command::{extent, HostSide};
use crate::error::ClResult;
use crate::handle::Ref;
use crate::object::mem::Mem;
use crate::util::{config, copy};
use parts::{from_packed, packed, to_packed, Parts, SLOW_READ};
use smallvec::smallvec;
use staging::Piece;

/// Up to this size bytes travel with the batch; beyond it a copy from staging is faster (measured on an H200).
const UPDATE: u64 = 16 << 10;
/// Up to this size an unmap writes mapped memory itself, while it is idle.
const SMALL_UNMAP: u64 = 64 << 10;
/// Bytes of a part of a transfer through staging memory: host and device copy at the same time.
const CHUNK: u64 = 4 << 20;

fn src_extent(region: &BufferCopy) -> u64 {
    extent(0, region, region.src_row_pitch, region.src_slice_pitch).end as u64
}

fn dst_extent(region: &BufferCopy) -> u64 {
    extent(0, region, region.dst_row_pitch, region.dst_slice_pitch).end as u64
}

/// Returns the device's memory that backs the host side of a transfer, unless that is the very
/// memory of the other side: an application may read a buffer into the memory that the buffer is
/// made of, and the device cannot copy bytes onto themselves.
fn other_memory<'a>(host: &'a HostSide, side: &Slice) -> Option<&'a Slice> {
    let range = |slice: &Slice| {
        let begin = slice.memory.address() + slice.offset;
        (begin, begin + slice.size)
    };
    let visible = host.visible.as_ref()?;
    let ((begin, end), (first, last)) = (range(side), range(visible));
    (last <= begin || end <= first).then_some(visible)
}

impl Queue {
    /// Records a copy of a region.
    fn copied(
        &self,
        state: &mut QueueState,
        src: &Slice,
        dst: &Slice,
        region: BufferCopy,
        how: How,
    ) -> ClResult<Encoded> {
        let slot = state.record(Op::Copy { src, dst, region }, how.profile)?;
        Ok(self.on_device(state, slot.into_iter().collect()))
    }

    /// Writes a region of mapped memory that nothing on the device uses now. It begins at `to`.
    fn write_mapped(
        &self,
        state: &QueueState,
        host: &HostSide,
        region: &BufferCopy,
        to: usize,
    ) -> Encoded {
        let start = self.host_start();
        let to = to.wrapping_sub(region.dst_offset as usize);
        // SAFETY: the region lies within the memory object (checked by the builder); the application keeps the source valid.
        unsafe { copy_region(host.base, to, region) };
        self.on_host(state, start)
    }

    /// Reads a region of mapped memory that the device does not write now. It begins at `from`.
    fn read_mapped(
        &self,
        state: &QueueState,
        host: &HostSide,
        region: &BufferCopy,
        from: usize,
    ) -> Encoded {
        let start = self.host_start();
        let from = from.wrapping_sub(region.src_offset as usize);
        // SAFETY: the region lies within the memory object (checked by the builder); the application keeps the destination
        // valid.
        unsafe { copy_region(from, host.base, region) };
        self.on_host(state, start)
    }

    pub(super) fn encode_read(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        host: &HostSide,
        region: &BufferCopy,
        how: How,
        idle: bool,
    ) -> ClResult<Outcome> {
        let index = self.target.memory;
        if idle && host.visible.is_none() {
            if let Some(from) = mem.mapped(index, region.src_offset, true)? {
                return Ok(self.read_mapped(state, host, region, from).into());
            }
        }
        let total = packed(region).2;
        let src = mem.slice(index, region.src_offset, src_extent(region))?;
        let linear = region.rows == 1 && region.slices == 1;
        let limit = match linear {
            true => config::get().direct_read,
            false => SLOW_READ,
        };
        let cached = src.memory.host_cached();
        if let (Some(pointer), true) = (src.memory.mapped(), idle && (cached || total <= limit)) {
            let from = pointer.as_ptr() as usize + src.offset as usize;
            if linear && !cached {
                let start = self.host_start();
                let to = host.base.wrapping_add(region.dst_offset as usize);
                // SAFETY: as in `read_mapped`.
                unsafe { copy::copy_uncached(from, to, total as usize) };
                return Ok(self.on_host(state, start).into());
            }
            return Ok(self.read_mapped(state, host, region, from).into());
        }
        state.note_work(total);
        let region_of_slice = BufferCopy {
            src_offset: 0,
            ..*region
        };
        if let Some((visible, region)) = self.host_side(host, &src, &region_of_slice, false) {
            let mut encoded = self.copied(state, &src, &visible, region, how)?;
            encoded.wait = true;
            return Ok(encoded.into());
        }
        let parts = Parts::new(region_of_slice, CHUNK);
        let parts = parts.iter().map(|part| (part, from_packed(&part)));
        self.read_parts(state, host, how, parts, |state, part, piece, timed| {
            let op = Op::Copy {
                src: &src,
                dst: piece,
                region: to_packed(&part),
            };
            state.record(op, timed)
        })
    }

    /// Reads through staging memory. `parts` come with their rows in the host's memory, packed as source; `record` is the
    /// device's copy of a part to its piece.
    pub(super) fn read_parts<P>(
        &self,
        state: &mut QueueState,
        host: &HostSide,
        how: How,
        parts: impl ExactSizeIterator<Item = (P, BufferCopy)>,
        record: impl Fn(&mut QueueState, P, &Slice, bool) -> ClResult<Option<ProfileSlot>>,
    ) -> ClResult<Outcome> {
        state.prepare_host_part(how)?;
        let last = parts.len().saturating_sub(1);
        // The caller empties the last part itself, and nobody else need be woken for the only one.
        if last > 0 {
            state.host_thread()?;
        }
        let mut slots = Slots::new();
        for (number, (part, rows)) in parts.enumerate().skip(how.parts) {
            let piece = match self.piece(state, false, packed(&rows).2)? {
                Ok(piece) => piece,
                Err(place) => {
                    return Ok(Outcome::Unfinished {
                        parts: number,
                        slots,
                        place,
                    })
                }
            };
            let timed = how.profile && (number == 0 || number == last);
            slots.extend(record(state, part, &piece.slice(), timed)?);
            if number == last {
                let encoded = self.on_device(state, slots);
                return Ok(self.read_out(state, encoded, piece, host, rows, how).into());
            }
            self.post_read_out(state, piece, host, rows)?;
            state.submit();
        }
        Ok(self.on_device(state, slots).into())
    }

    pub(super) fn encode_write(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        host: &HostSide,
        region: &BufferCopy,
        how: How,
        idle: bool,
    ) -> ClResult<Outcome> {
        let index = self.target.memory;
        if idle && host.visible.is_none() {
            if let Some(to) = mem.mapped(index, region.dst_offset, false)? {
                return Ok(self.write_mapped(state, host, region, to).into());
            }
        }
        let total = packed(region).2;
        let dst = mem.slice(index, region.dst_offset, dst_extent(region))?;
        let linear = region.rows == 1 && region.slices == 1;
        let region_of_slice = BufferCopy {
            dst_offset: 0,
            ..*region
        };
        let visible = other_memory(host, &dst);
        let direct = idle && (visible.is_none() || total <= SMALL_UNMAP);
        if let (Some(pointer), true) = (dst.memory.mapped(), direct) {
            let to = pointer.as_ptr() as usize + dst.offset as usize;
            return Ok(self.write_mapped(state, host, region, to).into());
        }
        state.note_work(total);
        if let Some((visible, region)) = self.host_side(host, &dst, &region_of_slice, true) {
            let mut encoded = self.copied(state, &visible, &dst, region, how)?;
            encoded.wait = true;
            return Ok(encoded.into());
        }
        if linear && total <= UPDATE {
            let from = host.base.wrapping_add(region.src_offset as usize);
            // SAFETY: the application keeps the source readable for its size until the command has completed.
            let data = unsafe { std::slice::from_raw_parts(from as *const u8, total as usize) };
            let slot = state.record(Op::Update { dst: &dst, data }, how.profile)?;
            return Ok(self.on_device(state, slot.into_iter().collect()).into());
        }
        let parts = Parts::new(region_of_slice, CHUNK);
        let parts = parts.iter().map(|part| (part, to_packed(&part)));
        self.write_parts(state, host, how, parts, |state, part, piece, timed| {
            let op = Op::Copy {
                src: piece,
                dst: &dst,
                region: from_packed(&part),
            };
            state.record(op, timed)
        })
    }

    /// Writes through staging memory. `parts` come with their rows in the host's memory, packed as destination; `record` is
    /// the device's copy of a part from its piece.
    pub(super) fn write_parts<P>(
        &self,
        state: &mut QueueState,
        host: &HostSide,
        how: How,
        parts: impl ExactSizeIterator<Item = (P, BufferCopy)>,
        record: impl Fn(&mut QueueState, P, &Slice, bool) -> ClResult<Option<ProfileSlot>>,
    ) -> ClResult<Outcome> {
        let last = parts.len().saturating_sub(1);
        let mut slots = Slots::new();
        for (number, (part, rows)) in parts.enumerate().skip(how.parts) {
            let piece = match self.piece(state, true, packed(&rows).2)? {
                Ok(piece) => piece,
                Err(place) => {
                    return Ok(Outcome::Unfinished {
                        parts: number,
                        slots,
                        place,
                    })
                }
            };
            // SAFETY: the piece has room for the packed part; the application keeps the source valid.
            unsafe { copy_region(host.base, piece.pointer, &rows) };
            let timed = how.profile && (number == 0 || number == last);
            slots.extend(record(state, part, &piece.slice(), timed)?);
            if number < last {
                // The device takes it while the host fills the next.
                state.submit();
            }
        }
        Ok(self.on_device(state, slots).into())
    }

    /// Returns the host's side of a transfer as memory of the device, and the region with offsets
    /// in it, where the device has that memory. `writes`: the device's side is the destination.
    fn host_side(
        &self,
        host: &HostSide,
        side: &Slice,
        region: &BufferCopy,
        writes: bool,
    ) -> Option<(Slice, BufferCopy)> {
        if let Some(visible) = other_memory(host, side) {
            return Some((visible.clone(), *region));
        }
        let (offset, rows, slices) = match writes {
            true => (
                region.src_offset,
                region.src_row_pitch,
                region.src_slice_pitch,
            ),
            false => (
                region.dst_offset,
                region.dst_row_pitch,
                region.dst_slice_pitch,
            ),
        };
        // What several memories have copies of is the host's to move: hazards with that are between host tasks.
        if host.shared {
            return None;
        }
        let first = host.base.wrapping_add(offset as usize);
        let slice = self.host_slice(extent(first, region, rows, slices))?;
        let whole = HostSide {
            visible: Some(slice),
            ..host.clone()
        };
        let slice = other_memory(&whole, side)?.clone();
        let mut region = *region;
        match writes {
            true => region.src_offset = 0,
            false => region.dst_offset = 0,
        }
        Some((slice, region))
    }

    /// Posts the host's copy of a part of a read to the executor.
    fn post_read_out(
        &self,
        state: &mut QueueState,
        piece: Piece,
        host: &HostSide,
        region: BufferCopy,
    ) -> ClResult {
        let Some(owner) = self.owner() else {
            return Ok(());
        };
        let base = host.base.wrapping_add(region.dst_offset as usize);
        let writes = extent(base, &region, region.dst_row_pitch, region.dst_slice_pitch);
        let seq = state.new_host_task(smallvec![writes], host.shared);
        state.down.set_task(&piece, seq);
        state.post(Task {
            value: state.value(),
            seq,
            action: Some(HostAction::CopyOut {
                piece,
                base: host.base,
                region,
            }),
            event: None,
            owner,
            failed: None,
            command: None,
        })
    }

    pub(super) fn encode_copy(
        &self,
        state: &mut QueueState,
        src: &Ref<Mem>,
        dst: &Ref<Mem>,
        region: &BufferCopy,
        how: How,
    ) -> ClResult<Encoded> {
        let index = self.target.memory;
        let (read, written) = (src_extent(region), dst_extent(region));
        let from = src.slice(index, region.src_offset, read)?;
        let to = dst.slice(index, region.dst_offset, written)?;
        self.note_copy(state, packed(region).2);
        let region = BufferCopy {
            src_offset: 0,
            dst_offset: 0,
            ..*region
        };
        self.copied(state, &from, &to, region, how)
    }
}
