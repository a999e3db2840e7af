//! Pages of memory from the system: mappings at addresses of its choice or ours, and who may access them how.

use std::ptr::NonNull;

/// The accesses that pages permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    None,
    /// Reading and writing.
    ReadWrite,
    /// Reading and running as code.
    ReadExecute,
}

/// Maps new pages of zeros at an address that the system chooses. Returns `None` if there are none
/// left. Untouched pages take no memory; on Windows they are committed, except those without any
/// access.
pub fn map(size: usize, access: Protection) -> Option<NonNull<u8>> {
    system::map(0, size, access)
}

/// Returns the same at this address, a multiple of [`GRANULE`]; None: a part of the range is in
/// use, or cannot be had.
pub fn map_at(base: usize, size: usize) -> Option<NonNull<u8>> {
    let found = system::map(base, size, Protection::ReadWrite)?;
    if found.as_ptr() as usize == base {
        return Some(found);
    }
    // SAFETY: mapped above, and nobody has seen it. Linux before 4.17 takes the address for a hint.
    unsafe { unmap(found, size) };
    None
}

/// Unmaps a whole mapping.
///
/// # Safety
/// It came from [`map`] or [`map_at`] with this size, and nobody uses it any more.
pub unsafe fn unmap(base: NonNull<u8>, size: usize) {
    // SAFETY: as the caller promises.
    unsafe { system::unmap(base, size) }
}

/// Changes the access rights of whole pages of a mapping. Returns true on success.
///
/// # Safety
/// The range is within a mapping of the caller's, and nothing is under way there that the new access forbids.
pub unsafe fn protect(base: NonNull<u8>, size: usize, access: Protection) -> bool {
    // SAFETY: as the caller promises.
    unsafe { system::protect(base, size, access) }
}

/// Advises the system to back a mapped range by large pages.
///
/// # Safety
/// The range is mapped.
pub unsafe fn ask_for_large(base: NonNull<u8>, size: usize) {
    // SAFETY: as the caller promises.
    unsafe { system::ask_for_large(base, size) }
}

pub use system::{page, readable, GRANULE};

#[cfg(unix)]
mod system {
    use super::{NonNull, Protection};

    /// The granularity of addresses that the caller chooses.
    pub const GRANULE: usize = 4096;

    /// Returns the bytes of a page.
    pub fn page() -> usize {
        // SAFETY: a question to the system without operands in memory.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096).max(4096)
    }

    /// Returns the begin and end of each readable range of this process, in the order of addresses.
    /// Returns nothing if the system does not report them.
    pub fn readable() -> Vec<(u64, u64)> {
        let Ok(text) = std::fs::read_to_string("/proc/self/maps") else {
            return Vec::new();
        };
        let ranges = text.lines().filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (begin, end) = range.split_once('-')?;
            let address = |text| u64::from_str_radix(text, 16).ok();
            // What the kernel maps into every process is not to be read by copying.
            let special = rest.contains("[v");
            (rest.starts_with('r') && !special).then_some((address(begin)?, address(end)?))
        });
        ranges.collect()
    }

    fn flags(access: Protection) -> i32 {
        match access {
            Protection::None => libc::PROT_NONE,
            Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            Protection::ReadExecute => libc::PROT_READ | libc::PROT_EXEC,
        }
    }

    /// Maps pages at an address, or anywhere at 0. Returns `None` if the system refuses.
    pub fn map(base: usize, size: usize, access: Protection) -> Option<NonNull<u8>> {
        let mut kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        if base != 0 {
            kind |= libc::MAP_FIXED_NOREPLACE;
        }
        // SAFETY: a new private mapping: MAP_FIXED_NOREPLACE touches no range that is in use.
        let found = unsafe { libc::mmap(base as *mut _, size, flags(access), kind, -1, 0) };
        if found == libc::MAP_FAILED {
            return None;
        }
        NonNull::new(found.cast())
    }

    /// Gives pages back.
    pub unsafe fn unmap(base: NonNull<u8>, size: usize) {
        // SAFETY: as the caller promises.
        unsafe { libc::munmap(base.as_ptr().cast(), size) };
    }

    /// Changes the protection of pages. Returns false if the system refuses.
    pub unsafe fn protect(base: NonNull<u8>, size: usize, access: Protection) -> bool {
        // SAFETY: as the caller promises.
        unsafe { libc::mprotect(base.as_ptr().cast(), size, flags(access)) == 0 }
    }

    /// Asks for large pages, which the system may ignore.
    pub unsafe fn ask_for_large(base: NonNull<u8>, size: usize) {
        #[cfg(target_os = "linux")]
        // SAFETY: as the caller promises; the advice changes nothing but how memory is backed.
        unsafe {
            libc::madvise(base.as_ptr().cast(), size, libc::MADV_HUGEPAGE);
        }
        let _ = (base, size);
    }
}

#[cfg(windows)]
mod system {
    use super::{NonNull, Protection};
    use crate::util::win32;

    /// The granularity of addresses that the caller chooses.
    pub const GRANULE: usize = 64 << 10;

    /// Returns the bytes of a page.
    pub fn page() -> usize {
        4096
    }

