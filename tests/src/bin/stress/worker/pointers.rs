//! Steps on pointers: copies, fills and maps of shared virtual memory, and a kernel to which nothing declares the memory that it reads.

use super::launches::Words;
use super::*;

impl Worker<'_> {
    /// An allocation: of its own, or with a buffer over it. None where the devices have no such memory.
    fn allocation(&mut self) -> Option<(Arc<Buf>, usize)> {
        if self.shared.world.svm.is_empty() {
            return None;
        }
        let holder = match self.rng.below(10) {
            0..=2 => self.buffer(),
            3..=7 => self.rng.pick(&self.svms).clone(),
            _ => lock(self.rng.pick(&self.shared.svms)).clone(),
        };
        let address = holder.address()?;
        Some((holder, address))
    }

    /// Memory that kernels are given: a buffer, or an allocation of its own.
    pub(super) fn memory(&mut self) -> Arc<Buf> {
        if self.shared.world.svm.is_empty() || self.rng.percent(70) {
            return self.buffer();
        }
        if self.rng.percent(60) {
            self.rng.pick(&self.svms).clone()
        } else {
            lock(self.rng.pick(&self.shared.svms)).clone()
        }
    }

    pub(super) fn read_svm(&mut self) {
        let (lane, Some((holder, address))) = (self.lane(), self.allocation()) else {
            return;
        };
        let used = self.rng.range(holder.size(), 1);
        let (at, size) = (address + used.start, used.len());
        self.read_some(
            "read svm",
            &lane,
            Use::read(&holder, used.clone()),
            size,
            |blocking, place, count, list, event| {
                call!(clEnqueueSVMMemcpy(
                    lane.id,
                    cl_bool::from(blocking),
                    place,
                    at as *const c_void,
                    size,
                    count,
                    list,
                    event
                ))
            },
            |locked, expected| expected.copy_from_slice(&locked.of(&holder).bytes[used]),
        );
    }

    pub(super) fn write_svm(&mut self) {
        let (lane, Some((holder, address))) = (self.lane(), self.allocation()) else {
            return;
        };
        let used = self.rng.range(holder.size(), 1);
        let (at, size) = (address + used.start, used.len());
        self.write_some(
            "write svm",
            &lane,
            Use::write(&holder, used.clone()),
            size,
            |blocking, place, count, list, event| {
                call!(clEnqueueSVMMemcpy(
                    lane.id,
                    cl_bool::from(blocking),
                    at as *mut c_void,
                    place,
                    size,
                    count,
                    list,
                    event
                ))
            },
            |locked, data| locked.of(&holder).bytes[used].copy_from_slice(data),
        );
    }

    pub(super) fn copy_svm(&mut self) {
        let lane = self.lane();
        let (Some((src, from)), Some((dst, to))) = (self.allocation(), self.allocation()) else {
            return;
        };
        let part = self.rng.range(src.size().min(dst.size()), 1);
        let at = self.rng.below(dst.size() - part.len() + 1);
        let written = at..at + part.len();
        let uses = [
            Use::read(&src, part.clone()),
            Use::write(&dst, written.clone()),
        ];
        if !disjoint(&uses[0], &uses[1]) {
            return;
        }
        let (to, from) = (to + at, from + part.start);
        let size = part.len();
        self.enqueue(
            "copy svm",
            &lane,
            &uses,
            false,
            |count, list, event| {
                call!(clEnqueueSVMMemcpy(
                    lane.id,
                    CL_FALSE,
                    to as *mut c_void,
                    from as *const c_void,
                    size,
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let bytes = locked.of(&src).bytes[part].to_vec();
                locked.of(&dst).bytes[written].copy_from_slice(&bytes);
            },
        );
    }

    pub(super) fn fill_svm(&mut self) {
        let (lane, Some((holder, address))) = (self.lane(), self.allocation()) else {
            return;
        };
        let length = 1 << self.rng.below(7);
        let pattern = self.rng.bytes(length);
        let part = self.rng.range(holder.size(), length);
        self.enqueue(
            "fill svm",
            &lane,
            &[Use::write(&holder, part.clone())],
            false,
            |count, list, event| {
                call!(clEnqueueSVMMemFill(
                    lane.id,
                    (address + part.start) as *mut c_void,
                    pattern.as_ptr().cast(),
                    length,
                    part.len(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                for piece in locked.of(&holder).bytes[part.clone()].chunks_exact_mut(length) {
                    piece.copy_from_slice(&pattern);
                }
            },
        );
    }

    pub(super) fn map_svm(&mut self) {
        let (lane, Some((holder, address))) = (self.lane(), self.allocation()) else {
            return;
        };
        let part = self.rng.range(holder.size(), 1);
        let pointer = address + part.start;
        let way = Way::Pointer;
        let rows = vec![(0, part.clone())];
        self.map_some(&lane, &holder, way, part.clone(), |call| {
            let code = call!(clEnqueueSVMMap(
                lane.id,
                cl_bool::from(call.blocking),
                call.flags,
                pointer as *mut c_void,
                part.len(),
                call.count,
                call.list,
                call.event
            ));
            (code, pointer, rows)
        });
    }

    pub(super) fn migrate_svm(&mut self) {
        let (lane, Some((holder, address))) = (self.lane(), self.allocation()) else {
            return;
        };
        let part = self.rng.range(holder.size(), 1);
        let mut pointer = (address + part.start) as *const c_void;
        let flags = *self.rng.pick(&[0, CL_MIGRATE_MEM_OBJECT_HOST]);
        let size = part.len();
        self.enqueue(
            "migrate svm",
            &lane,
            &[Use::read(&holder, part)],
            false,
            |count, list, event| {
                call!(clEnqueueSVMMigrateMem(
                    lane.id,
                    1,
                    &mut pointer,
                    &size,
                    flags,
                    count,
                    list,
                    event
                ))
            },
            |_| {},
        );
    }

    /// As `mix`, but the source is known by its address alone.
    pub(super) fn reach(&mut self) {
        let (lane, Some((src, address))) = (self.lane(), self.allocation()) else {
            return;
        };
        let dst = self.memory();
        let view = dst.view(&mut self.rng);
        let (a, b) = (self.rng.range(view.size, 4), self.rng.range(src.size(), 4));
        let words = a.len().min(b.len()) / 4;
        let (to, from) = (a.start / 4, b.start);
        let several = self.shared.world.several();
        let to = Words::new(dst, view, to..to + words, several);
        let used = from..from + words * 4;
        let touched = if several { 0..src.size() } else { used.clone() };
        let uses = [to.write(), Use::read(&src, touched)];
        if !disjoint(&uses[0], &uses[1]) {
            return;
        }
        let kernel = self.kernel("reach");
        let pair = [self.rng.bits() as u32, self.rng.bits() as u32];
        to.give(&kernel, 0, &mut self.rng);
        kernel
            .set(2, (address + from) as cl_ulong)
            .set(3, pair)
            .reaches(address);
        let shape = self.shape(words);
        let variant = kernel.variant;
        self.launch("reach", &lane, &kernel, &uses, words, shape, |locked| {
            let read = locked.of(&src).bytes[used].to_vec();
            let dst = &mut locked.of(&to.buffer).bytes[to.used];
            kernels::mix(dst, &read, pair[0], pair[1], variant);
        });
    }
}
