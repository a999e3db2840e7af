//! Streams: batches of commands and their submission.
//!
//! A stream owns a timeline semaphore, the open batch (recorded in the caller's thread), the batches in flight, and
//! spare ones that are used again without allocating. It submits to one queue all its life.

use super::barrier::STAGES;
use super::batch::{Batch, Tools};
use super::clock::Clock;
use super::pipeline::VulkanPipeline;
use super::profile::Queries;
use super::queue::Queues;
use super::record::VulkanSequence;
use super::semaphore::VulkanSemaphore;
use super::timeline::VulkanTimeline;
use super::tracker::Order;
use crate::backend::external::Semaphore;
use crate::backend::{
    DeviceError, Op, OrderRule, Point, ProfileSlot, Result, Sequence, Stream, StreamDesc, Timeline,
    Times,
};
use crate::util::monotonic_ns;
use ash::vk;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Spare batches kept; more than that were a burst.
const MOST_SPARE: usize = 32;

/// A stream.
pub struct VulkanStream {
    tools: Arc<Tools>,
    queues: Arc<Queues>,
    clock: Arc<Clock>,
    queue: usize,
    timeline: Arc<VulkanTimeline>,
    timeline_dyn: Arc<dyn Timeline>,
    submitted: u64,
    open: Option<Batch>,
    in_flight: VecDeque<Batch>,
    spare: Vec<Batch>,
    order: Order,
    queries: Queries,
    reported_loss: bool,
    recorder: bool,
}

impl VulkanStream {
    /// Creates a stream on the next queue of its priority.
    pub fn new(tools: &Arc<Tools>, clock: &Arc<Clock>, desc: StreamDesc) -> Result<Self> {
        let queues = &tools.heaps.queues;
        let queue = queues.pick(desc.priority);
        let timeline = Arc::new(VulkanTimeline::new(queues, queue, desc.throttle)?);
        let timestamps = tools.device.adapter.queue_family.timestamp_bits > 0;
        Ok(Self {
            queue,
            timeline_dyn: Arc::clone(&timeline) as Arc<dyn Timeline>,
            timeline,
            submitted: 0,
            open: None,
            in_flight: VecDeque::new(),
            spare: Vec::new(),
            order: Order::default(),
            queries: Queries::new(desc.profiling && timestamps),
            reported_loss: false,
            recorder: desc.recorder,
            queues: Arc::clone(queues),
            clock: Arc::clone(clock),
            tools: Arc::clone(tools),
        })
    }

    /// Returns the open batch, perhaps not begun.
    fn open_batch(&mut self) -> Result<&mut Batch> {
        if self.open.is_none() {
            if self.spare.is_empty() {
                self.retire();
            }
            let batch = match self.spare.pop() {
                Some(batch) => batch,
                None => Batch::new(&self.tools, self.recorder)?,
            };
            self.open = Some(batch);
        }
        self.open.as_mut().ok_or(DeviceError::OutOfHostMemory)
    }

    /// Returns the open batch, ready for commands.
    fn begun_batch(&mut self) -> Result<&mut Batch> {
        if !self.open.as_ref().is_some_and(|batch| batch.used) {
            let batch = self.open_batch()?;
            batch.begin()?;
            batch.used = true;
        }
        self.open.as_mut().ok_or(DeviceError::OutOfHostMemory)
    }

    fn retire(&mut self) {
        let Some(first) = self.in_flight.front() else {
            return;
        };
        if !self.timeline.is_signalled(first.value) && self.timeline.read().is_err() {
            return;
        }
        while self
            .in_flight
            .front()
            .is_some_and(|batch| self.timeline.is_signalled(batch.value))
        {
            if let Some(batch) = self.in_flight.pop_front() {
                self.timeline.forget_marks(batch.value);
                self.put_away(batch);
            }
        }
        let timeline = &self.timeline;
        (self.queries).recycle(&self.tools.device, |value| timeline.is_signalled(value));
    }

    /// Prepares a batch for the next commands while the device is busy with the one just submitted.
    fn prepare(&mut self) {
        if self.open.is_some() || self.spare.last().is_some_and(|batch| batch.begun) {
            return;
        }
        let batch = match self.spare.pop() {
            Some(batch) => Ok(batch),
            // One is enough for those that submit and wait; the others take what has completed.
            None if self.in_flight.len() < 2 => Batch::new(&self.tools, false),
            None => return,
        };
        // What fails here fails again, and is reported when the batch is needed.
        if let Ok(mut batch) = batch {
            let _ = batch.begin();
            self.spare.push(batch);
        }
    }

    /// Logs, once, which kernels had not finished when the device was lost.
    fn tell_of_loss(&mut self) {
        if std::mem::replace(&mut self.reported_loss, true) {
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
            let device = &self.tools.device.adapter.caps.name;
            crate::log!(Error, "{device}: not finished: {}", names.join(", "));
        }
    }

