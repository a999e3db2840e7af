//! The meaning of a program: its syntax tree carried out, work-item for work-item between barriers. It knows nothing of
//! clang, of SPIR-V or of KIR, and refuses whatever the standard leaves undefined.

mod code;
mod machine;
mod memory;
mod numbers;

pub use machine::{run, Results};

/// The reason why a program has no defined result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undefined(pub &'static str);
