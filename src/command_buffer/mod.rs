//! Command buffers: commands that are recorded once and enqueued as often as wanted (cl_khr_command_buffer,
//! cl_khr_command_buffer_mutable_dispatch, cl_khr_command_buffer_multi_device).
//!
//! A recorded command is checked, and becomes a [`Command`], when it is recorded, as in an enqueue. Finalizing makes a
//! [`Replay`] of all, which each enqueue hands to a queue as one command with one event. An update makes other commands, and
//! with them another replay; those that are under way keep theirs.
//!
//! The commands run in the order in which they were recorded. That keeps every dependency that sync points, barriers and
//! in-order queues make between them, so a sync point is checked and nothing else. Where there are several queues, those of
//! one queue that follow one another are a replay, which waits for the one before.

mod dispatch;
mod info;
mod remap;

pub use dispatch::{property_bits, Dispatch, DispatchUpdate, MutableCommand};

use crate::cl::{self, cl_command_buffer_flags_khr, cl_command_buffer_properties_khr, cl_uint};
use crate::command::replay::Replay;
use crate::command::{Command, QueueTarget, Work};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::{Body, Kind, Object, Ref};
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::event::Event;
use crate::object::properties::{pairs, unsupported};
use crate::queue::Queue;
use crate::util::lock::{rank, Mutex};
use std::ops::Range;
use std::sync::Arc;

/// A function that makes a command for a queue. It is called again where a copy of the command buffer is for another one.
pub type Recipe = Arc<dyn Fn(&QueueTarget) -> ClResult<Command> + Send + Sync>;

/// The origin of a command.
#[derive(Clone)]
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
    /// The number of its queue.
    queue: usize,
    source: Source,
    command: Option<Arc<Command>>,
    /// Lives as long as the command.
    handle: Option<Ref<MutableCommand>>,
}

/// Commands of one queue that follow one another.
#[derive(Clone)]
struct Run {
    /// The number of the queue.
    queue: usize,
    /// Their places.
    commands: Range<usize>,
    replay: Arc<Replay>,
}

#[derive(Default)]
struct State {
    entries: Vec<RecordedCommand>,
    finalized: bool,
    /// The commands as they are now, once all are complete.
    runs: Option<Arc<[Run]>>,
    /// The commands before the last update.
    before: Option<Arc<[Run]>>,
}

