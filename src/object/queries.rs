//! Answers to clGetContextInfo, clGetMemObjectInfo and clGetEventInfo.

use super::context::Context;
use super::event::Event;
use super::info::{unknown, Info, InfoOut, Written};
use super::mem::Mem;
use crate::cl::{self, cl_uint};
use crate::error::ClResult;
use crate::handle::Ref;

impl Info for Ref<Context> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            cl::CL_CONTEXT_REFERENCE_COUNT => out.write(self.api_refs()),
            cl::CL_CONTEXT_NUM_DEVICES => out.write(self.devices.len() as cl_uint),
            cl::CL_CONTEXT_DEVICES => out.write(&self.devices),
            cl::CL_CONTEXT_PROPERTIES => out.write(&self.properties),
            _ => unknown(param),
        }
    }
}

impl Info for Ref<Mem> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            cl::CL_MEM_TYPE => out.write(self.object_type),
            cl::CL_MEM_FLAGS => out.write(self.flags),
            cl::CL_MEM_SIZE => out.write(self.size),
            cl::CL_MEM_HOST_PTR => out.write(self.host_ptr()),
            cl::CL_MEM_MAP_COUNT => out.write(self.map_count()),
            cl::CL_MEM_REFERENCE_COUNT => out.write(self.api_refs()),
            cl::CL_MEM_CONTEXT => out.write(&self.context),
            cl::CL_MEM_ASSOCIATED_MEMOBJECT => out.write(self.parent().cloned()),
            cl::CL_MEM_OFFSET => out.write(self.offset()),
            cl::CL_MEM_USES_SVM_POINTER => out.write(self.uses_svm_pointer()),
            cl::CL_MEM_DEVICE_ADDRESS_EXT => out.write(self.device_addresses()?),
            cl::CL_MEM_PROPERTIES => out.write(&self.properties),
            _ => unknown(param),
        }
    }
}

impl Info for Ref<Event> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        match param {
            cl::CL_EVENT_COMMAND_QUEUE => out.write(self.queue_handle()),
            cl::CL_EVENT_CONTEXT => out.write(&self.context),
            cl::CL_EVENT_COMMAND_TYPE => out.write(self.command_type),
            cl::CL_EVENT_COMMAND_EXECUTION_STATUS => out.write(self.status()),
            cl::CL_EVENT_REFERENCE_COUNT => out.write(self.api_refs()),
            _ => unknown(param),
        }
    }
}
