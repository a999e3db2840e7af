//! A process of another program, on Windows, that ends with this one: its input and output are pipes, it has no window, and of what may be
//! inherited it gets the three pipes alone.
//!
//! Between its making and its first step a process stands still, and its maker lets it go. A maker that ends there leaves it behind for
//! ever, with what it has inherited. So it is made as part of a job, which the system ends when the last handle of that is closed: ours, by our end.
//! `std::process` cannot ask for that; a process that is added to the job when it runs may be too late.

use super::win32::{self, Handle};
use std::ffi::{c_void, OsStr};
use std::io::{Error, PipeReader, PipeWriter, Result};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

/// A child that runs, or has ended. Dropping it does not end it.
pub struct Child {
    process: OwnedHandle,
    /// The end of the pipe to its standard input.
    pub stdin: Option<PipeWriter>,
    /// The end of the pipe from its standard output.
    pub stdout: Option<PipeReader>,
    /// The end of the pipe from its standard error.
    pub stderr: Option<PipeReader>,
}

/// The job of all children; none where the system refuses. Never closed: the end of the process does.
static JOB: LazyLock<Option<OwnedHandle>> = LazyLock::new(|| {
    // SAFETY: a new job without a name; the handle is its only one, and given to nobody else.
    let job = unsafe { win32::CreateJobObjectW(null(), null()) };
    if job.is_null() {
        return None;
    }
    // SAFETY: as above.
    let job = unsafe { OwnedHandle::from_raw_handle(job) };
    let limits = win32::JobLimits {
        flags: win32::JOB_KILL_ON_CLOSE,
        ..Default::default()
    };
    let size = size_of_val(&limits) as u32;
    // SAFETY: our job, and the structure that goes with the class, with its size.
    let set = unsafe {
        win32::SetInformationJobObject(
            job.as_raw_handle(),
            win32::JOB_EXTENDED_LIMITS,
            (&raw const limits).cast(),
            size,
        )
    };
    (set != 0).then_some(job)
});

/// A list of what a new process is to have.
struct Attributes {
    memory: Vec<usize>,
}

impl Attributes {
    fn new(count: u32) -> Result<Self> {
        let mut size = 0;
        // SAFETY: a question for the size, which fails by its rules.
        unsafe { win32::InitializeProcThreadAttributeList(null_mut(), count, 0, &mut size) };
        let mut memory = vec![0usize; size.div_ceil(size_of::<usize>())];
        // SAFETY: memory of that size, aligned for pointers.
        let made = unsafe {
            win32::InitializeProcThreadAttributeList(
                memory.as_mut_ptr().cast(),
                count,
                0,
                &mut size,
            )
        };
        (made != 0)
            .then_some(Self { memory })
            .ok_or_else(Error::last_os_error)
    }

    /// Adds handles, which must not move.
    fn add(&mut self, attribute: usize, handles: &[Handle]) -> Result<()> {
        // SAFETY: a list that was made with room for this; the handles with their size in bytes, kept by the caller.
        let added = unsafe {
            win32::UpdateProcThreadAttribute(
                self.memory.as_mut_ptr().cast(),
                0,
                attribute,
                handles.as_ptr().cast(),
                size_of_val(handles),
                null_mut(),
                null_mut(),
            )
        };
        (added != 0).then_some(()).ok_or_else(Error::last_os_error)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: made once, and not used afterwards.
        unsafe { win32::DeleteProcThreadAttributeList(self.memory.as_mut_ptr().cast()) };
    }
}

/// Adds an argument as Windows programs, which split their command line themselves, parse it: in
/// quotes, with backslashes before quotes and before the backslashes in front of those.
fn add_quoted(line: &mut Vec<u16>, argument: &OsStr) {
    const QUOTE: u16 = b'"' as u16;
    const BACKSLASH: u16 = b'\\' as u16;
    line.push(QUOTE);
    let mut backslashes = 0;
    for unit in argument.encode_wide() {
        if unit == QUOTE {
            line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
        }
        backslashes = if unit == BACKSLASH {
            backslashes + 1
        } else {
            0
        };
        line.push(unit);
    }
    line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
    line.push(QUOTE);
}

