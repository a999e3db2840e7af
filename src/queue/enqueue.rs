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
//! Every command that does not come to be encoded is refused exactly once ([`refuse`]): in [`Object<Queue>::enqueue`] where that
//! fails, else by whoever fails its event.
//!
//! Who waits holds no lock. A blocking command may therefore take its place in the queue at any moment until it returns:
//! commands that other threads enqueue meanwhile come before or after it.

use super::dependencies::{Awaited, Resolved};
use super::encode::{Encoded, How, Ready, Stop, Unfinished};
use super::host::{HostAction, Task};
use super::pending::refuse;
use super::state::QueueState;
use super::Queue;
use crate::backend::Point;
use crate::cl::{self, cl_int};
use crate::command::{Command, Work};
use crate::error::{ensure, ClResult};
use crate::handle::{Object, Ref};
use crate::object::event::{now_ns, wake, Event, Recorded, Stage, Times};
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
    /// When it came, where times are measured.
    queued: u64,
}

/// The event of a command, if it is wanted.
type WantedEvent = Option<Ref<Event>>;

/// How far an enqueue has come.
enum Enqueued<'a> {
    /// The command is encoded, complete or failed.
    Finished(WantedEvent),
    /// The command must be pending, from where it has come to, until these events are there.
    Pending(MutexGuard<'a, QueueState>, Unfinished, Awaited),
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
        let traced = (self.measuring && trace::on()).then(|| super::trace::describe(&command));
        let request = Request {
            wait,
            blocking,
            want_event: want_event || traced.is_some(),
            queued: if self.measuring { now_ns() } else { 0 },
        };
        let queued = request.queued;
        let works = self.target.context.ensure_works();
        let result = match works.and_then(|()| self.try_encode(&request, &command)) {
            Ok(Enqueued::Finished(event)) => Ok(event),
            Ok(Enqueued::Pending(state, rest, events)) => {
                self.pend_request(request, command, state, rest, events)
            }
            Err(error) => {
                refuse(&command);
                Err(error)
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

    /// Encodes a command that has nothing to wait for, or does what follows from its dependencies.
    #[inline]
    fn try_encode(
        self: &Arc<Self>,
        request: &Request<'_>,
        command: &Command,
    ) -> ClResult<Enqueued<'_>> {
        let state = self.state.lock();
        let work = &command.work;
        if request.wait.is_empty()
            && state.pending.is_empty()
            && self.waits_for_nothing(&state, work)
            && self.is_prepared(work)
            && (!request.blocking || self.is_idle_for(&state, work) || !self.is_for_the_host(work))
        {
            if !request.want_event && work.is_transfer() && state.idle() && !self.moves_contents() {
                match self.transfer_at_once(work) {
                    Ok(false) => {}
                    done => {
                        self.unlock(state);
                        return done.map(|_| Enqueued::Finished(None));
                    }
                }
            }
            return self.encode_request(request, command, state, &Ready::default());
        }
        self.resolve_and_encode(request, command, state)
    }

    /// Resolves the dependencies of a command, and does what follows from that.
    #[inline(never)]
    fn resolve_and_encode<'a>(
        self: &'a Arc<Self>,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'a, QueueState>,
    ) -> ClResult<Enqueued<'a>> {
        let context = &self.target.context;
        let wait = request.wait;
        ensure!(
            wait.iter().all(|e| Arc::ptr_eq(&e.context, context)),
            cl::CL_INVALID_CONTEXT,
            "an event of the wait list is of another context than the queue"
        );
        let mut flushed = 0;
        let mut waited = 0;
        loop {
            let must_pend = if state.in_order() {
                !state.pending.is_empty()
            } else {
                state.pending.barrier().is_some()
            };
            match self.resolve(&state, wait, wait.len(), &command.work) {
                Resolved::Flush(queue, value) => {
                    drop(state);
                    queue.flush();
                    flushed += 1;
                    ensure!(
                        queue.progress().submitted() >= value || flushed <= 2 * wait.len(),
                        cl::CL_OUT_OF_RESOURCES,
                        "a queue that is waited for cannot be submitted"
                    );
                    state = self.state.lock();
                }
                Resolved::Failed => {
                    drop(state);
                    return self.fail_request(request, command);
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
                        return self.encode_request(request, command, state, &ready);
                    };
                    waited += 1;
                    if !state.in_order() {
                        self.wait_until_idle(state, &points, None)?;
                        state = self.state.lock();
                        continue;
                    }
                    ready.points.clear();
                    return self.encode_when_idle(request, command, state, &ready, &points);
                }
                Resolved::Pending(events) if !must_pend => {
                    return Ok(Enqueued::Pending(state, Unfinished::default(), events));
                }
                _ => {
                    let rest = Unfinished::default();
                    return Ok(Enqueued::Pending(state, rest, Awaited::new()));
                }
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
        let idle = ready.points.is_empty() && self.is_idle_for(state, work);
        (!idle && self.is_for_the_host(work)).then(|| ready.points.clone())
    }

    /// Returns true if the host may do a command now: nothing recorded is incomplete, or it is a map that nobody measures.
    #[inline]
    fn is_idle_for(&self, state: &QueueState, work: &Work) -> bool {
        (!self.measuring && matches!(work, Work::Map { .. })) || state.idle()
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
        ensure!(
            self.progress.submitted() >= value,
            cl::CL_OUT_OF_RESOURCES,
            "the commands before it could not be submitted"
        );
        for point in points {
            point.timeline.wait(point.value, None)?;
        }
        self.progress.wait_host(but.map_or(seq, |own| own - 1));
        self.progress.timeline.wait(value, None)?;
        self.target.context.ensure_works()
    }

    /// Encodes a command of an in-order queue, which is for the host and which the caller waits for, when the queue is idle.
    /// Until then it counts as a host task that may access anything: what other threads enqueue comes after it, and is pending.
    fn encode_when_idle<'a>(
        self: &'a Arc<Self>,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'a, QueueState>,
        ready: &Ready,
        points: &[Point],
    ) -> ClResult<Enqueued<'a>> {
        let seq = state.host.add_launches(self.progress.host_done());
        let waited = self.wait_until_idle(state, points, Some(seq));
        let mut state = self.state.lock();
        self.progress.set_host_done(seq);
        state.host_tasks_done();
        let own = |value: &u64| self.progress.has_failed(*value);
        let other = |point: &Point| point.timeline.failure(point.value).is_some();
        let failed = ready.own.iter().any(own) || points.iter().any(other);
        let enqueued = match waited {
            Ok(()) if !failed => self.encode_request(request, command, state, ready),
            waited => {
                self.unlock(state);
                waited.and_then(|()| self.fail_request(request, command))
            }
        };
        if self.progress.pending() > 0 && !matches!(enqueued, Ok(Enqueued::Pending(..))) {
            wake([self.clone() as _]);
        }
        enqueued
    }

    /// Fails a request whose wait list has an event that failed.
    fn fail_request(
        self: &Arc<Self>,
        request: &Request<'_>,
        command: &Command,
    ) -> ClResult<Enqueued<'static>> {
        let status = cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        ensure!(
            !request.blocking,
            status,
            "an event of the wait list has failed"
        );
        refuse(command);
        let event = self.event(request, command, Stage::Done(status), Times::None);
        Ok(Enqueued::Finished(event))
    }

    /// Returns the event of a request at this stage, if it is wanted.
    fn event(
        self: &Arc<Self>,
        request: &Request<'_>,
        command: &Command,
        stage: Stage,
        times: Times,
    ) -> WantedEvent {
        let queued = request.queued;
        (request.want_event).then(|| Event::new(self.clone(), command.kind, stage, times, queued))
    }

    fn pend_request(
        self: &Arc<Self>,
        request: Request<'_>,
        command: Command,
        mut state: MutexGuard<'_, QueueState>,
        rest: Unfinished,
        events: Awaited,
    ) -> ClResult<WantedEvent> {
        let (wait, queued) = (request.wait, request.queued);
        let (number, event) =
            self.make_pending(&mut state, command, (wait, events.len()), queued, rest);
        // Behind others in order, whose turn brings its own.
        let first = !state.in_order() || state.pending.len() == 1;
        // What it waits for may be in the open batch.
        state.submit();
        self.unlock(state);
        if self.target.context.is_terminated() {
            self.terminate_pending();
        }
        let look = events.is_empty() || self.subscribe(number, events);
        if look && first {
            wake([self.clone() as _]);
        }
        if request.blocking {
            check_status(event.wait())?;
        }
        Ok(request.want_event.then_some(event))
    }

    fn encode_request<'a>(
        self: &'a Arc<Self>,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'a, QueueState>,
        ready: &Ready,
    ) -> ClResult<Enqueued<'a>> {
        let how = How {
            profile: request.want_event && self.measuring,
            blocking: request.blocking,
            event: request.want_event,
            ..How::default()
        };
        match self.encode(&mut state, command, ready, how) {
            Ok(encoded) => {
                let event = self.finish_request(request, command, state, encoded)?;
                Ok(Enqueued::Finished(event))
            }
            Err(Stop::Unfinished(rest)) => Ok(Enqueued::Pending(state, rest, Awaited::new())),
            Err(Stop::Failed(error)) => {
                self.unlock(state);
                Err(error)
            }
        }
    }

    /// Finishes a request that is recorded or complete: creates its event, posts its host task, and
    /// waits for it if the caller does.
    #[inline]
    fn finish_request(
        self: &Arc<Self>,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'_, QueueState>,
        mut encoded: Encoded,
    ) -> ClResult<WantedEvent> {
        encoded.place.depends = !request.wait.is_empty();
        if request.blocking && self.must_wait(&mut state, request, command, &encoded) {
            return self.wait_for_request(request, command, state, encoded);
        }
        let place = encoded.place;
        let stage = match encoded.done {
            true => Stage::Done(0),
            false => Stage::Recorded(place),
        };
        let event = self.event(request, command, stage, encoded.times);
        let mut result = Ok(());
        if !encoded.done {
            let watch = encoded.action.is_some();
            if let (Some(event), true) = (&event, watch) {
                event.set_watched();
            }
            result = self.follow(&mut state, event.as_ref(), place, encoded.action, watch);
        }
        state.maybe_submit();
        self.unlock(state);
        result.map(|()| event)
    }

    /// Notes the event of a recorded command in the batch, and leaves to the host executor the host's part of it, and the event
    /// if that is to be watched.
    #[inline]
    pub(super) fn follow(
        self: &Arc<Self>,
        state: &mut QueueState,
        event: Option<&Ref<Event>>,
        place: Recorded,
        action: Option<HostAction>,
        watch: bool,
    ) -> ClResult {
        if let Some(event) = event {
            if place.value > self.progress.submitted() {
                state.add_open_event(event.clone());
            } else if self.measuring {
                event.set_submit_time(now_ns());
            }
        }
        if !watch {
            return Ok(());
        }
        state.post(Task {
            seq: action.as_ref().map_or(0, |_| place.host_seq),
            action,
            event: event.cloned(),
            ..Task::at(place.value, self.clone())
        })
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
        self: &Arc<Self>,
        request: &Request<'_>,
        command: &Command,
        mut state: MutexGuard<'_, QueueState>,
        encoded: Encoded,
    ) -> ClResult<WantedEvent> {
        let place = encoded.place;
        if place.value > self.progress.submitted() {
            state.submit();
        }
        let submitted = place.value <= self.progress.submitted();
        self.unlock(state);
        ensure!(
            submitted,
            cl::CL_OUT_OF_RESOURCES,
            "the command could not be submitted"
        );
        self.progress.wait_host(place.host_seq);
        self.progress.timeline.wait(place.value, None)?;
        check_status(self.progress.status(place.value))?;
        if let Some(action) = &encoded.action {
            action.run();
        }
        let event = self.event(request, command, Stage::Done(0), encoded.times);
        if let (Some(event), true) = (&event, self.measuring) {
            event.set_host_end(now_ns());
        }
        Ok(event)
    }

    /// Returns true if a command need not wait until others are encoded, as markers and barriers of
    /// out-of-order queues do.
    fn can_encode(&self, state: &QueueState, command: &Command, wait: &[Ref<Event>]) -> bool {
        // An empty launch is a marker by its work only.
        let kind = command.kind;
        state.pending.is_empty()
            || !wait.is_empty()
            || !matches!(kind, cl::CL_COMMAND_MARKER | cl::CL_COMMAND_BARRIER)
    }
}

/// Returns the error of a command that was waited for, if it has failed.
fn check_status(status: cl_int) -> ClResult {
    ensure!(
        status >= 0,
        status,
        "the command or one that it waits for has failed"
    );
    Ok(())
}
