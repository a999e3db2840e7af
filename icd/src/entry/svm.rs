//! Shared virtual memory, and pipes.

use super::enqueue::Tail;
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_bool, cl_event, cl_map_flags, cl_mem_flags, cl_mem_migration_flags, cl_pipe_info,
    cl_pipe_properties, cl_svm_mem_flags, cl_uint,
};
use pumice_runtime::command;
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::object::callback::{Callback, FreeFn};
use pumice_runtime::object::context::Context;
use pumice_runtime::object::mem::Mem;
use pumice_runtime::object::svm;
use pumice_runtime::queue::Queue;
use std::ffi::c_void;

pub fn create_pipe(
    context: Handle,
    flags: cl_mem_flags,
    packet_size: cl_uint,
    max_packets: cl_uint,
    properties: In<cl_pipe_properties>,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let properties = abi::properties(properties);
    abi::publish(Mem::pipe(
        &context,
        flags,
        packet_size,
        max_packets,
        properties.as_deref(),
    ))
}

pub fn get_pipe_info(
    pipe: Handle,
    param: cl_pipe_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    pipe.object::<Mem>()?
        .pipe_info(param, abi::info(size, value, size_ret))
        .map(drop)
}

/// Allocates shared virtual memory. NULL, without a code, reports an error.
pub fn alloc(
    context: Handle,
    flags: cl_svm_mem_flags,
    size: usize,
    alignment: cl_uint,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let made = svm::alloc(&context, flags, size, alignment)?;
    Ok(made.address as *mut c_void)
}

pub fn free(context: Handle, pointer: Handle) -> ClResult {
    let context = context.object::<Context>()?;
    svm::free(&context, pointer.as_ptr() as usize);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_free(
    queue: Handle,
    num_pointers: cl_uint,
    pointers: Out<*mut c_void>,
    free: Option<FreeFn>,
    user_data: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let handle = queue.as_ptr() as usize;
    let queue = queue.object::<Queue>()?;
    if (num_pointers == 0) != pointers.is_null() {
        return err(
            cl::CL_INVALID_VALUE,
            "the pointers and their number do not fit together",
        );
    }
    let pointers = pointers.input().array(num_pointers as usize);
    let pointers = pointers.unwrap_or_default().into_iter();
    let callback = free.map(|free| (Callback::new(free, user_data.as_ptr()), handle));
    let addresses = pointers.map(|pointer| pointer as usize).collect();
    let command = command::svm::free(&queue.target, addresses, callback)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_memcpy(
    queue: Handle,
    blocking: cl_bool,
    dst: Handle,
    src: In<c_void>,
    size: usize,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let command = abi::svm_memcpy(&queue.target, dst, src, size)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

/// Returns the pattern of a fill.
pub fn pattern<'a>(pattern: In<c_void>, size: usize) -> ClResult<&'a [u8]> {
    match pattern.bytes(size) {
        Some(pattern) if size > 0 => Ok(pattern),
        _ => err(cl::CL_INVALID_VALUE, "no pattern"),
    }
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_fill(
    queue: Handle,
    pointer: Handle,
    pattern: In<c_void>,
    pattern_size: usize,
    size: usize,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let pattern = self::pattern(pattern, pattern_size)?;
    let command = abi::svm_fill(&queue.target, pointer, pattern, size)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_map(
    queue: Handle,
    blocking: cl_bool,
    flags: cl_map_flags,
    pointer: Handle,
    size: usize,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    // Before anything is entered as mapped.
    abi::wait_list(count, list)?;
    let command = command::svm::map(&queue.target, flags, pointer.as_ptr(), size)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

pub fn enqueue_unmap(
    queue: Handle,
    pointer: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    abi::wait_list(count, list)?;
    let command = command::svm::unmap(&queue.target, pointer.as_ptr())?;
    Tail { count, list, event }.submit(&queue, command, false)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_migrate(
    queue: Handle,
    num_pointers: cl_uint,
    pointers: Out<*const c_void>,
    sizes: In<usize>,
    flags: cl_mem_migration_flags,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let length = num_pointers as usize;
    let pointers = pointers.input().array(length).unwrap_or_default();
    let sizes = sizes.array(length).unwrap_or_else(|| vec![0; length]);
    let ranges: Vec<(usize, usize)> = pointers
        .into_iter()
        .map(|pointer| pointer as usize)
        .zip(sizes)
        .collect();
    let command = command::svm::migrate(&queue.target, &ranges, flags)?;
    Tail { count, list, event }.submit(&queue, command, false)
}
