//! Enqueue: a command is encoded at once or made pending, by its dependencies.
//!
//! ```text
//!            resolve
//! enqueue ------+--> Flush ----> another queue is flushed; once more from the start
//!               +--> Failed ---> refused: its event has the error, a map is undone, an unmap made again
//!               +--> Pending --> pending --(an event, the host executor)--> pump: resolve again
//!               +--> Ready ----> encoded --> blocking: waited for, its host task done here
//!                        |              \-> else: event recorded, its host task posted to the executor
//!                        \--> no room --> pending
//! ```
//! Every command that does not come to be encoded is refused exactly once ([`refuse`]), by whoever finds out.
//!
//! Who waits holds no lock. A blocking command may therefore take its place in the queue at any moment until it returns:
//! commands that other threads enqueue meanwhile come before or after it.

use super::dependencies::Resolved;
use super::encode::{Encoded, How, Outcome, Ready};
use super::hazards::QueuePosition;
use super::host::Task;
use super::pending::{refuse, Slots};
use super::state::QueueState;
use super::Queue;
use crate::backend::Point;
use crate::cl;
use crate::command::{Command, Work};
use crate::error::{err, ClResult};
use crate::handle::{Object, Ref};
use crate::object::event::{now_ns, wake, Event, Owner};
use crate::util::lock::MutexGuard;
use crate::util::trace;
use smallvec::SmallVec;
use std::sync::Arc;

/// How often a blocking command that is for the host waits until the queue is idle, before it goes through the device like
/// any other: others may never leave it idle.
const IDLE_WAITS: usize = 2;

/// An enqueue, as it came, but for what to do.
struct Request<'a> {
    wait: &'a [Ref<Event>],
    blocking: bool,
    want_event: bool,
    owner: &'a Ref<Queue>,
    /// When it came, where times are measured.
    queued: u64,
}

/// How far an enqueue has come.
enum Turn<'a> {
    /// The enqueue is done: the event, if it is wanted.
    Over(ClResult<Option<Ref<Event>>>),
    /// The command must be pending: so many parts are recorded, and it goes on at this place.
    Pending(
        MutexGuard<'a, QueueState>,
        (usize, Slots),
        Option<QueuePosition>,
    ),
}

impl Request<'_> {
    fn owner(&self) -> Arc<dyn Owner> {
        self.owner.clone()
    }
}

impl Object<Queue> {
    /// Enqueues a command. Returns the event if `want_event` is set. With `blocking` the command is
    /// complete on return as far as can be observed: a write that only later commands of this queue
    /// could see may still be running.
    pub fn enqueue(
        self: &Arc<Self>,
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
        let traced = (self.is_measuring() && trace::on()).then(|| super::trace::describe(&command));
        let request = Request {
            wait,
            blocking,
            want_event: want_event || traced.is_some(),
            owner: self,
            queued: if self.is_measuring() { now_ns() } else { 0 },
        };
        let queued = request.queued;
        let result = match self.take_turn(&request, &command) {
            Turn::Over(result) => result,
            Turn::Pending(state, parts, place) => {
                self.pend_request(request, command, state, parts, place)
            }
        };
        let Some(description) = traced else {
            return result;
        };
        let event = result?;
        if let Some(event) = &event {
            super::trace::add(event, description, queued);
        }
        Ok(event.filter(|_| want_event))
    }
}

impl Queue {
    pub(super) fn owner(&self) -> Option<Arc<dyn Owner>> {
        self.me.upgrade().map(|me| me as Arc<dyn Owner>)
    }

