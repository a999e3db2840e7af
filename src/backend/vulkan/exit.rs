//! The end of the process while there is work: `exit` takes libraries apart while a software driver's threads still
//! compile and run kernels (LLVM's destructors, Mesa's helpers), and while the application's other threads submit.
//!
//! A handler, registered after those libraries have registered theirs and so run before them, keeps what comes later away
//! from the drivers ([`leaving`]) and waits, within limits, until software devices are idle. It takes no lock without a
//! limit: `exit` may be called in a callback, with locks held, or in a forked child, where nobody would release them.

use super::device::Shared;
use crate::util::leaving;
use ash::vk;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Devices whose work runs in this process.
static DEVICES: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Held shared while a driver compiles, and alone, for good, at the end.
static COMPILING: RwLock<()> = RwLock::new(());

/// The process that registered. A forked child has no threads of the driver's.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The most that the end of the process is put off for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long calls under way are waited for once devices are idle. Some wait for events that nobody sets.
const GRACE: Duration = Duration::from_millis(200);

/// Has the end of the process look after a device that was just made.
pub fn register(shared: &Arc<Shared>) {
    PROCESS.store(std::process::id(), Ordering::Release);
    // What a GPU still has to do when the process is gone is the kernel's business.
    if shared.adapter.properties.device_type == vk::PhysicalDeviceType::CPU {
        let mut devices = DEVICES.lock();
        devices.retain(|known| known.strong_count() > 0);
        devices.push(Arc::downgrade(shared));
    }
    prepend();
}

/// A batch was submitted. Drivers go on to register handlers when they first use a part of theirs, and what was registered
/// last runs first: so ours is registered again as the work doubles.
pub fn note_batch() {
    static BATCHES: AtomicU64 = AtomicU64::new(0);
    if (BATCHES.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two() {
        prepend();
    }
}

/// Permission to have a driver compile; none at the end of the process.
pub fn compiling() -> Option<RwLockReadGuard<'static, ()>> {
    COMPILING.try_read()
}

fn prepend() {
    // SAFETY: the handler is a function of a library that is never unloaded.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    if std::process::id() != PROCESS.load(Ordering::Acquire) || leaving::begin() {
        return;
    }
    let end = Instant::now() + PATIENCE;
    std::mem::forget(COMPILING.try_write_until(end));
    let Some(devices) = DEVICES.try_lock_until(end) else {
        return;
    };
    let devices: Vec<_> = devices.iter().filter_map(Weak::upgrade).collect();
    for shared in &devices {
        drain(shared, end);
    }
    leaving::settle(GRACE);
    // Their destructors would call the drivers.
    std::mem::forget(devices);
}

/// Waits until a device is idle.
fn drain(shared: &Shared, end: Instant) {
    if shared.is_lost() {
        return;
    }
    for queue in &shared.queues {
        let info = vk::FenceCreateInfo::default();
        // SAFETY: the device lives. The fence ends with the process.
        let Ok(fence) = (unsafe { shared.raw.create_fence(&info, None) }) else {
            return;
        };
        let Some(raw) = queue.raw.try_lock_until(end) else {
            return;
        };
        // SAFETY: the lock keeps other threads off the queue; the fence is new.
        if unsafe { shared.raw.queue_submit(*raw, &[], fence) }.is_err() {
            return;
        }
        drop(raw);
        let left = end.saturating_duration_since(Instant::now()).as_nanos() as u64;
        // SAFETY: the fence was submitted.
        if unsafe { shared.raw.wait_for_fences(&[fence], true, left) }.is_err() {
            return;
        }
    }
}
