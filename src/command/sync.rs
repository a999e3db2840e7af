//! Markers, barriers, and native kernels.

use super::{Command, QueueTarget, Work};
use crate::cl;
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::callback::{Callback, NativeFn};
use crate::object::mem::Mem;
use crate::object::native_kernel::NativeKernel;
use std::sync::Arc;

/// Implements clEnqueueMarkerWithWaitList, clEnqueueMarker.
pub fn marker() -> Command {
    Command::new(cl::CL_COMMAND_MARKER, Work::Marker)
}

/// Implements clEnqueueBarrierWithWaitList, clEnqueueBarrier, clEnqueueWaitForEvents.
pub fn barrier() -> Command {
    Command::new(cl::CL_COMMAND_BARRIER, Work::Barrier)
}

/// Implements clEnqueueNativeKernel, once its arguments have been checked: `args` is a copy of
/// them, into which each buffer's address is written at the given offset.
pub fn native(
    target: &QueueTarget,
    function: Callback<NativeFn>,
    args: Vec<u8>,
    buffers: Vec<(Ref<Mem>, usize)>,
) -> ClResult<Command> {
    if !target.device.caps().native_kernels {
        return err(
            cl::CL_INVALID_OPERATION,
            "the device does not run native kernels",
        );
    }
    for (mem, offset) in &buffers {
        target.check_buffer(mem)?;
        mem.note_written();
        let fits = offset
            .checked_add(size_of::<usize>())
            .is_some_and(|end| end <= args.len());
        if !fits {
            return err(
                cl::CL_INVALID_VALUE,
                "args_mem_loc points beyond the arguments",
            );
        }
    }
    let kernel = NativeKernel::new(function, args, buffers, target.memory)?;
    Ok(Command::new(
        cl::CL_COMMAND_NATIVE_KERNEL,
        Work::Native(Arc::new(kernel)),
    ))
}
