//! The loader, loaded: one field for each function. On Windows, where there may be none, the driver itself.

#![allow(non_snake_case)]

use opencl_sys::cl_function_types::*;
use std::path::Path;
use std::sync::OnceLock;

/// The function type inside of an optional one of the headers.
pub trait Function {
    /// The function pointer.
    type Pointer;
    /// Returns the function, if there is one.
    fn pointer(self) -> Option<Self::Pointer>;
}

impl<F> Function for Option<F> {
    type Pointer = F;
    /// Returns the function, if there is one.
    fn pointer(self) -> Option<F> {
        self
    }
}

macro_rules! api {
    ($($name:ident: $type:ident),* $(,)?) => {
        /// The functions of the loader.
        #[allow(missing_docs)]
        pub struct Api {
            $(pub $name: <$type as Function>::Pointer,)*
            /// None: it is linked.
            _library: Option<libloading::Library>,
        }

        fn load(library: libloading::Library) -> Api {
            $(
                // SAFETY: the loader declares its functions as the headers do.
                let symbol = unsafe { library.get::<$type>(concat!(stringify!($name), "\0")) };
                let $name = symbol.ok().and_then(|symbol| symbol.pointer())
                    .unwrap_or_else(|| panic!("the OpenCL loader has no {}", stringify!($name)));
            )*
            Api { $($name,)* _library: Some(library) }
        }

        /// The functions of the driver itself, by its clGetExtensionFunctionAddress.
        fn of_driver(find: Find, library: Option<libloading::Library>) -> Api {
            $(
                let name = match stringify!($name) {
                    "clGetPlatformIDs" => "clIcdGetPlatformIDsKHR\0",
                    _ => concat!(stringify!($name), "\0"),
                };
                // SAFETY: a string that ends with zero; the driver declares its functions as the headers do, and a
                // pointer to a function that may be none is a pointer.
                let $name = unsafe {
                    let address = find(name.as_ptr().cast());
                    std::mem::transmute::<*mut libc::c_void, $type>(address)
                };
                let $name = $name
                    .pointer()
                    .unwrap_or_else(|| panic!("the driver has no {}", stringify!($name)));
            )*
            Api { $($name,)* _library: library }
        }
    };
}

