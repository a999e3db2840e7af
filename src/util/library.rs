//! Shared libraries: whether one can be loaded, for who looks for what is wrong with an installation; and the one that this
//! code is in.

pub use system::{load, own_path, stay};

#[cfg(unix)]
mod system {
    use std::ffi::{c_char, c_void, CStr, CString, OsStr};
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    /// Loads a library by its name or path and leaves it loaded. The error is the dynamic linker's.
    pub fn load(name: &str) -> Result<(), String> {
        let name = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: `name` is a C string. The library's initialisers run, as they would in any program that uses it; it stays.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if !handle.is_null() {
            return Ok(());
        }
        // SAFETY: no arguments; the text is this thread's until its next call of the dynamic linker.
        let error: *const c_char = unsafe { libc::dlerror() };
        if error.is_null() {
            return Err("it cannot be loaded".to_owned());
        }
        // SAFETY: it is a C string, as said above, and is copied at once.
        let error = unsafe { CStr::from_ptr(error) };
        Err(error.to_string_lossy().into_owned())
    }

    /// Returns the file of the shared library or executable that this code is in. The path of a
    /// library is the one that the dynamic linker received, which may be relative.
    pub fn own_path() -> Option<PathBuf> {
        let here = object_of(own_path as *const c_void)?;
        // SAFETY: no arguments but the name of a value.
        let of_program = unsafe { libc::getauxval(libc::AT_PHDR) } as *const c_void;
        // Of a program the linker knows no more than what it was called with.
        if object_of(of_program).is_some_and(|program| program.dli_fbase == here.dli_fbase) {
            return std::env::current_exe().ok();
        }
        if here.dli_fname.is_null() {
            return None;
        }
        // SAFETY: a C string that lives as long as the library.
        let bytes = unsafe { CStr::from_ptr(here.dli_fname) }.to_bytes();
        Some(PathBuf::from(OsStr::from_bytes(bytes)))
    }

    /// Returns the dynamic linker's entry of the library or program that contains an address.
    fn object_of(address: *const c_void) -> Option<libc::Dl_info> {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: dladdr only compares the address, and fills `info` where it says that it did.
        unsafe { (libc::dladdr(address, info.as_mut_ptr()) != 0).then(|| info.assume_init()) }
    }

    /// Does nothing: the linker has marked the library so that it stays loaded (`icd/build.rs`).
    pub fn stay() {}
}

#[cfg(windows)]
mod system {
    use crate::util::win32;
    use std::ffi::{OsStr, OsString};
    use std::os::windows::ffi::OsStringExt;
    use std::path::PathBuf;
    use std::ptr::null_mut;

    /// Loads a library by its name or path and leaves it loaded. The error is the system's.
    pub fn load(name: &str) -> Result<(), String> {
        if name.contains('\0') {
            return Err("a name with a zero in it".to_owned());
        }
        // SAFETY: a string. The library's initialisers run, as they would in any program that uses it; it stays.
        let module = unsafe { win32::LoadLibraryW(win32::wide(OsStr::new(name)).as_ptr()) };
        if !module.is_null() {
            return Ok(());
        }
        Err(format!("{name}: {}", std::io::Error::last_os_error()))
    }

    fn own(flags: u32) -> Option<win32::Module> {
        let mut module = null_mut();
        // SAFETY: the flag says that the name is an address, which is one of this code.
        let found = unsafe {
            win32::GetModuleHandleExW(
                win32::MODULE_FROM_ADDRESS | flags,
                own_path as *const u16,
                &mut module,
            )
        };
        (found != 0).then_some(module)
    }

    /// Returns the shared library (or executable) that this code is in.
    pub fn own_path() -> Option<PathBuf> {
        let module = own(win32::MODULE_UNCHANGED)?;
        let mut name = vec![0u16; 32 << 10];
        // SAFETY: a module of this process, and so much room.
        let length = unsafe { win32::GetModuleFileNameW(module, name.as_mut_ptr(), 32 << 10) };
        let name = name
            .get(..length as usize)
            .filter(|name| !name.is_empty())?;
        Some(PathBuf::from(OsString::from_wide(name)))
    }

    /// Keeps the library loaded even if the application unloads it, since it has threads of its
    /// own.
    pub fn stay() {
        let _ = own(win32::MODULE_PIN);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_code_is_in_this_program() {
        let own = super::own_path().unwrap().canonicalize().unwrap();
        assert_eq!(
            own,
            std::env::current_exe().unwrap().canonicalize().unwrap()
        );
    }

    #[test]
    fn libraries_load_or_say_why_not() {
        let there = if cfg!(windows) {
            "kernel32.dll"
        } else {
            "libc.so.6"
        };
        assert_eq!(super::load(there), Ok(()));
        let error = super::load("libno_such_library.so").unwrap_err();
        assert!(error.contains("libno_such_library.so"), "{error}");
        assert!(super::load("a\0b").is_err());
    }
}
