//! Shared virtual memory and pipes, which no device supports yet.

use crate::abi::{Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_bool, cl_command_queue, cl_event, cl_map_flags, cl_mem_flags, cl_mem_migration_flags,
    cl_pipe_info, cl_pipe_properties, cl_svm_mem_flags, cl_uint,
};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::object::context::Context;
use pumice_runtime::object::mem::Mem;
use pumice_runtime::queue::Queue;
use std::ffi::c_void;

type FreeFunction = unsafe extern "C" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void);

fn unsupported(queue: Handle) -> ClResult {
    queue.object::<Queue>()?;
    err(
        cl::CL_INVALID_OPERATION,
        "the device does not support shared virtual memory",
    )
}

pub fn create_pipe(
    context: Handle,
    _flags: cl_mem_flags,
    _packet_size: cl_uint,
    _max_packets: cl_uint,
    _properties: In<cl_pipe_properties>,
) -> ClResult<*mut c_void> {
    context.object::<Context>()?;
    err(
        cl::CL_INVALID_OPERATION,
        "no device of the context supports pipes",
    )
}

pub fn get_pipe_info(
    pipe: Handle,
    _param: cl_pipe_info,
    _size: usize,
    _value: Out<c_void>,
    _size_ret: Out<usize>,
) -> ClResult {
    pipe.object::<Mem>()?;
    err(cl::CL_INVALID_MEM_OBJECT, "not a pipe")
}

/// NULL is the answer where no device supports shared virtual memory.
pub fn alloc(
    context: Handle,
    _flags: cl_svm_mem_flags,
    _size: usize,
    _alignment: cl_uint,
) -> ClResult<*mut c_void> {
    context.object::<Context>()?;
    err(
        cl::CL_INVALID_OPERATION,
        "no device of the context supports shared virtual memory",
    )
}

/// Nothing can have been allocated.
pub fn free(_context: Handle, _pointer: Handle) -> ClResult {
    Ok(())
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_free(
    queue: Handle,
    _count: cl_uint,
    _pointers: Out<*mut c_void>,
    _free: Option<FreeFunction>,
    _user_data: Handle,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    unsupported(queue)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_memcpy(
    queue: Handle,
    _blocking: cl_bool,
    _dst: Handle,
    _src: In<c_void>,
    _size: usize,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    unsupported(queue)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_fill(
    queue: Handle,
    _pointer: Handle,
    _pattern: In<c_void>,
    _pattern_size: usize,
    _size: usize,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    unsupported(queue)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_map(
    queue: Handle,
    _blocking: cl_bool,
    _flags: cl_map_flags,
    _pointer: Handle,
    _size: usize,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    unsupported(queue)
}

pub fn enqueue_unmap(
    queue: Handle,
    _pointer: Handle,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    unsupported(queue)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_migrate(
    queue: Handle,
    _count: cl_uint,
    _pointers: Out<*const c_void>,
    _sizes: In<usize>,
    _flags: cl_mem_migration_flags,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    unsupported(queue)
}
