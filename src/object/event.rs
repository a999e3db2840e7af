//! Events: the state of a command.
//!
//! # Stages
//! ```text
//! Pending --encoded--> Recorded { value, .. } --timeline and host parts reached--> Done(status)
//!    \------------------- failed dependency, set by the user -------------------^
//! ```
//! A *pending* event is not on a device timeline yet (a user event, or a command that waits for one). A *recorded* one
//! completes when its queue's timeline has reached `value`, which is that of its own command, and the queue's host executor
//! has finished task `host_seq`; whoever asks finds that out. Only events with callbacks or with pending commands of other
//! queues behind them are *watched* by the host executor.
//!
//! # Dependents
//! A pending command counts the events that it waits for. Each event has a list of such commands, and notifies each of them
//! once: so n commands that wait for m events cost n + m.
//!
//! # Locks
//! The event's lock is a leaf: nothing else is locked and no callback runs while it is held. Queues are woken through
//! [`wake`], which works off a list of its own, so that a long chain of commands unwinds in a loop.

mod wake;

use super::callback::{Callback, EventFn};
use super::context::Context;
pub use super::progress::{ContextQueue, Progress};
use crate::backend::ProfileSlot;
use crate::cl::{self, cl_command_type, cl_int, cl_ulong};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::{self, Body, Kind, Object, Ref};
use crate::util::blocking;
use crate::util::lock::{rank, Mutex, MutexGuard};
use parking_lot::Condvar;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock, Weak};
use wake::{status_of, Calls};
pub use wake::{wake, Notifications};

const COMPLETE: cl_int = cl::CL_COMPLETE as cl_int;
const RUNNING: cl_int = cl::CL_RUNNING as cl_int;
const SUBMITTED: cl_int = cl::CL_SUBMITTED as cl_int;
const QUEUED: cl_int = cl::CL_QUEUED as cl_int;

/// The queue of an event, as the event sees it; implemented by the queue, so that events need not know it.
pub trait Owner: ContextQueue {
    /// Its context.
    fn context(&self) -> &Ref<Context>;
    /// Returns true if the application may query times.
    fn profiling(&self) -> bool;
    /// Returns true if the queue measures times, for the application or for a trace.
    fn measures(&self) -> bool;
    /// Makes the host thread complete the event, which is or was on the timeline, when its time has come.
    fn watch(&self, event: Ref<Event>);
    /// Notifies that an event which these pending commands wait for has changed.
    fn dependencies_met(&self, commands: &[u64]);
    /// Notifies that a host task is complete that pending commands may wait for.
    fn host_task_done(&self);
    /// Encodes pending commands that have become ready. Called through [`wake`] only.
    fn pump(self: Arc<Self>);
    /// Returns the start and end over all of the slots, which are freed.
    fn take_times(&self, slots: &[ProfileSlot]) -> ClResult<(u64, u64)>;
    /// Frees slots whose times are not needed.
    fn discard_times(&self, slots: &[ProfileSlot]);
}

/// Where a recorded command is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Value of the queue's timeline.
    pub value: u64,
    /// Host task of the queue, 0: none.
    pub host_seq: u64,
    /// Number of the operation within the queue (out-of-order queues: for barriers).
    pub order: u64,
    /// Set if it waits for events: that it runs is not known before it is done.
    pub depends: bool,
}

/// The stage of a command, see the module's head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Pending,
    Recorded(Recorded),
    Done(cl_int),
}

/// Device times of a command.
#[derive(Debug, Clone, Default)]
pub enum Times {
    /// Not measured.
    #[default]
    None,
    /// To be had from the stream.
    Slots(SmallVec<[ProfileSlot; 2]>),
    /// Somebody is getting them.
    Taking,
    /// Start and end.
    Known(u64, u64),
}

/// A pending command that waits for an event.
#[derive(Clone)]
pub struct Dependent {
    /// Its queue.
    pub owner: Weak<dyn Owner>,
    /// Its number in the queue.
    pub command: u64,
    /// Set if it waits until the event is done, not only recorded.
    pub until_done: bool,
}

