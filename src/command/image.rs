//! Commands on images: reads, writes, copies, fills and maps.

use super::{check_host, check_map_access, check_map_flags, Command, HostSide, QueueTarget, Work};
use crate::backend::image::{ImageDim, ImageRegion};
use crate::backend::BufferCopy;
use crate::cl::{self, cl_command_type, cl_map_flags};
use crate::error::{ensure, err, ClResult};
use crate::handle::Ref;
use crate::object::mem::image::{Backing, MemImage};
use crate::object::mem::transfer::volume;
use crate::object::mem::{pixel, Mem};
use std::ffi::c_void;
use std::sync::Arc;

fn invalid<T>(what: &'static str) -> ClResult<T> {
    err(cl::CL_INVALID_VALUE, what)
}

/// Returns the image of an object for commands of the application, which are not for CL_DEPTH_STENCIL.
fn check<'a>(target: &QueueTarget, mem: &'a Ref<Mem>) -> ClResult<&'a MemImage> {
    let image = check_any(target, mem)?;
    ensure!(
        mem.depth_stencil().is_none(),
        cl::CL_INVALID_OPERATION,
        "commands do not access images of depth and stencil"
    );
    Ok(image)
}

/// Returns the image of an object that belongs to the queue's context and works on its device.
fn check_any<'a>(target: &QueueTarget, mem: &'a Ref<Mem>) -> ClResult<&'a MemImage> {
    let image = mem.image()?;
    if !Arc::ptr_eq(&mem.context, &target.context) {
        return err(
            cl::CL_INVALID_CONTEXT,
            "the image is of another context than the queue",
        );
    }
    mem.check_image(&target.device)?;
    Ok(image)
}

/// Checks that a box is within the image and consists of whole blocks. Returns it with its first
/// coordinate in blocks.
fn place(image: &MemImage, origin: [usize; 3], size: [usize; 3]) -> ClResult<ImageRegion> {
    let mut at = ImageRegion {
        origin: [0; 3],
        size: [1; 3],
    };
    let sides = at.origin.iter_mut().zip(at.size.iter_mut());
    // A part of the pixels that share bytes has no layout in host memory or in a buffer.
    let block = image.desc.format.block() as usize;
    let [x, width] = [origin[0], size[0]];
    if !x.is_multiple_of(block) || !width.is_multiple_of(block) {
        return invalid("the region cuts through pixels that share bytes");
    }
    let (origin, size) = (
        [x / block, origin[1], origin[2]],
        [width / block, size[1], size[2]],
    );
    let wanted = origin.iter().zip(&size).zip(image.extent());
    for ((to_first, to_count), ((first, count), extent)) in sides.zip(wanted) {
        let end = first.checked_add(*count);
        if *count == 0 || end.is_none_or(|end| end > extent as usize) {
            return invalid("the region is empty or out of bounds");
        }
        (*to_first, *to_count) = (*first as u32, *count as u32);
    }
    Ok(at)
}

/// Returns the rows of a box in host memory with these pitches, as destination; packed as source.
fn rows(
    image: &MemImage,
    at: &ImageRegion,
    row_pitch: usize,
    slice_pitch: usize,
) -> ClResult<BufferCopy> {
    let [width, height, depth] = at.size.map(|n| n as usize);
    let bytes = width * image.element();
    if row_pitch != 0 && row_pitch < bytes {
        return invalid("the row pitch is smaller than a row");
    }
    if slice_pitch != 0 && image.slice_pitch == 0 {
        return invalid("a slice pitch for an image without slices");
    }
    let (row, slice) = image.pitches(at.size, row_pitch, slice_pitch);
    let (y, z) = image.steps(row, slice);
    let least = if image.desc.dim == ImageDim::D1Array {
        row
    } else {
        row * height
    };
    if slice_pitch != 0 && slice < least {
        return invalid("the slice pitch is smaller than a slice");
    }
    Ok(BufferCopy {
        src_offset: 0,
        dst_offset: 0,
        bytes: bytes as u64,
        rows: height as u64,
        slices: depth as u64,
        src_row_pitch: bytes as u64,
        src_slice_pitch: (bytes * height) as u64,
        dst_row_pitch: y as u64,
        dst_slice_pitch: z as u64,
    })
}

/// Origin and region of a command.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Box3 {
    pub origin: [usize; 3],
    pub size: [usize; 3],
}

