//! The registry of Windows, as far as loaders of OpenCL read it: values of 32 bits under keys that list drivers' libraries.

use super::win32;
use std::ffi::OsStr;
use std::io::{Error, Result};
use std::ptr::{null, null_mut};

/// Where loaders look (the registry's view of 64-bit programs).
const VENDORS: &str = r"SOFTWARE\Khronos\OpenCL\Vendors";

const READ: u32 = 0x0002_0019;
const WRITE: u32 = 0x0002_0006;
/// KEY_WOW64_64KEY
const VIEW_64: u32 = 0x0100;
/// REG_DWORD
const DWORD: u32 = 4;
/// ERROR_FILE_NOT_FOUND
const NOT_FOUND: i32 = 2;

/// For whom a driver is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hive {
    /// All users: takes an administrator's rights. All loaders look there.
    Machine,
    /// The one who asks. Khronos' loader looks there since 2024.
    User,
}

impl Hive {
    /// Returns the name in the registry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => r"HKEY_LOCAL_MACHINE\SOFTWARE\Khronos\OpenCL\Vendors",
            Self::User => r"HKEY_CURRENT_USER\SOFTWARE\Khronos\OpenCL\Vendors",
        }
    }

    fn root(self) -> win32::Handle {
        match self {
            Self::Machine => win32::local_machine(),
            Self::User => win32::current_user(),
        }
    }
}

/// An open key.
struct Key(win32::Handle);

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once.
        unsafe { win32::RegCloseKey(self.0) };
    }
}

fn done(code: i32) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(Error::from_raw_os_error(code)),
    }
}

fn open(hive: Hive, access: u32) -> Result<Key> {
    let name = win32::wide(OsStr::new(VENDORS));
    let mut key = null_mut();
    // SAFETY: a string, and a place for the key.
    done(unsafe {
        win32::RegOpenKeyExW(hive.root(), name.as_ptr(), 0, access | VIEW_64, &mut key)
    })?;
    Ok(Key(key))
}

/// Lists a library among the drivers.
pub fn add(hive: Hive, library: &OsStr) -> Result<()> {
    let name = win32::wide(OsStr::new(VENDORS));
    let mut key = null_mut();
    // SAFETY: strings that end with zero or are left out, and a place for the key.
    done(unsafe {
        win32::RegCreateKeyExW(
            hive.root(),
            name.as_ptr(),
            0,
            null(),
            0,
            WRITE | VIEW_64,
            null(),
            &mut key,
            null_mut(),
        )
    })?;
    let key = Key(key);
    let (value, on) = (win32::wide(library), 0u32.to_le_bytes());
    // SAFETY: an open key, a string, four bytes.
    done(unsafe { win32::RegSetValueExW(key.0, value.as_ptr(), 0, DWORD, on.as_ptr(), 4) })
}

/// Removes a library from the list. Returns true if it was there.
pub fn remove(hive: Hive, library: &str) -> Result<bool> {
    let key = match open(hive, WRITE) {
        Err(error) if error.raw_os_error() == Some(NOT_FOUND) => return Ok(false),
        other => other?,
    };
    let value = win32::wide(OsStr::new(library));
    // SAFETY: an open key and a string.
    match unsafe { win32::RegDeleteValueW(key.0, value.as_ptr()) } {
        NOT_FOUND => Ok(false),
        code => done(code).map(|()| true),
    }
}

/// Returns the libraries that are listed and enabled.
pub fn list(hive: Hive) -> Vec<String> {
    let Ok(key) = open(hive, READ) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for index in 0.. {
        let mut name = vec![0u16; 16 << 10];
        let (mut length, mut kind, mut value, mut size) = (16u32 << 10, 0u32, [0xffu8; 4], 4u32);
        // SAFETY: an open key, and room of the sizes that are said.
        let code = unsafe {
            win32::RegEnumValueW(
                key.0,
                index,
                name.as_mut_ptr(),
                &mut length,
                null_mut(),
                &mut kind,
                value.as_mut_ptr(),
                &mut size,
            )
        };
        // ERROR_MORE_DATA: not a number.
        if code == 234 {
            continue;
        }
        if code != 0 {
            break;
        }
        if kind == DWORD && value == [0; 4] {
            let name = name.get(..length as usize).unwrap_or_default();
            all.push(String::from_utf16_lossy(name));
        }
    }
    all
}
