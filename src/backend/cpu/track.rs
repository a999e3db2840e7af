//! The batches of a stream, one after the other, run by whoever has the time: a thread of the pool, or one that waits, which
//! runs no command behind the one that it waits for.

use super::pool::{Pool, Task};
use super::step::{Batch, Stop};
use super::timeline::{CpuTimeline, Due, Follower};
use crate::util::lock::rank;
use crate::util::sync::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    /// A thread runs a batch.
    running: bool,
    /// The track is in the pool's list.
    listed: bool,
    /// The point that the track follows.
    follows: Option<Point>,
}

type Guard<'a> = MutexGuard<'a, State>;

/// The address of a timeline, and a value.
type Point = (usize, u64);

/// See the module.
pub struct Track {
    state: Mutex<State, { rank::CPU_TRACK }>,
    /// Batches that have completed and keep what they used until the stream takes them.
    done: Mutex<Vec<Batch>, { rank::CPU_DONE }>,
    timeline: Arc<CpuTimeline>,
    pool: Arc<Pool>,
}

impl Track {
    /// Creates the track of a new stream.
    pub fn new(timeline: &Arc<CpuTimeline>, pool: &Arc<Pool>) -> Arc<Self> {
        let track = Arc::new(Self {
            state: Mutex::default(),
            done: Mutex::default(),
            timeline: timeline.clone(),
            pool: pool.clone(),
        });
        let follower: Arc<dyn Follower> = track.clone();
        timeline.belongs_to(&follower);
        track
    }

    /// Adds a batch, which begins as soon as it can.
    pub fn submit(self: &Arc<Self>, batch: Batch) {
        self.state.lock().batches.push_back(batch);
        self.call();
    }

    /// Makes a thread of the pool run the batches of the track, once the first command need not wait.
    fn call(self: &Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            if state.running || state.listed {
                return;
            }
            let Some(batch) = state.batches.front_mut() else {
                return;
            };
            let Some((timeline, value)) = batch.unmet_wait() else {
                state.listed = true;
                break;
            };
            if self.follow(state, &timeline, value) {
                return;
            }
        }
        if !self.pool.run(Arc::clone(self) as Arc<dyn Task>) {
            drop(Arc::clone(self).serve());
        }
    }

    /// Follows a point that the first command waits for. Returns false if it has been reached meanwhile.
    fn follow(self: &Arc<Self>, mut state: Guard, timeline: &Arc<CpuTimeline>, value: u64) -> bool {
        let point = Some((Arc::as_ptr(timeline).addr(), value));
        if state.follows == point {
            return true;
        }
        state.follows = point;
        drop(state);
        let follows = timeline.follow(value, Arc::clone(self) as Arc<dyn Follower>);
        if !follows {
            self.state.lock().follows = None;
        }
        follows
    }

    /// Takes the first batch for the caller to run, unless its next command is beyond the limit. `runs`: the caller runs
    /// batches of this track; else nothing is taken while another thread does.
    fn take(&self, limit: u64, runs: bool) -> Option<Batch> {
        let mut state = self.state.lock();
        if state.running && !runs {
            return None;
        }
        let next = state.batches.front().and_then(Batch::next_value);
        state.running = next.is_some_and(|value| value <= limit);
        match state.running {
            true => state.batches.pop_front(),
            false => None,
        }
    }

    /// Puts back a batch whose commands have not all run.
    fn put_back(&self, batch: Batch) -> Guard<'_> {
        let mut state = self.state.lock();
        state.batches.push_front(batch);
        state.running = false;
        state
    }

    /// Runs commands with values up to `limit`, unless another thread runs some. Returns the followers
    /// of the last one.
    fn run(self: &Arc<Self>, limit: u64) -> Due {
        let (mut runs, mut due) = (false, Due::default());
        while let Some(mut batch) = self.take(limit, runs) {
            runs = true;
            match batch.run(limit, &self.pool, &self.timeline, &mut due) {
                Stop::Done => {
                    let value = batch.last_value();
                    self.done.lock().push(batch);
                    self.timeline.advance(value, &mut due);
                }
                Stop::Limit => {
                    self.put_back(batch);
                    break;
                }
                Stop::Wait(timeline, value) => {
                    if self.follow(self.put_back(batch), &timeline, value) {
                        break;
                    }
                    // It has been reached meanwhile.
                    runs = false;
                }
            }
        }
        due
    }

    /// Moves the batches that have completed to an empty list.
    pub fn take_done(&self, list: &mut Vec<Batch>) {
        std::mem::swap(&mut *self.done.lock(), list);
    }
}

