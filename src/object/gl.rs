//! The device that a context of OpenGL renders on (clGetGLContextInfoKHR), and events of fences (cl_khr_gl_event,
//! cl_khr_egl_event).

use super::context::Context;
use super::context_properties;
use super::device::Device;
use super::event::Event;
use super::info::{answer, InfoOut, Written};
use super::sharing::{of_gl, open};
use crate::backend::gl::{Error, Fence, Gl};
use crate::cl::{self, cl_command_type, cl_context_properties, cl_int, cl_uint};
use crate::error::{ClResult, OrErr};
use crate::handle::Ref;
use std::ffi::c_void;
use std::sync::Arc;

/// Implements clGetGLContextInfoKHR for these devices of the platform: all of them share with any context. The current device
/// is that which the context renders on, or for one that renders on the processor the CPU device, else the first.
pub fn context_info(
    devices: &[Ref<Device>],
    properties: &[cl_context_properties],
    param: cl_uint,
    out: InfoOut<'_>,
) -> ClResult<Written> {
    let named = context_properties::parse(properties, cl::CL_INVALID_VALUE)?;
    let source = named.gl.or_err(
        cl::CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR,
        "no context of OpenGL is named",
    )?;
    let gl = open(source)?;
    let about = gl.about();
    let same = |device: &&Ref<Device>| about.uuids.contains(&device.caps().device_uuid);
    let processor =
        |device: &&Ref<Device>| about.software && device.kind() == cl::CL_DEVICE_TYPE_CPU;
    let current = (devices.iter().find(same))
        .or_else(|| devices.iter().find(processor))
        .or(devices.first());
    let others = devices
        .iter()
        .filter(|device| current.is_none_or(|current| !Arc::ptr_eq(current, device)));
    answer! { param, out;
        CL_CURRENT_DEVICE_FOR_GL_CONTEXT_KHR => current.cloned().into_iter().collect::<Vec<_>>(),
        CL_DEVICES_FOR_GL_CONTEXT_KHR => current.into_iter().chain(others).cloned().collect::<Vec<_>>(),
    }
}

/// Makes the event of a fence, which the thread of a context completes.
fn event_of_fence(
    context: &Ref<Context>,
    gl: &Gl,
    fence: Fence,
    (kind, object): (cl_command_type, cl_int),
) -> ClResult<Ref<Event>> {
    // The fence may not have been flushed yet, and nobody else could.
    gl.flush_caller();
    let event = Event::of_others(context.clone(), kind);
    let completed = event.clone();
    let done = move |result: Result<(), Error>| {
        let status = match result {
            Ok(()) => cl::CL_COMPLETE as cl_int,
            Err(error) => of_gl(error, object).code,
        };
        completed.settle(status).run();
    };
    gl.when_signalled(fence, done)
        .map_err(|error| of_gl(error, object))?;
    Ok(event)
}

/// Implements clCreateEventFromGLsyncKHR.
pub fn event_of_gl_sync(context: &Ref<Context>, sync: *const c_void) -> ClResult<Ref<Event>> {
    let gl = context.sharing.gl()?;
    let kind = cl::CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR;
    let fence = Fence::Gl(sync as usize);
    event_of_fence(context, gl, fence, (kind, cl::CL_INVALID_GL_OBJECT))
}

/// Implements clCreateEventFromEGLSyncKHR.
pub fn event_of_egl_sync(
    context: &Ref<Context>,
    sync: *const c_void,
    display: *const c_void,
) -> ClResult<Ref<Event>> {
    let gl = context.sharing.of_display(display as usize)?;
    let kind = cl::CL_COMMAND_EGL_FENCE_SYNC_OBJECT_KHR;
    let fence = Fence::Egl {
        display: display as usize,
        sync: sync as usize,
    };
    event_of_fence(context, &gl, fence, (kind, cl::CL_INVALID_EGL_OBJECT_KHR))
}
