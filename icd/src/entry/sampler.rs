//! Samplers.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    cl_addressing_mode, cl_bool, cl_filter_mode, cl_sampler_info, cl_sampler_properties,
};
use pumice_runtime::error::ClResult;
use pumice_runtime::handle;
use pumice_runtime::object::info::Info;
use pumice_runtime::object::sampler::Sampler;
use std::ffi::c_void;

pub fn create_old(
    context: Handle,
    normalized: cl_bool,
    addressing: cl_addressing_mode,
    filter: cl_filter_mode,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    abi::publish(Sampler::new(&context, normalized, addressing, filter))
}

pub fn create(context: Handle, properties: In<cl_sampler_properties>) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let properties = abi::properties(properties).unwrap_or_default();
    abi::publish(Sampler::with_properties(&context, properties))
}

pub fn retain(sampler: Handle) -> ClResult {
    handle::retain::<Sampler>(sampler.as_ptr())
}

pub fn release(sampler: Handle) -> ClResult {
    handle::release::<Sampler>(sampler.as_ptr())
}

pub fn get_info(
    sampler: Handle,
    param: cl_sampler_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    sampler
        .object::<Sampler>()?
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}
