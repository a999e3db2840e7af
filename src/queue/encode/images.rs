//! Commands on images become operations of the stream. Texels of the device's own go through staging memory in packed
//! rows, in parts if they are large; images over buffers are copies of the buffer's rows.

use super::{Encoding, How};
use crate::backend::image::{ImageDim, ImageRegion};
use crate::backend::{BufferCopy, DeviceImage, Op, Slice};
use crate::command::image::buffer_rows;
use crate::command::{rect, HostSide};
use crate::error::ClResult;
use crate::handle::{Object, Ref};
use crate::object::mem::transfer::{split, volume, within};
use crate::object::mem::Mem;
use crate::object::memories::MemoryIndex;
use crate::queue::pending::Slots;
use crate::queue::state::QueueState;
use crate::queue::transfer::parts::{from_packed, Parts};
use crate::queue::transfer::{copy_between, CHUNK};
use crate::queue::Queue;
use std::sync::Arc;

/// Bytes of a fill that are made at once: the device copies them as often as needed.
const FILL: u64 = 1 << 20;

/// Returns the rows of a region, which are the source, as a slice, and the region from its start.
fn rows_slice(
    mem: &Ref<Mem>,
    memory: MemoryIndex,
    copy: &BufferCopy,
) -> ClResult<(Slice, BufferCopy)> {
    let slice = mem.slice(memory, copy.src_offset, copy.src_span())?;
    let copy = BufferCopy {
        src_offset: 0,
        ..*copy
    };
    Ok((slice, copy))
}

/// Returns true if one operation copies between two images: not between one-dimensional ones and others.
fn is_one_copy(a: &Arc<dyn DeviceImage>, b: &Arc<dyn DeviceImage>) -> bool {
    let line =
        |image: &Arc<dyn DeviceImage>| matches!(image.desc().dim, ImageDim::D1 | ImageDim::D1Array);
    line(a) == line(b)
}

impl Object<Queue> {
    /// Returns the host's side of a transfer as memory of the device, with the texels of a row and
    /// the rows of a slice, where the device has that memory. `rows` are those of the box there, as
    /// destination.
    fn host_texels(
        &self,
        host: &HostSide,
        rows: &BufferCopy,
        element: usize,
    ) -> Option<(Slice, (u32, u32))> {
        if let Some(visible) = &host.visible {
            return Some((visible.clone(), (0, 0)));
        }
        if host.shared {
            return None;
        }
        let (row, slice) = (rows.dst_row_pitch, rows.dst_slice_pitch);
        let whole = row.is_multiple_of(element as u64) && slice.is_multiple_of(row.max(1));
        let (row_texels, slice_rows) = (row / element as u64, slice / row.max(1));
        let side = self.host_slice(host.range(rows))?;
        let pitches = (
            u32::try_from(row_texels).ok()?,
            u32::try_from(slice_rows).ok()?,
        );
        whole.then_some((side, pitches))
    }

    /// Encodes a read of a box of an image, or a write. `rows` are those of the box in host memory, as destination; packed as
    /// source.
    pub(super) fn transfer_image(
        self: &Arc<Self>,
        state: &mut QueueState,
        (mem, at): (&Ref<Mem>, &ImageRegion),
        host: &HostSide,
        rows: &BufferCopy,
        write: bool,
        how: How,
    ) -> Encoding {
        if let Some(source) = buffer_rows(mem, at)? {
            let region = BufferCopy {
                dst_offset: 0,
                dst_row_pitch: rows.dst_row_pitch,
                dst_slice_pitch: rows.dst_slice_pitch,
                ..source
            };
            return self.encode_transfer(state, mem, host, &rect::simplify(region), write, how);
        }
        let image = &mem.texels(self.target.memory)?;
        let element = mem.image()?.element();
        state.note_work(volume(at.size, element));
        if let Some((memory, pitches)) = self.host_texels(host, rows, element) {
            let op = Op::CopyTexels {
                image,
                region: *at,
                memory: &memory,
                pitches,
                to_image: write,
            };
            let mut encoded = self.record_one(state, op, how)?;
            encoded.wait = true;
            return Ok(encoded);
        }
        let parts = Parts::new(*rows, CHUNK.max(rows.bytes));
        let parts = parts.iter().map(|part| {
            let first = (part.src_offset / rows.bytes) as u32;
            let [width, height, _] = at.size;
            let region = ImageRegion {
                origin: [0, first % height, first / height],
                size: [width, part.rows as u32, part.slices as u32],
            };
            (within(at, &region), rect::simplify(from_packed(&part)))
        });
        self.encode_parts(
            state,
            host,
            write,
            how,
            parts,
            |state, part, piece, timed| {
                state.record(Op::copy_packed(image, part, piece, write), timed)
            },
        )
    }

