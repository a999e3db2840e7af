//! The end of the process while there is work: `exit` takes libraries apart while a software driver's threads still
//! compile and run kernels (LLVM's destructors, Mesa's helpers), and while the application's other threads submit.
//!
//! A handler, registered after those libraries have registered theirs and so run before them, keeps what comes later away
//! from the drivers ([`shutdown`]) and waits, within limits, until software devices are idle. It takes no lock without a
//! limit: `exit` may be called in a callback, with locks held, or in a forked child, where nobody would release them.

use crate::util::lock::{rank, Mutex, ReadGuard, RwLock};
use crate::util::shutdown;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Weak;
use std::time::{Duration, Instant};

/// An object that has work pending in this process.
pub trait Busy: Send + Sync {
    /// Waits until the device is idle, or until `end`.
    fn drain(&self, end: Instant);
}

/// Devices whose work runs in this process.
static DEVICES: Mutex<Vec<Weak<dyn Busy>>, { rank::EXIT_DEVICES }> = Mutex::new(Vec::new());

/// Held shared while a driver compiles, and alone, for good, at the end.
static COMPILING: RwLock<(), { rank::COMPILING }> = RwLock::new(());

/// The process that registered. A forked child has no threads of the driver's.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The most that the end of the process is put off for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long calls under way are waited for once devices are idle. Some wait for events that nobody sets.
const GRACE: Duration = Duration::from_millis(200);

/// Registers a driver of which a device was just created with the end of the process. `local` is
/// the device, if its work runs in this process. The kernel handles pending work of a GPU when the
/// process has ended.
pub fn register(local: Option<Weak<dyn Busy>>) {
    PROCESS.store(std::process::id(), Ordering::Release);
    if let Some(device) = local {
        let mut devices = DEVICES.lock();
        devices.retain(|known| known.strong_count() > 0);
        devices.push(device);
    }
    prepend();
}

/// Counts a submitted batch. Drivers register handlers when they first use a part of theirs, and
/// the last one registered runs first: so ours is registered again whenever the number of batches
/// doubles.
pub fn note_batch() {
    static BATCHES: AtomicU64 = AtomicU64::new(0);
    if (BATCHES.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two() {
        prepend();
    }
}

/// Returns the permission to have a driver compile, or `None` at the end of the process.
pub fn compiling() -> Option<ReadGuard<'static, ()>> {
    COMPILING.try_read()
}

#[cfg(unix)]
fn prepend() {
    // SAFETY: the handler is a function of a library that is never unloaded.
    unsafe { libc::atexit(at_exit) };
}

/// Does nothing: Windows ends all other threads before it unloads libraries, and reports that
/// (`util/shutdown.rs`), so that there is no thread to wait for.
#[cfg(not(unix))]
fn prepend() {}

#[cfg_attr(not(unix), allow(dead_code, reason = "see `prepend`"))]
extern "C" fn at_exit() {
    if std::process::id() != PROCESS.load(Ordering::Acquire) || shutdown::begin() {
        return;
    }
    let end = Instant::now() + PATIENCE;
    std::mem::forget(COMPILING.try_write_until(end));
    let Some(devices) = DEVICES.try_lock_until(end) else {
        return;
    };
    let devices: Vec<_> = devices.iter().filter_map(Weak::upgrade).collect();
    for device in &devices {
        device.drain(end);
    }
    shutdown::settle(GRACE);
    // Their destructors would call the drivers.
    std::mem::forget(devices);
}
