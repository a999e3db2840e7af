//! Kernel launches: the checks of clEnqueueNDRangeKernel in the order of the specification, the choice of a local size,
//! and the dispatches that a launch takes. What comes of it is plain data ([`LaunchPlan`]); the pipelines, which may take
//! seconds to make, are made when its caller asks for the command.
//!
//! A launch is more than one dispatch where the global size is no multiple of the local size (the last work-groups of
//! each dimension are smaller: up to 8 regions), and where there are more groups than the device takes at once.

mod plan;
mod shape;

pub use plan::LaunchPlan;
use shape::{choose_local, free_shape, limits, Limits};

use super::{Command, Launch, QueueTarget, Work};
use crate::cl::{self, cl_command_type};
use crate::error::{err, ClResult};
use crate::object::device::Device;
use crate::object::grid::IndexSpace;
use crate::object::kernel::Kernel;
pub use crate::object::launch::KernelLaunch;
use smallvec::SmallVec;
use spirv_lowering::interface::SPEC_GUARD;

/// The index space of a launch, as the application gives it. Slices have `dims` elements or more.
#[derive(Debug, Clone, Copy)]
pub struct NdRange<'a> {
    /// work_dim
    pub dims: u32,
    /// global_work_offset
    pub offset: Option<&'a [usize]>,
    /// global_work_size
    pub global: Option<&'a [usize]>,
    /// local_work_size
    pub local: Option<&'a [usize]>,
}

impl NdRange<'_> {
    /// Returns true if ids or sizes need more than 31 bits. Work-items there run a form of the
    /// kernel of its own ([`crate::compile::Executable::wide`]); in the usual one zero extension
    /// and sign extension of an id are the same.
    pub fn is_wide(&self) -> bool {
        let IndexSpace { offset, global, .. } = self.whole();
        let ends = global
            .iter()
            .zip(&offset)
            .map(|(n, at)| n.saturating_add(*at));
        !global.contains(&0) && ends.max() > Some(1 << 31)
    }

    /// Returns the index space with all three dimensions. No global size is an empty one (OpenCL
    /// 2.1).
    fn whole(&self) -> IndexSpace {
        let dims = self.dims.min(3);
        let global = self.global.map(|_| extend(self.global, dims, 1));
        IndexSpace {
            dims: self.dims,
            offset: extend(self.offset, dims, 0),
            global: global.unwrap_or_default(),
            local: self.local.map(|_| extend(self.local, dims, 1)),
        }
    }
}

/// Returns a snapshot of a kernel for a launch over an index space.
pub fn snapshot(
    target: &QueueTarget,
    kernel: &Kernel,
    range: &NdRange<'_>,
) -> ClResult<Box<KernelLaunch>> {
    kernel.snapshot(&target.device, &target.queue, range.is_wide())
}

/// An index space that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Space {
    offset: [u64; 3],
    global: [u64; 3],
    local: [u32; 3],
    /// The last work-groups reach beyond the global size, and the kernel tests for that.
    guard: bool,
}

fn extend(values: Option<&[usize]>, dims: u32, rest: usize) -> [usize; 3] {
    let mut all = [rest; 3];
    if let Some(values) = values {
        for (to, from) in all.iter_mut().zip(values).take(dims as usize) {
            *to = *from;
        }
    }
    all
}

