//! The size of work-groups: what kernel and device allow, and the choice where there is one.

use crate::object::device::Device;
use crate::object::launch::KernelLaunch;

/// Work-items of a work-group whose size is left to us, at most.
const MOST_ITEMS: u32 = 256;
/// Work-groups of fewer work-items cost more than what they do.
const FEW_ITEMS: u32 = 64;
/// A kernel that cannot tell how it is grouped is compiled for so many sizes of the application's choice.
const MANY_SIZES: usize = 8;

/// The limits of the kernel and the device.
pub(super) struct Limits {
    pub(super) max_group: u32,
    pub(super) max_items: [u32; 3],
    pub(super) max_groups: [u32; 3],
    /// Work-items of the device's sub-groups.
    pub(super) subgroup: u32,
    /// Work-items of the kernel's sub-groups, which may be parts of the device's.
    pub(super) lanes: u32,
    pub(super) required: Option<[u32; 3]>,
    /// The number of sub-groups that the kernel requires.
    pub(super) sub_groups: Option<u32>,
    pub(super) uniform: bool,
    /// The kernel cannot tell how its work-items are grouped.
    pub(super) guarded: bool,
    /// Work-items may wait for one another: a size that the application chose stands.
    pub(super) waits: bool,
    /// Sub-groups are made of the rows of a work-group, so that short rows leave lanes empty.
    pub(super) rows: bool,
    /// The kernel has been compiled for many work-group sizes, or takes long to compile for one.
    pub(super) few_sizes: bool,
    /// Launches of all sizes have one pipeline, with the test for the end of the ND-range.
    pub(super) one_pipeline: bool,
}

impl Limits {
    /// Returns true if a work-group of the application's choice that wastes too much of the device,
    /// where there is a choice.
    pub(super) fn is_poor(&self, local: [u32; 3]) -> bool {
        if self.waits {
            return false;
        }
        let items = local.iter().product::<u32>();
        let row = if self.rows { local[0] } else { items };
        self.few_sizes || items < FEW_ITEMS || !row.is_multiple_of(self.subgroup)
    }
}

/// Returns the limits on sizes of a launch.
pub(super) fn limits(device: &Device, kernel: &KernelLaunch) -> Limits {
    let caps = device.caps();
    let costly = kernel.code.costly();
    let attributes = &kernel.code.interface().attributes;
    let lanes = attributes.sub_group_size(caps.subgroup_size);
    Limits {
        max_group: kernel
            .code
            .max_work_group_size()
            .min(caps.max_work_group_size)
            .max(1),
        max_items: caps.max_work_item_sizes.map(|n| n.max(1)),
        max_groups: caps.max_group_count.map(|n| n.max(1)),
        subgroup: caps.hardware_subgroup(lanes),
        lanes,
        required: attributes.required_work_group_size,
        sub_groups: attributes.required_sub_groups,
        uniform: kernel.rules.uniform,
        guarded: kernel.code.interface().guarded,
        waits: kernel.code.interface().waits,
        rows: caps.rows_are_vectors,
        few_sizes: costly || kernel.code.specialised() >= MANY_SIZES,
        // The test makes code of vectors slower and longer.
        one_pipeline: costly && !caps.rows_are_vectors,
    }
}

/// Returns the lesser of a size of an ND-range and a limit.
fn at_most(n: u64, limit: u32) -> u32 {
    u32::try_from(n).map_or(limit, |n| n.min(limit))
}

/// Returns the largest divisor of `n` up to `limit` that is a multiple of `unit`, or the largest
/// one of all if none is.
fn divisor(n: u64, limit: u32, unit: u32) -> u32 {
    let limit = at_most(n, limit).max(1);
    let divides = |d: &u32| n.is_multiple_of(u64::from(*d));
    let multiple = (1..=limit / unit).rev().map(|k| k * unit).find(divides);
    multiple
        .or_else(|| (1..=limit).rev().find(divides))
        .unwrap_or(1)
}

/// Chooses the local size when the application gives none.
pub(super) fn choose_local(limits: &Limits, dims: u32, global: [u64; 3]) -> [u32; 3] {
    if let Some(required) = limits.required {
        return required;
    }
    if let Some(count) = limits.sub_groups {
        let items = count.saturating_mul(limits.lanes);
        return [items.clamp(1, limits.max_group), 1, 1];
    }
    let [gx, gy, gz] = global.map(|n| n.max(1));
    let [mx, my, mz] = limits.max_items;
    let most = limits.max_group.min(MOST_ITEMS);
    let unit = limits.subgroup.min(most);
    if limits.few_sizes && !limits.uniform {
        // Rows of a sub-group, with a smaller last one where need be; where that divides the size, twice, four times as many.
        let mut x = at_most(gx, unit).min(mx).max(1);
        let divides = |n: u32| n <= most.min(mx) && gx.is_multiple_of(u64::from(n));
        while divides(2 * x) {
            x *= 2;
        }
        return [x, 1, 1];
    }
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
        x = at_most(gx, across).min(mx);
        y = if gy > 1 {
            at_most(gy, (most / x).max(1)).min(my)
        } else {
            1
        };
        return [x, y, z.min((most / (x * y)).max(1))];
    }
    [x, y, z]
}

/// Chooses the work-group of a kernel that cannot observe it: one of a few shapes, so that there
/// are few pipelines, and the largest that does not waste much.
pub(super) fn free_shape(limits: &Limits, global: [u32; 3]) -> [u32; 3] {
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

#[cfg(test)]
pub(super) mod tests {
    use super::super::{check, runs, NdRange};
    use super::*;

    pub fn gpu(uniform: bool) -> Limits {
        Limits {
            max_group: 1024,
            max_items: [1024, 1024, 64],
            max_groups: [65535; 3],
            subgroup: 32,
            lanes: 32,
            sub_groups: None,
            guarded: false,
            waits: false,
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
    fn local_sizes_are_sensible() {
        assert_eq!(choose_local(&gpu(true), 1, [1 << 20, 1, 1]), [256, 1, 1]);
        assert_eq!(choose_local(&gpu(true), 1, [96, 1, 1]), [96, 1, 1]);
        assert_eq!(choose_local(&gpu(true), 2, [1920, 1080, 1]), [64, 4, 1]);
        assert_eq!(choose_local(&gpu(true), 1, [1009, 1, 1]), [1, 1, 1]);
        assert_eq!(choose_local(&gpu(false), 1, [1009, 1, 1]), [256, 1, 1]);
        assert_eq!(choose_local(&gpu(true), 3, [1, 1, 7]), [1, 1, 7]);
        let few = Limits {
            few_sizes: true,
            ..gpu(false)
        };
        for (n, x) in [(1 << 20, 256), (1009, 32), (96, 32), (192, 64), (7, 7)] {
            assert_eq!(choose_local(&few, 1, [n, 1, 1]), [x, 1, 1]);
        }
        for n in 1..400 {
            for m in [1, 3, 16, 37] {
                let [x, y, z] = choose_local(&gpu(true), 2, [n, m, 1]);
                assert!(
                    n % u64::from(x) == 0 && m % u64::from(y) == 0 && z == 1 && x * y <= 256,
                    "{n} {m} -> {x} {y} {z}"
                );
                let [x, y, z] = choose_local(&gpu(false), 2, [n, m, 1]);
                assert!(
                    x > 0
                        && y > 0
                        && z == 1
                        && x * y <= 256
                        && u64::from(x) <= n
                        && u64::from(y) <= m,
                    "{n} {m} -> {x} {y} {z}"
                );
            }
        }
    }
}
