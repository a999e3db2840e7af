//! Markers, barriers, and native kernels (which no device of ours runs).

use super::{Command, Target, Work};
use crate::cl;
use crate::error::{err, ClResult};

/// clEnqueueMarkerWithWaitList, clEnqueueMarker.
pub fn marker() -> Command {
    Command {
        kind: cl::CL_COMMAND_MARKER,
        work: Work::Marker,
    }
}

/// clEnqueueBarrierWithWaitList, clEnqueueBarrier, clEnqueueWaitForEvents.
pub fn barrier() -> Command {
    Command {
        kind: cl::CL_COMMAND_BARRIER,
        work: Work::Barrier,
    }
}

/// clEnqueueNativeKernel, once its arguments have been checked.
pub fn native(_target: &Target) -> ClResult<Command> {
    err(
        cl::CL_INVALID_OPERATION,
        "the device does not run native kernels",
    )
}
