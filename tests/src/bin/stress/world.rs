//! The objects that all threads share: the context, its devices, and their abilities.

use crate::svm;
use pumice_tests::sys::*;
use pumice_tests::{create, info_text, info_value, ok};
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard};

/// A function for the context's error reports.
pub type Report = Option<unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>;

/// A lock whose holder did not fail (a failure ends the process).
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread has failed")
}

/// The objects that all threads share.
pub struct World {
    /// The context.
    pub context: cl_context,
    /// Its devices.
    pub devices: Vec<cl_device_id>,
    /// Alignment of sub-buffers.
    pub align: usize,
    /// A queue for initial contents.
    pub filler: cl_command_queue,
    /// A queue for freeing what commands may still use.
    pub reaper: cl_command_queue,
    /// Flags of allocations of shared virtual memory; none where the devices have no such memory in common.
    pub svm: Vec<cl_svm_mem_flags>,
    /// A number that the programs contain, so that no other round has built them; they print as well.
    pub number: Option<u32>,
    /// The devices have images of every type, over buffers as well, and kernels may write them.
    pub images: bool,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

impl World {
    /// A context of so many devices at most, 0: of all; the number of its round, if that counts.
    pub fn new(most: usize, number: Option<u32>, report: Report) -> Self {
        let mut platform = null_mut();
        ok!(clGetPlatformIDs(1, &mut platform, null_mut()));
        let (all, mut count) = (CL_DEVICE_TYPE_ALL, 0);
        ok!(clGetDeviceIDs(platform, all, 0, null_mut(), &mut count));
        let mut devices = vec![null_mut(); count as usize];
        ok!(clGetDeviceIDs(
            platform,
            all,
            count,
            devices.as_mut_ptr(),
            null_mut()
        ));
        if most > 0 {
            devices.truncate(most);
        }
        let context = create!(clCreateContext(
            null(),
            devices.len() as cl_uint,
            devices.as_ptr(),
            report,
            null_mut()
        ));
        let align = |&device: &cl_device_id| {
            info_value!(
                cl_uint,
                clGetDeviceInfo(device),
                CL_DEVICE_MEM_BASE_ADDR_ALIGN
            ) as usize
                / 8
        };
        let images = |&device: &cl_device_id| {
            let extensions = info_text!(clGetDeviceInfo(device), CL_DEVICE_EXTENSIONS);
            ["cl_khr_3d_image_writes", "cl_ext_image_from_buffer"]
                .iter()
                .all(|name| extensions.split(' ').any(|one| one == *name))
        };
        Self {
            context,
            align: devices.iter().map(align).fold(4, usize::max),
            filler: create!(clCreateCommandQueueWithProperties(
                context,
                devices[0],
                null()
            )),
            reaper: create!(clCreateCommandQueueWithProperties(
                context,
                devices[0],
                null()
            )),
            svm: svm::flags(context, &devices),
            number,
            images: devices.iter().all(images),
            devices,
        }
    }

    /// The context has several devices.
    pub fn several(&self) -> bool {
        self.devices.len() > 1
    }
}

impl Drop for World {
    fn drop(&mut self) {
        ok!(clReleaseCommandQueue(self.filler));
        ok!(clReleaseCommandQueue(self.reaper));
        ok!(clReleaseContext(self.context));
    }
}
