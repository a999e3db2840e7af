//! Reads, writes, copies and fills of buffers, linear and rectangular.

use super::rect::{self, Side};
use super::{check_host, Command, HostSide, QueueTarget, Work};
use crate::backend::BufferCopy;
use crate::cl::{self, cl_command_type};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::mem::Mem;
use std::ffi::c_void;
use std::sync::Arc;

fn check_range(mem: &Ref<Mem>, offset: usize, size: usize) -> ClResult {
    if offset.checked_add(size).is_none_or(|end| end > mem.size) {
        return err(cl::CL_INVALID_VALUE, "the region is out of bounds");
    }
    Ok(())
}

/// Creates a transfer of a region from an object to memory of the host, or back. Put in place, as [`HostSide::of`] says.
#[inline(always)]
fn transfer(
    target: &QueueTarget,
    mem: Ref<Mem>,
    region: BufferCopy,
    pointer: *const c_void,
    write: bool,
    kind: cl_command_type,
) -> ClResult<Command> {
    if pointer.is_null() {
        return err(cl::CL_INVALID_VALUE, "the host pointer is null");
    }
    mem.check_alignment(&target.device)?;
    check_host(&mem, !write, write)?;
    if region.bytes == 0 {
        return Ok(Command::new(kind, Work::Marker));
    }
    let host = HostSide::of(target, pointer as usize, &region);
    Ok(Command::new(
        kind,
        Work::Transfer {
            mem,
            host,
            region,
            write,
        },
    ))
}

/// Implements clEnqueueReadBuffer.
///
/// # Safety
/// `pointer` must be writable for `size` bytes until the command has completed.
pub unsafe fn read(
    target: &QueueTarget,
    mem: Ref<Mem>,
    offset: usize,
    size: usize,
    pointer: *mut c_void,
) -> ClResult<Command> {
    target.check_buffer(&mem)?;
    check_range(&mem, offset, size)?;
    let region = BufferCopy::linear(offset as u64, 0, size as u64);
    transfer(
        target,
        mem,
        region,
        pointer,
        false,
        cl::CL_COMMAND_READ_BUFFER,
    )
}

/// Implements clEnqueueWriteBuffer.
///
/// # Safety
/// `pointer` must be readable for `size` bytes until the command has completed.
pub unsafe fn write(
    target: &QueueTarget,
    mem: Ref<Mem>,
    offset: usize,
    size: usize,
    pointer: *const c_void,
) -> ClResult<Command> {
    target.check_buffer(&mem)?;
    check_range(&mem, offset, size)?;
    let region = BufferCopy::linear(offset as u64, 0, size as u64);
    transfer(
        target,
        mem,
        region,
        pointer,
        true,
        cl::CL_COMMAND_WRITE_BUFFER,
    )
}

/// The sides and the size of a rectangular transfer, as the application gives them.
#[derive(Debug, Clone, Copy)]
pub struct Rect {
    /// The side in the buffer (the source, for copies).
    pub buffer: Side,
    /// The side in host memory (the destination, for copies).
    pub other: Side,
    /// Bytes, rows, slices.
    pub region: [usize; 3],
}

/// Returns the region of a rectangular transfer from an object to the host.
fn rect_region(target: &QueueTarget, mem: &Ref<Mem>, rect: &Rect) -> ClResult<BufferCopy> {
    target.check_buffer(mem)?;
    let side = rect::place(&rect.buffer, rect.region)?;
    let host = rect::place(&rect.other, rect.region)?;
    if side.end > mem.size as u64 {
        return err(cl::CL_INVALID_VALUE, "the region is out of bounds");
    }
    Ok(rect::region(&side, &host, rect.region))
}

/// Implements clEnqueueReadBufferRect.
///
/// # Safety
/// `pointer` must be writable wherever the region of the host side lies, until the command has completed.
pub unsafe fn read_rect(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    rect: &Rect,
    pointer: *mut c_void,
) -> ClResult<Command> {
    let region = rect_region(target, mem, rect)?;
    transfer(
        target,
        mem.clone(),
        region,
        pointer,
        false,
        cl::CL_COMMAND_READ_BUFFER_RECT,
    )
}

/// Implements clEnqueueWriteBufferRect.
///
/// # Safety
/// `pointer` must be readable wherever the region of the host side lies, until the command has completed.
pub unsafe fn write_rect(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    rect: &Rect,
    pointer: *const c_void,
) -> ClResult<Command> {
    let region = rect_region(target, mem, rect)?;
    transfer(
        target,
        mem.clone(),
        region,
        pointer,
        true,
        cl::CL_COMMAND_WRITE_BUFFER_RECT,
    )
}

