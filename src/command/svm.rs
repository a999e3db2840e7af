//! Commands on pointers: shared virtual memory (OpenCL API specification, section 5.6).
//!
//! Pointers are looked up among the allocations of the context. What lies in none is memory of the host: the host copies
//! and fills it, which needs no support of the device.

use super::{check_map_flags, migration, Command, HostSide, QueueTarget, Work};
use crate::backend::BufferCopy;
use crate::cl::{self, cl_command_type, cl_map_flags, cl_mem_migration_flags};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::callback::{Callback, FreeFn};
use crate::object::mem::host_work::{HostCopy, HostFill};
use crate::object::mem::Mem;
use crate::object::svm::{self, Allocation, Free};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

/// Fails with CL_INVALID_OPERATION where the device does not support shared virtual memory.
fn check_device(target: &QueueTarget) -> ClResult {
    if svm::supported(&target.device) {
        return Ok(());
    }
    err(
        cl::CL_INVALID_OPERATION,
        "the device does not support shared virtual memory",
    )
}

fn not_null(pointer: *const c_void) -> ClResult<usize> {
    begin(pointer, 1)
}

/// Returns where a range begins, which may be at NULL if it is empty (cl_khr_unified_svm).
fn begin(pointer: *const c_void, size: usize) -> ClResult<usize> {
    if pointer.is_null() && size != 0 {
        return err(cl::CL_INVALID_VALUE, "a pointer is null");
    }
    Ok(pointer as usize)
}

/// Returns the allocation that a range begins in, and where.
fn find(
    target: &QueueTarget,
    address: usize,
    size: usize,
) -> ClResult<Option<(Arc<Allocation>, usize)>> {
    let found = target.context.allocations.find(address);
    if let Some((allocation, offset)) = &found {
        if size > allocation.size - offset {
            return err(
                cl::CL_INVALID_VALUE,
                "the range reaches beyond the allocation that it begins in",
            );
        }
    }
    Ok(found)
}

/// Implements clEnqueueSVMMemcpy, and the same of extensions, by `kind`.
///
/// # Safety
/// Where they lie in no allocation, `src` must be readable and `dst` writable for `size` bytes until the command has
/// completed.
pub unsafe fn memcpy(
    target: &QueueTarget,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: cl_command_type,
) -> ClResult<Command> {
    let (dst, src) = (begin(dst, size)?, begin(src, size)?);
    let ends = (dst.checked_add(size), src.checked_add(size));
    let (Some(dst_end), Some(src_end)) = ends else {
        return err(cl::CL_INVALID_VALUE, "the size is too large");
    };
    if dst < src_end && src < dst_end {
        return err(cl::CL_MEM_COPY_OVERLAP, "source and destination overlap");
    }
    let to = find(target, dst, size)?;
    let from = find(target, src, size)?;
    if size == 0 {
        return Ok(Command::new(kind, Work::Marker));
    }
    let length = size as u64;
    let work = match (&from, &to) {
        (Some((from, src)), Some((to, dst))) => Work::Copy {
            src: from.mem.clone(),
            dst: to.mem.clone(),
            region: BufferCopy::linear(*src as u64, *dst as u64, length),
        },
        (Some((allocation, offset)), None) | (None, Some((allocation, offset))) => {
            let write = to.is_some();
            let region = BufferCopy::linear(*offset as u64, 0, length);
            Work::Transfer {
                mem: allocation.mem.clone(),
                host: HostSide::of(target, if write { src } else { dst }, &region),
                region,
                write,
            }
        }
        // SAFETY: the caller's promise is passed on.
        (None, None) => Work::Host(Arc::new(unsafe { HostCopy::new(dst, src, size) })),
    };
    Ok(Command::new(kind, work))
}

/// Implements clEnqueueSVMMemFill, and the same of extensions. `pattern` has at least one byte.
///
/// # Safety
/// Where it lies in no allocation, `pointer` must be writable for `size` bytes until the command has completed.
pub unsafe fn fill(
    target: &QueueTarget,
    pointer: *mut c_void,
    pattern: &[u8],
    size: usize,
    kind: cl_command_type,
) -> ClResult<Command> {
    let address = begin(pointer, size)?;
    let length = pattern.len();
    if !length.is_power_of_two() || length > 128 {
        return err(
            cl::CL_INVALID_VALUE,
            "the pattern size is not a power of two up to 128",
        );
    }
    if !address.is_multiple_of(length) || !size.is_multiple_of(length) {
        return err(
            cl::CL_INVALID_VALUE,
            "pointer or size is not a multiple of the pattern size",
        );
    }
    let work = match find(target, address, size)? {
        _ if size == 0 => Work::Marker,
        Some((allocation, offset)) => Work::Fill {
            mem: allocation.mem.clone(),
            offset: offset as u64,
            size: size as u64,
            pattern: pattern.into(),
        },
        // SAFETY: the caller's promise is passed on.
        None => Work::Host(Arc::new(unsafe { HostFill::new(address, size, pattern) })),
    };
    Ok(Command::new(kind, work))
}

