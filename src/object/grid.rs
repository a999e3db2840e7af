//! The state that launches of a kernel over one index space have in common, whatever its arguments are: work-groups and pipelines. A
//! kernel remembers the last one, since most launches are like the one before.

use super::launch::KernelLaunch;
use crate::backend::{Code, Pipeline};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Grids of more dispatches are not remembered: they would hold memory for nothing, as they last.
const MOST_REMEMBERED: usize = 8;

/// The index space of a launch as the application gave it, with what stands for dimensions that it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSpace {
    /// work_dim
    pub dims: u32,
    /// global_work_offset
    pub offset: [usize; 3],
    /// global_work_size
    pub global: [usize; 3],
    /// local_work_size
    pub local: Option<[usize; 3]>,
}

/// The inputs that a grid follows from.
#[derive(Clone)]
pub struct GridInputs {
    /// The loaded kernel.
    pub code: Arc<dyn Code>,
    /// The index space.
    pub space: IndexSpace,
    /// The kernel's arguments in local memory ([`KernelLaunch::local_args`]).
    pub local_args: SmallVec<[(u32, u32); 4]>,
}

/// The work-groups of a launch. None of them is empty.
pub struct Grid {
    /// The inputs that it follows from.
    pub inputs: GridInputs,
    /// get_work_dim
    pub dims: u32,
    /// get_global_offset
    pub offset: [u64; 3],
    /// get_global_size
    pub global: [u64; 3],
    /// get_enqueued_local_size
    pub local: [u32; 3],
    /// get_num_groups, the lower halves
    pub groups: [u32; 3],
    /// The dispatches for the device.
    pub dispatches: SmallVec<[Dispatch; 1]>,
}

/// One dispatch of a launch.
pub struct Dispatch {
    /// The kernel specialised for the local size of these groups.
    pub pipeline: Arc<dyn Pipeline>,
    /// Number of work-groups.
    pub groups: [u32; 3],
    /// First work-group, in groups of the whole launch.
    pub first_group: [u64; 3],
}

impl Grid {
    /// Returns the number of work-items, at most `u64::MAX`.
    pub fn work_items(&self) -> u64 {
        let [x, y, z] = self.global;
        x.saturating_mul(y).saturating_mul(z)
    }

    fn is_of(&self, kernel: &KernelLaunch, space: &IndexSpace) -> bool {
        let inputs = &self.inputs;
        std::ptr::addr_eq(Arc::as_ptr(&inputs.code), Arc::as_ptr(&kernel.code))
            && inputs.space == *space
            && inputs.local_args == kernel.local_args
    }
}

/// The grid of a kernel's last launch on a device.
#[derive(Default)]
pub struct LastGrid(Mutex<Option<Arc<Grid>>>);

impl LastGrid {
    /// Returns the last grid if the launch has the same form of the kernel, the same index space
    /// and the same local memory.
    pub fn find(&self, kernel: &KernelLaunch, space: &IndexSpace) -> Option<Arc<Grid>> {
        let last = self.0.lock();
        let grid = last.as_ref()?;
        grid.is_of(kernel, space).then(|| grid.clone())
    }

    /// Stores a grid as the last one.
    pub fn remember(&self, grid: &Arc<Grid>) {
        if grid.dispatches.len() <= MOST_REMEMBERED {
            let before = self.0.lock().replace(grid.clone());
            // Its pipelines may go with it, and take a while.
            drop(before);
        }
    }
}

/// A copy of a kernel has not been launched.
impl Clone for LastGrid {
    fn clone(&self) -> Self {
        Self::default()
    }
}
