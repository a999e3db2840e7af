//! OpenCL for well-behaved programs: thin owners of handles, errors with the name of the call that failed.
//!
//! Nothing here panics: programs such as the demo and the bench report what went wrong.

mod command_buffer;
pub mod loader;

pub use command_buffer::CommandBuffer;

use loader::{c_name, text, Api};
use opencl_sys as sys;
use opencl_sys::{cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem};
use opencl_sys::{cl_platform_id, cl_program, CL_SUCCESS};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// A call that failed.
#[derive(Debug, Clone)]
pub struct Error {
    /// The function, or what was attempted.
    pub call: &'static str,
    /// Its status; 0 where the failure lies elsewhere.
    pub code: cl_int,
    /// More to say, such as a build log.
    pub note: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed with {}", self.call, self.code)?;
        if self.note.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.note)
        }
    }
}

impl std::error::Error for Error {}

/// The result of these functions.
pub type Result<T> = std::result::Result<T, Error>;

/// An error that is not a status of OpenCL.
pub fn problem(call: &'static str, note: impl Into<String>) -> Error {
    Error {
        call,
        code: 0,
        note: note.into(),
    }
}

fn check(call: &'static str, code: cl_int) -> Result<()> {
    if code == CL_SUCCESS {
        Ok(())
    } else {
        Err(Error {
            call,
            code,
            note: String::new(),
        })
    }
}

/// Data that may be copied to and from a device as bytes.
///
/// # Safety
/// Any pattern of bytes is a value, and there is no padding.
pub unsafe trait Plain: Copy + Default {}

macro_rules! plain {
    ($($type:ty)*) => { $(
        // SAFETY: a plain number.
        unsafe impl Plain for $type {}
    )* };
}
plain!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

// SAFETY: an array of such numbers has no padding.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] where [T; N]: Default {}

/// A device and the functions to use it by.
#[derive(Clone, Copy)]
pub struct Device {
    /// The functions.
    pub api: &'static Api,
    /// The handle.
    pub id: cl_device_id,
}

/// All devices of all platforms that the loader shows.
///
/// Asks for every type of device: rusticl of Mesa 22.3 finds none when asked for the default type.
pub fn devices() -> Result<Vec<Device>> {
    let api = Api::get().map_err(|note| problem("loading OpenCL", note))?;
    let mut platforms: [cl_platform_id; 16] = [null_mut(); 16];
    let mut count = 0;
    // SAFETY: room for 16 handles.
    let status = unsafe { (api.clGetPlatformIDs)(16, platforms.as_mut_ptr(), &mut count) };
    check("clGetPlatformIDs", status)?;
    let mut found = Vec::new();
    for &platform in platforms.iter().take(count as usize) {
        let mut ids: [cl_device_id; 64] = [null_mut(); 64];
        let mut count = 0;
        // SAFETY: room for 64 handles.
        let status = unsafe {
            (api.clGetDeviceIDs)(
                platform,
                sys::CL_DEVICE_TYPE_ALL,
                64,
                ids.as_mut_ptr(),
                &mut count,
            )
        };
        if status == CL_SUCCESS {
            found.extend(
                ids.iter()
                    .take(count as usize)
                    .map(|&id| Device { api, id }),
            );
        }
    }
    if found.is_empty() {
        return Err(problem("finding a device", "the loader shows none"));
    }
    Ok(found)
}

/// The first device.
pub fn first_device() -> Result<Device> {
    devices()?
        .into_iter()
        .next()
        .ok_or_else(|| problem("finding a device", "none"))
}

impl Device {
    /// A text about the device.
    pub fn text(&self, name: sys::cl_device_info) -> Result<String> {
        let mut bytes = vec![0u8; 65536];
        let mut size = 0;
        // SAFETY: as many bytes as said.
        let status = unsafe {
            (self.api.clGetDeviceInfo)(
                self.id,
                name,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                &mut size,
            )
        };
        check("clGetDeviceInfo", status)?;
        bytes.truncate(size);
        Ok(text(&bytes))
    }