fn transfer(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    region: Box3,
    (row_pitch, slice_pitch): (usize, usize),
    pointer: *const c_void,
    write: bool,
) -> ClResult<Command> {
    let image = check(target, mem)?;
    let at = place(image, region.origin, region.size)?;
    let rows = rows(image, &at, row_pitch, slice_pitch)?;
    if pointer.is_null() {
        return invalid("the host pointer is null");
    }
    check_host(mem, !write, write)?;
    let host = HostSide::of(target, pointer as usize, &rows).by_host();
    let kind = match write {
        true => cl::CL_COMMAND_WRITE_IMAGE,
        false => cl::CL_COMMAND_READ_IMAGE,
    };
    let mem = mem.clone();
    Ok(Command::new(
        kind,
        Work::TransferImage {
            mem,
            at,
            host,
            rows,
            write,
        },
    ))
}

/// Returns the transfer of all of an image from packed rows in memory of the host of ours, or to them.
pub fn whole(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    base: usize,
    write: bool,
    kind: cl_command_type,
) -> ClResult<Command> {
    let image = check_any(target, mem)?;
    let at = ImageRegion {
        origin: [0; 3],
        size: image.extent(),
    };
    let rows = rows(image, &at, 0, 0)?;
    let (mem, host) = (mem.clone(), HostSide::private(base));
    let work = Work::TransferImage {
        mem,
        at,
        host,
        rows,
        write,
    };
    Ok(Command::new(kind, work))
}

/// Implements clEnqueueReadImage.
///
/// # Safety
/// `pointer` must be writable wherever the rows of the region lie, until the command has completed.
pub unsafe fn read(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    region: Box3,
    pitches: (usize, usize),
    pointer: *mut c_void,
) -> ClResult<Command> {
    transfer(target, mem, region, pitches, pointer, false)
}

/// Implements clEnqueueWriteImage.
///
/// # Safety
/// `pointer` must be readable wherever the rows of the region lie, until the command has completed.
pub unsafe fn write(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    region: Box3,
    pitches: (usize, usize),
    pointer: *const c_void,
) -> ClResult<Command> {
    transfer(target, mem, region, pitches, pointer, true)
}

/// Implements clEnqueueCopyImage.
pub fn copy(
    target: &QueueTarget,
    src: &Ref<Mem>,
    dst: &Ref<Mem>,
    src_origin: [usize; 3],
    dst_origin: [usize; 3],
    size: [usize; 3],
) -> ClResult<Command> {
    let (from_image, to_image) = (check(target, src)?, check(target, dst)?);
    dst.check_written()?;
    if from_image.desc.format != to_image.desc.format {
        return err(cl::CL_IMAGE_FORMAT_MISMATCH, "the formats differ");
    }
    let from = place(from_image, src_origin, size)?;
    let to = place(to_image, dst_origin, size)?;
    let same = Arc::ptr_eq(src, dst) || from_image.shares(to_image);
    if same && from.overlaps(&to) {
        return err(cl::CL_MEM_COPY_OVERLAP, "source and destination overlap");
    }
    Ok(Command {
        kind: cl::CL_COMMAND_COPY_IMAGE,
        work: Work::CopyImage {
            src: src.clone(),
            dst: dst.clone(),
            from,
            to,
        },
    })
}

/// Checks the buffer's side of a copy between image and buffer.
fn check_bytes(
    target: &QueueTarget,
    image: &Ref<Mem>,
    buffer: &Ref<Mem>,
    offset: usize,
    bytes: u64,
) -> ClResult {
    target.check_buffer(buffer)?;
    let made_of = image
        .parent()
        .is_some_and(|parent| Arc::ptr_eq(parent, buffer));
    if made_of && image.image()?.backing == Backing::Texels {
        return err(
            cl::CL_INVALID_MEM_OBJECT,
            "the image is a 1D image buffer made from that buffer",
        );
    }
    if (offset as u64)
        .checked_add(bytes)
        .is_none_or(|end| end > buffer.size as u64)
    {
        return invalid("the region is out of the buffer's bounds");
    }
    target.check(buffer)
}

