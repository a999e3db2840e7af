//! Harness of the integration tests: Pumice as a program sees it, through the real OpenCL loader.
//!
//! Nothing is linked. [`cl`] loads `libOpenCL.so.1` with `OCL_ICD_VENDORS` naming the `libpumice.so`
//! of this build (or that of `PUMICE_LIB`), so that no other driver of the machine takes part. `PUMICE_LOADER` names
//! another loader, or with `none` none. The Khronos validation
//! layer is on where it is installed; a process in which it reported anything exits with an error.

mod api;
mod child;
pub mod client;
mod fixture;
pub mod gate;
pub mod json;
mod left_out;
pub mod process;
pub mod rng;
mod scratch;
pub mod sequences;

pub use api::{cl, use_driver, validation_messages, Api, NO_LOADER};
pub use child::{finished, good_child, is_alone, job};
pub use fixture::{
    at_least, code_name, first_device, platform, user_data, Buffer, Context, Event, Kernel, Plain,
    Program, Queue, Setup,
};
pub use left_out::left_out;
pub use opencl_sys as sys;
pub use scratch::Scratch;

use std::path::{Path, PathBuf};

/// Calls an OpenCL function: `call!(clFlush(queue))`.
#[macro_export]
macro_rules! call {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        #[allow(clippy::macro_metavars_in_unsafe, unused_unsafe)]
        // SAFETY: a test passes pointers that live as long as the call asks, and whatever else it passes wrongly is
        // what the driver has to refuse.
        unsafe { ($crate::cl().$name)($($arg),*) }
    }};
}

/// Calls a function of an extension: a [`Setup`], the name and the type of a pointer to it.
#[macro_export]
macro_rules! ext {
    ($setup:expr, $name:ident: $type:ident($($arg:expr),* $(,)?)) => {{
        let name = concat!(stringify!($name), "\0").as_bytes();
        let name = std::ffi::CStr::from_bytes_with_nul(name).expect("a name");
        let function = $setup.function::<$type>(name).expect("a function");
        #[allow(clippy::macro_metavars_in_unsafe)]
        // SAFETY: as for the functions of the loader.
        unsafe { function($($arg),*) }
    }};
}

/// Checks that a call returned CL_SUCCESS.
#[macro_export]
macro_rules! ok {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        let code = $crate::call!($name($($arg),*));
        assert_eq!(code, 0, "{} returned {}", stringify!($name), $crate::code_name(code));
    }};
}

/// Checks that a call returned this error.
#[macro_export]
macro_rules! fails {
    ($code:ident, $name:ident($($arg:expr),* $(,)?)) => {{
        let code = $crate::call!($name($($arg),*));
        assert_eq!(
            code, $crate::sys::$code,
            "{} returned {} instead of {}", stringify!($name), $crate::code_name(code), stringify!($code)
        );
    }};
}

/// Checks that a call with `errcode_ret` (left out here) failed with this error and returned NULL.
#[macro_export]
macro_rules! create_fails {
    ($code:ident, $name:ident($($arg:expr),* $(,)?)) => {{
        let mut code = 1;
        let made = $crate::call!($name($($arg,)* &mut code));
        assert_eq!(
            code, $crate::sys::$code,
            "{} gave {} instead of {}", stringify!($name), $crate::code_name(code), stringify!($code)
        );
        assert!(made.is_null(), "{} failed but returned an object", stringify!($name));
    }};
}

/// The result of a call with `errcode_ret` (left out here) that succeeded.
#[macro_export]
macro_rules! create {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        let mut code = 1;
        let made = $crate::call!($name($($arg,)* &mut code));
        assert_eq!(code, 0, "{} gave {}", stringify!($name), $crate::code_name(code));
        assert!(!made.is_null(), "{} succeeded but returned NULL", stringify!($name));
        made
    }};
}

/// The answer of a `clGet*Info` function as bytes: `info!(clGetDeviceInfo(device), CL_DEVICE_NAME)`.
#[macro_export]
macro_rules! info {
    ($name:ident($($arg:expr),*), $param:expr) => {{
        let mut size = 0usize;
        $crate::ok!($name($($arg,)* $param, 0, std::ptr::null_mut(), &mut size));
        let mut bytes = vec![0u8; size];
        let mut written = 0usize;
        $crate::ok!($name($($arg,)* $param, size, bytes.as_mut_ptr().cast(), &mut written));
        assert_eq!(size, written, "the two sizes of {} differ", stringify!($param));
        bytes
    }};
}

/// As [`info!`], one value of a plain type.
#[macro_export]
macro_rules! info_value {
    ($type:ty, $name:ident($($arg:expr),*), $param:expr) => {{
        let bytes = $crate::info!($name($($arg),*), $param);
        assert_eq!(bytes.len(), size_of::<$type>(), "size of {}", stringify!($param));
        <$type as $crate::Plain>::from_bytes(&bytes)
    }};
}

/// As [`info!`], a string.
#[macro_export]
macro_rules! info_text {
    ($name:ident($($arg:expr),*), $param:expr) => {{
        let mut bytes = $crate::info!($name($($arg),*), $param);
        assert_eq!(bytes.pop(), Some(0), "{} does not end with NUL", stringify!($param));
        String::from_utf8(bytes).expect(stringify!($param))
    }};
}

/// Its name.
pub const LIBRARY: &str = if cfg!(windows) {
    "pumice.dll"
} else {
    "libpumice.so"
};

/// The library under test: `PUMICE_LIB`, or the newest `libpumice.so` of the build that made this executable.
pub fn library_path() -> PathBuf {
    if let Some(path) = std::env::var_os("PUMICE_LIB") {
        return PathBuf::from(path);
    }
    let executable = std::env::current_exe().expect("the path of this executable");
    let places = executable
        .ancestors()
        .skip(1)
        .take(3)
        .flat_map(|directory| {
            [
                directory.join(LIBRARY),
                directory.join("deps").join(LIBRARY),
            ]
        });
    let modified = |path: &PathBuf| Path::new(path).metadata().and_then(|m| m.modified()).ok();
    places
        .filter(|path| path.is_file())
        .max_by_key(modified)
        .expect("the library near the test executable; build it or set PUMICE_LIB")
}
