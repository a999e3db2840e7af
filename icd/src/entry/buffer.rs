//! Buffers, and what all memory objects have in common.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_buffer_create_type, cl_buffer_region, cl_mem_flags, cl_mem_info, cl_mem_properties,
};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::handle;
use pumice_runtime::object::callback::{Callback, ObjectFn};
use pumice_runtime::object::context::Context;
use pumice_runtime::object::info::Info;
use pumice_runtime::object::mem::Mem;
use std::ffi::c_void;

pub fn create(
    context: Handle,
    flags: cl_mem_flags,
    size: usize,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    let context = context.object::<Context>()?;
    abi::publish(abi::buffer(&context, Vec::new(), flags, size, host_ptr))
}

pub fn create_with_properties(
    context: Handle,
    properties: In<cl_mem_properties>,
    flags: cl_mem_flags,
    size: usize,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    let context = context.object::<Context>()?;
    let properties = abi::properties(properties).unwrap_or_default();
    abi::publish(abi::buffer(&context, properties, flags, size, host_ptr))
}

pub fn create_sub_buffer(
    buffer: Handle,
    flags: cl_mem_flags,
    create_type: cl_buffer_create_type,
    create_info: In<c_void>,
) -> ClResult<*mut c_void> {
    let buffer = buffer.object::<Mem>()?;
    if create_type != cl::CL_BUFFER_CREATE_TYPE_REGION {
        return err(
            cl::CL_INVALID_VALUE,
            format!("buffer_create_type {create_type:#x}"),
        );
    }
    let Some(region) = create_info.cast::<cl_buffer_region>().get() else {
        return err(cl::CL_INVALID_VALUE, "buffer_create_info is NULL");
    };
    abi::publish(Mem::sub_buffer(&buffer, flags, region.origin, region.size))
}

pub fn retain(mem: Handle) -> ClResult {
    handle::retain::<Mem>(mem.as_ptr())
}

pub fn release(mem: Handle) -> ClResult {
    handle::release::<Mem>(mem.as_ptr())
}

pub fn get_info(
    mem: Handle,
    param: cl_mem_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    mem.object::<Mem>()?
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}

pub fn set_destructor_callback(
    mem: Handle,
    notify: Option<ObjectFn>,
    user_data: Handle,
) -> ClResult {
    let mem = mem.object::<Mem>()?;
    let Some(notify) = notify else {
        return err(cl::CL_INVALID_VALUE, "pfn_notify is NULL");
    };
    mem.add_destructor(Callback::new(notify, user_data.as_ptr()));
    Ok(())
}
