//! The handles by which a physical device shares memory and semaphores.

use super::features::Extensions;
use super::instance::Instance;
use crate::backend::external::{MemoryHandle, SemaphoreHandle};
use ash::vk;

/// The handles of semaphores that a device imports, and that it exports.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct SemaphoreHandles {
    pub imports: Vec<SemaphoreHandle>,
    pub exports: Vec<SemaphoreHandle>,
}

/// Returns the flag of a kind of handles.
pub fn semaphore_flag(kind: SemaphoreHandle) -> vk::ExternalSemaphoreHandleTypeFlags {
    match kind {
        SemaphoreHandle::OpaqueFd => vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD,
        SemaphoreHandle::SyncFd => vk::ExternalSemaphoreHandleTypeFlags::SYNC_FD,
    }
}

impl SemaphoreHandles {
    /// Returns the handles that a device with VK_KHR_external_semaphore_fd has.
    pub fn of(instance: &Instance, device: vk::PhysicalDevice) -> Self {
        let mut found = Self::default();
        for kind in [SemaphoreHandle::OpaqueFd, SemaphoreHandle::SyncFd] {
            let info = vk::PhysicalDeviceExternalSemaphoreInfo::default()
                .handle_type(semaphore_flag(kind));
            let mut reported = vk::ExternalSemaphoreProperties::default();
            // SAFETY: the device belongs to the instance.
            unsafe {
                instance
                    .raw
                    .get_physical_device_external_semaphore_properties(device, &info, &mut reported)
            };
            let has = |feature| reported.external_semaphore_features.contains(feature);
            if has(vk::ExternalSemaphoreFeatureFlags::IMPORTABLE) {
                found.imports.push(kind);
            }
            if has(vk::ExternalSemaphoreFeatureFlags::EXPORTABLE) {
                found.exports.push(kind);
            }
        }
        found
    }
}

/// The usage of every buffer.
pub const BUFFER_USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.as_raw()
        | vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER.as_raw()
        | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// A kind of handles of memory that a device imports.
#[derive(Debug, Clone, Copy)]
pub struct MemoryImport {
    /// The kind.
    pub kind: MemoryHandle,
    /// The memory is for one buffer alone.
    pub dedicated: bool,
}

/// Returns the flag of a kind of handles.
pub fn memory_flag(kind: MemoryHandle) -> vk::ExternalMemoryHandleTypeFlags {
    match kind {
        MemoryHandle::OpaqueFd => vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD,
        MemoryHandle::DmaBuf => vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT,
    }
}

impl MemoryImport {
    /// Returns how a device imports memory by handles of a kind for buffers, if it does.
    pub fn of(instance: &Instance, device: vk::PhysicalDevice, kind: MemoryHandle) -> Option<Self> {
        let info = vk::PhysicalDeviceExternalBufferInfo::default()
            .usage(BUFFER_USAGE)
            .handle_type(memory_flag(kind));
        let mut reported = vk::ExternalBufferProperties::default();
        // SAFETY: the device belongs to the instance.
        unsafe {
            instance.raw.get_physical_device_external_buffer_properties(
                device,
                &info,
                &mut reported,
            )
        };
        let features = reported.external_memory_properties.external_memory_features;
        let dedicated = features.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY);
        (features.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE))
            .then_some(Self { kind, dedicated })
    }
}

/// Returns the kinds of handles of memory that a device imports.
pub fn imports_of(
    instance: &Instance,
    device: vk::PhysicalDevice,
    extensions: &Extensions,
) -> Vec<MemoryImport> {
    let kinds = [
        (extensions.external_memory_fd, MemoryHandle::OpaqueFd),
        (extensions.external_memory_dma_buf, MemoryHandle::DmaBuf),
    ];
    let kinds = kinds.into_iter().filter(|(has, _)| *has);
    kinds
        .filter_map(|(_, kind)| MemoryImport::of(instance, device, kind))
        .collect()
}
