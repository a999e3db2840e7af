//! The table: which functions of devices, queues and command buffers can fail, with which codes of Vulkan 1.3's
//! specification, and what they make. A call that does not fail is passed on as it came.
//!
//! Not here: time-outs, which waits of Pumice ask for only to look again; the codes of extensions that it does not use.

use crate::{device, state};
use ash::vk;
use pumice_layer::untyped;
use std::ffi::{c_void, CStr};

const DEVICE_MEMORY: &[i32] = &[-2];
const MEMORY: &[i32] = &[-1, -2];
const LOSABLE: &[i32] = &[-1, -2, -4];
const MAP: &[i32] = &[-1, -2, -5];
/// With VK_ERROR_FRAGMENTATION.
const POOL: &[i32] = &[-1, -2, -1000161000];
/// With VK_ERROR_FRAGMENTED_POOL and VK_ERROR_OUT_OF_POOL_MEMORY.
const SETS: &[i32] = &[-1, -2, -12, -1000069000];
/// With VK_ERROR_INVALID_EXTERNAL_HANDLE.
const HANDLE: &[i32] = &[-1, -1000072003];

/// Functions that may fail: `NAME table.function(object, rest...) CODES, kind of what is made`.
macro_rules! calls {
    ($($name:literal $table:ident.$function:ident($first:ident: $object:ty $(, $arg:ident: $type:ty)*)
        $codes:ident $(, $kind:literal)?;)*) => {
        $(
            unsafe extern "system" fn $function($first: $object $(, $arg: $type)*) -> vk::Result {
                // SAFETY: the object lives.
                let Some(device) = (unsafe { device::of($first) }) else {
                    return vk::Result::ERROR_DEVICE_LOST;
                };
                if let Some(code) = state::call($name, $codes) {
                    return fail(&device, code);
                }
                // SAFETY: the arguments are passed on.
                let result = unsafe { (device::$table(&device).$function)($first $(, $arg)*) };
                $(if result == vk::Result::SUCCESS {
                    state::add_live($kind, 1);
                })?
                result
            }
        )*

        /// The codes with which a function may fail; none if it is not in the table.
        pub fn codes(name: &str) -> &'static [i32] {
            match name {
                "vkCreateInstance" => &[-1, -2, -3, -9],
                "vkEnumeratePhysicalDevices" => &[-1, -2, -3],
                "vkCreateDevice" => &[-1, -2, -3, -4],
                "vkCreateComputePipelines" => MEMORY,
                $($name => $codes,)*
                _ => &[],
            }
        }

        fn failing(name: &str) -> vk::PFN_vkVoidFunction {
            match name {
                $($name => untyped(
                    $function as unsafe extern "system" fn($object $(, $type)*) -> vk::Result,
                ),)*
                _ => None,
            }
        }
    };
}

/// The code, given. Before a device is lost its work ends: nothing of it may run when the program destroys what it uses.
fn fail(device: &device::Device, code: vk::Result) -> vk::Result {
    if code == vk::Result::ERROR_DEVICE_LOST {
        // SAFETY: the device lives. Drivers that mind other threads' submissions are not tested with this layer.
        let _ = unsafe { device.next.device_wait_idle() };
    }
    code
}

/// Functions that end the life of something: `NAME function(type of what ends), kind`.
macro_rules! ends {
    ($($name:literal $function:ident($type:ty) $kind:literal;)*) => {
        $(
            unsafe extern "system" fn $function(
                raw: vk::Device,
                object: $type,
                allocator: *const vk::AllocationCallbacks<'_>,
            ) {
                // SAFETY: the object lives.
                let Some(device) = (unsafe { device::of(raw) }) else {
                    return;
                };
                // SAFETY: the arguments are passed on.
                unsafe { (device.next.fp_v1_0().$function)(raw, object, allocator) };
                if object != <$type>::null() {
                    state::add_live($kind, -1);
                }
            }
        )*

        fn ending(name: &str) -> vk::PFN_vkVoidFunction {
            match name {
                $($name => untyped(
                    $function as unsafe extern "system" fn(
                        vk::Device,
                        $type,
                        *const vk::AllocationCallbacks<'_>,
                    ),
                ),)*
                _ => None,
            }
        }
    };
}

/// vkCreateComputePipelines: it makes several, and those that it does not make are null.
unsafe extern "system" fn create_compute_pipelines(
    raw: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    made: *mut vk::Pipeline,
) -> vk::Result {
    // SAFETY: the device lives.
    let Some(device) = (unsafe { device::of(raw) }) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    // SAFETY: the caller has room for that many. Handles are numbers, and what was there is not read.
    unsafe { made.write_bytes(0, count as usize) };
    if let Some(code) = state::call("vkCreateComputePipelines", MEMORY) {
        return code;
    }
    let create = device.next.fp_v1_0().create_compute_pipelines;
    // SAFETY: the arguments are passed on.
    let result = unsafe { create(raw, cache, count, infos, allocator, made) };
    // SAFETY: all are written.
    let pipelines = unsafe { std::slice::from_raw_parts(made, count as usize) };
    let real = pipelines
        .iter()
        .filter(|made| **made != vk::Pipeline::null());
    state::add_live("pipeline", real.count() as i64);
    result
}

