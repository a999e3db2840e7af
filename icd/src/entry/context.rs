//! Contexts.

use super::platform;
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_context_info, cl_context_properties, cl_device_id, cl_device_type, cl_uint,
};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::handle;
use pumice_runtime::object::callback::{Callback, ErrorFn, ObjectFn};
use pumice_runtime::object::context::Context;
use pumice_runtime::object::info::Info;
use pumice_runtime::object::svm;
use std::ffi::c_void;

pub fn create(
    properties: In<cl_context_properties>,
    num_devices: cl_uint,
    devices: In<cl_device_id>,
    notify: Option<ErrorFn>,
    user_data: Handle,
) -> ClResult<*mut c_void> {
    let properties = abi::properties(properties).unwrap_or_default();
    let devices = abi::objects(num_devices, devices)?;
    abi::publish(Context::new(
        devices,
        properties,
        notify,
        user_data.as_ptr(),
    ))
}

pub fn create_from_type(
    properties: In<cl_context_properties>,
    device_type: cl_device_type,
    notify: Option<ErrorFn>,
    user_data: Handle,
) -> ClResult<*mut c_void> {
    let properties = abi::properties(properties).unwrap_or_default();
    let devices = platform::only().devices_of(device_type)?;
    abi::publish(Context::new(
        devices,
        properties,
        notify,
        user_data.as_ptr(),
    ))
}

pub fn retain(context: Handle) -> ClResult {
    handle::retain::<Context>(context.as_ptr())
}

pub fn release(context: Handle) -> ClResult {
    let released = context.object::<Context>()?;
    handle::release::<Context>(context.as_ptr())?;
    svm::abandon(&released);
    // The application may end its display next: what threads of ours have of it goes now, if nothing else holds it.
    let sharing = released.sharing.all();
    drop(released);
    sharing.iter().for_each(|gl| gl.settle());
    Ok(())
}

pub fn terminate(context: Handle) -> ClResult {
    context.object::<Context>()?.terminate()
}

pub fn get_info(
    context: Handle,
    param: cl_context_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    context
        .object::<Context>()?
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}

pub fn set_destructor_callback(
    context: Handle,
    notify: Option<ObjectFn>,
    user_data: Handle,
) -> ClResult {
    let context = context.context()?;
    let Some(notify) = notify else {
        return err(cl::CL_INVALID_VALUE, "pfn_notify is NULL");
    };
    context.add_destructor(Callback::new(notify, user_data.as_ptr()));
    Ok(())
}
