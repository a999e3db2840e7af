//! The functions of Windows that the rest of this folder uses, as Windows' own documentation declares them, and no more.

#![allow(non_snake_case, missing_docs)]

use std::ffi::c_void;

pub type Handle = *mut c_void;
pub type Module = *mut c_void;

pub const MEM_COMMIT: u32 = 0x1000;
pub const MEM_RESERVE: u32 = 0x2000;
pub const MEM_RELEASE: u32 = 0x8000;
pub const PAGE_NOACCESS: u32 = 0x01;
pub const PAGE_READWRITE: u32 = 0x04;
pub const PAGE_EXECUTE: u32 = 0x10;
pub const PAGE_EXECUTE_READ: u32 = 0x20;
pub const PAGE_GUARD: u32 = 0x100;

/// SetHandleInformation: children get it.
pub const INHERIT: u32 = 1;
/// WaitForSingleObject: without a limit.
pub const INFINITE: u32 = u32::MAX;
/// SetInformationJobObject: JOBOBJECT_EXTENDED_LIMIT_INFORMATION.
pub const JOB_EXTENDED_LIMITS: u32 = 9;
/// A job whose processes end when its last handle is closed.
pub const JOB_KILL_ON_CLOSE: u32 = 0x2000;
/// UpdateProcThreadAttribute: the handles that a process inherits, and no others.
pub const ATTRIBUTE_HANDLES: usize = 0x2_0002;
/// UpdateProcThreadAttribute: the jobs that a process is in from its first moment on.
pub const ATTRIBUTE_JOBS: usize = 0x2_000d;
/// CreateProcessW: an application without a console gets none for it.
pub const CREATE_NO_WINDOW: u32 = 0x0800_0000;
/// CreateProcessW: STARTUPINFOEXW.
pub const CREATE_EXTENDED: u32 = 0x0008_0000;
/// STARTUPINFOW: its handles count.
pub const STARTUP_HAS_HANDLES: u32 = 0x100;

/// GetModuleHandleExW: it is never unloaded.
pub const MODULE_PIN: u32 = 1;
/// GetModuleHandleExW: its count of users stays as it is.
pub const MODULE_UNCHANGED: u32 = 2;
/// GetModuleHandleExW: the name is an address in it.
pub const MODULE_FROM_ADDRESS: u32 = 4;

/// MEMORYSTATUSEX
#[repr(C)]
pub struct MemoryStatus {
    pub length: u32,
    pub load: u32,
    pub total_physical: u64,
    pub available_physical: u64,
    pub total_page_file: u64,
    pub available_page_file: u64,
    pub total_virtual: u64,
    pub available_virtual: u64,
    pub available_extended: u64,
}

/// MEMORY_BASIC_INFORMATION: a range of pages of one kind.
#[repr(C)]
#[derive(Default)]
pub struct MemoryBasicInformation {
    pub base: usize,
    pub allocation_base: usize,
    pub allocation_protect: u32,
    pub partition: u16,
    pub size: usize,
    pub state: u32,
    pub protect: u32,
    pub kind: u32,
}

impl MemoryBasicInformation {
    /// Returns the address after the region.
    pub fn end(&self) -> usize {
        self.base + self.size
    }
}

/// BY_HANDLE_FILE_INFORMATION; times are pairs of words.
#[repr(C)]
#[derive(Default)]
pub struct FileInformation {
    pub attributes: u32,
    pub created: [u32; 2],
    pub accessed: [u32; 2],
    pub written: [u32; 2],
    pub volume: u32,
    pub size: [u32; 2],
    pub links: u32,
    pub index: [u32; 2],
}

/// FILE_BASIC_INFO: times in 100 ns since 1601.
#[repr(C)]
#[derive(Default)]
pub struct FileBasicInfo {
    pub created: i64,
    pub accessed: i64,
    pub written: i64,
    pub changed: i64,
    pub attributes: u32,
    _end: u32,
}

/// JOBOBJECT_EXTENDED_LIMIT_INFORMATION
#[repr(C)]
#[derive(Default)]
pub struct JobLimits {
    pub times: [i64; 2],
    pub flags: u32,
    pub working_set: [usize; 2],
    pub processes: u32,
    pub affinity: usize,
    pub priority: u32,
    pub scheduling: u32,
    pub counters: [u64; 6],
    pub memory: [usize; 4],
}

/// STARTUPINFOEXW
#[repr(C)]
pub struct Startup {
    pub size: u32,
    pub texts: [*mut u16; 3],
    pub window: [u32; 7],
    pub flags: u32,
    pub show: u16,
    pub reserved_size: u16,
    pub reserved: *mut u8,
    pub streams: [Handle; 3],
    pub attributes: *mut c_void,
}

impl Default for Startup {
    fn default() -> Self {
        Self {
            size: 0,
            texts: [std::ptr::null_mut(); 3],
            window: [0; 7],
            flags: 0,
            show: 0,
            reserved_size: 0,
            reserved: std::ptr::null_mut(),
            streams: [std::ptr::null_mut(); 3],
            attributes: std::ptr::null_mut(),
        }
    }
}

/// PROCESS_INFORMATION
#[repr(C)]
pub struct ProcessInformation {
    pub process: Handle,
    pub thread: Handle,
    pub process_id: u32,
    pub thread_id: u32,
}