#[derive(Default)]
struct State {
    stage: Stage,
    watched: bool,
    callbacks: SmallVec<[(cl_int, Callback<EventFn>); 1]>,
    dependents: SmallVec<[Dependent; 1]>,
    /// User events that end with this event's status.
    followers: Vec<Ref<Event>>,
    /// Counted by the context while the application has yet to end the event ([`Context::awaits_application`]).
    awaited: Option<Arc<()>>,
    times: Times,
    /// The host took part at the end: it ended then at the earliest.
    host_end: u64,
    /// The time when all that the command enqueued on the device had ended.
    children_end: u64,
    queued: u64,
    submit: u64,
}

impl State {
    /// Sets the final status unless there is one. Returns the status that holds.
    fn settle(&mut self, status: cl_int) -> cl_int {
        self.awaited = None;
        match self.stage {
            Stage::Done(known) => known,
            _ => {
                self.stage = Stage::Done(status);
                status
            }
        }
    }
}

/// An event.
pub struct Event {
    /// CL_EVENT_CONTEXT.
    pub context: Ref<Context>,
    /// CL_EVENT_COMMAND_TYPE.
    pub command_type: cl_command_type,
    owner: Option<Arc<dyn Owner>>,
    /// For the last of several commands, in several queues, that are one: the first of them, if that is another.
    several: OnceLock<Option<Ref<Event>>>,
    state: Mutex<State, { rank::EVENT }>,
    changed: Condvar,
}

impl Body for Event {
    const KIND: Kind = Kind::Event;
}

/// The state of an event, as a dependent command sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Nothing to wait for.
    Done,
    /// The command failed.
    Failed,
    /// On the device timeline of its queue; all host parts before it are done.
    Recorded(Recorded),
    /// Must be waited for on the host. With a place if it is recorded.
    Pending(Option<Recorded>),
}

impl Event {
    fn make(
        context: Ref<Context>,
        command_type: cl_command_type,
        owner: Option<Arc<dyn Owner>>,
        stage: Stage,
        times: Times,
        queued: u64,
    ) -> Ref<Self> {
        let submit = match stage {
            Stage::Done(_) => queued,
            _ => 0,
        };
        Object::new(Self {
            context,
            command_type,
            owner,
            several: OnceLock::new(),
            state: Mutex::new(State {
                stage,
                times,
                queued,
                submit,
                ..State::default()
            }),
            changed: Condvar::new(),
        })
    }

    /// Implements clCreateUserEvent.
    pub fn user(context: Ref<Context>) -> Ref<Self> {
        let awaited = context.awaited.clone();
        let event = Self::of_others(context, cl::CL_COMMAND_USER);
        event.state.lock().awaited = Some(awaited);
        event
    }

    /// Creates the event of what others do, such as a fence of OpenGL, which ends when it is settled.
    pub(crate) fn of_others(context: Ref<Context>, kind: cl_command_type) -> Ref<Self> {
        Self::make(context, kind, None, Stage::Pending, Times::None, 0)
    }

    /// Returns the event of a command of a queue that has come to this stage.
    pub(crate) fn new(
        owner: Arc<dyn Owner>,
        kind: cl_command_type,
        stage: Stage,
        times: Times,
        queued: u64,
    ) -> Ref<Self> {
        let context = owner.context().clone();
        Self::make(context, kind, Some(owner), stage, times, queued)
    }
}

impl Object<Event> {
    /// Returns who completes the event, or `None` for user events.
    pub(crate) fn owner(&self) -> Option<&Arc<dyn Owner>> {
        self.owner.as_ref()
    }

    /// Returns true if the event was created by clCreateUserEvent.
    pub fn is_user(&self) -> bool {
        self.command_type == cl::CL_COMMAND_USER
    }