fn check(range: &NdRange<'_>, limits: &Limits) -> ClResult<Space> {
    if range.dims == 0 || range.dims > 3 {
        return err(cl::CL_INVALID_WORK_DIMENSION, "work_dim is not 1, 2 or 3");
    }
    let IndexSpace {
        offset,
        global,
        local,
        ..
    } = range.whole();
    let ends = global.iter().zip(&offset);
    if ends
        .clone()
        .any(|(size, at)| size.checked_add(*at).is_none())
    {
        return err(
            cl::CL_INVALID_GLOBAL_OFFSET,
            "global offset plus global size exceeds a size_t",
        );
    }
    // Ids of work-items beyond the end must not wrap around 32 bits, the width of those of kernels that are guarded.
    let room = u32::MAX as usize - (1 << 16);
    let guarded = limits.guarded && ends.clone().all(|(size, at)| size + at <= room);
    let global = global.map(|n| n as u64);
    let offset = offset.map(|n| n as u64);
    let divides = |local: [u64; 3]| {
        let mut sizes = global.iter().zip(&local);
        sizes.all(|(size, n)| size.is_multiple_of(*n))
    };
    let local = match local {
        Some(local) => {
            let items = local
                .iter()
                .try_fold(1usize, |product, n| product.checked_mul(*n))
                .unwrap_or(usize::MAX);
            if items == 0 {
                return err(cl::CL_INVALID_WORK_GROUP_SIZE, "a local size is zero");
            }
            if limits.uniform && !divides(local.map(|n| n as u64)) {
                return err(
                    cl::CL_INVALID_WORK_GROUP_SIZE,
                    "the local size does not divide the global size",
                );
            }
            if let Some(required) = limits.required {
                if required.map(|n| n as usize) != local {
                    return err(
                        cl::CL_INVALID_WORK_GROUP_SIZE,
                        "the local size is not the one the kernel requires",
                    );
                }
            }
            if let Some(required) = limits.sub_groups {
                if items.div_ceil(limits.lanes as usize) != required as usize {
                    return err(
                        cl::CL_INVALID_WORK_GROUP_SIZE,
                        "the work-group has not the number of sub-groups that the kernel requires",
                    );
                }
            }
            if local
                .iter()
                .zip(&limits.max_items)
                .any(|(n, max)| *n > *max as usize)
            {
                let code = if items > limits.max_group as usize {
                    cl::CL_INVALID_WORK_GROUP_SIZE
                } else {
                    cl::CL_INVALID_WORK_ITEM_SIZE
                };
                return err(code, "a local size is larger than the device allows");
            }
            if items > limits.max_group as usize {
                return err(
                    cl::CL_INVALID_WORK_GROUP_SIZE,
                    "the work-group is larger than kernel and device allow",
                );
            }
            let local = local.map(|n| n as u32);
            // What is guarded has less than 2^32 work-items in each dimension.
            if guarded && !global.contains(&0) && limits.is_poor(local) {
                free_shape(limits, global.map(|n| n as u32))
            } else {
                local
            }
        }
        None if guarded && !global.contains(&0) => free_shape(limits, global.map(|n| n as u32)),
        None => {
            let local = choose_local(limits, range.dims, global);
            if limits.uniform && !divides(local.map(u64::from)) {
                return err(
                    cl::CL_INVALID_WORK_GROUP_SIZE,
                    "the required local size does not divide the global size",
                );
            }
            local
        }
    };
    Ok(Space {
        offset,
        global,
        local,
        guard: guarded
            && (limits.one_pipeline || !divides(local.map(u64::from)))
            && !global.contains(&0),
    })
}

/// Implements clGetKernelSuggestedLocalWorkSize. Makes the same checks as an enqueue without local
/// size, and the same choice unless the kernel cannot observe it.
pub fn suggested_local_size(
    device: &Device,
    kernel: &KernelLaunch,
    range: &NdRange<'_>,
) -> ClResult<[usize; 3]> {
    if range
        .global
        .is_none_or(|sizes| sizes.iter().take(range.dims as usize).any(|n| *n == 0))
    {
        return err(cl::CL_INVALID_GLOBAL_WORK_SIZE, "the global size is zero");
    }
    let space = check(
        &NdRange {
            local: None,
            ..*range
        },
        &Limits {
            // What is suggested must be accepted when given.
            guarded: false,
            ..limits(device, kernel)
        },
    )?;
    Ok(space.local.map(|n| n as usize))
}

/// A run of work-groups of one size in one dimension: first group, number of groups, size.
type Run = (u64, u32, u32);

/// The dispatches that one launch may take. At 65,535 work-groups each, the least that a device takes along an axis,
/// that many last for longer than anybody waits.
const MOST_DISPATCHES: usize = 1 << 17;

/// Fails with CL_OUT_OF_RESOURCES if a launch takes more dispatches than a queue should ever get,
/// before any of them is created.
fn check_dispatches(axes: &[SmallVec<[Run; 2]>; 3]) -> ClResult {
    let runs = axes.iter().map(|runs| runs.len());
    let count = runs.fold(1, usize::saturating_mul);
    if count > MOST_DISPATCHES {
        return err(
            cl::CL_OUT_OF_RESOURCES,
            format!("the launch takes {count} dispatches, more than the {MOST_DISPATCHES} of one command: fewer, or larger, work-groups would do"),
        );
    }
    Ok(())
}

