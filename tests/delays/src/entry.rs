//! The functions of devices and queues that this layer stands before.
//!
//! What is passed on is what came, but for the batches of vkQueueSubmit. A function that is called for an unknown device
//! answers VK_ERROR_DEVICE_LOST: the caller has destroyed it.

use crate::device::{self, Device};
use crate::rewrite::{self, Added};
use crate::schedule::{self, Site};
use crate::tally;
use ash::vk;
use pumice_layer::untyped;
use std::ffi::{c_void, CStr};
use std::time::Duration;

const LOST: vk::Result = vk::Result::ERROR_DEVICE_LOST;

/// The function of this layer with that name, among those that take a device or a queue.
pub fn find(name: &CStr) -> vk::PFN_vkVoidFunction {
    match name.to_bytes() {
        b"vkDeviceWaitIdle" => untyped(device_wait_idle as vk::PFN_vkDeviceWaitIdle),
        b"vkQueueWaitIdle" => untyped(queue_wait_idle as vk::PFN_vkQueueWaitIdle),
        b"vkQueueSubmit" => untyped(queue_submit as vk::PFN_vkQueueSubmit),
        b"vkQueueBindSparse" => untyped(queue_bind_sparse as vk::PFN_vkQueueBindSparse),
        b"vkWaitForFences" => untyped(wait_for_fences as vk::PFN_vkWaitForFences),
        b"vkWaitSemaphores" => untyped(wait_semaphores as vk::PFN_vkWaitSemaphores),
        b"vkGetSemaphoreCounterValue" => {
            untyped(get_semaphore_counter_value as vk::PFN_vkGetSemaphoreCounterValue)
        }
        b"vkSignalSemaphore" => untyped(signal_semaphore as vk::PFN_vkSignalSemaphore),
        b"vkMapMemory" => untyped(map_memory as vk::PFN_vkMapMemory),
        _ => None,
    }
}

/// vkDeviceWaitIdle: what is held back is let go.
///
/// # Safety
/// As vkDeviceWaitIdle.
unsafe extern "system" fn device_wait_idle(raw: vk::Device) -> vk::Result {
    // SAFETY: the device lives.
    let Some(device) = (unsafe { device::of(raw) }) else {
        return LOST;
    };
    if let Some(gates) = &device.own {
        gates.release(None);
    }
    // SAFETY: the arguments are passed on.
    unsafe { (device.next.fp_v1_0().device_wait_idle)(raw) }
}

/// vkQueueWaitIdle: what is held back of the queue is let go.
///
/// # Safety
/// As vkQueueWaitIdle.
unsafe extern "system" fn queue_wait_idle(queue: vk::Queue) -> vk::Result {
    // SAFETY: the queue lives.
    let Some(device) = (unsafe { device::of(queue) }) else {
        return LOST;
    };
    if let Some(gates) = &device.own {
        gates.release(Some(queue));
    }
    // SAFETY: the arguments are passed on.
    unsafe { (device.next.fp_v1_0().queue_wait_idle)(queue) }
}

/// vkQueueSubmit: the call is late, the device begins late, or says late that it is done.
///
/// # Safety
/// As vkQueueSubmit.
unsafe extern "system" fn queue_submit(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the queue lives.
    let Some(device) = (unsafe { device::of(queue) }) else {
        return LOST;
    };
    tally::sleep(Site::Submit);
    let infos = match count {
        0 => &[][..],
        // SAFETY: the caller passes that many.
        _ => unsafe { std::slice::from_raw_parts(infos, count as usize) },
    };
    // SAFETY: the caller's promises.
    match unsafe { submit_late(&device, queue, infos, fence) } {
        Some(result) => result,
        // SAFETY: the arguments are passed on.
        None => unsafe {
            (device.next.fp_v1_0().queue_submit)(queue, count, infos.as_ptr(), fence)
        },
    }
}

