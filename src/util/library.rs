//! Whether a shared library can be loaded: for who looks for what is wrong with an installation.

use std::ffi::{c_char, CStr, CString};

/// Loads a library by its name or path and leaves it loaded. The error is the dynamic linker's.
pub fn load(name: &str) -> Result<(), String> {
    let name = CString::new(name).map_err(|error| error.to_string())?;
    // SAFETY: `name` is a C string. The library's initialisers run, as they would in any program that uses it; it stays.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if !handle.is_null() {
        return Ok(());
    }
    // SAFETY: no arguments; the text is this thread's until its next call of the dynamic linker.
    let said: *const c_char = unsafe { libc::dlerror() };
    if said.is_null() {
        return Err("it cannot be loaded".to_owned());
    }
    // SAFETY: it is a C string, as said above, and is copied at once.
    let said = unsafe { CStr::from_ptr(said) };
    Err(said.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn libraries_load_or_say_why_not() {
        assert_eq!(super::load("libc.so.6"), Ok(()));
        let said = super::load("libno_such_library.so").unwrap_err();
        assert!(said.contains("libno_such_library.so"), "{said}");
        assert!(super::load("a\0b").is_err());
    }
}
