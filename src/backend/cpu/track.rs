//! The batches of a stream, one after the other, run by whoever has the time: a thread of the pool, or one that waits, which
//! runs no command behind the one that it waits for.

use super::pool::{Pool, Task};
use super::step::{Batch, Stop};
use super::timeline::{CpuTimeline, Follower};
use crate::util::lock::rank;
use crate::util::sync::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    /// A thread runs a batch.
    running: bool,
    /// The track is in the pool's list.
    listed: bool,
}

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

    /// Makes a thread of the pool run the batches of the track.
    fn call(self: &Arc<Self>) {
        {
            let mut state = self.state.lock();
            if state.running || state.listed || state.batches.is_empty() {
                return;
            }
            state.listed = true;
        }
        if !self.pool.run(Arc::clone(self) as Arc<dyn Task>) {
            Arc::clone(self).serve();
        }
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
    fn put_back(&self, batch: Batch) {
        let mut state = self.state.lock();
        state.batches.push_front(batch);
        state.running = false;
    }

    /// Runs commands with values up to `limit`, unless another thread runs some.
    fn run(self: &Arc<Self>, limit: u64) {
        let mut runs = false;
        while let Some(mut batch) = self.take(limit, runs) {
            runs = true;
            match batch.run(limit, &self.pool, &self.timeline) {
                Stop::Done => {
                    let value = batch.last_value();
                    self.done.lock().push(batch);
                    self.timeline.advance(value);
                }
                Stop::Limit => return self.put_back(batch),
                Stop::Wait(timeline, value) => {
                    self.put_back(batch);
                    if timeline.follow(value, Arc::clone(self) as Arc<dyn Follower>) {
                        return;
                    }
                    // It has been reached meanwhile.
                    runs = false;
                }
            }
        }
    }

    /// Takes the batches that have completed.
    pub fn take_done(&self) -> Vec<Batch> {
        let mut done = self.done.lock();
        if done.is_empty() {
            return Vec::new();
        }
        std::mem::take(&mut *done)
    }
}

impl Task for Track {
    /// Runs all batches that can run, in a thread of the pool.
    fn serve(self: Arc<Self>) {
        self.state.lock().listed = false;
        self.run(u64::MAX);
    }
}

impl Follower for Track {
    fn reached(self: Arc<Self>) {
        self.call();
    }

    /// Runs batches up to a value, unless another thread runs batches already.
    fn help(self: Arc<Self>, value: u64) {
        if self.pool.takes_help() {
            self.run(value);
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
            let (pool, timeline) = (Pool::new(cores), CpuTimeline::new());
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
            let done = scene.track.take_done();
            assert!(done.iter().map(|batch| batch.last_value()).eq(1..=300));
            assert!(scene.track.take_done().is_empty());
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
        let other = CpuTimeline::new();
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
        let other = CpuTimeline::new();
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
}
