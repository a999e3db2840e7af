//! A thread: random steps on its own and on shared objects.

mod launches;
mod maps;
mod order;
mod pictures;
mod pointers;
mod transfers;

use crate::graph::{Lane, Node};
use crate::kernels::{self, Kernel, Program};
use crate::memory::{Buf, View};
use crate::pending::{self, chain, compare, map_number, watch, Map, Pending, Way};
use crate::plan::{CommandPlan, Locked, Outcome, Use};
use crate::print;
use crate::world::{lock, World};
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, ok};
use std::ffi::c_void;
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
    /// Images, now and then replaced.
    pub images: Vec<Mutex<Arc<Buf>>>,
    /// Allocations of shared virtual memory, now and then replaced.
    pub svms: Vec<Mutex<Arc<Buf>>>,
    /// Programs, now and then replaced.
    pub programs: Vec<Mutex<Arc<Program>>>,
    /// Names of steps that are left out.
    pub without: Vec<String>,
}

/// The state of a worker that the watching thread reads.
#[derive(Default)]
pub struct Sign {
    /// Steps made.
    pub steps: AtomicU64,
    /// Its current action.
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
    images: Vec<Arc<Buf>>,
    svms: Vec<Arc<Buf>>,
    kernels: Vec<(&'static str, Kernel)>,
    pending: Vec<Pending>,
    nodes: Vec<Arc<Node>>,
}

/// Returns true if the two uses do not overlap.
fn disjoint(a: &Use, b: &Use) -> bool {
    !Arc::ptr_eq(&a.buffer, &b.buffer)
        || a.range.end <= b.range.start
        || b.range.end <= a.range.start
}

const NAMES: [&str; 3] = ["mix", "sums", "count"];

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
        let images = match shared.world.images {
            true => (0..3)
                .map(|_| Buf::image(&shared.world, &mut rng))
                .collect(),
            false => Vec::new(),
        };
        let svms = match shared.world.svm.is_empty() {
            true => Vec::new(),
            false => (0..3).map(|_| Buf::svm(&shared.world, &mut rng)).collect(),
        };
        let mut worker = Self {
            shared,
            sign,
            rng,
            gates,
            lanes,
            buffers,
            images,
            svms,
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
        let steps: [(usize, &'static str, Step<'a>); 37] = [
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
            (6, "read image", Self::read_image),
            (6, "write image", Self::write_image),
            (5, "copy image", Self::copy_image),
            (3, "image to buffer", Self::image_to_buffer),
            (3, "buffer to image", Self::buffer_to_image),
            (4, "fill image", Self::fill_image),
            (5, "map image", Self::map_image),
            (5, "read svm", Self::read_svm),
            (5, "write svm", Self::write_svm),
            (4, "copy svm", Self::copy_svm),
            (3, "fill svm", Self::fill_svm),
            (5, "map svm", Self::map_svm),
            (1, "migrate svm", Self::migrate_svm),
            (6, "reach", Self::reach),
            (6, "paint", Self::paint),
            (6, "look", Self::look),
            (3, "say", Self::say),
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
        effect: impl FnOnce(&mut Locked<'_>),
    ) -> Option<Arc<Node>> {
        let after = self.after();
        let plan = CommandPlan {
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
}
