//! How the host learns that a batch is done, other than by its timeline semaphore.
//!
//! A semaphore is signalled after a batch and may be dear to ask for. So a batch can leave a *mark* as its last command:
//! its value in a word of host-visible memory, or a set event. Marks tell of results; command buffers and what else
//! Vulkan calls pending until the semaphore is signalled are reclaimed by the semaphore alone.
//!
//! Invariant: all batches of a stream run on one queue, so a mark also stands for those before it.

use super::conv::During;
use super::device::Shared;
use super::memory::{self, VulkanMemory};
use crate::backend::{Memory, Placement, Result};
use ash::vk;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// Which marks batches leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// None: the semaphore is asked.
    Semaphore,
    /// The low half of the batch's value, in a word of memory.
    Word,
    /// A set event.
    Event,
}

impl Completion {
    /// What `PUMICE_COMPLETION` says, or else `default`.
    pub fn wanted(default: Self) -> Self {
        match crate::util::config::get().completion.as_deref() {
            Some("semaphore") => Self::Semaphore,
            Some("word") => Self::Word,
            Some("event") => Self::Event,
            Some(other) => {
                crate::log!(
                    Error,
                    "PUMICE_COMPLETION={other}: semaphore, word or event?"
                );
                default
            }
            None => default,
        }
    }
}

enum Kind {
    Word(Arc<VulkanMemory>),
    Event {
        /// In flight, oldest first.
        set: Mutex<VecDeque<(u64, vk::Event)>>,
        spare: Mutex<Vec<vk::Event>>,
    },
}

/// The marks of one stream.
pub struct Marks {
    kind: Kind,
    /// The last value that was submitted with a mark.
    submitted: AtomicU64,
    /// The highest value whose mark was seen.
    seen: AtomicU64,
}

impl Marks {
    /// For a new stream; none if the semaphore is to be asked.
    pub fn new(shared: &Arc<Shared>, how: Completion) -> Result<Option<Self>> {
        let kind = match how {
            Completion::Semaphore => return Ok(None),
            Completion::Word => {
                let memory = memory::allocate(shared, 16, Placement::HostRead)?;
                if let Some(pointer) = memory.mapped() {
                    // SAFETY: mapped, 16 bytes, aligned to 256; no work uses it yet.
                    unsafe { pointer.as_ptr().write_bytes(0, 16) };
                }
                Kind::Word(memory)
            }
            Completion::Event => Kind::Event {
                set: Mutex::default(),
                spare: Mutex::default(),
            },
        };
        Ok(Some(Self {
            kind,
            submitted: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        }))
    }

    /// Records the mark of the batch `value` as the last of its commands. `stages` and `writes` are what the batch's
    /// commands run in and write with.
    pub fn record(
        &self,
        shared: &Shared,
        commands: vk::CommandBuffer,
        value: u64,
        stages: vk::PipelineStageFlags,
        writes: vk::AccessFlags,
    ) -> Result {
        let (transfer, host) = (
            vk::PipelineStageFlags::TRANSFER,
            vk::PipelineStageFlags::HOST,
        );
        let barrier = |from, to, src, dst| {
            let barrier = [vk::MemoryBarrier::default()
                .src_access_mask(src)
                .dst_access_mask(dst)];
            let flags = vk::DependencyFlags::empty();
            // SAFETY: the command buffer is being recorded by this thread.
            unsafe {
                shared
                    .raw
                    .cmd_pipeline_barrier(commands, from, to, flags, &barrier, &[], &[])
            };
        };
        match &self.kind {
            Kind::Word(memory) => {
                let (written, read) = (vk::AccessFlags::TRANSFER_WRITE, vk::AccessFlags::HOST_READ);
                barrier(stages, transfer | host, writes, written | read);
                let word = (value as u32).to_ne_bytes();
                // SAFETY: the command buffer is being recorded by this thread; the buffer has four bytes there and
                // lives as long as the stream.
                unsafe {
                    shared
                        .raw
                        .cmd_update_buffer(commands, memory.buffer, memory.offset, &word)
                };
                barrier(transfer, host, written, read);
            }
            Kind::Event { set, spare } => {
                barrier(stages, host, writes, vk::AccessFlags::HOST_READ);
                let event = match spare.lock().pop() {
                    Some(event) => event,
                    None => {
                        let info = vk::EventCreateInfo::default();
                        // SAFETY: the device lives.
                        unsafe { shared.raw.create_event(&info, None) }.during("vkCreateEvent")?
                    }
                };
                // SAFETY: the command buffer is being recorded by this thread; the event is reset and its own.
                unsafe { shared.raw.cmd_set_event(commands, event, stages) };
                set.lock().push_back((value, event));
            }
        }
        Ok(())
    }