/// Returns a command's program and arguments as one line that ends with zero.
fn command_line(command: &Command) -> Result<Vec<u16>> {
    let mut line = Vec::new();
    add_quoted(&mut line, command.get_program());
    for argument in command.get_args() {
        line.push(b' '.into());
        add_quoted(&mut line, argument);
    }
    if line.contains(&0) {
        return Err(Error::other("a zero in an argument"));
    }
    line.push(0);
    Ok(line)
}

impl Child {
    /// Starts a command, whose program is named by its path, with the environment and the directory of this process.
    pub fn spawn(command: &Command) -> Result<Self> {
        let (its_stdin, stdin) = std::io::pipe()?;
        let (stdout, its_stdout) = std::io::pipe()?;
        let (stderr, its_stderr) = std::io::pipe()?;
        let pipes = [
            its_stdin.as_raw_handle(),
            its_stdout.as_raw_handle(),
            its_stderr.as_raw_handle(),
        ];
        for pipe in pipes {
            // SAFETY: our own handle.
            let set = unsafe { win32::SetHandleInformation(pipe, win32::INHERIT, win32::INHERIT) };
            if set == 0 {
                return Err(Error::last_os_error());
            }
        }
        let job = JOB.as_ref().map(|job| job.as_raw_handle());
        // In a job of another that allows none within it, the child is not in ours.
        let made = Self::start(command, &pipes, job);
        let process = match (made, job) {
            (Err(_), Some(_)) => Self::start(command, &pipes, None)?,
            (made, _) => made?,
        };
        Ok(Self {
            process,
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
        })
    }

    fn start(command: &Command, pipes: &[Handle; 3], job: Option<Handle>) -> Result<OwnedHandle> {
        let program = win32::wide(command.get_program());
        let mut line = command_line(command)?;
        let job: Vec<Handle> = job.into_iter().collect();
        let mut attributes = Attributes::new(2)?;
        attributes.add(win32::ATTRIBUTE_HANDLES, pipes)?;
        if !job.is_empty() {
            attributes.add(win32::ATTRIBUTE_JOBS, &job)?;
        }
        let mut startup = win32::Startup {
            size: size_of::<win32::Startup>() as u32,
            flags: win32::STARTUP_HAS_HANDLES,
            streams: *pipes,
            attributes: attributes.memory.as_mut_ptr().cast::<c_void>(),
            ..Default::default()
        };
        let mut made = win32::ProcessInformation::default();
        // SAFETY: texts that end with zero, the line writable; the structure with its list, whose handles are alive; a place
        // for what was made.
        let done = unsafe {
            win32::CreateProcessW(
                program.as_ptr(),
                line.as_mut_ptr(),
                null(),
                null(),
                1,
                win32::CREATE_NO_WINDOW | win32::CREATE_EXTENDED,
                null(),
                null(),
                &mut startup,
                &mut made,
            )
        };
        if done == 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: two new handles, which nobody else has.
        unsafe {
            drop(OwnedHandle::from_raw_handle(made.thread));
            Ok(OwnedHandle::from_raw_handle(made.process))
        }
    }

    /// Ends the process, unless it has ended already.
    pub fn kill(&self) {
        // SAFETY: a process of ours.
        unsafe { win32::TerminateProcess(self.process.as_raw_handle(), 1) };
    }

    /// Waits until the process has ended. Returns its status: 0 is success; a process that an
    /// exception has ended has the exception's number.
    pub fn wait(&self) -> Result<u32> {
        let process = self.process.as_raw_handle();
        let mut status = 0;
        // SAFETY: a process of ours, and a place for its status.
        let found = unsafe {
            win32::WaitForSingleObject(process, win32::INFINITE);
            win32::GetExitCodeProcess(process, &mut status)
        };
        (found != 0)
            .then_some(status)
            .ok_or_else(Error::last_os_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_as_they_are() {
        let mut command = Command::new(r"C:\Program Files\a.exe");
        command.args([r#"-D=a "b" c\\"#, "", r#"\""#, "plain"]);
        let line = String::from_utf16(&command_line(&command).unwrap()).unwrap();
        let expected = concat!(
            r#""C:\Program Files\a.exe" "-D=a \"b\" c\\\\" "" "\\\"" "plain""#,
            "\0"
        );
        assert_eq!(line, expected);
        command.arg("a\0b");
        assert!(command_line(&command).is_err());
    }
}
