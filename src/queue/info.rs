//! Answers to clGetCommandQueueInfo.

use super::Queue;
use crate::cl::{self, cl_uint};
use crate::command::QueueTarget;
use crate::error::{ensure, ClResult};
use crate::handle::Ref;
use crate::object::device_queue::default_queue;
use crate::object::info::{answer, Info, InfoOut, Written};

impl Info for Ref<Queue> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        let QueueTarget {
            context, device, ..
        } = &self.target;
        ensure!(
            param != cl::CL_QUEUE_SIZE,
            cl::CL_INVALID_COMMAND_QUEUE,
            "only queues on the device have a size"
        );
        answer! { param, out;
            CL_QUEUE_CONTEXT => context,
            CL_QUEUE_DEVICE => device,
            CL_QUEUE_REFERENCE_COUNT => self.api_refs(),
            CL_QUEUE_PROPERTIES => self.properties,
            CL_QUEUE_PROPERTIES_ARRAY => &self.list,
            CL_QUEUE_DEVICE_DEFAULT => default_queue(context, device),
        }
    }
}
