//! Replays of recorded commands. What does not change from one to the next is recorded once, as sequences of the back end;
//! what does (printf buffers, kernels that enqueue others, copies to memory of the host) is encoded each time, as outside of a
//! replay. All of it runs in the order in which it was recorded, which is one that every dependency within allows.

use super::{Encoding, How, Ready, Stop, Unfinished};
use crate::backend::{Op, OrderRule, Placement, Sequence, StreamDesc, Throttle};
use crate::cl;
use crate::command::replay::{Replay, ReplayPart};
use crate::command::{Command, Work};
use crate::error::{ClError, ClResult, OrErr};
use crate::handle::Object;
use crate::object::event::{Progress, Times};
use crate::queue::hazards::QueuePosition;
use crate::queue::host::{HostAction, Outcome, Task};
use crate::queue::pending::{Begun, Slots};
use crate::queue::state::{QueueState, HEAVY};
use crate::queue::transfer::staging::{Pool, UNBOUNDED};
use crate::queue::Queue;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Returns true if a command does the same on the device each time, and leaves nothing to the host.
fn is_repeatable(work: &Work) -> bool {
    match work {
        Work::Launch(launch) => {
            let kernel = &launch.kernel;
            let prints = kernel.printf.is_some() && kernel.code.interface().uses_printf;
            let follows_up = prints || kernel.kept.is_some() || kernel.enqueues.is_some();
            // Images beside buffers are written by each run.
            !follows_up && !kernel.shows_rows
        }
        Work::Copy { .. }
        | Work::Fill { .. }
        | Work::CopyImage { .. }
        | Work::CopyTexels { .. }
        | Work::FillImage { .. } => true,
        work => is_nothing(work),
    }
}

/// Returns true if there is nothing to do for a command where all run in order.
fn is_nothing(work: &Work) -> bool {
    matches!(work, Work::Marker | Work::Barrier)
}

/// A chunk of memory for the arguments of a sequence, in bytes.
const CHUNK: u64 = 16 << 10;

/// Returns a pool of memory that a sequence keeps.
fn sequence_pool() -> Pool {
    Pool::new(Placement::HostWrite, CHUNK, UNBOUNDED)
}

/// Parts that are being made.
struct Recording<'a> {
    state: QueueState,
    replay: &'a Replay,
    before: Option<Arc<Replay>>,
    parts: Vec<ReplayPart>,
}

impl Recording<'_> {
    /// Ends the open sequence, with the commands of these places.
    fn close(&mut self, commands: Range<usize>) -> ClResult {
        let state = &mut self.state;
        if state.stream.open_len() == 0 {
            return Ok(());
        }
        if !state.up.is_empty() || !state.args.is_empty() {
            let up = std::mem::replace(&mut state.up, sequence_pool());
            let args = std::mem::replace(&mut state.args, sequence_pool());
            state.record(Op::Keep(Arc::new((up, args))), false)?;
        }
        let sequence = state.stream.take_sequence()?;
        self.push(commands, sequence);
        Ok(())
    }

    /// Takes the sequence of these commands from the replay before, if it has one.
    fn reuse(&mut self, commands: Range<usize>) -> bool {
        let known = self.before.as_ref().and_then(|before| {
            let same = self.replay.commands.get(commands.clone())?;
            before.recorded(same, commands.start).cloned()
        });
        let Some(sequence) = known else {
            return false;
        };
        self.push(commands, sequence);
        true
    }

    fn push(&mut self, commands: Range<usize>, sequence: Arc<dyn Sequence>) {
        let mut recorded = self.replay.commands[commands.clone()].iter();
        let follows = recorded.any(|command| command.work.follows_pointers());
        self.parts.push(ReplayPart::Recorded {
            commands,
            sequence,
            follows,
        });
    }
}

/// How far a replay is encoded.
struct Run {
    slots: Slots,
    /// The value of the timeline at which what is recorded of it is complete.
    value: Option<u64>,
    /// The status of the host's parts, if there are any.
    outcome: Option<Arc<Outcome>>,
    /// The last of the host's parts.
    host_seq: u64,
    /// The last of them that runs what kernels have enqueued.
    children: u64,
}

