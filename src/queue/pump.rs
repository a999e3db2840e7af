//! Encodes pending commands when what they wait for has come.

use super::dependencies::Resolved;
use super::encode::{Encoded, How, Outcome, Ready};
use super::hazards::QueuePosition;
use super::host::{Bring, HostAction, Task};
use super::pending::{refuse, Pending, Slots};
use super::state::QueueState;
use super::Queue;
use crate::cl;
use crate::command::{Command, Work};
use crate::error::ClError;
use crate::handle::Ref;
use crate::object::event::{now_ns, Dependent, Event, Owner, Recorded, Times};
use crate::object::mem::map;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// The outcome of looking at a pending command.
enum Look {
    /// The command is over or recorded.
    Gone(Box<Pending>),
    /// The command waits for something that will come by itself.
    Waits,
    /// The command waits for these events, to which it has to be subscribed (true: until they are done).
    Subscribe(SmallVec<[(Ref<Event>, bool); 2]>),
    /// This queue must be flushed first, up to this value.
    Flush(Arc<dyn Owner>, u64),
}

impl Queue {
    /// Makes a command pending of which `parts` are recorded and which waits for `place`. [`wake`]
    /// must be called once the lock is released.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn make_pending(
        &self,
        state: &mut QueueState,
        command: Command,
        wait: &[Ref<Event>],
        owner: &Arc<dyn Owner>,
        queued: u64,
        (parts, slots): (usize, Slots),
        place: Option<QueuePosition>,
    ) -> Ref<Event> {
        let context = self.target.context.clone();
        let event = Event::pending(context, command.kind, owner.clone(), queued);
        let mut deps: SmallVec<[Ref<Event>; 4]> = wait.iter().cloned().collect();
        let mut after_all = false;
        let barrier = command.kind == cl::CL_COMMAND_BARRIER;
        if !state.in_order() {
            deps.extend(state.pending.barrier().cloned());
            after_all = (barrier || command.kind == cl::CL_COMMAND_MARKER) && wait.is_empty();
        }
        if let Work::Map { mem, mapping } = &command.work {
            map::set_held(mem, mapping, true);
        }
        let pending = Pending {
            command,
            deps,
            listed: wait.len(),
            event: event.clone(),
            count: 0,
            bring: None,
            parts,
            slots,
        };
        let number = state.pending.add(pending, after_all);
        if barrier && !state.in_order() {
            state.pending.set_barrier(number, event.clone());
        }
        if let Some(place) = place {
            self.wait_for_place(state, number, place, owner);
        }
        self.progress.set_pending(state.pending.len());
        event
    }

    /// Encodes the pending commands that have become ready.
    pub(super) fn pump_pending(&self) {
        let Some(owner) = self.owner() else { return };
        let weak: Weak<dyn Owner> = Arc::downgrade(&owner);
        let mut flushes = 0;
        loop {
            // Dropped when the lock is released.
            let mut gone: Vec<Box<Pending>> = Vec::new();
            let mut outside = None;
            {
                let mut state = self.state.lock();
                let in_order = state.in_order();
                while let Some(number) = state.pending.candidate(in_order) {
                    match self.look_at(&mut state, number, &owner) {
                        Look::Gone(pending) => gone.push(pending),
                        Look::Waits => {}
                        look => {
                            outside = Some((number, look));
                            break;
                        }
                    }
                }
                // What it waits for, or what waits for it, may be in the open batch.
                state.submit();
                self.progress.set_pending(state.pending.len());
                self.unlock(state);
            }
            drop(gone);
            match outside {
                Some((number, Look::Flush(queue, value))) => {
                    queue.flush();
                    flushes += 1;
                    let submitted = queue.progress().submitted() >= value;
                    flushes *= usize::from(!submitted);
                    if flushes > 64 {
                        crate::log!(Error, "a queue that is waited for cannot be submitted");
                        return;
                    }
                    self.state.lock().pending.look_again(number);
                }
                Some((number, Look::Subscribe(events))) => {
                    for (event, until_done) in events {
                        let dependent = Dependent {
                            owner: weak.clone(),
                            command: number,
                            until_done,
                        };
                        if !event.subscribe(dependent) {
                            self.state.lock().pending.met(number);
                        }
                    }
                }
                _ => return,
            }
        }
    }

    /// Returns true if the contents that a command uses are in the memory of the device.
    pub(super) fn is_prepared(&self, work: &Work) -> bool {
        !self.moves_contents() || work.is_prepared(self.target.memory)
    }

    /// Copies contents to the memory of the device, in a thread that may wait for devices. The
    /// command is checked again when they are there.
    fn bring(
        &self,
        state: &mut QueueState,
        number: u64,
        mut pending: Pending,
        owner: &Arc<dyn Owner>,
    ) -> Look {
        if let Some(error) = pending.bring.as_ref().and_then(|bring| bring.error()) {
            self.fail_pending(state, &pending, error);
            state.pending.remove(number);
            return Look::Gone(Box::new(pending));
        }
        let bring = Arc::new(Bring::new(&pending.command.work, self.target.memory));
        let task = Task {
            value: 0,
            seq: 0,
            action: Some(HostAction::Bring(bring.clone())),
            event: None,
            owner: owner.clone(),
            failed: None,
            command: Some(number),
        };
        pending.count += 1;
        pending.bring = Some(bring);
        match state.post_bring(task) {
            Ok(()) => {
                state.pending.put_back(number, pending);
                Look::Waits
            }
            Err(error) => {
                self.fail_pending(state, &pending, &error);
                state.pending.remove(number);
                Look::Gone(Box::new(pending))
            }
        }
    }

    fn look_at(&self, state: &mut QueueState, number: u64, owner: &Arc<dyn Owner>) -> Look {
        let Some(mut pending) = state.pending.take(number) else {
            return Look::Waits;
        };
        let work = &pending.command.work;
        match self.resolve(state, &pending.deps, pending.listed, work) {
            Resolved::Ready(_) if !self.is_prepared(work) => {
                self.bring(state, number, pending, owner)
            }
            Resolved::Ready(ready) => self.encode_pending(state, number, pending, ready, owner),
            Resolved::Failed => {
                refuse(&pending.command);
                let failed = pending.event.settle(QueueState::DEPENDENCY_FAILED);
                state.after.push(failed);
                state.pending.remove(number);
                Look::Gone(Box::new(pending))
            }
            Resolved::Flush(queue, value) => {
                state.pending.put_back(number, pending);
                Look::Flush(queue, value)
            }
            Resolved::Pending(events) => {
                pending.count += events.len();
                state.pending.put_back(number, pending);
                Look::Subscribe(events)
            }
            Resolved::Unreached(place) => {
                state.pending.put_back(number, pending);
                self.wait_for_place(state, number, place, owner);
                Look::Waits
            }
        }
    }

    /// Makes a command wait until the queue has reached a position.
    fn wait_for_place(
        &self,
        state: &mut QueueState,
        number: u64,
        place: QueuePosition,
        owner: &Arc<dyn Owner>,
    ) {
        let Some(pending) = state.pending.get_mut(number) else {
            return;
        };
        pending.count += 1;
        if self.progress.host_done() < place.host_seq {
            state.pending.wait_for_host(number, place.host_seq);
            self.progress.watch_host(true);
            // The executor may have come there before it could see that.
            return state.host_tasks_done();
        }
        if place.value > self.progress.submitted() {
            state.submit();
        }
        let posted = state.post(Task {
            value: place.value,
            seq: 0,
            action: None,
            event: None,
            owner: owner.clone(),
            failed: None,
            command: Some(number),
        });
        if let Err(error) = posted {
            // Nobody can wait for the place.
            if let Some(pending) = state.pending.take(number) {
                self.fail_pending(state, &pending, &error);
                state.pending.remove(number);
            }
        }
    }

    fn fail_pending(&self, state: &mut QueueState, pending: &Pending, error: &ClError) {
        refuse(&pending.command);
        state
            .reports
            .push(format!("a command could not be carried out: {error}"));
        let failed = pending.event.settle(error.code);
        state.after.push(failed);
    }

    fn encode_pending(
        &self,
        state: &mut QueueState,
        number: u64,
        mut pending: Pending,
        ready: Ready,
        owner: &Arc<dyn Owner>,
    ) -> Look {
        let how = How {
            profile: self.is_measuring(),
            blocking: false,
            event: true,
            parts: pending.parts,
        };
        let event = &pending.event;
        let encoded = match self.encode(state, &pending.command, ready, how) {
            Ok(Outcome::Recorded(encoded)) => encoded,
            Ok(Outcome::Unfinished {
                parts,
                slots,
                place,
            }) => {
                pending.parts = parts;
                pending.slots.extend(slots);
                state.pending.put_back(number, pending);
                self.wait_for_place(state, number, place, owner);
                return Look::Waits;
            }
            Err(error) => {
                self.fail_pending(state, &pending, &error);
                state.pending.remove(number);
                return Look::Gone(Box::new(pending));
            }
        };
        state.pending.remove(number);
        if let Work::Map { mem, mapping } = &pending.command.work {
            map::set_held(mem, mapping, false);
        }
        let Encoded {
            place,
            mut times,
            action,
            done,
            ..
        } = encoded;
        if let Times::Slots(slots) = &mut times {
            slots.extend(pending.slots.drain(..));
        }
        if done {
            // Its place is that of a command before it, whose status is not its own.
            state.after.push(event.complete(times));
            return Look::Gone(Box::new(pending));
        }
        let place = Recorded {
            depends: !pending.deps.is_empty(),
            ..place
        };
        let (watch, notifications) = event.mark_recorded(place, times, action.is_some());
        state.after.push(notifications);
        if place.value > self.progress.submitted() {
            state.add_open_event(event.clone());
        } else if self.is_measuring() {
            event.set_submit_time(now_ns());
        }
        if watch {
            let seq = if action.is_some() { place.host_seq } else { 0 };
            let task = Task {
                value: place.value,
                seq,
                action,
                event: Some(event.clone()),
                owner: owner.clone(),
                failed: None,
                command: None,
            };
            if let Err(error) = state.post(task) {
                let after = event.settle(error.code);
                state.after.push(after);
            }
        }
        state.maybe_submit();
        Look::Gone(Box::new(pending))
    }
}
