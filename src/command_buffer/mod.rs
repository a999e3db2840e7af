//! Command buffers: commands that are recorded once and enqueued as often as wanted (cl_khr_command_buffer,
//! cl_khr_command_buffer_mutable_dispatch).
//!
//! A recorded command is checked, and becomes a [`Command`], when it is recorded, as in an enqueue. Finalizing makes a
//! [`Replay`] of all, which each enqueue hands to a queue as one command with one event. An update makes other commands, and
//! with them another replay; those that are under way keep theirs.
//!
//! The commands run in the order in which they were recorded. That keeps every dependency that sync points, barriers and
//! in-order queues make between them, so a sync point is checked and nothing else.

mod dispatch;
mod info;

pub use dispatch::{property_bits, Dispatch, DispatchUpdate, MutableCommand};

use crate::cl::{self, cl_command_buffer_flags_khr, cl_command_buffer_properties_khr, cl_uint};
use crate::command::replay::Replay;
use crate::command::{Command, QueueTarget, Work};
use crate::error::{ensure, err, ClError, ClResult};
use crate::handle::{Body, Kind, Object, Ref};
use crate::object::event::Event;
use crate::object::properties::{pairs, unsupported};
use crate::queue::Queue;
use crate::util::lock::{rank, Mutex};
use std::sync::Arc;

/// Makes a command for a queue. It is called again where a copy of the command buffer is for another one.
pub type Recipe = Box<dyn Fn(&QueueTarget) -> ClResult<Command> + Send + Sync>;

/// The origin of a command.
enum Source {
    /// Anything but a launch.
    Recipe(Recipe),
    /// A launch.
    Dispatch(Dispatch),
}

impl Source {
    /// Returns the command for a queue; none where arguments of a launch are yet to be set.
    fn command(&self, target: &QueueTarget) -> ClResult<Option<Command>> {
        match self {
            Self::Recipe(recipe) => recipe(target).map(Some),
            Self::Dispatch(dispatch) => dispatch.command(target),
        }
    }
}

/// Commands that are recorded together in a command buffer that may be updated: so many are recorded again for one update.
const MUTABLE_PART: usize = 32;

/// A recorded command.
struct RecordedCommand {
    source: Source,
    command: Option<Arc<Command>>,
    /// Lives as long as the command.
    _handle: Option<Ref<MutableCommand>>,
}

#[derive(Default)]
struct State {
    entries: Vec<RecordedCommand>,
    finalized: bool,
    /// The commands as they are now, once all are complete.
    replay: Option<Arc<Replay>>,
    /// The commands before the last update.
    before: Option<Arc<Replay>>,
}

/// A command buffer.
pub struct CommandBuffer {
    /// The queue that it was created with.
    pub queue: Ref<Queue>,
    /// The list as given, with its closing zero; empty: none given.
    properties: Vec<cl_command_buffer_properties_khr>,
    flags: cl_command_buffer_flags_khr,
    /// The application promises that launches get no more work-groups than they were recorded with.
    asserts_groups: bool,
    state: Mutex<State, { rank::COMMAND_BUFFER }>,
}

impl Body for CommandBuffer {
    const KIND: Kind = Kind::CommandBuffer;
}

impl CommandBuffer {
    /// Implements clCreateCommandBufferKHR.
    pub fn new(
        queue: &Ref<Queue>,
        properties: Vec<cl_command_buffer_properties_khr>,
    ) -> ClResult<Ref<Self>> {
        const FLAGS: cl_command_buffer_flags_khr =
            cl::CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR | cl::CL_COMMAND_BUFFER_MUTABLE_KHR;
        let mut flags = 0;
        let mut asserts_groups = false;
        for (name, value) in pairs(&properties, cl::CL_INVALID_VALUE)? {
            match name {
                cl::CL_COMMAND_BUFFER_FLAGS_KHR => {
                    let known = FLAGS | cl::CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR;
                    ensure!(
                        value & !known == 0,
                        cl::CL_INVALID_VALUE,
                        "unknown command buffer flags {value:#x}"
                    );
                    ensure!(
                        value & !FLAGS == 0,
                        cl::CL_INVALID_PROPERTY,
                        "command buffers of several devices are not supported"
                    );
                    flags = value;
                }
                cl::CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR => {
                    asserts_groups = dispatch::asserts_groups(value)?;
                }
                _ => return unsupported("command buffer", name, cl::CL_INVALID_VALUE),
            }
        }
        Ok(Object::new(Self {
            queue: queue.clone(),
            properties,
            flags,
            asserts_groups,
            state: Mutex::default(),
        }))
    }

    fn check_recording(&self, state: &State) -> ClResult {
        ensure!(
            !state.finalized,
            cl::CL_INVALID_OPERATION,
            "the command buffer is finalized"
        );
        Ok(())
    }

