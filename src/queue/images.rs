//! Commands on images become operations of the stream. Texels of the device's own go through staging memory in packed
//! rows; images over buffers are copies of the buffer's rows.

use super::encode::{Encoded, How};
use super::host::copy_region;
use super::staging::Piece;
use super::state::QueueState;
use super::Queue;
use crate::backend::image::{ImageDim, ImageRegion};
use crate::backend::{BufferCopy, Image, Op, ProfileSlot, Slice};
use crate::cl;
use crate::command::image::{buffer_rows, mapped_rows, reversed};
use crate::command::{extent, rect, HostSide, Work};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::mem::coherence::Touch;
use crate::object::mem::map::Mapping;
use crate::object::mem::transfer::{split, volume, within};
use crate::object::mem::Mem;
use crate::object::memories::MemoryIndex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a fill that are made at once: the device copies them as often as needed.
const FILL: u64 = 1 << 20;
/// Transfers beyond this are cut into parts.
const BIG: u64 = 16 << 20;
const PART: u64 = 8 << 20;
/// Parts under way at a time.
const IN_FLIGHT: usize = 4;

type Slots = SmallVec<[ProfileSlot; 2]>;

/// What the rows of a region count from, with `copy` counting from the start of the slice.
fn rows_slice(
    mem: &Ref<Mem>,
    memory: MemoryIndex,
    copy: &BufferCopy,
) -> ClResult<(Slice, BufferCopy)> {
    let span = extent(0, copy, copy.src_row_pitch, copy.src_slice_pitch).end as u64;
    let slice = mem.slice(memory, copy.src_offset, span)?;
    let copy = BufferCopy {
        src_offset: 0,
        ..*copy
    };
    Ok((slice, copy))
}

/// Whether one operation copies between two images: not between one-dimensional ones and others.
fn alike(a: &Arc<dyn Image>, b: &Arc<dyn Image>) -> bool {
    let line =
        |image: &Arc<dyn Image>| matches!(image.desc().dim, ImageDim::D1 | ImageDim::D1Array);
    line(a) == line(b)
}

/// The rows of a part of a box in host memory, where `rows` are those of the box (as destination).
fn part_rows(rows: &BufferCopy, part: &ImageRegion, element: u64) -> BufferCopy {
    let [_, y, z] = part.origin.map(u64::from);
    let [width, height, depth] = part.size.map(u64::from);
    let bytes = width * element;
    rect::simplify(BufferCopy {
        src_offset: 0,
        dst_offset: z * rows.dst_slice_pitch + y * rows.dst_row_pitch,
        bytes,
        rows: height,
        slices: depth,
        src_row_pitch: bytes,
        src_slice_pitch: bytes * height,
        dst_row_pitch: rows.dst_row_pitch,
        dst_slice_pitch: rows.dst_slice_pitch,
    })
}

impl Queue {
    /// Encodes a command on images alone.
    pub(super) fn encode_image(
        &self,
        state: &mut QueueState,
        work: &Work,
        how: How,
        idle: bool,
        no_waits: bool,
    ) -> ClResult<Encoded> {
        let index = self.target.memory;
        match work {
            Work::ReadImage {
                mem,
                at,
                host,
                rows,
            } => self.read_image(state, mem, at, host, rows, how, idle, no_waits),
            Work::WriteImage {
                mem,
                at,
                host,
                rows,
            } => self.write_image(state, mem, at, host, rows, how, idle),
            Work::CopyImage { src, dst, from, to } => {
                self.copy_images(state, src, dst, from, to, how)
            }
            Work::ImageToBuffer {
                image,
                at,
                buffer,
                offset,
            } => {
                let total = volume(at.size, image.image()?.element());
                image.prepare_box(index, at, Touch::Read)?;
                buffer.prepare_bytes(index, *offset..*offset + total, Touch::Overwrite)?;
                let to = buffer.slice(index, *offset, total)?;
                let slots = self.image_to_slice(state, image, at, &to, how)?;
                Ok(self.on_device(state, slots))
            }
            Work::BufferToImage {
                image,
                at,
                buffer,
                offset,
            } => {
                let total = volume(at.size, image.image()?.element());
                buffer.prepare_bytes(index, *offset..*offset + total, Touch::Read)?;
                image.prepare_box(index, at, Touch::Overwrite)?;
                let from = buffer.slice(index, *offset, total)?;
                let slots = self.slice_to_image(state, image, at, &from, how)?;
                Ok(self.on_device(state, slots))
            }
            Work::FillImage { mem, at, pixel } => self.fill_image(state, mem, at, pixel, how),
            _ => err(cl::CL_INVALID_OPERATION, "not a command on images"),
        }
    }

