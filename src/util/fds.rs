//! File descriptors: files in memory, descriptors sent through sockets, waiting for several. Unix alone has them.

use super::files;
use std::fs::File;
use std::io::{Error, ErrorKind, Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// The result of calls of the system.
type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns a file without a name that holds `bytes`, to be read from its beginning. Unlike a pipe
/// it needs no thread to write, and raises no signal if its reader dies.
pub fn memory_file(name: &std::ffi::CStr, bytes: &[u8]) -> Result<File> {
    // SAFETY: the name is a string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: new, and nobody else's.
    let mut file = unsafe { File::from_raw_fd(fd) };
    files::limited(|| file.write_all(bytes))?;
    file.rewind()?;
    Ok(file)
}

/// Returns the path by which children of this process can open a file that this process has open.
/// Returns `None` if they may not access the open files of this process.
pub fn path_for_children(file: &File) -> Option<PathBuf> {
    // SAFETY: it only tells.
    if unsafe { libc::prctl(libc::PR_GET_DUMPABLE) } != 1 {
        return None;
    }
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Some(PathBuf::from(path)).filter(|path| path.exists())
}

/// Creates two connected sockets that preserve message boundaries.
pub fn socket_pair() -> Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: room for two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: new, and nobody else's.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Sends a message with four descriptors, or fails: it neither waits nor raises a signal.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: [BorrowedFd<'_>; 4]) -> Result<()> {
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        fds: [libc::c_int; 4],
    }
    let mut control = Control {
        header: libc::cmsghdr {
            cmsg_len: size_of::<Control>() as _,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        fds: fds.map(|fd| fd.as_raw_fd()),
    };
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: a structure of numbers and pointers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: everything the message points to is there until the call returns, which only reads it.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) };
    match usize::try_from(sent) {
        Ok(size) if size == bytes.len() => Ok(()),
        Ok(_) => Err(ErrorKind::WriteZero.into()),
        Err(_) => Err(Error::last_os_error()),
    }
}

/// Sends as many bytes as there is room for through a stream, or fails: it neither waits nor raises
/// a signal.
pub fn send_some(socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: so many bytes are there, and only read.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            flags,
        )
    };
    usize::try_from(sent).map_err(|_| Error::last_os_error())
}

/// Waits until one of the descriptors can be read or its other end is closed. Returns which can;
/// none of them once the time is over.
pub fn readable<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
    limit: Duration,
) -> Result<[bool; N]> {
    let mut wanted = fds.map(|fd| libc::pollfd {
        // Negative ones are passed over.
        fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    // Rounded up, so that a rest of less than a millisecond does not spin.
    let limit = limit.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
    // SAFETY: so many structures.
    let count = unsafe { libc::poll(wanted.as_mut_ptr(), N as libc::nfds_t, limit) };
    if count < 0 {
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
        return Ok([false; N]);
    }
    Ok(wanted.map(|fd| fd.revents != 0))
}

/// Offers a copy of a file descriptor to `take`, which owns the copy where it succeeds; the descriptor itself is closed then.
/// Where `take` fails the descriptor stays open, and the copy is closed unless `take` has done so: some do.
pub fn offer<T, E>(fd: i32, take: impl FnOnce(i32) -> Result<T, E>) -> Result<Result<T, E>> {
    let copy = copy(fd)?;
    let taken = take(copy);
    let gone = match &taken {
        Ok(_) => fd,
        Err(_) if identity(copy).is_some() && identity(copy) == identity(fd) => copy,
        Err(_) => return Ok(taken),
    };
    close(gone);
    Ok(taken)
}

/// Returns a copy of a file descriptor, which children do not get.
pub fn copy(fd: i32) -> Result<i32> {
    // SAFETY: what is no descriptor is refused.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) } {
        copy if copy < 0 => Err(Error::last_os_error()),
        copy => Ok(copy),
    }
}

/// Closes a file descriptor that is the caller's.
pub fn close(fd: i32) {
    // SAFETY: as the caller says, nobody else has it.
    unsafe { libc::close(fd) };
}

/// Returns the status of the file that a descriptor names. An error: it is not open.
fn status(fd: i32) -> Result<libc::stat> {
    // SAFETY: a plain structure, which the call fills.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: room for the status; what is no descriptor is refused.
    match unsafe { libc::fstat(fd, &mut status) } {
        code if code < 0 => Err(Error::last_os_error()),
        _ => Ok(status),
    }
}

/// Returns the file that a descriptor names, if it is open.
fn identity(fd: i32) -> Option<(libc::dev_t, libc::ino_t)> {
    let status = status(fd).ok()?;
    Some((status.st_dev, status.st_ino))
}

/// Returns the length in bytes of what a file descriptor names, or None where it has none. An error: it is not open, or names
/// what is no memory, and what a driver might wait for.
pub fn length(fd: i32) -> Result<Option<u64>> {
    let status = status(fd)?;
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG => return Ok(u64::try_from(status.st_size).ok()),
        libc::S_IFIFO | libc::S_IFSOCK | libc::S_IFDIR | libc::S_IFBLK => {
            return Err(Error::from(ErrorKind::InvalidInput));
        }
        _ => {}
    }
    // DMA buffers know these two places alone.
    // SAFETY: the descriptor is open.
    let end = unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
    // SAFETY: as above.
    unsafe { libc::lseek(fd, 0, libc::SEEK_SET) };
    Ok(u64::try_from(end).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn files_in_memory() {
        let mut text = String::new();
        let mut file = memory_file(c"test", b"some text").unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "some text");
    }

    #[test]
    fn messages_and_ends() {
        let (one, other) = socket_pair().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let limit = Duration::from_millis(1);
        let fds = || [Some(reader.as_fd()), Some(other.as_fd()), None];
        assert_eq!(readable(fds(), limit).unwrap(), [false; 3]);
        send(one.as_fd(), b"x", [writer.as_fd(); 4]).unwrap();
        assert_eq!(readable(fds(), limit).unwrap(), [false, true, false]);
        drop(writer);
        // The message holds the pipe's end.
        assert_eq!(readable(fds(), limit).unwrap(), [false, true, false]);
        drop(other);
        assert_eq!(readable([Some(reader.as_fd())], limit).unwrap(), [true]);
        assert!(send(one.as_fd(), b"x", [one.as_fd(); 4]).is_err());
    }
}
