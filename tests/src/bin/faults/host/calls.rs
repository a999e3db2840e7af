//! The table: which functions of the C library can fail, how they say so, and with which errors of POSIX and Linux; and the
//! functions that stand before them in the library's calls.
//!
//! Not here: the heap (`malloc` and its kin), but for memory of buffers and work-groups, since Rust ends a process that has none
//! left; calls whose only failure is a wrong argument, and those that always succeed on Linux (`pthread_attr_init`); `close`, whose
//! failure nobody can do anything about. Functions with a name that Rust's library looks up itself and does without are here
//! as well.

use super::state;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How a function says that it has failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// -1, and `errno` has the error.
    Minus,
    /// Returns the error.
    Code,
    /// Null or zero, and `errno` has the error.
    Zero,
}

/// A pseudo error: the call does half of what it was to do, and says so.
pub const HALF: i32 = 1000;

/// A situation in which several calls fail for one reason, for as long as it holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// Its name.
    pub name: &'static str,
    /// The error of the calls.
    pub error: i32,
    /// The calls.
    pub calls: &'static [&'static str],
}

/// States that a machine can be in for a while.
pub const SITUATIONS: [Situation; 7] = [
    Situation {
        name: "no-descriptors",
        error: libc::EMFILE,
        calls: &[
            "open64",
            "openat64",
            "opendir",
            "memfd_create",
            "pipe2",
            "socketpair",
            "fcntl",
            "posix_spawnp",
        ],
    },
    Situation {
        name: "disk-full",
        error: libc::ENOSPC,
        calls: &["write", "writev", "mkdir", "rename", "futimens"],
    },
    Situation {
        name: "read-only",
        error: libc::EROFS,
        calls: &["mkdir", "rename", "unlink", "unlinkat", "futimens"],
    },
    Situation {
        name: "unreadable",
        error: libc::EIO,
        calls: &[
            "read",
            "open64",
            "openat64",
            "opendir",
            "readdir64",
            "stat64",
            "fstat64",
            "statx",
        ],
    },
    Situation {
        name: "no-threads",
        error: libc::EAGAIN,
        calls: &["pthread_create"],
    },
    Situation {
        name: "no-processes",
        error: libc::EAGAIN,
        calls: &["posix_spawnp", "pidfd_spawnp", "fork", "pthread_create"],
    },
    Situation {
        name: "no-memory",
        error: libc::ENOMEM,
        calls: &[
            "mmap",
            "mmap64",
            "mprotect",
            "memfd_create",
            "posix_spawnp",
            "pidfd_spawnp",
            "pthread_create",
            "opendir",
            "open64",
            "socketpair",
            "dlopen",
        ],
    },
];

/// A function as all of them are called: up to six words in, one out.
type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;

macro_rules! calls {
    ($($at:literal $name:literal $says:ident $($error:ident)*;)*) => {
        /// The functions.
        pub const CALLS: &[(&str, Says, &[i32])] =
            &[$(($name, Says::$says, &[$(calls!(error $error)),*])),*];
        /// The functions that replace them.
        const REPLACEMENTS: &[Function] = &[$(replacement::<$at>),*];
        /// The functions themselves.
        static REAL: [AtomicUsize; CALLS.len()] = [const { AtomicUsize::new(0) }; CALLS.len()];
    };
    (error HALF) => { HALF };
    (error $error:ident) => { libc::$error };
}

