//! Querying platform information; unloading the compiler.

use crate::abi::{self, Handle, Out};
use pumice_runtime::cl::{cl_platform_id, cl_platform_info, cl_uint};
use pumice_runtime::compile;
use pumice_runtime::error::ClResult;
use pumice_runtime::handle::{self, Object, Ref};
use pumice_runtime::object::info::Info;
use pumice_runtime::object::platform::Platform;
use std::ffi::c_void;

/// Returns the only platform there is.
pub fn only() -> &'static Ref<Platform> {
    crate::platform()
}

/// Returns the platform that a handle names. NULL means the only one there is.
pub fn resolve(platform: Handle) -> ClResult<Ref<Platform>> {
    if platform.is_null() {
        return Ok(crate::platform().clone());
    }
    platform.object()
}

pub fn get_ids(entries: cl_uint, platforms: Out<cl_platform_id>, count: Out<cl_uint>) -> ClResult {
    abi::list_out(
        &[Object::handle(crate::platform())],
        entries,
        platforms,
        count,
    )
}

/// Implements clIcdSetPlatformDispatchDataKHR: the platform and its devices are there already.
pub fn set_dispatch_data(platform: Handle, data: Handle) -> ClResult {
    let platform = platform.object::<Platform>()?;
    handle::set_dispatch_data(data.as_ptr());
    platform.renew_dispatch_data();
    for device in &platform.devices {
        device.renew_dispatch_data();
    }
    Ok(())
}

pub fn get_info(
    platform: Handle,
    param: cl_platform_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    resolve(platform)?
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}

/// Ends the process that waits for further compilations, if there is one; the next build starts another.
pub fn unload_compiler() -> ClResult {
    compile::unload();
    Ok(())
}

/// Does the same as [`unload_compiler`].
pub fn unload_platform_compiler(platform: Handle) -> ClResult {
    handle::lookup::<Platform>(platform.as_ptr())?;
    unload_compiler()
}
