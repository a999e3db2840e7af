//! What can go wrong in a run.

use crate::ir::types::Space;

/// What an access to memory may do wrong.
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
    /// The address is not as aligned as the access claims.
    #[error("{address:#x} is not aligned to {align}")]
    Unaligned {
        /// Address of the first byte.
        address: u64,
        /// Bytes.
        align: u64,
    },
    /// The memory is constant.
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
        /// Elements.
        len: u64,
    },
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More steps than allowed: an endless loop, presumably.
    #[error("it does not end within the steps allowed")]
    Steps,
    /// A wrong access.
    #[error("{place}: {fault}{}", space.map_or(String::new(), |s| format!(" ({s:?})").to_lowercase()))]
    Access {
        /// What was wrong.
        fault: Fault,
        /// The memory.
        space: Option<Space>,
        /// Function and instruction.
        place: String,
    },
    /// In a strict run: the result would depend on an unknown value.
    #[error("{place}: {what} is unknown")]
    Unknown {
        /// What depends on it.
        what: &'static str,
        /// Function and instruction.
        place: String,
    },
    /// Work-items wait at different places, or some have ended.
    #[error("work-items do not come together: {0}")]
    Divergence(String),
    /// Control came where it never should.
    #[error("{0}: an unreachable place was reached")]
    Unreachable(String),
    /// Loops have not ended after as many dispatches as there may be.
    #[error("loops go on after the last dispatch")]
    Rounds,
    /// Nothing that is interpreted.
    #[error("{0} is not interpreted")]
    NotInterpreted(String),
    /// Arguments or code that make no sense.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// An [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }
}
