//! The one table of entry points.
//!
//! From it come, for every function of OpenCL 1.0 to 3.1: the C function itself (its *shell*), its slot in the dispatch
//! table that the loader reads through every handle, the look-up by name, the trace line of `PUMICE_LOG=trace`, and the
//! guard that keeps a panic from crossing into C.
//!
//! # How to add a function
//! 1. A row here. `status` functions return a code; `create` functions return a handle or pointer and take a last
//!    `errcode_ret`, which the table adds; `pointer` functions return a pointer and no code; `nothing` returns nothing.
//!    `absent` and `absent_create` rows are slots of extensions that Pumice does not have: they fail with
//!    CL_INVALID_OPERATION and are not found by name.
//! 2. The body in `entry/`: a safe function of the same arguments, pointers wrapped by [`crate::abi`], that returns a
//!    `ClResult`.
//!
//! Rows under `dispatch` must name every field of `cl_icd_dispatch` (the compiler checks); those under `extra` are
//! reached by name alone.

#![allow(non_snake_case)]

use crate::abi::FromC;
use crate::entry::{
    buffer, command_buffer, context, device, enqueue, event, ext, gl, image, kernel, platform,
    program, queue, sampler, semaphore, svm, unified_svm, usm,
};
use crate::shell;
use pumice_runtime::cl::*;
use std::ffi::{c_char, c_uchar, c_void};
use std::mem::offset_of;
use std::sync::OnceLock;

type NotifyProgram = Option<unsafe extern "C" fn(cl_program, *mut c_void)>;
type NotifyMem = Option<unsafe extern "C" fn(cl_mem, *mut c_void)>;
type NotifyContext = Option<unsafe extern "C" fn(cl_context, *mut c_void)>;
type NotifyEvent = Option<unsafe extern "C" fn(cl_event, cl_int, *mut c_void)>;
type NotifyError = Option<unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>;
type NativeKernel = Option<unsafe extern "C" fn(*mut c_void)>;
type FreeFunction =
    Option<unsafe extern "C" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void)>;

/// The C function of one row.
macro_rules! shell {
    (status $name:ident ($($arg:ident: $ty:ty),*) $body:path) => {
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> cl_int {
            let trace = |f: &mut shell::Args<'_>| { f$(.arg(stringify!($arg), &$arg))*.end() };
            shell::status(stringify!($name), const { shell::is_long(stringify!($name)) }, &trace, || {
                // SAFETY: the caller passes pointers that are as the specification asks of this function.
                $body($(unsafe { FromC::wrap($arg) }),*)
            })
        }
    };
    (create $name:ident ($($arg:ident: $ty:ty),*) $body:path) => {
        pub(crate) unsafe extern "C" fn $name($($arg: $ty,)* errcode_ret: *mut cl_int) -> *mut c_void {
            let trace = |f: &mut shell::Args<'_>| { f$(.arg(stringify!($arg), &$arg))*.end() };
            let (value, code) = shell::value(stringify!($name), &trace, || {
                // SAFETY: the caller passes pointers that are as the specification asks of this function.
                $body($(unsafe { FromC::wrap($arg) }),*)
            });
            if !errcode_ret.is_null() {
                // SAFETY: not null, so the caller gave a place for the code.
                unsafe { errcode_ret.write(code) };
            }
            value
        }
    };
    (pointer $name:ident ($($arg:ident: $ty:ty),*) $body:path) => {
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> *mut c_void {
            let trace = |f: &mut shell::Args<'_>| { f$(.arg(stringify!($arg), &$arg))*.end() };
            shell::value(stringify!($name), &trace, || {
                // SAFETY: the caller passes pointers that are as the specification asks of this function.
                $body($(unsafe { FromC::wrap($arg) }),*)
            }).0
        }
    };
    (nothing $name:ident ($($arg:ident: $ty:ty),*) $body:path) => {
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) {
            let trace = |f: &mut shell::Args<'_>| { f$(.arg(stringify!($arg), &$arg))*.end() };
            shell::status(stringify!($name), const { shell::is_long(stringify!($name)) }, &trace, || {
                // SAFETY: the caller passes pointers that are as the specification asks of this function.
                $body($(unsafe { FromC::wrap($arg) }),*)
            });
        }
    };
    (absent $name:ident ($($arg:ident: $ty:ty),*)) => {
        unsafe extern "C" fn $name($($arg: $ty),*) -> cl_int {
            let trace = |f: &mut shell::Args<'_>| { f$(.arg(stringify!($arg), &$arg))*.end() };
            shell::status(stringify!($name), const { shell::is_long(stringify!($name)) }, &trace, ext::absent)
        }
    };
    (absent_create $name:ident ($($arg:ident: $ty:ty),*)) => {
        unsafe extern "C" fn $name($($arg: $ty,)* errcode_ret: *mut cl_int) -> *mut c_void {
            let trace = |f: &mut shell::Args<'_>| { f$(.arg(stringify!($arg), &$arg))*.end() };
            let (value, code) = shell::value(stringify!($name), &trace, ext::absent::<*mut c_void>);
            if !errcode_ret.is_null() {
                // SAFETY: not null, so the caller gave a place for the code.
                unsafe { errcode_ret.write(code) };
            }
            value
        }
    };
}

