//! Memory objects on memory of others (cl_khr_external_memory): the properties that name it, and what is made of it.

use super::store::Store;
use super::Mem;
use crate::backend::external::MemoryHandle;
use crate::backend::{self, DeviceError, ImageDesc};
use crate::cl::{self, cl_int, cl_mem_flags, cl_mem_properties};
use crate::error::{ensure, ClError, ClResult, OrErr};
use crate::handle::{self, Ref};
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::external_handles::{memory_kind, of_handle};
use crate::object::memories::MemoryIndex;
use crate::object::properties::Form;
use std::ffi::c_void;
use std::sync::Arc;

/// CL_MEM_DEVICE_HANDLE_LIST_KHR
const DEVICES: cl_mem_properties = cl::CL_MEM_DEVICE_HANDLE_LIST_KHR as cl_mem_properties;

/// Returns the form of a property of a memory object, if it is known.
pub fn form(name: cl_mem_properties) -> Option<Form> {
    match name {
        DEVICES => Some(Form::List),
        cl::CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT => Some(Form::Value),
        _ => memory_kind(name).map(|_| Form::Value),
    }
}

/// The properties of a memory object.
#[derive(Default)]
pub(super) struct Properties {
    /// The properties that name no memory of others, each with its value, and a closing zero.
    pub others: Vec<cl_mem_properties>,
    /// The memory of others.
    pub external: Option<ExternalHandle>,
}

/// The memory that a handle names.
pub(super) struct ExternalHandle {
    pub kind: MemoryHandle,
    fd: cl_int,
    /// The devices that may use it.
    devices: Vec<Ref<Device>>,
    /// Their memory.
    memory: MemoryIndex,
}

/// The devices that may use memory of others.
pub struct External {
    devices: Vec<Ref<Device>>,
}

impl Properties {
    /// Reads a list whose form the C edge has checked.
    pub fn read(context: &Ref<Context>, list: &[cl_mem_properties]) -> ClResult<Self> {
        let mut found = Self::default();
        let (mut devices, mut handle) = (None, None);
        let mut rest = list.iter().copied();
        while let Some(name) = rest.next().filter(|name| *name != 0) {
            if name == DEVICES {
                let list: Vec<_> = rest.by_ref().take_while(|value| *value != 0).collect();
                devices = Some(list);
                continue;
            }
            let value = rest.next().unwrap_or(0);
            match memory_kind(name) {
                None => found.others.extend([name, value]),
                // A file descriptor is an `int`, whatever fills the other bits.
                Some(kind) => ensure!(
                    handle.replace((kind, value as cl_int)).is_none(),
                    cl::CL_INVALID_PROPERTY,
                    "more than one handle of memory"
                ),
            }
        }
        found.others.push(0);
        let Some((kind, fd)) = handle else {
            ensure!(
                devices.is_none(),
                cl::CL_INVALID_PROPERTY,
                "a list of devices without a handle of memory"
            );
            return Ok(found);
        };
        found.external = Some(ExternalHandle::new(context, kind, fd, devices)?);
        Ok(found)
    }
}

impl ExternalHandle {
    fn new(
        context: &Ref<Context>,
        kind: MemoryHandle,
        fd: cl_int,
        list: Option<Vec<cl_mem_properties>>,
    ) -> ClResult<Self> {
        let imports = |device: &Ref<Device>| device.caps().memory_imports.contains(&kind);
        ensure!(
            context.devices.iter().any(imports),
            cl::CL_INVALID_PROPERTY,
            "no device of the context imports memory by such handles"
        );
        let devices = match list {
            None => context.devices.clone(),
            Some(list) => (list.into_iter())
                .map(|device| handle::lookup::<Device>(device as usize as *const c_void))
                .collect::<ClResult<Vec<_>>>()?,
        };
        let mut memories = devices.iter().map(|device| context.memory_of(device));
        let memory = memories
            .next()
            .or_err(cl::CL_INVALID_DEVICE, "an empty list of devices")??;
        for other in memories {
            ensure!(
                other? == memory,
                cl::CL_INVALID_DEVICE,
                "devices with memories of their own do not share memory of others"
            );
        }
        ensure!(
            devices.iter().all(imports),
            cl::CL_INVALID_DEVICE,
            "the device imports no memory by such handles"
        );
        Ok(Self {
            kind,
            fd,
            devices,
            memory,
        })
    }

