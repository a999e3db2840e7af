//! Extension functions.

use super::platform;
use crate::abi::{self, Handle, In};
use crate::table;
use pumice_runtime::cl;
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::object::platform::Platform;
use std::ffi::{c_char, c_void};

/// Returns a function of an extension that Pumice does not have.
pub fn absent<T>() -> ClResult<T> {
    err(cl::CL_INVALID_OPERATION, "the extension is not supported")
}

/// Messages that the Vulkan validation layer has sent so far (`PUMICE_VALIDATION`). For tests: found by name alone.
extern "C" fn validation_messages() -> u64 {
    pumice_runtime::backend::vulkan::validation_messages()
}

pub fn get_function_address(name: In<c_char>) -> ClResult<*mut c_void> {
    let address = match abi::symbol(name) {
        Some("pumiceValidationMessages") => Some(validation_messages as *mut c_void),
        Some(name) => table::address(name),
        None => None,
    };
    Ok(address.unwrap_or(std::ptr::null_mut()))
}

/// Implements clIcdGetFunctionAddressForPlatformKHR. NULL is no platform.
pub fn get_function_address_of_platform(
    platform: Handle,
    name: In<c_char>,
) -> ClResult<*mut c_void> {
    platform.object::<Platform>()?;
    get_function_address(name)
}

pub fn get_function_address_for_platform(
    platform: Handle,
    name: In<c_char>,
) -> ClResult<*mut c_void> {
    platform::resolve(platform)?;
    get_function_address(name)
}