/// Implements clEnqueueCopyBuffer.
pub fn copy(
    target: &QueueTarget,
    src: &Ref<Mem>,
    dst: &Ref<Mem>,
    src_offset: usize,
    dst_offset: usize,
    size: usize,
) -> ClResult<Command> {
    target.check_buffer(src)?;
    target.check_buffer(dst)?;
    src.check_alignment(&target.device)?;
    dst.check_alignment(&target.device)?;
    check_range(src, src_offset, size)?;
    check_range(dst, dst_offset, size)?;
    dst.check_written()?;
    if Arc::ptr_eq(&src.store, &dst.store) {
        let (a, b) = (src.origin + src_offset, dst.origin + dst_offset);
        if a < b + size && b < a + size && size > 0 {
            return err(cl::CL_MEM_COPY_OVERLAP, "source and destination overlap");
        }
    }
    if size == 0 {
        return Ok(Command::new(cl::CL_COMMAND_COPY_BUFFER, Work::Marker));
    }
    let region = BufferCopy::linear(src_offset as u64, dst_offset as u64, size as u64);
    Ok(Command {
        kind: cl::CL_COMMAND_COPY_BUFFER,
        work: Work::Copy {
            src: src.clone(),
            dst: dst.clone(),
            region,
        },
    })
}

/// Implements clEnqueueCopyBufferRect.
pub fn copy_rect(
    target: &QueueTarget,
    src: &Ref<Mem>,
    dst: &Ref<Mem>,
    rect: &Rect,
) -> ClResult<Command> {
    target.check_buffer(src)?;
    target.check_buffer(dst)?;
    src.check_alignment(&target.device)?;
    dst.check_alignment(&target.device)?;
    dst.check_written()?;
    let from = rect::place(&rect.buffer, rect.region)?;
    let to = rect::place(&rect.other, rect.region)?;
    if from.end > src.size as u64 || to.end > dst.size as u64 {
        return err(cl::CL_INVALID_VALUE, "the region is out of bounds");
    }
    if Arc::ptr_eq(src, dst)
        && (from.row_pitch != to.row_pitch || from.slice_pitch != to.slice_pitch)
    {
        return err(cl::CL_INVALID_VALUE, "the pitches differ within one buffer");
    }
    if Arc::ptr_eq(&src.store, &dst.store) {
        let (a, b) = (
            src.origin as u64 + from.offset,
            dst.origin as u64 + to.offset,
        );
        let same_pitches = from.row_pitch == to.row_pitch && from.slice_pitch == to.slice_pitch;
        let overlap = if same_pitches {
            rect::overlaps(a, b, rect.region, from.row_pitch, from.slice_pitch)
        } else {
            // Sub-buffers of one buffer with different pitches: by the bytes they span.
            a < b + (to.end - to.offset) && b < a + (from.end - from.offset)
        };
        if overlap {
            return err(cl::CL_MEM_COPY_OVERLAP, "source and destination overlap");
        }
    }
    let region = rect::region(&from, &to, rect.region);
    Ok(Command {
        kind: cl::CL_COMMAND_COPY_BUFFER_RECT,
        work: Work::Copy {
            src: src.clone(),
            dst: dst.clone(),
            region,
        },
    })
}

/// Implements clEnqueueFillBuffer. `pattern` has at least one byte (the C edge reports a null
/// pattern).
pub fn fill(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    pattern: &[u8],
    offset: usize,
    size: usize,
) -> ClResult<Command> {
    target.check_buffer(mem)?;
    check_range(mem, offset, size)?;
    let length = pattern.len();
    if !length.is_power_of_two() || length > 128 {
        return err(
            cl::CL_INVALID_VALUE,
            "the pattern size is not a power of two up to 128",
        );
    }
    if !offset.is_multiple_of(length) || !size.is_multiple_of(length) {
        return err(
            cl::CL_INVALID_VALUE,
            "offset or size is not a multiple of the pattern size",
        );
    }
    mem.check_alignment(&target.device)?;
    mem.check_written()?;
    if size == 0 {
        return Ok(Command::new(cl::CL_COMMAND_FILL_BUFFER, Work::Marker));
    }
    let work = Work::Fill {
        mem: mem.clone(),
        offset: offset as u64,
        size: size as u64,
        pattern: pattern.into(),
    };
    Ok(Command::new(cl::CL_COMMAND_FILL_BUFFER, work))
}
