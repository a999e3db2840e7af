//! Models of the pool, the timelines and the tracks: the real code under loom, which tries every order of its steps.
//!
//! A model fails on a panic, on two accesses to a [`Cell`] that nothing puts in an order, and where no thread can go on (a wake
//! that is lost). Preemptions are bounded, as the orders grow too many: what needs more of them than that is not seen.

use super::pool::{Pool, Shared, Task};
use super::step::{Batch, Step, StepAction, StepWait};
use super::timeline::{CpuTimeline, Due, Follower, Running};
use super::track::Track;
use crate::backend::{Call, DeviceError, Timeline};
use crate::util::sync::AtomicU64;
use loom::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::Arc;

/// Runs a model with a number of preemptions at most.
fn model(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(run);
}

/// A number that only an order established by others makes safe to touch; loom finds where there is none.
struct Cell(UnsafeCell<u64>);

// SAFETY: loom checks every access.
unsafe impl Send for Cell {}
// SAFETY: as above.
unsafe impl Sync for Cell {}

impl Cell {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add(&self, more: u64) {
        // SAFETY: loom has checked that nobody else is at it.
        self.0.with_mut(|place| unsafe { *place += more });
    }

    fn get(&self) -> u64 {
        // SAFETY: loom has checked that nobody writes.
        self.0.with(|place| unsafe { *place })
    }
}

struct Pieces(Vec<Cell>);

impl Shared for Pieces {
    fn run(&self, first: u64, count: u64) {
        for at in first..first + count {
            self.0[at as usize].add(1);
        }
    }
}

/// Each piece is done once, and what helpers did is there for the caller; the threads end with the pool.
#[test]
fn pieces_are_done_once_and_seen() {
    model(3, || {
        let pool = Pool::new(2);
        let pieces = Pieces((0..2).map(|_| Cell::new()).collect());
        pool.run_shared(&pieces, 2, 1);
        assert!(pieces.0.iter().all(|piece| piece.get() == 1));
        pool.close();
    });
}

/// Two at once, with one thread to help them.
#[test]
fn two_share_a_helper() {
    model(2, || {
        let pool = Pool::new(2);
        let other = pool.clone();
        let thread = loom::thread::spawn(move || {
            let pieces = Pieces((0..2).map(|_| Cell::new()).collect());
            other.run_shared(&pieces, 2, 1);
            assert!(pieces.0.iter().all(|piece| piece.get() == 1));
        });
        let pieces = Pieces((0..2).map(|_| Cell::new()).collect());
        pool.run_shared(&pieces, 2, 1);
        assert!(pieces.0.iter().all(|piece| piece.get() == 1));
        thread.join().expect("no panic");
        pool.close();
    });
}

struct Once(AtomicU64);

impl Task for Once {
    fn serve(self: Arc<Self>) -> Due {
        self.0.fetch_add(1, Relaxed);
        Due::default()
    }
}

/// A task that comes while the only thread falls asleep, or ends, is done.
#[test]
fn no_task_is_forgotten() {
    model(3, || {
        let pool = Pool::new(1);
        let tasks = [(); 2].map(|()| Arc::new(Once(AtomicU64::new(0))));
        for task in &tasks {
            assert!(pool.run(task.clone()));
        }
        pool.close();
        // The thread goes when nothing is left: loom waits for it, and `Drop` looks.
        struct Look([Arc<Once>; 2], Arc<Pool>);
        impl Drop for Look {
            fn drop(&mut self) {
                while self.1.threads() > 0 {
                    loom::thread::yield_now();
                }
                assert!(self.0.iter().all(|task| task.0.load(Relaxed) == 1));
            }
        }
        drop(Look(tasks, pool));
    });
}

/// Checks that a thread that waits for a value wakes, and sees what was done before it.
#[test]
fn a_wait_ends_and_sees() {
    model(3, || {
        let timeline = CpuTimeline::new(false);
        let work = Arc::new(Cell::new());
        let (waits, seen) = (timeline.clone(), work.clone());
        let thread = loom::thread::spawn(move || {
            assert!(waits.wait(2, None).expect("a wait"));
            assert_eq!(seen.get(), 2);
        });
        work.add(1);
        timeline.advance(1, &mut Due::default());
        work.add(1);
        timeline.advance(2, &mut Due::default());
        thread.join().expect("no panic");
    });
}