    /// Resolves the dependencies of a command, and does what follows from that.
    #[inline]
    fn take_turn(&self, request: &Request<'_>, command: &Command) -> Turn<'_> {
        let mut flushed = 0;
        let mut waited = 0;
        loop {
            let state = self.state.lock();
            let must_pend = if state.in_order() {
                !state.pending.is_empty()
            } else {
                state.pending.barrier().is_some()
            };
            let wait = request.wait;
            let resolved = if wait.is_empty()
                && !must_pend
                && state.pending.is_empty()
                && self.waits_for_nothing(&state, &command.work)
            {
                Resolved::Ready(Ready::default())
            } else {
                self.resolve(&state, wait, wait.len(), &command.work)
            };
            match resolved {
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
                    return Turn::Over(self.fail_request(request, command));
                }
                Resolved::Ready(mut ready)
                    if !must_pend
                        && self.can_encode(&state, command, wait)
                        && self.is_prepared(&command.work) =>
                {
                    let points = (request.blocking && waited < IDLE_WAITS)
                        .then(|| self.idle_points(&state, &ready, &command.work))
                        .flatten();
                    let Some(points) = points else {
                        return self.encode_request(request, command, state, ready);
                    };
                    waited += 1;
                    if !state.in_order() {
                        if let Err(error) = self.wait_until_idle(state, &points, None) {
                            refuse(command);
                            return Turn::Over(Err(error));
                        }
                        continue;
                    }
                    ready.points.clear();
                    return self.encode_when_idle(request, command, state, ready, &points);
                }
                _ => return Turn::Pending(state, (0, Slots::new()), None),
            }
        }
    }

    /// Returns the points of other queues to wait for before the host does a command that the caller waits for, if there is
    /// anything to wait for.
    fn idle_points(
        &self,
        state: &QueueState,
        ready: &Ready,
        work: &Work,
    ) -> Option<SmallVec<[Point; 2]>> {
        let unmeasured = !self.is_measuring() && matches!(work, Work::Map { .. });
        let idle = ready.points.is_empty() && (unmeasured || state.idle());
        (!idle && self.is_for_the_host(work)).then(|| ready.points.clone())
    }

    /// Waits, without the lock, until all recorded commands are complete, and for points of other
    /// queues. Host tasks from `but` on are not waited for.
    fn wait_until_idle(
        &self,
        mut state: MutexGuard<'_, QueueState>,
        points: &[Point],
        but: Option<u64>,
    ) -> ClResult {
        let (value, seq) = (state.value(), state.host.posted);
        state.submit();
        self.unlock(state);
        if self.progress.submitted() < value {
            return err(
                cl::CL_OUT_OF_RESOURCES,
                "the commands before it could not be submitted",
            );
        }
        for point in points {
            point.timeline.wait(point.value, None)?;
        }
        self.progress.wait_host(but.map_or(seq, |own| own - 1));
        self.progress.timeline.wait(value, None)?;
        Ok(())
    }

