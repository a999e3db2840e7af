//! The dependencies of a command: whether it can be encoded, must be pending, or has failed already.

use super::encode::Ready;
use super::hazards::QueuePosition;
use super::state::QueueState;
use super::Queue;
use crate::command::Work;
use crate::handle::Ref;
use crate::object::device::Device;
use crate::object::event::{Event, Owner, Readiness};
use smallvec::SmallVec;
use std::sync::Arc;

/// Events that a command waits for until they are recorded (true: done).
pub(super) type Awaited = SmallVec<[(Ref<Event>, bool); 2]>;

/// The outcome of resolving the dependencies of a command.
pub(super) enum Resolved {
    /// The command can be encoded.
    Ready(Ready),
    /// This queue must be flushed first, up to this value.
    Flush(Arc<dyn Owner>, u64),
    /// Something it waits for has failed.
    Failed,
    /// The command is pending until these events are there.
    Pending(Awaited),
    /// The command is pending until the queue has come to this place.
    Unreached(QueuePosition),
}

impl Queue {
    /// Returns true if a command without a wait list has nothing to wait for: most have not.
    #[inline]
    pub(super) fn waits_for_nothing(&self, state: &QueueState, work: &Work) -> bool {
        state.left_writes.is_empty()
            && !state.follows_all(&self.target.context, work)
            && state.host_hazard(work).is_none()
    }

    /// Returns whether a command with these dependencies can run, must wait, or fails. The first
    /// `listed` of them are its wait list. The others only come earlier in the queue, and a failure
    /// among them does not spread.
    pub(super) fn resolve(
        &self,
        state: &QueueState,
        deps: &[Ref<Event>],
        listed: usize,
        work: &Work,
    ) -> Resolved {
        // Queried before what follows: a kernel of another queue that is recorded meanwhile says that it follows pointers
        // first, and then its event that it is recorded.
        let mut stages: SmallVec<[Readiness; 4]> = SmallVec::new();
        for event in deps {
            stages.push(event.readiness());
        }
        // All before it must be done, not only on a timeline.
        let follows = state.follows_all(&self.target.context, work);
        // A map or unmap that fails on the stream would have to be undone: it begins when nothing can fail any more.
        let undone =
            state.stream.commands_fail() && matches!(work, Work::Map { .. } | Work::Unmap { .. });
        let mut ready = Ready::default();
        let mut pending = Awaited::new();
        for (number, (event, stage)) in deps.iter().zip(stages).enumerate() {
            let readiness = match stage {
                Readiness::Failed if number >= listed => Readiness::Done,
                readiness => readiness,
            };
            let Some(owner) = event.owner() else {
                match readiness {
                    Readiness::Failed => return Resolved::Failed,
                    Readiness::Done => {}
                    _ => pending.push((event.clone(), false)),
                }
                continue;
            };
            let progress = owner.progress();
            let own = Arc::ptr_eq(progress, &self.progress);
            // Asked before whether it has failed: the command may have ended, and failed, since its event was asked.
            let reached = match readiness {
                Readiness::Pending(Some(place)) | Readiness::Recorded(place) => {
                    progress.timeline.has_reached(place.value)
                }
                _ => false,
            };
            match readiness {
                Readiness::Recorded(place)
                    if reached && number < listed && progress.has_failed(place.value) =>
                {
                    return Resolved::Failed;
                }
                Readiness::Done => {}
                Readiness::Failed => return Resolved::Failed,
                // In order it comes first anyhow, and its failure is seen by the stream; but for one that has failed behind a
                // host task, whose end is still to come.
                Readiness::Pending(Some(place)) | Readiness::Recorded(place)
                    if own && state.in_order() =>
                {
                    let failed = number < listed && progress.has_failed(place.value);
                    match failed || (undone && !reached) {
                        true => pending.push((event.clone(), true)),
                        false => ready.own.push(place.value),
                    }
                }
                // Its host part begins when the batch is submitted: nobody else may ever do that. Ours is, by whoever
                // makes the command pending.
                Readiness::Pending(Some(place)) if !own && progress.submitted() < place.value => {
                    return Resolved::Flush(owner.clone(), place.value);
                }
                Readiness::Pending(_) => pending.push((event.clone(), false)),
                Readiness::Recorded(place) if own => {
                    if (follows || undone) && !reached {
                        pending.push((event.clone(), true));
                    }
                    ready.own.push(place.value);
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
                    match (reached, ours) {
                        (true, true) => ready.seen = Some(progress.point(place.value)),
                        (true, false) => {}
                        // Out of order, what the stream waits for would hold up commands that do not.
                        (false, true)
                            if !follows
                                && !undone
                                && state.in_order()
                                && progress.timeline.has_signal(place.value) =>
                        {
                            ready.points.push(progress.point(place.value));
                        }
                        (false, _) => pending.push((event.clone(), true)),
                    }
                }
            }
        }
        if !pending.is_empty() {
            return Resolved::Pending(pending);
        }
        if follows {
            if let Some(place) = state.unreached() {
                return Resolved::Unreached(place);
            }
        }
        match state.host_hazard(work) {
            Some(host_seq) => Resolved::Unreached(QueuePosition { value: 0, host_seq }),
            None => {
                ready.points.extend(state.left_writes.iter().cloned());
                Resolved::Ready(ready)
            }
        }
    }
}