    /// The batch of that value was submitted.
    pub fn note_submitted(&self, value: u64) {
        self.submitted.store(value, Ordering::Release);
    }

    /// The batch of that value could not be submitted.
    pub fn forget(&self, shared: &Shared, value: u64) {
        if let Kind::Event { set, spare } = &self.kind {
            let mut set = set.lock();
            if set.back().is_some_and(|(last, _)| *last == value) {
                if let Some((_, event)) = set.pop_back() {
                    self.reset(shared, event, spare);
                }
            }
        }
    }

    fn reset(&self, shared: &Shared, event: vk::Event, spare: &Mutex<Vec<vk::Event>>) {
        // SAFETY: no pending work uses the event: its batch is over or was never submitted.
        if unsafe { shared.raw.reset_event(event) }.is_ok() {
            spare.lock().push(event);
        } else {
            // SAFETY: the same.
            unsafe { shared.raw.destroy_event(event, None) };
        }
    }

    /// The semaphore has reached `value`: the marks up to it are not pending any more.
    pub fn retire(&self, shared: &Shared, value: u64) {
        if let Kind::Event { set, spare } = &self.kind {
            let mut set = set.lock();
            while set.front().is_some_and(|(known, _)| *known <= value) {
                if let Some((_, event)) = set.pop_front() {
                    self.reset(shared, event, spare);
                }
            }
        }
    }

    /// The last value submitted with a mark.
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Looks at the mark that tells of `value`, and gives the highest value known to be done.
    pub fn look(&self, shared: &Shared, value: u64) -> u64 {
        let seen = self.seen.load(Ordering::Acquire);
        if seen >= value {
            return seen;
        }
        let found = match &self.kind {
            Kind::Word(memory) => {
                let Some(pointer) = memory.mapped() else {
                    return seen;
                };
                // SAFETY: mapped memory of 16 bytes, aligned to 256, that lives as long as this; the device writes it
                // whole words at a time.
                let word = unsafe { AtomicU32::from_ptr(pointer.cast().as_ptr()) };
                let word = word.load(Ordering::Acquire);
                // The value near the last one submitted that has this low half.
                let last = self.submitted();
                last.saturating_sub(u64::from((last as u32).wrapping_sub(word)))
            }
            Kind::Event { set, .. } => {
                let set = set.lock();
                let mut found = 0;
                for (known, event) in set.iter().filter(|(known, _)| *known > seen) {
                    // SAFETY: the event lives while it is in the list.
                    match unsafe { shared.raw.get_event_status(*event) } {
                        Ok(true) => found = *known,
                        _ => break,
                    }
                    if found >= value {
                        break;
                    }
                }
                found
            }
        };
        self.seen.fetch_max(found, Ordering::AcqRel).max(found)
    }

    /// Destroys what no work uses any more.
    pub fn destroy(&mut self, shared: &Shared) {
        if let Kind::Event { set, spare } = &mut self.kind {
            let events = set.get_mut().drain(..).map(|(_, event)| event);
            for event in events.chain(spare.get_mut().drain(..)) {
                // SAFETY: the stream has waited for its last batch; destroyed once.
                unsafe { shared.raw.destroy_event(event, None) };
            }
        }
    }
}