/// Implements clEnqueueCopyImageToBuffer.
pub fn copy_to_buffer(
    target: &QueueTarget,
    src: &Ref<Mem>,
    dst: &Ref<Mem>,
    region: Box3,
    offset: usize,
) -> ClResult<Command> {
    let image = check(target, src)?;
    let at = place(image, region.origin, region.size)?;
    check_bytes(target, src, dst, offset, volume(at.size, image.element()))?;
    dst.check_written()?;
    Ok(Command {
        kind: cl::CL_COMMAND_COPY_IMAGE_TO_BUFFER,
        work: Work::CopyTexels {
            image: src.clone(),
            at,
            buffer: dst.clone(),
            offset: offset as u64,
            to_image: false,
        },
    })
}

/// Implements clEnqueueCopyBufferToImage.
pub fn copy_from_buffer(
    target: &QueueTarget,
    src: &Ref<Mem>,
    dst: &Ref<Mem>,
    offset: usize,
    region: Box3,
) -> ClResult<Command> {
    let image = check(target, dst)?;
    let at = place(image, region.origin, region.size)?;
    check_bytes(target, dst, src, offset, volume(at.size, image.element()))?;
    dst.check_written()?;
    Ok(Command {
        kind: cl::CL_COMMAND_COPY_BUFFER_TO_IMAGE,
        work: Work::CopyTexels {
            image: dst.clone(),
            at,
            buffer: src.clone(),
            offset: offset as u64,
            to_image: true,
        },
    })
}

/// Implements clEnqueueFillImage. `colour` has [`pixel::colour_bytes`] bytes.
pub fn fill(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    colour: &[u8],
    region: Box3,
) -> ClResult<Command> {
    let image = check(target, mem)?;
    let at = place(image, region.origin, region.size)?;
    mem.check_written()?;
    Ok(Command {
        kind: cl::CL_COMMAND_FILL_IMAGE,
        work: Work::FillImage {
            mem: mem.clone(),
            at,
            pixel: pixel::pack(image.desc.format, colour),
        },
    })
}

/// The results of clEnqueueMapImage.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Mapped {
    pub pointer: *mut c_void,
    pub row_pitch: usize,
    pub slice_pitch: usize,
}

/// Implements clEnqueueMapImage. A queue that refuses the command undoes the map.
pub fn map(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    flags: cl_map_flags,
    region: Box3,
) -> ClResult<(Command, Mapped)> {
    let image = check(target, mem)?;
    check_map_flags(flags)?;
    check_map_access(mem, flags)?;
    let at = place(image, region.origin, region.size)?;
    let mapping = mem.map_image(target.memory, flags, at)?;
    let pitches = mapping.image.map(|m| (m.row_pitch, m.slice_pitch));
    let (row_pitch, slice_pitch) = pitches.unwrap_or_default();
    let mapped = Mapped {
        pointer: mapping.pointer as *mut c_void,
        row_pitch,
        slice_pitch,
    };
    Ok((
        Command {
            kind: cl::CL_COMMAND_MAP_IMAGE as cl_command_type,
            work: Work::Map {
                mem: mem.clone(),
                mapping,
            },
        },
        mapped,
    ))
}

/// Returns the box of an image that a map shows, and the copy of its packed rows to those behind
/// the pointer of the map.
pub fn mapped_rows(
    mem: &Ref<Mem>,
    mapping: &crate::object::mem::map::Mapping,
) -> ClResult<(ImageRegion, BufferCopy)> {
    let image = mem.image()?;
    let Some(mapped) = &mapping.image else {
        return invalid("not a map of an image");
    };
    let rows = rows(image, &mapped.at, mapped.row_pitch, mapped.slice_pitch)?;
    Ok((mapped.at, rows))
}

/// Returns the rows of a box in the buffer that an image is made from, as source; packed as
/// destination. Returns `None` if the image has texels of its own.
pub fn buffer_rows(mem: &Ref<Mem>, at: &ImageRegion) -> ClResult<Option<BufferCopy>> {
    let image = mem.image()?;
    if image.backing == Backing::Own {
        return Ok(None);
    }
    let rows = image.rows(at);
    Ok(Some(BufferCopy {
        src_offset: rows.first,
        dst_offset: 0,
        bytes: rows.bytes,
        rows: rows.rows,
        slices: rows.slices,
        src_row_pitch: rows.row_pitch,
        src_slice_pitch: rows.slice_pitch,
        dst_row_pitch: rows.bytes,
        dst_slice_pitch: rows.bytes * rows.rows,
    }))
}
