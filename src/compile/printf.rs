//! printf: the buffer that a kernel writes its records to, and their output.

use spirv_lowering::ir::module::PrintfSite;

/// The bytes of the buffer of a launch: what a kernel can print before it is cut off
/// (CL_DEVICE_PRINTF_BUFFER_SIZE).
pub const BUFFER_SIZE: u64 = 2 << 20;

/// Returns the first bytes of an empty buffer: the bytes used, and its size.
pub fn header() -> [u8; 8] {
    let mut bytes = [0; 8];
    let (used, capacity) = bytes.split_at_mut(4);
    used.copy_from_slice(&8u32.to_le_bytes());
    capacity.copy_from_slice(&(BUFFER_SIZE as u32).to_le_bytes());
    bytes
}

/// Prints the records of a buffer.
pub fn print(sites: &[PrintfSite], buffer: &[u8]) {
    spirv_lowering::printf::render_all(sites, buffer, write);
}

/// Writes through the C library's stream, so that the output keeps its place among the
/// application's own.
#[cfg(target_os = "linux")]
fn write(text: &[u8]) {
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
fn write(text: &[u8]) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    // A closed standard output must not take the application down.
    let _ = out.write_all(text).and_then(|()| out.flush());
}
