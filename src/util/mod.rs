//! Leaf utilities: options from the environment, the log.

pub mod config;
pub mod copy;
pub mod log;