calls! {
    0 "pthread_create" Code EAGAIN;
    1 "mmap" Minus ENOMEM EEXIST;
    2 "mmap64" Minus ENOMEM EACCES EEXIST;
    3 "mprotect" Minus ENOMEM EACCES;
    4 "madvise" Minus EAGAIN EINVAL;
    5 "memfd_create" Minus EMFILE ENOMEM ENOSYS;
    6 "open64" Minus EMFILE ENOENT EACCES EIO EINTR;
    7 "openat64" Minus EMFILE EACCES EIO;
    8 "opendir" Zero EMFILE EACCES ENOMEM;
    9 "readdir64" Zero EIO;
    10 "read" Minus EIO EINTR HALF;
    11 "write" Minus ENOSPC EIO EINTR HALF;
    12 "writev" Minus ENOSPC EINTR;
    13 "rename" Minus ENOSPC EROFS EACCES;
    14 "unlink" Minus EROFS EACCES;
    15 "unlinkat" Minus EROFS EACCES;
    16 "mkdir" Minus ENOSPC EROFS EACCES;
    17 "pipe2" Minus EMFILE ENFILE;
    18 "socketpair" Minus EMFILE ENOMEM;
    19 "posix_spawnp" Code EAGAIN ENOMEM ENOENT EACCES;
    20 "pidfd_spawnp" Code EAGAIN ENOMEM;
    21 "fork" Minus EAGAIN ENOMEM;
    22 "waitpid" Minus EINTR ECHILD;
    23 "waitid" Minus EINTR ECHILD;
    24 "poll" Minus EINTR ENOMEM;
    25 "sendmsg" Minus EAGAIN ENOBUFS EPIPE EINTR;
    26 "recvmsg" Minus EINTR ENOMEM;
    27 "send" Minus EAGAIN EPIPE EINTR HALF;
    28 "recv" Minus EIO EINTR;
    29 "stat64" Minus EACCES ENOENT EIO;
    30 "fstat64" Minus EIO;
    31 "lstat64" Minus EACCES ENOENT EIO;
    32 "fstatat64" Minus EACCES ENOENT EIO;
    33 "statx" Minus EACCES ENOENT EIO;
    34 "realpath" Zero EACCES ENOENT ENOMEM;
    35 "readlink" Minus EACCES;
    36 "getcwd" Zero ENOENT;
    37 "fcntl" Minus EMFILE;
    38 "sched_getaffinity" Minus EINVAL;
    39 "getrandom" Minus EINTR;
    40 "dlopen" Zero ENOMEM;
    41 "fwrite" Zero EPIPE;
    42 "fflush" Minus EPIPE;
    43 "futimens" Minus EROFS EACCES;
    44 "fdopendir" Zero ENOMEM;
    45 "posix_spawn_file_actions_adddup2" Code ENOMEM;
    46 "sched_setaffinity" Minus EINVAL EPERM;
    47 "posix_memalign" Code ENOMEM;
}

unsafe extern "C" fn replacement<const AT: usize>(
    a: usize,
    b: usize,
    mut c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> usize {
    let (name, says, _) = CALLS[AT];
    let counts = match name {
        // Of what it does, one thing can fail: it makes descriptors.
        "fcntl" => [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&(b as i32)),
        // Memory of buffers and work-groups is aligned to more than Rust's own, whose lack ends the process.
        "posix_memalign" => b >= 256,
        _ => true,
    };
    // Files in memory, pipes and sockets know nothing of disks.
    let on_disk = || !matches!(name, "write" | "writev") || is_on_disk(a);
    match counts.then(|| state::call(AT, on_disk)).flatten() {
        None => {}
        Some(HALF) => c = if c > 1 { c / 2 } else { c },
        Some(error) => {
            if says != Says::Code {
                // SAFETY: this thread's.
                unsafe { *libc::__errno_location() = error };
            }
            return match says {
                Says::Minus => usize::MAX,
                Says::Code => error as usize,
                Says::Zero => 0,
            };
        }
    }
    // SAFETY: the function that the library would have called, with its arguments. None takes more words, all are passed in
    // registers, and what is in one that a function does not know is nothing to it.
    unsafe {
        let real = std::mem::transmute::<usize, Function>(REAL[AT].load(Relaxed));
        real(a, b, c, d, e, f)
    }
}

/// The descriptor is of a file with a name.
fn is_on_disk(fd: usize) -> bool {
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    path.is_ok_and(|path| path.is_absolute() && !path.starts_with("/dev") && path.exists())
}

/// The function that is to stand before that one. None: it is not in the table.
pub fn instead_of(name: &str, real: usize) -> Option<usize> {
    let at = CALLS.iter().position(|(known, ..)| *known == name)?;
    // One that Rust's library would like to have, and the system has not.
    if real == 0 {
        return None;
    }
    REAL[at].store(real, Relaxed);
    Some(REPLACEMENTS[at] as usize)
}