    /// The map of an image.
    pub(super) fn map_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        mapping: &Mapping,
        how: How,
        idle: bool,
        no_waits: bool,
    ) -> ClResult<Encoded> {
        let (at, rows) = mapped_rows(mem, mapping)?;
        let host = self.mapped_host(mapping);
        self.read_image(state, mem, &at, &host, &rows, how, idle, no_waits)
    }

    /// The end of a map of an image.
    pub(super) fn unmap_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        mapping: &Mapping,
        how: How,
        idle: bool,
    ) -> ClResult<Encoded> {
        let (at, rows) = mapped_rows(mem, mapping)?;
        let host = self.mapped_host(mapping);
        self.write_image(state, mem, &at, &host, &reversed(&rows), how, idle)
    }

    fn mapped_host(&self, mapping: &Mapping) -> HostSide {
        let one_memory = !self.target.context.memories().are_several();
        HostSide {
            base: mapping.pointer,
            visible: mapping.shadow.clone().filter(|_| one_memory),
            shared: true,
        }
    }

    /// A piece of staging memory.
    fn staging(&self, state: &mut QueueState, up: bool, size: u64) -> ClResult<Piece> {
        self.piece(state, up, size)
    }

    /// Waits until few enough parts are under way.
    fn make_room(&self, under_way: &mut VecDeque<u64>) -> ClResult {
        while under_way.len() >= IN_FLIGHT {
            if let Some(oldest) = under_way.pop_front() {
                self.progress.timeline.wait(oldest, None)?;
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn read_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        host: &HostSide,
        rows: &BufferCopy,
        how: How,
        idle: bool,
        no_waits: bool,
    ) -> ClResult<Encoded> {
        if let Some(source) = buffer_rows(mem, at)? {
            let region = BufferCopy {
                dst_offset: 0,
                dst_row_pitch: rows.dst_row_pitch,
                dst_slice_pitch: rows.dst_slice_pitch,
                ..source
            };
            let region = rect::simplify(region);
            return self.encode_read(state, mem, host, &region, how, idle, no_waits);
        }
        let index = self.target.memory;
        mem.prepare_box(index, at, Touch::Read)?;
        let image = mem.texels(index)?;
        let element = mem.image()?.element();
        let total = volume(at.size, element);
        state.note_work(total);
        if let Some(visible) = &host.visible {
            let op = Op::ImageToMemory {
                image: &image,
                region: *at,
                dst: visible,
                row_texels: 0,
                slice_rows: 0,
            };
            let slot = state.record(op, how.profile)?;
            let mut encoded = self.on_device(state, slot.into_iter().collect());
            encoded.wait = true;
            return Ok(encoded);
        }
        if how.blocking && total > BIG && self.progress.host_done() >= state.host.posted {
            return self.read_image_parts(state, &image, at, host, rows, element, how);
        }
        state.prepare_host_part(how)?;
        let piece = self.staging(state, false, total)?;
        let op = Op::ImageToMemory {
            image: &image,
            region: *at,
            dst: &piece.slice(),
            row_texels: 0,
            slice_rows: 0,
        };
        let slot = state.record(op, how.profile)?;
        let encoded = self.on_device(state, slot.into_iter().collect());
        let packed = rect::simplify(*rows);
        Ok(self.read_out(state, encoded, piece, host, rows, packed, how))
    }

    /// A large blocking read: the device fills parts while the host empties those before.
    #[allow(clippy::too_many_arguments)]
    fn read_image_parts(
        &self,
        state: &mut QueueState,
        image: &Arc<dyn Image>,
        at: &ImageRegion,
        host: &HostSide,
        rows: &BufferCopy,
        element: usize,
        how: How,
    ) -> ClResult<Encoded> {
        let mut slots = Slots::new();
        let mut under_way: VecDeque<(u64, Piece, BufferCopy)> = VecDeque::new();
        let empty = |(value, piece, region): (u64, Piece, BufferCopy)| -> ClResult {
            self.progress.timeline.wait(value, None)?;
            // SAFETY: the piece is filled and holds the packed part; the application keeps the destination valid.
            unsafe { copy_region(piece.pointer, host.base, &region) };
            Ok(())
        };
        let parts = split(at.size, element, PART);
        let last = parts.len().saturating_sub(1);
        for (number, part) in parts.iter().enumerate() {
            if under_way.len() >= IN_FLIGHT {
                if let Some(oldest) = under_way.pop_front() {
                    empty(oldest)?;
                }
            }
            let piece = self.staging(state, false, volume(part.size, element))?;
            let op = Op::ImageToMemory {
                image,
                region: within(at, part),
                dst: &piece.slice(),
                row_texels: 0,
                slice_rows: 0,
            };
            slots.extend(state.record(op, how.profile && (number == 0 || number == last))?);
            let value = self.submit_now(state)?;
            under_way.push_back((value, piece, part_rows(rows, part, element as u64)));
        }
        under_way.into_iter().try_for_each(empty)?;
        let mut encoded = self.on_device(state, slots);
        encoded.done = true;
        Ok(encoded)
    }

    #[allow(clippy::too_many_arguments)]
    fn write_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        host: &HostSide,
        rows: &BufferCopy,
        how: How,
        idle: bool,
    ) -> ClResult<Encoded> {
        let element = mem.image()?.element();
        // As destination in host memory, packed as source.
        let rows = reversed(rows);
        if let Some(target) = buffer_rows(mem, at)? {
            let region = reversed(&BufferCopy {
                dst_offset: 0,
                dst_row_pitch: rows.dst_row_pitch,
                dst_slice_pitch: rows.dst_slice_pitch,
                ..target
            });
            let region = rect::simplify(region);
            return self.encode_write(state, mem, host, &region, how, idle);
        }
        let index = self.target.memory;
        mem.prepare_box(index, at, Touch::Overwrite)?;
        let image = mem.texels(index)?;
        let total = volume(at.size, element);
        state.note_work(total);
        let mut slots = Slots::new();
        if let Some(visible) = &host.visible {
            let op = Op::MemoryToImage {
                src: visible,
                row_texels: 0,
                slice_rows: 0,
                image: &image,
                region: *at,
            };
            slots.extend(state.record(op, how.profile)?);
            return Ok(self.on_device(state, slots));
        }
        if total <= BIG {
            let piece = self.staging(state, true, total)?;
            // SAFETY: the piece has room for the packed rows; the application keeps the source valid.
            unsafe { copy_region(host.base, piece.pointer, &rect::simplify(reversed(&rows))) };
            let op = Op::MemoryToImage {
                src: &piece.slice(),
                row_texels: 0,
                slice_rows: 0,
                image: &image,
                region: *at,
            };
            slots.extend(state.record(op, how.profile)?);
            return Ok(self.on_device(state, slots));
        }
        let mut under_way = VecDeque::new();
        let parts = split(at.size, element, PART);
        let last = parts.len().saturating_sub(1);
        for (number, part) in parts.iter().enumerate() {
            self.make_room(&mut under_way)?;
            let piece = self.staging(state, true, volume(part.size, element))?;
            let region = reversed(&part_rows(&rows, part, element as u64));
            // SAFETY: as above, for the rows of a part.
            unsafe { copy_region(host.base, piece.pointer, &region) };
            let op = Op::MemoryToImage {
                src: &piece.slice(),
                row_texels: 0,
                slice_rows: 0,
                image: &image,
                region: within(at, part),
            };
            slots.extend(state.record(op, how.profile && (number == 0 || number == last))?);
            under_way.push_back(self.submit_now(state)?);
        }
        Ok(self.on_device(state, slots))
    }

    /// A box of an image to packed bytes.
    fn image_to_slice(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        dst: &Slice,
        how: How,
    ) -> ClResult<Slots> {
        let index = self.target.memory;
        state.note_work(dst.size);
        if let Some(rows) = buffer_rows(mem, at)? {
            let (src, region) = rows_slice(mem, index, &rows)?;
            let op = Op::Copy {
                src: &src,
                dst,
                region,
            };
            return Ok(state.record(op, how.profile)?.into_iter().collect());
        }
        let image = mem.texels(index)?;
        // The place of texels in memory is a multiple of their size.
        if dst.offset.is_multiple_of(mem.image()?.element() as u64) {
            let op = Op::ImageToMemory {
                image: &image,
                region: *at,
                dst,
                row_texels: 0,
                slice_rows: 0,
            };
            return Ok(state.record(op, how.profile)?.into_iter().collect());
        }
        let between = self.staging(state, false, dst.size)?.slice();
        let op = Op::ImageToMemory {
            image: &image,
            region: *at,
            dst: &between,
            row_texels: 0,
            slice_rows: 0,
        };
        let mut slots: Slots = state.record(op, how.profile)?.into_iter().collect();
        state.unordered_barrier()?;
        let op = Op::Copy {
            src: &between,
            dst,
            region: BufferCopy::linear(0, 0, dst.size),
        };
        slots.extend(state.record(op, how.profile)?);
        Ok(slots)
    }

    /// Packed bytes to a box of an image.
    fn slice_to_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        src: &Slice,
        how: How,
    ) -> ClResult<Slots> {
        let index = self.target.memory;
        state.note_work(src.size);
        if let Some(rows) = buffer_rows(mem, at)? {
            let (dst, region) = rows_slice(mem, index, &rows)?;
            let op = Op::Copy {
                src,
                dst: &dst,
                region: reversed(&region),
            };
            return Ok(state.record(op, how.profile)?.into_iter().collect());
        }
        let image = mem.texels(index)?;
        let mut slots = Slots::new();
        let mut from = src.clone();
        if !src.offset.is_multiple_of(mem.image()?.element() as u64) {
            from = self.staging(state, false, src.size)?.slice();
            let op = Op::Copy {
                src,
                dst: &from,
                region: BufferCopy::linear(0, 0, src.size),
            };
            slots.extend(state.record(op, how.profile)?);
            state.unordered_barrier()?;
        }
        let op = Op::MemoryToImage {
            src: &from,
            row_texels: 0,
            slice_rows: 0,
            image: &image,
            region: *at,
        };
        slots.extend(state.record(op, how.profile)?);
        Ok(slots)
    }

    fn copy_images(
        &self,
        state: &mut QueueState,
        src: &Ref<Mem>,
        dst: &Ref<Mem>,
        from: &ImageRegion,
        to: &ImageRegion,
        how: How,
    ) -> ClResult<Encoded> {
        let index = self.target.memory;
        src.prepare_box(index, from, Touch::Read)?;
        dst.prepare_box(index, to, Touch::Overwrite)?;
        let element = src.image()?.element();
        let total = volume(from.size, element);
        state.note_work(total);
        let slots = match (buffer_rows(src, from)?, buffer_rows(dst, to)?) {
            (None, None) => {
                let (a, b) = (src.texels(index)?, dst.texels(index)?);
                if alike(&a, &b) {
                    let op = Op::ImageCopy {
                        src: &a,
                        src_origin: from.origin,
                        dst: &b,
                        dst_origin: to.origin,
                        size: from.size,
                    };
                    state.record(op, how.profile)?.into_iter().collect()
                } else {
                    let between = self.staging(state, false, total)?.slice();
                    let mut slots = self.image_to_slice(state, src, from, &between, how)?;
                    state.unordered_barrier()?;
                    slots.extend(self.slice_to_image(state, dst, to, &between, how)?);
                    slots
                }
            }
            (Some(rows), _) | (None, Some(rows)) => {
                let of_source = buffer_rows(src, from)?.is_some();
                if let (true, Some(target)) = (of_source, buffer_rows(dst, to)?) {
                    let (a, near) = rows_slice(src, index, &rows)?;
                    let (b, far) = rows_slice(dst, index, &target)?;
                    let region = BufferCopy {
                        dst_row_pitch: far.src_row_pitch,
                        dst_slice_pitch: far.src_slice_pitch,
                        ..near
                    };
                    let op = Op::Copy {
                        src: &a,
                        dst: &b,
                        region,
                    };
                    state.record(op, how.profile)?.into_iter().collect()
                } else {
                    let between = self.staging(state, false, total)?.slice();
                    let mut slots = self.image_to_slice(state, src, from, &between, how)?;
                    state.unordered_barrier()?;
                    slots.extend(self.slice_to_image(state, dst, to, &between, how)?);
                    slots
                }
            }
        };
        Ok(self.on_device(state, slots))
    }

    fn fill_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        pixel: &[u8],
        how: How,
    ) -> ClResult<Encoded> {
        let index = self.target.memory;
        mem.prepare_box(index, at, Touch::Overwrite)?;
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
        let piece = self.staging(state, true, largest.unwrap_or(row))?;
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
            let op = Op::MemoryToImage {
                src: &src,
                row_texels: 0,
                slice_rows: 0,
                image: &image,
                region: within(at, part),
            };
            slots.extend(state.record(op, how.profile && (number == 0 || number == last))?);
        }
        Ok(self.on_device(state, slots))
    }
}
