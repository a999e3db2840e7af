//! Enqueue: what a command waits for, whether it is encoded or held, and held commands coming free.
//!
//! ```text
//!            resolve
//! enqueue ------+--> Flush ----> another queue is flushed; once more from the start
//!               +--> Failed ---> refused: its event has the error, a map is undone, an unmap made again
//!               +--> Pending --> held --(an event, the host thread)--> pump: resolve again --> Failed, Pending, Ready
//!               +--> Ready ----> encoded --> blocking: waited for, its late part done here
//!                                        \-> else: event recorded, its late part posted to the host thread
//! ```
//! Every command that does not come to be encoded is refused exactly once ([`refuse`]), by whoever finds out.

use super::encode::{Encoded, How, Ready};
use super::host::Task;
use super::host_tasks::Place;
use super::state::{Held, State};
use super::Queue;
use crate::backend::Point;
use crate::cl;
use crate::command::{Command, Work};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::event::{now_ns, wake, Event, Owner, Readiness, Recorded};
use crate::object::mem::map;
use crate::util::lock::MutexGuard;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// What a held command is woken by, besides the end of host tasks.
#[derive(Default)]
struct Pending {
    /// These events (true: only when they are done).
    events: SmallVec<[(Ref<Event>, bool); 2]>,
    /// The queue itself, when it has come that far.
    behind: Option<Place>,
}

enum Resolved {
    Ready(Ready),
    /// This queue must be flushed first, up to this value.
    Flush(Arc<dyn Owner>, u64),
    /// Something it waits for has failed.
    Failed,
    /// It must be held.
    Pending(Pending),
}

/// A command that will not be carried out: a map that never was, an unmap that leaves the map as it is.
fn refuse(command: &Command) {
    match &command.work {
        Work::Map { mem, mapping } => map::undo(mem, mapping),
        Work::Unmap { mem, mapping } => map::redo(mem, mapping.clone()),
        _ => {}
    }
}

/// An enqueue, as it came, but for what to do.
struct Call<'a> {
    wait: &'a [Ref<Event>],
    blocking: bool,
    want_event: bool,
    owner: Arc<dyn Owner>,
    /// When it came, where times are measured.
    queued: u64,
}

/// How far an enqueue has come.
enum Turn<'a> {
    /// It is done: the event, if it is wanted.
    Over(ClResult<Option<Ref<Event>>>),
    /// It must be held.
    Hold(MutexGuard<'a, State>, Resolved),
}

impl Queue {
    fn owner(&self) -> Option<Arc<dyn Owner>> {
        self.me.upgrade().map(|me| me as Arc<dyn Owner>)
    }

