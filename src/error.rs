//! The error of every OpenCL call: a CL_* code and, for the log, what was wrong.

use crate::backend::DeviceError;
use crate::cl::{self, cl_int};
use std::borrow::Cow;

/// An OpenCL error code with its reason.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{} ({code}): {what}", name(*.code))]
pub struct ClError {
    /// CL_* code, negative.
    pub code: cl_int,
    /// The reason, for the log and the context callback.
    pub what: Cow<'static, str>,
}

/// Result of an OpenCL call.
pub type ClResult<T = ()> = Result<T, ClError>;

impl ClError {
    /// Creates an error with its reason.
    pub fn new(code: cl_int, what: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            what: what.into(),
        }
    }

    /// Converts the error for entry points that allocate no memory objects, and so do not list
    /// CL_MEM_OBJECT_ALLOCATION_FAILURE, to CL_OUT_OF_RESOURCES.
    pub fn of_resources(self) -> Self {
        match self.code {
            cl::CL_MEM_OBJECT_ALLOCATION_FAILURE => Self {
                code: cl::CL_OUT_OF_RESOURCES,
                ..self
            },
            _ => self,
        }
    }
}

/// Returns `Err` with a code and a reason, as in `return err(CL_INVALID_VALUE, "size is 0")`.
pub fn err<T>(code: cl_int, what: impl Into<Cow<'static, str>>) -> ClResult<T> {
    Err(ClError::new(code, what))
}

/// Returns an error from the function unless a condition holds: `ensure!(size > 0, CL_INVALID_VALUE, "the size is 0")`.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $code:expr, $($what:tt)+) => {
        match $holds {
            true => {}
            false => return $crate::error::err($code, $crate::error::text(format_args!($($what)+))),
        }
    };
}
pub use crate::ensure;

/// Returns the text of a message, which is only put together if it has parts.
pub fn text(message: std::fmt::Arguments<'_>) -> Cow<'static, str> {
    match message.as_str() {
        Some(text) => text.into(),
        None => message.to_string().into(),
    }
}

/// An option whose lack is an error.
pub trait OrErr<T> {
    /// Returns the value, or an error with a code and a reason.
    fn or_err(self, code: cl_int, what: impl Into<Cow<'static, str>>) -> ClResult<T>;
}

impl<T> OrErr<T> for Option<T> {
    fn or_err(self, code: cl_int, what: impl Into<Cow<'static, str>>) -> ClResult<T> {
        match self {
            Some(value) => Ok(value),
            None => err(code, what),
        }
    }
}

impl From<DeviceError> for ClError {
    fn from(error: DeviceError) -> Self {
        let code = match &error {
            DeviceError::OutOfHostMemory => cl::CL_OUT_OF_HOST_MEMORY,
            DeviceError::OutOfDeviceMemory { .. } => cl::CL_MEM_OBJECT_ALLOCATION_FAILURE,
            DeviceError::Unsupported(_) => cl::CL_INVALID_OPERATION,
            DeviceError::Lost | DeviceError::Driver { .. } => cl::CL_OUT_OF_RESOURCES,
            DeviceError::WaitFailed => cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            DeviceError::Terminated => cl::CL_CONTEXT_TERMINATED_KHR,
        };
        Self::new(code, error.to_string())
    }
}

/// Returns the name of an error code as the headers spell it.
pub fn name(code: cl_int) -> &'static str {
    macro_rules! names {
        ($($name:ident)*) => { match code { $(cl::$name => stringify!($name),)* _ => "unknown error" } };
    }
    names! {
        CL_SUCCESS CL_DEVICE_NOT_FOUND CL_DEVICE_NOT_AVAILABLE CL_COMPILER_NOT_AVAILABLE
        CL_MEM_OBJECT_ALLOCATION_FAILURE CL_OUT_OF_RESOURCES CL_OUT_OF_HOST_MEMORY CL_PROFILING_INFO_NOT_AVAILABLE
        CL_MEM_COPY_OVERLAP CL_IMAGE_FORMAT_MISMATCH CL_IMAGE_FORMAT_NOT_SUPPORTED CL_BUILD_PROGRAM_FAILURE
        CL_MAP_FAILURE CL_MISALIGNED_SUB_BUFFER_OFFSET CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
        CL_COMPILE_PROGRAM_FAILURE CL_LINKER_NOT_AVAILABLE CL_LINK_PROGRAM_FAILURE CL_DEVICE_PARTITION_FAILED
        CL_KERNEL_ARG_INFO_NOT_AVAILABLE CL_INVALID_VALUE CL_INVALID_DEVICE_TYPE CL_INVALID_PLATFORM
        CL_INVALID_DEVICE CL_INVALID_CONTEXT CL_INVALID_QUEUE_PROPERTIES CL_INVALID_COMMAND_QUEUE
        CL_INVALID_HOST_PTR CL_INVALID_MEM_OBJECT CL_INVALID_IMAGE_FORMAT_DESCRIPTOR CL_INVALID_IMAGE_SIZE
        CL_INVALID_SAMPLER CL_INVALID_BINARY CL_INVALID_BUILD_OPTIONS CL_INVALID_PROGRAM
        CL_INVALID_PROGRAM_EXECUTABLE CL_INVALID_KERNEL_NAME CL_INVALID_KERNEL_DEFINITION CL_INVALID_KERNEL
        CL_INVALID_ARG_INDEX CL_INVALID_ARG_VALUE CL_INVALID_ARG_SIZE CL_INVALID_KERNEL_ARGS
        CL_INVALID_WORK_DIMENSION CL_INVALID_WORK_GROUP_SIZE CL_INVALID_WORK_ITEM_SIZE CL_INVALID_GLOBAL_OFFSET
        CL_INVALID_EVENT_WAIT_LIST CL_INVALID_EVENT CL_INVALID_OPERATION CL_INVALID_GL_OBJECT
        CL_INVALID_BUFFER_SIZE CL_INVALID_MIP_LEVEL CL_INVALID_GLOBAL_WORK_SIZE CL_INVALID_PROPERTY
        CL_INVALID_IMAGE_DESCRIPTOR CL_INVALID_COMPILER_OPTIONS CL_INVALID_LINKER_OPTIONS
        CL_INVALID_DEVICE_PARTITION_COUNT CL_INVALID_PIPE_SIZE CL_INVALID_DEVICE_QUEUE CL_INVALID_SPEC_ID
        CL_MAX_SIZE_RESTRICTION_EXCEEDED CL_CONTEXT_TERMINATED_KHR
    }
}
