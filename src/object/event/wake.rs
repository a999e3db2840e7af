//! Notifies those who wait for an event when it has changed, and the queues that have something to do then.

use super::{Dependent, Event, Owner};
use crate::cl::cl_int;
use crate::handle::Ref;
use crate::object::callback::{Callback, EventFn};
use crate::util::guard::guarded;
use smallvec::{smallvec, SmallVec};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The pending commands to notify and the callbacks to call, outside locks, after an event has changed: see
/// `Event::settle`.
#[must_use]
#[derive(Default)]
pub struct Notifications {
    pub(super) dependents: SmallVec<[Dependent; 1]>,
    /// Events that end with this status.
    pub(super) followers: Vec<Ref<Event>>,
    pub(super) status: cl_int,
    pub(super) calls: Option<Calls>,
}

/// The callbacks to call for an event.
pub(super) struct Calls {
    callbacks: SmallVec<[(cl_int, Callback<EventFn>); 1]>,
    event: Ref<Event>,
    status: cl_int,
}

impl Calls {
    pub(super) fn new(
        event: &Ref<Event>,
        callbacks: SmallVec<[(cl_int, Callback<EventFn>); 1]>,
        status: cl_int,
    ) -> Option<Self> {
        let event = (!callbacks.is_empty()).then(|| event.clone())?;
        Some(Self {
            callbacks,
            event,
            status,
        })
    }

    fn run(self) {
        for (kind, callback) in &self.callbacks {
            let handle = Arc::as_ptr(&self.event) as usize;
            callback.call(handle, status_of(*kind, self.status));
        }
    }
}

impl Notifications {
    /// Returns true if there is nobody to notify.
    pub fn is_empty(&self) -> bool {
        self.dependents.is_empty() && self.followers.is_empty() && self.calls.is_none()
    }

    /// Notifies the dependents, has their queues look at them, and calls the callbacks, which may wait for those commands.
    pub fn run(self) {
        let mut owners: SmallVec<[Arc<dyn Owner>; 2]> = SmallVec::new();
        let mut dependents = self.dependents.into_iter().peekable();
        while let Some(first) = dependents.next() {
            let mut commands: SmallVec<[u64; 4]> = smallvec![first.command];
            while let Some(next) = dependents.next_if(|next| next.owner.ptr_eq(&first.owner)) {
                commands.push(next.command);
            }
            if let Some(owner) = first.owner.upgrade() {
                owner.dependencies_met(&commands);
                owners.push(owner);
            }
        }
        for follower in self.followers {
            follower.settle(self.status).run();
        }
        wake_and_call(owners, self.calls);
    }
}

/// Returns what a callback of a kind gets when its event has this status.
pub(super) fn status_of(kind: cl_int, status: cl_int) -> cl_int {
    if status < 0 {
        status
    } else {
        kind
    }
}

/// Work that the outermost call of [`wake`] in this thread has yet to do.
#[derive(Default)]
struct Work {
    queues: VecDeque<Arc<dyn Owner>>,
    calls: Vec<Calls>,
}

/// The work of this thread; None outside of [`wake`].
type Woken = RefCell<Option<Work>>;

thread_local! {
    /// Without a destructor, so that threads have it to their end, and handlers of `exit` too. Nothing is left in it.
    static WOKEN: ManuallyDrop<Woken> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Calls `work` with this thread's list of work, if there is one.
fn with_woken<T>(work: impl FnOnce(&mut Option<Work>) -> T) -> Option<T> {
    WOKEN.try_with(|woken| work(&mut woken.borrow_mut())).ok()
}

/// Makes queues look at their pending commands. Within a call made from here the queues are only put on the list of the
/// outermost call: no recursion, however long the chain of commands. A queue that panics keeps no other from its turn.
pub fn wake(owners: impl IntoIterator<Item = Arc<dyn Owner>>) {
    wake_and_call(owners, None);
}

/// As [`wake`], then calls callbacks. They come when no queue is left on the list, and have none around them, since an
/// application may wait in a callback for what those queues do.
fn wake_and_call(owners: impl IntoIterator<Item = Arc<dyn Owner>>, calls: Option<Calls>) {
    let outermost = with_woken(|list| {
        let outermost = list.is_none();
        let work = list.get_or_insert_default();
        work.queues.extend(owners);
        work.calls.extend(calls);
        outermost
    });
    if outermost != Some(true) {
        return;
    }
    let next = |list: &mut Option<Work>| list.as_mut()?.queues.pop_front();
    while let Some(owner) = with_woken(next).flatten() {
        guarded("a queue's pending commands", || owner.pump());
    }
    let work = with_woken(Option::take).flatten().unwrap_or_default();
    for calls in work.calls {
        guarded("a callback", || calls.run());
    }
}
