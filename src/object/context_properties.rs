//! The properties of clCreateContext.

use super::properties::{pairs, unsupported};
use crate::backend::gl::Source;
use crate::cl::{self, cl_bitfield, cl_context_properties, cl_int};
use crate::cl::{
    CL_CGL_SHAREGROUP_KHR as CGL, CL_CONTEXT_INTEROP_USER_SYNC as USER_SYNC,
    CL_CONTEXT_MEMORY_INITIALIZE_LOCAL_KHR as ZEROED_LOCAL,
    CL_CONTEXT_MEMORY_INITIALIZE_PRIVATE_KHR as ZEROED_PRIVATE, CL_CONTEXT_PLATFORM as PLATFORM,
    CL_EGL_DISPLAY_KHR as EGL, CL_GLX_DISPLAY_KHR as GLX, CL_GL_CONTEXT_KHR as GL_CONTEXT,
    CL_WGL_HDC_KHR as WGL,
};
use crate::error::{ensure, err, ClResult};
use crate::handle::{self, Kind};
use spirv_lowering::options::ZeroedMemory;
use std::ffi::c_void;

const ZEROED: cl_context_properties = cl::CL_CONTEXT_MEMORY_INITIALIZE_KHR as _;
const PRINT: cl_context_properties = cl::CL_PRINTF_CALLBACK_ARM as _;
const PRINT_SIZE: cl_context_properties = cl::CL_PRINTF_BUFFERSIZE_ARM as _;
const TERMINATE: cl_context_properties = cl::CL_CONTEXT_TERMINATE_KHR as _;

/// The values of the properties of a context.
#[derive(Default)]
pub(super) struct Named {
    /// The context of OpenGL that it shares objects with.
    pub gl: Option<Source>,
    /// The memory that its kernels find zeroed.
    pub zeroed: ZeroedMemory,
    /// The address of the function that receives what kernels print, or 0.
    pub print: usize,
    /// The least bytes of buffers for that.
    pub print_size: usize,
    /// Set if it can be terminated.
    pub terminable: bool,
}

/// Returns what a list of properties says. `unknown` is the error for properties that are not known.
pub(super) fn parse(properties: &[cl_context_properties], unknown: cl_int) -> ClResult<Named> {
    let (mut user_sync, mut context, mut named) = (None, 0, false);
    let mut found = Named::default();
    let mut displays = Vec::new();
    for (name, value) in pairs(properties, cl::CL_INVALID_PROPERTY)? {
        match name {
            PLATFORM => ensure!(
                handle::kind_of(value as *const c_void) == Some(Kind::Platform),
                cl::CL_INVALID_PLATFORM,
                "CL_CONTEXT_PLATFORM is not a platform"
            ),
            USER_SYNC => {
                ensure!(
                    value == 0 || value == 1,
                    cl::CL_INVALID_PROPERTY,
                    "CL_CONTEXT_INTEROP_USER_SYNC is neither true nor false"
                );
                user_sync = Some(value);
            }
            ZEROED => {
                let bits = value as cl_bitfield;
                ensure!(
                    bits & !(ZEROED_LOCAL | ZEROED_PRIVATE) == 0,
                    cl::CL_INVALID_PROPERTY,
                    "CL_CONTEXT_MEMORY_INITIALIZE_KHR has unknown bits"
                );
                found.zeroed = ZeroedMemory {
                    local: bits & ZEROED_LOCAL != 0,
                    private: bits & ZEROED_PRIVATE != 0,
                };
            }
            PRINT => {
                ensure!(
                    value != 0,
                    cl::CL_INVALID_PROPERTY,
                    "CL_PRINTF_CALLBACK_ARM is NULL"
                );
                found.print = value as usize;
            }
            TERMINATE => found.terminable = value != 0,
            PRINT_SIZE => found.print_size = value as usize,
            GL_CONTEXT => (context, named) = (value as usize, true),
            EGL | GLX | WGL | CGL => {
                named = true;
                // The default of each is 0.
                if value != 0 {
                    displays.push((name, value as usize));
                }
            }
            other => return unsupported("context", other, unknown),
        }
    }
    if !named {
        return Ok(found);
    }
    ensure!(
        user_sync.is_none(),
        cl::CL_INVALID_PROPERTY,
        "CL_CONTEXT_INTEROP_USER_SYNC does not go with OpenGL"
    );
    ensure!(
        displays.len() <= 1,
        cl::CL_INVALID_OPERATION,
        "displays of more than one binding API"
    );
    found.gl = match displays.first() {
        None if context == 0 => None,
        Some(&(EGL, display)) if context != 0 => Some(Source::Egl { display, context }),
        Some(&(GLX, display)) if context != 0 => Some(Source::Glx { display, context }),
        Some((WGL | CGL, _)) => {
            return err(
                cl::CL_INVALID_OPERATION,
                "contexts of this binding API cannot be shared with",
            )
        }
        _ => {
            return err(
                cl::CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR,
                "a context of OpenGL is named by its handle and its display",
            )
        }
    };
    Ok(found)
}
