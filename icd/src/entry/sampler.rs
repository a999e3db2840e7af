//! Samplers. Devices without images have none, so no handle can name one.

use crate::abi::{Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_addressing_mode, cl_bool, cl_filter_mode, cl_sampler_info, cl_sampler_properties,
};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::object::context::Context;
use std::ffi::c_void;

fn unsupported<T>(context: Handle) -> ClResult<T> {
    context.object::<Context>()?;
    err(
        cl::CL_INVALID_OPERATION,
        "no device of the context supports images",
    )
}

fn invalid() -> ClResult {
    err(cl::CL_INVALID_SAMPLER, "not a sampler")
}

pub fn create_old(
    context: Handle,
    _normalized: cl_bool,
    _addressing: cl_addressing_mode,
    _filter: cl_filter_mode,
) -> ClResult<*mut c_void> {
    unsupported(context)
}

pub fn create(context: Handle, _properties: In<cl_sampler_properties>) -> ClResult<*mut c_void> {
    unsupported(context)
}

pub fn retain(_sampler: Handle) -> ClResult {
    invalid()
}

pub fn release(_sampler: Handle) -> ClResult {
    invalid()
}

pub fn get_info(
    _sampler: Handle,
    _param: cl_sampler_info,
    _size: usize,
    _value: Out<c_void>,
    _size_ret: Out<usize>,
) -> ClResult {
    invalid()
}
