//! Commands on images become operations of the stream. Texels of the device's own go through staging memory in packed
//! rows, in parts if they are large; images over buffers are copies of the buffer's rows.

use super::{How, Outcome};
use crate::backend::image::{ImageDim, ImageRegion};
use crate::backend::{BufferCopy, DeviceImage, Op, Slice};
use crate::cl;
use crate::command::image::{buffer_rows, mapped_rows, reversed};
use crate::command::{extent, rect, HostSide, Work};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::mem::map::Mapping;
use crate::object::mem::transfer::{split, volume, within};
use crate::object::mem::Mem;
use crate::object::memories::MemoryIndex;
use crate::queue::hazards::QueuePosition;
use crate::queue::pending::Slots;
use crate::queue::state::QueueState;
use crate::queue::Queue;
use std::sync::Arc;

/// Bytes of a fill that are made at once: the device copies them as often as needed.
const FILL: u64 = 1 << 20;
/// Bytes of a part of a transfer.
const PART: u64 = 4 << 20;

/// The outcome of a step that needs staging memory: its result, or when there will be some.
type Staged<T> = ClResult<Result<T, QueuePosition>>;

/// Returns the outcome for a command that must be encoded again when the queue has reached a
/// position.
fn not_yet(place: QueuePosition) -> Outcome {
    Outcome::Unfinished {
        parts: 0,
        slots: Slots::new(),
        place,
    }
}

/// Returns the base that the rows of a region count from, with `copy` counting from the start of
/// the slice.
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

/// Returns true if one operation copies between two images: not between one-dimensional ones and others.
fn is_one_copy(a: &Arc<dyn DeviceImage>, b: &Arc<dyn DeviceImage>) -> bool {
    let line =
        |image: &Arc<dyn DeviceImage>| matches!(image.desc().dim, ImageDim::D1 | ImageDim::D1Array);
    line(a) == line(b)
}

