//! Leaf utilities: options from the environment, the log, files and their descriptors, copies between threads, the end of the process.

pub mod address;
pub mod config;
pub mod copy;
pub mod fds;
pub mod files;
pub mod leaving;
pub mod log;
pub mod ranges;

/// Processors that this process may use, asked once.
pub fn cores() -> usize {
    static CORES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// There are cores to spare for helpers and for waiting actively.
pub fn many_cores() -> bool {
    cores() >= 4
}
