//! The threads of the device: they run batches of streams, and help one another with launches of many work-groups.
//!
//! Threads are made when there is work for them, up to the number of processors. One that has nothing to do looks for work
//! for a short while before it sleeps. A thread of the application that waits for a stream runs the stream's batches itself
//! (`timeline.rs`), so that a launch that is waited for needs no switch between threads. A thread of the pool that waits in
//! a batch of commands, as native kernels may, gives its place to another ([`crate::util::place`]). A forked child has none of them, and
//! is refused (`util/forked.rs`).

use super::timeline::Due;
use crate::util::affinity;
use crate::util::guard::guarded;
use crate::util::lock::rank;
use crate::util::place::{self, Place};
use crate::util::sync::{self, AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// How often a thread without work looks for some before it sleeps; a look takes a few to some tens of nanoseconds.
const LOOKS: u32 = 2000;
const LOOKS_FEW_CORES: u32 = 200;

/// Work that a thread can do on its own.
pub trait Task: Send + Sync {
    /// Runs the work in a thread of the pool. Returns the followers of what has completed last; the thread looks for work
    /// when they are notified.
    fn serve(self: Arc<Self>) -> Due;
}

/// Something that several threads do together: pieces `0 .. total`, a few at a time.
pub trait Shared: Send + Sync {
    /// Runs pieces `first .. first + count`.
    fn run(&self, first: u64, count: u64);
}

/// A task under way.
struct Job {
    /// Lives until the leader has seen `helpers` at zero after the job left the list.
    task: *const dyn Shared,
    total: u64,
    /// Pieces that are taken at a time.
    chunk: u64,
    next: AtomicU64,
    helpers: AtomicUsize,
    /// A piece panicked in a helper.
    failed: AtomicBool,
}

// SAFETY: the task can be used by all threads, and lives as long as any of them uses it (see `Pool::together`).
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    /// Runs pieces until there are none left, or until `stop` returns true between two.
    fn work(&self, stop: impl Fn() -> bool) {
        loop {
            let first = self.next.fetch_add(self.chunk, Ordering::Relaxed);
            if first >= self.total {
                return;
            }
            let count = self.chunk.min(self.total - first);
            // SAFETY: whoever is here is the leader, or is counted in `helpers`.
            unsafe { &*self.task }.run(first, count);
            if stop() {
                return;
            }
        }
    }

    fn has_work(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.total
    }
}

enum Work {
    Help(Arc<Job>),
    Run(Arc<dyn Task>),
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<dyn Task>>,
    jobs: Vec<Arc<Job>>,
    /// Threads, but for those that sleep in a task.
    threads: usize,
    sleeping: usize,
    /// Threads that have nothing to do go.
    closed: bool,
}

impl State {
    /// Takes the next piece of work. Tasks come first, so that a small command of one stream runs
    /// while a long launch of another continues, whose threads return here after each piece.
    fn take(&mut self) -> Option<Work> {
        if let Some(task) = self.ready.pop_front() {
            return Some(Work::Run(task));
        }
        let job = self.jobs.iter().find(|job| job.has_work())?;
        job.helpers.fetch_add(1, Ordering::Relaxed);
        Some(Work::Help(job.clone()))
    }
}

/// The threads.
pub struct Pool {
    state: Mutex<State, { rank::CPU_POOL }>,
    wake: Condvar,
    /// Tasks and jobs in the lists.
    pending: AtomicUsize,
    /// Tasks in the list.
    tasks: AtomicUsize,
    /// Threads that look for work. Each looks once more, under the lock, before it sleeps.
    looking: AtomicUsize,
    cores: usize,
    /// The processors that the threads stay on. None: all that there are.
    only_on: Option<Vec<u32>>,
}

impl Pool {
    /// Creates a pool of as many threads as cores, none of which is started.
    pub fn new(cores: usize) -> Arc<Self> {
        Self::with(cores, None)
    }

    /// Returns a pool whose threads, one each, stay on these processors.
    pub fn of_processors(numbers: &[u32]) -> Arc<Self> {
        Self::with(numbers.len(), Some(numbers.to_vec()))
    }