macro_rules! found_by_name {
    (absent $name:ident) => {
        None
    };
    (absent_create $name:ident) => {
        None
    };
    ($kind:ident $name:ident) => {
        Some($name as *mut c_void)
    };
}

macro_rules! entries {
    (
        dispatch { $($kind:ident $name:ident ($($arg:ident: $ty:ty),* $(,)?) $(= $body:path)?;)* }
        extra { $($xkind:ident $xname:ident ($($xarg:ident: $xty:ty),* $(,)?) $(= $xbody:path)?;)* }
    ) => {
        $(shell! { $kind $name ($($arg: $ty),*) $($body)? })*
        $(shell! { $xkind $xname ($($xarg: $xty),*) $($xbody)? })*

        /// The entry points, as they stand in a dispatch table.
        static DISPATCH: cl_icd_dispatch = cl_icd_dispatch { $($name: Some($name)),* };

        /// Returns the address of an entry point, if Pumice has it.
        pub(crate) fn address(name: &str) -> Option<*mut c_void> {
            match name {
                $(stringify!($name) => found_by_name!($kind $name),)*
                $(stringify!($xname) => found_by_name!($xkind $xname),)*
                _ => None,
            }
        }

        /// Names of the entry points in the table, in its order.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name),)*];
    };
}

entries! {
    dispatch {
        // OpenCL 1.0
        status clGetPlatformIDs(num_entries: cl_uint, platforms: *mut cl_platform_id, num_platforms: *mut cl_uint) = platform::get_ids;
        status clGetPlatformInfo(platform: cl_platform_id, param_name: cl_platform_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = platform::get_info;
        status clGetDeviceIDs(platform: cl_platform_id, device_type: cl_device_type, num_entries: cl_uint, devices: *mut cl_device_id, num_devices: *mut cl_uint) = device::get_ids;
        status clGetDeviceInfo(device: cl_device_id, param_name: cl_device_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = device::get_info;
        create clCreateContext(properties: *const cl_context_properties, num_devices: cl_uint, devices: *const cl_device_id, pfn_notify: NotifyError, user_data: *mut c_void) = context::create;
        create clCreateContextFromType(properties: *const cl_context_properties, device_type: cl_device_type, pfn_notify: NotifyError, user_data: *mut c_void) = context::create_from_type;
        status clRetainContext(context: cl_context) = context::retain;
        status clReleaseContext(context: cl_context) = context::release;
        status clGetContextInfo(context: cl_context, param_name: cl_context_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = context::get_info;
        create clCreateCommandQueue(context: cl_context, device: cl_device_id, properties: cl_command_queue_properties) = queue::create_old;
        status clRetainCommandQueue(command_queue: cl_command_queue) = queue::retain;
        status clReleaseCommandQueue(command_queue: cl_command_queue) = queue::release;
        status clGetCommandQueueInfo(command_queue: cl_command_queue, param_name: cl_command_queue_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = queue::get_info;
        status clSetCommandQueueProperty(command_queue: cl_command_queue, properties: cl_command_queue_properties, enable: cl_bool, old_properties: *mut cl_command_queue_properties) = queue::set_property;
        create clCreateBuffer(context: cl_context, flags: cl_mem_flags, size: usize, host_ptr: *mut c_void) = buffer::create;
        create clCreateImage2D(context: cl_context, flags: cl_mem_flags, image_format: *const cl_image_format, image_width: usize, image_height: usize, image_row_pitch: usize, host_ptr: *mut c_void) = image::create_2d;
        create clCreateImage3D(context: cl_context, flags: cl_mem_flags, image_format: *const cl_image_format, image_width: usize, image_height: usize, image_depth: usize, image_row_pitch: usize, image_slice_pitch: usize, host_ptr: *mut c_void) = image::create_3d;
        status clRetainMemObject(memobj: cl_mem) = buffer::retain;
        status clReleaseMemObject(memobj: cl_mem) = buffer::release;
        status clGetSupportedImageFormats(context: cl_context, flags: cl_mem_flags, image_type: cl_mem_object_type, num_entries: cl_uint, image_formats: *mut cl_image_format, num_image_formats: *mut cl_uint) = image::get_supported_formats;
        status clGetMemObjectInfo(memobj: cl_mem, param_name: cl_mem_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = buffer::get_info;
        status clGetImageInfo(image: cl_mem, param_name: cl_image_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = image::get_info;
        create clCreateSampler(context: cl_context, normalized_coords: cl_bool, addressing_mode: cl_addressing_mode, filter_mode: cl_filter_mode) = sampler::create_old;
        status clRetainSampler(sampler: cl_sampler) = sampler::retain;
        status clReleaseSampler(sampler: cl_sampler) = sampler::release;
        status clGetSamplerInfo(sampler: cl_sampler, param_name: cl_sampler_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = sampler::get_info;
        create clCreateProgramWithSource(context: cl_context, count: cl_uint, strings: *mut *const c_char, lengths: *const usize) = program::create_with_source;
        create clCreateProgramWithBinary(context: cl_context, num_devices: cl_uint, device_list: *const cl_device_id, lengths: *const usize, binaries: *mut *const c_uchar, binary_status: *mut cl_int) = program::create_with_binary;
        status clRetainProgram(program: cl_program) = program::retain;
        status clReleaseProgram(program: cl_program) = program::release;
        status clBuildProgram(program: cl_program, num_devices: cl_uint, device_list: *const cl_device_id, options: *const c_char, pfn_notify: NotifyProgram, user_data: *mut c_void) = program::build;
        status clUnloadCompiler() = platform::unload_compiler;
        status clGetProgramInfo(program: cl_program, param_name: cl_program_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = program::get_info;
        status clGetProgramBuildInfo(program: cl_program, device: cl_device_id, param_name: cl_program_build_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = program::get_build_info;
        create clCreateKernel(program: cl_program, kernel_name: *const c_char) = kernel::create;
        status clCreateKernelsInProgram(program: cl_program, num_kernels: cl_uint, kernels: *mut cl_kernel, num_kernels_ret: *mut cl_uint) = kernel::create_all;
        status clRetainKernel(kernel: cl_kernel) = kernel::retain;
        status clReleaseKernel(kernel: cl_kernel) = kernel::release;
        status clSetKernelArg(kernel: cl_kernel, arg_index: cl_uint, arg_size: usize, arg_value: *const c_void) = kernel::set_arg;
        status clGetKernelInfo(kernel: cl_kernel, param_name: cl_kernel_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = kernel::get_info;
        status clGetKernelWorkGroupInfo(kernel: cl_kernel, device: cl_device_id, param_name: cl_kernel_work_group_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = kernel::get_work_group_info;
        status clWaitForEvents(num_events: cl_uint, event_list: *const cl_event) = event::wait;
        status clGetEventInfo(event: cl_event, param_name: cl_event_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = event::get_info;
        status clRetainEvent(event: cl_event) = event::retain;
        status clReleaseEvent(event: cl_event) = event::release;
        status clGetEventProfilingInfo(event: cl_event, param_name: cl_profiling_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = event::get_profiling_info;
        status clFlush(command_queue: cl_command_queue) = queue::flush;
        status clFinish(command_queue: cl_command_queue) = queue::finish;
        status clEnqueueReadBuffer(command_queue: cl_command_queue, buffer: cl_mem, blocking_read: cl_bool, offset: usize, size: usize, ptr: *mut c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::read_buffer;
        status clEnqueueWriteBuffer(command_queue: cl_command_queue, buffer: cl_mem, blocking_write: cl_bool, offset: usize, size: usize, ptr: *const c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::write_buffer;
        status clEnqueueCopyBuffer(command_queue: cl_command_queue, src_buffer: cl_mem, dst_buffer: cl_mem, src_offset: usize, dst_offset: usize, size: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::copy_buffer;
        status clEnqueueReadImage(command_queue: cl_command_queue, image: cl_mem, blocking_read: cl_bool, origin: *const usize, region: *const usize, row_pitch: usize, slice_pitch: usize, ptr: *mut c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = image::enqueue_read;
        status clEnqueueWriteImage(command_queue: cl_command_queue, image: cl_mem, blocking_write: cl_bool, origin: *const usize, region: *const usize, input_row_pitch: usize, input_slice_pitch: usize, ptr: *const c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = image::enqueue_write;
        status clEnqueueCopyImage(command_queue: cl_command_queue, src_image: cl_mem, dst_image: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = image::enqueue_copy;
        status clEnqueueCopyImageToBuffer(command_queue: cl_command_queue, src_image: cl_mem, dst_buffer: cl_mem, src_origin: *const usize, region: *const usize, dst_offset: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = image::enqueue_copy_to_buffer;
        status clEnqueueCopyBufferToImage(command_queue: cl_command_queue, src_buffer: cl_mem, dst_image: cl_mem, src_offset: usize, dst_origin: *const usize, region: *const usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = image::enqueue_copy_from_buffer;
        create clEnqueueMapBuffer(command_queue: cl_command_queue, buffer: cl_mem, blocking_map: cl_bool, map_flags: cl_map_flags, offset: usize, size: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::map_buffer;
        create clEnqueueMapImage(command_queue: cl_command_queue, image: cl_mem, blocking_map: cl_bool, map_flags: cl_map_flags, origin: *const usize, region: *const usize, image_row_pitch: *mut usize, image_slice_pitch: *mut usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = image::enqueue_map;
        status clEnqueueUnmapMemObject(command_queue: cl_command_queue, memobj: cl_mem, mapped_ptr: *mut c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::unmap;
        status clEnqueueNDRangeKernel(command_queue: cl_command_queue, kernel: cl_kernel, work_dim: cl_uint, global_work_offset: *const usize, global_work_size: *const usize, local_work_size: *const usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::nd_range_kernel;
        status clEnqueueTask(command_queue: cl_command_queue, kernel: cl_kernel, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::task;
        status clEnqueueNativeKernel(command_queue: cl_command_queue, user_func: NativeKernel, args: *mut c_void, cb_args: usize, num_mem_objects: cl_uint, mem_list: *const cl_mem, args_mem_loc: *mut *const c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::native_kernel;
        status clEnqueueMarker(command_queue: cl_command_queue, event: *mut cl_event) = enqueue::marker_old;
        status clEnqueueWaitForEvents(command_queue: cl_command_queue, num_events: cl_uint, event_list: *const cl_event) = enqueue::wait_for_events_old;
        status clEnqueueBarrier(command_queue: cl_command_queue) = enqueue::barrier_old;
        pointer clGetExtensionFunctionAddress(func_name: *const c_char) = ext::get_function_address;

        // Sharing with OpenGL and Direct3D 10
        create clCreateFromGLBuffer(context: cl_context, flags: cl_mem_flags, bufobj: cl_GLuint) = gl::create_from_buffer;
        create clCreateFromGLTexture2D(context: cl_context, flags: cl_mem_flags, target: cl_GLenum, miplevel: cl_GLint, texture: cl_GLuint) = gl::create_from_texture_2d;
        create clCreateFromGLTexture3D(context: cl_context, flags: cl_mem_flags, target: cl_GLenum, miplevel: cl_GLint, texture: cl_GLuint) = gl::create_from_texture_3d;
        create clCreateFromGLRenderbuffer(context: cl_context, flags: cl_mem_flags, renderbuffer: cl_GLuint) = gl::create_from_renderbuffer;
        status clGetGLObjectInfo(memobj: cl_mem, gl_object_type: *mut cl_gl_object_type, gl_object_name: *mut cl_GLuint) = gl::get_object_info;
        status clGetGLTextureInfo(memobj: cl_mem, param_name: cl_gl_texture_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = gl::get_texture_info;
        status clEnqueueAcquireGLObjects(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = gl::enqueue_acquire;
        status clEnqueueReleaseGLObjects(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = gl::enqueue_release;
        status clGetGLContextInfoKHR(properties: *const cl_context_properties, param_name: cl_gl_context_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = gl::get_context_info;
        absent clGetDeviceIDsFromD3D10KHR(platform: cl_platform_id, d3d_device_source: cl_uint, d3d_object: *mut c_void, d3d_device_set: cl_uint, num_entries: cl_uint, devices: *mut cl_device_id, num_devices: *mut cl_uint);
        absent_create clCreateFromD3D10BufferKHR(context: cl_context, flags: cl_mem_flags, resource: *mut c_void);
        absent_create clCreateFromD3D10Texture2DKHR(context: cl_context, flags: cl_mem_flags, resource: *mut c_void, subresource: cl_uint);
        absent_create clCreateFromD3D10Texture3DKHR(context: cl_context, flags: cl_mem_flags, resource: *mut c_void, subresource: cl_uint);
        absent clEnqueueAcquireD3D10ObjectsKHR(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event);
        absent clEnqueueReleaseD3D10ObjectsKHR(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event);

        // OpenCL 1.1
        status clSetEventCallback(event: cl_event, command_exec_callback_type: cl_int, pfn_notify: NotifyEvent, user_data: *mut c_void) = event::set_callback;
        create clCreateSubBuffer(buffer: cl_mem, flags: cl_mem_flags, buffer_create_type: cl_buffer_create_type, buffer_create_info: *const c_void) = buffer::create_sub_buffer;
        status clSetMemObjectDestructorCallback(memobj: cl_mem, pfn_notify: NotifyMem, user_data: *mut c_void) = buffer::set_destructor_callback;
        create clCreateUserEvent(context: cl_context) = event::create_user;
        status clSetUserEventStatus(event: cl_event, execution_status: cl_int) = event::set_user_status;
        status clEnqueueReadBufferRect(command_queue: cl_command_queue, buffer: cl_mem, blocking_read: cl_bool, buffer_origin: *const usize, host_origin: *const usize, region: *const usize, buffer_row_pitch: usize, buffer_slice_pitch: usize, host_row_pitch: usize, host_slice_pitch: usize, ptr: *mut c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::read_buffer_rect;
        status clEnqueueWriteBufferRect(command_queue: cl_command_queue, buffer: cl_mem, blocking_write: cl_bool, buffer_origin: *const usize, host_origin: *const usize, region: *const usize, buffer_row_pitch: usize, buffer_slice_pitch: usize, host_row_pitch: usize, host_slice_pitch: usize, ptr: *const c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::write_buffer_rect;
        status clEnqueueCopyBufferRect(command_queue: cl_command_queue, src_buffer: cl_mem, dst_buffer: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize, src_row_pitch: usize, src_slice_pitch: usize, dst_row_pitch: usize, dst_slice_pitch: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::copy_buffer_rect;

        // Extensions with slots
        absent clCreateSubDevicesEXT(in_device: cl_device_id, properties: *const cl_device_partition_property_ext, num_entries: cl_uint, out_devices: *mut cl_device_id, num_devices: *mut cl_uint);
        absent clRetainDeviceEXT(device: cl_device_id);
        absent clReleaseDeviceEXT(device: cl_device_id);
        create clCreateEventFromGLsyncKHR(context: cl_context, sync: cl_GLsync) = gl::create_event;

        // OpenCL 1.2
        status clCreateSubDevices(in_device: cl_device_id, properties: *const cl_device_partition_property, num_devices: cl_uint, out_devices: *mut cl_device_id, num_devices_ret: *mut cl_uint) = device::create_sub_devices;
        status clRetainDevice(device: cl_device_id) = device::retain;
        status clReleaseDevice(device: cl_device_id) = device::release;
        create clCreateImage(context: cl_context, flags: cl_mem_flags, image_format: *const cl_image_format, image_desc: *const cl_image_desc, host_ptr: *mut c_void) = image::create;
        create clCreateProgramWithBuiltInKernels(context: cl_context, num_devices: cl_uint, device_list: *const cl_device_id, kernel_names: *const c_char) = program::create_with_built_in_kernels;
        status clCompileProgram(program: cl_program, num_devices: cl_uint, device_list: *const cl_device_id, options: *const c_char, num_input_headers: cl_uint, input_headers: *const cl_program, header_include_names: *mut *const c_char, pfn_notify: NotifyProgram, user_data: *mut c_void) = program::compile;
        create clLinkProgram(context: cl_context, num_devices: cl_uint, device_list: *const cl_device_id, options: *const c_char, num_input_programs: cl_uint, input_programs: *const cl_program, pfn_notify: NotifyProgram, user_data: *mut c_void) = program::link;
        status clUnloadPlatformCompiler(platform: cl_platform_id) = platform::unload_platform_compiler;
        status clGetKernelArgInfo(kernel: cl_kernel, arg_index: cl_uint, param_name: cl_kernel_arg_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = kernel::get_arg_info;
        status clEnqueueFillBuffer(command_queue: cl_command_queue, buffer: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::fill_buffer;
        status clEnqueueFillImage(command_queue: cl_command_queue, image: cl_mem, fill_color: *const c_void, origin: *const usize, region: *const usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = image::enqueue_fill;
        status clEnqueueMigrateMemObjects(command_queue: cl_command_queue, num_mem_objects: cl_uint, mem_objects: *const cl_mem, flags: cl_mem_migration_flags, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::migrate;
        status clEnqueueMarkerWithWaitList(command_queue: cl_command_queue, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::marker;
        status clEnqueueBarrierWithWaitList(command_queue: cl_command_queue, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::barrier;
        pointer clGetExtensionFunctionAddressForPlatform(platform: cl_platform_id, func_name: *const c_char) = ext::get_function_address_for_platform;

        // Sharing with OpenGL, Direct3D 11, DX9 and EGL
        create clCreateFromGLTexture(context: cl_context, flags: cl_mem_flags, target: cl_GLenum, miplevel: cl_GLint, texture: cl_GLuint) = gl::create_from_texture;
        absent clGetDeviceIDsFromD3D11KHR(platform: cl_platform_id, d3d_device_source: cl_uint, d3d_object: *mut c_void, d3d_device_set: cl_uint, num_entries: cl_uint, devices: *mut cl_device_id, num_devices: *mut cl_uint);
        absent_create clCreateFromD3D11BufferKHR(context: cl_context, flags: cl_mem_flags, resource: *mut c_void);
        absent_create clCreateFromD3D11Texture2DKHR(context: cl_context, flags: cl_mem_flags, resource: *mut c_void, subresource: cl_uint);
        absent_create clCreateFromD3D11Texture3DKHR(context: cl_context, flags: cl_mem_flags, resource: *mut c_void, subresource: cl_uint);
        absent_create clCreateFromDX9MediaSurfaceKHR(context: cl_context, flags: cl_mem_flags, adapter_type: cl_uint, surface_info: *mut c_void, plane: cl_uint);
        absent clEnqueueAcquireD3D11ObjectsKHR(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event);
        absent clEnqueueReleaseD3D11ObjectsKHR(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event);
        absent clGetDeviceIDsFromDX9MediaAdapterKHR(platform: cl_platform_id, num_media_adapters: cl_uint, media_adapter_type: *mut cl_uint, media_adapters: *mut c_void, media_adapter_set: cl_uint, num_entries: cl_uint, devices: *mut cl_device_id, num_devices: *mut cl_uint);
        absent clEnqueueAcquireDX9MediaSurfacesKHR(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event);
        absent clEnqueueReleaseDX9MediaSurfacesKHR(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event);
        create clCreateFromEGLImageKHR(context: cl_context, egldisplay: *mut c_void, eglimage: *mut c_void, flags: cl_mem_flags, properties: *const isize) = gl::create_from_egl_image;
        status clEnqueueAcquireEGLObjectsKHR(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = gl::enqueue_acquire_egl;
        status clEnqueueReleaseEGLObjectsKHR(command_queue: cl_command_queue, num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = gl::enqueue_release_egl;
        create clCreateEventFromEGLSyncKHR(context: cl_context, sync: *mut c_void, display: *mut c_void) = gl::create_event_egl;

        // OpenCL 2.0
        create clCreateCommandQueueWithProperties(context: cl_context, device: cl_device_id, properties: *const cl_queue_properties) = queue::create;
        create clCreatePipe(context: cl_context, flags: cl_mem_flags, pipe_packet_size: cl_uint, pipe_max_packets: cl_uint, properties: *const cl_pipe_properties) = svm::create_pipe;
        status clGetPipeInfo(pipe: cl_mem, param_name: cl_pipe_info, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = svm::get_pipe_info;
        pointer clSVMAlloc(context: cl_context, flags: cl_svm_mem_flags, size: usize, alignment: cl_uint) = svm::alloc;
        nothing clSVMFree(context: cl_context, svm_pointer: *mut c_void) = svm::free;
        status clEnqueueSVMFree(command_queue: cl_command_queue, num_svm_pointers: cl_uint, svm_pointers: *mut *mut c_void, pfn_free_func: FreeFunction, user_data: *mut c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = svm::enqueue_free;
        status clEnqueueSVMMemcpy(command_queue: cl_command_queue, blocking_copy: cl_bool, dst_ptr: *mut c_void, src_ptr: *const c_void, size: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = svm::enqueue_memcpy;
        status clEnqueueSVMMemFill(command_queue: cl_command_queue, svm_ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = svm::enqueue_fill;
        status clEnqueueSVMMap(command_queue: cl_command_queue, blocking_map: cl_bool, flags: cl_map_flags, svm_ptr: *mut c_void, size: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = svm::enqueue_map;
        status clEnqueueSVMUnmap(command_queue: cl_command_queue, svm_ptr: *mut c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = svm::enqueue_unmap;
        create clCreateSamplerWithProperties(context: cl_context, sampler_properties: *const cl_sampler_properties) = sampler::create;
        status clSetKernelArgSVMPointer(kernel: cl_kernel, arg_index: cl_uint, arg_value: *const c_void) = kernel::set_arg_svm_pointer;
        status clSetKernelExecInfo(kernel: cl_kernel, param_name: cl_kernel_exec_info, param_value_size: usize, param_value: *const c_void) = kernel::set_exec_info;
        status clGetKernelSubGroupInfoKHR(in_kernel: cl_kernel, in_device: cl_device_id, param_name: cl_kernel_sub_group_info, input_value_size: usize, input_value: *const c_void, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = kernel::get_sub_group_info;

        // OpenCL 2.1
        create clCloneKernel(source_kernel: cl_kernel) = kernel::clone_kernel;
        create clCreateProgramWithIL(context: cl_context, il: *const c_void, length: usize) = program::create_with_il;
        status clEnqueueSVMMigrateMem(command_queue: cl_command_queue, num_svm_pointers: cl_uint, svm_pointers: *mut *const c_void, sizes: *const usize, flags: cl_mem_migration_flags, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = svm::enqueue_migrate;
        status clGetDeviceAndHostTimer(device: cl_device_id, device_timestamp: *mut cl_ulong, host_timestamp: *mut cl_ulong) = device::get_device_and_host_timer;
        status clGetHostTimer(device: cl_device_id, host_timestamp: *mut cl_ulong) = device::get_host_timer;
        status clGetKernelSubGroupInfo(kernel: cl_kernel, device: cl_device_id, param_name: cl_kernel_sub_group_info, input_value_size: usize, input_value: *const c_void, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = kernel::get_sub_group_info;
        status clSetDefaultDeviceCommandQueue(context: cl_context, device: cl_device_id, command_queue: cl_command_queue) = queue::set_default_device_queue;

        // OpenCL 2.2
        status clSetProgramReleaseCallback(program: cl_program, pfn_notify: NotifyProgram, user_data: *mut c_void) = program::set_release_callback;
        status clSetProgramSpecializationConstant(program: cl_program, spec_id: cl_uint, spec_size: usize, spec_value: *const c_void) = program::set_specialization_constant;

        // OpenCL 3.0
        create clCreateBufferWithProperties(context: cl_context, properties: *const cl_mem_properties, flags: cl_mem_flags, size: usize, host_ptr: *mut c_void) = buffer::create_with_properties;
        create clCreateImageWithProperties(context: cl_context, properties: *const cl_mem_properties, flags: cl_mem_flags, image_format: *const cl_image_format, image_desc: *const cl_image_desc, host_ptr: *mut c_void) = image::create_with_properties;
        status clSetContextDestructorCallback(context: cl_context, pfn_notify: NotifyContext, user_data: *mut c_void) = context::set_destructor_callback;

        // OpenCL 3.1
        status clGetKernelSuggestedLocalWorkSize(command_queue: cl_command_queue, kernel: cl_kernel, work_dim: cl_uint, global_work_offset: *const usize, global_work_size: *const usize, suggested_local_work_size: *mut usize) = kernel::get_suggested_local_work_size;
    }
    extra {
        pointer clIcdGetFunctionAddressForPlatformKHR(platform: cl_platform_id, func_name: *const c_char) = ext::get_function_address_of_platform;
        status clIcdSetPlatformDispatchDataKHR(platform: cl_platform_id, dispatch_data: *mut c_void) = platform::set_dispatch_data;
        status clIcdGetPlatformIDsKHR(num_entries: cl_uint, platforms: *mut cl_platform_id, num_platforms: *mut cl_uint) = platform::get_ids;
        create clCreateCommandQueueWithPropertiesKHR(context: cl_context, device: cl_device_id, properties: *const cl_queue_properties) = queue::create;
        status clTerminateContextKHR(context: cl_context) = context::terminate;
        // cl_khr_command_buffer
        create clCreateCommandBufferKHR(num_queues: cl_uint, queues: *const cl_command_queue, properties: *const cl_command_buffer_properties_khr) = command_buffer::create;
        status clRetainCommandBufferKHR(command_buffer: cl_command_buffer_khr) = command_buffer::retain;
        status clReleaseCommandBufferKHR(command_buffer: cl_command_buffer_khr) = command_buffer::release;
        status clFinalizeCommandBufferKHR(command_buffer: cl_command_buffer_khr) = command_buffer::finalize;
        status clEnqueueCommandBufferKHR(num_queues: cl_uint, queues: *mut cl_command_queue, command_buffer: cl_command_buffer_khr, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = command_buffer::enqueue;
        status clCommandBarrierWithWaitListKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::barrier;
        status clCommandCopyBufferKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, src_buffer: cl_mem, dst_buffer: cl_mem, src_offset: usize, dst_offset: usize, size: usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::copy_buffer;
        status clCommandCopyBufferRectKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, src_buffer: cl_mem, dst_buffer: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize, src_row_pitch: usize, src_slice_pitch: usize, dst_row_pitch: usize, dst_slice_pitch: usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::copy_buffer_rect;
        status clCommandCopyBufferToImageKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, src_buffer: cl_mem, dst_image: cl_mem, src_offset: usize, dst_origin: *const usize, region: *const usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::copy_buffer_to_image;
        status clCommandCopyImageKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, src_image: cl_mem, dst_image: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::copy_image;
        status clCommandCopyImageToBufferKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, src_image: cl_mem, dst_buffer: cl_mem, src_origin: *const usize, region: *const usize, dst_offset: usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::copy_image_to_buffer;
        status clCommandFillBufferKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, buffer: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::fill_buffer;
        status clCommandFillImageKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, image: cl_mem, fill_color: *const c_void, origin: *const usize, region: *const usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::fill_image;
        status clCommandNDRangeKernelKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, kernel: cl_kernel, work_dim: cl_uint, global_work_offset: *const usize, global_work_size: *const usize, local_work_size: *const usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::nd_range_kernel;
        status clCommandSVMMemcpyKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, dst_ptr: *mut c_void, src_ptr: *const c_void, size: usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::svm_memcpy;
        status clCommandSVMMemFillKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue, properties: *const cl_command_properties_khr, svm_ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, mutable_handle: *mut cl_mutable_command_khr) = command_buffer::svm_fill;
        status clGetCommandBufferInfoKHR(command_buffer: cl_command_buffer_khr, param_name: cl_command_buffer_info_khr, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = command_buffer::get_info;
        // cl_khr_command_buffer_multi_device
        create clRemapCommandBufferKHR(command_buffer: cl_command_buffer_khr, automatic: cl_bool, num_queues: cl_uint, queues: *const cl_command_queue, num_handles: cl_uint, handles: *const cl_mutable_command_khr, handles_ret: *mut cl_mutable_command_khr) = command_buffer::remap;
        // cl_khr_command_buffer_mutable_dispatch
        status clUpdateMutableCommandsKHR(command_buffer: cl_command_buffer_khr, num_configs: cl_uint, config_types: *const cl_command_buffer_update_type_khr, configs: *mut *const c_void) = command_buffer::update;
        status clGetMutableCommandInfoKHR(command: cl_mutable_command_khr, param_name: cl_mutable_command_info_khr, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = command_buffer::get_mutable_info;
        // cl_khr_semaphore
        create clCreateSemaphoreWithPropertiesKHR(context: cl_context, sema_props: *const cl_semaphore_properties_khr) = semaphore::create;
        status clEnqueueWaitSemaphoresKHR(command_queue: cl_command_queue, num_sema_objects: cl_uint, sema_objects: *const cl_semaphore_khr, sema_payload_list: *const cl_semaphore_payload_khr, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = semaphore::enqueue_wait;
        status clEnqueueSignalSemaphoresKHR(command_queue: cl_command_queue, num_sema_objects: cl_uint, sema_objects: *const cl_semaphore_khr, sema_payload_list: *const cl_semaphore_payload_khr, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = semaphore::enqueue_signal;
        status clGetSemaphoreInfoKHR(sema_object: cl_semaphore_khr, param_name: cl_semaphore_info_khr, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = semaphore::get_info;
        status clRetainSemaphoreKHR(sema_object: cl_semaphore_khr) = semaphore::retain;
        status clReleaseSemaphoreKHR(sema_object: cl_semaphore_khr) = semaphore::release;
        // cl_khr_external_memory
        status clEnqueueAcquireExternalMemObjectsKHR(command_queue: cl_command_queue, num_mem_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::acquire_external;
        status clEnqueueReleaseExternalMemObjectsKHR(command_queue: cl_command_queue, num_mem_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = enqueue::release_external;
        // cl_arm_import_memory
        create clImportMemoryARM(context: cl_context, flags: cl_mem_flags, properties: *const cl_import_properties_arm, memory: *mut c_void, size: usize) = buffer::import_memory;
        // cl_khr_external_semaphore
        status clGetSemaphoreHandleForTypeKHR(sema_object: cl_semaphore_khr, device: cl_device_id, handle_type: cl_external_semaphore_handle_type_khr, handle_size: usize, handle_ptr: *mut c_void, handle_size_ret: *mut usize) = semaphore::get_handle;
        status clReImportSemaphoreSyncFdKHR(sema_object: cl_semaphore_khr, reimport_props: *mut cl_semaphore_reimport_properties_khr, fd: cl_int) = semaphore::reimport_sync_fd;
        // cl_ext_buffer_device_address
        status clSetKernelArgDevicePointerEXT(kernel: cl_kernel, arg_index: cl_uint, arg_value: cl_mem_device_address_ext) = kernel::set_arg_device_pointer;
        // cl_ext_image_requirements_info
        status clGetImageRequirementsInfoEXT(context: cl_context, properties: *const cl_mem_properties, flags: cl_mem_flags, image_format: *const cl_image_format, image_desc: *const cl_image_desc, param_name: cl_image_requirements_info_ext, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = image::get_requirements;
        // cl_khr_unified_svm
        create clSVMAllocWithPropertiesKHR(context: cl_context, properties: *const cl_svm_alloc_properties_khr, svm_type_index: cl_uint, size: usize) = unified_svm::alloc;
        status clSVMFreeWithPropertiesKHR(context: cl_context, properties: *const cl_svm_free_properties_khr, flags: cl_svm_free_flags_khr, ptr: *mut c_void) = unified_svm::free;
        status clGetSVMPointerInfoKHR(context: cl_context, device: cl_device_id, ptr: *const c_void, param_name: cl_svm_pointer_info_khr, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = unified_svm::get_info;
        status clGetSVMSuggestedTypeIndexKHR(context: cl_context, required_capabilities: cl_svm_capabilities_khr, desired_capabilities: cl_svm_capabilities_khr, properties: *const cl_svm_alloc_properties_khr, size: usize, suggested_svm_type_index: *mut cl_uint) = unified_svm::get_suggested_type;
        // cl_intel_unified_shared_memory
        create clHostMemAllocINTEL(context: cl_context, properties: *const cl_mem_properties_intel, size: usize, alignment: cl_uint) = usm::host_alloc;
        create clDeviceMemAllocINTEL(context: cl_context, device: cl_device_id, properties: *const cl_mem_properties_intel, size: usize, alignment: cl_uint) = usm::device_alloc;
        create clSharedMemAllocINTEL(context: cl_context, device: cl_device_id, properties: *const cl_mem_properties_intel, size: usize, alignment: cl_uint) = usm::shared_alloc;
        status clMemFreeINTEL(context: cl_context, ptr: *mut c_void) = usm::free;
        status clMemBlockingFreeINTEL(context: cl_context, ptr: *mut c_void) = usm::blocking_free;
        status clGetMemAllocInfoINTEL(context: cl_context, ptr: *const c_void, param_name: cl_mem_info_intel, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) = usm::get_info;
        status clSetKernelArgMemPointerINTEL(kernel: cl_kernel, arg_index: cl_uint, arg_value: *const c_void) = kernel::set_arg_svm_pointer;
        status clEnqueueMemFillINTEL(command_queue: cl_command_queue, dst_ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = usm::enqueue_fill;
        status clEnqueueMemcpyINTEL(command_queue: cl_command_queue, blocking: cl_bool, dst_ptr: *mut c_void, src_ptr: *const c_void, size: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = usm::enqueue_memcpy;
        status clEnqueueMigrateMemINTEL(command_queue: cl_command_queue, ptr: *const c_void, size: usize, flags: cl_mem_migration_flags, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = usm::enqueue_migrate;
        status clEnqueueMemAdviseINTEL(command_queue: cl_command_queue, ptr: *const c_void, size: usize, advice: cl_mem_advice_intel, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) = usm::enqueue_advise;
        create clCreateProgramWithILKHR(context: cl_context, il: *const c_void, length: usize) = program::create_with_il;
        status clGetKernelSuggestedLocalWorkSizeKHR(command_queue: cl_command_queue, kernel: cl_kernel, work_dim: cl_uint, global_work_offset: *const usize, global_work_size: *const usize, suggested_local_work_size: *mut usize) = kernel::get_suggested_local_work_size;
    }
}

/// The number of entries of a dispatch table.
const WORDS: usize = size_of::<cl_icd_dispatch>() / size_of::<usize>();

/// CL_ICD2_TAG_KHR
const ICD2_TAG: usize = match size_of::<usize>() {
    4 => 0x434c_3331,
    _ => 0x4f50_454e_434c_3331_u64 as usize,
};

/// Returns the dispatch table, to which the first word of every handle points. Two entries that no loader calls say that a loader
/// may keep a table of its own (cl_khr_icd 2.0).
pub(crate) fn tagged() -> &'static [usize; WORDS] {
    static TABLE: OnceLock<[usize; WORDS]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let each = size_of::<usize>();
        // SAFETY: a structure of pointers to functions, all of which are there, read as the addresses that they are.
        let mut words: [usize; WORDS] = unsafe { std::mem::transmute_copy(&DISPATCH) };
        words[offset_of!(cl_icd_dispatch, clGetPlatformIDs) / each] = ICD2_TAG;
        words[offset_of!(cl_icd_dispatch, clUnloadCompiler) / each] = ICD2_TAG;
        words
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name() {
        assert_eq!(
            address("clCreateBuffer"),
            Some(clCreateBuffer as *mut c_void)
        );
        assert_eq!(address("clCreateFromD3D10BufferKHR"), None);
        assert_eq!(address("clNoSuchFunction"), None);
        assert!(NAMES.iter().filter(|name| address(name).is_some()).count() > 100);
    }

    /// The loader finds functions by their place in the table.
    #[test]
    fn the_table_has_no_holes() {
        assert_eq!(WORDS, NAMES.len());
        let tags = NAMES
            .iter()
            .zip(tagged())
            .filter(|(_, word)| **word == ICD2_TAG);
        let tags: Vec<&str> = tags.map(|(name, _)| *name).collect();
        assert_eq!(tags, ["clGetPlatformIDs", "clUnloadCompiler"]);
        assert!(tagged().iter().all(|word| *word != 0));
    }
}
