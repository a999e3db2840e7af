//! Locks with a rank, so that threads that take several take them in one order.
//!
//! A thread may block on a lock only while every lock that it holds has a lower rank. The table of ranks, outermost first,
//! is the order of all locks of the runtime and its back ends that nest; those under which no other is taken may stay
//! `parking_lot`'s. Who only tries need not keep the order, as nobody waits for it then.
//!
//! Debug builds, tests, and builds with the feature `lock-order` check it, and panic with the names of both locks. Other
//! builds have `parking_lot`'s locks and nothing besides. To have the stress test and the model run under it, build the
//! library with `cargo build --release -p pumice-icd --features lock-order`.

use super::place;
use parking_lot::Condvar;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

macro_rules! ranks {
    ($($(#[$doc:meta])* $name:ident)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Position { $($name),* }

        /// The ranks, outermost first.
        pub mod rank {
            $($(#[$doc])* pub const $name: u8 = super::Position::$name as u8;)*
        }

        #[cfg(any(debug_assertions, test, feature = "lock-order"))]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

ranks! {
    /// The commands of a command buffer.
    COMMAND_BUFFER
    /// The replay before an update.
    REPLAY
    /// The builds of a program.
    PROGRAM
    /// The arguments of a kernel.
    KERNEL_ARGS
    /// The memory that a kernel may access besides its arguments.
    KERNEL_EXEC
    /// The program-scope variables of a program; held while they are initialised.
    PROGRAM_VARIABLES
    /// The payload of a semaphore.
    SEMAPHORE
    /// A queue: its stream, open batch and held commands.
    QUEUE
    /// The maps of a memory object.
    MAPPINGS
    /// Where the newest contents of a memory object are.
    COHERENCE
    /// The making of an object's memory, or image, on a device.
    OBJECT_MEMORY
    /// Memory that maps, and images that queues, see in place of a memory object.
    SHADOWS
    /// Profiled operations of a queue that nobody asks for any more.
    UNWANTED_TIMES
    /// An event.
    EVENT
    /// For those that wait for a queue's counters.
    PROGRESS
    /// The queues of a context.
    CONTEXT_QUEUES
    /// The reading of what kernels have enqueued.
    ENQUEUED_BY_KERNELS
    /// The launches whose kernels may enqueue others.
    LAUNCH_TREES
    /// The kernels that such a launch has enqueued.
    TREE_INBOX
    /// Allocations of shared virtual memory, by address.
    ALLOCATIONS
    /// Buffers whose addresses are known.
    ADDRESSED
    /// Memory of the host that devices reach.
    REACHABLE
    /// Blocks that several devices have at one address.
    MIRROR
    /// Ranges of such a block.
    MIRROR_RANGES
    /// The making of a program's kernels for launches beyond 32 bits.
    WIDE_KERNELS
    /// The making of a kernel's code.
    KERNEL_LOADING
    /// The making of a VkDevice.
    DEVICE_OPENING
    /// The pipeline cache before there is a VkDevice.
    CACHE_OF_UNOPENED
    /// The kernels loaded last.
    LOADED_CODE
    /// The pipelines of a kernel.
    CODE_PIPELINES
    /// The making of a variant of a kernel's code for the processor.
    CPU_VARIANTS
    /// The pipelines of a kernel on the processor.
    CPU_PIPELINES
    /// The one of them that was asked for last.
    CPU_LAST_PIPELINE
    /// The correlation of the device's clock.
    CLOCK
    /// The shaders of our own.
    UTILITIES
    /// Blocks at addresses that the host has too.
    SHARED_BLOCKS
    /// Images that are not in their layout yet; held over the submission that brings them there.
    TRANSITIONS
    /// The devices that the end of the process waits for.
    EXIT_DEVICES
    /// Held while a driver compiles.
    COMPILING
    /// Between submissions and the making of pipelines.
    SUBMISSION_GATE
    /// The driver's pipeline cache.
    PIPELINE_CACHE
    /// A VkQueue.
    VK_QUEUE
    /// Marks of a timeline within batches in flight.
    MARKS
    /// The samplers of a device.
    SAMPLERS
    /// The device's memory.
    HEAPS
    /// Ranges of a block of shared memory.
    BLOCK_RANGES
    /// Batches of a stream of the processor.
    CPU_TRACK
    /// Batches that completed.
    CPU_DONE
    /// Streams that wait for another's timeline.
    CPU_FOLLOWERS
    /// Times of profiled steps on the processor.
    CPU_TIMES
    /// For those that wait for a timeline of the processor.
    CPU_SLEEPERS
    /// Commands of a stream of the processor that have failed.
    CPU_FAILURES
    /// The work of the processor's threads; taken by one of them that sleeps, under the lock that it sleeps with.
    CPU_POOL
    /// A checked launch whose kernels enqueue others.
    CHECKED_LAUNCH
    /// Memory that checked kernels may use.
    CHECKED_MEMORY
    /// The findings of checks.
    CHECK_REPORTS
    /// The live objects. Objects are made and dropped under any other lock.
    HANDLES
}

#[cfg(any(debug_assertions, test, feature = "lock-order"))]
mod held {
    use super::NAMES;
    use std::cell::Cell;

    const _: () = assert!(NAMES.len() <= 64, "a bit for each rank");

    thread_local! {
        /// The ranks that this thread holds, a bit each.
        static HELD: Cell<u64> = const { Cell::new(0) };
    }

    fn change(change: impl FnOnce(u64) -> u64) {
        // Not where the thread is ending.
        let _ = HELD.try_with(|held| held.set(change(held.get())));
    }

    /// A lock that this thread holds.
    pub struct Held(u8);

    impl Held {
        /// Panics if the thread must not block on a lock of this rank.
        pub fn check(rank: u8) {
            let held = HELD.try_with(Cell::get).unwrap_or(0);
            if held >> rank != 0 {
                let highest = 63 - held.leading_zeros() as usize;
                let name = |rank: usize| NAMES.get(rank).copied().unwrap_or("?");
                panic!(
                    "{} is locked under {}, against the order of util::lock",
                    name(rank.into()),
                    name(highest)
                );
            }
        }

        /// Records that the thread has the lock.
        pub fn note(rank: u8) -> Self {
            change(|held| held | 1 << rank);
            Self(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            change(|held| held & !(1 << self.0));
        }
    }
}

#[cfg(not(any(debug_assertions, test, feature = "lock-order")))]
mod held {
    /// Nothing is noted.
    pub struct Held;

    impl Held {
        #[inline(always)]
        pub fn check(_: u8) {}

        #[inline(always)]
        pub fn note(_: u8) -> Self {
            Self
        }
    }
}

use held::Held;

/// A mutex.
#[derive(Default)]
pub struct Mutex<T, const RANK: u8>(parking_lot::Mutex<T>);

/// A mutex that is held.
pub struct MutexGuard<'a, T> {
    guard: parking_lot::MutexGuard<'a, T>,
    _held: Held,
}

impl<T, const RANK: u8> Mutex<T, RANK> {
    /// Creates a lock around a value.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        Held::check(RANK);
        let guard = self.0.lock();
        MutexGuard {
            guard,
            _held: Held::note(RANK),
        }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().map(|guard| MutexGuard {
            guard,
            _held: Held::note(RANK),
        })
    }

    /// Takes the lock if it becomes free before `end`.
    pub fn try_lock_until(&self, end: Instant) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock_until(end).map(|guard| MutexGuard {
            guard,
            _held: Held::note(RANK),
        })
    }

    /// Returns the value; the exclusive reference proves that it is not locked.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T> MutexGuard<'_, T> {
    /// Waits for the condition without the lock.
    pub fn wait(&mut self, condition: &Condvar) {
        let _left = place::leave();
        condition.wait(&mut self.guard);
    }

    /// Waits for a notification until `end`. Returns false if that time came first.
    pub fn wait_until(&mut self, condition: &Condvar, end: Instant) -> bool {
        let _left = place::leave();
        !condition.wait_until(&mut self.guard, end).timed_out()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A lock for many readers or one writer.
#[derive(Default)]
pub struct RwLock<T, const RANK: u8>(parking_lot::RwLock<T>);

/// Such a lock, held by a reader.
pub struct ReadGuard<'a, T> {
    guard: parking_lot::RwLockReadGuard<'a, T>,
    _held: Held,
}

/// Such a lock, held by the writer.
pub struct WriteGuard<'a, T> {
    guard: parking_lot::RwLockWriteGuard<'a, T>,
    _held: Held,
}

impl<T, const RANK: u8> RwLock<T, RANK> {
    /// Creates a lock around a value.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::RwLock::new(value))
    }

    /// Waits for the lock and takes it with other readers. A reader that takes it twice may
    /// deadlock with a writer that waits for it.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T> {
        Held::check(RANK);
        let guard = self.0.read();
        ReadGuard {
            guard,
            _held: Held::note(RANK),
        }
    }

    /// Waits for the lock and takes it exclusively.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T> {
        Held::check(RANK);
        let guard = self.0.write();
        WriteGuard {
            guard,
            _held: Held::note(RANK),
        }
    }

    /// Takes the lock with other readers, if there is no writer.
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        self.0.try_read().map(|guard| ReadGuard {
            guard,
            _held: Held::note(RANK),
        })
    }

    /// Takes the lock exclusively, if it becomes free before `end`.
    pub fn try_write_until(&self, end: Instant) -> Option<WriteGuard<'_, T>> {
        self.0.try_write_until(end).map(|guard| WriteGuard {
            guard,
            _held: Held::note(RANK),
        })
    }

    /// Returns true while there is a writer.
    pub fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }

    /// Returns the value; the exclusive reference proves that it is not locked.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    /// Returns the complaint about an action, if there is one.
    fn complaint(action: impl FnOnce()) -> Option<String> {
        let panicked = catch_unwind(AssertUnwindSafe(action)).err()?;
        Some(*panicked.downcast::<String>().expect("a text"))
    }

    #[test]
    fn locks_are_taken_in_one_order() {
        let outer: Mutex<u8, { rank::QUEUE }> = Mutex::new(1);
        let inner: Mutex<u8, { rank::EVENT }> = Mutex::new(2);
        let last: RwLock<u8, { rank::HANDLES }> = RwLock::new(3);
        let rightly = complaint(|| {
            let (a, b, c) = (outer.lock(), inner.lock(), last.write());
            assert_eq!((*a, *b, *c), (1, 2, 3));
            // What is released does not count, in whatever order.
            drop(a);
            drop(c);
            assert_eq!(*last.read(), 3);
        });
        assert_eq!(rightly, None);
        let wrongly = complaint(|| {
            let _held = inner.lock();
            drop(outer.lock());
        });
        let expected = "QUEUE is locked under EVENT, against the order of util::lock";
        assert_eq!(wrongly.as_deref(), Some(expected));
        // Nothing is left of that.
        assert_eq!(complaint(|| drop(outer.lock())), None);
    }

    #[test]
    fn readers_count_and_those_that_try_need_not_keep_the_order() {
        let one: Mutex<(), { rank::QUEUE }> = Mutex::default();
        let other: Mutex<(), { rank::QUEUE }> = Mutex::default();
        let shared: RwLock<(), { rank::HEAPS }> = RwLock::default();
        let twice = complaint(|| {
            let _one = one.lock();
            drop(other.lock());
        });
        assert!(twice.is_some(), "two of one rank");
        let under_reader = complaint(|| {
            let _reader = shared.read();
            drop(one.lock());
        });
        assert!(under_reader.is_some());
        let again = complaint(|| {
            let _reader = shared.read();
            drop(shared.read());
        });
        assert!(again.is_some(), "a writer may come between");
        let tried = complaint(|| {
            let _reader = shared.read();
            assert!(one.try_lock().is_some());
        });
        assert_eq!(tried, None);
        let under_tried = complaint(|| {
            let _tried = shared.try_read();
            drop(one.lock());
        });
        assert!(under_tried.is_some());
    }

    #[test]
    fn a_wait_gives_the_lock_away() {
        let flag: Mutex<bool, { rank::PROGRESS }> = Mutex::new(false);
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                *flag.lock() = true;
                changed.notify_all();
            });
            let mut guard = flag.lock();
            while !*guard {
                guard.wait(&changed);
            }
        });
    }
}
