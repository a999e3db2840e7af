//! Transfers of buffers: reads, writes and copies, on the spot where the memory is mapped and idle, by the device where it has
//! the host's memory, else through staging memory, in parts if they are large.

pub(super) mod parts;
pub(super) mod staging;

use super::encode::{Encoding, How};
use super::host::{copy_region, HostAction, Task};
use super::pending::Slots;
use super::state::QueueState;
use super::Queue;
use crate::backend::{BufferCopy, Op, ProfileSlot, Slice};
use crate::command::{HostSide, Work};
use crate::error::ClResult;
use crate::handle::{Object, Ref};
use crate::object::mem::transfer::SLOW_READ;
use crate::object::mem::Mem;
use crate::util::{config, copy};
use parts::{from_packed, to_packed, Parts};
use smallvec::smallvec;
use std::sync::Arc;

/// Up to this size bytes travel with the batch; beyond it a copy from staging is faster (measured on an H200).
const UPDATE: u64 = 16 << 10;
/// Up to this size an unmap writes mapped memory itself, while it is idle.
const SMALL_UNMAP: u64 = 64 << 10;
/// Bytes of a part of a transfer through staging memory: host and device copy at the same time.
pub(super) const CHUNK: u64 = 4 << 20;

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

/// Returns the copy of a region between two pieces of memory, or back.
pub(super) fn copy_between<'a>(
    one: &'a Slice,
    other: &'a Slice,
    region: BufferCopy,
    back: bool,
) -> Op<'a> {
    let (src, dst, region) = match back {
        false => (one, other, region),
        true => (other, one, region.reversed()),
    };
    Op::Copy { src, dst, region }
}

/// Copies a region from mapped memory that the device does not use now, where it begins at `at`, to the host's, or back.
fn copy_mapped(host: &HostSide, region: &BufferCopy, at: usize, write: bool) {
    let side = at.wrapping_sub(region.src_offset as usize);
    // SAFETY: the region lies within the memory object (checked by the builder); the application
    // keeps the other side valid.
    unsafe {
        match write {
            false => copy_region(side, host.base, region),
            true => copy_region(host.base, side, &region.reversed()),
        }
    }
}

impl Object<Queue> {
    /// Returns where the host finds the part of an object that a transfer reads or writes, if it
    /// can do all of the transfer itself once nothing else uses the object.
    #[inline]
    fn mapped_place(
        &self,
        mem: &Mem,
        host: &HostSide,
        region: &BufferCopy,
        write: bool,
    ) -> ClResult<Option<usize>> {
        match host.visible {
            Some(_) => Ok(None),
            None => mem.mapped(self.target.memory, region.src_offset, !write),
        }
    }

    /// Carries a transfer out at once, without an operation or an event, if the host can do all of
    /// it. The queue is idle. Returns false if nothing was done.
    pub(super) fn transfer_at_once(&self, work: &Work) -> ClResult<bool> {
        let Work::Transfer {
            mem,
            host,
            region,
            write,
        } = work
        else {
            return Ok(false);
        };
        let Some(at) = self.mapped_place(mem, host, region, *write)? else {
            return Ok(false);
        };
        copy_mapped(host, region, at, *write);
        Ok(true)
    }

    /// Encodes a read of a region of an object, which is its source, or a write: on the spot where the memory is mapped and idle, by the device
    /// where that has the host's memory, else through staging memory.
    pub(super) fn encode_transfer(
        self: &Arc<Self>,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        host: &HostSide,
        region: &BufferCopy,
        write: bool,
        how: How,
    ) -> Encoding {
        if how.idle {
            if let Some(at) = self.mapped_place(mem, host, region, write)? {
                return Ok(self.on_host(state, || copy_mapped(host, region, at, write)));
            }
        }
        let total = region.total();
        let side = mem.slice(self.target.memory, region.src_offset, region.src_span())?;
        let linear = region.rows == 1 && region.slices == 1;
        let cached = side.memory.host_cached();
        let direct = match write {
            true => total <= SMALL_UNMAP || other_memory(host, &side).is_none(),
            false if linear => cached || total <= config::get().direct_read,
            false => cached || total <= SLOW_READ,
        };
        if let (Some(pointer), true) = (side.memory.mapped(), how.idle && direct) {
            let at = pointer.as_ptr() as usize + side.offset as usize;
            if write || cached || !linear {
                return Ok(self.on_host(state, || copy_mapped(host, region, at, write)));
            }
            let to = host.base.wrapping_add(region.dst_offset as usize);
            // SAFETY: as in `copy_mapped`.
            let copy = || unsafe { copy::copy_uncached(at, to, total as usize) };
            return Ok(self.on_host(state, copy));
        }
        state.note_work(total);
        // The slice begins with the region.
        let region = BufferCopy {
            src_offset: 0,
            ..*region
        };
        if let Some((other, region)) = self.host_side(host, &side, &region) {
            let copy = copy_between(&side, &other, region, write);
            let mut encoded = self.record_one(state, copy, how)?;
            encoded.wait = true;
            return Ok(encoded);
        }
        if write && linear && total <= UPDATE {
            let from = host.base.wrapping_add(region.dst_offset as usize);
            // SAFETY: the application keeps the source readable for its size until the command has completed.
            let data = unsafe { std::slice::from_raw_parts(from as *const u8, total as usize) };
            let update = Op::Update { dst: &side, data };
            return self.record_one(state, update, how);
        }
        let parts = Parts::new(region, CHUNK);
        let parts = parts.iter().map(|part| (part, from_packed(&part)));
        self.encode_parts(
            state,
            host,
            write,
            how,
            parts,
            |state, part, piece, timed| {
                state.record(copy_between(&side, piece, to_packed(&part), write), timed)
            },
        )
    }

