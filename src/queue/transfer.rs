//! Transfers of buffers: reads, writes and copies, on the spot where the memory is mapped and idle, else through staging.

use super::encode::{Encoded, How};
use super::host::copy_region;
use super::staging::Piece;
use super::state::QueueState;
use super::Queue;
use crate::backend::{BufferCopy, Op, Slice};
use crate::command::{extent, HostSide};
use crate::error::ClResult;
use crate::handle::Ref;
use crate::object::mem::coherence::{Rows, Touch};
use crate::object::mem::Mem;
use crate::util::{config, copy};
use smallvec::SmallVec;

/// Up to this size bytes travel with the batch; beyond it a copy from staging is faster (measured on an H200).
const UPDATE: u64 = 16 << 10;
/// Reads up to this many bytes from uncached mapped memory are cheaper than a copy in a batch that is waited for anyway.
const SLOW_READ: u64 = 256;
/// Up to this size an unmap writes mapped memory itself, while it is idle.
const SMALL_UNMAP: u64 = 64 << 10;
/// Transfers beyond this are cut into chunks, so that host and device copy at the same time.
const BIG: u64 = 16 << 20;
const CHUNK: u64 = 4 << 20;
/// Chunks under way at a time.
const IN_FLIGHT: usize = 4;

/// The region with the device side first, packed on the other side.
fn packed(region: &BufferCopy) -> (u64, u64, u64) {
    let slice = region.bytes * region.rows;
    (region.bytes, slice, slice * region.slices)
}

fn src_extent(region: &BufferCopy) -> u64 {
    extent(0, region, region.src_row_pitch, region.src_slice_pitch).end as u64
}

fn dst_extent(region: &BufferCopy) -> u64 {
    extent(0, region, region.dst_row_pitch, region.dst_slice_pitch).end as u64
}

fn src_rows(region: &BufferCopy) -> Rows {
    Rows {
        first: region.src_offset,
        bytes: region.bytes,
        rows: region.rows,
        row_pitch: region.src_row_pitch,
        slices: region.slices,
        slice_pitch: region.src_slice_pitch,
    }
}

fn dst_rows(region: &BufferCopy) -> Rows {
    Rows {
        first: region.dst_offset,
        row_pitch: region.dst_row_pitch,
        slice_pitch: region.dst_slice_pitch,
        ..src_rows(region)
    }
}

