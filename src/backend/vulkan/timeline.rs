//! A timeline semaphore as a [`Timeline`]: reading it and waiting for it.
//!
//! A wait polls for a short while and then blocks. Whether polling pays is learnt from the waits before: each one that
//! polled in vain doubles the number of waits that block at once (up to [`MOST_PATIENCE`]), each that did not starts
//! from anew.

use super::conv::During;
use super::queue::Queues;
use crate::backend::{DeviceError, Result, Throttle, Timeline};
use crate::util::leaving;
use ash::vk;
use std::any::Any;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Waits that block at once after others that polled in vain, at most.
const MOST_PATIENCE: u32 = 32;

/// How often a wait that blocks asks whether the device still works.
const LOOK: Duration = Duration::from_millis(500);

/// The timeline of one stream.
pub struct VulkanTimeline {
    /// The queues of the device.
    pub queues: Arc<Queues>,
    /// The timeline semaphore.
    pub semaphore: vk::Semaphore,
    /// The queue that its stream submits to.
    pub queue: usize,
    /// The highest value seen of the semaphore: saves calls of the driver.
    seen: AtomicU64,
    throttle: Throttle,
    polling: Polling,
}

/// Whether waits poll before they block.
#[derive(Debug, Default)]
struct Polling {
    /// Waits still to come that do not.
    skip: AtomicU32,
    /// How many shall not after the next one that polls in vain.
    patience: AtomicU32,
}

impl Polling {
    /// Asked once a wait.
    fn pays(&self) -> bool {
        let skip = self.skip.load(Ordering::Relaxed);
        self.skip.store(skip.saturating_sub(1), Ordering::Relaxed);
        skip == 0
    }

    fn learn(&self, helped: bool) {
        let patience = if helped {
            0
        } else {
            let before = self.patience.load(Ordering::Relaxed);
            (before * 2).clamp(1, MOST_PATIENCE)
        };
        self.patience.store(patience, Ordering::Relaxed);
        self.skip.store(patience, Ordering::Relaxed);
    }
}

impl VulkanTimeline {
    /// A timeline at 0.
    pub fn new(queues: &Arc<Queues>, queue: usize, throttle: Throttle) -> Result<Self> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default()
            .semaphore_type(vk::SemaphoreType::TIMELINE)
            .initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device lives and has timelineSemaphore enabled.
        let semaphore = unsafe { queues.device.raw.create_semaphore(&info, None) }
            .during("vkCreateSemaphore")?;
        Ok(Self {
            queues: Arc::clone(queues),
            semaphore,
            queue,
            seen: AtomicU64::new(0),
            throttle,
            polling: Polling::default(),
        })
    }

    /// Whether the semaphore is known to have reached a value, without asking the driver.
    pub fn seen(&self, value: u64) -> bool {
        self.seen.load(Ordering::Acquire) >= value
    }

    /// The value of the semaphore.
    pub fn read(&self) -> Result<u64> {
        // SAFETY: the semaphore is a timeline semaphore of this device.
        let value = unsafe {
            self.queues
                .device
                .raw
                .get_semaphore_counter_value(self.semaphore)
        }
        .during("vkGetSemaphoreCounterValue")
        .map_err(|error| self.queues.device.noted(error))?;
        // Some drivers answer with all ones after a loss.
        if value == u64::MAX {
            return Err(self.queues.device.noted(DeviceError::Lost));
        }
        self.seen.fetch_max(value, Ordering::AcqRel);
        Ok(value)
    }

    /// Waits in the driver until the semaphore is there. False: time ran out.
    fn block(&self, value: u64, began: Instant, timeout: Option<Duration>) -> Result<bool> {
        let limit = timeout.unwrap_or(Duration::MAX);
        let tuning = &self.queues.device.adapter.tuning;
        let mut looked = began;
        loop {
            let nanoseconds = match timeout {
                Some(limit) => limit.saturating_sub(began.elapsed()).as_nanos(),
                None => u128::MAX,
            };
            let nanoseconds = u64::try_from(nanoseconds)
                .unwrap_or(u64::MAX)
                .min(tuning.slice_ns);
            let (semaphores, values) = ([self.semaphore], [value]);
            let info = vk::SemaphoreWaitInfo::default()
                .semaphores(&semaphores)
                .values(&values);
            // SAFETY: the semaphore is a timeline semaphore of this device.
            match unsafe { self.queues.device.raw.wait_semaphores(&info, nanoseconds) } {
                Ok(()) => {
                    self.seen.fetch_max(value, Ordering::AcqRel);
                    return Ok(true);
                }
                Err(vk::Result::TIMEOUT) if timeout.is_none() || began.elapsed() < limit => {
                    self.look_for_loss(&mut looked)?;
                }
                Err(vk::Result::TIMEOUT) => return Ok(false),
                Err(result) => return Err(self.queues.device.failed("vkWaitSemaphores", result)),
            }
        }
    }

    /// Whether a wait is in vain because the device was lost. Drivers let such waits run out of time as any other
    /// (NVIDIA 580); the counter and a submission of nothing tell, and are tried [`LOOK`] after the last look.
    pub(super) fn look_for_loss(&self, looked: &mut Instant) -> Result {
        if self.queues.device.is_lost() {
            return Err(DeviceError::Lost);
        }
        if looked.elapsed() < LOOK {
            return Ok(());
        }
        *looked = Instant::now();
        self.read()?;
        self.queues.submit_nothing(self.queue)
    }

    /// Waits until the semaphore has reached a value.
    pub fn wait_semaphore(&self, value: u64) -> Result {
        if self.seen(value) || self.read()? >= value {
            return Ok(());
        }
        self.block(value, Instant::now(), None).map(|_| ())
    }
}

impl Timeline for VulkanTimeline {
    fn completed(&self) -> Result<u64> {
        self.read()
    }

    fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool> {
        if self.seen(value) || self.read()? >= value {
            return Ok(true);
        }
        if timeout == Some(Duration::ZERO) {
            return Ok(false);
        }
        let began = Instant::now();
        let limit = timeout.unwrap_or(Duration::MAX);
        let tuning = &self.queues.device.adapter.tuning;
        let spin = Duration::from_nanos(tuning.spin_ns).min(limit);
        let polls = match self.throttle {
            Throttle::Low => false,
            Throttle::Normal => self.polling.pays(),
            Throttle::High => true,
        };
        if polls {
            while began.elapsed() < spin {
                if tuning.spin_yields {
                    std::thread::yield_now();
                } else {
                    (0..4).for_each(|_| std::hint::spin_loop());
                }
                if self.read()? >= value {
                    self.polling.learn(true);
                    return Ok(true);
                }
            }
            self.polling.learn(false);
        }
        self.block(value, began, timeout)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for VulkanTimeline {
    fn drop(&mut self) {
        // The stream that signals it waits for its last batch before it drops its Arc, and streams that wait for it
        // keep an Arc until their batch has completed; so no pending work uses it.
        if leaving::is_leaving() {
            return;
        }
        // SAFETY: as said above; it is destroyed once.
        unsafe { (self.queues.device.raw).destroy_semaphore(self.semaphore, None) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_in_vain_is_done_more_and_more_seldom() {
        let polling = Polling::default();
        let polls = (0..200)
            .filter(|_| {
                let pays = polling.pays();
                if pays {
                    polling.learn(false);
                }
                pays
            })
            .count();
        // After 1, 2, 4, 8, 16, 32, 32 ... waits that block.
        assert_eq!(polls, 10);
        while !polling.pays() {}
        polling.learn(true);
        assert!(polling.pays() && polling.pays(), "polling helps again");
    }
}
