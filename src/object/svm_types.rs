//! The types of shared virtual memory that cl_khr_unified_svm names by their numbers, and what devices can do with each.

use crate::cl::{
    self, cl_device_svm_capabilities, cl_device_unified_shared_memory_capabilities_intel,
    cl_svm_capabilities_khr,
};

/// The type of an allocation. In the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SvmType {
    /// Memory of a device (clDeviceMemAllocINTEL).
    Device,
    /// Memory of the host (clHostMemAllocINTEL).
    Host,
    /// Memory that host and a device share (clSharedMemAllocINTEL).
    Shared,
    /// Coarse-grained memory (clSVMAlloc).
    Coarse,
    /// Fine-grained memory (clSVMAlloc with CL_MEM_SVM_FINE_GRAIN_BUFFER).
    Fine,
    /// Memory that the system allocates (malloc).
    System,
}

const ALL: [SvmType; 6] = [
    SvmType::Device,
    SvmType::Host,
    SvmType::Shared,
    SvmType::Coarse,
    SvmType::Fine,
    SvmType::System,
];

/// The capabilities of memory of each type, for a device or all of several; 0: there is no such memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TypeCapabilities([cl_svm_capabilities_khr; ALL.len()]);

impl TypeCapabilities {
    /// Returns those of a device with these capabilities of shared virtual memory, and with those of memory of its own, of host
    /// and of shared memory as cl_intel_unified_shared_memory has them.
    pub fn new(
        svm: cl_device_svm_capabilities,
        usm: [cl_device_unified_shared_memory_capabilities_intel; 3],
    ) -> Self {
        const ATOMICS: cl_svm_capabilities_khr = cl::CL_SVM_CAPABILITY_DEVICE_ATOMIC_ACCESS_KHR
            | cl::CL_SVM_CAPABILITY_CONCURRENT_ATOMIC_ACCESS_KHR;
        let atomics = match svm & cl::CL_DEVICE_SVM_ATOMICS {
            0 => 0,
            _ => ATOMICS,
        };
        let [device, host, shared] = usm;
        let core = |bit, all| if svm & bit == 0 { 0 } else { all };
        Self(ALL.map(|kind| match kind {
            SvmType::Device => with(cl::CL_SVM_TYPE_MACRO_DEVICE_KHR, device),
            SvmType::Host => with(cl::CL_SVM_TYPE_MACRO_HOST_KHR, host),
            SvmType::Shared => with(cl::CL_SVM_TYPE_MACRO_SINGLE_DEVICE_SHARED_KHR, shared),
            SvmType::Coarse => core(
                cl::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER,
                cl::CL_SVM_TYPE_MACRO_COARSE_GRAIN_BUFFER_KHR,
            ),
            SvmType::Fine => core(
                cl::CL_DEVICE_SVM_FINE_GRAIN_BUFFER,
                cl::CL_SVM_TYPE_MACRO_FINE_GRAIN_BUFFER_KHR | atomics,
            ),
            SvmType::System => core(
                cl::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM,
                cl::CL_SVM_TYPE_MACRO_SYSTEM_KHR & !ATOMICS | atomics,
            ),
        }))
    }

    /// Returns what all of several devices that have memory of a type can do with it.
    pub fn common(devices: impl Iterator<Item = Self>) -> Self {
        devices.fold(Self::default(), |common, device| {
            Self(ALL.map(|kind| match (common.of(kind), device.of(kind)) {
                (0, own) => own,
                (all, 0) => all,
                (all, own) => all & own,
            }))
        })
    }

    /// Returns what can be done with memory of a type.
    pub fn of(&self, kind: SvmType) -> cl_svm_capabilities_khr {
        self.0[kind as usize]
    }

    /// Returns the list of a device, or of the platform itself, for the types of the platform.
    pub fn list(&self, platform: Self) -> Vec<cl_svm_capabilities_khr> {
        platform.types().map(|kind| self.of(kind)).collect()
    }

    /// Returns the types that there are: of a platform, its types by their numbers.
    pub fn types(self) -> impl Iterator<Item = SvmType> {
        ALL.into_iter().filter(move |kind| self.of(*kind) != 0)
    }
}

/// Returns the capabilities of a type that has at least these, on a device with such capabilities of
/// cl_intel_unified_shared_memory; 0 for none.
fn with(
    least: cl_svm_capabilities_khr,
    usm: cl_device_unified_shared_memory_capabilities_intel,
) -> cl_svm_capabilities_khr {
    let pairs = [
        (
            cl::CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL,
            cl::CL_SVM_CAPABILITY_DEVICE_ATOMIC_ACCESS_KHR,
        ),
        (
            cl::CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL,
            cl::CL_SVM_CAPABILITY_CONCURRENT_ACCESS_KHR,
        ),
        (
            cl::CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ATOMIC_ACCESS_INTEL,
            cl::CL_SVM_CAPABILITY_CONCURRENT_ATOMIC_ACCESS_KHR,
        ),
    ];
    let has = pairs.iter().filter(|(intel, _)| usm & intel != 0);
    match usm {
        0 => 0,
        _ => has.fold(least, |all, (_, khr)| all | khr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_share_what_each_of_them_can() {
        let svm = cl::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | cl::CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
        let access = cl::CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL;
        let atomic = access | cl::CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL;
        let plain = TypeCapabilities::new(svm, [atomic, access, access]);
        let able = TypeCapabilities::new(
            svm | cl::CL_DEVICE_SVM_ATOMICS | cl::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM,
            [atomic; 3],
        );
        let none = TypeCapabilities::new(0, [0; 3]);
        let common = TypeCapabilities::common([plain, none, able].into_iter());
        for kind in ALL.into_iter().filter(|kind| *kind != SvmType::System) {
            assert_eq!(common.of(kind), plain.of(kind), "{kind:?}");
            assert_eq!(able.of(kind) & plain.of(kind), plain.of(kind), "{kind:?}");
            assert_eq!(none.of(kind), 0);
        }
        assert_ne!(able.of(SvmType::Fine), plain.of(SvmType::Fine));
        assert_eq!(common.of(SvmType::System), able.of(SvmType::System));
        assert_eq!(common.types().count(), 6);
        assert_eq!(plain.types().count(), 5);
        assert_eq!(none.types().count(), 0);
    }
}