/// Two threads that wait for different values both wake.
#[test]
fn waits_for_two_values_end() {
    model(2, || {
        let timeline = CpuTimeline::new(false);
        let threads = [1, 2].map(|value| {
            let waits = timeline.clone();
            loom::thread::spawn(move || assert!(waits.wait(value, None).expect("a wait")))
        });
        timeline.advance(1, &mut Due::default());
        timeline.advance(2, &mut Due::default());
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

/// Checks that a thread that waits for a command that fails sees the failure.
#[test]
fn a_failure_is_seen_by_who_waits() {
    model(3, || {
        let timeline = CpuTimeline::new(false);
        let waits = timeline.clone();
        let thread = loom::thread::spawn(move || {
            assert!(waits.wait(1, None).expect("a wait"));
            assert!(waits.failure(1).is_some());
        });
        timeline.fail(1, DeviceError::OutOfHostMemory);
        timeline.advance(1, &mut Due::default());
        assert!(timeline.failure(1).is_some());
        thread.join().expect("no panic");
    });
}

/// Checks that a thread that waits for a command wakes when it is terminated, and that a command which
/// is complete for one is not terminated for another.
#[test]
fn a_command_is_complete_or_terminated() {
    model(3, || {
        let timeline = CpuTimeline::new(true);
        let (waits, advances) = (timeline.clone(), timeline.clone());
        let waiting = loom::thread::spawn(move || {
            assert!(waits.wait(1, None).expect("a wait"));
            waits.failure(1).is_some()
        });
        let running = loom::thread::spawn(move || {
            if advances.set_running(Running::Brief) {
                advances.set_running(Running::None);
            } else {
                advances.fail(1, DeviceError::Terminated);
            }
            advances.advance(1, &mut Due::default());
        });
        timeline.terminate();
        let terminated = timeline.failure(1).is_some();
        running.join().expect("no panic");
        assert_eq!(waiting.join().expect("no panic"), terminated);
        assert_eq!(timeline.failure(1).is_some(), terminated);
        assert!(timeline.reached() >= 2 && timeline.failure(2).is_some());
    });
}

struct Notified(AtomicU64);

impl Follower for Notified {
    fn reached(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }

    fn help(self: Arc<Self>, _: u64) {}
}

/// Checks that a follower of a value is notified once, or finds at once that the value is reached.
#[test]
fn followers_are_notified_once() {
    model(3, || {
        let timeline = CpuTimeline::new(false);
        let advances = timeline.clone();
        let thread = loom::thread::spawn(move || advances.advance(1, &mut Due::default()));
        let followers = [(); 2].map(|()| Arc::new(Notified(AtomicU64::new(0))));
        let follows = followers
            .each_ref()
            .map(|one| timeline.follow(1, one.clone()));
        thread.join().expect("no panic");
        for (one, follows) in followers.iter().zip(follows) {
            assert_eq!(one.0.load(SeqCst), u64::from(follows));
        }
    });
}

/// Counts batches, which must come in their order.
struct Next(u64, Arc<Cell>);

impl Call for Next {
    fn call(&self) {
        self.1.add(1);
        assert_eq!(self.1.get(), self.0);
    }
}

fn batch(value: u64, order: &Arc<Cell>) -> Batch {
    Batch::of(vec![Step {
        action: StepAction::Call(Arc::new(Next(value, order.clone()))),
        profile: None,
        value,
    }])
}

/// Batches run once and in their order, whether a thread of the pool runs them, or the one that waits, or both in turn.
#[test]
fn batches_run_in_their_order() {
    model(2, || {
        let (pool, timeline, order) =
            (Pool::new(1), CpuTimeline::new(false), Arc::new(Cell::new()));
        let track = Track::new(&timeline, &pool);
        track.submit(batch(1, &order));
        track.submit(batch(2, &order));
        assert!(timeline.wait(2, None).expect("a wait"));
        assert_eq!(order.get(), 2);
        let mut done = Vec::new();
        track.take_done(&mut done);
        assert!(done.iter().map(|batch| batch.last_value()).eq(1..=2));
        pool.close();
    });
}

/// One thread submits and another waits, with and without the pool's help.
#[test]
fn one_submits_another_waits() {
    model(2, || {
        let (pool, timeline, order) =
            (Pool::new(1), CpuTimeline::new(false), Arc::new(Cell::new()));
        let track = Track::new(&timeline, &pool);
        let (waits, seen) = (timeline.clone(), order.clone());
        let thread = loom::thread::spawn(move || {
            assert!(waits.wait(1, None).expect("a wait"));
            assert_eq!(seen.get(), 1);
        });
        track.submit(batch(1, &order));
        thread.join().expect("no panic");
        pool.close();
    });
}

/// A batch that waits for another stream's runs after it, however the two meet.
#[test]
fn a_batch_waits_for_another_stream() {
    model(2, || {
        let (pool, order) = (Pool::new(1), Arc::new(Cell::new()));
        let (first, second) = (CpuTimeline::new(false), CpuTimeline::new(false));
        let (one, other) = (Track::new(&first, &pool), Track::new(&second, &pool));
        let mut later = batch(2, &order);
        later.waits.push(StepWait {
            step: 0,
            timeline: first.clone(),
            value: 1,
        });
        other.submit(later);
        one.submit(batch(1, &order));
        assert!(second.wait(2, None).expect("a wait"));
        assert_eq!(order.get(), 2);
        pool.close();
    });
}
