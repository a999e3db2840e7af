//! Semaphores.

use super::enqueue::Tail;
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_event, cl_external_semaphore_handle_type_khr, cl_int, cl_semaphore_info_khr,
    cl_semaphore_khr, cl_semaphore_payload_khr, cl_semaphore_properties_khr,
    cl_semaphore_reimport_properties_khr, cl_uint,
};
use pumice_runtime::error::{ensure, ClResult};
use pumice_runtime::handle;
use pumice_runtime::object::device::Device;
use pumice_runtime::object::info::Info;
use pumice_runtime::object::semaphore::{self, Semaphore};
use pumice_runtime::queue::Queue;
use std::ffi::c_void;

pub fn create(
    context: Handle,
    properties: In<cl_semaphore_properties_khr>,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let properties = abi::formed_properties(properties, semaphore::form)?;
    abi::publish(Semaphore::new(&context, properties))
}

pub fn retain(semaphore: Handle) -> ClResult {
    handle::retain::<Semaphore>(semaphore.as_ptr())
}

pub fn release(semaphore: Handle) -> ClResult {
    handle::release::<Semaphore>(semaphore.as_ptr())
}

pub fn get_info(
    semaphore: Handle,
    param: cl_semaphore_info_khr,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let semaphore = semaphore.object::<Semaphore>()?;
    semaphore
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}

/// Implements clGetSemaphoreHandleForTypeKHR: handles are file descriptors. Without a place for one only its size is returned.
pub fn get_handle(
    semaphore: Handle,
    device: Handle,
    kind: cl_external_semaphore_handle_type_khr,
    size: usize,
    place: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let semaphore = semaphore.object::<Semaphore>()?;
    let device = device.object::<Device>()?;
    semaphore.check_export(&device, kind)?;
    if !place.is_null() {
        ensure!(
            size >= size_of::<cl_int>(),
            cl::CL_INVALID_VALUE,
            "handle_size is less than that of a file descriptor"
        );
        abi::info(size, place, Out::null()).write(semaphore.export()?)?;
    }
    size_ret.set(size_of::<cl_int>());
    Ok(())
}

/// Implements clReImportSemaphoreSyncFdKHR. There are no properties.
pub fn reimport_sync_fd(
    semaphore: Handle,
    properties: Out<cl_semaphore_reimport_properties_khr>,
    fd: cl_int,
) -> ClResult {
    let semaphore = semaphore.object::<Semaphore>()?;
    ensure!(
        properties.input().get().is_none_or(|first| first == 0),
        cl::CL_INVALID_VALUE,
        "an unknown property"
    );
    semaphore.import_sync_fd(fd)
}

fn enqueue(
    queue: Handle,
    (number, semaphores): (cl_uint, In<cl_semaphore_khr>),
    signal: bool,
    tail: Tail,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    ensure!(number > 0, cl::CL_INVALID_VALUE, "num_sema_objects is 0");
    let semaphores = abi::objects::<Semaphore>(number, semaphores)?;
    let waits = abi::wait_list(tail.count, tail.list)?;
    let wanted = !tail.event.is_null();
    let made = match signal {
        true => queue.signal_semaphores(&semaphores, &waits, wanted)?,
        false => queue.wait_semaphores(&semaphores, &waits, wanted)?,
    };
    abi::publish_event(tail.event, made);
    Ok(())
}

/// Implements clEnqueueWaitSemaphoresKHR. Binary semaphores have no payload values.
pub fn enqueue_wait(
    queue: Handle,
    number: cl_uint,
    semaphores: In<cl_semaphore_khr>,
    _payloads: In<cl_semaphore_payload_khr>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    enqueue(
        queue,
        (number, semaphores),
        false,
        Tail { count, list, event },
    )
}

/// Implements clEnqueueSignalSemaphoresKHR.
pub fn enqueue_signal(
    queue: Handle,
    number: cl_uint,
    semaphores: In<cl_semaphore_khr>,
    _payloads: In<cl_semaphore_payload_khr>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    enqueue(
        queue,
        (number, semaphores),
        true,
        Tail { count, list, event },
    )
}
