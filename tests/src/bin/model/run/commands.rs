//! The commands, each as the call that it is.

use super::Run;
use crate::program::{Action, Kind, MapHow, Operand, Place, Shape, Side, What};
use pumice_tests::sys::*;
use pumice_tests::{create, ext, ok};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// The last arguments of every command.
pub struct Wait {
    /// Events in the list.
    pub count: cl_uint,
    /// The list.
    pub list: *const cl_event,
    /// Where the event goes.
    pub event: *mut cl_event,
}

impl MapHow {
    fn flags(self) -> cl_map_flags {
        match self {
            Self::Read => CL_MAP_READ,
            Self::Write => CL_MAP_READ | CL_MAP_WRITE,
            Self::Invalidate => CL_MAP_WRITE_INVALIDATE_REGION,
        }
    }
}

impl Run<'_> {
    /// Where a place is.
    pub(super) fn pointer(&self, place: &Place) -> *mut c_void {
        let address = match place.map {
            None => self.objects[place.memory].address + place.at,
            Some(map) => match &self.program.actions[map].what {
                What::Map { side, .. } => self.maps[map] + place.at - side.at,
                _ => 0,
            },
        };
        address as *mut c_void
    }

    fn object(&self, side: &Side) -> (cl_mem, usize) {
        self.objects[side.memory].at(&self.program.memories[side.memory], side)
    }

    fn is_usm(&self, memory: usize) -> bool {
        matches!(self.program.memories[memory].kind, Kind::Usm(_))
    }

    /// Origin and region of whole rows of an image.
    fn rows(&self, side: &Side, size: usize) -> ([usize; 3], [usize; 3]) {
        let Kind::Image(row) = self.program.memories[side.memory].kind else {
            return ([0; 3], [0; 3]);
        };
        ([0, side.at / row, 0], [row / 4, size / row, 1])
    }

    pub(super) fn enqueue(&mut self, number: usize, action: &Action, wait: &Wait) {
        let queue = self.queues[action.queue];
        let blocking = cl_bool::from(action.blocking);
        let (count, list, event) = (wait.count, wait.list, wait.event);
        match &action.what {
            What::Read(side, place, shape) => {
                self.read(queue, blocking, (side, place, shape), wait)
            }
            What::Write(side, place, shape) => {
                self.write(queue, blocking, (side, place, shape), wait);
            }
            What::Copy(src, dst, shape) => self.copy(queue, (src, dst, shape), wait),
            What::Fill(side, size, pattern) => {
                let (mem, at) = self.object(side);
                let (bytes, length) = (pattern.as_ptr().cast(), pattern.len());
                ok!(clEnqueueFillBuffer(
                    queue, mem, bytes, length, at, *size, count, list, event
                ));
            }
            What::Memcpy(dst, src, size) => {
                let (to, from) = (self.pointer(dst), self.pointer(src));
                let usm = self.is_usm(dst.memory) || self.is_usm(src.memory);
                self.memcpy((queue, blocking), (to, from, *size), usm, wait);
            }
            What::MemFill(place, size, pattern) => {
                let at = self.pointer(place);
                let (bytes, length) = (pattern.as_ptr().cast(), pattern.len());
                if self.is_usm(place.memory) {
                    let code = ext!(
                        self.world,
                        clEnqueueMemFillINTEL: clEnqueueMemFillINTEL_t(
                            queue, at, bytes, length, *size, count, list, event
                        )
                    );
                    assert_eq!(code, 0, "clEnqueueMemFillINTEL");
                } else {
                    ok!(clEnqueueSVMMemFill(
                        queue, at, bytes, length, *size, count, list, event
                    ));
                }
            }
            What::Map {
                side,
                size,
                how,
                svm,
            } => {
                self.maps[number] = self.map((queue, blocking), (side, *size, *how), *svm, wait);
            }
            What::Unmap(map) => self.unmap(queue, *map, wait),
            What::Kernel {
                dst,
                src,
                words,
                add,
                spins,
            } => {
                let kernel = self.world.kernel;
                for (index, operand) in [(0, dst), (1, src)] {
                    let at = self.argument(index, operand) as cl_uint;
                    self.set(index + 2, at);
                }
                for (index, value) in [(4, *add), (5, *spins as cl_uint), (6, 5), (7, 2)] {
                    self.set(index, value);
                }
                let none = null();
                ok!(clEnqueueNDRangeKernel(
                    queue, kernel, 1, none, words, none, count, list, event
                ));
            }
            What::ReadImage(side, place, size) => {
                let ((origin, region), to) = (self.rows(side, *size), self.pointer(place));
                let (mem, _) = self.object(side);
                let (origin, region) = (origin.as_ptr(), region.as_ptr());
                ok!(clEnqueueReadImage(
                    queue, mem, blocking, origin, region, 0, 0, to, count, list, event
                ));
            }
            What::WriteImage(side, place, size) => {
                let ((origin, region), from) = (self.rows(side, *size), self.pointer(place));
                let (mem, _) = self.object(side);
                let (origin, region) = (origin.as_ptr(), region.as_ptr());
                ok!(clEnqueueWriteImage(
                    queue, mem, blocking, origin, region, 0, 0, from, count, list, event
                ));
            }
            What::ImageToBuffer(image, buffer, size) => {
                let (origin, region) = self.rows(image, *size);
                let ((image, _), (buffer, at)) = (self.object(image), self.object(buffer));
                let (origin, region) = (origin.as_ptr(), region.as_ptr());
                ok!(clEnqueueCopyImageToBuffer(
                    queue, image, buffer, origin, region, at, count, list, event
                ));
            }
            What::BufferToImage(buffer, image, size) => {
                let (origin, region) = self.rows(image, *size);
                let ((image, _), (buffer, at)) = (self.object(image), self.object(buffer));
                let (origin, region) = (origin.as_ptr(), region.as_ptr());
                ok!(clEnqueueCopyBufferToImage(
                    queue, buffer, image, at, origin, region, count, list, event
                ));
            }
            What::FillImage(side, size, byte) => {
                let (origin, region) = self.rows(side, *size);
                let (mem, _) = self.object(side);
                let color = [cl_uint::from(*byte); 4];
                let (origin, region) = (origin.as_ptr(), region.as_ptr());
                let color = color.as_ptr().cast();
                ok!(clEnqueueFillImage(
                    queue, mem, color, origin, region, count, list, event
                ));
            }
            What::Marker => ok!(clEnqueueMarkerWithWaitList(queue, count, list, event)),
            What::Barrier => ok!(clEnqueueBarrierWithWaitList(queue, count, list, event)),
            What::Migrate(memory) => {
                let object = &self.objects[*memory];
                if let Some(mem) = object.mems.first() {
                    ok!(clEnqueueMigrateMemObjects(
                        queue, 1, mem, 0, count, list, event
                    ));
                } else {
                    let pointer = object.address as *const c_void;
                    ok!(clEnqueueSVMMigrateMem(
                        queue,
                        1,
                        (&raw const pointer).cast_mut(),
                        null(),
                        0,
                        count,
                        list,
                        event
                    ));
                }
            }
            What::Free(memory) => {
                let mut pointer = self.objects[*memory].give_up();
                ok!(clEnqueueSVMFree(
                    queue,
                    1,
                    &mut pointer,
                    None,
                    null_mut(),
                    count,
                    list,
                    event
                ));
            }
            _ => {}
        }
    }

    fn set(&self, index: cl_uint, value: cl_uint) {
        let value = (&raw const value).cast();
        ok!(clSetKernelArg(self.world.kernel, index, 4, value));
    }

    /// Sets a pointer argument; gives the word that the kernel begins at.
    fn argument(&self, index: cl_uint, operand: &Operand) -> usize {
        let kernel = self.world.kernel;
        match operand {
            Operand::Object(side) => {
                let (mem, at) = self.object(side);
                let value = (&raw const mem).cast();
                ok!(clSetKernelArg(kernel, index, size_of::<cl_mem>(), value));
                at / 4
            }
            Operand::Address(place) => {
                let pointer = self.pointer(place);
                if self.is_usm(place.memory) {
                    let code = ext!(
                        self.world,
                        clSetKernelArgMemPointerINTEL: clSetKernelArgMemPointerINTEL_t(
                            kernel, index, pointer
                        )
                    );
                    assert_eq!(code, 0, "clSetKernelArgMemPointerINTEL");
                } else {
                    ok!(clSetKernelArgSVMPointer(kernel, index, pointer));
                }
                0
            }
        }
    }

    fn read(
        &self,
        queue: cl_command_queue,
        blocking: cl_bool,
        (side, place, shape): (&Side, &Place, &Shape),
        wait: &Wait,
    ) {
        let ((mem, at), to) = (self.object(side), self.pointer(place));
        let (count, list, event) = (wait.count, wait.list, wait.event);
        if shape.rows == 1 {
            ok!(clEnqueueReadBuffer(
                queue, mem, blocking, at, shape.row, to, count, list, event
            ));
            return;
        }
        ok!(clEnqueueReadBufferRect(
            queue,
            mem,
            blocking,
            [at % shape.first, at / shape.first, 0].as_ptr(),
            [0; 3].as_ptr(),
            [shape.row, shape.rows, 1].as_ptr(),
            shape.first,
            0,
            shape.second,
            0,
            to,
            count,
            list,
            event
        ));
    }

    fn write(
        &self,
        queue: cl_command_queue,
        blocking: cl_bool,
        (side, place, shape): (&Side, &Place, &Shape),
        wait: &Wait,
    ) {
        let ((mem, at), from) = (self.object(side), self.pointer(place));
        let (count, list, event) = (wait.count, wait.list, wait.event);
        if shape.rows == 1 {
            ok!(clEnqueueWriteBuffer(
                queue, mem, blocking, at, shape.row, from, count, list, event
            ));
            return;
        }
        ok!(clEnqueueWriteBufferRect(
            queue,
            mem,
            blocking,
            [at % shape.first, at / shape.first, 0].as_ptr(),
            [0; 3].as_ptr(),
            [shape.row, shape.rows, 1].as_ptr(),
            shape.first,
            0,
            shape.second,
            0,
            from,
            count,
            list,
            event
        ));
    }

    fn copy(
        &self,
        queue: cl_command_queue,
        (src, dst, shape): (&Side, &Side, &Shape),
        wait: &Wait,
    ) {
        let ((from, first), (to, second)) = (self.object(src), self.object(dst));
        let (count, list, event) = (wait.count, wait.list, wait.event);
        if shape.rows == 1 {
            ok!(clEnqueueCopyBuffer(
                queue, from, to, first, second, shape.row, count, list, event
            ));
            return;
        }
        ok!(clEnqueueCopyBufferRect(
            queue,
            from,
            to,
            [first % shape.first, first / shape.first, 0].as_ptr(),
            [second % shape.second, second / shape.second, 0].as_ptr(),
            [shape.row, shape.rows, 1].as_ptr(),
            shape.first,
            0,
            shape.second,
            0,
            count,
            list,
            event
        ));
    }

    fn memcpy(
        &self,
        (queue, blocking): (cl_command_queue, cl_bool),
        (to, from, size): (*mut c_void, *const c_void, usize),
        usm: bool,
        wait: &Wait,
    ) {
        let (count, list, event) = (wait.count, wait.list, wait.event);
        if usm {
            let code = ext!(
                self.world,
                clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_t(
                    queue, blocking, to, from, size, count, list, event
                )
            );
            assert_eq!(code, 0, "clEnqueueMemcpyINTEL");
        } else {
            ok!(clEnqueueSVMMemcpy(
                queue, blocking, to, from, size, count, list, event
            ));
        }
    }

    /// Gives the pointer.
    fn map(
        &self,
        (queue, blocking): (cl_command_queue, cl_bool),
        (side, size, how): (&Side, usize, MapHow),
        svm: bool,
        wait: &Wait,
    ) -> usize {
        let (count, list, event) = (wait.count, wait.list, wait.event);
        let flags = how.flags();
        if svm {
            let pointer = (self.objects[side.memory].address + side.at) as *mut c_void;
            ok!(clEnqueueSVMMap(
                queue, blocking, flags, pointer, size, count, list, event
            ));
            return pointer as usize;
        }
        let (mem, at) = self.object(side);
        create!(clEnqueueMapBuffer(
            queue, mem, blocking, flags, at, size, count, list, event
        )) as usize
    }

    fn unmap(&self, queue: cl_command_queue, map: usize, wait: &Wait) {
        let pointer = self.maps[map] as *mut c_void;
        let (count, list, event) = (wait.count, wait.list, wait.event);
        match &self.program.actions[map].what {
            What::Map { svm: true, .. } => {
                ok!(clEnqueueSVMUnmap(queue, pointer, count, list, event));
            }
            What::Map { side, .. } => {
                let (mem, _) = self.object(side);
                ok!(clEnqueueUnmapMemObject(
                    queue, mem, pointer, count, list, event
                ));
            }
            _ => {}
        }
    }

    /// What is mapped when the program is over.
    pub(super) fn unmap_all(&mut self) {
        let none = Wait {
            count: 0,
            list: null(),
            event: null_mut(),
        };
        let actions = &self.program.actions;
        for (number, action) in actions.iter().enumerate() {
            let mapped = matches!(action.what, What::Map { .. });
            if mapped
                && !actions
                    .iter()
                    .any(|other| other.what == What::Unmap(number))
            {
                self.unmap(self.queues[action.queue], number, &none);
            }
        }
        for queue in &self.queues {
            ok!(clFinish(*queue));
        }
    }
}
