//! The OpenCL functions that tests call, found at run time.
//!
//! Normally through the loader (`libOpenCL.so.1`, or what `PUMICE_TEST_LOADER` names), so that everything passes through
//! the same doors as in an application. Where a machine has no loader, the driver that the one `.icd` file in
//! `OCL_ICD_VENDORS` names is opened directly and its dispatch table is used.
//!
//! Types come from `opencl-sys`; nothing is linked against an OpenCL library.

#![allow(non_snake_case)]

use libloading::Library;
use opencl_sys::cl_function_types as f;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{cl_int, cl_platform_id, cl_uint, CL_SUCCESS};
use std::ffi::{c_char, c_void, CStr, CString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The function inside an `Option` of one.
pub trait Inner {
    /// The function pointer.
    type Function;
    /// Takes it out.
    fn inner(self) -> Option<Self::Function>;
}

impl<F> Inner for Option<F> {
    type Function = F;
    fn inner(self) -> Option<F> {
        self
    }
}

macro_rules! api {
    ($($name:ident $type:ident)*) => {
        /// One OpenCL implementation, as C function pointers.
        #[allow(missing_docs)]
        pub struct Api {
            _library: Library,
            $(pub $name: <f::$type as Inner>::Function,)*
        }

        impl Api {
            /// The functions that `library` exports.
            fn from_symbols(library: Library) -> Result<Self, String> {
                $(
                    // SAFETY: the type is the one that the OpenCL headers declare for this name.
                    let $name = unsafe { library.get::<f::$type>(concat!(stringify!($name), "\0")) }
                        .ok()
                        .and_then(|symbol| symbol.inner())
                        .ok_or_else(|| format!("the loader has no {}", stringify!($name)))?;
                )*
                Ok(Self { _library: library, $($name,)* })
            }

            /// The functions of a dispatch table.
            fn from_table(library: Library, table: &cl_icd_dispatch) -> Result<Self, String> {
                $(
                    let $name = table.$name.inner()
                        .ok_or_else(|| format!("the driver has no {}", stringify!($name)))?;
                )*
                Ok(Self { _library: library, $($name,)* })
            }
        }
    };
}

api! {
    clGetPlatformIDs clGetPlatformIDs_t
    clGetExtensionFunctionAddressForPlatform clGetExtensionFunctionAddressForPlatform_t
    clGetPlatformInfo clGetPlatformInfo_t
    clGetDeviceIDs clGetDeviceIDs_t
    clGetDeviceInfo clGetDeviceInfo_t
    clCreateContext clCreateContext_t
    clReleaseContext clReleaseContext_t
    clCreateCommandQueue clCreateCommandQueue_t
    clReleaseCommandQueue clReleaseCommandQueue_t
    clCreateBuffer clCreateBuffer_t
    clCreateImage clCreateImage_t
    clReleaseMemObject clReleaseMemObject_t
    clCreateProgramWithSource clCreateProgramWithSource_t
    clReleaseProgram clReleaseProgram_t
    clBuildProgram clBuildProgram_t
    clGetProgramBuildInfo clGetProgramBuildInfo_t
    clCreateKernel clCreateKernel_t
    clReleaseKernel clReleaseKernel_t
    clSetKernelArg clSetKernelArg_t
    clGetKernelWorkGroupInfo clGetKernelWorkGroupInfo_t
    clWaitForEvents clWaitForEvents_t
    clCreateUserEvent clCreateUserEvent_t
    clSetUserEventStatus clSetUserEventStatus_t
    clReleaseEvent clReleaseEvent_t
    clFlush clFlush_t
    clFinish clFinish_t
    clEnqueueReadBuffer clEnqueueReadBuffer_t
    clEnqueueWriteBuffer clEnqueueWriteBuffer_t
    clEnqueueCopyBuffer clEnqueueCopyBuffer_t
    clEnqueueFillBuffer clEnqueueFillBuffer_t
    clEnqueueReadImage clEnqueueReadImage_t
    clEnqueueWriteImage clEnqueueWriteImage_t
    clEnqueueNDRangeKernel clEnqueueNDRangeKernel_t
}

impl Api {
    /// The implementation of this process, opened at first use.
    pub fn get() -> Result<&'static Api, String> {
        static API: OnceLock<Result<Api, String>> = OnceLock::new();
        API.get_or_init(Self::open).as_ref().map_err(Clone::clone)
    }

    fn open() -> Result<Self, String> {
        let name = std::env::var("PUMICE_TEST_LOADER").unwrap_or_else(|_| "libOpenCL.so.1".into());
        // SAFETY: opening a library runs its initialisers; that is what an application would do too.
        match unsafe { Library::new(&name) } {
            Ok(library) => Self::from_symbols(library),
            Err(error) => match only_driver() {
                Some(driver) => Self::open_driver(&driver),
                None => Err(format!(
                    "{error}; without a loader, OCL_ICD_VENDORS must name a directory with one .icd file"
                )),
            },
        }
    }

    /// Does what a loader does, for one driver.
    fn open_driver(path: &Path) -> Result<Self, String> {
        type GetAddress = unsafe extern "C" fn(*const c_char) -> *mut c_void;
        type GetPlatforms =
            unsafe extern "C" fn(cl_uint, *mut cl_platform_id, *mut cl_uint) -> cl_int;
        // SAFETY: as in `open`.
        let library =
            unsafe { Library::new(path) }.map_err(|e| format!("{}: {e}", path.display()))?;
        // SAFETY: cl_khr_icd defines the types of both functions.
        let get_platforms = unsafe {
            match library.get::<GetPlatforms>("clIcdGetPlatformIDsKHR\0") {
                Ok(function) => *function,
                Err(error) => {
                    let address = library
                        .get::<GetAddress>("clGetExtensionFunctionAddress\0")
                        .map_err(|_| error.to_string())?(
                        c"clIcdGetPlatformIDsKHR".as_ptr()
                    );
                    if address.is_null() {
                        return Err(error.to_string());
                    }
                    std::mem::transmute::<*mut c_void, GetPlatforms>(address)
                }
            }
        };
        let mut platform: cl_platform_id = std::ptr::null_mut();
        // SAFETY: room for one handle; the count may be null.
        let status = unsafe { get_platforms(1, &mut platform, std::ptr::null_mut()) };
        if status != CL_SUCCESS || platform.is_null() {
            return Err(format!("{}: no platform ({status})", path.display()));
        }
        // SAFETY: cl_khr_icd: a handle points to a pointer to the dispatch table.
        let table = unsafe { &**platform.cast::<*const cl_icd_dispatch>() };
        let mut api = Self::from_table(library, table)?;
        api.clGetPlatformIDs = get_platforms;
        Ok(api)
    }
}