impl Run {
    /// Returns the stop of a replay that goes on from a part when the queue has come to a place.
    fn pause(self, parts: usize, place: QueuePosition) -> Stop {
        Stop::Unfinished(Unfinished {
            parts,
            slots: self.slots,
            begun: self.value.map(|value| Begun {
                value,
                outcome: self.outcome,
            }),
            place: Some(place),
        })
    }
}

impl Object<Queue> {
    /// Prepares a replay for queues of this device and this context, unless it is prepared. This may take a while: no lock
    /// should be held.
    pub fn prepare_replay(self: &Arc<Self>, replay: &Replay) {
        replay.parts.get_or_init(|| {
            self.record_parts(replay).unwrap_or_else(|error| {
                crate::log!(Info, "a command buffer is encoded each time: {error}");
                (0..replay.commands.len())
                    .map(ReplayPart::Encoded)
                    .collect()
            })
        });
    }

    fn record_parts(self: &Arc<Self>, replay: &Replay) -> ClResult<Vec<ReplayPart>> {
        let mut recording = Recording {
            state: self.recorder()?,
            replay,
            before: replay.before.lock().take(),
            parts: Vec::new(),
        };
        let count = replay.commands.len();
        let mut at = 0;
        while at < count {
            // Parts end at the same places after an update.
            let end = (at + 1).next_multiple_of(replay.longest).min(count);
            let first = at;
            if recording.reuse(first..end) {
                at = end;
                continue;
            }
            while at < end && self.record_command(&mut recording.state, &replay.commands[at])? {
                at += 1;
            }
            recording.close(first..at)?;
            if at < end {
                recording.parts.push(ReplayPart::Encoded(at));
                at += 1;
            }
        }
        Ok(recording.parts)
    }

