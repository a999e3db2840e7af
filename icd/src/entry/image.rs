//! Images. No device supports them yet: creation fails as the specification asks of such devices, no handle can name
//! an image, and no format is supported.

use crate::abi::{Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_bool, cl_event, cl_image_desc, cl_image_format, cl_image_info, cl_map_flags,
    cl_mem_flags, cl_mem_object_type, cl_mem_properties, cl_uint,
};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::object::context::Context;
use pumice_runtime::object::mem::buffer::check_flags;
use pumice_runtime::object::mem::Mem;
use pumice_runtime::queue::Queue;
use std::ffi::c_void;

fn unsupported<T>(context: Handle) -> ClResult<T> {
    context.object::<Context>()?;
    err(
        cl::CL_INVALID_OPERATION,
        "no device of the context supports images",
    )
}

fn not_an_image<T>(mem: Handle) -> ClResult<T> {
    mem.object::<Mem>()?;
    err(cl::CL_INVALID_MEM_OBJECT, "not an image")
}

fn enqueue<T>(queue: Handle, image: Handle) -> ClResult<T> {
    queue.object::<Queue>()?;
    not_an_image(image)
}

pub fn create(
    context: Handle,
    _flags: cl_mem_flags,
    _format: In<cl_image_format>,
    _desc: In<cl_image_desc>,
    _host_ptr: Handle,
) -> ClResult<*mut c_void> {
    unsupported(context)
}

pub fn create_with_properties(
    context: Handle,
    _properties: In<cl_mem_properties>,
    _flags: cl_mem_flags,
    _format: In<cl_image_format>,
    _desc: In<cl_image_desc>,
    _host_ptr: Handle,
) -> ClResult<*mut c_void> {
    unsupported(context)
}

pub fn create_2d(
    context: Handle,
    _flags: cl_mem_flags,
    _format: In<cl_image_format>,
    _width: usize,
    _height: usize,
    _row_pitch: usize,
    _host_ptr: Handle,
) -> ClResult<*mut c_void> {
    unsupported(context)
}

#[allow(clippy::too_many_arguments)]
pub fn create_3d(
    context: Handle,
    _flags: cl_mem_flags,
    _format: In<cl_image_format>,
    _width: usize,
    _height: usize,
    _depth: usize,
    _row_pitch: usize,
    _slice_pitch: usize,
    _host_ptr: Handle,
) -> ClResult<*mut c_void> {
    unsupported(context)
}

pub fn get_supported_formats(
    context: Handle,
    flags: cl_mem_flags,
    image_type: cl_mem_object_type,
    entries: cl_uint,
    formats: Out<cl_image_format>,
    count: Out<cl_uint>,
) -> ClResult {
    context.object::<Context>()?;
    check_flags(flags & !cl::CL_MEM_KERNEL_READ_AND_WRITE)?;
    if !(cl::CL_MEM_OBJECT_IMAGE2D..=cl::CL_MEM_OBJECT_IMAGE1D_BUFFER).contains(&image_type) {
        return err(cl::CL_INVALID_VALUE, format!("image type {image_type:#x}"));
    }
    if entries == 0 && !formats.is_null() {
        return err(cl::CL_INVALID_VALUE, "num_entries is 0");
    }
    count.set(0);
    Ok(())
}

pub fn get_info(
    image: Handle,
    _param: cl_image_info,
    _size: usize,
    _value: Out<c_void>,
    _size_ret: Out<usize>,
) -> ClResult {
    not_an_image(image)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_read(
    queue: Handle,
    image: Handle,
    _blocking: cl_bool,
    _origin: In<usize>,
    _region: In<usize>,
    _row_pitch: usize,
    _slice_pitch: usize,
    _ptr: Handle,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    enqueue(queue, image)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_write(
    queue: Handle,
    image: Handle,
    _blocking: cl_bool,
    _origin: In<usize>,
    _region: In<usize>,
    _row_pitch: usize,
    _slice_pitch: usize,
    _ptr: In<c_void>,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    enqueue(queue, image)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_copy(
    queue: Handle,
    src: Handle,
    _dst: Handle,
    _src_origin: In<usize>,
    _dst_origin: In<usize>,
    _region: In<usize>,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    enqueue(queue, src)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_copy_to_buffer(
    queue: Handle,
    src: Handle,
    _dst: Handle,
    _src_origin: In<usize>,
    _region: In<usize>,
    _dst_offset: usize,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    enqueue(queue, src)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_copy_from_buffer(
    queue: Handle,
    _src: Handle,
    dst: Handle,
    _src_offset: usize,
    _dst_origin: In<usize>,
    _region: In<usize>,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    enqueue(queue, dst)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_map(
    queue: Handle,
    image: Handle,
    _blocking: cl_bool,
    _flags: cl_map_flags,
    _origin: In<usize>,
    _region: In<usize>,
    _row_pitch: Out<usize>,
    _slice_pitch: Out<usize>,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult<*mut c_void> {
    enqueue(queue, image)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_fill(
    queue: Handle,
    image: Handle,
    _color: In<c_void>,
    _origin: In<usize>,
    _region: In<usize>,
    _num_events: cl_uint,
    _wait_list: In<cl_event>,
    _event: Out<cl_event>,
) -> ClResult {
    enqueue(queue, image)
}
