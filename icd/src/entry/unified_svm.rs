//! cl_khr_unified_svm.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_svm_alloc_properties_khr, cl_svm_capabilities_khr, cl_svm_free_flags_khr,
    cl_svm_free_properties_khr, cl_svm_pointer_info_khr, cl_uint,
};
use pumice_runtime::error::{ensure, ClResult};
use pumice_runtime::object::context::Context;
use pumice_runtime::object::device::Device;
use pumice_runtime::object::unified_svm;
use std::ffi::c_void;

/// Allocates memory of a type. NULL, without an error, for 0 bytes.
pub fn alloc(
    context: Handle,
    properties: In<cl_svm_alloc_properties_khr>,
    index: cl_uint,
    size: usize,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let list = abi::properties(properties).unwrap_or_default();
    let made = unified_svm::alloc(&context, &list, index, size)?;
    Ok(made.map_or(0, |made| made.address) as *mut c_void)
}

pub fn free(
    context: Handle,
    properties: In<cl_svm_free_properties_khr>,
    flags: cl_svm_free_flags_khr,
    pointer: Handle,
) -> ClResult {
    let context = context.object::<Context>()?;
    let list = abi::properties(properties).unwrap_or_default();
    unified_svm::free_with(&context, &list, flags, pointer.as_ptr() as usize)
}

pub fn get_info(
    context: Handle,
    device: Handle,
    pointer: In<c_void>,
    param: cl_svm_pointer_info_khr,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let context = context.object::<Context>()?;
    let device = match device.is_null() {
        true => None,
        false => Some(device.object::<Device>()?),
    };
    let out = abi::info(size, value, size_ret);
    unified_svm::info(&context, device.as_ref(), pointer.address(), param, out).map(drop)
}

pub fn get_suggested_type(
    context: Handle,
    required: cl_svm_capabilities_khr,
    desired: cl_svm_capabilities_khr,
    properties: In<cl_svm_alloc_properties_khr>,
    size: usize,
    index: Out<cl_uint>,
) -> ClResult {
    let context = context.object::<Context>()?;
    ensure!(
        !index.is_null(),
        cl::CL_INVALID_VALUE,
        "suggested_svm_type_index is null"
    );
    let list = abi::properties(properties).unwrap_or_default();
    index.set(unified_svm::suggested_type(
        &context, required, desired, &list, size,
    )?);
    Ok(())
}