api! {
    clGetPlatformIDs: clGetPlatformIDs_t,
    clGetPlatformInfo: clGetPlatformInfo_t,
    clGetDeviceIDs: clGetDeviceIDs_t,
    clGetDeviceInfo: clGetDeviceInfo_t,
    clCreateSubDevices: clCreateSubDevices_t,
    clRetainDevice: clRetainDevice_t,
    clReleaseDevice: clReleaseDevice_t,
    clGetDeviceAndHostTimer: clGetDeviceAndHostTimer_t,
    clGetHostTimer: clGetHostTimer_t,
    clCreateContext: clCreateContext_t,
    clCreateContextFromType: clCreateContextFromType_t,
    clRetainContext: clRetainContext_t,
    clReleaseContext: clReleaseContext_t,
    clGetContextInfo: clGetContextInfo_t,
    clSetContextDestructorCallback: clSetContextDestructorCallback_t,
    clCreateCommandQueue: clCreateCommandQueue_t,
    clCreateCommandQueueWithProperties: clCreateCommandQueueWithProperties_t,
    clSetDefaultDeviceCommandQueue: clSetDefaultDeviceCommandQueue_t,
    clRetainCommandQueue: clRetainCommandQueue_t,
    clReleaseCommandQueue: clReleaseCommandQueue_t,
    clGetCommandQueueInfo: clGetCommandQueueInfo_t,
    clSetCommandQueueProperty: clSetCommandQueueProperty_t,
    clCreateBuffer: clCreateBuffer_t,
    clCreateBufferWithProperties: clCreateBufferWithProperties_t,
    clCreateSubBuffer: clCreateSubBuffer_t,
    clRetainMemObject: clRetainMemObject_t,
    clReleaseMemObject: clReleaseMemObject_t,
    clGetMemObjectInfo: clGetMemObjectInfo_t,
    clSetMemObjectDestructorCallback: clSetMemObjectDestructorCallback_t,
    clEnqueueWriteImage: clEnqueueWriteImage_t,
    clEnqueueMapImage: clEnqueueMapImage_t,
    clEnqueueCopyImage: clEnqueueCopyImage_t,
    clEnqueueCopyImageToBuffer: clEnqueueCopyImageToBuffer_t,
    clEnqueueCopyBufferToImage: clEnqueueCopyBufferToImage_t,
    clReleaseSampler: clReleaseSampler_t,
    clCreateImage: clCreateImage_t,
    clCreateImageWithProperties: clCreateImageWithProperties_t,
    clCreateImage2D: clCreateImage2D_t,
    clCreateImage3D: clCreateImage3D_t,
    clGetSupportedImageFormats: clGetSupportedImageFormats_t,
    clGetImageInfo: clGetImageInfo_t,
    clEnqueueReadImage: clEnqueueReadImage_t,
    clEnqueueFillImage: clEnqueueFillImage_t,
    clCreateSampler: clCreateSampler_t,
    clCreateSamplerWithProperties: clCreateSamplerWithProperties_t,
    clRetainSampler: clRetainSampler_t,
    clGetSamplerInfo: clGetSamplerInfo_t,
    clCreatePipe: clCreatePipe_t,
    clGetPipeInfo: clGetPipeInfo_t,
    clSVMAlloc: clSVMAlloc_t,
    clSVMFree: clSVMFree_t,
    clEnqueueSVMMap: clEnqueueSVMMap_t,
    clEnqueueSVMMemcpy: clEnqueueSVMMemcpy_t,
    clEnqueueSVMMemFill: clEnqueueSVMMemFill_t,
    clEnqueueSVMUnmap: clEnqueueSVMUnmap_t,
    clEnqueueSVMFree: clEnqueueSVMFree_t,
    clEnqueueSVMMigrateMem: clEnqueueSVMMigrateMem_t,
    clCreateProgramWithSource: clCreateProgramWithSource_t,
    clCreateProgramWithBinary: clCreateProgramWithBinary_t,
    clCreateProgramWithBuiltInKernels: clCreateProgramWithBuiltInKernels_t,
    clCreateProgramWithIL: clCreateProgramWithIL_t,
    clRetainProgram: clRetainProgram_t,
    clReleaseProgram: clReleaseProgram_t,
    clBuildProgram: clBuildProgram_t,
    clCompileProgram: clCompileProgram_t,
    clLinkProgram: clLinkProgram_t,
    clUnloadPlatformCompiler: clUnloadPlatformCompiler_t,
    clGetProgramInfo: clGetProgramInfo_t,
    clGetProgramBuildInfo: clGetProgramBuildInfo_t,
    clSetProgramSpecializationConstant: clSetProgramSpecializationConstant_t,
    clSetProgramReleaseCallback: clSetProgramReleaseCallback_t,
    clCreateKernel: clCreateKernel_t,
    clCreateKernelsInProgram: clCreateKernelsInProgram_t,
    clCloneKernel: clCloneKernel_t,
    clRetainKernel: clRetainKernel_t,
    clReleaseKernel: clReleaseKernel_t,
    clSetKernelArg: clSetKernelArg_t,
    clSetKernelArgSVMPointer: clSetKernelArgSVMPointer_t,
    clSetKernelExecInfo: clSetKernelExecInfo_t,
    clGetKernelInfo: clGetKernelInfo_t,
    clGetKernelArgInfo: clGetKernelArgInfo_t,
    clGetKernelWorkGroupInfo: clGetKernelWorkGroupInfo_t,
    clGetKernelSubGroupInfo: clGetKernelSubGroupInfo_t,
    clWaitForEvents: clWaitForEvents_t,
    clGetEventInfo: clGetEventInfo_t,
    clCreateUserEvent: clCreateUserEvent_t,
    clSetUserEventStatus: clSetUserEventStatus_t,
    clSetEventCallback: clSetEventCallback_t,
    clRetainEvent: clRetainEvent_t,
    clReleaseEvent: clReleaseEvent_t,
    clGetEventProfilingInfo: clGetEventProfilingInfo_t,
    clFlush: clFlush_t,
    clFinish: clFinish_t,
    clEnqueueReadBuffer: clEnqueueReadBuffer_t,
    clEnqueueReadBufferRect: clEnqueueReadBufferRect_t,
    clEnqueueWriteBuffer: clEnqueueWriteBuffer_t,
    clEnqueueWriteBufferRect: clEnqueueWriteBufferRect_t,
    clEnqueueFillBuffer: clEnqueueFillBuffer_t,
    clEnqueueCopyBuffer: clEnqueueCopyBuffer_t,
    clEnqueueCopyBufferRect: clEnqueueCopyBufferRect_t,
    clEnqueueMapBuffer: clEnqueueMapBuffer_t,
    clEnqueueUnmapMemObject: clEnqueueUnmapMemObject_t,
    clEnqueueMigrateMemObjects: clEnqueueMigrateMemObjects_t,
    clEnqueueNDRangeKernel: clEnqueueNDRangeKernel_t,
    clEnqueueTask: clEnqueueTask_t,
    clEnqueueNativeKernel: clEnqueueNativeKernel_t,
    clEnqueueMarker: clEnqueueMarker_t,
    clEnqueueBarrier: clEnqueueBarrier_t,
    clEnqueueWaitForEvents: clEnqueueWaitForEvents_t,
    clEnqueueMarkerWithWaitList: clEnqueueMarkerWithWaitList_t,
    clEnqueueBarrierWithWaitList: clEnqueueBarrierWithWaitList_t,
    clGetExtensionFunctionAddressForPlatform: clGetExtensionFunctionAddressForPlatform_t,
}