impl Task for Track {
    /// Runs all batches that can run, in a thread of the pool.
    fn serve(self: Arc<Self>) -> Due {
        self.state.lock().listed = false;
        self.run(u64::MAX)
    }
}

impl Follower for Track {
    fn reached(self: Arc<Self>) {
        self.state.lock().follows = None;
        self.call();
    }

    /// Runs batches up to a value, unless another thread runs batches already.
    fn help(self: Arc<Self>, value: u64) {
        if self.pool.takes_help() {
            drop(self.run(value));
        }
        self.call();
    }
}

#[cfg(test)]
mod tests {
    use super::super::step::{Step, StepAction, StepWait};
    use super::*;
    use crate::backend::{Call, DeviceError, Timeline};
    use parking_lot::Mutex;
    use std::time::Duration;

    /// Writes its number down.
    struct Note(u64, Arc<Mutex<Vec<u64>>>);

    impl Call for Note {
        fn call(&self) {
            self.1.lock().push(self.0);
        }
    }

    struct Scene {
        pool: Arc<Pool>,
        timeline: Arc<CpuTimeline>,
        track: Arc<Track>,
        notes: Arc<Mutex<Vec<u64>>>,
    }

    impl Scene {
        fn new(cores: usize) -> Self {
            let (pool, timeline) = (Pool::new(cores), CpuTimeline::new(false));
            Self {
                track: Track::new(&timeline, &pool),
                pool,
                timeline,
                notes: Arc::default(),
            }
        }

        fn batch(&self, value: u64) -> Batch {
            let action = StepAction::Call(Arc::new(Note(value, self.notes.clone())));
            Batch::of(vec![Step {
                action,
                profile: None,
                value,
            }])
        }

        fn wait(&self, value: u64) -> bool {
            let patience = Some(Duration::from_secs(60));
            self.timeline.wait(value, patience).expect("a wait")
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            self.pool.close();
        }
    }

    /// Whoever runs them: threads of the pool, one that waits, or both in turn.
    #[test]
    fn batches_run_in_their_order() {
        for cores in [1, 3] {
            let scene = Scene::new(cores);
            for value in 1..=300 {
                scene.track.submit(scene.batch(value));
                if value % 50 == 0 {
                    // Without a time limit the waiting thread helps.
                    assert!(scene.timeline.wait(value, None).expect("a wait"));
                    assert!(scene.timeline.reached() >= value);
                }
            }
            assert!(scene.wait(300));
            assert_eq!(*scene.notes.lock(), (1..=300).collect::<Vec<_>>());
            let mut done = Vec::new();
            scene.track.take_done(&mut done);
            assert!(done.iter().map(|batch| batch.last_value()).eq(1..=300));
            done.clear();
            scene.track.take_done(&mut done);
            assert!(done.is_empty());
        }
    }

    struct Falls;

    impl Call for Falls {
        fn call(&self) {
            panic!("as the test wants");
        }
    }