    /// Copies a box of an image to packed bytes, or back.
    pub(super) fn copy_packed(
        &self,
        state: &mut QueueState,
        (mem, at): (&Ref<Mem>, &ImageRegion),
        bytes: &Slice,
        back: bool,
        how: How,
    ) -> Encoding<Slots> {
        let index = self.target.memory;
        state.note_work(bytes.size);
        if let Some(rows) = buffer_rows(mem, at)? {
            let (side, region) = rows_slice(mem, index, &rows)?;
            let slot = state.record(copy_between(&side, bytes, region, back), how.profile)?;
            return Ok(slot.into_iter().collect());
        }
        let image = &mem.texels(index)?;
        // The place of texels in memory is a multiple of their size.
        if bytes.offset.is_multiple_of(mem.image()?.element() as u64) {
            let slot = state.record(Op::copy_packed(image, *at, bytes, back), how.profile)?;
            return Ok(slot.into_iter().collect());
        }
        let between = self.piece(state, false, bytes.size)?.slice();
        let texels = Op::copy_packed(image, *at, &between, back);
        let linear = BufferCopy::linear(0, 0, bytes.size);
        let moved = copy_between(&between, bytes, linear, back);
        let (first, second) = if back {
            (moved, texels)
        } else {
            (texels, moved)
        };
        let mut slots: Slots = state.record(first, how.profile)?.into_iter().collect();
        state.unordered_barrier()?;
        slots.extend(state.record(second, how.profile)?);
        Ok(slots)
    }

    /// Encodes a copy between images.
    pub(super) fn copy_images(
        &self,
        state: &mut QueueState,
        (src, from): (&Ref<Mem>, &ImageRegion),
        (dst, to): (&Ref<Mem>, &ImageRegion),
        how: How,
    ) -> Encoding {
        let index = self.target.memory;
        let total = volume(from.size, src.image()?.element());
        state.note_work(total);
        match (buffer_rows(src, from)?, buffer_rows(dst, to)?) {
            (None, None) => {
                let (a, b) = (&src.texels(index)?, &dst.texels(index)?);
                if is_one_copy(a, b) {
                    let op = Op::ImageCopy {
                        src: a,
                        src_origin: from.origin,
                        dst: b,
                        dst_origin: to.origin,
                        size: from.size,
                    };
                    return self.record_one(state, op, how);
                }
            }
            (Some(near), Some(far)) => {
                let (a, near) = rows_slice(src, index, &near)?;
                let (b, far) = rows_slice(dst, index, &far)?;
                let region = BufferCopy {
                    dst_row_pitch: far.src_row_pitch,
                    dst_slice_pitch: far.src_slice_pitch,
                    ..near
                };
                let op = copy_between(&a, &b, region, false);
                return self.record_one(state, op, how);
            }
            _ => {}
        }
        // By way of packed bytes. Both take them where they lie: a piece is aligned for any texel.
        let between = self.piece(state, false, total)?.slice();
        let mut slots = self.copy_packed(state, (src, from), &between, false, how)?;
        state.unordered_barrier()?;
        slots.extend(self.copy_packed(state, (dst, to), &between, true, how)?);
        Ok(self.on_device(state, slots))
    }

    /// Encodes a fill of an image.
    pub(super) fn fill_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        pixel: &[u8],
        how: How,
    ) -> Encoding {
        let index = self.target.memory;
        let element = pixel.len();
        let total = volume(at.size, element);
        state.note_work(total);
        let mut slots = Slots::new();
        if let Some(rows) = buffer_rows(mem, at)? {
            let rows = rect::simplify(rows);
            let all = (0..rows.slices).flat_map(|z| (0..rows.rows).map(move |y| (y, z)));
            let last = (rows.rows.saturating_sub(1), rows.slices.saturating_sub(1));
            for row in all {
                let at =
                    rows.src_offset + row.1 * rows.src_slice_pitch + row.0 * rows.src_row_pitch;
                let dst = mem.slice(index, at, rows.bytes)?;
                let op = Op::Fill {
                    dst: &dst,
                    pattern: pixel,
                };
                slots.extend(state.record(op, how.profile && (row == (0, 0) || row == last))?);
            }
            return Ok(self.on_device(state, slots));
        }
        let image = mem.texels(index)?;
        let row = u64::from(at.size[0]) * element as u64;
        let parts = split(at.size, element, FILL.max(row));
        let largest = parts.iter().map(|part| volume(part.size, element)).max();
        let piece = self.piece(state, true, largest.unwrap_or(row))?;
        // SAFETY: mapped memory of that size which nothing else uses.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(piece.pointer as *mut u8, piece.size as usize)
        };
        for place in bytes.chunks_exact_mut(element) {
            place.copy_from_slice(pixel);
        }
        let last = parts.len().saturating_sub(1);
        for (number, part) in parts.iter().enumerate() {
            let src = Slice {
                size: volume(part.size, element),
                ..piece.slice()
            };
            let op = Op::copy_packed(&image, within(at, part), &src, true);
            slots.extend(state.record(op, how.profile && (number == 0 || number == last))?);
        }
        Ok(self.on_device(state, slots))
    }
}
