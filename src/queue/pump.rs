//! Encodes pending commands when what they wait for has come.

use super::dependencies::{Awaited, Resolved};
use super::encode::{Encoded, How, Ready, Stop, Unfinished};
use super::hazards::QueuePosition;
use super::host::{HostAction, Migration, Task};
use super::pending::{refuse, Pending};
use super::state::QueueState;
use super::Queue;
use crate::cl::{self, cl_int};
use crate::command::{Command, Work};
use crate::error::{err, ClError};
use crate::handle::{Object, Ref};
use crate::object::event::{Dependent, Event, Owner, Stage, Times};
use crate::object::mem::map;
use crate::util::guard::guarded;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// The number of commands that are encoded before the memory of the first of them is freed: it is in a cache still.
const AT_ONCE: usize = 64;

impl Object<Queue> {
    /// Makes a command pending, of which so many parts are recorded and which waits for `place`. Returns its number and its
    /// event. `wait` has its wait list, and how many events it is going to be subscribed to ([`Self::subscribe`]): without any
    /// it is to be looked at ([`crate::object::event::wake`]) when the lock is released.
    pub(super) fn make_pending(
        self: &Arc<Self>,
        state: &mut QueueState,
        command: Command,
        (wait, events): (&[Ref<Event>], usize),
        queued: u64,
        rest: Unfinished,
    ) -> (u64, Ref<Event>) {
        let kind = command.kind;
        let event = Event::new(self.clone(), kind, Stage::Pending, Times::None, queued);
        let mut deps: SmallVec<[Ref<Event>; 4]> = wait.iter().cloned().collect();
        let mut after_all = false;
        let barrier = kind == cl::CL_COMMAND_BARRIER && !state.in_order();
        if !state.in_order() {
            deps.extend(state.pending.barrier().cloned());
            after_all = (barrier || kind == cl::CL_COMMAND_MARKER) && wait.is_empty();
        }
        if let Work::Map { mem, mapping } = &command.work {
            map::set_held(mem, mapping, true);
        }
        let pending = Box::new(Pending {
            command,
            deps,
            listed: wait.len(),
            event: event.clone(),
            migration: None,
            parts: rest.parts,
            slots: rest.slots,
            begun: rest.begun,
        });
        // Not to be looked at before it waits for its place.
        let count = events + usize::from(rest.place.is_some());
        let number = state.pending.add(pending, count, after_all);
        if barrier {
            state.pending.set_barrier(number, event.clone());
        }
        if let Some(place) = rest.place {
            self.wait_for_place(state, number, place);
            state.pending.met(number);
        }
        self.progress.set_pending(state.pending.len());
        (number, event)
    }

    /// Subscribes a pending command to events, without the lock. Returns true if it need not wait for one of them.
    pub(super) fn subscribe(self: &Arc<Self>, number: u64, events: Awaited) -> bool {
        let owner: Weak<dyn Owner> = Arc::downgrade(&(self.clone() as Arc<dyn Owner>));
        let mut met = false;
        for (event, until_done) in events {
            let dependent = Dependent {
                owner: owner.clone(),
                command: number,
                until_done,
            };
            if !event.subscribe(dependent) {
                self.state.lock().pending.met(number);
                met = true;
            }
        }
        met
    }

