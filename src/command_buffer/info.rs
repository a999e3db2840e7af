//! Answers to clGetCommandBufferInfoKHR and clGetMutableCommandInfoKHR.

use super::{CommandBuffer, MutableCommand};
use crate::cl::{self, cl_uint};
use crate::error::ClResult;
use crate::handle::Ref;
use crate::object::info::{answer, Info, InfoOut, Written};

impl Info for Ref<CommandBuffer> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_COMMAND_BUFFER_NUM_QUEUES_KHR => self.queues.len() as cl_uint,
            CL_COMMAND_BUFFER_QUEUES_KHR => &self.queues,
            CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR => self.api_refs(),
            CL_COMMAND_BUFFER_STATE_KHR => {
                let state = self.state.lock();
                match state.finalized {
                    false => cl::CL_COMMAND_BUFFER_STATE_RECORDING_KHR,
                    true if CommandBuffer::is_executable(&state) =>
                        cl::CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR,
                    true => cl::CL_COMMAND_BUFFER_STATE_FINALIZED_KHR,
                }
            },
            CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR => &self.properties,
            CL_COMMAND_BUFFER_CONTEXT_KHR => self.context(),
        }
    }
}

impl Info for Ref<MutableCommand> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        let buffer = self.buffer()?;
        let (queue, now) = buffer.dispatch(self)?;
        let dims = now.dims as usize;
        let sizes = |sizes: Option<[usize; 3]>| sizes.unwrap_or_default()[..dims].to_vec();
        answer! { param, out;
            CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR => &buffer.queues[queue],
            CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR => &buffer,
            CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR => cl::CL_COMMAND_NDRANGE_KERNEL,
            CL_MUTABLE_COMMAND_PROPERTIES_ARRAY_KHR => &self.properties,
            CL_MUTABLE_DISPATCH_KERNEL_KHR => &now.recorded,
            CL_MUTABLE_DISPATCH_DIMENSIONS_KHR => now.dims,
            CL_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET_KHR => sizes(now.offset),
            CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR => sizes(now.global),
            CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR => sizes(now.local),
        }
    }
}
