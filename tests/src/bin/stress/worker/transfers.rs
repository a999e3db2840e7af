//! Steps that move bytes: reads, writes, copies and fills, of ranges and of boxes.

use super::*;

/// A box of memory (in bytes) and the same as rows with gaps: `(origin, row pitch, slice pitch)` on one side.
#[derive(Clone, Copy)]
struct Layout {
    origin: [usize; 3],
    row: usize,
    slice: usize,
}

impl Layout {
    fn random(rng: &mut Rng, region: [usize; 3], room: usize) -> Option<Self> {
        let row = region[0] + rng.below(3) * rng.below(64);
        let slice = row * region[1] + rng.below(2) * row * rng.below(3);
        let origin = [rng.below(16), rng.below(2), rng.below(2)];
        let layout = Self { origin, row, slice };
        let fits = origin[0] + region[0] <= row;
        let row = if fits { row } else { origin[0] + region[0] };
        let slice = (row * (origin[1] + region[1]))
            .next_multiple_of(row)
            .max(if slice % row == 0 { slice } else { 0 });
        let layout = Self {
            row,
            slice,
            ..layout
        };
        (layout.span(region).end <= room).then_some(layout)
    }

    fn start(&self) -> usize {
        self.origin[2] * self.slice + self.origin[1] * self.row + self.origin[0]
    }

    /// The bytes from the first to the last.
    fn span(&self, region: [usize; 3]) -> Range<usize> {
        let start = self.start();
        start..start + (region[2] - 1) * self.slice + (region[1] - 1) * self.row + region[0]
    }

    fn rows(self, region: [usize; 3]) -> impl Iterator<Item = Range<usize>> {
        (0..region[2]).flat_map(move |z| {
            (0..region[1]).map(move |y| {
                let at = self.start() + z * self.slice + y * self.row;
                at..at + region[0]
            })
        })
    }
}

