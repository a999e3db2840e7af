//! The vendor and version of a driver, as the table of quirks names them.

use crate::quirks::{Quirks, Vendor};
use ash::vk;

/// Returns the quirks of a driver.
pub fn quirks(id: vk::DriverId, version: u32) -> Quirks {
    let vendor = match id {
        vk::DriverId::MESA_LLVMPIPE => Vendor::Llvmpipe,
        vk::DriverId::MESA_RADV
        | vk::DriverId::INTEL_OPEN_SOURCE_MESA
        | vk::DriverId::MESA_TURNIP
        | vk::DriverId::MESA_V3DV
        | vk::DriverId::MESA_PANVK
        | vk::DriverId::MESA_NVK
        | vk::DriverId::MESA_DOZEN
        | vk::DriverId::IMAGINATION_OPEN_SOURCE_MESA => Vendor::Nir,
        vk::DriverId::GOOGLE_SWIFTSHADER => Vendor::SwiftShader,
        vk::DriverId::NVIDIA_PROPRIETARY => Vendor::Nvidia,
        _ => Vendor::Other,
    };
    Quirks::of(vendor, version_of(id, version))
}

/// Returns a driver's version in three parts, as it packs them.
pub fn version_of(id: vk::DriverId, version: u32) -> [u32; 3] {
    if id == vk::DriverId::NVIDIA_PROPRIETARY {
        return [version >> 22, version >> 14 & 0xff, version >> 6 & 0xff];
    }
    [
        vk::api_version_major(version),
        vk::api_version_minor(version),
        vk::api_version_patch(version),
    ]
}

/// Returns the bytes of a cache line of a device of that vendor, which Vulkan does not report.
pub fn cache_line(vendor_id: u32) -> u32 {
    const NVIDIA: u32 = 0x10de;
    if vendor_id == NVIDIA {
        128
    } else {
        64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_unpacked() {
        let nvidia = 580 << 22 | 159 << 14 | 3 << 6;
        assert_eq!(
            version_of(vk::DriverId::NVIDIA_PROPRIETARY, nvidia),
            [580, 159, 3]
        );
        let mesa = 22 << 22 | 3 << 12 | 6;
        assert_eq!(version_of(vk::DriverId::MESA_RADV, mesa), [22, 3, 6]);
    }
}
