//! Streams: batches of commands, their submission and what they keep alive.
//!
//! A stream owns a timeline semaphore, the open batch (recorded in the caller's thread), the batches in flight, and
//! spare ones that are used again without allocating. It submits to one queue all its life.

use super::descriptor::Sets;
use super::device::{failed, Shared};
use super::exit;
use super::memory::{self, VulkanMemory};
use super::pipeline::VulkanPipeline;
use super::profile::Queries;
use super::record::{Tracker, STAGES};
use super::settle::Turn;
use super::timeline::VulkanTimeline;
use crate::backend::{
    DeviceError, Image, Memory, Op, OrderRule, Pipeline, Placement, Point, ProfileSlot, Result,
    Stream, StreamDesc, Timeline, Times,
};
use crate::util::{leaving, monotonic_ns};
use ash::vk;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Spare batches kept; more than that were a burst.
const MOST_SPARE: usize = 32;

/// Bytes of a piece of staging memory of a batch.
const STAGING: u64 = 256 << 10;

/// A value of another stream's timeline that a batch waits for; the timeline is kept alive.
type Wait = (Arc<dyn Timeline>, vk::Semaphore, u64);

/// Commands that are submitted together.
pub struct Batch {
    pool: vk::CommandPool,
    /// The command buffer.
    pub commands: vk::CommandBuffer,
    /// Another, for the transitions of new images.
    settles: Option<vk::CommandBuffer>,
    /// A number that no other batch of the device has: see `VulkanMemory::first_use`.
    pub id: u64,
    /// The command buffer is being recorded.
    begun: bool,
    /// Something is in it, or is about to be.
    used: bool,
    /// It must be reset before it is begun.
    dirty: bool,
    /// The value on the timeline when it has completed.
    value: u64,
    /// Operations recorded.
    pub operations: usize,
    /// Something writes to memory that the host sees.
    pub writes_host_memory: bool,
    /// The pipeline bound last.
    pub bound: vk::Pipeline,
    /// The descriptor set bound last.
    pub bound_set: vk::DescriptorSet,
    /// Descriptor sets.
    pub sets: Sets,
    /// Memory in use.
    pub memories: Vec<Arc<dyn Memory>>,
    /// Images in use.
    pub images: Vec<Arc<dyn Image>>,
    /// Kernels in use.
    pub pipelines: Vec<Arc<dyn Pipeline>>,
    /// What the caller asked to keep.
    pub others: Vec<Arc<dyn Any + Send + Sync>>,
    waits: SmallVec<[Wait; 4]>,
    staging: Vec<Arc<VulkanMemory>>,
    staged: u64,
    /// Room for the regions of a copy.
    pub regions: Vec<vk::BufferCopy>,
}

impl Batch {
    fn new(shared: &Shared) -> Result<Self> {
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(shared.adapter.family.index);
        // SAFETY: the device lives; the family is the one its queues are of.
        let pool = unsafe { shared.raw.create_command_pool(&info, None) }
            .map_err(|result| failed(shared, "vkCreateCommandPool", result))?;
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool was just made and is used by this thread alone.
        let made = unsafe { shared.raw.allocate_command_buffers(&info) };
        let commands = match made.as_deref() {
            Ok([commands]) => *commands,
            other => {
                let result = other
                    .err()
                    .copied()
                    .unwrap_or(vk::Result::ERROR_OUT_OF_HOST_MEMORY);
                // SAFETY: nothing was made from the pool.
                unsafe { shared.raw.destroy_command_pool(pool, None) };
                return Err(failed(shared, "vkAllocateCommandBuffers", result));
            }
        };
        Ok(Self {
            pool,
            commands,
            settles: None,
            id: shared.new_batch_id(),
            begun: false,
            used: false,
            dirty: false,
            value: 0,
            operations: 0,
            writes_host_memory: false,
            bound: vk::Pipeline::null(),
            bound_set: vk::DescriptorSet::null(),
            sets: Sets::default(),
            memories: Vec::new(),
            images: Vec::new(),
            pipelines: Vec::new(),
            others: Vec::new(),
            waits: SmallVec::new(),
            staging: Vec::new(),
            staged: 0,
            regions: Vec::new(),
        })
    }

