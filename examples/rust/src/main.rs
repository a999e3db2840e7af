// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds up numbers in shared virtual memory, a work-group at a time, and compares with the host's sum.

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{get_all_devices, Device, CL_DEVICE_TYPE_ALL};
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{CL_MAP_READ, CL_MAP_WRITE};
use opencl3::program::Program;
use opencl3::svm::SvmVec;
use opencl3::types::{cl_ulong, CL_BLOCKING};

const SOURCE: &str = "
kernel void sum(global const ulong *numbers, ulong count, global ulong *sums)
{
    ulong mine = 0;
    for (ulong i = get_global_id(0); i < count; i += get_global_size(0))
        mine += numbers[i];
    mine = work_group_reduce_add(mine);
    if (get_local_id(0) == 0)
        sums[get_group_id(0)] = mine;
}";

const COUNT: usize = 1 << 22;
const GROUPS: usize = 64;
const GROUP_SIZE: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let id = *get_all_devices(CL_DEVICE_TYPE_ALL)?
        .first()
        .ok_or("no OpenCL device")?;
    let device = Device::new(id);
    println!("device: {}", device.name()?);
    let context = Context::from_device(&device)?;
    let queue = CommandQueue::create_default_with_properties(&context, 0, 0)?;
    let program = Program::create_and_build_from_source(&context, SOURCE, "-cl-std=CL3.0")?;
    let kernel = Kernel::create(&program, "sum")?;

    let mut numbers = SvmVec::<cl_ulong>::allocate(&context, COUNT)?;
    let mut sums = SvmVec::<cl_ulong>::allocate(&context, GROUPS)?;
    if !numbers.is_fine_grained() {
        // SAFETY: the vector lives until the queue has finished, and no kernel uses it yet.
        unsafe { queue.enqueue_svm_map(CL_BLOCKING, CL_MAP_WRITE, &mut numbers, &[])? };
    }
    for (index, number) in numbers.iter_mut().enumerate() {
        *number = (index as u64).wrapping_mul(2_654_435_761) % 1000;
    }
    let expected: u64 = numbers.iter().sum();
    if !numbers.is_fine_grained() {
        // SAFETY: the host does not use the vector while it is unmapped.
        unsafe { queue.enqueue_svm_unmap(&numbers, &[])? };
    }

    // SAFETY: the arguments are those of the kernel, in its order, and live until the queue has finished.
    unsafe {
        ExecuteKernel::new(&kernel)
            .set_arg_svm(numbers.as_mut_ptr())
            .set_arg(&(COUNT as cl_ulong))
            .set_arg_svm(sums.as_mut_ptr())
            .set_global_work_size(GROUPS * GROUP_SIZE)
            .set_local_work_size(GROUP_SIZE)
            .enqueue_nd_range(&queue)?;
    }
    queue.finish()?;
    if !sums.is_fine_grained() {
        // SAFETY: the kernel has finished.
        unsafe { queue.enqueue_svm_map(CL_BLOCKING, CL_MAP_READ, &mut sums, &[])? };
    }
    let sum: u64 = sums.iter().sum();
    if !sums.is_fine_grained() {
        // SAFETY: the host does not use the vector any more.
        unsafe { queue.enqueue_svm_unmap(&sums, &[])? };
        queue.finish()?;
    }
    println!("sum of {COUNT} numbers: {sum}");
    if sum != expected {
        return Err(format!("the host's sum is {expected}").into());
    }
    Ok(())
}