    /// A command that panics fails, and those that wait for it; no other one does.
    #[test]
    fn a_command_that_panics() {
        let scene = Scene::new(1);
        let mut first = scene.batch(1);
        first.steps.extend(scene.batch(2).steps);
        first.steps[1].action = StepAction::Call(Arc::new(Falls));
        first.steps.extend(scene.batch(3).steps);
        first.steps.extend(scene.batch(4).steps);
        // The last one waits for the one that fails.
        first.waits.push(StepWait {
            step: 3,
            timeline: scene.timeline.clone(),
            value: 2,
        });
        scene.track.submit(first);
        assert!(scene.wait(4));
        assert_eq!(*scene.notes.lock(), [1, 3]);
        let failed = |value| scene.timeline.failure(value).is_some();
        assert_eq!([1, 2, 3, 4].map(failed), [false, true, false, true]);
        // One of another stream that waits for it fails as well.
        let other = CpuTimeline::new(false);
        let beside = Track::new(&other, &scene.pool);
        let mut batch = scene.batch(1);
        batch.waits.push(StepWait {
            step: 0,
            timeline: scene.timeline.clone(),
            value: 2,
        });
        beside.submit(batch);
        let long = Some(Duration::from_secs(20));
        assert!(other.wait(1, long).expect("a wait"));
        assert!(matches!(other.failure(1), Some(DeviceError::WaitFailed)));
    }

    /// A command is complete while the one behind it in its batch runs, and who waits for it runs no other.
    #[test]
    fn a_command_completes_before_the_next() {
        struct Gate(Mutex<bool>, parking_lot::Condvar);
        impl Call for Gate {
            fn call(&self) {
                let mut open = self.0.lock();
                while !*open {
                    self.1.wait(&mut open);
                }
            }
        }
        for cores in [1, 3] {
            let scene = Scene::new(cores);
            let gate = Arc::new(Gate(Mutex::new(false), parking_lot::Condvar::new()));
            let mut batch = scene.batch(1);
            batch.steps.push(Step {
                action: StepAction::Call(gate.clone()),
                profile: None,
                value: 2,
            });
            scene.track.submit(batch);
            assert!(scene.timeline.wait(1, None).expect("a wait"));
            assert_eq!(scene.timeline.reached(), 1);
            *gate.0.lock() = true;
            gate.1.notify_all();
            assert!(scene.wait(2));
        }
    }

    /// A batch that waits for another timeline holds those behind it, and no thread.
    #[test]
    fn a_batch_waits_for_another_timeline() {
        let scene = Scene::new(1);
        let other = CpuTimeline::new(false);
        scene.track.submit(scene.batch(1));
        let mut second = scene.batch(2);
        second.waits.push(StepWait {
            step: 0,
            timeline: other.clone(),
            value: 5,
        });
        scene.track.submit(second);
        scene.track.submit(scene.batch(3));
        assert!(scene.wait(1));
        let short = Some(Duration::from_millis(20));
        assert!(!scene.timeline.wait(2, short).expect("a wait"));
        // The only thread of the pool is free for others.
        let beside = Scene {
            pool: scene.pool.clone(),
            track: Track::new(&other, &scene.pool),
            timeline: other.clone(),
            notes: scene.notes.clone(),
        };
        beside.track.submit(beside.batch(4));
        assert!(beside.wait(4));
        assert_eq!(*scene.notes.lock(), [1, 4]);
        beside.track.submit(beside.batch(5));
        assert!(scene.wait(3));
        assert_eq!(*scene.notes.lock(), [1, 4, 5, 2, 3]);
    }

    /// A chain over two streams needs one thread: none for what waits, and who completes a command runs the one that
    /// waited for it.
    #[test]
    fn a_chain_keeps_to_one_thread() {
        let first = Scene::new(4);
        let timeline = CpuTimeline::new(false);
        let second = Scene {
            pool: first.pool.clone(),
            track: Track::new(&timeline, &first.pool),
            timeline,
            notes: first.notes.clone(),
        };
        let after = |mut batch: Batch, other: &Scene, value| {
            batch.waits.push(StepWait {
                step: 0,
                timeline: other.timeline.clone(),
                value,
            });
            batch
        };
        second.track.submit(after(second.batch(1), &first, 1));
        assert_eq!(first.pool.threads(), 0);
        // It comes last, and runs first.
        let begin = first.batch(1);
        for link in 2..=50 {
            first
                .track
                .submit(after(first.batch(link), &second, link - 1));
            second.track.submit(after(second.batch(link), &first, link));
        }
        first.track.state.lock().batches.push_front(begin);
        first.track.call();
        assert!(second.wait(50));
        assert_eq!(first.notes.lock().len(), 100);
        assert_eq!(first.pool.threads(), 1);
    }
}