/// The device's memory behind the host side of a transfer, unless that is the very memory of the other side: an application
/// may read a buffer into the memory that the buffer is made of, and the device cannot copy bytes onto themselves.
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

    #[allow(clippy::too_many_arguments)]
    pub(super) fn encode_read(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        host: &HostSide,
        region: &BufferCopy,
        how: How,
        idle: bool,
        no_waits: bool,
    ) -> ClResult<Encoded> {
        let index = self.target.memory;
        mem.prepare_rows(index, src_rows(region), Touch::Read)?;
        if idle && host.visible.is_none() {
            if let Some(from) = mem.mapped(index, region.src_offset, true)? {
                return Ok(self.read_mapped(state, host, region, from));
            }
        }
        let (row, plane, total) = packed(region);
        let span = src_extent(region);
        let src = mem.slice(index, region.src_offset, span)?;
        let visible = other_memory(host, &src);
        // Straight from mapped memory: nothing may change it before we have read it. Either nothing is under way, or
        // the caller waits and keeps others out of the queue meanwhile.
        let cached = src.memory.host_cached();
        let linear = region.rows == 1 && region.slices == 1;
        let limit = if idle && linear {
            config::get().direct_read
        } else {
            SLOW_READ
        };
        if let (Some(pointer), true) = (src.memory.mapped(), cached || total <= limit) {
            let quiet = self.progress.host_done() >= state.host.posted;
            let wait = how.blocking && no_waits && quiet && !how.profile;
            if idle || (wait && visible.is_none()) {
                if !idle {
                    let value = self.submit_now(state)?;
                    self.progress.timeline.wait(value, None)?;
                }
                let from = pointer.as_ptr() as usize + src.offset as usize;
                if linear && !cached {
                    let start = self.host_start();
                    let to = host.base.wrapping_add(region.dst_offset as usize);
                    // SAFETY: as in `read_mapped`.
                    unsafe { copy::copy_uncached(from, to, total as usize) };
                    return Ok(self.on_host(state, start));
                }
                return Ok(self.read_mapped(state, host, region, from));
            }
        }
        if let Some(visible) = visible {
            let region = BufferCopy {
                src_offset: 0,
                ..*region
            };
            state.note_work(total);
            let mut encoded = self.copied(state, &src, visible, region, how)?;
            encoded.wait = true;
            return Ok(encoded);
        }
        state.note_work(total);
        if how.blocking && linear && total > BIG && self.progress.host_done() >= state.host.posted {
            return self.read_chunks(
                state,
                &src,
                host.base.wrapping_add(region.dst_offset as usize),
                how,
            );
        }
        state.prepare_host_part(how)?;
        let piece = self.piece(state, false, total)?;
        let to_piece = BufferCopy {
            src_offset: 0,
            dst_offset: 0,
            dst_row_pitch: row,
            dst_slice_pitch: plane,
            ..*region
        };
        let encoded = self.copied(state, &src, &piece.slice(), to_piece, how)?;
        let out = BufferCopy {
            src_offset: 0,
            src_row_pitch: row,
            src_slice_pitch: plane,
            ..*region
        };
        Ok(self.read_out(state, encoded, piece, host, region, out, how))
    }

    /// A large blocking read: the device fills chunks of staging while the host empties those before.
    fn read_chunks(
        &self,
        state: &mut QueueState,
        src: &Slice,
        base: usize,
        how: How,
    ) -> ClResult<Encoded> {
        let mut under_way: std::collections::VecDeque<(u64, Piece, usize)> =
            std::collections::VecDeque::new();
        let mut slots: SmallVec<[_; 2]> = SmallVec::new();
        let empty = |(value, piece, at): (u64, Piece, usize)| -> ClResult {
            self.progress.timeline.wait(value, None)?;
            // SAFETY: the piece is filled and of that size; the application keeps the destination valid.
            unsafe {
                copy::copy(piece.pointer, base.wrapping_add(at), piece.size as usize);
            }
            Ok(())
        };
        let mut at = 0;
        while at < src.size {
            let size = CHUNK.min(src.size - at);
            if under_way.len() >= IN_FLIGHT {
                if let Some(oldest) = under_way.pop_front() {
                    empty(oldest)?;
                }
            }
            let piece = self.piece(state, false, size)?;
            let part = Slice {
                memory: src.memory.clone(),
                offset: src.offset + at,
                size,
            };
            let ends = at == 0 || at + size >= src.size;
            let copy = Op::Copy {
                src: &part,
                dst: &piece.slice(),
                region: BufferCopy::linear(0, 0, size),
            };
            slots.extend(state.record(copy, how.profile && ends)?);
            under_way.push_back((self.submit_now(state)?, piece, at as usize));
            at += size;
        }
        under_way.into_iter().try_for_each(empty)?;
        let mut encoded = self.on_device(state, slots);
        encoded.done = true;
        Ok(encoded)
    }

    pub(super) fn encode_write(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        host: &HostSide,
        region: &BufferCopy,
        how: How,
        idle: bool,
    ) -> ClResult<Encoded> {
        let index = self.target.memory;
        mem.prepare_rows(index, dst_rows(region), Touch::Overwrite)?;
        if idle && host.visible.is_none() {
            if let Some(to) = mem.mapped(index, region.dst_offset, false)? {
                return Ok(self.write_mapped(state, host, region, to));
            }
        }
        let (row, plane, total) = packed(region);
        let span = dst_extent(region);
        let dst = mem.slice(index, region.dst_offset, span)?;
        let linear = region.rows == 1 && region.slices == 1;
        let visible = other_memory(host, &dst);
        let direct = idle && (visible.is_none() || total <= SMALL_UNMAP);
        if let (Some(visible), false) = (visible, direct && dst.memory.mapped().is_some()) {
            let region = BufferCopy {
                dst_offset: 0,
                ..*region
            };
            state.note_work(total);
            return self.copied(state, visible, &dst, region, how);
        }
        if let (Some(pointer), true) = (dst.memory.mapped(), direct) {
            let to = pointer.as_ptr() as usize + dst.offset as usize;
            return Ok(self.write_mapped(state, host, region, to));
        }
        state.note_work(total);
        if linear && total <= UPDATE {
            let from = host.base.wrapping_add(region.src_offset as usize);
            // SAFETY: the application keeps the source readable for its size until the command has completed.
            let data = unsafe { std::slice::from_raw_parts(from as *const u8, total as usize) };
            let slot = state.record(Op::Update { dst: &dst, data }, how.profile)?;
            return Ok(self.on_device(state, slot.into_iter().collect()));
        }
        if linear && total > BIG {
            return self.write_chunks(
                state,
                &dst,
                host.base.wrapping_add(region.src_offset as usize),
                how,
            );
        }
        let piece = self.piece(state, true, total)?;
        let into = BufferCopy {
            dst_offset: 0,
            dst_row_pitch: row,
            dst_slice_pitch: plane,
            ..*region
        };
        // SAFETY: the piece has room for the packed region; the application keeps the source valid.
        unsafe { copy_region(host.base, piece.pointer, &into) };
        let from_piece = BufferCopy {
            src_offset: 0,
            dst_offset: 0,
            src_row_pitch: row,
            src_slice_pitch: plane,
            ..*region
        };
        self.copied(state, &piece.slice(), &dst, from_piece, how)
    }

    /// A large write: the host fills chunks of staging while the device takes those before.
    fn write_chunks(
        &self,
        state: &mut QueueState,
        dst: &Slice,
        base: usize,
        how: How,
    ) -> ClResult<Encoded> {
        let mut under_way: std::collections::VecDeque<u64> = std::collections::VecDeque::new();
        let mut slots: SmallVec<[_; 2]> = SmallVec::new();
        let mut at = 0;
        while at < dst.size {
            let size = CHUNK.min(dst.size - at);
            if under_way.len() >= IN_FLIGHT {
                if let Some(oldest) = under_way.pop_front() {
                    self.progress.timeline.wait(oldest, None)?;
                }
            }
            let piece = self.piece(state, true, size)?;
            // SAFETY: the piece has room; the application keeps the source readable.
            unsafe {
                copy::copy(base.wrapping_add(at as usize), piece.pointer, size as usize);
            }
            let part = Slice {
                memory: dst.memory.clone(),
                offset: dst.offset + at,
                size,
            };
            let ends = at == 0 || at + size >= dst.size;
            let copy = Op::Copy {
                src: &piece.slice(),
                dst: &part,
                region: BufferCopy::linear(0, 0, size),
            };
            slots.extend(state.record(copy, how.profile && ends)?);
            under_way.push_back(self.submit_now(state)?);
            at += size;
        }
        Ok(self.on_device(state, slots))
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
        src.prepare_rows(index, src_rows(region), Touch::Read)?;
        dst.prepare_rows(index, dst_rows(region), Touch::Overwrite)?;
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
