//! A thread: random steps on its own and on shared objects.

use crate::kernels::{self, Kernel, Program};
use crate::pending::{self, chain, compare, map_number, watch, Map, Pending};
use crate::rng::Rng;
use crate::world::{lock, Buf, Lane, Node, Outcome, Plan, Use, World};
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, ok};
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A user event for the thread that sets them: the event, its status, when.
pub struct Gate {
    /// The event, with a reference to give back.
    pub event: cl_event,
    /// The status to set.
    pub status: cl_int,
    /// When.
    pub due: Instant,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Gate {}

/// Objects that all threads use.
pub struct Shared {
    /// The context.
    pub world: World,
    /// Queues.
    pub lanes: Vec<Arc<Lane>>,
    /// Buffers, now and then replaced.
    pub buffers: Vec<Mutex<Arc<Buf>>>,
    /// Programs, now and then replaced.
    pub programs: Vec<Mutex<Arc<Program>>>,
    /// Names of steps that are left out.
    pub without: Vec<String>,
}

/// What the watching thread sees of a worker.
#[derive(Default)]
pub struct Sign {
    /// Steps made.
    pub steps: AtomicU64,
    /// What it does now.
    pub now: Mutex<&'static str>,
}

/// How much of a thread's work is under way at most.
const PENDING: usize = 12;
const NODES: usize = 24;

/// A thread.
pub struct Worker<'a> {
    shared: &'a Shared,
    sign: &'a Sign,
    rng: Rng,
    gates: Sender<Gate>,
    lanes: Vec<Arc<Lane>>,
    buffers: Vec<Arc<Buf>>,
    kernels: Vec<(&'static str, Kernel)>,
    pending: Vec<Pending>,
    nodes: Vec<Arc<Node>>,
}

const NAMES: [&str; 3] = ["mix", "sums", "count"];

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

impl<'a> Worker<'a> {
    /// Thread `number` of a run.
    pub fn new(
        shared: &'a Shared,
        sign: &'a Sign,
        gates: Sender<Gate>,
        seed: u64,
        number: u64,
    ) -> Self {
        let mut rng = Rng::new(seed, number + 1);
        let lanes = (0..2).map(|_| Lane::new(&shared.world, &mut rng)).collect();
        let buffers = (0..3).map(|_| Buf::new(&shared.world, &mut rng)).collect();
        let mut worker = Self {
            shared,
            sign,
            rng,
            gates,
            lanes,
            buffers,
            kernels: Vec::new(),
            pending: Vec::new(),
            nodes: Vec::new(),
        };
        worker.new_kernels();
        worker
    }

    /// Works until then, and cleans up.
    pub fn run(mut self, until: Instant) {
        while Instant::now() < until {
            self.step();
            self.sign.steps.fetch_add(1, Ordering::Relaxed);
            while self.pending.len() > PENDING {
                self.settle_one();
            }
        }
        while !self.pending.is_empty() {
            self.settle_one();
        }
        *lock(&self.sign.now) = "over";
    }

    fn step(&mut self) {
        type Step<'a> = fn(&mut Worker<'a>);
        let steps: [(usize, &'static str, Step<'a>); 20] = [
            (10, "read", Self::read),
            (10, "write", Self::write),
            (5, "read rect", Self::read_rect),
            (5, "write rect", Self::write_rect),
            (7, "copy", Self::copy),
            (5, "copy rect", Self::copy_rect),
            (6, "fill", Self::fill),
            (8, "map", Self::map),
            (16, "mix", Self::mix),
            (8, "sums", Self::sums),
            (6, "count", Self::count),
            (3, "marker", Self::marker),
            (3, "barrier", Self::barrier),
            (5, "user event", Self::user_event),
            (2, "migrate", Self::migrate),
            (12, "settle", Self::settle_one),
            (3, "flush", Self::flush),
            (1, "finish", Self::finish),
            (2, "renew", Self::renew),
            (1, "context", Self::own_context),
        ];
        let total = steps.iter().map(|(weight, ..)| weight).sum();
        let mut at = self.rng.below(total);
        for (weight, name, step) in steps {
            if at < weight {
                if !self.shared.without.iter().any(|out| out == name) {
                    *lock(&self.sign.now) = name;
                    step(self);
                }
                return;
            }
            at -= weight;
        }
    }

    fn lane(&mut self) -> Arc<Lane> {
        let from = if self.rng.percent(40) {
            &self.shared.lanes
        } else {
            &self.lanes
        };
        self.rng.pick(from).clone()
    }

