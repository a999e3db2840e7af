//! The vendor and version of a driver, as the table of quirks names them.

use crate::quirks::{Quirks, Vendor};
use ash::vk;

/// Returns the quirks of a driver of a version that [`version_of`] returns.
pub fn quirks(id: vk::DriverId, version: [u32; 3]) -> Quirks {
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
    Quirks::of(vendor, version)
}

/// Returns a driver's version in three parts. `info` is VkPhysicalDeviceDriverProperties::driverInfo, which alone has that of
/// lavapipe (`Mesa 25.0.7 (LLVM 15.0.6)`): its driverVersion is 1.
pub fn version_of(id: vk::DriverId, version: u32, info: &str) -> [u32; 3] {
    match id {
        vk::DriverId::NVIDIA_PROPRIETARY => {
            [version >> 22, version >> 14 & 0xff, version >> 6 & 0xff]
        }
        vk::DriverId::MESA_LLVMPIPE => {
            let text = info.strip_prefix("Mesa ").unwrap_or_default();
            let mut parts = text.split(|c: char| !c.is_ascii_digit());
            [(); 3].map(|()| parts.next().and_then(|part| part.parse().ok()).unwrap_or(0))
        }
        _ => [
            vk::api_version_major(version),
            vk::api_version_minor(version),
            vk::api_version_patch(version),
        ],
    }
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
            version_of(vk::DriverId::NVIDIA_PROPRIETARY, nvidia, "580.159.03"),
            [580, 159, 3]
        );
        let mesa = 22 << 22 | 3 << 12 | 6;
        assert_eq!(version_of(vk::DriverId::MESA_RADV, mesa, ""), [22, 3, 6]);
        for (info, version) in [
            ("Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)", [25, 0, 7]),
            ("Mesa 26.3.0-devel (git-0123abc) (LLVM 21.1.0)", [26, 3, 0]),
            ("Mesa 25.1", [25, 1, 0]),
            ("", [0; 3]),
        ] {
            assert_eq!(version_of(vk::DriverId::MESA_LLVMPIPE, 1, info), version);
        }
    }
}
