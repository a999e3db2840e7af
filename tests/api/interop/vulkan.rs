//! A program's own Vulkan, on the device that OpenCL has: buffers, images and semaphores that it exports, and what it does with
//! them.

use ash::{khr, vk};
use pumice_tests::sys::*;
use pumice_tests::{info, Setup};
use std::ffi::CStr;
use std::sync::Arc;

/// A VkDevice with one queue.
pub struct Vulkan {
    /// Keeps the library loaded.
    _entry: ash::Entry,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    pub raw: ash::Device,
    queue_family: u32,
    queue: vk::Queue,
    pool: vk::CommandPool,
    memory: khr::external_memory_fd::Device,
    semaphores: Option<khr::external_semaphore_fd::Device>,
}

impl Drop for Vulkan {
    fn drop(&mut self) {
        // SAFETY: all that was made from the device holds an Arc of this; nothing is under way, as each submission was waited
        // for.
        unsafe {
            let _ = self.raw.device_wait_idle();
            self.raw.destroy_command_pool(self.pool, None);
            self.raw.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

const EXTERNAL: u32 = vk::QUEUE_FAMILY_EXTERNAL;
const FD: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
const ALL: vk::PipelineStageFlags = vk::PipelineStageFlags::ALL_COMMANDS;

/// Memory that the device exports, of a buffer or an image.
pub struct Exported {
    vulkan: Arc<Vulkan>,
    pub buffer: vk::Buffer,
    pub image: vk::Image,
    memory: vk::DeviceMemory,
}

impl Drop for Exported {
    fn drop(&mut self) {
        // SAFETY: no work is under way; null is fine.
        unsafe {
            self.vulkan.raw.destroy_buffer(self.buffer, None);
            self.vulkan.raw.destroy_image(self.image, None);
            self.vulkan.raw.free_memory(self.memory, None);
        }
    }
}

/// Memory of the host that the device reads and writes.
pub struct Host {
    vulkan: Arc<Vulkan>,
    pub buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    place: *mut u8,
    size: usize,
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: no work is under way.
        unsafe {
            self.vulkan.raw.destroy_buffer(self.buffer, None);
            self.vulkan.raw.free_memory(self.memory, None);
        }
    }
}

impl Host {
    /// The bytes, while the device does nothing.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped as long as this lives.
        unsafe { std::slice::from_raw_parts(self.place, self.size) }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.size);
        // SAFETY: mapped, and large enough.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.place, bytes.len()) };
    }
}

/// A semaphore.
pub struct Signal {
    vulkan: Arc<Vulkan>,
    pub raw: vk::Semaphore,
}

impl Drop for Signal {
    fn drop(&mut self) {
        // SAFETY: no work is under way.
        unsafe { self.vulkan.raw.destroy_semaphore(self.raw, None) };
    }
}

