//! New images reach layout GENERAL before anything uses them.
//!
//! Two streams may use a new image at once, with no event between them: they may write different parts of it. So neither
//! can bring it to its layout among its own commands. Whichever stream submits next, whatever it uses, has the
//! transitions of all images made since go first, in a submission of their own that signals a semaphore; those that
//! submit to other queues wait for that until it is known to have happened. Nobody else pays for it: most of the time
//! there is no new image, which one load tells.

use super::barrier::STAGES;
use super::logical::LogicalDevice;
use super::texels::Texels;
use crate::backend::Result;
use crate::util::lock::{rank, Mutex, MutexGuard};
use ash::vk;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// The new images of a device.
#[derive(Default)]
pub struct Transitions {
    /// There are new images, or transitions that are not known to have happened.
    busy: AtomicBool,
    state: Mutex<State, { rank::TRANSITIONS }>,
}

#[derive(Default)]
struct State {
    new: Vec<Weak<Texels>>,
    /// A timeline; null until there is an image.
    semaphore: vk::Semaphore,
    /// Its value when all transitions submitted so far have happened.
    issued: u64,
    /// The queue that the last of them went to.
    queue: usize,
}

/// The transitions that a submission makes for new images. Other submissions wait until it is
/// dropped.
pub struct PendingTransitions<'a> {
    state: MutexGuard<'a, State>,
    queue: usize,
    /// To be brought to their layout first, and kept until that has happened.
    pub images: Vec<Arc<Texels>>,
    semaphore: [vk::Semaphore; 1],
    /// The value to wait for, if any.
    wait: SmallVec<[u64; 1]>,
    /// The value that the transitions signal.
    signal: [u64; 1],
}

impl Transitions {
    /// Adds the transition of a new image.
    pub fn add(&self, device: &LogicalDevice, texels: &Arc<Texels>) -> Result {
        let mut state = self.state.lock();
        if state.semaphore == vk::Semaphore::null() {
            let mut kind = vk::SemaphoreTypeCreateInfo::default()
                .semaphore_type(vk::SemaphoreType::TIMELINE)
                .initial_value(0);
            let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
            // SAFETY: the device lives and has timelineSemaphore enabled.
            state.semaphore = unsafe { device.raw.create_semaphore(&info, None) }
                .map_err(|result| device.failed("vkCreateSemaphore", result))?;
        }
        // Images that come and go without a submission must not pile up.
        if state.new.len() == state.new.capacity() {
            state.new.retain(|one| one.strong_count() > 0);
        }
        state.new.push(Arc::downgrade(texels));
        self.busy.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns the transitions that a submission to `queue` has to make first, if any.
    pub fn pending(
        &self,
        device: &LogicalDevice,
        queue: usize,
    ) -> Result<Option<PendingTransitions<'_>>> {
        if !self.busy.load(Ordering::Acquire) {
            return Ok(None);
        }
        let mut state = self.state.lock();
        let images: Vec<Arc<Texels>> = state
            .new
            .drain(..)
            .filter_map(|one| one.upgrade())
            .collect();
        let mut done = true;
        if state.issued > 0 {
            // SAFETY: a timeline semaphore of this device.
            let value = unsafe { device.raw.get_semaphore_counter_value(state.semaphore) }
                .map_err(|result| device.failed("vkGetSemaphoreCounterValue", result))?;
            done = value >= state.issued;
        }
        if images.is_empty() && done {
            self.busy.store(false, Ordering::Release);
            return Ok(None);
        }
        // On the same queue they come first in any case.
        let wait = (!done && state.queue != queue).then_some(state.issued);
        Ok(Some(PendingTransitions {
            queue,
            images,
            semaphore: [state.semaphore],
            wait: wait.into_iter().collect(),
            signal: [state.issued + 1],
            state,
        }))
    }

    /// Destroys the semaphore.
    ///
    /// # Safety
    /// No submission may be pending.
    pub unsafe fn destroy(&self, raw: &ash::Device) {
        let mut state = self.state.lock();
        // SAFETY: as promised; null is fine.
        unsafe { raw.destroy_semaphore(state.semaphore, None) };
        state.semaphore = vk::Semaphore::null();
    }
}

impl PendingTransitions<'_> {
    /// Returns the semaphores that a submission without new images waits for.
    pub fn waits(&self) -> impl Iterator<Item = (vk::Semaphore, u64)> + use<'_> {
        self.semaphore
            .iter()
            .copied()
            .zip(self.wait.iter().copied())
    }

    /// Returns the values of the transitions' submission.
    pub fn values(&self) -> vk::TimelineSemaphoreSubmitInfo<'_> {
        vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&self.wait)
            .signal_semaphore_values(&self.signal)
    }

    /// Returns the transitions' submission, which comes after those on another queue.
    pub fn submission<'a>(
        &'a self,
        commands: &'a [vk::CommandBuffer],
        values: &'a mut vk::TimelineSemaphoreSubmitInfo<'a>,
    ) -> vk::SubmitInfo<'a> {
        vk::SubmitInfo::default()
            .wait_semaphores(&self.semaphore[..self.wait.len()])
            .wait_dst_stage_mask(&[STAGES][..self.wait.len()])
            .command_buffers(commands)
            .signal_semaphores(&self.semaphore)
            .push_next(values)
    }

    /// Records the transitions.
    ///
    /// # Safety
    /// The command buffer must be recorded by this thread.
    pub unsafe fn record(&self, device: &LogicalDevice, commands: vk::CommandBuffer) {
        let barriers: Vec<_> = self
            .images
            .iter()
            .map(|texels| {
                vk::ImageMemoryBarrier::default()
                    .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)
                    .old_layout(vk::ImageLayout::UNDEFINED)
                    .new_layout(vk::ImageLayout::GENERAL)
                    .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                    .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                    .image(texels.raw)
                    .subresource_range(
                        vk::ImageSubresourceRange::default()
                            .aspect_mask(vk::ImageAspectFlags::COLOR)
                            .level_count(1)
                            .layer_count(vk::REMAINING_ARRAY_LAYERS),
                    )
            })
            .collect();
        // SAFETY: as promised by the caller; nothing has used the images before.
        unsafe {
            device.raw.cmd_pipeline_barrier(
                commands,
                vk::PipelineStageFlags::TOP_OF_PIPE,
                STAGES,
                vk::DependencyFlags::empty(),
                &[],
                &[],
                &barriers,
            );
        }
    }

    /// Records that the transitions were submitted.
    pub fn done(mut self) {
        if !std::mem::take(&mut self.images).is_empty() {
            self.state.issued += 1;
            self.state.queue = self.queue;
        }
    }
}

impl Drop for PendingTransitions<'_> {
    fn drop(&mut self) {
        // What was not submitted is for others to do.
        let images = std::mem::take(&mut self.images);
        self.state.new.extend(images.iter().map(Arc::downgrade));
    }
}
