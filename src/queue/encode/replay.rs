//! Replays of recorded commands. What does not change from one to the next is recorded once, as sequences of the back end;
//! what does (printf buffers, kernels that enqueue others, copies to memory of the host) is encoded each time, as outside of a
//! replay. All of it runs in the order in which it was recorded, which is one that every dependency within allows.

use super::{Encoding, How, Ready, Stop, Unfinished};
use crate::backend::{Op, OrderRule, Placement, StreamDesc, Throttle};
use crate::command::replay::{Prepared, Replay, ReplayPart};
use crate::command::{Command, Work};
use crate::error::ClResult;
use crate::handle::Object;
use crate::object::event::{Progress, Times};
use crate::queue::hazards::QueuePosition;
use crate::queue::host::{HostAction, Task};
use crate::queue::pending::Slots;
use crate::queue::state::{QueueState, HEAVY};
use crate::queue::transfer::staging::Pool;
use crate::queue::Queue;
use std::sync::Arc;

/// Returns true if a command does the same on the device each time, and leaves nothing to the host.
fn is_repeatable(work: &Work) -> bool {
    match work {
        Work::Launch(launch) => {
            let kernel = &launch.kernel;
            let prints = kernel.printf.is_some() && kernel.code.interface().uses_printf;
            let follows_up = prints || kernel.kept.is_some() || kernel.enqueues.is_some();
            // Images beside buffers are written by each run.
            !follows_up && kernel.shown_for.is_none()
        }
        Work::Copy { .. }
        | Work::Fill { .. }
        | Work::CopyImage { .. }
        | Work::ImageToBuffer { .. }
        | Work::BufferToImage { .. }
        | Work::FillImage { .. } => true,
        work => is_nothing(work),
    }
}

/// Returns true if there is nothing to do for a command where all run in order.
fn is_nothing(work: &Work) -> bool {
    matches!(work, Work::Marker | Work::Barrier)
}

impl Object<Queue> {
    /// Prepares a replay for queues of this device and this context, unless it is prepared. This may take a while: no lock
    /// should be held.
    pub fn prepare_replay(self: &Arc<Self>, replay: &Replay) {
        replay.prepared.get_or_init(|| {
            self.record_parts(&replay.commands).unwrap_or_else(|error| {
                crate::log!(Info, "a command buffer is encoded each time: {error}");
                Prepared {
                    parts: (0..replay.commands.len())
                        .map(ReplayPart::Encoded)
                        .collect(),
                    kept: None,
                }
            })
        });
    }

    fn record_parts(self: &Arc<Self>, commands: &[Arc<Command>]) -> ClResult<Prepared> {
        let mut state = self.recorder()?;
        let mut parts = Vec::new();
        let mut first = 0;
        let mut close = |state: &mut QueueState, first: usize, next: usize| -> ClResult {
            if state.stream.open_len() > 0 {
                parts.push(ReplayPart::Recorded {
                    commands: first..next,
                    sequence: state.stream.take_sequence()?,
                });
            }
            if next < commands.len() {
                parts.push(ReplayPart::Encoded(next));
            }
            Ok(())
        };
        for (at, command) in commands.iter().enumerate() {
            if !self.record_command(&mut state, command)? {
                close(&mut state, first, at)?;
                first = at + 1;
            }
        }
        close(&mut state, first, commands.len())?;
        let QueueState { up, args, .. } = state;
        let used = !up.is_empty() || !args.is_empty();
        Ok(Prepared {
            parts,
            kept: used.then(|| Arc::new((up, args)) as _),
        })
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
        let mut state = QueueState::new(stream, progress, OrderRule::InOrder, false, host_memory);
        state.down = Pool::new(Placement::HostRead, 0, 0);
        Ok(state)
    }

    /// Encodes a replay, from the part on that it has come to.
    pub(super) fn encode_replay(
        self: &Arc<Self>,
        state: &mut QueueState,
        replay: &Replay,
        ready: &Ready,
        how: How,
    ) -> Encoding {
        self.prepare_replay(replay);
        let Some(prepared) = replay.prepared.get() else {
            return self.encode_nothing(state, ready, how);
        };
        // The part, and the parts of a transfer within it.
        let (first, mut within) = (how.parts >> 32, how.parts & u32::MAX as usize);
        let mut slots = Slots::new();
        let mut any = how.after > 0;
        let mut host_seq = 0;
        let mut children = 0;
        let pause = |state: &QueueState, part: usize, within, slots: Slots, place| {
            Stop::Unfinished(Unfinished {
                parts: part << 32 | within,
                slots,
                after: state.value(),
                place: Some(place),
            })
        };
        for (number, part) in prepared.parts.iter().enumerate().skip(first) {
            let works = replay.commands[part.commands()].iter().map(|c| &c.work);
            if let Some(place) = self.replay_hazard(state, works, children) {
                return Err(pause(state, number, within, slots, place));
            }
            if number > 0 {
                state.unordered_barrier()?;
            }
            let at = match part {
                ReplayPart::Recorded { commands, sequence } => {
                    any = true;
                    slots.extend(state.record(Op::Sequence(sequence), how.profile)?);
                    if let Some(kept) = &prepared.kept {
                        state.record(Op::Keep(kept.clone()), false)?;
                    }
                    state.note_work(HEAVY);
                    let commands = &replay.commands[commands.clone()];
                    if commands.iter().any(|c| c.work.follows_pointers()) {
                        self.target.context.note_pointers_followed();
                        self.progress.set_follows(state.value());
                    }
                    continue;
                }
                ReplayPart::Encoded(at) => *at,
            };
            let inner = How {
                parts: std::mem::take(&mut within),
                idle: false,
                after: 0,
                ..how
            };
            let command = &replay.commands[at];
            if is_nothing(&command.work) {
                continue;
            }
            any = true;
            let encoded = match self.encode_work(state, command, &Ready::default(), inner) {
                Err(Stop::Unfinished(rest)) => {
                    slots.extend(rest.slots);
                    let place = rest.place.unwrap_or_default();
                    return Err(pause(state, number, rest.parts, slots, place));
                }
                encoded => encoded?,
            };
            if let Times::Slots(own) = encoded.times {
                slots.extend(own);
            }
            let Some(action) = encoded.action else {
                continue;
            };
            let place = encoded.place;
            host_seq = place.host_seq;
            if matches!(action, HostAction::Launched { tree: Some(_), .. }) {
                children = host_seq;
            }
            state.post(Task {
                seq: host_seq,
                action: Some(action),
                ..Task::at(place.value, self.clone())
            })?;
        }
        if !any {
            return self.encode_nothing(state, ready, how);
        }
        let mut encoded = self.on_device(state, slots);
        encoded.place.host_seq = encoded.place.host_seq.max(host_seq);
        Ok(encoded)
    }

    /// Returns the place that the queue must come to before a part of a replay. `children`: the host task, among those of the
    /// parts before, that runs what kernels have enqueued.
    fn replay_hazard<'a>(
        &self,
        state: &QueueState,
        mut works: impl Iterator<Item = &'a Work>,
        children: u64,
    ) -> Option<QueuePosition> {
        let done = self.progress.host_done();
        if children > done {
            return Some(QueuePosition {
                value: 0,
                host_seq: children,
            });
        }
        let place = QueuePosition {
            value: state.value(),
            host_seq: state.host.posted,
        };
        works.find_map(|work| {
            if state.follows_all(&self.target.context, work) && !state.has_reached(place) {
                return Some(place);
            }
            let host_seq = state.host_hazard(work)?;
            Some(QueuePosition { value: 0, host_seq })
        })
    }
}