impl Vulkan {
    /// The device that OpenCL has, if it is one of Vulkan's that exports memory.
    pub fn of(setup: &Setup) -> Option<Arc<Self>> {
        let wanted = info!(clGetDeviceInfo(setup.device), CL_DEVICE_UUID_KHR);
        // SAFETY: the library of the machine.
        let entry = unsafe { ash::Entry::load() }.ok()?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: the library is loaded.
        let instance = unsafe { entry.create_instance(&info, None) }.ok()?;
        // SAFETY: the instance lives.
        let found = unsafe { instance.enumerate_physical_devices() }.ok()?;
        let physical = found.into_iter().find(|device| {
            let mut ids = vk::PhysicalDeviceIDProperties::default();
            let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
            // SAFETY: the device is one of the instance's.
            unsafe { instance.get_physical_device_properties2(*device, &mut all) };
            ids.device_uuid[..] == wanted[..]
        });
        let Some(physical) = physical else {
            // SAFETY: nothing was made from it.
            unsafe { instance.destroy_instance(None) };
            return None;
        };
        // SAFETY: the device is one of the instance's.
        let list = unsafe { instance.enumerate_device_extension_properties(physical) }.ok()?;
        let has = |name: &CStr| {
            list.iter()
                .any(|one| one.extension_name_as_c_str() == Ok(name))
        };
        assert!(has(khr::external_memory_fd::NAME));
        let shares = has(khr::external_semaphore_fd::NAME);
        let mut names = vec![khr::external_memory_fd::NAME.as_ptr()];
        if shares {
            names.push(khr::external_semaphore_fd::NAME.as_ptr());
        }
        // SAFETY: as above.
        let queue_families =
            unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let queue_family = queue_families
            .iter()
            .position(|queue_family| queue_family.queue_flags.contains(vk::QueueFlags::COMPUTE))?;
        let queue_family = queue_family as u32;
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(queue_family)
            .queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&names);
        // SAFETY: queue_family and extensions are the device's.
        let raw = unsafe { instance.create_device(physical, &info, None) }.expect("a device");
        // SAFETY: the device has one queue of the queue_family.
        let queue = unsafe { raw.get_device_queue(queue_family, 0) };
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(queue_family);
        // SAFETY: the queue_family is the device's.
        let pool = unsafe { raw.create_command_pool(&info, None) }.expect("a pool");
        Some(Arc::new(Self {
            memory: khr::external_memory_fd::Device::new(&instance, &raw),
            semaphores: shares.then(|| khr::external_semaphore_fd::Device::new(&instance, &raw)),
            _entry: entry,
            instance,
            physical,
            raw,
            queue_family,
            queue,
            pool,
        }))
    }

    fn allocate(
        &self,
        requirements: vk::MemoryRequirements,
        flags: vk::MemoryPropertyFlags,
        export: bool,
        only: Option<vk::MemoryDedicatedAllocateInfo<'_>>,
    ) -> vk::DeviceMemory {
        // SAFETY: the device is one of the instance's.
        let types = unsafe {
            self.instance
                .get_physical_device_memory_properties(self.physical)
        };
        let index = (0u32..)
            .zip(types.memory_types_as_slice())
            .find(|(index, kind)| {
                requirements.memory_type_bits & (1 << index) != 0
                    && kind.property_flags.contains(flags)
            })
            .expect("a type of memory")
            .0;
        let mut exported = vk::ExportMemoryAllocateInfo::default().handle_types(FD);
        let mut only = only;
        let mut info = vk::MemoryAllocateInfo::default()
            .allocation_size(requirements.size)
            .memory_type_index(index);
        if export {
            info = info.push_next(&mut exported);
        }
        if let Some(only) = &mut only {
            info = info.push_next(only);
        }
        // SAFETY: the type is one that the requirements allow.
        unsafe { self.raw.allocate_memory(&info, None) }.expect("memory")
    }

    /// A buffer that others can have.
    pub fn buffer(self: &Arc<Self>, size: u64) -> Exported {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(FD);
        let info = vk::BufferCreateInfo::default()
            .size(size)
            .usage(usage)
            .push_next(&mut external);
        // SAFETY: a plain buffer of a size above 0.
        let buffer = unsafe { self.raw.create_buffer(&info, None) }.expect("a buffer");
        // SAFETY: the buffer lives.
        let requirements = unsafe { self.raw.get_buffer_memory_requirements(buffer) };
        let query = vk::PhysicalDeviceExternalBufferInfo::default()
            .usage(usage)
            .handle_type(FD);
        let mut reported = vk::ExternalBufferProperties::default();
        // SAFETY: the device is one of the instance's.
        unsafe {
            self.instance
                .get_physical_device_external_buffer_properties(
                    self.physical,
                    &query,
                    &mut reported,
                )
        };
        let features = reported.external_memory_properties.external_memory_features;
        let only = (features.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY))
            .then(|| vk::MemoryDedicatedAllocateInfo::default().buffer(buffer));
        let flags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
        let memory = self.allocate(requirements, flags, true, only);
        // SAFETY: the memory is large enough, and nothing was bound before.
        unsafe { self.raw.bind_buffer_memory(buffer, memory, 0) }.expect("bound");
        Exported {
            vulkan: self.clone(),
            buffer,
            image: vk::Image::null(),
            memory,
        }
    }

    /// An image of RGBA8 that others can have.
    pub fn image(self: &Arc<Self>, width: u32, height: u32) -> Exported {
        let format = vk::Format::R8G8B8A8_UNORM;
        let usage = vk::ImageUsageFlags::SAMPLED
            | vk::ImageUsageFlags::STORAGE
            | vk::ImageUsageFlags::TRANSFER_SRC
            | vk::ImageUsageFlags::TRANSFER_DST;
        let flags = vk::ImageCreateFlags::MUTABLE_FORMAT;
        let mut external = vk::ExternalMemoryImageCreateInfo::default().handle_types(FD);
        let info = vk::ImageCreateInfo::default()
            .flags(flags)
            .image_type(vk::ImageType::TYPE_2D)
            .format(format)
            .extent(vk::Extent3D {
                width,
                height,
                depth: 1,
            })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(vk::ImageTiling::OPTIMAL)
            .usage(usage)
            .push_next(&mut external);
        // SAFETY: every device has such images.
        let image = unsafe { self.raw.create_image(&info, None) }.expect("an image");
        // SAFETY: the image lives.
        let requirements = unsafe { self.raw.get_image_memory_requirements(image) };
        let mut kind = vk::PhysicalDeviceExternalImageFormatInfo::default().handle_type(FD);
        let query = vk::PhysicalDeviceImageFormatInfo2::default()
            .format(format)
            .ty(vk::ImageType::TYPE_2D)
            .tiling(vk::ImageTiling::OPTIMAL)
            .usage(usage)
            .flags(flags)
            .push_next(&mut kind);
        let mut reported = vk::ExternalImageFormatProperties::default();
        let mut all = vk::ImageFormatProperties2::default().push_next(&mut reported);
        // SAFETY: the device is one of the instance's.
        unsafe {
            self.instance.get_physical_device_image_format_properties2(
                self.physical,
                &query,
                &mut all,
            )
        }
        .expect("images that are shared");
        let features = reported.external_memory_properties.external_memory_features;
        let only = (features.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY))
            .then(|| vk::MemoryDedicatedAllocateInfo::default().image(image));
        let flags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
        let memory = self.allocate(requirements, flags, true, only);
        // SAFETY: the memory is large enough, and nothing was bound before.
        unsafe { self.raw.bind_image_memory(image, memory, 0) }.expect("bound");
        Exported {
            vulkan: self.clone(),
            buffer: vk::Buffer::null(),
            image,
            memory,
        }
    }

    /// Memory of the host.
    pub fn host(self: &Arc<Self>, size: usize) -> Host {
        let info = vk::BufferCreateInfo::default()
            .size(size as u64)
            .usage(vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: a plain buffer of a size above 0.
        let buffer = unsafe { self.raw.create_buffer(&info, None) }.expect("a buffer");
        // SAFETY: the buffer lives.
        let requirements = unsafe { self.raw.get_buffer_memory_requirements(buffer) };
        let flags = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let memory = self.allocate(requirements, flags, false, None);
        // SAFETY: the memory is large enough, and nothing was bound before; it can be mapped.
        let place = unsafe {
            self.raw
                .bind_buffer_memory(buffer, memory, 0)
                .expect("bound");
            self.raw
                .map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
        };
        Host {
            vulkan: self.clone(),
            buffer,
            memory,
            place: place.expect("mapped").cast(),
            size,
        }
    }

    /// A semaphore that others can have.
    pub fn signal(self: &Arc<Self>) -> Signal {
        let mut exported = vk::ExportSemaphoreCreateInfo::default()
            .handle_types(vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut exported);
        // SAFETY: the device exports semaphores.
        let raw = unsafe { self.raw.create_semaphore(&info, None) }.expect("a semaphore");
        let vulkan = self.clone();
        Signal { vulkan, raw }
    }

    /// The semaphore of a file descriptor.
    pub fn signal_of(self: &Arc<Self>, fd: i32) -> Signal {
        // SAFETY: the device lives.
        let raw = unsafe {
            self.raw
                .create_semaphore(&vk::SemaphoreCreateInfo::default(), None)
        };
        let raw = raw.expect("a semaphore");
        let info = vk::ImportSemaphoreFdInfoKHR::default()
            .semaphore(raw)
            .handle_type(vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD)
            .fd(fd);
        let functions = self.semaphores.as_ref().expect("shared semaphores");
        // SAFETY: a file descriptor of a semaphore.
        unsafe { functions.import_semaphore_fd(&info) }.expect("imported");
        let vulkan = self.clone();
        Signal { vulkan, raw }
    }

    /// Records commands, submits them after the one semaphore and before the other, and returns a fence.
    fn submit(
        &self,
        wait: Option<&Signal>,
        signal: Option<&Signal>,
        record: impl FnOnce(vk::CommandBuffer),
    ) -> vk::Fence {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(1);
        // SAFETY: one thread uses the pool.
        let commands = unsafe { self.raw.allocate_command_buffers(&info) }.expect("commands");
        let begin = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: new.
        unsafe { self.raw.begin_command_buffer(commands[0], &begin) }.expect("begun");
        record(commands[0]);
        let waits: Vec<_> = wait.iter().map(|signal| signal.raw).collect();
        let signals: Vec<_> = signal.iter().map(|signal| signal.raw).collect();
        let stages = vec![ALL; waits.len()];
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages)
            .signal_semaphores(&signals)
            .command_buffers(&commands);
        // SAFETY: all handles live; the caller waits for the fence.
        unsafe {
            self.raw.end_command_buffer(commands[0]).expect("ended");
            let fence = self.raw.create_fence(&vk::FenceCreateInfo::default(), None);
            let fence = fence.expect("a fence");
            self.raw
                .queue_submit(self.queue, &[info], fence)
                .expect("submitted");
            fence
        }
    }

    /// Waits until commands are complete.
    pub fn wait(&self, fence: vk::Fence) {
        // SAFETY: the fence was submitted.
        unsafe {
            self.raw
                .wait_for_fences(&[fence], true, 20_000_000_000)
                .expect("complete");
            self.raw.destroy_fence(fence, None);
        }
    }

    /// A transfer of a resource to others (`release`), or from them; `fresh`: an image that nobody has used.
    fn hand_over(&self, commands: vk::CommandBuffer, what: &Exported, release: bool, fresh: bool) {
        let access = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
        let none = vk::AccessFlags::empty();
        let (from, to) = match (release, fresh) {
            (true, _) => (self.queue_family, EXTERNAL),
            (false, true) => (vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED),
            (false, false) => (EXTERNAL, self.queue_family),
        };
        let (before, after) = match release {
            true => (access, none),
            false => (none, access),
        };
        let buffers = [vk::BufferMemoryBarrier::default()
            .src_access_mask(before)
            .dst_access_mask(after)
            .src_queue_family_index(from)
            .dst_queue_family_index(to)
            .buffer(what.buffer)
            .size(vk::WHOLE_SIZE)];
        let images = [vk::ImageMemoryBarrier::default()
            .src_access_mask(before)
            .dst_access_mask(after)
            .old_layout(match fresh {
                true => vk::ImageLayout::UNDEFINED,
                false => vk::ImageLayout::GENERAL,
            })
            .new_layout(vk::ImageLayout::GENERAL)
            .src_queue_family_index(from)
            .dst_queue_family_index(to)
            .image(what.image)
            .subresource_range(
                vk::ImageSubresourceRange::default()
                    .aspect_mask(vk::ImageAspectFlags::COLOR)
                    .level_count(1)
                    .layer_count(1),
            )];
        let is_buffer = usize::from(what.buffer != vk::Buffer::null());
        let flags = vk::DependencyFlags::empty();
        // SAFETY: recorded by this thread.
        unsafe {
            self.raw.cmd_pipeline_barrier(
                commands,
                ALL,
                ALL,
                flags,
                &[],
                &buffers[..is_buffer],
                &images[is_buffer..],
            );
        }
    }

    fn texels(width: u32, height: u32) -> vk::BufferImageCopy {
        vk::BufferImageCopy::default()
            .image_subresource(
                vk::ImageSubresourceLayers::default()
                    .aspect_mask(vk::ImageAspectFlags::COLOR)
                    .layer_count(1),
            )
            .image_extent(vk::Extent3D {
                width,
                height,
                depth: 1,
            })
    }

    /// Fills what others can have from memory of the host, and hands it over. `fresh`: nobody has used it. `size`: of an image.
    pub fn fill(
        &self,
        what: &Exported,
        (from, fresh): (&Host, bool),
        size: Option<(u32, u32)>,
        [wait, signal]: [Option<&Signal>; 2],
    ) -> vk::Fence {
        self.submit(wait, signal, |commands| {
            self.hand_over(commands, what, false, fresh);
            // SAFETY: recorded by this thread; the resources live until the fence is waited for.
            unsafe {
                match size {
                    None => {
                        let region = vk::BufferCopy::default().size(from.size as u64);
                        (self.raw).cmd_copy_buffer(commands, from.buffer, what.buffer, &[region]);
                    }
                    Some((width, height)) => self.raw.cmd_copy_buffer_to_image(
                        commands,
                        from.buffer,
                        what.image,
                        vk::ImageLayout::GENERAL,
                        &[Self::texels(width, height)],
                    ),
                }
            }
            self.hand_over(commands, what, true, false);
        })
    }

    /// Takes over what others have, copies it to memory of the host, and hands it over again.
    pub fn read(
        &self,
        what: &Exported,
        to: &Host,
        size: Option<(u32, u32)>,
        [wait, signal]: [Option<&Signal>; 2],
    ) -> vk::Fence {
        self.submit(wait, signal, |commands| {
            self.hand_over(commands, what, false, false);
            // SAFETY: as in `fill`.
            unsafe {
                match size {
                    None => {
                        let region = vk::BufferCopy::default().size(to.size as u64);
                        (self.raw).cmd_copy_buffer(commands, what.buffer, to.buffer, &[region]);
                    }
                    Some((width, height)) => self.raw.cmd_copy_image_to_buffer(
                        commands,
                        what.image,
                        vk::ImageLayout::GENERAL,
                        to.buffer,
                        &[Self::texels(width, height)],
                    ),
                }
                let seen = [vk::MemoryBarrier::default()
                    .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
                    .dst_access_mask(vk::AccessFlags::HOST_READ)];
                self.raw.cmd_pipeline_barrier(
                    commands,
                    vk::PipelineStageFlags::TRANSFER,
                    vk::PipelineStageFlags::HOST,
                    vk::DependencyFlags::empty(),
                    &seen,
                    &[],
                    &[],
                );
            }
            self.hand_over(commands, what, true, false);
        })
    }
}

impl Exported {
    /// A new file descriptor of the memory.
    pub fn fd(&self) -> i32 {
        let info = vk::MemoryGetFdInfoKHR::default()
            .memory(self.memory)
            .handle_type(FD);
        // SAFETY: the memory was made to be exported.
        unsafe { self.vulkan.memory.get_memory_fd(&info) }.expect("a file descriptor")
    }
}

impl Signal {
    /// A new file descriptor of the semaphore.
    pub fn fd(&self) -> i32 {
        let info = vk::SemaphoreGetFdInfoKHR::default()
            .semaphore(self.raw)
            .handle_type(vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD);
        let functions = self.vulkan.semaphores.as_ref().expect("shared semaphores");
        // SAFETY: the semaphore was made to be exported.
        unsafe { functions.get_semaphore_fd(&info) }.expect("a file descriptor")
    }
}