/// Returns the runs of an axis, within each of which 32 bits number the work-items. `guard`: the
/// last work-group is a full one, too. Where they are more than [`MOST_DISPATCHES`], one more than that,
/// and not all.
fn runs(global: u64, local: u32, max_groups: u32, guard: bool) -> SmallVec<[Run; 2]> {
    let size = u64::from(local);
    let full = if guard {
        global.div_ceil(size)
    } else {
        global / size
    };
    let max_groups = max_groups.min(u32::MAX / local);
    let mut runs = SmallVec::new();
    let mut first = 0;
    while first < full && runs.len() <= MOST_DISPATCHES {
        let count = u32::try_from(full - first).map_or(max_groups, |left| left.min(max_groups));
        runs.push((first, count, local));
        first += u64::from(count);
    }
    if !guard && !global.is_multiple_of(size) {
        runs.push((full, 1, (global % size) as u32));
    }
    runs
}

/// Checks that the memory objects of a launch are of the queue's context, and begin where its
/// device can address them.
fn check_objects(target: &QueueTarget, kernel: &KernelLaunch) -> ClResult {
    for objects in [kernel.buffers.as_slice(), &kernel.images] {
        for (mem, _) in objects {
            target.check(mem)?;
        }
    }
    Ok(())
}

/// Implements clEnqueueNDRangeKernel (and clEnqueueTask, by `kind`) with the arguments that the
/// kernel has now. The caller has checked that kernel and queue are of the same context. Compiles
/// missing pipelines, which may take seconds: no lock should be held.
pub fn launch(
    target: &QueueTarget,
    kernel: &Kernel,
    range: &NdRange<'_>,
    kind: cl_command_type,
) -> ClResult<Command> {
    let launch = snapshot(target, kernel, range)?;
    let last = kernel.last_grid(&target.device);
    if let Some(grid) = last.and_then(|last| last.find(&launch, &range.whole())) {
        check_objects(target, &launch)?;
        let kernel = launch;
        return Ok(Command::new(kind, Work::Launch(Launch { kernel, grid })));
    }
    let command = nd_range(target, launch, range, kind)?.make_pipelines()?;
    if let (Some(last), Work::Launch(launch)) = (last, &command.work) {
        last.remember(&launch.grid);
    }
    Ok(command)
}

/// Returns a launch of a snapshot for the target's device, but for its pipelines; checked as
/// [`launch`] says.
pub fn nd_range(
    target: &QueueTarget,
    kernel: Box<KernelLaunch>,
    range: &NdRange<'_>,
    kind: cl_command_type,
) -> ClResult<LaunchPlan> {
    let limits = limits(&target.device, &kernel);
    let space = check(range, &limits)?;
    if range.is_wide() && !kernel.wide {
        return err(
            cl::CL_INVALID_GLOBAL_WORK_SIZE,
            "the launch exceeds 32 bits, and its kernel was not made for that",
        );
    }
    check_objects(target, &kernel)?;
    let interface = kernel.code.interface();
    let local_memory = kernel
        .local_args
        .iter()
        .try_fold(interface.local_size, |sum, (_, size)| {
            sum.checked_add(*size)
        });
    if local_memory.is_none_or(|bytes| u64::from(bytes) > target.device.caps().local_mem_size) {
        return err(
            cl::CL_OUT_OF_RESOURCES,
            "the kernel needs more local memory than the device has",
        );
    }
    let Space {
        global,
        local,
        guard,
        ..
    } = space;
    let mut constants = kernel.local_args.clone();
    if guard {
        constants.push((SPEC_GUARD, 1));
    }
    let mut axes = [0, 1, 2].map(|_| SmallVec::<[Run; 2]>::new());
    let empty = global.contains(&0);
    if !empty {
        for (axis, ((global, local), max)) in axes
            .iter_mut()
            .zip(global.iter().zip(&local).zip(&limits.max_groups))
        {
            *axis = runs(*global, *local, *max, guard);
        }
    }
    check_dispatches(&axes)?;
    Ok(LaunchPlan {
        kernel,
        kind,
        index_space: range.whole(),
        space,
        axes,
        constants,
    })
}

/// Returns the index space of clEnqueueTask.
pub fn task() -> NdRange<'static> {
    NdRange {
        dims: 1,
        offset: None,
        global: Some(&[1]),
        local: Some(&[1]),
    }
}