impl Worker<'_> {
    pub(super) fn read(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let part = self.rng.range(view.size, 1);
        let used = view.origin + part.start..view.origin + part.end;
        self.read_some(
            "read",
            &lane,
            Use::read(&buffer, used.clone()),
            part.len(),
            |blocking, place, count, list, event| {
                call!(clEnqueueReadBuffer(
                    lane.id,
                    view.mem,
                    cl_bool::from(blocking),
                    part.start,
                    part.len(),
                    place,
                    count,
                    list,
                    event
                ))
            },
            |locked, expected| expected.copy_from_slice(&locked.of(&buffer).bytes[used]),
        );
    }

    /// Reads into memory of the thread, with room around it that must stay as it is. `effect` puts what is to be read
    /// into as many bytes.
    pub(super) fn read_some(
        &mut self,
        name: &'static str,
        lane: &Arc<Lane>,
        used: Use,
        size: usize,
        call: impl FnOnce(bool, *mut c_void, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        effect: impl FnOnce(&mut Locked<'_>, &mut [u8]),
    ) {
        let blocking = self.rng.percent(30);
        let mut data = vec![0xa5u8; size + 32].into_boxed_slice();
        let mut expected = data.to_vec();
        let place = data[16..].as_mut_ptr().cast();
        let node = self.enqueue(
            name,
            lane,
            &[used],
            blocking,
            |count, list, event| call(blocking, place, count, list, event),
            |locked| effect(locked, &mut expected[16..16 + size]),
        );
        let Some(node) = node else { return };
        if blocking {
            compare(node.name, &data, &expected);
        } else {
            self.pending.push(Pending::Read(node, data, expected));
        }
    }

    /// Writes so many random bytes from memory of the thread.
    pub(super) fn write_some(
        &mut self,
        name: &'static str,
        lane: &Arc<Lane>,
        used: Use,
        size: usize,
        call: impl FnOnce(bool, *const c_void, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        effect: impl FnOnce(&mut Locked<'_>, &[u8]),
    ) {
        let blocking = self.rng.percent(30);
        let data = self.rng.bytes(size).into_boxed_slice();
        let place = data.as_ptr().cast();
        let node = self.enqueue(
            name,
            lane,
            &[used],
            blocking,
            |count, list, event| call(blocking, place, count, list, event),
            |locked| effect(locked, &data),
        );
        if let (Some(node), false) = (node, blocking) {
            self.pending.push(Pending::Write(node, data));
        }
    }

    pub(super) fn write(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let part = self.rng.range(view.size, 1);
        let used = view.origin + part.start..view.origin + part.end;
        self.write_some(
            "write",
            &lane,
            Use::write(&buffer, used.clone()),
            part.len(),
            |blocking, place, count, list, event| {
                call!(clEnqueueWriteBuffer(
                    lane.id,
                    view.mem,
                    cl_bool::from(blocking),
                    part.start,
                    part.len(),
                    place,
                    count,
                    list,
                    event
                ))
            },
            |locked, data| locked.of(&buffer).bytes[used].copy_from_slice(data),
        );
    }

    pub(super) fn region(&mut self) -> [usize; 3] {
        [
            1 + self.rng.below(200),
            1 + self.rng.below(8),
            1 + self.rng.below(3),
        ]
    }

    pub(super) fn read_rect(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let region = self.region();
        let Some(from) = Layout::random(&mut self.rng, region, view.size) else {
            return;
        };
        let Some(to) = Layout::random(&mut self.rng, region, usize::MAX) else {
            return;
        };
        let span = from.span(region);
        let used = view.origin + span.start..view.origin + span.end;
        self.read_some(
            "read rect",
            &lane,
            Use::read(&buffer, used),
            to.span(region).end,
            |blocking, place, count, list, event| {
                call!(clEnqueueReadBufferRect(
                    lane.id,
                    view.mem,
                    cl_bool::from(blocking),
                    from.origin.as_ptr(),
                    to.origin.as_ptr(),
                    region.as_ptr(),
                    from.row,
                    from.slice,
                    to.row,
                    to.slice,
                    place,
                    count,
                    list,
                    event
                ))
            },
            |locked, expected| {
                let bytes = &locked.of(&buffer).bytes[view.origin..];
                for (a, b) in from.rows(region).zip(to.rows(region)) {
                    expected[b].copy_from_slice(&bytes[a]);
                }
            },
        );
    }

    pub(super) fn write_rect(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let region = self.region();
        let Some(to) = Layout::random(&mut self.rng, region, view.size) else {
            return;
        };
        let Some(from) = Layout::random(&mut self.rng, region, usize::MAX) else {
            return;
        };
        let span = to.span(region);
        let used = view.origin + span.start..view.origin + span.end;
        self.write_some(
            "write rect",
            &lane,
            Use::write(&buffer, used),
            from.span(region).end,
            |blocking, place, count, list, event| {
                call!(clEnqueueWriteBufferRect(
                    lane.id,
                    view.mem,
                    cl_bool::from(blocking),
                    to.origin.as_ptr(),
                    from.origin.as_ptr(),
                    region.as_ptr(),
                    to.row,
                    to.slice,
                    from.row,
                    from.slice,
                    place,
                    count,
                    list,
                    event
                ))
            },
            |locked, data| {
                let bytes = &mut locked.of(&buffer).bytes[view.origin..];
                for (a, b) in to.rows(region).zip(from.rows(region)) {
                    bytes[a].copy_from_slice(&data[b]);
                }
            },
        );
    }

    pub(super) fn copy(&mut self) {
        let lane = self.lane();
        let (src, dst) = (self.buffer(), self.buffer());
        let (from, to) = (src.view(&mut self.rng), dst.view(&mut self.rng));
        let part = self.rng.range(from.size.min(to.size), 1);
        let at = self.rng.below(to.size - part.len() + 1);
        let a = from.origin + part.start..from.origin + part.end;
        let b = to.origin + at..to.origin + at + part.len();
        if Arc::ptr_eq(&src, &dst) && a.start < b.end && b.start < a.end {
            return;
        }
        self.enqueue(
            "copy",
            &lane,
            &[Use::read(&src, a.clone()), Use::write(&dst, b.clone())],
            false,
            |count, list, event| {
                call!(clEnqueueCopyBuffer(
                    lane.id,
                    from.mem,
                    to.mem,
                    part.start,
                    at,
                    part.len(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let bytes = locked.of(&src).bytes[a].to_vec();
                locked.of(&dst).bytes[b].copy_from_slice(&bytes);
            },
        );
    }

    pub(super) fn copy_rect(&mut self) {
        let lane = self.lane();
        let (src, dst) = (self.buffer(), self.buffer());
        if Arc::ptr_eq(&src, &dst) {
            return;
        }
        let (from, to) = (src.view(&mut self.rng), dst.view(&mut self.rng));
        let region = self.region();
        let (Some(a), Some(b)) = (
            Layout::random(&mut self.rng, region, from.size),
            Layout::random(&mut self.rng, region, to.size),
        ) else {
            return;
        };
        let shift = |range: Range<usize>, by: usize| range.start + by..range.end + by;
        self.enqueue(
            "copy rect",
            &lane,
            &[
                Use::read(&src, shift(a.span(region), from.origin)),
                Use::write(&dst, shift(b.span(region), to.origin)),
            ],
            false,
            |count, list, event| {
                call!(clEnqueueCopyBufferRect(
                    lane.id,
                    from.mem,
                    to.mem,
                    a.origin.as_ptr(),
                    b.origin.as_ptr(),
                    region.as_ptr(),
                    a.row,
                    a.slice,
                    b.row,
                    b.slice,
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                for (a, b) in a.rows(region).zip(b.rows(region)) {
                    let row = locked.of(&src).bytes[shift(a, from.origin)].to_vec();
                    locked.of(&dst).bytes[shift(b, to.origin)].copy_from_slice(&row);
                }
            },
        );
    }

    pub(super) fn fill(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let length = 1 << self.rng.below(8);
        let pattern = self.rng.bytes(length);
        if pattern.len() > view.size {
            return;
        }
        let part = self.rng.range(view.size, pattern.len());
        let used = view.origin + part.start..view.origin + part.end;
        self.enqueue(
            "fill",
            &lane,
            &[Use::write(&buffer, used.clone())],
            false,
            |count, list, event| {
                call!(clEnqueueFillBuffer(
                    lane.id,
                    view.mem,
                    pattern.as_ptr().cast(),
                    pattern.len(),
                    part.start,
                    part.len(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                for piece in locked.of(&buffer).bytes[used].chunks_exact_mut(pattern.len()) {
                    piece.copy_from_slice(&pattern);
                }
            },
        );
    }
}