    /// Records a command, if it is the same each time.
    fn record_command(
        self: &Arc<Self>,
        state: &mut QueueState,
        command: &Command,
    ) -> ClResult<bool> {
        if !is_repeatable(&command.work) {
            return Ok(false);
        }
        if is_nothing(&command.work) {
            return Ok(true);
        }
        match self.encode_work(state, command, &Ready::default(), How::default()) {
            Ok(_) => Ok(true),
            // It needs memory that runs at the same time cannot share.
            Err(Stop::Unfinished(_)) => Ok(false),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// Returns a state whose stream records sequences.
    fn recorder(&self) -> ClResult<QueueState> {
        let device = &self.target.device.backend;
        let stream = device.create_stream(StreamDesc {
            recorder: true,
            ..StreamDesc::default()
        })?;
        let progress = Arc::new(Progress::new(stream.timeline().clone(), Throttle::Low));
        let host_memory = device.host_memory(1, 1).is_some();
        let (rule, output) = (OrderRule::InOrder, &self.target.context.output);
        let mut state = QueueState::new(stream, progress, rule, false, host_memory, output);
        state.down = Pool::new(Placement::HostRead, 0, 0);
        (state.up, state.args) = (sequence_pool(), sequence_pool());
        Ok(state)
    }

    /// Encodes a replay that is prepared, from the part on that it has come to.
    pub(super) fn encode_replay(
        self: &Arc<Self>,
        state: &mut QueueState,
        replay: &Replay,
        ready: &Ready,
        how: How,
    ) -> Encoding {
        let parts = (replay.parts.get()).or_err(
            cl::CL_INVALID_OPERATION,
            "the command buffer is not prepared",
        )?;
        let begun = ready.begun.as_ref();
        let mut run = Run {
            slots: Slots::new(),
            value: begun.map(|begun| begun.value),
            outcome: begun.and_then(|begun| begun.outcome.clone()),
            host_seq: 0,
            children: 0,
        };
        let status = run.outcome.as_ref().map_or(0, |outcome| outcome.status());
        if status < 0 {
            return Err(ClError::new(status, "a command of the command buffer has failed").into());
        }
        // The part, and the parts of a transfer within it.
        let (first, mut within) = (how.parts >> 32, how.parts & u32::MAX as usize);
        for (number, part) in parts.iter().enumerate().skip(first) {
            if let Some(place) = self.replay_hazard(state, replay, part, run.children) {
                return Err(run.pause(number << 32 | within, place));
            }
            if number > 0 {
                state.unordered_barrier()?;
            }
            let inner = How {
                parts: std::mem::take(&mut within),
                ..how
            };
            match part {
                ReplayPart::Recorded {
                    sequence, follows, ..
                } => {
                    (run.slots).extend(state.record(Op::Sequence(sequence), how.profile)?);
                    run.value = Some(state.value());
                    state.note_work(HEAVY);
                    if *follows {
                        self.target.context.note_pointers_followed();
                        self.progress.set_follows(state.value());
                    }
                }
                ReplayPart::Encoded(at) => {
                    let command = &replay.commands[*at];
                    let (place, within) = match self.encode_part(state, command, inner, &mut run) {
                        Err(Stop::Unfinished(rest)) => (rest.place, rest.parts),
                        encoded => {
                            encoded?;
                            continue;
                        }
                    };
                    let place = place.unwrap_or_default();
                    return Err(run.pause(number << 32 | within, place));
                }
            }
        }
        if run.value.is_none() {
            return self.encode_nothing(state, ready, how);
        }
        let mut encoded = self.on_device(state, run.slots);
        encoded.place.host_seq = encoded.place.host_seq.max(run.host_seq);
        if let Some(outcome) = run.outcome {
            encoded.place.host_seq = state.new_host_task(SmallVec::new(), false);
            encoded.action = Some(HostAction::EndReplay(outcome));
        }
        Ok(encoded)
    }

    /// Encodes a command of a replay, and leaves the host's part of it to the executor.
    fn encode_part(
        self: &Arc<Self>,
        state: &mut QueueState,
        command: &Command,
        how: How,
        run: &mut Run,
    ) -> Encoding<()> {
        if is_nothing(&command.work) {
            return Ok(());
        }
        let recorded = |state: &QueueState| (state.stream.open_value(), state.stream.open_len());
        let before = recorded(state);
        let encoding = self.encode_work(state, command, &Ready::default(), how);
        if recorded(state) != before {
            run.value = Some(state.value());
        }
        let encoded = match encoding {
            Err(Stop::Unfinished(mut rest)) => {
                run.slots.append(&mut rest.slots);
                return Err(Stop::Unfinished(rest));
            }
            encoded => encoded?,
        };
        if let Times::Slots(slots) = encoded.times {
            run.slots.extend(slots);
        }
        if let Some(action) = encoded.action {
            let place = encoded.place;
            run.host_seq = place.host_seq;
            if matches!(action, HostAction::Launched { tree: Some(_), .. }) {
                run.children = place.host_seq;
            }
            let outcome = run.outcome.get_or_insert_default().clone();
            state.post(Task {
                seq: place.host_seq,
                action: Some(HostAction::OfReplay(Box::new(action), outcome)),
                ..Task::at(place.value, self.clone())
            })?;
        }
        Ok(())
    }

    /// Returns the place that the queue must come to before a part of a replay. `children`: the host task, among those of the
    /// parts before, that runs what kernels have enqueued.
    fn replay_hazard(
        &self,
        state: &QueueState,
        replay: &Replay,
        part: &ReplayPart,
        children: u64,
    ) -> Option<QueuePosition> {
        let done = self.progress.host_done();
        let after = |host_seq| QueuePosition { value: 0, host_seq };
        if children > done {
            return Some(after(children));
        }
        if let ReplayPart::Encoded(at) = part {
            let place = QueuePosition {
                value: state.value(),
                host_seq: state.host.posted,
            };
            let work = &replay.commands[*at].work;
            if state.follows_all(&self.target.context, work) && !state.has_reached(place) {
                return Some(place);
            }
        }
        if state.host.posted <= done {
            return None;
        }
        // A barrier among them is for those of the replay alone.
        let mut works = (replay.commands[part.commands()].iter()).map(|command| &command.work);
        works.find_map(|work| {
            state
                .host_hazard(work)
                .filter(|_| !is_nothing(work))
                .map(after)
        })
    }
}
