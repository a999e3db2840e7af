//! A timeline semaphore as a [`Timeline`]: reading it and waiting for it.
//!
//! The semaphore is signalled once a batch. Between two of its values there are marks, the values of commands before the last
//! of a batch: events that the device sets. A signal of the semaphore for each of them would take a submission of its own, two
//! to four times the time of a small dispatch (docs/decisions/0187-an-event-within-a-batch-is-a-vkevent.md).
//!
//! A wait polls for a short while and then blocks. Whether polling pays is learnt from the waits before: each one that
//! polled in vain doubles the number of waits that block at once (up to [`MOST_PATIENCE`]), each that did not starts
//! from anew.

use super::conv::During;
use super::queue::Queues;
use crate::backend::{DeviceError, Result, Throttle, Timeline};
use crate::util::lock::{rank, Mutex};
use crate::util::shutdown;
use ash::vk;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Waits that block at once after others that polled in vain, at most.
const MOST_PATIENCE: u32 = 32;

/// How long a wait for an event looks at it without a pause: the shortest sleep takes half of that, and nothing wakes those
/// who wait for an event.
const EVENT_SPIN: Duration = Duration::from_micros(100);

/// The longest pause between two looks at an event that is waited for.
const EVENT_PAUSE: Duration = Duration::from_micros(100);

/// A value between two of the semaphore: the device sets the event when it is reached.
#[derive(Clone, Copy)]
pub struct Mark {
    /// The value.
    pub value: u64,
    /// The event, of the batch.
    pub event: vk::Event,
}

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
    /// Marks of batches in flight that were not seen to be reached, in order.
    marks: Mutex<VecDeque<Mark>, { rank::MARKS }>,
    /// There are marks.
    marked: AtomicBool,
    /// The highest value seen: saves calls of the driver.
    seen: AtomicU64,
    /// The highest value seen of the semaphore itself.
    signalled: AtomicU64,
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
    /// Returns true if polling is worthwhile. Called once a wait.
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
    /// Creates a timeline at 0.
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
            marks: Mutex::default(),
            marked: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            signalled: AtomicU64::new(0),
            throttle,
            polling: Polling::default(),
        })
    }

    /// Adds the marks of a batch that was submitted.
    pub fn add_marks(&self, marks: &[Mark]) {
        if !marks.is_empty() {
            self.marks.lock().extend(marks);
            self.marked.store(true, Ordering::Release);
        }
    }

    /// Removes marks up to a value, whose events are used for others, or destroyed.
    pub fn forget_marks(&self, value: u64) {
        if self.marked.load(Ordering::Acquire) {
            let mut marks = self.marks.lock();
            while marks.front().is_some_and(|mark| mark.value <= value) {
                marks.pop_front();
            }
            self.marked.store(!marks.is_empty(), Ordering::Release);
        }
    }

    /// Returns the value of the last mark that is reached, or `value`, which the semaphore has reached.
    fn last_mark(&self, value: u64) -> Result<u64> {
        self.forget_marks(value);
        let mut reached = value;
        if self.marked.load(Ordering::Acquire) {
            let marks = self.marks.lock();
            for mark in marks.iter() {
                // SAFETY: the event belongs to a batch in flight, which forgets its marks before it resets or destroys it.
                let set = unsafe { self.queues.device.raw.get_event_status(mark.event) }
                    .during("vkGetEventStatus")
                    .map_err(|error| self.queues.device.noted(error))?;
                if !set {
                    break;
                }
                reached = mark.value.max(reached);
            }
            // Who does not find a mark any more finds this.
            self.seen.fetch_max(reached, Ordering::AcqRel);
            drop(marks);
            self.forget_marks(reached);
        }
        Ok(reached)
    }

    /// Returns true if a value is known to be reached, without asking the driver.
    pub fn seen(&self, value: u64) -> bool {
        self.seen.load(Ordering::Acquire) >= value
    }

    /// Returns true if the semaphore is known to have reached a value, so that the submission of
    /// that value is no longer in use. A mark after it proves nothing, as the driver has not
    /// reported that.
    pub fn is_signalled(&self, value: u64) -> bool {
        self.signalled.load(Ordering::Acquire) >= value
    }

    /// Returns the value reached: that of the semaphore, or of a later mark.
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
        self.signalled.fetch_max(value, Ordering::AcqRel);
        let value = self.last_mark(value)?;
        // Marks that were seen are forgotten.
        Ok(self.seen.fetch_max(value, Ordering::AcqRel).max(value))
    }

    /// Waits for a mark by looking at it again and again. False: time ran out.
    fn poll(&self, value: u64, began: Instant, timeout: Option<Duration>) -> Result<bool> {
        let mut looked = began;
        while self.read()? < value {
            if timeout.is_some_and(|limit| began.elapsed() >= limit) {
                return Ok(false);
            }
            self.look_for_loss(&mut looked)?;
            match began.elapsed() {
                waited if waited < EVENT_SPIN => std::thread::yield_now(),
                waited => std::thread::sleep((waited / 16).min(EVENT_PAUSE)),
            }
        }
        Ok(true)
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
                    self.signalled.fetch_max(value, Ordering::AcqRel);
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

    /// Returns an error if a wait is in vain because the device was lost. Drivers let such waits
    /// time out as any other (NVIDIA 580); the counter and an empty submission fail, and are tried
    /// [`LOOK`] after the last check.
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
        match self.has_signal(value) {
            // It may have been a mark, which another thread has just seen and forgotten.
            true if self.seen(value) => Ok(true),
            true => self.block(value, began, timeout),
            false => self.poll(value, began, timeout),
        }
    }

    fn has_signal(&self, value: u64) -> bool {
        !self.marked.load(Ordering::Acquire)
            || (self.marks.lock())
                .binary_search_by_key(&value, |mark| mark.value)
                .is_err()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for VulkanTimeline {
    fn drop(&mut self) {
        // The stream that signals it waits for its last batch before it drops its Arc, and streams that wait for it
        // keep an Arc until their batch has completed; so no pending work uses it.
        if shutdown::has_begun() {
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
