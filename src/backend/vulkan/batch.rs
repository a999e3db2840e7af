//! Batches: commands that are submitted together, and what they keep alive.

use super::barrier;
use super::descriptor::Sets;
use super::heap::Heaps;
use super::image::Images;
use super::logical::LogicalDevice;
use super::memory::{self, VulkanMemory};
use super::timeline::Mark;
use super::transition::PendingTransitions;
use super::utility::Utilities;
use crate::backend::{DeviceError, DeviceImage, Memory, Pipeline, Placement, Result, Timeline};
use ash::vk;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The objects that recording a batch needs.
pub struct Tools {
    /// The device.
    pub device: Arc<LogicalDevice>,
    /// For staging memory.
    pub heaps: Arc<Heaps>,
    /// Samplers, and the layouts of images.
    pub images: Arc<Images>,
    /// Shaders of our own.
    pub utilities: Utilities,
    next_batch: AtomicU64,
}

impl Tools {
    /// Creates the tools of a device.
    pub fn new(heaps: &Arc<Heaps>, images: &Arc<Images>, utilities: Utilities) -> Self {
        Self {
            device: Arc::clone(&heaps.device),
            heaps: Arc::clone(heaps),
            images: Arc::clone(images),
            utilities,
            next_batch: AtomicU64::new(1),
        }
    }

    /// Returns a number for a batch that no other batch of the device has.
    fn new_batch_id(&self) -> u64 {
        self.next_batch.fetch_add(1, Ordering::Relaxed)
    }
}

/// Bytes of a piece of staging memory of a batch.
const STAGING: u64 = 256 << 10;

/// A value of another stream's timeline that a batch waits for; the timeline is kept alive.
pub type Wait = (Arc<dyn Timeline>, vk::Semaphore, u64);

/// Commands that are submitted together, in one command buffer. It completes with a value on the timeline; of commands
/// before the last, those whose completion somebody may ask for set an event ([`Batch::mark`]).
pub struct Batch {
    /// The objects that it is recorded with.
    pub tools: Arc<Tools>,
    pool: vk::CommandPool,
    /// Events, of which the first are those of `marks`.
    events: Vec<vk::Event>,
    /// The marks within the commands, in order.
    pub marks: Vec<Mark>,
    /// The command buffer.
    pub commands: vk::CommandBuffer,
    /// Another, for the transitions of new images.
    transitions: Option<vk::CommandBuffer>,
    /// A number that no other batch of the device has: see `VulkanMemory::first_use`.
    pub id: u64,
    /// The command buffer is being recorded.
    pub begun: bool,
    /// Set if others execute it, as often as wanted, and it is never submitted itself.
    repeatable: bool,
    /// Something is in it, or is about to be.
    pub used: bool,
    /// Set if it must be reset before it is begun.
    dirty: bool,
    /// The value on the timeline when it has completed.
    pub value: u64,
    /// Operations recorded.
    pub operations: usize,
    /// Operations before the last mark.
    marked_operations: usize,
    /// Something writes to memory that the host may read once all is complete.
    pub writes_host_memory: bool,
    /// Something behind the last mark writes to memory that the application, or a host task, reads directly.
    pub writes_shown_memory: bool,
    /// The pipeline bound last.
    pub bound: vk::Pipeline,
    /// The descriptor set bound last.
    pub bound_set: vk::DescriptorSet,
    /// Descriptor sets.
    pub sets: Sets,
    /// Memory in use.
    pub memories: Vec<Arc<dyn Memory>>,
    /// Images in use.
    pub images: Vec<Arc<dyn DeviceImage>>,
    /// Kernels in use.
    pub pipelines: Vec<Arc<dyn Pipeline>>,
    /// The objects that the caller keeps alive by it.
    pub others: Vec<Arc<dyn Any + Send + Sync>>,
    /// The semaphores that it waits for.
    pub waits: SmallVec<[Wait; 4]>,
    /// Shared semaphores that it waits for; `others` keeps them.
    pub shared_waits: SmallVec<[vk::Semaphore; 1]>,
    /// Shared semaphores that it signals.
    pub shared_signals: SmallVec<[vk::Semaphore; 1]>,
    staging: Vec<Arc<VulkanMemory>>,
    staged: u64,
    /// Room for the regions of a copy.
    pub regions: Vec<vk::BufferCopy>,
}

