//! Kernels: creation, arguments, queries.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_kernel, cl_kernel_arg_info, cl_kernel_exec_info, cl_kernel_info,
    cl_kernel_sub_group_info, cl_kernel_work_group_info, cl_uint,
};
use pumice_runtime::command::kernel::{snapshot, suggested_local_size, NdRange};
use pumice_runtime::error::{err, ClResult};
use pumice_runtime::handle::{self, Object};
use pumice_runtime::object::device::Device;
use pumice_runtime::object::kernel::Kernel;
use pumice_runtime::object::program::Program;
use pumice_runtime::queue::Queue;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

pub fn create(program: Handle, name: In<c_char>) -> ClResult<*mut c_void> {
    let program = program.object::<Program>()?;
    program.context.ensure_works()?;
    let Some(name) = name.text() else {
        return err(cl::CL_INVALID_VALUE, "kernel_name is NULL");
    };
    abi::publish(program.create_kernel(&name))
}

pub fn create_all(
    program: Handle,
    entries: cl_uint,
    kernels: Out<cl_kernel>,
    count: Out<cl_uint>,
) -> ClResult {
    let program = program.object::<Program>()?;
    program.context.ensure_works()?;
    let found = program.kernel_names()?.len();
    if !kernels.is_null() {
        if (entries as usize) < found {
            return err(
                cl::CL_INVALID_VALUE,
                format!("{found} kernels, room for {entries}"),
            );
        }
        let made = program.create_kernels()?;
        kernels.set_all(made.iter().map(Object::publish));
    }
    count.set(found as cl_uint);
    Ok(())
}

pub fn clone_kernel(kernel: Handle) -> ClResult<*mut c_void> {
    let kernel = kernel.object::<Kernel>()?;
    kernel.program.context.ensure_works()?;
    abi::publish(Ok(kernel.clone_kernel()))
}

pub fn retain(kernel: Handle) -> ClResult {
    handle::retain::<Kernel>(kernel.as_ptr())
}

pub fn release(kernel: Handle) -> ClResult {
    handle::release::<Kernel>(kernel.as_ptr())
}

pub fn set_arg(kernel: Handle, index: cl_uint, size: usize, value: In<c_void>) -> ClResult {
    kernel
        .object::<Kernel>()?
        .set_arg(index, size, value.bytes(size))
}

pub fn set_arg_svm_pointer(kernel: Handle, index: cl_uint, value: In<c_void>) -> ClResult {
    let kernel = kernel.object::<Kernel>()?;
    kernel.set_arg_svm(index, value.address())
}

pub fn set_arg_device_pointer(kernel: Handle, index: cl_uint, address: u64) -> ClResult {
    kernel
        .object::<Kernel>()?
        .set_arg_device_pointer(index, address)
}

pub fn set_exec_info(
    kernel: Handle,
    param: cl_kernel_exec_info,
    size: usize,
    value: In<c_void>,
) -> ClResult {
    let kernel = kernel.object::<Kernel>()?;
    kernel.set_exec_info(param, size, value.bytes(size))
}

pub fn get_info(
    kernel: Handle,
    param: cl_kernel_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    kernel
        .object::<Kernel>()?
        .info(param, abi::info(size, value, size_ret))
        .map(drop)
}

pub fn get_arg_info(
    kernel: Handle,
    index: cl_uint,
    param: cl_kernel_arg_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    kernel
        .object::<Kernel>()?
        .arg_info(index, param, abi::info(size, value, size_ret))
        .map(drop)
}

pub fn get_work_group_info(
    kernel: Handle,
    device: Handle,
    param: cl_kernel_work_group_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let kernel = kernel.object::<Kernel>()?;
    let device = match device.is_null() {
        true => None,
        false => Some(device.object::<Device>()?),
    };
    kernel
        .work_group_info(device.as_ref(), param, abi::info(size, value, size_ret))
        .map(drop)
}

#[allow(clippy::too_many_arguments)]
pub fn get_sub_group_info(
    kernel: Handle,
    device: Handle,
    param: cl_kernel_sub_group_info,
    input_size: usize,
    input: In<c_void>,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let kernel = kernel.object::<Kernel>()?;
    let device = match device.is_null() {
        true => None,
        false => Some(device.object::<Device>()?),
    };
    let count = input_size / size_of::<usize>();
    // What does not fit any query is refused below, whatever it holds.
    let input = input
        .cast::<usize>()
        .array(count.min(4))
        .unwrap_or_default();
    let room = (!value.is_null()).then_some(size / size_of::<usize>());
    kernel
        .sub_group_info(
            device.as_ref(),
            param,
            &input,
            room,
            abi::info(size, value, size_ret),
        )
        .map(drop)
}

pub fn get_suggested_local_work_size(
    queue: Handle,
    kernel: Handle,
    dims: cl_uint,
    offset: In<usize>,
    global: In<usize>,
    suggested: Out<usize>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let kernel = kernel.object::<Kernel>()?;
    let target = &queue.target;
    if !Arc::ptr_eq(&kernel.program.context, &target.context) {
        return err(
            cl::CL_INVALID_CONTEXT,
            "the kernel is of another context than the queue",
        );
    }
    if dims == 0 || dims > 3 {
        return err(cl::CL_INVALID_WORK_DIMENSION, format!("{dims} dimensions"));
    }
    let count = dims as usize;
    let (offset, global) = (offset.array(count), global.array(count));
    if suggested.is_null() {
        return err(cl::CL_INVALID_VALUE, "suggested_local_work_size is NULL");
    }
    let range = NdRange {
        dims,
        offset: offset.as_deref(),
        global: global.as_deref(),
        local: None,
    };
    let launch = snapshot(target, &kernel, &range)?;
    let size = suggested_local_size(&target.device, &launch, &range)?;
    suggested.set_all(size.into_iter().take(count));
    Ok(())
}
