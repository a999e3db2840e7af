//! Runs a launch: work-groups in any order, on as many threads as they are worth.

use super::abi::Launch;
use super::check::LaunchArgs;
use super::code::CpuPipeline;
use super::image::Descriptor;
use super::pool::{Pool, Shared};
use super::scratch;
use crate::backend::{DeviceError, Result};
use crate::util::sync;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Less work than this, in nanoseconds, is not worth waking a thread.
const ALONE: f32 = 12_000.0;
/// A thread takes work for about so long at a time.
const PIECE: f32 = 50_000.0;

/// A launch that threads share.
struct Groups<'a> {
    pipeline: &'a CpuPipeline,
    launch: &'a Launch,
    /// Some work-groups were not run, for want of memory.
    failed: AtomicBool,
    /// Set when no more work-groups are to begin.
    stop: Option<&'a sync::AtomicBool>,
}

impl Groups<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

// SAFETY: what the launch points to is not written while it runs.
unsafe impl Send for Groups<'_> {}
// SAFETY: as above.
unsafe impl Sync for Groups<'_> {}

impl Shared for Groups<'_> {
    fn run(&self, first: u64, count: u64) {
        let p = self.pipeline;
        let done = scratch::with(p.local_bytes, p.frames_bytes, |local, frames| {
            let run = |first, count| {
                // SAFETY: the code is that of the pipeline and the launch was made for it; the runtime has checked the
                // arguments as far as it can, and memory is this thread's own.
                unsafe { (p.variant.entry())(self.launch, local, frames, first, count) };
            };
            let mut at_once = match (p.zero_local, self.stop) {
                (true, _) => 1,
                (false, Some(_)) => p.at_once.max(1),
                (false, None) => return run(first, count),
            };
            let end = first + count;
            let mut group = first;
            while group < end && !self.is_stopped() {
                if p.zero_local {
                    // SAFETY: memory of that size, which nothing else uses.
                    unsafe { local.write_bytes(0, p.local_bytes) };
                }
                at_once = at_once.min(end - group);
                run(group, at_once);
                group += at_once;
            }
        });
        if !done {
            self.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs all work-groups of a launch, unless `stop` ends that. An error means that some were not run.
pub fn run(
    pool: &Arc<Pool>,
    pipeline: &CpuPipeline,
    groups: [u32; 3],
    push: &[u64],
    descriptors: &[Descriptor],
    given: &[(u64, u64)],
    stop: Option<&sync::AtomicBool>,
) -> Result {
    let total = groups.iter().map(|&n| u64::from(n)).product::<u64>();
    if total == 0 {
        return Ok(());
    }
    if let Some(checked) = &pipeline.checked {
        // SAFETY: of the same words, which live.
        let bytes = unsafe { std::slice::from_raw_parts(push.as_ptr().cast(), size_of_val(push)) };
        let args = LaunchArgs {
            local_args: &checked.local_args,
            push: bytes,
            descriptors,
            given,
        };
        // SAFETY: the runtime has checked the arguments as far as it can, as for the code.
        if unsafe { checked.kernel.run(groups, pipeline.local_size, args) } {
            return Ok(());
        }
    }
    let launch = Launch {
        groups,
        local_size: pipeline.local_size,
        push: push.as_ptr().cast(),
        bindings: descriptors.as_ptr(),
        local_args: pipeline.local_args.as_ptr(),
        local_ids: pipeline.local_ids.as_ptr(),
        local_ids_stride: pipeline.local_ids_stride,
        packs: pipeline.packs,
        frame_bytes: pipeline.frame_bytes,
    };
    let work = Groups {
        pipeline,
        launch: &launch,
        failed: AtomicBool::new(false),
        stop,
    };
    run_groups(pool, &work, total);
    // Those who ran some have said that they are done.
    match (work.is_stopped(), work.failed.into_inner()) {
        (true, _) => Err(DeviceError::Terminated),
        (_, true) => Err(DeviceError::OutOfHostMemory),
        _ => Ok(()),
    }
}

/// Runs all groups, in this thread or in several.
fn run_groups(pool: &Arc<Pool>, work: &Groups<'_>, total: u64) {
    let pipeline = work.pipeline;
    let items = pipeline.local_size.iter().product::<u32>().max(1) as f32;
    let cost = &pipeline.variant.cost;
    let known = f32::from_bits(cost.load(Ordering::Relaxed)) * items;
    let cores = pool.cores() as u64;
    let start = crate::util::monotonic_ns();
    if cores == 1 || total == 1 || (known > 0.0 && known * total as f32 <= ALONE) {
        work.run(0, total);
        learn(pipeline, start, total as f32 * items, 1.0);
        return;
    }
    // What is not known yet is found out with the first groups.
    let mut first = 0;
    let mut group = known;
    if known <= 0.0 {
        first = pipeline.at_once.min(total);
        work.run(0, first);
        group = learn(pipeline, start, items * first as f32, 1.0) * items;
    }
    let left = total - first;
    if group * left as f32 <= ALONE {
        work.run(first, left);
        return;
    }
    let most = (left / (4 * cores)).max(1);
    let chunk = (PIECE / group.max(0.01)) as u64;
    let chunk = chunk.clamp(1, most).next_multiple_of(pipeline.at_once);
    let rest = Rest { work, first };
    let start = crate::util::monotonic_ns();
    pool.run_shared(&rest, left, chunk);
    learn(pipeline, start, left as f32 * items, cores as f32);
}

/// All but the first groups.
struct Rest<'a> {
    work: &'a Groups<'a>,
    first: u64,
}

impl Shared for Rest<'_> {
    fn run(&self, first: u64, count: u64) {
        self.work.run(self.first + first, count);
    }
}

/// Records the time of a work-item on one thread, and returns it in nanoseconds.
fn learn(pipeline: &CpuPipeline, start: u64, items: f32, threads: f32) -> f32 {
    let now = (crate::util::monotonic_ns() - start) as f32 * threads / items;
    let cost = &pipeline.variant.cost;
    let old = f32::from_bits(cost.load(Ordering::Relaxed));
    let new = if old > 0.0 {
        0.75 * old + 0.25 * now
    } else {
        now
    };
    cost.store(new.max(1e-6).to_bits(), Ordering::Relaxed);
    new
}