impl Batch {
    /// Creates an empty one. `repeatable`: for a sequence ([`crate::backend::Sequence`]).
    pub fn new(tools: &Arc<Tools>, repeatable: bool) -> Result<Self> {
        let device = &tools.device;
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(device.adapter.queue_family.index);
        // SAFETY: the device lives; the family is the one its queues are of.
        let pool = unsafe { device.raw.create_command_pool(&info, None) }
            .map_err(|result| device.failed("vkCreateCommandPool", result))?;
        let level = match repeatable {
            true => vk::CommandBufferLevel::SECONDARY,
            false => vk::CommandBufferLevel::PRIMARY,
        };
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(level)
            .command_buffer_count(1);
        // SAFETY: the pool was just made and is used by this thread alone.
        let made = unsafe { device.raw.allocate_command_buffers(&info) };
        let commands = match made.as_deref() {
            Ok([commands]) => *commands,
            other => {
                let result = other
                    .err()
                    .copied()
                    .unwrap_or(vk::Result::ERROR_OUT_OF_HOST_MEMORY);
                // SAFETY: nothing was made from the pool.
                unsafe { device.raw.destroy_command_pool(pool, None) };
                return Err(device.failed("vkAllocateCommandBuffers", result));
            }
        };
        Ok(Self {
            tools: Arc::clone(tools),
            pool,
            events: Vec::new(),
            marks: Vec::new(),
            commands,
            transitions: None,
            id: tools.new_batch_id(),
            begun: false,
            repeatable,
            used: false,
            dirty: false,
            value: 0,
            operations: 0,
            marked_operations: 0,
            writes_host_memory: false,
            writes_shown_memory: false,
            bound: vk::Pipeline::null(),
            bound_set: vk::DescriptorSet::null(),
            sets: Sets::default(),
            memories: Vec::new(),
            images: Vec::new(),
            pipelines: Vec::new(),
            others: Vec::new(),
            waits: SmallVec::new(),
            shared_waits: SmallVec::new(),
            shared_signals: SmallVec::new(),
            staging: Vec::new(),
            staged: 0,
            regions: Vec::new(),
        })
    }