#[cfg(test)]
mod tests {
    use super::shape::tests::gpu;
    use super::*;

    #[test]
    fn poor_work_groups_are_replaced() {
        let of = |limits: &Limits, global: &[usize], local: &[usize]| {
            let range = NdRange {
                dims: global.len() as u32,
                offset: None,
                global: Some(global),
                local: Some(local),
            };
            let space = check(&range, limits).ok().unwrap();
            (space.local, space.guard)
        };
        let free = Limits {
            guarded: true,
            ..gpu(false)
        };
        let shown = gpu(false);
        assert_eq!(of(&shown, &[1024, 3], &[1, 1]), ([1, 1, 1], false));
        assert_eq!(of(&free, &[1024, 3], &[1, 1]), ([32, 1, 1], false));
        let waits = Limits {
            waits: true,
            guarded: true,
            ..gpu(false)
        };
        assert_eq!(of(&waits, &[1024, 3], &[1, 1]), ([1, 1, 1], false));
        assert_eq!(of(&free, &[1024, 16], &[16, 16]), ([16, 16, 1], false));
        assert_eq!(of(&free, &[1000, 1], &[10, 1]), ([256, 1, 1], true));
        assert_eq!(of(&free, &[1, 1024], &[1, 1024]), ([1, 1024, 1], false));
        let rows = Limits {
            rows: true,
            subgroup: 8,
            ..gpu(false)
        };
        assert_eq!(of(&rows, &[1, 1024], &[1, 1024]), ([1, 1024, 1], false));
        let rows = Limits {
            guarded: true,
            ..rows
        };
        assert_eq!(of(&rows, &[1, 1024], &[1, 1024]), ([1, 64, 1], false));
        assert_eq!(of(&rows, &[1024, 1], &[512, 1]), ([512, 1, 1], false));
        let many = Limits {
            few_sizes: true,
            ..rows
        };
        assert_eq!(of(&many, &[1024, 1], &[512, 1]), ([256, 1, 1], false));
        let costly = Limits {
            few_sizes: true,
            one_pipeline: true,
            ..free
        };
        for (global, local) in [
            (1024, 512),
            (1024, 64),
            (1000, 8),
            (256, 256),
            (1, 1),
            (300, 30),
        ] {
            assert_eq!(of(&costly, &[global], &[local]), ([256, 1, 1], true));
        }
    }

    #[test]
    fn errors_of_the_index_space() {
        let code = |range: NdRange<'_>, uniform| check(&range, &gpu(uniform)).err().map(|e| e.code);
        let base = NdRange {
            dims: 1,
            offset: None,
            global: Some(&[64]),
            local: Some(&[16]),
        };
        assert_eq!(code(base, true), None);
        assert_eq!(
            code(NdRange { dims: 0, ..base }, true),
            Some(cl::CL_INVALID_WORK_DIMENSION)
        );
        assert_eq!(
            code(NdRange { dims: 4, ..base }, true),
            Some(cl::CL_INVALID_WORK_DIMENSION)
        );
        assert_eq!(
            code(
                NdRange {
                    offset: Some(&[usize::MAX]),
                    ..base
                },
                true
            ),
            Some(cl::CL_INVALID_GLOBAL_OFFSET)
        );
        assert_eq!(
            code(
                NdRange {
                    local: Some(&[0]),
                    ..base
                },
                true
            ),
            Some(cl::CL_INVALID_WORK_GROUP_SIZE)
        );
        assert_eq!(
            code(
                NdRange {
                    local: Some(&[48]),
                    ..base
                },
                true
            ),
            Some(cl::CL_INVALID_WORK_GROUP_SIZE)
        );
        assert_eq!(
            code(
                NdRange {
                    local: Some(&[48]),
                    ..base
                },
                false
            ),
            None
        );
        assert_eq!(
            code(
                NdRange {
                    global: Some(&[4096]),
                    local: Some(&[2048]),
                    ..base
                },
                true
            ),
            Some(cl::CL_INVALID_WORK_GROUP_SIZE)
        );
        let deep = NdRange {
            dims: 3,
            offset: None,
            global: Some(&[1, 1, 128]),
            local: Some(&[1, 1, 128]),
        };
        assert_eq!(code(deep, true), Some(cl::CL_INVALID_WORK_ITEM_SIZE));
        assert_eq!(
            check(
                &NdRange {
                    global: None,
                    ..base
                },
                &gpu(true)
            )
            .ok()
            .map(|s| s.global),
            Some([0; 3])
        );
    }

