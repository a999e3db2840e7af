//! The commands of a program: one call of OpenCL for each action.

mod kernels;
mod recorded;
mod waiting;

use crate::program::{MapHow, Place, Shape, Side, What};
use crate::run::{Mapped, Run};
use pumice_tests::sys::*;
use pumice_tests::{call, ext, ok};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// The arguments that every command has.
#[derive(Clone, Copy)]
struct Call {
    queue: cl_command_queue,
    blocking: cl_bool,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
    /// The command is recorded, in place of being enqueued.
    record: Option<Record>,
}

/// The arguments that a command has where it is recorded; how many sync points it waits for stands in its [`Call`].
#[derive(Clone, Copy)]
struct Record {
    buffer: cl_command_buffer_khr,
    properties: *const cl_command_properties_khr,
    list: *const cl_sync_point_khr,
    point: *mut cl_sync_point_khr,
    handle: *mut cl_mutable_command_khr,
}

/// Enqueues a command: its own arguments are those between the queue and the wait list. Where a function is named that records
/// it with the same arguments, it may be recorded.
macro_rules! command {
    ($run:expr, $call:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let Call { queue, count, list, event, .. } = $call;
        pumice_tests::call!($name(queue, $($arg,)* count, list, event))
    }};
    ($run:expr, $call:expr, $name:ident: $type:ident($($arg:expr),* $(,)?)) => {{
        let Call { queue, count, list, event, .. } = $call;
        pumice_tests::ext!($run.world, $name: $type(queue, $($arg,)* count, list, event))
    }};
    ($run:expr, $call:expr, $name:ident or $other:ident: $type:ident($($arg:expr),* $(,)?)) => {
        match $call.record {
            None => command!($run, $call, $name($($arg),*)),
            Some(_) => record!($run, $call, $other: $type($($arg),*)),
        }
    };
}

/// Records a command, with its own arguments.
macro_rules! record {
    ($run:expr, $call:expr, $name:ident: $type:ident($($arg:expr),* $(,)?)) => {{
        let Call { queue, count, record, .. } = $call;
        let Some(Record { buffer, properties, list, point, handle }) = record else {
            return CL_INVALID_OPERATION;
        };
        pumice_tests::ext!($run.world, $name: $type(
            buffer, queue, properties, $($arg,)* count, list, point, handle
        ))
    }};
}
use {command, record};

fn flags(how: MapHow) -> cl_map_flags {
    match how {
        MapHow::Read => CL_MAP_READ,
        MapHow::Write => CL_MAP_READ | CL_MAP_WRITE,
        MapHow::Invalidate => CL_MAP_WRITE_INVALIDATE_REGION,
    }
}

/// Column and row of a byte of an image.
fn texel(at: usize, pitch: usize) -> [usize; 3] {
    [at % pitch / 4, at / pitch, 0]
}

