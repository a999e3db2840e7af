//! Recorded commands that are enqueued together, as one command: what a finalized command buffer runs.

use super::Command;
use crate::backend::Sequence;
use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Commands that run one after the other, as often as they are enqueued.
pub struct Replay {
    /// The commands, each after those that it waits for.
    pub commands: Vec<Arc<Command>>,
    /// The form that the queue has given them.
    pub prepared: OnceLock<Prepared>,
}

impl Replay {
    /// Creates a replay that is yet to be prepared.
    pub fn new(commands: Vec<Arc<Command>>) -> Self {
        Self {
            commands,
            prepared: OnceLock::new(),
        }
    }
}

/// The parts of a replay, in their order.
#[derive(Default)]
pub struct Prepared {
    /// The parts.
    pub parts: Vec<ReplayPart>,
    /// Memory that the recorded ones use.
    pub kept: Option<Arc<dyn Any + Send + Sync>>,
}

/// A part of a replay.
pub enum ReplayPart {
    /// Commands that are recorded.
    Recorded {
        /// Which.
        commands: Range<usize>,
        /// The operations.
        sequence: Arc<dyn Sequence>,
    },
    /// A command that is encoded each time.
    Encoded(usize),
}

impl ReplayPart {
    /// Returns the commands.
    pub fn commands(&self) -> Range<usize> {
        match self {
            Self::Recorded { commands, .. } => commands.clone(),
            Self::Encoded(at) => *at..*at + 1,
        }
    }
}