    /// A number, or a small array of them, about the device.
    pub fn value<T: Plain>(&self, name: sys::cl_device_info) -> Result<T> {
        let mut value = T::default();
        // SAFETY: any bytes are a value of T.
        let status = unsafe {
            (self.api.clGetDeviceInfo)(
                self.id,
                name,
                size_of::<T>(),
                (&raw mut value).cast(),
                null_mut(),
            )
        };
        check("clGetDeviceInfo", status)?;
        Ok(value)
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.text(sys::CL_DEVICE_NAME)
            .unwrap_or_else(|error| error.to_string())
    }

    /// Whether it can compute with doubles.
    pub fn has_fp64(&self) -> bool {
        self.value::<u64>(sys::CL_DEVICE_DOUBLE_FP_CONFIG)
            .is_ok_and(|config| config != 0)
    }

    /// A context of this device alone.
    pub fn context(&self) -> Result<Context> {
        let mut status = 0;
        // SAFETY: one device; no properties, no callback.
        let id = unsafe {
            (self.api.clCreateContext)(null(), 1, &self.id, None, null_mut(), &mut status)
        };
        check("clCreateContext", status)?;
        Ok(Context { device: *self, id })
    }
}

macro_rules! owner {
    ($name:ident, $release:ident) => {
        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle was made by this owner, which gives it back once.
                unsafe { (self.device.api.$release)(self.id) };
            }
        }
    };
}

/// A context of one device.
pub struct Context {
    /// Its device.
    pub device: Device,
    /// The handle.
    pub id: cl_context,
}
owner!(Context, clReleaseContext);

/// A command queue.
pub struct Queue {
    /// Its device.
    pub device: Device,
    /// The handle.
    pub id: cl_command_queue,
}
owner!(Queue, clReleaseCommandQueue);

/// A buffer.
pub struct Buffer {
    /// Its device.
    pub device: Device,
    /// The handle.
    pub id: cl_mem,
}
owner!(Buffer, clReleaseMemObject);

/// A built program.
pub struct Program {
    /// Its device.
    pub device: Device,
    /// The handle.
    pub id: cl_program,
}
owner!(Program, clReleaseProgram);

/// A kernel.
pub struct Kernel {
    /// Its device.
    pub device: Device,
    /// The handle.
    pub id: cl_kernel,
}
owner!(Kernel, clReleaseKernel);

/// An event.
pub struct Event {
    /// The device of its queue.
    pub device: Device,
    /// The handle.
    pub id: cl_event,
}
owner!(Event, clReleaseEvent);

impl Context {
    /// An in-order queue.
    pub fn queue(&self) -> Result<Queue> {
        let mut status = 0;
        // SAFETY: handles of this context.
        let id = unsafe {
            (self.device.api.clCreateCommandQueue)(self.id, self.device.id, 0, &mut status)
        };
        check("clCreateCommandQueue", status)?;
        Ok(Queue {
            device: self.device,
            id,
        })
    }

    /// An out-of-order queue.
    pub fn out_of_order(&self) -> Result<Queue> {
        let mut status = 0;
        let properties = sys::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        // SAFETY: handles of this context.
        let id = unsafe {
            (self.device.api.clCreateCommandQueue)(self.id, self.device.id, properties, &mut status)
        };
        check("clCreateCommandQueue", status)?;
        Ok(Queue {
            device: self.device,
            id,
        })
    }

    /// A user event.
    pub fn user_event(&self) -> Result<Event> {
        let mut status = 0;
        // SAFETY: a handle, and a place for the status.
        let id = unsafe { (self.device.api.clCreateUserEvent)(self.id, &mut status) };
        check("clCreateUserEvent", status)?;
        Ok(Event {
            device: self.device,
            id,
        })
    }

    /// A buffer of `bytes`, readable and writable by kernels.
    pub fn buffer(&self, bytes: usize) -> Result<Buffer> {
        let mut status = 0;
        // SAFETY: no host pointer.
        let id = unsafe {
            (self.device.api.clCreateBuffer)(
                self.id,
                sys::CL_MEM_READ_WRITE,
                bytes,
                null_mut(),
                &mut status,
            )
        };
        check("clCreateBuffer", status)?;
        Ok(Buffer {
            device: self.device,
            id,
        })
    }

