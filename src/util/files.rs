//! Queries about files that need not read them, and writes that a limit on file sizes does not end.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Runs `work`, which writes to files of Pumice, without the signal of a limit on the size of files
/// (RLIMIT_FSIZE), which ends most applications. The write that exceeds the limit fails.
pub fn limited<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_os = "linux")]
    let _blocked = SizeSignal::block();
    work()
}

/// SIGXFSZ is blocked in this thread, which is the one that it is sent to.
#[cfg(target_os = "linux")]
struct SizeSignal {
    signal: libc::sigset_t,
    /// The signals that were blocked before, or `None` if this one was, too, so that nothing has to
    /// be restored.
    before: Option<libc::sigset_t>,
}

#[cfg(target_os = "linux")]
impl SizeSignal {
    fn block() -> Self {
        // SAFETY: sets of signals are plain words, which the calls fill.
        unsafe {
            let mut signal: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut signal);
            libc::sigaddset(&mut signal, libc::SIGXFSZ);
            let done = libc::pthread_sigmask(libc::SIG_BLOCK, &signal, &mut before) == 0;
            let mine = done && libc::sigismember(&before, libc::SIGXFSZ) == 0;
            Self {
                signal,
                before: mine.then_some(before),
            }
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for SizeSignal {
    fn drop(&mut self) {
        let Some(before) = &self.before else { return };
        let now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: as above. A signal that came meanwhile is that of a write here: it is taken, without waiting for one.
        unsafe {
            libc::sigtimedwait(&self.signal, std::ptr::null_mut(), &now);
            libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut());
        }
    }
}

/// Decodes a path that a compiler wrote, or that was saved by `OsStr::as_encoded_bytes`. Returns
/// `None` if it is no path on this system.
pub fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
    }
    #[cfg(not(unix))]
    {
        // What has no name in Unicode is not kept, which is always right.
        Some(PathBuf::from(std::str::from_utf8(bytes).ok()?))
    }
}

/// Returns true if a program is one that the dynamic linker starts, so that libraries can be
/// preloaded into it. A file that is no ELF file of 64 bits and this byte order (a script, say)
/// counts as one.
#[cfg(unix)]
pub fn is_dynamic(program: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::FileExt;
    /// The program header that names the dynamic linker.
    const PT_INTERP: u32 = 3;
    let file = std::fs::File::open(program)?;
    let mut header = [0; 64];
    if file.read_exact_at(&mut header, 0).is_err() || !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(true);
    }
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let (size, count) = (u64::from(half(54)), u64::from(half(56)));
    let table = header[32..40].iter().rev();
    let table = table.fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    for entry in 0..count {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, table.saturating_add(entry * size))?;
        if u32::from_le_bytes(kind) == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the path, size and time of change of the file at a path: enough to notice another one
/// without reading it. A path without a file (a name that is looked for elsewhere) has a stamp,
/// too.
///
/// # Errors
///
/// Returns an error if the state of the file cannot be read.
pub fn stamp(path: &Path) -> std::io::Result<String> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let found = std::fs::metadata(&real).map(|m| {
        let time = m
            .modified()
            .ok()
            .and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        (m.len(), time.map_or(0, |t| t.as_nanos()))
    });
    let (size, time) = match found {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => (0, 0),
        Err(error) => return Err(error),
    };
    Ok(format!("{} ({size} bytes, {time})", real.display()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn static_programs_are_seen() {
        let dir = std::env::temp_dir().join(format!("pumice-dynamic-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let program = std::env::current_exe().unwrap();
        assert!(is_dynamic(&program).unwrap());
        assert!(is_dynamic(&dir).is_err() || is_dynamic(&dir).unwrap());
        assert!(is_dynamic(&dir.join("none")).is_err());
        let other = dir.join("other");
        std::fs::write(&other, "#!/bin/sh\n").unwrap();
        assert!(is_dynamic(&other).unwrap());
        // An ELF file whose only program header is PT_LOAD.
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[32], bytes[54], bytes[56], bytes[64]) = (64, 56, 1, 1);
        std::fs::write(&other, &bytes).unwrap();
        assert!(!is_dynamic(&other).unwrap());
        bytes[64] = 3;
        std::fs::write(&other, &bytes).unwrap();
        assert!(is_dynamic(&other).unwrap());
        // One whose headers are missing.
        bytes.truncate(64);
        std::fs::write(&other, &bytes).unwrap();
        assert!(is_dynamic(&other).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
