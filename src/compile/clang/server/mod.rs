//! A compiler process that is loaded once and forked for each job.
//!
//! Of the 25 ms of a small compilation 20 pass before clang reads its input: the kernel maps its libraries, the dynamic
//! linker relocates them. So from the second compilation of a process on, clang runs as a server: a library that is
//! preloaded into it (`preload.rs`) takes the place of its `main`, and forks it for each job. It is the same program on the
//! same arguments; whenever anything about it is not as it should be, the job is left to a process of its own (`process.rs`).
//!
//! Protocol: a job is one message of a socket, the arguments with a zero after each, and four descriptors: input, output,
//! diagnostics, and one end of a socket through which the job says that it has begun (255) and how it ended (0 or 1).
//! When the client closes its end, the job is ended by a signal.
//!
//! Nothing stays behind. The server ends when the application does, or 15 s after the last job; a job ends with its client's
//! socket; neither depends on the application's handlers at exit. The server is no child of the application, which could
//! otherwise wait for it in vain, and has none of its files open. A forked child of the application starts a server of its
//! own, and so does an application that has changed its directory or its rights.
//!
//! A job with one word, `-pumice-worker`, has the socket of a worker for its descriptors (`workers.rs`).
//!
//! The library is preloaded into compilers that run alone, too, where it does no more than to refuse files that they would wait
//! for: a source may include a FIFO.

mod workers;

pub use workers::work;

use super::printed::Printed;
use super::process::{Finished, TOO_MUCH};
use crate::compile::fixups::crash_reports;
use crate::util::{config, fds, file_state, files, thread};
use parking_lot::Mutex;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The library that is preloaded, empty on systems without one.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));
/// The name of the library in lists of open files.
const LIBRARY_NAME: &CStr = c"pumice-compile-server";
/// The time within which a job must begin. The first waits until the server is loaded.
const START_LIMIT: Duration = Duration::from_secs(10);
/// The time to wait for the list of servers, which a fork may have left locked.
const LOCK_LIMIT: Duration = Duration::from_millis(500);
/// The most bytes of a message.
const MOST_BYTES: usize = 60 << 10;
const MOST_ARGUMENTS: usize = 2000;
/// The most servers that a process starts: where nobody reaps orphans, each leaves an entry in the
/// process table.
const MOST_STARTS: u32 = 64;
/// The first status of a job.
const BEGUN: u8 = 0xff;

/// The servers of this process: one, unless the compiler changes.
static SERVERS: Mutex<Servers> = Mutex::new(Servers {
    servers: Vec::new(),
    starts: 0,
    broken: false,
});

struct Servers {
    servers: Vec<Server>,
    starts: u32,
    /// Set once a server has failed: there will be no other.
    broken: bool,
}

struct Server {
    program: PathBuf,
    /// The process that started it.
    owner: u32,
    /// The place of the process at that time.
    place: ProcessState,
    /// The socket for jobs, or `None` after a first job without a server.
    socket: Option<Arc<OwnedFd>>,
}

/// The end of a job.
#[derive(Debug)]
struct JobEnd {
    stdout: Printed,
    stderr: Printed,
    /// Its status, or `None` if it did not report one: it crashed, or was stopped.
    status: Option<u8>,
    timed_out: bool,
}

/// Runs `command` on `input` in a server. Returns `None` if that is impossible.
pub fn run(command: &Command, input: &[u8], limit: Duration) -> Option<Finished> {
    if !is_usable() || !is_for_servers(command) {
        return None;
    }
    let program = Path::new(command.get_program());
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let message = message(words)?;
    let mut outcome = None;
    // A server that has had nothing to do ends: then there is a second one.
    for _ in 0..2 {
        let socket = server(program)?;
        match job(&socket, &message, input, limit) {
            Ok(done) => {
                outcome = Some(done);
                break;
            }
            Err(JobError::Gone) => forget(&socket),
            Err(JobError::Broken) => break,
        }
    }
    let Some(outcome) = outcome else {
        break_off();
        return None;
    };
    let mut diagnostics = outcome.stderr.into_text();
    if outcome.stdout.is_too_much() {
        diagnostics += TOO_MUCH;
    } else if outcome.timed_out {
        diagnostics += &super::process::stopped(limit);
    } else if outcome.status.is_none() && !crash_reports::split(&diagnostics).1 {
        // In a process of its own it can be seen how it ends.
        crate::log!(Info, "{} ended without a status", program.display());
        return None;
    }
    Some(Finished {
        success: outcome.status == Some(0) && !outcome.stdout.is_too_much(),
        stdout: outcome.stdout.into_bytes(),
        diagnostics,
        killed: false,
    })
}

