//! The platform: every device that the back ends offer and `PUMICE_DEVICES` lets through.
//!
//! A machine without a usable device still has the platform; the log says why it is empty.

use super::device::{Device, HasDevices};
use super::external_handles::{memory_names, semaphore_names};
use super::info::{answer, name_versions, version, version_string, Info, InfoOut, Written};
use super::svm_types::TypeCapabilities;
use crate::backend::{self, Caps};
use crate::cl::{self, cl_device_type, cl_uint};
use crate::error::{ensure, ClResult};
use crate::features::{self, Versioned, VENDOR_SUFFIX, VERSION};
use crate::handle::{Body, Kind, Object, Ref};
use std::sync::Arc;

/// The platform.
pub struct Platform {
    /// The devices that applications are offered.
    pub devices: Vec<Ref<Device>>,
}

impl Body for Platform {
    const KIND: Kind = Kind::Platform;
}

impl HasDevices for Object<Platform> {
    fn devices(&self) -> &[Ref<Device>] {
        &self.devices
    }
}

impl Platform {
    /// Returns a platform over every device of the machine that `PUMICE_DEVICES` selects.
    pub fn open() -> Ref<Self> {
        let wanted = &crate::util::config::get().devices;
        let all = backend::enumerate(wanted);
        let found = all.len();
        let backends = select(all, wanted);
        if backends.is_empty() {
            crate::log!(
                Warn,
                "no device to offer ({found} found, PUMICE_DEVICES={})",
                wanted.join(",")
            );
        }
        Self::new(backends)
    }

    /// Creates a platform over these devices.
    pub fn new(backends: Vec<Arc<dyn backend::Device>>) -> Ref<Self> {
        Object::new_cyclic(|platform| Self {
            devices: backends
                .into_iter()
                .map(|backend| Device::new(platform.clone(), backend))
                .collect(),
        })
    }

    /// Returns the devices of the types in a mask, as clGetDeviceIDs finds them. The default device
    /// is the first.
    pub fn devices_of(&self, mask: cl_device_type) -> ClResult<Vec<Ref<Device>>> {
        const TYPES: cl_device_type = cl::CL_DEVICE_TYPE_DEFAULT
            | cl::CL_DEVICE_TYPE_CPU
            | cl::CL_DEVICE_TYPE_GPU
            | cl::CL_DEVICE_TYPE_ACCELERATOR
            | cl::CL_DEVICE_TYPE_CUSTOM;
        ensure!(
            mask == cl::CL_DEVICE_TYPE_ALL || (mask != 0 && mask & !TYPES == 0),
            cl::CL_INVALID_DEVICE_TYPE,
            "device type {mask:#x}"
        );
        let found: Vec<_> = self
            .devices
            .iter()
            .enumerate()
            .filter(|(index, device)| {
                mask & device.kind() != 0 || (*index == 0 && mask & cl::CL_DEVICE_TYPE_DEFAULT != 0)
            })
            .map(|(_, device)| device.clone())
            .collect();
        ensure!(
            !found.is_empty(),
            cl::CL_DEVICE_NOT_FOUND,
            "no device of type {mask:#x}"
        );
        Ok(found)
    }

    /// Returns the extensions that all devices have, with those of the platform itself.
    pub fn extensions(&self) -> Vec<Versioned> {
        let lists = self
            .devices
            .iter()
            .map(|device| device.features.extensions());
        common(lists).unwrap_or_else(features::platform_extensions)
    }
}

impl Platform {
    /// Returns the kinds of handles that all devices have in a list of theirs.
    fn common<T: Clone + PartialEq>(&self, list: impl Fn(&Caps) -> &Vec<T>) -> Vec<T> {
        let lists = self
            .devices
            .iter()
            .map(|device| list(device.caps()).clone());
        common(lists).unwrap_or_default()
    }
}

/// Returns what all lists have; `None` if there is no list.
fn common<T: PartialEq>(lists: impl Iterator<Item = Vec<T>>) -> Option<Vec<T>> {
    lists.reduce(|mut common, other| {
        common.retain(|known| other.contains(known));
        common
    })
}

impl Info for Platform {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_PLATFORM_PROFILE => "FULL_PROFILE",
            CL_PLATFORM_VERSION => version_string(VERSION),
            CL_PLATFORM_NUMERIC_VERSION => version(VERSION.0, VERSION.1, 0),
            CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR => features::PLATFORM_COMMAND_BUFFERS,
            CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR =>
                memory_names(&self.common(|caps| &caps.memory_imports)),
            CL_PLATFORM_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR =>
                semaphore_names(&self.common(|caps| &caps.semaphore_imports)),
            CL_PLATFORM_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR =>
                semaphore_names(&self.common(|caps| &caps.semaphore_exports)),
            CL_PLATFORM_SEMAPHORE_TYPES_KHR => features::SEMAPHORE_TYPES,
            CL_PLATFORM_SVM_TYPE_CAPABILITIES_KHR => {
                let all = TypeCapabilities::common(self.devices.iter().map(|d| d.svm_types()));
                all.list(all).as_slice()
            },
            CL_PLATFORM_NAME => "Pumice",
            CL_PLATFORM_VENDOR => "Pumice",
            CL_PLATFORM_EXTENSIONS => features::names(&self.extensions()),
            CL_PLATFORM_EXTENSIONS_WITH_VERSION => name_versions(&self.extensions()),
            // Host and device timers are both reported in nanoseconds of the host's clock.
            CL_PLATFORM_HOST_TIMER_RESOLUTION => crate::util::clock_ns(1).max(1),
            CL_PLATFORM_ICD_SUFFIX_KHR => VENDOR_SUFFIX,
        }
    }
}

/// Returns the devices that the words of `PUMICE_DEVICES` select: an index, or a part of the name
/// in any case. No words: all.
fn select(all: Vec<Arc<dyn backend::Device>>, wanted: &[String]) -> Vec<Arc<dyn backend::Device>> {
    if wanted.is_empty() {
        return all
            .into_iter()
            .filter(|device| !backend::is_software_vulkan(device.as_ref()))
            .collect();
    }
    let mut chosen: Vec<usize> = Vec::new();
    for word in wanted {
        let (number, name) = (word.parse::<usize>(), word.to_lowercase());
        let is_meant = |index: &usize| match (&number, all.get(*index)) {
            (Ok(number), _) => number == index,
            (Err(_), Some(device)) if name == "cpu" => device.target().native,
            (Err(_), Some(device)) => device.caps().name.to_lowercase().contains(&name),
            _ => false,
        };
        let hits: Vec<usize> = (0..all.len()).filter(is_meant).collect();
        if hits.is_empty() {
            crate::log!(Warn, "PUMICE_DEVICES: nothing matches {word:?}");
        }
        for hit in hits {
            if !chosen.contains(&hit) {
                chosen.push(hit);
            }
        }
    }
    chosen
        .into_iter()
        .filter_map(|index| all.get(index).cloned())
        .collect()
}
