//! Reads, writes, copies and fills of buffers, linear and rectangular.

use super::rect::{self, Side};
use super::{Command, HostSide, QueueTarget, Work};
use crate::backend::BufferCopy;
use crate::cl;
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::mem::Mem;
use std::ffi::c_void;
use std::sync::Arc;

fn check_host_read(mem: &Ref<Mem>) -> ClResult {
    if mem.flags & (cl::CL_MEM_HOST_WRITE_ONLY | cl::CL_MEM_HOST_NO_ACCESS) != 0 {
        return err(
            cl::CL_INVALID_OPERATION,
            "the host may not read this buffer",
        );
    }
    Ok(())
}

fn check_host_write(mem: &Ref<Mem>) -> ClResult {
    if mem.flags & (cl::CL_MEM_HOST_READ_ONLY | cl::CL_MEM_HOST_NO_ACCESS) != 0 {
        return err(
            cl::CL_INVALID_OPERATION,
            "the host may not write this buffer",
        );
    }
    mem.check_written()
}

fn check_range(mem: &Ref<Mem>, offset: usize, size: usize) -> ClResult {
    if offset.checked_add(size).is_none_or(|end| end > mem.size) {
        return err(cl::CL_INVALID_VALUE, "the region is out of bounds");
    }
    Ok(())
}

fn host(pointer: *const c_void) -> ClResult<usize> {
    if pointer.is_null() {
        return err(cl::CL_INVALID_VALUE, "the host pointer is null");
    }
    Ok(pointer as usize)
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
    let host = host(pointer)?;
    mem.check_alignment(&target.device)?;
    check_host_read(&mem)?;
    if size == 0 {
        return Ok(Command::new(cl::CL_COMMAND_READ_BUFFER, Work::Marker));
    }
    let region = BufferCopy::linear(offset as u64, 0, size as u64);
    Ok(Command {
        kind: cl::CL_COMMAND_READ_BUFFER,
        work: Work::Read {
            mem,
            host: HostSide::destination(target, host, &region),
            region,
        },
    })
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
    let host = host(pointer)?;
    mem.check_alignment(&target.device)?;
    check_host_write(&mem)?;
    if size == 0 {
        return Ok(Command::new(cl::CL_COMMAND_WRITE_BUFFER, Work::Marker));
    }
    let region = BufferCopy::linear(0, offset as u64, size as u64);
    Ok(Command {
        kind: cl::CL_COMMAND_WRITE_BUFFER,
        work: Work::Write {
            mem,
            host: HostSide::source(target, host, &region),
            region,
        },
    })
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
    target.check_buffer(mem)?;
    let src = rect::place(&rect.buffer, rect.region)?;
    let dst = rect::place(&rect.other, rect.region)?;
    if src.end > mem.size as u64 {
        return err(cl::CL_INVALID_VALUE, "the region is out of bounds");
    }
    let host = host(pointer)?;
    mem.check_alignment(&target.device)?;
    check_host_read(mem)?;
    let region = rect::region(&src, &dst, rect.region);
    Ok(Command {
        kind: cl::CL_COMMAND_READ_BUFFER_RECT,
        work: Work::Read {
            mem: mem.clone(),
            host: HostSide::destination(target, host, &region),
            region,
        },
    })
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
    target.check_buffer(mem)?;
    let dst = rect::place(&rect.buffer, rect.region)?;
    let src = rect::place(&rect.other, rect.region)?;
    if dst.end > mem.size as u64 {
        return err(cl::CL_INVALID_VALUE, "the region is out of bounds");
    }
    let host = host(pointer)?;
    mem.check_alignment(&target.device)?;
    check_host_write(mem)?;
    let region = rect::region(&src, &dst, rect.region);
    Ok(Command {
        kind: cl::CL_COMMAND_WRITE_BUFFER_RECT,
        work: Work::Write {
            mem: mem.clone(),
            host: HostSide::source(target, host, &region),
            region,
        },
    })
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