/// Returns true if compile servers may be used.
fn is_usable() -> bool {
    config::get().clang_server && !LIBRARY.is_empty() && std::process::id() != 1
}

/// The directory, the root and the rights of a process, which decide what file names refer to.
type ProcessState = [u64; 6];

/// Returns the place of this process. A server has that of its start.
fn place() -> Option<ProcessState> {
    use std::os::unix::fs::MetadataExt;
    let (here, root) = (std::fs::metadata(".").ok()?, std::fs::metadata("/").ok()?);
    let (user, group) = file_state::rights();
    Some([
        here.dev(),
        here.ino(),
        root.dev(),
        root.ino(),
        user.into(),
        group.into(),
    ])
}

/// Returns true if a job needs only its arguments and its input.
fn is_for_servers(command: &Command) -> bool {
    command.get_current_dir().is_none() && command.get_envs().next().is_none()
}

/// Encodes the arguments of a job. Returns `None` if they are too long.
fn message<'a>(words: impl Iterator<Item = &'a OsStr>) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut count = 0;
    for word in words {
        text.extend(word.as_bytes());
        text.push(0);
        count += 1;
    }
    let fits = text.len() <= MOST_BYTES && count <= MOST_ARGUMENTS;
    fits.then_some(text)
}

/// Returns the socket of the program's server, or `None` for the first job or if there can be none.
fn server(program: &Path) -> Option<Arc<OwnedFd>> {
    let mut state = SERVERS.try_lock_for(LOCK_LIMIT)?;
    let owner = std::process::id();
    let place = place()?;
    state
        .servers
        .retain(|server| server.owner == owner && server.place == place);
    if state.broken {
        return None;
    }
    let Some(at) = state.servers.iter().position(|s| s.program == program) else {
        state.servers.push(Server {
            program: program.to_owned(),
            owner,
            place,
            socket: None,
        });
        return None;
    };
    if let Some(socket) = &state.servers.get(at)?.socket {
        return Some(socket.clone());
    }
    if state.starts >= MOST_STARTS {
        return None;
    }
    state.starts += 1;
    match start(program) {
        Ok(socket) => {
            let socket = Arc::new(socket);
            state.servers.get_mut(at)?.socket = Some(socket.clone());
            Some(socket)
        }
        Err(error) => {
            crate::log!(
                Info,
                "cannot run {} as a server: {error}",
                program.display()
            );
            state.broken = true;
            None
        }
    }
}

/// Closes the servers: they end when the jobs that are being sent have ended.
pub fn unload() {
    workers::unload();
    if let Some(mut state) = SERVERS.try_lock_for(LOCK_LIMIT) {
        state.servers.clear();
    }
}

/// Removes a server that has ended.
fn forget(socket: &Arc<OwnedFd>) {
    for server in &mut SERVERS.lock().servers {
        if server
            .socket
            .as_ref()
            .is_some_and(|s| Arc::ptr_eq(s, socket))
        {
            server.socket = None;
        }
    }
}

/// Disables servers for this process.
fn break_off() {
    crate::log!(Info, "clang does not run as a server");
    let mut state = SERVERS.lock();
    state.broken = true;
    state.servers.clear();
}

/// Starts a server. Its first job shows whether it works.
fn start(program: &Path) -> std::io::Result<OwnedFd> {
    // Nothing can be preloaded into it, and nothing has to be: it needs no linking when it starts.
    if !files::is_dynamic(program)? {
        return Err(std::io::Error::other("it is linked statically"));
    }
    let (ours, theirs) = fds::socket_pair()?;
    let library = fds::memory_file(LIBRARY_NAME, LIBRARY)?;
    let mut process = Command::new(program)
        .env("LD_PRELOAD", preload("/proc/self/fd/0".as_ref()))
        // Once, not in each job.
        .env("LD_BIND_NOW", "1")
        .env("PUMICE_SERVER", program.canonicalize()?)
        .stdin(library)
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()?;
    // It forks the server and ends, at once when it is loaded; nobody has to wait for that but a thread.
    thread::spawn("pumice-server", move || drop(process.wait()))?;
    Ok(ours)
}

