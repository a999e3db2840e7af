//! The encoder: commands become operations of the stream, or are done on the spot where the memory is mapped and idle, and
//! leave tasks to the host executor. Transfers of buffers are in `transfer`, of images in `images`, launches in `launch`.
//!
//! Nothing here waits. What there is no room for yet is left unfinished, and goes on when the queue has come to a place.

mod buffer_images;
pub(super) mod dispatches;
mod images;
mod launch;
pub(super) mod recorder;
mod replay;

use super::hazards::QueuePosition;
use super::host::HostAction;
use super::pending::{Begun, Slots};
use super::state::QueueState;
use super::transfer::staging::Piece;
use super::Queue;
use crate::backend::external::{Semaphore, SharedResource};
use crate::backend::{BufferCopy, Call, Op, Point, Slice};
use crate::cl;
use crate::command::image::mapped_rows;
use crate::command::{Command, HostSide, Work};
use crate::error::{ClError, ClResult};
use crate::handle::{Object, Ref};
use crate::object::event::{now_ns, Recorded, Times};
use crate::object::mem::host_work::HostWork;
use crate::object::mem::map::{self, Mapping};
use crate::object::mem::transfer::{volume, SLOW_READ};
use crate::object::mem::Mem;
use smallvec::SmallVec;
use std::sync::Arc;

/// The waits and barriers that the stream needs before a command.
#[derive(Default)]
pub struct Ready {
    /// Points of other streams.
    pub points: SmallVec<[Point; 2]>,
    /// A point of another stream that is reached already: what was done there must be visible here.
    pub seen: Option<Point>,
    /// Values of this queue's own timeline: the command fails with the commands there.
    pub own: SmallVec<[u64; 2]>,
    /// A barrier, in an out-of-order queue.
    pub barrier: bool,
    /// The parts of a replay that were encoded before.
    pub begun: Option<Begun>,
}

/// How a command is encoded.
#[derive(Clone, Copy, Default)]
pub struct How {
    /// Its event is to have times.
    pub profile: bool,
    /// The caller waits for it.
    pub blocking: bool,
    /// The command has an event, which has a status of its own.
    pub event: bool,
    /// Parts of its transfer that are recorded already.
    pub parts: usize,
    /// All before it is done, so that the host may do it at once. Known of transfers, when they are encoded.
    pub idle: bool,
}

/// How far a command has come that cannot go on yet.
#[derive(Default)]
pub struct Unfinished {
    /// Parts of its transfer that are recorded.
    pub parts: usize,
    /// Their profiled operations.
    pub slots: Slots,
    /// The parts of a replay that are recorded.
    pub begun: Option<Begun>,
    /// When to go on, if that is known.
    pub place: Option<QueuePosition>,
}

/// Why a command is not encoded, or not all of it.
pub enum Stop {
    /// The command has failed.
    Failed(ClError),
    /// There is no room for more before the queue has come to a place.
    Unfinished(Unfinished),
}

/// The result of encoding a command, or of a step of that.
pub type Encoding<T = Encoded> = Result<T, Stop>;

impl<E: Into<ClError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Stop {
    /// Creates the stop of a command that begins anew when the queue has come to a place.
    pub(super) fn until(place: QueuePosition) -> Self {
        Self::Unfinished(Unfinished {
            place: Some(place),
            ..Unfinished::default()
        })
    }

    /// Returns the same for a command of which so many parts are recorded.
    pub(super) fn after(self, parts: usize, slots: &mut Slots) -> Self {
        match self {
            Self::Unfinished(Unfinished { place, .. }) => Self::Unfinished(Unfinished {
                parts,
                slots: std::mem::take(slots),
                place,
                ..Unfinished::default()
            }),
            failed => failed,
        }
    }
}

/// A command that is encoded.
#[derive(Default)]
pub struct Encoded {
    /// Where it is on the timeline.
    pub place: Recorded,
    /// Its times.
    pub times: Times,
    /// The work of the host afterwards.
    pub action: Option<HostAction>,
    /// The command is complete already.
    pub done: bool,
    /// A blocking caller must wait for the place.
    pub wait: bool,
}

