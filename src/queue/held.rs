//! Held commands: kept as data until what they wait for is on a timeline of this device, and then encoded.

use super::encode::{Encoded, How, Ready};
use super::host::Task;
use super::host_tasks::QueuePosition;
use super::resolve::Resolved;
use super::state::{Held, QueueState};
use super::Queue;
use crate::cl;
use crate::command::{Command, Work};
use crate::handle::Ref;
use crate::object::event::{now_ns, wake, Event, Owner, Recorded};
use crate::object::mem::map;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// A command that will not be carried out: a map that never was, an unmap that leaves the map as it is.
pub(super) fn refuse(command: &Command) {
    match &command.work {
        Work::Map { mem, mapping } => map::undo(mem, mapping),
        Work::Unmap { mem, mapping } => map::redo(mem, mapping.clone()),
        _ => {}
    }
}

impl Queue {
    /// Keeps a command.
    pub(super) fn hold(
        &self,
        state: &mut QueueState,
        command: Command,
        wait: &[Ref<Event>],
        owner: Arc<dyn Owner>,
        queued: u64,
    ) -> Ref<Event> {
        let event = Event::held(self.target.context.clone(), command.kind, owner, queued);
        let mut deps: SmallVec<[Ref<Event>; 4]> = wait.iter().cloned().collect();
        if !state.in_order() {
            if let Some(barrier) = &state.barrier {
                deps.push(barrier.clone());
            }
            if matches!(command.kind, cl::CL_COMMAND_MARKER | cl::CL_COMMAND_BARRIER)
                && wait.is_empty()
            {
                deps.extend(state.held.iter().map(|held| held.event.clone()));
            }
            if command.kind == cl::CL_COMMAND_BARRIER {
                state.barrier = Some(event.clone());
            }
        }
        if let Work::Map { mem, mapping } = &command.work {
            map::set_held(mem, mapping, true);
        }
        state.held.push_back(Held {
            command,
            deps,
            listed: wait.len(),
            event: event.clone(),
            behind: None,
        });
        self.progress.set_held(state.held.len());
        event
    }

    /// Sees to it that a command which was just held is looked at when that makes sense.
    pub(super) fn await_events(&self, resolved: Resolved, first: bool, owner: Arc<dyn Owner>) {
        let weak = Arc::downgrade(&owner);
        let look = match resolved {
            // Behind others, whose turn brings its own. (The first one in is here because of something in `held` that
            // is gone by now.)
            Resolved::Ready(_) => first,
            // Waits for the host thread, which may have been done before it could see this command, or is yet to be asked
            // to wake it.
            Resolved::Pending(pending) if pending.events.is_empty() => true,
            Resolved::Pending(pending) => pending
                .events
                .into_iter()
                .any(|(event, until_done)| !event.subscribe(weak.clone(), until_done)),
            Resolved::Failed | Resolved::Flush(..) => true,
        };
        if look {
            wake([owner]);
        }
    }

