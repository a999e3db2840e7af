//! Mappings between Vulkan's enums and ours. No state, no calls of the driver.

use crate::backend::{caps::DeviceKind, DeviceError};
use ash::vk;

/// Returns an error of a Vulkan call.
pub fn error(call: &'static str, result: vk::Result) -> DeviceError {
    match result {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => DeviceError::OutOfHostMemory,
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => DeviceError::OutOfDeviceMemory { size: 0 },
        vk::Result::ERROR_DEVICE_LOST => DeviceError::Lost,
        vk::Result::ERROR_FEATURE_NOT_PRESENT | vk::Result::ERROR_EXTENSION_NOT_PRESENT => {
            DeviceError::Unsupported(format!("{call}: {result:?}"))
        }
        other => DeviceError::Driver {
            call,
            code: format!("{other:?}"),
        },
    }
}

/// Turns the error of a Vulkan call into ours: `call(..).during("vkCall")?`.
pub trait During<T> {
    /// Returns the names the call.
    fn during(self, call: &'static str) -> Result<T, DeviceError>;
}

impl<T> During<T> for Result<T, vk::Result> {
    fn during(self, call: &'static str) -> Result<T, DeviceError> {
        self.map_err(|result| error(call, result))
    }
}

/// Returns the type of device for a physical device type.
pub fn device_kind(kind: vk::PhysicalDeviceType) -> DeviceKind {
    match kind {
        vk::PhysicalDeviceType::CPU => DeviceKind::Cpu,
        vk::PhysicalDeviceType::OTHER => DeviceKind::Accelerator,
        _ => DeviceKind::Gpu,
    }
}

/// Returns the name of a vendor by its PCI or Khronos id.
pub fn vendor_name(id: u32) -> &'static str {
    match id {
        0x1002 | 0x1022 => "Advanced Micro Devices, Inc.",
        0x10de => "NVIDIA Corporation",
        0x8086 => "Intel Corporation",
        0x13b5 => "Arm",
        0x5143 => "Qualcomm",
        0x1010 => "Imagination Technologies",
        0x106b => "Apple",
        0x14e4 => "Broadcom",
        0x1ae0 => "Google",
        0x10001 => "Vivante",
        0x10003 => "Kazan",
        0x10004 => "Codeplay",
        0x10005 => "Mesa",
        0x10006 => "PoCL",
        _ => "unknown vendor",
    }
}

/// Returns the text of a fixed-size C string, as far as it is valid.
pub fn text(chars: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .take_while(|c| **c != 0)
        .map(|c| *c as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