impl Object<Queue> {
    /// Encodes a command whose wait list is resolved.
    pub(super) fn encode(
        self: &Arc<Self>,
        state: &mut QueueState,
        command: &Command,
        ready: &Ready,
        mut how: How,
    ) -> Encoding {
        if how.profile {
            self.free_unwanted(state);
        }
        state.end_command(&command.work);
        state.forget_left_writes();
        let nothing_to_wait_for = ready.points.is_empty() && !ready.barrier;
        state.wait_for(&ready.points)?;
        if let Some(point) = &ready.seen {
            // The host has seen it: only its writes are to be made visible.
            state.stream.wait_for(point);
        }
        let begun = ready.begun.as_ref().map(|begun| &begun.value);
        for value in ready.own.iter().chain(begun) {
            state.stream.depends_on(*value);
        }
        self.see_children(state);
        if ready.barrier {
            state.barrier()?;
        }
        state.order += 1;
        if self.moves_contents() {
            command.work.prepare(self.target.memory)?;
        }
        // What it waits for may have failed since that was looked at: then it fails on the stream.
        let idle = |state: &QueueState| {
            let failed = |value: &u64| self.progress.has_failed(*value);
            nothing_to_wait_for && state.idle() && !ready.own.iter().any(failed)
        };
        how.idle = command.work.is_transfer() && idle(state);
        self.encode_work(state, command, ready, how)
    }

