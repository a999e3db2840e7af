//! `PUMICE_TRACE`: a timeline in the format of Chrome's trace events, which trace viewers of browsers open.
//!
//! Calls and compilations are written here; what devices do comes from `queue/trace.rs`. Times are CLOCK_MONOTONIC in
//! microseconds, those of devices too. Rows are threads of this process, and for each device lanes of its queues.
//!
//! - The file is whole JSON after every write: what is written next takes the place of the closing brackets. A process that is
//!   killed loses what came in the last [`PERIOD`].
//! - Memory: a buffer of [`MOST_BUFFERED`] bytes, whatever happens. The file ends at [`MOST_BYTES`], and says so.
//! - Off, the cost is one load and a comparison where something could be noted ([`on`]).
//! - A forked child writes nothing: the file is its parent's.

use super::{config, monotonic_ns, shutdown};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt::Write as _;
use std::fs::File;
use std::sync::atomic::{AtomicU32, AtomicU8, Ordering};
use std::sync::OnceLock;
use std::time::Duration;

/// How long an event waits to be written, at most.
const PERIOD: Duration = Duration::from_millis(50);
/// Bytes that are written at once.
const MOST_BUFFERED: usize = 64 << 10;
/// Bytes of a file.
const MOST_BYTES: u64 = 1 << 30;
/// The end of a complete file.
const END: &str = "\n]}\n";
/// Bytes of one text within an event: a call with long lists is cut off.
const MOST_TEXT: usize = 2000;

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// The process that writes.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static WRITER: Mutex<Option<Writer>> = Mutex::new(None);
/// Takes what is over on the devices: registered by the layer that knows.
static COLLECT: OnceLock<fn()> = OnceLock::new();

struct Writer {
    file: File,
    /// Where the next event goes, and the end is now.
    at: u64,
    buffer: String,
    /// The most bytes of the file.
    most: u64,
}

/// Returns true if a timeline is written.
#[inline]
pub fn on() -> bool {
    match STATE.load(Ordering::Relaxed) {
        OFF => false,
        ON => true,
        _ => begin(),
    }
}

#[cold]
fn begin() -> bool {
    let mut writer = WRITER.lock();
    if STATE.load(Ordering::Acquire) != UNKNOWN {
        return on();
    }
    let mut made = None;
    if let Some(path) = &config::get().trace {
        let path = path.to_string_lossy();
        // One for each process of a program that starts others.
        let path = path.replace("%p", &std::process::id().to_string());
        match Writer::new(&path, MOST_BYTES) {
            Ok(new) => made = Some(new),
            Err(error) => {
                crate::log!(Error, "PUMICE_TRACE: cannot write to {path}: {error}");
            }
        }
    }
    let is_on = made.is_some();
    *writer = made;
    drop(writer);
    PROCESS.store(std::process::id(), Ordering::Release);
    STATE.store(if is_on { ON } else { OFF }, Ordering::Release);
    if is_on {
        name_process(std::process::id(), &program_name());
        // SAFETY: the handler is a function of a library that is never unloaded.
        unsafe { libc::atexit(at_exit) };
        if let Err(error) = super::thread::spawn("pumice-trace", keep_writing) {
            crate::log!(Warn, "PUMICE_TRACE: no thread that writes: {error}");
        }
    }
    is_on
}

fn program_name() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Sets a function that is called before each write, and by [`collect`].
pub fn set_collector(collector: fn()) {
    let _ = COLLECT.set(collector);
}

/// Writes the events that devices have completed.
pub fn collect() {
    if let Some(collector) = COLLECT.get() {
        collector();
    }
}

fn keep_writing() {
    while on() {
        std::thread::sleep(PERIOD);
        if let Some(_call) = shutdown::Call::enter() {
            collect();
        }
        flush();
    }
}

extern "C" fn at_exit() {
    flush();
}