    /// A two-dimensional image of four normalised bytes a texel, for kernels to read or write.
    pub fn image(&self, width: usize, height: usize, flags: sys::cl_mem_flags) -> Result<Buffer> {
        let format = sys::cl_image_format {
            image_channel_order: sys::CL_RGBA,
            image_channel_data_type: sys::CL_UNORM_INT8,
        };
        // SAFETY: a structure of numbers and pointers, for which zeros are valid.
        let mut desc: sys::cl_image_desc = unsafe { std::mem::zeroed() };
        desc.image_type = sys::CL_MEM_OBJECT_IMAGE2D;
        (desc.image_width, desc.image_height) = (width, height);
        let mut status = 0;
        // SAFETY: a format and a description that live during the call, no host pointer.
        let id = unsafe {
            (self.device.api.clCreateImage)(self.id, flags, &format, &desc, null_mut(), &mut status)
        };
        check("clCreateImage", status)?;
        Ok(Buffer {
            device: self.device,
            id,
        })
    }

    /// Builds OpenCL C. A failure carries the build log.
    pub fn program(&self, source: &str, options: &str) -> Result<Program> {
        let api = self.device.api;
        let mut status = 0;
        let mut pointer = source.as_ptr().cast();
        let length = source.len();
        // SAFETY: one string of the given length.
        let id = unsafe {
            (api.clCreateProgramWithSource)(self.id, 1, &mut pointer, &length, &mut status)
        };
        check("clCreateProgramWithSource", status)?;
        let program = Program {
            device: self.device,
            id,
        };
        let options = c_name(options);
        // SAFETY: one device, a C string, no callback.
        let status = unsafe {
            (api.clBuildProgram)(id, 1, &self.device.id, options.as_ptr(), None, null_mut())
        };
        check("clBuildProgram", status).map_err(|mut error| {
            error.note = program.log();
            error
        })?;
        Ok(program)
    }
}

impl Program {
    fn log(&self) -> String {
        let mut bytes = vec![0u8; 1 << 16];
        let mut size = 0;
        // SAFETY: as many bytes as said.
        let status = unsafe {
            (self.device.api.clGetProgramBuildInfo)(
                self.id,
                self.device.id,
                sys::CL_PROGRAM_BUILD_LOG,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                &mut size,
            )
        };
        if status == CL_SUCCESS {
            bytes.truncate(size);
            text(&bytes)
        } else {
            format!("no build log ({status})")
        }
    }

    /// One of its kernels.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let c = c_name(name);
        let mut status = 0;
        // SAFETY: a C string.
        let id = unsafe { (self.device.api.clCreateKernel)(self.id, c.as_ptr(), &mut status) };
        check("clCreateKernel", status).map_err(|mut error| {
            error.note = name.to_owned();
            error
        })?;
        Ok(Kernel {
            device: self.device,
            id,
        })
    }
}

impl Kernel {
    fn set(&self, index: u32, size: usize, value: *const c_void) -> Result<&Self> {
        // SAFETY: callers pass a value of that size, or null for local memory.
        let status = unsafe { (self.device.api.clSetKernelArg)(self.id, index, size, value) };
        check("clSetKernelArg", status).map_err(|mut error| {
            error.note = format!("argument {index}");
            error
        })?;
        Ok(self)
    }

    /// Sets an argument to a value.
    pub fn arg<T: Plain>(&self, index: u32, value: T) -> Result<&Self> {
        self.set(index, size_of::<T>(), (&raw const value).cast())
    }

    /// Sets an argument to a buffer.
    pub fn arg_buffer(&self, index: u32, buffer: &Buffer) -> Result<&Self> {
        self.set(index, size_of::<cl_mem>(), (&raw const buffer.id).cast())
    }

    /// Gives a local argument its size.
    pub fn arg_local(&self, index: u32, bytes: usize) -> Result<&Self> {
        self.set(index, bytes, null())
    }