    /// Returns true if it is a fence of OpenGL or EGL.
    pub fn is_fence(&self) -> bool {
        self.owner.is_none() && !self.is_user()
    }

    fn stage(&self) -> Stage {
        self.state.lock().stage
    }

    /// Returns the event's value on the queue's timeline, if it has one yet.
    pub(crate) fn value(&self) -> Option<u64> {
        match self.stage() {
            Stage::Recorded(place) => Some(place.value),
            _ => None,
        }
    }

    /// Returns whether a command that depends on the event can run, must wait, or fails.
    pub fn readiness(&self) -> Readiness {
        let place = match self.stage() {
            Stage::Pending => return Readiness::Pending(None),
            Stage::Done(status) if status < 0 => return Readiness::Failed,
            Stage::Done(_) => return Readiness::Done,
            Stage::Recorded(place) => place,
        };
        match &self.owner {
            Some(owner) if owner.progress().host_done() < place.host_seq => {
                Readiness::Pending(Some(place))
            }
            Some(owner) if owner.progress().has_failed(place.value) => Readiness::Failed,
            _ => Readiness::Recorded(place),
        }
    }

    /// Sets the final status unless there is one; the rest stays for the host thread, which watches every event that
    /// has callbacks or waiters. Returns the status that holds.
    fn settle_now(&self, status: cl_int) -> cl_int {
        let status = self.state.lock().settle(status);
        self.changed.notify_all();
        status
    }

    /// Marks the event as one that the host thread will complete.
    pub(crate) fn set_watched(&self) {
        self.state.lock().watched = true;
    }

    /// Sets CL_PROFILING_COMMAND_SUBMIT, in nanoseconds, unless it is set.
    pub(crate) fn set_submit_time(&self, now: u64) {
        let mut state = self.state.lock();
        if state.submit == 0 {
            state.submit = now;
        }
    }

    /// Sets the end of a task of the host, in nanoseconds.
    pub(crate) fn set_host_end(&self, now: u64) {
        self.state.lock().host_end = now;
    }

    /// Sets CL_PROFILING_COMMAND_COMPLETE, in nanoseconds.
    pub(crate) fn set_children_end(&self, now: u64) {
        self.state.lock().children_end = now;
    }
}

// Methods that need the reference to themselves.
impl Object<Event> {
    /// Returns CL_EVENT_COMMAND_EXECUTION_STATUS. Asking for it submits the command: applications
    /// poll.
    pub fn status(self: &Arc<Self>) -> cl_int {
        let status = self.own_status();
        match self.several.get() {
            // It runs as soon as the first does.
            Some(Some(first)) if status > RUNNING => first.status().max(RUNNING),
            _ => status,
        }
    }

    /// Makes it the event of commands in several queues, of which its own is the last and `first` the first.
    pub fn set_several_queues(&self, first: Option<Ref<Event>>) {
        let _ = self.several.set(first);
    }

    /// Returns true if it is the event of commands in several queues.
    pub fn has_several_queues(&self) -> bool {
        self.several.get().is_some()
    }

    fn own_status(self: &Arc<Self>) -> cl_int {
        let place = match self.stage() {
            Stage::Done(status) => return status,
            Stage::Pending => {
                return if self.owner.is_none() {
                    SUBMITTED
                } else {
                    QUEUED
                }
            }
            Stage::Recorded(place) => place,
        };
        let Some(owner) = &self.owner else {
            return SUBMITTED;
        };
        let progress = owner.progress();
        if progress.submitted() < place.value {
            owner.flush();
        }
        match progress.timeline.completed() {
            Ok(now) if now >= place.value => {
                if progress.host_done() >= place.host_seq {
                    self.settle_now(progress.status(place.value))
                } else {
                    RUNNING
                }
            }
            Ok(now) if now + 1 >= place.value && !place.depends => RUNNING,
            Ok(_) => SUBMITTED,
            Err(error) => self.settle_now(ClError::from(error).code),
        }
    }