/// Writes the contents of the buffer to the file.
fn flush() {
    if std::process::id() != PROCESS.load(Ordering::Acquire) {
        return;
    }
    // At the end of the process another thread may have been stopped while it wrote.
    if let Some(mut writer) = WRITER.try_lock_for(Duration::from_secs(1)) {
        if let Some(writer) = writer.as_mut() {
            writer.flush();
        }
    }
}

impl Writer {
    fn new(path: &str, most: u64) -> std::io::Result<Self> {
        let file = File::create(path)?;
        let start = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"name\":\"pumice\",\"ph\":\"M\",\"pid\":0,\"args\":{}}";
        write_all_at(&file, format!("{start}{END}").as_bytes(), 0)?;
        Ok(Self {
            file,
            at: start.len() as u64,
            buffer: String::new(),
            most,
        })
    }

    fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let size = self.buffer.len() as u64;
        self.buffer.push_str(END);
        let bytes = self.buffer.as_bytes();
        let written = super::files::limited(|| write_all_at(&self.file, bytes, self.at));
        self.buffer.clear();
        match written {
            Ok(()) => self.at += size,
            Err(error) => {
                crate::log!(Error, "PUMICE_TRACE: {error}");
                STATE.store(OFF, Ordering::Release);
            }
        }
    }

    fn add(&mut self, event: &str) {
        if self.at + (self.buffer.len() + event.len()) as u64 > self.most {
            if STATE.swap(OFF, Ordering::AcqRel) == ON {
                crate::log!(
                    Error,
                    "PUMICE_TRACE: the file has reached {} MiB and ends",
                    self.most >> 20
                );
            }
            return self.flush();
        }
        if self.buffer.len() + event.len() > MOST_BUFFERED {
            self.flush();
        }
        self.buffer.push_str(",\n");
        self.buffer.push_str(event);
    }
}

/// Adds an event, an object of JSON.
fn add(event: &str) {
    if std::process::id() != PROCESS.load(Ordering::Acquire) {
        return;
    }
    if let Some(writer) = WRITER.lock().as_mut() {
        writer.add(event);
    }
}

/// A row of the timeline: a process, or a device as another, and a thread or lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Process, or what stands for a device.
    pub process: u32,
    /// Thread, or lane.
    pub thread: u32,
}

thread_local! {
    static THREAD: OnceCell<u32> = const { OnceCell::new() };
}

/// Returns the system's number of this thread, and its name.
#[cfg(unix)]
fn thread_and_name() -> (u32, Option<String>) {
    // SAFETY: no arguments.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
    (thread, name.ok())
}

/// Returns the system's number of this thread, and its name, which only Rust's threads have.
#[cfg(windows)]
fn thread_and_name() -> (u32, Option<String>) {
    // SAFETY: no arguments.
    let thread = unsafe { super::win32::GetCurrentThreadId() };
    let name = std::thread::current().name().map(str::to_owned);
    (thread, name)
}

/// Writes all of `bytes` to a place of a file.
#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

/// Writes all of `bytes` to a place of a file.
#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        at += written as u64;
    }
    Ok(())
}

/// Returns the row of this thread, which has a name from now on.
pub fn this_thread() -> Row {
    let process = PROCESS.load(Ordering::Acquire);
    let number = || {
        let (thread, name) = thread_and_name();
        let name = match name {
            _ if thread == process => "main".to_owned(),
            Some(name) => name.trim().to_owned(),
            None => thread.to_string(),
        };
        name_thread(Row { process, thread }, &name);
        thread
    };
    let thread = THREAD
        .try_with(|known| *known.get_or_init(number))
        .unwrap_or(0);
    Row { process, thread }
}

/// Writes the name of a process or device.
pub fn name_process(process: u32, name: &str) {
    let name = Escaped(name);
    add(&format!(
        "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{process},\"args\":{{\"name\":{name}}}}}"
    ));
}

/// Writes the name of a thread or lane.
pub fn name_thread(Row { process, thread }: Row, name: &str) {
    let name = Escaped(name);
    add(&format!(
        "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"args\":{{\"name\":{name}}}}}"
    ));
}