/// Submits with batches of this layer between. None: there is nothing to be added, and nothing was submitted.
///
/// # Safety
/// As vkQueueSubmit.
unsafe fn submit_late(
    device: &Device,
    queue: vk::Queue,
    infos: &[vk::SubmitInfo<'_>],
    fence: vk::Fence,
) -> Option<vk::Result> {
    // A call that asks for nothing has nothing that could be late.
    if infos.is_empty() && fence == vk::Fence::null() {
        return None;
    }
    let gates = device.own.as_ref()?;
    tally::submission();
    let delays = schedule::get();
    let (hold, late) = (delays.delay(Site::Hold), delays.delay(Site::Late));
    let at = delays.below(infos.len());
    let late = match infos.get(at) {
        // SAFETY: the chain is valid.
        Some(info) if unsafe { rewrite::can_be_late(info) } => late,
        _ => Duration::ZERO,
    };
    if hold + late == Duration::ZERO {
        return None;
    }
    let (semaphore, value) = gates.reserve(queue)?;
    let added = Added {
        semaphore,
        hold: (hold > Duration::ZERO).then_some((delays.below(infos.len()), value)),
        late: (late > Duration::ZERO).then_some((at, value + 1)),
    };
    // SAFETY: as the caller promises; the added batches wait for the layer's own semaphore.
    let result = unsafe {
        rewrite::with(infos, &added, |infos| {
            device.next.queue_submit(queue, infos, fence)
        })
    };
    if result.is_ok() {
        gates.arm(queue, value, hold, late);
        tally::added(hold, late);
    }
    Some(result.err().unwrap_or(vk::Result::SUCCESS))
}

/// vkQueueBindSparse: late. Pumice waits for it in the next step, so that the device needs no delay of its own.
///
/// # Safety
/// As vkQueueBindSparse.
unsafe extern "system" fn queue_bind_sparse(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::BindSparseInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: the queue lives.
    let Some(device) = (unsafe { device::of(queue) }) else {
        return LOST;
    };
    tally::sleep(Site::Submit);
    // SAFETY: the arguments are passed on.
    unsafe { (device.next.fp_v1_0().queue_bind_sparse)(queue, count, infos, fence) }
}

/// vkWaitForFences: returns late.
///
/// # Safety
/// As vkWaitForFences.
unsafe extern "system" fn wait_for_fences(
    raw: vk::Device,
    count: u32,
    fences: *const vk::Fence,
    all: vk::Bool32,
    timeout: u64,
) -> vk::Result {
    // SAFETY: the device lives.
    let Some(device) = (unsafe { device::of(raw) }) else {
        return LOST;
    };
    // SAFETY: the arguments are passed on.
    let result =
        unsafe { (device.next.fp_v1_0().wait_for_fences)(raw, count, fences, all, timeout) };
    tally::sleep(Site::Wait);
    result
}

/// vkWaitSemaphores: returns late.
///
/// # Safety
/// As vkWaitSemaphores.
unsafe extern "system" fn wait_semaphores(
    raw: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    // SAFETY: the device lives.
    let Some(device) = (unsafe { device::of(raw) }) else {
        return LOST;
    };
    // SAFETY: the arguments are passed on.
    let result = unsafe { (device.next.fp_v1_2().wait_semaphores)(raw, info, timeout) };
    tally::sleep(Site::Wait);
    result
}

/// vkGetSemaphoreCounterValue: the answer is old when it comes.
///
/// # Safety
/// As vkGetSemaphoreCounterValue.
unsafe extern "system" fn get_semaphore_counter_value(
    raw: vk::Device,
    semaphore: vk::Semaphore,
    value: *mut u64,
) -> vk::Result {
    // SAFETY: the device lives.
    let Some(device) = (unsafe { device::of(raw) }) else {
        return LOST;
    };
    // SAFETY: the arguments are passed on.
    let result =
        unsafe { (device.next.fp_v1_2().get_semaphore_counter_value)(raw, semaphore, value) };
    tally::sleep(Site::Poll);
    result
}

/// vkSignalSemaphore: late, and returns late.
///
/// # Safety
/// As vkSignalSemaphore.
unsafe extern "system" fn signal_semaphore(
    raw: vk::Device,
    info: *const vk::SemaphoreSignalInfo<'_>,
) -> vk::Result {
    // SAFETY: the device lives.
    let Some(device) = (unsafe { device::of(raw) }) else {
        return LOST;
    };
    tally::sleep(Site::Signal);
    // SAFETY: the arguments are passed on.
    let result = unsafe { (device.next.fp_v1_2().signal_semaphore)(raw, info) };
    tally::sleep(Site::Signal);
    result
}

/// vkMapMemory: late.
///
/// # Safety
/// As vkMapMemory.
unsafe extern "system" fn map_memory(
    raw: vk::Device,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
    size: vk::DeviceSize,
    flags: vk::MemoryMapFlags,
    data: *mut *mut c_void,
) -> vk::Result {
    // SAFETY: the device lives.
    let Some(device) = (unsafe { device::of(raw) }) else {
        return LOST;
    };
    tally::sleep(Site::Map);
    // SAFETY: the arguments are passed on.
    unsafe { (device.next.fp_v1_0().map_memory)(raw, memory, offset, size, flags, data) }
}