    fn begin(&mut self, shared: &Shared) -> Result {
        if self.begun {
            return Ok(());
        }
        if self.dirty {
            // SAFETY: the commands are not pending: the batch has completed or was never submitted.
            unsafe {
                shared
                    .raw
                    .reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty())
            }
            .map_err(|result| failed(shared, "vkResetCommandPool", result))?;
            self.dirty = false;
        }
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not pending: the batch is new, or has completed and was reset.
        unsafe { shared.raw.begin_command_buffer(self.commands, &info) }
            .map_err(|result| failed(shared, "vkBeginCommandBuffer", result))?;
        self.begun = true;
        Ok(())
    }

    /// A second command buffer, which brings new images to their layout. The batch keeps them.
    fn settle(&mut self, shared: &Shared, turn: &Turn<'_>) -> Result<vk::CommandBuffer> {
        self.begin(shared)?;
        self.used = true;
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        let commands = match self.settles {
            Some(commands) => commands,
            // SAFETY: the pool is used by this thread alone.
            None => unsafe { shared.raw.allocate_command_buffers(&info) }
                .map_err(|result| failed(shared, "vkAllocateCommandBuffers", result))?
                .first()
                .copied()
                .ok_or(DeviceError::OutOfHostMemory)?,
        };
        self.settles = Some(commands);
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not pending: its pool was reset since it was used last.
        unsafe { shared.raw.begin_command_buffer(commands, &info) }
            .map_err(|result| failed(shared, "vkBeginCommandBuffer", result))?;
        // SAFETY: recorded by this thread.
        unsafe { turn.record(shared, commands) };
        // SAFETY: as above.
        unsafe { shared.raw.end_command_buffer(commands) }
            .map_err(|result| failed(shared, "vkEndCommandBuffer", result))?;
        for texels in &turn.images {
            self.others.push(texels.clone());
        }
        Ok(commands)
    }

    /// Lets go of everything, to be used again. The batch must have completed or never been submitted.
    fn recycle(&mut self, shared: &Shared) {
        self.sets.reset(shared);
        self.memories.clear();
        self.images.clear();
        self.pipelines.clear();
        self.others.clear();
        self.waits.clear();
        self.staging.truncate(1);
        self.staged = 0;
        self.operations = 0;
        self.writes_host_memory = false;
        self.bound = vk::Pipeline::null();
        self.bound_set = vk::DescriptorSet::null();
        self.id = shared.new_batch_id();
        self.dirty |= self.begun;
        self.begun = false;
        self.used = false;
    }

    fn destroy(mut self, shared: &Shared) {
        self.sets.destroy(shared);
        // SAFETY: the commands are not pending; the pool takes its command buffer along.
        unsafe { shared.raw.destroy_command_pool(self.pool, None) };
    }

    /// Copies `data` (at most 64 KiB) to memory that lives as long as the batch. Returns the place, 16-byte aligned.
    pub fn stage(&mut self, shared: &Arc<Shared>, data: &[u8]) -> Result<(vk::Buffer, u64)> {
        let length = data.len() as u64;
        if self.staging.is_empty() || self.staged + length > STAGING {
            let size = STAGING.max(length);
            self.staging
                .push(memory::allocate(shared, size, Placement::HostWrite)?);
            self.staged = 0;
        }
        let last = self.staging.last().ok_or(DeviceError::OutOfHostMemory)?;
        let base = last.mapped().ok_or(DeviceError::OutOfHostMemory)?;
        let offset = self.staged;
        // SAFETY: offset + length is within the mapped memory (checked above); nobody else uses that part.
        unsafe {
            std::ptr::copy_nonoverlapping(
                data.as_ptr(),
                base.as_ptr().add(offset as usize),
                data.len(),
            );
        }
        self.staged = (offset + length).next_multiple_of(16);
        Ok((last.buffer, last.offset + offset))
    }
}

/// A stream.
pub struct VulkanStream {
    pub(super) shared: Arc<Shared>,
    queue: usize,
    timeline: Arc<VulkanTimeline>,
    timeline_dyn: Arc<dyn Timeline>,
    submitted: u64,
    pub(super) open: Option<Batch>,
    in_flight: VecDeque<Batch>,
    spare: Vec<Batch>,
    pub(super) tracker: Tracker,
    /// Memory written by another stream, whose completion the host has seen, must be made visible.
    pub(super) acquire: bool,
    /// The next operation waits for an earlier one of this stream.
    pub(super) after_own: bool,
    pub(super) queries: Queries,
    told_of_loss: bool,
}