/// Implements clEnqueueSVMMemcpy.
///
/// # Safety
/// As for [`memcpy`].
pub unsafe fn svm_memcpy(
    target: &QueueTarget,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> ClResult<Command> {
    check_device(target)?;
    // SAFETY: the caller's promise is passed on.
    unsafe { memcpy(target, dst, src, size, cl::CL_COMMAND_SVM_MEMCPY) }
}

/// Implements clEnqueueSVMMemFill.
///
/// # Safety
/// As for [`fill`].
pub unsafe fn svm_fill(
    target: &QueueTarget,
    pointer: *mut c_void,
    pattern: &[u8],
    size: usize,
) -> ClResult<Command> {
    check_device(target)?;
    // SAFETY: the caller's promise is passed on.
    unsafe { fill(target, pointer, pattern, size, cl::CL_COMMAND_SVM_MEMFILL) }
}

/// Implements clEnqueueSVMMap. Memory of the host is mapped always.
pub fn map(
    target: &QueueTarget,
    flags: cl_map_flags,
    pointer: *mut c_void,
    size: usize,
) -> ClResult<Command> {
    check_device(target)?;
    let address = not_null(pointer)?;
    if size == 0 {
        return err(cl::CL_INVALID_VALUE, "the size is 0");
    }
    check_map_flags(flags)?;
    let kind = cl::CL_COMMAND_SVM_MAP;
    let Some((allocation, offset)) = find(target, address, size)? else {
        return Ok(Command::new(kind, Work::Marker));
    };
    let mem = allocation.mem.clone();
    let mapping = mem.map_shared(flags, offset, size);
    Ok(Command::new(kind, Work::Map { mem, mapping }))
}

/// Implements clEnqueueSVMUnmap. What is not mapped needs nothing.
pub fn unmap(target: &QueueTarget, pointer: *mut c_void) -> ClResult<Command> {
    check_device(target)?;
    let address = not_null(pointer)?;
    let kind = cl::CL_COMMAND_SVM_UNMAP;
    let found = target.context.allocations.find(address);
    let mapped = found.and_then(|(allocation, _)| {
        let mem = allocation.mem.clone();
        let mapping = mem.unmap(address).ok()?;
        Some(Work::Unmap { mem, mapping })
    });
    Ok(Command::new(kind, mapped.unwrap_or(Work::Marker)))
}

/// Implements clEnqueueSVMFree. An application that passes a function frees the memory itself, with
/// the queue's handle as argument of the function.
pub fn free(
    target: &QueueTarget,
    pointers: Vec<usize>,
    callback: Option<(Callback<FreeFn>, usize)>,
) -> ClResult<Command> {
    check_device(target)?;
    let work = Free {
        context: target.context.clone(),
        pointers,
        callback,
    };
    Ok(Command::new(
        cl::CL_COMMAND_SVM_FREE,
        Work::Host(Arc::new(work)),
    ))
}

/// Implements clEnqueueSVMMigrateMem: ranges of allocations, where a size of 0 stands for the
/// whole. Memory of the host stays where it is, as do empty ranges of none.
pub fn migrate(
    target: &QueueTarget,
    ranges: &[(usize, usize)],
    flags: cl_mem_migration_flags,
) -> ClResult<Command> {
    check_device(target)?;
    if ranges.is_empty() {
        return err(cl::CL_INVALID_VALUE, "no pointers");
    }
    let touch = migration(flags)?;
    let system = target.device.svm_capabilities() & cl::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0;
    let mut parts: Vec<(Ref<Mem>, Range<u64>)> = Vec::with_capacity(ranges.len());
    for (address, size) in ranges {
        match find(target, *address, *size)? {
            Some((allocation, offset)) => {
                let range = match size {
                    0 => 0..allocation.size as u64,
                    size => offset as u64..(offset + size) as u64,
                };
                parts.push((allocation.mem.clone(), range));
            }
            None if *size == 0 || system => (),
            None => {
                return err(
                    cl::CL_INVALID_VALUE,
                    "a pointer is in no allocation of the context",
                )
            }
        }
    }
    Ok(Command::new(
        cl::CL_COMMAND_SVM_MIGRATE_MEM,
        Work::Migrate { parts, touch },
    ))
}

/// Implements clEnqueueMigrateMemINTEL, clEnqueueMemAdviseINTEL: nothing to do where allocations do
/// not move.
pub fn hint(pointer: *const c_void, kind: cl_command_type) -> ClResult<Command> {
    not_null(pointer)?;
    Ok(Command::new(kind, Work::Marker))
}
