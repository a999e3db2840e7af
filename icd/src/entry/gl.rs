//! Sharing with OpenGL and EGL.

use super::enqueue::Tail;
use super::platform;
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::backend::gl::Texture;
use pumice_runtime::backend::image::ImageDim;
use pumice_runtime::cl::{
    self, cl_GLenum, cl_GLint, cl_GLuint, cl_context_properties, cl_event, cl_gl_context_info,
    cl_gl_object_type, cl_gl_texture_info, cl_mem, cl_mem_flags, cl_uint,
};
use pumice_runtime::command::gl::HandOver;
use pumice_runtime::error::{ensure, err, ClResult};
use pumice_runtime::object::gl;
use pumice_runtime::object::mem::Mem;
use pumice_runtime::queue::Queue;
use std::ffi::c_void;

/// Implements clGetGLContextInfoKHR.
pub fn get_context_info(
    properties: In<cl_context_properties>,
    param: cl_gl_context_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let properties = abi::properties(properties).unwrap_or_default();
    let devices = platform::only().devices_of(cl::CL_DEVICE_TYPE_ALL)?;
    let out = abi::info(size, value, size_ret);
    gl::context_info(&devices, &properties, param, out).map(drop)
}

pub fn create_from_buffer(
    context: Handle,
    flags: cl_mem_flags,
    buffer: cl_GLuint,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    abi::publish(Mem::of_gl_buffer(&context, flags, buffer))
}

/// Creates an image of a texture, of one geometry only if that is given.
fn texture(
    context: Handle,
    flags: cl_mem_flags,
    (target, level, name): (cl_GLenum, cl_GLint, cl_GLuint),
    dim: Option<ImageDim>,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let texture = Texture {
        target,
        level,
        name,
    };
    abi::publish(Mem::of_gl_texture(&context, flags, texture, dim))
}

pub fn create_from_texture(
    context: Handle,
    flags: cl_mem_flags,
    target: cl_GLenum,
    level: cl_GLint,
    name: cl_GLuint,
) -> ClResult<*mut c_void> {
    texture(context, flags, (target, level, name), None)
}

pub fn create_from_texture_2d(
    context: Handle,
    flags: cl_mem_flags,
    target: cl_GLenum,
    level: cl_GLint,
    name: cl_GLuint,
) -> ClResult<*mut c_void> {
    texture(context, flags, (target, level, name), Some(ImageDim::D2))
}

pub fn create_from_texture_3d(
    context: Handle,
    flags: cl_mem_flags,
    target: cl_GLenum,
    level: cl_GLint,
    name: cl_GLuint,
) -> ClResult<*mut c_void> {
    texture(context, flags, (target, level, name), Some(ImageDim::D3))
}

pub fn create_from_renderbuffer(
    context: Handle,
    flags: cl_mem_flags,
    renderbuffer: cl_GLuint,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    abi::publish(Mem::of_gl_renderbuffer(&context, flags, renderbuffer))
}

/// Implements clCreateFromEGLImageKHR. There are no properties.
pub fn create_from_egl_image(
    context: Handle,
    display: Handle,
    image: Handle,
    flags: cl_mem_flags,
    properties: In<isize>,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    ensure!(
        properties.get().is_none_or(|first| first == 0),
        cl::CL_INVALID_VALUE,
        "an unknown property"
    );
    let (display, image) = (display.as_ptr() as usize, image.as_ptr() as usize);
    abi::publish(Mem::of_egl_image(&context, display, image, flags))
}

pub fn get_object_info(
    mem: Handle,
    kind: Out<cl_gl_object_type>,
    name: Out<cl_GLuint>,
) -> ClResult {
    let (of_kind, of_name) = mem.object::<Mem>()?.gl_object()?;
    kind.set(of_kind);
    name.set(of_name);
    Ok(())
}

pub fn get_texture_info(
    mem: Handle,
    param: cl_gl_texture_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let mem = mem.object::<Mem>()?;
    mem.gl_texture_info(param, abi::info(size, value, size_ret))
        .map(drop)
}

fn hand_over(
    queue: Handle,
    (number, mems): (cl_uint, In<cl_mem>),
    how: HandOver,
    tail: Tail,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mems = abi::optional_objects::<Mem>(number, mems)?.unwrap_or_default();
    let waits = abi::events(tail.count, tail.list)?;
    let event = queue.hand_over(how, mems, &waits, !tail.event.is_null())?;
    abi::publish_event(tail.event, event);
    Ok(())
}

macro_rules! hand_over {
    ($($name:ident $acquire:literal $egl:literal;)*) => { $(
        pub fn $name(
            queue: Handle,
            number: cl_uint,
            mems: In<cl_mem>,
            count: cl_uint,
            list: In<cl_event>,
            event: Out<cl_event>,
        ) -> ClResult {
            let how = HandOver { acquire: $acquire, egl: $egl };
            hand_over(queue, (number, mems), how, Tail { count, list, event })
        }
    )* };
}

hand_over! {
    enqueue_acquire true false;
    enqueue_release false false;
    enqueue_acquire_egl true true;
    enqueue_release_egl false true;
}

/// Implements clCreateEventFromGLsyncKHR.
pub fn create_event(context: Handle, sync: Handle) -> ClResult<*mut c_void> {
    let context = context.context()?;
    abi::publish(gl::event_of_gl_sync(&context, sync.as_ptr()))
}

/// Implements clCreateEventFromEGLSyncKHR.
pub fn create_event_egl(context: Handle, sync: Handle, display: Handle) -> ClResult<*mut c_void> {
    let context = context.context()?;
    if display.is_null() {
        return err(cl::CL_INVALID_EGL_OBJECT_KHR, "no display");
    }
    abi::publish(gl::event_of_egl_sync(
        &context,
        sync.as_ptr(),
        display.as_ptr(),
    ))
}
