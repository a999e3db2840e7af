//! Buffers, and what all memory objects have in common.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_buffer_create_type, cl_buffer_region, cl_import_properties_arm, cl_int, cl_mem_flags,
    cl_mem_info, cl_mem_properties,
};
use pumice_runtime::error::{ensure, err, ClResult};
use pumice_runtime::handle;
use pumice_runtime::object::callback::{Callback, ObjectFn};
use pumice_runtime::object::info::Info;
use pumice_runtime::object::mem::{external, Mem};
use pumice_runtime::object::properties::pairs;
use std::ffi::c_void;

pub fn create(
    context: Handle,
    flags: cl_mem_flags,
    size: usize,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    abi::publish(abi::buffer(&context, Vec::new(), flags, size, host_ptr))
}

pub fn create_with_properties(
    context: Handle,
    properties: In<cl_mem_properties>,
    flags: cl_mem_flags,
    size: usize,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let properties = abi::formed_properties(properties, external::form)?;
    abi::publish(abi::buffer(&context, properties, flags, size, host_ptr))
}

/// Implements clImportMemoryARM. The memory is that of the host, or what a file descriptor names at `memory`.
pub fn import_memory(
    context: Handle,
    flags: cl_mem_flags,
    properties: In<cl_import_properties_arm>,
    memory: Handle,
    size: usize,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let properties = abi::properties(properties).unwrap_or_default();
    let mut kind = cl::CL_IMPORT_TYPE_HOST_ARM;
    for (name, value) in pairs(&properties, cl::CL_INVALID_PROPERTY)? {
        let known = match name {
            cl::CL_IMPORT_TYPE_ARM => {
                kind = value;
                matches!(
                    value,
                    cl::CL_IMPORT_TYPE_HOST_ARM | cl::CL_IMPORT_TYPE_DMA_BUF_ARM
                )
            }
            // Handing over makes it so in any case.
            cl::CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM => matches!(value, 0 | 1),
            _ => false,
        };
        ensure!(
            known,
            cl::CL_INVALID_PROPERTY,
            "an unknown property, or its value"
        );
    }
    ensure!(!memory.is_null(), cl::CL_INVALID_VALUE, "memory is NULL");
    if kind == cl::CL_IMPORT_TYPE_HOST_ARM {
        return abi::publish(abi::import_host(&context, flags, memory, size));
    }
    let fd = memory.input().cast::<cl_int>().get().unwrap_or(-1);
    abi::publish(Mem::import_dma_buf(&context, flags, fd, size))
}

pub fn create_sub_buffer(
    buffer: Handle,
    flags: cl_mem_flags,
    create_type: cl_buffer_create_type,
    create_info: In<c_void>,
) -> ClResult<*mut c_void> {
    let buffer = buffer.object::<Mem>()?;
    buffer.context.ensure_works()?;
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
