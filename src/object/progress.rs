//! How far a queue has come, as events and its context see it: counters that are read without the queue's lock.

use super::device::Device;
use crate::backend::{Point, Throttle, Timeline};
use crate::cl::{self, cl_int};
use crate::error::ClError;
use crate::handle::Ref;
use crate::util::blocking;
use crate::util::lock::rank;
use crate::util::sync::{self, AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex};
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// How long a thread waits actively for host tasks before it sleeps.
const ACTIVE_WAIT: std::time::Duration = std::time::Duration::from_micros(60);

/// How far a queue has come: what events need of it without its lock.
pub struct Progress {
    /// The timeline of its stream.
    pub timeline: Arc<dyn Timeline>,
    /// How threads wait for it.
    throttle: Throttle,
    recorded: AtomicU64,
    submitted: AtomicU64,
    host_done: AtomicU64,
    /// When the timeline has reached this, no kernel is under way that may touch any memory of the host.
    follows: AtomicU64,
    /// The last value of writes that blocking calls have left to the timeline.
    left: AtomicU64,
    /// Commands that are not on the timeline yet.
    pending: AtomicUsize,
    host_watched: AtomicBool,
    lock: Mutex<(), { rank::PROGRESS }>,
    changed: Condvar,
}

impl Progress {
    /// Creates the progress of a new queue.
    pub fn new(timeline: Arc<dyn Timeline>, throttle: Throttle) -> Self {
        Self {
            timeline,
            throttle,
            recorded: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
            host_done: AtomicU64::new(0),
            follows: AtomicU64::new(0),
            left: AtomicU64::new(0),
            pending: AtomicUsize::new(0),
            host_watched: AtomicBool::new(false),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Returns a point of the timeline.
    pub fn point(&self, value: u64) -> Point {
        let timeline = self.timeline.clone();
        Point { timeline, value }
    }

    /// Returns the timeline value at which everything recorded so far is complete.
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Acquire)
    }

    /// Returns the last value submitted.
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Returns the last host task finished.
    pub fn host_done(&self) -> u64 {
        self.host_done.load(Ordering::SeqCst)
    }

    /// Returns true if a kernel that may access any memory of the host is running, as far as is
    /// known.
    pub fn follows_pointers(&self) -> bool {
        let until = self.follows.load(Ordering::SeqCst);
        until != 0 && self.timeline.completed().unwrap_or(0) < until
    }

    /// Records a kernel that follows pointers, and completes at this value.
    pub(crate) fn set_follows(&self, value: u64) {
        sync::raise(&self.follows, value, Ordering::SeqCst);
    }

    /// Returns the last value of blocking writes that have returned before their bytes were where
    /// they belong, which only this queue could see.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::SeqCst)
    }

    pub(crate) fn set_left(&self, value: u64) {
        sync::raise(&self.left, value, Ordering::SeqCst);
    }

    /// Returns the number of pending commands.
    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Acquire)
    }

    /// Sets the number of pending commands.
    pub(crate) fn set_pending(&self, count: usize) {
        self.pending.store(count, Ordering::Release);
    }

    /// Sets whether a pending command waits for a host task, so that the executor reports the end
    /// of each.
    pub(crate) fn watch_host(&self, watched: bool) {
        self.host_watched.store(watched, Ordering::SeqCst);
    }

    /// Returns true if a pending command waits for a host task.
    pub fn host_watched(&self) -> bool {
        self.host_watched.load(Ordering::SeqCst)
    }

    /// Returns true if the command with this value has failed.
    pub fn has_failed(&self, value: u64) -> bool {
        self.timeline.failure(value).is_some()
    }

    /// Returns the status of the command with this value, which is reached: CL_COMPLETE or an error code.
    pub fn status(&self, value: u64) -> cl_int {
        let failure = self.timeline.failure(value);
        failure.map_or(cl::CL_COMPLETE as cl_int, |error| ClError::from(error).code)
    }

    pub(crate) fn set_recorded(&self, value: u64) {
        sync::raise(&self.recorded, value, Ordering::AcqRel);
    }

    pub(crate) fn set_submitted(&self, value: u64) {
        sync::raise(&self.recorded, value, Ordering::AcqRel);
        sync::raise(&self.submitted, value, Ordering::AcqRel);
    }

    pub(crate) fn set_host_done(&self, seq: u64) {
        sync::raise(&self.host_done, seq, Ordering::SeqCst);
        drop(self.lock.lock());
        self.changed.notify_all();
    }

    /// Waits until host task `seq` has finished.
    pub fn wait_host(&self, seq: u64) {
        if self.host_done() >= seq {
            return;
        }
        if crate::util::many_cores() && self.throttle != Throttle::Low {
            // Being woken takes longer than most host tasks.
            let began = std::time::Instant::now();
            while began.elapsed() < ACTIVE_WAIT {
                for _ in 0..32 {
                    sync::spin_loop();
                }
                if self.host_done() >= seq {
                    return;
                }
            }
        }
        blocking::begins();
        let mut guard = self.lock.lock();
        while self.host_done() < seq {
            guard.wait(&self.changed);
        }
    }
}

/// A queue as its context knows it; implemented by the queue.
pub trait ContextQueue: Send + Sync {
    /// Returns the handle of the queue.
    fn handle(&self) -> *mut c_void;
    /// Returns the device of the queue.
    fn device(&self) -> &Ref<Device>;
    /// Returns the progress of the queue.
    fn progress(&self) -> &Arc<Progress>;
    /// Submits everything recorded. Failures go to the events concerned.
    fn flush(&self);
    /// Ends all commands with CL_CONTEXT_TERMINATED_KHR.
    fn terminate(&self);
}

/// The real code under loom, which tries every order of its steps (`ci/test loom`).
#[cfg(all(test, feature = "loom"))]
mod models {
    use super::*;
    use crate::backend::{Result, Timeline};

    struct Still;

    impl Timeline for Still {
        fn completed(&self) -> Result<u64> {
            Ok(0)
        }

        fn wait(&self, _: u64, _: Option<std::time::Duration>) -> Result<bool> {
            Ok(true)
        }

        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
    }

    fn progress() -> Arc<Progress> {
        Arc::new(Progress::new(Arc::new(Still), Throttle::Low))
    }

    #[test]
    fn who_waits_for_host_tasks_wakes() {
        loom::model(|| {
            let progress = progress();
            let waits = progress.clone();
            let thread = loom::thread::spawn(move || {
                waits.wait_host(2);
                assert_eq!(waits.host_done(), 2);
            });
            progress.set_host_done(1);
            progress.set_host_done(2);
            thread.join().expect("no panic");
        });
    }
}