    /// Encodes the work of a command, once all that comes before it is said.
    fn encode_work(
        self: &Arc<Self>,
        state: &mut QueueState,
        command: &Command,
        ready: &Ready,
        how: How,
    ) -> Encoding {
        match &command.work {
            Work::Transfer {
                mem,
                host,
                region,
                write,
            } => self.encode_transfer(state, mem, host, region, *write, how),
            Work::Map { mem, mapping } if mapping.copies_in() => {
                self.encode_mapped(state, mem, mapping, false, how)
            }
            Work::Map { .. } => self.encode_nothing(state, ready, how),
            Work::Unmap { mem, mapping } => {
                if state.host_memory && !how.idle {
                    // Copies of the host's memory that come before it may read or write what the pointer leads to.
                    let direct = (mapping.direct).then(|| mem.slice(self.target.memory, 0, 0));
                    let kept = direct.transpose()?.or_else(|| mapping.shadow.clone());
                    if let Some(kept) = kept {
                        state.record(Op::Keep(Arc::new(kept)), false)?;
                    }
                }
                let encoded = match mapping.copies_out() {
                    false => self.encode_nothing(state, ready, how)?,
                    true => self.encode_mapped(state, mem, mapping, true, how)?,
                };
                map::remove(mem, mapping);
                Ok(encoded)
            }
            Work::Copy { src, dst, region } => self.encode_copy(state, src, dst, region, how),
            Work::Fill {
                mem,
                offset,
                size,
                pattern,
            } => {
                let dst = mem.slice(self.target.memory, *offset, *size)?;
                self.note_copy(state, *size);
                self.record_one(state, Op::Fill { dst: &dst, pattern }, how)
            }
            Work::Migrate { .. } => self.encode_nothing(state, ready, how),
            Work::Host(work) => self.encode_host(state, work, how),
            Work::Native(kernel) => {
                let op = Op::Call {
                    work: kernel.clone(),
                    uses: &kernel.uses,
                };
                self.record_one(state, op, how)
            }
            Work::Launch(launch) => self.encode_launch(state, launch, how),
            Work::Replay(replay) => self.encode_replay(state, replay, ready, how),
            Work::TransferImage {
                mem,
                at,
                host,
                rows,
                write,
            } => self.transfer_image(state, (mem, at), host, rows, *write, how),
            Work::CopyImage { src, dst, from, to } => {
                self.copy_images(state, (src, from), (dst, to), how)
            }
            Work::CopyTexels {
                image,
                at,
                buffer,
                offset,
                to_image,
            } => {
                let total = volume(at.size, image.image()?.element());
                let bytes = buffer.slice(self.target.memory, *offset, total)?;
                let slots = self.copy_packed(state, (image, at), &bytes, *to_image, how)?;
                Ok(self.on_device(state, slots))
            }
            Work::FillImage { mem, at, pixel } => self.fill_image(state, mem, at, pixel, how),
            Work::Marker => {
                let mut encoded = self.encode_nothing(state, ready, how)?;
                // An empty launch is a marker by its work only.
                if command.kind == cl::CL_COMMAND_MARKER {
                    encoded.place.host_seq = state.host.posted;
                }
                Ok(encoded)
            }
            Work::Handover { list, acquire } => self.encode_handover(state, list, *acquire, how),
            Work::Semaphores { list, signal } => self.encode_semaphores(state, list, *signal, how),
            Work::Barrier if state.in_order() => self.encode_nothing(state, ready, how),
            Work::Barrier => {
                state.barrier()?;
                let mut encoded = self.encode_nothing(state, ready, how)?;
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

    /// Makes visible to the command what kernels that were enqueued by kernels wrote, on streams of their own.
    fn see_children(&self, state: &mut QueueState) {
        let Some(on_device) = self.target.context.created_on_device(self.target.index) else {
            return;
        };
        let over = on_device.trees_over();
        if over != state.trees_seen {
            state.trees_seen = over;
            for point in on_device.last_points() {
                state.stream.wait_for(&point);
            }
        }
    }

    /// Copies what the pointer of a map leads to from the object, or (`back`) to it.
    fn encode_mapped(
        self: &Arc<Self>,
        state: &mut QueueState,
        mem: &Ref<Mem>,
        mapping: &Mapping,
        back: bool,
        how: How,
    ) -> Encoding {
        // Where there are several memories a shadow may be in another.
        let shadow = mapping.shadow.as_ref().filter(|_| !self.moves_contents());
        let host = HostSide {
            base: mapping.pointer,
            visible: shadow.cloned(),
            shared: true,
        };
        if mapping.image.is_some() {
            let (at, rows) = mapped_rows(mem, mapping)?;
            return self.transfer_image(state, (mem, &at), &host, &rows, back, how);
        }
        let region = BufferCopy::linear(mapping.offset as u64, 0, mapping.size as u64);
        self.encode_transfer(state, mem, &host, &region, back, how)
    }

    /// Counts a recorded copy or fill within the device's memory.
    pub(super) fn note_copy(&self, state: &mut QueueState, bytes: u64) {
        let fast = self.target.device.backend.caps().fast_copies;
        state.note_work(if fast { bytes / 8 } else { bytes });
    }

    /// Records the operation that a command is.
    pub(super) fn record_one(&self, state: &mut QueueState, op: Op<'_>, how: How) -> Encoding {
        let slot = state.record(op, how.profile)?;
        Ok(self.on_device(state, slot.into_iter().collect()))
    }

    /// Returns a command that the recorded operations are.
    pub(super) fn on_device(&self, state: &QueueState, slots: Slots) -> Encoded {
        Encoded {
            place: self.place(state),
            times: match slots.is_empty() {
                true => Times::None,
                false => Times::Slots(slots),
            },
            ..Encoded::default()
        }
    }

    /// Carries a command out on the host.
    pub(super) fn on_host(&self, state: &QueueState, work: impl FnOnce()) -> Encoded {
        let start = if self.measuring { now_ns() } else { 0 };
        work();
        Encoded {
            place: self.place(state),
            times: match self.measuring {
                true => Times::Known(start, now_ns()),
                false => Times::None,
            },
            done: true,
            ..Encoded::default()
        }
    }

    /// Returns true if the device has nothing to do for a command once all before it is complete. A
    /// thread that waits for it waits for these, and then runs the command itself.
    pub(super) fn is_for_the_host(&self, work: &Work) -> bool {
        match work {
            Work::Map { mapping, .. } => !mapping.copies_in(),
            Work::Transfer {
                mem,
                host,
                region,
                write: false,
            } => {
                let cached = region.total() > SLOW_READ;
                let place = mem.mapped(self.target.memory, 0, cached);
                host.visible.is_none() && place.is_ok_and(|place| place.is_some())
            }
            _ => false,
        }
    }

    /// Returns memory of the host as the device's, if the device can access all of it.
    pub(super) fn host_slice(&self, range: std::ops::Range<usize>) -> Option<Slice> {
        let size = (range.end - range.start) as u64;
        let memory = self.target.device.backend.host_memory(range.start, size)?;
        Some(Slice::new(memory, 0, size))
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

    /// Takes objects over from others that share their memory, or hands them over.
    fn encode_handover(
        &self,
        state: &mut QueueState,
        list: &[Ref<Mem>],
        acquire: bool,
        how: How,
    ) -> Encoding {
        let mut slots = Slots::new();
        let memory = self.target.memory;
        for mem in list {
            let (slice, image);
            let resource = match mem.has_texels() {
                true => {
                    image = mem.texels(memory)?;
                    SharedResource::Image(&image)
                }
                false => {
                    slice = mem.slice(memory, 0, mem.size as u64)?;
                    SharedResource::Memory(&slice)
                }
            };
            let op = Op::Handover { resource, acquire };
            slots.extend(state.record(op, how.profile)?);
        }
        Ok(self.on_device(state, slots))
    }

    /// Makes what follows wait for shared semaphores, or signals them when all before is complete.
    fn encode_semaphores(
        &self,
        state: &mut QueueState,
        list: &[Arc<dyn Semaphore>],
        signal: bool,
        how: How,
    ) -> Encoding {
        if signal {
            let encoded = self.record_one(state, Op::Marker, how)?;
            for semaphore in list {
                state.stream.signal_semaphore(semaphore)?;
            }
            // Others wait for it, who cannot flush.
            state.submit_soon();
            return Ok(encoded);
        }
        // What is recorded already need not wait: it goes first.
        state.submit();
        for semaphore in list {
            state.stream.wait_semaphore(semaphore)?;
        }
        self.record_one(state, Op::Marker, how)
    }

    fn encode_nothing(&self, state: &mut QueueState, ready: &Ready, how: How) -> Encoding {
        let commands_fail = state.stream.commands_fail();
        let waits = !ready.points.is_empty() || (commands_fail && !ready.own.is_empty());
        // Where commands fail one by one, one that does nothing has an operation, too: else it would fail with the one before.
        if !waits && !ready.barrier && state.idle() {
            return Ok(self.on_host(state, || {}));
        }
        let fails = (how.event || how.blocking) && commands_fail;
        let mut encoded = match waits || how.profile || fails {
            true => self.record_one(state, Op::Marker, how)?,
            false => self.on_device(state, Slots::new()),
        };
        encoded.wait = true;
        Ok(encoded)
    }

    fn encode_host(&self, state: &mut QueueState, work: &Arc<dyn HostWork>, how: How) -> Encoding {
        // After host tasks it is one, too: what it frees they may still write.
        if state.host_memory && self.progress.host_done() >= state.host.posted {
            let op = Op::Call {
                work: Arc::new(HostCall(work.clone())),
                uses: &[],
            };
            return self.record_one(state, op, how);
        }
        if !how.blocking {
            state.host_thread()?;
        }
        // The place on the timeline that the executor waits for.
        let mut encoded = self.record_one(state, Op::Marker, how)?;
        if !how.blocking {
            encoded.place.host_seq = state.new_host_task(work.touches(), true);
        }
        encoded.action = Some(HostAction::Work(work.clone()));
        encoded.wait = true;
        Ok(encoded)
    }

    /// Takes a suballocation of staging memory, or returns when there is some.
    pub(super) fn piece(&self, state: &mut QueueState, up: bool, size: u64) -> Encoding<Piece> {
        let value = state.stream.open_value();
        let pool = if up { &mut state.up } else { &mut state.down };
        let timeline = state.progress.timeline.as_ref();
        let taken = pool.take(&self.target.device.backend, size, value, timeline)?;
        taken.map_err(Stop::until)
    }

    /// Allocates mapped memory that kernels of the open batch read, or write for later ones of the
    /// same launch.
    pub(super) fn argument_piece(&self, state: &mut QueueState, size: u64) -> ClResult<Piece> {
        let value = state.stream.open_value();
        let timeline = state.progress.timeline.as_ref();
        let device = &self.target.device.backend;
        state.args.take_any(device, size, value, timeline)
    }
}

/// Work of the host as an operation of a device that calls functions of the host.
struct HostCall(Arc<dyn HostWork>);

impl Call for HostCall {
    fn call(&self) {
        self.0.run();
    }
}

impl QueueState {
    /// Places a barrier between the operations of one command, where the stream does not place them
    /// itself.
    pub(super) fn unordered_barrier(&mut self) -> ClResult {
        if !self.in_order() {
            self.stream.barrier()?;
        }
        Ok(())
    }
}
