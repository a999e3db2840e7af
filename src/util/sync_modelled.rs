//! The parts of [`super::sync`] as loom has them.
//!
//! loom gives operations that are sequentially consistent no more than acquire and release, but fences what they are. So
//! such an operation has a fence before and behind it here, which is what the processors do.

use loom::sync::atomic::fence;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::time::Instant;

pub use loom::sync::Condvar;
pub use loom::thread::yield_now;

/// Yields to other threads of the model.
pub fn spin_loop() {
    yield_now();
}

/// Returns 1: in a model one look shows what a thousand do.
pub const fn looks(_: u32) -> u32 {
    1
}

/// Returns a thread of the model.
pub fn spawn(_: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    drop(loom::thread::spawn(work));
    Ok(())
}

/// Raises a number to this value, unless it is above it.
#[track_caller]
pub fn raise(number: &AtomicU64, value: u64, order: Ordering) {
    number.fetch_max(value, order);
}

/// Lowers a number to this value, unless it is below it.
#[track_caller]
pub fn lower(number: &AtomicU64, value: u64, order: Ordering) {
    number.fetch_min(value, order);
}

fn ordered<T>(order: Ordering, operation: impl FnOnce() -> T) -> T {
    let total = order == Ordering::SeqCst;
    if total {
        fence(order);
    }
    let result = operation();
    if total {
        fence(order);
    }
    result
}

macro_rules! atomics {
    ($($name:ident: $value:ty { $($operation:ident)* })*) => { $(
        /// An atomic value.
        pub struct $name(loom::sync::atomic::$name);

        #[allow(dead_code)]
        impl $name {
            /// Creates an atomic with this value.
            pub fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            /// Returns the value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                ordered(order, || self.0.load(order))
            }

            /// Stores a value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                ordered(order, || self.0.store(value, order));
            }

            $(
                /// As the standard library's.
                #[track_caller]
                pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                    ordered(order, || self.0.$operation(value, order))
                }
            )*
        }
    )* };
}

atomics! {
    AtomicBool: bool { swap }
    AtomicU32: u32 { swap fetch_add fetch_sub }
    AtomicU64: u64 { swap fetch_add fetch_sub fetch_min fetch_max }
    AtomicUsize: usize { swap fetch_add fetch_sub }
}

/// A mutex. The order among locks is not looked at: a model shows every deadlock.
#[derive(Default)]
pub struct Mutex<T, const RANK: u8>(loom::sync::Mutex<T>);

/// A mutex that is held.
pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T, const RANK: u8> Mutex<T, RANK> {
    /// Creates a lock around a value.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock and takes it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(
            self.0.lock().unwrap_or_else(|broken| broken.into_inner()),
        ))
    }
}

impl<T> MutexGuard<'_, T> {
    /// Waits for the condition without the lock.
    #[track_caller]
    pub fn wait(&mut self, condition: &Condvar) {
        if let Some(guard) = self.0.take() {
            let again = condition.wait(guard);
            self.0 = Some(again.unwrap_or_else(|broken| broken.into_inner()));
        }
    }

    /// Returns true if the same: there is no time in a model.
    #[track_caller]
    pub fn wait_until(&mut self, condition: &Condvar, _: Instant) -> bool {
        self.wait(condition);
        true
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("held")
    }
}

/// A lock for many readers or one writer.
#[derive(Default)]
pub struct RwLock<T, const RANK: u8>(loom::sync::RwLock<T>);

impl<T, const RANK: u8> RwLock<T, RANK> {
    /// Creates a lock around a value.
    pub fn new(value: T) -> Self {
        Self(loom::sync::RwLock::new(value))
    }

    /// Waits for the lock and takes it with other readers.
    #[track_caller]
    pub fn read(&self) -> loom::sync::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Waits for the lock and takes it exclusively.
    #[track_caller]
    pub fn write(&self) -> loom::sync::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|broken| broken.into_inner())
    }
}