    fn with(cores: usize, only_on: Option<Vec<u32>>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            pending: AtomicUsize::new(0),
            tasks: AtomicUsize::new(0),
            looking: AtomicUsize::new(0),
            cores: cores.max(1),
            only_on,
        })
    }

    /// Returns true if a thread of the application that waits may do the pool's work: none is kept
    /// to some processors.
    pub fn takes_help(&self) -> bool {
        self.only_on.is_none()
    }

    /// Closes the pool: its threads end when there is no work left.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    /// Returns the threads that work at the same time.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Returns the number of started threads.
    #[cfg(test)]
    pub(super) fn threads(&self) -> usize {
        self.state.lock().threads
    }

    /// Publishes the lengths of the lists, for threads that read them without the lock.
    fn count(&self, state: &State) {
        let (tasks, jobs) = (state.ready.len(), state.jobs.len());
        self.tasks.store(tasks, Ordering::Release);
        self.pending.store(tasks + jobs, Ordering::Release);
    }

    /// Starts or wakes threads for the tasks in the list, and for `wanted` helpers of a job.
    /// Returns false if there is no thread.
    fn call(self: &Arc<Self>, mut state: MutexGuard<'_, State>, wanted: usize) -> bool {
        self.count(&state);
        // A thread that was notified sleeps until it wakes: the tasks that wait for it count, too. One of them may run for ever.
        let looking = self.looking.load(Ordering::Acquire);
        let wanted = (wanted + state.ready.len()).saturating_sub(looking);
        let mut more = wanted.saturating_sub(state.sleeping);
        while more > 0 && state.threads < self.cores {
            crate::util::forked::needs_threads();
            let pool = Arc::clone(self);
            let thread = sync::spawn("pumice-cpu", move || pool.serve());
            if let Err(error) = thread {
                crate::log!(Warn, "no thread for the CPU device: {error}");
                break;
            }
            state.threads += 1;
            more -= 1;
        }
        let (sleeping, some) = (state.sleeping, state.threads > 0);
        drop(state);
        for _ in 0..wanted.min(sleeping) {
            self.wake.notify_one();
        }
        some
    }

    /// Returns true if a thread is to do this. Returns false if there is none.
    pub fn run(self: &Arc<Self>, task: Arc<dyn Task>) -> bool {
        let mut state = self.state.lock();
        state.ready.push_back(task);
        self.call(state, 0)
    }

    fn serve(self: Arc<Self>) {
        let looks = sync::looks(match crate::util::many_cores() {
            true => LOOKS,
            false => LOOKS_FEW_CORES,
        });
        if let Some(numbers) = &self.only_on {
            if !affinity::stay_on(numbers) {
                crate::log!(Warn, "a thread cannot be kept on processors {numbers:?}");
            }
        }
        let mut due = Due::default();
        while let Some(work) = self.find(looks, std::mem::take(&mut due)) {
            match work {
                Work::Help(job) => {
                    // A task may wait for this thread.
                    let stop = || self.tasks.load(Ordering::Relaxed) > 0;
                    if !guarded("a piece of a command", || job.work(stop)) {
                        job.failed.store(true, Ordering::Relaxed);
                        job.next.store(job.total, Ordering::Relaxed);
                    }
                    job.helpers.fetch_sub(1, Ordering::Release);
                }
                Work::Run(task) => {
                    place::within(self.clone(), || {
                        guarded("a batch of commands", || due = task.serve())
                    });
                }
            }
        }
    }

    /// Returns the next piece of work. Returns `None` if the thread is to end. The followers are notified first; this thread
    /// then runs one of them, without another's being woken.
    fn find(self: &Arc<Self>, looks: u32, due: Due) -> Option<Work> {
        self.looking.fetch_add(1, Ordering::AcqRel);
        drop(due);
        let mut left = looks;
        loop {
            if left > 0 && self.pending.load(Ordering::Relaxed) == 0 {
                left -= 1;
                sync::spin_loop();
                continue;
            }
            let mut state = self.state.lock();
            // It has slept in a task, and another has taken its place.
            let replaced = state.threads > self.cores;
            let work = if replaced { None } else { state.take() };
            if work.is_some() || replaced || state.closed {
                self.looking.fetch_sub(1, Ordering::AcqRel);
                match work {
                    Some(_) => self.count(&state),
                    None => state.threads -= 1,
                }
                if replaced {
                    // Who added work while this thread looked for some has woken no other for it.
                    let helpers = state.jobs.len();
                    self.call(state, helpers);
                }
                return work;
            }
            if left == 0 {
                state.sleeping += 1;
                self.looking.fetch_sub(1, Ordering::AcqRel);
                state.wait(&self.wake);
                self.looking.fetch_add(1, Ordering::AcqRel);
                state.sleeping -= 1;
                left = looks;
            } else {
                // A job without pieces that others could take.
                left -= 1;
                drop(state);
                sync::spin_loop();
            }
        }
    }

    /// Runs a task with as many threads as pay; the caller is one of them. Pieces are taken `chunk`
    /// at a time.
    pub fn run_shared(self: &Arc<Self>, task: &dyn Shared, total: u64, chunk: u64) {
        let chunk = chunk.max(1);
        let chunks = total.div_ceil(chunk);
        let helpers = chunks.saturating_sub(1).min(self.cores as u64 - 1) as usize;
        if helpers == 0 {
            if total > 0 {
                task.run(0, total);
            }
            return;
        }
        // SAFETY: only the lifetime is made up; this function does not return before the last helper is done.
        let task = unsafe {
            std::mem::transmute::<*const (dyn Shared + '_), *const (dyn Shared + 'static)>(task)
        };
        let job = Arc::new(Job {
            task,
            total,
            chunk,
            next: AtomicU64::new(0),
            helpers: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        });
        let mut state = self.state.lock();
        state.jobs.push(job.clone());
        self.call(state, helpers);
        // Should a piece panic, the others still must be done with before the task goes.
        let gone = EndOfJob {
            pool: self,
            job: &job,
        };
        job.work(|| false);
        drop(gone);
        if job.failed.load(Ordering::Relaxed) {
            // As if the piece had been this thread's.
            std::panic::resume_unwind(Box::new("a piece failed in another thread"));
        }
    }
}

