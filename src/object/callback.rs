//! The C callbacks that an application registers. Each is a function and its user data; the only place that calls
//! application code.
//!
//! Never call one with a lock held: the application may call any API function from it. It may change the floating-point mode
//! of the thread too, so the standard one comes back when it returns.

use crate::cl::{self, cl_int, cl_uint};
use crate::error::{err, ClResult};
use crate::util::float_mode::FloatMode;
use std::ffi::{c_char, c_void, CString};

/// `pfn_notify` of clCreateContext.
pub type ErrorFn = unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void);
/// A callback of an object, when it is gone or a program is built: object, user data.
pub type ObjectFn = unsafe extern "C" fn(*mut c_void, *mut c_void);
/// A callback of an event: event, status, user data.
pub type EventFn = unsafe extern "C" fn(*mut c_void, cl_int, *mut c_void);

/// CL_PRINTF_CALLBACK_ARM: text, its bytes, not 0 with the last of a launch, user data.
pub type PrintFn = unsafe extern "C" fn(*const c_char, usize, usize, *mut c_void);

/// The function of clEnqueueSVMFree: queue, number of pointers, pointers, user data.
pub type FreeFn = unsafe extern "C" fn(*mut c_void, cl_uint, *mut *mut c_void, *mut c_void);

/// A native kernel: its arguments.
pub type NativeFn = unsafe extern "C" fn(*mut c_void);

/// A function of the application with its user data.
#[derive(Debug, Clone, Copy)]
pub struct Callback<F> {
    function: F,
    user_data: usize,
}

impl<F> Callback<F> {
    /// Wraps a callback. The application vouches for function and user data until the callback has run (for the
    /// error callback: as long as the context lives).
    pub fn new(function: F, user_data: *mut c_void) -> Self {
        Self {
            function,
            user_data: user_data as usize,
        }
    }

    /// Wraps a C pointer that may be null; user data without a function is an error.
    pub fn optional(function: Option<F>, user_data: *mut c_void) -> ClResult<Option<Self>> {
        match function {
            Some(function) => Ok(Some(Self::new(function, user_data))),
            None if user_data.is_null() => Ok(None),
            None => err(cl::CL_INVALID_VALUE, "user data without a callback"),
        }
    }
}

impl Callback<ErrorFn> {
    /// Reports an error of the context.
    pub fn call(&self, message: &str) {
        let _mode = FloatMode::standard();
        let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the application registered this function with this signature and keeps it callable while the
        // context lives; the string lives across the call.
        unsafe {
            (self.function)(
                text.as_ptr(),
                std::ptr::null(),
                0,
                self.user_data as *mut c_void,
            )
        }
    }
}

impl Callback<PrintFn> {
    /// Wraps the function at an address that the application has given in a list of properties.
    /// Returns `None` for null.
    pub fn at(address: usize, user_data: *mut c_void) -> Option<Self> {
        // SAFETY: a function pointer that may be null has this representation; the application
        // vouches for its type.
        let function = unsafe { std::mem::transmute::<usize, Option<PrintFn>>(address) };
        function.map(|function| Self::new(function, user_data))
    }

    /// Hands over text that a kernel has printed.
    pub fn call(&self, text: &[u8], complete: bool) {
        let _mode = FloatMode::standard();
        // SAFETY: the application gave this function, with this signature, and keeps it callable while the context
        // lives; the text lives across the call.
        unsafe {
            (self.function)(
                text.as_ptr().cast(),
                text.len(),
                complete.into(),
                self.user_data as *mut c_void,
            )
        }
    }
}

impl Callback<ObjectFn> {
    /// Tells what was waited for of an object.
    pub fn call(&self, handle: usize) {
        let _mode = FloatMode::standard();
        // SAFETY: the application registered this function with this signature to be called exactly once, now.
        unsafe { (self.function)(handle as *mut c_void, self.user_data as *mut c_void) }
    }
}

impl Callback<EventFn> {
    /// Notifies that an event has reached a status.
    pub fn call(&self, handle: usize, status: cl_int) {
        let _mode = FloatMode::standard();
        // SAFETY: the application registered this function with this signature to be called exactly once, now.
        unsafe { (self.function)(handle as *mut c_void, status, self.user_data as *mut c_void) }
    }
}

impl Callback<FreeFn> {
    /// Calls the application's function that frees pointers.
    pub fn call(&self, queue: usize, pointers: &[usize]) {
        let _mode = FloatMode::standard();
        let mut list: Vec<*mut c_void> = pointers.iter().map(|p| *p as *mut c_void).collect();
        let (queue, data) = (queue as *mut c_void, self.user_data as *mut c_void);
        // SAFETY: the application passed this function with this signature to be called exactly once, now; the list
        // lives across the call.
        unsafe { (self.function)(queue, list.len() as cl_uint, list.as_mut_ptr(), data) }
    }
}

impl Callback<NativeFn> {
    /// Runs a native kernel on its arguments.
    pub fn call(&self, args: &mut [u128]) {
        let _mode = FloatMode::standard();
        let args: *mut c_void = match args {
            [] => std::ptr::null_mut(),
            args => args.as_mut_ptr().cast(),
        };
        // SAFETY: the application enqueued this function with this signature, to be called with a copy of its arguments.
        unsafe { (self.function)(args) }
    }
}

/// Destructor callbacks of an object.
pub type Destructors = parking_lot::Mutex<Vec<Callback<ObjectFn>>>;

/// Calls destructor callbacks in the reverse of the order in which they were registered.
pub fn run_destructors(callbacks: Vec<Callback<ObjectFn>>, handle: usize) {
    for callback in callbacks.into_iter().rev() {
        callback.call(handle);
    }
}
