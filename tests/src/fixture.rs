//! Objects of OpenCL that release themselves, for tests.

use crate::{call, create, info_text, ok};
use opencl_sys::*;
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::{null, null_mut};

/// Types whose every bit pattern is a value, without padding.
///
/// # Safety
/// The type must be such a type.
pub unsafe trait Plain: Copy {
    /// From as many bytes as the type has.
    fn from_bytes(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), size_of::<Self>());
        // SAFETY: as many bytes as the type has, and all patterns are values.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }
}

macro_rules! plain {
    ($($type:ty)*) => { $(
        // SAFETY: a number.
        unsafe impl Plain for $type {}
    )* };
}
plain! { u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64 }

// SAFETY: arrays have no padding.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: an address; the tests do not follow it.
unsafe impl Plain for *mut c_void {}

impl Program {
    /// Builds the program for all its devices, without options.
    #[track_caller]
    pub fn build(&self) {
        ok!(clBuildProgram(self.0, 0, null(), null(), None, null_mut()));
    }
}

/// User data for callbacks that only look at the number.
pub fn user_data(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

/// The name of an error code.
pub fn code_name(code: cl_int) -> String {
    macro_rules! names {
        ($($name:ident)*) => { match code { $($name => stringify!($name).to_owned(),)* _ => code.to_string() } };
    }
    names! {
        CL_SUCCESS CL_DEVICE_NOT_FOUND CL_DEVICE_NOT_AVAILABLE CL_COMPILER_NOT_AVAILABLE
        CL_MEM_OBJECT_ALLOCATION_FAILURE CL_OUT_OF_RESOURCES CL_OUT_OF_HOST_MEMORY CL_PROFILING_INFO_NOT_AVAILABLE
        CL_MEM_COPY_OVERLAP CL_BUILD_PROGRAM_FAILURE CL_MAP_FAILURE CL_MISALIGNED_SUB_BUFFER_OFFSET
        CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST CL_COMPILE_PROGRAM_FAILURE CL_LINKER_NOT_AVAILABLE
        CL_LINK_PROGRAM_FAILURE CL_KERNEL_ARG_INFO_NOT_AVAILABLE CL_INVALID_VALUE CL_INVALID_DEVICE_TYPE
        CL_INVALID_PLATFORM CL_INVALID_DEVICE CL_INVALID_CONTEXT CL_INVALID_QUEUE_PROPERTIES
        CL_INVALID_COMMAND_QUEUE CL_INVALID_HOST_PTR CL_INVALID_MEM_OBJECT CL_INVALID_SAMPLER CL_INVALID_BINARY
        CL_INVALID_BUILD_OPTIONS CL_INVALID_PROGRAM CL_INVALID_PROGRAM_EXECUTABLE CL_INVALID_KERNEL_NAME
        CL_INVALID_KERNEL_DEFINITION CL_INVALID_KERNEL CL_INVALID_ARG_INDEX CL_INVALID_ARG_VALUE CL_INVALID_ARG_SIZE
        CL_INVALID_KERNEL_ARGS CL_INVALID_WORK_DIMENSION CL_INVALID_WORK_GROUP_SIZE CL_INVALID_WORK_ITEM_SIZE
        CL_INVALID_GLOBAL_OFFSET CL_INVALID_EVENT_WAIT_LIST CL_INVALID_EVENT CL_INVALID_OPERATION
        CL_INVALID_BUFFER_SIZE CL_INVALID_PIPE_SIZE CL_INVALID_GLOBAL_WORK_SIZE CL_INVALID_PROPERTY CL_INVALID_COMPILER_OPTIONS
        CL_INVALID_LINKER_OPTIONS CL_INVALID_SPEC_ID CL_IMAGE_FORMAT_MISMATCH CL_IMAGE_FORMAT_NOT_SUPPORTED
        CL_INVALID_IMAGE_FORMAT_DESCRIPTOR CL_INVALID_IMAGE_SIZE CL_INVALID_IMAGE_DESCRIPTOR CL_DEVICE_PARTITION_FAILED
        CL_INVALID_DEVICE_PARTITION_COUNT CL_INVALID_DEVICE_QUEUE CL_MAX_SIZE_RESTRICTION_EXCEEDED
        CL_INVALID_COMMAND_BUFFER_KHR CL_INVALID_SYNC_POINT_WAIT_LIST_KHR CL_INCOMPATIBLE_COMMAND_QUEUE_KHR
        CL_INVALID_MUTABLE_COMMAND_KHR CL_INVALID_SEMAPHORE_KHR
    }
}

macro_rules! owner {
    ($(#[$doc:meta])* $name:ident, $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub *mut c_void);

        // SAFETY: OpenCL handles may be used from every thread.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                if !self.0.is_null() {
                    let code = call!($release(self.0));
                    if !std::thread::panicking() {
                        assert_eq!(code, 0, "{} returned {}", stringify!($release), code_name(code));
                    }
                }
            }
        }
    };
}

