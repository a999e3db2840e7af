//! Command buffers of one queue.

use super::{check, Kernel, Queue, Result};
use opencl_sys as sys;
use opencl_sys::{cl_command_buffer_khr, CL_SUCCESS};
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

/// The functions, where the device has command buffers.
#[derive(Clone, Copy)]
struct Functions {
    create: sys::clCreateCommandBufferKHR_fn,
    release: sys::clReleaseCommandBufferKHR_fn,
    finalize: sys::clFinalizeCommandBufferKHR_fn,
    enqueue: sys::clEnqueueCommandBufferKHR_fn,
    launch: sys::clCommandNDRangeKernelKHR_fn,
}

/// Recorded commands, and the queue that they are for.
pub struct CommandBuffer {
    functions: Functions,
    id: cl_command_buffer_khr,
}

impl Drop for CommandBuffer {
    fn drop(&mut self) {
        if let Some(release) = self.functions.release {
            // SAFETY: the handle was made by this owner, which gives it back once.
            unsafe { release(self.id) };
        }
    }
}

impl Queue {
    /// A command buffer of the queue. None: the device has none.
    pub fn command_buffer(&self) -> Result<Option<CommandBuffer>> {
        let extensions = self.device.text(sys::CL_DEVICE_EXTENSIONS)?;
        let mut extensions = extensions.split(' ');
        if !extensions.any(|name| name == "cl_khr_command_buffer") {
            return Ok(None);
        }
        let platform = self.device.value::<u64>(sys::CL_DEVICE_PLATFORM)? as *mut c_void;
        let find = self.device.api.clGetExtensionFunctionAddressForPlatform;
        // SAFETY: the platform lives, and the name is a string.
        let find = |name: &CStr| unsafe { find(platform, name.as_ptr()) };
        macro_rules! function {
            ($name:literal: $type:ty) => {
                // SAFETY: the driver declares its functions as the headers do, and a pointer to a function that may be none
                // is a pointer.
                unsafe { std::mem::transmute::<*mut c_void, $type>(find($name)) }
            };
        }
        let functions = Functions {
            create: function!(c"clCreateCommandBufferKHR": sys::clCreateCommandBufferKHR_fn),
            release: function!(c"clReleaseCommandBufferKHR": sys::clReleaseCommandBufferKHR_fn),
            finalize: function!(c"clFinalizeCommandBufferKHR": sys::clFinalizeCommandBufferKHR_fn),
            enqueue: function!(c"clEnqueueCommandBufferKHR": sys::clEnqueueCommandBufferKHR_fn),
            launch: function!(c"clCommandNDRangeKernelKHR": sys::clCommandNDRangeKernelKHR_fn),
        };
        let Some(create) = functions.create else {
            return Ok(None);
        };
        let mut code = CL_SUCCESS;
        // SAFETY: the queue lives.
        let id = unsafe { create(1, &self.id, null(), &mut code) };
        check("clCreateCommandBufferKHR", code)?;
        Ok(Some(CommandBuffer { functions, id }))
    }
}

impl CommandBuffer {
    /// Records a launch.
    pub fn launch(&self, kernel: &Kernel, global: &[usize], local: &[usize]) -> Result<()> {
        let Some(launch) = self.functions.launch else {
            return check("clCommandNDRangeKernelKHR", sys::CL_INVALID_OPERATION);
        };
        // SAFETY: all handles live, and there are as many sizes as dimensions.
        let code = unsafe {
            launch(
                self.id,
                null_mut(),
                null(),
                kernel.id,
                global.len() as u32,
                null(),
                global.as_ptr(),
                local.as_ptr(),
                0,
                null(),
                null_mut(),
                null_mut(),
            )
        };
        check("clCommandNDRangeKernelKHR", code)
    }

    /// Ends the recording.
    pub fn finalize(&self) -> Result<()> {
        let Some(finalize) = self.functions.finalize else {
            return check("clFinalizeCommandBufferKHR", sys::CL_INVALID_OPERATION);
        };
        // SAFETY: the handle lives.
        check("clFinalizeCommandBufferKHR", unsafe { finalize(self.id) })
    }

    /// Enqueues all commands.
    pub fn enqueue(&self) -> Result<()> {
        let Some(enqueue) = self.functions.enqueue else {
            return check("clEnqueueCommandBufferKHR", sys::CL_INVALID_OPERATION);
        };
        // SAFETY: the handle lives.
        let code = unsafe { enqueue(0, null_mut(), self.id, 0, null(), null_mut()) };
        check("clEnqueueCommandBufferKHR", code)
    }
}
