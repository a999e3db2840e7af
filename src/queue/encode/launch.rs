//! Launches of kernels in a queue: the memory objects that they use, and what the host does when they have ended.

use super::dispatches::{record_launch, Uses};
use super::recorder::Recorder;
use super::{Encoding, How, Stop};
use crate::backend::{Op, Use};
use crate::command::Launch;
use crate::error::ClResult;
use crate::handle::Object;
use crate::queue::device_enqueue::LaunchTree;
use crate::queue::hazards::QueuePosition;
use crate::queue::host::print_buffers::PrintBuffer;
use crate::queue::host::HostAction;
use crate::queue::pending::Slots;
use crate::queue::state::QueueState;
use crate::queue::transfer::staging::Piece;
use crate::queue::Queue;
use smallvec::SmallVec;
use spirv_lowering::ir::module::PrintfSite;
use std::sync::Arc;

/// The open batch of a queue.
struct InQueue<'a> {
    queue: &'a Object<Queue>,
    state: &'a mut QueueState,
    profile: bool,
    slots: Slots,
}

impl Recorder for InQueue<'_> {
    fn room(&mut self, size: u64) -> ClResult<Piece> {
        self.queue.argument_piece(self.state, size)
    }

    fn print_buffer(&mut self, sites: &Arc<Vec<PrintfSite>>) -> ClResult<PrintBuffer> {
        let device = &self.queue.target.device.backend;
        self.state.printing.take(device.as_ref(), sites)
    }

    fn barrier(&mut self) -> ClResult {
        self.state.unordered_barrier()
    }

    fn record(&mut self, op: Op<'_>, timed: bool) -> ClResult {
        self.slots
            .extend(self.state.record(op, self.profile && timed)?);
        Ok(())
    }
}

impl Object<Queue> {
    /// Encodes a launch of a kernel.
    pub(super) fn encode_launch(
        &self,
        state: &mut QueueState,
        launch: &Launch,
        how: How,
    ) -> Encoding {
        let index = self.target.memory;
        let kernel = &launch.kernel;
        let interface = kernel.code.interface();
        let prints = kernel.printf.is_some() && interface.uses_printf;
        if prints || kernel.kept.is_some() || kernel.enqueues.is_some() {
            state.host_thread()?;
        }
        if prints && state.printing.many() {
            // When the oldest of them has been printed.
            if let Some(host_seq) = state.first_print_task() {
                return Err(Stop::until(QueuePosition { value: 0, host_seq }));
            }
        }
        let mut uses = Uses::new();
        for (mem, access) in &kernel.buffers {
            uses.push(Use {
                slice: mem.slice(index, 0, mem.size as u64)?,
                write: access.writes(),
            });
        }
        let mut recorder = InQueue {
            queue: self,
            state,
            profile: how.profile,
            slots: Slots::new(),
        };
        let tree = match &kernel.enqueues {
            Some(enqueues) => {
                let printing = recorder.state.printing.clone();
                let begun = self.progress.point(recorder.state.stream.open_value());
                let room = |size| recorder.room(size);
                let tree = LaunchTree::new(&self.target, enqueues, printing, begun, room)?;
                Some(Box::new(tree))
            }
            None => None,
        };
        let enqueue = tree.as_ref().map_or(0, |tree| tree.state.address());
        let place = (index, &self.target.queue);
        let print = record_launch(&mut recorder, launch, place, &mut uses, enqueue)?;
        let InQueue { state, slots, .. } = recorder;
        state.note_work(launch.grid.work_items());
        if kernel.host_memory {
            self.target.context.note_pointers_followed();
            state.progress.set_follows(state.value());
        }
        let mut encoded = self.on_device(state, slots);
        if tree.is_none() && print.is_none() && kernel.kept.is_none() {
            return Ok(encoded);
        }
        encoded.place.value = state.value();
        encoded.place.host_seq = match &tree {
            Some(_) => state.host.add_launches(self.progress.host_done()),
            None => state.new_host_task(SmallVec::new(), false),
        };
        if prints && tree.is_none() {
            state.first_print_task();
            state.print_tasks.push_back(encoded.place.host_seq);
        }
        encoded.action = Some(HostAction::Launched {
            print,
            tree,
            retained: kernel.kept.clone(),
        });
        Ok(encoded)
    }
}