    #[test]
    fn launches_of_too_many_dispatches_are_refused() {
        let axis = |groups| runs(groups, 1, 65535, false);
        let one = || axis(1);
        assert!(check_dispatches(&[axis(u32::MAX.into()), one(), one()]).is_ok());
        assert!(check_dispatches(&[axis(1 << 20), axis(1 << 20), one()]).is_ok());
        let code = |axes| check_dispatches(&axes).err().map(|e| e.code);
        let refused = Some(cl::CL_OUT_OF_RESOURCES);
        assert_eq!(
            code([axis(u32::MAX.into()), one(), axis(u32::MAX.into())]),
            refused
        );
    }

    #[test]
    fn runs_cover_every_group() {
        assert_eq!(
            runs(100, 16, 65535, false).as_slice(),
            &[(0, 6, 16), (6, 1, 4)]
        );
        assert_eq!(runs(10, 16, 65535, false).as_slice(), &[(0, 1, 10)]);
        assert_eq!(
            runs(10, 1, 4, false).as_slice(),
            &[(0, 4, 1), (4, 4, 1), (8, 2, 1)]
        );
    }

    #[test]
    fn runs_number_their_work_items_in_32_bits() {
        // 2^32 groups of 1024 and some work-items: 2^22 - 1 groups are the most with less than 2^32 work-items.
        let all = runs((1 << 42) + 5, 1024, u32::MAX, false);
        let most = (1 << 22) - 1;
        assert_eq!(all[0], (0, most, 1024));
        assert_eq!(all[1], (u64::from(most), most, 1024));
        assert_eq!(all.last(), Some(&(1 << 32, 1, 5)));
        let mut next = 0;
        for &(first, count, size) in &all {
            assert_eq!(first, next);
            assert!(u64::from(count) * u64::from(size) <= u32::MAX.into());
            next += u64::from(count);
        }
        assert_eq!(next, (1 << 32) + 1);
        // One group beyond 32 bits.
        let all = runs(1 << 32, 1, u32::MAX, false);
        assert_eq!(all.as_slice(), &[(0, u32::MAX, 1), (u32::MAX.into(), 1, 1)]);
        // Too many dispatches are not even written down.
        let all = runs(u64::MAX, 1, 65535, false);
        assert_eq!(all.len(), MOST_DISPATCHES + 1);
        let one = || runs(1, 1, 65535, false);
        let code = check_dispatches(&[all, one(), one()]).err().map(|e| e.code);
        assert_eq!(code, Some(cl::CL_OUT_OF_RESOURCES));
    }

    #[test]
    fn wide_ranges() {
        let of = |offset: &[usize], global: &[usize]| {
            let range = NdRange {
                dims: global.len() as u32,
                offset: Some(offset),
                global: Some(global),
                local: None,
            };
            (
                range.is_wide(),
                check(&range, &gpu(false))
                    .map_err(|e| e.code)
                    .map(|s| s.global[0]),
            )
        };
        let most = 1 << 31;
        assert_eq!(of(&[0], &[most]), (false, Ok(most as u64)));
        assert_eq!(of(&[1], &[most]), (true, Ok(most as u64)));
        assert_eq!(of(&[0, most], &[1, 1]), (true, Ok(1)));
        assert_eq!(of(&[0], &[most + 1]), (true, Ok(most as u64 + 1)));
        assert_eq!(of(&[usize::MAX - 7], &[7]), (true, Ok(7)));
        assert_eq!(of(&[most + 1], &[0]), (false, Ok(0)));
        let refused = Err(cl::CL_INVALID_GLOBAL_OFFSET);
        assert_eq!(of(&[usize::MAX - 7], &[8]), (true, refused));
        // Kernels that cannot tell how they are grouped are not guarded there.
        let limits = Limits {
            guarded: true,
            ..gpu(false)
        };
        let range = NdRange {
            dims: 1,
            offset: None,
            global: Some(&[(1 << 33) + 1]),
            local: None,
        };
        let space = check(&range, &limits).ok().unwrap();
        assert!(!space.guard);
    }
}
