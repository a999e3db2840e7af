//! Unusual but valid states of a process: its floating-point mode, and signals at any moment.

use crate::world::World;
use pumice_tests::sys::*;
use pumice_tests::{call, create, ok};
use std::ffi::c_char;
use std::ptr::{null, null_mut};

/// How hostile a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hostile {
    /// Programs run in floating-point modes other than the default.
    pub floats: bool,
    /// A signal comes each millisecond.
    pub signals: bool,
}

impl Hostile {
    /// From names with commas between.
    pub fn read(names: &str) -> Option<Self> {
        let mut read = Self::default();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            match name {
                "floats" => read.floats = true,
                "signals" => read.signals = true,
                _ => return None,
            }
        }
        Some(read)
    }
}

impl std::fmt::Display for Hostile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = [(self.floats, "floats"), (self.signals, "signals")];
        let names: Vec<&str> = names.iter().filter(|one| one.0).map(|one| one.1).collect();
        write!(out, "{}", names.join(","))
    }
}

/// Puts the floating-point mode of the thread back when it is dropped.
pub struct Floats(#[allow(dead_code)] u32);

#[cfg(target_arch = "x86_64")]
fn mode() -> u32 {
    let mut mode = 0u32;
    // SAFETY: stores a register at that address.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack)) };
    mode
}

#[cfg(target_arch = "x86_64")]
fn set_mode(mode: u32) {
    // SAFETY: loads a register with bits that exist; threads that are made inherit it.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, readonly)) };
}

/// A floating-point mode by chance: rounding upward or to zero, denormals as zeros, traps.
#[cfg(target_arch = "x86_64")]
pub fn floats(seed: u64) -> Floats {
    let before = mode();
    let (up, to_zero, flush, traps) = (0x4000, 0x6000, 0x8040, !(0x80 | 0x200 | 0x400));
    set_mode(match seed % 5 {
        0 => before,
        1 => before | up,
        2 => before | to_zero,
        3 => before | flush,
        _ => before & traps,
    });
    Floats(before)
}

#[cfg(target_arch = "x86_64")]
impl Drop for Floats {
    fn drop(&mut self) {
        set_mode(self.0);
    }
}

/// Other processors: the mode as it is.
#[cfg(not(target_arch = "x86_64"))]
pub fn floats(_: u64) -> Floats {
    Floats(0)
}

/// Constants and operations that depend on the mode.
const SOURCE: &str = "kernel void f(global float *o, float x, float y) {
    o[0] = 1e-40f;
    o[1] = 1.0f / 3.0f;
    o[2] = sqrt(2.0f);
    o[3] = y * 1e-20f;
    o[4] = x * 1.1f;
    o[5] = convert_float(16777219);
}";

/// The instructions of the code.
const RIGHT: [u32; 6] = [
    0x0001_16c2,
    0x3eaa_aaab,
    0x3fb5_04f3,
    0x0001_16c2,
    0x3f8c_cccd,
    0x4b80_0002,
];

/// Builds a kernel that no cache has, in the mode of this thread, and compares what it computes.
pub fn check_floats(world: &World, seed: u64) -> Result<(), String> {
    let device = world.devices[0];
    let source = format!("{SOURCE}\n// {seed}\n");
    let (mut text, length): (*const c_char, _) = (source.as_ptr().cast(), source.len());
    let program = create!(clCreateProgramWithSource(
        world.context,
        1,
        &mut text,
        &length
    ));
    ok!(clBuildProgram(
        program,
        1,
        &device,
        null(),
        None,
        null_mut()
    ));
    let kernel = create!(clCreateKernel(program, c"f".as_ptr()));
    let context = world.context;
    let buffer = create!(clCreateBuffer(context, CL_MEM_READ_WRITE, 64, null_mut()));
    // As bits: this thread's mode may be any.
    let (one, small) = (0x3f80_0000u32, 0x1e3c_e508u32);
    ok!(clSetKernelArg(
        kernel,
        0,
        size_of::<cl_mem>(),
        (&raw const buffer).cast()
    ));
    ok!(clSetKernelArg(kernel, 1, 4, (&raw const one).cast()));
    ok!(clSetKernelArg(kernel, 2, 4, (&raw const small).cast()));
    let queue = create!(clCreateCommandQueueWithProperties(context, device, null()));
    let mut got = [0u32; 6];
    let (size, to) = (size_of_val(&got), got.as_mut_ptr().cast());
    let launched = call!(clEnqueueNDRangeKernel(
        queue,
        kernel,
        1,
        null(),
        &1,
        null(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(launched, 0, "a launch");
    ok!(clEnqueueReadBuffer(
        queue,
        buffer,
        CL_TRUE,
        0,
        size,
        to,
        0,
        null(),
        null_mut()
    ));
    ok!(clReleaseCommandQueue(queue));
    ok!(clReleaseMemObject(buffer));
    ok!(clReleaseKernel(kernel));
    ok!(clReleaseProgram(program));
    match got == RIGHT {
        true => Ok(()),
        false => Err(format!("floating-point mode: {got:x?}, not {RIGHT:x?}")),
    }
}

#[cfg(target_os = "linux")]
mod signals {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// Signals that threads of the driver were given.
    static TAKEN: AtomicU32 = AtomicU32::new(0);

    extern "C" fn handler(_: libc::c_int) {
        let mut name = [0u8; 16];
        // SAFETY: room for the name of this thread. Handlers may do this.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        if name.starts_with(b"pumice") {
            TAKEN.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Sends this process a signal each millisecond from now on.
    pub fn begin() {
        // SAFETY: a handler that does only what handlers may; without SA_RESTART, so that calls are interrupted.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
        }
        std::thread::spawn(|| {
            block(true);
            loop {
                std::thread::sleep(Duration::from_millis(1));
                // SAFETY: a signal that has a handler.
                unsafe { libc::kill(libc::getpid(), libc::SIGALRM) };
            }
        });
    }

    /// This thread does not want the signal, or it does.
    pub fn block(block: bool) {
        let how = if block {
            libc::SIG_BLOCK
        } else {
            libc::SIG_UNBLOCK
        };
        // SAFETY: a set of signals that lives during the calls.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut set, libc::SIGALRM);
            libc::pthread_sigmask(how, &set, std::ptr::null_mut());
        }
    }

    /// How many signals threads of the driver were given since the last call.
    pub fn taken() -> u32 {
        TAKEN.swap(0, Ordering::SeqCst)
    }
}

#[cfg(not(target_os = "linux"))]
mod signals {
    pub fn begin() {}
    pub fn block(_: bool) {}
    pub fn taken() -> u32 {
        0
    }
}

pub use signals::{begin as begin_signals, block as block_signals, taken as signals_taken};