    fn put_away(&mut self, mut batch: Batch) {
        batch.recycle();
        if self.spare.len() >= MOST_SPARE {
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
        let device = &self.tools.device;
        let pending = self.tools.images.transitions.pending(device, self.queue)?;
        let transitions = match &pending {
            Some(pending) if !pending.images.is_empty() => Some(batch.transition(pending)?),
            _ => None,
        };
        batch.end()?;
        let mut semaphores: SmallVec<[vk::Semaphore; 8]> = batch
            .waits
            .iter()
            .map(|(_, semaphore, _)| *semaphore)
            .collect();
        let mut values: SmallVec<[u64; 8]> =
            batch.waits.iter().map(|(_, _, value)| *value).collect();
        if let (Some(pending), None) = (&pending, transitions) {
            semaphores.extend(pending.waits().map(|(semaphore, _)| semaphore));
            values.extend(pending.waits().map(|(_, value)| value));
        }
        // Binary ones have no values, but places for them.
        semaphores.extend_from_slice(&batch.shared_waits);
        values.resize(semaphores.len(), 0);
        let stages: SmallVec<[vk::PipelineStageFlags; 8]> =
            semaphores.iter().map(|_| STAGES).collect();
        let mut signal: SmallVec<[vk::Semaphore; 2]> = SmallVec::new();
        signal.push(self.timeline.semaphore);
        signal.extend_from_slice(&batch.shared_signals);
        let mut signalled: SmallVec<[u64; 2]> = SmallVec::new();
        signalled.push(value);
        signalled.resize(signal.len(), 0);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&values)
            .signal_semaphore_values(&signalled);
        let commands = [batch.commands];
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&semaphores)
            .wait_dst_stage_mask(&stages)
            .command_buffers(if batch.used { &commands } else { &[] })
            .signal_semaphores(&signal)
            .push_next(&mut timeline);
        let mut infos: SmallVec<[vk::SubmitInfo<'_>; 2]> = SmallVec::new();
        let mut transition_values;
        if let (Some(pending), Some(commands)) = (&pending, &transitions) {
            transition_values = pending.values();
            infos.push(pending.submission(std::slice::from_ref(commands), &mut transition_values));
        }
        infos.push(info);
        // SAFETY: all handles belong to the device, and the batch keeps them until the value is reached.
        let submitted = unsafe { self.queues.submit(self.queue, &infos) };
        drop(infos);
        if let (Some(pending), true) = (pending, submitted.is_ok()) {
            pending.done();
        }
        submitted
    }
}

impl Stream for VulkanStream {
    fn timeline(&self) -> &Arc<dyn Timeline> {
        &self.timeline_dyn
    }

    fn open_value(&self) -> u64 {
        let marks = self.open.as_ref().map_or(0, |batch| batch.marks.len());
        self.submitted + 1 + marks as u64
    }

    fn recorded_value(&self) -> u64 {
        let open = self.open.as_ref().is_some_and(Batch::has_open_operations);
        self.open_value() - u64::from(!open)
    }

