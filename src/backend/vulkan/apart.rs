//! Keeps submissions and the making of pipelines apart on drivers that lose the device over both at once.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The lock of a device, where it needs one.
pub struct Apart(Option<RwLock<()>>);

impl Apart {
    /// For a device that needs it, or not ([`Tuning::pipelines_apart`](super::adapter::Tuning)).
    pub fn new(needed: bool) -> Self {
        Self(needed.then(RwLock::default))
    }

    /// To be held while a batch is submitted; taken before the queue's lock.
    pub fn submitting(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.0.as_ref().map(RwLock::read)
    }

    /// To be held while a pipeline is made: nothing is submitted meanwhile, and no other pipeline made.
    pub fn making(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.0.as_ref().map(RwLock::write)
    }

    /// Whether a pipeline is being made, so that one who asks in passing may come back later.
    pub fn is_making(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|lock| lock.is_locked_exclusive())
    }
}