/// Writes down what went on in a row from a time to another, nanoseconds of CLOCK_MONOTONIC. `details` are names with texts.
pub fn slice(
    row: Row,
    category: &str,
    name: &str,
    (start, end): (u64, u64),
    details: &[(&str, Cow<'_, str>)],
) {
    let mut event = format!(
        "{{\"name\":{},\"cat\":\"{category}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{",
        Escaped(name),
        row.process,
        row.thread,
        Microseconds(start),
        Microseconds(end.saturating_sub(start)),
    );
    for (number, (name, text)) in details.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(event, "{comma}\"{name}\":{}", Escaped(text));
    }
    event.push_str("}}");
    add(&event);
}

/// Writes an arrow with a number of its own, from a time within a slice of one row to a time within
/// one of another.
pub fn arrow(number: u64, from: (Row, u64), to: (Row, u64)) {
    for (phase, (row, time)) in [("\"s\"", from), ("\"f\",\"bp\":\"e\"", to)] {
        add(&format!(
            "{{\"name\":\"command\",\"cat\":\"command\",\"ph\":{phase},\"id\":{number},\"pid\":{},\"tid\":{},\"ts\":{}}}",
            row.process,
            row.thread,
            Microseconds(time)
        ));
    }
}

/// An event that lasts in this thread until it is dropped.
pub struct Span {
    category: &'static str,
    name: String,
    start: u64,
}

/// Begins a span, if a trace is written.
pub fn span(category: &'static str, name: impl FnOnce() -> String) -> Option<Span> {
    on().then(|| Span {
        category,
        name: name(),
        start: monotonic_ns(),
    })
}

impl Drop for Span {
    fn drop(&mut self) {
        slice(
            this_thread(),
            self.category,
            &self.name,
            (self.start, monotonic_ns()),
            &[],
        );
    }
}

/// Nanoseconds as the format wants them.
struct Microseconds(u64);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A text as JSON has it, cut off where it is long.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        for (at, c) in self.0.char_indices() {
            if at > MOST_TEXT {
                f.write_str("...")?;
                break;
            }
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_cut_off() {
        assert_eq!(
            Escaped("a \"b\" \\ \n\u{1}ä").to_string(),
            "\"a \\\"b\\\" \\\\ \\u000a\\u0001ä\""
        );
        let long = Escaped(&"ä".repeat(MOST_TEXT)).to_string();
        assert!(long.ends_with("ä...\"") && long.len() < MOST_TEXT + 10);
        assert_eq!(Microseconds(1_234_567).to_string(), "1234.567");
        assert_eq!(Microseconds(7).to_string(), "0.007");
    }

    /// After every write, and when it has reached its end, the file is whole.
    #[test]
    fn the_file_is_whole_and_ends() {
        let path = std::env::temp_dir().join(format!("pumice-trace-{}", std::process::id()));
        let mut writer = Writer::new(path.to_str().unwrap(), 2 * MOST_BUFFERED as u64).unwrap();
        let whole = || {
            let text = std::fs::read_to_string(&path).unwrap();
            let middle = text.strip_suffix(END).expect("the end");
            assert!(middle.starts_with('{') && middle.ends_with('}'));
            assert_eq!(middle.matches('{').count(), middle.matches('}').count() + 1);
            text.len()
        };
        let empty = whole();
        writer.add("{}");
        assert_eq!(whole(), empty);
        writer.flush();
        assert_eq!(whole(), empty + 4);
        for _ in 0..MOST_BUFFERED {
            writer.add("{\"name\":\"x\"}");
            assert!(writer.buffer.len() <= MOST_BUFFERED + 16);
        }
        let full = whole();
        assert!(
            full > MOST_BUFFERED && full <= 2 * MOST_BUFFERED + END.len(),
            "{full}"
        );
        std::fs::remove_file(path).unwrap();
    }
}
