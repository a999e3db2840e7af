//! The errors of a run.

use crate::ir::types::Space;

/// A wrong access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No variable or buffer has all of the bytes.
    #[error("{size} bytes at {address:#x} are outside of every variable")]
    Outside {
        /// Address of the first byte.
        address: u64,
        /// Number of bytes.
        size: u64,
    },
    /// The address is less aligned than the access claims.
    #[error("{address:#x} is not aligned to {align}")]
    Unaligned {
        /// Address of the first byte.
        address: u64,
        /// The alignment claimed, in bytes.
        align: u64,
    },
    /// The access writes constant memory.
    #[error("{address:#x} is read-only")]
    ReadOnly {
        /// Address of the first byte.
        address: u64,
    },
    /// An index is beyond the end of an array.
    #[error("index {index} is outside of an array of {len}")]
    Index {
        /// The index.
        index: u64,
        /// The number of elements.
        len: u64,
    },
}

/// The reason why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The run took more steps than allowed, so it presumably does not end.
    #[error("it does not end within the steps allowed")]
    Steps,
    /// A wrong access.
    #[error("{place}: {fault}{}", space.map_or(String::new(), |s| format!(" ({s:?})").to_lowercase()))]
    Access {
        /// The fault.
        fault: Fault,
        /// The address space.
        space: Option<Space>,
        /// The function and instruction.
        place: String,
    },
    /// In a strict run: the result would depend on an unknown value.
    #[error("{place}: {what} is unknown")]
    Unknown {
        /// The use of the value.
        what: &'static str,
        /// The function and instruction.
        place: String,
    },
    /// Work-items wait at different places, or some have ended while others wait.
    #[error("work-items do not come together: {0}")]
    Divergence(String),
    /// A work-item reached an `unreachable` terminator.
    #[error("{0}: an unreachable place was reached")]
    Unreachable(String),
    /// The module uses something that the interpreter does not support.
    #[error("{0} is not interpreted")]
    NotInterpreted(String),
    /// The arguments or the code are invalid.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Creates an [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }
}
