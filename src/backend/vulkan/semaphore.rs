//! Binary semaphores that are shared with other APIs and processes (VK_KHR_external_semaphore_fd).

use super::handles::semaphore_flag;
use super::logical::LogicalDevice;
use crate::backend::external::{Semaphore, SemaphoreHandle};
use crate::backend::{DeviceError, Result};
use crate::util::shutdown;
use ash::vk;
use std::any::Any;
use std::sync::Arc;

/// A shared semaphore.
pub struct VulkanSemaphore {
    device: Arc<LogicalDevice>,
    /// The semaphore; batches that use it keep it.
    pub raw: vk::Semaphore,
}

impl VulkanSemaphore {
    /// Creates a semaphore that is not signalled, and can be exported as `export`.
    pub fn new(device: &Arc<LogicalDevice>, export: Option<SemaphoreHandle>) -> Result<Self> {
        let mut exported = vk::ExportSemaphoreCreateInfo::default();
        let mut info = vk::SemaphoreCreateInfo::default();
        if let Some(kind) = export {
            exported = exported.handle_types(semaphore_flag(kind));
            info = info.push_next(&mut exported);
        }
        // SAFETY: the device lives and exports such handles.
        let raw = unsafe { device.raw.create_semaphore(&info, None) }
            .map_err(|result| device.failed("vkCreateSemaphore", result))?;
        let device = Arc::clone(device);
        Ok(Self { device, raw })
    }

    /// Creates a semaphore with the payload of a file descriptor, which is the driver's on success.
    pub fn import(device: &Arc<LogicalDevice>, kind: SemaphoreHandle, fd: i32) -> Result<Self> {
        let semaphore = Self::new(device, None)?;
        semaphore.import_fd(kind, fd)?;
        Ok(semaphore)
    }

    /// Downcasts a semaphore to one of this back end.
    pub fn of(semaphore: &dyn Semaphore) -> Result<&Self> {
        (semaphore.as_any().downcast_ref())
            .ok_or_else(|| DeviceError::Unsupported("a semaphore of another back end".to_owned()))
    }

    fn functions(&self) -> Result<&ash::khr::external_semaphore_fd::Device> {
        let functions = self.device.external_semaphore_fd.as_ref();
        functions.ok_or_else(|| {
            DeviceError::Unsupported("shared semaphores: no VK_KHR_external_semaphore_fd".into())
        })
    }

    fn import_fd(&self, kind: SemaphoreHandle, fd: i32) -> Result {
        let flags = match kind {
            SemaphoreHandle::OpaqueFd => vk::SemaphoreImportFlags::empty(),
            SemaphoreHandle::SyncFd => vk::SemaphoreImportFlags::TEMPORARY,
        };
        let info = vk::ImportSemaphoreFdInfoKHR::default()
            .semaphore(self.raw)
            .flags(flags)
            .handle_type(semaphore_flag(kind))
            .fd(fd);
        // SAFETY: the semaphore lives and no work uses it; the driver refuses what is no such file descriptor.
        unsafe { self.functions()?.import_semaphore_fd(&info) }
            .map_err(|result| self.device.failed("vkImportSemaphoreFdKHR", result))
    }
}

impl Semaphore for VulkanSemaphore {
    fn export(&self, kind: SemaphoreHandle) -> Result<i32> {
        let info = vk::SemaphoreGetFdInfoKHR::default()
            .semaphore(self.raw)
            .handle_type(semaphore_flag(kind));
        // SAFETY: the semaphore lives and was made to be exported so; for a copy of its payload the caller has submitted a
        // signal.
        unsafe { self.functions()?.get_semaphore_fd(&info) }
            .map_err(|result| self.device.failed("vkGetSemaphoreFdKHR", result))
    }

    fn import_sync_fd(&self, fd: i32) -> Result {
        self.import_fd(SemaphoreHandle::SyncFd, fd)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for VulkanSemaphore {
    fn drop(&mut self) {
        if shutdown::has_begun() {
            return;
        }
        // SAFETY: batches keep an Arc until they have completed; destroyed once.
        unsafe { self.device.raw.destroy_semaphore(self.raw, None) };
    }
}
