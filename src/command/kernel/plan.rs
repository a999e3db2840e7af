//! A launch that was checked, and the step that makes a command of it: the one place where pipelines are made for launches.

use super::{Run, Space};
use crate::backend::Pipeline;
use crate::cl::cl_command_type;
use crate::command::{Command, Launch, Work};
use crate::error::{ClError, ClResult};
use crate::object::grid::{Dispatch, Grid, GridInputs, IndexSpace};
use crate::object::launch::KernelLaunch;
use smallvec::SmallVec;
use std::sync::Arc;

/// A launch without its pipelines.
pub struct LaunchPlan {
    pub(super) kernel: Box<KernelLaunch>,
    /// CL_COMMAND_*
    pub(super) kind: cl_command_type,
    pub(super) index_space: IndexSpace,
    pub(super) space: Space,
    /// The work-groups along each axis. None: there is nothing to do.
    pub(super) axes: [SmallVec<[Run; 2]>; 3],
    /// Specialisation constants, but for the work-group size.
    pub(super) constants: SmallVec<[(u32, u32); 4]>,
}

impl LaunchPlan {
    /// Returns the command with the pipelines that it needs. Compiles missing ones, which may take
    /// seconds: no lock should be held.
    pub fn make_pipelines(self) -> ClResult<Command> {
        let kind = self.kind;
        let Space {
            offset,
            global,
            local,
            ..
        } = self.space;
        if global.contains(&0) {
            return Ok(Command::new(kind, Work::Marker));
        }
        let dispatches = self.dispatches()?;
        let mut groups = [1; 3];
        for (count, (global, local)) in groups.iter_mut().zip(global.iter().zip(&local)) {
            // Kernels of launches beyond 32 bits count them themselves.
            *count = global.div_ceil(u64::from(*local)) as u32;
        }
        let grid = Grid {
            inputs: GridInputs {
                code: self.kernel.code.clone(),
                space: self.index_space,
                local_args: self.kernel.local_args.clone(),
            },
            dims: self.index_space.dims,
            offset,
            global,
            local,
            groups,
            dispatches,
        };
        let launch = Launch {
            kernel: self.kernel,
            grid: Arc::new(grid),
        };
        Ok(Command::new(kind, Work::Launch(launch)))
    }

    /// Returns the dispatches of all runs of the three axes.
    fn dispatches(&self) -> ClResult<SmallVec<[Dispatch; 1]>> {
        type Made = ([u32; 3], Arc<dyn Pipeline>);
        let mut dispatches = SmallVec::new();
        let mut made: SmallVec<[Made; 2]> = SmallVec::new();
        let [xs, ys, zs] = &self.axes;
        for z in zs {
            for y in ys {
                for x in xs {
                    let size = [x.2, y.2, z.2];
                    let groups = [x.1, y.1, z.1];
                    let pipeline = match made.iter().find(|(known, _)| *known == size) {
                        Some((_, pipeline)) => pipeline.clone(),
                        None => {
                            let pipeline = self
                                .kernel
                                .code
                                .specialise(
                                    size,
                                    &self.constants,
                                    groups.iter().map(|&n| u64::from(n)).product(),
                                )
                                .map_err(ClError::from)?;
                            made.push((size, pipeline.clone()));
                            pipeline
                        }
                    };
                    dispatches.push(Dispatch {
                        pipeline,
                        groups,
                        first_group: [x.0, y.0, z.0],
                    });
                }
            }
        }
        Ok(dispatches)
    }
}