    /// Waits until the command is complete, and submits it if need be. Returns its status:
    /// CL_COMPLETE or negative.
    pub fn wait(self: &Arc<Self>) -> cl_int {
        blocking::begins();
        loop {
            let place = {
                let mut state = self.state.lock();
                match state.stage {
                    Stage::Done(status) => return status,
                    Stage::Recorded(place) => place,
                    Stage::Pending => {
                        state.wait(&self.changed);
                        continue;
                    }
                }
            };
            let Some(owner) = &self.owner else {
                return COMPLETE;
            };
            let progress = owner.progress();
            if progress.submitted() < place.value {
                owner.flush();
                if progress.submitted() < place.value {
                    if matches!(self.stage(), Stage::Recorded(_)) {
                        return self.settle_now(cl::CL_OUT_OF_RESOURCES);
                    }
                    continue;
                }
            }
            // The host thread, while it has something to do, waits for the timeline: one waiter is enough.
            progress.wait_host(place.host_seq);
            return match progress.timeline.wait(place.value, None) {
                Ok(true) => self.settle_now(progress.status(place.value)),
                Ok(false) => continue,
                Err(error) => self.settle_now(ClError::from(error).code),
            };
        }
    }

    /// Sets the final status unless there is one already. Returns the notifications to run once no
    /// lock is held.
    pub(crate) fn settle(self: &Arc<Self>, status: cl_int) -> Notifications {
        let mut state = self.state.lock();
        let status = state.settle(status);
        let mut callbacks = std::mem::take(&mut state.callbacks);
        let dependents = std::mem::take(&mut state.dependents);
        let followers = std::mem::take(&mut state.followers);
        drop(state);
        self.changed.notify_all();
        // SUBMITTED before RUNNING before COMPLETE; those of the same kind as registered.
        callbacks.sort_by_key(|(kind, _)| -*kind);
        Notifications {
            dependents,
            followers,
            status,
            calls: Calls::new(self, callbacks, status),
        }
    }

    /// Returns the callbacks that are due when the command has been submitted, if there are any.
    pub(crate) fn submitted_callbacks(self: &Arc<Self>) -> Option<Notifications> {
        let mut state = self.state.lock();
        let all = std::mem::take(&mut state.callbacks).into_iter();
        let (callbacks, later) = all.partition(|(kind, _)| *kind >= SUBMITTED);
        state.callbacks = later;
        let calls = Some(Calls::new(self, callbacks, SUBMITTED)?);
        Some(Notifications {
            calls,
            ..Notifications::default()
        })
    }

    /// Marks the pending command as encoded. Returns whether the host executor must complete the
    /// event (then it counts as watched), and what to notify.
    pub(crate) fn mark_recorded(
        self: &Arc<Self>,
        place: Recorded,
        times: Times,
        host: bool,
    ) -> (bool, Notifications) {
        let mut state = self.state.lock();
        state.stage = Stage::Recorded(place);
        state.times = times;
        let all = std::mem::take(&mut state.dependents).into_iter();
        let (rest, dependents) = all.partition(|dependent| dependent.until_done);
        state.dependents = rest;
        let watch = host
            || !state.callbacks.is_empty()
            || !state.dependents.is_empty()
            || !state.followers.is_empty();
        state.watched |= watch;
        drop(state);
        self.changed.notify_all();
        let notifications = Notifications {
            dependents,
            ..Notifications::default()
        };
        (watch, notifications)
    }

    /// Completes the event of a pending command that was done when it was encoded. Returns what to notify.
    pub(crate) fn complete(self: &Arc<Self>, times: Times) -> Notifications {
        self.state.lock().times = times;
        self.settle(COMPLETE)
    }

