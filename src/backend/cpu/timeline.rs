//! Timelines: a number in memory, and who waits for it.

use crate::backend::{DeviceError, Result, Timeline};
use crate::util::lock::rank;
use crate::util::sync::{self, AtomicBool, AtomicU64, Condvar, Mutex};
use smallvec::SmallVec;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How often the number is looked at before a thread sleeps.
const LOOKS: u32 = 2000;
const LOOKS_FEW_CORES: u32 = 100;

/// Work that waits for a value of a timeline.
pub trait Follower: Send + Sync {
    /// Notifies the follower that the value has been reached.
    fn reached(self: Arc<Self>);
    /// Runs the commands that lead to a value of the follower's own timeline, in a thread that
    /// waits for that value.
    fn help(self: Arc<Self>, value: u64);
}

/// Followers whose values have been reached. They are notified when this is dropped, or before.
#[derive(Default)]
pub struct Due(SmallVec<[Arc<dyn Follower>; 2]>);

impl Due {
    /// Notifies the followers.
    #[inline]
    pub fn notify(&mut self) {
        if self.0.is_empty() {
            return;
        }
        for follower in self.0.drain(..) {
            follower.reached();
        }
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        self.notify();
    }
}

/// No value: what nobody waits for.
const NONE: u64 = u64::MAX;

/// The value of a timeline whose commands were terminated.
const TERMINATED: u64 = 1 << 63;

/// How long [`Timeline::terminate`] waits for a dispatch that runs.
const PATIENCE: Duration = Duration::from_millis(100);

/// The step that runs, of a stream whose commands can be terminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// None.
    None,
    /// One that takes as long as its bytes do.
    Brief,
    /// One of code, which may never end.
    Code,
}

/// The timeline of a stream: its value is that of the last command that is complete.
pub struct CpuTimeline {
    value: AtomicU64,
    /// The least value that a sleeping thread waits for.
    wanted: AtomicU64,
    lock: Mutex<(), { rank::CPU_SLEEPERS }>,
    changed: Condvar,
    /// The least value that a follower waits for.
    followed: AtomicU64,
    followers: Mutex<Vec<(u64, Arc<dyn Follower>)>, { rank::CPU_FOLLOWERS }>,
    /// A command has failed.
    any_failed: AtomicBool,
    /// Commands that have failed: the first value of a range of them, the last, and why.
    failures: Mutex<BTreeMap<u64, (u64, DeviceError)>, { rank::CPU_FAILURES }>,
    /// The stream that advances it.
    stream: OnceLock<Weak<dyn Follower>>,
    /// The commands can be terminated.
    terminable: bool,
    /// Set when commands are to end.
    terminated: AtomicBool,
    /// A [`Running`].
    running: AtomicU64,
    myself: Weak<CpuTimeline>,
}