    /// Begins recording, if it has not begun.
    pub fn begin(&mut self) -> Result {
        let device = &self.tools.device;
        if self.begun {
            return Ok(());
        }
        if self.dirty {
            // SAFETY: the commands are not pending: the batch has completed or was never submitted.
            unsafe {
                device
                    .raw
                    .reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty())
            }
            .map_err(|result| device.failed("vkResetCommandPool", result))?;
            self.dirty = false;
        }
        let inherited = vk::CommandBufferInheritanceInfo::default();
        let info = match self.repeatable {
            true => vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
                .inheritance_info(&inherited),
            false => vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT),
        };
        // SAFETY: the command buffer is not pending: the batch is new, or has completed and was reset.
        unsafe { device.raw.begin_command_buffer(self.commands, &info) }
            .map_err(|result| device.failed("vkBeginCommandBuffer", result))?;
        self.begun = true;
        Ok(())
    }

    /// Allocates a command buffer.
    fn allocate(&self) -> Result<vk::CommandBuffer> {
        let device = &self.tools.device;
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is used by this thread alone.
        unsafe { device.raw.allocate_command_buffers(&info) }
            .map_err(|result| device.failed("vkAllocateCommandBuffers", result))?
            .first()
            .copied()
            .ok_or(DeviceError::OutOfHostMemory)
    }

    /// Ends the command buffer, if anything is in it.
    pub fn end(&self) -> Result {
        if !self.used {
            return Ok(());
        }
        let device = &self.tools.device;
        if self.writes_host_memory {
            barrier::before_host(device, self.commands);
        }
        // SAFETY: the command buffer is being recorded by this thread.
        unsafe { device.raw.end_command_buffer(self.commands) }
            .map_err(|result| device.failed("vkEndCommandBuffer", result))
    }

    /// Makes the device set an event for `value` when all commands recorded so far are complete.
    /// Without an event for it, the value completes with the commands recorded next.
    pub fn mark(&mut self, value: u64) {
        let device = &self.tools.device;
        let event = match self.events.get(self.marks.len()) {
            Some(event) => *event,
            None => {
                let info = vk::EventCreateInfo::default();
                // SAFETY: the device lives.
                let Ok(event) = (unsafe { device.raw.create_event(&info, None) }) else {
                    return;
                };
                self.events.push(event);
                event
            }
        };
        if std::mem::take(&mut self.writes_shown_memory) {
            barrier::before_host(device, self.commands);
        }
        // SAFETY: the command buffer is being recorded by this thread; the event is reset, and nothing else sets it.
        unsafe { (device.raw).cmd_set_event(self.commands, event, barrier::STAGES) };
        self.marks.push(Mark { value, event });
        self.marked_operations = self.operations;
    }

    /// Returns true if there are operations after the last mark. Barriers alone do not count: they
    /// complete with the operations that follow.
    pub fn has_open_operations(&self) -> bool {
        self.operations > self.marked_operations
    }

    /// Returns a second command buffer, which transitions new images to their layout. The batch
    /// keeps them.
    pub fn transition(&mut self, pending: &PendingTransitions<'_>) -> Result<vk::CommandBuffer> {
        self.begin()?;
        let device = &self.tools.device;
        let commands = match self.transitions {
            Some(commands) => commands,
            None => self.allocate()?,
        };
        self.transitions = Some(commands);
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not pending: its pool was reset since it was used last.
        unsafe { device.raw.begin_command_buffer(commands, &info) }
            .map_err(|result| device.failed("vkBeginCommandBuffer", result))?;
        // SAFETY: recorded by this thread.
        unsafe { pending.record(device, commands) };
        // SAFETY: as above.
        unsafe { device.raw.end_command_buffer(commands) }
            .map_err(|result| device.failed("vkEndCommandBuffer", result))?;
        for texels in &pending.images {
            self.others.push(texels.clone());
        }
        Ok(commands)
    }

    /// Releases all resources for the next use. The batch must have completed or never been
    /// submitted.
    pub fn recycle(&mut self) {
        self.sets.reset(&self.tools.device);
        self.memories.clear();
        self.images.clear();
        self.pipelines.clear();
        self.others.clear();
        self.waits.clear();
        self.shared_waits.clear();
        self.shared_signals.clear();
        self.staging.truncate(1);
        self.staged = 0;
        self.operations = 0;
        self.marked_operations = 0;
        self.writes_host_memory = false;
        self.writes_shown_memory = false;
        self.bound = vk::Pipeline::null();
        self.bound_set = vk::DescriptorSet::null();
        self.id = self.tools.new_batch_id();
        self.dirty |= self.begun || self.transitions.is_some();
        for mark in self.marks.drain(..) {
            let raw = &self.tools.device.raw;
            // SAFETY: no pending command sets the event, and no timeline asks for it any more.
            if unsafe { raw.reset_event(mark.event) }.is_err() {
                // Else what it marks next would count as complete at once.
                self.events.retain(|event| *event != mark.event);
                // SAFETY: as above; it is in no list any more.
                unsafe { raw.destroy_event(mark.event, None) };
            }
        }
        self.begun = false;
        self.used = false;
    }

    /// Copies `data` (at most 64 KiB) to memory that lives as long as the batch. Returns the place, 16-byte aligned.
    pub fn stage(&mut self, data: &[u8]) -> Result<(vk::Buffer, u64)> {
        let length = data.len() as u64;
        if self.staging.is_empty() || self.staged + length > STAGING {
            let size = STAGING.max(length);
            let memory = memory::allocate(&self.tools.heaps, size, Placement::HostWrite)?;
            self.staging.push(memory);
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

impl Drop for Batch {
    fn drop(&mut self) {
        let device = &self.tools.device;
        self.sets.destroy(device);
        for event in self.events.drain(..) {
            // SAFETY: no pending command sets it, as below; destroyed once.
            unsafe { device.raw.destroy_event(event, None) };
        }
        // SAFETY: the commands are not pending: the stream has waited for its last batch, or the batch has completed or
        // was never submitted. The pool takes its command buffers along.
        unsafe { device.raw.destroy_command_pool(self.pool, None) };
    }
}
