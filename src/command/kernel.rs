//! Kernel launches: the checks of clEnqueueNDRangeKernel in the order of the specification, the choice of a local size,
//! and the dispatches that a launch takes.
//!
//! A launch is more than one dispatch where the global size is no multiple of the local size (the last work-groups of
//! each dimension are smaller: up to 8 regions), and where there are more groups than the device takes at once.

use super::{Command, Launch, Part, Target, Work};
use crate::backend::caps::DeviceKind;
use crate::backend::Pipeline;
use crate::cl::{self, cl_command_type};
use crate::error::{err, ClError, ClResult};
use crate::object::device::Device;
pub use crate::object::launch::KernelLaunch;
use smallvec::SmallVec;
use spirv_lowering::interface::{RESUME_ROUNDS, SPEC_GUARD, SPEC_PART, SPEC_RESUME};
use std::sync::Arc;

/// The index space of a launch, as the application gives it. Slices have `dims` elements.
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

/// An index space that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Space {
    offset: [u32; 3],
    global: [u32; 3],
    local: [u32; 3],
    /// The last work-groups reach beyond the global size, and the kernel tests for that.
    guard: bool,
}

/// Work-items of a work-group whose size is left to us, at most.
const MOST_ITEMS: u32 = 256;
/// Work-groups of fewer work-items cost more than what they do.
const FEW_ITEMS: u32 = 64;
/// A kernel that cannot tell how it is grouped is compiled for so many sizes of the application's choice.
const MANY_SIZES: usize = 8;

/// What the kernel and the device together allow.
struct Limits {
    max_group: u32,
    max_items: [u32; 3],
    max_groups: [u32; 3],
    subgroup: u32,
    required: Option<[u32; 3]>,
    /// The number of sub-groups that the kernel requires.
    sub_groups: Option<u32>,
    uniform: bool,
    /// The kernel cannot tell how its work-items are grouped.
    guarded: bool,
    /// Sub-groups are made of the rows of a work-group (software drivers), so that short rows leave lanes empty.
    rows: bool,
    /// The kernel has been compiled for many work-group sizes, or takes long to compile for one.
    few_sizes: bool,
    /// Launches of all sizes have one pipeline, with the test for the end of the ND-range.
    one_pipeline: bool,
}

impl Limits {
    /// A work-group of the application's choice that wastes too much of the device, where there is a choice.
    fn is_poor(&self, local: [u32; 3]) -> bool {
        let items = local.iter().product::<u32>();
        let row = if self.rows { local[0] } else { items };
        self.few_sizes || items < FEW_ITEMS || !row.is_multiple_of(self.subgroup)
    }
}

