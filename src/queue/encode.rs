//! Commands become operations of the stream, or are done on the spot where the memory is mapped and idle.

use super::enqueue::Ready;
use super::host::{copy_region, Action};
use super::printf;
use super::resume::encode_resumes;
use super::staging::Piece;
use super::state::State;
use super::Queue;
use crate::backend::caps::DeviceKind;
use crate::backend::{BufferCopy, Memory, Op, Placement, Slice, Use};
use crate::cl;
use crate::command::{extent, Command, HostSide, Launch, Work};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::event::{now_ns, Recorded, Times};
use crate::object::mem::coherence::Touch;
use crate::object::mem::host_work::HostWork;
use crate::object::mem::map::Mapping;
use crate::object::mem::Mem;
use crate::util::{config, copy};
use smallvec::SmallVec;
use spirv_lowering::interface::Implicit;
use std::sync::Arc;

/// Up to this size bytes travel with the batch; beyond it a copy from staging is faster (measured on an H200).
const UPDATE: u64 = 16 << 10;
/// Reads up to this many bytes from uncached mapped memory are cheaper than a copy in a batch that is waited for anyway.
const SLOW_READ: u64 = 256;
/// Up to this size an unmap writes mapped memory itself, while it is idle.
const SMALL_UNMAP: u64 = 64 << 10;
/// Transfers beyond this are cut into chunks, so that host and device copy at the same time.
const BIG: u64 = 16 << 20;
const CHUNK: u64 = 4 << 20;
/// Chunks under way at a time.
const IN_FLIGHT: usize = 4;

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

/// The region with the device side first, packed on the other side.
fn packed(region: &BufferCopy) -> (u64, u64, u64) {
    let slice = region.bytes * region.rows;
    (region.bytes, slice, slice * region.slices)
}

/// The shadow of a map, if it is memory of the queue's device: where there are several devices it may be another's.
fn visible(mem: &Ref<Mem>, mapping: &Mapping) -> Option<Slice> {
    (!mem.store().is_shared())
        .then(|| mapping.shadow.clone())
        .flatten()
}

/// A tight slice around one side of a region, and the region with that side counting from its start.
fn tight(mem: &Ref<Mem>, device: usize, offset: u64, bytes: u64) -> ClResult<Slice> {
    mem.slice(device, offset, bytes)
}

fn src_extent(region: &BufferCopy) -> u64 {
    extent(0, region, region.src_row_pitch, region.src_slice_pitch).end as u64
}

fn dst_extent(region: &BufferCopy) -> u64 {
    extent(0, region, region.dst_row_pitch, region.dst_slice_pitch).end as u64
}

/// What is done to the `span` bytes that a region of `total` bytes lies in.
fn writing(span: u64, total: u64) -> Touch {
    if span == total {
        Touch::Overwrite
    } else {
        Touch::Modify
    }
}

