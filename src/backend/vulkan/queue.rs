//! The VkQueues of a device, and all that is submitted to them.
//!
//! The driver wants one thread at a time on a queue. Some drivers also lose the device when something is submitted while
//! a pipeline is made: there a gate lets submissions through together, and who makes a pipeline alone.

use super::adapter::queue_class;
use super::exit::{self, Busy};
use super::logical::LogicalDevice;
use crate::backend::{DeviceError, Result};
use crate::util::forked;
use crate::util::lock::{rank, Mutex, RwLock, WriteGuard};
use crate::util::shutdown;
use ash::vk;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

struct Queue {
    /// The handle, used under the lock only.
    raw: Mutex<vk::Queue, { rank::VK_QUEUE }>,
    class: i8,
}

/// The queues in use.
pub struct Queues {
    /// Their device.
    pub device: Arc<LogicalDevice>,
    list: Vec<Queue>,
    next: AtomicUsize,
    /// Taken before the lock of a queue; where the driver needs it
    /// ([`Tuning::serial_pipelines`](super::tuning::Tuning)).
    gate: Option<RwLock<(), { rank::SUBMISSION_GATE }>>,
}

impl Queues {
    /// Collects the queues that the device was created with.
    pub fn new(device: &Arc<LogicalDevice>) -> Self {
        let queue_family = device.adapter.queue_family;
        Self {
            list: (0..queue_family.count)
                .map(|index| Queue {
                    // SAFETY: the device was made with that many queues of the family.
                    raw: Mutex::new(unsafe {
                        device.raw.get_device_queue(queue_family.index, index)
                    }),
                    class: queue_class(index, queue_family.count),
                })
                .collect(),
            next: AtomicUsize::new(0),
            gate: (device.adapter.tuning.serial_pipelines).then(RwLock::default),
            device: Arc::clone(device),
        }
    }

    /// Returns the number of queues.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns a queue for a new stream: the ones of its priority take turns.
    pub fn pick(&self, priority: i8) -> usize {
        let class = if self.list.iter().any(|queue| queue.class == priority) {
            priority
        } else {
            0
        };
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let matching = self
            .list
            .iter()
            .filter(|queue| queue.class == class)
            .count()
            .max(1);
        self.list
            .iter()
            .enumerate()
            .filter(|(_, queue)| queue.class == class)
            .nth(turn % matching)
            .map_or(0, |(index, _)| index)
    }

    /// Returns a guard to hold while a pipeline is created. Where the driver needs it, nothing is
    /// submitted meanwhile, and no other pipeline created.
    pub fn hold_back(&self) -> Option<WriteGuard<'_, ()>> {
        self.gate.as_ref().map(RwLock::write)
    }

    /// Submits batches.
    ///
    /// # Safety
    /// All handles belong to the device, and live until the batches have completed.
    pub unsafe fn submit(&self, index: usize, infos: &[vk::SubmitInfo<'_>]) -> Result {
        let queue = self.list.get(index).ok_or(DeviceError::Lost)?;
        let _passing = self.gate.as_ref().map(RwLock::read);
        let queue = queue.raw.lock();
        if shutdown::has_begun() {
            return Err(DeviceError::Lost);
        }
        // SAFETY: the lock keeps other threads off the queue; as promised by the caller.
        unsafe {
            self.device
                .raw
                .queue_submit(*queue, infos, vk::Fence::null())
        }
        .map_err(|result| self.device.failed("vkQueueSubmit", result))?;
        exit::note_batch();
        // Those of the driver: what is submitted in a child may wait for them for ever.
        forked::needs_threads();
        Ok(())
    }

    /// Submits nothing, which does nothing on a device that works and is refused on one that was lost.
    pub fn submit_nothing(&self, index: usize) -> Result {
        let Some(queue) = self.list.get(index) else {
            return Ok(());
        };
        // Whoever makes a pipeline at the moment takes long; whoever submits will see for itself.
        if self.gate.as_ref().is_some_and(RwLock::is_locked_exclusive) {
            return Ok(());
        }
        let Some(queue) = queue.raw.try_lock() else {
            return Ok(());
        };
        if shutdown::has_begun() {
            return Ok(());
        }
        // SAFETY: the lock keeps other threads off the queue, which belongs to the device.
        unsafe { self.device.raw.queue_submit(*queue, &[], vk::Fence::null()) }
            .map_err(|result| self.device.failed("vkQueueSubmit", result))
    }

    /// Binds sparse memory, and signals the fence when that is done.
    ///
    /// # Safety
    /// All handles belong to the device, and live until the fence is signalled, which is not in use.
    pub unsafe fn bind_sparse(
        &self,
        infos: &[vk::BindSparseInfo<'_>],
        fence: vk::Fence,
    ) -> Result<(), vk::Result> {
        let queue = self.list.get(self.pick(0));
        let _passing = self.gate.as_ref().map(RwLock::read);
        let queue = queue.ok_or(vk::Result::ERROR_DEVICE_LOST)?.raw.lock();
        // SAFETY: the lock keeps other threads off the queue, whose family can bind; as promised by the caller.
        unsafe { self.device.raw.queue_bind_sparse(*queue, infos, fence) }
    }
}

impl Busy for Queues {
    fn drain(&self, end: Instant) {
        if self.device.is_lost() {
            return;
        }
        let raw = &self.device.raw;
        for queue in &self.list {
            let info = vk::FenceCreateInfo::default();
            // SAFETY: the device lives. The fence ends with the process.
            let Ok(fence) = (unsafe { raw.create_fence(&info, None) }) else {
                return;
            };
            let Some(queue) = queue.raw.try_lock_until(end) else {
                return;
            };
            // SAFETY: the lock keeps other threads off the queue; the fence is new.
            if unsafe { raw.queue_submit(*queue, &[], fence) }.is_err() {
                return;
            }
            drop(queue);
            let left = end.saturating_duration_since(Instant::now()).as_nanos() as u64;
            // SAFETY: the fence was submitted.
            if unsafe { raw.wait_for_fences(&[fence], true, left) }.is_err() {
                return;
            }
        }
    }
}