impl VulkanStream {
    /// A stream on the next queue of its priority.
    pub fn new(shared: &Arc<Shared>, desc: StreamDesc) -> Result<Self> {
        let queue = shared.pick_queue(desc.priority);
        let timeline = Arc::new(VulkanTimeline::new(shared, queue, desc.throttle)?);
        Ok(Self {
            queue,
            timeline_dyn: Arc::clone(&timeline) as Arc<dyn Timeline>,
            timeline,
            submitted: 0,
            open: None,
            in_flight: VecDeque::new(),
            spare: Vec::new(),
            tracker: Tracker::default(),
            acquire: false,
            after_own: false,
            queries: Queries::new(desc.profiling && shared.adapter.family.timestamp_bits > 0),
            told_of_loss: false,
            shared: Arc::clone(shared),
        })
    }

    /// The open batch, perhaps not begun.
    pub(super) fn open_batch(&mut self) -> Result<&mut Batch> {
        if self.open.is_none() {
            if self.spare.is_empty() {
                self.retire();
            }
            let batch = match self.spare.pop() {
                Some(batch) => batch,
                None => Batch::new(&self.shared)?,
            };
            self.open = Some(batch);
        }
        self.open.as_mut().ok_or(DeviceError::OutOfHostMemory)
    }

    /// The open batch, ready for commands.
    pub(super) fn begun_batch(&mut self) -> Result<&mut Batch> {
        if !self.open.as_ref().is_some_and(|batch| batch.used) {
            let shared = Arc::clone(&self.shared);
            let batch = self.open_batch()?;
            batch.begin(&shared)?;
            batch.used = true;
        }
        self.open.as_mut().ok_or(DeviceError::OutOfHostMemory)
    }

    fn retire(&mut self) {
        let Some(first) = self.in_flight.front() else {
            return;
        };
        if !self.timeline.seen(first.value) && self.timeline.read().is_err() {
            return;
        }
        while self
            .in_flight
            .front()
            .is_some_and(|batch| self.timeline.seen(batch.value))
        {
            if let Some(batch) = self.in_flight.pop_front() {
                self.put_away(batch);
            }
        }
    }

    /// Gets a batch ready for the next commands while the device is busy with the one just submitted.
    fn prepare(&mut self) {
        if self.open.is_some() || self.spare.last().is_some_and(|batch| batch.begun) {
            return;
        }
        let batch = match self.spare.pop() {
            Some(batch) => Ok(batch),
            // One is enough for those that submit and wait; the others take what has completed.
            None if self.in_flight.len() < 2 => Batch::new(&self.shared),
            None => return,
        };
        // What fails here fails again, and is told of, when the batch is needed.
        if let Ok(mut batch) = batch {
            let _ = batch.begin(&self.shared);
            self.spare.push(batch);
        }
    }

    /// Says, once, which kernels had not finished when the device was lost.
    fn tell_of_loss(&mut self) {
        if std::mem::replace(&mut self.told_of_loss, true) {
            return;
        }
        let unfinished = self
            .in_flight
            .iter()
            .filter(|batch| !self.timeline.seen(batch.value));
        let mut names: Vec<&str> = unfinished
            .flat_map(|batch| &batch.pipelines)
            .filter_map(|pipeline| pipeline.as_any().downcast_ref::<VulkanPipeline>())
            .map(|pipeline| &*pipeline.name)
            .collect();
        names.sort_unstable();
        names.dedup();
        if !names.is_empty() {
            let device = &self.shared.adapter.caps.name;
            crate::log!(Error, "{device}: not finished: {}", names.join(", "));
        }
    }

    fn put_away(&mut self, mut batch: Batch) {
        batch.recycle(&self.shared);
        if self.spare.len() >= MOST_SPARE {
            batch.destroy(&self.shared);
            return;
        }
        // One that is begun stays on top.
        let at = self
            .spare
            .iter()
            .position(|batch| batch.begun)
            .unwrap_or(self.spare.len());
        self.spare.insert(at, batch);
    }