    /// Encodes a command of an in-order queue, which is for the host and which the caller waits for, when the queue is idle.
    /// Until then it counts as a host task that may access anything: what other threads enqueue comes after it, and is pending.
    fn encode_when_idle<'a>(
        &'a self,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'a, QueueState>,
        ready: Ready,
        points: &[Point],
    ) -> Turn<'a> {
        let seq = state.host.add_launches(self.progress.host_done());
        let waited = self.wait_until_idle(state, points, Some(seq));
        let mut state = self.state.lock();
        self.progress.set_host_done(seq);
        state.host_tasks_done();
        let failed = ready
            .own
            .iter()
            .any(|value| self.progress.has_failed(*value))
            || (points.iter()).any(|point| point.timeline.failure(point.value).is_some());
        let turn = match waited {
            Ok(()) if failed => {
                self.unlock(state);
                Turn::Over(self.fail_request(request, command))
            }
            Ok(()) => self.encode_request(request, command, state, ready),
            Err(error) => {
                self.unlock(state);
                refuse(command);
                Turn::Over(Err(error))
            }
        };
        if let (Turn::Over(_), true) = (&turn, self.progress.pending() > 0) {
            wake(self.owner());
        }
        turn
    }

    /// Fails a request whose wait list has an event that failed.
    fn fail_request(
        &self,
        request: &Request<'_>,
        command: &Command,
    ) -> ClResult<Option<Ref<Event>>> {
        refuse(command);
        let status = QueueState::DEPENDENCY_FAILED;
        if request.blocking {
            return err(status, "an event of the wait list has failed");
        }
        Ok(request.want_event.then(|| {
            let (context, kind) = (self.target.context.clone(), command.kind);
            let (owner, times) = (request.owner(), Default::default());
            Event::done(context, kind, owner, status, times, request.queued)
        }))
    }

    fn pend_request(
        &self,
        request: Request<'_>,
        command: Command,
        mut state: MutexGuard<'_, QueueState>,
        parts: (usize, Slots),
        place: Option<QueuePosition>,
    ) -> ClResult<Option<Ref<Event>>> {
        let owner = request.owner();
        let (wait, queued) = (request.wait, request.queued);
        let event = self.make_pending(&mut state, command, wait, &owner, queued, parts, place);
        // HostBacking others in order, whose turn brings its own.
        let look = !state.in_order() || state.pending.len() == 1;
        // What it waits for may be in the open batch.
        state.submit();
        self.unlock(state);
        if look {
            wake([owner]);
        }
        if request.blocking {
            let status = event.wait();
            if status < 0 {
                return err(status, "the command or one that it waits for has failed");
            }
        }
        Ok(request.want_event.then_some(event))
    }

    fn encode_request<'a>(
        &'a self,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'a, QueueState>,
        ready: Ready,
    ) -> Turn<'a> {
        let how = How {
            profile: request.want_event && self.is_measuring(),
            blocking: request.blocking,
            event: request.want_event,
            parts: 0,
        };
        match self.encode(&mut state, command, ready, how) {
            Ok(Outcome::Recorded(encoded)) => {
                Turn::Over(self.finish_request(request, command, state, encoded))
            }
            Ok(Outcome::Unfinished {
                parts,
                slots,
                place,
            }) => Turn::Pending(state, (parts, slots), Some(place)),
            Err(error) => {
                self.unlock(state);
                refuse(command);
                Turn::Over(Err(error))
            }
        }
    }

    /// Finishes a request that is recorded or complete: creates its event, posts its host task, and
    /// waits for it if the caller does.
    #[inline]
    fn finish_request(
        &self,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'_, QueueState>,
        mut encoded: Encoded,
    ) -> ClResult<Option<Ref<Event>>> {
        encoded.place.depends = !request.wait.is_empty();
        if request.blocking && self.must_wait(&mut state, request, command, &encoded) {
            return self.wait_for_request(request, command, state, encoded);
        }
        let queued = request.queued;
        let Encoded {
            place,
            times,
            action,
            done,
            ..
        } = encoded;
        let event = request.want_event.then(|| {
            let (context, kind) = (self.target.context.clone(), command.kind);
            if done {
                Event::done(context, kind, request.owner(), 0, times, queued)
            } else {
                Event::recorded(context, kind, request.owner(), place, times, queued)
            }
        });
        if let (Some(event), false) = (&event, done) {
            if place.value > self.progress.submitted() {
                state.add_open_event(event.clone());
            } else if self.is_measuring() {
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
                owner: request.owner(),
                failed: None,
                command: None,
            });
        }
        state.maybe_submit();
        self.unlock(state);
        result.map(|()| event)
    }

    /// Returns true if a blocking command that was encoded must be waited for. It need not be if
    /// nothing can observe that it is not complete: a queue that is created later waits for such
    /// commands ([`Queue::new`]).
    fn must_wait(
        &self,
        state: &mut QueueState,
        request: &Request<'_>,
        command: &Command,
        encoded: &Encoded,
    ) -> bool {
        if encoded.done {
            return false;
        }
        if encoded.wait
            || encoded.action.is_some()
            || request.want_event
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

    fn wait_for_request(
        &self,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'_, QueueState>,
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
        let status = self.progress.status(place.value);
        if status < 0 {
            refuse(command);
            return err(status, "the command or one that it waits for has failed");
        }
        if let Some(action) = &encoded.action {
            action.run();
        }
        Ok(request.want_event.then(|| {
            let (context, kind) = (self.target.context.clone(), command.kind);
            let owner = request.owner();
            let event = Event::done(context, kind, owner, 0, encoded.times, request.queued);
            if self.is_measuring() {
                event.set_host_end(now_ns());
            }
            event
        }))
    }

    /// Returns true if a command need not wait until others are encoded, as markers and barriers of
    /// out-of-order queues do.
    fn can_encode(&self, state: &QueueState, command: &Command, wait: &[Ref<Event>]) -> bool {
        state.pending.is_empty()
            || !wait.is_empty()
            || !matches!(command.work, Work::Marker | Work::Barrier)
            || {
                // An empty launch is a marker by its work only.
                !matches!(command.kind, cl::CL_COMMAND_MARKER | cl::CL_COMMAND_BARRIER)
            }
    }
}
