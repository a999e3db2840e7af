//! Memory of others, and semaphores.

use super::{extension, Ended, Objects, Outcome, Stop, World, BYTES, MEMORY};
use opencl_sys as sys;
use pumice_tests::call;
use std::ptr::{null, null_mut};

/// A file in memory that stands for a DMA buffer: its bytes are filled between two signals.
#[cfg(target_os = "linux")]
pub fn shared(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    type HandOver = sys::clEnqueueAcquireExternalMemObjectsKHR_t;
    let acquire: HandOver = extension(world, c"clEnqueueAcquireExternalMemObjectsKHR")?;
    let release: HandOver = extension(world, c"clEnqueueReleaseExternalMemObjectsKHR")?;
    let create: sys::clCreateSemaphoreWithPropertiesKHR_t =
        extension(world, c"clCreateSemaphoreWithPropertiesKHR")?;
    let forget: sys::clReleaseSemaphoreKHR_t = extension(world, c"clReleaseSemaphoreKHR")?;
    let wait: sys::clEnqueueWaitSemaphoresKHR_t = extension(world, c"clEnqueueWaitSemaphoresKHR")?;
    let signal: sys::clEnqueueSignalSemaphoresKHR_t =
        extension(world, c"clEnqueueSignalSemaphoresKHR")?;
    // SAFETY: the name is a string.
    let fd = unsafe { libc::memfd_create(c"shared".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: a plain call.
    if fd < 0 || unsafe { libc::ftruncate(fd, BYTES as i64) } != 0 {
        return Err(Stop);
    }
    // SAFETY: the file is open.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    objects.push(move || {
        // SAFETY: ours.
        unsafe { libc::close(fd) };
    });
    let list = [
        u64::from(sys::CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR),
        copy as u32 as u64,
        0,
    ];
    let mut code = 1;
    let mem = call!(clCreateBufferWithProperties(
        world.context,
        list.as_ptr(),
        0,
        BYTES,
        null_mut(),
        &mut code
    ));
    if code != sys::CL_SUCCESS {
        // SAFETY: ours still.
        let open = copy < 0 || unsafe { libc::close(copy) } == 0;
        o.expect(open, "a descriptor that was refused is closed");
    }
    let refused = [MEMORY[0], sys::CL_INVALID_VALUE];
    o.check("clCreateBufferWithProperties", code, &refused)?;
    objects.push(move || {
        call!(clReleaseMemObject(mem));
    });
    let list = [
        u64::from(sys::CL_SEMAPHORE_TYPE_KHR),
        u64::from(sys::CL_SEMAPHORE_TYPE_BINARY_KHR),
        0,
    ];
    let semaphore = extended!(create, (world.context, list.as_ptr(), &mut code));
    o.check("clCreateSemaphoreWithPropertiesKHR", code, &[])?;
    objects.push(move || {
        if let Some(forget) = forget {
            // SAFETY: it lives until here.
            unsafe { forget(semaphore) };
        }
    });
    let queue = world.queue;
    let code = extended!(
        signal,
        (queue, 1, &semaphore, null(), 0, null(), null_mut())
    );
    o.check("clEnqueueSignalSemaphoresKHR", code, &[])?;
    let code = extended!(wait, (queue, 1, &semaphore, null(), 0, null(), null_mut()));
    o.check("clEnqueueWaitSemaphoresKHR", code, &[])?;
    let code = extended!(acquire, (queue, 1, &mem, 0, null(), null_mut()));
    o.check("clEnqueueAcquireExternalMemObjectsKHR", code, &[])?;
    let pattern = 7u8;
    done!(
        o,
        MEMORY,
        clEnqueueFillBuffer(
            queue,
            mem,
            (&raw const pattern).cast(),
            1,
            0,
            BYTES,
            0,
            null(),
            null_mut()
        )
    );
    let mut event = null_mut();
    let code = extended!(release, (queue, 1, &mem, 0, null(), &mut event));
    o.check("clEnqueueReleaseExternalMemObjectsKHR", code, &[])?;
    objects.push(move || {
        call!(clReleaseEvent(event));
    });
    let failed = &[sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST];
    done!(o, failed, clWaitForEvents(1, &event));
    let mut last = 0u8;
    // SAFETY: room for a byte.
    unsafe { libc::pread(fd, (&raw mut last).cast(), 1, BYTES as i64 - 1) };
    o.expect(last == 7, "what was released is not in the memory");
    Ok(())
}

/// Nothing: there are no such descriptors.
#[cfg(not(target_os = "linux"))]
pub fn shared(_: &mut Outcome, _: &mut Objects, _: &World) -> Ended {
    Ok(())
}