/// Returns the rows of a part of a box in host memory, where `rows` are those of the box (as
/// destination).
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
    ) -> ClResult<Outcome> {
        let index = self.target.memory;
        match work {
            Work::ReadImage {
                mem,
                at,
                host,
                rows,
            } => self.read_image(state, mem, at, host, rows, how, idle),
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
                let to = buffer.slice(index, *offset, total)?;
                let slots = self.image_to_slice(state, image, at, &to, how)?;
                Ok(self.staged(state, slots))
            }
            Work::BufferToImage {
                image,
                at,
                buffer,
                offset,
            } => {
                let total = volume(at.size, image.image()?.element());
                let from = buffer.slice(index, *offset, total)?;
                let slots = self.slice_to_image(state, image, at, &from, how)?;
                Ok(self.staged(state, slots))
            }
            Work::FillImage { mem, at, pixel } => self.fill_image(state, mem, at, pixel, how),
            _ => err(cl::CL_INVALID_OPERATION, "not a command on images"),
        }
    }

    /// Returns the map of an image.
    pub(super) fn map_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        mapping: &Mapping,
        how: How,
        idle: bool,
    ) -> ClResult<Outcome> {
        let (at, rows) = mapped_rows(mem, mapping)?;
        let host = self.mapped_host(mapping);
        self.read_image(state, mem, &at, &host, &rows, how, idle)
    }

    /// Returns the end of a map of an image.
    pub(super) fn unmap_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        mapping: &Mapping,
        how: How,
        idle: bool,
    ) -> ClResult<Outcome> {
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

    /// Returns the outcome of a command that its operations are, unless there was no staging
    /// memory.
    fn staged(&self, state: &QueueState, slots: Result<Slots, QueuePosition>) -> Outcome {
        match slots {
            Ok(slots) => self.on_device(state, slots).into(),
            Err(place) => not_yet(place),
        }
    }

    /// Returns the host's side of a transfer as memory of the device, with the texels of a row and
    /// the rows of a slice, where the device has that memory. `rows` are those of the box there, as
    /// destination.
    fn host_texels(
        &self,
        host: &HostSide,
        rows: &BufferCopy,
        element: usize,
    ) -> Option<(Slice, u32, u32)> {
        if let Some(visible) = &host.visible {
            return Some((visible.clone(), 0, 0));
        }
        if host.shared {
            return None;
        }
        let (row, slice) = (rows.dst_row_pitch, rows.dst_slice_pitch);
        let whole = row.is_multiple_of(element as u64) && slice.is_multiple_of(row.max(1));
        let (row_texels, slice_rows) = (row / element as u64, slice / row.max(1));
        let first = host.base.wrapping_add(rows.dst_offset as usize);
        let side = self.host_slice(extent(first, rows, row, slice))?;
        let row_texels = u32::try_from(row_texels).ok()?;
        let slice_rows = u32::try_from(slice_rows).ok()?;
        whole.then_some((side, row_texels, slice_rows))
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
    ) -> ClResult<Outcome> {
        if let Some(source) = buffer_rows(mem, at)? {
            let region = BufferCopy {
                dst_offset: 0,
                dst_row_pitch: rows.dst_row_pitch,
                dst_slice_pitch: rows.dst_slice_pitch,
                ..source
            };
            let region = rect::simplify(region);
            return self.encode_read(state, mem, host, &region, how, idle);
        }
        let index = self.target.memory;
        let image = mem.texels(index)?;
        let element = mem.image()?.element();
        state.note_work(volume(at.size, element));
        if let Some((dst, row_texels, slice_rows)) = self.host_texels(host, rows, element) {
            let op = Op::ImageToMemory {
                image: &image,
                region: *at,
                dst: &dst,
                row_texels,
                slice_rows,
            };
            let slot = state.record(op, how.profile)?;
            let mut encoded = self.on_device(state, slot.into_iter().collect());
            encoded.wait = true;
            return Ok(encoded.into());
        }
        let parts = split(at.size, element, PART);
        let parts = parts
            .iter()
            .map(|part| (part, part_rows(rows, part, element as u64)));
        self.read_parts(state, host, how, parts, |state, part, piece, timed| {
            let op = Op::ImageToMemory {
                image: &image,
                region: within(at, part),
                dst: piece,
                row_texels: 0,
                slice_rows: 0,
            };
            state.record(op, timed)
        })
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
    ) -> ClResult<Outcome> {
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
        let image = mem.texels(index)?;
        state.note_work(volume(at.size, element));
        if let Some((src, row_texels, slice_rows)) = self.host_texels(host, &rows, element) {
            let op = Op::MemoryToImage {
                src: &src,
                row_texels,
                slice_rows,
                image: &image,
                region: *at,
            };
            let slot = state.record(op, how.profile)?;
            let mut encoded = self.on_device(state, slot.into_iter().collect());
            encoded.wait = true;
            return Ok(encoded.into());
        }
        let parts = split(at.size, element, PART);
        let parts = parts
            .iter()
            .map(|part| (part, reversed(&part_rows(&rows, part, element as u64))));
        self.write_parts(state, host, how, parts, |state, part, piece, timed| {
            let op = Op::MemoryToImage {
                src: piece,
                row_texels: 0,
                slice_rows: 0,
                image: &image,
                region: within(at, part),
            };
            state.record(op, timed)
        })
    }

    /// Returns a box of an image to packed bytes.
    fn image_to_slice(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        dst: &Slice,
        how: How,
    ) -> Staged<Slots> {
        let index = self.target.memory;
        state.note_work(dst.size);
        if let Some(rows) = buffer_rows(mem, at)? {
            let (src, region) = rows_slice(mem, index, &rows)?;
            let op = Op::Copy {
                src: &src,
                dst,
                region,
            };
            return Ok(Ok(state.record(op, how.profile)?.into_iter().collect()));
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
            return Ok(Ok(state.record(op, how.profile)?.into_iter().collect()));
        }
        let between = match self.piece(state, false, dst.size)? {
            Ok(piece) => piece.slice(),
            Err(place) => return Ok(Err(place)),
        };
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
        Ok(Ok(slots))
    }

    /// Copies packed bytes to a box of an image.
    fn slice_to_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        src: &Slice,
        how: How,
    ) -> Staged<Slots> {
        let index = self.target.memory;
        state.note_work(src.size);
        if let Some(rows) = buffer_rows(mem, at)? {
            let (dst, region) = rows_slice(mem, index, &rows)?;
            let op = Op::Copy {
                src,
                dst: &dst,
                region: reversed(&region),
            };
            return Ok(Ok(state.record(op, how.profile)?.into_iter().collect()));
        }
        let image = mem.texels(index)?;
        let mut slots = Slots::new();
        let mut from = src.clone();
        if !src.offset.is_multiple_of(mem.image()?.element() as u64) {
            from = match self.piece(state, false, src.size)? {
                Ok(piece) => piece.slice(),
                Err(place) => return Ok(Err(place)),
            };
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
        Ok(Ok(slots))
    }

    fn copy_images(
        &self,
        state: &mut QueueState,
        src: &Ref<Mem>,
        dst: &Ref<Mem>,
        from: &ImageRegion,
        to: &ImageRegion,
        how: How,
    ) -> ClResult<Outcome> {
        let index = self.target.memory;
        let element = src.image()?.element();
        let total = volume(from.size, element);
        state.note_work(total);
        let slots = match (buffer_rows(src, from)?, buffer_rows(dst, to)?) {
            (None, None) => {
                let (a, b) = (src.texels(index)?, dst.texels(index)?);
                if is_one_copy(&a, &b) {
                    let op = Op::ImageCopy {
                        src: &a,
                        src_origin: from.origin,
                        dst: &b,
                        dst_origin: to.origin,
                        size: from.size,
                    };
                    state.record(op, how.profile)?.into_iter().collect()
                } else {
                    return self.copy_by_bytes(state, (src, from), (dst, to), total, how);
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
                    return self.copy_by_bytes(state, (src, from), (dst, to), total, how);
                }
            }
        };
        Ok(self.on_device(state, slots).into())
    }

    /// Copies a box through packed bytes.
    fn copy_by_bytes(
        &self,
        state: &mut QueueState,
        (src, from): (&Ref<Mem>, &ImageRegion),
        (dst, to): (&Ref<Mem>, &ImageRegion),
        total: u64,
        how: How,
    ) -> ClResult<Outcome> {
        let between = match self.piece(state, false, total)? {
            Ok(piece) => piece.slice(),
            Err(place) => return Ok(not_yet(place)),
        };
        // Both take the bytes where they lie: a piece is aligned for any texel.
        let mut slots = match self.image_to_slice(state, src, from, &between, how)? {
            Ok(slots) => slots,
            Err(place) => return Ok(not_yet(place)),
        };
        state.unordered_barrier()?;
        if let Ok(more) = self.slice_to_image(state, dst, to, &between, how)? {
            slots.extend(more);
        }
        Ok(self.on_device(state, slots).into())
    }

    fn fill_image(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        at: &ImageRegion,
        pixel: &[u8],
        how: How,
    ) -> ClResult<Outcome> {
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
            return Ok(self.on_device(state, slots).into());
        }
        let image = mem.texels(index)?;
        let row = u64::from(at.size[0]) * element as u64;
        let parts = split(at.size, element, FILL.max(row));
        let largest = parts.iter().map(|part| volume(part.size, element)).max();
        let piece = match self.piece(state, true, largest.unwrap_or(row))? {
            Ok(piece) => piece,
            Err(place) => return Ok(not_yet(place)),
        };
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
        Ok(self.on_device(state, slots).into())
    }
}
