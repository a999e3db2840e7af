//! The three ways in which lowering can fail. Only the last one is a defect of this crate.

use thiserror::Error;

/// The reason why a module could not be read, linked or lowered.
#[derive(Debug, Clone, Error)]
pub enum LowerError {
    /// The SPIR-V module (or textual KIR) breaks the rules of its own format. Becomes CL_INVALID_BINARY
    /// or CL_BUILD_PROGRAM_FAILURE.
    #[error("invalid SPIR-V{}: {what}", in_function(.function))]
    InvalidInput {
        /// The function in which it was found, where known.
        function: Option<String>,
        /// Instruction and reason.
        what: String,
    },
    /// Correct input that uses a feature which this compiler or this target does not have.
    #[error("unsupported{}: {what}", in_function(.function))]
    Unsupported {
        /// The function in which it was found, where known.
        function: Option<String>,
        /// Instruction and reason.
        what: String,
    },
    /// A name that no linked module defines.
    #[error("undefined symbol `{name}`{}", in_function(.function))]
    Undefined {
        /// The function that refers to it, where known.
        function: Option<String>,
        /// The linkage name.
        name: String,
    },
    /// A broken invariant of the compiler (for example a verifier failure after a pass).
    #[error("internal compiler error{}: {what}", in_function(.function))]
    Internal {
        /// The function in which it was found, where known.
        function: Option<String>,
        /// The failure, with the pass and the entity.
        what: String,
    },
}

fn in_function(function: &Option<String>) -> String {
    function
        .as_ref()
        .map(|f| format!(" in function `{f}`"))
        .unwrap_or_default()
}

impl LowerError {
    /// Creates an error for malformed input without a known function.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::InvalidInput {
            function: None,
            what: what.into(),
        }
    }
    /// Creates an error for well-formed input that cannot be lowered.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported {
            function: None,
            what: what.into(),
        }
    }
    /// Creates an error for a defect of this crate.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::Internal {
            function: None,
            what: what.into(),
        }
    }
    /// Adds the function name, unless one is there already.
    pub fn in_function(mut self, name: &str) -> Self {
        let (Self::InvalidInput { function, .. }
        | Self::Unsupported { function, .. }
        | Self::Undefined { function, .. }
        | Self::Internal { function, .. }) = &mut self;
        function.get_or_insert_with(|| name.to_owned());
        self
    }
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = LowerError> = std::result::Result<T, E>;