impl Run<'_> {
    fn object(&self, side: Side) -> cl_mem {
        self.stage.memories[side.memory].views[side.view]
    }

    /// Its byte, from the start of the object.
    fn offset(&self, side: Side) -> usize {
        side.at - self.program.memories[side.memory].views[side.view].start
    }

    fn pitch(&self, side: Side) -> Option<usize> {
        self.program.memories[side.memory].kind.pitch()
    }

    fn pointer(&self, place: Place) -> *mut c_void {
        self.address(place) as *mut c_void
    }

    /// Enqueues the command of an action. Its result.
    pub(crate) fn enqueue(&mut self, index: usize) -> cl_int {
        let program = self.program;
        let action = &program.actions[index];
        let list: Vec<cl_event> = action.waits.iter().map(|&of| self.events[of]).collect();
        let mut event = null_mut();
        let call = Call {
            queue: self.stage.queues[action.queue],
            blocking: action.blocking.into(),
            count: list.len() as cl_uint,
            list: if list.is_empty() {
                null()
            } else {
                list.as_ptr()
            },
            event: match program.needs_event(index) {
                true => &raw mut event,
                false => null_mut(),
            },
            record: None,
        };
        let code = self.command(call, index);
        self.events[index] = event;
        code
    }

    /// Enqueues or records a command. Its result.
    fn command(&mut self, call: Call, index: usize) -> cl_int {
        let program = self.program;
        let action = &program.actions[index];
        match &action.what {
            What::Read(side, place, shape) => self.transfer(call, true, *side, *place, shape),
            What::Write(side, place, shape) => self.transfer(call, false, *side, *place, shape),
            What::Copy(src, dst, shape) => self.copy(call, *src, *dst, shape),
            What::Fill(side, size, pattern) => self.fill(call, *side, *size, pattern),
            What::Memcpy(dst, src, size, intel) => self.memcpy(call, *dst, *src, *size, *intel),
            What::MemFill(place, size, pattern) => self.mem_fill(call, *place, *size, pattern),
            What::Map(side, size, how) => self.map(call, index, *side, *size, *how),
            What::SvmMap(place, size, how) => {
                let pointer = self.pointer(*place);
                self.maps[index] = Some(Mapped {
                    pointer: pointer as usize,
                    pitch: 0,
                });
                let flags = flags(*how);
                command!(
                    self,
                    call,
                    clEnqueueSVMMap(call.blocking, flags, pointer, *size)
                )
            }
            What::Unmap(map) => self.unmap(call, *map),
            What::Kernel {
                dst,
                src,
                words,
                add,
                spins,
                manner,
            } => self.kernel(call, [*dst, *src], *manner, *words, [*add, *spins as u32]),
            What::GateKernel(_) => self.gate_kernel(call, index),
            What::GateNative => self.gate_native(call, index),
            What::Doomed => self.doomed(call),
            What::Replay { .. } => self.replay(call, action),
            What::Signal(list) => self.semaphores(call, index, list, true),
            What::Await(list) => self.semaphores(call, index, list, false),
            What::Marker => command!(self, call, clEnqueueMarkerWithWaitList()),
            What::Barrier => self.barrier(call),
            What::Migrate(memory, to_host) => self.migrate(call, *memory, *to_host),
            What::Free(memory) => {
                let mut pointer = self.stage.memories[*memory].svm.unwrap_or(null_mut());
                command!(
                    self,
                    call,
                    clEnqueueSVMFree(1, &mut pointer, None, null_mut())
                )
            }
            _ => CL_INVALID_OPERATION,
        }
    }

    fn barrier(&self, call: Call) -> cl_int {
        command!(
            self,
            call,
            clEnqueueBarrierWithWaitList or clCommandBarrierWithWaitListKHR:
                clCommandBarrierWithWaitListKHR_fn()
        )
    }

    fn transfer(&self, call: Call, read: bool, side: Side, place: Place, shape: &Shape) -> cl_int {
        let (object, pointer) = (self.object(side), self.pointer(place));
        let (offset, blocking) = (self.offset(side), call.blocking);
        if let Some(pitch) = self.pitch(side) {
            let (origin, region) = (texel(offset, pitch), [shape.row / 4, shape.rows, 1]);
            let (origin, region) = (origin.as_ptr(), region.as_ptr());
            let row = if shape.second == shape.row {
                0
            } else {
                shape.second
            };
            return match read {
                true => command!(
                    self,
                    call,
                    clEnqueueReadImage(object, blocking, origin, region, row, 0, pointer)
                ),
                false => command!(
                    self,
                    call,
                    clEnqueueWriteImage(object, blocking, origin, region, row, 0, pointer)
                ),
            };
        }
        if shape.rows == 1 {
            let size = shape.row;
            return match read {
                true => command!(
                    self,
                    call,
                    clEnqueueReadBuffer(object, blocking, offset, size, pointer)
                ),
                false => command!(
                    self,
                    call,
                    clEnqueueWriteBuffer(object, blocking, offset, size, pointer)
                ),
            };
        }
        let (origin, zero) = ([offset, 0, 0], [0; 3]);
        let region = [shape.row, shape.rows, 1];
        let (origin, zero, region) = (origin.as_ptr(), zero.as_ptr(), region.as_ptr());
        let (first, second) = (shape.first, shape.second);
        match read {
            true => command!(
                self,
                call,
                clEnqueueReadBufferRect(
                    object, blocking, origin, zero, region, first, 0, second, 0, pointer
                )
            ),
            false => command!(
                self,
                call,
                clEnqueueWriteBufferRect(
                    object, blocking, origin, zero, region, first, 0, second, 0, pointer
                )
            ),
        }
    }

    fn copy(&self, call: Call, src: Side, dst: Side, shape: &Shape) -> cl_int {
        let (from, to) = (self.object(src), self.object(dst));
        let (from_at, to_at) = (self.offset(src), self.offset(dst));
        let texels = [shape.row / 4, shape.rows, 1];
        let region = texels.as_ptr();
        match (self.pitch(src), self.pitch(dst)) {
            (Some(a), Some(b)) => {
                let (a, b) = (texel(from_at, a), texel(to_at, b));
                let (a, b) = (a.as_ptr(), b.as_ptr());
                command!(
                    self,
                    call,
                    clEnqueueCopyImage or clCommandCopyImageKHR:
                        clCommandCopyImageKHR_fn(from, to, a, b, region)
                )
            }
            (Some(a), None) => {
                let origin = texel(from_at, a);
                let origin = origin.as_ptr();
                command!(
                    self,
                    call,
                    clEnqueueCopyImageToBuffer or clCommandCopyImageToBufferKHR:
                        clCommandCopyImageToBufferKHR_fn(from, to, origin, region, to_at)
                )
            }
            (None, Some(b)) => {
                let origin = texel(to_at, b);
                let origin = origin.as_ptr();
                command!(
                    self,
                    call,
                    clEnqueueCopyBufferToImage or clCommandCopyBufferToImageKHR:
                        clCommandCopyBufferToImageKHR_fn(from, to, from_at, origin, region)
                )
            }
            (None, None) if shape.rows == 1 => command!(
                self,
                call,
                clEnqueueCopyBuffer or clCommandCopyBufferKHR:
                    clCommandCopyBufferKHR_fn(from, to, from_at, to_at, shape.row)
            ),
            (None, None) => {
                let (a, b, region) = ([from_at, 0, 0], [to_at, 0, 0], [shape.row, shape.rows, 1]);
                let (a, b, region) = (a.as_ptr(), b.as_ptr(), region.as_ptr());
                let (first, second) = (shape.first, shape.second);
                command!(
                    self,
                    call,
                    clEnqueueCopyBufferRect or clCommandCopyBufferRectKHR:
                        clCommandCopyBufferRectKHR_fn(from, to, a, b, region, first, 0, second, 0)
                )
            }
        }
    }

    fn fill(&self, call: Call, side: Side, size: usize, pattern: &[u8]) -> cl_int {
        let (object, at) = (self.object(side), self.offset(side));
        if let Some(pitch) = self.pitch(side) {
            let mut color = [0u32; 4];
            if let Ok(word) = pattern.try_into() {
                color[0] = u32::from_le_bytes(word);
            }
            let (origin, region) = (texel(at, pitch), [pitch / 4, size / pitch, 1]);
            let (color, origin, region) = (color.as_ptr().cast(), origin.as_ptr(), region.as_ptr());
            return command!(
                self,
                call,
                clEnqueueFillImage or clCommandFillImageKHR:
                    clCommandFillImageKHR_fn(object, color, origin, region)
            );
        }
        let (pattern, length) = (pattern.as_ptr().cast(), pattern.len());
        command!(
            self,
            call,
            clEnqueueFillBuffer or clCommandFillBufferKHR:
                clCommandFillBufferKHR_fn(object, pattern, length, at, size)
        )
    }

    fn memcpy(&self, call: Call, dst: Place, src: Place, size: usize, intel: bool) -> cl_int {
        let (to, from) = (self.pointer(dst), self.pointer(src).cast_const());
        match intel {
            _ if call.record.is_some() => record!(
                self,
                call,
                clCommandSVMMemcpyKHR: clCommandSVMMemcpyKHR_fn(to, from, size)
            ),
            true => command!(
                self,
                call,
                clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_t(call.blocking, to, from, size)
            ),
            false => command!(
                self,
                call,
                clEnqueueSVMMemcpy(call.blocking, to, from, size)
            ),
        }
    }

    /// Reads what only devices reach.
    pub(crate) fn read_usm(
        &self,
        device: usize,
        to: *mut c_void,
        from: *const c_void,
        size: usize,
    ) {
        let (queue, own) = self.stage.queue_of(device);
        let code = ext!(
            self.world,
            clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_t(
                queue, CL_TRUE, to, from, size, 0, null(), null_mut()
            )
        );
        assert_eq!(code, 0, "clEnqueueMemcpyINTEL");
        if own {
            ok!(clReleaseCommandQueue(queue));
        }
    }

    fn mem_fill(&self, call: Call, place: Place, size: usize, pattern: &[u8]) -> cl_int {
        let (pointer, length) = (self.pointer(place), pattern.len());
        let pattern = pattern.as_ptr().cast();
        match self.program.memories[place.memory].kind.is_usm() {
            true => command!(
                self,
                call,
                clEnqueueMemFillINTEL: clEnqueueMemFillINTEL_t(pointer, pattern, length, size)
            ),
            false => command!(
                self,
                call,
                clEnqueueSVMMemFill or clCommandSVMMemFillKHR:
                    clCommandSVMMemFillKHR_fn(pointer, pattern, length, size)
            ),
        }
    }

    fn map(&mut self, call: Call, index: usize, side: Side, size: usize, how: MapHow) -> cl_int {
        let (object, at, mut code) = (self.object(side), self.offset(side), 1);
        let (flags, mut row) = (flags(how), 0usize);
        let pointer = match self.pitch(side) {
            Some(pitch) => {
                let (origin, region) = (texel(at, pitch), [pitch / 4, size / pitch, 1]);
                call!(clEnqueueMapImage(
                    call.queue,
                    object,
                    call.blocking,
                    flags,
                    origin.as_ptr(),
                    region.as_ptr(),
                    &mut row,
                    null_mut(),
                    call.count,
                    call.list,
                    call.event,
                    &mut code
                ))
            }
            None => call!(clEnqueueMapBuffer(
                call.queue,
                object,
                call.blocking,
                flags,
                at,
                size,
                call.count,
                call.list,
                call.event,
                &mut code
            )),
        };
        self.maps[index] = Some(Mapped {
            pointer: pointer as usize,
            pitch: row,
        });
        code
    }

    fn unmap(&self, call: Call, map: usize) -> cl_int {
        let pointer = self.maps[map].map_or(0, |mapped| mapped.pointer) as *mut c_void;
        match self.program.actions[map].what {
            What::Map(side, ..) => {
                command!(
                    self,
                    call,
                    clEnqueueUnmapMemObject(self.object(side), pointer)
                )
            }
            _ => command!(self, call, clEnqueueSVMUnmap(pointer)),
        }
    }

    fn migrate(&self, call: Call, memory: usize, to_host: bool) -> cl_int {
        let flags = if to_host {
            CL_MIGRATE_MEM_OBJECT_HOST
        } else {
            0
        };
        let (of, made) = (&self.program.memories[memory], &self.stage.memories[memory]);
        if let Some(object) = made.views.first() {
            return command!(self, call, clEnqueueMigrateMemObjects(1, object, flags));
        }
        let mut pointer = made.base as *const c_void;
        match of.kind.is_usm() {
            true => command!(
                self,
                call,
                clEnqueueMigrateMemINTEL: clEnqueueMigrateMemINTEL_t(pointer, of.size, flags)
            ),
            false => command!(
                self,
                call,
                clEnqueueSVMMigrateMem(1, &mut pointer, &of.size, flags)
            ),
        }
    }
}
