//! Answers to clGetContextInfo, clGetMemObjectInfo and clGetEventInfo.

use super::context::Context;
use super::event::Event;
use super::info::{answer, Info, InfoOut, Written};
use super::mem::Mem;
use crate::cl::{self, cl_uint};
use crate::error::ClResult;
use crate::handle::Ref;

impl Info for Ref<Context> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_CONTEXT_REFERENCE_COUNT => self.api_refs(),
            CL_CONTEXT_NUM_DEVICES => self.devices.len() as cl_uint,
            CL_CONTEXT_DEVICES => &self.devices,
            CL_CONTEXT_PROPERTIES => &self.properties,
        }
    }
}

impl Info for Ref<Mem> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_MEM_TYPE => self.object_type,
            CL_MEM_FLAGS => self.flags,
            CL_MEM_SIZE => self.size,
            CL_MEM_HOST_PTR => self.host_ptr(),
            CL_MEM_MAP_COUNT => self.map_count(),
            CL_MEM_REFERENCE_COUNT => self.api_refs(),
            CL_MEM_CONTEXT => &self.context,
            CL_MEM_ASSOCIATED_MEMOBJECT => self.parent().cloned(),
            CL_MEM_OFFSET => self.offset(),
            CL_MEM_USES_SVM_POINTER => self.store.svm,
            CL_MEM_DEVICE_ADDRESS_EXT => self.device_addresses()?,
            CL_MEM_PROPERTIES => &self.properties,
        }
    }
}

impl Info for Ref<Event> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_EVENT_COMMAND_QUEUE if self.has_several_queues() => std::ptr::null_mut::<std::ffi::c_void>(),
            CL_EVENT_COMMAND_QUEUE => self.owner().map_or(std::ptr::null_mut(), |owner| owner.handle()),
            CL_EVENT_CONTEXT => &self.context,
            CL_EVENT_COMMAND_TYPE => self.command_type,
            CL_EVENT_COMMAND_EXECUTION_STATUS => self.status(),
            CL_EVENT_REFERENCE_COUNT => self.api_refs(),
        }
    }
}