fn limits(device: &Device, kernel: &KernelLaunch) -> Limits {
    let caps = device.caps();
    let costly = kernel.code.costly();
    let software = caps.kind == DeviceKind::Cpu;
    let parts = kernel.code.interface().parts.max(1) as usize;
    Limits {
        max_group: kernel
            .code
            .max_work_group_size()
            .min(caps.max_work_group_size)
            .max(1),
        max_items: caps.max_work_item_sizes.map(|n| n.max(1)),
        max_groups: caps.max_group_count.map(|n| n.max(1)),
        subgroup: caps.subgroup_size.max(1),
        required: kernel.code.interface().attributes.required_work_group_size,
        sub_groups: kernel.code.interface().attributes.required_sub_groups,
        uniform: kernel.uniform,
        guarded: kernel.code.interface().guarded,
        rows: software,
        few_sizes: costly || kernel.code.specialised() >= MANY_SIZES * parts,
        // The test makes software drivers' code slower and longer.
        one_pipeline: costly && !software,
    }
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
    let offset = extend(range.offset, range.dims, 0);
    let mut global = extend(range.global, range.dims, 1);
    if range.global.is_none() {
        // As if empty (OpenCL 2.1).
        global = [0; 3];
    }
    // Ids are 32 bits wide in kernels.
    let most = u32::MAX as usize;
    if global
        .iter()
        .zip(&offset)
        .any(|(size, offset)| size.checked_add(*offset).is_none_or(|end| end > most))
    {
        let code = if offset == [0; 3] {
            cl::CL_INVALID_GLOBAL_WORK_SIZE
        } else {
            cl::CL_INVALID_GLOBAL_OFFSET
        };
        return err(code, "global offset plus global size exceeds 32 bits");
    }
    let global = global.map(|n| n as u32);
    let offset = offset.map(|n| n as u32);
    // Ids of work-items beyond the end must not wrap around.
    let room = most - (1 << 16);
    let guarded = limits.guarded
        && global
            .iter()
            .zip(&offset)
            .all(|(size, offset)| *size as usize + *offset as usize <= room);
    let local = match range.local {
        Some(_) => {
            let local = extend(range.local, range.dims, 1);
            let items = local
                .iter()
                .try_fold(1usize, |product, n| product.checked_mul(*n))
                .unwrap_or(usize::MAX);
            if items == 0 {
                return err(cl::CL_INVALID_WORK_GROUP_SIZE, "a local size is zero");
            }
            let divides = global
                .iter()
                .zip(&local)
                .all(|(size, n)| (*size as usize).is_multiple_of(*n));
            if limits.uniform && !divides {
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
                if items.div_ceil(limits.subgroup as usize) != required as usize {
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
            if guarded && !global.contains(&0) && limits.is_poor(local) {
                free_shape(limits, global)
            } else {
                local
            }
        }
        None if guarded && !global.contains(&0) => free_shape(limits, global),
        None => {
            let local = choose_local(limits, range.dims, global);
            let divides = global
                .iter()
                .zip(&local)
                .all(|(size, n)| size.is_multiple_of(*n));
            if limits.uniform && !divides {
                return err(
                    cl::CL_INVALID_WORK_GROUP_SIZE,
                    "the required local size does not divide the global size",
                );
            }
            local
        }
    };
    let divides = global
        .iter()
        .zip(&local)
        .all(|(size, n)| size.is_multiple_of(*n));
    Ok(Space {
        offset,
        global,
        local,
        guard: guarded && (limits.one_pipeline || !divides) && !global.contains(&0),
    })
}

/// The largest divisor of `n` up to `limit`; multiples of `unit` come first.
fn divisor(n: u32, limit: u32, unit: u32) -> u32 {
    let limit = limit.min(n).max(1);
    let multiple = (1..=limit / unit)
        .rev()
        .map(|k| k * unit)
        .find(|d| n.is_multiple_of(*d));
    multiple
        .or_else(|| (1..=limit).rev().find(|d| n.is_multiple_of(*d)))
        .unwrap_or(1)
}

/// The local size when the application gives none.
fn choose_local(limits: &Limits, dims: u32, global: [u32; 3]) -> [u32; 3] {
    if let Some(required) = limits.required {
        return required;
    }
    if let Some(count) = limits.sub_groups {
        let items = count.saturating_mul(limits.subgroup);
        return [items.clamp(1, limits.max_group), 1, 1];
    }
    let [gx, gy, gz] = global.map(|n| n.max(1));
    let [mx, my, mz] = limits.max_items;
    let most = limits.max_group.min(MOST_ITEMS);
    let unit = limits.subgroup.min(most);
    // Rows of one or two sub-groups leave room for neighbours in y; one-dimensional groups take all in x.
    let across = if dims > 1 && gy > 1 {
        (2 * unit).max(32).min(most)
    } else {
        most
    };
    let mut x = divisor(gx, across.min(mx), unit);
    let mut y = divisor(gy, (most / x).min(my), 1);
    let z = divisor(gz, (most / (x * y)).min(mz), 1);
    if y == 1 && z == 1 {
        x = divisor(gx, most.min(mx), unit);
    }
    if !limits.uniform && x * y * z < unit {
        // Sizes without good divisors: full groups and a smaller last one.
        x = gx.min(across).min(mx);
        y = if gy > 1 {
            gy.min((most / x).max(1)).min(my)
        } else {
            1
        };
        return [x, y, z.min((most / (x * y)).max(1))];
    }
    [x, y, z]
}

/// The work-group of a kernel that cannot tell: one of a few shapes, so that it has few pipelines, the largest that does
/// not waste much.
fn free_shape(limits: &Limits, global: [u32; 3]) -> [u32; 3] {
    if global == [1; 3] && !limits.one_pipeline {
        // No test for the end of the ND-range: llvmpipe loads from addresses that all work-items share at once, unless it
        // stands under a condition, where each component is a loop over the lanes, and takes long to compile.
        return global;
    }
    let most = limits.max_group.clamp(1, MOST_ITEMS);
    let unit = limits.subgroup.clamp(1, most);
    let row = (2 * unit).max(32).min(most);
    let [gx, gy, gz] = global;
    let plane = if gy > 1 || gz > 1 { row } else { most };
    let shapes = [
        [plane, most / plane, 1],
        [8, 8, 1],
        [unit, 1, 1],
        [1, 64, 1],
        [1, 1, 64],
    ];
    let fits = |shape: &[u32; 3]| {
        shape.iter().product::<u32>() <= most
            && shape.iter().zip(&limits.max_items).all(|(n, max)| n <= max)
    };
    let volume = |shape: &[u32; 3]| -> u64 {
        let sides = [gx, gy, gz].into_iter().zip(shape);
        // Sizes of 32 bits, of which two may be rounded up to more.
        sides.fold(1u64, |volume, (size, n)| {
            volume.saturating_mul(u64::from(size.div_ceil(*n)) * u64::from(*n))
        })
    };
    let possible = || shapes.iter().filter(|shape| fits(shape));
    if limits.one_pipeline && gy == 1 && gz == 1 {
        return possible().next().copied().unwrap_or([1, 1, 1]);
    }
    let least = possible().map(volume).min().unwrap_or(0);
    possible()
        .find(|shape| volume(shape) <= least.saturating_add(least / 4))
        .copied()
        .unwrap_or([1, 1, 1])
}

/// clGetKernelSuggestedLocalWorkSize. Makes the same checks as an enqueue without local size, and the same choice unless
/// the kernel cannot tell.
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
type Run = (u32, u32, u32);

/// The runs of an axis. `guard`: the last work-group is a full one, too.
fn runs(global: u32, local: u32, max_groups: u32, guard: bool) -> SmallVec<[Run; 2]> {
    let full = if guard {
        global.div_ceil(local)
    } else {
        global / local
    };
    let mut runs = SmallVec::new();
    let mut first = 0;
    while first < full {
        let count = (full - first).min(max_groups);
        runs.push((first, count, local));
        first += count;
    }
    if !guard && !global.is_multiple_of(local) {
        runs.push((full, 1, global % local));
    }
    runs
}

/// How many dispatches shall follow the first one of a launch for the sake of long loops. Each that is not needed costs
/// a little, and each one needed takes its time for every work-item; large launches cannot have such loops and end soon.
fn resumes(global: &[u32; 3]) -> u32 {
    let items = global
        .iter()
        .fold(1u64, |all, &n| all.saturating_mul(n.into()));
    match items {
        0..=64 => RESUME_ROUNDS.min(40),
        65..=1024 => 16,
        1025..=16384 => 4,
        _ => 0,
    }
}

/// Adds the dispatches of all runs of the three axes, with pipelines made with these constants.
fn dispatches(
    kernel: &KernelLaunch,
    [xs, ys, zs]: &[SmallVec<[Run; 2]>; 3],
    constants: &[(u32, u32)],
    step: u32,
    parts: &mut SmallVec<[Part; 1]>,
) -> ClResult {
    type Made = ([u32; 3], Arc<dyn Pipeline>);
    let mut made: SmallVec<[Made; 2]> = SmallVec::new();
    for z in zs {
        for y in ys {
            for x in xs {
                let size = [x.2, y.2, z.2];
                let pipeline = match made.iter().find(|(known, _)| *known == size) {
                    Some((_, pipeline)) => pipeline.clone(),
                    None => {
                        let pipeline = kernel
                            .code
                            .specialise(size, constants)
                            .map_err(ClError::from)?;
                        made.push((size, pipeline.clone()));
                        pipeline
                    }
                };
                parts.push(Part {
                    pipeline,
                    groups: [x.1, y.1, z.1],
                    first_group: [x.0, y.0, z.0],
                    step,
                });
            }
        }
    }
    Ok(())
}

/// clEnqueueNDRangeKernel (and clEnqueueTask, by `kind`). The caller has checked that kernel and queue are of the same
/// context; `kernel` is a snapshot for the target's device.
pub fn nd_range(
    target: &Target,
    kernel: KernelLaunch,
    range: &NdRange<'_>,
    kind: cl_command_type,
) -> ClResult<Command> {
    let limits = limits(&target.device, &kernel);
    let space = check(range, &limits)?;
    for (mem, _) in kernel.buffers.iter().chain(&kernel.images) {
        target.check(mem)?;
    }
    let local_memory = kernel
        .local_args
        .iter()
        .try_fold(kernel.code.interface().local_size, |sum, (_, size)| {
            sum.checked_add(*size)
        });
    if local_memory.is_none_or(|bytes| u64::from(bytes) > target.device.caps().local_mem_size) {
        return err(
            cl::CL_OUT_OF_RESOURCES,
            "the kernel needs more local memory than the device has",
        );
    }
    if space.global.contains(&0) {
        return Ok(Command {
            kind,
            work: Work::Marker,
        });
    }
    let Space {
        offset,
        global,
        local,
        guard,
    } = space;
    let mut constants = kernel.local_args.clone();
    if guard {
        constants.push((SPEC_GUARD, 1));
    }
    let mut axes = [0, 1, 2].map(|_| SmallVec::<[Run; 2]>::new());
    for (axis, ((global, local), max)) in axes
        .iter_mut()
        .zip(global.iter().zip(&local).zip(&limits.max_groups))
    {
        *axis = runs(*global, *local, *max, guard);
    }
    let single = axes.iter().all(|runs| runs.len() == 1);
    let resumes = match kernel.code.interface().resume_bytes {
        0 => None,
        _ => Some(if single { resumes(&global) } else { 0 }),
    };
    constants.extend(resumes.map(|count| {
        let alone = global.iter().all(|&n| n == 1);
        (SPEC_RESUME, u32::from(count > 0) << u32::from(alone))
    }));
    let mut parts = SmallVec::new();
    match kernel.code.interface().parts {
        0 | 1 => dispatches(&kernel, &axes, &constants, 0, &mut parts)?,
        steps => {
            let fixed = constants.len();
            for step in 0..steps {
                constants.truncate(fixed);
                constants.push((SPEC_PART, step));
                dispatches(&kernel, &axes, &constants, step, &mut parts)?;
            }
        }
    }
    let mut groups = [1; 3];
    for (count, (global, local)) in groups.iter_mut().zip(global.iter().zip(&local)) {
        *count = global.div_ceil(*local);
    }
    let launch = Launch {
        kernel,
        dims: range.dims,
        offset,
        global,
        local,
        groups,
        parts,
        resumes: resumes.unwrap_or(0),
    };
    Ok(Command {
        kind,
        work: Work::Launch(Box::new(launch)),
    })
}

/// The index space of clEnqueueTask.
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
    use super::*;

    fn gpu(uniform: bool) -> Limits {
        Limits {
            max_group: 1024,
            max_items: [1024, 1024, 64],
            max_groups: [65535; 3],
            subgroup: 32,
            sub_groups: None,
            guarded: false,
            rows: false,
            few_sizes: false,
            one_pipeline: false,
            required: None,
            uniform,
        }
    }

    #[test]
    fn free_shapes_waste_little() {
        let free = Limits {
            guarded: true,
            ..gpu(true)
        };
        for global in [
            [2, 1, 1],
            [13, 9, 1],
            [1021, 1, 1],
            [4099, 1, 1],
            [1, 997, 1],
            [1, 1, 97],
            [1547, 833, 1],
            [u32::MAX - 70000, 1, 1],
        ] {
            let shape = free_shape(&free, global);
            let items: u64 = shape.iter().map(|n| u64::from(*n)).product();
            assert!((32..=256).contains(&items), "{global:?}: {shape:?}");
        }
        assert_eq!(free_shape(&free, [1 << 20, 1, 1]), [256, 1, 1]);
        assert_eq!(free_shape(&free, [1024, 1024, 1]), [64, 4, 1]);
        assert_eq!(free_shape(&free, [1, 997, 1]), [1, 64, 1]);
        assert_eq!(free_shape(&free, [1, 1, 1]), [1, 1, 1]);
        let range = |global: &'static [usize]| NdRange {
            dims: 1,
            offset: None,
            global: Some(global),
            local: None,
        };
        let space = check(&range(&[1021]), &free).ok().unwrap();
        assert!(space.guard && space.local == [256, 1, 1]);
        let space = check(&range(&[1024]), &free).ok().unwrap();
        assert!(!space.guard);
        // Ids beyond the end would wrap around.
        let space = check(&range(&[u32::MAX as usize]), &free).ok().unwrap();
        assert!(!space.guard);
        assert_eq!(runs(100, 16, 65535, true).as_slice(), &[(0, 7, 16)]);
    }

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
    fn local_sizes_are_sensible() {
        assert_eq!(choose_local(&gpu(true), 1, [1 << 20, 1, 1]), [256, 1, 1]);
        assert_eq!(choose_local(&gpu(true), 1, [96, 1, 1]), [96, 1, 1]);
        assert_eq!(choose_local(&gpu(true), 2, [1920, 1080, 1]), [64, 4, 1]);
        assert_eq!(choose_local(&gpu(true), 1, [1009, 1, 1]), [1, 1, 1]);
        assert_eq!(choose_local(&gpu(false), 1, [1009, 1, 1]), [256, 1, 1]);
        assert_eq!(choose_local(&gpu(true), 3, [1, 1, 7]), [1, 1, 7]);
        for n in 1..400 {
            for m in [1, 3, 16, 37] {
                let [x, y, z] = choose_local(&gpu(true), 2, [n, m, 1]);
                assert!(
                    n % x == 0 && m % y == 0 && z == 1 && x * y <= 256,
                    "{n} {m} -> {x} {y} {z}"
                );
                let [x, y, z] = choose_local(&gpu(false), 2, [n, m, 1]);
                assert!(
                    x > 0 && y > 0 && z == 1 && x * y <= 256 && x <= n && y <= m,
                    "{n} {m} -> {x} {y} {z}"
                );
            }
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
}