    fn submit_batch(&self, batch: &mut Batch, value: u64) -> Result {
        let shared = &self.shared;
        let turn = shared.images.settler.turn(shared, self.queue)?;
        let settles = match &turn {
            Some(turn) if !turn.images.is_empty() => Some(batch.settle(shared, turn)?),
            _ => None,
        };
        if batch.used {
            if batch.writes_host_memory {
                batch.host_barrier(shared);
            }
            // SAFETY: the command buffer is being recorded by this thread.
            unsafe { shared.raw.end_command_buffer(batch.commands) }
                .map_err(|result| failed(shared, "vkEndCommandBuffer", result))?;
        }
        let mut semaphores: SmallVec<[vk::Semaphore; 8]> = batch
            .waits
            .iter()
            .map(|(_, semaphore, _)| *semaphore)
            .collect();
        let mut values: SmallVec<[u64; 8]> =
            batch.waits.iter().map(|(_, _, value)| *value).collect();
        if let (Some(turn), None) = (&turn, settles) {
            semaphores.extend(turn.waits().map(|(semaphore, _)| semaphore));
            values.extend(turn.waits().map(|(_, value)| value));
        }
        let stages: SmallVec<[vk::PipelineStageFlags; 8]> =
            semaphores.iter().map(|_| STAGES).collect();
        let (signal, signal_values, commands) =
            ([self.timeline.semaphore], [value], [batch.commands]);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&values)
            .signal_semaphore_values(&signal_values);
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&semaphores)
            .wait_dst_stage_mask(&stages)
            .command_buffers(if batch.used { &commands } else { &[] })
            .signal_semaphores(&signal)
            .push_next(&mut timeline);
        let mut infos: SmallVec<[vk::SubmitInfo<'_>; 2]> = SmallVec::new();
        let mut settle_values;
        if let (Some(turn), Some(commands)) = (&turn, &settles) {
            settle_values = turn.values();
            infos.push(turn.submission(std::slice::from_ref(commands), &mut settle_values));
        }
        infos.push(info);
        let submitted = self.submit_infos(&infos);
        drop(infos);
        if let (Some(turn), true) = (turn, submitted.is_ok()) {
            turn.done();
        }
        submitted
    }

    fn submit_infos(&self, infos: &[vk::SubmitInfo<'_>]) -> Result {
        let shared = &self.shared;
        let queue = shared.queues.get(self.queue).ok_or(DeviceError::Lost)?;
        let _apart = shared.apart.submitting();
        let queue = queue.raw.lock();
        if leaving::is_leaving() {
            return Err(DeviceError::Lost);
        }
        // SAFETY: the lock keeps other threads off the queue; all handles belong to the device and live: the batch
        // keeps them until the value is reached.
        unsafe { shared.raw.queue_submit(*queue, infos, vk::Fence::null()) }
            .map_err(|result| failed(shared, "vkQueueSubmit", result))?;
        exit::note_batch();
        Ok(())
    }
}

impl Stream for VulkanStream {
    fn timeline(&self) -> &Arc<dyn Timeline> {
        &self.timeline_dyn
    }

    fn open_value(&self) -> u64 {
        self.submitted + 1
    }

    fn open_len(&self) -> usize {
        self.open.as_ref().map_or(0, |batch| batch.operations)
    }

    fn wait_for(&mut self, point: &Point) {
        let Some(other) = point.timeline.as_any().downcast_ref::<VulkanTimeline>() else {
            // A point of another device has no semaphore here: the host waits.
            if let Err(error) = point.timeline.wait(point.value, None) {
                crate::log!(Error, "waiting for another device failed: {error}");
            }
            return;
        };
        if other.semaphore == self.timeline.semaphore {
            // Our own earlier work is on the same queue: ordered operations need nothing, others a barrier.
            self.after_own = true;
            return;
        }
        if !Arc::ptr_eq(&other.shared, &self.shared) {
            if let Err(error) = other.wait(point.value, None) {
                crate::log!(Error, "waiting for another device failed: {error}");
            }
            return;
        }
        // Whoever asks for the wait has just looked whether it is needed, so the driver is not asked again.
        if other.seen(point.value) || other.queue == self.queue {
            // On the same queue, submitted before: a barrier orders what follows after it.
            self.acquire = true;
            return;
        }
        let Ok(batch) = self.open_batch() else {
            // No batch to attach the wait to: the next record or submit will fail for the same reason.
            let _ = other.wait(point.value, None);
            return;
        };
        match batch
            .waits
            .iter_mut()
            .find(|(_, semaphore, _)| *semaphore == other.semaphore)
        {
            Some((_, _, value)) => *value = point.value.max(*value),
            None => batch
                .waits
                .push((Arc::clone(&point.timeline), other.semaphore, point.value)),
        }
    }