type Find = <clGetExtensionFunctionAddress_t as Function>::Pointer;

/// The functions of the driver itself.
fn load_driver(library: libloading::Library) -> Api {
    // SAFETY: the driver declares its functions as cl_khr_icd does.
    let find = unsafe {
        library
            .get::<clGetExtensionFunctionAddress_t>("clGetExtensionFunctionAddress\0")
            .ok()
            .and_then(|symbol| symbol.pointer())
            .expect("a driver")
    };
    of_driver(find, Some(library))
}

static API: OnceLock<Api> = OnceLock::new();

/// From now on [`cl`] gives the functions of a driver that is linked into this program, by its clGetExtensionFunctionAddress.
/// Before any call of it.
pub fn use_driver(find: Find) {
    let unused = API.set(of_driver(find, None)).is_ok();
    assert!(unused, "the driver is chosen already");
}

/// The loader with Pumice alone behind it.
pub fn cl() -> &'static Api {
    API.get_or_init(|| {
        let driver = crate::library_path();
        // A library here is for ocl-icd the only driver.
        std::env::set_var("OCL_ICD_VENDORS", &driver);
        // What the Khronos loader reads.
        std::env::set_var("OCL_ICD_FILENAMES", &driver);
        // The IR is checked after each pass.
        if std::env::var_os("PUMICE_PASSES").is_none() {
            std::env::set_var("PUMICE_PASSES", "verify");
        }
        if std::env::var_os("PUMICE_VALIDATION").is_none() {
            std::env::set_var("PUMICE_VALIDATION", "1");
        }
        // SAFETY: the handler is a plain function.
        unsafe { libc::atexit(at_exit) };
        let api = open(&driver);
        let mut count = 0;
        // SAFETY: the pointers are null or live.
        let code = unsafe { (api.clGetPlatformIDs)(0, std::ptr::null_mut(), &mut count) };
        assert_eq!((code, count), (0, 1), "the loader does not find Pumice");
        // At the end of the process, when it is asked for the last time, calls of OpenCL do nothing any more.
        let _ = COUNTER.set(counter(&api));
        api
    })
}

fn library(path: &std::ffi::OsStr) -> libloading::Library {
    // SAFETY: the initialisers are those of a loader, or of the driver.
    let library = unsafe { libloading::Library::new(path) };
    library.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The value of PUMICE_LOADER for the driver itself, without a loader, which would access destroyed
/// objects.
pub const NO_LOADER: &str = "none";

/// The loader: that of PUMICE_LOADER, or the system's.
#[cfg(not(windows))]
fn open(driver: &Path) -> Api {
    match std::env::var_os("PUMICE_LOADER") {
        Some(name) if name == NO_LOADER => load_driver(library(driver.as_os_str())),
        Some(name) => load(library(&name)),
        None => load(library("libOpenCL.so.1".as_ref())),
    }
}

/// The loader of PUMICE_LOADER; Windows itself has none, so without that the driver is asked for its functions by name.
#[cfg(windows)]
fn open(driver: &Path) -> Api {
    match std::env::var_os("PUMICE_LOADER") {
        Some(name) => load(library(&name)),
        None => load_driver(library(driver.as_os_str())),
    }
}

/// Fails the process when the validation layer reported anything.
extern "C" fn at_exit() {
    let messages = validation_messages();
    if messages > 0 {
        eprintln!("{messages} messages of the Vulkan validation layer");
        // SAFETY: ends the process from within its exit; nothing runs afterwards.
        unsafe { libc::_exit(101) };
    }
}

type Counter = extern "C" fn() -> u64;
static COUNTER: OnceLock<Option<Counter>> = OnceLock::new();

/// The driver's count of messages of the validation layer.
fn counter(api: &Api) -> Option<Counter> {
    let mut platform = std::ptr::null_mut();
    // SAFETY: the pointers are null or live; the driver declares the function so.
    unsafe {
        (api.clGetPlatformIDs)(1, &mut platform, std::ptr::null_mut());
        let name = c"pumiceValidationMessages";
        let address = (api.clGetExtensionFunctionAddressForPlatform)(platform, name.as_ptr());
        (!address.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, Counter>(address))
    }
}

/// Messages of the Vulkan validation layer so far.
pub fn validation_messages() -> u64 {
    cl();
    let counter = COUNTER.get().copied().flatten();
    counter.map_or(0, |counter| counter())
}