    /// Creates the handle of a DMA buffer for all devices of a context. The file descriptor is copied.
    pub fn dma_buf(context: &Ref<Context>, fd: cl_int) -> ClResult<Self> {
        let kind = MemoryHandle::DmaBuf;
        let copy = copy_of_descriptor(fd)?;
        Self::new(context, kind, copy, None).inspect_err(|_| close(copy))
    }

    /// Closes the file descriptor of a handle that is not used.
    pub fn close(&self) {
        close(self.fd);
    }

    /// Checks that flags and pointer go with memory of others.
    pub fn check(&self, flags: cl_mem_flags, host_ptr: *mut c_void) -> ClResult {
        const HOST: cl_mem_flags =
            cl::CL_MEM_USE_HOST_PTR | cl::CL_MEM_ALLOC_HOST_PTR | cl::CL_MEM_COPY_HOST_PTR;
        ensure!(
            flags & HOST == 0,
            cl::CL_INVALID_VALUE,
            "memory of others goes with none of USE_HOST_PTR, ALLOC_HOST_PTR, COPY_HOST_PTR"
        );
        ensure!(
            host_ptr.is_null(),
            cl::CL_INVALID_HOST_PTR,
            "host_ptr with memory of others"
        );
        Ok(())
    }

    fn backend<'a>(&self, context: &'a Context) -> ClResult<&'a Arc<dyn backend::Device>> {
        Ok(&context.memories.device(self.memory)?.backend)
    }

    /// Returns the bytes as those of an object of that size. On success the handle is ours.
    pub fn store(&self, context: &Context, size: u64, flags: cl_mem_flags) -> ClResult<Arc<Store>> {
        let imported = self
            .backend(context)?
            .import_memory(self.kind, self.fd, size);
        let memory = imported.map_err(of_handle)?;
        let place = |at| (at == self.memory).then(|| memory.clone());
        let memories = context.memories.all().map(place).collect();
        Ok(Store::imported(size, flags, memories))
    }

    /// Returns the image of such a description, in each memory. On success the handle is ours.
    pub fn images(
        &self,
        context: &Context,
        desc: &ImageDesc,
    ) -> ClResult<Vec<Option<Arc<dyn backend::DeviceImage>>>> {
        let imported = self.backend(context)?.import_image(self.fd, desc);
        let image = imported.map_err(|error| match error {
            DeviceError::Unsupported(why) => ClError::new(cl::CL_IMAGE_FORMAT_NOT_SUPPORTED, why),
            error => of_handle(error),
        })?;
        let place = |at| (at == self.memory).then(|| image.clone());
        Ok(context.memories.all().map(place).collect())
    }

    /// Returns what the object keeps of it.
    pub fn into_external(self) -> Box<External> {
        Box::new(External {
            devices: self.devices,
        })
    }
}

#[cfg(unix)]
fn copy_of_descriptor(fd: cl_int) -> ClResult<cl_int> {
    crate::util::fds::copy(fd)
        .map_err(|error| ClError::new(cl::CL_INVALID_VALUE, error.to_string()))
}

#[cfg(not(unix))]
fn copy_of_descriptor(_: cl_int) -> ClResult<cl_int> {
    crate::error::err(cl::CL_INVALID_OPERATION, "no file descriptors here")
}

fn close(fd: cl_int) {
    #[cfg(unix)]
    crate::util::fds::close(fd);
    #[cfg(not(unix))]
    let _ = fd;
}

impl Mem {
    /// Fails with CL_INVALID_MEM_OBJECT unless it was made of memory of others, with CL_INVALID_COMMAND_QUEUE unless a
    /// device of its context may use it.
    pub fn check_external(&self, context: &Ref<Context>, device: &Ref<Device>) -> ClResult {
        let external = self.external.as_ref().or_err(
            cl::CL_INVALID_MEM_OBJECT,
            "the object was not made of memory of others",
        )?;
        ensure!(
            Arc::ptr_eq(&self.context, context),
            cl::CL_INVALID_COMMAND_QUEUE,
            "the memory object is of another context than the queue"
        );
        ensure!(
            external.devices.iter().any(|own| Arc::ptr_eq(own, device)),
            cl::CL_INVALID_COMMAND_QUEUE,
            "the memory object is not for the device of the queue"
        );
        Ok(())
    }
}