/// The driver that the only `.icd` file of `OCL_ICD_VENDORS` names.
fn only_driver() -> Option<PathBuf> {
    let directory = std::env::var_os("OCL_ICD_VENDORS")?;
    let mut files = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "icd"));
    let file = files.next()?;
    if files.next().is_some() {
        return None;
    }
    Some(driver_of(&std::fs::read_to_string(file).ok()?))
}

/// The library that the text of an `.icd` file names.
pub fn driver_of(icd_text: &str) -> PathBuf {
    PathBuf::from(icd_text.lines().next().unwrap_or("").trim())
}

/// Makes a directory for `OCL_ICD_VENDORS` that leads to one driver only. `driver` is a library or an `.icd` file.
///
/// Both the Khronos loader and ocl-icd take a directory there; what else they take differs.
pub fn vendors_directory(place: &Path, driver: &Path) -> Result<PathBuf, String> {
    let library = if driver.extension().is_some_and(|e| e == "icd") {
        let text = std::fs::read_to_string(driver)
            .map_err(|error| format!("{}: {error}", driver.display()))?;
        driver_of(&text)
    } else {
        driver.to_owned()
    };
    // A bare name is left to the dynamic linker's search path.
    let library = if library.components().count() > 1 {
        library
            .canonicalize()
            .map_err(|error| format!("{}: {error}", library.display()))?
    } else {
        library
    };
    std::fs::create_dir_all(place)
        .and_then(|()| std::fs::write(place.join("only.icd"), format!("{}\n", library.display())))
        .map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(place.to_owned())
}

/// The library as Cargo built it, beside the running program.
pub fn built_driver() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    program
        .ancestors()
        .skip(1)
        .take(3)
        .map(|directory| directory.join(crate::LIBRARY))
        .find(|library| library.exists())
        .ok_or_else(|| format!("no {} near {}", crate::LIBRARY, program.display()))
}

/// A C string from an info query's bytes.
pub fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes).map_or_else(
        |_| String::from_utf8_lossy(bytes).into_owned(),
        |s| s.to_string_lossy().into_owned(),
    )
}

/// A name for C. Names with a zero byte are cut there.
pub fn c_name(name: &str) -> CString {
    CString::new(name.split('\0').next().unwrap_or("")).unwrap_or_default()
}
