//! Queries of the system about this process: its memory, its children.

#[cfg(unix)]
pub use unix::{children, replace_output, resident};
#[cfg(windows)]
pub use windows::{children, replace_output, resident};

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    /// Replaces standard output. Returns the former one.
    pub fn replace_output(with: impl Into<OwnedFd>) -> File {
        // SAFETY: file descriptors of this process, the new one owned once.
        unsafe {
            let kept = File::from_raw_fd(libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3));
            assert_eq!(libc::dup2(with.into().as_raw_fd(), 1), 1, "standard output");
            kept
        }
    }

    /// Bytes of this process in memory but for what a file backs: the code of a driver's compiler comes in when it is first
    /// needed, which is late where the driver keeps shaders in files. (Of a system that does not tell them apart, all of it.)
    pub fn resident() -> i64 {
        let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let kilobytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_whitespace().next());
            number.and_then(|number| number.parse::<i64>().ok())
        };
        let parts = kilobytes("RssAnon:").zip(kilobytes("RssShmem:"));
        let all = parts.map(|(own, shared)| own + shared);
        all.or_else(|| kilobytes("VmRSS:"))
            .expect("a number of kilobytes")
            << 10
    }

    /// Children of this process that have not ended and whose programs' names begin so.
    pub fn children(program: &str) -> usize {
        let here = std::process::id().to_string();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat"));
        let is = |stat: &String| {
            let (name, rest) = stat.rsplit_once(") ").unwrap_or_default();
            let mut fields = rest.split(' ');
            let (state, parent) = (fields.next(), fields.next());
            let (_, name) = name.split_once('(').unwrap_or_default();
            name.starts_with(program) && state != Some("Z") && parent == Some(&here)
        };
        entries
            .filter_map(|entry| stat(entry).ok())
            .filter(is)
            .count()
    }
}

#[cfg(windows)]
mod windows {
    use std::ffi::{c_void, CStr};
    use std::fs::File;
    use std::os::windows::io::{FromRawHandle, IntoRawHandle, OwnedHandle, RawHandle};

    /// Replaces standard output. Returns the former one.
    pub fn replace_output(with: impl Into<OwnedHandle>) -> File {
        /// STD_OUTPUT_HANDLE
        const OUTPUT: u32 = -11i32 as u32;
        #[link(name = "kernel32")]
        extern "system" {
            fn GetStdHandle(which: u32) -> RawHandle;
            fn SetStdHandle(which: u32, handle: RawHandle) -> i32;
        }
        // SAFETY: the old handle is owned by nobody any more, the new one by the process from here on.
        unsafe {
            let kept = File::from_raw_handle(GetStdHandle(OUTPUT));
            let with = with.into().into_raw_handle();
            assert_ne!(SetStdHandle(OUTPUT, with), 0, "output");
            kept
        }
    }

    /// `PROCESS_MEMORY_COUNTERS`.
    #[repr(C)]
    #[derive(Default)]
    struct Counters {
        bytes: u32,
        page_faults: u32,
        peak: usize,
        working_set: usize,
        quotas_and_page_files: [usize; 6],
    }

    /// `PROCESSENTRY32`.
    #[repr(C)]
    struct ProcessEntry {
        bytes: u32,
        usage: u32,
        id: u32,
        heap: usize,
        module: u32,
        threads: u32,
        parent: u32,
        priority: i32,
        flags: u32,
        program: [std::ffi::c_char; 260],
    }

    /// TH32CS_SNAPPROCESS
    const PROCESSES: u32 = 2;

    #[link(name = "kernel32")]
    extern "system" {
        fn GetCurrentProcess() -> *mut c_void;
        fn K32GetProcessMemoryInfo(process: *mut c_void, into: *mut Counters, bytes: u32) -> i32;
        fn CreateToolhelp32Snapshot(of: u32, process: u32) -> *mut c_void;
        fn Process32First(snapshot: *mut c_void, into: *mut ProcessEntry) -> i32;
        fn Process32Next(snapshot: *mut c_void, into: *mut ProcessEntry) -> i32;
        fn CloseHandle(handle: *mut c_void) -> i32;
    }

    /// Bytes of this process in memory.
    pub fn resident() -> i64 {
        let mut counters = Counters::default();
        let bytes = size_of::<Counters>() as u32;
        // SAFETY: a place for the counters, with its size.
        let succeeded =
            unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &mut counters, bytes) };
        assert_ne!(succeeded, 0, "the memory of this process");
        counters.working_set as i64
    }

    /// Children of this process that have not ended and whose programs' names begin so.
    pub fn children(program: &str) -> usize {
        // SAFETY: the entry is one of zeros, which it may be, and says how large it is; its name ends with zero; the snapshot
        // is closed once.
        unsafe {
            let mut entry: ProcessEntry = std::mem::zeroed();
            entry.bytes = size_of::<ProcessEntry>() as u32;
            let snapshot = CreateToolhelp32Snapshot(PROCESSES, 0);
            let (mut more, mut count) = (Process32First(snapshot, &mut entry), 0);
            while more != 0 {
                let name = CStr::from_ptr(entry.program.as_ptr());
                let is = name.to_bytes().starts_with(program.as_bytes());
                count += usize::from(is && entry.parent == std::process::id());
                more = Process32Next(snapshot, &mut entry);
            }
            CloseHandle(snapshot);
            count
        }
    }
}