impl Queue {
    /// Encodes a command whose wait list is resolved.
    pub(super) fn encode(
        &self,
        state: &mut State,
        command: &Command,
        ready: Ready,
        how: How,
    ) -> ClResult<Encoded> {
        let mut ready = ready;
        if how.blocking && !ready.points.is_empty() && self.is_for_the_host(&command.work) {
            // The host waits for other queues itself, rather than for a batch of this one that does.
            self.submit_before(state)?;
            for point in &ready.points {
                point.timeline.wait(point.value, None)?;
            }
            state.wait_for(&ready.points)?;
            ready.points.clear();
        }
        let nothing_to_wait_for = ready.points.is_empty() && !ready.barrier;
        state.wait_for(&ready.points)?;
        if ready.barrier {
            state.barrier()?;
        }
        state.order += 1;
        let idle = |state: &State| nothing_to_wait_for && state.idle();
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
                };
                let idle = idle(state);
                self.encode_read(state, mem, &host, &region, how, idle, nothing_to_wait_for)
            }
            Work::Unmap { mem, mapping } => {
                if mapping.direct || !mapping.writes() {
                    return self.encode_nothing(state, &ready, how);
                }
                if mapping.image.is_some() {
                    let idle = idle(state);
                    return self.unmap_image(state, mem, mapping, how, idle);
                }
                let region = BufferCopy::linear(0, mapping.offset as u64, mapping.size as u64);
                let host = HostSide {
                    base: mapping.pointer,
                    visible: visible(mem, mapping),
                };
                let idle = idle(state);
                self.encode_write(state, mem, &host, &region, how, idle)
            }
            Work::Copy { src, dst, region } => self.encode_copy(state, src, dst, region, how),
            Work::Fill {
                mem,
                offset,
                size,
                pattern,
            } => {
                let range = *offset..*offset + *size;
                mem.prepare_bytes(self.target.index, range, Touch::Overwrite)?;
                let dst = tight(mem, self.target.index, *offset, *size)?;
                self.note_copy(state, *size);
                let slot = state.record(Op::Fill { dst: &dst, pattern }, how.profile)?;
                Ok(self.on_device(state, slot.into_iter().collect()))
            }
            Work::Migrate { parts, touch } => {
                for (mem, range) in parts {
                    if let Some(touch) = touch {
                        mem.prepare_part(self.target.index, range.clone(), *touch)?;
                    }
                }
                self.encode_nothing(state, &ready, how)
            }
            Work::Host(work) => self.encode_host(state, work, how),
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
                    encoded.place.host_seq = state.host_posted;
                }
                Ok(encoded)
            }
            Work::Barrier => {
                if !state.in_order() {
                    state.barrier()?;
                    state.barrier_host = state.host_posted;
                }
                self.encode_nothing(state, &ready, how)
            }
        }
    }

    /// A copy or fill within the device's memory is among what is recorded: a GPU moves 4 MiB in the time of a submission.
    fn note_copy(&self, state: &mut State, bytes: u64) {
        let gpu = self.target.device.backend().caps().kind == DeviceKind::Gpu;
        state.note_work(if gpu { bytes / 8 } else { bytes });
    }

    pub(super) fn on_device(
        &self,
        state: &State,
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

    /// Submits what is recorded; an error if that fails.
    fn submit_before(&self, state: &mut State) -> ClResult {
        let value = state.value();
        state.submit();
        if self.progress.submitted() < value {
            return err(
                cl::CL_OUT_OF_RESOURCES,
                "the batch before could not be submitted",
            );
        }
        Ok(())
    }

    /// The device has nothing to do for a command, at least once all before it is done.
    fn is_for_the_host(&self, work: &Work) -> bool {
        match work {
            Work::Map { mapping, .. } => mapping.direct || !mapping.reads(),
            Work::Read { mem, .. } => mem
                .slice(self.target.index, 0, 0)
                .is_ok_and(|slice| slice.memory.mapped().is_some() && slice.memory.host_cached()),
            _ => false,
        }
    }

    fn place(&self, state: &State) -> Recorded {
        // Out of order, host parts of other commands matter only if they are before a barrier.
        let host_seq = if state.in_order() {
            state.host_posted
        } else {
            state.barrier_host
        };
        Recorded {
            value: state.value(),
            host_seq,
            order: state.order,
            depends: false,
        }
    }

    fn encode_nothing(&self, state: &mut State, ready: &Ready, how: How) -> ClResult<Encoded> {
        let mut slots = SmallVec::new();
        let quiet = self.progress.host_done() >= state.host_posted;
        if how.blocking && how.profile && quiet && ready.points.is_empty() && !ready.barrier {
            // Nothing to measure but when all before it is done.
            self.submit_before(state)?;
            self.progress
                .timeline
                .wait(self.progress.submitted(), None)?;
        } else if how.profile || !ready.points.is_empty() {
            slots.extend(state.record(Op::Marker, how.profile)?);
        }
        let mut encoded = self.on_device(state, slots);
        encoded.wait = true;
        if matches!(encoded.times, Times::None) && state.idle() && ready.points.is_empty() {
            encoded.done = true;
            if self.is_profiling() {
                let now = now_ns();
                encoded.times = Times::Known(now, now);
            }
        }
        Ok(encoded)
    }

    fn encode_host(
        &self,
        state: &mut State,
        work: &Arc<dyn HostWork>,
        how: How,
    ) -> ClResult<Encoded> {
        // The place on the timeline that the host thread waits for.
        let slot = state.record(Op::Marker, how.profile)?;
        let mut encoded = self.on_device(state, slot.into_iter().collect());
        if !how.blocking {
            encoded.place.host_seq = state.new_host_task(work.touches());
        }
        encoded.action = Some(Action::Work(work.clone()));
        encoded.wait = true;
        Ok(encoded)
    }

    /// A command that was carried out on the host just now, from `start` on.
    fn on_host(&self, state: &State, start: u64) -> Encoded {
        let times = if self.is_profiling() {
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

    fn host_start(&self) -> u64 {
        if self.is_profiling() {
            now_ns()
        } else {
            0
        }
    }

    pub(super) fn piece(&self, state: &mut State, up: bool, size: u64) -> ClResult<Piece> {
        let value = state.stream.open_value();
        let progress = self.progress.clone();
        let pool = if up { &mut state.up } else { &mut state.down };
        pool.take(self.target.device.backend(), size, value, || {
            progress.timeline.completed().unwrap_or(0)
        })
    }

    /// Mapped memory that kernels of the open batch read, or write for later ones of the same launch.
    pub(super) fn argument_piece(&self, state: &mut State, size: u64) -> ClResult<Piece> {
        let value = state.stream.open_value();
        let progress = self.progress.clone();
        let completed = || progress.timeline.completed().unwrap_or(0);
        let device = self.target.device.backend();
        state.args.take(device, size, value, completed)
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn encode_read(
        &self,
        state: &mut State,
        mem: &Ref<Mem>,
        host: &HostSide,
        region: &BufferCopy,
        how: How,
        idle: bool,
        no_waits: bool,
    ) -> ClResult<Encoded> {
        let index = self.target.index;
        let (row, plane, total) = packed(region);
        let span = src_extent(region);
        let range = region.src_offset..region.src_offset + span;
        mem.prepare_bytes(index, range, Touch::Read)?;
        let src = tight(mem, index, region.src_offset, span)?;
        // Straight from mapped memory: nothing may change it before we have read it. Either nothing is under way, or
        // the caller waits and keeps others out of the queue meanwhile.
        let cached = src.memory.host_cached();
        let linear = region.rows == 1 && region.slices == 1;
        let limit = if idle && linear {
            config::get().direct_read
        } else {
            SLOW_READ
        };
        if let (Some(pointer), true) = (src.memory.mapped(), cached || total <= limit) {
            let quiet = self.progress.host_done() >= state.host_posted;
            let wait = how.blocking && no_waits && quiet && !how.profile;
            if idle || (wait && host.visible.is_none()) {
                if !idle {
                    self.submit_before(state)?;
                    let value = self.progress.submitted();
                    self.progress.timeline.wait(value, None)?;
                }
                let start = self.host_start();
                let from = pointer.as_ptr() as usize + src.offset as usize;
                if linear && !cached {
                    let to = host.base.wrapping_add(region.dst_offset as usize);
                    // SAFETY: as below.
                    unsafe { copy::copy_uncached(from, to, total as usize) };
                    return Ok(self.on_host(state, start));
                }
                // SAFETY: the region lies within the memory object (checked by the builder) and the application keeps
                // the destination valid; the device does not write the source now.
                unsafe {
                    copy_region(
                        from,
                        host.base,
                        &BufferCopy {
                            src_offset: 0,
                            ..*region
                        },
                    )
                };
                return Ok(self.on_host(state, start));
            }
        }
        if let Some(visible) = &host.visible {
            let region = BufferCopy {
                src_offset: 0,
                ..*region
            };
            state.note_work(total);
            let slot = state.record(
                Op::Copy {
                    src: &src,
                    dst: visible,
                    region,
                },
                how.profile,
            )?;
            let mut encoded = self.on_device(state, slot.into_iter().collect());
            encoded.wait = true;
            return Ok(encoded);
        }
        state.note_work(total);
        if how.blocking && linear && total > BIG && self.progress.host_done() >= state.host_posted {
            return self.read_chunks(
                state,
                &src,
                host.base.wrapping_add(region.dst_offset as usize),
                how,
            );
        }
        let piece = self.piece(state, false, total)?;
        let to_piece = BufferCopy {
            src_offset: 0,
            dst_offset: 0,
            dst_row_pitch: row,
            dst_slice_pitch: plane,
            ..*region
        };
        let slot = state.record(
            Op::Copy {
                src: &src,
                dst: &piece.slice(),
                region: to_piece,
            },
            how.profile,
        )?;
        let mut encoded = self.on_device(state, slot.into_iter().collect());
        if !how.blocking {
            let base = host.base.wrapping_add(region.dst_offset as usize);
            let writes = extent(base, region, region.dst_row_pitch, region.dst_slice_pitch);
            encoded.place.host_seq = state.new_host_task(Some(writes));
        }
        let out = BufferCopy {
            src_offset: 0,
            src_row_pitch: row,
            src_slice_pitch: plane,
            ..*region
        };
        encoded.action = Some(Action::CopyOut {
            piece,
            base: host.base,
            region: out,
        });
        encoded.wait = true;
        Ok(encoded)
    }

    /// A large blocking read: the device fills chunks of staging while the host empties those before.
    fn read_chunks(
        &self,
        state: &mut State,
        src: &Slice,
        base: usize,
        how: How,
    ) -> ClResult<Encoded> {
        let mut under_way: std::collections::VecDeque<(u64, Piece, usize)> =
            std::collections::VecDeque::new();
        let mut slots: SmallVec<[_; 2]> = SmallVec::new();
        let empty = |(value, piece, at): (u64, Piece, usize)| -> ClResult {
            self.progress.timeline.wait(value, None)?;
            // SAFETY: the piece is filled and of that size; the application keeps the destination valid.
            unsafe {
                copy::copy(piece.pointer, base.wrapping_add(at), piece.size as usize);
            }
            Ok(())
        };
        let mut at = 0;
        while at < src.size {
            let size = CHUNK.min(src.size - at);
            if under_way.len() >= IN_FLIGHT {
                if let Some(oldest) = under_way.pop_front() {
                    empty(oldest)?;
                }
            }
            let piece = self.piece(state, false, size)?;
            let part = Slice {
                memory: src.memory.clone(),
                offset: src.offset + at,
                size,
            };
            let ends = at == 0 || at + size >= src.size;
            let copy = Op::Copy {
                src: &part,
                dst: &piece.slice(),
                region: BufferCopy::linear(0, 0, size),
            };
            slots.extend(state.record(copy, how.profile && ends)?);
            let value = state.stream.open_value();
            state.submit();
            if self.progress.submitted() < value {
                return err(
                    cl::CL_OUT_OF_RESOURCES,
                    "the transfer could not be submitted",
                );
            }
            under_way.push_back((value, piece, at as usize));
            at += size;
        }
        under_way.into_iter().try_for_each(empty)?;
        let mut encoded = self.on_device(state, slots);
        encoded.done = true;
        Ok(encoded)
    }

    pub(super) fn encode_write(
        &self,
        state: &mut State,
        mem: &Ref<Mem>,
        host: &HostSide,
        region: &BufferCopy,
        how: How,
        idle: bool,
    ) -> ClResult<Encoded> {
        let index = self.target.index;
        let (row, plane, total) = packed(region);
        let span = dst_extent(region);
        let range = region.dst_offset..region.dst_offset + span;
        mem.prepare_bytes(index, range, writing(span, total))?;
        let dst = tight(mem, index, region.dst_offset, span)?;
        let linear = region.rows == 1 && region.slices == 1;
        let direct = idle && (host.visible.is_none() || total <= SMALL_UNMAP);
        if let (Some(visible), false) = (&host.visible, direct && dst.memory.mapped().is_some()) {
            let region = BufferCopy {
                dst_offset: 0,
                ..*region
            };
            state.note_work(total);
            let slot = state.record(
                Op::Copy {
                    src: visible,
                    dst: &dst,
                    region,
                },
                how.profile,
            )?;
            return Ok(self.on_device(state, slot.into_iter().collect()));
        }
        if let (Some(pointer), true) = (dst.memory.mapped(), direct) {
            let start = self.host_start();
            let to = pointer.as_ptr() as usize + dst.offset as usize;
            // SAFETY: the region lies within the memory object (checked by the builder), nothing on the device uses it
            // now; the application keeps the source valid.
            unsafe {
                copy_region(
                    host.base,
                    to,
                    &BufferCopy {
                        dst_offset: 0,
                        ..*region
                    },
                )
            };
            return Ok(self.on_host(state, start));
        }
        state.note_work(total);
        if linear && total <= UPDATE {
            let from = host.base.wrapping_add(region.src_offset as usize);
            // SAFETY: the application keeps the source readable for its size until the command has completed.
            let data = unsafe { std::slice::from_raw_parts(from as *const u8, total as usize) };
            let slot = state.record(Op::Update { dst: &dst, data }, how.profile)?;
            return Ok(self.on_device(state, slot.into_iter().collect()));
        }
        if linear && total > BIG {
            return self.write_chunks(
                state,
                &dst,
                host.base.wrapping_add(region.src_offset as usize),
                how,
            );
        }
        let piece = self.piece(state, true, total)?;
        let into = BufferCopy {
            dst_offset: 0,
            dst_row_pitch: row,
            dst_slice_pitch: plane,
            ..*region
        };
        // SAFETY: the piece has room for the packed region; the application keeps the source valid.
        unsafe { copy_region(host.base, piece.pointer, &into) };
        let from_piece = BufferCopy {
            src_offset: 0,
            dst_offset: 0,
            src_row_pitch: row,
            src_slice_pitch: plane,
            ..*region
        };
        let slot = state.record(
            Op::Copy {
                src: &piece.slice(),
                dst: &dst,
                region: from_piece,
            },
            how.profile,
        )?;
        Ok(self.on_device(state, slot.into_iter().collect()))
    }

    /// A large write: the host fills chunks of staging while the device takes those before.
    fn write_chunks(
        &self,
        state: &mut State,
        dst: &Slice,
        base: usize,
        how: How,
    ) -> ClResult<Encoded> {
        let mut under_way: std::collections::VecDeque<u64> = std::collections::VecDeque::new();
        let mut slots: SmallVec<[_; 2]> = SmallVec::new();
        let mut at = 0;
        while at < dst.size {
            let size = CHUNK.min(dst.size - at);
            if under_way.len() >= IN_FLIGHT {
                if let Some(oldest) = under_way.pop_front() {
                    self.progress.timeline.wait(oldest, None)?;
                }
            }
            let piece = self.piece(state, true, size)?;
            // SAFETY: the piece has room; the application keeps the source readable.
            unsafe {
                copy::copy(base.wrapping_add(at as usize), piece.pointer, size as usize);
            }
            let part = Slice {
                memory: dst.memory.clone(),
                offset: dst.offset + at,
                size,
            };
            let ends = at == 0 || at + size >= dst.size;
            let copy = Op::Copy {
                src: &piece.slice(),
                dst: &part,
                region: BufferCopy::linear(0, 0, size),
            };
            slots.extend(state.record(copy, how.profile && ends)?);
            let value = state.stream.open_value();
            state.submit();
            if self.progress.submitted() < value {
                return err(
                    cl::CL_OUT_OF_RESOURCES,
                    "the transfer could not be submitted",
                );
            }
            under_way.push_back(value);
            at += size;
        }
        Ok(self.on_device(state, slots))
    }

    fn encode_copy(
        &self,
        state: &mut State,
        src: &Ref<Mem>,
        dst: &Ref<Mem>,
        region: &BufferCopy,
        how: How,
    ) -> ClResult<Encoded> {
        let index = self.target.index;
        let (read, written) = (src_extent(region), dst_extent(region));
        let range = region.src_offset..region.src_offset + read;
        src.prepare_bytes(index, range, Touch::Read)?;
        let range = region.dst_offset..region.dst_offset + written;
        dst.prepare_bytes(index, range, writing(written, packed(region).2))?;
        let from = tight(src, index, region.src_offset, read)?;
        let to = tight(dst, index, region.dst_offset, written)?;
        self.note_copy(state, packed(region).2);
        let region = BufferCopy {
            src_offset: 0,
            dst_offset: 0,
            ..*region
        };
        let slot = state.record(
            Op::Copy {
                src: &from,
                dst: &to,
                region,
            },
            how.profile,
        )?;
        Ok(self.on_device(state, slot.into_iter().collect()))
    }

    fn printf_buffer(&self, state: &mut State) -> ClResult<Slice> {
        let memory: Arc<dyn Memory> = match &state.printf {
            Some(memory) => memory.clone(),
            None => {
                let made = self
                    .target
                    .device
                    .backend()
                    .allocate(printf::BUFFER_SIZE, Placement::Device)?;
                state.printf.insert(made).clone()
            }
        };
        Ok(Slice {
            memory,
            offset: 0,
            size: printf::BUFFER_SIZE,
        })
    }

    fn encode_launch(&self, state: &mut State, launch: &Launch, how: How) -> ClResult<Encoded> {
        let index = self.target.index;
        let kernel = &launch.kernel;
        let interface = kernel.code.interface();
        let mut uses: SmallVec<[Use; 8]> = SmallVec::new();
        for (mem, access) in &kernel.buffers {
            let write = access & 2 != 0;
            mem.prepare(index, write)?;
            uses.push(Use {
                slice: mem.slice(index, 0, mem.size() as u64)?,
                write,
            });
        }
        for (mem, access) in &kernel.images {
            mem.prepare(index, access & 2 != 0)?;
        }
        if !kernel.images.is_empty() {
            self.fill_shown_images(state, kernel)?;
        }
        if let Some(globals) = &kernel.globals {
            let slice = Slice {
                memory: globals.clone(),
                offset: 0,
                size: globals.size(),
            };
            uses.push(Use { slice, write: true });
        }
        let mut push: SmallVec<[u8; 256]> = SmallVec::new();
        let mut arg_address = 0;
        if interface.args_in_buffer {
            let size = u64::from(interface.arg_buffer_size)
                .max(kernel.args.len() as u64)
                .max(8);
            let piece = self.argument_piece(state, size)?;
            // SAFETY: the piece is at least as large as the arguments, and nothing else uses it.
            unsafe {
                let to = piece.pointer as *mut u8;
                std::ptr::copy_nonoverlapping(kernel.args.as_ptr(), to, kernel.args.len());
            }
            arg_address = piece.address();
        } else {
            push.extend_from_slice(&kernel.args);
        }
        push.resize(interface.push_size as usize, 0);
        let printf = match (&kernel.printf, interface.uses_printf) {
            (Some(sites), true) => {
                let buffer = self.printf_buffer(state)?;
                state.unordered_barrier()?;
                state.record(
                    Op::Fill {
                        dst: &buffer,
                        pattern: &[0; 4],
                    },
                    false,
                )?;
                state.unordered_barrier()?;
                let head = Slice {
                    size: 8,
                    ..buffer.clone()
                };
                state.record(
                    Op::Update {
                        dst: &head,
                        data: &printf::header(),
                    },
                    false,
                )?;
                state.unordered_barrier()?;
                uses.push(Use {
                    slice: buffer.clone(),
                    write: true,
                });
                Some((sites.clone(), buffer))
            }
            _ => None,
        };
        let resume = self.resume_memory(state, launch)?;
        if let Some(piece) = &resume {
            uses.push(Use {
                slice: piece.slice(),
                write: true,
            });
        }
        let resume_address = resume.as_ref().map_or(0, |piece| piece.address());
        let mut slots: SmallVec<[_; 2]> = SmallVec::new();
        let last = launch.parts.len().saturating_sub(1);
        let mut step = 0;
        for (number, part) in launch.parts.iter().enumerate() {
            if part.step != step {
                step = part.step;
                state.unordered_barrier()?;
            }
            for (implicit, offset) in &interface.implicit {
                let at = *offset as usize;
                let mut first_item = launch.offset;
                for (axis, item) in first_item.iter_mut().enumerate() {
                    let group = part.first_group.get(axis).copied().unwrap_or(0);
                    let local = launch.local.get(axis).copied().unwrap_or(1);
                    *item = item.wrapping_add(group.wrapping_mul(local));
                }
                match implicit {
                    Implicit::ArgBuffer => put(&mut push, at, &arg_address.to_le_bytes()),
                    Implicit::ProgramGlobals => {
                        let address = kernel.globals.as_ref().map_or(0, |memory| memory.address());
                        put(&mut push, at, &address.to_le_bytes());
                    }
                    Implicit::PrintfBuffer => {
                        let address = printf
                            .as_ref()
                            .map_or(0, |(_, buffer)| buffer.memory.address());
                        put(&mut push, at, &address.to_le_bytes());
                    }
                    Implicit::GlobalOffset => put3(&mut push, at, launch.offset),
                    Implicit::GlobalSize => put3(&mut push, at, launch.global),
                    Implicit::NumGroups => put3(&mut push, at, launch.groups),
                    Implicit::EnqueuedLocalSize => put3(&mut push, at, launch.local),
                    Implicit::GroupOffset => put3(&mut push, at, part.first_group),
                    Implicit::GlobalBase => put3(&mut push, at, first_item),
                    Implicit::GlobalEnd => {
                        let mut end = launch.offset;
                        for (end, size) in end.iter_mut().zip(launch.global) {
                            // Both together are at most u32::MAX.
                            *end = end.wrapping_add(size);
                        }
                        put3(&mut push, at, end);
                    }
                    Implicit::WorkDim => put(&mut push, at, &launch.dims.to_le_bytes()),
                    Implicit::ResumeState => put(&mut push, at, &resume_address.to_le_bytes()),
                    Implicit::ResumeGroups => {
                        put3(&mut push, at, launch.groups);
                    }
                }
            }
            let op = Op::Dispatch {
                pipeline: &part.pipeline,
                groups: part.groups,
                push: &push,
                uses: &uses,
                bindings: &kernel.bindings,
                touches_anything: kernel.touches_anything,
            };
            slots.extend(state.record(op, how.profile && (number == 0 || number == last))?);
        }
        if let (Some(piece), Some(part)) = (&resume, launch.parts.first()) {
            slots.extend(encode_resumes(
                state, launch, part, piece, &push, &uses, how,
            )?);
        }
        let [x, y, z] = launch.global.map(u64::from);
        state.note_work(x.saturating_mul(y).saturating_mul(z));
        if !kernel.images.is_empty() {
            self.empty_shown_images(state, kernel)?;
        }
        let mut encoded = self.on_device(state, slots);
        if let Some((sites, buffer)) = printf {
            state.unordered_barrier()?;
            let piece = self.piece(state, false, printf::BUFFER_SIZE)?;
            let region = BufferCopy::linear(0, 0, printf::BUFFER_SIZE);
            state.record(
                Op::Copy {
                    src: &buffer,
                    dst: &piece.slice(),
                    region,
                },
                false,
            )?;
            encoded.place.value = state.value();
            encoded.place.host_seq = state.new_host_task(None);
            encoded.action = Some(Action::Printf { piece, sites });
        }
        Ok(encoded)
    }
}

impl State {
    /// A barrier between the operations of one command, where the stream does not place them itself.
    pub(super) fn unordered_barrier(&mut self) -> ClResult {
        if !self.in_order() {
            self.stream.barrier()?;
        }
        Ok(())
    }
}

fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = block.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn put3(block: &mut [u8], at: usize, values: [u32; 3]) {
    for (axis, value) in values.iter().enumerate() {
        put(block, at + 4 * axis, &value.to_le_bytes());
    }
}
