//! Answers to clGetCommandQueueInfo.

use super::Queue;
use crate::cl::{self, cl_uint};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::info::{unknown, Info, InfoOut, Written};

impl Info for Ref<Queue> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            cl::CL_QUEUE_CONTEXT => out.write(self.context()),
            cl::CL_QUEUE_DEVICE => out.write(self.device()),
            cl::CL_QUEUE_REFERENCE_COUNT => out.write(self.api_refs()),
            cl::CL_QUEUE_PROPERTIES => out.write(self.properties),
            cl::CL_QUEUE_PROPERTIES_ARRAY => out.write(self.list.as_slice()),
            cl::CL_QUEUE_DEVICE_DEFAULT => out.write(crate::object::device_queue::default_queue(
                self.context(),
                self.device(),
            )),
            cl::CL_QUEUE_SIZE => err(
                cl::CL_INVALID_COMMAND_QUEUE,
                "only queues on the device have a size",
            ),
            _ => unknown(param),
        }
    }
}
