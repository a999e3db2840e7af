//! Steps on images: reads, writes, copies, fills, and kernels that see them.

use super::launches::Words;
use super::maps::check_pointer;
use super::*;
use crate::picture::{Part, Picture, TEXEL};

/// An image of a buffer or of its own, chosen by its number there.
#[derive(Clone)]
struct Chosen {
    holder: Arc<Buf>,
    number: usize,
    /// Its rows are used as a whole: another device may have to bring them.
    rows: bool,
}

impl Chosen {
    fn picture(&self) -> &Picture {
        &self.holder.pictures[self.number]
    }

    fn touched(&self, part: Part) -> Range<usize> {
        let picture = self.picture();
        match self.rows {
            true => picture.span(picture.rows_of(part)),
            false => picture.span(part),
        }
    }

    fn reads(&self, part: Part) -> Use {
        Use::read(&self.holder, self.touched(part))
    }

    fn writes(&self, part: Part) -> Use {
        Use::write(&self.holder, self.touched(part))
    }
}

impl Worker<'_> {
    /// A random image; none where the device has no images, or the buffer looked at has none.
    fn picture(&mut self) -> Option<Chosen> {
        if !self.shared.world.images {
            return None;
        }
        let holder = match self.rng.below(10) {
            0..=4 => self.buffer(),
            5..=7 => self.rng.pick(&self.images).clone(),
            _ => lock(self.rng.pick(&self.shared.images)).clone(),
        };
        if holder.pictures.is_empty() {
            return None;
        }
        let number = self.rng.below(holder.pictures.len());
        Some(Chosen {
            holder,
            number,
            rows: self.shared.world.several(),
        })
    }

    pub(super) fn read_image(&mut self) {
        let (lane, Some(chosen)) = (self.lane(), self.picture()) else {
            return;
        };
        let picture = chosen.picture();
        let part = picture.part(&mut self.rng);
        self.read_some(
            "read image",
            &lane,
            chosen.reads(part),
            part.texels() * TEXEL,
            |blocking, place, count, list, event| {
                call!(clEnqueueReadImage(
                    lane.id,
                    picture.mem,
                    cl_bool::from(blocking),
                    part.origin.as_ptr(),
                    part.size.as_ptr(),
                    0,
                    0,
                    place,
                    count,
                    list,
                    event
                ))
            },
            |locked, expected| {
                let texels = picture.get(&locked.of(&chosen.holder).bytes, part);
                expected.copy_from_slice(&texels);
            },
        );
    }

    pub(super) fn write_image(&mut self) {
        let (lane, Some(chosen)) = (self.lane(), self.picture()) else {
            return;
        };
        let picture = chosen.picture();
        let part = picture.part(&mut self.rng);
        self.write_some(
            "write image",
            &lane,
            chosen.writes(part),
            part.texels() * TEXEL,
            |blocking, place, count, list, event| {
                call!(clEnqueueWriteImage(
                    lane.id,
                    picture.mem,
                    cl_bool::from(blocking),
                    part.origin.as_ptr(),
                    part.size.as_ptr(),
                    0,
                    0,
                    place,
                    count,
                    list,
                    event
                ))
            },
            |locked, data| picture.put(&mut locked.of(&chosen.holder).bytes, part, data),
        );
    }

    pub(super) fn map_image(&mut self) {
        let (lane, Some(chosen)) = (self.lane(), self.picture()) else {
            return;
        };
        let picture = chosen.picture();
        let part = picture.part(&mut self.rng);
        let way = Way::Object(picture.mem);
        let touched = chosen.touched(part);
        self.map_some(&lane, &chosen.holder, way, touched, |call| {
            let (mut code, mut row, mut slice) = (1, 0, 0);
            let got = call!(clEnqueueMapImage(
                lane.id,
                picture.mem,
                cl_bool::from(call.blocking),
                call.flags,
                part.origin.as_ptr(),
                part.size.as_ptr(),
                &mut row,
                &mut slice,
                call.count,
                call.list,
                call.event,
                &mut code
            ));
            check_pointer(code, got);
            (code, got as usize, picture.mapped(part, row, slice))
        });
    }

    pub(super) fn fill_image(&mut self) {
        let (lane, Some(chosen)) = (self.lane(), self.picture()) else {
            return;
        };
        let picture = chosen.picture();
        let part = picture.part(&mut self.rng);
        let colour = [self.rng.bits() as u32, 1, 2, 3];
        self.enqueue(
            "fill image",
            &lane,
            &[chosen.writes(part)],
            false,
            |count, list, event| {
                call!(clEnqueueFillImage(
                    lane.id,
                    picture.mem,
                    colour.as_ptr().cast(),
                    part.origin.as_ptr(),
                    part.size.as_ptr(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let texels = colour[0].to_le_bytes().repeat(part.texels());
                picture.put(&mut locked.of(&chosen.holder).bytes, part, &texels);
            },
        );
    }

    pub(super) fn copy_image(&mut self) {
        let lane = self.lane();
        let (Some(from), Some(to)) = (self.picture(), self.picture()) else {
            return;
        };
        let (src, dst) = (from.picture(), to.picture());
        let mut read = src.part(&mut self.rng);
        let mut write = dst.part(&mut self.rng);
        for axis in 0..3 {
            let least = read.size[axis].min(write.size[axis]);
            (read.size[axis], write.size[axis]) = (least, least);
        }
        let uses = [to.writes(write), from.reads(read)];
        if !disjoint(&uses[0], &uses[1]) {
            return;
        }
        self.enqueue(
            "copy image",
            &lane,
            &uses,
            false,
            |count, list, event| {
                call!(clEnqueueCopyImage(
                    lane.id,
                    src.mem,
                    dst.mem,
                    read.origin.as_ptr(),
                    write.origin.as_ptr(),
                    read.size.as_ptr(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let texels = src.get(&locked.of(&from.holder).bytes, read);
                dst.put(&mut locked.of(&to.holder).bytes, write, &texels);
            },
        );
    }

    /// A place for packed texels in a view of a buffer.
    fn place(&mut self, size: usize) -> Option<(Arc<Buf>, View, usize, Range<usize>)> {
        let buffer = self.buffer();
        let view = buffer.view(&mut self.rng);
        let room = view.size.checked_sub(size)? / 4 + 1;
        let offset = self.rng.below(room) * 4;
        let used = view.origin + offset..view.origin + offset + size;
        Some((buffer, view, offset, used))
    }

    pub(super) fn image_to_buffer(&mut self) {
        let (lane, Some(chosen)) = (self.lane(), self.picture()) else {
            return;
        };
        let picture = chosen.picture();
        let part = picture.part(&mut self.rng);
        let Some((buffer, view, offset, used)) = self.place(part.texels() * TEXEL) else {
            return;
        };
        let uses = [Use::write(&buffer, used.clone()), chosen.reads(part)];
        if !disjoint(&uses[0], &uses[1]) {
            return;
        }
        self.enqueue(
            "image to buffer",
            &lane,
            &uses,
            false,
            |count, list, event| {
                call!(clEnqueueCopyImageToBuffer(
                    lane.id,
                    picture.mem,
                    view.mem,
                    part.origin.as_ptr(),
                    part.size.as_ptr(),
                    offset,
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let texels = picture.get(&locked.of(&chosen.holder).bytes, part);
                locked.of(&buffer).bytes[used].copy_from_slice(&texels);
            },
        );
    }

    pub(super) fn buffer_to_image(&mut self) {
        let (lane, Some(chosen)) = (self.lane(), self.picture()) else {
            return;
        };
        let picture = chosen.picture();
        let part = picture.part(&mut self.rng);
        let Some((buffer, view, offset, used)) = self.place(part.texels() * TEXEL) else {
            return;
        };
        let uses = [chosen.writes(part), Use::read(&buffer, used.clone())];
        if !disjoint(&uses[0], &uses[1]) {
            return;
        }
        self.enqueue(
            "buffer to image",
            &lane,
            &uses,
            false,
            |count, list, event| {
                call!(clEnqueueCopyBufferToImage(
                    lane.id,
                    view.mem,
                    picture.mem,
                    offset,
                    part.origin.as_ptr(),
                    part.size.as_ptr(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let texels = locked.of(&buffer).bytes[used].to_vec();
                picture.put(&mut locked.of(&chosen.holder).bytes, part, &texels);
            },
        );
    }

    /// A kernel that writes every other texel.
    pub(super) fn paint(&mut self) {
        self.see(true);
    }

    /// A kernel that reads all texels.
    pub(super) fn look(&mut self) {
        self.see(false);
    }

    fn see(&mut self, paints: bool) {
        let (lane, Some(chosen)) = (self.lane(), self.picture()) else {
            return;
        };
        let picture = chosen.picture();
        let all = picture.all();
        let buffer = self.memory();
        let view = buffer.view(&mut self.rng);
        let (room, texels) = (view.size / 4, all.texels());
        if room < texels {
            return;
        }
        let first = self.rng.below(room - texels + 1);
        let several = self.shared.world.several();
        let words = Words::new(buffer, view, first..first + texels, several);
        let (name, uses) = match paints {
            true => (picture.paint, [chosen.writes(all), words.read()]),
            false => (picture.look, [words.write(), chosen.reads(all)]),
        };
        if !disjoint(&uses[0], &uses[1]) {
            return;
        }
        let kernel = self.kernel(name);
        kernel.set(0, picture.mem);
        words.give(&kernel, 1, &mut self.rng);
        let variant = kernel.variant;
        self.enqueue(
            name,
            &lane,
            &uses,
            false,
            |count, list, event| {
                call!(clEnqueueNDRangeKernel(
                    lane.id,
                    kernel.id,
                    3,
                    null(),
                    all.size.as_ptr(),
                    null(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let mut texels = picture.get(&locked.of(&chosen.holder).bytes, all);
                let contents = locked.of(&words.buffer);
                if paints {
                    kernels::paint(&mut texels, &contents.bytes[words.used], variant);
                    picture.put(&mut locked.of(&chosen.holder).bytes, all, &texels);
                } else {
                    kernels::look(&mut contents.bytes[words.used], &texels, variant);
                }
            },
        );
    }
}