    /// Encodes a transfer through staging memory. `parts` come with their rows in the host's memory as destination, packed as
    /// source; `record` is the device's copy of a part from or to its piece.
    pub(super) fn encode_parts<P>(
        self: &Arc<Self>,
        state: &mut QueueState,
        host: &HostSide,
        write: bool,
        how: How,
        parts: impl ExactSizeIterator<Item = (P, BufferCopy)>,
        record: impl Fn(&mut QueueState, P, &Slice, bool) -> ClResult<Option<ProfileSlot>>,
    ) -> Encoding {
        let last = parts.len().saturating_sub(1);
        // The caller empties the last part itself, and nobody else need be woken for the only one.
        if !write && (last > 0 || !how.blocking) {
            state.host_thread()?;
        }
        let mut slots = Slots::new();
        for (number, (part, rows)) in parts.enumerate().skip(how.parts) {
            let piece = self.piece(state, write, rows.total());
            let piece = piece.map_err(|stop| stop.after(number, &mut slots))?;
            if write {
                // SAFETY: the piece has room for the packed part; the application keeps the source valid.
                unsafe { copy_region(host.base, piece.pointer, &rows.reversed()) };
            }
            let timed = how.profile && (number == 0 || number == last);
            slots.extend(record(state, part, &piece.slice(), timed)?);
            if !write {
                let mut seq = 0;
                if number < last || !how.blocking {
                    seq = state.new_host_task(smallvec![host.range(&rows)], host.shared);
                    state.down.set_task(&piece, seq);
                }
                let action = Some(HostAction::CopyOut {
                    piece,
                    base: host.base,
                    region: rows,
                });
                if number == last {
                    let mut encoded = self.on_device(state, slots);
                    encoded.place.host_seq = encoded.place.host_seq.max(seq);
                    (encoded.action, encoded.wait) = (action, true);
                    return Ok(encoded);
                }
                state.post(Task {
                    seq,
                    action,
                    ..Task::at(state.value(), self.clone())
                })?;
            }
            if number < last {
                // The device goes on while the host fills or empties the next.
                state.submit();
            }
        }
        Ok(self.on_device(state, slots))
    }

    /// Returns the host's side of a transfer as memory of the device, and the region to there from `side`, where the device
    /// has that memory.
    fn host_side(
        &self,
        host: &HostSide,
        side: &Slice,
        region: &BufferCopy,
    ) -> Option<(Slice, BufferCopy)> {
        if let Some(visible) = other_memory(host, side) {
            return Some((visible.clone(), *region));
        }
        // What several memories have copies of is the host's to move: hazards with that are between host tasks.
        if host.shared {
            return None;
        }
        let whole = HostSide {
            visible: Some(self.host_slice(host.range(region))?),
            ..host.clone()
        };
        let region = BufferCopy {
            dst_offset: 0,
            ..*region
        };
        Some((other_memory(&whole, side)?.clone(), region))
    }

    /// Encodes a copy between buffers.
    pub(super) fn encode_copy(
        &self,
        state: &mut QueueState,
        src: &Ref<Mem>,
        dst: &Ref<Mem>,
        region: &BufferCopy,
        how: How,
    ) -> Encoding {
        let index = self.target.memory;
        let src = &src.slice(index, region.src_offset, region.src_span())?;
        let dst = &dst.slice(index, region.dst_offset, region.dst_span())?;
        self.note_copy(state, region.total());
        let region = BufferCopy {
            src_offset: 0,
            dst_offset: 0,
            ..*region
        };
        self.record_one(state, Op::Copy { src, dst, region }, how)
    }
}
