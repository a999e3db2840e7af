//! What a command waits for: whether it can be encoded, must be held, or has failed already.

use super::encode::Ready;
use super::host_tasks::QueuePosition;
use super::state::QueueState;
use super::Queue;
use crate::backend::Point;
use crate::command::Work;
use crate::handle::Ref;
use crate::object::device::Device;
use crate::object::event::{Event, Owner, Readiness};
use smallvec::SmallVec;
use std::sync::Arc;

/// What a held command is woken by, besides the end of host tasks.
#[derive(Default)]
pub(super) struct Pending {
    /// These events (true: only when they are done).
    pub(super) events: SmallVec<[(Ref<Event>, bool); 2]>,
    /// The queue itself, when it has come that far.
    pub(super) behind: Option<QueuePosition>,
}

/// What can be done about a command.
pub(super) enum Resolved {
    /// It can be encoded.
    Ready(Ready),
    /// This queue must be flushed first, up to this value.
    Flush(Arc<dyn Owner>, u64),
    /// Something it waits for has failed.
    Failed,
    /// It must be held.
    Pending(Pending),
}

impl Queue {
    /// A command without dependencies has nothing to wait for: most have not.
    #[inline]
    pub(super) fn waits_for_nothing(&self, state: &QueueState, work: &Work) -> bool {
        !state.follows_all(&self.target.context, work) && !state.meets_host_tasks(work)
    }

    /// What can be done about a command with these dependencies. `listed`: how many of the events are of the wait list. The
    /// others only come first in the queue, and a failure among them does not spread.
    pub(super) fn resolve(
        &self,
        state: &QueueState,
        deps: &[Ref<Event>],
        listed: usize,
        work: &Work,
    ) -> Resolved {
        // Asked before what follows: a kernel of another queue that is recorded meanwhile says that it follows pointers first, and
        // then its event that it is recorded.
        let stages: SmallVec<[Readiness; 4]> = deps.iter().map(|event| event.readiness()).collect();
        // All before it must be done, not only on a timeline.
        let follows = state.follows_all(&self.target.context, work);
        let mut ready = Ready::default();
        let mut pending = Pending::default();
        for (number, (event, stage)) in deps.iter().zip(stages).enumerate() {
            let readiness = match stage {
                Readiness::Failed if number >= listed => Readiness::Done,
                readiness => readiness,
            };
            let Some(owner) = event.owner() else {
                match readiness {
                    Readiness::Failed => return Resolved::Failed,
                    Readiness::Done => {}
                    _ => pending.events.push((event.clone(), false)),
                }
                continue;
            };
            let own = std::ptr::addr_eq(Arc::as_ptr(owner), self.me.as_ptr());
            let progress = owner.progress();
            let reached = |value| progress.timeline.completed().is_ok_and(|now| now >= value);
            match readiness {
                Readiness::Done => {}
                Readiness::Failed => return Resolved::Failed,
                // In order it comes first anyhow.
                Readiness::Pending(Some(_)) | Readiness::Recorded(_) if own && state.in_order() => {
                }
                // Its host part begins when the batch is submitted: nobody else may ever do that. Ours is, by whoever
                // holds the command.
                Readiness::Pending(Some(place)) if !own && progress.submitted() < place.value => {
                    return Resolved::Flush(owner.clone(), place.value);
                }
                Readiness::Pending(_) => pending.events.push((event.clone(), false)),
                Readiness::Recorded(place) if own => {
                    if follows && !reached(place.value) {
                        pending.events.push((event.clone(), true));
                    }
                    ready.barrier |= place.order > state.last_barrier;
                }
                Readiness::Recorded(place) if progress.submitted() < place.value => {
                    return Resolved::Flush(owner.clone(), place.value);
                }
                Readiness::Recorded(place) => {
                    let ours = Arc::ptr_eq(
                        Device::root(owner.device()),
                        Device::root(&self.target.device),
                    );
                    let point = || Point {
                        timeline: progress.timeline.clone(),
                        value: place.value,
                    };
                    match (reached(place.value), ours) {
                        (true, true) => ready.seen = Some(point()),
                        (true, false) => {}
                        (false, true) if !follows => ready.points.push(point()),
                        (false, _) => pending.events.push((event.clone(), true)),
                    }
                }
            }
        }
        if !pending.events.is_empty() {
            return Resolved::Pending(pending);
        }
        if follows {
            pending.behind = state.is_behind();
        }
        if pending.behind.is_some() || state.meets_host_tasks(work) {
            return Resolved::Pending(pending);
        }
        Resolved::Ready(ready)
    }
}
