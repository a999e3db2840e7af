//! The batches of a stream, one after the other, run by whoever has the time: a thread of the pool, or one that waits.

use super::pool::{Pool, Task};
use super::step::Batch;
use super::timeline::{CpuTimeline, Follower};
use parking_lot::Mutex;
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
    state: Mutex<State>,
    /// Batches that have completed and keep what they used until the stream takes them.
    done: Mutex<Vec<Batch>>,
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
            batch.run(&self.pool);
            let value = batch.value;
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
