//! What a batch consists of, and how it is run.

use super::code::CpuPipeline;
use super::copy;
use super::image::Descriptor;
use super::launch;
use super::pool::Pool;
use super::texel_copy;
use super::timeline::CpuTimeline;
use crate::backend::image::ImageRegion;
use crate::backend::{BufferCopy, Call, Image, Memory, Pipeline, Times};
use crate::util::lock::{rank, Mutex};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::any::Any;
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

/// A launch.
pub struct Dispatch {
    pub pipeline: Arc<dyn Pipeline>,
    pub groups: [u32; 3],
    /// Where instead the numbers of work-groups stand, three words in each 16 bytes.
    pub indirect: Option<MemoryRange>,
    pub push: Push,
    pub descriptors: Vec<Descriptor>,
    /// Where kernels are checked: begin and end of the memory that the launch was given. Empty: it may access any.
    pub given: Vec<(u64, u64)>,
}

/// An operation. Launches, of which there are most, are in place: batches are used again, and with them this memory.
#[allow(clippy::large_enum_variant)]
pub enum Action {
    Dispatch(Dispatch),
    Copy(MemoryRange, MemoryRange, BufferCopy),
    Fill(MemoryRange, SmallVec<[u8; 16]>),
    Update(MemoryRange, Box<[u8]>),
    ImageToMemory(Arc<dyn Image>, ImageRegion, MemoryRange, u32, u32),
    MemoryToImage(MemoryRange, u32, u32, Arc<dyn Image>, ImageRegion),
    ImageCopy(Arc<dyn Image>, [u32; 3], Arc<dyn Image>, [u32; 3], [u32; 3]),
    Call(Arc<dyn Call>),
    Nothing,
}

/// An operation and where its times go.
pub struct TimedAction {
    pub action: Action,
    pub profile: Option<u64>,
}

/// Times of operations, by slot.
pub type AllTimes = Arc<Mutex<FxHashMap<u64, Times>, { rank::CPU_TIMES }>>;

/// Operations that are submitted together.
#[derive(Default)]
pub struct Batch {
    pub steps: Vec<TimedAction>,
    /// Values of other streams' timelines.
    pub waits: SmallVec<[(Arc<CpuTimeline>, u64); 2]>,
    /// The value when it has completed.
    pub value: u64,
    pub memories: Vec<Arc<dyn Memory>>,
    pub images: Vec<Arc<dyn Image>>,
    pub others: Vec<Arc<dyn Any + Send + Sync>>,
    pub times: Option<AllTimes>,
}

impl Batch {
    /// Lets go of everything, to be used again.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.waits.clear();
        self.memories.clear();
        self.images.clear();
        self.others.clear();
    }

    /// Runs all operations in their order. False: one could not be done, and the rest was left.
    #[must_use]
    pub fn run(&self, pool: &Arc<Pool>) -> bool {
        for step in &self.steps {
            let Some(slot) = step.profile else {
                if !step.action.run(pool) {
                    return false;
                }
                continue;
            };
            let start = crate::util::monotonic_ns();
            if !step.action.run(pool) {
                return false;
            }
            let end = crate::util::monotonic_ns();
            if let Some(times) = &self.times {
                times.lock().insert(slot, Times { start, end });
            }
        }
        true
    }
}

impl Action {
    /// False: it could not be done.
    fn run(&self, pool: &Arc<Pool>) -> bool {
        match self {
            Self::Dispatch(dispatch) => {
                let Some(pipeline) = dispatch.pipeline.as_any().downcast_ref::<CpuPipeline>()
                else {
                    return false;
                };
                let one = |groups: [u32; 3]| {
                    launch::run(
                        pool,
                        pipeline,
                        groups,
                        &dispatch.push,
                        &dispatch.descriptors,
                        &dispatch.given,
                    )
                };
                return match &dispatch.indirect {
                    None => one(dispatch.groups),
                    Some(place) => {
                        (0..place.size / 16).all(|at| {
                            // SAFETY: within the range, which the batch keeps.
                            one(unsafe {
                                place
                                    .pointer
                                    .cast::<[u32; 4]>()
                                    .add(at as usize)
                                    .cast::<[u32; 3]>()
                                    .read()
                            })
                        })
                    }
                };
            }
            // SAFETY: the caller of the back end has validated ranges; the batch keeps the memory.
            Self::Copy(src, dst, region) => unsafe {
                copy::copy(pool, src.pointer, dst.pointer, region);
            },
            // SAFETY: as above.
            Self::Fill(dst, pattern) => unsafe { copy::fill(dst.pointer, dst.size, pattern) },
            // SAFETY: as above.
            Self::Update(dst, data) => unsafe {
                let bytes = data.len().min(dst.size as usize);
                std::ptr::copy_nonoverlapping(data.as_ptr(), dst.pointer, bytes);
            },
            // SAFETY: as above.
            Self::ImageToMemory(image, region, dst, row, slice) => unsafe {
                texel_copy::image_to_memory(image.as_ref(), region, dst.pointer, *row, *slice);
            },
            // SAFETY: as above.
            Self::MemoryToImage(src, row, slice, image, region) => unsafe {
                texel_copy::memory_to_image(src.pointer, *row, *slice, image.as_ref(), region);
            },
            // SAFETY: as above.
            Self::ImageCopy(src, from, dst, to, size) => unsafe {
                texel_copy::image_copy(src.as_ref(), *from, dst.as_ref(), *to, *size);
            },
            Self::Call(work) => work.call(),
            Self::Nothing => {}
        }
        true
    }
}
