//! The host thread of a queue: what has to be done on the host after the device has done its part.
//!
//! One thread a queue, started when it is first needed. It receives tasks in the order of the queue's timeline, each
//! submitted already, waits for the timeline, does the task's work, completes its event and runs callbacks. Tasks with a
//! sequence number count as done in that order, which is what keeps the visible completion of an in-order queue in
//! order. It takes no lock while it waits or calls back.

use super::staging::Piece;
use crate::backend::BufferCopy;
use crate::cl::{self, cl_int};
use crate::error::ClError;
use crate::handle::Ref;
use crate::object::event::{now_ns, wake, Event, Owner, Progress};
use crate::object::mem::host_work::HostWork;
use crate::util::copy;
use crate::util::leaving::Call;
use crossbeam_channel::{Receiver, Sender};
use spirv_lowering::ir::module::PrintfSite;
use std::sync::Arc;

/// Work on the host.
pub enum Action {
    /// Copies from staging to where the application wants it. The source of the region counts from the piece.
    CopyOut {
        #[allow(missing_docs)]
        piece: Piece,
        /// Destination that the region counts from.
        base: usize,
        #[allow(missing_docs)]
        region: BufferCopy,
    },
    /// What a command says.
    Work(Arc<dyn HostWork>),
    /// Prints what a kernel has left in its printf buffer.
    Printf {
        #[allow(missing_docs)]
        piece: Piece,
        #[allow(missing_docs)]
        sites: Arc<Vec<PrintfSite>>,
    },
}

impl Action {
    /// Does it.
    pub fn run(&self) {
        match self {
            Self::CopyOut {
                piece,
                base,
                region,
            } => {
                // SAFETY: the piece holds the packed region, its batch is complete; the application keeps the
                // destination valid until the command has completed, which it does after this.
                unsafe { copy_region(piece.pointer, *base, region) }
            }
            Self::Work(work) => work.run(),
            Self::Printf { piece, sites } => {
                // SAFETY: staging memory of that size whose batch is complete.
                let bytes = unsafe {
                    std::slice::from_raw_parts(piece.pointer as *const u8, piece.size as usize)
                };
                super::printf::print(sites, bytes);
            }
        }
    }
}

/// Copies a region between two places in host memory.
///
/// # Safety
/// Every row of the region must be readable from `src` and writable from `dst` on.
pub unsafe fn copy_region(src: usize, dst: usize, region: &BufferCopy) {
    for slice in 0..region.slices {
        for row in 0..region.rows {
            let from =
                region.src_offset + slice * region.src_slice_pitch + row * region.src_row_pitch;
            let to =
                region.dst_offset + slice * region.dst_slice_pitch + row * region.dst_row_pitch;
            let (from, to) = (
                src.wrapping_add(from as usize),
                dst.wrapping_add(to as usize),
            );
            // SAFETY: the caller vouches for every row.
            unsafe { copy::copy(from, to, region.bytes as usize) };
        }
    }
}

/// A task for the host thread.
pub struct Task {
    /// To be done when the timeline has reached this.
    pub value: u64,
    /// Its number, 0: not counted.
    pub seq: u64,
    /// What to do.
    pub action: Option<Action>,
    /// The event to complete.
    pub event: Option<Ref<Event>>,
    /// The queue, kept alive until the task is done.
    pub owner: Arc<dyn Owner>,
    /// The batch could not be submitted.
    pub failed: Option<cl_int>,
}

/// Starts the thread of a queue.
pub fn start(progress: Arc<Progress>) -> std::io::Result<Sender<Task>> {
    let (sender, receiver) = crossbeam_channel::unbounded();
    std::thread::Builder::new()
        .name("pumice-host".into())
        .spawn(move || run(&receiver, &progress))?;
    Ok(sender)
}

fn run(tasks: &Receiver<Task>, progress: &Arc<Progress>) {
    for task in tasks {
        let Task {
            value,
            seq,
            action,
            event,
            owner,
            failed,
        } = task;
        let Some(_call) = Call::enter() else {
            // The process is ending; what holds on to memory of the device is left.
            let after = event
                .as_ref()
                .map(|event| event.settle(cl::CL_OUT_OF_RESOURCES));
            std::mem::forget((after, action, event, owner));
            continue;
        };
        let status = match failed {
            Some(code) => code,
            None => {
                if let Some(event) = &event {
                    event.submitted_callbacks().run();
                }
                match progress.timeline.wait(value, None) {
                    Ok(_) => cl::CL_COMPLETE as cl_int,
                    Err(error) => ClError::from(error).code,
                }
            }
        };
        if let (Some(action), true) = (&action, status >= 0) {
            action.run();
            if let (Some(event), true) = (&event, owner.profiling()) {
                event.set_host_end(now_ns());
            }
        }
        drop(action);
        let after = event.as_ref().map(|event| event.settle(status));
        if seq > 0 {
            progress.set_host_done(seq);
        }
        if let Some(after) = after {
            after.run();
        }
        if seq > 0 && progress.held() > 0 {
            wake([owner.clone()]);
        }
        drop(event);
        // This may be the last reference to the queue, whose end also ends this thread.
        drop(owner);
    }
}
