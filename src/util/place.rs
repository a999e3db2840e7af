//! A thread that sleeps gives up its place: a pool of so many threads has another one work meanwhile.
//!
//! A native kernel may wait for commands that only another thread of its pool can run. [`super::lock::MutexGuard::wait`], where
//! every thread of the runtime sleeps, calls [`leave`].

use std::cell::RefCell;
use std::sync::Arc;

/// Where a thread works.
pub trait Place {
    /// Notifies that the thread sleeps. Called with locks held.
    fn leave(self: Arc<Self>);
    /// Notifies that the thread works again.
    fn come_back(self: Arc<Self>);
}

thread_local! {
    static HERE: RefCell<Option<Arc<dyn Place>>> = const { RefCell::new(None) };
}

/// Sets the place of this thread, or none. Returns the previous one.
fn set(place: Option<Arc<dyn Place>>) -> Option<Arc<dyn Place>> {
    // Not where the thread is ending.
    let before = HERE.try_with(|here| here.replace(place));
    before.ok().flatten()
}

/// Puts back what was there.
struct Back(Option<Arc<dyn Place>>);

impl Drop for Back {
    fn drop(&mut self) {
        set(self.0.take());
    }
}

/// Runs `work` in a place.
pub fn within<R>(place: Arc<dyn Place>, work: impl FnOnce() -> R) -> R {
    // The threads of a model are one of the process, which sleeps with all of them.
    let _back = (!cfg!(feature = "loom")).then(|| Back(set(Some(place))));
    work()
}

/// The thread sleeps until this is dropped.
pub struct Left(Back);

/// Announces that the calling thread is going to sleep.
#[inline]
pub fn leave() -> Left {
    let place = set(None);
    if let Some(place) = &place {
        place.clone().leave();
    }
    Left(Back(place))
}

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(place) = &self.0 .0 {
            place.clone().come_back();
        }
    }
}