/// Returns the value of LD_PRELOAD with this library added.
fn preload(library: &Path) -> OsString {
    // After those that the application has: some insist on being first.
    let mut all = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    all
}

/// Makes a program that runs alone refuse files that it would have to wait for. The returned file
/// must outlive the program.
pub fn guard(command: &mut Command) -> Option<File> {
    if !config::get().clang_server || LIBRARY.is_empty() {
        return None;
    }
    let program = Path::new(command.get_program());
    // A name that PATH resolves is that of a clang, which needs no variable.
    let program = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let library = fds::memory_file(LIBRARY_NAME, LIBRARY).ok()?;
    let path = fds::path_for_children(&library)?;
    command
        .env("LD_PRELOAD", preload(&path))
        .env("PUMICE_GUARDED", program);
    Some(library)
}

/// Removes the messages of the dynamic linker that it cannot load the library.
pub fn without_complaints(diagnostics: String) -> String {
    let ours = |line: &str| line.starts_with("ERROR: ld.so:") && line.contains("'/proc/");
    if !diagnostics.lines().any(ours) {
        return diagnostics;
    }
    let others = diagnostics.split_inclusive('\n').filter(|line| !ours(line));
    others.collect()
}

enum JobError {
    /// The server has closed its socket.
    Gone,
    /// The server does not answer.
    Broken,
}

fn job(
    server: &OwnedFd,
    message: &[u8],
    input: &[u8],
    limit: Duration,
) -> Result<JobEnd, JobError> {
    let begun = Instant::now();
    let set_up = || -> std::io::Result<_> {
        let input = fds::memory_file(c"pumice-source", input)?;
        let (out, err, (client, theirs)) =
            (std::io::pipe()?, std::io::pipe()?, UnixStream::pair()?);
        Ok((input, out, err, client, theirs))
    };
    let (input, out, err, mut client, theirs) = set_up().map_err(|_| JobError::Broken)?;
    let ((mut out, their_out), (mut err, their_err)) = (out, err);
    let sent = fds::send(
        server.as_fd(),
        message,
        [
            input.as_fd(),
            their_out.as_fd(),
            their_err.as_fd(),
            theirs.as_fd(),
        ],
    );
    if sent.is_err() {
        return Err(JobError::Gone);
    }
    drop((input, their_out, their_err, theirs));
    let mut outcome = JobEnd {
        stdout: Printed::output(),
        stderr: Printed::diagnostics(),
        status: None,
        timed_out: false,
    };
    let mut open = [true; 3];
    let mut started = false;
    let mut chunk = vec![0; 64 << 10];
    while open.contains(&true) && !outcome.stdout.is_too_much() {
        let limit = if started { limit } else { START_LIMIT };
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            if !started {
                return Err(JobError::Broken);
            }
            outcome.timed_out = true;
            // The end of `client`, when it goes, is the job's.
            break;
        }
        let fds = [out.as_fd(), err.as_fd(), client.as_fd()];
        let mut wanted = fds.map(Some);
        for (fd, open) in wanted.iter_mut().zip(open) {
            fd.take_if(|_| !open);
        }
        let ready = fds::readable(wanted, left).map_err(|_| JobError::Broken)?;
        let mut said = Vec::new();
        let mut read = |number: usize, from: &mut dyn Read, add: &mut dyn FnMut(&[u8])| {
            if !ready.get(number).is_some_and(|ready| *ready) {
                return Ok(());
            }
            let size = match from.read(&mut chunk) {
                Ok(size) => size,
                Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
                // Its other end has gone with words unread.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
                // What was read so far is not all.
                Err(_) => return Err(JobError::Broken),
            };
            add(chunk.get(..size).unwrap_or(&[]));
            if let (0, Some(open)) = (size, open.get_mut(number)) {
                *open = false;
            }
            Ok(())
        };
        read(0, &mut out, &mut |bytes| outcome.stdout.add(bytes))?;
        read(1, &mut err, &mut |bytes| outcome.stderr.add(bytes))?;
        read(2, &mut client, &mut |bytes| said.extend_from_slice(bytes))?;
        for word in said {
            if word == BEGUN {
                started = true;
            } else {
                outcome.status = Some(word);
            }
        }
        // With its status a job has closed everything; what is left is in the pipes.
        if outcome.status.is_some() {
            open[2] = false;
        }
    }
    if started {
        Ok(outcome)
    } else {
        Err(JobError::Gone)
    }
}

#[cfg(test)]
mod tests;
