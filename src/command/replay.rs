//! Recorded commands that are enqueued together, as one command: what a finalized command buffer runs.

use super::access::SourceCopy;
use super::{Command, Work};
use crate::backend::Sequence;
use crate::util::lock::{rank, Mutex};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Commands that run one after the other, as often as they are enqueued.
pub struct Replay {
    /// The commands, each after those that it waits for.
    pub commands: Vec<Arc<Command>>,
    /// Set if kernels are shown images beside buffers, which are those of one queue: so is the replay.
    pub of_one_queue: bool,
    /// The memory that the thread which encodes them reads.
    pub source_copy: SourceCopy,
    /// The form that the queue has given them.
    pub parts: OnceLock<Vec<ReplayPart>>,
    /// Commands in a recorded part at most: with fewer, less is recorded again after an update.
    pub longest: usize,
    /// The replay before an update, whose parts may be those of this one, until it is prepared.
    pub before: Mutex<Option<Arc<Replay>>, { rank::REPLAY }>,
}

impl Replay {
    /// Creates a replay that is yet to be prepared.
    pub fn new(commands: Vec<Arc<Command>>, longest: usize, before: Option<Arc<Self>>) -> Self {
        let shows = |command: &Arc<Command>| match &command.work {
            Work::Launch(launch) => launch.kernel.shows_rows,
            _ => false,
        };
        let sources = commands.iter().map(|command| command.work.source_copy());
        Self {
            source_copy: sources.max().unwrap_or(SourceCopy::None),
            of_one_queue: commands.iter().any(shows),
            commands,
            parts: OnceLock::new(),
            longest,
            before: Mutex::new(before),
        }
    }

    /// Returns the sequence of a part with exactly these commands, if it is recorded.
    pub fn recorded(&self, commands: &[Arc<Command>], at: usize) -> Option<&Arc<dyn Sequence>> {
        let range = at..at + commands.len();
        let part = self.parts.get()?.iter().find_map(|part| match part {
            ReplayPart::Recorded {
                commands, sequence, ..
            } if *commands == range => Some(sequence),
            _ => None,
        })?;
        let mut both = self.commands.get(range)?.iter().zip(commands);
        both.all(|(one, other)| Arc::ptr_eq(one, other))
            .then_some(part)
    }
}

/// A part of a replay.
pub enum ReplayPart {
    /// Commands that are recorded.
    Recorded {
        /// Their places.
        commands: Range<usize>,
        /// The operations.
        sequence: Arc<dyn Sequence>,
        /// Some may touch memory of the host that is no memory object.
        follows: bool,
    },
    /// A command that is encoded each time.
    Encoded(usize),
}

impl ReplayPart {
    /// Returns the places of the commands.
    pub fn commands(&self) -> Range<usize> {
        match self {
            Self::Recorded { commands, .. } => commands.clone(),
            Self::Encoded(at) => *at..*at + 1,
        }
    }
}