    fn buffer(&mut self) -> Arc<Buf> {
        if self.rng.percent(40) {
            lock(self.rng.pick(&self.shared.buffers)).clone()
        } else {
            self.rng.pick(&self.buffers).clone()
        }
    }

    fn after(&mut self) -> Vec<Arc<Node>> {
        let mut after = Vec::new();
        while !self.nodes.is_empty() && self.rng.percent(25) && after.len() < 4 {
            after.push(self.rng.pick(&self.nodes).clone());
        }
        after
    }

    /// Enqueues a command; gives its node, and whether it was carried out or will be.
    fn enqueue(
        &mut self,
        name: &'static str,
        lane: &Arc<Lane>,
        uses: &[Use],
        blocking: bool,
        call: impl FnOnce(cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        effect: impl FnOnce(&mut crate::world::Locked<'_>),
    ) -> Option<Arc<Node>> {
        let after = self.after();
        let plan = Plan {
            name,
            lane,
            uses,
            after: &after,
            blocking,
            want_event: self.rng.percent(75),
        };
        match plan.enqueue(&mut self.rng, call, effect) {
            Outcome::Enqueued(node) => {
                self.remember(&node);
                Some(node)
            }
            Outcome::Skipped | Outcome::Refused => None,
        }
    }

    fn remember(&mut self, node: &Arc<Node>) {
        if self.rng.percent(15) {
            watch(node, &mut self.rng);
        }
        if node.event.is_some() {
            if self.nodes.len() >= NODES {
                let index = self.rng.below(NODES);
                self.nodes.swap_remove(index);
            }
            self.nodes.push(node.clone());
        }
    }

    fn read(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let part = self.rng.range(view.size, 1);
        let used = view.origin + part.start..view.origin + part.end;
        let blocking = self.rng.percent(30);
        let mut data = vec![0xa5u8; part.len() + 32].into_boxed_slice();
        let mut expected = data.to_vec();
        let place = data[16..].as_mut_ptr();
        let node = self.enqueue(
            "read",
            &lane,
            &[Use::read(&buffer, used.clone())],
            blocking,
            |count, list, event| {
                call!(clEnqueueReadBuffer(
                    lane.id,
                    view.mem,
                    cl_bool::from(blocking),
                    part.start,
                    part.len(),
                    place.cast(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                expected[16..16 + part.len()].copy_from_slice(&locked.of(&buffer).bytes[used]);
            },
        );
        self.keep_read(node, blocking, data, expected);
    }

    fn keep_read(
        &mut self,
        node: Option<Arc<Node>>,
        blocking: bool,
        data: Box<[u8]>,
        expected: Vec<u8>,
    ) {
        let Some(node) = node else { return };
        if blocking {
            compare(node.name, &data, &expected);
        } else {
            self.pending.push(Pending::Read(node, data, expected));
        }
    }

    fn write(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let part = self.rng.range(view.size, 1);
        let used = view.origin + part.start..view.origin + part.end;
        let blocking = self.rng.percent(30);
        let data = self.rng.bytes(part.len()).into_boxed_slice();
        let place = data.as_ptr();
        let node = self.enqueue(
            "write",
            &lane,
            &[Use::write(&buffer, used.clone())],
            blocking,
            |count, list, event| {
                call!(clEnqueueWriteBuffer(
                    lane.id,
                    view.mem,
                    cl_bool::from(blocking),
                    part.start,
                    part.len(),
                    place.cast(),
                    count,
                    list,
                    event
                ))
            },
            |locked| locked.of(&buffer).bytes[used].copy_from_slice(&data),
        );
        if let (Some(node), false) = (node, blocking) {
            self.pending.push(Pending::Write(node, data));
        }
    }

    fn region(&mut self) -> [usize; 3] {
        [
            1 + self.rng.below(200),
            1 + self.rng.below(8),
            1 + self.rng.below(3),
        ]
    }

    fn read_rect(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let region = self.region();
        let Some(from) = Layout::random(&mut self.rng, region, view.size) else {
            return;
        };
        let Some(to) = Layout::random(&mut self.rng, region, usize::MAX) else {
            return;
        };
        let blocking = self.rng.percent(30);
        let mut data = vec![0xa5u8; to.span(region).end + 16].into_boxed_slice();
        let mut expected = data.to_vec();
        let place = data.as_mut_ptr();
        let span = from.span(region);
        let node = self.enqueue(
            "read rect",
            &lane,
            &[Use::read(
                &buffer,
                view.origin + span.start..view.origin + span.end,
            )],
            blocking,
            |count, list, event| {
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
                    place.cast(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let bytes = &locked.of(&buffer).bytes[view.origin..];
                for (a, b) in from.rows(region).zip(to.rows(region)) {
                    expected[b].copy_from_slice(&bytes[a]);
                }
            },
        );
        self.keep_read(node, blocking, data, expected);
    }

    fn write_rect(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let region = self.region();
        let Some(to) = Layout::random(&mut self.rng, region, view.size) else {
            return;
        };
        let Some(from) = Layout::random(&mut self.rng, region, usize::MAX) else {
            return;
        };
        let blocking = self.rng.percent(30);
        let data = self.rng.bytes(from.span(region).end).into_boxed_slice();
        let place = data.as_ptr();
        let span = to.span(region);
        let node = self.enqueue(
            "write rect",
            &lane,
            &[Use::write(
                &buffer,
                view.origin + span.start..view.origin + span.end,
            )],
            blocking,
            |count, list, event| {
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
                    place.cast(),
                    count,
                    list,
                    event
                ))
            },
            |locked| {
                let bytes = &mut locked.of(&buffer).bytes[view.origin..];
                for (a, b) in to.rows(region).zip(from.rows(region)) {
                    bytes[a].copy_from_slice(&data[b]);
                }
            },
        );
        if let (Some(node), false) = (node, blocking) {
            self.pending.push(Pending::Write(node, data));
        }
    }

    fn copy(&mut self) {
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

    fn copy_rect(&mut self) {
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

    fn fill(&mut self) {
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

    fn map(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let part = self.rng.range(view.size, 1);
        let used = view.origin + part.start..view.origin + part.end;
        let blocking = self.rng.percent(40);
        let flags = *self.rng.pick(&[
            CL_MAP_READ,
            CL_MAP_WRITE,
            CL_MAP_READ | CL_MAP_WRITE,
            CL_MAP_WRITE_INVALIDATE_REGION,
        ]);
        let write = flags != CL_MAP_READ;
        let id = map_number();
        let mut pointer = 0;
        let mut expected = Vec::new();
        // A map for writing must not overlap any other.
        let uses = [Use {
            buffer: buffer.clone(),
            range: used.clone(),
            write,
            map: id,
        }];
        let node = self.enqueue(
            "map",
            &lane,
            &uses,
            blocking,
            |count, list, event| {
                let mut code = 1;
                let got = call!(clEnqueueMapBuffer(
                    lane.id,
                    view.mem,
                    cl_bool::from(blocking),
                    flags,
                    part.start,
                    part.len(),
                    count,
                    list,
                    event,
                    &mut code
                ));
                assert_eq!(
                    code == 0,
                    !got.is_null(),
                    "the pointer of a map: {got:?}, {code}"
                );
                pointer = got as usize;
                code
            },
            |locked| {
                let contents = locked.of(&buffer);
                expected = contents.bytes[used.clone()].to_vec();
                Map::enter(contents, id, &used, write);
            },
        );
        let Some(node) = node else { return };
        if buffer.host != 0 && !node.fails {
            assert_eq!(
                pointer,
                buffer.host + used.start,
                "pointer of a map of host memory"
            );
        }
        let map = Map {
            buffer,
            view,
            pointer,
            range: used,
            flags,
            id,
            expected,
        };
        self.pending.push(Pending::Map(node, map));
    }

    /// A random launch: global size, offset, local size (0: none given).
    fn shape(&mut self, items: usize) -> (usize, usize) {
        let offset = if self.rng.percent(30) {
            self.rng.below(1000)
        } else {
            0
        };
        let local = match self.rng.below(4) {
            0 => 0,
            1 => 1 + self.rng.below(64),
            2 => 64,
            _ => (1..=64).rev().find(|n| items % n == 0).unwrap_or(1),
        };
        (offset, local)
    }

    fn kernel(&mut self, name: &str) -> Kernel {
        // A kernel of its own, whose release right after the launch is legal, or the thread's.
        let found = self.kernels.iter().position(|(known, _)| *known == name);
        let index = found.expect("one of the kernels");
        self.kernels[index].1.copy()
    }

    /// Two ranges of `words` words each, in views of buffers, that do not overlap.
    #[allow(clippy::type_complexity)]
    fn two(
        &mut self,
        same: bool,
    ) -> Option<(
        (Arc<Buf>, cl_mem, usize, Range<usize>),
        (Arc<Buf>, cl_mem, usize, Range<usize>),
    )> {
        let (dst, src) = (self.buffer(), self.buffer());
        let (to, from) = (dst.view(&mut self.rng), src.view(&mut self.rng));
        let a = self.rng.range(to.size, 4);
        let b = self.rng.range(from.size, 4);
        let (mut a, mut b) = (a.start / 4..a.end / 4, b.start / 4..b.end / 4);
        if same {
            let words = a.len().min(b.len());
            a.end = a.start + words;
            b.end = b.start + words;
        }
        let used = to.origin + a.start * 4..to.origin + a.end * 4;
        let read = from.origin + b.start * 4..from.origin + b.end * 4;
        if Arc::ptr_eq(&dst, &src) && used.start < read.end && read.start < used.end {
            return None;
        }
        Some(((dst, to.mem, a.start, used), (src, from.mem, b.start, read)))
    }

    #[allow(clippy::too_many_arguments)]
    fn launch(
        &mut self,
        name: &'static str,
        lane: &Arc<Lane>,
        kernel: &Kernel,
        uses: &[Use],
        items: usize,
        (offset, local): (usize, usize),
        effect: impl FnOnce(&mut crate::world::Locked<'_>),
    ) {
        self.enqueue(
            name,
            lane,
            uses,
            false,
            |count, list, event| {
                call!(clEnqueueNDRangeKernel(
                    lane.id,
                    kernel.id,
                    1,
                    if offset == 0 { null() } else { &offset },
                    &items,
                    if local == 0 { null() } else { &local },
                    count,
                    list,
                    event
                ))
            },
            effect,
        );
    }

    fn mix(&mut self) {
        let lane = self.lane();
        let Some((to, from)) = self.two(true) else {
            return;
        };
        let kernel = self.kernel("mix");
        let pair = [self.rng.next() as u32, self.rng.next() as u32];
        kernel
            .set(0, to.1)
            .set(1, to.2 as u32)
            .set(2, from.1)
            .set(3, from.2 as u32)
            .set(4, pair);
        let uses = [
            Use::write(&to.0, to.3.clone()),
            Use::read(&from.0, from.3.clone()),
        ];
        let items = to.3.len() / 4;
        let shape = self.shape(items);
        let variant = kernel.variant;
        self.launch("mix", &lane, &kernel, &uses, items, shape, |locked| {
            let src = locked.of(&from.0).bytes[from.3].to_vec();
            let dst = &mut locked.of(&to.0).bytes[to.3];
            kernels::mix(dst, &src, pair[0], pair[1], variant);
        });
    }

    fn sums(&mut self) {
        let lane = self.lane();
        let Some((to, from)) = self.two(true) else {
            return;
        };
        let kernel = self.kernel("sums");
        let local = 1 + self.rng.below(64);
        kernel
            .set(0, to.1)
            .set(1, to.2 as u32)
            .set(2, from.1)
            .set(3, from.2 as u32)
            .set_local(4, local * 4);
        let uses = [
            Use::write(&to.0, to.3.clone()),
            Use::read(&from.0, from.3.clone()),
        ];
        let items = to.3.len() / 4;
        let variant = kernel.variant;
        self.launch("sums", &lane, &kernel, &uses, items, (0, local), |locked| {
            let src = locked.of(&from.0).bytes[from.3].to_vec();
            kernels::sums(&mut locked.of(&to.0).bytes[to.3], &src, local, variant);
        });
    }

    fn count(&mut self) {
        let lane = self.lane();
        let Some((to, from)) = self.two(false) else {
            return;
        };
        let kernel = self.kernel("count");
        let slots = to.3.len() / 4;
        kernel
            .set(0, to.1)
            .set(1, to.2 as u32)
            .set(2, slots as u32)
            .set(3, from.1)
            .set(4, from.2 as u32);
        let uses = [
            Use::write(&to.0, to.3.clone()),
            Use::read(&from.0, from.3.clone()),
        ];
        let items = from.3.len() / 4;
        let (_, local) = self.shape(items);
        let variant = kernel.variant;
        self.launch(
            "count",
            &lane,
            &kernel,
            &uses,
            items,
            (0, local),
            |locked| {
                let src = locked.of(&from.0).bytes[from.3].to_vec();
                kernels::count(&mut locked.of(&to.0).bytes[to.3], &src, variant);
            },
        );
    }

    fn marker(&mut self) {
        let lane = self.lane();
        self.enqueue(
            "marker",
            &lane,
            &[],
            false,
            |count, list, event| call!(clEnqueueMarkerWithWaitList(lane.id, count, list, event)),
            |_| {},
        );
    }

    fn barrier(&mut self) {
        let lane = self.lane();
        if self.rng.percent(70) {
            lane.barrier();
            return;
        }
        // What fails in the list of a barrier would make everything after it fail.
        let nodes = std::mem::take(&mut self.nodes);
        let (sound, rest) = nodes.into_iter().partition(|node| !node.fails);
        self.nodes = sound;
        self.enqueue(
            "barrier",
            &lane,
            &[],
            false,
            |count, list, event| call!(clEnqueueBarrierWithWaitList(lane.id, count, list, event)),
            |_| {},
        );
        self.nodes.extend(rest);
    }

    fn user_event(&mut self) {
        let event = create!(clCreateUserEvent(self.shared.world.context));
        let fails = self.rng.percent(15);
        let status = if fails { -77 } else { CL_COMPLETE };
        let node = Node::new("user event", None, Some(event), fails);
        ok!(clRetainEvent(event));
        let chained = !self.nodes.is_empty() && self.rng.percent(40) && {
            let before = self.rng.pick(&self.nodes);
            chain(before, event, status)
        };
        if !chained {
            let due = Instant::now() + Duration::from_micros(self.rng.below(3000) as u64);
            let gate = Gate { event, status, due };
            assert!(
                self.gates.send(gate).is_ok(),
                "the thread of user events is gone"
            );
        }
        self.remember(&node);
    }

    fn migrate(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let flags = if self.rng.percent(50) {
            CL_MIGRATE_MEM_OBJECT_HOST
        } else {
            0
        };
        let used = view.origin..view.origin + view.size;
        self.enqueue(
            "migrate",
            &lane,
            &[Use::read(&buffer, used)],
            false,
            |count, list, event| {
                call!(clEnqueueMigrateMemObjects(
                    lane.id, 1, &view.mem, flags, count, list, event
                ))
            },
            |_| {},
        );
    }

    fn settle_one(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let index = self.rng.below(self.pending.len());
        let lane = self.lane();
        let one = self.pending.swap_remove(index);
        one.settle(&mut self.rng, &lane);
    }

    fn flush(&mut self) {
        ok!(clFlush(self.lane().id));
    }

    fn finish(&mut self) {
        ok!(clFinish(self.lane().id));
    }

    fn new_kernels(&mut self) {
        let slot = self.rng.pick(&self.shared.programs);
        let program = lock(slot).clone();
        self.kernels = NAMES.map(|name| (name, program.kernel(name))).into();
    }

    /// Replaces one of the objects, whose commands may still be under way.
    fn renew(&mut self) {
        let world = &self.shared.world;
        match self.rng.below(6) {
            0 => {
                let index = self.rng.below(self.lanes.len());
                self.lanes[index] = Lane::new(world, &mut self.rng);
            }
            1 | 2 => {
                let index = self.rng.below(self.buffers.len());
                self.buffers[index] = Buf::new(world, &mut self.rng);
            }
            3 => {
                let new = Buf::new(world, &mut self.rng);
                let old = {
                    let mut slot = lock(self.rng.pick(&self.shared.buffers));
                    std::mem::replace(&mut *slot, new)
                };
                drop(old);
            }
            4 => {
                let new = Program::new(world, &mut self.rng);
                *lock(self.rng.pick(&self.shared.programs)) = new;
            }
            _ => self.new_kernels(),
        }
    }

    /// A context of its own, with references counted.
    fn own_context(&mut self) {
        let device = self.shared.world.device;
        let context = create!(clCreateContext(null(), 1, &device, None, null_mut()));
        let queue = create!(clCreateCommandQueueWithProperties(context, device, null()));
        let size = 4 * (1 + self.rng.below(5000));
        let mem = create!(clCreateBuffer(context, CL_MEM_READ_WRITE, size, null_mut()));
        ok!(clRetainMemObject(mem));
        let references = info_value!(cl_uint, clGetMemObjectInfo(mem), CL_MEM_REFERENCE_COUNT);
        assert_eq!(references, 2, "references of a buffer");
        let data = self.rng.bytes(size);
        let mut back = vec![0u8; size];
        ok!(clEnqueueWriteBuffer(
            queue,
            mem,
            CL_FALSE,
            0,
            size,
            data.as_ptr().cast(),
            0,
            null(),
            null_mut()
        ));
        ok!(clReleaseMemObject(mem));
        ok!(clReleaseContext(context));
        let mut event = null_mut();
        ok!(clEnqueueReadBuffer(
            queue,
            mem,
            CL_FALSE,
            0,
            size,
            back.as_mut_ptr().cast(),
            0,
            null(),
            &mut event
        ));
        ok!(clReleaseMemObject(mem));
        ok!(clFlush(queue));
        ok!(clReleaseCommandQueue(queue));
        ok!(clWaitForEvents(1, &event));
        ok!(clReleaseEvent(event));
        pending::compare("read in a context of its own", &back, &data);
    }
}
