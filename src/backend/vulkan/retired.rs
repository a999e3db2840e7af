//! Semaphores that nothing uses any more, and are destroyed a while later.

use crate::util::lock::{rank, Mutex};
use ash::vk;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Semaphores that nothing uses any more, destroyed a while later.
///
/// Mesa's emulated timelines (lavapipe 22.3) touch a semaphore that a batch waited for once more *after* the completion
/// of that batch can be seen, in the thread that submits: a semaphore destroyed at that moment was written to after its
/// memory was freed. Look again with Mesa 24 or later. 2026-11.
#[derive(Default)]
pub struct RetiredSemaphores(
    Mutex<VecDeque<(Instant, vk::Semaphore)>, { rank::RETIRED_SEMAPHORES }>,
);

/// How long a semaphore is kept.
const KEPT: Duration = Duration::from_secs(2);

impl RetiredSemaphores {
    /// Takes a semaphore that nothing uses.
    pub fn take(&self, device: &ash::Device, semaphore: vk::Semaphore) {
        let now = Instant::now();
        let mut retired = self.0.lock();
        retired.push_back((now, semaphore));
        while let Some((since, semaphore)) = retired.front().copied() {
            if now.duration_since(since) < KEPT {
                break;
            }
            retired.pop_front();
            // SAFETY: nothing uses it, as [`RetiredSemaphores::take`] asks; it was taken off the list.
            unsafe { device.destroy_semaphore(semaphore, None) };
        }
    }

    /// Destroys all. No work of the device is pending.
    pub fn destroy(&self, device: &ash::Device) {
        for (_, semaphore) in self.0.lock().drain(..) {
            // SAFETY: nothing uses it, as [`RetiredSemaphores::take`] asks; it was taken off the list.
            unsafe { device.destroy_semaphore(semaphore, None) };
        }
    }
}
