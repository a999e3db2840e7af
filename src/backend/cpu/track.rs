//! The batches of a stream, one after the other, run by whoever has the time: a thread of the pool, or one that waits.

use super::pool::{Pool, Task};
use super::step::Batch;
use super::timeline::{CpuTimeline, Follower};
use crate::util::guard::guarded;
use crate::util::lock::rank;
use crate::util::sync::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    /// A thread runs a batch.
    running: bool,
    /// It stands in the pool's list.
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
    /// The track of a new stream.
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

    /// Lets a thread of the pool run what there is.
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

    fn run(self: &Arc<Self>, value: u64) {
        let mut first = true;
        loop {
            let batch = {
                let mut state = self.state.lock();
                if first && state.running {
                    return;
                }
                first = false;
                let wanted = state.batches.front().is_some_and(|b| b.value <= value);
                state.running = wanted;
                if !wanted {
                    return;
                }
                state.batches.pop_front()
            };
            let Some(batch) = batch else {
                return;
            };
            let unreached = batch.waits.iter().find_map(|(timeline, value)| {
                (timeline.reached() < *value).then(|| (timeline.clone(), *value))
            });
            if let Some((timeline, value)) = unreached {
                {
                    let mut state = self.state.lock();
                    state.batches.push_front(batch);
                    state.running = false;
                }
                if timeline.follow(value, Arc::clone(self) as Arc<dyn Follower>) {
                    return;
                }
                first = true;
                continue;
            }
            let value = batch.value;
            let mut done = false;
            guarded("a batch of commands", || done = batch.run(&self.pool));
            if !done {
                self.timeline.fail(value);
            }
            self.done.lock().push(batch);
            self.timeline.advance(value);
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
    /// In a thread of the pool: runs all batches that can run.
    fn serve(self: Arc<Self>) {
        self.state.lock().listed = false;
        self.run(u64::MAX);
    }
}

impl Follower for Track {
    fn reached(self: Arc<Self>) {
        self.call();
    }

    /// Unless another thread runs batches already.
    fn help(self: Arc<Self>, value: u64) {
        if self.pool.takes_help() {
            self.run(value);
        }
        self.call();
    }
}

#[cfg(test)]
mod tests {
    use super::super::step::{Action, TimedAction};
    use super::*;
    use crate::backend::{Call, Timeline};
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
            let action = Action::Call(Arc::new(Note(value, self.notes.clone())));
            Batch {
                steps: vec![TimedAction {
                    action,
                    profile: None,
                }],
                value,
                ..Batch::default()
            }
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
            assert!(done.iter().map(|batch| batch.value).eq(1..=300));
            assert!(scene.track.take_done().is_empty());
        }
    }

    struct Falls;

    impl Call for Falls {
        fn call(&self) {
            panic!("as the test wants");
        }
    }

    /// A batch that panics fails, with what comes after it on its timeline; nobody waits for ever.
    #[test]
    fn a_batch_that_panics() {
        let scene = Scene::new(1);
        scene.track.submit(scene.batch(1));
        let mut second = scene.batch(2);
        second.steps[0].action = Action::Call(Arc::new(Falls));
        scene.track.submit(second);
        scene.track.submit(scene.batch(3));
        assert!(scene.wait(1));
        for value in [2, 3] {
            assert!(scene.timeline.wait(value, None).is_err());
        }
        assert!(scene.timeline.completed().is_err());
        assert!(scene.timeline.wait(1, None).is_ok());
        // Others that wait for it go on, in the same thread of the pool.
        let other = CpuTimeline::new();
        let beside = Track::new(&other, &scene.pool);
        let mut batch = scene.batch(1);
        batch.waits.push((scene.timeline.clone(), 3));
        beside.submit(batch);
        let long = Some(Duration::from_secs(20));
        assert!(other.wait(1, long).expect("a wait"));
    }

    /// A batch that waits for another timeline holds those behind it, and no thread.
    #[test]
    fn a_batch_waits_for_another_timeline() {
        let scene = Scene::new(1);
        let other = CpuTimeline::new();
        scene.track.submit(scene.batch(1));
        let mut second = scene.batch(2);
        second.waits.push((other.clone(), 5));
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