    /// The largest work-group that it can run with.
    pub fn max_group(&self) -> Result<usize> {
        let mut value = 0usize;
        // SAFETY: one size_t.
        let status = unsafe {
            (self.device.api.clGetKernelWorkGroupInfo)(
                self.id,
                self.device.id,
                sys::CL_KERNEL_WORK_GROUP_SIZE,
                size_of::<usize>(),
                (&raw mut value).cast(),
                null_mut(),
            )
        };
        check("clGetKernelWorkGroupInfo", status)?;
        Ok(value)
    }
}

impl Queue {
    /// Launches a kernel; an empty `local` leaves the choice to the driver.
    pub fn launch(&self, kernel: &Kernel, global: &[usize], local: &[usize]) -> Result<()> {
        self.launch_with(kernel, global, local, &[], null_mut())
    }

    /// Launches a kernel after some events; returns its own.
    pub fn launch_after(
        &self,
        kernel: &Kernel,
        global: &[usize],
        local: &[usize],
        after: &[&Event],
    ) -> Result<Event> {
        let mut event = null_mut();
        self.launch_with(kernel, global, local, after, &mut event)?;
        Ok(Event {
            device: self.device,
            id: event,
        })
    }

    fn launch_with(
        &self,
        kernel: &Kernel,
        global: &[usize],
        local: &[usize],
        after: &[&Event],
        event: *mut cl_event,
    ) -> Result<()> {
        if !local.is_empty() && local.len() != global.len() {
            return Err(problem(
                "launching",
                "global and local sizes differ in dimension",
            ));
        }
        let waits: Vec<cl_event> = after.iter().map(|event| event.id).collect();
        // SAFETY: the slices are as long as said; an empty one is passed as null.
        let status = unsafe {
            (self.device.api.clEnqueueNDRangeKernel)(
                self.id,
                kernel.id,
                global.len() as u32,
                null(),
                global.as_ptr(),
                if local.is_empty() {
                    null()
                } else {
                    local.as_ptr()
                },
                waits.len() as u32,
                if waits.is_empty() {
                    null()
                } else {
                    waits.as_ptr()
                },
                event,
            )
        };
        check("clEnqueueNDRangeKernel", status)
    }

    /// Begins to write to a buffer after some events; returns its own.
    ///
    /// # Safety
    /// The data live until that is complete.
    pub unsafe fn start_write<T: Plain>(
        &self,
        buffer: &Buffer,
        data: &[T],
        after: &[&Event],
    ) -> Result<Event> {
        let waits: Vec<cl_event> = after.iter().map(|event| event.id).collect();
        let (list, mut id) = (first_of(&waits), null_mut());
        // SAFETY: as many bytes as said, for as long as the caller promises.
        let status = unsafe {
            (self.device.api.clEnqueueWriteBuffer)(
                self.id,
                buffer.id,
                sys::CL_FALSE,
                0,
                size_of_val(data),
                data.as_ptr().cast(),
                waits.len() as u32,
                list,
                &mut id,
            )
        };
        check("clEnqueueWriteBuffer", status)?;
        Ok(Event {
            device: self.device,
            id,
        })
    }

    /// Begins to read from a buffer after some events; returns its own.
    ///
    /// # Safety
    /// The data live, and are not used otherwise, until that is complete.
    pub unsafe fn start_read<T: Plain>(
        &self,
        buffer: &Buffer,
        data: &mut [T],
        after: &[&Event],
    ) -> Result<Event> {
        let waits: Vec<cl_event> = after.iter().map(|event| event.id).collect();
        let (list, mut id) = (first_of(&waits), null_mut());
        // SAFETY: as many bytes as said, for as long as the caller promises; any bytes are values of T.
        let status = unsafe {
            (self.device.api.clEnqueueReadBuffer)(
                self.id,
                buffer.id,
                sys::CL_FALSE,
                0,
                size_of_val(data),
                data.as_mut_ptr().cast(),
                waits.len() as u32,
                list,
                &mut id,
            )
        };
        check("clEnqueueReadBuffer", status)?;
        Ok(Event {
            device: self.device,
            id,
        })
    }

