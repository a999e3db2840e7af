//! Commands become operations of the stream, or are done on the spot where the memory is mapped and idle: which of them
//! become what, and what is left to the host afterwards. Transfers of buffers are in `transfer`, of images in `images`,
//! launches in `launch`.

use super::host::Action;
use super::host_tasks::QueuePosition;
use super::staging::Piece;
use super::state::QueueState;
use super::Queue;
use crate::backend::{BufferCopy, Op, Point, Slice};
use crate::cl;
use crate::command::{extent, Command, HostSide, Work};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::event::{now_ns, Recorded, Times};
use crate::object::mem::coherence::Touch;
use crate::object::mem::host_work::HostWork;
use crate::object::mem::map::{self, Mapping};
use crate::object::mem::Mem;
use smallvec::{smallvec, SmallVec};
use std::sync::Arc;

/// What the stream must do before a command.
#[derive(Default)]
pub struct Ready {
    /// Points of other streams.
    pub points: SmallVec<[Point; 2]>,
    /// A point of another stream that is reached already: what was done there must be visible here.
    pub seen: Option<Point>,
    /// A barrier, in an out-of-order queue.
    pub barrier: bool,
}

/// How a command is encoded.
#[derive(Clone, Copy)]
pub struct How {
    /// Its event is to have times.
    pub profile: bool,
    /// The caller waits for it.
    pub blocking: bool,
}

/// A command that is encoded.
#[derive(Default)]
pub struct Encoded {
    /// Where it is on the timeline.
    pub place: Recorded,
    /// Its times.
    pub times: Times,
    /// What the host has to do afterwards.
    pub action: Option<Action>,
    /// It is complete already.
    pub done: bool,
    /// A blocking caller must wait for the place.
    pub wait: bool,
}

/// The shadow of a map, if it is memory of the queue's device: where there are several memories it may be in another.
fn visible(mem: &Ref<Mem>, mapping: &Mapping) -> Option<Slice> {
    (!mem.store().is_shared())
        .then(|| mapping.shadow.clone())
        .flatten()
}

impl Queue {
    /// Encodes a command whose wait list is resolved.
    pub(super) fn encode(
        &self,
        state: &mut QueueState,
        command: &Command,
        ready: Ready,
        how: How,
    ) -> ClResult<Encoded> {
        let mut ready = ready;
        if how.profile {
            self.free_unwanted(state);
        }
        if how.blocking && !ready.points.is_empty() && self.is_for_the_host(&command.work) {
            // The host waits for other queues itself, rather than for a batch of this one that does.
            self.submit_now(state)?;
            for point in &ready.points {
                point.timeline.wait(point.value, None)?;
            }
            state.wait_for(&ready.points)?;
            ready.points.clear();
        }
        let nothing_to_wait_for = ready.points.is_empty() && !ready.barrier;
        state.wait_for(&ready.points)?;
        if let Some(point) = &ready.seen {
            // The host has seen it: only its writes are to be made visible.
            state.stream.wait_for(point);
        }
        self.see_children(state);
        if ready.barrier {
            state.barrier()?;
        }
        state.order += 1;
        let idle = |state: &QueueState| nothing_to_wait_for && state.idle();
        match &command.work {
            Work::Read { mem, host, region } => {
                let idle = idle(state);
                self.encode_read(state, mem, host, region, how, idle, nothing_to_wait_for)
            }
            Work::Write { mem, host, region } => {
                let idle = idle(state);
                self.encode_write(state, mem, host, region, how, idle)
            }
            Work::Map { mem, mapping } => {
                if mapping.direct || !mapping.reads() {
                    return self.encode_nothing(state, &ready, how);
                }
                if mapping.image.is_some() {
                    let idle = idle(state);
                    return self.map_image(state, mem, mapping, how, idle, nothing_to_wait_for);
                }
                let region = BufferCopy::linear(mapping.offset as u64, 0, mapping.size as u64);
                let host = HostSide {
                    base: mapping.pointer,
                    visible: visible(mem, mapping),
                    shared: true,
                };
                let idle = idle(state);
                self.encode_read(state, mem, &host, &region, how, idle, nothing_to_wait_for)
            }
            Work::Unmap { mem, mapping } => {
                let encoded = self.encode_unmap(state, mem, mapping, &ready, how, idle(state))?;
                map::over(mem, mapping);
                Ok(encoded)
            }
            Work::Copy { src, dst, region } => self.encode_copy(state, src, dst, region, how),
            Work::Fill {
                mem,
                offset,
                size,
                pattern,
            } => {
                let range = *offset..*offset + *size;
                mem.prepare_bytes(self.target.memory, range, Touch::Overwrite)?;
                let dst = mem.slice(self.target.memory, *offset, *size)?;
                self.note_copy(state, *size);
                let slot = state.record(Op::Fill { dst: &dst, pattern }, how.profile)?;
                Ok(self.on_device(state, slot.into_iter().collect()))
            }
            Work::Migrate { parts, touch } => {
                for (mem, range) in parts {
                    if let Some(touch) = touch {
                        mem.prepare_part(self.target.memory, range.clone(), *touch)?;
                    }
                }
                self.encode_nothing(state, &ready, how)
            }
            Work::Host(work) => self.encode_host(state, work, how),
            Work::Native(kernel) => {
                for mem in kernel.buffers() {
                    let range = 0..mem.size() as u64;
                    mem.prepare_bytes(self.target.memory, range, Touch::Modify)?;
                }
                let op = Op::Call {
                    work: kernel.clone(),
                    uses: kernel.uses(),
                };
                let slot = state.record(op, how.profile)?;
                Ok(self.on_device(state, slot.into_iter().collect()))
            }
            Work::Launch(launch) => self.encode_launch(state, launch, how),
            work @ (Work::ReadImage { .. }
            | Work::WriteImage { .. }
            | Work::CopyImage { .. }
            | Work::ImageToBuffer { .. }
            | Work::BufferToImage { .. }
            | Work::FillImage { .. }) => {
                let idle = idle(state);
                self.encode_image(state, work, how, idle, nothing_to_wait_for)
            }
            Work::Marker => {
                let mut encoded = self.encode_nothing(state, &ready, how)?;
                // An empty launch is a marker by its work only.
                if command.kind == cl::CL_COMMAND_MARKER {
                    encoded.place.host_seq = state.host.posted;
                }
                Ok(encoded)
            }
            Work::Barrier => {
                if state.in_order() {
                    return self.encode_nothing(state, &ready, how);
                }
                state.barrier()?;
                let mut encoded = self.encode_nothing(state, &ready, how)?;
                // All before it, with what it waits for itself.
                encoded.place.host_seq = state.host.posted;
                state.barrier_place = QueuePosition {
                    value: state.value(),
                    host_seq: state.host.posted,
                };
                Ok(encoded)
            }
        }
    }