    /// Notifies `dependent` once when the event is recorded, with its host part done, or done. Returns false if it is so
    /// already: nothing will come.
    pub(crate) fn subscribe(self: &Arc<Self>, dependent: Dependent) -> bool {
        let mut state = self.state.lock();
        match (state.stage, &self.owner) {
            (Stage::Done(_), _) => return false,
            (Stage::Recorded(place), Some(owner))
                if !dependent.until_done && owner.progress().host_done() >= place.host_seq =>
            {
                return false;
            }
            _ => state.dependents.push(dependent),
        }
        self.watch(state);
        true
    }

    /// Releases the lock, and makes the host executor complete the event if that is yet to be.
    fn watch(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let recorded = matches!(state.stage, Stage::Recorded(_));
        let watch = recorded && !std::mem::replace(&mut state.watched, true);
        drop(state);
        if let (true, Some(owner)) = (watch, &self.owner) {
            owner.watch(self.clone());
        }
    }

    /// Makes `follower`, a user event that the application does not have, end with this event's status.
    pub(crate) fn lead(self: &Arc<Self>, follower: &Ref<Event>) {
        let mut state = self.state.lock();
        if let Stage::Done(status) = state.stage {
            drop(state);
            return follower.settle(status).run();
        }
        state.followers.push(follower.clone());
        self.watch(state);
    }

    /// Implements clSetEventCallback.
    pub fn set_callback(self: &Arc<Self>, kind: cl_int, callback: Callback<EventFn>) -> ClResult {
        ensure!(
            matches!(kind, SUBMITTED | RUNNING | COMPLETE),
            cl::CL_INVALID_VALUE,
            "the callback type is none of SUBMITTED, RUNNING, COMPLETE"
        );
        let mut state = self.state.lock();
        let status = match state.stage {
            Stage::Done(status) => status_of(kind, status),
            Stage::Pending if self.owner.is_none() && kind == SUBMITTED => kind,
            _ => {
                state.callbacks.push((kind, callback));
                self.watch(state);
                return Ok(());
            }
        };
        drop(state);
        callback.call(Arc::as_ptr(self) as usize, status);
        Ok(())
    }

    /// Implements clSetUserEventStatus.
    pub fn set_user_status(self: &Arc<Self>, status: cl_int) -> ClResult {
        ensure!(self.is_user(), cl::CL_INVALID_EVENT, "not a user event");
        ensure!(
            status <= COMPLETE,
            cl::CL_INVALID_VALUE,
            "the status of a user event is CL_COMPLETE or negative"
        );
        {
            let mut state = self.state.lock();
            ensure!(
                !matches!(state.stage, Stage::Done(_)),
                cl::CL_INVALID_OPERATION,
                "the status of the user event has been set already"
            );
            state.stage = Stage::Done(status);
        }
        self.settle(status).run();
        Ok(())
    }

    /// Implements clGetEventProfilingInfo: the value of `name` in nanoseconds.
    pub fn profiling(self: &Arc<Self>, name: cl::cl_profiling_info) -> ClResult<cl_ulong> {
        ensure!(
            self.owner.as_ref().is_some_and(|owner| owner.profiling()),
            cl::CL_PROFILING_INFO_NOT_AVAILABLE,
            "the event has no queue with profiling"
        );
        let [mut queued, mut submit, mut start, end] = self.times()?;
        if let Some(Some(first)) = self.several.get() {
            [queued, submit, start, _] = first.times()?;
        }
        match name {
            cl::CL_PROFILING_COMMAND_QUEUED => Ok(queued),
            cl::CL_PROFILING_COMMAND_SUBMIT => Ok(submit),
            cl::CL_PROFILING_COMMAND_START => Ok(start),
            cl::CL_PROFILING_COMMAND_END => Ok(end),
            cl::CL_PROFILING_COMMAND_COMPLETE => Ok(end.max(self.state.lock().children_end)),
            _ => err(cl::CL_INVALID_VALUE, "unknown profiling query"),
        }
    }

