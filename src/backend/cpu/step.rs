//! Batches: the steps of commands, and how they are run.

use super::code::CpuPipeline;
use super::copy;
use super::image::Descriptor;
use super::launch;
use super::memory;
use super::pool::Pool;
use super::texel_copy;
use super::timeline::{CpuTimeline, Due, Running};
use crate::backend::image::ImageRegion;
use crate::backend::{
    BufferCopy, Call, DeviceError, DeviceImage, Memory, Pipeline, Result, Sequence, Timeline, Times,
};
use crate::util::guard::guarded;
use crate::util::lock::{rank, Mutex};
use crate::util::sync::AtomicBool;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// A range of memory that the batch keeps.
pub struct MemoryRange {
    pub pointer: *mut u8,
    pub size: u64,
}

// SAFETY: a plain address; the batch keeps the memory and the runtime the order of accesses.
unsafe impl Send for MemoryRange {}

/// The argument block, aligned for all that stands in it.
pub type Push = SmallVec<[u64; 16]>;

/// A dispatch of work-groups.
pub struct CpuDispatch {
    pub pipeline: Arc<dyn Pipeline>,
    pub groups: [u32; 3],
    pub push: Push,
    pub descriptors: Vec<Descriptor>,
    /// Where kernels are checked: begin and end of the memory that the launch was given. Empty: it may access any.
    pub given: Vec<(u64, u64)>,
}

/// An operation. Launches, of which there are most, are in place: batches are used again, and with them this memory.
#[allow(clippy::large_enum_variant)]
pub enum StepAction {
    Dispatch(CpuDispatch),
    Copy(MemoryRange, MemoryRange, BufferCopy),
    Fill(MemoryRange, SmallVec<[u8; 16]>),
    Update(MemoryRange, Box<[u8]>),
    CopyTexels(
        Arc<dyn DeviceImage>,
        ImageRegion,
        MemoryRange,
        (u32, u32),
        bool,
    ),
    ImageCopy(
        Arc<dyn DeviceImage>,
        [u32; 3],
        Arc<dyn DeviceImage>,
        [u32; 3],
        [u32; 3],
    ),
    Call(Arc<dyn Call>),
    /// Takes memory over from others, or (false) hands it over to them.
    Handover(Arc<dyn Memory>, bool),
    Sequence(Arc<dyn Sequence>),
    Nothing,
}

/// Recorded operations that run one after the other, with all that they use.
pub struct CpuSequence(pub Batch);

// SAFETY: its addresses are plain, the batch keeps the memory, and nothing in it changes while it runs.
unsafe impl Sync for CpuSequence {}

impl Sequence for CpuSequence {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// An operation of a command, and where its times go.
pub struct Step {
    pub action: StepAction,
    pub profile: Option<u64>,
    /// The value of the timeline when the command is complete.
    pub value: u64,
}

/// A point of another timeline, or of the stream's own, that the command which begins with a step waits for.
pub struct StepWait {
    pub step: usize,
    pub timeline: Arc<CpuTimeline>,
    pub value: u64,
}

/// Times of operations, by slot.
pub type AllTimes = Arc<Mutex<FxHashMap<u64, Times>, { rank::CPU_TIMES }>>;

/// Commands that are submitted together, and how many of their steps have run.
#[derive(Default)]
pub struct Batch {
    pub steps: Vec<Step>,
    /// In the order of their steps.
    pub waits: Vec<StepWait>,
    pub memories: Vec<Arc<dyn Memory>>,
    pub images: Vec<Arc<dyn DeviceImage>>,
    pub others: Vec<Arc<dyn Any + Send + Sync>>,
    pub times: Option<AllTimes>,
    next_step: usize,
    next_wait: usize,
    /// Why the command under way has failed.
    failed: Option<DeviceError>,
}

/// Why [`Batch::run`] has returned.
pub enum Stop {
    /// All commands have run. The last one is not complete on the timeline yet.
    Done,
    /// The next command is beyond the limit.
    Limit,
    /// The next command waits for this value of this timeline.
    Wait(Arc<CpuTimeline>, u64),
}

impl Batch {
    /// Creates a batch of steps.
    #[cfg(test)]
    pub fn of(steps: Vec<Step>) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }

