//! The C edge of Pumice: the shared library that OpenCL loaders load.
//!
//! ```text
//! C caller -> table (shell: guard, trace) -> entry (checks on pointers) -> pumice_runtime
//! ```
//!
//! Only what a loader asks an installable client driver for is exported: `clIcdGetPlatformIDsKHR`, `clGetPlatformInfo`
//! and `clGetExtensionFunctionAddress`. Everything else is reached through the dispatch table in every handle, or by
//! name. The other `cl*` names stay private, so that a process that links a loader and loads this library can never
//! bind one of them to the wrong library.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod abi;
mod entry;
mod shell;
mod table;

use pumice_runtime::cl::{cl_int, cl_platform_id, cl_platform_info, cl_uint};
use pumice_runtime::handle::{self, Ref};
use pumice_runtime::object::platform::Platform;
use pumice_runtime::util::library;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

/// Returns the platform of this process, made at first use.
fn platform() -> &'static Ref<Platform> {
    static PLATFORM: OnceLock<Ref<Platform>> = OnceLock::new();
    PLATFORM.get_or_init(|| {
        library::stay();
        handle::set_dispatch(table::tagged().as_ptr().cast());
        let platform = Platform::open();
        platform.publish();
        for device in &platform.devices {
            device.publish();
        }
        platform
    })
}

/// Lists the platform, for the loader.
///
/// # Safety
/// As the specification of cl_khr_icd asks: `platforms` has room for `num_entries` handles, or is null.
#[no_mangle]
pub unsafe extern "C" fn clIcdGetPlatformIDsKHR(
    num_entries: cl_uint,
    platforms: *mut cl_platform_id,
    num_platforms: *mut cl_uint,
) -> cl_int {
    // SAFETY: passed on from the caller.
    unsafe { table::clIcdGetPlatformIDsKHR(num_entries, platforms, num_platforms) }
}

/// Answers queries about the platform, for the loader.
///
/// # Safety
/// As the specification of clGetPlatformInfo asks.
#[no_mangle]
pub unsafe extern "C" fn clGetPlatformInfo(
    platform: cl_platform_id,
    param_name: cl_platform_info,
    param_value_size: usize,
    param_value: *mut c_void,
    param_value_size_ret: *mut usize,
) -> cl_int {
    // SAFETY: passed on from the caller.
    unsafe {
        table::clGetPlatformInfo(
            platform,
            param_name,
            param_value_size,
            param_value,
            param_value_size_ret,
        )
    }
}

/// Finds a function by name, for the loader.
///
/// # Safety
/// `func_name` is null or a string that ends with NUL.
#[no_mangle]
pub unsafe extern "C" fn clGetExtensionFunctionAddress(func_name: *const c_char) -> *mut c_void {
    // SAFETY: passed on from the caller.
    unsafe { table::clGetExtensionFunctionAddress(func_name) }
}