owner! {
    /// A context.
    Context, clReleaseContext
}
owner! {
    /// A queue.
    Queue, clReleaseCommandQueue
}
owner! {
    /// A buffer.
    Buffer, clReleaseMemObject
}
owner! {
    /// A program.
    Program, clReleaseProgram
}
owner! {
    /// A kernel.
    Kernel, clReleaseKernel
}
owner! {
    /// An event.
    Event, clReleaseEvent
}

/// A platform with its first device, a context and a queue.
#[derive(Debug)]
pub struct Setup {
    /// The platform.
    pub platform: cl_platform_id,
    /// Its first device.
    pub device: cl_device_id,
    /// A queue on it. Before the context, so that it goes first.
    pub queue: Queue,
    /// A context of the device alone.
    pub context: Context,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Setup {}
// SAFETY: as above.
unsafe impl Sync for Setup {}

/// The platform.
pub fn platform() -> cl_platform_id {
    let mut platform = null_mut();
    ok!(clGetPlatformIDs(1, &mut platform, null_mut()));
    platform
}

/// The first device of the platform.
pub fn first_device() -> cl_device_id {
    let mut device = null_mut();
    ok!(clGetDeviceIDs(
        platform(),
        CL_DEVICE_TYPE_ALL,
        1,
        &mut device,
        null_mut()
    ));
    device
}

/// Whether the device reports an OpenCL version.
pub fn at_least(setup: &Setup, major: u32, minor: u32) -> bool {
    let device = setup.device;
    crate::info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_NUMERIC_VERSION)
        >= major << 22 | minor << 12
}

impl Setup {
    /// In-order queue.
    pub fn new() -> Self {
        Self::with_queue(0)
    }

    /// Returns true if the device reports an extension.
    pub fn has_extension(&self, name: &str) -> bool {
        let all = info_text!(clGetDeviceInfo(self.device), CL_DEVICE_EXTENSIONS);
        all.split(' ').any(|known| known == name)
    }

    /// With a queue of these properties.
    pub fn with_queue(properties: cl_command_queue_properties) -> Self {
        let device = first_device();
        let context = Context(create!(clCreateContext(
            null(),
            1,
            &device,
            None,
            null_mut()
        )));
        Self::of(context, properties)
    }

    /// With a context of the first device, and a queue of these properties.
    pub fn of(context: Context, properties: cl_command_queue_properties) -> Self {
        let device = first_device();
        Self {
            platform: platform(),
            device,
            queue: new_queue(&context, device, properties),
            context,
        }
    }

    /// Another queue.
    pub fn new_queue(&self, properties: cl_command_queue_properties) -> Queue {
        new_queue(&self.context, self.device, properties)
    }

    /// A function of an extension, which the loader does not export.
    pub fn function<F: Copy>(&self, name: &CStr) -> F {
        let address = call!(clGetExtensionFunctionAddressForPlatform(
            self.platform,
            name.as_ptr()
        ));
        assert!(!address.is_null(), "{name:?}");
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        // SAFETY: the types of the headers are optional function pointers.
        unsafe { (&raw const address).cast::<F>().read() }
    }

    /// A read-write buffer of so many bytes.
    pub fn buffer(&self, size: usize) -> Buffer {
        Buffer(create!(clCreateBuffer(
            self.context.0,
            CL_MEM_READ_WRITE,
            size,
            null_mut()
        )))
    }

    /// A read-write buffer with these contents.
    pub fn buffer_of<T: Plain>(&self, data: &[T]) -> Buffer {
        let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
        let data_ptr = data.as_ptr().cast_mut().cast();
        Buffer(create!(clCreateBuffer(
            self.context.0,
            flags,
            size_of_val(data),
            data_ptr
        )))
    }

    /// The first `count` elements of a buffer.
    pub fn read<T: Plain>(&self, buffer: &Buffer, count: usize) -> Vec<T> {
        let mut data: Vec<T> = Vec::with_capacity(count);
        let (size, place) = (count * size_of::<T>(), data.as_mut_ptr().cast());
        ok!(clEnqueueReadBuffer(
            self.queue.0,
            buffer.0,
            CL_TRUE,
            0,
            size,
            place,
            0,
            null(),
            null_mut()
        ));
        // SAFETY: the read has filled all elements.
        unsafe { data.set_len(count) };
        data
    }

    /// Writes to the start of a buffer.
    pub fn write<T: Plain>(&self, buffer: &Buffer, data: &[T]) {
        let (size, place) = (size_of_val(data), data.as_ptr().cast());
        ok!(clEnqueueWriteBuffer(
            self.queue.0,
            buffer.0,
            CL_TRUE,
            0,
            size,
            place,
            0,
            null(),
            null_mut()
        ));
    }

    /// A program from source, not built.
    pub fn program(&self, source: &str) -> Program {
        let mut text: *const c_char = source.as_ptr().cast();
        let length = source.len();
        Program(create!(clCreateProgramWithSource(
            self.context.0,
            1,
            &mut text,
            &length
        )))
    }