    /// Releases everything, so that the batch can be used again.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.waits.clear();
        self.memories.clear();
        self.images.clear();
        self.others.clear();
        (self.next_step, self.next_wait, self.failed) = (0, 0, None);
    }

    /// Returns the value of the command that runs next.
    pub fn next_value(&self) -> Option<u64> {
        self.steps.get(self.next_step).map(|step| step.value)
    }

    /// Returns the value at which all commands are complete.
    pub fn last_value(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.value)
    }

    /// Returns the first point that the next command still waits for. The command fails if one that has
    /// been reached has failed.
    pub fn unmet_wait(&mut self) -> Option<(Arc<CpuTimeline>, u64)> {
        while let Some(wait) = self.waits.get(self.next_wait) {
            if wait.step != self.next_step {
                break;
            }
            if wait.timeline.reached() < wait.value {
                return Some((wait.timeline.clone(), wait.value));
            }
            match wait.timeline.failure(wait.value) {
                None => {}
                Some(DeviceError::Terminated) => self.failed = Some(DeviceError::Terminated),
                Some(_) => self.failed = Some(DeviceError::WaitFailed),
            }
            self.next_wait += 1;
        }
        None
    }

    /// Runs commands in their order, as far as those with values up to `limit`. Completes each on
    /// the timeline when it has run, but for the last one of the batch. Followers of what has completed
    /// are put into `due`, and notified before the next command runs.
    pub fn run(
        &mut self,
        limit: u64,
        pool: &Arc<Pool>,
        timeline: &CpuTimeline,
        due: &mut Due,
    ) -> Stop {
        while let Some(value) = self.next_value() {
            if value > limit {
                return Stop::Limit;
            }
            if let Some((timeline, value)) = self.unmet_wait() {
                return Stop::Wait(timeline, value);
            }
            due.notify();
            if self.failed.is_none() {
                self.failed = self.run_step(pool, timeline).err();
            }
            self.next_step += 1;
            let following = self.next_value();
            if following == Some(value) {
                continue;
            }
            if let Some(error) = self.failed.take() {
                if !timeline.is_terminated() {
                    crate::log!(Error, "a command has failed: {error}");
                }
                timeline.fail(value, error);
            }
            if following.is_some() {
                timeline.advance(value, due);
            }
        }
        Stop::Done
    }

    fn run_step(&self, pool: &Arc<Pool>, timeline: &CpuTimeline) -> Result {
        let Some(step) = self.steps.get(self.next_step) else {
            return Ok(());
        };
        let stop = timeline.stop();
        if stop.is_some() && !timeline.set_running(step.action.running()) {
            return Err(DeviceError::Terminated);
        }
        let mut result = Ok(());
        let run = || result = step.action.run(pool, stop);
        let start = step.profile.map(|_| crate::util::monotonic_ns());
        let over = guarded("a command", run);
        if stop.is_some() {
            timeline.set_running(Running::None);
        }
        if !over {
            return Err(DeviceError::Driver {
                call: "a command",
                code: "an internal error".to_owned(),
            });
        }
        if let (Some(slot), Some(start), Some(times)) = (step.profile, start, &self.times) {
            let end = crate::util::monotonic_ns();
            times.lock().insert(slot, Times { start, end });
        }
        result
    }
}

impl StepAction {
    /// Returns true if there is nothing to run.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Returns what runs while the operation does.
    fn running(&self) -> Running {
        match self {
            Self::Dispatch(_) | Self::Call(_) | Self::Sequence(_) => Running::Code,
            _ => Running::Brief,
        }
    }

    /// Runs the operation. `stop` ends a dispatch early, and a sequence.
    fn run(&self, pool: &Arc<Pool>, stop: Option<&AtomicBool>) -> Result {
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(DeviceError::Terminated);
        }
        match self {
            Self::Dispatch(dispatch) => {
                let Some(pipeline) = dispatch.pipeline.as_any().downcast_ref::<CpuPipeline>()
                else {
                    return Err(DeviceError::Unsupported("a foreign pipeline".to_owned()));
                };
                return launch::run(
                    pool,
                    pipeline,
                    dispatch.groups,
                    &dispatch.push,
                    &dispatch.descriptors,
                    &dispatch.given,
                    stop,
                );
            }
            // SAFETY: the caller of the back end has validated ranges; the batch keeps the memory.
            Self::Copy(src, dst, region) => unsafe {
                copy::copy(pool, src.pointer, dst.pointer, region);
            },
            // SAFETY: as above.
            Self::Fill(dst, pattern) => unsafe {
                copy::fill(pool, dst.pointer, dst.size, pattern);
            },
            // SAFETY: as above.
            Self::Update(dst, data) => unsafe {
                let bytes = data.len().min(dst.size as usize);
                std::ptr::copy_nonoverlapping(data.as_ptr(), dst.pointer, bytes);
            },
            // SAFETY: as above.
            Self::CopyTexels(image, region, memory, pitches, to_image) => unsafe {
                let memory = memory.pointer;
                texel_copy::copy_texels(image.as_ref(), region, memory, *pitches, *to_image);
            },
            // SAFETY: as above.
            Self::ImageCopy(src, from, dst, to, size) => unsafe {
                texel_copy::image_copy(src.as_ref(), *from, dst.as_ref(), *to, *size);
            },
            Self::Call(work) => work.call(),
            Self::Handover(memory, acquire) => memory::of(memory.as_ref())?.hand_over(*acquire),
            Self::Sequence(sequence) => {
                let Some(CpuSequence(batch)) = sequence.as_any().downcast_ref() else {
                    return Err(DeviceError::Unsupported("a foreign sequence".to_owned()));
                };
                // Behind one that fails the others do not run.
                return (batch.steps.iter()).try_for_each(|step| step.action.run(pool, stop));
            }
            Self::Nothing => {}
        }
        Ok(())
    }
}