    /// Encodes the pending commands that have become ready.
    pub(super) fn pump_pending(self: &Arc<Self>) {
        let mut flushes = 0;
        loop {
            let mut outside = None;
            let mut left = AT_ONCE;
            {
                let mut state = self.state.lock();
                let in_order = state.in_order();
                while left > 0 {
                    let Some(number) = state.pending.candidate(in_order) else {
                        break;
                    };
                    outside = self.look_at(&mut state, number).map(|look| (number, look));
                    if outside.is_some() {
                        break;
                    }
                    left -= 1;
                }
                // What it waits for, or what waits for it, may be in the open batch.
                if left > 0 {
                    state.submit();
                }
                self.progress.set_pending(state.pending.len());
                self.unlock(state);
            }
            match outside {
                Some((number, Resolved::Flush(queue, value))) => {
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
                Some((number, Resolved::Pending(events))) => {
                    self.subscribe(number, events);
                }
                _ if left > 0 => return,
                _ => {}
            }
        }
    }

    /// Returns true if the contents that a command uses are in the memory of the device.
    pub(super) fn is_prepared(&self, work: &Work) -> bool {
        !self.moves_contents() || work.is_prepared(self.target.memory)
    }

    /// Copies contents to the memory of the device, in a thread that may wait for devices. The
    /// command is checked again when they are there.
    fn migrate(self: &Arc<Self>, state: &mut QueueState, number: u64, mut pending: Box<Pending>) {
        let failed = (pending.migration.as_ref()).and_then(|migration| migration.error().cloned());
        if let Some(error) = failed {
            return self.fail_pending(state, number, pending, &error);
        }
        let migration = Arc::new(Migration::new(&pending.command.work, self.target.memory));
        let posted = state.post_migration(Task {
            action: Some(HostAction::Migrate(migration.clone())),
            command: Some(number),
            ..Task::at(0, self.clone())
        });
        match posted {
            Ok(()) => {
                pending.migration = Some(migration);
                state.pending.put_back(number, pending);
                state.pending.wait_for(number, 1);
            }
            Err(error) => self.fail_pending(state, number, pending, &error),
        }
    }

    /// Looks at a pending command. Returns what has to be done without the lock: queues to flush, events to subscribe to.
    fn look_at(self: &Arc<Self>, state: &mut QueueState, number: u64) -> Option<Resolved> {
        let mut pending = state.pending.take(number)?;
        let work = &mut pending.command.work;
        let mut resolved = self.resolve(state, &pending.deps, pending.listed, work);
        if let (Resolved::Ready(_), Work::Unmap { mem, mapping }) = (&resolved, &mut *work) {
            // Not before: the map that it waits for is held until then.
            match map::renew(mem, mapping) {
                Ok(false) => {}
                Ok(true) => {
                    resolved = self.resolve(state, &pending.deps, pending.listed, work);
                }
                Err(error) => {
                    self.fail_pending(state, number, pending, &error);
                    return None;
                }
            }
        }
        match &mut resolved {
            Resolved::Ready(_) if !self.is_prepared(work) => self.migrate(state, number, pending),
            Resolved::Ready(ready) => self.encode_pending(state, number, pending, ready),
            Resolved::Failed => {
                self.end_pending(
                    state,
                    number,
                    pending,
                    cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                );
            }
            Resolved::Unreached(place) => {
                state.pending.put_back(number, pending);
                self.wait_for_place(state, number, *place);
            }
            Resolved::Flush(..) => {
                state.pending.put_back(number, pending);
                return Some(resolved);
            }
            Resolved::Pending(events) => {
                state.pending.put_back(number, pending);
                state.pending.wait_for(number, events.len());
                return Some(resolved);
            }
        }
        None
    }

    /// Makes a command wait until the queue has reached a position.
    fn wait_for_place(self: &Arc<Self>, state: &mut QueueState, number: u64, place: QueuePosition) {
        state.pending.wait_for(number, 1);
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
            command: Some(number),
            ..Task::at(place.value, self.clone())
        });
        if let Err(error) = posted {
            // Nobody can wait for the place.
            if let Some(pending) = state.pending.take(number) {
                self.fail_pending(state, number, pending, &error);
            }
        }
    }

    /// Ends all pending commands of a context that was terminated.
    pub(super) fn terminate_pending(&self) {
        let mut state = self.state.lock();
        for number in state.pending.numbers() {
            if let Some(pending) = state.pending.take(number) {
                self.end_pending(&mut state, number, pending, cl::CL_CONTEXT_TERMINATED_KHR);
            }
        }
        self.progress.set_pending(state.pending.len());
        self.unlock(state);
    }

    fn fail_pending(
        &self,
        state: &mut QueueState,
        number: u64,
        pending: Box<Pending>,
        error: &ClError,
    ) {
        let report = format!("a command could not be carried out: {error}");
        state.reports.push(report);
        self.end_pending(state, number, pending, error.code);
    }

    /// Ends a command that will not be carried out.
    fn end_pending(
        &self,
        state: &mut QueueState,
        number: u64,
        pending: Box<Pending>,
        status: cl_int,
    ) {
        refuse(&pending.command);
        let status = match self.target.context.ensure_works() {
            Ok(()) => status,
            Err(terminated) => terminated.code,
        };
        state.notify(pending.event.settle(status));
        state.pending.remove(number);
        state.gone.push(pending);
    }

    fn encode_pending(
        self: &Arc<Self>,
        state: &mut QueueState,
        number: u64,
        mut pending: Box<Pending>,
        ready: &mut Ready,
    ) {
        ready.begun = pending.begun.clone();
        let how = How {
            profile: self.measuring,
            event: true,
            parts: pending.parts,
            ..How::default()
        };
        // A panic fails this command, and no other.
        let mut encoding = err(cl::CL_OUT_OF_RESOURCES, "internal error").map_err(Stop::Failed);
        guarded("a pending command", || {
            encoding = self.encode(state, &pending.command, ready, how);
        });
        let encoded = match encoding {
            Ok(encoded) => encoded,
            Err(Stop::Unfinished(rest)) => {
                (pending.parts, pending.begun) = (rest.parts, rest.begun);
                pending.slots.extend(rest.slots);
                state.pending.put_back(number, pending);
                if let Some(place) = rest.place {
                    self.wait_for_place(state, number, place);
                }
                return;
            }
            Err(Stop::Failed(error)) => return self.fail_pending(state, number, pending, &error),
        };
        state.pending.remove(number);
        if let Work::Map { mem, mapping } = &pending.command.work {
            map::set_held(mem, mapping, false);
        }
        let Encoded {
            mut place,
            mut times,
            action,
            done,
            ..
        } = encoded;
        if let Times::Slots(slots) = &mut times {
            slots.extend(pending.slots.drain(..));
        }
        let event = &pending.event;
        if done {
            // Its place is that of a command before it, whose status is not its own.
            state.notify(event.complete(times));
        } else {
            place.depends = !pending.deps.is_empty();
            let (watch, notifications) = event.mark_recorded(place, times, action.is_some());
            state.notify(notifications);
            if let Err(error) = self.follow(state, Some(event), place, action, watch) {
                state.notify(event.settle(error.code));
            }
            state.maybe_submit();
        }
        state.gone.push(pending);
    }
}
