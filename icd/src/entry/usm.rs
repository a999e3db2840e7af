//! cl_intel_unified_shared_memory.

use super::enqueue::Tail;
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_bool, cl_event, cl_mem_advice_intel, cl_mem_info_intel, cl_mem_migration_flags,
    cl_mem_properties_intel, cl_uint,
};
use pumice_runtime::command;
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::handle::Ref;
use pumice_runtime::object::context::Context;
use pumice_runtime::object::device::Device;
use pumice_runtime::object::svm;
use pumice_runtime::object::svm_types::SvmType;
use pumice_runtime::object::usm;
use pumice_runtime::queue::{self, Queue};
use std::ffi::c_void;

fn alloc(
    context: Handle,
    place: impl FnOnce() -> ClResult<(SvmType, Option<Ref<Device>>)>,
    properties: In<cl_mem_properties_intel>,
    size: usize,
    alignment: cl_uint,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let list = abi::properties(properties).unwrap_or_default();
    let made = usm::alloc(&context, place()?, &list, size, alignment)?;
    Ok(made.address as *mut c_void)
}

pub fn host_alloc(
    context: Handle,
    properties: In<cl_mem_properties_intel>,
    size: usize,
    alignment: cl_uint,
) -> ClResult<*mut c_void> {
    alloc(
        context,
        || Ok((SvmType::Host, None)),
        properties,
        size,
        alignment,
    )
}

pub fn device_alloc(
    context: Handle,
    device: Handle,
    properties: In<cl_mem_properties_intel>,
    size: usize,
    alignment: cl_uint,
) -> ClResult<*mut c_void> {
    let place = || Ok((SvmType::Device, Some(device.object::<Device>()?)));
    alloc(context, place, properties, size, alignment)
}

pub fn shared_alloc(
    context: Handle,
    device: Handle,
    properties: In<cl_mem_properties_intel>,
    size: usize,
    alignment: cl_uint,
) -> ClResult<*mut c_void> {
    let place = || {
        let device = (!device.is_null()).then(|| device.object::<Device>());
        Ok((SvmType::Shared, device.transpose()?))
    };
    alloc(context, place, properties, size, alignment)
}

pub fn free(context: Handle, pointer: Handle) -> ClResult {
    let context = context.object::<Context>()?;
    let address = pointer.as_ptr() as usize;
    usm::check_free(&context, address)?;
    svm::free(&context, address);
    Ok(())
}

pub fn blocking_free(context: Handle, pointer: Handle) -> ClResult {
    let context = context.object::<Context>()?;
    let address = pointer.as_ptr() as usize;
    usm::check_free(&context, address)?;
    queue::finish_all(&context)?;
    svm::free(&context, address);
    Ok(())
}

pub fn get_info(
    context: Handle,
    pointer: In<c_void>,
    param: cl_mem_info_intel,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let context = context.object::<Context>()?;
    usm::info(
        &context,
        pointer.address(),
        param,
        abi::info(size, value, size_ret),
    )
    .map(drop)
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
    let Some(pattern) = pattern.bytes(pattern_size).filter(|p| !p.is_empty()) else {
        return err(cl::CL_INVALID_VALUE, "no pattern");
    };
    let kind = cl::CL_COMMAND_MEMFILL_INTEL;
    let command = abi::mem_fill(&queue.target, pointer, pattern, size, kind)?;
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
    let kind = cl::CL_COMMAND_MEMCPY_INTEL;
    let command = abi::memcpy(&queue.target, dst, src, size, kind)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

pub fn enqueue_migrate(
    queue: Handle,
    pointer: In<c_void>,
    _size: usize,
    flags: cl_mem_migration_flags,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let known = cl::CL_MIGRATE_MEM_OBJECT_HOST | cl::CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    if flags & !known != 0 {
        return err(cl::CL_INVALID_VALUE, "unknown migration flags");
    }
    let command = command::svm::hint(pointer.as_ptr(), cl::CL_COMMAND_MIGRATEMEM_INTEL)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

/// Enqueues no work, as no advice is defined; 0 is none.
pub fn enqueue_advise(
    queue: Handle,
    pointer: In<c_void>,
    _size: usize,
    advice: cl_mem_advice_intel,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    if advice != 0 {
        return err(cl::CL_INVALID_VALUE, "unknown advice");
    }
    let command = command::svm::hint(pointer.as_ptr(), cl::CL_COMMAND_MEMADVISE_INTEL)?;
    Tail { count, list, event }.submit(&queue, command, false)
}
