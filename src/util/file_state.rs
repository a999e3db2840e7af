//! Which file a path leads to and when it was last changed: enough to know whether what was once read of it still holds.

use std::fs::{File, Metadata};
use std::io::Result;
use std::path::Path;
use std::time::SystemTime;

pub use system::{change_time, identity, open, rights};

/// A file as it is: which one, its size, when it was last changed, and as whom it was opened.
pub type Identity = (u64, u64, u64, SystemTime, (u32, u32));

#[cfg(unix)]
mod system {
    use super::*;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::time::{Duration, UNIX_EPOCH};

    /// Returns the user and the group that files are opened as.
    pub fn rights() -> (u32, u32) {
        // SAFETY: they only tell.
        unsafe { (libc::geteuid(), libc::getegid()) }
    }

    /// Returns the time of the last change of a file's contents or name.
    pub fn change_time(file: &Metadata) -> SystemTime {
        let seconds = u64::try_from(file.ctime()).unwrap_or(0);
        let nanoseconds = u32::try_from(file.ctime_nsec()).unwrap_or(0);
        UNIX_EPOCH + Duration::new(seconds, nanoseconds)
    }

    /// Returns the identity of the file at a path.
    pub fn identity(_path: &Path, file: &Metadata) -> Option<Identity> {
        Some((
            file.dev(),
            file.ino(),
            file.len(),
            change_time(file),
            rights(),
        ))
    }

    /// Opens a file for reading. A pipe does not wait for a writer.
    pub fn open(path: &Path) -> Result<File> {
        File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
    }
}

#[cfg(windows)]
mod system {
    use super::*;
    use crate::util::win32;
    use std::os::windows::io::AsRawHandle;

    /// Returns zeros: access depends on the process's token, which does not change while the
    /// process runs.
    pub fn rights() -> (u32, u32) {
        (0, 0)
    }

    /// Returns the time of the last change of a file's contents, or of its creation here if that
    /// was later (a copy has the times of the original).
    pub fn change_time(file: &Metadata) -> SystemTime {
        let times = [file.modified().ok(), file.created().ok()];
        times
            .into_iter()
            .flatten()
            .max()
            .unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Returns the identity of the file at a path, which is opened for that.
    pub fn identity(path: &Path, file: &Metadata) -> Option<Identity> {
        let opened = open(path).ok()?;
        let mut info = win32::FileInformation::default();
        // SAFETY: an open file, and a place for the answer.
        let known =
            unsafe { win32::GetFileInformationByHandle(opened.as_raw_handle().cast(), &mut info) };
        let index = u64::from(info.index[0]) << 32 | u64::from(info.index[1]);
        let volume = u64::from(info.volume);
        (known != 0).then(|| (volume, index, file.len(), change_time(file), rights()))
    }

    /// Opens a file for reading.
    pub fn open(path: &Path) -> Result<File> {
        File::open(path)
    }
}
