//! clCreateSubDevices: devices over parts of a device.

use super::device::Device;
use super::partition::{plan, PartitionPlan};
use crate::cl::cl_device_partition_property;
use crate::error::ClResult;
use crate::handle::{Object, Ref};

/// The request of clCreateSubDevices, to be counted before it is made.
pub struct Division {
    device: Ref<Device>,
    plan: PartitionPlan,
}

impl Division {
    /// Divides a device by a scheme: the properties up to the zero that ends them.
    pub fn of(device: &Ref<Device>, scheme: &[cl_device_partition_property]) -> ClResult<Self> {
        Ok(Self {
            device: device.clone(),
            plan: plan(device.backend.processors(), scheme)?,
        })
    }

    /// Returns how many sub-devices there will be.
    pub fn count(&self) -> usize {
        self.plan.parts.len()
    }

    /// Creates the sub-devices.
    pub fn make(&self) -> ClResult<Vec<Ref<Device>>> {
        let make = |numbers: &Vec<u32>| {
            let backend = self.device.backend.sub_device(numbers)?;
            Ok(Object::new(Device::part(
                &self.device,
                backend,
                self.plan.kind.clone(),
            )))
        };
        self.plan.parts.iter().map(make).collect()
    }
}