    /// Returns true if the command is complete, so that a query of its status submits nothing.
    pub(crate) fn is_over(&self) -> bool {
        match (self.stage(), &self.owner) {
            (Stage::Done(_), _) => true,
            (Stage::Pending, _) | (_, None) => false,
            (Stage::Recorded(place), Some(owner)) => {
                let progress = owner.progress();
                match progress.timeline.completed() {
                    Ok(now) => now >= place.value && progress.host_done() >= place.host_seq,
                    Err(_) => true,
                }
            }
        }
    }

    /// Returns when a complete command was queued, submitted, started and ended, on a queue that
    /// measures, or the status of one that failed.
    pub(crate) fn measured(self: &Arc<Self>) -> Result<[u64; 4], cl_int> {
        match self.status() {
            COMPLETE => self.times().map_err(|error| error.code),
            status => Err(status),
        }
    }

    /// Returns the times queued, submit, start and end, in nanoseconds.
    fn times(self: &Arc<Self>) -> ClResult<[u64; 4]> {
        let owner = self
            .owner
            .as_ref()
            .filter(|owner| owner.measures())
            .or_err(
                cl::CL_PROFILING_INFO_NOT_AVAILABLE,
                "the queue measures no times",
            )?;
        ensure!(
            self.status() == COMPLETE,
            cl::CL_PROFILING_INFO_NOT_AVAILABLE,
            "the command is not complete"
        );
        let taken = {
            let mut state = self.state.lock();
            while matches!(state.times, Times::Taking) {
                state.wait(&self.changed);
            }
            let taken = match &mut state.times {
                Times::Slots(slots) => Some(std::mem::take(slots)),
                _ => None,
            };
            if taken.is_some() {
                state.times = Times::Taking;
            }
            taken
        };
        if let Some(slots) = taken {
            let times = owner.take_times(&slots);
            self.state.lock().times = times
                .as_ref()
                .map_or(Times::None, |&(start, end)| Times::Known(start, end));
            self.changed.notify_all();
            times.map_err(ClError::of_resources)?;
        }
        let state = self.state.lock();
        let queued = state.queued;
        let submit = state.submit.max(queued);
        let (start, end) = match state.times {
            // A device's clock that is known from a trial alone may place a command before its submission; it took as
            // long all the same.
            Times::Known(start, end) => {
                let late = submit.saturating_sub(start);
                (start + late, end + late)
            }
            _ => (submit, submit),
        };
        let end = end.max(start).max(state.host_end);
        Ok([queued, submit, start, end])
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let (Times::Slots(slots), Some(owner)) = (&self.state.get_mut().times, &self.owner) {
            owner.discard_times(slots);
        }
    }
}

/// Implements clWaitForEvents. The queues of all of the events are flushed before the first wait.
pub fn wait_all(events: &[Ref<Event>]) -> ClResult {
    let first = events
        .first()
        .or_err(cl::CL_INVALID_VALUE, "no events to wait for")?;
    ensure!(
        events
            .iter()
            .all(|event| Arc::ptr_eq(&event.context, &first.context)),
        cl::CL_INVALID_CONTEXT,
        "the events belong to different contexts"
    );
    if events.len() > 1 {
        for event in events {
            if let (Stage::Recorded(place), Some(owner)) = (event.stage(), &event.owner) {
                if owner.progress().submitted() < place.value {
                    owner.flush();
                }
            }
        }
    }
    // All of them are waited for.
    let failed = events.iter().filter(|event| event.wait() < 0).count();
    ensure!(
        failed == 0,
        cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        "a command that was waited for has failed"
    );
    Ok(())
}

/// Implements clReleaseEvent. A user event that the application releases without having set its
/// status can never be set: commands that wait for it fail rather than wait for ever.
pub fn release(handle: *const c_void) -> ClResult {
    let last = handle::release_one::<Event>(handle)?;
    if let Some(event) = last.filter(|event| event.is_user() && event.stage() == Stage::Pending) {
        event.settle(cl::CL_INVALID_EVENT).run();
    }
    Ok(())
}

/// Returns CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    crate::util::monotonic_ns()
}