    /// A built program, or the build log.
    pub fn try_build(&self, source: &str, options: &str) -> Result<Program, String> {
        let program = self.program(source);
        let options = CString::new(options).expect("options");
        let code = call!(clBuildProgram(
            program.0,
            1,
            &self.device,
            options.as_ptr(),
            None,
            null_mut()
        ));
        match code {
            CL_SUCCESS => Ok(program),
            code => Err(format!("{}\n{}", code_name(code), self.build_log(&program))),
        }
    }

    /// A built program.
    pub fn build(&self, source: &str) -> Program {
        self.try_build(source, "")
            .unwrap_or_else(|log| panic!("build failed: {log}\n{source}"))
    }

    /// The log of the last build.
    pub fn build_log(&self, program: &Program) -> String {
        crate::info_text!(
            clGetProgramBuildInfo(program.0, self.device),
            CL_PROGRAM_BUILD_LOG
        )
    }

    /// A kernel of a program.
    pub fn kernel(&self, program: &Program, name: &str) -> Kernel {
        let name = CString::new(name).expect("a kernel name");
        Kernel(create!(clCreateKernel(program.0, name.as_ptr())))
    }

    /// Returns true if the device has images.
    pub fn has_images(&self) -> bool {
        let param = CL_DEVICE_IMAGE_SUPPORT;
        crate::info_value!(cl_bool, clGetDeviceInfo(self.device), param) == CL_TRUE
    }

    /// The device computes in double precision.
    pub fn has_doubles(&self) -> bool {
        let config = crate::info_value!(
            u64,
            clGetDeviceInfo(self.device),
            CL_DEVICE_DOUBLE_FP_CONFIG
        );
        config != 0
    }

    /// A kernel of a program made for it.
    pub fn kernel_of(&self, source: &str, name: &str) -> Kernel {
        self.kernel(&self.build(source), name)
    }

    /// Runs a kernel and waits for it.
    pub fn run(&self, kernel: &Kernel, global: &[usize], local: Option<&[usize]>) {
        self.enqueue(kernel, global, local);
        ok!(clFinish(self.queue.0));
    }

    /// Enqueues a kernel.
    pub fn enqueue(&self, kernel: &Kernel, global: &[usize], local: Option<&[usize]>) {
        self.queue.enqueue(kernel, global, local);
    }
}

impl Queue {
    /// Enqueues a kernel.
    #[track_caller]
    pub fn enqueue(&self, kernel: &Kernel, global: &[usize], local: Option<&[usize]>) {
        let code = self.try_enqueue(kernel, global, local);
        let name = crate::code_name(code);
        assert_eq!(code, 0, "clEnqueueNDRangeKernel returned {name}");
    }

    /// Enqueues a kernel if that can be done: what the call returned.
    pub fn try_enqueue(
        &self,
        kernel: &Kernel,
        global: &[usize],
        local: Option<&[usize]>,
    ) -> cl_int {
        let local = local.map_or(null(), <[usize]>::as_ptr);
        let dims = global.len() as cl_uint;
        call!(clEnqueueNDRangeKernel(
            self.0,
            kernel.0,
            dims,
            null(),
            global.as_ptr(),
            local,
            0,
            null(),
            null_mut()
        ))
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

fn new_queue(
    context: &Context,
    device: cl_device_id,
    properties: cl_command_queue_properties,
) -> Queue {
    let list = [
        cl_queue_properties::from(CL_QUEUE_PROPERTIES),
        properties,
        0,
    ];
    Queue(create!(clCreateCommandQueueWithProperties(
        context.0,
        device,
        list.as_ptr()
    )))
}

impl Kernel {
    /// Sets an argument to a value.
    pub fn set<T: Plain>(&self, index: cl_uint, value: T) -> &Self {
        ok!(clSetKernelArg(
            self.0,
            index,
            size_of::<T>(),
            (&raw const value).cast()
        ));
        self
    }

    /// Sets an argument to a buffer.
    pub fn set_buffer(&self, index: cl_uint, buffer: &Buffer) -> &Self {
        self.set(index, buffer.0)
    }

    /// Sets the size of a local argument.
    pub fn set_local(&self, index: cl_uint, size: usize) -> &Self {
        ok!(clSetKernelArg(self.0, index, size, null()));
        self
    }
}

impl Event {
    /// A user event.
    pub fn user(context: &Context) -> Self {
        Self(create!(clCreateUserEvent(context.0)))
    }

    /// Sets the status of a user event.
    pub fn finish(&self, status: cl_int) {
        ok!(clSetUserEventStatus(self.0, status));
    }

    /// CL_EVENT_COMMAND_EXECUTION_STATUS
    pub fn status(&self) -> cl_int {
        crate::info_value!(
            i32,
            clGetEventInfo(self.0),
            CL_EVENT_COMMAND_EXECUTION_STATUS
        )
    }

    /// Waits; the result of clWaitForEvents.
    pub fn wait(&self) -> cl_int {
        call!(clWaitForEvents(1, &self.0))
    }
}