    /// Writes to a buffer and waits.
    pub fn write<T: Plain>(&self, buffer: &Buffer, data: &[T]) -> Result<()> {
        // SAFETY: blocking, so the data outlive the call's use of them.
        let status = unsafe {
            (self.device.api.clEnqueueWriteBuffer)(
                self.id,
                buffer.id,
                sys::CL_TRUE,
                0,
                size_of_val(data),
                data.as_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueWriteBuffer", status)
    }

    /// Reads from a buffer and waits.
    pub fn read<T: Plain>(&self, buffer: &Buffer, data: &mut [T]) -> Result<()> {
        // SAFETY: blocking; any bytes are values of T.
        let status = unsafe {
            (self.device.api.clEnqueueReadBuffer)(
                self.id,
                buffer.id,
                sys::CL_TRUE,
                0,
                size_of_val(data),
                data.as_mut_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueReadBuffer", status)
    }

    /// The first `count` elements of a buffer.
    pub fn read_vec<T: Plain>(&self, buffer: &Buffer, count: usize) -> Result<Vec<T>> {
        let mut data = vec![T::default(); count];
        self.read(buffer, &mut data)?;
        Ok(data)
    }

    /// Copies `bytes` from the start of one buffer to the start of another.
    pub fn copy(&self, from: &Buffer, to: &Buffer, bytes: usize) -> Result<()> {
        // SAFETY: plain handles and numbers.
        let status = unsafe {
            (self.device.api.clEnqueueCopyBuffer)(
                self.id,
                from.id,
                to.id,
                0,
                0,
                bytes,
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueCopyBuffer", status)
    }

    /// Fills the first `bytes` of a buffer with a pattern.
    pub fn fill<T: Plain>(&self, buffer: &Buffer, pattern: T, bytes: usize) -> Result<()> {
        // SAFETY: the pattern is copied during the call.
        let status = unsafe {
            (self.device.api.clEnqueueFillBuffer)(
                self.id,
                buffer.id,
                (&raw const pattern).cast(),
                size_of::<T>(),
                0,
                bytes,
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueFillBuffer", status)
    }

    /// Writes a whole image of [`Context::image`].
    pub fn write_image(&self, image: &Buffer, size: [usize; 2], data: &[[u8; 4]]) -> Result<()> {
        assert_eq!(data.len(), size[0] * size[1]);
        // SAFETY: the data are as large as the image; the call blocks.
        let status = unsafe {
            (self.device.api.clEnqueueWriteImage)(
                self.id,
                image.id,
                sys::CL_TRUE,
                [0; 3].as_ptr(),
                [size[0], size[1], 1].as_ptr(),
                0,
                0,
                data.as_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueWriteImage", status)
    }

    /// Reads a whole image of [`Context::image`].
    pub fn read_image(&self, image: &Buffer, size: [usize; 2]) -> Result<Vec<[u8; 4]>> {
        let mut data = vec![[0u8; 4]; size[0] * size[1]];
        // SAFETY: the data are as large as the image; the call blocks.
        let status = unsafe {
            (self.device.api.clEnqueueReadImage)(
                self.id,
                image.id,
                sys::CL_TRUE,
                [0; 3].as_ptr(),
                [size[0], size[1], 1].as_ptr(),
                0,
                0,
                data.as_mut_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueReadImage", status)?;
        Ok(data)
    }

    /// Hands everything to the device.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: a live handle.
        check("clFlush", unsafe { (self.device.api.clFlush)(self.id) })
    }

    /// Waits until everything is done.
    pub fn finish(&self) -> Result<()> {
        // SAFETY: a live handle.
        check("clFinish", unsafe { (self.device.api.clFinish)(self.id) })
    }
}

/// Where a list begins; null if it is empty.
fn first_of(list: &[cl_event]) -> *const cl_event {
    match list.is_empty() {
        true => null(),
        false => list.as_ptr(),
    }
}

impl Event {
    /// Sets the status of a user event to complete.
    pub fn complete(&self) -> Result<()> {
        // SAFETY: a live handle.
        check("clSetUserEventStatus", unsafe {
            (self.device.api.clSetUserEventStatus)(self.id, sys::CL_COMPLETE)
        })
    }

    /// Waits for it.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: one live handle.
        check("clWaitForEvents", unsafe {
            (self.device.api.clWaitForEvents)(1, &self.id)
        })
    }
}