    /// What kernels enqueued by kernels wrote, on streams of their own, is visible to the command.
    fn see_children(&self, state: &mut QueueState) {
        let Some(on_device) = self.target.context.known_on_device(self.target.index) else {
            return;
        };
        let over = on_device.families_over();
        if over != state.families_seen {
            state.families_seen = over;
            for point in on_device.last_points() {
                state.stream.wait_for(&point);
            }
        }
    }

    fn encode_unmap(
        &self,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        mapping: &Mapping,
        ready: &Ready,
        how: How,
        idle: bool,
    ) -> ClResult<Encoded> {
        if mapping.direct || !mapping.writes() {
            return self.encode_nothing(state, ready, how);
        }
        if mapping.image.is_some() {
            return self.unmap_image(state, mem, mapping, how, idle);
        }
        let region = BufferCopy::linear(0, mapping.offset as u64, mapping.size as u64);
        let host = HostSide {
            base: mapping.pointer,
            visible: visible(mem, mapping),
            shared: true,
        };
        self.encode_write(state, mem, &host, &region, how, idle)
    }

    /// A copy or fill within the device's memory is among what is recorded.
    pub(super) fn note_copy(&self, state: &mut QueueState, bytes: u64) {
        let fast = self.target.device.backend().caps().fast_copies;
        state.note_work(if fast { bytes / 8 } else { bytes });
    }

    pub(super) fn on_device(
        &self,
        state: &QueueState,
        slots: SmallVec<[crate::backend::ProfileSlot; 2]>,
    ) -> Encoded {
        Encoded {
            place: self.place(state),
            times: if slots.is_empty() {
                Times::None
            } else {
                Times::Slots(slots)
            },
            action: None,
            done: false,
            wait: false,
        }
    }

    /// Submits what is recorded. Returns the value on the timeline when that is done; an error if it is not submitted.
    pub(super) fn submit_now(&self, state: &mut QueueState) -> ClResult<u64> {
        let value = state.value();
        state.submit();
        if self.progress.submitted() < value {
            return err(
                cl::CL_OUT_OF_RESOURCES,
                "a batch of commands could not be submitted",
            );
        }
        Ok(value)
    }