impl Place for Pool {
    fn leave(self: Arc<Self>) {
        let mut state = self.state.lock();
        state.threads -= 1;
        let wanted = state.ready.len() + state.jobs.len();
        if wanted > 0 {
            self.call(state, wanted);
        }
    }

    fn come_back(self: Arc<Self>) {
        self.state.lock().threads += 1;
    }
}

/// Takes a job out of the list and waits for its helpers.
struct EndOfJob<'a> {
    pool: &'a Pool,
    job: &'a Arc<Job>,
}

impl Drop for EndOfJob<'_> {
    fn drop(&mut self) {
        self.job.next.store(self.job.total, Ordering::Relaxed);
        {
            let mut state = self.pool.state.lock();
            state.jobs.retain(|other| !Arc::ptr_eq(other, self.job));
            self.pool.count(&state);
        }
        let mut looks = 0u32;
        while self.job.helpers.load(Ordering::Acquire) > 0 {
            looks += 1;
            if looks < 1000 {
                sync::spin_loop();
            } else {
                sync::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opened by one task, waited for by others.
    #[derive(Default)]
    struct Door {
        open: crate::util::lock::Mutex<bool, { rank::EVENT }>,
        changed: parking_lot::Condvar,
        through: std::sync::atomic::AtomicUsize,
    }

    struct Waits(Arc<Door>);
    struct Opens(Arc<Door>);

    impl Task for Waits {
        fn serve(self: Arc<Self>) -> Due {
            let mut open = self.0.open.lock();
            while !*open {
                open.wait(&self.0.changed);
            }
            self.0.through.fetch_add(1, Ordering::SeqCst);
            Due::default()
        }
    }

    impl Task for Opens {
        fn serve(self: Arc<Self>) -> Due {
            *self.0.open.lock() = true;
            self.0.changed.notify_all();
            Due::default()
        }
    }

    /// Tasks that sleep keep no other from running, whether it is there before or comes later; and when they are over there
    /// are no more threads than before.
    #[test]
    fn tasks_that_sleep_give_up_their_places() {
        for cores in [1, 2] {
            for late in [false, true] {
                let (pool, door) = (Pool::new(cores), Arc::new(Door::default()));
                for _ in 0..5 {
                    assert!(pool.run(Arc::new(Waits(door.clone()))));
                }
                if late {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                assert!(pool.run(Arc::new(Opens(door.clone()))));
                let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
                while door.through.load(Ordering::SeqCst) < 5 || pool.threads() > cores {
                    assert!(std::time::Instant::now() < end, "a task waits for ever");
                    std::thread::yield_now();
                }
                end_of(&pool);
            }
        }
    }

    struct Count(Vec<AtomicU64>);

    impl Shared for Count {
        fn run(&self, first: u64, count: u64) {
            for at in first..first + count {
                self.0[at as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn threads_end_with_the_pool() {
        let pool = Pool::of_processors(&[0]);
        let two = Pool::with(2, None);
        for pool in [&pool, &two] {
            let count = Count((0..100).map(|_| AtomicU64::new(0)).collect());
            pool.run_shared(&count, 100, 1);
            end_of(pool);
        }
    }

    /// Ends the threads of a pool, since Miri takes threads that outlive the tests for leaks.
    fn end_of(pool: &Pool) {
        pool.close();
        while pool.threads() > 0 {
            std::thread::yield_now();
        }
    }

    struct Falls(u64);

    impl Shared for Falls {
        fn run(&self, first: u64, count: u64) {
            std::thread::sleep(std::time::Duration::from_micros(200));
            assert!(
                !(first..first + count).contains(&self.0),
                "as the test wants"
            );
        }
    }

    /// A piece that panics, in whichever thread, is the failure of the whole task, and leaves the threads at work.
    #[test]
    fn a_piece_that_panics() {
        let pool = Pool::new(4);
        for bad in 0..40 {
            assert!(!guarded("test", || pool.run_shared(&Falls(bad), 40, 1)));
        }
        let count = Count((0..100).map(|_| AtomicU64::new(0)).collect());
        pool.run_shared(&count, 100, 1);
        assert!(count.0.iter().all(|n| n.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn every_piece_once() {
        let pool = Pool::new(4);
        for (total, chunk) in [(0, 1), (1, 1), (100, 7), (1000, 1), (5, 100)] {
            let count = Count((0..total).map(|_| AtomicU64::new(0)).collect());
            pool.run_shared(&count, total, chunk);
            assert!(count.0.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        }
        end_of(&pool);
    }
}