/// The function of this layer with that name, among those that take a device, a queue or a command buffer.
pub fn find(name: &CStr) -> vk::PFN_vkVoidFunction {
    let name = name.to_str().ok()?;
    if name == "vkCreateComputePipelines" {
        return untyped(create_compute_pipelines as vk::PFN_vkCreateComputePipelines);
    }
    failing(name).or_else(|| ending(name))
}

calls! {
    "vkAllocateMemory" fp_v1_0.allocate_memory(device: vk::Device, info: *const vk::MemoryAllocateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::DeviceMemory) MEMORY, "memory";
    "vkCreateBuffer" fp_v1_0.create_buffer(device: vk::Device, info: *const vk::BufferCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::Buffer) MEMORY, "buffer";
    "vkCreateImage" fp_v1_0.create_image(device: vk::Device, info: *const vk::ImageCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::Image) MEMORY, "image";
    "vkCreateImageView" fp_v1_0.create_image_view(device: vk::Device, info: *const vk::ImageViewCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::ImageView) MEMORY, "image view";
    "vkCreateBufferView" fp_v1_0.create_buffer_view(device: vk::Device, info: *const vk::BufferViewCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::BufferView) MEMORY, "buffer view";
    "vkCreateSampler" fp_v1_0.create_sampler(device: vk::Device, info: *const vk::SamplerCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::Sampler) MEMORY, "sampler";
    "vkCreateShaderModule" fp_v1_0.create_shader_module(device: vk::Device, info: *const vk::ShaderModuleCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::ShaderModule) MEMORY, "shader module";
    "vkCreatePipelineCache" fp_v1_0.create_pipeline_cache(device: vk::Device, info: *const vk::PipelineCacheCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::PipelineCache) MEMORY, "pipeline cache";
    "vkCreatePipelineLayout" fp_v1_0.create_pipeline_layout(device: vk::Device, info: *const vk::PipelineLayoutCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::PipelineLayout) MEMORY, "pipeline layout";
    "vkCreateDescriptorSetLayout" fp_v1_0.create_descriptor_set_layout(device: vk::Device, info: *const vk::DescriptorSetLayoutCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::DescriptorSetLayout) MEMORY, "descriptor set layout";
    "vkCreateDescriptorPool" fp_v1_0.create_descriptor_pool(device: vk::Device, info: *const vk::DescriptorPoolCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::DescriptorPool) POOL, "descriptor pool";
    "vkCreateFence" fp_v1_0.create_fence(device: vk::Device, info: *const vk::FenceCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::Fence) MEMORY, "fence";
    "vkCreateSemaphore" fp_v1_0.create_semaphore(device: vk::Device, info: *const vk::SemaphoreCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::Semaphore) MEMORY, "semaphore";
    "vkCreateEvent" fp_v1_0.create_event(device: vk::Device, info: *const vk::EventCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::Event) MEMORY, "event";
    "vkCreateQueryPool" fp_v1_0.create_query_pool(device: vk::Device, info: *const vk::QueryPoolCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::QueryPool) MEMORY, "query pool";
    "vkCreateCommandPool" fp_v1_0.create_command_pool(device: vk::Device, info: *const vk::CommandPoolCreateInfo<'_>, allocator: *const vk::AllocationCallbacks<'_>, made: *mut vk::CommandPool) MEMORY, "command pool";
    "vkMapMemory" fp_v1_0.map_memory(device: vk::Device, memory: vk::DeviceMemory, offset: vk::DeviceSize, size: vk::DeviceSize, flags: vk::MemoryMapFlags, data: *mut *mut c_void) MAP;
    "vkFlushMappedMemoryRanges" fp_v1_0.flush_mapped_memory_ranges(device: vk::Device, count: u32, ranges: *const vk::MappedMemoryRange<'_>) MEMORY;
    "vkInvalidateMappedMemoryRanges" fp_v1_0.invalidate_mapped_memory_ranges(device: vk::Device, count: u32, ranges: *const vk::MappedMemoryRange<'_>) MEMORY;
    "vkBindBufferMemory" fp_v1_0.bind_buffer_memory(device: vk::Device, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: vk::DeviceSize) MEMORY;
    "vkBindImageMemory" fp_v1_0.bind_image_memory(device: vk::Device, image: vk::Image, memory: vk::DeviceMemory, offset: vk::DeviceSize) MEMORY;
    "vkGetPipelineCacheData" fp_v1_0.get_pipeline_cache_data(device: vk::Device, cache: vk::PipelineCache, size: *mut usize, data: *mut c_void) MEMORY;
    "vkMergePipelineCaches" fp_v1_0.merge_pipeline_caches(device: vk::Device, into: vk::PipelineCache, count: u32, caches: *const vk::PipelineCache) MEMORY;
    "vkAllocateDescriptorSets" fp_v1_0.allocate_descriptor_sets(device: vk::Device, info: *const vk::DescriptorSetAllocateInfo<'_>, sets: *mut vk::DescriptorSet) SETS;
    "vkAllocateCommandBuffers" fp_v1_0.allocate_command_buffers(device: vk::Device, info: *const vk::CommandBufferAllocateInfo<'_>, made: *mut vk::CommandBuffer) MEMORY;
    "vkResetCommandPool" fp_v1_0.reset_command_pool(device: vk::Device, pool: vk::CommandPool, flags: vk::CommandPoolResetFlags) DEVICE_MEMORY;
    "vkBeginCommandBuffer" fp_v1_0.begin_command_buffer(commands: vk::CommandBuffer, info: *const vk::CommandBufferBeginInfo<'_>) MEMORY;
    "vkEndCommandBuffer" fp_v1_0.end_command_buffer(commands: vk::CommandBuffer) MEMORY;
    "vkResetCommandBuffer" fp_v1_0.reset_command_buffer(commands: vk::CommandBuffer, flags: vk::CommandBufferResetFlags) DEVICE_MEMORY;
    "vkResetEvent" fp_v1_0.reset_event(device: vk::Device, event: vk::Event) DEVICE_MEMORY;
    "vkGetEventStatus" fp_v1_0.get_event_status(device: vk::Device, event: vk::Event) LOSABLE;
    "vkResetFences" fp_v1_0.reset_fences(device: vk::Device, count: u32, fences: *const vk::Fence) DEVICE_MEMORY;
    "vkGetFenceStatus" fp_v1_0.get_fence_status(device: vk::Device, fence: vk::Fence) LOSABLE;
    "vkWaitForFences" fp_v1_0.wait_for_fences(device: vk::Device, count: u32, fences: *const vk::Fence, all: vk::Bool32, timeout: u64) LOSABLE;
    "vkGetQueryPoolResults" fp_v1_0.get_query_pool_results(device: vk::Device, pool: vk::QueryPool, first: u32, count: u32, size: usize, data: *mut c_void, stride: vk::DeviceSize, flags: vk::QueryResultFlags) LOSABLE;
    "vkQueueSubmit" fp_v1_0.queue_submit(queue: vk::Queue, count: u32, infos: *const vk::SubmitInfo<'_>, fence: vk::Fence) LOSABLE;
    "vkQueueBindSparse" fp_v1_0.queue_bind_sparse(queue: vk::Queue, count: u32, infos: *const vk::BindSparseInfo<'_>, fence: vk::Fence) LOSABLE;
    "vkQueueWaitIdle" fp_v1_0.queue_wait_idle(queue: vk::Queue) LOSABLE;
    "vkDeviceWaitIdle" fp_v1_0.device_wait_idle(device: vk::Device) LOSABLE;
    "vkGetSemaphoreCounterValue" fp_v1_2.get_semaphore_counter_value(device: vk::Device, semaphore: vk::Semaphore, value: *mut u64) LOSABLE;
    "vkWaitSemaphores" fp_v1_2.wait_semaphores(device: vk::Device, info: *const vk::SemaphoreWaitInfo<'_>, timeout: u64) LOSABLE;
    "vkGetMemoryFdPropertiesKHR" external_memory_fd.get_memory_fd_properties_khr(device: vk::Device, kind: vk::ExternalMemoryHandleTypeFlags, fd: i32, found: *mut vk::MemoryFdPropertiesKHR<'_>) HANDLE;
    "vkSignalSemaphore" fp_v1_2.signal_semaphore(device: vk::Device, info: *const vk::SemaphoreSignalInfo<'_>) MEMORY;
}

ends! {
    "vkFreeMemory" free_memory(vk::DeviceMemory) "memory";
    "vkDestroyPipeline" destroy_pipeline(vk::Pipeline) "pipeline";
    "vkDestroyBuffer" destroy_buffer(vk::Buffer) "buffer";
    "vkDestroyImage" destroy_image(vk::Image) "image";
    "vkDestroyImageView" destroy_image_view(vk::ImageView) "image view";
    "vkDestroyBufferView" destroy_buffer_view(vk::BufferView) "buffer view";
    "vkDestroySampler" destroy_sampler(vk::Sampler) "sampler";
    "vkDestroyShaderModule" destroy_shader_module(vk::ShaderModule) "shader module";
    "vkDestroyPipelineCache" destroy_pipeline_cache(vk::PipelineCache) "pipeline cache";
    "vkDestroyPipelineLayout" destroy_pipeline_layout(vk::PipelineLayout) "pipeline layout";
    "vkDestroyDescriptorSetLayout" destroy_descriptor_set_layout(vk::DescriptorSetLayout) "descriptor set layout";
    "vkDestroyDescriptorPool" destroy_descriptor_pool(vk::DescriptorPool) "descriptor pool";
    "vkDestroyFence" destroy_fence(vk::Fence) "fence";
    "vkDestroySemaphore" destroy_semaphore(vk::Semaphore) "semaphore";
    "vkDestroyEvent" destroy_event(vk::Event) "event";
    "vkDestroyQueryPool" destroy_query_pool(vk::QueryPool) "query pool";
    "vkDestroyCommandPool" destroy_command_pool(vk::CommandPool) "command pool";
}