    /// Encodes the held commands that have become ready.
    pub(super) fn pump_held(&self) {
        let Some(owner) = self.owner() else { return };
        let weak: Weak<dyn Owner> = Arc::downgrade(&owner);
        let mut flushes = 0;
        loop {
            let mut again = false;
            let mut subscribe: Vec<(Ref<Event>, bool)> = Vec::new();
            // Dropped, or run, when the lock is released.
            let mut over: Vec<Held> = Vec::new();
            let mut flush = None;
            let mut unsubmitted = false;
            {
                let mut state = self.state.lock();
                let mut index = 0;
                while let Some(held) = state.held.get(index) {
                    let resolved =
                        self.resolve(&state, &held.deps, held.listed, &held.command.work);
                    match resolved {
                        Resolved::Ready(ready) => {
                            let Some(held) = state.held.remove(index) else {
                                break;
                            };
                            self.run_held(&mut state, &held, ready, &owner);
                            over.push(held);
                        }
                        Resolved::Failed => {
                            let Some(held) = state.held.remove(index) else {
                                break;
                            };
                            refuse(&held.command);
                            state.clear_barrier(&held.event);
                            let after = held.event.settle(QueueState::DEPENDENCY_FAILED);
                            state.after.push(after);
                            over.push(held);
                        }
                        Resolved::Flush(queue, value) => {
                            flush = Some((queue, value));
                            break;
                        }
                        Resolved::Pending(pending) => {
                            unsubmitted |= pending.events.is_empty();
                            subscribe.extend(pending.events);
                            if let Some(place) = pending.behind {
                                again |= !self.wake_at(&mut state, index, place, &owner);
                            }
                            if state.in_order() {
                                break;
                            }
                            index += 1;
                        }
                    }
                }
                if unsubmitted || !over.is_empty() {
                    state.submit();
                }
                self.progress.set_held(state.held.len());
                self.unlock(state);
            }
            drop(over);
            if let Some((queue, value)) = flush {
                queue.flush();
                flushes += 1;
                if queue.progress().submitted() < value && flushes > 64 {
                    crate::log!(Error, "a queue that is waited for cannot be submitted");
                    return;
                }
                continue;
            }
            for (event, until_done) in subscribe {
                again |= !event.subscribe(weak.clone(), until_done);
            }
            if !again {
                return;
            }
        }
    }

    /// Has the host thread wake the queue when it has come as far as a held command needs. False: it has come that far.
    fn wake_at(
        &self,
        state: &mut QueueState,
        index: usize,
        place: QueuePosition,
        owner: &Arc<dyn Owner>,
    ) -> bool {
        let asked =
            |known: &QueuePosition| known.value >= place.value && known.host_seq >= place.host_seq;
        let held = state.held.get(index);
        if held.is_none_or(|held| held.behind.as_ref().is_some_and(asked)) {
            return true;
        }
        if let Err(error) = state.host_thread() {
            // No thread to wait in: wait here. It has left nothing undone either.
            crate::log!(Warn, "{error}");
            state.submit();
            let _ = self.progress.timeline.wait(place.value, None);
            return false;
        }
        let seq = state.new_host_task(SmallVec::new(), false);
        let posted = state.post(Task {
            value: place.value,
            seq,
            action: None,
            event: None,
            owner: owner.clone(),
            failed: None,
        });
        if let Some(held) = state.held.get_mut(index) {
            held.behind = Some(QueuePosition {
                host_seq: seq,
                ..place
            });
        }
        // The thread is there.
        posted.is_ok()
    }

    fn run_held(&self, state: &mut QueueState, held: &Held, ready: Ready, owner: &Arc<dyn Owner>) {
        let how = How {
            profile: self.is_measuring(),
            blocking: false,
        };
        let event = &held.event;
        state.clear_barrier(event);
        if let Work::Map { mem, mapping } = &held.command.work {
            map::set_held(mem, mapping, false);
        }
        let encoded = match self.encode(state, &held.command, ready, how) {
            Ok(encoded) => encoded,
            Err(error) => {
                refuse(&held.command);
                state
                    .reports
                    .push(format!("a command could not be carried out: {error}"));
                let after = event.settle(error.code);
                state.after.push(after);
                return;
            }
        };
        let Encoded {
            place,
            times,
            action,
            done,
            ..
        } = encoded;
        let place = Recorded {
            depends: !held.deps.is_empty(),
            ..place
        };
        let (watch, after) = event.mark_recorded(place, times, action.is_some());
        state.after.push(after);
        if done {
            let after = event.settle(cl::CL_COMPLETE);
            state.after.push(after);
            return;
        }
        if place.value > self.progress.submitted() {
            state.open_events.push(event.clone());
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
            };
            if let Err(error) = state.post(task) {
                let after = event.settle(error.code);
                state.after.push(after);
            }
        }
    }
}

impl QueueState {
    fn clear_barrier(&mut self, event: &Ref<Event>) {
        if self
            .barrier
            .as_ref()
            .is_some_and(|barrier| Arc::ptr_eq(barrier, event))
        {
            self.barrier = None;
        }
    }
}
