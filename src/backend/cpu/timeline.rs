//! Timelines: a number in memory, and who waits for it.

use crate::backend::{DeviceError, Result, Timeline};
use crate::util::lock::rank;
use crate::util::sync::{self, AtomicU64, AtomicUsize, Condvar, Mutex};
use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How often the number is looked at before a thread sleeps.
const LOOKS: u32 = 2000;
const LOOKS_FEW_CORES: u32 = 100;

/// What comes after a value.
pub trait Follower: Send + Sync {
    /// The value that it waited for has been reached.
    fn reached(self: Arc<Self>);
    /// In a thread that waits for a value of its own timeline: does what leads there.
    fn help(self: Arc<Self>, value: u64);
}

/// The timeline of a stream.
pub struct CpuTimeline {
    value: AtomicU64,
    /// The first value whose batch failed, with all after it; `u64::MAX`: none.
    failed: AtomicU64,
    /// Threads that sleep.
    sleepers: AtomicUsize,
    lock: Mutex<(), { rank::CPU_SLEEPERS }>,
    changed: Condvar,
    /// Streams whose next batch waits for a value.
    following: AtomicUsize,
    followers: Mutex<Vec<Arc<dyn Follower>>, { rank::CPU_FOLLOWERS }>,
    /// What advances it.
    stream: OnceLock<Weak<dyn Follower>>,
    myself: Weak<CpuTimeline>,
}

impl CpuTimeline {
    /// A timeline at 0.
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            value: AtomicU64::new(0),
            failed: AtomicU64::new(u64::MAX),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            changed: Condvar::new(),
            following: AtomicUsize::new(0),
            followers: Mutex::default(),
            stream: OnceLock::new(),
        })
    }

    /// This timeline, shared.
    pub fn myself(&self) -> Option<Arc<Self>> {
        self.myself.upgrade()
    }

    /// Says whose it is.
    pub fn belongs_to(&self, stream: &Arc<dyn Follower>) {
        let _ = self.stream.set(Arc::downgrade(stream));
    }

    /// The value reached.
    pub fn reached(&self) -> u64 {
        self.value.load(Ordering::SeqCst)
    }

    /// A batch has failed: waiting for it, or for what comes after it, is an error.
    pub fn fail(&self, value: u64) {
        self.failed.fetch_min(value, Ordering::SeqCst);
    }

    /// An error if the value is reached, but by a failure.
    fn checked(&self, value: u64) -> Result<()> {
        if value >= self.failed.load(Ordering::SeqCst) {
            return Err(DeviceError::Lost);
        }
        Ok(())
    }

    /// A batch has completed.
    pub fn advance(&self, value: u64) {
        self.value.store(value, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock());
            self.changed.notify_all();
        }
        if self.following.load(Ordering::SeqCst) > 0 {
            let followers = {
                let mut list = self.followers.lock();
                self.following.store(0, Ordering::SeqCst);
                std::mem::take(&mut *list)
            };
            for follower in followers {
                follower.reached();
            }
        }
    }

    /// The follower is told once a value is reached. False: it is.
    pub fn follow(&self, value: u64, follower: Arc<dyn Follower>) -> bool {
        let mut list = self.followers.lock();
        self.following.store(list.len() + 1, Ordering::SeqCst);
        if self.reached() >= value {
            self.following.store(list.len(), Ordering::SeqCst);
            return false;
        }
        list.push(follower);
        true
    }

    fn look(&self, value: u64) -> bool {
        let looks = match crate::util::many_cores() {
            true => LOOKS,
            false => LOOKS_FEW_CORES,
        };
        for _ in 0..sync::looks(looks) {
            if self.reached() >= value {
                return true;
            }
            sync::spin_loop();
        }
        self.reached() >= value
    }
}

impl Timeline for CpuTimeline {
    fn completed(&self) -> Result<u64> {
        let reached = self.reached();
        self.checked(reached)?;
        Ok(reached)
    }

    fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool> {
        if self.reached() >= value {
            return self.checked(value).map(|()| true);
        }
        let end = timeout.map(|time| Instant::now() + time);
        // Who may wait as long as it takes does the work.
        if end.is_none() {
            if let Some(stream) = self.stream.get().and_then(Weak::upgrade) {
                stream.help(value);
            }
        }
        if self.look(value) {
            return self.checked(value).map(|()| true);
        }
        let mut guard = self.lock.lock();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut reached = true;
        while self.reached() < value {
            match end {
                None => guard.wait(&self.changed),
                Some(end) => {
                    if !guard.wait_until(&self.changed, end) {
                        reached = self.reached() >= value;
                        break;
                    }
                }
            }
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        if reached {
            self.checked(value)?;
        }
        Ok(reached)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
