//! Programs.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_device_id, cl_int, cl_program, cl_program_build_info, cl_program_info, cl_uint,
};
use pumice_runtime::error::{err, ClError, ClResult};
use pumice_runtime::handle::{self, Ref};
use pumice_runtime::object::callback::{Callback, ObjectFn};
use pumice_runtime::object::device::Device;
use pumice_runtime::object::program::{self, Program};
use std::ffi::{c_char, c_uchar, c_void};

pub fn create_with_source(
    context: Handle,
    count: cl_uint,
    strings: Out<*const c_char>,
    lengths: In<usize>,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let source = abi::strings(count, strings.input(), lengths)?.concat();
    let source = String::from_utf8_lossy(&source).into_owned();
    abi::publish(Ok(program::with_source(&context, source)))
}

pub fn create_with_il(context: Handle, il: In<c_void>, length: usize) -> ClResult<*mut c_void> {
    let context = context.context()?;
    match il.bytes(length) {
        Some(il) if length > 0 => abi::publish(program::with_il(&context, il)),
        _ => err(cl::CL_INVALID_VALUE, "the IL is NULL or its length is 0"),
    }
}

pub fn create_with_binary(
    context: Handle,
    num_devices: cl_uint,
    devices: In<cl_device_id>,
    lengths: In<usize>,
    binaries: Out<*const c_uchar>,
    status: Out<cl_int>,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let devices: Vec<Ref<Device>> = abi::objects(num_devices, devices)?;
    let blobs = abi::blobs(num_devices, binaries.input(), lengths)?;
    if blobs.iter().any(Option::is_none) {
        status.set_all(blobs.iter().map(|blob| match blob {
            Some(_) => cl::CL_SUCCESS,
            None => cl::CL_INVALID_VALUE,
        }));
        return err(cl::CL_INVALID_VALUE, "a binary is NULL or empty");
    }
    let blobs: Vec<&[u8]> = blobs.into_iter().flatten().collect();
    let (program, codes) = program::with_binaries(&context, &devices, &blobs)?;
    status.set_all(codes);
    abi::publish(program.ok_or_else(|| ClError::new(cl::CL_INVALID_BINARY, "a binary was refused")))
}

/// Fails, as there are no built-in kernels.
pub fn create_with_built_in_kernels(
    context: Handle,
    num_devices: cl_uint,
    devices: In<cl_device_id>,
    names: In<c_char>,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    for device in abi::objects::<Device>(num_devices, devices)? {
        context.device_index(&device)?;
    }
    match names.text() {
        Some(names) => err(
            cl::CL_INVALID_VALUE,
            format!("no built-in kernels {names:?}"),
        ),
        None => err(cl::CL_INVALID_VALUE, "kernel_names is NULL"),
    }
}

pub fn retain(program: Handle) -> ClResult {
    handle::retain::<Program>(program.as_ptr())
}

pub fn release(program: Handle) -> ClResult {
    handle::release::<Program>(program.as_ptr())
}

pub fn build(
    program: Handle,
    num_devices: cl_uint,
    devices: In<cl_device_id>,
    options: In<c_char>,
    function: Option<ObjectFn>,
    user_data: Handle,
) -> ClResult {
    let program = program.object::<Program>()?;
    let devices = abi::optional_objects(num_devices, devices)?;
    let notify = Callback::optional(function, user_data.as_ptr())?;
    let options = options.text().unwrap_or_default();
    program.build(devices.as_deref(), &options, notify)
}

#[allow(clippy::too_many_arguments)]
pub fn compile(
    program: Handle,
    num_devices: cl_uint,
    devices: In<cl_device_id>,
    options: In<c_char>,
    num_headers: cl_uint,
    headers: In<cl_program>,
    names: Out<*const c_char>,
    function: Option<ObjectFn>,
    user_data: Handle,
) -> ClResult {
    let program = program.object::<Program>()?;
    let devices = abi::optional_objects(num_devices, devices)?;
    let notify = Callback::optional(function, user_data.as_ptr())?;
    if (num_headers == 0) != headers.is_null() || (num_headers == 0) != names.is_null() {
        return err(
            cl::CL_INVALID_VALUE,
            "the headers, their names and their number do not fit together",
        );
    }
    let mut included: Vec<(String, Ref<Program>)> = Vec::new();
    if num_headers > 0 {
        let names = abi::strings(num_headers, names.input(), In::null())?;
        for (name, header) in names.into_iter().zip(abi::objects(num_headers, headers)?) {
            included.push((String::from_utf8_lossy(&name).into_owned(), header));
        }
    }
    let options = options.text().unwrap_or_default();
    program.compile(devices.as_deref(), &options, &included, notify)
}

/// Links programs. The program is returned even when linking fails, for its build log.
#[allow(clippy::too_many_arguments)]
pub fn link(
    context: Handle,
    num_devices: cl_uint,
    devices: In<cl_device_id>,
    options: In<c_char>,
    num_programs: cl_uint,
    programs: In<cl_program>,
    function: Option<ObjectFn>,
    user_data: Handle,
) -> ClResult<(*mut c_void, ClResult)> {
    let context = context.context()?;
    let devices = abi::optional_objects(num_devices, devices)?;
    let notify = Callback::optional(function, user_data.as_ptr())?;
    let programs = abi::objects(num_programs, programs)?;
    let options = options.text().unwrap_or_default();
    program::link(&context, devices.as_deref(), &options, &programs, notify)
}

pub fn get_info(
    program: Handle,
    param: cl_program_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let program = program.object::<Program>()?;
    if param == cl::CL_PROGRAM_BINARIES {
        // The only query whose buffer is read: it holds the places to write to.
        return abi::blobs_out(&program.binaries(), size, value, size_ret);
    }
    program
        .info(param, abi::info(size, value, size_ret))
        .map(drop)
}

pub fn get_build_info(
    program: Handle,
    device: Handle,
    param: cl_program_build_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let program = program.object::<Program>()?;
    let device = device.object::<Device>()?;
    program
        .build_info(&device, param, abi::info(size, value, size_ret))
        .map(drop)
}

pub fn set_release_callback(
    program: Handle,
    function: Option<ObjectFn>,
    user_data: Handle,
) -> ClResult {
    let program = program.object::<Program>()?;
    let Some(function) = function else {
        return err(cl::CL_INVALID_VALUE, "pfn_notify is NULL");
    };
    program.set_release_callback(Callback::new(function, user_data.as_ptr()))
}

pub fn set_specialization_constant(
    program: Handle,
    id: cl_uint,
    size: usize,
    value: In<c_void>,
) -> ClResult {
    let program = program.object::<Program>()?;
    match value.bytes(size) {
        Some(bytes) => program.set_spec_constant(id, bytes),
        None => err(cl::CL_INVALID_VALUE, "spec_value is NULL"),
    }
}