    /// Checks that a command which waits for these sync points can be recorded now.
    pub fn check_record(&self, waits: &[cl_uint]) -> ClResult {
        let state = self.state.lock();
        self.check_recording(&state)?;
        let known = 1..=state.entries.len();
        ensure!(
            waits.iter().all(|point| known.contains(&(*point as usize))),
            cl::CL_INVALID_SYNC_POINT_WAIT_LIST_KHR,
            "a sync point of the wait list is not valid"
        );
        Ok(())
    }

    /// Records a command. Returns its sync point.
    pub fn record(&self, recipe: Recipe) -> ClResult<cl_uint> {
        self.add(Source::Recipe(recipe), |_| None)
    }

    fn add(
        &self,
        source: Source,
        handle: impl FnOnce(usize) -> Option<Ref<MutableCommand>>,
    ) -> ClResult<cl_uint> {
        let command = source.command(&self.queue.target)?.map(Arc::new);
        let mut state = self.state.lock();
        self.check_recording(&state)?;
        let Ok(point) = cl_uint::try_from(state.entries.len() + 1) else {
            return err(cl::CL_OUT_OF_RESOURCES, "no more sync points");
        };
        let handle = handle(state.entries.len());
        state.entries.push(RecordedCommand {
            source,
            command,
            _handle: handle,
        });
        Ok(point)
    }

    /// Implements clFinalizeCommandBufferKHR.
    pub fn finalize(&self) -> ClResult {
        let mut state = self.state.lock();
        self.check_recording(&state)?;
        state.finalized = true;
        drop(state);
        // Prepared now, not when it is enqueued for the first time.
        if let Ok(replay) = self.replay() {
            self.queue.prepare_replay(&replay);
        }
        Ok(())
    }

    /// Returns the commands as they are now.
    fn replay(&self) -> ClResult<Arc<Replay>> {
        let mut state = self.state.lock();
        ensure!(
            state.finalized,
            cl::CL_INVALID_OPERATION,
            "the command buffer is not finalized"
        );
        if let Some(replay) = &state.replay {
            return Ok(replay.clone());
        }
        let commands: Option<Vec<_>> = (state.entries.iter())
            .map(|entry| entry.command.clone())
            .collect();
        let Some(commands) = commands else {
            return Err(unset_arguments());
        };
        let longest = match self.flags & cl::CL_COMMAND_BUFFER_MUTABLE_KHR {
            0 => usize::MAX,
            _ => MUTABLE_PART,
        };
        let replay = Arc::new(Replay::new(commands, longest, state.before.take()));
        state.replay = Some(replay.clone());
        Ok(replay)
    }

    /// Returns the commands as they are now, made for another queue.
    fn replay_of(&self, queue: &Queue) -> ClResult<Arc<Replay>> {
        let state = self.state.lock();
        let commands = state.entries.iter().map(|entry| {
            let made = entry.source.command(&queue.target)?;
            made.map(Arc::new).ok_or_else(unset_arguments)
        });
        let commands = commands.collect::<ClResult<Vec<_>>>()?;
        Ok(Arc::new(Replay::new(commands, usize::MAX, None)))
    }

    /// Implements clEnqueueCommandBufferKHR. `queue`: in place of the one that it was created with.
    pub fn enqueue(
        &self,
        queue: Option<&Ref<Queue>>,
        wait: &[Ref<Event>],
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        let replay = self.replay()?;
        let queue = queue.unwrap_or(&self.queue);
        ensure!(
            Arc::ptr_eq(&queue.target.context, &self.queue.target.context),
            cl::CL_INVALID_CONTEXT,
            "the queue is of another context than the command buffer"
        );
        ensure!(
            Arc::ptr_eq(&queue.target.device, &self.queue.target.device),
            cl::CL_INVALID_DEVICE,
            "the queue is of another device than the command buffer"
        );
        let replay = match replay.of_one_queue && !Arc::ptr_eq(queue, &self.queue) {
            true => self.replay_of(queue)?,
            false => replay,
        };
        queue.prepare_replay(&replay);
        let kind = cl::CL_COMMAND_COMMAND_BUFFER_KHR;
        queue.enqueue(
            Command::new(kind, Work::Replay(replay)),
            wait,
            false,
            want_event,
        )
    }

    /// Returns true if every command is complete.
    fn is_executable(state: &State) -> bool {
        state.entries.iter().all(|entry| entry.command.is_some())
    }
}

/// Returns the error for a command buffer that is not executable.
fn unset_arguments() -> ClError {
    ClError::new(
        cl::CL_INVALID_OPERATION,
        "a kernel of the command buffer has arguments that are not set",
    )
}

/// Returns the error for a command of another command buffer.
fn foreign_command() -> ClError {
    ClError::new(
        cl::CL_INVALID_MUTABLE_COMMAND_KHR,
        "the command is not of this command buffer",
    )
}