impl Default for ProcessInformation {
    fn default() -> Self {
        Self {
            process: std::ptr::null_mut(),
            thread: std::ptr::null_mut(),
            process_id: 0,
            thread_id: 0,
        }
    }
}

#[link(name = "kernel32")]
extern "system" {
    pub fn CreateJobObjectW(security: *const c_void, name: *const u16) -> Handle;
    pub fn SetInformationJobObject(job: Handle, class: u32, from: *const c_void, size: u32) -> i32;
    pub fn SetHandleInformation(handle: Handle, mask: u32, flags: u32) -> i32;
    pub fn InitializeProcThreadAttributeList(
        list: *mut c_void,
        count: u32,
        flags: u32,
        size: *mut usize,
    ) -> i32;
    pub fn UpdateProcThreadAttribute(
        list: *mut c_void,
        flags: u32,
        attribute: usize,
        value: *const c_void,
        size: usize,
        before: *mut c_void,
        size_before: *mut usize,
    ) -> i32;
    pub fn DeleteProcThreadAttributeList(list: *mut c_void);
    pub fn CreateProcessW(
        program: *const u16,
        line: *mut u16,
        process_security: *const c_void,
        thread_security: *const c_void,
        inherit: i32,
        flags: u32,
        environment: *const c_void,
        directory: *const u16,
        startup: *mut Startup,
        made: *mut ProcessInformation,
    ) -> i32;
    pub fn TerminateProcess(process: Handle, status: u32) -> i32;
    pub fn WaitForSingleObject(handle: Handle, milliseconds: u32) -> u32;
    pub fn GetExitCodeProcess(process: Handle, status: *mut u32) -> i32;
    pub fn VirtualAlloc(at: *mut c_void, size: usize, kind: u32, access: u32) -> *mut c_void;
    pub fn VirtualFree(at: *mut c_void, size: usize, kind: u32) -> i32;
    pub fn VirtualProtect(at: *mut c_void, size: usize, access: u32, before: *mut u32) -> i32;
    pub fn VirtualQuery(at: *const c_void, into: *mut MemoryBasicInformation, size: usize)
        -> usize;
    pub fn QueryPerformanceCounter(ticks: *mut i64) -> i32;
    pub fn QueryPerformanceFrequency(ticks_a_second: *mut i64) -> i32;
    pub fn LoadLibraryW(name: *const u16) -> Module;
    pub fn GetCurrentThreadId() -> u32;
    pub fn GetModuleHandleExW(flags: u32, name: *const u16, module: *mut Module) -> i32;
    pub fn GetModuleFileNameW(module: Module, name: *mut u16, size: u32) -> u32;
    pub fn GetCurrentProcess() -> Handle;
    pub fn GetCurrentThread() -> Handle;
    pub fn GetProcessAffinityMask(process: Handle, mine: *mut usize, system: *mut usize) -> i32;
    pub fn SetThreadAffinityMask(thread: Handle, mask: usize) -> usize;
    pub fn GlobalMemoryStatusEx(status: *mut MemoryStatus) -> i32;
    pub fn GetFileInformationByHandle(file: Handle, information: *mut FileInformation) -> i32;
    pub fn GetFileInformationByHandleEx(
        file: Handle,
        class: u32,
        to: *mut c_void,
        size: u32,
    ) -> i32;
}

#[link(name = "ntdll")]
extern "system" {
    /// Returns true if the process is ending: its other threads are gone.
    pub fn RtlDllShutdownInProgress() -> u8;
}

#[link(name = "advapi32")]
extern "system" {
    pub fn RegCreateKeyExW(
        key: Handle,
        name: *const u16,
        reserved: u32,
        class: *const u16,
        options: u32,
        access: u32,
        security: *const c_void,
        made: *mut Handle,
        disposition: *mut u32,
    ) -> i32;
    pub fn RegOpenKeyExW(
        key: Handle,
        name: *const u16,
        options: u32,
        access: u32,
        opened: *mut Handle,
    ) -> i32;
    pub fn RegSetValueExW(
        key: Handle,
        name: *const u16,
        reserved: u32,
        kind: u32,
        data: *const u8,
        size: u32,
    ) -> i32;
    pub fn RegDeleteValueW(key: Handle, name: *const u16) -> i32;
    pub fn RegEnumValueW(
        key: Handle,
        index: u32,
        name: *mut u16,
        name_size: *mut u32,
        reserved: *mut u32,
        kind: *mut u32,
        data: *mut u8,
        size: *mut u32,
    ) -> i32;
    pub fn RegCloseKey(key: Handle) -> i32;
}

/// Returns HKEY_LOCAL_MACHINE.
pub fn local_machine() -> Handle {
    std::ptr::without_provenance_mut(0x8000_0002u32 as i32 as isize as usize)
}

/// Returns HKEY_CURRENT_USER.
pub fn current_user() -> Handle {
    std::ptr::without_provenance_mut(0x8000_0001u32 as i32 as isize as usize)
}

/// Encodes text as UTF-16 with its terminating zero.
pub fn wide(text: &std::ffi::OsStr) -> Vec<u16> {
    use std::os::windows::ffi::OsStrExt;
    text.encode_wide().chain([0]).collect()
}