    fn record(
        &mut self,
        op: Op<'_>,
        order: OrderRule,
        profile: bool,
    ) -> Result<Option<ProfileSlot>> {
        self.record_op(op, order, profile)
    }

    fn barrier(&mut self) -> Result {
        self.record_barrier()
    }

    fn submit(&mut self, force: bool) -> Result<u64> {
        let used = self.open.as_ref().is_some_and(|batch| batch.used);
        if !used && !force {
            return Ok(self.submitted);
        }
        if self.shared.is_lost() {
            self.tell_of_loss();
            return Err(DeviceError::Lost);
        }
        self.open_batch()?;
        let Some(mut batch) = self.open.take() else {
            return Ok(self.submitted);
        };
        let value = self.submitted + 1;
        if let Err(error) = self.submit_batch(&mut batch, value) {
            self.put_away(batch);
            return Err(error);
        }
        batch.value = value;
        self.submitted = value;
        self.in_flight.push_back(batch);
        self.prepare();
        Ok(value)
    }

    fn reclaim(&mut self) {
        self.retire();
    }

    fn take_times(&mut self, slot: ProfileSlot) -> Result<Times> {
        let (start, end) = self.queries.take(&self.shared, slot)?;
        let (start, end) = self.shared.clock.to_host(&self.shared, start, end)?;
        Ok(Times { start, end })
    }
}

impl Drop for VulkanStream {
    fn drop(&mut self) {
        if self.shared.is_lost() {
            self.tell_of_loss();
        } else if self.submitted > 0 {
            if let Err(error) = self.timeline.wait_semaphore(self.submitted) {
                crate::log!(
                    Error,
                    "waiting for the last batch of a stream failed: {error}"
                );
            }
        }
        let batches = self
            .open
            .take()
            .into_iter()
            .chain(self.in_flight.drain(..))
            .chain(self.spare.drain(..));
        for batch in batches {
            batch.destroy(&self.shared);
        }
        self.queries.destroy(&self.shared);
    }
}

/// Submits nothing, which does nothing on a device that works and is refused on one that was lost.
pub fn submit_nothing(shared: &Shared, queue: usize) -> Result {
    let Some(queue) = shared.queues.get(queue) else {
        return Ok(());
    };
    if shared.apart.is_making() {
        return Ok(());
    }
    // Whoever submits at the moment will see for itself.
    let Some(queue) = queue.raw.try_lock() else {
        return Ok(());
    };
    if leaving::is_leaving() {
        return Ok(());
    }
    // SAFETY: the lock keeps other threads off the queue, which belongs to the device.
    unsafe { shared.raw.queue_submit(*queue, &[], vk::Fence::null()) }
        .map_err(|result| failed(shared, "vkQueueSubmit", result))
}

/// A moment in device ticks and host nanoseconds, by running a timestamp: for devices without calibrated timestamps.
pub fn sample_clock(shared: &Arc<Shared>) -> Result<(u64, u64)> {
    let mut stream = VulkanStream::new(
        shared,
        StreamDesc {
            profiling: true,
            ..StreamDesc::default()
        },
    )?;
    let mut best: Option<(u64, u64, u64)> = None;
    // The tightest of a few attempts.
    for _ in 0..4 {
        let slot = stream
            .record_op(Op::Marker, OrderRule::InOrder, true)?
            .ok_or_else(|| DeviceError::Unsupported("the queue has no timestamps".to_owned()))?;
        let before = monotonic_ns();
        let value = stream.submit(true)?;
        stream.timeline.wait(value, Some(Duration::from_secs(5)))?;
        let after = monotonic_ns();
        let (_, ticks) = stream.queries.take(shared, slot)?;
        let width = after.saturating_sub(before);
        if best.is_none_or(|(known, ..)| width < known) {
            best = Some((width, ticks, before + width / 2));
        }
    }
    best.map(|(_, ticks, host)| (ticks, host))
        .ok_or(DeviceError::Lost)
}