    fn end_command(&mut self, observed: &mut dyn FnMut() -> bool) {
        let value = self.open_value();
        let observed = observed();
        let open = self.open.as_mut().filter(|_| observed);
        if let Some(batch) = open.filter(|batch| batch.has_open_operations()) {
            batch.mark(value);
        }
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
            self.order.after_own = true;
            return;
        }
        if !Arc::ptr_eq(&other.queues, &self.queues) {
            if let Err(error) = other.wait(point.value, None) {
                crate::log!(Error, "waiting for another device failed: {error}");
            }
            return;
        }
        // Whoever asks for the wait has just looked whether it is needed, so the driver is not asked again.
        if other.seen(point.value) || other.queue == self.queue {
            // On the same queue, submitted before: a barrier orders what follows after it.
            self.order.acquire = true;
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

    fn wait_semaphore(&mut self, semaphore: &Arc<dyn Semaphore>) -> Result {
        let raw = VulkanSemaphore::of(&**semaphore)?.raw;
        let batch = self.open_batch()?;
        batch.shared_waits.push(raw);
        batch.others.push(Arc::new(Arc::clone(semaphore)));
        Ok(())
    }

    fn signal_semaphore(&mut self, semaphore: &Arc<dyn Semaphore>) -> Result {
        let raw = VulkanSemaphore::of(&**semaphore)?.raw;
        let batch = self.open_batch()?;
        batch.shared_signals.push(raw);
        batch.others.push(Arc::new(Arc::clone(semaphore)));
        Ok(())
    }

    fn record(
        &mut self,
        op: Op<'_>,
        order: OrderRule,
        profile: bool,
    ) -> Result<Option<ProfileSlot>> {
        if self.tools.device.is_lost() {
            return Err(DeviceError::Lost);
        }
        if let Op::Keep(resource) = op {
            self.open_batch()?.others.push(resource);
            return Ok(None);
        }
        self.begun_batch()?;
        let batch = self.open.as_mut().ok_or(DeviceError::OutOfHostMemory)?;
        let queries = profile.then_some(&mut self.queries);
        batch.record(op, order, &mut self.order, queries)
    }

    fn barrier(&mut self) -> Result {
        if self.order.is_clear() {
            return Ok(());
        }
        self.begun_batch()?;
        let batch = self.open.as_ref().ok_or(DeviceError::OutOfHostMemory)?;
        batch.barrier(self.order.barrier_for_all());
        Ok(())
    }

    fn take_sequence(&mut self) -> Result<Arc<dyn Sequence>> {
        self.begun_batch()?;
        self.order = Order::default();
        let batch = self.open.take().ok_or(DeviceError::OutOfHostMemory)?;
        batch.end()?;
        Ok(Arc::new(VulkanSequence(batch)))
    }

    fn submit(&mut self, force: bool) -> Result<u64> {
        let used = self.open.as_ref().is_some_and(|batch| batch.used);
        if !used && !force {
            return Ok(self.submitted);
        }
        if self.tools.device.is_lost() {
            self.tell_of_loss();
            return Err(DeviceError::Lost);
        }
        self.open_batch()?;
        let Some(mut batch) = self.open.take() else {
            return Ok(self.submitted);
        };
        // That of the last mark, if nothing came behind it.
        let marks = batch.marks.len() as u64;
        let value = self.submitted + marks + u64::from(batch.has_open_operations() || marks == 0);
        if let Err(error) = self.submit_batch(&mut batch, value) {
            self.put_away(batch);
            return Err(error);
        }
        batch.value = value;
        // The batch is complete when the semaphore says so, not when its last event is set.
        let within = batch.marks.partition_point(|mark| mark.value < value);
        self.timeline.add_marks(&batch.marks[..within]);
        self.submitted = value;
        self.in_flight.push_back(batch);
        self.prepare();
        Ok(value)
    }

    fn reclaim(&mut self) {
        self.retire();
    }

    fn take_times(&mut self, slot: ProfileSlot) -> Result<Times> {
        let (start, end) = self
            .queries
            .take(&self.tools.device, slot, self.submitted)?;
        let run = || sample_clock(&self.tools, &self.clock);
        let (start, end) = self.clock.to_host(start, end, run)?;
        Ok(Times { start, end })
    }

    fn discard_times(&mut self, slot: ProfileSlot) {
        self.queries.discard(slot, self.submitted);
    }
}

impl Drop for VulkanStream {
    fn drop(&mut self) {
        if self.tools.device.is_lost() {
            self.tell_of_loss();
        } else if self.submitted > 0 {
            if let Err(error) = self.timeline.wait_semaphore(self.submitted) {
                crate::log!(
                    Error,
                    "waiting for the last batch of a stream failed: {error}"
                );
            }
        }
        // Their events go with the batches.
        self.timeline.forget_marks(u64::MAX);
        self.queries.destroy(&self.tools.device);
    }
}

/// Returns a moment in device ticks and host nanoseconds, by running a timestamp: for devices
/// without calibrated timestamps.
pub fn sample_clock(tools: &Arc<Tools>, clock: &Arc<Clock>) -> Result<(u64, u64)> {
    let mut stream = VulkanStream::new(
        tools,
        clock,
        StreamDesc {
            profiling: true,
            ..StreamDesc::default()
        },
    )?;
    let mut best: Option<(u64, u64, u64)> = None;
    // The tightest of a few attempts.
    for _ in 0..4 {
        let slot = stream
            .record(Op::Marker, OrderRule::InOrder, true)?
            .ok_or_else(|| DeviceError::Unsupported("the queue has no timestamps".to_owned()))?;
        let before = monotonic_ns();
        let value = stream.submit(true)?;
        stream.timeline.wait(value, Some(Duration::from_secs(5)))?;
        let after = monotonic_ns();
        let (_, ticks) = stream.queries.take(&tools.device, slot, value)?;
        let width = after.saturating_sub(before);
        if best.is_none_or(|(known, ..)| width < known) {
            best = Some((width, ticks, before + width / 2));
        }
    }
    best.map(|(_, ticks, host)| (ticks, host))
        .ok_or(DeviceError::Lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::vulkan::tests;

    /// Mesa's emulated timelines write to a semaphore that a batch has waited for after the batch can be seen to have
    /// completed; its software driver has one queue, and is given none to wait for.
    #[test]
    fn streams_of_one_queue_wait_for_no_semaphore() {
        let Some(device) = tests::device(false) else {
            return;
        };
        let mut first = device.stream().expect("a stream");
        for _ in 0..4 {
            let mut second = device.stream().expect("a stream");
            let value = first.submit(true).expect("submit");
            second.wait_for(&Point {
                timeline: Arc::clone(first.timeline()),
                value,
            });
            let waits = second.open.as_ref().map_or(0, |batch| batch.waits.len());
            assert_eq!(waits, usize::from(first.queue != second.queue));
            second.submit(true).expect("submit");
        }
    }
}
