//! Sizes of sub-groups: those of the device, of which it may have several (VK_EXT_subgroup_size_control, Vulkan 1.3), and
//! smaller ones, which the compiler emulates as parts of the smallest.
//!
//! Kernels are compiled for a size: the one that they require (`intel_reqd_sub_group_size`), or the usual one of the device.
//! Left to itself the driver might choose another, so pipelines of kernels that use sub-groups, or require a size, ask for it.

/// The smallest size that is emulated.
const LEAST_EMULATED: u32 = 4;
/// The largest size that is emulated, of which the compiler has ballots in one word.
const LARGEST_EMULATED: u32 = 32;

/// Returns the sizes that kernels may require on a device that has some sizes, both ascending.
pub fn with_emulated(sizes: &[u32]) -> Vec<u32> {
    let least = sizes.first().copied().unwrap_or(0);
    let powers = (LEAST_EMULATED.ilog2()..=LARGEST_EMULATED.ilog2()).map(|power| 1 << power);
    let smaller = powers.filter(|&size| size < least);
    smaller.chain(sizes.iter().copied()).collect()
}

/// The sizes that a pipeline can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubgroupControl {
    least: u32,
    largest: u32,
    /// The size for kernels that require none (VkPhysicalDeviceVulkan11Properties::subgroupSize).
    usual: u32,
    /// Sub-groups in a work-group, at most, when a size is asked for (maxComputeWorkgroupSubgroups).
    most: u32,
}

impl SubgroupControl {
    /// Returns the sizes from the properties of a device: both ends of the range, the usual size,
    /// and the most in a work-group. Returns `None` if there is nothing to choose, or the values
    /// are inconsistent.
    pub fn new((least, largest): (u32, u32), usual: u32, most: u32) -> Option<Self> {
        let powers = least.is_power_of_two() && largest.is_power_of_two();
        let control = Self {
            least,
            largest,
            usual,
            most,
        };
        (powers && least < largest && control.sizes().contains(&usual)).then_some(control)
    }

    /// Returns the size of kernels that require none, in work-items.
    pub fn usual(&self) -> u32 {
        self.usual
    }

    /// Returns the powers of two in the range, up to the 128 that the compiler takes.
    pub fn sizes(&self) -> Vec<u32> {
        let powers = (0..=7).map(|power| 1 << power);
        powers
            .filter(|size| (self.least..=self.largest).contains(size))
            .collect()
    }

    /// Returns the size that the pipeline of a kernel has to request, and the most sub-groups in a
    /// work-group, or `None` if neither matters.
    pub fn requested_size(
        &self,
        required: Option<u32>,
        uses_subgroups: bool,
    ) -> Option<(u32, u32)> {
        let usual = uses_subgroups.then_some(self.usual);
        let size = required.map(|size| size.max(self.least)).or(usual);
        size.map(|size| (size, self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::{with_emulated, SubgroupControl};

    #[test]
    fn sizes_of_devices() {
        // As of RDNA under RADV, of Intel's integrated graphics, of Adreno.
        let of = |range, usual| SubgroupControl::new(range, usual, 32).map(|c| c.sizes());
        assert_eq!(of((32, 64), 64), Some(vec![32, 64]));
        assert_eq!(of((8, 32), 32), Some(vec![8, 16, 32]));
        assert_eq!(of((64, 128), 64), Some(vec![64, 128]));
        assert_eq!(of((1, 4), 1), Some(vec![1, 2, 4]));
        // One size: nothing to ask for. A usual one outside of the range, a range that is none.
        assert_eq!(of((32, 32), 32), None);
        assert_eq!(of((32, 64), 16), None);
        assert_eq!(of((64, 32), 64), None);
        assert_eq!(of((0, 32), 32), None);
        assert_eq!(of((64, 256), 256), None);
    }

    #[test]
    fn smaller_sizes_are_emulated() {
        assert_eq!(with_emulated(&[32]), [4, 8, 16, 32]);
        assert_eq!(with_emulated(&[8, 16, 32]), [4, 8, 16, 32]);
        assert_eq!(with_emulated(&[64, 128]), [4, 8, 16, 32, 64, 128]);
        assert_eq!(with_emulated(&[128]), [4, 8, 16, 32, 128]);
        assert_eq!(with_emulated(&[4]), [4]);
        assert_eq!(with_emulated(&[1, 2, 4]), [1, 2, 4]);
    }

    #[test]
    fn pipelines_ask_for_what_kernels_require() {
        let control = SubgroupControl::new((8, 32), 16, 64).unwrap();
        assert_eq!(control.usual(), 16);
        assert_eq!(control.requested_size(None, false), None);
        assert_eq!(control.requested_size(None, true), Some((16, 64)));
        assert_eq!(control.requested_size(Some(8), true), Some((8, 64)));
        assert_eq!(control.requested_size(Some(32), false), Some((32, 64)));
        // Emulated in the smallest.
        assert_eq!(control.requested_size(Some(4), true), Some((8, 64)));
    }
}
