//! Enqueue: what a command waits for, whether it is encoded or held, and held commands coming free.

use super::encode::{Encoded, How};
use super::host::Task;
use super::state::{Held, State};
use super::Queue;
use crate::backend::Point;
use crate::cl;
use crate::command::{Command, Work};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::event::{now_ns, wake, Event, Owner, Readiness, Recorded};
use crate::object::mem::map;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// What the stream must do before a command.
#[derive(Default)]
pub struct Ready {
    /// Points of other streams.
    pub points: SmallVec<[Point; 2]>,
    /// A barrier, in an out-of-order queue.
    pub barrier: bool,
}

enum Resolved {
    Ready(Ready),
    /// This queue must be flushed first, up to this value.
    Flush(Arc<dyn Owner>, u64),
    /// Something it waits for has failed.
    Failed,
    /// It must be held; to be woken by these events (true: only when they are done), or by the host thread.
    Pending(SmallVec<[(Ref<Event>, bool); 2]>),
}

impl Queue {
    fn owner(&self) -> Option<Arc<dyn Owner>> {
        self.me.upgrade().map(|me| me as Arc<dyn Owner>)
    }

    /// `listed`: how many of the events are of the wait list. The others only come first in the queue, and a failure
    /// among them does not spread.
    fn resolve(&self, state: &State, deps: &[Ref<Event>], listed: usize, work: &Work) -> Resolved {
        let mut ready = Ready::default();
        let mut pending = SmallVec::new();
        for (number, event) in deps.iter().enumerate() {
            let readiness = match event.readiness() {
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
            let own = std::ptr::addr_eq(Arc::as_ptr(owner), self.me.as_ptr());
            match readiness {
                Readiness::Done => {}
                Readiness::Failed => return Resolved::Failed,
                Readiness::Pending(Some(_)) | Readiness::Recorded(_) if own && state.in_order() => {
                }
                Readiness::Pending(place) => {
                    // Its host part begins when the batch is submitted: nobody else may ever do that. Ours is, by
                    // whoever holds the command.
                    let progress = owner.progress();
                    match place {
                        Some(place) if !own && progress.submitted() < place.value => {
                            return Resolved::Flush(owner.clone(), place.value);
                        }
                        _ => pending.push((event.clone(), false)),
                    }
                }
                Readiness::Recorded(place) if own => {
                    ready.barrier |= place.order > state.last_barrier
                }
                Readiness::Recorded(place) => {
                    let progress = owner.progress();
                    if progress.submitted() < place.value {
                        return Resolved::Flush(owner.clone(), place.value);
                    }
                    if progress
                        .timeline
                        .completed()
                        .is_ok_and(|now| now >= place.value)
                    {
                        continue;
                    }
                    if Arc::ptr_eq(owner.device(), &self.target.device) {
                        ready.points.push(Point {
                            timeline: progress.timeline.clone(),
                            value: place.value,
                        });
                    } else {
                        pending.push((event.clone(), true));
                    }
                }
            }
        }
        if !pending.is_empty() {
            return Resolved::Pending(pending);
        }
        if let Some(range) = work.host_source() {
            if state.host_conflict(&range) {
                return Resolved::Pending(pending);
            }
        }
        Resolved::Ready(ready)
    }

    /// Enqueues a command. With `blocking` it is complete on return; of a write, at least the host memory is free again,
    /// which is all that can be seen of it without an event and another queue. Gives the event if it is wanted.
    pub fn enqueue(
        &self,
        command: Command,
        wait: &[Ref<Event>],
        blocking: bool,
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        // Maps and unmaps have changed the object's list already: a command that is refused changes it back.
        let (map, unmap) = match &command.work {
            Work::Map { mem, mapping } => (Some((mem.clone(), mapping.clone())), None),
            Work::Unmap { mem, mapping } => (None, Some((mem.clone(), mapping.clone()))),
            _ => (None, None),
        };
        let result = self.enqueue_any(command, wait, blocking, want_event);
        if result.is_err() {
            if let Some((mem, mapping)) = &map {
                map::undo(mem, mapping);
            }
            if let Some((mem, mapping)) = unmap {
                map::redo(&mem, mapping);
            }
        }
        result
    }

    fn enqueue_any(
        &self,
        command: Command,
        wait: &[Ref<Event>],
        blocking: bool,
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        if wait
            .iter()
            .any(|event| !Arc::ptr_eq(event.context(), &self.target.context))
        {
            return err(
                cl::CL_INVALID_CONTEXT,
                "an event of the wait list is of another context than the queue",
            );
        }
        let Some(owner) = self.owner() else {
            return err(cl::CL_INVALID_COMMAND_QUEUE, "the queue is gone");
        };
        let queued = if self.is_profiling() { now_ns() } else { 0 };
        let context = &self.target.context;
        let mut flushed = 0;
        let (mut state, ready) = loop {
            let mut state = self.state.lock();
            let must_hold = if state.in_order() {
                !state.held.is_empty()
            } else {
                state.barrier.is_some()
            };
            match self.resolve(&state, wait, wait.len(), &command.work) {
                Resolved::Flush(queue, value) => {
                    drop(state);
                    queue.flush();
                    flushed += 1;
                    if queue.progress().submitted() < value && flushed > 2 * wait.len() {
                        return err(
                            cl::CL_OUT_OF_RESOURCES,
                            "a queue that is waited for cannot be submitted",
                        );
                    }
                }
                Resolved::Failed => {
                    drop(state);
                    if blocking {
                        return err(
                            State::DEPENDENCY_FAILED,
                            "an event of the wait list has failed",
                        );
                    }
                    if let Work::Map { mem, mapping } = &command.work {
                        map::undo(mem, mapping);
                    }
                    let status = State::DEPENDENCY_FAILED;
                    return Ok(want_event.then(|| {
                        Event::done(
                            context.clone(),
                            command.kind,
                            owner,
                            status,
                            Default::default(),
                            queued,
                        )
                    }));
                }
                Resolved::Ready(ready) if !must_hold && self.can_encode(&state, &command, wait) => {
                    break (state, ready);
                }
                resolved => {
                    let event = self.hold(&mut state, command, wait, owner.clone(), queued);
                    let first = state.held.len() == 1;
                    // What it waits for may be in the open batch.
                    state.submit();
                    self.unlock(state);
                    self.await_events(resolved, first, owner);
                    if blocking {
                        let status = event.wait();
                        if status < 0 {
                            return err(status, "the command or one that it waits for has failed");
                        }
                    }
                    return Ok(want_event.then_some(event));
                }
            }
        };
        let how = How {
            profile: want_event && self.is_profiling(),
            blocking,
        };
        let encoded = match self.encode(&mut state, &command, ready, how) {
            Ok(encoded) => encoded,
            Err(error) => {
                self.unlock(state);
                return Err(error);
            }
        };
        let Encoded {
            mut place,
            times,
            action,
            done,
            wait: must_wait,
        } = encoded;
        place.depends = !wait.is_empty();
        let seen = || want_event || self.target.context.has_other_queues();
        if blocking && (must_wait || action.is_some() || (!done && seen())) {
            if place.value > self.progress.submitted() {
                state.submit();
            }
            let failed = place.value > self.progress.submitted();
            self.unlock(state);
            if failed {
                return err(
                    cl::CL_OUT_OF_RESOURCES,
                    "the command could not be submitted",
                );
            }
            self.progress.wait_host(place.host_seq);
            self.progress.timeline.wait(place.value, None)?;
            if let Some(action) = &action {
                action.run();
            }
            return Ok(want_event.then(|| {
                let event = Event::done(context.clone(), command.kind, owner, 0, times, queued);
                if self.is_profiling() {
                    event.set_host_end(now_ns());
                }
                event
            }));
        }
        let event = want_event.then(|| {
            let (context, kind) = (context.clone(), command.kind);
            if done {
                Event::done(context, kind, owner.clone(), 0, times, queued)
            } else {
                Event::recorded(context, kind, owner.clone(), place, times, queued)
            }
        });
        if let (Some(event), false) = (&event, done) {
            if place.value > self.progress.submitted() {
                state.open_events.push(event.clone());
            } else if self.is_profiling() {
                event.set_submit_time(queued);
            }
        }
        let mut result = Ok(());
        if let Some(action) = action {
            if let Some(event) = &event {
                event.set_watched();
            }
            let task = Task {
                value: place.value,
                seq: place.host_seq,
                action: Some(action),
                event: event.clone(),
                owner,
                failed: None,
            };
            result = state.post(task);
        }
        state.maybe_submit();
        self.unlock(state);
        // The command may hold the last reference to a memory object: it goes after the lock.
        drop(command);
        result.map(|()| event)
    }

    /// Sees to it that a command which was just held is looked at when that makes sense.
    fn await_events(&self, resolved: Resolved, first: bool, owner: Arc<dyn Owner>) {
        let weak = Arc::downgrade(&owner);
        let look = match resolved {
            // Behind others, whose turn brings its own. (The first one in is here because of something in `held` that
            // is gone by now.)
            Resolved::Ready(_) => first,
            // Waits for the host thread, which may have been done before it could see this command.
            Resolved::Pending(events) if events.is_empty() => true,
            Resolved::Pending(events) => events
                .into_iter()
                .any(|(event, until_done)| !event.subscribe(weak.clone(), until_done)),
            Resolved::Failed | Resolved::Flush(..) => true,
        };
        if look {
            wake([owner]);
        }
    }

    /// Markers and barriers of out-of-order queues wait for what is held.
    fn can_encode(&self, state: &State, command: &Command, wait: &[Ref<Event>]) -> bool {
        state.held.is_empty()
            || !wait.is_empty()
            || !matches!(command.work, Work::Marker | Work::Barrier)
            || {
                // An empty launch is a marker by its work only.
                !matches!(command.kind, cl::CL_COMMAND_MARKER | cl::CL_COMMAND_BARRIER)
            }
    }

    fn hold(
        &self,
        state: &mut State,
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
        state.held.push_back(Held {
            command,
            deps,
            listed: wait.len(),
            event: event.clone(),
        });
        self.progress.set_held(state.held.len());
        event
    }

    /// Encodes the held commands that have become ready.
    pub(super) fn pump_held(&self) {
        let Some(owner) = self.owner() else { return };
        let weak: Weak<dyn Owner> = Arc::downgrade(&owner);
        let mut flushes = 0;
        loop {
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
                            if let Work::Map { mem, mapping } = &held.command.work {
                                map::undo(mem, mapping);
                            }
                            state.clear_barrier(&held.event);
                            let after = held.event.settle(State::DEPENDENCY_FAILED);
                            state.after.push(after);
                            over.push(held);
                        }
                        Resolved::Flush(queue, value) => {
                            flush = Some((queue, value));
                            break;
                        }
                        Resolved::Pending(events) => {
                            unsubmitted |= events.is_empty();
                            subscribe.extend(events);
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
            let mut again = false;
            for (event, until_done) in subscribe {
                again |= !event.subscribe(weak.clone(), until_done);
            }
            if !again {
                return;
            }
        }
    }

    fn run_held(&self, state: &mut State, held: &Held, ready: Ready, owner: &Arc<dyn Owner>) {
        let how = How {
            profile: self.is_profiling(),
            blocking: false,
        };
        let event = &held.event;
        state.clear_barrier(event);
        let encoded = match self.encode(state, &held.command, ready, how) {
            Ok(encoded) => encoded,
            Err(error) => {
                if let Work::Map { mem, mapping } = &held.command.work {
                    map::undo(mem, mapping);
                }
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
        } else if self.is_profiling() {
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

impl State {
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