    /// What is left of a read after the copy to `piece` was recorded: the host's copy from there, which `host` and `rows`
    /// (its pitches) describe, packed on the other side.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn read_out(
        &self,
        state: &mut QueueState,
        mut encoded: Encoded,
        piece: Piece,
        host: &HostSide,
        rows: &BufferCopy,
        packed: BufferCopy,
        how: How,
    ) -> Encoded {
        if !how.blocking {
            let base = host.base.wrapping_add(rows.dst_offset as usize);
            let writes = extent(base, rows, rows.dst_row_pitch, rows.dst_slice_pitch);
            encoded.place.host_seq = state.new_host_task(smallvec![writes], host.shared);
        }
        encoded.action = Some(Action::CopyOut {
            piece,
            base: host.base,
            region: packed,
        });
        encoded.wait = true;
        encoded
    }

    /// The device has nothing to do for a command, at least once all before it is done.
    fn is_for_the_host(&self, work: &Work) -> bool {
        match work {
            Work::Map { mapping, .. } => mapping.direct || !mapping.reads(),
            Work::Read { mem, .. } => mem
                .slice(self.target.memory, 0, 0)
                .is_ok_and(|slice| slice.memory.mapped().is_some() && slice.memory.host_cached()),
            _ => false,
        }
    }

    fn place(&self, state: &QueueState) -> Recorded {
        // Out of order, host parts of other commands matter only if they are before a barrier.
        let host_seq = if state.in_order() {
            state.host.posted
        } else {
            state.barrier_place.host_seq
        };
        Recorded {
            value: state.value(),
            host_seq,
            order: state.order,
            depends: false,
        }
    }

    fn encode_nothing(&self, state: &mut QueueState, ready: &Ready, how: How) -> ClResult<Encoded> {
        let mut slots = SmallVec::new();
        let quiet = self.progress.host_done() >= state.host.posted;
        if how.blocking && how.profile && quiet && ready.points.is_empty() && !ready.barrier {
            // Nothing to measure but when all before it is done.
            let value = self.submit_now(state)?;
            self.progress.timeline.wait(value, None)?;
        } else if how.profile || !ready.points.is_empty() {
            slots.extend(state.record(Op::Marker, how.profile)?);
        }
        let mut encoded = self.on_device(state, slots);
        encoded.wait = true;
        if matches!(encoded.times, Times::None) && state.idle() && ready.points.is_empty() {
            encoded.done = true;
            if self.is_measuring() {
                let now = now_ns();
                encoded.times = Times::Known(now, now);
            }
        }
        Ok(encoded)
    }

    fn encode_host(
        &self,
        state: &mut QueueState,
        work: &Arc<dyn HostWork>,
        how: How,
    ) -> ClResult<Encoded> {
        state.prepare_host_part(how)?;
        // The place on the timeline that the host thread waits for.
        let slot = state.record(Op::Marker, how.profile)?;
        let mut encoded = self.on_device(state, slot.into_iter().collect());
        if !how.blocking {
            encoded.place.host_seq = state.new_host_task(work.touches(), true);
        }
        encoded.action = Some(Action::Work(work.clone()));
        encoded.wait = true;
        Ok(encoded)
    }

    /// A command that was carried out on the host just now, from `start` on.
    pub(super) fn on_host(&self, state: &QueueState, start: u64) -> Encoded {
        let times = if self.is_measuring() {
            Times::Known(start, now_ns())
        } else {
            Times::None
        };
        Encoded {
            place: self.place(state),
            times,
            action: None,
            done: true,
            wait: false,
        }
    }

    pub(super) fn host_start(&self) -> u64 {
        if self.is_measuring() {
            now_ns()
        } else {
            0
        }
    }

    pub(super) fn piece(&self, state: &mut QueueState, up: bool, size: u64) -> ClResult<Piece> {
        let value = state.stream.open_value();
        let progress = self.progress.clone();
        let pool = if up { &mut state.up } else { &mut state.down };
        pool.take(self.target.device.backend(), size, value, || {
            progress.timeline.completed().unwrap_or(0)
        })
    }

    /// Mapped memory that kernels of the open batch read, or write for later ones of the same launch.
    pub(super) fn argument_piece(&self, state: &mut QueueState, size: u64) -> ClResult<Piece> {
        let value = state.stream.open_value();
        let progress = self.progress.clone();
        let completed = || progress.timeline.completed().unwrap_or(0);
        let device = self.target.device.backend();
        state.args.take(device, size, value, completed)
    }
}

impl QueueState {
    /// A command will leave a part to the host: to the host thread, or to the caller if that waits.
    pub(super) fn prepare_host_part(&mut self, how: How) -> ClResult {
        if !how.blocking {
            self.host_thread()?;
        }
        Ok(())
    }

    /// A barrier between the operations of one command, where the stream does not place them itself.
    pub(super) fn unordered_barrier(&mut self) -> ClResult {
        if !self.in_order() {
            self.stream.barrier()?;
        }
        Ok(())
    }
}