    /// `listed`: how many of the events are of the wait list. The others only come first in the queue, and a failure
    /// among them does not spread.
    fn resolve(&self, state: &State, deps: &[Ref<Event>], listed: usize, work: &Work) -> Resolved {
        // All before it must be done, not only on a timeline.
        let follows = state.follows_all(&self.target.context, work);
        if deps.is_empty() && !follows && !state.meets_host_tasks(work) {
            return Resolved::Ready(Ready::default());
        }
        let mut ready = Ready::default();
        let mut pending = Pending::default();
        for (number, event) in deps.iter().enumerate() {
            let readiness = match event.readiness() {
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
                    let ours = Arc::ptr_eq(owner.device(), &self.target.device);
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

    /// Enqueues a command. With `blocking` it is complete on return, as far as anybody can see: a write that only later
    /// commands of this queue could see may still be on its way. Gives the event if it is wanted.
    pub fn enqueue(
        &self,
        command: Command,
        wait: &[Ref<Event>],
        blocking: bool,
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        let context = &self.target.context;
        if wait
            .iter()
            .any(|event| !Arc::ptr_eq(event.context(), context))
        {
            refuse(&command);
            return err(
                cl::CL_INVALID_CONTEXT,
                "an event of the wait list is of another context than the queue",
            );
        }
        let Some(owner) = self.owner() else {
            refuse(&command);
            return err(cl::CL_INVALID_COMMAND_QUEUE, "the queue is gone");
        };
        let call = Call {
            wait,
            blocking,
            want_event,
            owner,
            queued: if self.is_profiling() { now_ns() } else { 0 },
        };
        match self.take_turn(&call, &command) {
            Turn::Over(result) => result,
            Turn::Hold(state, resolved) => self.hold_call(call, command, state, resolved),
        }
    }

    /// Finds out what a command waits for, and does what follows from that.
    #[inline]
    fn take_turn(&self, call: &Call<'_>, command: &Command) -> Turn<'_> {
        let mut flushed = 0;
        loop {
            let state = self.state.lock();
            let must_hold = if state.in_order() {
                !state.held.is_empty()
            } else {
                state.barrier.is_some()
            };
            let wait = call.wait;
            match self.resolve(&state, wait, wait.len(), &command.work) {
                Resolved::Flush(queue, value) => {
                    drop(state);
                    queue.flush();
                    flushed += 1;
                    if queue.progress().submitted() < value && flushed > 2 * wait.len() {
                        refuse(command);
                        return Turn::Over(err(
                            cl::CL_OUT_OF_RESOURCES,
                            "a queue that is waited for cannot be submitted",
                        ));
                    }
                }
                Resolved::Failed => {
                    drop(state);
                    return Turn::Over(self.fail_call(call, command));
                }
                Resolved::Ready(ready) if !must_hold && self.can_encode(&state, command, wait) => {
                    return Turn::Over(self.encode_call(call, command, state, ready));
                }
                resolved => return Turn::Hold(state, resolved),
            }
        }
    }

    /// Something in the wait list has failed.
    fn fail_call(&self, call: &Call<'_>, command: &Command) -> ClResult<Option<Ref<Event>>> {
        refuse(command);
        let status = State::DEPENDENCY_FAILED;
        if call.blocking {
            return err(status, "an event of the wait list has failed");
        }
        Ok(call.want_event.then(|| {
            let (context, kind) = (self.target.context.clone(), command.kind);
            let (owner, times) = (call.owner.clone(), Default::default());
            Event::done(context, kind, owner, status, times, call.queued)
        }))
    }

    fn hold_call(
        &self,
        call: Call<'_>,
        command: Command,
        mut state: MutexGuard<'_, State>,
        resolved: Resolved,
    ) -> ClResult<Option<Ref<Event>>> {
        let owner = call.owner;
        let event = self.hold(&mut state, command, call.wait, owner.clone(), call.queued);
        let first = state.held.len() == 1;
        // What it waits for may be in the open batch.
        state.submit();
        self.unlock(state);
        self.await_events(resolved, first, owner);
        if call.blocking {
            let status = event.wait();
            if status < 0 {
                return err(status, "the command or one that it waits for has failed");
            }
        }
        Ok(call.want_event.then_some(event))
    }

    fn encode_call(
        &self,
        call: &Call<'_>,
        command: &Command,
        mut state: MutexGuard<'_, State>,
        ready: Ready,
    ) -> ClResult<Option<Ref<Event>>> {
        let how = How {
            profile: call.want_event && self.is_profiling(),
            blocking: call.blocking,
        };
        let mut encoded = match self.encode(&mut state, command, ready, how) {
            Ok(encoded) => encoded,
            Err(error) => {
                self.unlock(state);
                refuse(command);
                return Err(error);
            }
        };
        encoded.place.depends = !call.wait.is_empty();
        if call.blocking && self.must_wait(&mut state, call, command, &encoded) {
            return self.wait_for_call(call, command, state, encoded);
        }
        let (owner, queued) = (&call.owner, call.queued);
        let Encoded {
            place,
            times,
            action,
            done,
            ..
        } = encoded;
        let event = call.want_event.then(|| {
            let (context, kind) = (self.target.context.clone(), command.kind);
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
            result = state.post(Task {
                value: place.value,
                seq: place.host_seq,
                action: Some(action),
                event: event.clone(),
                owner: owner.clone(),
                failed: None,
            });
        }
        state.maybe_submit();
        self.unlock(state);
        result.map(|()| event)
    }

    /// A blocking command that was encoded is to be waited for. Not one that nobody can tell from a complete one: a queue
    /// that is made later waits for what is left like that ([`Queue::new`]).
    fn must_wait(
        &self,
        state: &mut State,
        call: &Call<'_>,
        command: &Command,
        encoded: &Encoded,
    ) -> bool {
        if encoded.done {
            return false;
        }
        if encoded.wait
            || encoded.action.is_some()
            || call.want_event
            || !command.work.is_hidden()
            // Nor may one be missing that came before it.
            || state.host.posted > self.progress.host_done()
            || self.target.context.host_sees_devices()
        {
            return true;
        }
        // Commands of an out-of-order queue that come later do not wait for it, but must find it over.
        if !state.in_order() && state.barrier().is_err() {
            return true;
        }
        // In this order: a queue that is made now sees one or is seen.
        self.progress.set_left(encoded.place.value);
        self.target.context.has_other_queues()
    }

    fn wait_for_call(
        &self,
        call: &Call<'_>,
        command: &Command,
        mut state: MutexGuard<'_, State>,
        encoded: Encoded,
    ) -> ClResult<Option<Ref<Event>>> {
        let place = encoded.place;
        if place.value > self.progress.submitted() {
            state.submit();
        }
        let failed = place.value > self.progress.submitted();
        self.unlock(state);
        if failed {
            refuse(command);
            return err(
                cl::CL_OUT_OF_RESOURCES,
                "the command could not be submitted",
            );
        }
        self.progress.wait_host(place.host_seq);
        if let Err(error) = self.progress.timeline.wait(place.value, None) {
            refuse(command);
            return Err(error.into());
        }
        if let Some(action) = &encoded.action {
            action.run();
        }
        Ok(call.want_event.then(|| {
            let (context, kind) = (self.target.context.clone(), command.kind);
            let owner = call.owner.clone();
            let event = Event::done(context, kind, owner, 0, encoded.times, call.queued);
            if self.is_profiling() {
                event.set_host_end(now_ns());
            }
            event
        }))
    }

    /// Sees to it that a command which was just held is looked at when that makes sense.
    fn await_events(&self, resolved: Resolved, first: bool, owner: Arc<dyn Owner>) {
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
                            let after = held.event.settle(State::DEPENDENCY_FAILED);
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
        state: &mut State,
        index: usize,
        place: Place,
        owner: &Arc<dyn Owner>,
    ) -> bool {
        let asked = |known: &Place| known.value >= place.value && known.host_seq >= place.host_seq;
        let held = state.held.get(index);
        if held.is_none_or(|held| held.behind.as_ref().is_some_and(asked)) {
            return true;
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
            held.behind = Some(Place {
                host_seq: seq,
                ..place
            });
        }
        if let Err(error) = posted {
            // No thread to wait in: wait here.
            crate::log!(Warn, "{error}");
            state.submit();
            let _ = self.progress.timeline.wait(place.value, None);
            self.progress.set_host_done(seq);
            return false;
        }
        true
    }

    fn run_held(&self, state: &mut State, held: &Held, ready: Ready, owner: &Arc<dyn Owner>) {
        let how = How {
            profile: self.is_profiling(),
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
