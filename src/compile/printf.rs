//! printf: the buffer that a kernel writes its records to, and their output.

use spirv_lowering::ir::module::PrintfSite;

/// The least bytes of the buffer of a launch: what a kernel can print before it is cut off
/// (CL_DEVICE_PRINTF_BUFFER_SIZE).
pub const BUFFER_SIZE: usize = 2 << 20;
/// The most bytes that a buffer has, whatever is asked for.
const MOST_SIZE: usize = 64 << 20;

/// Receives text, and true with the last of a launch.
type Write = Box<dyn Fn(&[u8], bool) + Send + Sync>;

/// The destination of what kernels print: standard output, or a function of the application's.
#[derive(Default)]
pub struct Output {
    write: Option<Write>,
    size: usize,
}

/// Output of a kernel that has ended.
pub struct Printed {
    /// The messages that it may print.
    pub sites: Vec<PrintfSite>,
    /// The buffer that it printed to.
    pub bytes: Vec<u8>,
}

impl Output {
    /// Creates an output, with buffers of at least `size` bytes as far as there are so large ones.
    pub fn new(write: Option<Write>, size: usize) -> Self {
        Self { write, size }
    }

    /// Returns the bytes of the buffer of a launch.
    pub fn buffer_size(&self) -> u32 {
        let size = self.size.clamp(BUFFER_SIZE, MOST_SIZE);
        size.next_multiple_of(4096) as u32
    }

    /// Prints the records of a buffer. No lock may be held.
    pub fn print(&self, sites: &[PrintfSite], buffer: &[u8]) {
        spirv_lowering::printf::render_all(sites, buffer, |text, last| match &self.write {
            Some(write) => write(text, last),
            None => to_stdout(text),
        });
    }
}

/// Returns the first bytes of an empty buffer: the bytes used, and its size.
pub fn header(size: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    let (used, capacity) = bytes.split_at_mut(4);
    used.copy_from_slice(&8u32.to_le_bytes());
    capacity.copy_from_slice(&size.to_le_bytes());
    bytes
}

/// Writes through the C library's stream, so that the output keeps its place among the
/// application's own.
#[cfg(target_os = "linux")]
fn to_stdout(text: &[u8]) {
    extern "C" {
        static stdout: *mut libc::FILE;
    }
    if text.is_empty() {
        return;
    }
    // SAFETY: `stdout` is the C library's stream, which locks itself; the text lives across the call.
    unsafe {
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
        libc::fflush(stdout);
    }
}

#[cfg(not(target_os = "linux"))]
fn to_stdout(text: &[u8]) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    // A closed standard output must not take the application down.
    let _ = out.write_all(text).and_then(|()| out.flush());
}
