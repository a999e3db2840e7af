//! Shared virtual memory: allocations of which commands may be under way when they are given up.

use crate::graph::Node;
use crate::memory::BLOCKS;
use crate::world::World;
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, ok};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Flags that the devices allow for every allocation; none: they have no memory in common.
pub fn flags(context: cl_context, devices: &[cl_device_id]) -> Vec<cl_svm_mem_flags> {
    let has = |wanted: cl_bitfield| {
        devices.iter().all(|&device| {
            let bits = info_value!(
                cl_bitfield,
                clGetDeviceInfo(device),
                CL_DEVICE_SVM_CAPABILITIES
            );
            bits & wanted != 0
        })
    };
    let mut all = Vec::new();
    if has(CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) {
        all.extend([0, CL_MEM_READ_WRITE]);
    }
    if has(CL_DEVICE_SVM_FINE_GRAIN_BUFFER) {
        all.push(CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER);
    }
    // Devices of one context need not have an address in common.
    all.retain(|flags| {
        let pointer = call!(clSVMAlloc(context, *flags, 64, 0));
        call!(clSVMFree(context, pointer));
        !pointer.is_null()
    });
    all
}

/// An allocation.
pub struct Allocation {
    /// Its first byte.
    pub address: usize,
    context: cl_context,
    reaper: cl_command_queue,
    end: End,
}

/// How it is freed.
#[derive(Clone, Copy)]
enum End {
    /// Once all commands are over.
    Waits,
    /// By a command.
    Enqueued,
    /// By the callback of a command.
    Callback,
}

type FreeFn =
    Option<unsafe extern "C" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void)>;

extern "C" fn free(
    _: cl_command_queue,
    count: cl_uint,
    pointers: *mut *mut c_void,
    context: *mut c_void,
) {
    assert_eq!(
        count, 1,
        "pointers given to the callback of clEnqueueSVMFree"
    );
    // SAFETY: a list of one, as given to clEnqueueSVMFree.
    let pointer = unsafe { *pointers };
    call!(clSVMFree(context, pointer));
    ok!(clReleaseContext(context));
    BLOCKS.fetch_sub(1, Ordering::SeqCst);
}

impl Allocation {
    /// One with these contents.
    pub fn new(world: &World, rng: &mut Rng, bytes: &[u8]) -> Self {
        let flags = *rng.pick(&world.svm);
        let align = *rng.pick(&[0, 64, 4096]);
        let pointer = call!(clSVMAlloc(world.context, flags, bytes.len(), align));
        assert!(!pointer.is_null(), "no shared virtual memory");
        ok!(clEnqueueSVMMemcpy(
            world.filler,
            CL_TRUE,
            pointer,
            bytes.as_ptr().cast(),
            bytes.len(),
            0,
            null(),
            null_mut()
        ));
        // Other queues use it without an event.
        ok!(clFinish(world.filler));
        ok!(clRetainCommandQueue(world.reaper));
        Self {
            address: pointer as usize,
            context: world.context,
            reaper: world.reaper,
            end: *rng.pick(&[End::Waits, End::Enqueued, End::Callback]),
        }
    }

    /// Frees it after these commands. Buffers over it have been released.
    pub fn end(self, uses: &[Arc<Node>]) {
        let mut pointer = self.address as *mut c_void;
        let (events, markers): (Vec<_>, Vec<_>) = uses
            .iter()
            .filter(|node| !node.is_complete())
            .map(|node| node.event_after())
            .unzip();
        let list = match events.as_slice() {
            [] => null(),
            list => list.as_ptr(),
        };
        let count = events.len() as cl_uint;
        match self.end {
            End::Waits => {
                if count > 0 {
                    ok!(clWaitForEvents(count, list));
                }
                call!(clSVMFree(self.context, pointer));
            }
            End::Enqueued | End::Callback => {
                let callback: FreeFn = match self.end {
                    End::Callback => Some(free),
                    _ => None,
                };
                if callback.is_some() {
                    ok!(clRetainContext(self.context));
                    BLOCKS.fetch_add(1, Ordering::SeqCst);
                }
                ok!(clEnqueueSVMFree(
                    self.reaper,
                    1,
                    &mut pointer,
                    callback,
                    self.context,
                    count,
                    list,
                    null_mut()
                ));
                ok!(clFlush(self.reaper));
            }
        }
        for (event, _) in events.into_iter().zip(markers).filter(|(_, made)| *made) {
            ok!(clReleaseEvent(event));
        }
        ok!(clReleaseCommandQueue(self.reaper));
    }

    /// A buffer over it.
    pub fn buffer(&self, size: usize) -> cl_mem {
        create!(clCreateBuffer(
            self.context,
            CL_MEM_USE_HOST_PTR,
            size,
            self.address as *mut c_void
        ))
    }
}
