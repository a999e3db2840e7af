//! Semaphores that nothing uses any more, and are destroyed a while later, for drivers that touch them once more
//! ([`Quirk::LateSemaphores`](crate::quirks::Quirk)).

use crate::util::lock::{rank, Mutex};
use ash::vk;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Them, in the order in which they came.
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