impl CpuTimeline {
    /// Creates a timeline at 0, whose commands can be terminated or not.
    pub fn new(terminable: bool) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            value: AtomicU64::new(0),
            wanted: AtomicU64::new(NONE),
            lock: Mutex::new(()),
            changed: Condvar::new(),
            followed: AtomicU64::new(NONE),
            followers: Mutex::default(),
            any_failed: AtomicBool::new(false),
            failures: Mutex::default(),
            stream: OnceLock::new(),
            terminable,
            terminated: AtomicBool::new(false),
            running: AtomicU64::new(Running::None as u64),
        })
    }

    /// Returns this timeline, shared.
    pub fn myself(&self) -> Option<Arc<Self>> {
        self.myself.upgrade()
    }

    /// Sets the stream that signals the timeline.
    pub fn belongs_to(&self, stream: &Arc<dyn Follower>) {
        let _ = self.stream.set(Arc::downgrade(stream));
    }

    /// Returns the value reached.
    pub fn reached(&self) -> u64 {
        self.value.load(Ordering::SeqCst)
    }

    /// Records that the command with this value has failed. Called before the value is reached.
    pub fn fail(&self, value: u64, error: DeviceError) {
        let mut failures = self.failures.lock();
        self.any_failed.store(true, Ordering::SeqCst);
        if let Some((_, (last, known))) = failures.range_mut(..=value).next_back() {
            // Terminated before it has failed.
            if *last >= value {
                return;
            }
            // A program that goes on after failures keeps one entry, not one a command.
            if *last + 1 == value && known.to_string() == error.to_string() {
                *last = value;
                return;
            }
        }
        failures.insert(value, (value, error));
    }

    /// Completes all commands up to this value. Adds the followers that are to be notified to `due`.
    pub fn advance(&self, value: u64, due: &mut Due) {
        match self.terminable {
            true => sync::raise(&self.value, value, Ordering::SeqCst),
            false => self.value.store(value, Ordering::SeqCst),
        }
        if self.wanted.load(Ordering::SeqCst) <= value {
            let guard = self.lock.lock();
            self.wanted.store(NONE, Ordering::SeqCst);
            drop(guard);
            // Who waits for a later value says so again.
            self.changed.notify_all();
        }
        if self.followed.load(Ordering::SeqCst) > value {
            return;
        }
        let mut list = self.followers.lock();
        let reached = list.extract_if(.., |(wanted, _)| *wanted <= value);
        due.0.extend(reached.map(|(_, follower)| follower));
        let least = list.iter().map(|(wanted, _)| *wanted).min();
        self.followed.store(least.unwrap_or(NONE), Ordering::SeqCst);
    }

    /// Calls the follower once a value is reached. Returns false if it is reached already.
    pub fn follow(&self, value: u64, follower: Arc<dyn Follower>) -> bool {
        let mut list = self.followers.lock();
        let before = self.followed.load(Ordering::SeqCst);
        self.followed.store(before.min(value), Ordering::SeqCst);
        if self.reached() >= value {
            self.followed.store(before, Ordering::SeqCst);
            return false;
        }
        list.push((value, follower));
        true
    }

    /// Returns true if the commands were terminated.
    pub fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::SeqCst)
    }

    /// Returns the flag that ends dispatches early, if commands can be terminated.
    pub fn stop(&self) -> Option<&AtomicBool> {
        self.terminable.then_some(&self.terminated)
    }

    /// Records that a step begins, or ends (`Running::None`). Returns false if it must not begin.
    pub fn set_running(&self, step: Running) -> bool {
        // In this order: either this sees the flag, or who has set it the step.
        self.running.store(step as u64, Ordering::SeqCst);
        let begins = !self.is_terminated();
        if !begins {
            self.running.store(Running::None as u64, Ordering::SeqCst);
        }
        begins
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
        Ok(self.reached())
    }

    fn failure(&self, value: u64) -> Option<DeviceError> {
        if !self.any_failed.load(Ordering::SeqCst) {
            return None;
        }
        let failures = self.failures.lock();
        let (_, (last, error)) = failures.range(..=value).next_back()?;
        (*last >= value).then(|| error.clone())
    }

    fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool> {
        if self.reached() >= value {
            return Ok(true);
        }
        let end = timeout.map(|time| Instant::now() + time);
        // Who may wait as long as it takes does the work, unless that may be terminated meanwhile.
        if end.is_none() && !self.terminable {
            if let Some(stream) = self.stream.get().and_then(Weak::upgrade) {
                stream.help(value);
            }
        }
        if self.look(value) {
            return Ok(true);
        }
        let mut guard = self.lock.lock();
        loop {
            sync::lower(&self.wanted, value, Ordering::SeqCst);
            if self.reached() >= value {
                return Ok(true);
            }
            match end {
                None => guard.wait(&self.changed),
                Some(end) => {
                    if !guard.wait_until(&self.changed, end) {
                        return Ok(self.reached() >= value);
                    }
                }
            }
        }
    }

    fn terminate(&self) {
        if !self.terminable || self.terminated.swap(true, Ordering::SeqCst) {
            return;
        }
        let began = Instant::now();
        let is_patient = |step| step != Running::Code as u64 || began.elapsed() < PATIENCE;
        while self.runs_on() && is_patient(self.running.load(Ordering::SeqCst)) {
            sync::yield_now();
        }
        // Under the lock: who finds the value reached finds the failure.
        let mut failures = self.failures.lock();
        self.any_failed.store(true, Ordering::SeqCst);
        let reached = self.value.swap(TERMINATED, Ordering::SeqCst);
        failures.insert(reached + 1, (TERMINATED, DeviceError::Terminated));
        drop(failures);
        self.advance(TERMINATED, &mut Due::default());
    }

    fn runs_on(&self) -> bool {
        self.terminable && self.running.load(Ordering::SeqCst) != Running::None as u64
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