/// A command buffer.
pub struct CommandBuffer {
    /// The queues that it was created with, of one context.
    pub queues: Vec<Ref<Queue>>,
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
        queues: Vec<Ref<Queue>>,
        properties: Vec<cl_command_buffer_properties_khr>,
    ) -> ClResult<Ref<Self>> {
        const FLAGS: cl_command_buffer_flags_khr = cl::CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR
            | cl::CL_COMMAND_BUFFER_MUTABLE_KHR
            | cl::CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR;
        let mut flags = 0;
        let mut asserts_groups = false;
        for (name, value) in pairs(&properties, cl::CL_INVALID_VALUE)? {
            match name {
                cl::CL_COMMAND_BUFFER_FLAGS_KHR => {
                    ensure!(
                        value & !FLAGS == 0,
                        cl::CL_INVALID_VALUE,
                        "unknown command buffer flags {value:#x}"
                    );
                    flags = value;
                }
                cl::CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR => {
                    asserts_groups = dispatch::asserts_groups(value)?;
                }
                _ => return unsupported("command buffer", name, cl::CL_INVALID_VALUE),
            }
        }
        let made = Self {
            queues,
            properties,
            flags,
            asserts_groups,
            state: Mutex::default(),
        };
        made.check_queues()?;
        Ok(Object::new(made))
    }

    /// Checks that there are queues, and that they go together.
    fn check_queues(&self) -> ClResult {
        let Some((first, others)) = self.queues.split_first() else {
            return err(cl::CL_INVALID_VALUE, "no queues");
        };
        let context = &first.target.context;
        ensure!(
            others
                .iter()
                .all(|queue| Arc::ptr_eq(&queue.target.context, context)),
            cl::CL_INVALID_CONTEXT,
            "the queues are of several contexts"
        );
        let root = Device::root(&first.target.device);
        let same = |queue: &Ref<Queue>| Arc::ptr_eq(Device::root(&queue.target.device), root);
        ensure!(
            self.flags & cl::CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR == 0 || others.iter().all(same),
            cl::CL_INCOMPATIBLE_COMMAND_QUEUE_KHR,
            "devices do not wait for one another by themselves"
        );
        Ok(())
    }

    /// Returns the context.
    pub fn context(&self) -> &Ref<Context> {
        // There is a queue.
        &self.queues[0].target.context
    }

    /// Returns the number of a queue, or of the only one.
    pub fn queue_number(&self, queue: Option<&Ref<Queue>>) -> ClResult<usize> {
        let Some(queue) = queue else {
            ensure!(
                self.queues.len() == 1,
                cl::CL_INVALID_COMMAND_QUEUE,
                "the command buffer has several queues"
            );
            return Ok(0);
        };
        ensure!(
            Arc::ptr_eq(&queue.target.context, self.context()),
            cl::CL_INVALID_CONTEXT,
            "the queue is of another context than the command buffer"
        );
        let found = self
            .queues
            .iter()
            .position(|known| Arc::ptr_eq(known, queue));
        found.or_err(
            cl::CL_INVALID_COMMAND_QUEUE,
            "the queue is not of the command buffer",
        )
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

    /// Records a command for a queue, by its number. Returns its sync point.
    pub fn record(&self, queue: usize, recipe: Recipe) -> ClResult<cl_uint> {
        self.add(queue, Source::Recipe(recipe), |_| None)
    }

    fn add(
        &self,
        queue: usize,
        source: Source,
        handle: impl FnOnce(usize) -> Option<Ref<MutableCommand>>,
    ) -> ClResult<cl_uint> {
        let command = source.command(&self.queues[queue].target)?.map(Arc::new);
        let mut state = self.state.lock();
        self.check_recording(&state)?;
        let Ok(point) = cl_uint::try_from(state.entries.len() + 1) else {
            return err(cl::CL_OUT_OF_RESOURCES, "no more sync points");
        };
        let handle = handle(state.entries.len());
        state.entries.push(RecordedCommand {
            queue,
            source,
            command,
            handle,
        });
        Ok(point)
    }

    /// Implements clFinalizeCommandBufferKHR.
    pub fn finalize(&self) -> ClResult {
        let mut state = self.state.lock();
        self.check_recording(&state)?;
        state.finalized = true;
        drop(state);
        self.prepare();
        Ok(())
    }

    /// Prepares what is executable, so that this is not left to the first enqueue.
    fn prepare(&self) {
        for run in self.runs().iter().flat_map(|runs| runs.iter()) {
            self.queues[run.queue].prepare_replay(&run.replay);
        }
    }

    /// Returns the commands as they are now.
    fn runs(&self) -> ClResult<Arc<[Run]>> {
        let mut state = self.state.lock();
        ensure!(
            state.finalized,
            cl::CL_INVALID_OPERATION,
            "the command buffer is not finalized"
        );
        if let Some(runs) = &state.runs {
            return Ok(runs.clone());
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
        // Runs are the same after an update, but for their commands.
        let before = state.before.take();
        let mut runs: Vec<Run> = Vec::new();
        let mut first = 0;
        while first < commands.len() || runs.is_empty() {
            let rest = state.entries.get(first..).unwrap_or_default();
            let queue = rest.first().map_or(0, |entry| entry.queue);
            let count = rest.iter().take_while(|entry| entry.queue == queue).count();
            let own = commands[first..first + count].to_vec();
            let earlier = before.as_ref().and_then(|before| before.get(runs.len()));
            let earlier = earlier.map(|run| run.replay.clone());
            runs.push(Run {
                queue,
                commands: first..first + count,
                replay: Arc::new(Replay::new(own, longest, earlier)),
            });
            first += count;
        }
        let runs: Arc<[Run]> = runs.into();
        state.runs = Some(runs.clone());
        Ok(runs)
    }

    /// Returns the commands of a run as they are now, made for another queue.
    fn replay_of(&self, run: &Run, queue: &Queue) -> ClResult<Arc<Replay>> {
        let state = self.state.lock();
        let entries = state.entries.get(run.commands.clone()).unwrap_or_default();
        let commands = entries.iter().map(|entry| {
            let made = entry.source.command(&queue.target)?;
            made.map(Arc::new).ok_or_else(unset_arguments)
        });
        let commands = commands.collect::<ClResult<Vec<_>>>()?;
        Ok(Arc::new(Replay::new(commands, usize::MAX, None)))
    }

    /// Implements clEnqueueCommandBufferKHR. `queues`: in place of those that it was created with. Runs of several queues
    /// follow one another, each waiting for the event of the one before.
    pub fn enqueue(
        &self,
        queues: Option<&[Ref<Queue>]>,
        wait: &[Ref<Event>],
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        let runs = self.runs()?;
        let queues = queues.unwrap_or(&self.queues);
        self.check_enqueue(queues)?;
        let mut replays = Vec::with_capacity(runs.len());
        for run in runs.iter() {
            let (queue, own) = (&queues[run.queue], &self.queues[run.queue]);
            let replay = match run.replay.of_one_queue && !Arc::ptr_eq(queue, own) {
                true => self.replay_of(run, queue)?,
                false => run.replay.clone(),
            };
            queue.prepare_replay(&replay);
            replays.push((queue, replay));
        }
        let count = replays.len();
        let (mut first, mut last) = (None, None);
        for (number, (queue, replay)) in replays.into_iter().enumerate() {
            let command = Command::new(cl::CL_COMMAND_COMMAND_BUFFER_KHR, Work::Replay(replay));
            let wait = last.as_ref().map_or(wait, std::slice::from_ref);
            let wanted = want_event || number + 1 < count;
            last = queue.enqueue(command, wait, false, wanted)?;
            if number == 0 && count > 1 {
                first = last.clone();
            }
        }
        let event = last.filter(|_| want_event);
        if let (Some(event), true) = (&event, queues.len() > 1) {
            event.set_several_queues(first);
        }
        Ok(event)
    }

    /// Checks that queues can stand for those that the command buffer was created with.
    fn check_enqueue(&self, queues: &[Ref<Queue>]) -> ClResult {
        ensure!(
            queues.len() == self.queues.len(),
            cl::CL_INVALID_VALUE,
            "the command buffer has {} queues",
            self.queues.len()
        );
        for (queue, own) in queues.iter().zip(&self.queues) {
            ensure!(
                Arc::ptr_eq(&queue.target.context, &own.target.context),
                cl::CL_INVALID_CONTEXT,
                "a queue is of another context than the command buffer"
            );
            ensure!(
                Arc::ptr_eq(&queue.target.device, &own.target.device),
                cl::CL_INVALID_DEVICE,
                "a queue is of another device than the one in its place"
            );
        }
        Ok(())
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