    /// Returns the begin and end of each readable range of this process, in the order of addresses.
    pub fn readable() -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let mut about = win32::MemoryBasicInformation::default();
        let size = size_of_val(&about);
        // SAFETY: a place for what is said of the pages around an address, whatever is there, with its size.
        while unsafe { win32::VirtualQuery(about.end() as *const _, &mut about, size) } != 0 {
            let kind = about.protect & 0xff;
            let guarded = about.protect & win32::PAGE_GUARD != 0;
            // PAGE_EXECUTE alone is not for reading either.
            let may = kind != win32::PAGE_NOACCESS && kind != win32::PAGE_EXECUTE;
            if about.state == win32::MEM_COMMIT && may && !guarded {
                found.push((about.base as u64, about.end() as u64));
            }
        }
        found
    }

    fn flags(access: Protection) -> u32 {
        match access {
            Protection::None => win32::PAGE_NOACCESS,
            Protection::ReadWrite => win32::PAGE_READWRITE,
            Protection::ReadExecute => win32::PAGE_EXECUTE_READ,
        }
    }

    /// Maps pages at an address, or anywhere at 0. Returns `None` if the system refuses.
    pub fn map(base: usize, size: usize, access: Protection) -> Option<NonNull<u8>> {
        let kind = match access {
            Protection::None => win32::MEM_RESERVE,
            _ => win32::MEM_RESERVE | win32::MEM_COMMIT,
        };
        // SAFETY: new pages: a range that is in use is refused.
        let found = unsafe { win32::VirtualAlloc(base as *mut _, size, kind, flags(access)) };
        NonNull::new(found.cast())
    }

    /// Gives pages back.
    pub unsafe fn unmap(base: NonNull<u8>, _size: usize) {
        // SAFETY: as the caller promises; a mapping is released whole, by its first byte.
        unsafe { win32::VirtualFree(base.as_ptr().cast(), 0, win32::MEM_RELEASE) };
    }

    /// Changes the protection of pages. Returns false if the system refuses.
    pub unsafe fn protect(base: NonNull<u8>, size: usize, access: Protection) -> bool {
        let mut before = 0;
        let base = base.as_ptr().cast();
        // SAFETY: as the caller promises; pages that are committed keep what is in them.
        unsafe {
            win32::VirtualProtect(base, size, flags(access), &mut before) != 0
                || !win32::VirtualAlloc(base, size, win32::MEM_COMMIT, flags(access)).is_null()
        }
    }

    /// Does nothing: large pages are a privilege on Windows, and must be requested when memory is
    /// allocated.
    pub unsafe fn ask_for_large(_base: NonNull<u8>, _size: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_addresses_are_found() {
        let size = 4 * GRANULE;
        let base = map(size, Protection::None).expect("pages");
        let first = base.as_ptr() as u64;
        let readable = |address: u64| {
            readable()
                .iter()
                .any(|(begin, end)| (*begin..*end).contains(&address))
        };
        assert!(!readable(first));
        // SAFETY: our own mapping, of that size.
        unsafe {
            assert!(protect(base, page(), Protection::ReadWrite));
            assert!(readable(first) && readable(first + page() as u64 - 1));
            assert!(!readable(first + page() as u64));
            unmap(base, size);
        }
        let own = 5u32;
        assert!(readable(&raw const own as u64));
    }

    /// Checks that only the accessible part of a mapping is committed.
    #[cfg(windows)]
    #[test]
    fn what_nobody_may_access_is_not_committed() {
        use crate::util::win32;
        let state = |address: *const u8| {
            let mut about = win32::MemoryBasicInformation::default();
            let size = size_of_val(&about);
            // SAFETY: a place for what is said of pages, with its size.
            unsafe { win32::VirtualQuery(address.cast(), &mut about, size) };
            about.state
        };
        let size = 4 * page();
        let base = map(size, Protection::None).expect("pages");
        // SAFETY: our own mapping, of that size; written to only while that is allowed.
        unsafe {
            let second = base.add(page());
            assert!(protect(second, 2 * page(), Protection::ReadWrite));
            second.write(7);
            // Where some pages are committed and some are not.
            assert!(protect(second, 3 * page(), Protection::ReadWrite));
            assert_eq!(second.read(), 7);
            base.add(size - 1).write(1);
            assert_eq!(state(base.as_ptr()), win32::MEM_RESERVE);
            assert_eq!(state(second.as_ptr()), win32::MEM_COMMIT);
            unmap(base, size);
        }
    }

    #[test]
    fn pages_come_and_change() {
        let size = 4 * page();
        let base = map(size, Protection::None).expect("pages");
        // SAFETY: our own mapping, of that size; written to only while that is allowed.
        unsafe {
            assert!(protect(base, size, Protection::ReadWrite));
            assert_eq!(base.as_ptr().read(), 0);
            base.as_ptr().add(size - 1).write(0xc3);
            assert!(protect(base, size, Protection::ReadExecute));
            assert_eq!(base.as_ptr().add(size - 1).read(), 0xc3);
            assert!(map_at(base.as_ptr() as usize, size).is_none(), "in use");
            unmap(base, size);
        }
    }
}
