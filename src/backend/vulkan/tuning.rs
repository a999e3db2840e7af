//! How a device is waited for and copied with.

use crate::backend::caps::DeviceKind;
use crate::quirks::{Quirk, Quirks};
use std::time::Duration;

/// Figures for it.
#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// Copy and fill with a compute shader from this many bytes on; u64::MAX: never.
    pub compute_copy_from: u64,
    /// How long a wait polls before it blocks, in nanoseconds. Polling answers in 12 us where blocking takes 29 (H200), and
    /// in 22 us instead of 43 on lavapipe.
    pub spin_ns: u64,
    /// Polling takes a processor from the threads that do the work, so it offers it to them each time.
    pub spin_yields: bool,
    /// The longest wait in the driver at a time, in nanoseconds; u64::MAX: no limit. On a software driver the timer of a
    /// limited wait costs 12 us.
    pub slice_ns: u64,
    /// Nothing is submitted while a pipeline is made, and pipelines are made one by one.
    pub serial_pipelines: bool,
    /// How long a work-group may run before the device is lost, for the log.
    pub group_limit: Option<Duration>,
}

impl Tuning {
    /// Creates the tuning for a kind of device with those quirks.
    pub fn new(kind: DeviceKind, quirks: Quirks) -> Self {
        let gpu = kind == DeviceKind::Gpu;
        let if_quirk = |quirk: Quirk, value: u64| {
            if quirks.has(quirk) {
                value
            } else {
                u64::MAX
            }
        };
        Self {
            compute_copy_from: if_quirk(Quirk::SlowCopies, 1 << 20),
            spin_ns: if gpu { 200_000 } else { 100_000 },
            spin_yields: !gpu,
            slice_ns: if_quirk(Quirk::LateWakeUps, 1_000_000),
            serial_pipelines: quirks.has(Quirk::SerialPipelines),
            group_limit: quirks
                .has(Quirk::LongGroups)
                .then_some(Duration::from_secs(4)),
        }
    }
}
