//! Events.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{self, cl_event, cl_event_info, cl_int, cl_profiling_info, cl_uint};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::handle;
use pumice_runtime::object::callback::{Callback, EventFn};
use pumice_runtime::object::event::{self, Event};
use pumice_runtime::object::info::Info;
use std::ffi::c_void;

pub fn create_user(context: Handle) -> ClResult<*mut c_void> {
    let context = context.context()?;
    abi::publish(Ok(Event::user(context)))
}

pub fn set_user_status(event: Handle, status: cl_int) -> ClResult {
    event.object::<Event>()?.set_user_status(status)
}

pub fn wait(count: cl_uint, list: In<cl_event>) -> ClResult {
    event::wait_all(&abi::objects(count, list)?)
}

pub fn get_info(
    event: Handle,
    param: cl_event_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    event
        .object::<Event>()?
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}

pub fn retain(event: Handle) -> ClResult {
    handle::retain::<Event>(event.as_ptr())
}

pub fn release(event: Handle) -> ClResult {
    pumice_runtime::object::event::release(event.as_ptr())
}

pub fn get_profiling_info(
    event: Handle,
    param: cl_profiling_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let time = event.object::<Event>()?.profiling(param)?;
    abi::info(size, value, size_ret).write(time).map(drop)
}

pub fn set_callback(
    event: Handle,
    kind: cl_int,
    notify: Option<EventFn>,
    user_data: Handle,
) -> ClResult {
    let event = event.object::<Event>()?;
    let Some(notify) = notify else {
        return err(cl::CL_INVALID_VALUE, "pfn_notify is NULL");
    };
    event.set_callback(kind, Callback::new(notify, user_data.as_ptr()))
}
