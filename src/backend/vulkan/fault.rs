//! The report of the driver about a lost device (VK_EXT_device_fault), for the log.

use super::features::Extensions;
use ash::{ext, vk};

/// The entry point, where the device has it.
pub struct Faults(Option<ext::device_fault::Device>);

/// Entries of each list that are asked for, at most.
const MOST: u32 = 16;

impl Faults {
    /// Creates the reports of a device with those extensions.
    pub fn new(extensions: &Extensions, instance: &ash::Instance, device: &ash::Device) -> Self {
        let new = || ext::device_fault::Device::new(instance, device);
        Self(extensions.device_fault.then(new))
    }

    /// Describes the fault of a lost device: one line each for the fault, the addresses it
    /// concerns, and the vendor's codes. Empty if the driver reports nothing.
    pub fn describe(&self) -> Vec<String> {
        let Some(table) = &self.0 else {
            return Vec::new();
        };
        let get = table.fp().get_device_fault_info_ext;
        let mut counts = vk::DeviceFaultCountsEXT::default();
        // SAFETY: the device has the extension and its feature, and is lost; without the second structure the counts
        // alone are written.
        let asked = unsafe { get(table.device(), &mut counts, std::ptr::null_mut()) };
        if asked != vk::Result::SUCCESS {
            return vec![format!("vkGetDeviceFaultInfoEXT: {asked:?}")];
        }
        counts.address_info_count = counts.address_info_count.min(MOST);
        counts.vendor_info_count = counts.vendor_info_count.min(MOST);
        counts.vendor_binary_size = 0;
        let mut addresses =
            vec![vk::DeviceFaultAddressInfoEXT::default(); counts.address_info_count as usize];
        let mut codes =
            vec![vk::DeviceFaultVendorInfoEXT::default(); counts.vendor_info_count as usize];
        let mut info = vk::DeviceFaultInfoEXT {
            p_address_infos: addresses.as_mut_ptr(),
            p_vendor_infos: codes.as_mut_ptr(),
            ..Default::default()
        };
        // SAFETY: the lists have room for as many entries as the counts say, which the driver lowers to what it wrote.
        let asked = unsafe { get(table.device(), &mut counts, &mut info) };
        if asked != vk::Result::SUCCESS && asked != vk::Result::INCOMPLETE {
            return vec![format!("vkGetDeviceFaultInfoEXT: {asked:?}")];
        }
        let text = |text: Result<&std::ffi::CStr, _>| {
            text.map_or(String::new(), |text| text.to_string_lossy().into_owned())
        };
        let mut lines = vec![text(info.description_as_c_str())];
        let addresses = addresses.iter().take(counts.address_info_count as usize);
        lines.extend(addresses.map(|a| {
            // The true address differs in the bits below the precision, a power of two.
            let unsure = a.address_precision.saturating_sub(1);
            let (first, last) = (a.reported_address & !unsure, a.reported_address | unsure);
            format!("{:?} at {first:#x} to {last:#x}", a.address_type)
        }));
        let codes = codes.iter().take(counts.vendor_info_count as usize);
        lines.extend(codes.map(|v| {
            let (code, data) = (v.vendor_fault_code, v.vendor_fault_data);
            format!("{} ({code:#x}, {data:#x})", text(v.description_as_c_str()))
        }));
        lines.retain(|line| !line.is_empty());
        lines
    }
}
